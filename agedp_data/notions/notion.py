"""What a notion of privacy is: parameters of a promise, the budget of a day, and bounds of released rows.

Losses are integers in nano-epsilon (`epsilon`). A day's loss is the sum over its released rows, whatever their series:
all releases of a population enter every bound. Days are ISO text, as in the ledger.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from fractions import Fraction
from functools import partial
from math import ceil
from typing import TYPE_CHECKING, Annotated, ClassVar, Final, Literal, Protocol, Self, TypeVar

from pydantic import PrivateAttr

from agedp_data.amendment_rules import DELTA, LOWER, RAISE
from agedp_data.epsilon import floor_nano, format_delta
from agedp_data.leakage.function import LeakageBoundLike
from agedp_data.notions.publication import (
    Alternative,
    Comparison,
    Event,
    Events,
    Publication,
    ReleasedRow,
    covered_losses,
    day_number,
)
from agedp_data.parameters import FREE, LATER, Acceptances, AgeDays, Delta, Epsilon, Section, Total

# --------------------------------------------------------------------------------------------------
# What a notion says about itself, for every text that compares notions: one `NotionText` beside the notion's class.
#
# Options, proposals and tables go over `NOTIONS` and take the words from here, so that none of them knows a notion by
# name. Values are TOML text, as they are written into a run file.
# --------------------------------------------------------------------------------------------------

RESULTS: Final = "; every set of results at most e^epsilon times as probable, plus "
"""What a delta means, a part of the scope of a bound."""


@dataclass(frozen=True, slots=True)
class OwnBound:
    """The bound that a promise is about, as a statement names it, and its heading in a table.

    Both are templates over the keys of [promise]: "window of {window_days} days".
    """

    name: str
    heading: str

    def of(self, promise: Mapping[str, object]) -> tuple[str, str]:
        """Return name and heading for the promise of a contract.

        >>> OwnBound("risk", "risk at {age_days} days").of({"age_days": 2})
        ('risk', 'risk at 2 days')
        """
        return self.name.format_map(promise), self.heading.format_map(promise)


@dataclass(frozen=True, slots=True)
class NotionText:
    """Words and example values of one notion.

    `epsilon_key` is the key of [promise] in which it takes its epsilon. `typed` are the keys that say beside it what is
    protected: they never follow from an epsilon. `proposals` are the values that `agedp init` proposes for the notion's
    own keys; a key without one is proposed by its type. `option_help` is the help of the
    option of a key that no other notion has. `takes_delta`: a promised delta applies to the notion's own bound, and not
    to `epsilon_total` alone. `credit_remedy` says what to change where the own bound is hardly below the sum of the
    losses of all days. `past` is a sentence on what the notion does not undo, "" for none.
    """

    epsilon_key: str
    own_bound: OwnBound
    typed: tuple[str, ...] = ()
    proposals: Mapping[str, str] = field(default_factory=dict)
    option_help: Mapping[str, str] = field(default_factory=dict)
    takes_delta: bool = False
    credit_remedy: str = "another bound"
    past: str = ""


def name_at_delta(name: str, delta: Decimal | None) -> str:
    """Return the name of a bound over several days as an (epsilon, delta) bound; without delta its own name.

    Source: text, without a formula.

    Args:
        name: name of the bound of pure losses.
        delta: probability [-].

    >>> name_at_delta("total", Decimal("0.000001")), name_at_delta("total", None)
    ('total (delta 1e-6)', 'total')
    """
    return name if delta is None else f"{name} (delta {format_delta(delta)})"


def scope_at_delta(scope: str, delta: Decimal) -> str:
    """Return the scope of an (epsilon, delta) bound, with what its delta means; the text is stored and never changes.

    It is no bound on odds "but for a probability of delta": a loss above epsilon may be more probable than delta.

    Source: text, without a formula.

    Args:
        scope: scope of the bound of pure losses.
        delta: probability [-].

    >>> scope_at_delta("all days", Decimal("1e-6"))
    'all days; every set of results at most e^epsilon times as probable, plus 1e-6'
    """
    return f"{scope}{RESULTS}{format_delta(delta)}"


# --------------------------------------------------------------------------------------------------
# Rows, bounds, and the protocol of a promise.
# --------------------------------------------------------------------------------------------------

Kind = Literal["assumption-free", "conditional"]

ASSUMPTION_FREE: Final = "assumption-free"
DAY_BOUND: Final = "day"
TOTAL_BOUND: Final = "total"
CALIBRATION_DAY_BOUND: Final = "calibration day"


class HistoryRow(ReleasedRow, Protocol):
    """Fields of a release that a notion reads: a record of the ledger, or a planned release."""

    @property
    def population(self) -> str:
        """Name of the population."""

    @property
    def mechanism(self) -> str:
        """Name of the mechanism; "" for a planned release."""

    @property
    def input_ended_at(self) -> str:
        """UTC instant at which the day of the data ended, such as 2013-03-05T00:00:00Z."""

    @property
    def published_on(self) -> str:
        """UTC date of publication, ISO text."""


@dataclass(frozen=True, slots=True)
class LossBound:
    """One row of a statement: an upper bound on a loss, `value` in nano-epsilon, None if infinite or not available.

    `kind` is its class, assumption-free or conditional on `assumption`; `about` is its scope; `odds` tells whether
    e^value bounds a change of odds, which a sum of discounted losses does not. With `delta` it is the epsilon of an
    (epsilon, delta) bound.
    """

    name: str
    value: int | None
    kind: Kind
    about: str
    assumption: str = ""
    odds: bool = True
    delta: Decimal | None = None


class Accountant(Protocol):
    """Bounds of released rows under one notion, whether or not that notion was promised.

    A statement shows the bounds of the promise's own accountant and of those that [compare] asks for.
    """

    @property
    def name(self) -> str:
        """The notion."""

    def bounds(
        self, history: Sequence[HistoryRow], leakage_bound: LeakageBoundLike | None, at: str | None
    ) -> list[LossBound]:
        """Return the bounds of all released rows, rounded up; `at` (ISO date) is the first instant that they cover."""


class Notion(Accountant, Protocol):
    """A promise: the budget of each day, a veto on every release, and its bounds.

    The ledger calls `loss` before a draw and `admit` within its transaction; a release that breaks the promise is
    refused before noise is drawn.
    """

    def obstacle(self, leakage_bound: LeakageBoundLike | None) -> str:
        """Return why no positive loss keeps the promise under a model and how to change it; "" if one does."""

    @property
    def slides(self) -> bool:
        """Whether the bound is on days near each other: a day without a budget may be followed by days with one."""

    @property
    def limits(self) -> dict[str, int | None]:
        """Upper bound over future releases by name of the bound [nano-epsilon]; None if unlimited."""

    @property
    def charges(self) -> Events:
        """Losses of the population's calibration draws, which count in every bound."""

    @property
    def remark(self) -> str:
        """Sentence for the plan about the promise and its caps; "" for none."""

    @property
    def row_remedy(self) -> str:
        """Key of the promise that gives a row about several days more of the same bound, with why; "" for none."""

    @property
    def at_delta(self) -> str:
        """Promised delta for messages about sums over several days, "" without one."""

    def part_of_day(self, series: str, share: Fraction) -> Fraction:
        """Return the part of a day's budget that a series with this share gets."""

    def names_day(self, history: Sequence[HistoryRow], day: str) -> bool:
        """Return whether a released row of a history is named by a day."""

    def total(self, history: Sequence[HistoryRow]) -> int:
        """Return the loss of all rows and draws that `epsilon_total` bounds [nano-epsilon], at the promised delta."""

    def fits_total(self, history: Sequence[HistoryRow], day: str, loss: int) -> bool:
        """Return whether `epsilon_total` permits this loss of the whole of `day` [nano-epsilon], beside other days."""

    def loss(
        self,
        history: Sequence[HistoryRow],
        day: str,
        leakage_bound: LeakageBoundLike | None,
        published_on: str | None = None,
    ) -> int:
        """Return what the day may still spend, beyond what its rows in `history` have spent, rounded down.

        `published_on` (ISO date) matters to promises that count days of publication; without it, the newest so far.
        """

    def planned_series(self, days: Sequence[str], leakage_bound: LeakageBoundLike | None) -> list[int]:
        """Return the loss of each of `days` (ISO dates), if all are released in order, up to the end of the series."""

    def planned_period(
        self, history: Sequence[HistoryRow], first: date, last: date, leakage_bound: LeakageBoundLike | None
    ) -> int:
        """Return the loss of which a row about the days from `first` to `last` may have its share [nano-epsilon]."""

    def admit(self, history: Sequence[HistoryRow], new_row: HistoryRow, leakage_bound: LeakageBoundLike | None) -> None:
        """Raise Refused, with the day, the bound and the excess, if `new_row` would break the promise."""

    def review(self, history: Sequence[HistoryRow], leakage_bound: LeakageBoundLike | None) -> None:
        """Raise Refused if the released days already break the promise under this leakage bound (a newer model's)."""

    def check_charges(self, history: Sequence[HistoryRow], leakage_bound: LeakageBoundLike | None) -> None:
        """Raise Refused if the calibration draws break the promise, or leave nothing for a day to be released."""

    def violations(self, history: Sequence[HistoryRow], leakage_bound: LeakageBoundLike | None) -> Mapping[str, str]:
        """Return the parameters that the released days break for ever, each with the reason: the series has ended."""

    def exceeded_spans(self, history: Sequence[HistoryRow]) -> Mapping[str, str]:
        """Return the keys of bounds over several days that the released days exceed, each with the reason."""


class Promise(Section):
    """Parameters common to all notions: the notion and the caps, which no model relaxes."""

    name: ClassVar[str]
    needs_model: ClassVar[bool] = False
    composes_ahead: ClassVar[bool] = False
    slides: ClassVar[bool] = False
    TEXT: ClassVar[NotionText]
    """Wording and example values of the notion."""

    notion: str
    """Which promise is made; one of six."""
    age_days: Annotated[AgeDays | None, RAISE] = None
    """Age of a day at its release, in days; required for "live", "rehearsal" and "age-dependent"."""
    max_day_epsilon: Annotated[Epsilon, LOWER]
    """Cap on the epsilon of a day. No model, age or discount raises it."""
    epsilon_total: Annotated[Total, LOWER]
    """Cap on the sum of epsilon over all days, at which the series ends."""
    delta: Annotated[Delta | None, LATER, DELTA] = None
    """Probability in the bounds over several days (`epsilon_total`, `epsilon_per_window` of w-event, `alpha`), which
    are (epsilon, delta) bounds with it; the caps of a day stay pure.
    """
    accept: Annotated[Acceptances | None, FREE] = None
    """Causes that refuse a first release, accepted in writing: "no-credit" (the notion's bound is at least 0.95 of the
    sum of all losses), "useless" (no span has a 90 % interval below 25 % of the yardstick's mean), "total" (the sum of
    all losses, or the epsilon of a window, is above 20). Read at the first registration only.
    """

    _publication: Publication = PrivateAttr(default=Publication())

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            """Return a private attribute, many for each day, three times faster than pydantic."""
            private = object.__getattribute__(self, "__pydantic_private__")
            return private[name] if private is not None and name in private else super().__getattr__(name)

    @property
    def day_cap(self) -> int:
        """Return the cap of any one day, whole 1e-9 epsilon."""
        return floor_nano(self.max_day_epsilon)

    @property
    def total_cap(self) -> int | None:
        """Return the sum at which the series ends, whole 1e-9 epsilon; None if unlimited."""
        return None if self.epsilon_total == "unlimited" else floor_nano(self.epsilon_total)

    @property
    def charges(self) -> Events:
        """Return the losses of the population's calibration draws."""
        return self._publication.charges

    @property
    def limits(self) -> dict[str, int | None]:
        """Return the upper bound over future releases by name of the bound [nano-epsilon]; None if unlimited.

        With `delta` the total is limited at that delta, the sum of the pure losses is not.
        """
        if self.delta is None:
            return {DAY_BOUND: self.day_cap, TOTAL_BOUND: self.total_cap}
        return {DAY_BOUND: self.day_cap, TOTAL_BOUND: None, name_at_delta(TOTAL_BOUND, self.delta): self.total_cap}

    @property
    def remark(self) -> str:
        """Return a sentence for the plan about the promise and its caps; "" for most notions."""
        return ""

    @property
    def row_remedy(self) -> str:
        """Return the key that gives a row about several days more of the same bound; "" for most notions."""
        return ""

    @property
    def requires_model(self) -> bool:
        """Return whether this promise cannot be kept without a model."""
        return self.needs_model

    @property
    def needs_period(self) -> bool:
        """Return whether days can be planned only for a period with a known last day."""
        return False

    def for_publication(self, publication: Publication) -> Self:
        """Return this promise over what is published, the losses of calibration draws among it."""
        promise = self.model_copy()
        promise._publication = publication
        return promise

    def part_of_day(self, series: str, share: Fraction) -> Fraction:
        """Return the part of a day's budget that a series with this share gets: for most notions the share."""
        del series
        return share

    @property
    def shared_quantity(self) -> str:
        """Return the quantity that several series share, in words."""
        return "each day's epsilon"

    @property
    def opening(self) -> str:
        """Return the first sentence of a statement about this promise; "" for most notions."""
        return ""

    def obstacle(self, leakage_bound: LeakageBoundLike | None) -> str:
        """Return why no positive loss keeps this promise under a model and how to change it; "" if one does."""
        del leakage_bound
        return ""

    @classmethod
    def comparison_accountants(cls, comparison: Comparison) -> tuple[Accountant, ...]:
        """Return the accountants of this notion whose bounds the run file asks for beside its promise."""
        del comparison
        return ()

    @classmethod
    def candidates(cls, comparison: Comparison) -> tuple[Alternative, ...]:
        """Return the rules by which this notion guarantees a given bound for this run file, the promised one first.

        Parameters that the run file's promise does not imply are those of [compare].
        """
        del comparison
        return ()

    def alternatives(self, days: int) -> dict[str, float]:
        """Return the mean noise scale over `days` days by schedule [multiple of the clamp], the promised one first."""
        del days
        return {}


def day_losses(history: Iterable[HistoryRow]) -> dict[str, int]:
    r"""Return the loss of each day of the data [nano-epsilon]: the sum over its released rows.

    .. math:: \varepsilon_d = \sum_{k :\, day_k = d} \varepsilon_k

    Source: sequential composition, [A] Proposition 2.

    Args:
        history: rows of the ledger; rows that were not released spend nothing.

    Returns:
        Loss by ISO date [nano-epsilon].

    References:
        [A] https://doi.org/10.1109/TIT.2023.3340147
    """
    losses: dict[str, int] = {}
    for row in history:
        if row.state == "released":
            losses[row.day] = losses.get(row.day, 0) + row.loss
    return losses


def losses_about_days(history: Sequence[HistoryRow], publication: Publication) -> dict[str, int]:
    """Return the loss about each day [nano-epsilon]: a row counts in full on every day that it covers.

    Source: sequential composition, as `day_losses` and `covered_losses`.

    Args:
        history: rows of the ledger.
        publication: the series of all contracts.
    """
    rows, events = publication.parted(history)
    return covered_losses(day_losses(rows), events)


def losses_by_day_number(losses: Mapping[str, int]) -> dict[int, int]:
    """Return losses by the number of the day instead of its ISO text.

    Source: calendar arithmetic (`day_number`).

    Args:
        losses: loss by ISO date [any unit].

    Returns:
        Loss by day number [unit of `losses`].

    >>> losses_by_day_number({"0001-01-01": 5, "0001-02-01": 7})  # January has 31 days
    {1: 5, 32: 7}
    """
    return {day_number(day): loss for day, loss in losses.items()}


# --------------------------------------------------------------------------------------------------
# What is measured of a growing history: a row is read once, and taken back where the next history does not have it.
#
# A promise is asked about a history, the history with one more row, and the history without its newest day, in turn for
# every day of a series. So what one row changed is kept with it and undone exactly, and losses of all days are handed
# on as they are, but for one day (`but`), without a copy.
# --------------------------------------------------------------------------------------------------

_Key = TypeVar("_Key", str, int)
Undo = Callable[[], object]


class Remembered:
    """What was computed before: equal to any other, so that promises with equal parameters are equal."""

    def __eq__(self, other: object) -> bool:
        """Return whether the other one remembers the same kind of thing."""
        return isinstance(other, type(self))

    __hash__ = None  # type: ignore[assignment]


class HistoryMeter(Remembered, ABC):
    """Something that is measured of the released rows of a history, row by row."""

    def __init__(self) -> None:
        self._rows: tuple[HistoryRow, ...] = ()
        self._undos: list[Undo | None] = []

    @abstractmethod
    def add(self, row: HistoryRow) -> Undo:
        """Measure a released row; return what takes it back."""

    def read(self, history: Sequence[HistoryRow]) -> Self:
        """Measure a history: what differs from the one before is taken back, and the rest of it is added."""
        if history is self._rows:
            return self
        rows = tuple(history)
        count = min(len(rows), len(self._rows))
        if rows[:count] != self._rows[:count]:
            count = next(i for i in range(count) if rows[i] != self._rows[i])
        while len(self._undos) > count:
            undo = self._undos.pop()
            if undo is not None:
                undo()
        try:
            for row in rows[count:]:
                self._undos.append(self.add(row) if row.state == "released" else None)
        finally:
            self._rows = rows[: len(self._undos)]  # all of them, unless one cannot be measured
        return self


class DayLosses(dict[_Key, int]):
    """Loss of each day [nano-epsilon], with their sum, the number of days with a loss, and the order of the days.

    >>> losses = DayLosses[str]()
    >>> losses.put("2013-01-01", 5), losses.put("2013-01-02", 7)
    (None, None)
    >>> losses.total, losses.but("2013-01-02", 1).total, losses.but("2013-01-02").released
    (12, 6, 1)
    """

    def __init__(self) -> None:
        super().__init__()
        self.total = self.released = 0
        self.order: list[_Key] = []
        """The days, in the order in which they came."""
        self.is_ascending = True
        self.changes: list[_Key] = []
        """The days whose loss was put, in order: who looked at the first n of them looks at the rest."""

    def put(self, day: _Key, loss: int | None) -> None:
        """Set the loss of a day; None: there is none."""
        before = self.get(day)
        self.total += (loss or 0) - (before or 0)
        self.released += bool(loss) - bool(before)
        self.changes.append(day)
        if loss is not None:
            if before is None:
                self.is_ascending = not self.order or (self.is_ascending and day > self.order[-1])
                self.order.append(day)
            self[day] = loss
        elif before is not None:
            del self[day]
            del self.order[-1 if self.order[-1] == day else self.order.index(day)]

    @property
    def newest(self) -> _Key | None:
        """Return the newest day; None without one."""
        return self.order[-1] if self.order and self.is_ascending else max(self, default=None)

    def without(self, day: _Key) -> DayLosses[_Key] | DayApart[_Key]:
        """Return the losses of all days but one."""
        return self.but(day) if day in self else self

    def but(self, day: _Key, loss: int | None = None) -> DayApart[_Key]:
        """Return these losses with another loss of one day, or without it; they change as these do."""
        return DayApart(self, day, loss)


@dataclass(frozen=True, slots=True)
class DayApart(Mapping[_Key, int]):
    """Losses of days with another loss of one day, None: without it."""

    others: DayLosses[_Key]
    day: _Key
    loss: int | None

    def __getitem__(self, day: _Key) -> int:
        """Return the loss of a day."""
        if day != self.day:
            return self.others[day]
        if self.loss is None:
            raise KeyError(day)
        return self.loss

    def __iter__(self) -> Iterator[_Key]:
        """Yield the days."""
        yield from (day for day in self.others if day != self.day)
        if self.loss is not None:
            yield self.day

    def __len__(self) -> int:
        """Return the number of days."""
        return len(self.others) - (self.day in self.others) + (self.loss is not None)

    @property
    def total(self) -> int:
        """Return the sum of all losses [nano-epsilon]."""
        return self.others.total - self.others.get(self.day, 0) + (self.loss or 0)

    @property
    def released(self) -> int:
        """Return the number of days with a loss."""
        return self.others.released - bool(self.others.get(self.day)) + bool(self.loss)


Losses = DayLosses[str] | DayApart[str]
"""Losses by ISO date [nano-epsilon]."""


class ChangedDays:
    """The days of which a loss changed since the losses were last looked at, for what is composed of all of them."""

    def __init__(self) -> None:
        self._losses: DayLosses[str] | None = None
        self._seen = 0
        self._apart = ""

    def since(self, losses: Mapping[str, int]) -> set[str] | None:
        """Return the days that may differ from the losses of the last call; None: all of them.

        Of losses that are not those of a growing history it is not known.
        """
        if not isinstance(losses, DayLosses | DayApart):
            self._losses = None
            return None
        others, apart = (losses.others, losses.day) if isinstance(losses, DayApart) else (losses, "")
        days = None if others is not self._losses else {*others.changes[self._seen :], self._apart, apart} - {""}
        self._losses, self._seen, self._apart = others, len(others.changes), apart
        return days

    def forget(self) -> None:
        """Take the losses of the next call for new ones."""
        self._losses = None


class LossMeter(HistoryMeter):
    r"""Loss of each day of a growing history [nano-epsilon]; rows that cover several days are `periods`.

    .. math:: \varepsilon_d = \Bigl\lceil \sum_{k \in d} p_k \varepsilon_k \Bigr\rceil

    `part_of` is the part p of a row's loss that counts, by default all of it. Parts of one day add up exactly.
    """

    def __init__(
        self, publication: Publication | None = None, part_of: Callable[[HistoryRow], Fraction] | None = None
    ) -> None:
        super().__init__()
        self._publication = publication if publication is not None and publication.has_periods else None
        self._part_of = part_of
        self._exact: dict[str, Fraction | int] = {}
        self.losses = DayLosses[str]()
        self.periods: list[Event] = []
        self.ended: dict[str, str] = {}
        """Instant at which the input of each day ended that a row is named by, as its first row has it."""

    def add(self, row: HistoryRow) -> Undo:
        """Add the loss of a row to its day, or the row to the periods."""
        day, is_first = row.day, row.day not in self.ended
        self.ended.setdefault(day, row.input_ended_at)
        period = None if self._publication is None else self._publication.period_of(row)
        if period is not None:
            self.periods.append(period)
            undo: Undo = self.periods.pop
        else:
            undo = partial(self._put, day, self._exact.get(day))
            self._put(day, self._with(row))
        return partial(self._take_back, day, is_first, undo)

    def losses_with(self, row: HistoryRow) -> Losses:
        """Return the losses if a released row came to the history; one about several days is none of them."""
        if self._publication is not None and self._publication.period_of(row):
            return self.losses
        return self.losses.but(row.day, ceil(self._with(row)))

    def _with(self, row: HistoryRow) -> Fraction | int:
        part = 1 if self._part_of is None else self._part_of(row)
        return self._exact.get(row.day, 0) + row.loss * part

    def _put(self, day: str, exact: Fraction | int | None) -> None:
        if exact is None:
            del self._exact[day]
        else:
            self._exact[day] = exact
        self.losses.put(day, None if exact is None else ceil(exact))

    def _take_back(self, day: str, is_first: bool, undo: Undo) -> None:
        undo()
        if is_first:
            del self.ended[day]


class TickMeter(HistoryMeter):
    """Loss of each day of a growing history, by the number of the day of the data, or of the date of publication."""

    def __init__(self, by: Literal["day", "published_on"]) -> None:
        super().__init__()
        self._by = by
        self.losses = DayLosses[int]()

    def add(self, row: HistoryRow) -> Undo:
        """Add the loss of a row to its tick."""
        tick = self.tick(row)
        before = self.losses.get(tick)
        self.losses.put(tick, (before or 0) + row.loss)
        return partial(self.losses.put, tick, before)

    def tick(self, row: HistoryRow) -> int:
        """Return the number of the day that counts of a row."""
        return day_number(row.day if self._by == "day" else row.published_on)


def compared_accountants(notions: Sequence[type[Promise]], comparison: Comparison) -> tuple[Accountant, ...]:
    """Return the accountants of these notions whose bounds a run file asks for beside its promise.

    Source: data structure, without a formula.

    Args:
        notions: the notions.
        comparison: settings of the run file, with what is published.
    """
    return tuple(accountant for notion in notions for accountant in notion.comparison_accountants(comparison))
