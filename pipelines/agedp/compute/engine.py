"""Map and merge: with `cluster`, the only modules that import Dask.

`map_merge` runs one function on every item of every group and another on each group's results, in order. `map_reduce`
combines the results of all items as trees, so that few results reach the client. The results do not depend on the
scheduler, the number of workers or the order in which tasks finish. Task keys are "agedp-", a stage name and a running
number: a dashboard shows `agedp-bounds`. A task never raises: it returns its error, so that no scheduler logs its
arguments, and the first failure in the order of the items is raised here.

Work on households goes in blocks of them (`household_blocks`): 40 households are two tasks, 5,000 are 64.

Dask is imported with the first task: a night without any does not pay for it.
"""

from __future__ import annotations

import multiprocessing
import os
import site
import sys
import threading
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import count, pairwise
from pathlib import Path
from typing import Any

from agedp.compute.engine_settings import NO_MEMORY, Engine, Failure, Progress, reuse_freed_memory
from agedp_data.config.loading import read_scheduler
from agedp_data.errors import AgedpError, InputError


def dask_setup(worker: Any) -> None:  # noqa: ANN401, ARG001  (Dask's name and argument of a preloaded module)
    """Let a worker of our own cluster use freed memory again."""
    reuse_freed_memory()


LOCAL_SCHEDULERS = ("threads", "processes", "synchronous")
IN_PROCESS_SCHEDULERS = ("threads", "synchronous")
TASK_PREFIX = "agedp-"
BLOCK_HOUSEHOLDS = (32, 128)
"""The fewest households of a block, below which a task costs more than it does, and the most."""
_BLOCKS = 64
_TREE_ITEMS = 512


def household_blocks(households: int) -> list[slice]:
    """Return this many households in blocks of nearly equal size, one for each task of a stage.

    A function of their number alone, so that no result depends on scheduler or workers.

    >>> household_blocks(40), len(household_blocks(5000)), len(household_blocks(100_000))
    ([slice(0, 20, None), slice(20, 40, None)], 64, 782)
    """
    fewest, most = BLOCK_HOUSEHOLDS
    size = min(max(-(-households // _BLOCKS), fewest), most)
    number = -(-households // size)
    ends = [households * i // number for i in range(number + 1)] if number else [0]
    return [slice(start, end) for start, end in pairwise(ends)]


def scheduler_name(scheduler: Any) -> str:  # noqa: ANN401
    """Return the name of a scheduler: of a `distributed.Client`, of a cluster object, or a name itself.

    Raises:
        RunFileError: none of these.
    """
    if isinstance(scheduler, str):
        return read_scheduler(scheduler)
    if sys.modules.get("distributed"):
        from distributed import Client  # noqa: PLC0415

        from agedp.compute.cluster import adopt, client_of  # noqa: PLC0415

        if isinstance(scheduler, Client):
            return adopt(scheduler)
        if hasattr(scheduler, "scheduler_address") or hasattr(scheduler, "get_client"):
            return adopt(client_of(scheduler))
    return read_scheduler(scheduler)


def default_scheduler() -> str:
    """Return the scheduler of the active client, of Dask's configuration or of DASK_SCHEDULER_ADDRESS.

    "threads" if there is none.
    """
    if sys.modules.get("distributed"):  # no client can be active otherwise
        from agedp.compute.cluster import active_client, adopt  # noqa: PLC0415

        client = active_client()
        if client is not None:
            return adopt(client)
    if not _may_be_configured():
        return "threads"
    from dask import config as dask_config  # noqa: PLC0415  (slow to import)

    address = dask_config.get("scheduler-address", None)
    chosen = address or dask_config.get("scheduler", None)
    return str(chosen) if address or chosen in LOCAL_SCHEDULERS else "threads"


def _may_be_configured() -> bool:
    """Return whether Dask may have a configuration: in this process, its environment or one of Dask's folders."""
    if "dask" in sys.modules or any(name.startswith("DASK_") for name in os.environ):
        return True
    folders = [Path(prefix, "etc", "dask") for prefix in ("/", sys.prefix, *site.PREFIXES)]
    return any(folder.exists() for folder in (*folders, Path("~/.config/dask").expanduser()))


def check_shared(folder: Path, engine: Engine) -> None:
    """Check that workers can access a folder; on this machine they always can.

    Raises:
        InputError: as `cluster.check_shared`.
    """
    if engine.scheduler not in LOCAL_SCHEDULERS:
        from agedp.compute.cluster import check_shared as shared  # noqa: PLC0415  (an extra, and slow to import)

        shared(folder, engine)


@contextmanager
def explain_worker_errors(engine: Engine) -> Iterator[None]:
    """Add a hint to the error about an input file that exists here but that a remote worker cannot read."""
    try:
        yield
    except InputError as error:
        if engine.scheduler in LOCAL_SCHEDULERS or str(error).startswith("[engine]"):
            raise
        hint = "every worker of the cluster must see the input files under the same names"
        raise InputError(f"{error}; {hint}", private=f"{error.private}; {hint}") from None


def map_merge(
    stage: str,
    groups: Sequence[Sequence[Any]],
    *,
    function: Callable[[Any], Any],
    merge: Callable[[list[Any]], Any],
    engine: Engine,
) -> list[Any]:
    """Return [merge([function(item) for item in group]) for group in groups], computed by the engine."""
    if len(groups) == 1 and _needs_no_scheduler(groups[0], engine):
        return [_run_here(stage, groups[0], function, merge, engine)]

    def tasks(lazy: _Lazy) -> Iterator[Any]:
        return (lazy.merged(merge, lazy.items(function, group)) for group in groups)

    return list(_results(stage, tasks, len(groups), engine)) if groups else []


def map_reduce(
    stage: str,
    items: Sequence[Any],
    *,
    function: Callable[[Any], Any],
    combine: Callable[[list[Any]], Any],
    engine: Engine,
    fan_in: int = 8,
) -> Any:  # noqa: ANN401  (any result of a stage)
    """Return the combined results of function(item), computed by the engine as a tree.

    The client of a cluster receives one result for each tree of 512 items, and holds two at a time.

    Args:
        stage: stage name for the keys of the tasks and the progress callback.
        items: the arguments, in order.
        function: the work on one item.
        combine: combines some results, at least one unless there are no items, into one of the same form. It must be
            associative; results keep the order of their items.
        engine: scheduler and workers.
        fan_in: number of results that one task combines.
    """
    if not items:
        return combine([])
    if _needs_no_scheduler(items, engine):
        return _run_here(stage, items, function, combine, engine)
    size = len(items) if engine.scheduler in LOCAL_SCHEDULERS else _TREE_ITEMS

    def tasks(lazy: _Lazy) -> Iterator[Any]:
        for tree in _slices(items, size):
            level = [lazy.merged(combine, group) for group in _slices(list(lazy.items(function, tree)), fan_in)]
            while len(level) > 1:
                level = [lazy.merged(combine, group) for group in _slices(level, fan_in)]
            yield level[0]

    with closing(_results(stage, tasks, -(-len(items) // size), engine)) as results:
        total = next(results)
        for result in results:
            total = _raise_failure(_merge_results(combine, [total, result]))
    return total


def _needs_no_scheduler(items: Sequence[Any], engine: Engine) -> bool:
    """Return whether the work is one item for this process: a night with one new file does not import Dask, 0.3 s."""
    return len(items) <= 1 and engine.scheduler in IN_PROCESS_SCHEDULERS


def _run_here(
    stage: str,
    items: Sequence[Any],
    function: Callable[[Any], Any],
    merge: Callable[[list[Any]], Any],
    engine: Engine,
) -> Any:  # noqa: ANN401
    """Return merge([function(item) for item in items], computed now; progress and errors are those of the engine."""
    total = len(items) + 1
    results = [_run_item_here(stage, item, function, engine, (done, total)) for done, item in enumerate(items, start=1)]
    return _raise_failure(_run_item_here(stage, results, partial(_merge_results, merge), engine, (total, total)))


def _run_item_here(
    stage: str,
    item: Any,  # noqa: ANN401
    function: Callable[[Any], Any],
    engine: Engine,
    done: tuple[int, int],
) -> Any:  # noqa: ANN401
    """Return the result of one task, run now, or its failure; `done` is its number, and that of all tasks."""
    result = _run_task(function, item)
    engine.tasks[stage] += 1
    if engine.progress is not None:
        engine.progress(stage, *done)
    return result


def _slices(items: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    return (items[start : start + size] for start in range(0, len(items), size))


@dataclass(frozen=True, slots=True)
class _Lazy:
    """Makes the lazy results of a stage, with running numbers in their keys.

    `before` returns what a task runs instead of a function: on a cluster, a check of the worker before it.
    """

    stage: str
    numbers: Iterator[int]
    before: Callable[[Callable[[Any], Any]], Callable[[Any], Any]]

    def items(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        """Yield the lazy results of function(item)."""
        of_item = self.before(function)
        for item in items:  # bound to its function: Dask searches arguments for lazy values, slowly
            yield self._result(partial(_run_task, of_item, item))

    def merged(self, merge: Callable[[list[Any]], Any], parts: Iterable[Any]) -> Any:  # noqa: ANN401
        """Return the lazy result of merging lazy results."""
        return self._result(_merge_results, self.before(merge), list(parts))

    def _result(self, function: Callable[..., Any], *arguments: Any) -> Any:  # noqa: ANN401
        from dask.delayed import delayed  # noqa: PLC0415  (slow to import)

        key = f"{TASK_PREFIX}{self.stage}-{next(self.numbers)}"
        return delayed(function, pure=False)(*arguments, dask_key_name=key)


def _results(stage: str, tasks: Callable[[_Lazy], Iterator[Any]], total: int, engine: Engine) -> Generator[Any]:
    """Yield the results of tasks in order; raises the first failure in their order."""
    if engine.scheduler in LOCAL_SCHEDULERS:
        local = _run_locally(stage, list(tasks(_Lazy(stage, count(1), lambda function: function))), engine)
        results = (result for result in local)
    else:
        from agedp.compute.cluster import WorkerCheck, run_on_cluster  # noqa: PLC0415  (an extra, and slow to import)

        def checked(first: int, check: WorkerCheck) -> Iterator[Any]:
            return tasks(_Lazy(stage, count(first), check.before))

        results = run_on_cluster(checked, count=total, stage=stage, engine=engine)
    with closing(results):
        for result in results:
            yield _raise_failure(result)


def _raise_failure(result: Any) -> Any:  # noqa: ANN401
    """Return a result; raise the error of one that failed."""
    if isinstance(result, Failure):
        result.raise_error()
    return result


def _run_locally(stage: str, tasks: Sequence[Any], engine: Engine) -> list[Any]:
    from dask import multiprocessing, threaded  # noqa: PLC0415  (slow to import)
    from dask.base import compute  # noqa: PLC0415
    from dask.callbacks import Callback  # noqa: PLC0415
    from dask.local import get_sync  # noqa: PLC0415

    total = sum(len(dict(task.dask)) for task in tasks)
    engine.tasks[stage] += total
    done = 0

    def count_task(*_: object) -> None:
        nonlocal done
        done += 1
        if engine.progress is not None:
            engine.progress(stage, done, total)

    # by name, Dask would import distributed first, to ask for a client: 0.3 s and 60 MB
    schedulers: dict[str, Any] = {"threads": threaded.get, "processes": multiprocessing.get, "synchronous": get_sync}
    options: dict[str, Any] = {"scheduler": schedulers[engine.scheduler], "num_workers": engine.workers}
    if engine.scheduler == "processes":
        options["initializer"] = _begin_worker
    with Callback(posttask=count_task):
        return list(compute(*tasks, **options))


def _begin_worker() -> None:
    """Prepare a worker process of our own, which ends with its run: it would wait for its next task for ever."""
    reuse_freed_memory()
    parent = multiprocessing.parent_process()

    def wait() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def map_items(stage: str, items: Sequence[Any], *, function: Callable[[Any], Any], engine: Engine) -> list[Any]:
    """Return [function(item) for item in items], computed by the engine: a task for each item."""
    if _needs_no_scheduler(items, engine):
        return [_raise_failure(_run_item_here(stage, item, function, engine, (1, 1))) for item in items]

    return list(_results(stage, lambda lazy: lazy.items(function, items), len(items), engine)) if items else []


def map_in_batches(
    stage: str, items: Sequence[Any], *, function: Callable[[Any], Any], engine: Engine, batch_size: int
) -> Iterator[list[Any]]:
    """Yield lists of function(item), `batch_size` items at a time, to limit the memory of their results."""
    for number, batch in enumerate(_slices(items, batch_size)):
        start = number * batch_size
        report = None if engine.progress is None else partial(_report_progress, engine.progress, start, len(items))
        yield map_items(stage, batch, function=function, engine=replace(engine, progress=report))


def map_blocks(stage: str, blocks: Sequence[Any], *, function: Callable[[Any], Any], engine: Engine) -> list[Any]:
    """Return [function(block) for block in blocks], few of them at once: each task carries what it works on."""
    batches = map_in_batches(stage, blocks, function=function, engine=engine, batch_size=2 * _BLOCKS)
    return [result for batch in batches for result in batch]


def _report_progress(progress: Progress, before: int, total: int, stage: str, done: int, _: int) -> None:
    progress(stage, before + done, total)


def reopened(engine: Engine) -> Engine:
    """Return an engine, on threads of this process if the client that it used is closed."""
    if engine.scheduler in LOCAL_SCHEDULERS:
        return engine
    from agedp.compute.cluster import is_closed  # noqa: PLC0415  (an extra, and slow to import)

    return replace(engine, scheduler="threads") if is_closed(engine.scheduler) else engine


def task_summary(engine: Engine) -> str:
    """Return the number of tasks by stage and the scheduler of an engine, "" before any task; confidential.

    >>> ran = Engine("threads", 2)
    >>> map_items("bounds", [1, 4], function=abs, engine=ran), task_summary(ran)
    ([1, 4], 'Tasks: 2 agedp-bounds. Scheduler: threads, 2 workers.')
    """
    if not engine.tasks:
        return ""
    scheduler = f"{engine.scheduler}, {engine.workers} workers"
    if engine.scheduler not in LOCAL_SCHEDULERS:
        from agedp.compute.cluster import describe_cluster  # noqa: PLC0415  (an extra, and slow to import)

        scheduler = describe_cluster(engine)
    stages = ", ".join(f"{number:,} {TASK_PREFIX}{stage}" for stage, number in engine.tasks.items())
    return f"Tasks: {stages}. Scheduler: {scheduler}."


def _run_task(function: Callable[[Any], Any], argument: Any) -> Any:  # noqa: ANN401
    try:
        return function(argument)
    except AgedpError as error:
        return Failure(error.with_traceback(None), "")
    except MemoryError:
        return Failure(InputError(NO_MEMORY), "")
    except Exception as error:
        # without the message: messages of Arrow quote rows
        return Failure(None, "".join([*traceback.format_tb(error.__traceback__), type(error).__name__]))


def _merge_results(merge: Callable[[list[Any]], Any], results: list[Any]) -> Any:  # noqa: ANN401
    for result in results:
        if isinstance(result, Failure):
            return result
    return _run_task(merge, results)
