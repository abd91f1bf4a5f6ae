"""The plans of [T] section 5 for one bound alpha on the total leakage, in floats and in whole nano-epsilon.

`Allocator` has them once; `temporal_allocation` has its arithmetic. A better plan than the paper's is
looked for near the best of them. The bound is not convex, so that minimum is local. There a plan is described by the
logarithms of its losses at knots: close together at both ends, with doubling distances, linear between them, because
optimal plans fall from both ends towards a plateau. A year of releases has thirty knots.

[T] Cao, Yoshikawa, Xiao, Xiong: Quantifying Differential Privacy in Continuous Data Release Under Temporal
Correlations. IEEE Trans. Knowl. Data Eng. 31(7), 2019. https://doi.org/10.1109/TKDE.2018.2824328
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Generic, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from agedp_data.accounting.temporal_recursion import OneSidedRecursion, Recursion, TemporalLosses
from agedp_data.arrays import Floats
from agedp_data.epsilon import NANO
from agedp_data.leakage.function import LeakageFunction, SampledLeakage

Plan = tuple[int, ...]
Losses = TypeVar("Losses", bound=Floats | Plan)

_MAX_ORDER = 3
"""Largest order of the smooth reading: each order makes the search slower, and the plan found is fitted to the
leakage bound with all its orders, so that a smaller number costs accuracy alone."""

_STEP = 1e-6  # of the finite differences, in logarithms
_ITERATIONS = 60


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


class Allocator(ABC, Generic[Losses]):
    r"""The plans of `allocate` for one bound alpha, in any numbers, of which there are `unit` to an epsilon.

    .. math:: \max_t TPL_t(\varepsilon_1, \dots, \varepsilon_T) \le \alpha; \qquad
        L_B(\alpha_B) + \alpha_F = \alpha, \; L_F(\alpha_F) + \alpha_B = \alpha \text{ for the ends}

    Source: [T] Algorithms 7 and 8, eqs. 26 and 27, losses in [epsilon] or [nano-epsilon]. Errata: as in `allocate`.

    References:
        [T] https://doi.org/10.1109/TKDE.2018.2824328
    """

    unit: int = 1

    def __init__(self, alpha: float, *recursions: Recursion[Any]) -> None:
        self.alpha, self.recursions = alpha, recursions

    def plans(self, horizon: int, method: str) -> list[Losses]:
        """Return the plans of which the one of least mean noise scale is meant; none if there is none."""
        if method == "supremum":
            return self.endless(horizon)
        if method == "even":
            return [self.even(horizon)]
        raised: list[Losses] = self._raised(horizon)
        if method == "exact":
            return raised
        plans = [*raised, self.constant(horizon)]
        start = min(plans, key=mean_noise_scale)
        smooth = self.smooth(start)
        if smooth is not None:
            optimum = local_optimum(smooth, np.array(start) / self.unit, self.alpha / self.unit)
            if np.isfinite(optimum).all() and optimum.min() > 0:
                plans.append(self.fitted(optimum * self.unit))
        return plans

    def _raised(self, horizon: int) -> list[Losses]:
        """Return [T] Algorithm 8: the first and the last release have what endless ones would have built up to.

        With B and F the suprema at the constant of Algorithm 7, eqs. 26 and 27 are solved by alpha_B = B, alpha_F = F.
        """
        if horizon == 1:
            return [self.fitted(np.full(1, float(self.alpha)))]
        plans: list[Losses] = []
        for recursion in self.recursions:
            constants = self.endless_loss(recursion)
            if constants is None:
                continue
            plan = np.full(horizon, float(np.min(constants)))
            first: Any = recursion.backward.supremum(constants)
            last: Any = recursion.forward.supremum(constants)
            plan[0], plan[-1] = np.min(first), np.min(last)
            plans.append(self.fitted(plan))
        return plans

    @abstractmethod
    def endless_loss(self, recursion: Recursion[Any]) -> Any:  # noqa: ANN401  (a Number)
        """Return the largest loss without end, [T] Algorithm 7 (of each household); None if there is none."""

    @abstractmethod
    def endless(self, horizon: int) -> list[Losses]:
        """Return the plan of that loss alone."""

    @abstractmethod
    def even(self, horizon: int) -> Losses:
        """Return alpha/T: TPL_t is at most the sum of all losses."""

    @abstractmethod
    def constant(self, horizon: int) -> Losses:
        """Return the largest constant for T releases."""

    @abstractmethod
    def fitted(self, plan: Floats) -> Losses:
        """Return a plan with all its losses scaled alike until the largest leakage is alpha."""

    @abstractmethod
    def smooth(self, start: Losses) -> Recursion[Floats] | None:
        """Return the recursion in floats in which a better plan is looked for; None for no search."""


def mean_noise_scale(plan: Floats | Plan) -> float:
    """Mean of 1/e, infinite where a loss is 0 [1/epsilon, or 1/nano-epsilon].

    Source: scale of Laplace noise.
    """
    with np.errstate(divide="ignore"):
        return float(np.mean(1 / np.array(plan, dtype=np.float64)))


def local_optimum(recursion: Recursion[Floats], start: Floats, alpha: float) -> Floats:
    r"""Plan of smaller mean noise scale near `start` whose leakage is within alpha, up to the solver's tolerance.

    Use it to improve a feasible plan, then check its leakage again (`allocate`).

    .. math:: \min \frac1T \sum_t \frac{1}{\varepsilon_t} \quad \text{s.t.} \quad TPL_t \le \alpha \text{ for all } t

    Source: this project; [T] section 5 gives feasible plans only (`allocate`). Sequential quadratic programming with
    one constraint per release; all finite differences are one call of the recursion.

    Args:
        recursion: leakage of a series of losses, for all households.
        start: feasible plan, shape (T,), > 0 [epsilon].
        alpha: bound on the total leakage, > 0 [epsilon].

    Returns:
        Shape (T,) [epsilon].

    References:
        Kraft: A Software Package for Sequential Quadratic Programming. DFVLR-FB 88-28, 1988; as implemented in SciPy,
        https://doi.org/10.1038/s41592-019-0686-2
        [T] https://doi.org/10.1109/TKDE.2018.2824328

    >>> from agedp_data.accounting.temporal_recursion import temporal_recursion
    >>> copy = temporal_recursion(np.eye(2), None)  # TPL_2 = e_1 + e_2
    >>> local_optimum(copy, np.array([0.25, 0.75]), 1.0).round(3).tolist()
    [0.5, 0.5]
    """
    from scipy.optimize import NonlinearConstraint, minimize  # noqa: PLC0415  (slow to import)

    weights = _interpolation(start.size)
    knots = weights.argmax(axis=0)
    noise_of_start = float((1 / start).mean())
    # No loss of a better plan lies outside, wherever the solver looks (it may look far away, or nowhere: NaN).
    log_smallest, log_alpha = -np.log(start.size * noise_of_start), np.log(alpha)

    def plans(points: Floats) -> Floats:
        clipped = np.clip(np.nan_to_num(points, nan=log_alpha), log_smallest, log_alpha)
        return np.asarray(np.exp(clipped @ weights.T))

    def leakage(points: Floats) -> Floats:
        losses = plans(points)
        # Axes for the households between those of the points and the releases.
        households = (1,) * np.ndim(recursion.total_supremum(0.0))
        total = recursion.leakage_totals(losses.reshape(*losses.shape[:-1], *households, losses.shape[-1])).total
        return np.asarray(total.max(axis=tuple(range(losses.ndim - 1, total.ndim - 1)))) / alpha

    def slopes(point: Floats) -> Floats:
        leakages = leakage(np.vstack((point, point + _STEP * np.eye(point.size))))
        return np.asarray((leakages[1:] - leakages[0]).T / _STEP)

    def noise(point: Floats) -> float:
        return float((1 / plans(point)).mean()) / noise_of_start

    def gradient(point: Floats) -> Floats:
        return np.asarray(-(1 / plans(point)) @ weights / (start.size * noise_of_start))

    optimum = minimize(
        noise,
        np.log(start)[knots],
        jac=gradient,
        constraints=NonlinearConstraint(leakage, -np.inf, 1.0, jac=slopes),
        method="SLSQP",
        options={"maxiter": _ITERATIONS, "ftol": 1e-7},
    )
    return plans(np.asarray(optimum.x, dtype=np.float64))


def _interpolation(count: int) -> Floats:
    r"""Return the weight of each knot in the logarithm of each loss of a plan, shape (T, knots)."""
    offsets = [0, 1, 2, 3, 4, 6, 8]
    while offsets[-1] < count / 2:
        offsets.append(offsets[-1] + offsets[-3])
    first_half = [offset for offset in offsets if offset < count / 2]
    knots = np.unique([*first_half, *(count - 1 - offset for offset in first_half)])
    weights = [np.interp(np.arange(count), knots, unit) for unit in np.eye(knots.size)]
    return np.stack(weights, axis=-1)


def smooth_recursion(temporal_losses: TemporalLosses, loss: int) -> Recursion[Floats]:
    """Return the recursion in floats, over a day at a time or, where that is worth its time at such a loss, longer.

    Source: straight lines between the sample points of L, as numpy.interp.
    """
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
