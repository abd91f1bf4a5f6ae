"""The losses of a discounted schedule in whole nano-epsilon, rounded down, each schedule computed once."""

from __future__ import annotations

from functools import lru_cache

from agedp_data.accounting.discount_schedules import Exponential, Hyperbolic, infinite_horizon_schedule, schedule
from agedp_data.arrays import Floats
from agedp_data.epsilon import floor_nano

PlannedLosses = tuple[int, ...]
NamedDiscount = Exponential | Hyperbolic


@lru_cache(maxsize=64)
def closed_plan(discount: NamedDiscount, epsilon: float, horizon: int, method: str) -> PlannedLosses:
    """Return the losses of a series of `horizon` releases [nano-epsilon].

    Source: `discount_schedules.schedule`.

    Args:
        discount: the discount.
        epsilon: bound on the discounted sum [epsilon].
        horizon: number of releases.
        method: name of the schedule.
    """
    return _whole(schedule(discount, epsilon=epsilon, horizon=horizon, method=method))


@lru_cache(maxsize=64)
def endless_plan(discount: NamedDiscount, epsilon: float, releases: int, method: str) -> PlannedLosses:
    """Return the first losses of a series without end [nano-epsilon].

    Source: `discount_schedules.infinite_horizon_schedule`.

    Args:
        discount: the discount.
        epsilon: bound on the discounted sum [epsilon].
        releases: number of losses.
        method: name of the schedule.
    """
    return _whole(infinite_horizon_schedule(discount, epsilon=epsilon, releases=releases, method=method))


def _whole(losses: Floats) -> PlannedLosses:
    return tuple(floor_nano(loss) for loss in losses.tolist())
