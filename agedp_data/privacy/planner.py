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
from functools import partial

import numpy as np

from agedp_data.errors import ChainError

Penalty = Callable[[float, float], float]
PeakRisk = Callable[..., float]

_LEAST, _MOST = 1e-12, 1e6


@dataclass(frozen=True, slots=True)
class AgePlan:
    """A periodic schedule: loss of each release [-], age and interval [steps], peak risk [-] and penalty."""

    loss: float
    age: float
    interval: float
    risk: float
    penalty: float


def plan_ageing(
    risk_of: PeakRisk, penalty: Penalty, *, max_penalty: float, horizon: int, max_loss: float = _MOST
) -> AgePlan:
    """Return the plan of least peak risk with f(A + S, loss) <= max_penalty and A + S <= horizon.

    Minimises over whole A >= 0, S >= 1; of equal risks the freshest. horizon (horizon + 1)/2 calls of `risk_of` at
    most.

    Args:
        risk_of: (loss, age=A, interval=S) -> peak risk, not decreasing in the loss; for example `privacy.ageing.peak`
            of a chain: `functools.partial(peak, chain, method="tight")`. Called by position if it has no such names.
        penalty: (A + S, loss) -> f, not increasing in the loss.
        max_penalty: the largest f allowed.
        horizon: the largest A + S tried [steps].
        max_loss: the largest loss of a release.

    Raises:
        ChainError: no loss keeps the penalty at any age, or a horizon below one step.

    References: [A] eq. 28 and 39; MATHS 3.

    >>> plan = plan_ageing(lambda loss, age, interval: loss * 0.5**age, lambda t, loss: t + 1 / loss, max_penalty=4,
    ...                    horizon=9)
    >>> plan.age, plan.interval, round(plan.loss, 9), round(plan.risk, 9)  # T = 3 asks for a loss of 1
    (2, 1, 1.0, 0.25)
    """
    _require_horizon(horizon)
    call = _by_name(risk_of)
    best: AgePlan | None = None
    for total in range(1, horizon + 1):
        loss = smallest_loss(penalty, total, max_penalty=max_penalty, max_loss=max_loss)
        if loss is None:
            continue
        reached = float(penalty(total, loss))
        for age in range(total):
            risk = call(loss, age, total - age)
            if best is None or risk < best.risk:
                best = AgePlan(loss, age, total - age, risk, reached)
    if best is None:
        raise ChainError(f"no loss keeps the penalty within {max_penalty} at any age up to {horizon}; allow more")
    return best


def cheapest(
    risk_of: PeakRisk,
    penalty: Penalty,
    *,
    max_risk: float,
    horizon: int,
    max_loss: float,
    max_interval: int | None = None,
) -> AgePlan | None:
    """Return the plan of least penalty with peak risk <= max_risk, loss <= max_loss and A + S <= horizon, None if none.

    The same search the other way round: of equal penalties the least risk, then the freshest. Arguments: as
    `plan_ageing`, and the largest interval S tried; the loss is the largest that keeps the risk, to the last digit.

    Raises:
        ChainError: a horizon below one step.

    >>> plan = cheapest(lambda loss, age, interval: loss * 0.5**age, lambda t, loss: t + 1 / loss, max_risk=0.3,
    ...                 horizon=9, max_loss=2.0)
    >>> plan.age, plan.interval, round(plan.loss, 9), round(plan.penalty, 6)  # A = 1 permits .6, A = 2 twice as much
    (1, 1, 0.6, 3.666667)
    """
    _require_horizon(horizon)
    call = _by_name(risk_of)
    best: AgePlan | None = None
    for total in range(1, horizon + 1):
        for age in range(max(0, total - (max_interval or total)), total):
            # Enough loss to beat what is known, or there is nothing to find at this split.
            least = _LEAST if best is None else smallest_loss(penalty, total, max_penalty=best.penalty)
            if least is None or least > max_loss or call(least, age, total - age) > max_risk:
                continue
            loss = _turn(least, max_loss, partial(_keeps, call, age, total - age, max_risk))
            found = AgePlan(loss, age, total - age, call(loss, age, total - age), float(penalty(total, loss)))
            if best is None or (found.penalty, found.risk) < (best.penalty, best.risk):
                best = found
    return best


def frontier(
    risk_of: PeakRisk, penalty: Penalty, *, max_penalties: list[float], horizon: int, max_loss: float = _MOST
) -> list[AgePlan | None]:
    """Return the best plan for each allowed penalty, None where there is none: risk against error."""
    found: list[AgePlan | None] = []
    for allowed in max_penalties:
        try:
            found.append(plan_ageing(risk_of, penalty, max_penalty=allowed, horizon=horizon, max_loss=max_loss))
        except ChainError:
            found.append(None)
    return found


def smallest_loss(penalty: Penalty, total: float, *, max_penalty: float, max_loss: float = _MOST) -> float | None:
    """Return the smallest loss with f(total, loss) <= max_penalty, to the last digit; None if none up to max_loss does.

    >>> smallest_loss(lambda t, loss: t / loss, 3, max_penalty=2)
    1.5
    """

    def keeps(loss: float) -> bool:
        return bool(penalty(total, loss) <= max_penalty)

    if not keeps(max_loss):
        return None
    return _LEAST if keeps(_LEAST) else _halved(_LEAST, max_loss, lambda loss: not keeps(loss))[1]


def _keeps(call: Callable[[float, int, int], float], age: int, interval: int, max_risk: float, loss: float) -> bool:
    return call(loss, age, interval) <= max_risk


def _turn(low: float, high: float, holds: Callable[[float], bool]) -> float:
    """Return the largest number up to `high` that `holds`, which `low` does."""
    return high if holds(high) else _halved(low, high, holds)[0]


def _halved(low: float, high: float, below: Callable[[float], bool]) -> tuple[float, float]:
    """Return the two neighbouring floats between which `below`, true at `low`, ends."""
    while True:
        # Halve the exponent first, then the number: some sixty steps to neighbouring floats.
        middle = float(np.sqrt(low * high)) if high > 2 * low else (low + high) / 2
        if not low < middle < high:
            return low, high
        low, high = (middle, high) if below(middle) else (low, middle)


def _require_horizon(horizon: int) -> None:
    if horizon < 1:
        raise ChainError(f"a plan looks at least one step ahead, got a horizon of {horizon}")


def _by_name(risk_of: PeakRisk) -> Callable[[float, int, int], float]:
    try:
        inspect.signature(risk_of).bind(0.0, age=0, interval=1)
    except (TypeError, ValueError):
        return lambda loss, age, interval: float(risk_of(loss, age, interval))
    return lambda loss, age, interval: float(risk_of(loss, age=age, interval=interval))
