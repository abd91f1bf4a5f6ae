"""Temporal privacy leakage: what all releases say about any one day (Cao et al., IEEE TKDE 2018: [T])."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal, Self, get_args

from pydantic import model_validator

from agedp_data.notions.candidate import Candidate, amount_in
from agedp_data.notions.notion import Promise
from agedp_data.notions.parameters import Epsilon, Horizon, wrong

if TYPE_CHECKING:
    from agedp_data.config.run import RunFile


Budget = Literal["best", "supremum", "exact", "even"]
_ENDING: tuple[Budget, ...] = ("exact", "even")


class Temporal(Promise):
    """All releases together leak at most `alpha` about any one day, past or future ([T] Definition 8).

    `horizon_days = N` closes the series after N releases; without end only the supremum plan is valid.
    """

    name: ClassVar[str] = "temporal"
    needs_model: ClassVar[bool] = True

    notion: Literal["temporal"]
    alpha: Epsilon
    horizon_days: Horizon
    budget: Budget

    @classmethod
    def candidates(cls, run: RunFile) -> tuple[Candidate, ...]:
        """Return every budget that the period permits, over the promised horizon or the period's days."""
        own = run.promise if isinstance(run.promise, cls) else None
        horizon: int | Literal["unlimited"] = own.horizon_days if own else run.schedule.days or "unlimited"
        budgets = [each for each in get_args(Budget) if horizon != "unlimited" or each not in _ENDING]
        return tuple(
            Candidate(budget, amount_in("alpha", horizon_days=horizon, budget=budget))
            for budget in sorted(budgets, key=lambda budget: own is not None and budget != own.budget)
        )

    @model_validator(mode="after")
    def _without_end(self) -> Self:
        if self.horizon_days == "unlimited" and self.budget in _ENDING:
            raise wrong('needs a number of days in horizon_days; "unlimited" goes with "supremum"', "budget")
        return self
