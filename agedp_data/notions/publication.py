"""What is published under a promise: its series with their sensitivities, and the days of its schedule.

A notion that protects small changes better than large ones needs the loss of a change of a given size about each row.
A row's recorded loss is that of a change of any size, sensitivity/scale; a smaller change has the part
sensitivity(change)/sensitivity of it, by the series under which the row was charged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Protocol, TypeVar

from agedp_data.notions.period_loss import Charges, PeriodLoss
from agedp_data.series.periods import days_of
from agedp_data.series.sensitivity import Change, Move


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
    population's calibration draws, which count beside those of its releases (`period_loss`). `interval_minutes` is the
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
        days = [row for row in history if len(set(self.covered_days(row))) == 1]
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
