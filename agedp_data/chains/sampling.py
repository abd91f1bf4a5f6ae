"""A bound on how fast a chain forgets that allows for its being estimated (MATHS 8).

The plug-in Delta(t) understates the truth in about half of all cases. Here each row of the reversed chain is known
up to a radius e_x in the L1 norm, at once for all households, rows and numbers of visits (Weissman, Ordentlich,
Seroussi, Verdu and Weinberger, HP Labs HPL-2003-97), and the radii are carried through the powers. It certifies the
noise of the estimate within the model, not the model, and costs two or three times the age; rarely visited states
keep it at one.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agedp_data.chains.transitions import transition_matrix
from agedp_data.errors import ChainError
from agedp_data.privacy.kernel import Floats, checked_steps

_SLACK = 1e-15
_NEGLIGIBLE = 1e-14  # terms below it are not summed but allowed for
_TOLERANCE = 1e-12
_NUMBERS_PER_BATCH = 2**22


def sampling_bound(
    counts: ArrayLike | Mapping[int, ArrayLike], steps: ArrayLike, *, level: float, households: int
) -> Floats:
    """Return U_t >= Delta(t) of the true chain, with probability `level` for all households and steps at once.

        e_x = sqrt((2/N_x) ln((2^k - 2) n k N / beta)),  beta = (1 - level) / number of lags,
        U_0 = 1,  U_t = min(U_(t-1), min_a U_a U_(t-a), 1/2 max_(x, x') [ |v Q^t|_1 + sum_(s < t) sum_i
        |(v Q^s)_i| e_i U_(t-1-s) ]),

    v the difference of the indicators of x and x', Q the reversed chain as counted, N_x the visits of its row x, N
    their sum, n the number of households. What it says about a loss is `through_distance(U_t, loss)`.

    Shapes: (..., k, k), (T,) int -> (..., T). Units: [transitions], [steps] -> [-]. States without any transition
    are left out; a state into which none was counted, or a single state, keeps the bound at 1.

    Args:
        counts: one-step transitions (rows: from); or for several lags L the transitions of the series read every L
            steps (`count_transitions` with `every`), of which each gives a bound and the smallest is taken.
        steps: ages.
        level: confidence, for example 0.95.
        households: for how many households it has to hold at once.

    Raises:
        ChainError: a level outside (0, 1), fewer than one household or lag, or counts and steps that are none.

    References: MATHS 8.

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
    """Return how far (L1) rows visited so often lie from the truth: sqrt((2/N_x) ln((2^k - 2) tried / share)).

    Shapes: (..., k), broadcast -> (..., k). `tried` is in how many ways a row may be come by (rows, numbers of
    visits), `share` the probability that one household may fail with. Two laws are never further apart than 2.
    """
    k = visits.shape[-1]
    log_term = (
        np.log(2.0**k - 2) + np.log(np.maximum(union_size, 1.0)) - np.log(failure_probability) if k > 1 else np.inf
    )
    return np.where(visits > 0, np.minimum(np.sqrt(2 * log_term / np.maximum(visits, 1.0)), 2.0), 2.0)


def propagate_radii(kernels: Floats, radius: Floats, horizon: int) -> Floats:
    """Return U_0 to U_horizon of reversed one-step kernels by phase, known up to a radius: the largest over phases.

    With the phase p of the present, v the difference of two rows and A_s = K_p K_(p-1) ... K_(p-s+1),

        U_(p, t) = min(U_(p, t-1), min_a U_(p, a) U_(p-a, t-a), 1/2 max_v [ |v A_t|_1 + sum_(s < t) sum_i
        |(v A_s)_i| e_(p-s, i) U_(p-s-1, t-1-s) ]);

    one phase is a homogeneous chain. Shapes: (h, p, k, k) with rows of zeros for states left out, (h, p, k) ->
    (h, horizon + 1). Units: [-].
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
    """Return which households' bounds ever fall below one.

    While they are at one, the errors of each pair of rows only grow; once they alone make up for a total variation of
    one at every phase, no bound falls any more.
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
    power, term_count = pairs.start, 0
    for t in range(horizon + 1):
        distance = pairs.differences(power)
        term[:, :, t] = (distance @ np.roll(radius, t, axis=1)[..., None])[..., 0]
        if term[:, :, t].max(initial=0.0) > _NEGLIGIBLE:
            term_count = t + 1
        if t:
            lag, split = np.arange(min(t, term_count)), np.arange(1, t)
            previous = bound[:, (phase - lag - 1) % p, t - 1 - lag]
            carried = (previous[:, :, None] @ term[:, :, : lag.size])[:, :, 0]
            direct = ((distance.sum(axis=-1) + carried) / 2).max(axis=-1, initial=0.0) + (t - lag.size) * _NEGLIGIBLE
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
        """Return how far the two rows of each pair are apart, by state: (h, p, pairs, k)."""
        return np.asarray(np.abs(rows[:, :, self.upper] - rows[:, :, self.lower]) * self.is_valid)


def _next_power(current: Floats, kernels: Floats, t: int) -> Floats:
    """Return the kernels over t + 1 steps before each phase from those over t."""
    product = current @ np.roll(kernels, t, axis=1)
    total = product.sum(axis=-1, keepdims=True)
    return np.asarray(product / np.where(total > 0, total, 1.0))
