"""The Prefect flow: the stages of `pipelines.sanitise`, one task each.

Prefect stores parameters, names, log lines, states and artifacts: it is given the path of the run file, a date,
stage names and public text, nothing else. Tasks hand values to each other inside the process. An error crosses
as its class and public text.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from contextvars import ContextVar
from datetime import date
from typing import TypeVar

from prefect import flow, task
from prefect.artifacts import create_markdown_artifact
from prefect.cache_policies import NO_CACHE

from agedp_data.errors import AgedpError
from flows.words import statement_words
from pipelines import folders
from pipelines.sanitise import run_stages
from pipelines.work import Work, begin

Result = TypeVar("Result")
_watching: ContextVar[list[Work] | None] = ContextVar("watching", default=None)


class StageFailed(RuntimeError):
    """A bug in a stage; its traceback is in the confidential folder."""


@flow(name="agedp", flow_run_name="agedp", persist_result=False, log_prints=False)
def sanitise_flow(run_file: str, as_of: date | None = None) -> None:
    """Release every due day of a run file.

    Args:
        run_file: path of the run file.
        as_of: in rehearsals, the simulated date up to which days are released.
    """
    work = _crossing(lambda: begin(run_file, as_of=as_of), "begin", None)
    if (watching := _watching.get()) is not None:
        watching.append(work)
    run_stages(work, lambda name, stage: _task(name, stage, work))
    create_markdown_artifact(statement_words(work), key="agedp-statement", description="What was promised and kept")


def _task(name: str, stage: Callable[[Work], None], work: Work) -> None:
    def run() -> None:
        _crossing(lambda: stage(work), name, work)

    task(name=name, task_run_name=name, persist_result=False, cache_policy=NO_CACHE)(run)()


def _crossing(call: Callable[[], Result], stage: str, work: Work | None) -> Result:
    """Call, and let nothing but an error's class and public text out."""
    try:
        return call()
    except AgedpError as error:
        error.__cause__ = error.__context__ = None
        leaving: Exception = error.with_traceback(None)
    except Exception as error:
        if work is not None:
            folders.write(work.confidential / "traceback.txt", traceback.format_exc().encode())
        leaving = StageFailed(f"{type(error).__name__} in {stage}; the confidential folder holds traceback.txt")
    raise leaving


def run_flow(run_file: str, as_of: date | None) -> Work:
    """Run the flow in this process and return what it made, which Prefect itself never sees."""
    made: list[Work] = []
    token = _watching.set(made)
    try:
        sanitise_flow(run_file, as_of)
    finally:
        _watching.reset(token)
    return made[0]
