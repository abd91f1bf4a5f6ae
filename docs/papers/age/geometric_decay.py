"""Continuous age planner for geometric decay: [A] Algorithms 1 and 2, repaired, as a reference.

Example: c = 1, rho = 0.8, age 2, interval 4, epsilon 0.5 has peak risk 0.8236 ([A] Fig. 3).

Errata, all repaired: `while A_H - A_L <= phi` is false at once; the midpoint is never set; candidates that are
infeasible or have a negative denominator stay in the minimum; c rho^t may exceed 1; rounding the result violates the
constraint.

Decisions:

* Bisection while the bracket is wider than phi; its lower end is the result, since it is feasible.
* Nothing is rounded. For integer steps and for any chain use `plan_ageing`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from agedp_data.accounting.ageing import AgePlan, Penalty
from agedp_data.errors import ChainError


@dataclass(frozen=True, slots=True)
class GeometricDecay:
    r"""Total variation that decays geometrically with age.

    Use it for [A]'s closed forms; for a chain of readings use its exact total variation.

    .. math:: \Delta(t) = \min(1, c \rho^t)

    Source: [A] eq. 38. Erratum: c rho^t may exceed 1 there and is clipped here.

    Attributes:
        scale: c >= 1 [-].
        rate: rho, between 0 and 1 [per step].

    Raises:
        ChainError: a scale or rate outside these ranges.

    References:
        [A] Zhang, Wei, Berry, Huang: Age-Dependent Differential Privacy. IEEE Trans. Inf. Theory, 2024.
        https://doi.org/10.1109/TIT.2023.3340147

    >>> decay = GeometricDecay(scale=2.0, rate=0.5)
    >>> decay(0), decay(3)  # min(1, 2), 2 / 8
    (1.0, 0.25)
    """

    scale: float
    rate: float

    def __post_init__(self) -> None:
        if not 0 < self.rate < 1 <= self.scale:
            raise ChainError(f"geometric decay needs 0 < rate < 1 <= scale, got {self.rate} and {self.scale}")

    def __call__(self, age: float) -> float:
        """Total variation at an age.

        Args:
            age: t >= 0 [steps], not necessarily an integer.

        Returns:
            Delta(t) [-].
        """
        return float(min(1.0, self.scale * self.rate**age))

    def peak(self, loss: float, *, age: float, interval: float) -> float:
        r"""Supremum of the loss about the present for periodic releases, by total variation.

        .. math:: \varepsilon^* = \ln\Big(1 + \frac{\Delta(A)(e^\varepsilon - 1)}{1 - \Delta(S) e^\varepsilon}\Big)

        Source: [A] Proposition 3, eq. 30.

        Args:
            loss: epsilon of each release, >= 0 [epsilon].
            age: A >= 0 [steps].
            interval: S > 0 [steps].

        Returns:
            Peak risk [epsilon], `inf` if Delta(S) e^eps >= 1.

        >>> round(GeometricDecay(scale=1, rate=0.8).peak(0.5, age=2, interval=4), 12)  # [A] Fig. 3
        0.823616566146
        """
        denominator = 1 - self(interval) * np.exp(loss)
        return float(np.log1p(self(age) * np.expm1(loss) / denominator)) if denominator > 0 else float("inf")


def plan_geometric_decay(
    decay: GeometricDecay,
    penalty: Penalty,
    *,
    max_penalty: float,
    losses: Sequence[float],
    precision: float,
    max_total: float,
) -> AgePlan:
    r"""Best schedule of Algorithm 1 (aged, interval by eq. 40) and Algorithm 2 (age 0), in continuous time.

    Use it to reproduce [A]; `plan_ageing` is exact for integer steps.

    .. math:: \min_{A, S, \varepsilon} \ln\Big(1 + \frac{c\rho^A (e^\varepsilon - 1)}{1 - c\rho^S e^\varepsilon}\Big)
        \quad \text{s.t.} \quad f(A + S, \varepsilon) \le f_{max}

    Source: [A] eqs. 38-42, Algorithms 1 and 2. Errata: see the head of the module.

    Args:
        decay: total variation by age.
        penalty: f(A + S, loss), increasing in the first and decreasing in the second argument.
        max_penalty: the largest f permitted [unit of the penalty].
        losses: candidates eps_C(1), ..., eps_C(K) [epsilon].
        precision: phi, width of the last bracket [steps].
        max_total: the largest A + S tried [steps]; f may be bounded.

    Returns:
        The schedule; age and interval are not necessarily integers.

    Raises:
        ChainError: no candidate satisfies the penalty with a finite risk.

    References:
        [A] Zhang, Wei, Berry, Huang: Age-Dependent Differential Privacy. IEEE Trans. Inf. Theory, 2024.
        https://doi.org/10.1109/TIT.2023.3340147

    >>> plan = plan_geometric_decay(GeometricDecay(1.0, 0.5), lambda t, loss: t, max_penalty=2.0, losses=[0.5],
    ...                             precision=1e-9, max_total=2.0)
    >>> round(plan.age, 6), round(plan.interval, 6)  # S = (ln 2 + .5) / ln 2, A = 2 - S
    (0.278652, 1.721348)
    """
    best: AgePlan | None = None
    for loss in losses:
        total = _largest_total(partial(_is_within_penalty, penalty, loss, max_penalty), precision, max_total)
        for age, interval in () if total is None else _splits(decay, loss, total):
            risk = decay.peak(loss, age=age, interval=interval)
            if np.isfinite(risk) and (best is None or risk < best.risk):
                best = AgePlan(loss, age, interval, risk, float(penalty(age + interval, loss)))
    if best is None:
        raise ChainError(f"none of the losses keeps the penalty within {max_penalty}; allow more, or try larger ones")
    return best


def _is_within_penalty(penalty: Penalty, loss: float, max_penalty: float, total: float) -> bool:
    return bool(penalty(total, loss) <= max_penalty)


def _splits(decay: GeometricDecay, loss: float, total: float) -> Iterator[tuple[float, float]]:
    interval = (np.log(2 * decay.scale) + loss) / -np.log(decay.rate)
    if interval <= total:
        yield float(total - interval), float(interval)
    yield 0.0, total


def _largest_total(is_feasible: Callable[[float], bool], precision: float, max_total: float) -> float | None:
    """Feasible end of the last bracket of the largest t within the penalty; None if t = 0 is infeasible."""
    if not is_feasible(0.0):
        return None
    if is_feasible(max_total):
        return max_total
    low, high = 0.0, max_total
    while high - low > precision:
        middle = (low + high) / 2
        low, high = (middle, high) if is_feasible(middle) else (low, middle)
    return low
