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
_SPENT = 1e-14  # terms below it are not summed but allowed for
_FALLEN = 1e-12
_NUMBERS = 2**22


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
    share = (1 - level) / len(by_lag) / households
    found = [_bound(np.asarray(each, dtype=np.float64), ages // lag, share) for lag, each in by_lag.items()]
    return np.asarray(np.min(np.stack(np.broadcast_arrays(*found)), axis=0))


def _bound(counts: Floats, ages: NDArray[np.int64], share: float) -> Floats:
    backward = transition_matrix(np.swapaxes(counts, -1, -2), smoothing=0)
    k = counts.shape[-1]
    chains, number = backward.reshape(-1, 1, k, k), counts.reshape(-1, k, k)
    result = np.ones((len(chains), ages.size))
    visits = number.sum(axis=1)
    seen = (visits > 0) | (number.sum(axis=2) > 0)
    known = (seen.sum(axis=1) > 1) & ((visits > 0) == seen).all(axis=1)
    radius = radii(visits, k * visits.sum(axis=-1, keepdims=True), share)[:, None]
    horizon = int(ages.max(initial=0))
    chosen = np.flatnonzero(known)
    result[chosen] = propagated(np.nan_to_num(chains[chosen]), radius[chosen], horizon)[:, ages]
    return result.reshape(*counts.shape[:-2], ages.size)


def radii(visits: Floats, tried: Floats | float, share: float) -> Floats:
    """Return how far (L1) rows visited so often lie from the truth: sqrt((2/N_x) ln((2^k - 2) tried / share)).

    Shapes: (..., k), broadcast -> (..., k). `tried` is in how many ways a row may be come by (rows, numbers of
    visits), `share` the probability that one household may fail with. Two laws are never further apart than 2.
    """
    k = visits.shape[-1]
    log = np.log(2.0**k - 2) + np.log(np.maximum(tried, 1.0)) - np.log(share) if k > 1 else np.inf
    return np.where(visits > 0, np.minimum(np.sqrt(2 * log / np.maximum(visits, 1.0)), 2.0), 2.0)


def propagated(kernels: Floats, radius: Floats, horizon: int) -> Floats:
    """Return U_0 to U_horizon of reversed one-step kernels by phase, known up to a radius: the largest over phases.

    With the phase p of the present, v the difference of two rows and A_s = K_p K_(p-1) ... K_(p-s+1),

        U_(p, t) = min(U_(p, t-1), min_a U_(p, a) U_(p-a, t-a), 1/2 max_v [ |v A_t|_1 + sum_(s < t) sum_i
        |(v A_s)_i| e_(p-s, i) U_(p-s-1, t-1-s) ]);

    one phase is a homogeneous chain. Shapes: (h, p, k, k) with rows of zeros for states left out, (h, p, k) ->
    (h, horizon + 1). Units: [-].
    """
    h, p, k = radius.shape
    result = np.ones((h, horizon + 1))
    each = max(1, _NUMBERS // (p * k**3))
    blocks = [slice(start, start + each) for start in range(0, h, each)]
    falling = [of.start + _falling(kernels[of], radius[of], horizon) for of in blocks]
    chosen = np.concatenate([np.zeros(0, np.int64), *falling])
    each = max(1, _NUMBERS // (p * (horizon + 1) * max(1, k * (k - 1) // 2)))
    for start in range(0, chosen.size, each):
        block = chosen[start : start + each]
        result[block] = _recursion(kernels[block], radius[block], horizon)
    return result


def _falling(kernels: Floats, radius: Floats, horizon: int) -> NDArray[np.int64]:
    """Return which households' bounds ever fall below one.

    While they are at one, the errors of each pair of rows only grow; once they alone make up for a total variation of
    one at every phase, no bound falls any more.
    """
    left, falls = np.arange(len(kernels)), np.zeros(len(kernels), np.bool_)
    pairs = _RowPairs(kernels)
    now, error = pairs.start, np.zeros((*radius.shape[:2], pairs.number))
    for t in range(horizon + 1):
        apart = pairs.apart(now)
        fell = ((apart.sum(axis=-1) + error).max(axis=-1, initial=0.0) < 2 - _FALLEN).any(axis=-1)
        error = error + (apart @ np.roll(radius, t, axis=1)[..., None])[..., 0]
        stuck = (error.max(axis=-1, initial=0.0) > 2 + _FALLEN).all(axis=-1)
        falls[left[fell]] = True
        if (fell | stuck).any():
            keep = ~(fell | stuck)
            left, now, error, kernels, radius = (each[keep] for each in (left, now, error, kernels, radius))
            pairs = _RowPairs(kernels)
        if not left.size:
            break
        now = _next(now, kernels, t)
    return np.flatnonzero(falls)


def _recursion(kernels: Floats, radius: Floats, horizon: int) -> Floats:
    h, p, _ = radius.shape
    pairs = _RowPairs(kernels)
    phase = np.arange(p)[:, None]
    known = np.ones((h, p, horizon + 1))
    weight = np.zeros((h, p, horizon + 1, pairs.number))
    now, spent = pairs.start, 0
    for t in range(horizon + 1):
        apart = pairs.apart(now)
        weight[:, :, t] = (apart @ np.roll(radius, t, axis=1)[..., None])[..., 0]
        if weight[:, :, t].max(initial=0.0) > _SPENT:
            spent = t + 1
        if t:
            s, a = np.arange(min(t, spent)), np.arange(1, t)
            before = known[:, (phase - s - 1) % p, t - 1 - s]
            carried = (before[:, :, None] @ weight[:, :, : s.size])[:, :, 0]
            direct = ((apart.sum(axis=-1) + carried) / 2).max(axis=-1, initial=0.0) + (t - s.size) * _SPENT
            products = (known[:, :, 1:t] * known[:, (phase - a) % p, t - a]).min(axis=-1, initial=1.0)
            known[:, :, t] = np.minimum(known[:, :, t - 1], np.minimum(products, direct + _SLACK))
        now = _next(now, kernels, t)
    return np.asarray(known.max(axis=1))


class _RowPairs:
    """The pairs of rows of kernels (h, p, k, k) that have both rows."""

    def __init__(self, kernels: Floats) -> None:
        kept = kernels.sum(axis=-1) > 0
        self.upper, self.lower = np.triu_indices(kernels.shape[-1], 1)
        self.both = (kept[..., self.upper] & kept[..., self.lower])[..., None]
        self.number = self.upper.size
        self.start = np.eye(kernels.shape[-1]) * kept[..., None]

    def apart(self, rows: Floats) -> Floats:
        """Return how far the two rows of each pair are apart, by state: (h, p, pairs, k)."""
        return np.asarray(np.abs(rows[:, :, self.upper] - rows[:, :, self.lower]) * self.both)


def _next(now: Floats, kernels: Floats, t: int) -> Floats:
    """Return the kernels over t + 1 steps before each phase from those over t."""
    product = now @ np.roll(kernels, t, axis=1)
    total = product.sum(axis=-1, keepdims=True)
    return np.asarray(product / np.where(total > 0, total, 1.0))
