"""Series drawn anew from the chains of households, and their pairs counted: where a check by replicates spends time.

The next state is one of those that followed the present one in the household's own series, each as likely: exactly
the estimated chain, at two look-ups a step for all households and replicates together.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from agedp_data.chains.direct import Ints, can_be_followed, lag_counts
from agedp_data.chains.transitions import recurrent_part, transition_matrix

Small = NDArray[np.unsignedinteger[Any]]

_DRAWS = 2**22  # random numbers at a time
_CELLS = 2**18  # pairs at a time: what stays in a processor's cache


def smallest(k: int) -> type[np.unsignedinteger[Any]]:
    """Return the smallest type that holds states below k, and k for a missing one."""
    return np.uint8 if k < 2**8 else np.uint16


def redrawn(series: Ints, k: int, replicates: int, rng: np.random.Generator) -> Small:
    """Return series drawn from the chain of each household, missing (k) where it is: (h, m) -> (h, replicates, m).

    Each begins in a state of the household's own at random. A household whose chain cannot be followed has none.
    """
    size, length = series.shape
    followers, start, number = _followers(series, k)
    first, first_start, first_number = _own_states(series, number > 0, k)
    lanes = np.repeat(np.arange(size), replicates)
    usable = first_number[lanes] > 0
    state = one_of(first, first_start[lanes], first_number[lanes], random_numbers(rng, lanes.size))
    paths = np.empty((length, lanes.size), dtype=smallest(k))
    row_start, row_number, base = start.ravel(), number.ravel(), lanes * k
    steps = max(1, _DRAWS // max(1, lanes.size))
    for begin in range(0, length, steps):
        drawn = random_numbers(rng, (min(steps, length - begin), lanes.size))
        for i, chance in enumerate(drawn, begin):
            paths[i] = state
            row = base + state
            state = one_of(followers, row_start[row], row_number[row], chance)
    paths[:, ~usable] = k
    found = np.ascontiguousarray(paths.T).reshape(size, replicates, length)
    found[np.broadcast_to((series < 0)[:, None], found.shape)] = k
    return found


def pairs_counted(now: Small, then: Small, lag: int, k: int) -> Ints:
    """Return the pairs (now, `lag` earlier) of states below k, k where missing: (..., m), (..., m) -> (..., k, k)."""
    length, wide = now.shape[-1], k + 1
    later, earlier = now.reshape(-1, length), then.reshape(-1, length)
    counts = np.zeros((len(later), wide * wide), dtype=np.int64)
    block = max(1, _CELLS // max(1, length))
    kind = np.dtype(np.uint16 if wide * wide <= 2**16 else np.uint32)
    for begin in range(0, len(later) if lag < length else 0, block):
        some = slice(begin, begin + block)
        cell = np.multiply(later[some, lag:], wide, dtype=kind) + earlier[some, : length - lag]
        place = cell + (np.arange(len(cell)) * wide * wide)[:, None]
        counts[some] = np.bincount(place.ravel(), minlength=len(cell) * wide * wide).reshape(-1, wide * wide)
    return counts.reshape(*now.shape[:-1], wide, wide)[..., :k, :k]


def _followers(series: Ints, k: int) -> tuple[Ints, Ints, Ints]:
    """Return the states that follow each state, household by household, where each begins (h, k) and how many."""
    size = len(series)
    counts = np.swapaxes(lag_counts(series, series, 1, n_secret=k, n_read=k), 1, 2)
    for i, chain in enumerate(transition_matrix(counts, smoothing=0)):
        kept = recurrent_part(chain)[1] if can_be_followed(chain) else np.zeros(k, dtype=np.bool_)
        counts[i] *= kept[:, None] & kept
    number = counts.sum(axis=2)
    start = np.concatenate(([0], number.ravel().cumsum()))[:-1].reshape(size, k)
    return np.repeat(np.tile(np.arange(k), size * k), counts.ravel()), start, number


def _own_states(series: Ints, kept: NDArray[np.bool_], k: int) -> tuple[Ints, Ints, Ints]:
    """Return the states of each household that are kept, where they begin (h,) and how many there are."""
    shifted = np.where(series >= 0, series, k) + np.arange(len(series))[:, None] * (k + 1)
    visits = np.bincount(shifted.ravel(), minlength=len(series) * (k + 1)).reshape(-1, k + 1)[:, :k] * kept
    number = visits.sum(axis=1)
    return np.repeat(np.tile(np.arange(k), len(series)), visits.ravel()), number.cumsum() - number, number


def random_numbers(rng: np.random.Generator, size: int | tuple[int, int]) -> NDArray[np.uint64]:
    """Return numbers from 0 to 2^32 - 1, each as likely."""
    return rng.integers(0, 2**32, size, dtype=np.uint32).astype(np.uint64)


def one_of(values: Ints, start: Ints, number: Ints, chance: NDArray[np.uint64]) -> Ints:
    """Return one of `number` values from `start` on, each as likely up to 2^-32; 0 where there are none."""
    place = start + ((number.astype(np.uint64) * chance) >> np.uint64(32)).astype(np.int64)
    return np.where(number > 0, values[np.minimum(place, max(values.size - 1, 0))], 0) if values.size else 0 * start
