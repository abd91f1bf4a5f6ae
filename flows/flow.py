"""The Prefect flow: the stages of `pipelines.sanitise`, one task each.

Prefect stores parameters, names, log lines, states and artifacts: it is given the path of the run file, a date,
stage names, public text and where the release folder is, nothing else. Tasks hand values to each other inside the
process. What the user can mend ends a task and the flow as a Failed state with the error's class and public text,
without a traceback; the error itself reaches `run_flow` in this process, or where nobody waits for it, as in a
deployment, a file of the confidential folder.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

from prefect import flow, task
from prefect.artifacts import create_link_artifact, create_markdown_artifact
from prefect.cache_policies import NO_CACHE
from prefect.runtime import flow_run
from prefect.states import Failed

from agedp_data import clock
from agedp_data.errors import AgedpError, Refused
from agedp_data.readers import storage
from flows.planning import plan_words
from flows.words import statement_words
from pipelines import folders
from pipelines.blocks import SILENT, Told
from pipelines.handover.received import REPORT
from pipelines.sanitise import STAGES, Stage, run_stages
from pipelines.work import Work, begin

State = Any  # Prefect's states are generic in what they hold; ours hold nothing


class StageFailed(RuntimeError):
    """A bug in a stage; its traceback is in the confidential folder."""


@dataclass(slots=True)
class Watched:
    """What a flow run made, why it ended, and whom it tells how far it is; never seen by Prefect."""

    told: Told = SILENT
    work: Work | None = None
    error: AgedpError | None = None


_watched: ContextVar[Watched | None] = ContextVar("watched", default=None)


def _without_empty_traceback(record: logging.LogRecord) -> bool:
    """Take from a record the traceback that is none: Prefect asks for one where a task returned a Failed state."""
    record.exc_info = record.exc_info if record.exc_info and record.exc_info[0] else None
    return True


logging.getLogger("prefect.task_runs").addFilter(_without_empty_traceback)


def _run_name() -> str:
    """Return the date of the run, the simulated one if it is given."""
    return str(flow_run.parameters.get("as_of") or clock.today())


@flow(name="agedp", flow_run_name=_run_name, version=version("agedp"), persist_result=False, log_prints=False)
def sanitise_flow(run_file: str, as_of: date | None = None) -> State:
    """Release every day of a run file that is due, and publish the release folder.

    A second run releases nothing again: what is published is what stands in the ledger.

    Args:
        run_file: Path of the run file (TOML), as the machine sees it on which the flow runs.
        as_of: In a rehearsal only: the simulated date up to which days are released; without it the whole period.
    """
    watched = _watched.get() or Watched()
    try:
        watched.work = work = _begun(run_file, as_of, watched.told)
        run_stages(lambda name, stage: _task(name, stage, work))
    except AgedpError as error:
        watched.error = error
        more = _watched.get() is None and _kept_private(error, watched.work)
        return _failed(error, more="; error.txt in the confidential folder says more" if more else "")
    return None


def _kept_private(error: AgedpError, work: Work | None) -> bool:
    """Leave in the house what Prefect is not told, if it knows its house by then; tell whether there was anything."""
    if work is None or error.private == str(error):
        return False
    folders.write(work.confidential / "error.txt", f"{error.private}\n".encode())
    return True


def _begun(run_file: str, as_of: date | None, told: Told) -> Work:
    """Load what the run rests on; of a bug Prefect gets the class only, for its text could quote the roster."""
    try:
        return begin(run_file, as_of=as_of, told=told)
    except AgedpError:
        raise
    except Exception as error:
        failed = StageFailed(f"{type(error).__name__} before the first stage; `agedp plan` shows where")
    raise failed


def _task(name: str, stage: Stage, work: Work) -> None:
    """Run a stage as a task and raise what it raises."""
    met: list[AgedpError] = []

    def run() -> State:
        try:
            _unless_bug(stage, name, work)
        except AgedpError as error:
            met.append(error)
            return _failed(error)
        return None

    made = task(name=name, task_run_name=name, persist_result=False, cache_policy=NO_CACHE)(run)
    state: State = made(return_state=True)
    if met:
        raise met[0]
    if not state.is_completed():
        raise StageFailed(str(state.message))
    if stage in _ARTIFACTS:
        key, words, description = _ARTIFACTS[stage]
        said: list[str] = []
        _unless_bug(lambda made: said.append(words(made)), name, work)
        create_markdown_artifact(said[0], key=key, description=description)
    if stage is STAGES[-1][1] and (work.release / REPORT).exists():
        create_link_artifact(_report_link(work), REPORT, key="agedp-report", description="Where it was published")


def _report_link(work: Work) -> str:
    """Return the report by its URL; of a folder, on the machine that ran it."""
    place = storage.told(work.run.output.release)
    return f"{place.rstrip('/')}/{REPORT}" if work.outbox else (Path(place).absolute() / REPORT).as_uri()


_ARTIFACTS: dict[Stage, tuple[str, Callable[[Work], str], str]] = {
    STAGES[0][1]: ("agedp-plan", plan_words, "What is due"),
    STAGES[-1][1]: ("agedp-statement", statement_words, "What was promised and kept"),
}


def _failed(error: AgedpError, *, more: str = "") -> State:
    return Failed(message=f"{type(error).__name__}: {error}{more}")


def _unless_bug(stage: Stage, name: str, work: Work) -> None:
    """Run a stage; a bug leaves the process as its class, its traceback stays in the house."""
    try:
        stage(work)
        return
    except AgedpError:
        raise
    except Exception as error:
        folders.write(work.confidential / "traceback.txt", traceback.format_exc().encode())
        failed = StageFailed(f"{type(error).__name__} in {name}; the confidential folder holds traceback.txt")
    raise failed


def run_flow(run_file: str, as_of: date | None, told: Told = SILENT) -> tuple[Work, Refused | None]:
    """Run the flow in this process and return what it made, which Prefect itself never sees, and what was refused.

    Raises:
        AgedpError: as the stages, but for a release that is refused.
        StageFailed: a bug in a stage.
    """
    watched = Watched(told)
    token = _watched.set(watched)
    try:
        state: State = sanitise_flow(run_file, as_of, return_state=True)
    finally:
        _watched.reset(token)
    if watched.work is not None and isinstance(watched.error, Refused):
        return watched.work, watched.error
    if watched.error is not None:
        raise watched.error
    if watched.work is None or not state.is_completed():
        raise StageFailed(str(state.message))
    return watched.work, None
