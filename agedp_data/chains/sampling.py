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

from agedp_data.chains.transitions import ascending_powers, transition_matrix
from agedp_data.errors import ChainError
from agedp_data.privacy.kernel import Floats, checked_steps

_SLACK = 1e-15
_SPENT = 1e-14  # terms below it are not summed but allowed for
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
    chains, number = backward.reshape(-1, k, k), counts.reshape(-1, k, k)
    result = np.ones((len(chains), ages.size))
    visits = number.sum(axis=1)
    seen = (visits > 0) | (number.sum(axis=2) > 0)
    known = (seen.sum(axis=1) > 1) & ((visits > 0) == seen).all(axis=1)
    horizon = int(ages.max(initial=0))
    block = max(1, _NUMBERS // max(1, (horizon + 1) * k * (k - 1) // 2))
    chosen = np.flatnonzero(known)
    for start in range(0, chosen.size, block):
        some = chosen[start : start + block]
        result[some] = _propagated(chains[some], visits[some], share, horizon)[:, ages]
    return result.reshape(*counts.shape[:-2], ages.size)


def _radii(visits: Floats, share: float) -> Floats:
    k, total = visits.shape[-1], visits.sum(axis=-1, keepdims=True)
    with np.errstate(divide="ignore"):
        log = np.log(2.0**k - 2) + np.log(k) + np.log(total) - np.log(share)
        # Two laws are never further apart than 2.
        return np.asarray(np.minimum(np.sqrt(2 * log / visits), 2.0))


def _propagated(chains: Floats, visits: Floats, share: float, horizon: int) -> Floats:
    """Return U_0 to U_horizon of households (h,) whose states seen all have rows: (h, horizon + 1)."""
    h, k = visits.shape
    radius = _radii(visits, share)
    upper, lower = np.triu_indices(k, 1)
    both = (visits[:, upper] > 0) & (visits[:, lower] > 0)
    known = np.ones((h, horizon + 1))
    weight = np.zeros((h, upper.size, horizon + 1))
    spent = 0
    for t, power in ascending_powers(chains, np.arange(horizon + 1)):
        kernel = np.nan_to_num(power)
        apart = np.abs(kernel[:, upper] - kernel[:, lower]) * both[..., None]
        weight[..., t] = (apart * radius[:, None, :]).sum(axis=-1)
        if weight[..., t].max(initial=0.0) > _SPENT:
            spent = t + 1
        if t:
            used = min(t, spent)
            carried = weight[..., :used] @ known[:, t - used : t][:, ::-1, None]
            direct = ((apart.sum(axis=-1) + carried[..., 0]) / 2).max(axis=-1) + (t - used) * _SPENT
            products = (known[:, 1:t] * known[:, t - 1 : 0 : -1]).min(axis=-1, initial=1.0)
            known[:, t] = np.minimum(known[:, t - 1], np.minimum(products, direct + _SLACK))
    return known
