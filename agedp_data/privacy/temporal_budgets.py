"""Budgets under temporal correlation: losses of releases whose total leakage never exceeds alpha ([T] 5, MATHS 4).

Total leakage rises with every loss, so what fits one household and what fits another fit both where the smaller of
each is taken. [T] Algorithm 7 (a constant loss whose SUPREMUM is alpha) and Algorithm 8 (alpha reached at every one of
T releases) have the same loss in the middle: with B and F the suprema at it, equations 26 and 27 are solved by
alpha_B = B and alpha_F = F, and Algorithm 8 only raises the first release to B and the last to F. Neither is the best:
with strong correlation both lose to alpha/T (two states, stay .98, T = 10: mean 1/e 38.0 against 10), which is valid
whatever the correlation, since TPL_t is at most the sum of all losses. (The middle is [2, T - 1], not [T]'s [2, T].)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from agedp_data.chains.rounding import NANO, round_up_with_slack
from agedp_data.errors import ChainError
from agedp_data.privacy.kernel import Floats
from agedp_data.privacy.recursion import BudgetRecursion, Recursion, checked_losses
from agedp_data.privacy.stacked import BatchedLeakage, Kernels
from agedp_data.privacy.temporal_optimum import improved

_MARGIN = 1e-14  # what a long recursion may round away from its limit, relative
_NOTHING = 1e-12  # a constant this small beside alpha is none: identity, or two values that never mix
_HALVINGS = 100
_ROUNDINGS = 4
_ULP = float(np.finfo(np.float64).eps)


def allocate(kernel_b: Kernels, kernel_f: Kernels, *, alpha: float, horizon: int, method: str) -> Floats:
    """Return the losses of `horizon` releases whose total leakage TPL_t is at most alpha at every one of them.

    ============  ===========================================================================================
    method        losses
    ============  ===========================================================================================
    "supremum"    the largest constant whose TPL stays within alpha however long the series goes on: the only
                  one for a series without known end ([T] Algorithm 7)
    "exact"       the same with the first and the last release raised: every TPL_t is alpha, and a further
                  release would break it ([T] Algorithm 8)
    "even"        alpha/T, whatever the correlation
    "best"        the least mean noise scale, mean of 1/e: the largest constant for T releases (never below
                  those of "supremum" and "even"), "exact" if there is one, or a local optimum from there
    ============  ===========================================================================================

    What is returned is checked with `temporal`: the largest figure is at most alpha, in floats. All but the first
    method know T, and the series must close after it. Shapes: (..., k, k), (..., k, k) -> (T,). Units: [-].

    Args:
        kernel_b: P_B as in `backward`: a stack is one of households (the losses hold for each), a tuple a set, None no
            known correlation.
        kernel_f: P_F.
        alpha: what all releases together may say about any one, above 0 and finite.
        horizon: number of releases T.
        method: see above.

    Raises:
        ChainError: an unknown method, alpha or horizon out of range; "supremum" or "exact" where no constant has a
            supremum within alpha (identity, or two values that are never mistaken for each other).

    References: [T] Algorithms 7, 8; MATHS 4.

    >>> stay = [[0.98, 0.02], [0.02, 0.98]]
    >>> [float((1 / allocate(stay, stay, alpha=1, horizon=10, method=m)).mean().round(1)) for m in METHODS]
    [47.0, 38.0, 10.0, 9.0]
    """
    plan = allocate_with(recursion(kernel_b, kernel_f), alpha=alpha, horizon=horizon, method=method)
    # The very figures that `temporal` gives, which are computed in another way for a short series.
    return _within(recursion(kernel_b, kernel_f, releases=horizon), plan, alpha)


def recursion(kernel_b: Kernels, kernel_f: Kernels, *, releases: int | None = None) -> Recursion:
    """Return the recursions of both directions; with `releases`, as is best for so many. Errors: as `temporal`."""
    behind = BatchedLeakage(kernel_b, evaluations=releases)
    ahead = behind if kernel_f is kernel_b else BatchedLeakage(kernel_f, evaluations=releases)
    return Recursion(behind, behind, ahead, ahead)


def allocate_with(course: BudgetRecursion, *, alpha: float, horizon: int, method: str) -> Floats:
    """Return the losses of `allocate` for any recursion: daily releases on half-hours, or a model's envelope.

    Shapes: -> (T,). Units and errors: as `allocate`.

    >>> from agedp_data.privacy.temporal_blocks import block_recursion
    >>> daily = block_recursion([[0.9, 0.1], [0.1, 0.9]], steps_per_day=48)
    >>> allocate_with(daily, alpha=1, horizon=3, method="supremum").round(4).tolist()
    [0.3857, 0.3857, 0.3857]
    """
    if method not in _PLANS:
        raise ChainError(f"method = {method!r}: known are {', '.join(_PLANS)}")
    if not (math.isfinite(alpha) and alpha > 0):
        raise ChainError(f"alpha = {alpha}: what all releases may say is a positive number")
    if horizon < 1:
        raise ChainError(f"horizon = {horizon}: a series has at least one release")
    return _PLANS[method](course, float(alpha), int(horizon))


def round_up_losses(course: BudgetRecursion, losses: ArrayLike, *, alpha: float, endless: bool = False) -> Floats:
    """Return losses in whole 1e-9, at most those given, whose leakage rounded up to whole 1e-9 is at most alpha.

    What is granted is rounded down and what it comes to is rounded up, so a plan that is exact in floats may be one
    1e-9 above: then every loss gives way by so much, which lowers every figure by as much at least.

    Shapes: (T,) -> (T,). Units: [-], held as the floats nearest to whole 1e-9; zero where nothing is left.

    Args:
        course: `temporal.recursion`, `block_recursion` or that of a model.
        losses: as planned.
        alpha: in whole 1e-9.
        endless: whether releases of the last loss go on for ever, and the figures hold beside all of them.

    Raises:
        ChainError: losses that are above alpha by more than rounding.

    >>> from agedp_data.privacy.temporal import recursion
    >>> round_up_losses(recursion(np.eye(2), None), [2 / 3, 1 / 3], alpha=1.0).tolist()
    [0.666666666, 0.333333333]
    """
    whole = np.floor(checked_losses(losses) * NANO * (1 + _ULP))
    for _ in range(_ROUNDINGS):
        found = whole / NANO
        last = float(found[-1]) if endless else 0.0
        figures = np.append(course.leak(found, beyond=last).total, course.limit(last))
        if (round_up_with_slack(figures) <= alpha).all():
            return found
        whole = np.maximum(whole - 1, 0)
    raise ChainError("these losses leak more than alpha; rounding alone does not mend them")


def _even(course: BudgetRecursion, alpha: float, horizon: int) -> Floats:
    return _within(course, np.full(horizon, alpha / horizon), alpha)


def _supremum(course: BudgetRecursion, alpha: float, horizon: int) -> Floats:
    loss = float(np.min(_constants(course, alpha)))
    _refuse_nothing(loss, alpha)
    # Of other households that hold more, the limit at this loss is smaller; of this one it is alpha.
    loss = _shaved(lambda share: float(np.max(course.limit(loss * share))), alpha) * loss
    return np.full(horizon, loss)


def _exact(course: BudgetRecursion, alpha: float, horizon: int) -> Floats:
    return _scaled(course, _raised(course, alpha, horizon), alpha)


def _raised(course: BudgetRecursion, alpha: float, horizon: int) -> Floats:
    """Return the plan of [T] Algorithm 8, for households that differ the smallest of each release."""
    if horizon == 1:
        return np.full(1, alpha)
    each = _constants(course, alpha)
    loss = float(np.min(each))
    _refuse_nothing(loss, alpha)
    plan = np.full(horizon, loss)
    first, last = course.ends(each)
    plan[0], plan[-1] = np.min(first), np.min(last)
    return plan


def _best(course: BudgetRecursion, alpha: float, horizon: int) -> Floats:
    found = [_scaled(course, np.full(horizon, alpha / horizon), alpha)]
    # Where no constant loss will do for ever there is no Algorithm 8 either.
    with suppress(ChainError):
        found.append(_exact(course, alpha, horizon))
    better = improved(course, min(found, key=_noise), alpha)
    if np.isfinite(better).all() and better.min() > 0:
        found.append(_scaled(course, better, alpha))
    return min(found, key=_noise)


def _noise(losses: Floats) -> float:
    return float((1 / losses).mean())


def _constants(course: BudgetRecursion, alpha: float) -> Floats:
    """Return for each household the largest constant whose leakage never exceeds alpha; 0 if there is none."""
    high = np.full(np.shape(course.limit(0.0)), alpha)
    low = np.where(course.limit(high) <= alpha, high, 0.0)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        fits = course.limit(middle) <= alpha * (1 - _MARGIN)
        low, high = np.where(fits, middle, low), np.where(fits, high, middle)
        if (high - low <= _ULP * high).all() or (high < _NOTHING * alpha).any():
            break
    return low


def _refuse_nothing(loss: float, alpha: float) -> None:
    if loss <= _NOTHING * alpha:
        raise ChainError(
            "no constant loss keeps the leakage within alpha for ever, since two values are never mistaken for each "
            'other; name a horizon and take method "even" or "best"'
        )


def _scaled(course: BudgetRecursion, plan: Floats, alpha: float) -> Floats:
    """Return the plan with all its losses raised or lowered alike until the largest leakage is alpha."""
    from scipy.optimize import brentq  # noqa: PLC0415  (slow to import, and few commands need it)

    def excess(share: float) -> float:
        return _largest(course, plan * share) - alpha

    # No leakage is below its own loss, and none above the sum of all.
    most, least = alpha / plan.max(), alpha / plan.sum()
    share = most if excess(most) <= 0 else least if excess(least) >= 0 else brentq(excess, least, most, xtol=1e-300)
    return _within(course, plan * float(share), alpha)


def _within(course: BudgetRecursion, plan: Floats, alpha: float) -> Floats:
    """Return the plan, lowered by as many units in the last place as its leakage lies above alpha."""
    return plan * _shaved(lambda share: _largest(course, plan * share), alpha)


def _shaved(figure: Callable[[float], float], alpha: float) -> float:
    share, step = 1.0, _ULP
    while figure(share) > alpha:
        share, step = 1.0 - step, 2 * step
    return max(share, 0.0)


def _largest(course: BudgetRecursion, losses: Floats) -> float:
    return float(course.leak(losses).total.max())


_PLANS: Final[dict[str, Callable[[BudgetRecursion, float, int], Floats]]] = {
    "supremum": _supremum,
    "exact": _exact,
    "even": _even,
    "best": _best,
}

METHODS: Final = tuple(_PLANS)
"""The methods of `allocate`."""
