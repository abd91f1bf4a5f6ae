"""Losses of releases whose temporal leakage stays within alpha: plans under a leakage bound ([T] section 5).

For every plan the leakage bound itself, in nano-epsilon, gives at most alpha about every day, releases following day by
day; a local optimum is searched on a smooth reading of it (straight lines between its grid points). Further days
between releases only lower the leakage, so that a plan holds for days that lie further apart, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Literal, cast

import numpy as np
from numpy.typing import ArrayLike

from agedp_data.accounting.temporal_losses import TemporalLosses
from agedp_data.accounting.temporal_optimum import local_optimum
from agedp_data.accounting.temporal_recursion import OneSidedRecursion, Recursion
from agedp_data.arrays import Floats
from agedp_data.epsilon import NANO
from agedp_data.leakage.function import LeakageBoundLike, LeakageFunction, SampledLeakage

Budget = Literal["best", "supremum", "exact", "even"]
Plan = tuple[int, ...]

_SOON_IMPROVED = 100
"""Releases up to which a local optimum is looked for."""

_HALVINGS = 40
_HARDLY = 1e-9

_MAX_ORDER = 3
"""Largest order of the smooth reading: each order makes the search slower, and the plan found is fitted to the
leakage bound with all its orders, so that a smaller number costs accuracy alone."""


@lru_cache(maxsize=16)
def infinite_horizon_loss(leakage_bound: LeakageBoundLike, alpha: int, *, higher_order: bool = True) -> int:
    r"""Largest loss that every day may have without end [nano-epsilon]; 0 if there is none.

    .. math:: \max \{ e : \sup_k TPL_k(e, e, \dots) \le \alpha \}

    Source: [T] Algorithm 7: the constant whose supremum meets alpha, here under the leakage bound itself.

    Args:
        leakage_bound: leakage bound in both directions.
        alpha: bound on the temporal leakage [nano-epsilon].
        higher_order: whether the recursion may skip releases (`TemporalLosses`).

    Returns:
        [nano-epsilon].

    References:
        [T] https://doi.org/10.1109/TKDE.2018.2824328

    >>> from agedp_data.leakage.bound_table import LeakageBound
    >>> bounds = [LeakageBound([1], [1.0], [[L]], [[L]], steps_per_day=1, assume="markov") for L in (0.0, 1.0)]
    >>> [infinite_horizon_loss(bound, 600) for bound in bounds]  # days are independent, or copies of one day
    [600, 0]
    """
    temporal_losses = TemporalLosses(leakage_bound, higher_order=higher_order)

    def keeps(loss: int) -> bool:
        limit = temporal_losses.limit(loss)
        return limit is not None and limit <= alpha

    return largest_feasible(keeps, alpha)


@lru_cache(maxsize=16)
def temporal_allocation(
    leakage_bound: LeakageBoundLike, alpha: int, horizon: int, budget: Budget, day_cap: int
) -> Plan:
    r"""Losses of `horizon` daily releases whose temporal leakage stays within alpha.

    For a declared kernel, whose pieces are known, plans are the paper's own but for a few nano-epsilon. An estimated
    model has a grid alone (losses about 6 % apart), so that the paper's plans for its chains may be up to 4 % better.

    .. math:: \max_k TPL_k(e_1, \dots, e_T) \le \alpha

    Source: "even": alpha/T. "exact": [T] Algorithm 8. "supremum": [T] Algorithm 7. "best": the least mean noise scale
    of "even", "exact", the largest constant and, up to 100 releases, a local optimum near the best of these; never
    worse than Algorithms 7 and 8 and alpha/T under this leakage bound. Erratum: Algorithm 8 is not optimal and loses to
    alpha/T under strong correlation.

    Args:
        leakage_bound: leakage bound in both directions.
        alpha: bound on the temporal leakage [nano-epsilon].
        horizon: number of releases.
        budget: the plan.
        day_cap: largest loss of a day [nano-epsilon].

    Returns:
        Losses e_1, ..., e_T [nano-epsilon]; () if none exist.

    References:
        [T] Cao, Yoshikawa, Xiao, Xiong: Quantifying Differential Privacy in Continuous Data Release Under Temporal
        Correlations. IEEE Trans. Knowl. Data Eng. 31(7), 2019. https://doi.org/10.1109/TKDE.2018.2824328

    >>> from agedp_data.leakage.bound_table import LeakageBound
    >>> bound = LeakageBound([1], [1.0], [[1.0]], [[1.0]], steps_per_day=1, assume="markov")  # days are copies
    >>> temporal_allocation(bound, 600, 3, "even", 150), temporal_allocation(bound, 600, 3, "supremum", 150)
    ((150, 150, 150), ())
    """
    temporal_losses = TemporalLosses(leakage_bound)
    constant = infinite_horizon_loss(leakage_bound, alpha)
    plans: list[Plan] = []
    if budget == "supremum":
        plans.append((constant,) * horizon)
    if budget in ("best", "even"):
        plans.append((alpha // horizon,) * horizon)
    if budget in ("best", "exact"):
        # a higher order raises the constant in the middle, and may lower the supremum at the last release
        plans += [_raised(leakage_bound, horizon, alpha, higher_order=higher_order) for higher_order in (True, False)]
    if budget == "best":
        plans.append(
            (largest_feasible(lambda loss: _keeps(temporal_losses, (loss,) * horizon, alpha), alpha),) * horizon
        )
        best = min(plans, key=_noise)
        if 1 < horizon <= _SOON_IMPROVED and min(best) > 0:
            plans.append(_improved(temporal_losses, best, alpha))
    usable: list[Plan] = [tuple(min(loss, day_cap) for loss in plan) for plan in plans if min(plan) > 0]
    return min(usable, key=_noise) if usable else ()


def largest_feasible(holds: Callable[[int], bool], most: int) -> int:
    r"""Largest whole loss up to `most` for which `holds`, which is true up to some loss; 0 if there is none.

    .. math:: \max \{ e \in \mathbb{Z} : 0 \le e \le m,\ h(e) \}

    Source: bisection over integers.

    Args:
        holds: condition h, true up to some loss and false beyond.
        most: largest loss m to try [nano-epsilon].

    Returns:
        [nano-epsilon].

    >>> largest_feasible(lambda loss: 3 * loss <= 10, 8)
    3
    """
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


def _keeps(temporal_losses: TemporalLosses, plan: Plan, alpha: int) -> bool:
    bound = temporal_losses.largest(dict(enumerate(plan)))
    return bound is not None and bound <= alpha


def _raised(leakage_bound: LeakageBoundLike, horizon: int, alpha: int, *, higher_order: bool) -> Plan:
    """Return [T] Algorithm 8: the first and the last release have what endless ones would have built up to."""
    if horizon == 1:
        return (alpha,)
    constant, temporal_losses = (
        infinite_horizon_loss(leakage_bound, alpha, higher_order=higher_order),
        TemporalLosses(leakage_bound, higher_order=higher_order),
    )
    recursion = temporal_losses.recursion
    first, last = (side.supremum(constant) or constant for side in (recursion.backward, recursion.forward))
    return _fitted(
        TemporalLosses(leakage_bound), np.array([first, *[constant] * (horizon - 2), last], dtype=np.float64), alpha
    )


def _improved(temporal_losses: TemporalLosses, start: Plan, alpha: int) -> Plan:
    plan = local_optimum(_smooth(temporal_losses, start[len(start) // 2]), np.array(start) / NANO, alpha / NANO)
    sound = bool(np.isfinite(plan).all()) and plan.min() > 0
    return _fitted(temporal_losses, plan * NANO, alpha) if sound else start


def _fitted(temporal_losses: TemporalLosses, plan: Floats, alpha: int) -> Plan:
    """Return the plan in whole 1e-9, all its losses raised or lowered alike as far as alpha leaves it."""
    if plan.max() == 0:
        return tuple(plan.astype(np.int64).tolist())

    def at(share: float) -> Plan:
        return tuple(np.floor(plan * share).astype(np.int64).tolist())

    low, high = 0.0, alpha / float(plan.max())  # a bound is never below the loss of its own day
    for share in (1.0, 1.0 + _HARDLY):
        low, high = (max(low, share), high) if _keeps(temporal_losses, at(share), alpha) else (low, min(high, share))
    for _ in range(_HALVINGS):
        if high - low <= _HARDLY * high:
            break
        middle = (low + high) / 2
        low, high = (middle, high) if _keeps(temporal_losses, at(middle), alpha) else (low, middle)
    return at(low)


def _smooth(temporal_losses: TemporalLosses, loss: int) -> Recursion[Floats]:
    """Return the recursion in floats, over a day at a time or, where that is worth its time at such a loss, longer."""
    sides = temporal_losses.recursion.backward, temporal_losses.recursion.forward
    is_longer = temporal_losses.steps_per_day == 1 and sides[0].step_at(1).supremum(loss) != sides[0].supremum(loss)

    def lines(leakage_at: Callable[[int], LeakageFunction[int]]) -> Callable[[int], _UpperLines]:
        return lru_cache(lambda days: _UpperLines(cast("SampledLeakage", leakage_at(days))))

    return Recursion(
        *(
            OneSidedRecursion(lines(side.step_at), orders=range(1, _MAX_ORDER + 1))
            if is_longer
            else OneSidedRecursion(lines(side.step_at), side.day_at and lines(side.day_at))
            for side in sides
        )
    )


class _UpperLines:
    """L at one age by straight lines between the grid points of a leakage bound, with slope one beyond the last."""

    def __init__(self, leakage: SampledLeakage) -> None:
        grid, values = leakage.sample_points
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
