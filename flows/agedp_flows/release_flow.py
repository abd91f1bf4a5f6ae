"""The Prefect flow `agedp`: plan, ingest, aggregate, release, publish, report, one task each.

`agedp.pipeline.run_stages` calls the stages; each is a task. Prefect receives the path of the run file, a date, names
of stages, public text and public counts, and the path of the release folder.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date
from importlib.metadata import version
from typing import Any, cast

from prefect import Task, flow, get_run_logger
from prefect.tasks import MaterializingTask

from agedp.compute.engine_settings import SILENT, ProgressReporter
from agedp.local_files.atomic_files import FileNotice
from agedp.pipeline import RunSummary, run_stages
from agedp.run_context import RunContext
from agedp.stages.plan import RELEASED_ELSEWHERE
from agedp.stages.release import ReleaseResult
from agedp_data.errors import AgedpError
from agedp_flows import artifacts, stage_tasks
from agedp_flows.stage_tasks import StageTasks, State


@flow(name="agedp", flow_run_name=artifacts.first_name, version=version("agedp"), **stage_tasks.FLOW_OPTIONS)
def release(run_file: str, as_of: date | None = None) -> State:
    """Release every due day of a run file and publish its release folder.

    A second run releases nothing again: the published values are those in the ledger.

    Args:
        run_file: Path of the run file (TOML), as the machine sees it on which the flow runs.
        as_of: In a rehearsal only: the simulated date up to which days are released; without it the whole period.
    """
    with stage_tasks.observer_of_flow("agedp plan") as observer:
        try:
            reading = artifacts.InputProgress(observer.progress.progress)
            observer.progress = replace(observer.progress, progress=reading)
            run = _begin(run_file, as_of, observer)
            observer.result = run_stages(run, call=_ReleaseTasks(run, observer, reading))
            observer.result.check_not_refused()
        except AgedpError as error:
            return stage_tasks.end_of_flow(error, observer)
    return None


def _begin(run_file: str, as_of: date | None, observer: stage_tasks.FlowObserver) -> RunContext:
    """Load run file, roster and model; of a bug Prefect receives only the class, because its text may quote data."""
    shown = observer.progress.notice

    def notice(lines: Sequence[str]) -> None:
        for line in lines:
            if line != RELEASED_ELSEWHERE:  # what the accounts know enters no database
                get_run_logger().info(line)
        if shown is not None:
            shown(lines)

    progress = replace(observer.progress, notice=notice)
    run = stage_tasks.hide_bug_details(
        "the run file",
        lambda: RunContext.load(run_file, as_of=as_of, progress=progress, accept=observer.accept),
        observer,
    )
    observer.confidential = run.paths.folder
    return run


class _ReleaseTasks(StageTasks):
    """The tasks of a run. The task `publish` materializes the release where this run released a day."""

    def __init__(self, run: RunContext, observer: stage_tasks.FlowObserver, reading: artifacts.InputProgress) -> None:
        super().__init__(observer)
        self._run, self._reading = run, reading
        self._released: ReleaseResult | None = None
        self._notices: tuple[FileNotice, ...] = ()

    def record(self, name: str, result: Any) -> None:  # noqa: ANN401
        """Log what is public about the result of a stage, and leave its artifacts."""
        run, log = self._run, get_run_logger()
        match name:
            case "plan":
                session, due_days = result
                artifacts.name_run(run.population, [due.day for due in due_days.due] or [run.today])
                artifacts.record_plan(session, due_days)
                log.info(artifacts.due_text(due_days))
            case "ingest":
                reads_input = run.run_file.schedule.reads_input
                log.info("Input files are read." if reads_input else "Synthetic households: no input file is read.")
            case "aggregate" if result.refusal is None:
                self._notices = result.sums.notices
                log.info("Daily sums are computed.")
            case "release":
                self._released = result
                log.info(artifacts.released_text(result))  # also what was committed before a refused day
            case "publish":
                log.info(artifacts.published_text(run, result))
                if self._released is not None:
                    artifacts.record_release(self._released)
            case "report":
                notices = (*self._notices, *((*result.notices, *result.failures) if result is not None else ()))
                if notices:
                    log.warning(artifacts.warning_text(notices))
                log.info(artifacts.report_text(result))

    def task(self, name: str, function: Callable[[], State]) -> Task[[], State]:
        """Return the task that runs a stage."""
        if name == "ingest" and self._run.run_file.schedule.reads_input:
            function = self._reading.during(function, self._run.population)
        if name != "publish" or self._released is None or not self._released.drawn:
            return super().task(name, function)
        asset, options = artifacts.asset(self._run), stage_tasks.RETRIED
        return MaterializingTask(function, assets=[asset], name=name, task_run_name=name, **options)


def run_release(
    run_file: str, as_of: date | None, progress: ProgressReporter = SILENT, accept: Sequence[str] = ()
) -> RunSummary:
    """Run the flow in this process and return its result, which Prefect never receives; `accept` as in `RunContext`.

    Raises:
        AgedpError: as the stages, except for a refused release and a failed preflight, which are part of the result.
        StageFailed: a bug in a stage.
    """
    observer = stage_tasks.observe(lambda: release(run_file, as_of, return_state=True), progress, accept)
    summary = cast("RunSummary", observer.result)
    if observer.error is not None and (summary is None or observer.error is not summary.refusal):
        raise observer.error
    return summary
