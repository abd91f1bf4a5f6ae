"""What is published under a promise: its series with their sensitivities, and the days of its schedule.

A notion that protects small changes better than large ones needs the loss of a change of a given size about each row.
A row's recorded loss is that of a change of any size, sensitivity/scale; a smaller change has the part
sensitivity(change)/sensitivity of it, by the series under which the row was charged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Protocol

from agedp_data.notions.period_loss import Charges
from agedp_data.series.sensitivity import Change, Move


class ChargedRow(Protocol):
    """A row of a history, as far as its share of a small change depends on it."""

    @property
    def series(self) -> str:
        """The series; "" for a whole day, all series together."""

    @property
    def contract(self) -> str:
        """Hash of the contract under which it was charged; "" for a planned one."""


class Statistic(Protocol):
    """A series, as far as a promise depends on it."""

    @property
    def share(self) -> Decimal | None:
        """Its part of each day's budget; None: all of it."""

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
    return Fraction(statistic.sensitivity("replacement"), statistic.sensitivity(Move(size_wh)))
