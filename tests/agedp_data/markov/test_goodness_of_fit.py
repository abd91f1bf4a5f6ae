"""The check of the chains: households that are one pass, habits and regimes are found; tests of order against scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2_contingency, kstest

from agedp_data.markov.cyclic_inference import cyclic_goodness_of_fit
from agedp_data.markov.diagnostics import diagnose, independence_test
from agedp_data.markov.empirical_mixing import empirical_total_variation
from agedp_data.markov.goodness_of_fit import markov_goodness_of_fit
from agedp_data.markov.transitions import count_transitions

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
    for by in ("direct", "powers"):
        np.testing.assert_array_equal(found[by], empirical_total_variation(series, [1, 3], n_states=2, by=by))
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


def test_one_group_is_the_g_test_of_scipy():
    counts = np.random.default_rng(1).integers(1, 40, size=(4, 5))
    expected = chi2_contingency(counts, correction=False, lambda_="log-likelihood")
    padded = np.zeros((2, 6, 7))
    padded[1, 1:5, 2:] = counts
    for table in (counts[None], padded):
        np.testing.assert_allclose(independence_test(table), [expected.statistic, expected.dof, expected.pvalue])


def drawn_by(law_of, length, households, rng):
    path = np.zeros((households, length), int)
    for i in range(2, length):
        path[:, i] = rng.random(households) < law_of(i, path[:, i - 1], path[:, i - 2])
    return path


def test_probabilities_are_even_where_the_hypothesis_holds_and_small_where_not():
    rng = np.random.default_rng(2)
    independent = (rng.random((200, 1000)) < 0.4).astype(int)
    assert kstest(diagnose(independent, n_states=2, segments=3).order_0_p, "uniform").pvalue > 1e-4
    found = diagnose(drawn_by(lambda i, last, before: 0.2 + 0.5 * last, 1000, 200, rng), n_states=2, segments=3)
    assert kstest(found.order_1_p, "uniform").pvalue > 1e-4
    assert kstest(found.stationary_p, "uniform").pvalue > 1e-4
    assert (found.order_0_p < 1e-6).all()
    assert (found.order_0_df[0], found.order_1_df[0], found.stationary_df[0]) == (1, 2, 4)
    second = drawn_by(lambda i, last, before: 0.2 + 0.6 * before, 2000, 5, rng)
    assert (diagnose(second, n_states=2, segments=2).order_1_p < 1e-9).all()
    turning = drawn_by(lambda i, last, before: 0.2 + 0.6 * (last ^ (i > 1000)), 2000, 5, rng)
    assert (diagnose(turning, n_states=2, segments=2).stationary_p < 1e-9).all()


def test_gaps_are_not_bridged_and_visits_are_counted():
    series = np.random.default_rng(4).integers(-1, 3, (2, 3, 300))
    found = diagnose(series, n_states=4, segments=5)
    counts = count_transitions(series[1, 2], np.ones(299, bool), 4)
    assert found.transitions[1, 2] == counts.sum()
    assert found.order_0[1, 2] == pytest.approx(float(independence_test(counts[None])[0]))
    assert found.rarest[1, 2] == min((series[1, 2] == state).sum() for state in range(3))
    assert diagnose([[1] * 50, [-1] * 50], n_states=3, segments=2).order_1_p.tolist() == [1, 1]
