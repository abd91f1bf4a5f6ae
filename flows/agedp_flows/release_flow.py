"""The Prefect flow `agedp`: plan, ingest, aggregate, release, publish, report, one task each.

The tasks run the stages of `agedp.pipeline.run_stages` in the same order. Each takes and returns handles of the values
that the stages take and return, so Prefect draws the arrows between them and stores none of them. Prefect receives the
path of the run file, a date, names of stages, public text and public counts, and the path of the release folder.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from importlib.metadata import version
from typing import Any, cast

from prefect import Task, allow_failure, flow, get_run_logger
from prefect.runtime import flow_run
from prefect.tasks import MaterializingTask

from agedp.compute.engine_settings import SILENT, ProgressReporter
from agedp.ledger_session import LedgerSession
from agedp.pipeline import RunSummary
from agedp.release_verification import ReleaseFolder
from agedp.run_context import RunContext
from agedp.stage_values import Delivery
from agedp.stages import plan as plan_stage
from agedp.stages import release as release_stage
from agedp.stages.aggregate import aggregate_days
from agedp.stages.ingest import read_files
from agedp.stages.input_check import CheckedSums, check_input
from agedp.stages.publish import publish_folder
from agedp.stages.release import ReleaseResult
from agedp.stages.report import ReportOutcome, write_reports
from agedp_data import clock
from agedp_data.errors import AgedpError, LedgerError, PreflightFailed, Refused
from agedp_flows import artifacts, stage_tasks
from agedp_flows.stage_tasks import RunHandle, State, result_of, stage_task


def _run_name() -> str:
    """Return the date of the run, the simulated one if it is given."""
    return str(flow_run.parameters.get("as_of") or clock.today())


@flow(name="agedp", flow_run_name=_run_name, version=version("agedp"), **stage_tasks.FLOW_OPTIONS)
def release(run_file: str, as_of: date | None = None) -> State:
    """Release every due day of a run file and publish its release folder.

    A second run releases nothing again: the published values are those in the ledger.

    Args:
        run_file: Path of the run file (TOML), as the machine sees it on which the flow runs.
        as_of: In a rehearsal only: the simulated date up to which days are released; without it the whole period.
    """
    with stage_tasks.observer_of_flow("agedp plan") as observer:
        try:
            run = _begin(run_file, as_of, observer)
            planned = result_of(plan(run, return_state=True), observer)
            with run.value.store.locked():
                delivery = result_of(ingest(planned, return_state=True), observer)
                sums = result_of(aggregate(planned, delivery, return_state=True), observer)
            released = release_days(planned, sums, return_state=True)
            _publish_committed(sums, released, observer)
        except AgedpError as error:
            return stage_tasks.end_of_flow(error, observer)
    return None


def _begin(run_file: str, as_of: date | None, observer: stage_tasks.FlowObserver) -> RunHandle[RunContext]:
    """Load run file, roster and model; of a bug Prefect receives only the class, because its text may quote data."""
    shown = observer.progress.notice

    def notice(line: str) -> None:
        get_run_logger().info(line)
        if shown is not None:
            shown(line)

    progress = replace(observer.progress, notice=notice)
    run = stage_tasks.hide_bug_details(
        "the run file",
        lambda: RunContext.load(run_file, as_of=as_of, progress=progress, accept=observer.accept),
        observer,
    )
    observer.confidential = run.paths.folder
    return RunHandle(f"run of {run.population}", run)


def _publish_committed(sums: RunHandle[CheckedSums], release_state: State, observer: stage_tasks.FlowObserver) -> None:
    """Publish and report the committed days, also those before a refused day; then raise the error of the release."""
    refusal = observer.error
    if release_state.is_completed() or isinstance(refusal, LedgerError):
        summary: RunSummary = observer.result
        run = RunHandle(f"run of {summary.run.population}", summary)
        publish_task = stage_tasks.hide_bug_details("publish", lambda: _select_publish_task(summary), observer)
        folder = publish_task(run, wait_for=[allow_failure(release_state)], return_state=True)
        result_of(folder, observer)
        stage_tasks.hide_bug_details("publish", lambda: artifacts.record_release(summary), observer)
        result_of(report(run, sums, wait_for=[folder], return_state=True), observer)
    observer.error = refusal
    result_of(release_state, observer)


def _keep(**results: object) -> None:
    """Add results to the summary for the caller in this process, also those of a stage that is refused."""
    observer = stage_tasks.current_observer()
    observer.result = replace(observer.result, **results)


@stage_task("plan")
def plan(run: RunHandle[RunContext]) -> RunHandle[RunSummary]:
    """Compare the run file with the contract of the ledger and find the due days."""
    session = LedgerSession.open(run.value)
    stage_tasks.current_observer().result = planned = RunSummary(session, plan_stage.plan(session))
    artifacts.record_plan(run.value, planned.due_days)
    get_run_logger().info(artifacts.due_text(planned.due_days))
    return RunHandle(f"plan of {run.value.population}", planned)


@stage_task("ingest", stage_tasks.RETRIED)
def ingest(planned: RunHandle[RunSummary]) -> RunHandle[Delivery | PreflightFailed]:
    """Read the input files into the confidential store: every row is kept, or rejected with its reason.

    What first rows contain may refuse a first release; `aggregate` raises it, so that all refusals end the same task.
    """
    delivery: Delivery | PreflightFailed
    try:
        delivery = read_files(planned.value.session)
    except PreflightFailed as refusal:
        delivery = refusal
    reads_input = planned.value.run.run_file.schedule.reads_input
    get_run_logger().info("Input files are read." if reads_input else "Synthetic households: no input file is read.")
    return RunHandle(f"readings of {planned.value.run.population}", delivery)


@stage_task("aggregate")
def aggregate(
    planned: RunHandle[RunSummary], delivery: RunHandle[Delivery | PreflightFailed]
) -> RunHandle[CheckedSums]:
    """Sum the households of each due day, in whole watt-hours."""
    session = planned.value.session
    if isinstance(delivery.value, PreflightFailed):
        raise delivery.value
    checked = check_input(session, aggregate_days(session, planned.value.due_days, delivery.value))
    _keep(checked=checked)
    if checked.refusal is not None:
        raise checked.refusal
    get_run_logger().info("Daily sums are computed.")
    return RunHandle(f"sums of {session.population}", checked)


@stage_task("release")
def release_days(planned: RunHandle[RunSummary], sums: RunHandle[CheckedSums]) -> RunHandle[ReleaseResult]:
    """Draw the noise of each due day and commit the noisy values to the ledger; never retried."""
    released = release_stage.release_days(planned.value.session, planned.value.due_days, sums.value.sums)
    _keep(session=released.session, released=released.rows)
    if released.refusal is None or isinstance(released.refusal, Refused):
        get_run_logger().info(artifacts.released_text(released))  # also what was committed before a refused day
    if released.refusal is not None:
        raise released.refusal
    return RunHandle(f"released days of {released.session.population}", released)


@stage_task("publish", stage_tasks.RETRIED)
def publish(planned: RunHandle[RunSummary]) -> RunHandle[ReleaseFolder | None]:
    """Write the release folder from the ledger."""
    run = planned.value.run
    folder = publish_folder(planned.value.session, planned.value.due_days)
    get_run_logger().info(artifacts.published_text(run, folder))
    return RunHandle(f"release folder of {run.population}", folder)


@stage_task("report")
def report(planned: RunHandle[RunSummary], sums: RunHandle[CheckedSums]) -> RunHandle[ReportOutcome | None]:
    """Write the internal records and the internal report; what fails is a warning and leaves the run completed."""
    outcome = write_reports(planned.value.session, sums.value)
    _keep(report=outcome)
    summary = stage_tasks.current_observer().result
    if summary.failures or summary.notices:
        get_run_logger().warning(artifacts.warning_text((*summary.notices, *summary.failures)))
    get_run_logger().info(artifacts.report_text(outcome))
    return RunHandle(f"internal report of {planned.value.run.population}", outcome)


def _select_publish_task(summary: RunSummary) -> Task[Any, Any]:
    """Return the task `publish`; where this run released a day, as one that materializes the release."""
    if not summary.drawn:
        return publish
    asset = artifacts.asset(summary.run)
    return MaterializingTask(publish.fn, assets=[asset], name="publish", task_run_name="publish", **stage_tasks.RETRIED)


def run_release(
    run_file: str, as_of: date | None, progress: ProgressReporter = SILENT, accept: Sequence[str] = ()
) -> RunSummary:
    """Run the flow in this process and return its result, which Prefect never receives; `accept` as in `RunContext`.

    Raises:
        AgedpError: as the stages, except for a refused release and a failed preflight, which are part of the result.
        StageFailed: a bug in a stage.
    """
    observer = stage_tasks.observe(lambda: release(run_file, as_of, return_state=True), progress, accept)
    summary, error = observer.result, observer.error
    if isinstance(error, Refused | PreflightFailed) and summary is not None:
        summary = replace(summary, refusal=error)
    elif error is not None:
        raise error
    return cast("RunSummary", summary)
