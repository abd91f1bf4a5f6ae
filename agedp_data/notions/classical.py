"""Classical differential privacy: a constant loss a day, and sequential composition over the days.

Example: epsilon_per_day = 0.5 and epsilon_total = 9 permit 18 released days.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Annotated, ClassVar, Literal, Self

from pydantic import model_validator

from agedp_data.amendment_rules import LOWER
from agedp_data.epsilon import NANO, floor_nano
from agedp_data.leakage.function import LeakageBoundLike
from agedp_data.notions.enforcement import EnforcedPromise, refuse_above
from agedp_data.notions.notion import (
    DAY_BOUND,
    TOTAL_BOUND,
    HistoryRow,
    LossBound,
    Losses,
    NotionText,
    OwnBound,
    name_at_delta,
)
from agedp_data.notions.publication import Alternative, Comparison, Keys, part
from agedp_data.notions.spans import SpanCurves
from agedp_data.parameters import Epsilon, wrong


class Classical(EnforcedPromise):
    r"""Each day of the data spends at most `epsilon_per_day`; nothing is assumed about the households.

    .. math:: \Pr[M(x) \in S] \le e^{\varepsilon} \Pr[M(x') \in S]

    for neighbouring datasets x and x', in which the readings of one household on one day differ (replacement, equal
    roster). The losses of several days [epsilon] add up: sequential composition.

    Source: Dwork et al., as [A] Definition 1; sequential composition as [A] Proposition 2.

    References:
        Dwork, McSherry, Nissim, Smith: Calibrating Noise to Sensitivity in Private Data Analysis. TCC, 2006.
        https://doi.org/10.1007/11681878_14
    """

    name: ClassVar[str] = "classical"
    TEXT: ClassVar[NotionText] = NotionText(
        epsilon_key="epsilon_per_day",
        own_bound=OwnBound("day", "day"),
    )

    notion: Literal["classical"]
    epsilon_per_day: Annotated[Epsilon, LOWER]
    """Epsilon of one day."""

    @model_validator(mode="after")
    def _within_caps(self) -> Self:
        refuse_day_above_caps(self, floor_nano(self.epsilon_per_day))
        return self

    @property
    def limits(self) -> dict[str, int | None]:
        """Return the caps, the day's no larger than `epsilon_per_day`."""
        return {**super().limits, DAY_BOUND: min(self.day_cap, floor_nano(self.epsilon_per_day))}

    def planned_loss(self, losses: Losses, day: str, leakage_bound: LeakageBoundLike | None) -> int:
        """Return `epsilon_per_day`; releases of other days do not change it."""
        del losses, day, leakage_bound
        return floor_nano(self.epsilon_per_day)

    def check(self, history: Sequence[HistoryRow], new_row: HistoryRow, leakage_bound: LeakageBoundLike | None) -> None:
        """Raise Refused if the day would spend more than `epsilon_per_day`."""
        del leakage_bound
        spent = self.largest_day(history, new_row, with_draws=False)
        refuse_above(new_row.day, "the day", spent, ("epsilon_per_day", floor_nano(self.epsilon_per_day)))

    def bounds(
        self, history: Sequence[HistoryRow], leakage_bound: LeakageBoundLike | None, at: str | None
    ) -> list[LossBound]:
        """Return the largest loss of a day and the total."""
        del leakage_bound, at
        return self.cap_bounds(history)

    @classmethod
    def candidates(cls, comparison: Comparison) -> tuple[Alternative, ...]:
        """Return epsilon spent by each day, and divided among all days of the period, at the delta of the promise."""
        caps, days, delta = comparison.promise, comparison.days, comparison.promise.delta
        curves = SpanCurves(comparison.publication)

        def each_day(epsilon: Decimal) -> Keys:
            return {"epsilon_per_day": min(epsilon, caps.max_day_epsilon)}

        def divided(epsilon: Decimal) -> Keys:
            total = epsilon if caps.epsilon_total == "unlimited" else min(epsilon, caps.epsilon_total)
            if delta is None:
                equal = min(part(total, days or 1), caps.max_day_epsilon)
            else:
                limit, cap = floor_nano(total), floor_nano(caps.max_day_epsilon)
                loss = curves.equal_loss(days or 1, epsilon=limit, delta=delta, cap=cap, beside=curves.draws)
                equal = Decimal(loss) / NANO
            return {"epsilon_per_day": equal, "epsilon_total": total}

        reason = "" if days else "a sum over all days needs [schedule] last_day"
        return (
            Alternative("each day", each_day, DAY_BOUND),
            Alternative("all days alike", divided, name_at_delta(TOTAL_BOUND, delta), reason),
        )


def refuse_day_above_caps(promise: EnforcedPromise, day: int, key: str = "epsilon_per_day") -> None:
    """Refuse parameters under which one day's loss exceeds a cap: the series would never begin.

    Source: sequential composition, [A] Proposition 2: no sum is below the loss of its first day.

    Args:
        promise: the promise with its caps.
        day: loss of the first day [nano-epsilon].
        key: key of [promise] that the message names.

    Raises:
        PydanticCustomError: the loss exceeds `max_day_epsilon` or `epsilon_total`.

    References:
        [A] https://doi.org/10.1109/TIT.2023.3340147
    """
    if day > promise.day_cap:
        raise wrong("is more than max_day_epsilon permits; lower it or raise the cap", key)
    if promise.total_cap is not None and day > promise.total_cap:
        raise wrong("is less than one day spends; no day would ever be released", "epsilon_total")
