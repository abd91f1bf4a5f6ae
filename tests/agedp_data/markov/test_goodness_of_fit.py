"""The check of the chains: households that are one pass, habits and regimes are found."""

from __future__ import annotations

import numpy as np
import pytest

from agedp_data.markov.cyclic import cyclic_goodness_of_fit
from agedp_data.markov.memory_check import markov_goodness_of_fit
from agedp_data.markov.transitions import count_lagged_pairs, max_row_distance, predicted_total_variation

LAGS = [1, 2, 7, 14, 28]


def chains_of_days(chain, days, households, rng):
    below, state = np.cumsum(chain, axis=1), rng.integers(0, len(chain), households)
    path = np.empty((days, households), int)
    for i in range(days):
        path[i] = state
        state = (rng.random(households)[:, None] >= below[state]).sum(axis=1)
    return path.T


def regimes(days, households, rng):
    """High or low for 30 to 180 days; each day shows it with probability .9."""
    series = np.empty((households, days), int)
    for row in series:
        at, regime = -int(rng.integers(0, 180)), int(rng.integers(0, 2))
        while at < days:
            end = at + int(rng.integers(30, 181))
            row[max(at, 0) : max(end, 0)] = regime
            at, regime = end, 1 - regime
    return np.where(rng.random(series.shape) < 0.9, series, 1 - series)


def weekly(days, households, rng):
    weekend = np.arange(days) % 7 >= 5
    return np.where(rng.random((households, days)) < 0.85, weekend, ~weekend).astype(int)


@pytest.mark.parametrize(
    "chain",
    [
        np.array([[0.8, 0.2], [0.4, 0.6]]),
        np.array([[0.7, 0.2, 0.1, 0.0], [0.2, 0.6, 0.1, 0.1], [0.0, 0.2, 0.7, 0.1], [0.1, 0.1, 0.2, 0.6]]),
    ],
)
def test_households_that_are_chains_pass_at_the_stated_rate(chain):
    rng = np.random.default_rng(11)
    series = chains_of_days(chain, 365, 120, rng)
    series[:, 100:120] = -1
    found = markov_goodness_of_fit(series, LAGS, rng, n_states=len(chain), level=0.9, replicates=39)
    # 10 % of 120 with four standard deviations; the estimated chain is a little more extreme than the true one.
    assert found.rejected.any(axis=1).mean() <= 0.1 + 4 * np.sqrt(0.1 * 0.9 / 120)
    assert not found.rejected[:, 0].any()


@pytest.mark.parametrize("kind", [weekly, regimes])
def test_households_with_a_habit_or_a_slow_regime_are_rejected(kind):
    rng = np.random.default_rng(12)
    found = markov_goodness_of_fit(kind(364, 40, rng), LAGS, rng, n_states=2, replicates=39)
    assert found.rejected.any(axis=1).mean() > 0.9
    assert (found.direct[found.rejected] > found.powers[found.rejected]).all()


def test_the_table_has_a_row_for_each_household_and_lag():
    rng = np.random.default_rng(13)
    series = chains_of_days(np.array([[0.9, 0.1], [0.1, 0.9]]), 730, 40, rng).reshape(2, 20, 730)
    found = markov_goodness_of_fit(series, [1, 3], rng, n_states=2, replicates=19)
    assert found.shape == (2, 20, 2)
    assert found.dtype.names == ("lag", "powers", "direct", "low", "high", "floor", "rejected")
    np.testing.assert_array_equal(found.lag[1, 2], [1, 3])
    by_lag = [count_lagged_pairs(series, series, lag, n_secret=2, n_read=2) for lag in (1, 3)]
    np.testing.assert_array_equal(found.direct, np.stack([max_row_distance(counts) for counts in by_lag], axis=-1))
    np.testing.assert_array_equal(found.powers, predicted_total_variation(by_lag[0], np.array([1, 3])))
    assert (found.low <= found.high).all()
    np.testing.assert_allclose(np.median(found.direct, axis=(0, 1)), [0.8, 0.8**3], atol=0.08)
    assert (np.median(found.floor, axis=(0, 1)) < 0.2).all()  # of a shifted copy, not of the series itself


PHASES, DAYS, DAY_LAGS = 8, 200, [1, 2, 7]


def clocked(count, rng, *, habit=False):
    """Asleep in phases 0 and 1, where nothing moves; drawn anew around the hour's level else; noon tells weekends."""
    series = np.empty((count, DAYS * PHASES), int)
    state = rng.integers(0, 4, count)
    for i in range(DAYS * PHASES):
        day, phase = divmod(i, PHASES)
        if phase >= 2:
            state = np.minimum(rng.integers(0, 3, count) + (phase >= 5), 3)
        if habit and phase == 4:
            state = np.where(rng.random(count) < 0.85, 3 * (day % 7 >= 5), state)
        series[:, i] = state
    series[:, 300:340] = -1
    return series


def checked(series, rng):
    keys = {"n_phases": PHASES, "min_visits": 10, "level": 0.9, "replicates": 19}
    return cyclic_goodness_of_fit(series, DAY_LAGS, rng, **keys)


def test_cyclic_chains_pass_at_the_stated_rate_and_one_chain_for_the_whole_day_is_rejected():
    rng = np.random.default_rng(1)
    series = clocked(100, rng)
    series[0], series[1] = -1, 2
    found = checked(series, rng)
    assert np.isnan(found.direct[:2]).all()
    assert not found.rejected[:2].any()
    assert found.rejected.any(axis=1).mean() <= 0.1 + 4 * np.sqrt(0.1 * 0.9 / 100)
    # What the chain says is what it shows in the same count: noise on both sides.
    direct = np.nanmedian(found.direct, axis=0)
    np.testing.assert_allclose(np.nanmedian(found.powers, axis=0), direct, atol=0.05)
    np.testing.assert_allclose(np.nanmedian(found.floor, axis=0), direct, atol=0.05)
    keys = {"n_states": 4, "steps_per_day": PHASES, "level": 0.9, "replicates": 19}
    pooled = markov_goodness_of_fit(series[2:22], [lag * PHASES for lag in DAY_LAGS], rng, **keys)
    assert pooled.rejected.any(axis=1).mean() > 0.9


def test_a_habit_that_lasts_over_days_is_found():
    rng = np.random.default_rng(2)
    found = checked(clocked(30, rng, habit=True), rng)
    assert found.rejected[:, 2].mean() > 0.9
    assert (found.direct > found.powers)[:, 2].mean() > 0.9
