"""delta-neighbourhood privacy: changes of a day by less than delta (Fang and Chang, 2014: [D])."""

from __future__ import annotations

from typing import ClassVar, Literal, Self

from pydantic import model_validator

from agedp_data.notions.notion import Promise
from agedp_data.notions.parameters import Days, Epsilon, Fraction01, PositiveKwh, watt_hours, wrong


class Neighbourhood(Promise):
    """A change of a household's days by less than `delta_kwh` costs at most the window's amount ([D]).

    `spend`: "fraction" of what is left in the window, "per-request" a window_days-th, "offline" a plan.
    """

    name: ClassVar[str] = "neighbourhood"

    notion: Literal["neighbourhood"]
    delta_kwh: PositiveKwh
    window_days: Days
    epsilon_per_window: Epsilon
    spend: Literal["fraction", "per-request", "offline"]
    fraction: Fraction01 | None = None

    @property
    def delta_wh(self) -> int:
        """Return the size of a change that is protected, in whole watt-hours."""
        return watt_hours(self.delta_kwh)

    @model_validator(mode="after")
    def _fraction_goes_with_its_rule(self) -> Self:
        if self.spend == "fraction" and self.fraction is None:
            raise wrong('is missing; spend = "fraction" needs one such as 0.2', "fraction")
        if self.spend != "fraction" and self.fraction is not None:
            raise wrong('is used by spend = "fraction" only; remove it', "fraction")
        return self
