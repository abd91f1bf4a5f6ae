"""Goodness of fit of the Markov model: does a household have longer memory than a first-order chain explains?

The statistic of a lag is the excess of the lagged counts (`empirical_total_variation`) over the matrix powers of the
one-step kernel. It is compared with the same excess in series simulated from the estimated chain (parametric
bootstrap), with the same readings missing. The Markov property is rejected where the excess, in standard deviations, is
above the largest over all lags in all but a share 1 - level of the simulated series: a household that is a first-order
chain is rejected anywhere with probability about 1 - level.

Intervals of the lagged counts are basic (reflected) bootstrap intervals over whole weeks. They describe the sampling
error given the regimes seen and are no confidence bounds for the memory: for a year of regimes of 30 to 180 days a
nominal 95 % interval covered the truth for 92 % of the households at one day and for 73 to 80 % at 28 days, missing
mostly below it (measured by `tests/benchmarks/coverage.py`).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agedp_data.arrays import Floats
from agedp_data.errors import ChainError
from agedp_data.markov.lagged_counts import (
    Ints,
    checked_lags,
    checked_states,
    max_row_distance,
    predicted_total_variation,
)
from agedp_data.markov.parametric_bootstrap import (
    SmallInts,
    count_state_pairs,
    simulate_replicates,
    smallest_state_type,
)

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
    r"""Goodness-of-fit test of a first-order chain against lagged counts, for each household and lag.

    Only memory LONGER than the chain's counts against it.

    .. math:: T = \max_t \frac{X_t - \bar X_t}{s_t}, \qquad X_t = \hat\Delta_{direct}(t) - \hat\Delta_{powers}(t)

    with mean and standard deviation over the household and its replicates.

    Source: parametric bootstrap test, Davison and Hinkley section 4.2; intervals section 5.2.

    Args:
        states: one state per step, shape (..., m) int, -1 if missing.
        lags: shape (T,) [steps].
        rng: source of randomness.
        n_states: number of states.
        steps_per_day: steps of a day; the bootstrap draws whole weeks.
        level: share of first-order chains that pass at all lags together, and nominal coverage of the intervals.
        replicates: simulated series per household; more of them give the same rate with less chance in the verdict.

    Returns:
        A record array (..., T): lag [steps]; powers, direct: largest total variation predicted and counted; low, high:
        interval of `direct`; floor: null level, a series against a shifted copy of itself; rejected: bool. NaN, and not
        rejected, where nothing can be counted.

    Raises:
        ChainError: states or lags of a wrong kind, or too few replicates for the level.

    References:
        Davison, Hinkley: Bootstrap Methods and their Application, 1997. https://doi.org/10.1017/CBO9780511802843

    >>> weekend = np.arange(364) % 7 >= 5  # in one state on two days of each week
    >>> table = markov_goodness_of_fit(weekend.astype(int), [1, 7], np.random.default_rng(1), n_states=2)
    >>> table.direct.round(1).tolist(), table.powers.round(1).tolist(), table.rejected.tolist()
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
    r"""Rank of the threshold among the replicates: how many may exceed a rejected household, itself included.

    .. math:: m = \lfloor (1 - \ell)(R + 1) \rfloor \ge 1

    Source: rank of a Monte Carlo test, Davison and Hinkley section 4.2.

    Args:
        level: share l that passes, in (0, 1) [-].
        replicates: simulated series R per household [-].

    Returns:
        floor((1 - level)(replicates + 1)), at least 1.

    Raises:
        ChainError: a level outside (0, 1), or too few replicates for it.

    References:
        Davison, Hinkley: Bootstrap Methods and their Application, 1997. https://doi.org/10.1017/CBO9780511802843

    >>> max_exceedances(0.95, 99)
    5
    """
    exceedances = int((1 - level) * (replicates + 1) * (1 + 1e-9)) if 0 < level < 1 else 0
    if exceedances < 1:
        raise ChainError(f"a level of {level} needs more than {replicates} replicates, or to lie between 0 and 1")
    return exceedances


def goodness_of_fit_table(
    steps: Ints, measures: dict[str, Floats], rejected: NDArray[np.bool_], shape: tuple[int, ...]
) -> Table:
    """Results of households as a record array with the fields lag, those of `measures`, and rejected.

    Source: layout of results, without a formula; the fields are those of `markov_goodness_of_fit`.

    Args:
        steps: lags, shape (T,) [steps].
        measures: by field, shape (h, T) [-].
        rejected: shape (h, T) bool.
        shape: shape of the result, with h T elements.

    Returns:
        A record array of this shape.

    >>> goodness_of_fit_table(np.array([7]), {"direct": np.array([[0.5]])}, np.array([[True]]), (1,)).direct.tolist()
    [0.5]
    """
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
    """Return the null level: mean over shifts of the distance of each series from a shifted copy, (h, T)."""
    shifted = [np.roll(series, shift, axis=-1) for shift in shifts.tolist()]
    distances = [
        [max_row_distance(count_state_pairs(series, copy, lag, k)) for copy in shifted] for lag in steps.tolist()
    ]
    return np.asarray(np.mean(np.array(distances).reshape(steps.size, _SHIFTS, len(series)), axis=1).T)


def _intervals(
    series: SmallInts, steps: Ints, rng: np.random.Generator, k: int, week: int, level: float
) -> tuple[Floats, Floats]:
    """Return the basic bootstrap interval of the lagged counts, weeks drawn with replacement: (h, T), (h, T)."""
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
    r"""Return where the excess exceeds the `exceedances`-th largest maximum over lags of its replicates.

    Both are in standard deviations from their common mean at the lag.

    .. math:: z_t > z^{(m)}, \qquad z_t = \frac{X_t - \bar X_t}{s_t}

    Source: Monte Carlo test with the maximum over lags as its statistic, Davison and Hinkley section 4.2; z^(m) is the
    m-th largest of the replicates' maxima.

    Args:
        excess: of the households, shape (h, T) [-].
        replicates: of their simulated series, shape (h, R, T) [-].
        exceedances: rank of the threshold (`max_exceedances`).

    Returns:
        Shape (h, T) bool; False where the excess is NaN.

    References:
        Davison, Hinkley: Bootstrap Methods and their Application, 1997. https://doi.org/10.1017/CBO9780511802843

    >>> exceeds_replicates(np.array([[3.0, np.nan]]), np.zeros((1, 19, 2)), 1).tolist()
    [[True, False]]
    """
    values = np.nan_to_num(np.concatenate((excess[:, None], replicates), axis=1))
    deviation = values.std(axis=1, keepdims=True)
    scaled = np.where(deviation > _MIN_DEVIATION, (values - values.mean(axis=1, keepdims=True)), 0.0)
    scaled /= np.where(deviation > _MIN_DEVIATION, deviation, 1.0)
    threshold = np.sort(scaled[:, 1:].max(axis=2, initial=-np.inf), axis=1)[:, -exceedances]
    return np.asarray((scaled[:, 0] > threshold[:, None]) & ~np.isnan(excess))
