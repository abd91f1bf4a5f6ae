"""Day budget under every model in force, and the treatment of a day whose budget is zero.

A day with zero budget is skipped if its own budget can never recover while later days still have some: the other series
of the day have spent it (with an amendment between them), or nearby days have, under a notion whose bound moves with
the day of the data. The remaining budget of a day never grows: the ledger only grows, and a contract is only tightened.
(With a clock of publication days it might grow, but then a backlog would delay the following days.) If later days
would have zero budget as well (`epsilon_total`, or a bound over all releases), the series has ended and the release is
refused. All of this follows from contract and ledger alone, so a skipped day reveals nothing about a reading.
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

    def broken(self, history: Sequence[HistoryRow]) -> dict[str, str]:
        """Return the parameters of the promise that the released rows break permanently, each with the reason."""
        return {
            key: reason
            for leakage_bound in self.leakage_bounds
            for key, reason in self.notion.broken(history, leakage_bound).items()
        }

    def day_budget(
        self, history: Sequence[HistoryRow], day: str, published_on: str, *, share: Fraction = WHOLE_DAY
    ) -> DayBudget:
        """Return the budget of a series with this share of each day: its share, or less if others have spent it."""
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
