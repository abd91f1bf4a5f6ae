"""Discounted differential privacy: how much each release may spend so that old losses count less ([F], MATHS 5).

[F] is F. Farokhi, Temporally Discounted Differential Privacy for Evolving Datasets on an Infinite Horizon,
ICCPS 2020. Release k spends r_k = sensitivity/b_k; the promise is that sum over k <= t of a(t-k) r_k <= epsilon at
EVERY t (the paper's Definitions 10 and 14 do not say for which). An instant without a release needs no check,
for weights do not increase. The undiscounted sum has no bound; whoever publishes must say what it comes to.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Final

import numpy as np

from agedp_data.errors import ChainError
from agedp_data.privacy.discounts import Discount, Exponential, Hyperbolic, Weights, discounted_loss, parse_number
from agedp_data.privacy.kernel import Floats
from agedp_data.privacy.least_noise import least_noise
from agedp_data.privacy.optimum import exponential_optimum, renewal
from agedp_data.privacy.square_root import certified_constant, paper_constant

__all__ = [
    "METHODS",
    "Discount",
    "Exponential",
    "Hyperbolic",
    "Weights",
    "certified_constant",
    "discounted_loss",
    "infinite_horizon_schedule",
    "paper_constant",
    "schedule",
]


MAX_OPTIMALITY_GAP: Final = 1e-6
"""By which part of its noise an "optimal" schedule may exceed the optimum; beyond it is refused."""


def schedule(discount: Discount, *, epsilon: float, horizon: int, method: str) -> Floats:
    """Return the losses of `horizon` releases, whose discounted sum is at most `epsilon` at every one of them.

    ==================  =====================================================================================
    method              r_k
    ==================  =====================================================================================
    "classical"         epsilon/T, not discounted at all
    "constant"          epsilon/(a(0) + ... + a(T-1)), the largest constant
    "paper"             exponential: epsilon (1 - alpha) ([F] Corollary 12); hyperbolic: epsilon/(C sqrt k),
                        [F] Corollary 16 with the constant that is enough, `certified_constant`
    "corollary-16"      the same with the paper's own constant, for whoever repeats its figures; refused where it breaks
                        the promise (beta above 3.6538 or below 1.2203e-5), and without a name in a run file
    "renewal"           (epsilon - sum over j < k of a(k-j) r_j)/a(0): every sum is epsilon; needs no horizon
    "optimal"           least sum of 1/r_k: exponential in closed form, others certified to 1e-6 (`least_noise`)
    ==================  =====================================================================================

    Only the last decimals are lost to rounding: what is returned is scaled down until `discounted_loss` finds it kept
    at every release. Shapes: (T,). Units: [-].

    Args:
        discount: `Exponential`, `Hyperbolic` or `Weights`.
        epsilon: bound of the discounted sum.
        horizon: number of releases T; with "paper", "corollary-16" and "renewal" any longer series begins alike.
        method: see above.

    Raises:
        ChainError: an unknown method or one that the discount has not, epsilon that is not a positive number, a horizon
            that is not a whole number from 1 on, a loss out of the range of floats; "renewal" for a(0) = a(1), which
            leaves later releases nothing; "optimal" where no schedule is proven to be within 1e-6 of the optimum.

    >>> schedule(Hyperbolic(1), epsilon=1, horizon=3, method="renewal").round(6).tolist()  # 1, 1 - 1/2, 1 - 1/4 - 1/3
    [1.0, 0.5, 0.416667]
    >>> schedule(Exponential(0.25), epsilon=1, horizon=3, method="optimal").round(6).tolist()
    [1.0, 0.75, 0.75]
    """
    if method not in METHODS:
        raise ChainError(f"method = {method!r}: known are {', '.join(METHODS)}")
    bound, count = _positive(epsilon), _releases(horizon, "horizon")
    with np.errstate(over="ignore", divide="ignore"):
        losses = METHODS[method](discount, count) * bound
        if np.isfinite(losses).all():
            losses = _scaled_to_bound(losses, discount, bound)
    if not (np.isfinite(losses).all() and (losses > 0).all()):
        raise ChainError(
            f"method = {method!r}: over {count} releases a loss would be too small or too large for a number; "
            "take fewer releases, another method, or weights and epsilon nearer to 1"
        )
    return losses


def infinite_horizon_schedule(discount: Discount, *, epsilon: float, releases: int, method: str) -> Floats:
    """Return the first losses of a series of which nobody knows the end.

    As `schedule`, but "classical" is [F] Corollary 8, r_k = 6 epsilon/(pi^2 k^2), and "constant" exists for
    exponential discounting only, epsilon (1 - alpha). Shapes: (T,). Units: [-].

    Raises:
        ChainError: "optimal", or "constant" with weights whose sum has no known end; or as `schedule`.

    >>> infinite_horizon_schedule(Exponential(0.9), epsilon=1, releases=2, method="constant").round(6).tolist()
    [0.1, 0.1]
    """
    if method == "classical":
        epsilon, releases = _positive(epsilon), _releases(releases, "releases")
        k = np.arange(1.0, releases + 1)
        return epsilon * 6 / (math.pi * k) ** 2 * (1 - 8 * np.finfo(np.float64).eps)
    if method == "constant" and isinstance(discount, Exponential) and discount.alpha < 1:
        return schedule(discount, epsilon=epsilon, horizon=releases, method="paper")
    if method in ("constant", "optimal"):
        raise ChainError(f"a series without end has no {method} schedule under this discount; name a horizon")
    return schedule(discount, epsilon=epsilon, horizon=releases, method=method)


def _positive(epsilon: float) -> float:
    bound = parse_number(epsilon, "epsilon")
    if not 0 < bound < math.inf:
        raise ChainError(f"epsilon = {epsilon}: the bound of a discounted sum is a positive number")
    return bound


def _releases(number: int, name: str) -> int:
    try:
        count = operator.index(number)
    except TypeError:
        raise ChainError(f"{name} = {number!r}: a whole number of releases is needed") from None
    if count < 1:
        raise ChainError(f"{name} = {count}: a schedule has at least one release")
    return count


def _scaled_to_bound(losses: Floats, discount: Discount, bound: float) -> Floats:
    """Return losses scaled down until `discounted_loss` itself, whose roundings change with them, finds them kept."""
    margin = 4 * np.finfo(np.float64).eps
    while (largest := float(discounted_loss(losses, discount).max())) > bound:
        losses, margin = losses * (bound / largest * (1 - margin)), 2 * margin  # in the end nothing, which is refused
    return losses


def _classical(discount: Discount, horizon: int) -> Floats:
    # a(0) is the largest weight
    return np.full(horizon, 1 / (horizon * float(discount.weights(1)[0])))


def _constant(discount: Discount, horizon: int) -> Floats:
    return np.full(horizon, 1 / math.fsum(discount.weights(horizon)))


def _paper(discount: Discount, horizon: int) -> Floats:
    return _paper_schedule(discount, horizon, certified_constant)


def _corollary_16(discount: Discount, horizon: int) -> Floats:
    if not isinstance(discount, Hyperbolic):
        raise ChainError("Corollary 16 is about hyperbolic discounting; take method = 'paper'")
    return _paper_schedule(discount, horizon, paper_constant)


def _paper_schedule(discount: Discount, horizon: int, constant: Callable[[float], float]) -> Floats:
    match discount:
        case Exponential(alpha) if alpha < 1:
            return np.full(horizon, 1 - alpha)
        case Hyperbolic(beta) if beta > 0:
            return np.asarray(1 / (constant(beta) * np.sqrt(np.arange(1.0, horizon + 1))))
    raise ChainError("the paper has a schedule for alpha below 1 or beta above 0 only; take another method")


def _renewal(discount: Discount, horizon: int) -> Floats:
    weights = discount.weights(horizon)
    if horizon > 1 and weights[0] == weights[1]:
        raise ChainError(
            "renewal needs a(0) > a(1): the first release spends epsilon, and the second, to which it still counts "
            "in full, would be left nothing; take method = 'constant' or 'optimal'"
        )
    return renewal(weights)


def _optimal(discount: Discount, horizon: int) -> Floats:
    if isinstance(discount, Exponential):
        return exponential_optimum(discount.alpha, horizon)
    losses, gap = least_noise(discount.weights(horizon))
    if gap > MAX_OPTIMALITY_GAP:
        raise ChainError(
            f"the least noise over {horizon} releases was found to {gap:.1e} of itself only, not to "
            f"{MAX_OPTIMALITY_GAP:g}; take fewer releases, or method = 'renewal'"
        )
    return losses


METHODS: Final[dict[str, Callable[[Discount, int], Floats]]] = {
    "classical": _classical,
    "constant": _constant,
    "paper": _paper,
    "corollary-16": _corollary_16,
    "renewal": _renewal,
    "optimal": _optimal,
}
"""By name, the losses for epsilon = 1."""
