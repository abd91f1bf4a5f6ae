"""Sampling bound: upper confidence bound of Delta(t) of a chain that is itself an estimate.

Example: two states with 10 000 visits each and P = [[.9, .1], [.1, .9]] as counted: Delta(1) is .8 by plug-in and at
most .8535 with confidence .95.

The plug-in Delta(t) understates the truth in about half of all cases. Here each row of the reversed chain is known up
to a radius e_x in the L1 norm, for all households, rows and numbers of visits at once (Weissman et al.), and the radii
are propagated through the powers. The bound covers the sampling error of the estimate within the model, not the error
of the model. It costs two to three times the age; rarely visited states keep it at 1.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agedp_data.arrays import Floats, checked_steps
from agedp_data.errors import ChainError
from agedp_data.markov.transitions import transition_matrix

_SLACK = 1e-15
_TOLERANCE = 1e-12
_NUMBERS_PER_BATCH = 2**22


def sampling_bound(
    counts: ArrayLike | Mapping[int, ArrayLike], steps: ArrayLike, *, level: float, households: int
) -> Floats:
    r"""Upper confidence bound U_t of Delta(t) of the true chains, for all households and steps at once.

    Use it where a chain is estimated from few visits. The leakage that U_t permits is
    `leakage_from_total_variation(U_t, loss)`.

    .. math:: e_x = \sqrt{(2 / N_x) \ln((2^k - 2)\, n k N / \beta)}, \qquad U_0 = 1

    .. math:: U_t = \min\Bigl(U_{t-1},\ \min_a U_a U_{t-a},\ \frac{1}{2} \max_{x, x'} \bigl[ \lVert v Q^t \rVert_1
        + \sum_{s < t} \sum_i |(v Q^s)_i| e_i U_{t-1-s} \bigr]\Bigr)

    with beta = (1 - level) / number of lags, v the difference of the indicators of x and x', Q the reversed chain as
    counted, N_x the visits of its row x, N their sum and n the number of households.

    Source: Weissman radii, propagated; not in the papers, whose chains are treated as known.

    Args:
        counts: one-step transitions, shape (..., k, k), rows: from; or a dict from lag L to the transitions of the
            series subsampled every L steps (`count_transitions` with `every`): each gives a bound, the smallest
            is taken.
        steps: ages, shape (T,), integers >= 0 [steps].
        level: confidence, for example 0.95, in (0, 1).
        households: number n of households for which the bound holds at once.

    Returns:
        Shape (..., T), between 0 and 1 [-]. States without any transition are left out; a state into which no
        transition was counted, or a single state, keeps the bound at 1.

    Raises:
        ChainError: a level outside (0, 1), fewer than one household or lag, or counts and steps of a wrong kind.

    References:
        Weissman, Ordentlich, Seroussi, Verdu, Weinberger: Inequalities for the L1 Deviation of the Empirical
        Distribution. HP Labs HPL-2003-97, 2003. https://www.hpl.hp.com/techreports/2003/HPL-2003-97R1.pdf

    >>> sampling_bound([[9000, 1000], [1000, 9000]], [1], level=0.95, households=1).round(4).tolist()  # .8 + e
    [0.8535]
    """
    if not 0 < level < 1 or households < 1:
        raise ChainError(f"a sampling bound needs a level between 0 and 1 and a household, got {level}, {households}")
    ages = checked_steps(steps)
    if ages.ndim != 1:
        raise ChainError(f"steps are a list of whole numbers, got shape {ages.shape}")
    by_lag = dict(counts) if isinstance(counts, Mapping) else {1: counts}
    if not by_lag or min(by_lag) < 1:
        raise ChainError("transitions are counted at one or more lags of at least 1 step")
    failure_probability = (1 - level) / len(by_lag) / households
    bounds = [
        _bound(np.asarray(table, dtype=np.float64), ages // lag, failure_probability) for lag, table in by_lag.items()
    ]
    return np.asarray(np.min(np.stack(np.broadcast_arrays(*bounds)), axis=0))


def _bound(counts: Floats, ages: NDArray[np.int64], failure_probability: float) -> Floats:
    backward = transition_matrix(np.swapaxes(counts, -1, -2), smoothing=0)
    k = counts.shape[-1]
    chains, number = backward.reshape(-1, 1, k, k), counts.reshape(-1, k, k)
    result = np.ones((len(chains), ages.size))
    visits = number.sum(axis=1)
    is_visited = (visits > 0) | (number.sum(axis=2) > 0)
    is_usable = (is_visited.sum(axis=1) > 1) & ((visits > 0) == is_visited).all(axis=1)
    radius = weissman_radii(visits, k * visits.sum(axis=-1, keepdims=True), failure_probability)[:, None]
    horizon = int(ages.max(initial=0))
    chosen = np.flatnonzero(is_usable)
    result[chosen] = propagate_radii(np.nan_to_num(chains[chosen]), radius[chosen], horizon)[:, ages]
    return result.reshape(*counts.shape[:-2], ages.size)


def weissman_radii(visits: Floats, union_size: Floats | float, failure_probability: float) -> Floats:
    r"""Radii of rows in the L1 norm: how far a counted row may be from the true one.

    .. math:: e_x = \min\bigl(2, \sqrt{(2 / N_x) \ln((2^k - 2)\, m / \delta)}\bigr)

    Source: Weissman et al. 2003, Theorem 2.1, as in `sampling_bound`. Two distributions are never further apart than 2.

    Args:
        visits: visits N_x of each row, shape (..., k) [transitions].
        union_size: number m of events of the union bound (rows times possible numbers of visits), broadcast.
        failure_probability: delta, with which one household may violate the bound, in (0, 1) [-].

    Returns:
        Shape (..., k), between 0 and 2 [-]; 2 for a row without visits or a single state.

    References:
        Weissman, Ordentlich, Seroussi, Verdu, Weinberger: Inequalities for the L1 Deviation of the Empirical
        Distribution. HP Labs HPL-2003-97, 2003. https://www.hpl.hp.com/techreports/2003/HPL-2003-97R1.pdf

    >>> weissman_radii(np.array([10000.0, 0.0]), 40000, 0.05).round(4).tolist()  # sqrt(2e-4 ln(1.6e6))
    [0.0535, 2.0]
    """
    k = visits.shape[-1]
    log_term = (
        np.log(2.0**k - 2) + np.log(np.maximum(union_size, 1.0)) - np.log(failure_probability) if k > 1 else np.inf
    )
    return np.where(visits > 0, np.minimum(np.sqrt(2 * log_term / np.maximum(visits, 1.0)), 2.0), 2.0)


def propagate_radii(kernels: Floats, radius: Floats, horizon: int) -> Floats:
    r"""U_0 to U_horizon of reversed one-step kernels by phase, known up to radii; the maximum over phases.

    With p the phase of the present, v the difference of two rows and A_s = K_p K_(p-1) ... K_(p-s+1):

    .. math:: U_{p, t} = \min\Bigl(U_{p, t-1},\ \min_a U_{p, a} U_{p-a, t-a},\ \frac{1}{2} \max_v \bigl[
        \lVert v A_t \rVert_1 + \sum_{s < t} \sum_i |(v A_s)_i| e_{p-s, i} U_{p-s-1, t-1-s} \bigr]\Bigr)

    Source: as `sampling_bound`, the radii e by `weissman_radii`; one phase is a time-homogeneous chain.

    Args:
        kernels: shape (h, p, k, k), rows sum to 1 or, for states left out, to 0 [-].
        radius: L1 radii of the rows, shape (h, p, k) [-].
        horizon: largest age [steps].

    Returns:
        Shape (h, horizon + 1), between 0 and 1 [-].

    References:
        Weissman, Ordentlich, Seroussi, Verdu, Weinberger: Inequalities for the L1 Deviation of the Empirical
        Distribution. HP Labs HPL-2003-97, 2003. https://www.hpl.hp.com/techreports/2003/HPL-2003-97R1.pdf

    >>> kernels = np.array([[[[0.9, 0.1], [0.1, 0.9]]]])
    >>> propagate_radii(kernels, np.zeros((1, 1, 2)), 2).round(12).tolist()  # no sampling error: .8^t
    [[1.0, 0.8, 0.64]]
    """
    h, p, k = radius.shape
    result = np.ones((h, horizon + 1))
    batch_size = max(1, _NUMBERS_PER_BATCH // (p * k**3))
    batches = [slice(start, start + batch_size) for start in range(0, h, batch_size)]
    candidates = [
        households.start + _with_bound_below_one(kernels[households], radius[households], horizon)
        for households in batches
    ]
    chosen = np.concatenate([np.zeros(0, np.int64), *candidates])
    batch_size = max(1, _NUMBERS_PER_BATCH // (p * (horizon + 1) * max(1, k * (k - 1) // 2)))
    for start in range(0, chosen.size, batch_size):
        batch = chosen[start : start + batch_size]
        result[batch] = _recursion(kernels[batch], radius[batch], horizon)
    return result


def _with_bound_below_one(kernels: Floats, radius: Floats, horizon: int) -> NDArray[np.int64]:
    """Return the households whose bound falls below 1 at some age.

    While a bound is 1, the errors of each pair of rows only grow. Once they alone exceed a total variation of 1 at
    every phase, the bound stays at 1.
    """
    remaining, is_candidate = np.arange(len(kernels)), np.zeros(len(kernels), np.bool_)
    pairs = _RowPairs(kernels)
    power, error = pairs.start, np.zeros((*radius.shape[:2], pairs.count))
    for t in range(horizon + 1):
        distance = pairs.differences(power)
        is_below = ((distance.sum(axis=-1) + error).max(axis=-1, initial=0.0) < 2 - _TOLERANCE).any(axis=-1)
        error = error + (distance @ np.roll(radius, t, axis=1)[..., None])[..., 0]
        is_at_one = (error.max(axis=-1, initial=0.0) > 2 + _TOLERANCE).all(axis=-1)
        is_candidate[remaining[is_below]] = True
        if (is_below | is_at_one).any():
            is_undecided = ~(is_below | is_at_one)
            remaining, power, error, kernels, radius = (
                array[is_undecided] for array in (remaining, power, error, kernels, radius)
            )
            pairs = _RowPairs(kernels)
        if not remaining.size:
            break
        power = _next_power(power, kernels, t)
    return np.flatnonzero(is_candidate)


def _recursion(kernels: Floats, radius: Floats, horizon: int) -> Floats:
    h, p, _ = radius.shape
    pairs = _RowPairs(kernels)
    phase = np.arange(p)[:, None]
    bound = np.ones((h, p, horizon + 1))
    term = np.zeros((h, p, horizon + 1, pairs.count))
    power = pairs.start
    for t in range(horizon + 1):
        distance = pairs.differences(power)
        term[:, :, t] = (distance @ np.roll(radius, t, axis=1)[..., None])[..., 0]
        if t:
            lag, split = np.arange(t), np.arange(1, t)
            # In C order whatever the number of households: the order of memory decides how BLAS adds up.
            previous = np.ascontiguousarray(bound[:, (phase - lag - 1) % p, t - 1 - lag])
            carried = (previous[:, :, None] @ term[:, :, :t])[:, :, 0]
            direct = ((distance.sum(axis=-1) + carried) / 2).max(axis=-1, initial=0.0)
            products = (bound[:, :, 1:t] * bound[:, (phase - split) % p, t - split]).min(axis=-1, initial=1.0)
            bound[:, :, t] = np.minimum(bound[:, :, t - 1], np.minimum(products, direct + _SLACK))
        power = _next_power(power, kernels, t)
    return np.asarray(bound.max(axis=1))


class _RowPairs:
    """The pairs of rows of kernels (h, p, k, k) that have both rows."""

    def __init__(self, kernels: Floats) -> None:
        has_row = kernels.sum(axis=-1) > 0
        self.upper, self.lower = np.triu_indices(kernels.shape[-1], 1)
        self.is_valid = (has_row[..., self.upper] & has_row[..., self.lower])[..., None]
        self.count = self.upper.size
        self.start = np.eye(kernels.shape[-1]) * has_row[..., None]

    def differences(self, rows: Floats) -> Floats:
        """Return the absolute difference of the two rows of each pair, by state: (h, p, pairs, k)."""
        return np.asarray(np.abs(rows[:, :, self.upper] - rows[:, :, self.lower]) * self.is_valid)


def _next_power(current: Floats, kernels: Floats, t: int) -> Floats:
    """Return the kernels over t + 1 steps before each phase from those over t."""
    product = current @ np.roll(kernels, t, axis=1)
    total = product.sum(axis=-1, keepdims=True)
    return np.asarray(product / np.where(total > 0, total, 1.0))
