"""Which age, interval and loss: the schedule of least peak risk that keeps the error within bounds (MATHS 3).

Aged releases of a periodic schedule are old by at most A + S (age at publication plus interval), so with a penalty
f(A + S, eps) that grows with age and falls with the loss the smallest loss that f permits depends on A + S alone; the
rest is a search over whole ages and intervals. It is exact for any chain and any penalty, where Algorithms 1 and 2 of
[A] need geometric decay and round at the end (`privacy.geometric`). By [A] eq. 24 the largest age of information on
whole steps is A + S - 1, reached one step before the next publication; f(A + S) is the value an instant before it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from agedp_data.errors import ChainError

Penalty = Callable[[float, float], float]
PeakRisk = Callable[..., float]

_LEAST, _MOST = 1e-12, 1e6


@dataclass(frozen=True, slots=True)
class Plan:
    """A periodic schedule: loss of each release [-], age and interval [steps], peak risk [-] and penalty."""

    loss: float
    age: float
    interval: float
    risk: float
    penalty: float


def plan_ageing(risk_of: PeakRisk, penalty: Penalty, *, max_penalty: float, horizon: int) -> Plan:
    """Return the plan of least peak risk with f(A + S, loss) <= max_penalty and A + S <= horizon.

    Minimises over whole A >= 0, S >= 1; of equal risks the freshest. horizon (horizon + 1)/2 calls of `risk_of` at
    most.

    Args:
        risk_of: (loss, age=A, interval=S) -> peak risk, not decreasing in the loss; for example `privacy.ageing.peak`
            of a chain: `functools.partial(peak, chain, method="tight")`. Called by position if it has no such names.
        penalty: (A + S, loss) -> f, not increasing in the loss.
        max_penalty: the largest f allowed.
        horizon: the largest A + S tried [steps].

    Raises:
        ChainError: no loss keeps the penalty at any age, or a horizon below one step.

    References: [A] eq. 28 and 39; MATHS 3.

    >>> plan = plan_ageing(lambda loss, age, interval: loss * 0.5**age, lambda t, loss: t + 1 / loss, max_penalty=4,
    ...                    horizon=9)
    >>> plan.age, plan.interval, round(plan.loss, 9), round(plan.risk, 9)  # T = 3 asks for a loss of 1
    (2, 1, 1.0, 0.25)
    """
    if horizon < 1:
        raise ChainError(f"a plan looks at least one step ahead, got a horizon of {horizon}")
    call = _by_name(risk_of)
    best: Plan | None = None
    for total in range(1, horizon + 1):
        loss = smallest_loss(penalty, total, max_penalty=max_penalty)
        if loss is None:
            continue
        reached = float(penalty(total, loss))
        for age in range(total):
            risk = call(loss, age, total - age)
            if best is None or risk < best.risk:
                best = Plan(loss, age, total - age, risk, reached)
    if best is None:
        raise ChainError(f"no loss keeps the penalty within {max_penalty} at any age up to {horizon}; allow more")
    return best


def frontier(risk_of: PeakRisk, penalty: Penalty, *, max_penalties: list[float], horizon: int) -> list[Plan | None]:
    """Return the best plan for each allowed penalty, None where there is none: risk against error."""
    found: list[Plan | None] = []
    for allowed in max_penalties:
        try:
            found.append(plan_ageing(risk_of, penalty, max_penalty=allowed, horizon=horizon))
        except ChainError:
            found.append(None)
    return found


def smallest_loss(penalty: Penalty, total: float, *, max_penalty: float) -> float | None:
    """Return the smallest loss with f(total, loss) <= max_penalty, to the last digit; None if no loss up to 1e6 has.

    >>> smallest_loss(lambda t, loss: t / loss, 3, max_penalty=2)
    1.5
    """

    def keeps(loss: float) -> bool:
        return bool(penalty(total, loss) <= max_penalty)

    low, high = _LEAST, _MOST
    if not keeps(high):
        return None
    if keeps(low):
        return low
    while True:
        # Halve the exponent first, then the number: some sixty steps to neighbouring floats.
        middle = float(np.sqrt(low * high)) if high > 2 * low else (low + high) / 2
        if not low < middle < high:
            return high
        low, high = (low, middle) if keeps(middle) else (middle, high)


def _by_name(risk_of: PeakRisk) -> Callable[[float, int, int], float]:
    try:
        inspect.signature(risk_of).bind(0.0, age=0, interval=1)
    except (TypeError, ValueError):
        return lambda loss, age, interval: float(risk_of(loss, age, interval))
    return lambda loss, age, interval: float(risk_of(loss, age=age, interval=interval))
