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
* A plan in whole nano-epsilon is the same for every processor and number of BLAS threads: its search takes sums,
  products and roots of single floats (`near_optimum`), and plans are compared as integers, ties by their text. The
  plan of floats is looked for by a solver (`local_optimum`), whose last digits depend on both.

[T] Cao, Yoshikawa, Xiao, Xiong: Quantifying Differential Privacy in Continuous Data Release Under Temporal
Correlations. IEEE Trans. Knowl. Data Eng. 31(7), 2019. https://doi.org/10.1109/TKDE.2018.2824328
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final, Generic, Literal, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from agedp_data.accounting.temporal_recursion import (
    OneSidedRecursion,
    Recursion,
    TemporalLosses,
    checked_loss_series,
    temporal_recursion,
)
from agedp_data.arrays import Floats
from agedp_data.epsilon import NANO
from agedp_data.errors import ChainError
from agedp_data.leakage.exact import round_up_with_slack
from agedp_data.leakage.function import Kernels, LeakageBoundLike, LeakageFunction, SampledLeakage

# --------------------------------------------------------------------------------------------------
# The plans of [T] section 5 for one bound alpha on the total leakage, in floats and in whole nano-epsilon.
#
# `Allocator` has them once. Near the best of them a better one than the paper's is looked for. The bound is not convex,
# so that minimum is local. `local_optimum` describes a plan by the logarithms of its losses at knots: close together at
# both ends, with doubling distances, linear between them, because optimal plans fall from both ends towards a plateau.
# A year of releases has thirty knots. `near_optimum` has all losses.
#
# [T] Cao, Yoshikawa, Xiao, Xiong: Quantifying Differential Privacy in Continuous Data Release Under Temporal
# Correlations. IEEE Trans. Knowl. Data Eng. 31(7), 2019. https://doi.org/10.1109/TKDE.2018.2824328
# --------------------------------------------------------------------------------------------------

Plan = tuple[int, ...]
Losses = TypeVar("Losses", bound=Floats | Plan)

_MAX_ORDER = 3
"""Largest order of the smooth reading: each order makes the search slower, and the plan found is fitted to the
leakage bound with all its orders, so that a smaller number costs accuracy alone."""

_STEP = 1e-6  # of the finite differences, in logarithms
_ITERATIONS = 60
_SEARCH_STEPS = 400
_LARGE = 1e200


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

    def __init__(self, alpha: float, *recursions: Recursion[Any]) -> None:
        self.alpha, self.recursions = alpha, recursions

    def plans(self, horizon: int, method: str) -> list[Losses]:
        """Return the plans of which the one of least mean noise scale is meant; none if there is none."""
        if method == "supremum":
            return self.endless(horizon)
        if method == "even":
            return [self.even(horizon)]
        raised: list[Losses] = self._raised(horizon)
        return raised if method == "exact" else [*raised, self.constant(horizon)]

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
    def searched(self, plans: list[Losses]) -> list[Losses]:
        """Return a plan near the best of these that may be better; none where none is looked for or found."""


def mean_noise_scale(plan: Floats) -> float:
    """Mean of 1/e, infinite where a loss is 0 [1/epsilon].

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


class _StraightLines:
    """L at one age by straight lines between the grid points of a leakage bound, with slope one beyond the last."""

    def __init__(self, leakage: SampledLeakage) -> None:
        grid, values = leakage.sample_points
        points = [(loss / NANO, value / NANO) for loss, value in zip(grid, values, strict=True) if loss < math.inf]
        self._losses, self._values = (
            [0.0, *numbers] for numbers in (zip(*points, strict=True) if points else ((), ()))
        )
        ends = pairwise(zip(self._losses, self._values, strict=True))
        self._slopes = [(value - before) / (loss - smaller) for (smaller, before), (loss, value) in ends] + [1.0]

    def __call__(self, loss: float) -> tuple[float, float]:
        """Return value and slope at a loss."""
        place = bisect_right(self._losses, loss) - 1
        slope = self._slopes[place]
        return self._values[place] + slope * (loss - self._losses[place]), slope


_Part = tuple[float, int, float]
"""A leakage, the order of the step that it comes from (0: of none), and the slope of L there."""


@dataclass(frozen=True, slots=True)
class _SmoothSide:
    """One direction of the recursion over days in a row, in floats, with its derivatives: L by order of a step."""

    steps: Sequence[_StraightLines]
    days: Sequence[_StraightLines]

    def parts(self, losses: Sequence[float]) -> tuple[list[_Part], list[_Part]]:
        """Return the composed loss up to each release, and the leakage of the earlier ones about its day."""
        composed: list[_Part] = []
        earlier: list[_Part] = []
        for place, loss in enumerate(losses):
            composed.append(_least(self.steps, loss, losses, composed, place))
            earlier.append(_least(self.days, 0.0, losses, composed, place))
        return composed, earlier

    def gradient(self, weights: Sequence[float], composed: Sequence[_Part], earlier: Sequence[_Part]) -> list[float]:
        """Return the derivatives of the weighted sum of the leakages of earlier releases by each loss."""
        of_loss, of_composed = [0.0] * len(weights), [0.0] * len(weights)
        for place in reversed(range(len(weights))):
            for (_, order, slope), weight, first in (
                (composed[place], of_composed[place], 0),
                (earlier[place], weights[place], 1),
            ):
                for back in range(first, max(order, 1)):
                    of_loss[place - back] += weight
                if order:
                    of_composed[place - order] += weight * slope
        return of_loss


def _least(
    lines: Sequence[_StraightLines], own: float, losses: Sequence[float], composed: Sequence[_Part], place: int
) -> _Part:
    """Return the least leakage over the orders of a step to a place, `own` included."""
    parts, total = [], own
    for order, leakage in enumerate(lines[:place], 1):
        value, slope = leakage(composed[place - order][0])
        parts.append((total + value, order, slope))
        total += losses[place - order]
    return min(parts, default=(own, 0, 0.0))


def near_optimum(sides: Sequence[_SmoothSide], start: Sequence[float], alpha: float) -> list[float]:
    r"""Return a plan with less noise near `start`, the same numbers on every machine: the least noisy one looked at.

    .. math:: \min \sum_t \frac{1}{e_t} \text{ s.t. } TPL_t \le \alpha: \qquad
        e_t = \Bigl( \sum_s \lambda_s \frac{\partial TPL_s}{\partial e_t} \Bigr)^{-1/2}, \qquad
        \lambda_s \leftarrow \lambda_s \frac{TPL_s}{\alpha}

    The first is what an optimum with multipliers lambda has; a multiplier grows where the leakage is above alpha. Each
    step goes half of the way, since L has kinks, and the mean of the later half is looked at too. Sums, products,
    quotients and roots are rounded alike everywhere, so no processor has another plan.

    Source: this project; conditions of Karush, Kuhn and Tucker.

    Args:
        sides: backward and forward recursion.
        start: a plan within alpha, > 0 [epsilon].
        alpha: bound on the total leakage [epsilon].
    """
    backward, forward = sides
    losses, multipliers, mean = [*start], [1.0] * len(start), [0.0] * len(start)
    least, best = math.inf, losses
    for step in range(_SEARCH_STEPS + 1):
        before, after = backward.parts(losses), forward.parts(losses[::-1])
        leakages = [sum(each) for each in zip(losses, _values(before[1]), _values(after[1])[::-1], strict=True)]
        noise = sum(1 / loss for loss in losses) * max(1.0, max(leakages) / alpha)
        if noise < least:
            least, best = noise, losses
        multipliers = [weight * (leakage / alpha) for weight, leakage in zip(multipliers, leakages, strict=True)]
        slopes = backward.gradient(multipliers, *before), forward.gradient(multipliers[::-1], *after)[::-1]
        derivatives = [sum(each) for each in zip(multipliers, *slopes, strict=True)]
        if not 0 < min(derivatives) <= max(derivatives) < _LARGE:  # no limit is near
            break
        losses = [math.sqrt(loss / math.sqrt(each)) for loss, each in zip(losses, derivatives, strict=True)]
        if step >= _SEARCH_STEPS // 2:
            mean = [total + loss for total, loss in zip(mean, losses, strict=True)]
        if step == _SEARCH_STEPS - 1:
            losses = [total / (_SEARCH_STEPS - _SEARCH_STEPS // 2) for total in mean]
    return best


def _values(parts: Iterable[_Part]) -> list[float]:
    return [value for value, _, _ in parts]


# --------------------------------------------------------------------------------------------------
# The ways to divide alpha among releases, by name.
# --------------------------------------------------------------------------------------------------

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
_NEAR = 1 + 1e-6, 1 + 1e-8
_NOISE_UNIT = 1 << 128  # a noise scale in whole units of 2^-128/nano-epsilon
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
    allocator = _FloatAllocator(recursion, float(alpha))
    plans = allocator.plans(int(horizon), method)
    if method == "best":
        plans += allocator.searched(plans)
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
    if budget == "best" and horizon:
        plans += allocator.searched(plans)
    capped: list[Plan] = [tuple(min(loss, day_cap) for loss in plan) for plan in plans if min(plan) > 0]
    return min(capped, key=noise_order, default=())


def noise_order(plan: Plan) -> tuple[int, str]:
    """Return what plans are compared by: their noise as an integer, and the text of equally noisy ones.

    Source: sum of 1/e, the scale of Laplace noise, in units of 2^-128; a loss of 0 has the largest.

    >>> min([(3, 1), (2, 2), (1, 3)], key=noise_order)
    (2, 2)
    """
    return sum(_NOISE_UNIT // loss if loss else _NOISE_UNIT * NANO for loss in plan), str(plan)


class _NanoAllocator(Allocator[Plan]):
    """Plans in whole nano-epsilon under a leakage bound; steps over several releases raise a constant, not all ends."""

    def __init__(self, leakage_bound: LeakageBoundLike, alpha: int) -> None:
        self.losses = TemporalLosses(leakage_bound)
        self._fitted: dict[bytes, Plan] = {}
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
        low, further = max(self.even(horizon)[0], self.endless_loss(self.recursions[0]) or 0), 1
        while low + further <= self.alpha and self._fits((low + further,) * horizon):
            low, further = low + further, 2 * further
        most = min(low + further - 1, int(self.alpha))  # a long series has hardly more than one without end
        return (low + largest_feasible(lambda more: self._fits((low + more,) * horizon), most - low),) * horizon

    def fitted(self, plan: Floats) -> Plan:
        key = plan.tobytes()
        if key not in self._fitted:
            self._fitted[key] = self._scaled(plan)
        return self._fitted[key]

    def _scaled(self, plan: Floats) -> Plan:
        def at(share: float) -> Plan:
            return tuple(np.floor(plan * share).astype(np.int64).tolist())

        most, least = 0.0, math.inf  # of the shares that fit, and of those that do not: no share between is asked twice

        def fits(share: float) -> bool:
            nonlocal most, least
            if most < share < least:
                most, least = (share, least) if self._fits(at(share)) else (most, share)
            return share <= most

        low, high = 0.0, self.alpha / float(plan.max())  # a bound is never below the loss of its own day
        for share in (1.0, 1.0 + _HARDLY):
            low, high = (max(low, share), high) if fits(share) else (low, min(high, share))
        for share in _NEAR if low > 1 else ():  # the plan of endless losses is hardly too low
            fits(share)
        for _ in range(_NANO_HALVINGS):
            if high - low <= _HARDLY * high:
                break
            middle = (low + high) / 2
            low, high = (middle, high) if fits(middle) else (low, middle)
        return at(low)

    def searched(self, plans: list[Plan]) -> list[Plan]:
        start = min(plans, key=noise_order)
        if not 1 < len(start) <= _MAX_IMPROVED or min(start) <= 0:
            return []
        both = self.losses.recursion.backward, self.losses.recursion.forward
        sides = [self._smooth(side, start[len(start) // 2]) for side in both]
        optimum = near_optimum(sides, [loss / NANO for loss in start], self.alpha / NANO)
        return [self.fitted(np.array(optimum) * NANO)]

    def _smooth(self, side: OneSidedRecursion[int], loss: int) -> _SmoothSide:
        """Return a side in floats: over a day at a time or, where that is worth its time at such a loss, longer."""

        def lines(leakage_at: Callable[[int], LeakageFunction[int]], orders: Iterable[int]) -> list[_StraightLines]:
            return [_StraightLines(cast("SampledLeakage", leakage_at(days))) for days in orders]

        backward = self.losses.recursion.backward
        is_longer = self.losses.steps_per_day == 1 and backward.step_at(1).supremum(loss) != backward.supremum(loss)
        steps = lines(side.step_at, range(1, _MAX_ORDER + 1) if is_longer else (1,))
        return _SmoothSide(steps, steps if is_longer or side.day_at is None else lines(side.day_at, (1,)))

    def _fits(self, plan: Plan) -> bool:
        """Return whether a plan keeps alpha: `TemporalLosses.largest`, on all days at once."""
        if 0 in plan:
            return self.keeps(self.losses.largest(dict(enumerate(plan))))
        earlier, later = (
            side.composition() for side in (self.losses.recursion.backward, self.losses.recursion.forward)
        )
        earlier.replace(range(len(plan)), plan)
        later.replace(range(len(plan)), plan[::-1])
        return max(map(sum, zip(plan, earlier.leakages, reversed(later.leakages), strict=True))) <= self.alpha


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

    def searched(self, plans: list[Floats]) -> list[Floats]:
        optimum = local_optimum(self.recursion, min(plans, key=mean_noise_scale), self.alpha)
        is_plan = np.isfinite(optimum).all() and optimum.min() > 0
        return [self.fitted(optimum)] if is_plan else []

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
