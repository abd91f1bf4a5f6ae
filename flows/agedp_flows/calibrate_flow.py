"""The Prefect flow `agedp-calibrate`: load, quantize, estimate, bound, one task each.

Prefect receives the path of the run file, names of stages and the public part of the model. All other results of a
calibration (rows, states, transitions, spectral gaps, goodness of fit) are confidential and represented by handles; the
run's terminal and the model's folder show them.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from prefect import flow, get_run_logger, task

from agedp import pipeline as stages
from agedp.calibration.bound import Calibration
from agedp.calibration.estimate import Transitions
from agedp.calibration.quantize import Floats
from agedp.compute.engine_settings import SILENT, ProgressReporter
from agedp.pipeline import CalibrationContext, LoadedReadings
from agedp_data import clock
from agedp_data.errors import AgedpError
from agedp_flows.artifacts import record_bounds
from agedp_flows.stage_tasks import (
    FLOW_OPTIONS,
    ONCE,
    RETRIED,
    FlowObserver,
    RunHandle,
    State,
    end_of_flow,
    hide_bug_details,
    observe,
    observer_of_flow,
    result_of,
    run_stage,
)


@dataclass(frozen=True, slots=True)
class CalibrationRun:
    """The results of a calibration: rows kept and rejected, and the model (confidential except its public part)."""

    loaded: LoadedReadings
    calibration: Calibration


@flow(
    name="agedp-calibrate",
    flow_run_name=lambda: str(clock.today()),
    version=version("agedp"),
    **FLOW_OPTIONS,
)
def calibrate(run_file: str) -> State:
    """Estimate the Markov chains of a run file's households and store their model, once.

    Args:
        run_file: Path of the run file (TOML) whose [model] has source = "estimated".
    """
    with observer_of_flow("agedp calibrate") as observer:
        try:
            context = _begin(run_file, observer)
            with context.value.store.locked():
                loaded = result_of(load(context, return_state=True), observer)
                edges = result_of(quantize(context, loaded, return_state=True), observer)
                transitions = result_of(estimate(context, loaded, edges, return_state=True), observer)
                model = result_of(bound(context, loaded, edges, transitions, return_state=True), observer)
            observer.result = CalibrationRun(loaded.value, model.value)
        except AgedpError as error:
            return end_of_flow(error, observer)
    return None


def _begin(run_file: str, observer: FlowObserver) -> RunHandle[CalibrationContext]:
    context = hide_bug_details(
        "the run file", lambda: stages.begin_calibration(run_file, progress=observer.progress), observer
    )
    observer.confidential = Path(context.run.output.confidential)
    return RunHandle(f"calibration of {context.run.population.name}", context)


@task(name="load", task_run_name="load", **RETRIED)
def load(context: RunHandle[CalibrationContext]) -> RunHandle[LoadedReadings] | State:
    """Read the input files into the confidential store."""

    def execute() -> RunHandle[LoadedReadings]:
        value = stages.load(context.value)
        first, last = context.value.model.period
        get_run_logger().info("Input files are read. Calibration period: %s to %s.", first, last)
        return RunHandle("readings", value)

    return run_stage("load", execute)


@task(name="quantize", task_run_name="quantize", **ONCE)
def quantize(context: RunHandle[CalibrationContext], loaded: RunHandle[LoadedReadings]) -> RunHandle[Floats] | State:
    """Quantize the readings of each household to the states of its chain."""

    def execute() -> RunHandle[Floats]:
        edges = stages.quantize_households(context.value, loaded.value.period)
        model = context.value.model
        kind = model.edges if isinstance(model.edges, str) else "public"
        get_run_logger().info("%d states per household, one step = one %s, %s edges.", model.states, model.step, kind)
        return RunHandle("state edges", edges)

    return run_stage("quantize", execute)


@task(name="estimate", task_run_name="estimate", **ONCE)
def estimate(
    context: RunHandle[CalibrationContext], loaded: RunHandle[LoadedReadings], edges: RunHandle[Floats]
) -> RunHandle[Transitions] | State:
    """Count the transitions of each household with Dask."""

    def execute() -> RunHandle[Transitions]:
        transitions = stages.estimate_transitions(context.value, loaded.value.period, edges.value)
        get_run_logger().info("Transition matrices are estimated (%s chain).", context.value.model.chain)
        return RunHandle("transitions", transitions)

    return run_stage("estimate", execute)


@task(name="bound", task_run_name="bound", **ONCE)
def bound(
    context: RunHandle[CalibrationContext],
    loaded: RunHandle[LoadedReadings],
    edges: RunHandle[Floats],
    transitions: RunHandle[Transitions],
) -> RunHandle[Calibration] | State:
    """Compute spectral gaps, total variation and leakage bounds, and store the model."""

    def execute() -> RunHandle[Calibration]:
        calibration = stages.bound_mixing(context.value, loaded.value.period, edges.value, transitions.value)
        get_run_logger().info("Model %s is stored.", calibration.model.id[:16])
        record_bounds(context.value.run.population.name, calibration.model, context.value.model.ages_days)
        return RunHandle("model", calibration)

    return run_stage("bound", execute)


def run_calibration(run_file: str, progress: ProgressReporter = SILENT) -> CalibrationRun:
    """Run the flow in this process and return its result, which Prefect never receives.

    Raises:
        AgedpError: as the stages.
        StageFailed: a bug in a stage.
    """
    observer = observe(lambda: calibrate(run_file, return_state=True), progress)
    if observer.error is not None:
        raise observer.error
    result: CalibrationRun = observer.result
    return result
