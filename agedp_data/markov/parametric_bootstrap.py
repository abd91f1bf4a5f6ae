"""Parametric bootstrap: series simulated from the chains of households, and fast counts of their pairs.

The next state is drawn uniformly from the states that followed the present one in the household's own series. This is
exactly the estimated chain, at two look-ups per step for all households and replicates together.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from agedp_data.markov.lagged_counts import Ints, count_lagged_pairs, has_recurrent_part
from agedp_data.markov.transitions import recurrent_part, transition_matrix

SmallInts = NDArray[np.unsignedinteger[Any]]

_NUMBERS_PER_BATCH = 2**22  # random numbers at a time
_PAIRS_PER_BATCH = 2**18  # pairs at a time: what stays in a processor's cache


def smallest_state_type(k: int) -> type[np.unsignedinteger[Any]]:
    """Smallest unsigned type that contains the states below k, and k itself for a missing one.

    Source: elementary (range of an unsigned integer type).

    Args:
        k: number of states.

    Returns:
        A numpy integer type.

    >>> smallest_state_type(12).__name__, smallest_state_type(256).__name__
    ('uint8', 'uint16')
    """
    return np.uint8 if k < 2**8 else np.uint16


def simulate_replicates(series: Ints, k: int, replicates: int, rng: np.random.Generator) -> SmallInts:
    r"""Series simulated from the fitted chain of each household, missing (k) where the household's series is.

    Each series begins in a state drawn from the household's own visits. A household whose chain has no recurrent part
    has missing replicates only.

    .. math:: \Pr(X^*_{i+1} = y \mid X^*_i = x) = \hat P(x, y)

    Source: parametric bootstrap, Davison and Hinkley section 4.2, with the estimated chain as the fitted model.

    Args:
        series: states, shape (h, m) int, negative if missing.
        k: number of states.
        replicates: series per household.
        rng: source of randomness.

    Returns:
        Shape (h, replicates, m), unsigned; k is missing.

    References:
        Davison, Hinkley: Bootstrap Methods and their Application, 1997. https://doi.org/10.1017/CBO9780511802843

    >>> path = simulate_replicates(np.array([[0, 1, 0, 1, -1]]), 2, 1, np.random.default_rng(1))[0, 0]
    >>> bool((path[:3] != path[1:4]).all()), path[4].item()  # a periodic chain alternates; the last step is missing
    (True, 2)
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
    r"""Count pairs (later state, state `lag` steps earlier) of series in a small type; k is missing.

    Faster than `count_lagged_pairs` for many simulated series.

    .. math:: N(x, y) = \#\{i : s_i = x,\ r_{i - \ell} = y\}

    Source: as `count_lagged_pairs`.

    Args:
        later_states: shape (..., m), unsigned, 0..k.
        earlier_states: shape (..., m), unsigned, 0..k.
        lag: steps between the two [steps].
        k: number of states.

    Returns:
        Shape (..., k, k) int64 [pairs].

    >>> series = np.array([0, 1, 1], dtype=np.uint8)
    >>> count_state_pairs(series, series, 1, 2).tolist()  # (1 after 0), (1 after 1)
    [[0, 0], [1, 1]]
    """
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
    """Return the successors of each state, household by household, their first index (h, k) and number (h, k)."""
    size = len(series)
    counts = np.swapaxes(count_lagged_pairs(series, series, 1, n_secret=k, n_read=k), 1, 2)
    for i, chain in enumerate(transition_matrix(counts, smoothing=0)):
        is_recurrent = recurrent_part(chain)[1] if has_recurrent_part(chain) else np.zeros(k, dtype=np.bool_)
        counts[i] *= is_recurrent[:, None] & is_recurrent
    row_size = counts.sum(axis=2)
    start = np.concatenate(([0], row_size.ravel().cumsum()))[:-1].reshape(size, k)
    return np.repeat(np.tile(np.arange(k), size * k), counts.ravel()), start, row_size


def _visited_states(series: Ints, is_allowed: NDArray[np.bool_], k: int) -> tuple[Ints, Ints, Ints]:
    """Return the allowed states of each household by their visits, where they begin (h,), and how many there are."""
    shifted = np.where(series >= 0, series, k) + np.arange(len(series))[:, None] * (k + 1)
    visits = np.bincount(shifted.ravel(), minlength=len(series) * (k + 1)).reshape(-1, k + 1)[:, :k] * is_allowed
    number = visits.sum(axis=1)
    return np.repeat(np.tile(np.arange(k), len(series)), visits.ravel()), number.cumsum() - number, number


def random_uint32(rng: np.random.Generator, size: int | tuple[int, int]) -> NDArray[np.uint64]:
    """Uniform integers from 0 to 2^32 - 1 as uint64; use it for the draws of `pick_uniformly`.

    Source: numpy.random.Generator.integers.

    Args:
        rng: source of randomness.
        size: shape of the result.

    Returns:
        Shape `size`, uint64.

    >>> numbers = random_uint32(np.random.default_rng(1), (2, 3))
    >>> numbers.shape, numbers.dtype.name, bool((numbers < 2**32).all())
    ((2, 3), 'uint64', True)
    """
    return rng.integers(0, 2**32, size, dtype=np.uint32).astype(np.uint64)


def pick_uniformly(values: Ints, start: Ints, number: Ints, random: NDArray[np.uint64]) -> Ints:
    r"""Pick one of `number` values from `start` on, uniformly up to 2^-32; 0 where there are none.

    .. math:: v_{s + \lfloor n u / 2^{32} \rfloor}

    Source: multiplication and shift, without the rejection that would make it exact (Lemire).

    Args:
        values: shape (v,) int.
        start: index of the first candidate, shape (n,) int.
        number: number of candidates, shape (n,) int.
        random: integers from 0 to 2^32 - 1 (`random_uint32`), shape (n,).

    Returns:
        Shape (n,) int.

    References:
        Lemire: Fast Random Integer Generation in an Interval. ACM Trans. Model. Comput. Simul. 29(1), 2019.
        https://doi.org/10.1145/3230636

    >>> pick_uniformly(np.array([5, 7]), np.array([0]), np.array([2]), np.array([2**31], dtype=np.uint64)).tolist()
    [7]
    """
    index = start + ((number.astype(np.uint64) * random) >> np.uint64(32)).astype(np.int64)
    return np.where(number > 0, values[np.minimum(index, max(values.size - 1, 0))], 0) if values.size else 0 * start
