"""The Prefect flow `agedp`: plan, ingest, aggregate, release, publish, report, one task each.

The tasks are the stages of `agedp.pipeline` in the same order. Each takes and returns a handle, so Prefect draws
the arrows between them and stores none of their values. Prefect receives the path of the run file, a date, names of
stages, public text and public counts, and the path of the release folder.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from importlib.metadata import version
from typing import Any

from prefect import Task, allow_failure, flow, get_run_logger, task
from prefect.runtime import flow_run
from prefect.tasks import MaterializingTask

from agedp import pipeline
from agedp.compute.engine_settings import SILENT, ProgressReporter
from agedp.pipeline import Stage
from agedp.run_context import Work, load_work
from agedp.stages.report import write_reports
from agedp_data import clock
from agedp_data.errors import AgedpError, LedgerError, PreflightFailed, Refused
from agedp_flows import release_artifacts
from agedp_flows.run_handles import RunHandle
from agedp_flows.stage_tasks import (
    FLOW_OPTIONS,
    ONCE,
    RETRIED,
    FlowObserver,
    State,
    end_of_flow,
    hide_bug_details,
    observe,
    observer_of_flow,
    result_of,
    run_stage,
)
from agedp_flows.text.log_text import due_text, published_text, released_rows, released_text, report_text, warning_text


def _run_name() -> str:
    """Return the date of the run, the simulated one if it is given."""
    return str(flow_run.parameters.get("as_of") or clock.today())


@flow(name="agedp", flow_run_name=_run_name, version=version("agedp"), **FLOW_OPTIONS)
def release(run_file: str, as_of: date | None = None) -> State:
    """Release every due day of a run file and publish its release folder.

    A second run releases nothing again: the published values are those in the ledger.

    Args:
        run_file: Path of the run file (TOML), as the machine sees it on which the flow runs.
        as_of: In a rehearsal only: the simulated date up to which days are released; without it the whole period.
    """
    with observer_of_flow("agedp plan") as observer:
        try:
            run = _begin(run_file, as_of, observer)
            planned = result_of(plan(run, return_state=True), observer)
            readings = result_of(ingest(planned, return_state=True), observer)
            sums = result_of(aggregate(readings, return_state=True), observer)
            drawn = release_days(sums, return_state=True)
            _publish_committed(run, drawn, observer)
        except AgedpError as error:
            return end_of_flow(error, observer)
    return None


def _begin(run_file: str, as_of: date | None, observer: FlowObserver) -> RunHandle[Work]:
    """Load run file, roster and model; of a bug Prefect receives only the class, because its text may quote data."""
    work = hide_bug_details(
        "the run file", lambda: load_work(run_file, as_of=as_of, progress=observer.progress), observer
    )
    observer.result, observer.confidential = work, work.confidential
    return RunHandle(f"run of {work.population}", work)


def _publish_committed(run: RunHandle[Work], release_state: State, observer: FlowObserver) -> None:
    """Publish and report the committed days, also those before a refused day; then raise the error of the release."""
    refusal = observer.error
    if release_state.is_completed() or isinstance(refusal, LedgerError):
        publish_task = hide_bug_details("publish", lambda: _select_publish_task(run.value), observer)
        folder = publish_task(run, wait_for=[allow_failure(release_state)], return_state=True)
        result_of(folder, observer)
        hide_bug_details("publish", lambda: release_artifacts.record_release(run.value), observer)
        result_of(report(run, wait_for=[folder], return_state=True), observer)
    observer.error = refusal
    result_of(release_state, observer)


def _stage(
    name: str, stage: Stage, run: RunHandle[Work], text: Callable[[Work], str], label: str
) -> RunHandle[Work] | State:
    """Run a stage of `agedp.pipeline`, log one line of public facts, and return the handle of its result."""

    def execute() -> RunHandle[Work]:
        stage(run.value)
        get_run_logger().info(text(run.value))
        return RunHandle(f"{label} of {run.value.population}", run.value)

    return run_stage(name, execute)


@task(name="plan", task_run_name="plan", **ONCE)
def plan(run: RunHandle[Work]) -> RunHandle[Work] | State:
    """Compare the run file with the contract of the ledger and find the due days."""

    def plan_and_record(work: Work) -> None:
        pipeline.plan(work)
        release_artifacts.record_plan(work)

    return _stage("plan", plan_and_record, run, due_text, "plan")


@task(name="ingest", task_run_name="ingest", **RETRIED)
def ingest(planned: RunHandle[Work]) -> RunHandle[Work] | State:
    """Read the input files into the confidential store: every row is kept, or rejected with its reason."""
    return _stage("ingest", pipeline.read_files, planned, lambda _: "Input files are read.", "readings")


@task(name="aggregate", task_run_name="aggregate", **ONCE)
def aggregate(readings: RunHandle[Work]) -> RunHandle[Work] | State:
    """Sum the households of each due day, in whole watt-hours."""
    return _stage("aggregate", pipeline.aggregate_days, readings, lambda _: "Daily sums are computed.", "sums")


@task(name="release", task_run_name="release", **ONCE)
def release_days(sums: RunHandle[Work]) -> RunHandle[Work] | State:
    """Draw the noise of each due day and commit the noisy values to the ledger; never retried."""

    def release_and_log(work: Work) -> None:
        try:
            pipeline.release_days(work)
        except Refused:
            get_run_logger().info(released_text(work))  # what was committed before the refused day
            raise

    return _stage("release", release_and_log, sums, released_text, "released days")


@task(name="publish", task_run_name="publish", **RETRIED)
def publish(released: RunHandle[Work]) -> RunHandle[Work] | State:
    """Write the release folder from the ledger."""
    return _stage("publish", pipeline.publish_folder, released, published_text, "release folder")


@task(name="report", task_run_name="report", **ONCE)
def report(published: RunHandle[Work]) -> RunHandle[Work] | State:
    """Write the internal records and the internal report; what fails is a warning and leaves the run completed."""

    def write_and_warn(work: Work) -> None:
        write_reports(work)
        if work.report_failures or work.notices:
            get_run_logger().warning(warning_text(work))

    return _stage("report", write_and_warn, published, report_text, "internal report")


def _select_publish_task(work: Work) -> Task[Any, Any]:
    """Return the task `publish`; where this run released a day, as one that materializes the release."""
    if not released_rows(work):
        return publish
    asset = release_artifacts.asset(work)
    return MaterializingTask(publish.fn, assets=[asset], name="publish", task_run_name="publish", **RETRIED)


def run_release(
    run_file: str, as_of: date | None, progress: ProgressReporter = SILENT
) -> tuple[Work, AgedpError | None]:
    """Run the flow in this process and return its result, which Prefect never receives, and the error that ended it.

    Raises:
        AgedpError: as the stages, except for a refused release and a failed preflight.
        StageFailed: a bug in a stage.
    """
    observer = observe(lambda: release(run_file, as_of, return_state=True), progress)
    work, error = observer.result, observer.error
    if isinstance(error, Refused | PreflightFailed) and work is not None:
        return work, error
    if error is not None:
        raise error
    return work, None
