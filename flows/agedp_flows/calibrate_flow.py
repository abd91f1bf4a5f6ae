"""The Prefect flow `agedp-calibrate`: load, quantize, estimate, bound, one task each.

`agedp.calibration_pipeline.run_calibration` calls the stages; each is a task. Prefect receives the path of the run
file, names of stages and the public part of the model. All other results of a calibration (rows, states, transitions,
spectral gaps, goodness of fit) are confidential; the run's terminal and the model's folder show them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from prefect import Task, flow, get_run_logger

from agedp.calibration.bound import Calibration
from agedp.calibration_pipeline import CalibrationContext, begin_calibration
from agedp.calibration_pipeline import run_calibration as run_stages
from agedp.compute.engine_settings import SILENT, ProgressReporter
from agedp_data.errors import AgedpError
from agedp_flows import stage_tasks
from agedp_flows.artifacts import InputProgress, first_name, name_run, record_bounds
from agedp_flows.stage_tasks import StageTasks, State


@flow(name="agedp-calibrate", flow_run_name=first_name, version=version("agedp"), **stage_tasks.FLOW_OPTIONS)
def calibrate(run_file: str) -> State:
    """Estimate the Markov chains of a run file's households and store their model, once.

    Args:
        run_file: Path of the run file (TOML) whose [model] has source = "estimated".
    """
    with stage_tasks.observer_of_flow("agedp calibrate") as observer:
        try:
            reading = InputProgress(observer.progress.progress)
            observer.progress = replace(observer.progress, progress=reading)
            context = _begin(run_file, observer)
            name_run(context.run.population.name, context.model.period)
            observer.result = run_stages(context, call=_CalibrationTasks(context, observer, reading))
            get_run_logger().info("Model %s is stored.", observer.result.model.id[:16])
        except AgedpError as error:
            return stage_tasks.end_of_flow(error, observer)
    return None


def _begin(run_file: str, observer: stage_tasks.FlowObserver) -> CalibrationContext:
    context = stage_tasks.hide_bug_details(
        "the run file", lambda: begin_calibration(run_file, progress=observer.progress), observer
    )
    observer.confidential = Path(context.run.output.confidential)
    return context


class _CalibrationTasks(StageTasks):
    """The tasks of a calibration."""

    def __init__(self, context: CalibrationContext, observer: stage_tasks.FlowObserver, reading: InputProgress) -> None:
        super().__init__(observer)
        self._context, self._reading = context, reading

    def record(self, name: str, result: Any) -> None:  # noqa: ANN401
        """Log what the run file says about a stage, and leave the public bounds of the model."""
        model, log = self._context.model, get_run_logger()
        match name:
            case "load":
                log.info("Input files are read. Calibration period: %s to %s.", *model.period)
            case "quantize":
                kind = model.edges if isinstance(model.edges, str) else "public"
                log.info("%d states per household, one step = one %s, %s edges.", model.states, model.step, kind)
            case "estimate":
                log.info("Transition matrices are estimated (%s chain).", model.chain)
            case "bound":
                record_bounds(self._context.run.population.name, result.model, model.ages_days)

    def task(self, name: str, function: Callable[[], State]) -> Task[[], State]:
        """Return the task that runs a stage."""
        if name == "load":
            function = self._reading.during(function, self._context.run.population.name)
        return super().task(name, function)


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
