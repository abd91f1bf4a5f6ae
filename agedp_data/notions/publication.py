"""What is published under a promise: its series with their sensitivities, and the days of its schedule.

A notion that protects small changes better than large ones needs the loss of a change of a given size about each row.
A row's recorded loss is that of a change of any size, sensitivity/scale; a smaller change has the part
sensitivity(change)/sensitivity of it, by the series under which the row was charged.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import ROUND_FLOOR, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Literal, Protocol, Self, TypeVar

from agedp_data.parameters import SMALLEST_EPSILON, Method, Unlimited
from agedp_data.series.sensitivity import Change, Move
from agedp_data.series.series_terms import days_of

# --------------------------------------------------------------------------------------------------
# Events: a draw of a calibration is about all readings of a household in its period at once.
#
# A draw with loss e about a period P is e-differentially private in the household's readings of P taken together: for
# two accounts h, h' of them, Pr[draw | h] <= e^e Pr[draw | h']. Daily releases have their losses given the draw.
# Losses add (basic composition), and what is made of a draw adds nothing (post-processing). Hence a draw counts
#
# * once in the total: any change of the household's days changes what was drawn from once;
# * once in each window that touches P, however many of its days lie in P, and not in the others, for the same reason;
# * in the figure of each day of P, as that of a window of one day;
# * always in a figure about correlated days (risk, temporal leakage), inside or outside P. With x the secret, y the
#   releases and h all days of the household,
#
#   .. math:: \Pr[draw, y \mid x] = \sum_h \Pr[h \mid x] \Pr[draw \mid h] \Pr[y \mid h, draw]
#
#   in which Pr[draw | h] varies by a factor e^e at most over all h. Without it the sum is what the notion bounds, so
# the losses add whatever the chain;
# * always, and in full, in a discounted sum: no age of a draw is defined by which it could count less;
# * in full about a small change of a day: the draw bounds any change alike, a small one among them.
#
# So it is neither aged, discounted nor scaled. Several draws add up, and none is ever forgotten. Losses are whole
# nano-epsilon, days ISO text.
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, order=True)
class Event:
    """What one draw says about a household's readings from `first_day` to `last_day`, ISO dates.

    `pure` is its pure loss [nano-epsilon]. A "draw" of a calibration is about all readings of its period; a "row" is a
    released row, with its L1 sensitivity and noise scale.

    >>> Event("2012-01-01", "2012-12-31", 10**9).touches("2012-12-31")
    True
    """

    first_day: str
    last_day: str
    pure: int
    kind: Literal["draw", "row"] = "draw"
    sensitivity: int = 0
    scale: float = 0.0

    def touches(self, day: str) -> bool:
        """Return whether a day lies in the period."""
        return self.first_day <= day <= self.last_day


Events = tuple[Event, ...]
"""All calibration draws about a population, and the released rows that cover several days."""


def total_charge(events: Iterable[Event]) -> int:
    """Return the loss of all events together [nano-epsilon].

    Source: sequential composition, [A] Proposition 2.

    Args:
        events: draws and rows.

    References:
        [A] https://doi.org/10.1109/TIT.2023.3340147
    """
    return sum(event.pure for event in events)


def charge_on(events: Iterable[Event], day: str) -> int:
    """Return the loss of the events whose period contains a day [nano-epsilon].

    Source: sequential composition, [A] Proposition 2.

    Args:
        events: draws and rows.
        day: ISO date.

    References:
        [A] https://doi.org/10.1109/TIT.2023.3340147

    >>> charge_on([Event("2012-01-01", "2012-01-31", 5), Event("2012-01-31", "2012-02-01", 2)], "2012-01-31")
    7
    """
    return sum(event.pure for event in events if event.touches(day))


def covered_losses(losses: Mapping[str, int], events: Iterable[Event]) -> dict[str, int]:
    """Return the loss about each day [nano-epsilon]: a released row counts in full on every day that it covers.

    Source: sequential composition, [A] Proposition 2; calibration draws are left out.

    Args:
        losses: loss of each day by rows about one day [nano-epsilon].
        events: rows that cover several days.

    References:
        [A] https://doi.org/10.1109/TIT.2023.3340147

    >>> covered_losses({"2013-01-02": 5}, [Event("2013-01-01", "2013-01-02", 4, "row")])
    {'2013-01-02': 9, '2013-01-01': 4}
    """
    covered = dict(losses)
    for event in events:
        if event.kind == "row":
            for day in map(str, days_of(*map(date.fromisoformat, (event.first_day, event.last_day)))):
                covered[day] = covered.get(day, 0) + event.pure
    return covered


def largest_day(losses: Mapping[str, int], draws: Iterable[Event]) -> int:
    """Return the largest loss about a day with a loss, the draws whose period contains it among them [nano-epsilon].

    Source: sequential composition, [A] Proposition 2.

    Args:
        losses: loss about each day, as from `covered_losses` [nano-epsilon].
        draws: calibration draws.

    References:
        [A] https://doi.org/10.1109/TIT.2023.3340147

    >>> largest_day({"2013-01-02": 5, "2013-01-03": 6}, [Event("2013-01-01", "2013-01-02", 4)])
    9
    """
    draws = tuple(draws)
    return max((loss + charge_on(draws, day) for day, loss in losses.items()), default=0)


def format_periods(events: Iterable[Event]) -> str:
    """Return the periods of the draws, for sentences.

    Source: text, without a formula.

    Args:
        events: the draws.

    >>> format_periods([Event("2012-01-01", "2012-01-31", 5), Event("2012-01-01", "2012-01-31", 2)])
    '2012-01-01 to 2012-01-31'
    """
    return " or from ".join(sorted({f"{event.first_day} to {event.last_day}" for event in events}))


class Amount(Protocol):
    """What adds up over the days of a window: whole nano-epsilon, or a span with its curve."""

    def __add__(self, other: Self, /) -> Self:
        """Return both together."""

    def __neg__(self) -> Self:
        """Return what takes this away again."""


_Amount = TypeVar("_Amount", bound=Amount)


def window_sums(
    placed: Iterable[tuple[int, int, _Amount]],
    together: Callable[[Iterable[_Amount]], _Amount],
    *,
    days: int,
    around: tuple[int, int] | None = None,
) -> list[_Amount]:
    r"""Return what is in windows of `days` consecutive days such that no other window has more in it than one of them.

    .. math:: \sum_{i:\, P_i \cap [t, t+w-1] \ne \emptyset} x_i \quad \text{for each } t \text{ at which an } i
        \text{ comes in}

    What is about the days from k to l is in the windows that begin from k - w + 1 to l, once in each.

    Source: Kellaris et al., Theorem 3, with sequential composition.

    Args:
        placed: first day k and last day l by number, and amount x of each event.
        together: the sum of amounts, also of none.
        days: length w of the window.
        around: first and last day of a range, by number; only windows that contain a day of it count.

    References:
        Kellaris, Papadopoulos, Xiao, Papadias: Differentially Private Event Sequences over Infinite Streams. PVLDB 7,
        2014. https://doi.org/10.14778/2732977.2732989

    >>> window_sums([(4, 31, 4), (2, 2, 5), (5, 5, 2), (6, 6, 1)], sum, days=3)  # beginning on days 0, 2, 3 and 4
    [5, 9, 6, 7]
    """
    came: defaultdict[float, list[_Amount]] = defaultdict(list)
    left: defaultdict[float, list[_Amount]] = defaultdict(list)
    earliest, latest = (-math.inf, math.inf) if around is None else (around[0] - days + 1, around[1])
    for first, last, amount in placed:
        begin, end = max(first - days + 1, earliest), min(last, latest)
        if begin <= end:
            came[begin].append(amount)
            left[end + 1].append(amount)
    sums: list[_Amount] = []
    ends = sorted(left, reverse=True)
    for begin in sorted(came):
        gone: list[_Amount] = []
        while ends[-1] <= begin:
            gone += left[ends.pop()]
        sums.append(together([*sums[-1:], *came[begin], *(-amount for amount in gone)]))
    return sums


def largest_window(
    losses: Mapping[str, int], *, days: int, events: Iterable[Event] = (), around: tuple[str, str] | None = None
) -> int:
    r"""Largest loss of any `days` consecutive days; a day without a release counts as 0, a draw once in each window.

    .. math:: \max_t \Bigl[ \sum_{k=t}^{t+w-1} \varepsilon_k + \sum_{i:\, P_i \cap [t, t+w-1] \ne \emptyset} e_i \Bigr]

    Use it with `around` to find how much of a window's bound a further release may spend.

    Source: `window_sums`: the largest left side of the condition of w-event privacy.

    Args:
        losses: loss of each released day [nano-epsilon].
        days: length w of the window [days].
        events: draws, and rows about several days, each once in every window that touches its period.
        around: first and last day of a range; only windows that contain a day of it count.

    Returns:
        [nano-epsilon]; 0 without losses.

    >>> largest_window({"2013-01-01": 1, "2013-01-02": 5, "2013-01-04": 2}, days=3)
    7
    >>> largest_window({"2013-01-01": 1, "2013-01-02": 5, "2013-01-04": 2}, days=2, around=("2013-01-03", "2013-01-03"))
    5
    """
    span = None if around is None else (day_number(around[0]), day_number(around[1]))
    near = days_near(span, days=days, count=len(losses))
    placed = [
        (number := day_number(day), number, losses[day])
        for day in (losses if near is None else map(_text, near))
        if day in losses
    ]
    placed += [(day_number(event.first_day), day_number(event.last_day), event.pure) for event in events]
    return max(window_sums(placed, sum, days=days, around=span), default=0)


def days_near(around: tuple[int, int] | None, *, days: int, count: int) -> range | None:
    """Return the days that are in a window with a day of a range, where they are fewer than `count` days; else None.

    Source: calendar arithmetic.

    Args:
        around: first and last day of the range, by number; None for all days.
        days: length of the window [days].
        count: number of days with a loss.

    >>> days_near((10, 10), days=3, count=100), days_near((10, 10), days=3, count=2)
    (range(8, 13), None)
    """
    if around is None or count <= around[1] - around[0] + 2 * days:
        return None
    return range(around[0] - days + 1, around[1] + days)


@lru_cache(maxsize=2**16)
def day_number(day: str) -> int:
    """Return the number of a day from its ISO text.

    Source: proleptic Gregorian calendar, as datetime.date.toordinal counts it.

    Args:
        day: ISO date.

    Returns:
        1 for 0001-01-01 [days].

    Raises:
        ValueError: not an ISO date.

    >>> day_number("0001-01-01"), day_number("0002-01-01")  # a year of 365 days
    (1, 366)
    """
    return date.fromisoformat(day).toordinal()


@lru_cache(maxsize=2**14)
def _text(number: int) -> str:
    """Return the ISO date of the day with a number, or of the nearest day that there is."""
    return date.fromordinal(min(max(number, 1), date.max.toordinal())).isoformat()


# --------------------------------------------------------------------------------------------------
# Series and days under a promise.
# --------------------------------------------------------------------------------------------------


class ChargedRow(Protocol):
    """A row of a history, as far as its share of a small change depends on it."""

    @property
    def series(self) -> str:
        """The series; "" for a whole day, all series together."""

    @property
    def contract(self) -> str:
        """Hash of the contract under which it was charged; "" for a planned one."""

    @property
    def day(self) -> str:
        """Day of the data that names it, ISO text."""


class ReleasedRow(ChargedRow, Protocol):
    """A row of a history, as far as a period that it covers is charged."""

    @property
    def state(self) -> str:
        """Either "released" or "skipped"."""

    @property
    def loss(self) -> int:
        """Its privacy loss [nano-epsilon]; 0 for a skipped day."""

    @property
    def sensitivity(self) -> int:
        """Its L1 sensitivity [unit of the values]; 0 for a planned release."""

    @property
    def scale(self) -> float:
        """Its noise scale [unit of the values]; 0 for a skipped day and a planned release."""


_Row = TypeVar("_Row", bound=ReleasedRow)


class Statistic(Protocol):
    """A series, as far as a promise depends on it."""

    @property
    def share(self) -> Decimal | None:
        """Its part of each day's budget; None: all of it."""

    @property
    def covers_periods(self) -> bool:
        """Whether its rows cover periods of several days."""

    def covered_days(self, day: date) -> tuple[date, date]:
        """Return the first and last day that its row of a day covers."""

    def sensitivity(self, change: Change) -> int:
        """Return the L1 sensitivity to a change of one household's day."""

    def largest_move(self, change: Change, *, minutes: int) -> int:
        """Return the most that such a change moves one cell, if readings are of so many minutes."""


Series = Mapping[str, Statistic]


@dataclass(frozen=True, slots=True)
class Publication:
    """The series in force, those of earlier contracts by hash, and the first and last day, None where there is none.

    For an unknown series or contract every change counts as the largest one. `charges` are the losses of the
    population's calibration draws, which count beside those of its releases (`publication`). `interval_minutes` is the
    length of a reading's interval; the longer it is, the more may one cell of a profile move.
    """

    series: Series = field(default_factory=dict)
    earlier: Mapping[str, Series] = field(default_factory=dict)
    first_day: date | None = None
    last_day: date | None = None
    charges: Events = ()
    interval_minutes: int = 60

    @property
    def has_periods(self) -> bool:
        """Return whether rows of a series, in force or earlier, cover several days."""
        tables = (self.series, *self.earlier.values())
        return any(statistic.covers_periods for series in tables for statistic in series.values())

    def covered_days(self, row: ChargedRow) -> tuple[str, str]:
        """Return the first and last day that a row covers, ISO text; most rows cover their own day alone."""
        statistic = self.statistic(row)
        if statistic is None or not statistic.covers_periods:
            return row.day, row.day
        first, last = statistic.covered_days(date.fromisoformat(row.day))
        return first.isoformat(), last.isoformat()

    def period_of(self, row: ReleasedRow) -> Event | None:
        """Return a row that covers several days as an event; None for one about a single day."""
        first, last = self.covered_days(row)
        return None if first == last else Event(first, last, row.loss, "row", row.sensitivity, row.scale)

    def released_days(self, history: Iterable[ReleasedRow]) -> set[str]:
        """Return the days about which something is released, ISO text."""
        covered = {self.covered_days(row) for row in history if row.state == "released"}
        periods = (days_of(*map(date.fromisoformat, ends)) for ends in covered)
        return {day.isoformat() for period in periods for day in period}

    def parted(self, history: Sequence[_Row]) -> tuple[Sequence[_Row], Events]:
        """Return the rows about single days, and as events all draws and the released rows about several days.

        Use it for what knows days and events only: such rows are counted like draws of a calibration.
        """
        if not self.has_periods:
            return history, self.charges
        parts = [(row, self.period_of(row)) for row in history]
        periods = [period for row, period in parts if period is not None and row.state == "released"]
        return [row for row, period in parts if period is None], (*self.charges, *periods)

    def part(self, row: ChargedRow, size_wh: int) -> Fraction:
        """Return the part of a row's recorded loss that is the loss about a change of at most this size [Wh].

        A row without a series is a whole day, all series together.
        """
        if row.series == "":
            return 1 / self.times(size_wh)
        statistic = self.statistic(row)
        return Fraction(1) if statistic is None else 1 / _times(statistic, size_wh)

    def statistic(self, row: ChargedRow) -> Statistic | None:
        """Return the series of a row, as it was when the row was charged; None for an unknown one."""
        # a row that is only planned may have no contract yet: it will be charged under the series in force
        series = self.earlier.get(row.contract, {}) if row.contract else self.series
        return series.get(row.series)

    def times(self, size_wh: int) -> Fraction:
        """Return the ratio of a day's loss about any change to its loss about a change of this size.

        The shares of the series are parts of the latter.
        """
        parts = [share_of(statistic) * _times(statistic, size_wh) for statistic in self.series.values()]
        return sum(parts, Fraction(0)) or Fraction(1)

    def share(self, series: str, share: Fraction, size_wh: int) -> Fraction:
        """Return the part of a day's loss about changes of any size that a series gets with its share of small ones."""
        statistic = self.series.get(series)
        return share if statistic is None else share * _times(statistic, size_wh) / self.times(size_wh)


def share_of(statistic: Statistic) -> Fraction:
    """Return the part of each day's budget that a series states; all of it if it states none.

    Source: data structure, without a formula.

    Args:
        statistic: the series.
    """
    return Fraction(1 if statistic.share is None else statistic.share)


def _times(statistic: Statistic, size_wh: int) -> Fraction:
    if statistic.covers_periods:  # its rows count in full, whatever the size of a change
        return Fraction(1)
    return Fraction(statistic.sensitivity("replacement"), statistic.sensitivity(Move(size_wh)))


# --------------------------------------------------------------------------------------------------
# How a notion could keep a bound for a run file: what `agedp compare` compares.
#
# A notion sees a run file through a `Comparison` alone, so that notions know nothing of the run file's form.
# --------------------------------------------------------------------------------------------------

Keys = Mapping[str, object]


class CommonKeys(Protocol):
    """The keys of [promise] that every notion has."""

    @property
    def age_days(self) -> int | None:
        """Age of a day at its release [days]."""

    @property
    def max_day_epsilon(self) -> Decimal:
        """Cap of a day [epsilon]."""

    @property
    def epsilon_total(self) -> Decimal | Unlimited:
        """Cap of the sum over all days [epsilon]."""

    @property
    def delta(self) -> Decimal | None:
        """Probability in the bounds over several days [-]; None without one."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The settings of a run file from which a notion makes its alternatives and accountants.

    `promise` is the promise of the run file, `days` the length of its period (None without a last day), `methods` those
    that its model allows, the sharpest first (none without a model), `publication` what is published. The rest is
    [compare]: a window [days], two discount rates, and sizes of change [kWh].
    """

    promise: CommonKeys
    days: int | None = None
    methods: tuple[Method, ...] = ()
    publication: Publication = field(default_factory=Publication, hash=False)
    window_days: int | None = None
    exponential: Decimal | None = None
    hyperbolic: Decimal | None = None
    delta_kwh: tuple[Decimal, ...] = ()


@dataclass(frozen=True, slots=True)
class Alternative:
    """One rule of a notion; `method` is its name in few words.

    `keys` returns the keys of [promise], beside the notion, for a bound of so much epsilon; caps and age come from the
    run file unless they are among the keys. `bound_name` is the bound that is kept, "" for the first one that
    the promise limits besides the day and the total. `reason` tells why no such promise exists for this run file.
    """

    method: str
    keys: Callable[[Decimal], Keys]
    bound_name: str = ""
    reason: str = ""


def unavailable(reason: str) -> Alternative:
    """Return the alternative of a notion without parameters for this run file, with the reason.

    Source: data structure, without a formula.

    Args:
        reason: why the notion has no parameters for this run file.

    Returns:
        An alternative without a method.
    """
    return Alternative("", promise_keys(""), reason=reason)


def promise_keys(key: str, **keys: object) -> Callable[[Decimal], Keys]:
    """Return the keys of a promise that takes its epsilon in one of them.

    Source: data structure, without a formula.

    Args:
        key: key of [promise] that takes epsilon.
        **keys: the other keys of the promise.

    Returns:
        A function from an epsilon to keys of [promise].

    >>> promise_keys("epsilon_per_window", window_days=7)(Decimal(2))
    {'window_days': 7, 'epsilon_per_window': Decimal('2')}
    """
    return lambda epsilon: {**keys, key: epsilon}


def part(epsilon: Decimal, days: int) -> Decimal:
    r"""Return the share of one day of a loss [epsilon], rounded down to nano-epsilon.

    .. math:: 10^{-9} \lfloor 10^9 \varepsilon / n \rfloor

    Source: sequential composition, [A] Proposition 2: n equal shares add up to at most the whole.

    Args:
        epsilon: loss of all days [epsilon].
        days: number of days n.

    Returns:
        Loss of one day [epsilon].

    References:
        [A] https://doi.org/10.1109/TIT.2023.3340147

    >>> part(Decimal(1), 3)
    Decimal('0.333333333')
    """
    return (epsilon / days).quantize(SMALLEST_EPSILON, ROUND_FLOOR)
