"""Sentences about a temporal promise: what it promises, and why no loss keeps it under a model."""

from __future__ import annotations

from decimal import Decimal
from typing import Literal

from agedp_data.accounting.temporal_allocation import Budget
from agedp_data.epsilon import format_delta, format_epsilon
from agedp_data.notions.notion_text import name_at_delta
from agedp_data.notions.temporal_loss import LEAKAGE


def opening(alpha: Decimal, delta: Decimal | None, *, has_draws: bool) -> str:
    """Return the first sentence of a statement: alpha, the bound about any one day by all releases.

    Source: text, without a formula.

    Args:
        alpha: bound on the temporal leakage [epsilon].
        delta: probability with which it is promised [-]; None for none.
        has_draws: whether calibration draws count as well.
    """
    draws = " and the draws of the calibration" if has_draws else ""
    bound, meaning = f"epsilon {alpha:f}", ""
    if delta is not None:
        bound = f"the bound of epsilon {alpha:f} with delta {format_delta(delta)}"
        meaning = (
            f". By that bound every set of results is at most e^{alpha:f} times as probable under any other use of the "
            f"day, plus {format_delta(delta)}"
        )
    return (
        f"No further release takes what all noisy releases, those still to come as well,{draws} together say about "
        f"any one day of a household beyond {bound}, under the assumption of the figure "
        f"'{name_at_delta(LEAKAGE, delta)}'{meaning}."
    )


def chain_obstacle(alpha: Decimal, horizon_days: int | Literal["unlimited"], budget: Budget, left: int) -> str:
    """Return that the temporal correlation of a model is too strong for a plan, and a plan that is possible.

    Source: text, without a formula.

    Args:
        alpha: bound on the temporal leakage [epsilon].
        horizon_days: number of releases [days].
        budget: the allocation.
        left: what calibration draws leave of alpha [nano-epsilon].
    """
    if horizon_days == "unlimited":
        return (
            f"under this model no constant loss without end keeps alpha = {alpha:f}: the temporal correlation "
            'is too strong; name horizon_days with budget = "best" '
            f"(365 days leave each of them epsilon {format_epsilon(left // 365)} at least)"
        )
    if budget in ("supremum", "exact"):
        return (
            f"under this model no constant loss without end keeps alpha = {alpha:f}, which budget = "
            f'"{budget}" needs: the temporal correlation is too strong; "even" leaves each of '
            f"{horizon_days} days epsilon {format_epsilon(left // horizon_days)}"
        )
    return f"alpha = {alpha:f} over {horizon_days} days leaves a day less than 0.000000001"
