"""The calibration: load -> quantize -> estimate -> bound. Nothing is released.

Every household's readings of the model's period become a Markov chain; the maximum over all households is the model.
The stages take and return values; `calibrate` and the Prefect flow `agedp-calibrate` call the same ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from agedp.calibration.bound import Calibration, bound, check_model_is_new
from agedp.calibration.estimate import Transitions, estimate
from agedp.calibration.leakage_bounds import phase_count, subsampling_steps
from agedp.calibration.memory_check import estimate_higher_order
from agedp.calibration.memory_estimate import check_counts_fit
from agedp.calibration.model_check import measure_memory, memory_request
from agedp.calibration.quantize import Floats, Period, quantize
from agedp.compute.engine_settings import SILENT, Engine, ProgressReporter, Scheduler
from agedp.reports.model_check_report import write_memory_report
from agedp.run_context import engine_for, load_run_file, store_for
from agedp.stage_values import Delivery
from agedp.stages.ingest import ingest
from agedp.store.store import Store
from agedp_data.config import RunFile
from agedp_data.config.model_section import EstimatedModel
from agedp_data.errors import InputError, RunFileError
from agedp_data.parameters import watt_hours
from agedp_data.roster import Roster, read_roster


@dataclass(frozen=True, slots=True)
class CalibrationContext:
    """Input of a calibration: run file, model section, roster, store and engine."""

    run: RunFile
    model: EstimatedModel
    roster: Roster
    store: Store
    engine: Engine


def calibrate(run_file: str | Path, *, scheduler: Scheduler = None, progress: ProgressReporter = SILENT) -> Calibration:
    """Estimate the model of a run file from its input files and write its folder.

    Raises:
        RunFileError: the run file declares its model, has none, or names a folder that holds one.
        InputError: an input file that cannot be understood.
    """
    context: CalibrationContext = begin_calibration(run_file, scheduler=scheduler, progress=progress)
    with context.store.locked():
        period: Period = load(context).period
        edges: Floats = quantize_households(context, period)
        transitions: Transitions = estimate_transitions(context, period, edges)
        return bound_mixing(context, period, edges, transitions)


def begin_calibration(
    run_file: str | Path, *, scheduler: Scheduler = None, progress: ProgressReporter = SILENT
) -> CalibrationContext:
    """Load the input of a calibration; read no reading and write nothing but the confidential folder itself.

    Raises:
        RunFileError: the run file declares its model, has none, or names a folder that contains one.
        InputError: readings of the period are no longer in the store, or the roster cannot be understood.
    """
    run = load_run_file(run_file)
    model = run.model
    if not isinstance(model, EstimatedModel):
        raise RunFileError('agedp calibrate makes a model of [model] source = "estimated"; the run file has none')
    check_model_is_new(model)
    engine = engine_for(run, scheduler, progress)
    roster = read_roster(run.population.roster)
    check_counts_fit(model, len(roster.ids))
    store = store_for(run)
    if f"{model.period[0]:%Y-%m}" < store.retained_from():
        raise InputError(
            f"[model] period begins in {model.period[0]:%Y-%m}, but readings before {store.retained_from()} were "
            "deleted ([engine] keep_days); name another confidential folder to read them again"
        )
    return CalibrationContext(run, model, roster, store, engine)


@dataclass(frozen=True, slots=True)
class LoadedReadings:
    """Content of the input files (confidential): rows kept and rejected, and the readings of the model's period."""

    delivery: Delivery
    period: Period


def load(context: CalibrationContext) -> LoadedReadings:
    """Read the input files into the confidential store.

    Raises:
        InputError: an input file that cannot be understood.
    """
    run, roster = context.run, context.roster
    delivery = ingest(context.store, run.input.files, engine=context.engine, excluding=[run.population.roster])
    return LoadedReadings(delivery, Period(context.store, delivery, roster, *context.model.period))


def quantize_households(context: CalibrationContext, period: Period) -> Floats:
    """Return the state edges of each household, shape (households of the roster, states - 1) [Wh]."""
    model = context.model
    kind = model.edges if isinstance(model.edges, str) else [watt_hours(edge) for edge in model.edges]
    edges = quantize(_steps(model, period), edges=kind, n_states=model.states, engine=context.engine)
    return np.asarray(edges)


def estimate_transitions(context: CalibrationContext, period: Period, edges: Floats) -> Transitions:
    """Count the transitions of each household between its states, one Dask task for each month."""
    model, engine, steps = context.model, context.engine, _steps(context.model, period)
    if model.memory != "one":
        return estimate_higher_order(steps, edges, n_states=model.states, memory=model.memory, engine=engine)
    n_phases, subsampling = phase_count(model), subsampling_steps(model)
    return estimate(steps, edges, n_states=model.states, engine=engine, n_phases=n_phases, subsampling=subsampling)


def bound_mixing(context: CalibrationContext, period: Period, edges: Floats, transitions: Transitions) -> Calibration:
    """Bound the mixing of all households, test the Markov property, and write the model's folder.

    Raises:
        RunFileError: the folder holds a model already.
        ChainError: no household to estimate from.
    """
    run, model, engine = context.run, context.model, context.engine
    memory = measure_memory(period, memory_request(run, model), folder=Path(run.output.confidential), engine=engine)
    write_memory_report(memory)
    return replace(bound(transitions, edges, context.roster, model), memory=memory)


def _steps(model: EstimatedModel, period: Period) -> Period:
    return replace(period, step=model.step)
