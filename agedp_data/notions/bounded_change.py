"""Loss of released rows about a bounded change of a household's use of a day ([D]); assumption-free."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from math import ceil
from typing import ClassVar

from agedp_data.leakage.function import LeakageBoundLike
from agedp_data.notions.notion import ASSUMPTION_FREE, HistoryRow, LossBound
from agedp_data.notions.period_loss import charge_on
from agedp_data.notions.publication import Publication
from agedp_data.notions.w_event import largest_window
from agedp_data.parameters import exact_text, watt_hours


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
            if row.state == "released":
                self._exact[row.day] = self._exact.get(row.day, Fraction(0)) + row.loss * self._part(row)
                self._losses[row.day] = ceil(self._exact[row.day])
        self._rows = tuple(history)
        return dict(self._losses)

    def with_next(self, history: Sequence[HistoryRow], new_row: HistoryRow) -> dict[str, int]:
        """Return the losses of each day if `new_row`, a released row, came to the history."""
        losses = self.of(history)
        losses[new_row.day] = ceil(self._exact.get(new_row.day, Fraction(0)) + new_row.loss * self._part(new_row))
        return losses

    def _part(self, row: HistoryRow) -> Fraction:
        key = row.contract, row.series
        if key not in self._parts:
            self._parts[key] = self._publication.part(row, self._size_wh)
        return self._parts[key]


@dataclass(frozen=True, slots=True)
class BoundedChangeLoss:
    """Accountant of the loss about a change by at most `size_kwh` of a household's day, and of a window of days.

    Calibration draws count in full, whatever the size (`period_loss`).

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
        charges = self.publication.charges
        largest = max((loss + charge_on(charges, day) for day, loss in losses.items()), default=0)
        change = f"a change of one household's use by at most {exact_text(self.size_kwh)} kWh"
        scope = f"{change}, on any one {'published day' if charges else 'day'}"
        bounds = [LossBound(self.day_bound_name, largest, ASSUMPTION_FREE, scope)]
        if self.window_days is not None:
            value = largest_window(losses, days=self.window_days, charges=charges)
            about = f"{change} a day, on any {self.window_days} consecutive days"
            bounds.append(LossBound(self.window_bound_name, value, ASSUMPTION_FREE, about))
        return bounds
