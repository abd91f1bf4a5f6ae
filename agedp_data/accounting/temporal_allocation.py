"""Losses of releases whose total leakage never exceeds alpha ([T] section 5), for any pair of leakage functions.

`Allocator` has the plans of the paper once; `_FloatAllocator` computes them in floats for papers and the public
functions, `_NanoAllocator` in whole nano-epsilon for releases, whose leakage bound itself gives at most alpha about
every day. Example: two states that persist with probability 0.98, T = 10, alpha = 1: the mean of 1/e is 47, 38 and 10
for Algorithm 7, Algorithm 8 and alpha/T.

Decisions:

* Total leakage increases with every loss, so the smaller of two households' plans, release by release, suits both.
* Releases follow day by day. Further days between them only lower the leakage.
* A plan for a leakage bound is the paper's own for a declared kernel, but for a few nano-epsilon. An estimated model
  has a grid alone (losses about 6 % apart), so that the paper's plans for its chains may be up to 4 % better.

[T] Cao, Yoshikawa, Xiao, Xiong: Quantifying Differential Privacy in Continuous Data Release Under Temporal
Correlations. IEEE Trans. Knowl. Data Eng. 31(7), 2019. https://doi.org/10.1109/TKDE.2018.2824328
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Final, Literal

import numpy as np
from numpy.typing import ArrayLike

from agedp_data.accounting.temporal_plans import (
    Allocator,
    Plan,
    largest_feasible,
    mean_noise_scale,
    smooth_recursion,
)
from agedp_data.accounting.temporal_recursion import Recursion, TemporalLosses, checked_loss_series, temporal_recursion
from agedp_data.arrays import Floats
from agedp_data.epsilon import NANO
from agedp_data.errors import ChainError
from agedp_data.leakage.batched import Kernels
from agedp_data.leakage.exact import round_up_with_slack
from agedp_data.leakage.function import LeakageBoundLike

Budget = Literal["best", "supremum", "exact", "even"]

METHODS: Final = ("supremum", "exact", "even", "best")
"""The methods of `allocate`."""

_MAX_IMPROVED = 100
"""Releases up to which a local optimum under a leakage bound is looked for."""

_MARGIN = 1e-14  # relative rounding error of a long recursion near its supremum
_NEGLIGIBLE = 1e-12  # a constant below this share of alpha counts as none: identity, or two values that never mix
_HALVINGS = 100
_NANO_HALVINGS = 40
_HARDLY = 1e-9
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

    Source: [T] Algorithms 7 and 8, eqs. 26 and 27. Errata: neither algorithm is optimal, and under strong correlation
    both lose to alpha/T; the loss is constant on [2, T - 1], not on [2, T].

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
            supremum within alpha (identity, or two values that are never confused).

    References:
        [T] https://doi.org/10.1109/TKDE.2018.2824328

    >>> stay = [[0.98, 0.02], [0.02, 0.98]]
    >>> [float((1 / allocate(stay, stay, alpha=1, horizon=10, method=m)).mean().round(1)) for m in METHODS]
    [47.0, 38.0, 10.0, 9.0]
    """
    plan = allocate_with(temporal_recursion(kernel_b, kernel_f), alpha=alpha, horizon=horizon, method=method)
    # Checked by the same computation as `temporal`, which differs for a short series.
    return _FloatAllocator(temporal_recursion(kernel_b, kernel_f, releases=horizon), alpha).reduced(plan)


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
        [T] https://doi.org/10.1109/TKDE.2018.2824328

    >>> allocate_with(temporal_recursion(np.eye(2), None), alpha=1, horizon=4, method="even").tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    if method not in METHODS:
        raise ChainError(f"method = {method!r}: known are {', '.join(METHODS)}")
    if not (math.isfinite(alpha) and alpha > 0):
        raise ChainError(f"alpha = {alpha}: the bound on the temporal leakage is a positive number")
    if horizon < 1:
        raise ChainError(f"horizon = {horizon}: a series has at least one release")
    plans = _FloatAllocator(recursion, float(alpha)).plans(int(horizon), method)
    if not plans:
        raise ChainError(
            "no constant loss keeps the leakage within alpha without end, since two values stay distinguishable at "
            'every age; name a horizon and take method "even" or "best"'
        )
    return min(plans, key=mean_noise_scale)


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
        [T] https://doi.org/10.1109/TKDE.2018.2824328

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


@lru_cache(maxsize=16)
def temporal_allocation(
    leakage_bound: LeakageBoundLike, alpha: int, horizon: int | None, budget: Budget, day_cap: int
) -> Plan:
    r"""Losses of `horizon` daily releases whose temporal leakage stays within alpha under a leakage bound.

    .. math:: \max_k TPL_k(e_1, \dots, e_T) \le \alpha, \qquad
        \max \{ e : \sup_k TPL_k(e, e, \dots) \le \alpha \} \text{ without end}

    Source: [T] Algorithms 7 and 8, as in `allocate`; "best" never has more noise than these and alpha/T under this
    leakage bound. Erratum: Algorithm 8 is not optimal and loses to alpha/T under strong correlation.

    Args:
        leakage_bound: leakage bound in both directions.
        alpha: bound on the temporal leakage [nano-epsilon].
        horizon: number of releases; None without end: the plan is then the one loss of every day.
        budget: the plan.
        day_cap: largest loss of a day [nano-epsilon].

    Returns:
        Losses e_1, ..., e_T [nano-epsilon]; () if none exist.

    References:
        [T] https://doi.org/10.1109/TKDE.2018.2824328

    >>> from agedp_data.leakage.bound_table import LeakageBound
    >>> bounds = [LeakageBound([1], [1.0], [[L]], [[L]], steps_per_day=1, assume="markov") for L in (0.0, 1.0)]
    >>> [temporal_allocation(bound, 600, None, "supremum", 900) for bound in bounds]  # independent days; copies
    [(600,), ()]
    >>> [temporal_allocation(bounds[1], 600, 3, budget, 150) for budget in ("even", "supremum")]
    [(150, 150, 150), ()]
    """
    allocator = _NanoAllocator(leakage_bound, alpha)
    plans = allocator.plans(horizon, budget) if horizon else allocator.plans(1, "supremum")
    capped: list[Plan] = [tuple(min(loss, day_cap) for loss in plan) for plan in plans if min(plan) > 0]
    return min(capped, key=mean_noise_scale, default=())


class _NanoAllocator(Allocator[Plan]):
    """Plans in whole nano-epsilon under a leakage bound; steps over several releases raise a constant, not all ends."""

    unit = NANO

    def __init__(self, leakage_bound: LeakageBoundLike, alpha: int) -> None:
        self.losses = TemporalLosses(leakage_bound)
        super().__init__(alpha, self.losses.recursion, TemporalLosses(leakage_bound, higher_order=False).recursion)

    def keeps(self, leakage: int | None) -> bool:
        return leakage is not None and leakage <= self.alpha

    def endless_loss(self, recursion: Recursion[int]) -> int | None:
        return largest_feasible(lambda loss: self.keeps(recursion.endless_total(loss)), int(self.alpha)) or None

    def endless(self, horizon: int) -> list[Plan]:
        loss = self.endless_loss(self.recursions[0])
        return [(loss,) * horizon] if loss else []

    def even(self, horizon: int) -> Plan:
        return (int(self.alpha) // horizon,) * horizon

    def constant(self, horizon: int) -> Plan:
        return (largest_feasible(lambda loss: self._fits((loss,) * horizon), int(self.alpha)),) * horizon

    def fitted(self, plan: Floats) -> Plan:
        def at(share: float) -> Plan:
            return tuple(np.floor(plan * share).astype(np.int64).tolist())

        low, high = 0.0, self.alpha / float(plan.max())  # a bound is never below the loss of its own day
        for share in (1.0, 1.0 + _HARDLY):
            low, high = (max(low, share), high) if self._fits(at(share)) else (low, min(high, share))
        for _ in range(_NANO_HALVINGS):
            if high - low <= _HARDLY * high:
                break
            middle = (low + high) / 2
            low, high = (middle, high) if self._fits(at(middle)) else (low, middle)
        return at(low)

    def smooth(self, start: Plan) -> Recursion[Floats] | None:
        is_improved = 1 < len(start) <= _MAX_IMPROVED and min(start) > 0
        loss = start[len(start) // 2]
        return smooth_recursion(self.losses, loss) if is_improved else None

    def _fits(self, plan: Plan) -> bool:
        return self.keeps(self.losses.largest(dict(enumerate(plan))))


class _FloatAllocator(Allocator[Floats]):
    """Plans in floats, for every household of a stack."""

    def __init__(self, recursion: Recursion[Floats], alpha: float) -> None:
        super().__init__(alpha, recursion)
        self.recursion = recursion

    def endless_loss(self, recursion: Recursion[Floats]) -> Floats | None:
        high = np.full(np.shape(recursion.total_supremum(0.0)), self.alpha)
        low = np.where(recursion.total_supremum(high) <= self.alpha, high, 0.0)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            is_feasible = recursion.total_supremum(middle) <= self.alpha * (1 - _MARGIN)
            low, high = np.where(is_feasible, middle, low), np.where(is_feasible, high, middle)
            if (high - low <= _ULP * high).all() or (high < _NEGLIGIBLE * self.alpha).any():
                break
        return low if float(np.min(low)) > _NEGLIGIBLE * self.alpha else None

    def endless(self, horizon: int) -> list[Floats]:
        constants = self.endless_loss(self.recursion)
        if constants is None:
            return []
        loss = float(np.min(constants))
        # The household with the smallest constant has the supremum alpha; the others are below it.
        share = self._reduced_share(lambda share: float(np.max(self.recursion.total_supremum(loss * share))))
        return [np.full(horizon, share * loss)]

    def even(self, horizon: int) -> Floats:
        return self.reduced(np.full(horizon, self.alpha / horizon))

    def constant(self, horizon: int) -> Floats:
        return self.fitted(np.full(horizon, self.alpha / horizon))

    def fitted(self, plan: Floats) -> Floats:
        from scipy.optimize import brentq  # noqa: PLC0415  (slow to import, and few commands need it)

        def excess(share: float) -> float:
            return self._largest_leakage(plan * share) - self.alpha

        # No leakage is below its own loss, and none above the sum of all.
        largest, smallest = self.alpha / plan.max(), self.alpha / plan.sum()
        if excess(largest) <= 0:
            return self.reduced(plan * largest)
        share = smallest if excess(smallest) >= 0 else brentq(excess, smallest, largest, xtol=1e-300)
        return self.reduced(plan * float(share))

    def smooth(self, start: Floats) -> Recursion[Floats]:
        del start
        return self.recursion

    def reduced(self, plan: Floats) -> Floats:
        """Return a plan, reduced by as many units in the last place as its leakage exceeds alpha."""
        return plan * self._reduced_share(lambda share: self._largest_leakage(plan * share))

    def _reduced_share(self, leakage: Callable[[float], float]) -> float:
        share, step = 1.0, _ULP
        while leakage(share) > self.alpha:
            share, step = 1.0 - step, 2 * step
        return max(share, 0.0)

    def _largest_leakage(self, losses: Floats) -> float:
        return float(self.recursion.leakage_totals(losses).total.max())
