"""What is published under a promise: its series with their sensitivities, and the days of its schedule.

A notion that protects small changes better than large ones needs the loss of a change of a given size about each row.
A row's recorded loss is that of a change of any size, sensitivity/scale; a smaller change has the part
sensitivity(change)/sensitivity of it, by the series under which the row was charged.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import ROUND_FLOOR, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Protocol, TypeVar

from agedp_data.parameters import SMALLEST_EPSILON, Method, Unlimited
from agedp_data.series.sensitivity import Change, Move
from agedp_data.series.series_terms import days_of

# --------------------------------------------------------------------------------------------------
# Losses about whole periods: a draw of a calibration is about all readings of a household in its period at once.
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
class PeriodLoss:
    """Loss of one draw about all readings of a household from `first_day` to `last_day`, both ISO dates.

    A released row that covers several days is such a draw too: `is_release`, with its L1 sensitivity and noise scale.

    >>> PeriodLoss("2012-01-01", "2012-12-31", 10**9).touches("2012-12-31")
    True
    """

    first_day: str
    last_day: str
    loss: int
    is_release: bool = False
    sensitivity: int = 0
    scale: float = 0.0

    def touches(self, day: str) -> bool:
        """Return whether a day lies in the period."""
        return self.first_day <= day <= self.last_day


Charges = tuple[PeriodLoss, ...]
"""The losses of all calibration draws about a population, and of released rows that cover several days."""


def total_charge(charges: Iterable[PeriodLoss]) -> int:
    """Return the loss of all draws together [nano-epsilon].

    Source: sequential composition, [A] Proposition 2.

    Args:
        charges: losses of the draws.

    References:
        [A] https://doi.org/10.1109/TIT.2023.3340147
    """
    return sum(charge.loss for charge in charges)


def charge_on(charges: Iterable[PeriodLoss], day: str) -> int:
    """Return the loss of the draws whose period contains a day [nano-epsilon].

    Source: sequential composition, [A] Proposition 2.

    Args:
        charges: losses of the draws.
        day: ISO date.

    References:
        [A] https://doi.org/10.1109/TIT.2023.3340147

    >>> charge_on([PeriodLoss("2012-01-01", "2012-01-31", 5), PeriodLoss("2012-01-31", "2012-02-01", 2)], "2012-01-31")
    7
    """
    return sum(charge.loss for charge in charges if charge.touches(day))


def covered_losses(losses: Mapping[str, int], charges: Iterable[PeriodLoss]) -> dict[str, int]:
    """Return the loss about each day [nano-epsilon]: a released row counts in full on every day that it covers.

    Source: sequential composition, [A] Proposition 2; calibration draws are left out.

    Args:
        losses: loss of each day by rows about one day [nano-epsilon].
        charges: losses of rows that cover several days.

    References:
        [A] https://doi.org/10.1109/TIT.2023.3340147

    >>> covered_losses({"2013-01-02": 5}, [PeriodLoss("2013-01-01", "2013-01-02", 4, is_release=True)])
    {'2013-01-02': 9, '2013-01-01': 4}
    """
    covered = dict(losses)
    for charge in charges:
        if charge.is_release:
            for number in range(_number(charge.first_day), _number(charge.last_day) + 1):
                day = date.fromordinal(number).isoformat()
                covered[day] = covered.get(day, 0) + charge.loss
    return covered


def format_periods(charges: Iterable[PeriodLoss]) -> str:
    """Return the periods of the draws, for sentences.

    Source: text, without a formula.

    Args:
        charges: losses of the draws.

    >>> format_periods([PeriodLoss("2012-01-01", "2012-01-31", 5), PeriodLoss("2012-01-01", "2012-01-31", 2)])
    '2012-01-01 to 2012-01-31'
    """
    return " or from ".join(sorted({f"{charge.first_day} to {charge.last_day}" for charge in charges}))


def largest_charged_window(
    charges: Iterable[PeriodLoss], losses: Mapping[str, int], *, days: int, around: tuple[str, str] | None = None
) -> int:
    r"""Largest loss of any `days` consecutive days, a draw counted once in each window that touches its period.

    .. math:: \max_t \Bigl[ \sum_{k=t}^{t+w-1} \varepsilon_k + \sum_{i:\, P_i \cap [t, t+w-1] \ne \emptyset} e_i \Bigr]

    Source: Kellaris et al., Theorem 3, with sequential composition of the draws. A release is a draw about one day: it
    is in the windows that begin from w - 1 days before its first day to its last day.

    Args:
        charges: losses e_i of the draws about the periods P_i.
        losses: loss of each released day [nano-epsilon].
        days: length w of the window [days].
        around: first and last day of a range; only windows that contain a day of it count.

    Returns:
        [nano-epsilon]; 0 without losses.

    References:
        Kellaris, Papadopoulos, Xiao, Papadias: Differentially Private Event Sequences over Infinite Streams. PVLDB 7,
        2014. https://doi.org/10.14778/2732977.2732989

    >>> draw = PeriodLoss("2013-01-04", "2013-01-31", 4)
    >>> largest_charged_window([draw], {"2013-01-02": 5, "2013-01-05": 2, "2013-01-06": 1}, days=3)  # 5 + 4 from 2 to 4
    9
    """
    loss_at_start: dict[float, int] = {}
    earliest, latest = (-math.inf, math.inf) if around is None else (_number(around[0]) - days + 1, _number(around[1]))
    releases = [(_number(day), _number(day), loss) for day, loss in losses.items()]
    charged = [(_number(charge.first_day), _number(charge.last_day), charge.loss) for charge in charges]
    for first, last, loss in [*charged, *releases]:
        begin, end = max(first - days + 1, earliest), min(last, latest)
        if begin <= end:
            loss_at_start[begin] = loss_at_start.get(begin, 0) + loss
            loss_at_start[end + 1] = loss_at_start.get(end + 1, 0) - loss
    largest = total = 0
    for start in sorted(loss_at_start):
        total += loss_at_start[start]
        largest = max(largest, total)
    return largest


@lru_cache(maxsize=2**14)
def _number(day: str) -> int:
    return date.fromisoformat(day).toordinal()


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
    charges: Charges = ()
    interval_minutes: int = 60

    @property
    def draws(self) -> Charges:
        """Return the losses of the calibration draws, without those of released rows."""
        return tuple(charge for charge in self.charges if not charge.is_release)

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

    def covers_period(self, row: ChargedRow) -> bool:
        """Return whether a row covers several days."""
        first, last = self.covered_days(row)
        return first != last

    def period_losses(self, history: Iterable[ReleasedRow]) -> Charges:
        """Return the losses of the released rows that cover several days, as charges about their periods."""
        if not self.has_periods:
            return ()
        covered = ((row, self.covered_days(row)) for row in history if row.state == "released")
        return tuple(
            PeriodLoss(first, last, row.loss, is_release=True, sensitivity=row.sensitivity, scale=row.scale)
            for row, (first, last) in covered
            if first != last
        )

    def released_days(self, history: Iterable[ReleasedRow]) -> set[str]:
        """Return the days about which something is released, ISO text."""
        covered = {self.covered_days(row) for row in history if row.state == "released"}
        periods = (days_of(*map(date.fromisoformat, ends)) for ends in covered)
        return {day.isoformat() for period in periods for day in period}

    def separated(self, history: Sequence[_Row]) -> tuple[Sequence[_Row], Publication]:
        """Return the rows about single days, and this publication with the other rows as charges about their periods.

        Use it for an accountant that knows days and charges only.
        """
        if not self.has_periods:
            return history, self
        days = [row for row in history if not self.covers_period(row)]
        return days, replace(self, charges=(*self.charges, *self.period_losses(history)))

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
# How a notion could keep a bound for a run file: what `agedp plan --notions` compares.
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
