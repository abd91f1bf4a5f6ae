"""Budget allocation under temporal correlation: losses whose total leakage never exceeds alpha ([T] section 5).

Total leakage increases with every loss, so the smaller of two households' plans, release by release, suits both. [T]
Algorithm 7 (a constant loss whose SUPREMUM is alpha) and Algorithm 8 (alpha attained at each of T releases) have the
same loss in the middle: with B and F the suprema at it, eqs. 26 and 27 are solved by alpha_B = B and alpha_F = F, and
Algorithm 8 only raises the first release to B and the last to F. Example: two states that persist with probability
0.98, T = 10, alpha = 1: the mean of 1/e is 47, 38 and 10 for Algorithm 7, Algorithm 8 and alpha/T.

Errata to [T]:

* Neither algorithm is optimal. Under strong correlation both lose to alpha/T, which is always valid: TPL_t is at most
  the sum of all losses.
* The loss is constant on [2, T - 1], not on [2, T].
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from agedp_data.accounting.temporal_optimum import local_optimum
from agedp_data.accounting.temporal_recursion import OneSidedRecursion, Recursion, checked_loss_series
from agedp_data.arrays import Floats
from agedp_data.errors import ChainError
from agedp_data.leakage.batched import BatchedLeakage, Kernels
from agedp_data.leakage.exact import NANO, round_up_with_slack

_MARGIN = 1e-14  # relative rounding error of a long recursion near its supremum
_NEGLIGIBLE = 1e-12  # a constant below this share of alpha counts as none: identity, or two values that never mix
_HALVINGS = 100
_ROUNDINGS = 4
_ULP = float(np.finfo(np.float64).eps)


def allocate(kernel_b: Kernels, kernel_f: Kernels, *, alpha: float, horizon: int, method: str) -> Floats:
    r"""Losses of `horizon` releases whose total leakage is at most alpha at every release.

    Use it to plan a series under an alpha-DP_T promise. The result is checked with `temporal`, in floats. All methods
    except "supremum" know T: the series must end after it.

    ============  ===========================================================================================
    method        losses
    ============  ===========================================================================================
    "supremum"    the largest constant whose leakage stays within alpha for ever ([T] Algorithm 7); the only
                  method for a series without a known end
    "exact"       the same with the first and the last release raised: every TPL_t is alpha, and one further
                  release would exceed it ([T] Algorithm 8)
    "even"        alpha/T, valid for every correlation
    "best"        the least mean noise scale, mean of 1/e: the largest constant for T releases, "exact" if it
                  exists, or a local optimum from there; never worse than the other methods
    ============  ===========================================================================================

    .. math:: L_B(\alpha_B) + \alpha_F = \alpha, \quad L_F(\alpha_F) + \alpha_B = \alpha, \quad
        \varepsilon_1 = \alpha_B, \; \varepsilon_T = \alpha_F, \; \varepsilon_t = \alpha_B + \alpha_F - \alpha

    Source: [T] Algorithms 7 and 8, eqs. 26 and 27. Errata: see the head of the module.

    Args:
        kernel_b: P_B as in `backward`, shape (..., k, k) [-]; the losses hold for every household of a stack.
        kernel_f: P_F as in `forward`, shape (..., k, k) [-].
        alpha: bound on the total leakage, > 0 and finite [epsilon].
        horizon: T, number of releases, >= 1.
        method: see above.

    Returns:
        Shape (T,) [epsilon].

    Raises:
        ChainError: an unknown method, alpha or horizon out of range; "supremum" or "exact" where no constant has a
        supremum
            within alpha (identity, or two values that are never confused).

    References:
        [T] Cao, Yoshikawa, Xiao, Xiong: Quantifying Differential Privacy in Continuous Data Release Under Temporal
        Correlations. IEEE Trans. Knowl. Data Eng. 31(7), 2019. https://doi.org/10.1109/TKDE.2018.2824328

    >>> stay = [[0.98, 0.02], [0.02, 0.98]]
    >>> [float((1 / allocate(stay, stay, alpha=1, horizon=10, method=m)).mean().round(1)) for m in METHODS]
    [47.0, 38.0, 10.0, 9.0]
    """
    plan = allocate_with(temporal_recursion(kernel_b, kernel_f), alpha=alpha, horizon=horizon, method=method)
    # Checked by the same computation as `temporal`, which differs for a short series.
    return _fitted(temporal_recursion(kernel_b, kernel_f, releases=horizon), plan, alpha)


def temporal_recursion(kernel_b: Kernels, kernel_f: Kernels, *, releases: int | None = None) -> Recursion[Floats]:
    r"""Recursion of both directions for kernels, with one step per release.

    Use it with `allocate_with`, `round_up_losses` and `windows`.

    .. math:: x_t = \varepsilon_t + L_{P_B}(x_{t-1}), \qquad y_t = \varepsilon_t + L_{P_F}(y_{t+1})

    Source: [T] eqs. 13 and 15.

    Args:
        kernel_b: P_B as in `backward`, shape (..., k, k) [-].
        kernel_f: P_F as in `forward`, shape (..., k, k) [-].
        releases: number of releases if known: chooses the faster evaluation.

    Returns:
        The recursion.

    Raises:
        ChainError: as `temporal`.

    References:
        [T] Cao, Yoshikawa, Xiao, Xiong: Quantifying Differential Privacy in Continuous Data Release Under Temporal
        Correlations. IEEE Trans. Knowl. Data Eng. 31(7), 2019. https://doi.org/10.1109/TKDE.2018.2824328

    >>> temporal_recursion(np.eye(2), None).leakage_totals([0.25, 0.5]).total.tolist()  # identity: the losses add up
    [0.25, 0.75]
    """
    backward = BatchedLeakage(kernel_b, evaluations=releases)
    forward = backward if kernel_f is kernel_b else BatchedLeakage(kernel_f, evaluations=releases)
    return Recursion(OneSidedRecursion(lambda _: backward), OneSidedRecursion(lambda _: forward))


def allocate_with(recursion: Recursion[Floats], *, alpha: float, horizon: int, method: str) -> Floats:
    r"""Losses as from `allocate`, for any recursion.

    Use it for daily releases on a half-hourly chain, or for a model's leakage bound.

    .. math:: \max_t TPL_t(\varepsilon_1, \dots, \varepsilon_T) \le \alpha

    Source: [T] Algorithms 7 and 8, as in `allocate`.

    Args:
        recursion: leakage of a series of losses, for all households.
        alpha: bound on the total leakage, > 0 and finite [epsilon].
        horizon: T, number of releases, >= 1.
        method: as in `allocate`.

    Returns:
        Shape (T,) [epsilon].

    Raises:
        ChainError: as `allocate`.

    References:
        [T] Cao, Yoshikawa, Xiao, Xiong: Quantifying Differential Privacy in Continuous Data Release Under Temporal
        Correlations. IEEE Trans. Knowl. Data Eng. 31(7), 2019. https://doi.org/10.1109/TKDE.2018.2824328

    >>> allocate_with(temporal_recursion(np.eye(2), None), alpha=1, horizon=4, method="even").tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    if method not in _PLANS:
        raise ChainError(f"method = {method!r}: known are {', '.join(_PLANS)}")
    if not (math.isfinite(alpha) and alpha > 0):
        raise ChainError(f"alpha = {alpha}: the bound on the temporal leakage is a positive number")
    if horizon < 1:
        raise ChainError(f"horizon = {horizon}: a series has at least one release")
    return _PLANS[method](recursion, float(alpha), int(horizon))


def round_up_losses(recursion: Recursion[Floats], losses: ArrayLike, *, alpha: float, endless: bool = False) -> Floats:
    r"""Losses in integer nano-epsilon, at most the given ones, whose leakage, rounded UP, is at most alpha.

    Use it before losses are recorded. Losses are rounded down; a plan that is exact in floats may exceed alpha by 1e-9
    after its leakage is rounded up. Then every loss is reduced by 1e-9, which lowers every leakage by at least as much.

    .. math:: \max_t \lceil 10^9\, TPL_t \rceil \le 10^9 \alpha, \qquad 10^9 \varepsilon_t \in \mathbb{Z}

    Source: this project.

    Args:
        recursion: of `temporal_recursion`, `daily_recursion` or a model.
        losses: planned losses, shape (T,), >= 0 [epsilon].
        alpha: bound on the total leakage, a multiple of 1e-9 [epsilon].
        endless: whether releases of the last loss continue without end, included in the bound.

    Returns:
        Shape (T,), floats nearest to multiples of 1e-9 [epsilon]; 0 where nothing remains.

    Raises:
        ChainError: losses whose leakage exceeds alpha by more than rounding.

    References:
        [T] Cao, Yoshikawa, Xiao, Xiong: Quantifying Differential Privacy in Continuous Data Release Under Temporal
        Correlations. IEEE Trans. Knowl. Data Eng. 31(7), 2019. https://doi.org/10.1109/TKDE.2018.2824328

    >>> round_up_losses(temporal_recursion(np.eye(2), None), [2 / 3, 1 / 3], alpha=1.0).tolist()
    [0.666666666, 0.333333333]
    """
    nano_epsilon = np.floor(checked_loss_series(losses) * NANO * (1 + _ULP))
    for _ in range(_ROUNDINGS):
        rounded = nano_epsilon / NANO
        last = float(rounded[-1]) if endless else 0.0
        leakages = np.append(recursion.leakage_totals(rounded, future_loss=last).total, recursion.total_supremum(last))
        if (round_up_with_slack(leakages) <= alpha).all():
            return rounded
        nano_epsilon = np.maximum(nano_epsilon - 1, 0)
    raise ChainError("these losses leak more than alpha; rounding alone does not correct them")


def _even(recursion: Recursion[Floats], alpha: float, horizon: int) -> Floats:
    return _fitted(recursion, np.full(horizon, alpha / horizon), alpha)


def _supremum(recursion: Recursion[Floats], alpha: float, horizon: int) -> Floats:
    loss = float(np.min(_constants(recursion, alpha)))
    _check_constant(loss, alpha)
    # The household with the smallest constant has the supremum alpha; the others are below it.
    loss = _reduced_share(lambda share: float(np.max(recursion.total_supremum(loss * share))), alpha) * loss
    return np.full(horizon, loss)


def _exact(recursion: Recursion[Floats], alpha: float, horizon: int) -> Floats:
    return _scaled(recursion, _algorithm_8(recursion, alpha, horizon), alpha)


def _algorithm_8(recursion: Recursion[Floats], alpha: float, horizon: int) -> Floats:
    """Plan of [T] Algorithm 8; for different households the smallest loss of each release."""
    if horizon == 1:
        return np.full(1, alpha)
    constants = _constants(recursion, alpha)
    loss = float(np.min(constants))
    _check_constant(loss, alpha)
    plan = np.full(horizon, loss)
    first, last = recursion.one_sided_suprema(constants)
    plan[0], plan[-1] = np.min(first), np.min(last)
    return plan


def _best(recursion: Recursion[Floats], alpha: float, horizon: int) -> Floats:
    plans = [_scaled(recursion, np.full(horizon, alpha / horizon), alpha)]
    # Algorithm 8 exists only if some constant loss is feasible without end.
    with suppress(ChainError):
        plans.append(_exact(recursion, alpha, horizon))
    optimum = local_optimum(recursion, min(plans, key=_mean_noise_scale), alpha)
    if np.isfinite(optimum).all() and optimum.min() > 0:
        plans.append(_scaled(recursion, optimum, alpha))
    return min(plans, key=_mean_noise_scale)


def _mean_noise_scale(losses: Floats) -> float:
    return float((1 / losses).mean())


def _constants(recursion: Recursion[Floats], alpha: float) -> Floats:
    """Largest constant loss of each household whose leakage never exceeds alpha; 0 if there is none."""
    high = np.full(np.shape(recursion.total_supremum(0.0)), alpha)
    low = np.where(recursion.total_supremum(high) <= alpha, high, 0.0)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        is_feasible = recursion.total_supremum(middle) <= alpha * (1 - _MARGIN)
        low, high = np.where(is_feasible, middle, low), np.where(is_feasible, high, middle)
        if (high - low <= _ULP * high).all() or (high < _NEGLIGIBLE * alpha).any():
            break
    return low


def _check_constant(loss: float, alpha: float) -> None:
    if loss <= _NEGLIGIBLE * alpha:
        raise ChainError(
            "no constant loss keeps the leakage within alpha without end, since two values stay distinguishable at "
            'every age; name a horizon and take method "even" or "best"'
        )


def _scaled(recursion: Recursion[Floats], plan: Floats, alpha: float) -> Floats:
    """The plan with all losses scaled alike until the largest leakage is alpha."""
    from scipy.optimize import brentq  # noqa: PLC0415  (slow to import, and few commands need it)

    def excess(share: float) -> float:
        return _largest_leakage(recursion, plan * share) - alpha

    # No leakage is below its own loss, and none above the sum of all.
    largest, smallest = alpha / plan.max(), alpha / plan.sum()
    share = (
        largest
        if excess(largest) <= 0
        else smallest
        if excess(smallest) >= 0
        else brentq(excess, smallest, largest, xtol=1e-300)
    )
    return _fitted(recursion, plan * float(share), alpha)


def _fitted(recursion: Recursion[Floats], plan: Floats, alpha: float) -> Floats:
    """The plan, reduced by as many units in the last place as its leakage exceeds alpha."""
    return plan * _reduced_share(lambda share: _largest_leakage(recursion, plan * share), alpha)


def _reduced_share(leakage: Callable[[float], float], alpha: float) -> float:
    share, step = 1.0, _ULP
    while leakage(share) > alpha:
        share, step = 1.0 - step, 2 * step
    return max(share, 0.0)


def _largest_leakage(recursion: Recursion[Floats], losses: Floats) -> float:
    return float(recursion.leakage_totals(losses).total.max())


_PLANS: Final[dict[str, Callable[[Recursion[Floats], float, int], Floats]]] = {
    "supremum": _supremum,
    "exact": _exact,
    "even": _even,
    "best": _best,
}

METHODS: Final = tuple(_PLANS)
"""The methods of `allocate`."""
