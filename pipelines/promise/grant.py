"""What a promise grants a day under every model that binds it, and what becomes of a day that is granted nothing.

Such a day is skipped if that is so for ever and for this day only: the other series of the day have spent what it
may spend (an amendment came between them), or the days near it have, under a notion whose bound slides with the day
of the data. What is left to a day never grows again: the ledger only grows, a contract is only tightened (by a clock of
publication days it might grow, but then a backlog would hold up the days behind it). The days behind it go on. Where
later days would be granted nothing either (`epsilon_total`, or a figure over everything that was released), the
series has ended and the release is refused. All of this follows from contract and ledger alone, so that a skipped
day says nothing about a reading.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from typing import Final

from agedp_data.chains.envelope import LeakageBound
from agedp_data.notions.notion import HistoryRow, Notion

WHOLE_DAY: Final = Fraction(1)
OTHER_SERIES: Final = "the other series of the day have spent what it may spend"
DAYS_NEAR: Final = "releases near it have spent what the promise leaves"

_DISTANT_DAY: Final = date.max.isoformat()
"""A day that no other is near."""


@dataclass(frozen=True, slots=True)
class DayBudget:
    """What a series may spend about a day, whole 1e-9 epsilon; if nothing, why only this day gets nothing.

    Nothing without a reason means that the series has ended.
    """

    loss: int
    skipped: str = ""


@dataclass(frozen=True, slots=True)
class EffectivePromise:
    """A promise and every model that binds it: what one of the envelopes does not permit is not permitted."""

    notion: Notion
    leakage_bounds: tuple[LeakageBound | None, ...]

    def loss(self, history: Sequence[HistoryRow], day: str, published_on: str) -> int:
        """Return what a day may spend, beyond what its rows in `history` have spent, whole 1e-9 epsilon."""
        return min(self.notion.loss(history, day, leakage_bound, published_on) for leakage_bound in self.leakage_bounds)

    def admit(self, history: Sequence[HistoryRow], row: HistoryRow) -> None:
        """Raise Refused if `row` after `history` would break the promise."""
        for leakage_bound in self.leakage_bounds:
            self.notion.admit(history, row, leakage_bound)

    def review(self, history: Sequence[HistoryRow]) -> None:
        """Raise Refused if what is released already breaks the promise under a model that came or comes later."""
        for leakage_bound in self.leakage_bounds if len(self.leakage_bounds) > 1 else ():
            self.notion.review(history, leakage_bound)

    def broken(self, history: Sequence[HistoryRow]) -> dict[str, str]:
        """Return the parameters of the promise that what is released breaks for ever, with what is the case."""
        return {
            key: reason
            for leakage_bound in self.leakage_bounds
            for key, reason in self.notion.broken(history, leakage_bound).items()
        }

    def day_budget(
        self, history: Sequence[HistoryRow], day: str, published_on: str, *, share: Fraction = WHOLE_DAY
    ) -> DayBudget:
        """Return what a series with this share of each day is granted: its part, or what the others left of it."""
        other_days = [row for row in history if row.day != day]
        day_loss = self.loss(other_days, day, published_on)
        remaining = day_loss if len(other_days) == len(history) else self.loss(history, day, published_on)
        loss = min(int(share * day_loss), remaining)
        if loss > 0:
            return DayBudget(loss)
        if day_loss > 0 and remaining <= 0:
            return DayBudget(0, OTHER_SERIES)
        if self.notion.slides and int(share * self.loss(history, _DISTANT_DAY, _DISTANT_DAY)) > 0:
            return DayBudget(0, DAYS_NEAR)
        return DayBudget(0)
