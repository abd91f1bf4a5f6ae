"""The check of a chain: would a household that IS this chain have been remembered as long as this one was?

For every lag, how far the direct count (`chains.forgetting`) exceeds the powers of the one-step kernel, against
the same excess in series drawn from the estimated chain itself, with the same readings missing. A household is
rejected where its excess, in standard deviations, is larger than the largest over all lags in all but a share
1 - level of the drawn series: a household that is a chain of this order is rejected anywhere with probability
about 1 - level.

Intervals of the direct count are from a bootstrap over whole weeks, reflected (basic). They describe sampling noise
given the regimes seen and are no confidence bounds for the memory: for a year of regimes of 30 to 180 days a nominal
95 % held the true figure for 92 % of the households at a day and 73 to 80 % at 28 days, missing mostly below it
(`tests/benchmarks/coverage.py` measures and prints it, docs/forgetting.md has it).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agedp_data.chains.direct import Ints, checked_lags, checked_states, powers_of, spread
from agedp_data.chains.redrawn import Small, pairs_counted, redrawn, smallest
from agedp_data.errors import ChainError
from agedp_data.privacy.kernel import Floats

Table = np.recarray[Any, Any]

_SHIFTS = 8
_RESAMPLES = 200
_STATES = 2**24  # drawn at a time
_ROUNDING = 1e-12  # an excess that varies less does not vary


def markov_goodness_of_fit(
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
    >>> found = markov_goodness_of_fit(day.astype(int), [1, 7], np.random.default_rng(1), n_states=2)
    >>> found.direct.round(1).tolist(), found.powers.round(1).tolist(), found.rejected.tolist()
    ([0.3, 1.0], [0.3, 0.0], [False, True])
    """
    series, steps = checked_states(states, n_states), checked_lags(lags)
    allowed = allowed_above(level, replicates if steps_per_day >= 1 else 0)
    flat = series.reshape(math.prod(series.shape[:-1]), series.shape[-1])
    names = ("powers", "direct", "low", "high", "floor")
    found = {name: np.full((len(flat), steps.size), np.nan) for name in names}
    rejected = np.zeros((len(flat), steps.size), dtype=np.bool_)
    shifts = rng.integers(flat.shape[1] // 4, max(1, flat.shape[1] * 3 // 4 + 1), _SHIFTS)
    block = max(1, _STATES // max(1, flat.shape[1] * replicates))
    for start in range(0, len(flat), block):
        some = slice(start, start + block)
        small = np.where(flat[some] >= 0, flat[some], n_states).astype(smallest(n_states))
        found["direct"][some], found["powers"][some] = _both(small, steps, n_states)
        found["low"][some], found["high"][some] = _intervals(small, steps, rng, n_states, 7 * steps_per_day, level)
        found["floor"][some] = _floor(small, steps, shifts, n_states)
        drawn = redrawn(flat[some], n_states, replicates, rng)
        alike = np.subtract(*_both(drawn.reshape(-1, flat.shape[1]), steps, n_states))
        excess = found["direct"][some] - found["powers"][some]
        rejected[some] = beyond(excess, alike.reshape(len(small), replicates, -1), allowed)
    return table_of(steps, found, rejected, (*series.shape[:-1], steps.size))


def allowed_above(level: float, replicates: int) -> int:
    """Return how many replicates may lie above a household that is rejected, itself among them: at least one."""
    allowed = int((1 - level) * (replicates + 1) * (1 + 1e-9)) if 0 < level < 1 else 0
    if allowed < 1:
        raise ChainError(f"a level of {level} needs more than {replicates} replicates, or to lie between 0 and 1")
    return allowed


def table_of(steps: Ints, found: dict[str, Floats], rejected: NDArray[np.bool_], shape: tuple[int, ...]) -> Table:
    """Return the figures of households (h, T) as a record array of this shape."""
    columns = {"lag": np.broadcast_to(steps, rejected.shape), **found, "rejected": rejected}
    table = np.empty(shape, dtype=[(name, column.dtype) for name, column in columns.items()])
    for name, column in columns.items():
        table[name] = column.reshape(shape)
    return table.view(np.recarray)


def _both(series: Small, steps: Ints, k: int) -> tuple[Floats, Floats]:
    """Return (direct, powers) of series (h, m), each (h, T)."""
    direct = [spread(pairs_counted(series, series, lag, k)) for lag in steps.tolist()]
    once = pairs_counted(series, series, 1, k)
    return np.stack(direct, axis=-1) if direct else np.zeros((len(series), 0)), powers_of(once, steps)


def _floor(series: Small, steps: Ints, shifts: Ints, k: int) -> Floats:
    moved = [np.roll(series, shift, axis=-1) for shift in shifts.tolist()]
    found = [[spread(pairs_counted(series, copy, lag, k)) for copy in moved] for lag in steps.tolist()]
    return np.asarray(np.mean(np.array(found).reshape(steps.size, _SHIFTS, len(series)), axis=1).T)


def _intervals(
    series: Small, steps: Ints, rng: np.random.Generator, k: int, week: int, level: float
) -> tuple[Floats, Floats]:
    """Return the basic bootstrap interval of the direct count, weeks drawn with replacement: (h, T), (h, T)."""
    length = series.shape[1]
    weeks = max(1, -(-length // week))
    draws = rng.multinomial(weeks, np.full(weeks, 1 / weeks), size=_RESAMPLES).astype(np.float64)
    ends = np.array([(1 - level) / 2, (1 + level) / 2])
    low, high = np.full((len(series), steps.size), np.nan), np.full((len(series), steps.size), np.nan)
    for column, lag in enumerate(steps.tolist()):
        counts = _by_week(series, lag, k, week, weeks).astype(np.float64)
        centre = spread(counts.sum(axis=1))
        known = ~np.isnan(centre)
        if known.any():
            weekly = np.moveaxis(counts[known], 1, 0).reshape(weeks, -1)
            again = spread((draws @ weekly).reshape(_RESAMPLES, -1, k, k))
            quantile = (np.nanquantile if np.isnan(again).any() else np.quantile)(again, ends, axis=0)
            low[known, column], high[known, column] = np.clip(2 * centre[known] - quantile[::-1], 0, 1)
    return low, high


def _by_week(series: Small, lag: int, k: int, week: int, weeks: int) -> Ints:
    """Return pairs by the week of the later instant: (h, m) -> (h, weeks, k, k)."""
    padded = np.full((len(series), weeks * week), k, dtype=series.dtype)
    padded[:, : series.shape[1]] = series
    earlier = np.full_like(padded, k)
    earlier[:, lag:] = padded[:, : max(padded.shape[1] - lag, 0)]
    shape = (len(series), weeks, week)
    return pairs_counted(padded.reshape(shape), earlier.reshape(shape), 0, k)


def beyond(excess: Floats, alike: Floats, allowed: int) -> NDArray[np.bool_]:
    """Return where the excess (h, T) is beyond the `allowed`-th largest, over lags, of its like (h, R, T).

    Both in standard deviations from their mean at the lag.
    """
    every = np.nan_to_num(np.concatenate((excess[:, None], alike), axis=1))
    deviation = every.std(axis=1, keepdims=True)
    scaled = np.where(deviation > _ROUNDING, (every - every.mean(axis=1, keepdims=True)), 0.0)
    scaled /= np.where(deviation > _ROUNDING, deviation, 1.0)
    largest = np.sort(scaled[:, 1:].max(axis=2, initial=-np.inf), axis=1)[:, -allowed]
    return np.asarray((scaled[:, 0] > largest[:, None]) & ~np.isnan(excess))
