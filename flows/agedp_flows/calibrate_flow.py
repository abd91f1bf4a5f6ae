"""The Prefect flow `agedp-calibrate`: load, quantize, estimate, bound, one task each.

Prefect receives the path of the run file, names of stages and the public part of the model. All other results of a
calibration (rows, states, transitions, spectral gaps, goodness of fit) are confidential and represented by handles; the
run's terminal and the model's folder show them.
"""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

from prefect import flow, get_run_logger

from agedp import calibration_pipeline as stages
from agedp.calibration.bound import Calibration
from agedp.calibration.estimate import Transitions
from agedp.calibration.quantize import Floats, Period
from agedp.calibration_pipeline import CalibrationContext
from agedp.compute.engine_settings import SILENT, ProgressReporter
from agedp_data import clock
from agedp_data.errors import AgedpError
from agedp_flows import stage_tasks
from agedp_flows.artifacts import record_bounds
from agedp_flows.stage_tasks import RunHandle, State, result_of, stage_task


@flow(
    name="agedp-calibrate",
    flow_run_name=lambda: str(clock.today()),
    version=version("agedp"),
    **stage_tasks.FLOW_OPTIONS,
)
def calibrate(run_file: str) -> State:
    """Estimate the Markov chains of a run file's households and store their model, once.

    Args:
        run_file: Path of the run file (TOML) whose [model] has source = "estimated".
    """
    with stage_tasks.observer_of_flow("agedp calibrate") as observer:
        try:
            context = _begin(run_file, observer)
            with context.value.store.locked():
                observer.result = stages.stored_calibration(context.value)
                if observer.result is not None:
                    get_run_logger().info("Model %s is stored already.", observer.result.model.id[:16])
                    return None
                period = result_of(load(context, return_state=True), observer)
                edges = result_of(quantize(context, period, return_state=True), observer)
                transitions = result_of(estimate(context, period, edges, return_state=True), observer)
                model = result_of(bound(context, period, edges, transitions, return_state=True), observer)
            observer.result = model.value
        except AgedpError as error:
            return stage_tasks.end_of_flow(error, observer)
    return None


def _begin(run_file: str, observer: stage_tasks.FlowObserver) -> RunHandle[CalibrationContext]:
    context = stage_tasks.hide_bug_details(
        "the run file", lambda: stages.begin_calibration(run_file, progress=observer.progress), observer
    )
    observer.confidential = Path(context.run.output.confidential)
    return RunHandle(f"calibration of {context.run.population.name}", context)


@stage_task("load", stage_tasks.RETRIED)
def load(context: RunHandle[CalibrationContext]) -> RunHandle[Period]:
    """Read the input files into the confidential store."""
    period = stages.load(context.value)
    first, last = context.value.model.period
    get_run_logger().info("Input files are read. Calibration period: %s to %s.", first, last)
    return RunHandle("readings", period)


@stage_task("quantize")
def quantize(context: RunHandle[CalibrationContext], period: RunHandle[Period]) -> RunHandle[Floats]:
    """Quantize the readings of each household to the states of its chain."""
    edges = stages.quantize_households(context.value, period.value)
    model = context.value.model
    kind = model.edges if isinstance(model.edges, str) else "public"
    get_run_logger().info("%d states per household, one step = one %s, %s edges.", model.states, model.step, kind)
    return RunHandle("state edges", edges)


@stage_task("estimate")
def estimate(
    context: RunHandle[CalibrationContext], period: RunHandle[Period], edges: RunHandle[Floats]
) -> RunHandle[Transitions]:
    """Count the transitions of each household with Dask."""
    transitions = stages.estimate_transitions(context.value, period.value, edges.value)
    get_run_logger().info("Transition matrices are estimated (%s chain).", context.value.model.chain)
    return RunHandle("transitions", transitions)


@stage_task("bound")
def bound(
    context: RunHandle[CalibrationContext],
    period: RunHandle[Period],
    edges: RunHandle[Floats],
    transitions: RunHandle[Transitions],
) -> RunHandle[Calibration]:
    """Compute spectral gaps, total variation and leakage bounds, and store the model."""
    calibration = stages.bound_mixing(context.value, period.value, edges.value, transitions.value)
    get_run_logger().info("Model %s is stored.", calibration.model.id[:16])
    record_bounds(context.value.run.population.name, calibration.model, context.value.model.ages_days)
    return RunHandle("model", calibration)


def run_calibration(run_file: str, progress: ProgressReporter = SILENT) -> Calibration:
    """Run the flow in this process and return its result, which Prefect never receives.

    Raises:
        AgedpError: as the stages.
        StageFailed: a bug in a stage.
    """
    observer = stage_tasks.observe(lambda: calibrate(run_file, return_state=True), progress)
    if observer.error is not None:
        raise observer.error
    result: Calibration = observer.result
    return result
