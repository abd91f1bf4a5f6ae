"""Which losses releases may have so that temporal leakage stays within alpha: budgets of a frozen envelope (MATHS 4).

Every plan is one for which the envelope itself, in whole 1e-9, says at most alpha about every day, releases following
day by day; a local optimum is looked for on a smooth reading of it (straight lines between its grid points).
Days between them only let less through, so that a plan is good for days that lie further apart, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from agedp_data.losses import NANO
from agedp_data.notions.leaked import BACKWARD, FORWARD, TemporalLosses
from agedp_data.notions.notion import LeakageBoundLike, LossAtAge
from agedp_data.privacy.kernel import Floats
from agedp_data.privacy.longer_memory import HigherOrderRecursion
from agedp_data.privacy.recursion import BudgetRecursion, Recursion
from agedp_data.privacy.temporal_optimum import improved

Budget = Literal["best", "supremum", "exact", "even"]
Plan = tuple[int, ...]

_SOON_IMPROVED = 100
"""Releases up to which a local optimum is looked for."""

_HALVINGS = 40
_HARDLY = 1e-9

_LEAPS = 3
"""Days that the smooth reading leaps over, at most: each makes the search slower, and what it finds is fitted to the
envelope with all its leaps, so that fewer of them cost accuracy alone."""


@lru_cache(maxsize=16)
def infinite_horizon_loss(envelope: LeakageBoundLike, alpha: int, *, leaping: bool = True) -> int:
    """Return the largest loss that every day may have for ever, whole 1e-9; 0 if there is none."""
    leaked = TemporalLosses(envelope, leaping=leaping)

    def keeps(loss: int) -> bool:
        limit = leaked.limit(loss)
        return limit is not None and limit <= alpha

    return largest_feasible(keeps, alpha)


@lru_cache(maxsize=16)
def temporal_allocation(envelope: LeakageBoundLike, alpha: int, horizon: int, budget: Budget, day_cap: int) -> Plan:
    """Return the losses of so many releases, whole 1e-9, none above the cap of a day; none at all if none will do.

    "best" is the least mean noise scale of "even", "exact", the largest constant and, up to 100 releases, a local
    optimum near the best of these: never worse than [T] Algorithms 7 and 8 and alpha/T under this envelope. One that
    has the pieces of a declared kernel says what the kernel does, so that they are the paper's own for it, but for a
    few whole 1e-9. One that has a grid alone, of a model that is estimated, says some per cent too much (losses lie
    about 6 % apart), so that the papers' plans for its chains may be up to 4 % better.
    """
    leaked = TemporalLosses(envelope)
    constant = infinite_horizon_loss(envelope, alpha)
    plans: list[Plan] = []
    if budget == "supremum":
        plans.append((constant,) * horizon)
    if budget in ("best", "even"):
        plans.append((alpha // horizon,) * horizon)
    if budget in ("best", "exact"):
        # a leap raises the constant in the middle, and may lower what the last release builds up to
        plans += [_raised(envelope, horizon, alpha, leaping=leaping) for leaping in (True, False)]
    if budget == "best":
        plans.append((largest_feasible(lambda loss: _keeps(leaked, (loss,) * horizon, alpha), alpha),) * horizon)
        best = min(plans, key=_noise)
        if 1 < horizon <= _SOON_IMPROVED and min(best) > 0:
            plans.append(_improved(leaked, best, alpha))
    usable: list[Plan] = [tuple(min(loss, day_cap) for loss in plan) for plan in plans if min(plan) > 0]
    return min(usable, key=_noise) if usable else ()


def largest_feasible(holds: Callable[[int], bool], most: int) -> int:
    """Return the largest whole loss up to `most` that `holds`, which is true up to some loss; or 0."""
    if holds(most):
        return most
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _noise(plan: Plan) -> float:
    with np.errstate(divide="ignore"):
        return float(np.mean(1 / np.array(plan, dtype=np.float64)))


def _keeps(leaked: TemporalLosses, plan: Plan, alpha: int) -> bool:
    bound = leaked.largest(dict(enumerate(plan)))
    return bound is not None and bound <= alpha


def _raised(envelope: LeakageBoundLike, horizon: int, alpha: int, *, leaping: bool) -> Plan:
    """Return [T] Algorithm 8: the first and the last release have what endless ones would have built up to."""
    if horizon == 1:
        return (alpha,)
    constant, leaked = (
        infinite_horizon_loss(envelope, alpha, leaping=leaping),
        TemporalLosses(envelope, leaping=leaping),
    )
    first, last = (leaked.supremum(direction, constant) or constant for direction in (BACKWARD, FORWARD))
    return _fitted(
        TemporalLosses(envelope), np.array([first, *[constant] * (horizon - 2), last], dtype=np.float64), alpha
    )


def _improved(leaked: TemporalLosses, start: Plan, alpha: int) -> Plan:
    plan = improved(_smooth(leaked, start[len(start) // 2]), np.array(start) / NANO, alpha / NANO)
    sound = bool(np.isfinite(plan).all()) and plan.min() > 0
    return _fitted(leaked, plan * NANO, alpha) if sound else start


def _fitted(leaked: TemporalLosses, plan: Floats, alpha: int) -> Plan:
    """Return the plan in whole 1e-9, all its losses raised or lowered alike as far as alpha leaves it."""
    if plan.max() == 0:
        return tuple(plan.astype(np.int64).tolist())

    def at(share: float) -> Plan:
        return tuple(np.floor(plan * share).astype(np.int64).tolist())

    low, high = 0.0, alpha / float(plan.max())  # no figure is below a loss of its own
    for share in (1.0, 1.0 + _HARDLY):
        low, high = (max(low, share), high) if _keeps(leaked, at(share), alpha) else (low, min(high, share))
    for _ in range(_HALVINGS):
        if high - low <= _HARDLY * high:
            break
        middle = (low + high) / 2
        low, high = (middle, high) if _keeps(leaked, at(middle), alpha) else (low, middle)
    return at(low)


def _smooth(leaked: TemporalLosses, loss: int) -> BudgetRecursion:
    """Return the recursion in floats, over a day at a time or, where that is worth its time at such a loss, leaping."""

    def lines(passing: Callable[[str, int], LossAtAge], direction: str, days: int = 1) -> _UpperLines:
        return _UpperLines(passing(direction, days))

    step_by_step = leaked.carry(BACKWARD, 1).supremum(loss)
    if leaked.steps_per_day == 1 and step_by_step != leaked.supremum(BACKWARD, loss):
        back, ahead = (
            tuple(lines(leaked.carry, direction, days) for days in range(1, _LEAPS + 1))
            for direction in (BACKWARD, FORWARD)
        )
        return HigherOrderRecursion(back, ahead)
    sides = [lines(passing, direction) for direction in (BACKWARD, FORWARD) for passing in (leaked.carry, leaked.reach)]
    return Recursion(*sides)


class _UpperLines:
    """L at one age by straight lines between the grid points of an envelope, with slope one beyond the last."""

    def __init__(self, leakage: LossAtAge) -> None:
        grid, values = leakage.points
        pairs = [(loss / NANO, value / NANO) for loss, value in zip(grid, values, strict=True) if loss < math.inf]
        self._losses = np.array([0.0, *(loss for loss, _ in pairs)])
        self._values = np.array([0.0, *(value for _, value in pairs)])

    def __call__(self, loss: Floats) -> Floats:
        beyond = np.maximum(loss - self._losses[-1], 0.0)
        return np.asarray(np.interp(loss, self._losses, self._values) + beyond)

    def supremum(self, loss: ArrayLike) -> Floats:
        """Return the smallest x with loss + L(x) = x, infinite if there is none."""
        return np.asarray(np.vectorize(self._supremum, otypes=[np.float64])(loss), dtype=np.float64)

    def _supremum(self, loss: float) -> float:
        shortfall = loss + self._values - self._losses
        index = int((shortfall <= 0).argmax())
        if loss == 0 or shortfall[index] > 0:
            return 0.0 if loss == 0 else math.inf
        # Between two grid points what is missing falls in a straight line.
        share = shortfall[index - 1] / (shortfall[index - 1] - shortfall[index])
        return float(self._losses[index - 1] + share * (self._losses[index] - self._losses[index - 1]))
