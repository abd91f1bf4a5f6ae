"""Contracts of a population -> models in force, closed days of each series, and the day budget under every such model.

The release that is planned with a day's budget is here too (`plan_release`). Contracts give the models in force, the
series of each contract and the days that are closed for each series.

A day with zero budget is skipped if its own budget can never recover while later days still have some: the other series
of the day have spent it (with an amendment between them), or nearby days have, under a notion whose bound moves with
the day of the data. If later days would have zero budget as well (`epsilon_total`, or a bound over all releases), the
series has ended and the release is refused.

Decisions:

* The remaining budget of a day never grows: the ledger only grows, and a contract is only tightened. (With a clock of
  publication days it might grow, but then a backlog would delay the following days.)
* All of this follows from contract and ledger alone, so a skipped day reveals nothing about a reading.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from fractions import Fraction

from agedp.effective_promise import DISTANT_DAY, DayBudget, EffectivePromise
from agedp.stage_values import DueDay, PlannedRelease
from agedp_data import mechanisms
from agedp_data.config import RunFile
from agedp_data.config.model_section import EstimatedModel, ModelSection
from agedp_data.config.schedule import ScheduleSection
from agedp_data.config.withdrawn import withdrawn_from_run_file
from agedp_data.epsilon import NANO, format_epsilon
from agedp_data.errors import LedgerError, Refused, RunFileError
from agedp_data.leakage.bound_table import LeakageBound
from agedp_data.ledger import ContractRecord, Ledger, ModelRecord, ReleaseRecord
from agedp_data.ledger.release_headers import AnyRelease
from agedp_data.model import Model
from agedp_data.notions.notion import HistoryRow, Notion
from agedp_data.notions.period_loss import PeriodLoss, total_charge
from agedp_data.notions.publication import Publication
from agedp_data.notions.span_curves import DISCRETE_LAPLACE
from agedp_data.series.load_profile import period_slots
from agedp_data.series.periods import days_of
from agedp_data.series.series import AnySeries


def check_same_mode(schedule: ScheduleSection, contracts: Iterable[ContractRecord]) -> None:
    """Check that releases, rehearsals on readings and rehearsals on synthetic households have a ledger each.

    Raises:
        LedgerError: a contract of the ledger is of another of these modes than the run file.
    """
    for contract in contracts:
        registered = contract.terms.schedule
        if (registered.mode == "rehearsal") != (schedule.mode == "rehearsal"):
            raise LedgerError("a rehearsal needs a ledger of its own; name another in [output] ledger")
        if registered.reads_input != schedule.reads_input:
            raise LedgerError(
                "rehearsals on synthetic households and on readings need a ledger each; name another in [output] ledger"
            )


def check_nothing_withdrawn(run: RunFile, contracts: Sequence[ContractRecord]) -> None:
    """Check that a run file uses nothing that this version withdrew, but for what its contract in force names.

    Raises:
        RunFileError: it does; the message names the version that had it, and what to use.
    """
    for sentence in withdrawn_from_run_file(run, contracts[-1].terms if contracts else None):
        raise RunFileError(f"{run.name}: {sentence}")


def binding_models(ledger: Ledger, population: str) -> dict[str, LeakageBound]:
    """Return the leakage bound of every model that a contract of the population ever named, by id, oldest first.

    A model stays in force whether or not a row was charged under it: a series that stopped under a newer model must not
    continue because the older one was restored.

    Raises:
        LedgerError: a named model is missing from the ledger.
    """
    return models_in_force(ledger.models(), ledger.contracts(population), ledger.history(population))


def models_in_force(
    models: Iterable[ModelRecord], contracts: Iterable[ContractRecord], rows: Iterable[AnyRelease]
) -> dict[str, LeakageBound]:
    """Return the leakage bounds of `binding_models` from the rows of one population.

    Raises:
        LedgerError: a named model is missing.
    """
    stored = {model.model: model.envelope for model in models}
    model_ids = [contract.terms.model_hash for contract in contracts]
    needed = dict.fromkeys([*filter(None, model_ids), *(row.model for row in rows if row.model)])
    if not needed.keys() <= stored.keys():
        raise LedgerError("the ledger lacks a model that its contracts name; put back a good copy")
    return {model: Model.from_text(stored[model]).leakage_bound for model in needed}


def estimation_periods(models: Iterable[ModelSection | None]) -> list[str]:
    """Return the periods, "first to last", of those of these models that are published without noise, oldest first."""
    periods = [model.period for model in models if isinstance(model, EstimatedModel) and not model.is_private]
    return sorted({f"{first} to {last}" for first, last in periods})


def series_by_contract(contracts: Sequence[ContractRecord]) -> dict[str, Mapping[str, AnySeries]]:
    """Return the series of every contract, by the contract's hash."""
    return {contract.hash: contract.terms.series for contract in contracts}


def closed_days(
    rows: Sequence[AnyRelease], contracts: Sequence[ContractRecord], further: Collection[str] | None = None
) -> set[tuple[str, str]]:
    """Return (day, series) of released days, and of those that never will be: a series begins after earlier releases.

    A series that was ended and added again begins after the days released before the contract that added it again. A
    row releases all days that it covers: their readings may be deleted with it. `further` are the series of a contract
    that is still to come.
    """
    since: dict[str, int] = {}
    previous_names: set[str] = set()
    next_seq = max((row.seq for row in rows), default=0) + 1
    coming = [] if further is None else [(next_seq, further)]
    for seq, names in [*((contract.seq, contract.terms.series) for contract in contracts), *coming]:
        since |= dict.fromkeys(set(names) - previous_names, seq)
        previous_names = set(names)
    closed = {(row.day, row.series) for row in rows}
    if all(row.seq > seq for row in rows for seq in since.values()):
        return closed
    return closed | {
        (day, series)
        for row, days in days_by_row(rows, contracts)
        for series, seq in since.items()
        if row.seq < seq
        for day in days
    }


def days_by_row(
    rows: Iterable[AnyRelease], contracts: Sequence[ContractRecord]
) -> Iterator[tuple[AnyRelease, tuple[str, ...]]]:
    """Yield each row with the days that it covers, ISO text: its own day, or all days of a week, month or year."""
    covered = Publication(earlier=series_by_contract(contracts)).covered_days
    for row in rows:
        first, last = covered(row)
        days = () if first == last else days_of(date.fromisoformat(first), date.fromisoformat(last))
        yield row, tuple(day.isoformat() for day in days) or (row.day,)


@dataclass(frozen=True, slots=True)
class ReleaseTerms:
    """Terms of every release of a run: notion, leakage bounds, and the hashes of contract and model in the ledger.

    `leakage_bound` is the newest model's; `earlier_models` are all others that a contract ever named, by id. A release
    must be permitted under each of them, so no new model relaxes a promise.
    """

    run: RunFile
    leakage_bound: LeakageBound | None = None
    earlier_models: Mapping[str, LeakageBound] = field(default_factory=dict)
    contract: str = ""
    model: str = ""

    @property
    def notion(self) -> Notion:
        """Return the promise as it is enforced."""
        return self.run.notion

    @property
    def leakage_bounds(self) -> tuple[LeakageBound | None, ...]:
        """Return the leakage bounds of all models in force, the newest first."""
        return (self.leakage_bound, *self.earlier_models.values())

    @property
    def effective_promise(self) -> EffectivePromise:
        """Return the promise with all models in force."""
        return EffectivePromise(self.notion, self.leakage_bounds)


def check_charges_fit(terms: ReleaseTerms, charges: Iterable[PeriodLoss], rows: Sequence[HistoryRow]) -> None:
    """Check, before anything is drawn, that calibration draws leave the promise of a run file something to release.

    Args:
        terms: the run file's, with all models in force.
        charges: the losses of all draws about the population: those in the ledger, and those to be made.
        rows: what is released already.

    Raises:
        Refused: they break the promise with the rows, or leave nothing of a limit; the message names the key.
    """
    notion = terms.run.charging(charges).notion
    try:
        for leakage_bound in terms.leakage_bounds:
            notion.check_charges(rows, leakage_bound)
    except Refused as refused:
        raise Refused(f"{terms.run.name}: [promise] {refused}") from None


RELEASED = "released"


SKIPPED = "skipped"


NO_DELIVERY = "no delivery"


TOO_FEW = "fewer households on the roster than [population] min_households"


SKIP_DAYS = "[schedule] skip_days"


def plan_release(terms: ReleaseTerms, due: DueDay, series: str, history: Sequence[AnyRelease]) -> PlannedRelease:
    """Return the row that will be stored; a day without delivery, with too few households or no budget is skipped.

    The day budget is fixed before any series of the day is drawn, and shared among the series. Each share is rounded
    down, the noise scale up, and the recorded loss is that of the scale.

    Raises:
        Refused: the promise permits neither this release nor a later one; nothing was drawn.
    """
    if reason := _skip_reason(due, series):
        return _skipped(terms, due, series, reason)
    budget = _budget(terms, due, series, history)
    if budget.skipped:
        return _skipped(terms, due, series, budget.skipped)
    if budget.loss <= 0:
        raise Refused(f"{due.day}: {format_end_reason(terms, history)}; nothing was drawn")
    row = planned_row(terms, due, series, budget.loss)
    terms.effective_promise.admit(history, row)
    return PlannedRelease(row, Fraction(budget.loss, NANO))


def _budget(terms: ReleaseTerms, due: DueDay, series: str, history: Sequence[AnyRelease]) -> DayBudget:
    """Return the budget of a row; beside rows that cover several days, at most what the promise still admits."""
    statistic, promise, published_on = terms.run.series[series], terms.effective_promise, due.publish_on.isoformat()
    budget = promise.series_budget(history, due.day, published_on, name=series, series=statistic)
    if not terms.run.publication.has_periods:
        return budget
    return promise.largest_admitted(history, budget, lambda loss: planned_row(terms, due, series, loss))


def planned_row(terms: ReleaseTerms, due: DueDay, series: str, loss: int) -> ReleaseRecord:
    """Return the row of a release that has at most this loss [nano-epsilon]."""
    sensitivity = terms.run.series[series].row_sensitivity(due.day)
    scale = mechanisms.laplace_scale(sensitivity=sensitivity, loss=Fraction(loss, NANO))
    recorded_loss = mechanisms.recorded_loss(sensitivity=sensitivity, scale=scale)
    return _row(terms, due, series, state=RELEASED, scale=scale, loss=recorded_loss)


def _skip_reason(due: DueDay, series: str) -> str:
    """Return the public reason why a day is not drawn, "" if it is drawn."""
    if due.skipped:
        return SKIP_DAYS
    if due.given_up:
        return NO_DELIVERY
    return "" if due.cells[series] else TOO_FEW


def _skipped(terms: ReleaseTerms, due: DueDay, series: str, reason: str) -> PlannedRelease:
    return PlannedRelease(_row(terms, due, series, state=SKIPPED, scale=0.0, loss=0), Fraction(0), reason)


def format_end_reason(terms: ReleaseTerms, history: Sequence[AnyRelease]) -> str:
    """Return why a series has ended: its horizon, its total, or a promise that no loss keeps."""
    promise = terms.run.promise
    horizon: object = getattr(promise, "horizon_days", None)
    if isinstance(horizon, int) and len({row.day for row in history if row.loss}) >= horizon:
        return f"horizon_days = {horizon} days are released and the series is over"
    if obstacle := next(filter(None, map(terms.notion.obstacle, terms.leakage_bounds)), ""):
        return obstacle
    notion, draws = terms.notion, total_charge(terms.notion.charges)
    if notion.fits_total(history, DISTANT_DAY, promise.day_cap):
        models = sum(leakage_bound is not None for leakage_bound in terms.leakage_bounds)
        constraints = [
            *(["the days released so far"] if any(row.loss for row in history) else []),
            *(["the calibration draws"] if draws else []),
            *(["this model" if models == 1 else "each of its models, earlier ones included"] if models else []),
        ]
        constraints_text = f" with {' and '.join(constraints)}" if constraints else ""
        return f'no loss, however small, keeps the promise of notion = "{promise.notion}"{constraints_text}'
    total = f"epsilon_total = {promise.epsilon_total:f}{notion.at_delta}"
    part = format_epsilon(draws) if promise.delta is None else "a part"
    of_draws = f", {part} of it by calibration draws" if draws else ""
    spent = format_epsilon(notion.total(history))
    return f"the promise permits no further release: {spent} is spent{of_draws}, {total}"


def _row(terms: ReleaseTerms, due: DueDay, series: str, *, state: str, scale: float, loss: int) -> ReleaseRecord:
    statistic = terms.run.series[series]
    parts = due.cells[series] if state == RELEASED else ()
    slots = period_slots(terms.run.input.layout, *statistic.covered_days(due.day))
    cells = statistic.cells([part for part, _ in parts], slots=slots)
    return ReleaseRecord(
        population=terms.run.population.name,
        series=series,
        day=due.day.isoformat(),
        revision=0,
        state=state,
        cells=statistic.write_cells(cells),
        values=(),
        households=tuple(number for _, number in parts for _ in statistic.places(slots)),
        sensitivity=statistic.row_sensitivity(due.day),
        scale=scale,
        mechanism=DISCRETE_LAPLACE,
        loss=loss,
        input_ended_at=due.input_ended_at,
        published_on=due.publish_on.isoformat(),
        contract=terms.contract,
        model=terms.model,
    )
