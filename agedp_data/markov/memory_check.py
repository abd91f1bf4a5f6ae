"""Whether a chain describes a household: counts of later transitions, daily residuals and hidden regimes.

Each check compares what a Markov chain implies with what was counted, and judges the difference by a parametric
bootstrap of that chain.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agedp_data.arrays import Floats
from agedp_data.errors import ChainError
from agedp_data.markov.transitions import (
    Ints,
    checked_lags,
    checked_states,
    count_lagged_pairs,
    has_recurrent_part,
    max_row_distance,
    predicted_total_variation,
    recurrent_part,
    transition_matrix,
)

# --------------------------------------------------------------------------------------------------
# Parametric bootstrap: series simulated from the chains of households, and fast counts of their pairs.
#
# The next state is drawn uniformly from the states that followed the present one in the household's own series. This
# is exactly the estimated chain, at two look-ups per step for all households and replicates together.
# --------------------------------------------------------------------------------------------------

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


# --------------------------------------------------------------------------------------------------
# Goodness of fit of the Markov model: does a household have longer memory than a first-order chain explains?
#
# The statistic of a lag is the excess of the lagged counts over the matrix powers of the
# one-step kernel. It is compared with the same excess in series simulated from the estimated chain (parametric
# bootstrap), with the same readings missing. The Markov property is rejected where the excess, in standard deviations,
# is above the largest over all lags in all but a share 1 - level of the simulated series: a household that is a
# first-order chain is rejected anywhere with probability about 1 - level.
#
# Intervals of the lagged counts are basic (reflected) bootstrap intervals over whole weeks. They describe the sampling
# error given the regimes seen and are no confidence bounds for the memory: for a year of regimes of 30 to 180 days a
# nominal 95 % interval covered the truth for 92 % of the households at one day and for 73 to 80 % at 28 days, missing
# mostly below it (measured by `benchmarks/coverage.py`).
# --------------------------------------------------------------------------------------------------

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
        week = 7 * steps_per_day
        low_and_high = _intervals(batch_states, steps, rng, n_states, week, level)
        measures["low"][batch], measures["high"][batch] = low_and_high
        measures["floor"][batch] = _null_level(batch_states, steps, shifts, n_states)
        simulated = simulate_replicates(flat[batch], n_states, replicates, rng).reshape(-1, flat.shape[1])
        simulated_excess = np.subtract(*_direct_and_powers(simulated, steps, n_states))
        excess = measures["direct"][batch] - measures["powers"][batch]
        of_household = simulated_excess.reshape(len(batch_states), replicates, -1)
        rejected[batch] = exceeds_replicates(excess, of_household, exceedances)
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
    direct = np.zeros((len(series), steps.size))
    for column, lag in enumerate(steps.tolist()):
        direct[:, column] = max_row_distance(count_state_pairs(series, series, lag, k))
    return direct, predicted_total_variation(count_state_pairs(series, series, 1, k), steps)


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


# --------------------------------------------------------------------------------------------------
# Hidden regimes: how long a household remembers, predicted by a hidden Markov model of its days.
#
# A regime (holidays, illness, a heater left on) is never observed; each day shows a symbol, such as the quartile of
# the day's residual, whose distribution depends on the regime. A few slow regimes carry dependence over weeks, which a
# chain of the visible symbols loses within days. On 40 real households of London the mean of five regimes differs from
# the direct counts by .03 on average over the lags of 1 to 60 days and by .06 at most; a chain of the quartiles is up
# to .27 below (`tests/real`).
#
# Example: with two regimes that last, P(same one day later) = 0.9, and symbols that show them, the memory at a lag of
# two days is 0.8 squared = 0.64.
#
# Decisions:
#
# * Indicative only: the model is fitted to the protected readings and predicts their average. It sets no noise.
# * Expectation-maximisation for all households at once, on trailing axes. Of the libraries that fit such models,
#   hmmlearn has no missing values (hmmlearn #327), takes one sequence after another, and had its last release in
#   October 2024.
# * The number of iterations is fixed, so the result of a household does not depend on the others in its batch. More of
#   them fit the year's noise: the likelihood rises, the predicted memory hardly changes.
# * Three fixed starts with lasting regimes, because memory is what the model is asked for; the most probable fit wins.
# --------------------------------------------------------------------------------------------------

REGIMES, ITERATIONS = 5, 25

_BATCH = 512  # households at a time: tables of 25 numbers each stay in a processor's cache
_SHARPNESS = 1.5  # how well a regime shows at the start
_STAYS = (0.95, 0.99)  # P(same regime one day later) of two starts; the third moves to neighbours
_NEIGHBOURS = 3.0
_MIXING = 1e-9  # makes the stationary distribution of regimes unique


@dataclass(frozen=True, slots=True)
class HiddenRegimes:
    """A hidden Markov model of each household.

    Source: Rabiner 1989, section II.C.

    Attributes:
        initial: distribution of the first regime, shape (..., k).
        transition: of the regimes, shape (..., k, k), rows sum to 1.
        emission: distribution of the symbol in each regime, shape (..., k, m), rows sum to 1.
        log_likelihood: of the fitted series, shape (...).
    """

    initial: Floats
    transition: Floats
    emission: Floats
    log_likelihood: Floats


def fit_hidden_regimes(
    symbols: ArrayLike, *, n_symbols: int, n_regimes: int = REGIMES, iterations: int = ITERATIONS
) -> HiddenRegimes:
    r"""Fit a hidden Markov model to the symbols of each household (Baum-Welch).

    .. math:: \hat A_{ij} = \frac{\sum_t \xi_t(i, j)}{\sum_t \sum_j \xi_t(i, j)}, \qquad
              \hat B_{iy} = \frac{\sum_{t: y_t = y} \gamma_t(i)}{\sum_{t: y_t \ge 0} \gamma_t(i)}

    with xi and gamma the posterior probabilities of pairs of regimes and of regimes under the previous estimate.

    Source: Rabiner 1989, eqs. 40a-40c with the scaling of section V.A; Baum et al. 1970 prove that the likelihood never
    falls. A missing day has the emission probability 1 in every regime.

    Args:
        symbols: one per day, shape (..., T) int, below `n_symbols`, -1 if missing.
        n_symbols: number of symbols m.
        n_regimes: number of regimes k.
        iterations: of the re-estimation, from each start; the same for every household.

    Returns:
        The most probable of the fits from three starts.

    Raises:
        ChainError: symbols out of range, or no regime, symbol or day.

    References:
        Rabiner: A Tutorial on Hidden Markov Models. Proc. IEEE 77(2), 1989. https://doi.org/10.1109/5.18626
        Baum, Petrie, Soules, Weiss: A Maximization Technique. Ann. Math. Statist. 41(1), 1970.
        https://doi.org/10.1214/aoms/1177697196

    >>> fit = fit_hidden_regimes([0, 0, 0, 0, 1, 1, 1, 1], n_symbols=2, n_regimes=2)
    >>> fit.emission.round(3).tolist(), fit.transition.round(3).tolist()
    ([[1.0, 0.0], [0.0, 1.0]], [[0.75, 0.25], [0.0, 1.0]])
    """
    series = checked_states(symbols, n_symbols)
    if min(n_regimes, n_symbols, iterations, series.shape[-1]) < 1:
        raise ChainError("a hidden Markov model needs a regime, a symbol, a day and an iteration")
    flat = series.reshape(-1, series.shape[-1])
    fits = [
        _most_probable_fit(np.ascontiguousarray(flat[first : first + _BATCH].T), n_regimes, n_symbols, iterations)
        for first in range(0, len(flat), _BATCH)
    ] or [_most_probable_fit(flat.T, n_regimes, n_symbols, iterations)]
    initial, transition, emission, likelihood = (np.concatenate(arrays, axis=-1) for arrays in zip(*fits, strict=True))
    shape = series.shape[:-1]
    return HiddenRegimes(
        np.moveaxis(initial, -1, 0).reshape(*shape, n_regimes),
        np.moveaxis(transition, -1, 0).reshape(*shape, n_regimes, n_regimes),
        np.moveaxis(emission, -1, 0).swapaxes(-1, -2).reshape(*shape, n_regimes, n_symbols),
        likelihood.reshape(shape),
    )


def predicted_pairs(regimes: HiddenRegimes, lags: ArrayLike) -> Floats:
    r"""Stationary joint law of a symbol and the symbol a number of days earlier.

    .. math:: P(y_t = y,\ y_{t-l} = z) = \sum_{i, j} \pi_i B_{iz} (A^l)_{ij} B_{jy}, \qquad \pi A = \pi

    Source: Rabiner 1989, section II (the definition of the model), summed over all other days.

    Args:
        regimes: models, leading shape (...).
        lags: shape (L,), integers >= 1 [days].

    Returns:
        Shape (..., L, m, m), row: symbol now, column: symbol earlier; sums to 1.

    Raises:
        ChainError: a lag that is not an integer >= 1.

    References:
        Rabiner: A Tutorial on Hidden Markov Models. Proc. IEEE 77(2), 1989. https://doi.org/10.1109/5.18626

    >>> shown = HiddenRegimes(np.ones(2) / 2, np.array([[0.9, 0.1], [0.1, 0.9]]), np.eye(2), np.array(0.0))
    >>> predicted_pairs(shown, [1]).round(12).tolist()
    [[[0.45, 0.05], [0.05, 0.45]]]
    """
    occupied = _stationary(regimes.transition)[..., :, None] * regimes.emission
    pairs = [
        (occupied.swapaxes(-1, -2) @ np.linalg.matrix_power(regimes.transition, lag) @ regimes.emission)
        for lag in checked_lags(lags).tolist()
    ]
    shape = (*regimes.emission.shape[:-2], 0, *2 * regimes.emission.shape[-1:])
    return np.stack(pairs, axis=-3).swapaxes(-1, -2) if pairs else np.zeros(shape)


def chain_pairs(states: ArrayLike, lags: ArrayLike, *, shown: ArrayLike) -> Floats:
    r"""Stationary joint law of a symbol and an earlier one by the first-order chain of visible states.

    What a model without hidden regimes predicts for the same days.

    .. math:: P(y_t = y,\ y_{t-l} = z) = \sum_{i, j} \pi_i S_{iz} (\hat P^l)_{ij} S_{jy}

    Source: elementary; P is the maximum-likelihood matrix of the counted steps, and a row without steps is uniform.

    Args:
        states: shape (..., T) int, -1 if missing.
        lags: shape (L,), integers >= 1 [days].
        shown: S, which symbol each state shows, shape (k, m), rows sum to 1; the unit matrix if states are symbols.

    Returns:
        Shape (..., L, m, m) as `predicted_pairs`.

    Raises:
        ChainError: states or lags of a wrong kind.

    >>> chain_pairs([0, 0, 1, 1, 0, 0, 1, 1, 0], [1], shown=np.eye(2)).round(9).tolist()  # all four steps equally often
    [[[0.25, 0.25], [0.25, 0.25]]]
    """
    emission: Floats = np.asarray(shown, dtype=np.float64)
    k = len(emission)
    steps = count_lagged_pairs(states, states, 1, n_secret=k, n_read=k).swapaxes(-1, -2)
    visits = steps.sum(axis=-1, keepdims=True)
    chain = np.where(visits > 0, steps / np.maximum(visits, 1), 1 / k)
    emissions = np.broadcast_to(emission, (*chain.shape[:-2], *emission.shape))
    return predicted_pairs(HiddenRegimes(chain[..., 0, :], chain, emissions, chain[..., 0, 0]), lags)


def _starts(k: int, m: int) -> Iterator[tuple[Floats, Floats]]:
    """Yield transitions (k, k) and emissions (m, k) of the starts: regimes in the order of their middle symbol."""
    centre = (np.arange(k) + 0.5) / k * m - 0.5
    shown = np.exp(-_SHARPNESS * (np.arange(m)[:, None] - centre) ** 2)
    apart = np.abs(np.subtract.outer(np.arange(k), np.arange(k)))
    leaving = [np.where(apart == 0, stay, (1 - stay) / max(k - 1, 1)) for stay in _STAYS]
    for transition in (*leaving, np.exp(-_NEIGHBOURS * apart)):
        yield transition / transition.sum(axis=1, keepdims=True), shown / shown.sum(axis=0)


def _most_probable_fit(series: Ints, k: int, m: int, iterations: int) -> tuple[Floats, Floats, Floats, Floats]:
    """Return (initial, transition, emission (m, k), log-likelihood) of series (T, h), households last."""
    size = series.shape[1]
    fits: list[tuple[Floats, Floats, Floats]] = []
    likelihoods: list[Floats] = []
    for first_transition, first_emission in _starts(k, m):
        initial = np.full((k, size), 1 / k)
        transition, emission = (np.repeat(table[..., None], size, -1) for table in (first_transition, first_emission))
        for _ in range(iterations):
            initial, transition, emission = _reestimated(series, initial, transition, emission)
        _, scale = _forward(_emitted(series, emission), initial, transition)
        fits.append((initial, transition, emission))
        likelihoods.append(np.log(scale).sum(axis=0))
    best = np.argmax(likelihoods, axis=0)
    initial, transition, emission = (np.stack(arrays, axis=-1) for arrays in zip(*fits, strict=True))
    column = np.arange(size)
    chosen = (table[..., column, best] for table in (initial, transition, emission))
    return (*chosen, np.stack(likelihoods)[best, column])


def _emitted(series: Ints, emission: Floats) -> Floats:
    """Return the probability of each day's symbol in each regime, 1 where it is missing: (T, k, h)."""
    m, k, size = emission.shape
    position = np.where(series < 0, m, series) * size + np.arange(size)
    shown = np.empty((len(series), k, size))
    for regime in range(k):
        shown[:, regime] = np.append(emission[:, regime], np.ones(size))[position]
    return shown


def _forward(shown: Floats, initial: Floats, transition: Floats) -> tuple[Floats, Floats]:
    """Return the scaled forward variables (T, k, h) and their scales (T, h), whose product is the likelihood."""
    forward, scale = np.empty_like(shown), np.empty((len(shown), shown.shape[-1]))
    ahead = initial
    for t, day in enumerate(shown):
        np.multiply(ahead, day, out=forward[t])
        scale[t] = forward[t].sum(axis=0)
        forward[t] /= np.where(scale[t] > 0, scale[t], 1.0)
        ahead = np.einsum("ih,ijh->jh", forward[t], transition)
    return forward, scale


def _reestimated(series: Ints, initial: Floats, transition: Floats, emission: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the next estimate; a regime that no day has keeps its rows."""
    shown = _emitted(series, emission)
    forward, scale = _forward(shown, initial, transition)
    shown /= scale[:, None]
    backward = np.ones_like(shown)
    for t in range(len(shown) - 1, 0, -1):
        shown[t] *= backward[t]
        np.einsum("ijh,jh->ih", transition, shown[t], out=backward[t - 1])
    pairs = np.ascontiguousarray(forward[:-1].transpose(2, 1, 0)) @ np.ascontiguousarray(shown[1:].transpose(2, 0, 1))
    backward *= forward  # the posterior probabilities of the regimes
    is_shown = (series == np.arange(len(emission))[:, None, None]).astype(np.float64)
    symbols = np.stack([np.einsum("tkh,th->kh", backward, days) for days in is_shown])
    pairs = np.moveaxis(pairs, 0, -1) * transition
    return backward[0], _rows(pairs, transition, axis=1), _rows(symbols, emission, axis=0)


def _rows(counts: Floats, previous: Floats, *, axis: int) -> Floats:
    total = counts.sum(axis=axis, keepdims=True)
    return np.where(total > 0, counts / np.where(total > 0, total, 1.0), previous)


def _stationary(transition: Floats) -> Floats:
    """Return the stationary distribution of regimes, shape (..., k), which a minute mixing makes unique."""
    k = transition.shape[-1]
    chain = (1 - _MIXING) * transition + _MIXING / k
    equations = np.swapaxes(np.eye(k) - chain, -1, -2) + 1.0  # pi (I - P) + pi 1 = 1
    return np.linalg.solve(equations, np.ones((*equations.shape[:-1], 1)))[..., 0]


# --------------------------------------------------------------------------------------------------
# Daily residuals: what remains of a household's day once season, weather and weekday are taken out.
#
# An adversary knows the calendar, the weather and the published mean. So the daily totals are compared with those of
# the other households of the population, scaled to the household, and with the household's own mean of the weekday.
#
# Example: a household that always uses half of the population's mean has the residual 0 on every day.
#
# Decisions:
#
# * The population's day is the mean over the OTHER households: one's own days never hide in it.
# * The household's own season is not taken out: fitted on the same year, it removes the habit that is to be measured.
# * Quartiles, four equally frequent symbols: coarser values only lower a memory.
# --------------------------------------------------------------------------------------------------

SYMBOLS = 4


def daily_residuals(totals: ArrayLike, weekday: ArrayLike) -> Floats:
    r"""Return the residuals of daily totals given the population's day and the household's own weekdays.

    .. math:: r_{it} = u_{it} - \overline{u_{is}}_{s: w_s = w_t}, \qquad u_{it} = \frac{x_{it}}{b_i} - m_{-i,t}, \qquad
              b_i = \frac{\overline{x}_i}{\overline{m_{-i}}}

    with m the mean over the other households of their totals as parts of their own means.

    Source: this project; a multiplicative day effect, then means of the household's weekdays.

    Args:
        totals: daily totals, shape (h, T), negative where missing [Wh].
        weekday: of each day, shape (T,), any labels.

    Returns:
        Shape (h, T), as parts of the household's mean day; NaN where a day is missing or all days are 0.

    Raises:
        ChainError: shapes that do not fit.

    >>> daily_residuals([[2, 4, 2, 4], [1, 2, 3, 2], [1, 2, 1, 2]], [0, 1, 0, 1]).round(3).tolist()[1]
    [-0.5, 0.0, 0.5, 0.0]
    """
    value: Floats = np.array(totals, dtype=np.float64)
    label = np.asarray(weekday)
    if value.ndim != 2 or label.shape != value.shape[1:]:
        raise ChainError(f"daily totals come by household and day, with a weekday for each day, got {value.shape}")
    is_present = value >= 0
    value[~is_present] = 0.0
    days = np.maximum(is_present.sum(axis=1, keepdims=True), 1)
    mean = value.sum(axis=1, keepdims=True) / days
    has_use = mean > 0
    parts = np.divide(value, mean, out=np.zeros_like(value), where=has_use)
    is_counted = is_present & has_use
    others = is_counted.sum(axis=0) - is_counted
    population = np.divide(parts.sum(axis=0) - parts, others, out=np.ones_like(parts), where=others > 0)
    level = (population * is_counted).sum(axis=1, keepdims=True) / days
    residual = np.where(is_counted, parts * level - population, 0.0)
    for number in np.unique(label):
        same = label == number
        count = np.maximum(is_counted[:, same].sum(axis=1, keepdims=True), 1)
        residual[:, same] -= residual[:, same].sum(axis=1, keepdims=True) / count
    return np.where(is_counted, residual, np.nan)


def quartile_symbols(residuals: ArrayLike) -> Ints:
    r"""Return in which quarter of the household's own values each day lies: 0 (low) to 3 (high).

    .. math:: y_t = \left\lfloor \frac{4 \cdot \mathrm{rank}(r_t)}{n} \right\rfloor

    Source: elementary (ranks); equal values are ranked by their day.

    Args:
        residuals: shape (h, T), NaN where missing.

    Returns:
        Shape (h, T) int64, -1 where missing.

    >>> quartile_symbols([[0.1, np.nan, -3.0, 5.0, 0.2]]).tolist()
    [[1, -1, 0, 3, 2]]
    """
    value: Floats = np.asarray(residuals, dtype=np.float64)
    is_present = ~np.isnan(value)
    rank = np.argsort(np.argsort(value, axis=-1, kind="stable"), axis=-1, kind="stable")  # missing last
    number = np.maximum(is_present.sum(axis=-1, keepdims=True), 1)
    return np.where(is_present, rank * SYMBOLS // number, -1)


# --------------------------------------------------------------------------------------------------
# Pairs of days at a lag, counted, and the signed memory that they show.
#
# Example: a day is high with probability 0.7 after a high one and 0.4 after a low one: the memory at a lag of one day
# is 0.3. `memory_check` predicts such pairs.
# --------------------------------------------------------------------------------------------------


def counted_pairs(symbols: ArrayLike, lags: ArrayLike, *, n_symbols: int) -> Ints:
    r"""Direct counts: pairs of days of a household with each symbol now and each symbol a number of days earlier.

    .. math:: N_l(y, z) = \#\{t : y_t = y,\ y_{t-l} = z\}

    Source: counts of the empirical counterpart of [A] eq. 12, for every lag.

    Args:
        symbols: shape (..., T) int, -1 if missing.
        lags: shape (L,), integers >= 1 [days].
        n_symbols: number of symbols m.

    Returns:
        Shape (..., L, m, m) int64 [pairs], row: symbol now, column: symbol earlier.

    Raises:
        ChainError: symbols or lags of a wrong kind.

    References:
        [A] https://doi.org/10.1109/TIT.2023.3340147

    >>> counted_pairs([0, 1, 1], [1], n_symbols=2).tolist()  # (1 after 0), (1 after 1)
    [[[0, 0], [1, 1]]]
    """
    steps = checked_lags(lags).tolist()
    tables = [count_lagged_pairs(symbols, symbols, lag, n_secret=n_symbols, n_read=n_symbols) for lag in steps]
    shape = (*np.shape(symbols)[:-1], 0, n_symbols, n_symbols)
    return np.stack(tables, axis=-3) if tables else np.zeros(shape, np.int64)


def signed_memory(pairs: ArrayLike, *, min_pairs: float = 0) -> Floats:
    r"""Signed memory of two halves: how much more probable a high day was if the present one is high.

    Symbols are split in two at the middle. 0: independent; 1: the half never changes; below 0: it alternates.

    .. math:: P(\text{earlier high} \mid \text{now high}) - P(\text{earlier high} \mid \text{now low})

    Source: this project; the two-state total variation of [A] Definition 6, with its sign.

    Args:
        pairs: counts or probabilities, shape (..., m, m), row: now, column: earlier, m even.
        min_pairs: a table with fewer of them in either half of the present is not judged [pairs].

    Returns:
        Shape (...), between -1 and 1; NaN where a half has no or too few pairs.

    Raises:
        ChainError: an odd number of symbols, or a table that is not square.

    References:
        [A] https://doi.org/10.1109/TIT.2023.3340147

    >>> float(signed_memory([[3, 1], [1, 3]]))  # 3/4 - 1/4
    0.5
    """
    table: Floats = np.asarray(pairs, dtype=np.float64)
    m = table.shape[-1] if table.ndim >= 2 else 1
    if m % 2 or table.shape[-2] != m:
        raise ChainError(f"a table of pairs has an even number of rows and columns, got {table.shape}")
    halves = table.reshape(*table.shape[:-2], 2, m // 2, 2, m // 2).sum(axis=(-3, -1))
    now = halves.sum(axis=-1)
    is_judged = (now > 0).all(axis=-1) & (now >= min_pairs).all(axis=-1)
    share = np.divide(halves[..., 1], now, out=np.zeros_like(now), where=now > 0)
    return np.where(is_judged, share[..., 1] - share[..., 0], np.nan)
