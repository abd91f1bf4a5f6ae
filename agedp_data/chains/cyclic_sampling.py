"""Sampling bound of cyclic chains: upper confidence bound of Delta(t) of chains that are themselves estimates.

The recursion is that of `propagate_radii` with one row per phase. Two things differ. The phases that share a kernel
were chosen by looking at the counts, so radii hold for every group of adjacent phases that could have been chosen,
p (p - 1) + 1 of them. And U_t is computed over two days only; larger ages follow from U_t <= U_a U_(t-a), which is all
that the recursion yields once the sampling errors are included.

A household with a state that has no row at a phase to which its kernels lead (a neighbour that shares the kernel had
visits, this phase never) keeps the bound at 1: its mixing there is unknown.
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
    r"""Upper confidence bound U_t of Delta(t), maximum over phases, of the true chains, for all households at once.

    Of several lags each gives a bound and the smallest is taken; the level is divided among them. A lag of L steps has
    p / L phases, which begin at multiples of L: any t steps contain (t + 1) // L - 1 of its steps.

    .. math:: U_t = \max_p U_{p, t}, \qquad e_x = \sqrt{(2 / N_x) \ln((2^k - 2)\, n k (p (p - 1) + 1) N / \beta)}

    with U_(p, t) as in `propagate_radii` and the other symbols as in `sampling_bound`.

    Source: Weissman radii, propagated; not in the papers, whose chains are treated as known.

    Args:
        counts: by lag L (1 for all readings), transitions by the phase that they leave of the series subsampled every L
            steps, shape (h, p / L, k, k) [transitions].
        groups: by lag, group of each phase (`merge_phases`), shape (h, p / L) int.
        steps: ages, shape (T,), integers >= 0 [steps].
        level: confidence, for example 0.95, in (0, 1).
        households: number n of households for which the bound holds at once.

    Returns:
        Shape (h, T), between 0 and 1 [-].

    Raises:
        ChainError: a level outside (0, 1), fewer than one household or lag, or shapes that do not fit.

    References:
        Weissman, Ordentlich, Seroussi, Verdu, Weinberger: Inequalities for the L1 Deviation of the Empirical
        Distribution. HP Labs HPL-2003-97, 2003. https://www.hpl.hp.com/techreports/2003/HPL-2003-97R1.pdf

    >>> tables = {1: np.full((1, 2, 2, 2), 5000)}  # independent readings: Delta is 0, known up to a radius of .0401
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
    """Return how many whole steps of a lag are contained in this many single steps, wherever they begin."""
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
    """Return the households that have all rows to which their kernels lead, these kernels (rows), and their radii."""
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
