"""Bounds on the discounted loss of released rows, under any promise ([F]).

[F] Farokhi: Temporally Discounted Differential Privacy for Evolving Datasets on an Infinite Horizon. ICCPS 2020.
https://doi.org/10.48550/arXiv.1908.03995
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import ClassVar, Final, Literal

from agedp_data.accounting.discounting import DiscountName, DiscountWeights, weighted_sum_to_nano
from agedp_data.leakage.function import LeakageBoundLike
from agedp_data.notions.notion import HistoryRow, LossBound, day_number, losses_by_day_number

Clock = Literal["data-day", "publication-day"]

BY_CLOCK: Final[dict[Clock, str]] = {"data-day": "", "publication-day": " by publication"}
_OF_CLOCK: Final[dict[Clock, str]] = {"data-day": "days of the data", "publication-day": "days of publication"}


@dataclass(frozen=True, slots=True)
class DiscountedLoss:
    r"""Accountant of the discounted loss: the discounted sum of all days' losses, free of assumptions.

    .. math:: \max_t \sum_{k \le t} a(t - k)\, \varepsilon_k + \sum_i e_i

    `charge` is the loss of all calibration draws e_i, which count in full on every day (`period_loss`).

    Source: [F] Definitions 10 and 14, in integers [nano-epsilon]. Erratum: both must hold for every t.

    References:
        [F] https://doi.org/10.48550/arXiv.1908.03995
    """

    discount: DiscountName
    rate: Decimal
    clock: Clock
    charge: int = 0
    name: ClassVar[str] = "discounted"

    def bounds(
        self, history: Sequence[HistoryRow], leakage_bound: LeakageBoundLike | None, at: str | None
    ) -> list[LossBound]:
        """Return the largest sum on any day, and the sum on the newest one (or `at`, if that is later)."""
        del leakage_bound
        losses: dict[str, int] = {}
        for row in history:
            if row.state == "released":
                tick = row.day if self.clock == "data-day" else row.published_on
                losses[tick] = losses.get(tick, 0) + row.loss
        ticks, weights = losses_by_day_number(losses), discount_weights(self.discount, self.rate)
        newest = max([*ticks, *([day_number(at)] if at else [])], default=0)
        counted = format_weight(self.discount, self.rate)
        scope = f"all published days of one household, a loss j {_OF_CLOCK[self.clock]} ago counted {counted}"
        if self.charge:
            scope += ", the calibration draws counted in full"
        worst, now = self.names
        largest = weights.largest(ticks) + self.charge
        newest_sum = weighted_sum_to_nano(weights.total(ticks, newest)) + self.charge
        return [
            LossBound(worst, largest, "assumption-free", f"{scope}, on the worst day", odds=False),
            LossBound(now, newest_sum, "assumption-free", scope, odds=False),
        ]

    @property
    def names(self) -> tuple[str, str]:
        """Return the names of its bounds: on the worst day, on the newest one."""
        worst = f"discounted sum ({self.discount} {self.rate:f}{BY_CLOCK[self.clock]})"
        return worst, f"{worst} on the newest day"


def format_weight(discount: DiscountName, rate: Decimal) -> str:
    """Return the formula of the weight of a loss j days old.

    Source: [F] Definitions 9 and 13.

    Args:
        discount: name of the discount.
        rate: discount rate [-].

    Returns:
        Text with j for the age in days.

    >>> format_weight("exponential", Decimal("0.99")), format_weight("hyperbolic", Decimal(3))
    ('0.99^j', '1/(1 + 3 j)')
    """
    return f"{rate}^j" if discount == "exponential" else f"1/(1 + {rate} j)"


@lru_cache(maxsize=64)
def discount_weights(discount: DiscountName, rate: Decimal) -> DiscountWeights:
    """Return the weights of a discount, one object for equal ones.

    Source: [F] Definitions 9 and 13 (`DiscountWeights`).

    Args:
        discount: name of the discount.
        rate: discount rate [-].

    Returns:
        Weights in units of 2^-64 [-].
    """
    return DiscountWeights(discount, rate)
