"""The stages of a calibration in order: load -> quantize -> estimate -> bound.

It releases nothing. Every household's readings of the model's period become a Markov chain; the maximum over all
households is the model. The stages take and return values. `run_calibration` is their only order: `calibrate` calls
each as it is, the Prefect flow `agedp-calibrate` as a task.

A private selection of a model draws, once: a ledger is opened or created with the checks of every run, and stores the
answer with its loss before the model's folder is written. What can be refused is refused before a reading is read. A
second calibration of the same question finds the answer in the ledger, and the model in its folder, if both remain.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from agedp.calibration.bound import Calibration, bound, check_model_is_new, has_model
from agedp.calibration.estimate import Transitions, estimate
from agedp.calibration.leakage_bounds import check_counts_fit, phase_count, subsampling_steps
from agedp.calibration.member_selection import DrawSummary, check_selection_possible, is_on_roster, member_question
from agedp.calibration.model_check import MemoryCurves, measure_memory, memory_request
from agedp.calibration.quantize import Floats, Period, quantize
from agedp.compute.engine import task_summary
from agedp.compute.engine_settings import SILENT, Engine, ProgressReporter, Scheduler, return_freed_memory
from agedp.internal_records.bookkeeping import write_verdict
from agedp.ledger_session import LedgerSession
from agedp.reports.model_check_report import write_memory_report
from agedp.run_context import NEEDS_MODEL, engine_for, load_meters, load_run_file, log_warnings, store_for
from agedp.stage_values import StageCaller, call_stage
from agedp.stages.calibration_draws import check_draws_permitted, ledger_answer, open_calibration_session
from agedp.stages.ingest import ingest
from agedp.store.store import Store, read_retained_from
from agedp_data.config import RunFile
from agedp_data.config.contract import contract_value
from agedp_data.config.model_section import EstimatedModel
from agedp_data.config.withdrawn import withdrawn_from_model
from agedp_data.errors import InputError, RunFileError
from agedp_data.model import read_model
from agedp_data.parameters import watt_hours
from agedp_data.roster import Roster, read_roster


@dataclass(frozen=True, slots=True)
class CalibrationContext:
    """Input of a calibration: run file, model section, roster, store and engine; a session for a private selection."""

    run: RunFile
    model: EstimatedModel
    roster: Roster
    store: Store
    engine: Engine
    session: LedgerSession | None = None


def calibrate(run_file: str | Path, *, scheduler: Scheduler = None, progress: ProgressReporter = SILENT) -> Calibration:
    """Estimate the model of a run file from its input files and write its folder.

    Raises:
        RunFileError: the run file declares its model, has none, or names a folder that holds one (for a private
            selection: one of other settings).
        InputError: an input file that cannot be understood.
        LedgerError: a private selection whose losses the promise or the ledger does not permit.
    """
    return run_calibration(begin_calibration(run_file, scheduler=scheduler, progress=progress))


def run_calibration(context: CalibrationContext, *, call: StageCaller = call_stage) -> Calibration:
    """Run the stages in order and return the calibration; `call` calls each of them. A stored one needs none.

    Raises:
        AgedpError: as the stages.
    """
    with context.store.locked():
        if (stored := stored_calibration(context)) is not None:  # perhaps by a calibration that was first
            return stored
        period = call("load", load, context)
        edges = call("quantize", quantize_households, context, period)
        transitions = call("estimate", estimate_transitions, context, period, edges)
        return call("bound", bound_mixing, context, period, edges, transitions)


def begin_calibration(
    run_file: str | Path, *, scheduler: Scheduler = None, progress: ProgressReporter = SILENT
) -> CalibrationContext:
    """Load the input of a calibration; read no reading and write nothing but the confidential folder itself.

    Raises:
        RunFileError: the run file declares its model, has none, names a folder that contains one, or rehearses on
            synthetic households; or the roster is too small for a private selection.
        InputError: readings of the period are no longer in the store, or the roster cannot be understood.
        LedgerError: the promise or the ledger does not permit a private selection.
    """
    run = load_run_file(run_file)
    model = run.model
    if not isinstance(model, EstimatedModel):
        raise RunFileError('agedp calibrate makes a model of [model] source = "estimated"; the run file has none')
    if not run.schedule.reads_input:
        raise RunFileError(f"{run.name}: agedp calibrate estimates a model from readings; {NEEDS_MODEL}")
    is_stored = model.is_private and has_model(model)
    if not is_stored:
        for sentence in withdrawn_from_model(run, None):
            raise RunFileError(f"{run.name}: {sentence}")
        check_model_is_new(model)
    log_warnings(run.roundings)
    engine = engine_for(run, scheduler, progress)
    roster = read_roster(run.population.roster)
    check_counts_fit(model, len(roster.rows.ids))
    session = _selection_session(run, model, roster, engine) if model.is_private and not is_stored else None
    store = store_for(run, households=roster.counts.size, meters=load_meters(run))
    if f"{model.period[0]:%Y-%m}" < (retained_from := read_retained_from(store.folder)):
        raise InputError(
            f"[model] period begins in {model.period[0]:%Y-%m}, but readings before {retained_from} were "
            "deleted ([engine] keep_days); name another confidential folder to read them again"
        )
    return CalibrationContext(run, model, roster, store, engine, session)


def _selection_session(run: RunFile, model: EstimatedModel, roster: Roster, engine: Engine) -> LedgerSession:
    """Return the session in which a model is selected privately, after all refusals that need no reading."""
    households = int(is_on_roster(roster.rows, model.period).sum())
    check_selection_possible(model, households)
    session = open_calibration_session(run, roster, engine)
    check_draws_permitted(session, model, member_question(model, contract_value(run.input), households))
    return session


def stored_calibration(context: CalibrationContext) -> Calibration | None:
    """Return the calibration of a private selection whose model's folder is complete already; nothing is drawn.

    Raises:
        RunFileError: the folder holds a model that was made under other settings.
    """
    model = read_model(context.run) if context.model.is_private and has_model(context.model) else None
    if model is None:
        return None
    households, ages_days = int(model.public["households"]), context.model.ages_days
    return Calibration(model, households, 0, 0, 0, 0, ages_days, {}, is_stored=True)


def load(context: CalibrationContext) -> Period:
    """Read the input files into the confidential store.

    Raises:
        InputError: an input file that cannot be understood.
    """
    run = context.run
    delivery = ingest(context.store, run.input.files, engine=context.engine, excluding=run.population.own_files)
    return_freed_memory()
    return Period(context.store, delivery, context.roster.rows, *context.model.period)


def quantize_households(context: CalibrationContext, period: Period) -> Floats:
    """Return the state edges of each household, shape (households of the roster, states - 1) [Wh]."""
    model = context.model
    kind = model.edges if isinstance(model.edges, str) else [watt_hours(edge) for edge in model.edges]
    edges = quantize(_steps(model, period), edges=kind, n_states=model.states, engine=context.engine)
    return np.asarray(edges)


def estimate_transitions(context: CalibrationContext, period: Period, edges: Floats) -> Transitions:
    """Count the transitions of each household between its states, one Dask task for each month."""
    model, engine, steps = context.model, context.engine, _steps(context.model, period)
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
    write_memory_report(memory)  # again with the model: a calibration may be killed in between
    options: dict[str, Any] = {"before_public": partial(_keep_check, context, memory)}
    if context.session is None:
        calibration = bound(transitions, edges, context.roster.rows, model, engine=engine, **options)
        return _with_check(context, memory, calibration)
    session, terms = context.session.checked(create=True), contract_value(run.input)
    question = member_question(model, terms, int(is_on_roster(context.roster.rows, model.period).sum()))
    check_draws_permitted(session, model, question)
    before = len(session.history.draws)
    answer, population = ledger_answer(session, model), run.population.name
    options |= {"input_terms": terms, "population": population, "answer": answer}
    calibration = bound(transitions, edges, context.roster.rows, model, engine=engine, **options)
    if session.accounts is not None:
        session.accounts.account(session.open_ledger)  # finds the population by its draw from now on
    draws = session.history.draws
    drawn = len(draws) - before
    summary = DrawSummary(drawn, 1 - drawn, len(draws), sum(draw.loss for draw in draws))
    return replace(_with_check(context, memory, calibration), draws=summary)


def _with_check(context: CalibrationContext, memory: MemoryCurves, calibration: Calibration) -> Calibration:
    """Return a calibration with the check of its model."""
    return replace(calibration, memory=memory, tasks=task_summary(context.engine))


def _keep_check(context: CalibrationContext, memory: MemoryCurves, calibration: Calibration) -> None:
    """Write the check of a model, and its verdict for the runs that use it: a model never lacks one."""
    write_memory_report(memory, _with_check(context, memory, calibration))
    write_verdict(Path(context.run.output.confidential), calibration.model.id, memory.verdict)


def _steps(model: EstimatedModel, period: Period) -> Period:
    return replace(period, step=model.step)
