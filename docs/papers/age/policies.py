"""Proposition 4 and Theorem 4 tried out: the interval that eq. 40 asks for, and schedules that are not periodic.

By total variation of the chain of two states, w -> e^eps (1 + Delta(gap) w) - 1 for w = e^z - 1 is linear, so that a
cycle of outputs has its peak in closed form.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import minimize_scalar

from docs.papers.age.two_state import AGENTS, MOVE

LEFT = 1 - 2 * MOVE
_LONGEST = 11


def kept_by_interval(loss: float, total: float) -> float:
    """Return rho^S e^eps at the best split of A + S = total under eq. 30, found by a search ([A] eq. 40: 1/2)."""
    shortest = loss / -np.log(LEFT)

    def risk(interval: float) -> float:
        return float(np.log1p(LEFT ** (total - interval) * np.expm1(loss) / (1 - LEFT**interval * np.exp(loss))))

    bounds = (shortest * (1 + 1e-9), total)
    best = minimize_scalar(risk, bounds=bounds, method="bounded", options={"xatol": 1e-9}).x
    return float(LEFT**best * np.exp(loss))


def cycle_peak(intervals: Sequence[int], losses: Sequence[float]) -> float:
    """Return the peak of fresh outputs whose losses, and the intervals after them, take turns; infinite without one."""
    slope, rest = 1.0, 0.0
    steps = [(loss, LEFT ** intervals[k - 1]) for k, loss in enumerate(losses)]
    for loss, distance in steps:
        slope, rest = np.exp(loss) * distance * slope, np.expm1(loss) + np.exp(loss) * distance * rest
    if slope >= 1:
        return float("inf")
    odds, most = rest / (1 - slope), 0.0
    for loss, distance in steps:
        odds = np.expm1(loss) + np.exp(loss) * distance * odds
        most = max(most, odds)
    return float(np.log1p(most))


def least_loss(total: int, allowed: float) -> float:
    """Return the loss at which the mean square error of the total age A + S is `allowed`, infinite if none is."""
    room = allowed - 2 * (1 - LEFT**total) / AGENTS
    return float(np.sqrt(8 / room) / AGENTS) if room > 0 else float("inf")


def periodic_and_alternating(allowed: float) -> tuple[float, float]:
    """Return the least peak of fresh outputs with one interval, and with two that take turns."""
    losses = {total: least_loss(total, allowed) for total in range(1, _LONGEST + 1)}
    fit = [total for total, loss in losses.items() if np.isfinite(loss)]
    alone = min(cycle_peak([first], [losses[first]]) for first in fit)
    turns = min(
        cycle_peak([first, second], [losses[first], losses[second]])
        for first in fit
        for second in fit
        if first < second
    )
    return alone, turns
