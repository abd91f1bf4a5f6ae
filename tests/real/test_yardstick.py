"""The shipped yardstick against the readings that it was made from: counted again, and smoothed with other noise."""

from __future__ import annotations

import json

import numpy as np
import pytest

from agedp_data import yardstick
from agedp_data.yardstick import NORMAL_90
from tests.real.yardstick import (
    CLAMPS,
    LAYERED,
    SHORT_CLAMPS,
    SINGLE,
    TARGET,
    cut_by,
    household_days,
    root_mean_square,
    smoothed_errors,
    worst_month_kwh,
)


@pytest.fixture(scope="module")
def days(households):
    return household_days(households)


def test_the_table_is_what_the_readings_contain(households, days):
    table = json.loads(TARGET.read_text())
    readings = np.concatenate([*households.values()]).ravel()
    half_hours = readings[readings >= 0] / 1000.0
    assert (table["households"], table["household_days"]) == (len(households), int(np.isfinite(days).sum()))
    assert yardstick.mean_kwh() == pytest.approx(np.nanmean(days), abs=5e-4)
    assert yardstick.mean_kwh(half_hour=True) == pytest.approx(half_hours.mean(), abs=5e-5)
    for clamp in CLAMPS:
        assert yardstick.cut_by(clamp) == pytest.approx(cut_by(days, clamp), rel=6e-3, abs=1e-9)
        assert yardstick.worst_month_kwh(clamp) == pytest.approx(worst_month_kwh(days, clamp), rel=6e-3)
    for clamp in SHORT_CLAMPS:
        assert yardstick.cut_by(clamp, half_hour=True) == pytest.approx(cut_by(half_hours, clamp), rel=6e-3)


@pytest.mark.parametrize(("draws", "within"), [(20, 0.1), pytest.param(150, 0.05, marks=pytest.mark.long)])
@pytest.mark.parametrize(("layers", "noise"), [(SINGLE, 0.5), (SINGLE, 2.0), (LAYERED, 2.0)])
def test_an_error_of_smoothed_days_is_that_of_other_draws(days, layers, noise, draws, within):
    errors = smoothed_errors(days, layers, noise, length=365, live=False, draws=draws, seed=1000)
    stated = yardstick.smoothed_error(noise, days=365, layered=len(layers) > 1)
    assert stated == pytest.approx(root_mean_square(errors), rel=within)
    assert NORMAL_90 * stated == pytest.approx(np.quantile(np.abs(errors), 0.9), rel=within)
