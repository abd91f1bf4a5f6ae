"""Algorithms 1 and 2 of [A] for geometric decay, Delta(t) = min(1, c rho^t), in continuous time: a reference only.

As printed they do not run: `while A_H - A_L <= phi` is false at once, the midpoint is never set, candidates that are
infeasible or have a negative denominator stay in the minimum, c rho^t may exceed one, and rounding the result breaks
the constraint (MATHS 9). Repaired here: bisection while the bracket is wider than phi, its lower end kept (it is
feasible), candidates that are not feasible dropped, Delta clipped. Nothing is rounded: for whole steps and for any
chain use `privacy.planner.plan_ageing`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from agedp_data.errors import ChainError
from agedp_data.privacy.planner import AgePlan, Penalty


@dataclass(frozen=True, slots=True)
class Decay:
    """Total variation min(1, scale rate^t) at age t [steps]: c >= 1 and rho in (0, 1) of [A] eq. 38, clipped at 1."""

    scale: float
    rate: float

    def __post_init__(self) -> None:
        if not 0 < self.rate < 1 <= self.scale:
            raise ChainError(f"geometric decay needs 0 < rate < 1 <= scale, got {self.rate} and {self.scale}")

    def __call__(self, age: float) -> float:
        """Return the total variation at an age.

        >>> Decay(scale=2.0, rate=0.5)(0), Decay(scale=2.0, rate=0.5)(3)
        (1.0, 0.25)
        """
        return float(min(1.0, self.scale * self.rate**age))

    def peak(self, loss: float, *, age: float, interval: float) -> float:
        """Return [A] eq. 30, infinite if Delta(S) e^eps >= 1.

        >>> round(Decay(scale=1, rate=0.8).peak(0.5, age=2, interval=4), 12)  # [A] Fig. 3
        0.823616566146
        """
        rest = 1 - self(interval) * np.exp(loss)
        return float(np.log1p(self(age) * np.expm1(loss) / rest)) if rest > 0 else float("inf")


def plan_of_decay(
    decay: Decay, penalty: Penalty, *, max_penalty: float, losses: Sequence[float], precision: float, longest: float
) -> AgePlan:
    """Return the better of Algorithm 1 (aged, eq. 40 for the interval) and Algorithm 2 (age 0).

    Units: penalty (steps, loss) -> [-]; age and interval [steps, not whole].

    Args:
        decay: how fast the chain forgets.
        penalty: f(A + S, loss), rising in the first and falling in the second.
        max_penalty: the largest f allowed.
        losses: the candidates eps_C(1), ..., eps_C(K).
        precision: phi, the width of the last bracket [steps].
        longest: the largest A + S tried [steps]; f may be bounded.

    Raises:
        ChainError: no candidate keeps the penalty with a finite risk.

    References: [A] eqs. 38-42, Algorithms 1 and 2, repaired as above.
    """
    best: AgePlan | None = None
    for loss in losses:
        total = _longest(partial(_keeps, penalty, loss, max_penalty), precision, longest)
        for age, interval in () if total is None else _splits(decay, loss, total):
            risk = decay.peak(loss, age=age, interval=interval)
            if np.isfinite(risk) and (best is None or risk < best.risk):
                best = AgePlan(loss, age, interval, risk, float(penalty(age + interval, loss)))
    if best is None:
        raise ChainError(f"none of the losses keeps the penalty within {max_penalty}; allow more, or try larger ones")
    return best


def _keeps(penalty: Penalty, loss: float, max_penalty: float, total: float) -> bool:
    return bool(penalty(total, loss) <= max_penalty)


def _splits(decay: Decay, loss: float, total: float) -> Iterator[tuple[float, float]]:
    interval = (np.log(2 * decay.scale) + loss) / -np.log(decay.rate)
    if interval <= total:
        yield float(total - interval), float(interval)
    yield 0.0, total


def _longest(keeps: Callable[[float], bool], precision: float, longest: float) -> float | None:
    """Return the feasible end of the last bracket of the largest t that keeps the penalty; None if t = 0 does not."""
    if not keeps(0.0):
        return None
    if keeps(longest):
        return longest
    low, high = 0.0, longest
    while high - low > precision:
        middle = (low + high) / 2
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return low
