"""Temporal leakage of released rows about any one day: under a model, and without one at a delta ([T])."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import ClassVar, Final

from agedp_data.accounting.temporal_recursion import TemporalLosses
from agedp_data.leakage.function import LeakageBoundLike
from agedp_data.notions.aged_loss import assumed
from agedp_data.notions.notion import HistoryRow, LossBound, day_losses, losses_by_day_number
from agedp_data.notions.period_loss import Charges
from agedp_data.notions.span_loss import bound_at_delta

LEAKAGE: Final = "temporal leakage"
_INDEPENDENT: Final = "households are independent of each other, whatever the correlation between the days of each"
_ABOUT: Final = "any one day of one household, released or not, by all days released so far"


@dataclass(frozen=True, slots=True)
class TemporalLeakage:
    """Accountant of the temporal leakage about any one day by all days released so far, under any promise.

    `charge` is the loss of all calibration draws, which is added (`period_loss`).

    Source: [T] Definition 8 and eq. 11 (`TemporalLosses`) [nano-epsilon].

    References:
        [T] https://doi.org/10.1109/TKDE.2018.2824328
    """

    charge: int = 0
    name: ClassVar[str] = "temporal"

    def bounds(
        self, history: Sequence[HistoryRow], leakage_bound: LeakageBoundLike | None, at: str | None
    ) -> list[LossBound]:
        """Return the largest leakage about any one day; nothing under a model without forward leakage."""
        del at
        if leakage_bound is None or not leakage_bound.has_both_directions:
            return []
        leakage = TemporalLosses(leakage_bound).largest(losses_by_day_number(day_losses(history)))
        value = None if leakage is None else leakage + self.charge
        about = f"{_ABOUT} and the calibration draws" if self.charge else _ABOUT
        return [LossBound(LEAKAGE, value, "conditional", about, assumed(leakage_bound))]


def leakage_at_delta(span: int, by_chain: Sequence[LossBound], delta: Decimal, charges: Charges) -> LossBound:
    r"""Return the temporal leakage at a delta: the smaller of the span's figure and the chain's.

    For a secret x (one day), results y and the whole series h of a household,

    .. math:: \Pr[y \in S \mid x] = \sum_h \Pr[h \mid x] \Pr[y \in S \mid h]
              \le e^{\varepsilon} \Pr[y \in S \mid x'] + \delta ,

    since the releases together are (epsilon, delta)-private towards h, whatever the law of h given x.

    Source: convexity of (epsilon, delta) in both arguments; households are independent of each other.

    Args:
        span: loss of all rows and draws at delta (`SpanLoss`) [nano-epsilon].
        by_chain: the bounds under a model (`TemporalLeakage`), none without one.
        delta: probability [-].
        charges: calibration draws.
    """
    value, assumption = span, _INDEPENDENT
    for bound in by_chain:
        if bound.value is not None and bound.value < value:
            value, assumption = bound.value, bound.assumption
    draws = " and the calibration draws" if charges else ""
    return bound_at_delta(LEAKAGE, value, "conditional", f"{_ABOUT}{draws}", delta=delta, assumption=assumption)
