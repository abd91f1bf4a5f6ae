"""Cut, map, merge: the only file that knows Dask.

`map_merge` runs one function on every item of every group and another on each group's results, in order. The
results are the same whatever the scheduler, the number of workers and the order in which they finish. Task
keys are a stage name and a running number. A task never raises: it returns what went wrong, so that no
scheduler logs its arguments, and the first failure in the order of the items is raised here.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from dask.base import compute as _untyped_compute
from dask.delayed import delayed

from agedp_data.errors import AgedpError

_compute: Callable[..., tuple[Any, ...]] = _untyped_compute


@dataclass(frozen=True, slots=True)
class Engine:
    """How it runs; never what: `scheduler` is "threads" or "processes"."""

    scheduler: str = "threads"
    workers: int = 2
    block_bytes: int = 16 * 2**20


@dataclass(frozen=True, slots=True)
class Failure:
    """What a task returns in place of raising."""

    error: AgedpError | None
    trace: str

    def throw(self) -> None:
        """Raise what happened in the task."""
        if self.error is not None:
            raise self.error
        raise TaskFailed(self.trace)


class TaskFailed(RuntimeError):
    """A bug inside a task; the traceback is text, its values are not kept."""


def map_merge(
    stage: str,
    groups: Sequence[Sequence[Any]],
    *,
    each: Callable[[Any], Any],
    merge: Callable[[list[Any]], Any],
    engine: Engine,
) -> list[Any]:
    """Return [merge([each(item) for item in group]) for group in groups]."""
    tasks, number = [], 0
    for group in groups:
        parts = []
        for item in group:
            number += 1
            parts.append(delayed(_guarded, pure=False)(each, item, dask_key_name=f"{stage}-{number}"))
        number += 1
        tasks.append(delayed(_merged, pure=False)(merge, parts, dask_key_name=f"{stage}-{number}"))
    results = list(_compute(*tasks, scheduler=engine.scheduler, num_workers=engine.workers)) if tasks else []
    for result in results:
        if isinstance(result, Failure):
            result.throw()
    return results


def map_each(stage: str, items: Sequence[Any], *, each: Callable[[Any], Any], engine: Engine) -> list[Any]:
    """Return [each(item) for item in items]."""
    return map_merge(stage, [[item] for item in items], each=each, merge=_only, engine=engine)


def _only(results: list[Any]) -> Any:  # noqa: ANN401  (whatever the stage returns)
    return results[0]


def _guarded(function: Callable[[Any], Any], argument: Any) -> Any:  # noqa: ANN401
    try:
        return function(argument)
    except AgedpError as error:
        return Failure(error.with_traceback(None), "")
    except Exception as error:
        # without its message: Arrow's quote rows
        return Failure(None, "".join([*traceback.format_tb(error.__traceback__), type(error).__name__]))


def _merged(merge: Callable[[list[Any]], Any], results: list[Any]) -> Any:  # noqa: ANN401
    for result in results:
        if isinstance(result, Failure):
            return result
    return _guarded(merge, results)
