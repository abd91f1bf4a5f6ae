"""Measured decay of dependence in the readings of the 40 real London households (MATHS 2b), as medians.

Conventions: days with more than four missing readings left out; each household's own states; half-hourly states with
fewer than 200 visits merged into the nearest frequent one; a household without readings for a value is left out of it.
"""

from __future__ import annotations

import numpy as np
import pytest

from agedp_data.markov.empirical_mixing import empirical_total_variation
from agedp_data.markov.goodness_of_fit import markov_goodness_of_fit
from agedp_data.markov.states import (
    daily_totals,
    edges_equal_width,
    edges_quantile,
    mask_incomplete_days,
    merge_rare,
    states,
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
    for by, values in expected.items():
        found = empirical_total_variation(series, lags, n_states=n_states, by=by)
        np.testing.assert_allclose(np.nanmedian(found, axis=0), values, atol=0.05)


@pytest.mark.parametrize(
    ("equal_width", "powers", "direct"),
    [
        (False, [0.459, 0.063, 0.003, 0, 0, 0, 0], [0.646, 0.342, 0.323, 0.313, 0.702, 0.660, 0.614]),
        (True, [0.271, 0.014, 0, 0, 0, 0, 0], [0.463, 0.157, 0.150, 0.130, 0.498, 0.451, 0.458]),
    ],
)
def test_half_hours_are_forgotten_as_the_table_says(readings, equal_width, powers, direct):
    kept = mask_incomplete_days(readings, slots=48, max_missing=4)
    series = merge_rare(own_states(kept, 12, equal_width=equal_width), n_states=12, min_visits=200)
    check_medians(series, 12, [4, 12, 24, 36, 48, 96, 336], powers=powers, direct=direct)


def test_days_mix_as_the_table_says_and_reject_the_markov_property(readings):
    series = own_states(daily_totals(readings, slots=48, max_missing=4), 4)
    check_medians(series, 4, [1, 2, 7], powers=[0.621, 0.346, 0.018])
    lags = [1, 2, 7, 14, 28, 60]
    check_medians(series, 4, lags, direct=[0.621, 0.565, 0.547, 0.530, 0.486, 0.230])
    check = markov_goodness_of_fit(series, lags, np.random.default_rng(0), n_states=4, replicates=39)
    assert check.rejected.any(axis=1).mean() > 0.7  # nine households of ten
