"""Smoothed estimates of the real households of 2013, by the calendar alone: what they gain, and when intervals hold.

The bar of the issue, error ratios of .70 at noise of .6 kWh and of .45 at 1.5 kWh with priors of the other half, is
not reached by a mean of 18 or 19 households: .79 and .53. Their mean has deviations of single days of .43 kWh, which no
calendar explains. With the amplitudes fitted to the true series itself the ratios are .76 to .78 and .49 to .51. Waves
of the year, school holidays, weekdays that follow the season and a memory of ten days leave them as they are.
The mean of all 37 comes to .71 and .47, with its true amplitudes to .70 and .45; 60 households came to .65 and .43.
"""

from __future__ import annotations

import numpy as np
import pytest

from agedp_data.smoothing.signal_estimate import MEASURED


@pytest.fixture(scope="module")
def series(households):
    pytest.importorskip("holidays")
    from tests.real.smoothing_worlds import complete_households, worlds

    daily = complete_households(households)
    assert len(daily) == 37
    return worlds(daily)


def measured(series, name, sd, variant, draws):
    from tests.real.smoothing_worlds import measure

    return measure(series[name], sd, variant, draws)


@pytest.mark.parametrize(("sd", "most"), [(0.6, 0.82), (1.5, 0.57)])
def test_priors_of_one_half_serve_the_other(series, sd, most):
    result = measured(series, "half, prior of the other half", sd, "archive", 3)
    assert result["ratio"] <= most
    assert result["all_days"] >= 0.86
    assert result["special_days"] >= 0.80


@pytest.mark.parametrize(("sd", "most"), [(0.6, 0.72), (1.5, 0.48)])
def test_a_mean_of_more_households_gains_more(series, sd, most):
    result = measured(series, "37 households", sd, "archive", 8)
    assert result["ratio"] <= most
    assert result["all_days"] >= 0.86
    assert result["special_days"] >= 0.80


def check_row(series, row):
    result = measured(series, row.series, row.noise_kwh, row.variant, 20)
    stated = [row.error_ratio, row.all_days, row.special_days, row.hardest_days]
    # two digits; of the hardest days, a tenth of all, one value of 192 may lie on the other side of its interval's end
    np.testing.assert_array_less(np.abs(np.subtract(list(result.values()), stated)), [0.0051, 0.0051, 0.0051, 0.0103])


def test_a_row_of_the_printed_coverage_is_what_is_measured(series):
    (row,) = [row for row in MEASURED if (row.series, row.variant, row.noise_kwh) == ("37 households", "archive", 1.5)]
    check_row(series, row)


@pytest.mark.long
@pytest.mark.parametrize("row", MEASURED, ids=str)
def test_each_row_of_the_printed_coverage_is_what_is_measured(series, row):
    check_row(series, row)
