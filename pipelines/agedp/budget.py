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
* The smallest number of households of a group on a covered day must reach min_households. What is published of a
  group is a mean over its household-days: the households on the roster, added over the days.
* A period with a day in skip_days, or with one whose delivery never came, is skipped as a whole: its sum would be of
  fewer days than it names.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Protocol

from agedp_data import mechanisms
from agedp_data.accounting.temporal_allocation import largest_feasible
from agedp_data.config import RunFile
from agedp_data.config.model_section import EstimatedModel, ModelSection
from agedp_data.config.schedule import ScheduleSection
from agedp_data.epsilon import NANO, format_epsilon
from agedp_data.errors import LedgerError, Refused
from agedp_data.leakage.bound_table import LeakageBound
from agedp_data.ledger import ContractRecord, ModelRecord, ReleaseRecord
from agedp_data.ledger.records import AnyRelease
from agedp_data.model import Model
from agedp_data.notions.notion import HistoryRow, Notion
from agedp_data.notions.publication import Event, Publication, share_of, total_charge
from agedp_data.notions.spans import DISCRETE_LAPLACE
from agedp_data.roster import GroupColumns
from agedp_data.series.profile import period_slots
from agedp_data.series.series import AnySeries
from agedp_data.series.series_terms import Cell, days_of

if TYPE_CHECKING:
    from agedp.stage_values import Cells, DueDay

# --------------------------------------------------------------------------------------------------
# A promise with the leakage bounds of all models in force: budgets that keep it, and what it still admits.
#
# A day with zero budget is skipped if its own budget can never recover while later days still have some (`budget`).
# Beside rows that cover several days a budget is lowered to what the promise admits, because such a row counts on days
# whose own rows were planned without it.
# --------------------------------------------------------------------------------------------------

WHOLE_DAY: Final = Fraction(1)
OTHER_SERIES: Final = "the other series have spent the budget of the day"
DAYS_NEAR: Final = "releases of neighbouring days have spent the budget"
SAME_DAYS: Final = "other rows about the same days have spent the budget"

DISTANT_DAY: Final = date.max.isoformat()
"""A day that is outside of every window of the series."""


@dataclass(frozen=True, slots=True)
class DayBudget:
    """Budget of a series for a day [nano-epsilon]; if zero, `skipped` is the reason why only this day is skipped.

    A zero budget without a reason means that the series has ended.
    """

    loss: int
    skipped: str = ""


@dataclass(frozen=True, slots=True)
class EffectivePromise:
    """A promise and the leakage bounds of all models in force: a release must be permitted under each of them."""

    notion: Notion
    leakage_bounds: tuple[LeakageBound | None, ...]

    def loss(self, history: Sequence[HistoryRow], day: str, published_on: str) -> int:
        """Return the remaining budget of a day, after its rows in `history` [nano-epsilon]."""
        return min(self.notion.loss(history, day, leakage_bound, published_on) for leakage_bound in self.leakage_bounds)

    def admit(self, history: Sequence[HistoryRow], row: HistoryRow) -> None:
        """Check that `row` after `history` keeps the promise.

        Raises:
            Refused: it would break the promise under a model in force.
        """
        for leakage_bound in self.leakage_bounds:
            self.notion.admit(history, row, leakage_bound)

    def review(self, history: Sequence[HistoryRow]) -> None:
        """Check that the released rows keep the promise under models that were named later.

        Raises:
            Refused: they break it under one of them.
        """
        for leakage_bound in self.leakage_bounds if len(self.leakage_bounds) > 1 else ():
            self.notion.review(history, leakage_bound)

    def violations(self, history: Sequence[HistoryRow]) -> dict[str, str]:
        """Return the parameters of the promise that the released rows break permanently, each with the reason."""
        violations = [self.notion.violations(history, leakage_bound) for leakage_bound in self.leakage_bounds]
        return {key: reason for of_bound in violations for key, reason in of_bound.items()}

    def day_budget(
        self, history: Sequence[HistoryRow], day: str, published_on: str, *, share: Fraction = WHOLE_DAY
    ) -> DayBudget:
        """Return the budget of a series with this share of each day: its share, or less if others have spent it."""
        has_rows = self.notion.names_day(history, day)
        other_days = [row for row in history if row.day != day] if has_rows else history
        day_loss = self.loss(other_days, day, published_on)
        remaining = self.loss(history, day, published_on) if has_rows else day_loss
        loss = min(int(share * day_loss), remaining)
        if loss > 0:
            return DayBudget(loss)
        if day_loss > 0 and remaining <= 0:
            return DayBudget(0, OTHER_SERIES)
        if self.notion.slides and int(share * self.loss(history, DISTANT_DAY, DISTANT_DAY)) > 0:
            return DayBudget(0, DAYS_NEAR)
        return DayBudget(0)

    def series_budget(
        self, history: Sequence[HistoryRow], day: date, published_on: str, *, name: str, series: AnySeries
    ) -> DayBudget:
        """Return the budget of a series for its row of a day: its share of the day, or of the period that it covers."""
        part = self.notion.part_of_day(name, share_of(series))
        if series.covers_periods:
            return DayBudget(int(part * self.planned_period(history, *series.covered_days(day))))
        return self.day_budget(history, day.isoformat(), published_on, share=part)

    def planned_period(self, history: Sequence[HistoryRow], first: date, last: date) -> int:
        """Return the loss of which a row about these days may have its share, under every model in force."""
        return min(self.notion.planned_period(history, first, last, bound) for bound in self.leakage_bounds)

    def largest_admitted(
        self, history: Sequence[HistoryRow], budget: DayBudget, row_with: Callable[[int], HistoryRow]
    ) -> DayBudget:
        """Return a budget lowered to what the promise admits; where other rows have spent it, the row is skipped.

        Under a bound that does not move with the day, those rows are about days that it covers itself. A bound over all
        days is not a reason to skip: the series has ended then.
        """
        row = row_with(budget.loss) if budget.loss > 0 else None
        if row is None or self.admits(history, row):
            return budget
        if not self.notion.fits_total(history, DISTANT_DAY, budget.loss):
            return DayBudget(0)
        loss = largest_feasible(lambda loss: loss == 0 or self.admits(history, row_with(loss)), budget.loss)
        return DayBudget(loss) if loss > 0 else DayBudget(0, DAYS_NEAR if self.notion.slides else SAME_DAYS)

    def admits(self, history: Sequence[HistoryRow], row: HistoryRow) -> bool:
        """Return whether `row` after `history` keeps the promise."""
        try:
            self.admit(history, row)
        except Refused:
            return False
        return True


# --------------------------------------------------------------------------------------------------
# Contracts of a population -> models in force, closed days of each series, and the day budget under every such model.
# --------------------------------------------------------------------------------------------------


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


def models_in_force(
    models: Iterable[ModelRecord], contracts: Iterable[ContractRecord], rows: Iterable[AnyRelease]
) -> dict[str, LeakageBound]:
    """Return the leakage bound of every model that a contract of the population ever named, by id, oldest first.

    A model stays in force whether or not a row was charged under it: a series that stopped under a newer model must not
    continue because the older one was restored.

    Args:
        models: the models of the ledger.
        contracts: the contracts of the population.
        rows: its releases.

    Raises:
        LedgerError: a named model is missing from the ledger.
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


def check_charges_fit(terms: ReleaseTerms, rows: Sequence[HistoryRow], further: Iterable[Event] = ()) -> None:
    """Check, before anything is drawn, that calibration draws leave the promise of a run file something to release.

    Args:
        terms: the run file's, with all models in force and the draws in the ledger.
        rows: what is released already.
        further: the losses of draws that are to be made.

    Raises:
        Refused: they break the promise with the rows, or leave nothing of a limit; the message names the key.
    """
    notion = terms.run.charging((*terms.notion.charges, *further)).notion
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


@dataclass(frozen=True, slots=True)
class PlannedRelease:
    """A row to store, without its values, with the loss of its noise, or the reason why the day is skipped."""

    row: ReleaseRecord
    loss: Fraction
    skip_reason: str = ""


def plan_release(terms: ReleaseTerms, due: DueDay, series: str, history: Sequence[AnyRelease]) -> PlannedRelease:
    """Return the row that will be stored; a day without delivery, with too few households or no budget is skipped.

    The day budget is fixed before any series of the day is drawn, and shared among the series. Each share is rounded
    down, the noise scale up, and the recorded loss is that of the scale.

    Raises:
        Refused: the promise permits neither this release nor a later one; nothing was drawn.
    """
    budget = DayBudget(0, reason) if (reason := _skip_reason(due, series)) else _budget(terms, due, series, history)
    if budget.skipped:
        row = _row(terms, due, series, state=SKIPPED, scale=0.0, loss=0)
        return PlannedRelease(row, Fraction(0), budget.skipped)
    if budget.loss <= 0:
        raise Refused(f"{due.day}: {format_end_reason(terms, history)}")
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
    scale, recorded_loss = _noise(terms.run.series[series].row_sensitivity(due.day), loss)
    return _row(terms, due, series, state=RELEASED, scale=scale, loss=recorded_loss)


@lru_cache(maxsize=2**10)
def _noise(sensitivity: int, loss: int) -> tuple[float, int]:
    """Return the scale of the noise at a loss, and the loss that is recorded of it [nano-epsilon]."""
    scale = mechanisms.laplace_scale(sensitivity=sensitivity, loss=Fraction(loss, NANO))
    return scale, mechanisms.recorded_loss(sensitivity=sensitivity, scale=scale)


def _skip_reason(due: DueDay, series: str) -> str:
    """Return the public reason why a day is not drawn, "" if it is drawn."""
    if due.skipped:
        return SKIP_DAYS
    if due.given_up:
        return NO_DELIVERY
    return "" if due.cells[series] else TOO_FEW


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


# --------------------------------------------------------------------------------------------------
# Series whose rows cover a week, month or year: when they are due, and what they count of roster and sums.
#
# A period is published with its last day, after the series of that day. It is whole: all its days lie in the
# schedule's period, and none was released before the series began.
# --------------------------------------------------------------------------------------------------


def whole_periods(
    series: Mapping[str, AnySeries], day: date, *, since: date, skipped: Collection[date] = ()
) -> tuple[str, ...]:
    """Return the series that have a row of this day in a schedule that begins on `since`, single days first.

    Rows of periods with one of the `skipped` days are left out.
    """
    names = [name for name in series if _is_whole(series[name], day, since)]
    released = [
        name for name in names if not any(covered in skipped for covered in days_of(*series[name].covered_days(day)))
    ]
    return tuple(name for group in by_covered_days(series, released, day) for name in group)


def _is_whole(series: AnySeries, day: date, since: date) -> bool:
    first, last = series.covered_days(day)
    return day == last and first >= since


def due_series(run: RunFile, day: date, closed: Collection[tuple[str, str]]) -> tuple[str, ...]:
    """Return the series that have a row of this day, unless the row is in `closed`, which are (day, series).

    A series that covers periods has one if the day is the last of a period, and the period is whole.
    """
    return tuple(
        name
        for name, series in run.series.items()
        if _is_whole(series, day, run.schedule.first_day)
        and not any((covered.isoformat(), name) in closed for covered in days_of(*series.covered_days(day)))
    )


def by_covered_days(series: Mapping[str, AnySeries], names: Iterable[str], day: date) -> list[tuple[str, ...]]:
    """Return the series of a day by the days that they cover, those of the day itself first."""
    by_first: dict[date, list[str]] = {}
    for name in names:
        by_first.setdefault(series[name].covered_days(day)[0], []).append(name)
    return [tuple(by_first[first]) for first in sorted(by_first, reverse=True)]


class CountedRoster(Protocol):
    """A roster, as far as households are counted by group."""

    def cells(self, day: date, by: GroupColumns) -> tuple[tuple[str, int], ...]:
        """Return the groups of a column on a day and the number of households in each."""


def period_cells(
    roster: CountedRoster, by: GroupColumns, days: Sequence[date], min_households: int
) -> tuple[tuple[str, int], ...]:
    """Return the groups of a column with enough households on every covered day, each with its household-days."""
    by_day = [dict(roster.cells(covered, by)) for covered in days]
    groups = [group for group in by_day[-1] if all(cells.get(group, 0) >= min_households for cells in by_day)]
    return tuple((group, sum(cells[group] for cells in by_day)) for group in groups)


def row_cells(roster: CountedRoster, series: AnySeries, days: Sequence[date], min_households: int) -> Cells:
    """Return the parts of a row with their household-days: of groups as `period_cells`, by kind of day."""
    by_day = {day: dict(roster.cells(day, series.by)) for day in days}
    return tuple(
        (Cell(group, kind), sum(cells[group] for day, cells in by_day.items() if series.kind_of(day) == kind))
        for group, _ in period_cells(roster, series.by, days, min_households)
        for kind in series.kinds
    )


def covered_by(due: Iterable[DueDay], series: Mapping[str, AnySeries]) -> set[date]:
    """Return the days that the rows of these due days cover."""
    return {covered for covered, _ in days_of_rows(due, series)}


def days_of_rows(due: Iterable[DueDay], series: Mapping[str, AnySeries]) -> set[tuple[date, str]]:
    """Return the days and series whose sums the rows of these due days need."""
    return {
        (covered, name)
        for due_day in due
        for name in due_day.series
        for covered in days_of(*series[name].covered_days(due_day.day))
    }


def single_rows(series: Mapping[str, AnySeries], days: Iterable[date]) -> set[tuple[date, str]]:
    """Return these days with every series whose rows are about one day."""
    names = [name for name, of_name in series.items() if not of_name.covers_periods]
    return {(day, name) for day in days for name in names}


def next_unclosed_day(run: RunFile, rows: Sequence[AnyRelease], contracts: Sequence[ContractRecord]) -> date:
    """Return the first day of the period that is neither released nor skipped, or not by a row that is to cover it.

    A row that covers a week, month or year needs the readings of all its days.
    """
    closed, day = closed_days(rows, contracts), run.schedule.first_day
    periods = {name: series for name, series in run.series.items() if series.covers_periods}
    next_days = [
        _first_period_without(day, series, {of for of, closed_name in closed if closed_name == name})
        for name, series in periods.items()
    ]
    if len(periods) < len(run.series):
        done = {of for of, name in closed if name not in periods}
        while day.isoformat() in done:
            day += timedelta(days=1)
        next_days.append(day)
    return min(next_days)


def _first_period_without(day: date, series: AnySeries, done: Collection[str]) -> date:
    """Return the first day of the first whole period from this day on of which no day is in `done`, ISO texts."""
    while True:
        first, last = series.covered_days(day)
        if first >= day and not any(covered.isoformat() in done for covered in days_of(first, last)):
            return first
        day = last + timedelta(days=1)
