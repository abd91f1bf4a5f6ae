"""A promise with the leakage bounds of all models in force: budgets that keep it, and what it still admits.

A day with zero budget is skipped if its own budget can never recover while later days still have some (`budget`).
Beside rows that cover several days a budget is lowered to what the promise admits, because such a row counts on days
whose own rows were planned without it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from typing import Final

from agedp_data.accounting.temporal_plans import largest_feasible
from agedp_data.errors import Refused
from agedp_data.leakage.bound_table import LeakageBound
from agedp_data.notions.notion import HistoryRow, Notion
from agedp_data.notions.publication import share_of
from agedp_data.series.series import AnySeries

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
        return {
            key: reason
            for leakage_bound in self.leakage_bounds
            for key, reason in self.notion.violations(history, leakage_bound).items()
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
