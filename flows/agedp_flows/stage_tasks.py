"""How a stage runs as a Prefect task: public text for Prefect, everything else for this process.

An error that the user can correct ends the task as a Failed state with the error's class and public text, without a
traceback. A bug ends it with the class only; its traceback is written to the confidential folder. The errors, and the
result of a run, reach the caller in this process through a `FlowObserver`, which Prefect never receives.

Handles are what Prefect receives in place of a value that must not leave this process. Prefect may store, log or pickle
the arguments and results of a task. The tasks of agedp take and return handles: for Prefect a handle is a label, such
as "sums of london-homes". Pickling one fails, so no setting of Prefect can persist its value.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial, wraps
from pathlib import Path
from typing import Any, Generic, NoReturn, ParamSpec, TypeVar

from prefect import Task
from prefect.cache_policies import NO_CACHE
from prefect.states import Failed

from agedp.compute.engine_settings import SILENT, ProgressReporter
from agedp.local_files import atomic_files
from agedp_data.errors import AgedpError, Unavailable

P = ParamSpec("P")
T = TypeVar("T")
State = Any  # Prefect's states are generic in their result; ours are handles or nothing

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


def stage_task(name: str, options: dict[str, Any] = ONCE) -> Callable[[Callable[P, T]], Task[P, Any]]:
    """Make a function of a stage a Prefect task of this name, which ends as `run_stage` describes."""

    def as_task(stage: Callable[P, T]) -> Task[P, Any]:
        @wraps(stage)
        def execute(*arguments: P.args, **keywords: P.kwargs) -> T | State:
            return run_stage(name, partial(stage, *arguments, **keywords))

        return Task(execute, name=name, task_run_name=name, **options)

    return as_task


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


def result_of(state: State, observer: FlowObserver) -> Any:  # noqa: ANN401  (a handle of the task's result)
    """Return the result of a task's state.

    Raises:
        AgedpError: the task failed with it.
        StageFailed: the task failed with a bug.
    """
    if state.is_completed():
        return state.result(raise_on_failure=False)
    if observer.error is not None:
        raise observer.error
    raise observer.bug or StageFailed(str(state.message))


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


def _without_empty_traceback(record: logging.LogRecord) -> bool:
    """Remove an empty traceback from a log record: Prefect asks for one where a task returned a Failed state."""
    record.exc_info = record.exc_info if record.exc_info and record.exc_info[0] else None
    return True


logging.getLogger("prefect.task_runs").addFilter(_without_empty_traceback)


class RunHandle(Generic[T]):
    """An opaque reference to a value; its label is public."""

    __slots__ = ("__weakref__", "_value", "label")  # Prefect links tasks by weak references to their results

    def __init__(self, label: str, value: T) -> None:
        self.label = label
        self._value = value

    @property
    def value(self) -> T:
        """The value, in the process that created the handle."""
        return self._value

    def __repr__(self) -> str:
        return f"<{self.label}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{self!r} stays inside its process: agedp hands no value to a scheduler")
