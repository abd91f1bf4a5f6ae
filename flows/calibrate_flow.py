"""The Prefect flow `agedp-calibrate`: load, quantize, estimate, bound, one task each.

Prefect receives the path of the run file, names of stages and the public part of the model. Everything else that a
calibration finds (rows, states, transitions, spectral gaps, goodness of fit) is confidential and stays behind handles;
the run's terminal and the model's folder show it.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from prefect import flow, get_run_logger, task

from agedp_data import clock
from agedp_data.errors import AgedpError
from flows.calibrate_artifacts import record_bounds
from flows.handles import Handle
from flows.stage_runs import (
    RETRIES,
    TASK_OPTIONS,
    FlowObserver,
    State,
    completed,
    end_of_flow,
    observe,
    observer_of_flow,
    run_stage,
    unless_bug,
)
from pipelines import calibrate as stages
from pipelines.blocks import SILENT, Told
from pipelines.bound import Calibration
from pipelines.calibrate import CalibrationContext, Loaded
from pipelines.estimate import Transitions
from pipelines.quantize import Floats


@dataclass(frozen=True, slots=True)
class CalibrationRun:
    """What a calibration made: rows kept and rejected, and the model (confidential beside its public part)."""

    loaded: Loaded
    calibration: Calibration


@flow(
    name="agedp-calibrate",
    flow_run_name=lambda: str(clock.today()),
    version=version("agedp"),
    persist_result=False,
    log_prints=False,
)
def calibrate(run_file: str) -> State:
    """Estimate the Markov chains of a run file's households and store their model, once.

    Args:
        run_file: Path of the run file (TOML) whose [model] has source = "estimated".
    """
    with observer_of_flow() as observer:
        try:
            context = _begin(run_file, observer)
            with stages.store_locked(context.value):
                loaded = completed(load(context, return_state=True), observer)
                edges = completed(quantize(context, loaded, return_state=True), observer)
                transitions = completed(estimate(context, loaded, edges, return_state=True), observer)
                model = completed(bound(context, loaded, edges, transitions, return_state=True), observer)
            observer.result = CalibrationRun(loaded.value, model.value)
        except AgedpError as error:
            return end_of_flow(error, observer)
    return None


def _begin(run_file: str, observer: FlowObserver) -> Handle[CalibrationContext]:
    context = unless_bug("the run file", lambda: stages.begin_calibration(run_file, told=observer.progress), None)
    observer.confidential = Path(context.run.output.confidential)
    return Handle(f"calibration of {context.run.population.name}", context)


@task(name="load", task_run_name="load", **RETRIES, **TASK_OPTIONS)
def load(context: Handle[CalibrationContext]) -> Handle[Loaded] | State:
    """Read the input files into the confidential store."""

    def staged() -> Handle[Loaded]:
        value = stages.load(context.value)
        first, last = context.value.model.period
        get_run_logger().info("Input files are read. Calibration period: %s to %s.", first, last)
        return Handle("readings", value)

    return run_stage("load", staged)


@task(name="quantize", task_run_name="quantize", **TASK_OPTIONS)
def quantize(context: Handle[CalibrationContext], loaded: Handle[Loaded]) -> Handle[Floats] | State:
    """Quantize the readings of each household to the states of its chain."""

    def staged() -> Handle[Floats]:
        edges = stages.quantize_households(context.value, loaded.value.period)
        model = context.value.model
        kind = model.edges if isinstance(model.edges, str) else "public"
        get_run_logger().info("%d states per household, one step = one %s, %s edges.", model.states, model.step, kind)
        return Handle("state edges", edges)

    return run_stage("quantize", staged)


@task(name="estimate", task_run_name="estimate", **TASK_OPTIONS)
def estimate(
    context: Handle[CalibrationContext], loaded: Handle[Loaded], edges: Handle[Floats]
) -> Handle[Transitions] | State:
    """Count the transitions of each household with Dask."""

    def staged() -> Handle[Transitions]:
        transitions = stages.estimate_transitions(context.value, loaded.value.period, edges.value)
        get_run_logger().info("Transition matrices are estimated (%s chain).", context.value.model.chain)
        return Handle("transitions", transitions)

    return run_stage("estimate", staged)


@task(name="bound", task_run_name="bound", **TASK_OPTIONS)
def bound(
    context: Handle[CalibrationContext],
    loaded: Handle[Loaded],
    edges: Handle[Floats],
    transitions: Handle[Transitions],
) -> Handle[Calibration] | State:
    """Compute spectral gaps, total variation and leakage bounds, and store the model."""

    def staged() -> Handle[Calibration]:
        calibration = stages.bound_mixing(context.value, loaded.value.period, edges.value, transitions.value)
        get_run_logger().info("Model %s is stored.", calibration.model.id[:16])
        record_bounds(context.value.run.population.name, calibration.model, context.value.model.ages_days)
        return Handle("model", calibration)

    return run_stage("bound", staged)


def run_calibration(run_file: str, told: Told = SILENT) -> CalibrationRun:
    """Run the flow in this process and return what it made, which Prefect itself never sees.

    Raises:
        AgedpError: as the stages.
        StageFailed: a bug in a stage.
    """
    observer = observe(lambda: calibrate(run_file, return_state=True), told)
    if observer.error is not None:
        raise observer.error
    made: Any = observer.result
    return CalibrationRun(made.loaded, made.calibration)
