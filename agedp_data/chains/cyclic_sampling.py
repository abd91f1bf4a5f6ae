"""The sampling bound (MATHS 8) of cyclic chains: how fast they forget at least, allowing for their being estimated.

The recursion is that of `chains.sampling` with a row per phase of the day. Two things differ. The phases that share
a kernel were chosen by looking at the counts, so radii hold for every stretch of the clock that could have been
chosen, p (p - 1) + 1 of them. And ages of weeks are made of days: U_(t) is computed over two days and carried on
by U_t <= U_a U_(t-a), which is all that is left of the recursion once the errors have been paid for.

A household a state of which has no row at a phase that its kernels lead to (a neighbour whose kernel it shares had
it, this phase never did) keeps the bound at one: nothing is known of how it would be forgotten there.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agedp_data.chains.cyclic import pool_counts
from agedp_data.chains.sampling import propagate_radii, weissman_radii
from agedp_data.errors import ChainError
from agedp_data.privacy.kernel import Floats, checked_steps

_DAYS = 2
_HOUSEHOLDS_PER_BATCH = 16


def cyclic_sampling_bound(
    counts: Mapping[int, ArrayLike],
    groups: Mapping[int, ArrayLike],
    steps: ArrayLike,
    *,
    level: float,
    households: int,
) -> Floats:
    """Return U_t >= Delta(t), the largest over phases, of the true chains with probability `level` for all at once.

    Of several lags each gives a bound and the smallest is taken, the level divided among them. A lag of L steps has
    p / L phases, which begin at multiples of L: any t steps hold (t + 1) // L - 1 of its steps.

    Shapes: {L: (h, p / L, k, k)}, {L: (h, p / L)}, (T,) int -> (h, T). Units: [transitions], [-], [steps] -> [-].

    Args:
        counts: transitions by the phase that they leave, of the series read every L steps (1 for all).
        groups: which phases share a kernel (`merged_phases`).
        steps: ages.
        level: confidence, for example 0.95.
        households: for how many households it has to hold at once.

    Raises:
        ChainError: a level outside (0, 1), fewer than one household or lag, or shapes that do not fit.

    References: MATHS 8.

    >>> tables = {1: np.full((1, 2, 2, 2), 5000)}  # all is forgotten in a step, known up to a radius of .0401
    >>> cyclic_sampling_bound(tables, {1: [[0, 0]]}, [1], level=0.95, households=1).round(4).tolist()
    [[0.0401]]
    """
    if not 0 < level < 1 or households < 1:
        raise ChainError(f"a sampling bound needs a level between 0 and 1 and a household, got {level}, {households}")
    ages = checked_steps(steps)
    if ages.ndim != 1:
        raise ChainError(f"steps are a list of whole numbers, got shape {ages.shape}")
    if not counts or min(counts) < 1 or set(counts) != set(groups):
        raise ChainError("transitions are counted at one or more lags of at least 1 step, each with its groups")
    failure_probability = (1 - level) / len(counts) / households
    bounds = [
        _bound(np.asarray(counts[lag]), np.asarray(groups[lag]), _contained_steps(ages, lag), failure_probability)
        for lag in counts
    ]
    return np.asarray(np.min(np.stack(bounds), axis=0))


def _contained_steps(ages: NDArray[np.int64], lag: int) -> NDArray[np.int64]:
    """Return how many whole steps of a lag lie within so many single steps, wherever they begin."""
    return ages if lag == 1 else np.maximum((ages + 1) // lag - 1, 0)


def _bound(
    counts: NDArray[np.int64], groups: NDArray[np.int64], ages: NDArray[np.int64], failure_probability: float
) -> Floats:
    if counts.ndim != 4 or counts.shape[2] != counts.shape[3] or groups.shape != counts.shape[:2]:
        raise ChainError("a cyclic chain has a square table of counts and a group for each phase")
    h, p = groups.shape
    result = np.ones((h, ages.size))
    horizon = min(int(ages.max(initial=0)), _DAYS * p)
    for start in range(0, h, _HOUSEHOLDS_PER_BATCH):
        households = slice(start, start + _HOUSEHOLDS_PER_BATCH)
        usable, kernels, radius = _reversed_rows(counts[households], groups[households], failure_probability)
        if usable.size:
            direct_bound = propagate_radii(kernels, radius, horizon)
            result[start + usable] = _extend_by_products(direct_bound, int(ages.max(initial=0)))[:, ages]
    return result


def _reversed_rows(
    counts: NDArray[np.int64], groups: NDArray[np.int64], failure_probability: float
) -> tuple[NDArray[np.int64], Floats, Floats]:
    """Return which households have all rows that their kernels lead to, these kernels (rows), and their radii."""
    p, k = counts.shape[1], counts.shape[-1]
    number = pool_counts(counts, groups)
    left_visits, entered = number.sum(axis=-1), np.roll(number.sum(axis=-2), 1, axis=1)
    has_states = (counts.sum(axis=(1, 2)) + counts.sum(axis=(1, 3)) > 0).sum(axis=-1) > 1
    usable = np.flatnonzero(((left_visits == 0) | (entered > 0)).all(axis=(1, 2)) & has_states)
    flow = np.roll(np.swapaxes(number[usable], -1, -2), 1, axis=1)
    visits = entered[usable]
    kernels = flow / np.where(visits > 0, visits, 1.0)[..., None]
    union_size = k * (p * (p - 1) + 1) * counts[usable].sum(axis=(1, 2, 3))[:, None, None]
    return usable, kernels, weissman_radii(visits, union_size, failure_probability)


def _extend_by_products(direct_bound: Floats, last: int) -> Floats:
    """Return U_0 to U_last from U_0 to U_horizon: the smallest products."""
    horizon = direct_bound.shape[1] - 1
    bound = np.concatenate((direct_bound, np.ones((len(direct_bound), max(last - horizon, 0)))), axis=1)
    for t in range(horizon + 1, last + 1):
        products = bound[:, 1 : horizon + 1] * bound[:, t - 1 : t - horizon - 1 : -1]
        bound[:, t] = np.minimum(bound[:, t - 1], products.min(axis=1))
    return bound
