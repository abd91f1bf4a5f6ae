"""Loss of released rows about a bounded change of a household's use of a day ([D]); assumption-free.

A change of one day, of each day of a window, and, as an (epsilon, delta) bound, of every day: such as a new appliance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from math import ceil
from typing import ClassVar

from agedp_data.leakage.function import LeakageBoundLike
from agedp_data.notions.notion import ASSUMPTION_FREE, HistoryRow, LossBound
from agedp_data.notions.period_loss import charge_on, covered_losses
from agedp_data.notions.publication import Publication
from agedp_data.notions.span_curves import SpanCurves
from agedp_data.notions.span_loss import bound_at_delta
from agedp_data.notions.w_event import largest_window
from agedp_data.parameters import exact_text, watt_hours
from agedp_data.series.sensitivity import Move


class BoundedChangeLosses:
    r"""Loss of each day of a growing history about changes of at most `size_wh`; earlier rows are not read again.

    The parts of a day's rows add up exactly, and the day is rounded up.

    .. math:: \varepsilon_d(x) = \Bigl\lceil \sum_{k \in d} \varepsilon_k \frac{\Delta f_k(x)}{\Delta f_k} \Bigr\rceil

    Source: [D], as in `Neighbourhood`; exact fractions, rounded up to whole [nano-epsilon].
    """

    def __init__(self, publication: Publication, size_wh: int) -> None:
        self._publication, self._size_wh = publication, size_wh
        self._rows: tuple[HistoryRow, ...] = ()
        self._exact: dict[str, Fraction] = {}
        self._losses: dict[str, int] = {}
        self._parts: dict[tuple[str, str], Fraction] = {}

    def __eq__(self, other: object) -> bool:
        """Two caches are equal, so that promises with equal parameters are equal whatever they have computed."""
        return isinstance(other, BoundedChangeLosses) and self._key == other._key

    __hash__ = None  # type: ignore[assignment]

    @property
    def _key(self) -> tuple[Publication, int]:
        return self._publication, self._size_wh

    def of(self, history: Sequence[HistoryRow]) -> dict[str, int]:
        """Return a copy of the loss of each day [nano-epsilon], which the caller may change."""
        if tuple(history[: len(self._rows)]) != self._rows:
            self._rows, self._exact, self._losses = (), {}, {}
        for row in history[len(self._rows) :]:
            if row.state == "released" and not self._covers_period(row):
                self._exact[row.day] = self._exact.get(row.day, Fraction(0)) + row.loss * self._part(row)
                self._losses[row.day] = ceil(self._exact[row.day])
        self._rows = tuple(history)
        return dict(self._losses)

    def with_next(self, history: Sequence[HistoryRow], new_row: HistoryRow) -> dict[str, int]:
        """Return the losses of each day if `new_row`, a released row, came to the history."""
        losses = self.of(history)
        losses[new_row.day] = ceil(self._exact.get(new_row.day, Fraction(0)) + new_row.loss * self._part(new_row))
        return losses

    def _covers_period(self, row: HistoryRow) -> bool:
        """Return whether a row covers several days; it counts in full, as a charge."""
        return self._publication.has_periods and len(set(self._publication.covered_days(row))) > 1

    def _part(self, row: HistoryRow) -> Fraction:
        key = row.contract, row.series
        if key not in self._parts:
            self._parts[key] = self._publication.part(row, self._size_wh)
        return self._parts[key]


@dataclass(frozen=True, slots=True)
class BoundedChangeLoss:
    """Accountant of the loss about a change by at most `size_kwh` of a household's day, and of a window of days.

    Calibration draws and rows that cover several days count in full, whatever the size (`period_loss`).

    Source: [D], as in `Neighbourhood`; losses in [nano-epsilon].
    """

    size_kwh: Decimal
    publication: Publication = field(hash=False)
    window_days: int | None = None
    name: ClassVar[str] = "neighbourhood"

    @property
    def day_bound_name(self) -> str:
        """Return the name of the bound of one day."""
        return f"change of {exact_text(self.size_kwh)} kWh"

    @property
    def window_bound_name(self) -> str:
        """Return the name of the bound of a window."""
        return f"{self.day_bound_name}, window of {self.window_days} days"

    def bounds(
        self, history: Sequence[HistoryRow], leakage_bound: LeakageBoundLike | None, at: str | None
    ) -> list[LossBound]:
        """Return the largest loss of a day and, with `window_days`, of a window."""
        del leakage_bound, at
        losses = BoundedChangeLosses(self.publication, watt_hours(self.size_kwh)).of(history)
        draws = self.publication.draws
        charges = (*self.publication.charges, *self.publication.period_losses(history))
        covered = covered_losses(losses, charges)
        largest = max((loss + charge_on(draws, day) for day, loss in covered.items()), default=0)
        change = _change_text(self.size_kwh)
        scope = f"{change}, on any one {'published day' if draws else 'day'}"
        bounds = [LossBound(self.day_bound_name, largest, ASSUMPTION_FREE, scope)]
        if self.window_days is not None:
            value = largest_window(losses, days=self.window_days, charges=charges)
            about = f"{change} a day, on any {self.window_days} consecutive days"
            bounds.append(LossBound(self.window_bound_name, value, ASSUMPTION_FREE, about))
        return bounds


@dataclass(frozen=True, slots=True)
class SustainedChangeLoss:
    r"""Accountant of the loss about changes by at most `size_kwh` on every day, as (epsilon, delta) bounds at `deltas`.

    .. math:: \varepsilon_{R}(\delta), \qquad R = \sum_k R^{(k)}(\Delta f_k(x), b_k)

    with the sensitivity of each row to the change of a day, and its scale. Calibration draws count in full. Nothing is
    returned where no delta brings the loss below the sum of the pure losses about such changes.

    Source: [D] for the change; composition of Rényi curves as in `SpanCurves` [nano-epsilon].
    """

    size_kwh: Decimal
    publication: Publication = field(hash=False)
    deltas: tuple[Decimal, ...]
    name: ClassVar[str] = "neighbourhood"

    def bounds(
        self, history: Sequence[HistoryRow], leakage_bound: LeakageBoundLike | None, at: str | None
    ) -> list[LossBound]:
        """Return the loss of all days at each delta."""
        del leakage_bound, at
        total = SpanCurves(self.publication, change=Move(watt_hours(self.size_kwh))).total(history)
        losses = [total.epsilon(delta) for delta in self.deltas]
        if not losses or min(losses) >= total.pure:
            return []
        draws = ", and of any size on its other days of the calibration" if self.publication.draws else ""
        scope = f"{_change_text(self.size_kwh)} on each published day, all of them together{draws}"
        name = f"change of {exact_text(self.size_kwh)} kWh on every day"
        return [
            bound_at_delta(name, loss, ASSUMPTION_FREE, scope, delta=delta)
            for delta, loss in zip(self.deltas, losses, strict=True)
        ]


def _change_text(size_kwh: Decimal) -> str:
    return f"a change of the use with which one household counts by at most {exact_text(size_kwh)} kWh"
