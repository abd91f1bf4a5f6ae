"""delta-neighbourhood privacy: changes of a day by less than delta (Fang and Chang, 2014: [D])."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final, Literal, Self

from pydantic import model_validator

from agedp_data.notions.candidate import Candidate, amount_in, unknown
from agedp_data.notions.notion import Promise
from agedp_data.notions.parameters import Days, Epsilon, Fraction01, PositiveKwh, watt_hours, wrong

if TYPE_CHECKING:
    from agedp_data.config.run import RunFile

_WEEK: Final = 7


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

    @classmethod
    def candidates(cls, run: RunFile) -> tuple[Candidate, ...]:
        """Return a window_days-th of the window's amount for each size of change, and what the run file promises."""
        own = run.promise if isinstance(run.promise, cls) else None
        days = own.window_days if own else run.compare.window_days or _WEEK
        sizes = dict.fromkeys([own.delta_kwh] if own else []) | dict.fromkeys(run.compare.delta_kwh)
        if not sizes:
            return (unknown("needs a size of change; name some in [compare] delta_kwh"),)
        rules: list[dict[str, object]] = [{"spend": "per-request"}]
        if own and own.spend != "per-request":
            rules.insert(0, {"spend": own.spend} | ({"fraction": own.fraction} if own.fraction else {}))
        return tuple(
            Candidate(
                f"{size} kWh, {days} days, {rule['spend']}",
                amount_in("epsilon_per_window", delta_kwh=size, window_days=days, **rule),
            )
            for size in sizes
            for rule in rules
        )

    @model_validator(mode="after")
    def _fraction_goes_with_its_rule(self) -> Self:
        if self.spend == "fraction" and self.fraction is None:
            raise wrong('is missing; spend = "fraction" needs one such as 0.2', "fraction")
        if self.spend != "fraction" and self.fraction is not None:
            raise wrong('is used by spend = "fraction" only; remove it', "fraction")
        return self
