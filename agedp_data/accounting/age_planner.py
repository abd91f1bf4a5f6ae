"""Age planner: age, interval and loss of a periodic schedule with the least peak risk and a bounded error.

Inputs of a periodic schedule are at most A + S old (age at publication plus interval). For a penalty f(A + S, eps) that
increases with age and decreases with the loss, the smallest feasible loss depends on A + S alone; the rest is a search
over integer ages and intervals. Example: with f = t + 1/eps <= 4, a total of 3 steps needs a loss of 1.

Decisions:

* The search is exact for every chain and penalty. [A] Algorithms 1 and 2 need geometric decay and round at the end
  (`plan_geometric_decay` in docs/papers/age).
* Erratum: by [A] eq. 24 the largest age of information on integer steps is A + S - 1; f(A + S) is the value an instant
  before the next publication.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from agedp_data.errors import ChainError

Penalty = Callable[[float, float], float]
PeakRiskFunction = Callable[..., float]

_MIN_LOSS, _MAX_LOSS = 1e-12, 1e6


@dataclass(frozen=True, slots=True)
class AgePlan:
    r"""Periodic schedule with its peak risk and penalty.

    Use it as the result of `plan_ageing` and `plan_least_penalty`.

    .. math:: A_n = A, \quad S_{n+1} - S_n = S, \quad \varepsilon_n = \varepsilon \text{ for all releases } n

    Source: [A] Definition 12, eq. 29.

    Attributes:
        loss: loss of each release about its input [epsilon].
        age: A, from an input to its publication [steps].
        interval: S, from one publication to the next [steps].
        risk: supremum of the loss about the present [epsilon].
        penalty: f(A + S, loss) [unit of the penalty].

    References:
        [A] Zhang, Wei, Berry, Huang: Age-Dependent Differential Privacy. IEEE Trans. Inf. Theory, 2024.
        https://doi.org/10.1109/TIT.2023.3340147

    >>> plan = AgePlan(loss=1.0, age=2, interval=1, risk=0.25, penalty=4.0)
    >>> plan.age + plan.interval
    3
    """

    loss: float
    age: float
    interval: float
    risk: float
    penalty: float


def plan_ageing(
    risk_of: PeakRiskFunction, penalty: Penalty, *, max_penalty: float, horizon: int, max_loss: float = _MAX_LOSS
) -> AgePlan:
    r"""Schedule of least peak risk whose penalty is within a bound.

    Use it to choose age, interval and loss of releases for a required accuracy. Of equal risks the smallest age wins.
    At most horizon (horizon + 1)/2 calls of `risk_of`.

    .. math:: \min_{A \ge 0,\, S \ge 1,\, \varepsilon > 0} \varepsilon^*(A, S, \varepsilon)
        \quad \text{s.t.} \quad f(A + S, \varepsilon) \le f_{max}, \quad A + S \le \text{horizon}

    Source: [A] eqs. 28 and 39, solved over integers. Erratum: Algorithms 1 and 2 do not run as printed.

    Args:
        risk_of: (loss, age=A, interval=S) -> peak risk, not decreasing in the loss, such as
            `functools.partial(peak, chain, method="tight")`; called by position if it has no such parameters [epsilon].
        penalty: (A + S, loss) -> f, not increasing in the loss.
        max_penalty: the largest f permitted [unit of the penalty].
        horizon: the largest A + S tried, >= 1 [steps].
        max_loss: the largest loss of a release [epsilon].

    Returns:
        The schedule.

    Raises:
        ChainError: no loss satisfies the penalty at any age, or a horizon below one step.

    References:
        [A] Zhang, Wei, Berry, Huang: Age-Dependent Differential Privacy. IEEE Trans. Inf. Theory, 2024.
        https://doi.org/10.1109/TIT.2023.3340147

    >>> def risk_of(loss, age, interval):
    ...     return loss * 0.5**age
    >>> plan = plan_ageing(risk_of, lambda t, loss: t + 1 / loss, max_penalty=4, horizon=9)
    >>> plan.age, plan.interval, round(plan.loss, 9), round(plan.risk, 9)  # A + S = 3 needs a loss of 1
    (2, 1, 1.0, 0.25)
    """
    _check_horizon(horizon)
    peak_risk = _named_risk(risk_of)
    best: AgePlan | None = None
    for total in range(1, horizon + 1):
        loss = smallest_loss(penalty, total, max_penalty=max_penalty, max_loss=max_loss)
        if loss is None:
            continue
        smallest_penalty = float(penalty(total, loss))
        for age in range(total):
            risk = peak_risk(loss, age, total - age)
            if best is None or risk < best.risk:
                best = AgePlan(loss, age, total - age, risk, smallest_penalty)
    if best is None:
        raise ChainError(f"no loss keeps the penalty within {max_penalty} at any age up to {horizon}; allow more")
    return best


def plan_least_penalty(
    risk_of: PeakRiskFunction,
    penalty: Penalty,
    *,
    max_risk: float,
    horizon: int,
    max_loss: float,
    max_interval: int | None = None,
) -> AgePlan | None:
    r"""Schedule of least penalty whose peak risk is within a bound; None if there is none.

    Use it to find the most accurate schedule for a required privacy. Of equal penalties the least risk wins, then the
    smallest age. The loss is the largest that satisfies the bound, to the last digit.

    .. math:: \min_{A \ge 0,\, S \ge 1,\, \varepsilon} f(A + S, \varepsilon)
        \quad \text{s.t.} \quad \varepsilon^*(A, S, \varepsilon) \le \varepsilon_{max}, \quad A + S \le \text{horizon}

    Source: [A] eq. 28 with objective and constraint exchanged.

    Args:
        risk_of: as in `plan_ageing`.
        penalty: as in `plan_ageing`.
        max_risk: the largest peak risk permitted [epsilon].
        horizon: the largest A + S tried, >= 1 [steps].
        max_loss: the largest loss of a release [epsilon].
        max_interval: the largest S tried [steps]; None for no bound.

    Returns:
        The schedule, or None.

    Raises:
        ChainError: a horizon below one step.

    References:
        [A] Zhang, Wei, Berry, Huang: Age-Dependent Differential Privacy. IEEE Trans. Inf. Theory, 2024.
        https://doi.org/10.1109/TIT.2023.3340147

    >>> def risk_of(loss, age, interval):
    ...     return loss * 0.5**age
    >>> plan = plan_least_penalty(risk_of, lambda t, loss: t + 1 / loss, max_risk=0.3, horizon=9, max_loss=2.0)
    >>> plan.age, plan.interval, round(plan.loss, 9), round(plan.penalty, 6)  # A = 1 permits .6: 2 + 1 / .6
    (1, 1, 0.6, 3.666667)
    """
    _check_horizon(horizon)
    peak_risk = _named_risk(risk_of)
    best: AgePlan | None = None
    for total in range(1, horizon + 1):
        for age in range(max(0, total - (max_interval or total)), total):
            # The loss must beat the best penalty, or this split has no better schedule.
            smallest = _MIN_LOSS if best is None else smallest_loss(penalty, total, max_penalty=best.penalty)
            if smallest is None or smallest > max_loss or peak_risk(smallest, age, total - age) > max_risk:
                continue
            loss = _largest_satisfying(
                smallest, max_loss, partial(_is_within_risk, peak_risk, age, total - age, max_risk)
            )
            candidate = AgePlan(loss, age, total - age, peak_risk(loss, age, total - age), float(penalty(total, loss)))
            if best is None or (candidate.penalty, candidate.risk) < (best.penalty, best.risk):
                best = candidate
    return best


def smallest_loss(penalty: Penalty, total: float, *, max_penalty: float, max_loss: float = _MAX_LOSS) -> float | None:
    r"""Smallest loss whose penalty is within a bound, to the last digit; None if `max_loss` does not suffice.

    Use it for the loss that an accuracy requires at a fixed age.

    .. math:: \min \{\varepsilon : f(t, \varepsilon) \le f_{max}\}

    Source: [A] eq. 39c; bisection, since f does not increase with the loss.

    Args:
        penalty: (t, loss) -> f, not increasing in the loss.
        total: t = A + S [steps].
        max_penalty: the largest f permitted [unit of the penalty].
        max_loss: the largest loss tried [epsilon].

    Returns:
        Loss [epsilon], at least 1e-12, or None.

    References:
        [A] Zhang, Wei, Berry, Huang: Age-Dependent Differential Privacy. IEEE Trans. Inf. Theory, 2024.
        https://doi.org/10.1109/TIT.2023.3340147

    >>> smallest_loss(lambda t, loss: t / loss, 3, max_penalty=2)
    1.5
    """

    def is_feasible(loss: float) -> bool:
        return bool(penalty(total, loss) <= max_penalty)

    if not is_feasible(max_loss):
        return None
    return _MIN_LOSS if is_feasible(_MIN_LOSS) else _bisect(_MIN_LOSS, max_loss, lambda loss: not is_feasible(loss))[1]


def _is_within_risk(
    peak_risk: Callable[[float, int, int], float], age: int, interval: int, max_risk: float, loss: float
) -> bool:
    return peak_risk(loss, age, interval) <= max_risk


def _largest_satisfying(low: float, high: float, holds: Callable[[float], bool]) -> float:
    """Largest number up to `high` for which `holds` is true; it is true for `low`."""
    return high if holds(high) else _bisect(low, high, holds)[0]


def _bisect(low: float, high: float, below: Callable[[float], bool]) -> tuple[float, float]:
    """Two neighbouring floats between which `below`, true at `low`, becomes false."""
    while True:
        # Halve the exponent first, then the number: some sixty steps to neighbouring floats.
        middle = float(np.sqrt(low * high)) if high > 2 * low else (low + high) / 2
        if not low < middle < high:
            return low, high
        low, high = (middle, high) if below(middle) else (low, middle)


def _check_horizon(horizon: int) -> None:
    if horizon < 1:
        raise ChainError(f"a plan looks at least one step ahead, got a horizon of {horizon}")


def _named_risk(risk_of: PeakRiskFunction) -> Callable[[float, int, int], float]:
    try:
        inspect.signature(risk_of).bind(0.0, age=0, interval=1)
    except (TypeError, ValueError):
        return lambda loss, age, interval: float(risk_of(loss, age, interval))
    return lambda loss, age, interval: float(risk_of(loss, age=age, interval=interval))
