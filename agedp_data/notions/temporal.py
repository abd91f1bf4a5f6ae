"""Temporal privacy leakage: what all releases say about any one day (Cao et al., IEEE TKDE 2018: [T])."""

from __future__ import annotations

from typing import ClassVar, Literal, Self

from pydantic import model_validator

from agedp_data.notions.notion import Promise
from agedp_data.notions.parameters import Epsilon, Horizon, wrong


class Temporal(Promise):
    """All releases together leak at most `alpha` about any one day, past or future ([T] Definition 8).

    `horizon_days = N` closes the series after N releases; without end only the supremum plan is valid.
    """

    name: ClassVar[str] = "temporal"
    needs_model: ClassVar[bool] = True

    notion: Literal["temporal"]
    alpha: Epsilon
    horizon_days: Horizon
    budget: Literal["best", "supremum", "exact", "even"]

    @model_validator(mode="after")
    def _without_end(self) -> Self:
        if self.horizon_days == "unlimited" and self.budget in ("exact", "even"):
            raise wrong('needs a number of days in horizon_days; "unlimited" goes with "supremum"', "budget")
        return self
