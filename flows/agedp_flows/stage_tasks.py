"""How a stage runs as a Prefect task: public text for Prefect, everything else for this process.

Prefect may store, log or pickle the arguments and results of a task. The tasks of agedp have none: each calls its stage
with values that stay in this process, and waits for the task before it, so Prefect draws the arrows between them.

An error that the user can correct ends the task as a Failed state with the error's class and public text, without a
traceback. A bug ends it with the class only; its traceback is written to the confidential folder. The errors, and the
result of a run, reach the caller in this process through a `FlowObserver`, which Prefect never receives.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from prefect import Task, allow_failure
from prefect.cache_policies import NO_CACHE
from prefect.states import Failed

from agedp.compute.engine_settings import SILENT, ProgressReporter
from agedp.local_files import atomic_files
from agedp_data.errors import AgedpError, Unavailable

P = ParamSpec("P")
T = TypeVar("T")
State = Any  # Prefect's states are generic in their result; ours have none

TASK_OPTIONS: dict[str, Any] = {"persist_result": False, "cache_policy": NO_CACHE, "log_prints": False}
"""Options of every task: nothing is persisted, nothing is cached."""
ONCE: dict[str, Any] = {**TASK_OPTIONS, "retries": 0}
"""Options of a task that is never retried, for every default of the Prefect installation."""
FLOW_OPTIONS: dict[str, Any] = {"persist_result": False, "log_prints": False, "retries": 0}
"""Options of every flow: nothing is persisted, and no flow is repeated as a whole."""

_UNAVAILABLE = Unavailable.__name__


class StageFailed(RuntimeError):
    """A bug in a stage; its traceback is in the confidential folder."""


@dataclass(slots=True)
class FlowObserver:
    """The result or error of a flow run, for the caller in this process.

    `command` is the command that does the same without Prefect. `accept` are the caller's words beside those of the run
    file.
    """

    command: str = "agedp plan"
    progress: ProgressReporter = SILENT
    accept: Sequence[str] = ()
    result: Any = None
    error: AgedpError | None = None
    bug: StageFailed | None = None
    confidential: Path | None = None
    is_deployed: bool = True


_observer: ContextVar[FlowObserver | None] = ContextVar("observer", default=None)


def current_observer() -> FlowObserver:
    """Return the observer of this context; a new one outside of a flow."""
    return _observer.get() or FlowObserver()


@contextmanager
def use_observer(observer: FlowObserver) -> Iterator[FlowObserver]:
    """Set the observer to which the flow of this context reports."""
    token = _observer.set(observer)
    try:
        yield observer
    finally:
        _observer.reset(token)


@contextmanager
def observer_of_flow(command: str) -> Iterator[FlowObserver]:
    """Yield the caller's observer; of a deployed flow, which has no caller here, a new one."""
    observer = _observer.get()
    if observer is None:
        with use_observer(FlowObserver(command)) as observer:
            yield observer
        return
    observer.command = command
    yield observer


def observe(flow: Callable[[], State], progress: ProgressReporter = SILENT, accept: Sequence[str] = ()) -> FlowObserver:
    """Run a flow in this process and return its observer, its result set or its error.

    Raises:
        StageFailed: a bug in a stage.
    """
    with use_observer(FlowObserver(progress=progress, accept=accept, is_deployed=False)) as observer:
        state = flow()
    if observer.error is None and not state.is_completed():
        raise StageFailed(str(state.message))
    return observer


def run_stage(name: str, stage: Callable[[], T]) -> T | State:
    """Return the result of a stage, or a Failed state with public text.

    Raises:
        StageFailed: a bug; the exception names its class alone.
    """
    observer = current_observer()
    observer.error = None  # of an attempt before this one
    try:
        return hide_bug_details(name, stage, observer)
    except AgedpError as error:
        observer.error = error
        return failed_state(error)


class StageTasks:
    """Calls the stages of a flow as its tasks, one after the other; a `StageCaller`.

    Subclasses say what Prefect is shown of a result (`record`) and which task runs a stage (`task`).
    """

    def __init__(self, observer: FlowObserver) -> None:
        self.observer = observer
        self._last: State = None

    def record(self, name: str, result: Any) -> None:  # noqa: ANN401
        """Show Prefect what is public about the result of a stage, as a part of its task."""

    def task(self, name: str, function: Callable[[], State]) -> Task[[], State]:
        """Return the task that runs a stage."""
        return Task(function, name=name, task_run_name=name, **(RETRIED if name in _RETRIED_STAGES else ONCE))

    def __call__(self, name: str, stage: Callable[P, T], /, *values: P.args, **options: P.kwargs) -> T:
        """Return the result of a stage; of one whose result has a refusal, after its task has failed with it.

        Raises:
            AgedpError: the stage failed with it.
            StageFailed: the stage failed with a bug.
        """
        results: list[T] = []
        refusal: AgedpError | None = None

        def execute() -> None:
            nonlocal refusal
            results[:] = [stage(*values, **options)]
            self.record(name, results[0])
            refusal = getattr(results[0], "refusal", None)
            if refusal is not None:
                raise refusal

        task = self.task(name, lambda: run_stage(name, execute))
        waited = [] if self._last is None else [allow_failure(self._last)]
        self._last = task(wait_for=waited, return_state=True)
        if self._last.is_completed() or refusal is not None:
            return results[0]
        raise self.observer.error or self.observer.bug or StageFailed(str(self._last.message))


def hide_bug_details(name: str, stage: Callable[[], T], observer: FlowObserver) -> T:
    """Return the result of a stage; of a bug, only the class leaves this process.

    The traceback is written to the confidential folder.

    Raises:
        AgedpError: as the stage.
        StageFailed: any other exception of the stage; its message, which may quote readings, is left out.
    """
    try:
        return stage()
    except AgedpError:
        raise
    except Exception as error:
        hint = f"run `{observer.command}` for its traceback"
        if observer.confidential is not None:
            atomic_files.write(observer.confidential / "traceback.txt", traceback.format_exc().encode())
            hint = "the confidential folder contains traceback.txt"
        observer.bug = StageFailed(f"{type(error).__name__} in {name}; {hint}")
    raise observer.bug


def end_of_flow(error: AgedpError, observer: FlowObserver) -> State:
    """Return the final state of a flow that failed; a deployed one leaves the private text in the confidential folder.

    In this process the caller prints the private text.
    """
    observer.error = error
    hint = ""
    if observer.is_deployed and observer.confidential is not None and error.private != str(error):
        atomic_files.write(observer.confidential / "error.txt", f"{error.private}\n".encode())
        hint = "; error.txt in the confidential folder has the details"
    return failed_state(error, hint=hint)


def failed_state(error: AgedpError, *, hint: str = "") -> State:
    """Return a Failed state with an error's class and public text; one that may pass is named Unavailable."""
    name = _UNAVAILABLE if isinstance(error, Unavailable) else "Failed"
    return Failed(name=name, message=f"{type(error).__name__}: {error}{hint}")


def is_unavailable(task: Task[Any, Any], task_run: object, state: State) -> bool:
    """Return whether Prefect retries a task: only if a source or destination did not answer."""
    del task, task_run
    return bool(state.name == _UNAVAILABLE)


RETRIED: dict[str, Any] = {
    **TASK_OPTIONS,
    "retries": 2,
    "retry_delay_seconds": [10, 60],
    "retry_condition_fn": is_unavailable,
}
"""Options of a task that only reads input or writes output; a task that draws is never retried."""
_RETRIED_STAGES = frozenset({"ingest", "publish", "load", "verify"})


def _without_empty_traceback(record: logging.LogRecord) -> bool:
    """Remove an empty traceback from a log record: Prefect asks for one where a task returned a Failed state."""
    record.exc_info = record.exc_info if record.exc_info and record.exc_info[0] else None
    return True


logging.getLogger("prefect.task_runs").addFilter(_without_empty_traceback)
