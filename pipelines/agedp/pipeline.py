"""The stages of a run in order, from due days to the internal report, and the stages of a calibration in order.

`sanitise` runs them as one plain function; the Prefect flow runs the same stages, one task each. Values pass between
them inside one process; no confidential value is an argument that a scheduler could store.

Decisions:

* The promise is checked against the ledger before the first file is opened: a promise that cannot be kept is refused
  before any reading is read or any noise drawn.
* What was committed before a refused day is published and reported; then the refusal is raised.

A calibration (load -> quantize -> estimate -> bound) releases nothing. Every household's readings of the model's period
become a Markov chain; the maximum over all households is the model.
The stages take and return values; `calibrate` and the Prefect flow `agedp-calibrate` call the same ones.

A private selection of a model draws, once: a ledger is opened or created with the checks of every run, and stores the
answer with its loss before the model's folder is written. What can be refused is refused before a reading is read. A
second calibration of the same question finds the answer in the ledger, and the model in its folder, if both remain.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from pathlib import Path
from typing import Any, Final

import numpy as np

from agedp.calibration.bound import Calibration, bound, check_model_is_new, has_model
from agedp.calibration.estimate import Transitions, estimate, estimate_higher_order
from agedp.calibration.leakage_bounds import check_counts_fit, phase_count, subsampling_steps
from agedp.calibration.member_selection import DrawSummary, check_selection_possible, is_on_roster, questions
from agedp.calibration.model_check import MemoryCurves, measure_memory, memory_request
from agedp.calibration.quantize import Floats, Period, quantize
from agedp.compute.engine_settings import SILENT, Engine, ProgressReporter, Scheduler
from agedp.internal_records.model_verdict import write_verdict
from agedp.ledger_session import LedgerSession
from agedp.local_files.internal_files import FileNotice
from agedp.preflight.alerts import Alert
from agedp.release_folder.release_folder import ReleaseFolder
from agedp.reports.model_check_report import write_memory_report
from agedp.run_context import NEEDS_MODEL, RunContext, engine_for, load_run_file, store_for
from agedp.stage_values import DailySums, Delivery, DueDays
from agedp.stages.aggregate import aggregate_days
from agedp.stages.calibration_draws import (
    check_draws_permitted,
    ledger_answer,
    open_calibration_session,
)
from agedp.stages.ingest import ingest, read_files
from agedp.stages.input_check import CheckedSums, check_input
from agedp.stages.plan import plan
from agedp.stages.publish import publish_folder
from agedp.stages.release import ReleaseResult, release_days
from agedp.stages.report import ReportOutcome, format_reports_status, write_reports
from agedp.store.store import Store
from agedp_data.config import RunFile, contract_part
from agedp_data.config.model_section import EstimatedModel
from agedp_data.errors import InputError, PreflightFailed, Refused, RunFileError
from agedp_data.ledger import ReleaseRecord
from agedp_data.model import read_model
from agedp_data.parameters import watt_hours
from agedp_data.roster import Roster, read_roster


@dataclass(frozen=True, slots=True)
class RunSummary:
    """Results of the stages of a run so far, for its output, and the refusal that ended it, if any (confidential)."""

    session: LedgerSession
    due_days: DueDays = field(default_factory=lambda: DueDays(()))
    checked: CheckedSums | None = None
    released: tuple[ReleaseRecord, ...] = ()
    report: ReportOutcome | None = None
    refusal: Refused | PreflightFailed | None = None

    def check_not_refused(self) -> None:
        """Raise the refusal that ended the run, if any.

        Raises:
            Refused: the promise does not permit a due day; what was committed before is published.
            PreflightFailed: the input files make a first release senseless; nothing was drawn.
        """
        if self.refusal is not None:
            raise self.refusal

    @property
    def run(self) -> RunContext:
        """Return the inputs of the run."""
        return self.session.run

    @property
    def delivery(self) -> Delivery | None:
        """Return what was read, None before the readings of all due days are summed."""
        return self.checked.sums.delivery if self.checked is not None else None

    @property
    def drawn(self) -> tuple[ReleaseRecord, ...]:
        """Return the released rows that carry values: those of days that were not skipped."""
        return tuple(row for row in self.released if row.state == "released")

    @property
    def alerts(self) -> tuple[Alert, ...]:
        """Return the alerts about the input of the due days."""
        return self.report.alerts if self.report is not None else ()

    @property
    def notices(self) -> tuple[FileNotice, ...]:
        """Return the notices about damaged confidential files."""
        return (
            *(self.checked.sums.notices if self.checked is not None else ()),
            *(self.report.notices if self.report is not None else ()),
        )

    @property
    def failures(self) -> tuple[FileNotice, ...]:
        """Return the notices about the steps of the report that failed."""
        return self.report.failures if self.report is not None else ()


STAGES: Final = ("plan", "ingest", "aggregate", "release", "publish", "report")

_LOG = logging.getLogger("agedp")


def sanitise(run_file: str | Path, *, scheduler: Scheduler = None, as_of: date | str | None = None) -> ReleaseFolder:
    """Release every due day of a run file and return its release folder; the Python equivalent of `agedp run`.

    Args:
        run_file: path of the run file.
        scheduler: as [engine] scheduler, which it overrides.
        as_of: in rehearsals, the simulated date up to which days are released, such as "2026-04-01"; of an instant
            its date counts. If not given, the date on which the last day of the period is due.

    Raises:
        AgedpError: one line with problem, place and remedy; committed releases remain and are published.
    """
    run = RunContext.load(run_file, scheduler=scheduler, as_of=_date(as_of))
    summary = run_stages(run)
    summary.check_not_refused()
    if summary.failures:
        _LOG.warning("agedp: %s", format_reports_status(summary.report))
    return ReleaseFolder(run.release_folder)


def run_stages(run: RunContext, *, done: Callable[[], None] = lambda: None) -> RunSummary:
    """Run the stages in order and return their results; `done` is called after each of the `STAGES`.

    Raises:
        AgedpError: as the stages, except for a refused release and a failed preflight, which are part of the result.
    """
    session: LedgerSession = LedgerSession.open(run)
    due_days: DueDays = plan(session)
    done()
    with run.store.locked():
        delivery: Delivery = read_files(session)
        done()
        sums: DailySums = aggregate_days(session, due_days, delivery)
        checked: CheckedSums = check_input(session, sums)
    if checked.refusal is not None:
        return RunSummary(session, due_days, checked, refusal=checked.refusal)
    done()
    released: ReleaseResult = release_days(session, due_days, checked.sums)
    if released.refusal is None:
        done()
    publish_folder(released.session, due_days)
    done()
    report: ReportOutcome | None = write_reports(released.session, checked)
    done()
    if not isinstance(released.refusal, Refused | None):
        raise released.refusal
    return RunSummary(released.session, due_days, checked, released.rows, report, released.refusal)


def _date(as_of: date | str | None) -> date | None:
    """Return a date from a date, an instant (as data frames contain) or ISO text."""
    if isinstance(as_of, str):
        try:
            return date.fromisoformat(as_of)
        except ValueError:
            raise RunFileError(f'as_of = {as_of!r}: must be a date such as "2026-04-01"') from None
    return as_of.date() if isinstance(as_of, datetime) else as_of


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
    context: CalibrationContext = begin_calibration(run_file, scheduler=scheduler, progress=progress)
    with context.store.locked():
        if (stored := stored_calibration(context)) is not None:  # perhaps by a calibration that was first
            return stored
        period: Period = load(context)
        edges: Floats = quantize_households(context, period)
        transitions: Transitions = estimate_transitions(context, period, edges)
        return bound_mixing(context, period, edges, transitions)


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
        check_model_is_new(model)
    engine = engine_for(run, scheduler, progress)
    roster = read_roster(run.population.roster)
    check_counts_fit(model, len(roster.ids))
    session = _selection_session(run, model, roster, engine) if model.is_private and not is_stored else None
    store = store_for(run, households=len(roster.ids))
    if f"{model.period[0]:%Y-%m}" < store.retained_from():
        raise InputError(
            f"[model] period begins in {model.period[0]:%Y-%m}, but readings before {store.retained_from()} were "
            "deleted ([engine] keep_days); name another confidential folder to read them again"
        )
    return CalibrationContext(run, model, roster, store, engine, session)


def _selection_session(run: RunFile, model: EstimatedModel, roster: Roster, engine: Engine) -> LedgerSession:
    """Return the session in which a model is selected privately, after all refusals that need no reading."""
    households = int(is_on_roster(roster, model.period).sum())
    check_selection_possible(model, households)
    session = open_calibration_session(run, roster, engine)
    check_draws_permitted(session, model, questions(model, _input_terms(run), households))
    return session


def _input_terms(run: RunFile) -> Mapping[str, Any]:
    """Return the rules for reading the input files as a contract contains them; public, without paths."""
    terms: Mapping[str, Any] = contract_part(run, model=None)["input"]
    return terms


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
    run, roster = context.run, context.roster
    delivery = ingest(context.store, run.input.files, engine=context.engine, excluding=[run.population.roster])
    return Period(context.store, delivery, roster, *context.model.period)


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
    if context.session is None:
        return _with_check(context, bound(transitions, edges, context.roster, model), memory)
    session, terms = context.session.checked(create=True), _input_terms(run)
    model_questions = questions(model, terms, int(is_on_roster(context.roster, model.period).sum()))
    check_draws_permitted(session, model, model_questions)
    before = len(session.stored_draws)
    answer = ledger_answer(session, model)
    calibration = bound(
        transitions,
        edges,
        context.roster,
        model,
        input_terms=terms,
        population=run.population.name,
        answer=answer,
    )
    if session.accounts is not None:
        session.accounts.prepare(session.open_ledger, context.roster, ())
    draws = session.stored_draws
    drawn = len(draws) - before
    summary = DrawSummary(drawn, len(model_questions) - drawn, len(draws), sum(draw.loss for draw in draws))
    return replace(_with_check(context, calibration, memory), draws=summary)


def _with_check(context: CalibrationContext, calibration: Calibration, memory: MemoryCurves) -> Calibration:
    """Return a calibration with the check of its model, whose verdict is kept for the runs that use the model."""
    write_verdict(Path(context.run.output.confidential), calibration.model.id, memory.verdict)
    return replace(calibration, memory=memory)


def _steps(model: EstimatedModel, period: Period) -> Period:
    return replace(period, step=model.step)
