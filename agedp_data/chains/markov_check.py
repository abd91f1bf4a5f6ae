"""The check of a chain: would a household that IS this chain have been remembered as long as this one was?

For every lag, how far the direct count (`chains.forgetting`) exceeds the powers of the one-step kernel, against
the same excess in series drawn from the estimated chain itself, with the same readings missing. A household is
rejected where its excess, in standard deviations, is larger than the largest over all lags in all but a share
1 - level of the drawn series: a household that is a chain of this order is rejected anywhere with probability
about 1 - level.

Intervals of the direct count are from a bootstrap over whole weeks, reflected (basic). They describe sampling noise
given the regimes seen and are no confidence bounds for the memory: for a year of regimes of 30 to 180 days a nominal
95 % held the true figure for 91 to 95 % of the households at a day and 72 to 79 % at 28 days, missing mostly below it
(`tests/benchmarks/coverage.py` measures and prints it).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agedp_data.chains.direct import (
    Ints,
    can_be_followed,
    checked_lags,
    checked_states,
    lag_counts,
    powers_of,
    spread,
)
from agedp_data.chains.transitions import closed, transition_matrix
from agedp_data.errors import ChainError
from agedp_data.privacy.kernel import Floats

Table = np.recarray[Any, Any]

_SHIFTS = 8
_RESAMPLES = 200
_STATES = 2**24  # drawn at a time
_ROUNDING = 1e-12  # an excess that varies less does not vary


def check_markov(
    states: ArrayLike,
    lags: ArrayLike,
    rng: np.random.Generator,
    *,
    n_states: int,
    steps_per_day: int = 1,
    level: float = 0.95,
    replicates: int = 99,
) -> Table:
    """Return, for each household and lag, what the chain says and what is counted, and whether they disagree.

    Shapes: (..., m) int, (T,) int -> a record array (..., T) with the fields lag [steps]; powers, direct: the
    largest total variation by powers and as counted; low, high: interval of `direct`; floor: what a series shows
    against a shifted copy of itself; rejected: whether `direct` exceeds `powers` by more than the chain explains.
    NaN, and not rejected, where nothing can be counted. Only remembering LONGER than the chain counts against it.

    Args:
        states: one state per step, -1 if missing.
        lags: steps.
        rng: the source of randomness.
        n_states: number of states.
        steps_per_day: how many steps make a day; the bootstrap draws whole weeks.
        level: share of households of this very chain that pass at all lags together, and coverage of intervals.
        replicates: series drawn for each household; more give the same rate with less chance in the verdict.

    Raises:
        ChainError: states or lags that are none, or too few replicates for the level.

    References: MATHS 2b; Davison and Hinkley, Bootstrap methods and their application, 1997, 5.2 and 4.2.

    >>> day = np.arange(364) % 7 >= 5  # at home on two days of each week
    >>> found = check_markov(day.astype(int), [1, 7], np.random.default_rng(1), n_states=2)
    >>> found.direct.round(1).tolist(), found.powers.round(1).tolist(), found.rejected.tolist()
    ([0.3, 1.0], [0.3, 0.0], [False, True])
    """
    series, steps = checked_states(states, n_states), checked_lags(lags)
    allowed = int((1 - level) * (replicates + 1) * (1 + 1e-9)) if 0 < level < 1 else 0
    if allowed < 1 or steps_per_day < 1:
        raise ChainError(f"a level of {level} needs more than {replicates} replicates, or to lie between 0 and 1")
    flat = series.reshape(math.prod(series.shape[:-1]), series.shape[-1])
    names = ("powers", "direct", "low", "high", "floor")
    found = {name: np.full((len(flat), steps.size), np.nan) for name in names}
    rejected = np.zeros((len(flat), steps.size), dtype=np.bool_)
    shifts = rng.integers(flat.shape[1] // 4, max(1, flat.shape[1] * 3 // 4 + 1), _SHIFTS)
    block = max(1, _STATES // max(1, flat.shape[1] * replicates))
    for start in range(0, len(flat), block):
        some = slice(start, start + block)
        part = flat[some]
        found["direct"][some], found["powers"][some] = _both(part, steps, n_states)
        found["low"][some], found["high"][some] = _intervals(part, steps, rng, n_states, 7 * steps_per_day, level)
        found["floor"][some] = _floor(part, steps, shifts, n_states)
        drawn = _drawn(part, n_states, replicates, rng)
        alike = np.subtract(*_both(drawn.reshape(-1, part.shape[1]), steps, n_states))
        excess = found["direct"][some] - found["powers"][some]
        rejected[some] = _beyond(excess, alike.reshape(len(part), replicates, -1), allowed)
    shape = (*series.shape[:-1], steps.size)
    columns = {"lag": np.broadcast_to(steps, rejected.shape), **found, "rejected": rejected}
    table = np.empty(shape, dtype=[(name, column.dtype) for name, column in columns.items()])
    for name, column in columns.items():
        table[name] = column.reshape(shape)
    return table.view(np.recarray)


def _both(series: NDArray[np.integer[Any]], steps: Ints, k: int) -> tuple[Floats, Floats]:
    """Return (direct, powers) of series (h, m), each (h, T)."""
    direct = [spread(lag_counts(series, series, lag, n_secret=k, n_read=k)) for lag in steps.tolist()]
    once = lag_counts(series, series, 1, n_secret=k, n_read=k)
    return np.stack(direct, axis=-1) if direct else np.zeros((len(series), 0)), powers_of(once, steps)


def _floor(series: Ints, steps: Ints, shifts: Ints, k: int) -> Floats:
    moved = [np.roll(series, shift, axis=-1) for shift in shifts.tolist()]
    found = [[spread(lag_counts(series, copy, lag, n_secret=k, n_read=k)) for copy in moved] for lag in steps.tolist()]
    return np.asarray(np.mean(np.array(found).reshape(steps.size, _SHIFTS, len(series)), axis=1).T)


def _intervals(
    series: Ints, steps: Ints, rng: np.random.Generator, k: int, week: int, level: float
) -> tuple[Floats, Floats]:
    """Return the basic bootstrap interval of the direct count, weeks drawn with replacement: (h, T), (h, T)."""
    length = series.shape[1]
    weeks = max(1, -(-length // week))
    draws = rng.multinomial(weeks, np.full(weeks, 1 / weeks), size=_RESAMPLES).astype(np.float64)
    ends = np.array([(1 - level) / 2, (1 + level) / 2])
    low, high = np.full((len(series), steps.size), np.nan), np.full((len(series), steps.size), np.nan)
    number = np.arange(length) // week
    for column, lag in enumerate(steps.tolist()):
        for row, one in enumerate(series):
            now, then = one[lag:], one[: max(length - lag, 0)]
            used = (now >= 0) & (then >= 0)
            cell = (number[lag:][used] * k + now[used]) * k + then[used]
            counts = np.bincount(cell, minlength=weeks * k * k).reshape(weeks, k * k)
            if counts.any():
                centre = spread(counts.sum(axis=0).reshape(k, k))
                quantile = np.nanquantile(spread((draws @ counts).reshape(-1, k, k)), ends)
                low[row, column], high[row, column] = np.clip(2 * centre - quantile[::-1], 0, 1)
    return low, high


def _drawn(series: Ints, k: int, replicates: int, rng: np.random.Generator) -> NDArray[np.int8]:
    """Return series drawn from the chain of each, missing where it is: (h, replicates, m).

    Each begins in a state of the household's own at random. A household whose chain cannot be followed has none.
    """
    size, length = series.shape
    counts = np.swapaxes(lag_counts(series, series, 1, n_secret=k, n_read=k), 1, 2)
    reached, begins = np.zeros((size, k, k)), np.zeros((size, k))
    for i, chain in enumerate(transition_matrix(counts, smoothing=0)):
        if can_be_followed(chain):
            matrix, kept = closed(chain)
            reached[i] = matrix.cumsum(axis=1)
            begins[i] = (np.bincount(series[i][series[i] >= 0], minlength=k) * kept).cumsum()
    # The last sums to one exactly, or a state without probability might be drawn.
    reached /= np.where(reached[..., -1:] > 0, reached[..., -1:], 1.0)
    household = np.repeat(np.arange(size), replicates)
    state = (rng.random(household.size)[:, None] * begins[household, -1:] >= begins[household]).sum(axis=1)
    usable = begins[household, -1] > 0
    rows = np.ascontiguousarray(reached.reshape(-1, k))
    paths = np.empty((length, household.size), dtype=np.int8)
    for i in range(length):
        paths[i] = state
        row = household * k + np.minimum(state, k - 1)
        state = (rng.random(household.size)[:, None] >= rows[row]).sum(axis=1)
    paths[:, ~usable] = -1
    paths[(series < 0).T.repeat(replicates, axis=1)] = -1
    return np.ascontiguousarray(paths.T).reshape(size, replicates, length)


def _beyond(excess: Floats, alike: Floats, allowed: int) -> NDArray[np.bool_]:
    """Return where the excess (h, T) is beyond the `allowed`-th largest, over lags, of its like (h, R, T)."""
    every = np.nan_to_num(np.concatenate((excess[:, None], alike), axis=1))
    deviation = every.std(axis=1, keepdims=True)
    scaled = np.where(deviation > _ROUNDING, (every - every.mean(axis=1, keepdims=True)), 0.0)
    scaled /= np.where(deviation > _ROUNDING, deviation, 1.0)
    largest = np.sort(scaled[:, 1:].max(axis=2, initial=-np.inf), axis=1)[:, -allowed]
    return np.asarray((scaled[:, 0] > largest[:, None]) & ~np.isnan(excess))
