"""Series drawn anew from the chains of households, and their pairs counted: where a check by replicates spends time.

The next state is one of those that followed the present one in the household's own series, each as likely: exactly
the estimated chain, at two look-ups a step for all households and replicates together.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from agedp_data.chains.direct import Ints, count_lagged_pairs, has_recurrent_part
from agedp_data.chains.transitions import recurrent_part, transition_matrix

SmallInts = NDArray[np.unsignedinteger[Any]]

_NUMBERS_PER_BATCH = 2**22  # random numbers at a time
_PAIRS_PER_BATCH = 2**18  # pairs at a time: what stays in a processor's cache


def smallest_state_type(k: int) -> type[np.unsignedinteger[Any]]:
    """Return the smallest type that holds states below k, and k for a missing one."""
    return np.uint8 if k < 2**8 else np.uint16


def simulate_replicates(series: Ints, k: int, replicates: int, rng: np.random.Generator) -> SmallInts:
    """Return series drawn from the chain of each household, missing (k) where it is: (h, m) -> (h, replicates, m).

    Each begins in a state of the household's own at random. A household whose chain cannot be followed has none.
    """
    size, length = series.shape
    successors, start, successor_number = _successors(series, k)
    visited_states, visited_start, visited_number = _visited_states(series, successor_number > 0, k)
    lanes = np.repeat(np.arange(size), replicates)
    usable = visited_number[lanes] > 0
    state = pick_uniformly(visited_states, visited_start[lanes], visited_number[lanes], random_uint32(rng, lanes.size))
    paths = np.empty((length, lanes.size), dtype=smallest_state_type(k))
    row_start, row_size, base = start.ravel(), successor_number.ravel(), lanes * k
    steps = max(1, _NUMBERS_PER_BATCH // max(1, lanes.size))
    for first_step in range(0, length, steps):
        numbers = random_uint32(rng, (min(steps, length - first_step), lanes.size))
        for step, number in enumerate(numbers, first_step):
            paths[step] = state
            row = base + state
            state = pick_uniformly(successors, row_start[row], row_size[row], number)
    paths[:, ~usable] = k
    simulated = np.ascontiguousarray(paths.T).reshape(size, replicates, length)
    simulated[np.broadcast_to((series < 0)[:, None], simulated.shape)] = k
    return simulated


def count_state_pairs(later_states: SmallInts, earlier_states: SmallInts, lag: int, k: int) -> Ints:
    """Return the pairs (now, `lag` earlier) of states below k, k where missing: (..., m), (..., m) -> (..., k, k)."""
    length, width = later_states.shape[-1], k + 1
    later, earlier = later_states.reshape(-1, length), earlier_states.reshape(-1, length)
    counts = np.zeros((len(later), width * width), dtype=np.int64)
    batch_size = max(1, _PAIRS_PER_BATCH // max(1, length))
    cell_type = np.dtype(np.uint16 if width * width <= 2**16 else np.uint32)
    for batch_start in range(0, len(later) if lag < length else 0, batch_size):
        batch = slice(batch_start, batch_start + batch_size)
        cell = np.multiply(later[batch, lag:], width, dtype=cell_type) + earlier[batch, : length - lag]
        index = cell + (np.arange(len(cell)) * width * width)[:, None]
        counts[batch] = np.bincount(index.ravel(), minlength=len(cell) * width * width).reshape(-1, width * width)
    return counts.reshape(*later_states.shape[:-1], width, width)[..., :k, :k]


def _successors(series: Ints, k: int) -> tuple[Ints, Ints, Ints]:
    """Return the states that follow each state, household by household, where each begins (h, k) and how many."""
    size = len(series)
    counts = np.swapaxes(count_lagged_pairs(series, series, 1, n_secret=k, n_read=k), 1, 2)
    for i, chain in enumerate(transition_matrix(counts, smoothing=0)):
        is_recurrent = recurrent_part(chain)[1] if has_recurrent_part(chain) else np.zeros(k, dtype=np.bool_)
        counts[i] *= is_recurrent[:, None] & is_recurrent
    row_size = counts.sum(axis=2)
    start = np.concatenate(([0], row_size.ravel().cumsum()))[:-1].reshape(size, k)
    return np.repeat(np.tile(np.arange(k), size * k), counts.ravel()), start, row_size


def _visited_states(series: Ints, is_allowed: NDArray[np.bool_], k: int) -> tuple[Ints, Ints, Ints]:
    """Return the states of each household that are kept, where they begin (h,) and how many there are."""
    shifted = np.where(series >= 0, series, k) + np.arange(len(series))[:, None] * (k + 1)
    visits = np.bincount(shifted.ravel(), minlength=len(series) * (k + 1)).reshape(-1, k + 1)[:, :k] * is_allowed
    number = visits.sum(axis=1)
    return np.repeat(np.tile(np.arange(k), len(series)), visits.ravel()), number.cumsum() - number, number


def random_uint32(rng: np.random.Generator, size: int | tuple[int, int]) -> NDArray[np.uint64]:
    """Return numbers from 0 to 2^32 - 1, each as likely."""
    return rng.integers(0, 2**32, size, dtype=np.uint32).astype(np.uint64)


def pick_uniformly(values: Ints, start: Ints, number: Ints, random: NDArray[np.uint64]) -> Ints:
    """Return one of `number` values from `start` on, each as likely up to 2^-32; 0 where there are none."""
    index = start + ((number.astype(np.uint64) * random) >> np.uint64(32)).astype(np.int64)
    return np.where(number > 0, values[np.minimum(index, max(values.size - 1, 0))], 0) if values.size else 0 * start
