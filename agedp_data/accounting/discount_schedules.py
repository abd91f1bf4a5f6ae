r"""Schedules of losses under a bound on the discounted loss: discounted differential privacy ([F], Section III).

The idea: release k has the loss r_k = sensitivity/b_k, b_k its noise scale. The promise is

.. math:: \sum_{k=1}^{t} a(t - k) \, r_k \le \varepsilon \quad \text{for every } t.

Example: hyperbolic weights with beta = 1 and epsilon = 1 allow the losses 1, 1/2, 5/12 (method "renewal").

Decisions:

* The bound holds at EVERY release. Erratum: Definitions 10 and 14 of [F] do not say for which t. An instant without a
  release needs no check, because weights do not increase.
* Every schedule is scaled down until `discounted_loss` itself, with its rounding, finds the bound met.
* The undiscounted total has no bound. Whoever publishes must report it beside the discounted loss.

[F] Farokhi: Temporally Discounted Differential Privacy for Evolving Datasets on an Infinite Horizon. ICCPS 2020.
https://doi.org/10.48550/arXiv.1908.03995
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Final

import numpy as np

from agedp_data.accounting.discounting import (
    Discount,
    Exponential,
    Hyperbolic,
    Weights,
    certified_constant,
    discounted_loss,
    paper_constant,
    parse_number,
    renewal,
)
from agedp_data.arrays import Floats
from agedp_data.errors import ChainError

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
"""Largest relative optimality gap of an "optimal" schedule; a larger one is refused."""


def schedule(discount: Discount, *, epsilon: float, horizon: int, method: str) -> Floats:
    r"""Return the losses of `horizon` releases whose discounted loss is at most `epsilon` at every release.

    .. math:: \max_t \sum_{k=1}^{t} a(t - k) \, r_k \le \varepsilon

    ==================  =====================================================================================
    method              loss r_k of release k
    ==================  =====================================================================================
    "classical"         epsilon/T, without discounting
    "constant"          epsilon/(a(0) + ... + a(T-1)), the largest constant
    "paper"             exponential: epsilon (1 - alpha) ([F] Corollary 12, eq. 11); hyperbolic: epsilon/(C sqrt k),
                        [F] Corollary 16 with the sufficient constant `certified_constant`
    "corollary-16"      the same with the paper's constant `paper_constant`, to reproduce [F]; refused where it
                        breaks the promise; not available in a run file
    "renewal"           (epsilon - sum over j < k of a(k-j) r_j)/a(0): every constraint is met with equality
    "optimal"           least sum of 1/r_k: exponential in closed form, others within 1e-6 (`least_noise`)
    ==================  =====================================================================================

    Use "optimal" for a known horizon, "renewal" or "paper" for an unknown one. Erratum: the constant of [F] Corollary
    16 (eq. 14) is too small for beta > 3.6538 and beta < 1.2203e-5. Rounding costs the last decimals only.

    Args:
        discount: `Exponential`, `Hyperbolic` or `Weights`.
        epsilon: bound of the discounted loss, > 0 [epsilon].
        horizon: number of releases T, >= 1; with "paper", "corollary-16" and "renewal" any longer series begins alike.
        method: see above.

    Returns:
        Losses, shape (T,), > 0 [epsilon].

    Raises:
        ChainError: an unknown method, or a method that the discount does not have; epsilon that is not a positive
            number; a horizon that is not an integer >= 1; a loss outside the range of floats; "renewal" for a(0) =
            a(1), which leaves no budget to the second release; "optimal" where no schedule is proven to be within 1e-6
            of the optimum.

    References:
        [F] https://doi.org/10.48550/arXiv.1908.03995

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
    r"""Return the first losses of a series without a known end.

    .. math:: r_k = \frac{6 \varepsilon}{\pi^2 k^2} \text{ ("classical")}, \quad
       r_k = \varepsilon (1 - \alpha) \text{ ("constant")}

    Source: "classical" is [F] Corollary 8 (eq. 8), whose losses sum to epsilon; "constant" is [F] Corollary 12 (eq. 11)
    and exists for exponential weights only. Other methods: as `schedule`.

    Args:
        discount: `Exponential`, `Hyperbolic` or `Weights`.
        epsilon: bound of the discounted loss, > 0 [epsilon].
        releases: number of losses to return, >= 1.
        method: as in `schedule`, without "optimal".

    Returns:
        Losses, shape (releases,), > 0 [epsilon].

    Raises:
        ChainError: "optimal", or "constant" with weights whose sum is not known; or as `schedule`.

    References:
        [F] https://doi.org/10.48550/arXiv.1908.03995

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


def exponential_optimum(alpha: float, releases: int) -> Floats:
    r"""Return the schedule with the least mean noise for weights alpha^j and epsilon = 1, in closed form.

    .. math:: r_{k+1} = \sqrt\alpha \, r_k \text{ for } k < m, \quad r_k = 1 - \alpha \text{ for } k > m, \quad
       m = \min \{ k : \alpha^{k/2} \le 1/(1 + \sqrt\alpha) \}

    Source: optimality conditions of the programme of `discounting` under [F] Theorem 11 (eq. 10). The
    discounted loss reaches 1 at m and stays there.

    Args:
        alpha: discount factor per release, 0 < alpha <= 1 [-].
        releases: number of releases T, >= 1.

    Returns:
        Losses, shape (T,), > 0 [epsilon].

    References:
        [F] https://doi.org/10.48550/arXiv.1908.03995

    >>> exponential_optimum(0.25, 3).round(12).tolist()  # sqrt(alpha) = 1/2: at m = 1, 1/2 <= 2/3
    [1.0, 0.75, 0.75]
    """
    if alpha == 1:
        return np.full(releases, 1 / releases)
    root = math.sqrt(alpha)
    m = min(releases, max(1, math.ceil(2 * math.log1p(root) / -math.log(alpha))))
    last = (1 - alpha) / (1 + root) / -math.expm1(m / 2 * math.log(alpha))  # 1/(1 + root + ... + root^(m-1))
    decreasing = last * root ** -np.arange(m - 1, -1, -1.0)
    return np.concatenate([decreasing, np.full(releases - m, 1 - alpha)])


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
    """Return losses scaled down until `discounted_loss`, whose roundings change with them, finds the bound met."""
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
            "renewal needs a(0) > a(1): the first release spends epsilon, and at the second it still has full "
            "weight, so that the second has no budget; take method = 'constant' or 'optimal'"
        )
    return renewal(weights)


def _optimal(discount: Discount, horizon: int) -> Floats:
    if isinstance(discount, Exponential):
        return exponential_optimum(discount.alpha, horizon)
    from agedp_data.accounting.discount_optimiser import least_noise  # noqa: PLC0415  (it needs scipy)

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
