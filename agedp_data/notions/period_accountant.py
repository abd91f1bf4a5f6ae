"""Accountants of the notions that a run file compares, over rows of single days and rows that cover several.

Rows that cover several days are draws about their periods: each notion counts them like calibration draws
(`period_loss`), whose rule holds under all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from agedp_data.leakage.function import LeakageBoundLike
from agedp_data.notions.alternatives import Comparison
from agedp_data.notions.notion import Accountant, HistoryRow, LossBound, Promise


@dataclass(frozen=True, slots=True)
class PeriodAccountant:
    """The accountants of one notion, made anew for the rows that cover several days.

    Source: the rule of draws about periods, `period_loss`.
    """

    notion: type[Promise]
    comparison: Comparison

    @property
    def name(self) -> str:
        """The notion."""
        return self.notion.name

    def bounds(
        self, history: Sequence[HistoryRow], leakage_bound: LeakageBoundLike | None, at: str | None
    ) -> list[LossBound]:
        """Return the bounds of all released rows."""
        days, publication = self.comparison.publication.separated(history)
        accountants = self.notion.comparison_accountants(replace(self.comparison, publication=publication))
        return [bound for accountant in accountants for bound in accountant.bounds(days, leakage_bound, at)]


def compared_accountants(notions: Sequence[type[Promise]], comparison: Comparison) -> tuple[Accountant, ...]:
    """Return the accountants of these notions whose bounds a run file asks for beside its promise.

    Source: data structure, without a formula.

    Args:
        notions: the notions.
        comparison: settings of the run file, with what is published.
    """
    if comparison.publication.has_periods:
        return tuple(PeriodAccountant(notion, comparison) for notion in notions)
    return tuple(accountant for notion in notions for accountant in notion.comparison_accountants(comparison))
