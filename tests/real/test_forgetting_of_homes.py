"""Measured decay of dependence in the readings of the 40 real London households (docs/chains.md), as medians.

Conventions: days with more than four missing readings left out; each household's own states; half-hourly states with
fewer than 200 visits merged into the nearest frequent one; a household without readings for a value is left out of it.
"""

from __future__ import annotations

import numpy as np
import pytest

from agedp_data.accounting.temporal_allocation import allocate
from agedp_data.errors import ChainError
from agedp_data.markov.confidence import sampling_bound
from agedp_data.markov.memory_check import (
    chain_pairs,
    counted_pairs,
    daily_residuals,
    fit_hidden_regimes,
    markov_goodness_of_fit,
    predicted_pairs,
    quartile_symbols,
    signed_memory,
)
from agedp_data.markov.states import (
    daily_totals,
    edges_equal_width,
    edges_quantile,
    merge_rare,
    states,
)
from agedp_data.markov.transitions import (
    count_lagged_pairs,
    count_transitions,
    max_row_distance,
    predicted_total_variation,
    reverse,
    transition_matrix,
)


@pytest.fixture(scope="module")
def readings(households):
    return np.stack([values.ravel() for values in households.values()])


def own_states(values, n_states, *, equal_width=False):
    rows = []
    for series in values:
        seen = series[series >= 0]
        counts = np.unique(seen, return_counts=True)
        rows.append(
            states(
                series, edges_equal_width(seen.max(), n_states) if equal_width else edges_quantile(*counts, n_states)
            )
        )
    return np.array(rows)


def check_medians(series, n_states, lags, **expected):
    by_lag = [count_lagged_pairs(series, series, lag, n_secret=n_states, n_read=n_states) for lag in (1, *lags)]
    measured = {
        "direct": np.stack([max_row_distance(counts) for counts in by_lag[1:]], axis=-1),
        "powers": predicted_total_variation(by_lag[0], np.array(lags)),
    }
    for by, values in expected.items():
        found = measured[by]
        np.testing.assert_allclose(np.nanmedian(found, axis=0), values, atol=0.05)


@pytest.mark.parametrize(
    ("equal_width", "powers", "direct"),
    [
        (False, [0.459, 0.063, 0.003, 0, 0, 0, 0], [0.646, 0.342, 0.323, 0.313, 0.702, 0.660, 0.614]),
        (True, [0.271, 0.014, 0, 0, 0, 0, 0], [0.463, 0.157, 0.150, 0.130, 0.498, 0.451, 0.458]),
    ],
)
def test_half_hours_are_forgotten_as_the_table_says(readings, equal_width, powers, direct):
    by_day = np.reshape(readings, (*np.shape(readings)[:-1], -1, 48))
    is_complete = (by_day < 0).sum(axis=-1, keepdims=True) <= 4
    kept = np.where(is_complete, by_day, -1).reshape(np.shape(readings))
    series = merge_rare(own_states(kept, 12, equal_width=equal_width), n_states=12, min_visits=200)
    check_medians(series, 12, [4, 12, 24, 36, 48, 96, 336], powers=powers, direct=direct)


def test_days_mix_as_the_table_says_and_reject_the_markov_property(readings):
    series = own_states(daily_totals(readings, slots=48, max_missing=4), 4)
    check_medians(series, 4, [1, 2, 7], powers=[0.621, 0.346, 0.018])
    lags = [1, 2, 7, 14, 28, 60]
    check_medians(series, 4, lags, direct=[0.621, 0.565, 0.547, 0.530, 0.486, 0.230])
    check = markov_goodness_of_fit(series, lags, np.random.default_rng(0), n_states=4, replicates=39)
    assert check.rejected.any(axis=1).mean() > 0.7  # nine households of ten


def test_hidden_regimes_remember_what_a_visible_chain_loses(readings):
    """Five regimes lie near the direct counts on average, a chain of quartiles up to 0.27 below them."""
    totals = daily_totals(readings, slots=48, max_missing=4)
    symbols = quartile_symbols(daily_residuals(totals, np.arange(365) % 7))
    symbols = symbols[(symbols >= 0).sum(axis=1) >= 90]
    lags = [1, 2, 3, 7, 14, 28, 60]
    direct = signed_memory(counted_pairs(symbols, lags, n_symbols=4), min_pairs=20)
    regimes = signed_memory(predicted_pairs(fit_hidden_regimes(symbols, n_symbols=4), lags))
    chain = signed_memory(chain_pairs(symbols, lags, shown=np.eye(4)))
    np.testing.assert_allclose(direct.mean(axis=0), [0.40, 0.36, 0.33, 0.32, 0.25, 0.22, 0.05], atol=0.01)
    np.testing.assert_allclose(regimes.mean(axis=0), direct.mean(axis=0), atol=0.06)
    assert np.abs((regimes - direct).mean(axis=0)).mean() < 0.03
    np.testing.assert_allclose((chain - direct).mean(axis=0), [0, -0.11, -0.17, -0.27, -0.23, -0.21, -0.05], atol=0.01)


def test_daily_totals_correlate_with_the_mean_of_the_others(readings):
    """docs/limits.md: households are dependent by weather and calendar."""
    totals = daily_totals(readings, slots=48, max_missing=4).astype(float)
    totals[totals < 0] = np.nan
    correlations = []
    for index, own in enumerate(totals):
        others = np.nanmean(np.delete(totals, index, axis=0), axis=0)
        days = ~np.isnan(own) & ~np.isnan(others)
        if days.sum() >= 90:
            correlations.append(np.corrcoef(own[days], others[days])[0, 1])
    assert np.median(correlations) == pytest.approx(0.40, abs=0.02)


@pytest.mark.parametrize(
    ("n_states", "infeasible", "smallest", "median"), [(2, 0, 0.114, 0.896), (4, 3, 0.0068, 0.458)]
)
def test_the_constant_loss_for_ever_depends_on_the_states(readings, n_states, infeasible, smallest, median):
    """docs/notions.md, temporal, alpha = 2: the largest constant loss of each household's own chain of days."""
    series = own_states(daily_totals(readings, slots=48, max_missing=4), n_states)
    losses = []
    for row in series:
        counts = count_transitions(row, (row[:-1] >= 0) & (row[1:] >= 0), n_states)
        chain = transition_matrix(counts, smoothing=0)
        try:
            losses.append(allocate(reverse(chain), chain, alpha=2, horizon=2, method="supremum")[0])
        except ChainError as error:
            assert "no constant loss" in str(error)  # noqa: PT017
    assert len(losses) == len(series) - infeasible
    assert min(losses) == pytest.approx(smallest, rel=0.01)
    assert np.median(losses) == pytest.approx(median, rel=0.01)


@pytest.mark.parametrize(
    ("n_states", "of_days", "ages", "median"),
    [(12, False, [48, 144], [0.20, 0.0058]), (6, False, [48], [0.0006]), (2, True, [1, 7], [0.79, 0.19])],
)
def test_confidence_bounds_of_a_year_are_wide(readings, n_states, of_days, ages, median):
    """docs/limits.md: households with readings on all but five days, at 95 %, at lags of one and five half-hours."""
    totals = daily_totals(readings, slots=48, max_missing=4)
    complete = (totals >= 0).sum(axis=1) >= 360
    series, lags = (totals, [1]) if of_days else (readings, [1, 5])
    bounds = []
    for row in own_states(series[complete], n_states):
        follows = (row[:-1] >= 0) & (row[1:] >= 0)
        counts = {lag: count_transitions(row, follows, n_states, every=lag) for lag in lags}
        bounds.append(sampling_bound(counts, ages, level=0.95, households=37))
    assert len(bounds) == 37
    np.testing.assert_allclose(np.median(bounds, axis=0), median, rtol=0.05)
