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

from agedp_data.chains.direct import Ints, checked_lags, checked_states, max_row_distance, predicted_total_variation
from agedp_data.chains.redrawn import SmallInts, count_state_pairs, simulate_replicates, smallest_state_type
from agedp_data.errors import ChainError
from agedp_data.privacy.kernel import Floats

Table = np.recarray[Any, Any]

_SHIFTS = 8
_RESAMPLES = 200
_STATES_PER_BATCH = 2**24  # drawn at a time
_MIN_DEVIATION = 1e-12  # an excess that varies less does not vary


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
    exceedances = max_exceedances(level, replicates if steps_per_day >= 1 else 0)
    flat = series.reshape(math.prod(series.shape[:-1]), series.shape[-1])
    names = ("powers", "direct", "low", "high", "floor")
    measures = {name: np.full((len(flat), steps.size), np.nan) for name in names}
    rejected = np.zeros((len(flat), steps.size), dtype=np.bool_)
    shifts = rng.integers(flat.shape[1] // 4, max(1, flat.shape[1] * 3 // 4 + 1), _SHIFTS)
    batch_size = max(1, _STATES_PER_BATCH // max(1, flat.shape[1] * replicates))
    for start in range(0, len(flat), batch_size):
        batch = slice(start, start + batch_size)
        batch_states = np.where(flat[batch] >= 0, flat[batch], n_states).astype(smallest_state_type(n_states))
        measures["direct"][batch], measures["powers"][batch] = _direct_and_powers(batch_states, steps, n_states)
        measures["low"][batch], measures["high"][batch] = _intervals(
            batch_states, steps, rng, n_states, 7 * steps_per_day, level
        )
        measures["floor"][batch] = _null_level(batch_states, steps, shifts, n_states)
        replicate_series = simulate_replicates(flat[batch], n_states, replicates, rng)
        replicate_excess = np.subtract(
            *_direct_and_powers(replicate_series.reshape(-1, flat.shape[1]), steps, n_states)
        )
        excess = measures["direct"][batch] - measures["powers"][batch]
        rejected[batch] = exceeds_replicates(
            excess, replicate_excess.reshape(len(batch_states), replicates, -1), exceedances
        )
    return goodness_of_fit_table(steps, measures, rejected, (*series.shape[:-1], steps.size))


def max_exceedances(level: float, replicates: int) -> int:
    """Return how many replicates may lie above a household that is rejected, itself among them: at least one."""
    exceedances = int((1 - level) * (replicates + 1) * (1 + 1e-9)) if 0 < level < 1 else 0
    if exceedances < 1:
        raise ChainError(f"a level of {level} needs more than {replicates} replicates, or to lie between 0 and 1")
    return exceedances


def goodness_of_fit_table(
    steps: Ints, measures: dict[str, Floats], rejected: NDArray[np.bool_], shape: tuple[int, ...]
) -> Table:
    """Return the figures of households (h, T) as a record array of this shape."""
    columns = {"lag": np.broadcast_to(steps, rejected.shape), **measures, "rejected": rejected}
    table = np.empty(shape, dtype=[(name, column.dtype) for name, column in columns.items()])
    for name, column in columns.items():
        table[name] = column.reshape(shape)
    return table.view(np.recarray)


def _direct_and_powers(series: SmallInts, steps: Ints, k: int) -> tuple[Floats, Floats]:
    """Return (direct, powers) of series (h, m), each (h, T)."""
    direct = [max_row_distance(count_state_pairs(series, series, lag, k)) for lag in steps.tolist()]
    one_step = count_state_pairs(series, series, 1, k)
    return np.stack(direct, axis=-1) if direct else np.zeros((len(series), 0)), predicted_total_variation(
        one_step, steps
    )


def _null_level(series: SmallInts, steps: Ints, shifts: Ints, k: int) -> Floats:
    shifted = [np.roll(series, shift, axis=-1) for shift in shifts.tolist()]
    distances = [
        [max_row_distance(count_state_pairs(series, copy, lag, k)) for copy in shifted] for lag in steps.tolist()
    ]
    return np.asarray(np.mean(np.array(distances).reshape(steps.size, _SHIFTS, len(series)), axis=1).T)


def _intervals(
    series: SmallInts, steps: Ints, rng: np.random.Generator, k: int, week: int, level: float
) -> tuple[Floats, Floats]:
    """Return the basic bootstrap interval of the direct count, weeks drawn with replacement: (h, T), (h, T)."""
    length = series.shape[1]
    weeks = max(1, -(-length // week))
    draws = rng.multinomial(weeks, np.full(weeks, 1 / weeks), size=_RESAMPLES).astype(np.float64)
    ends = np.array([(1 - level) / 2, (1 + level) / 2])
    low, high = np.full((len(series), steps.size), np.nan), np.full((len(series), steps.size), np.nan)
    for column, lag in enumerate(steps.tolist()):
        counts = _count_by_week(series, lag, k, week, weeks).astype(np.float64)
        centre = max_row_distance(counts.sum(axis=1))
        is_counted = ~np.isnan(centre)
        if is_counted.any():
            weekly = np.moveaxis(counts[is_counted], 1, 0).reshape(weeks, -1)
            resampled = max_row_distance((draws @ weekly).reshape(_RESAMPLES, -1, k, k))
            quantile = (np.nanquantile if np.isnan(resampled).any() else np.quantile)(resampled, ends, axis=0)
            low[is_counted, column], high[is_counted, column] = np.clip(2 * centre[is_counted] - quantile[::-1], 0, 1)
    return low, high


def _count_by_week(series: SmallInts, lag: int, k: int, week: int, weeks: int) -> Ints:
    """Return pairs by the week of the later instant: (h, m) -> (h, weeks, k, k)."""
    padded = np.full((len(series), weeks * week), k, dtype=series.dtype)
    padded[:, : series.shape[1]] = series
    earlier = np.full_like(padded, k)
    earlier[:, lag:] = padded[:, : max(padded.shape[1] - lag, 0)]
    shape = (len(series), weeks, week)
    return count_state_pairs(padded.reshape(shape), earlier.reshape(shape), 0, k)


def exceeds_replicates(excess: Floats, replicates: Floats, exceedances: int) -> NDArray[np.bool_]:
    """Return where the excess (h, T) is beyond the `allowed`-th largest, over lags, of its like (h, R, T).

    Both in standard deviations from their mean at the lag.
    """
    values = np.nan_to_num(np.concatenate((excess[:, None], replicates), axis=1))
    deviation = values.std(axis=1, keepdims=True)
    scaled = np.where(deviation > _MIN_DEVIATION, (values - values.mean(axis=1, keepdims=True)), 0.0)
    scaled /= np.where(deviation > _MIN_DEVIATION, deviation, 1.0)
    threshold = np.sort(scaled[:, 1:].max(axis=2, initial=-np.inf), axis=1)[:, -exceedances]
    return np.asarray((scaled[:, 0] > threshold[:, None]) & ~np.isnan(excess))
