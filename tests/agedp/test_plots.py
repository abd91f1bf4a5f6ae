"""What a plot shows is what its table says."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

import agedp

mpl.use("agg")
ROSTER = pd.DataFrame({"household_id": list("abcdef"), "heating": ["gas", "oil"] * 3, "from": "2025-01-06", "to": None})
TERMS = {
    "promise": agedp.Classical(
        epsilon_per_day=1, max_day_epsilon=1, epsilon_total=10, accept=["useless", "no-credit", "total"]
    ),
    "clamp_kwh": 40,
    "min_households": 2,
    "roster": ROSTER,
    "by": "heating",
}


@pytest.fixture(scope="module")
def readings() -> pd.DataFrame:
    start = pd.date_range("2025-01-06", periods=2 * 48, freq="30min", tz="Europe/Berlin")
    frame = pd.MultiIndex.from_product([list("abcdef"), start], names=["household_id", "interval_start"]).to_frame()
    return frame.reset_index(drop=True).assign(energy_wh=200)


def test_means_have_a_line_for_each_group(readings):
    released = agedp.release(readings, **TERMS)
    lines = {line.get_label(): line.get_ydata() for line in released.plot().lines}
    assert set(lines) == {"gas", "oil"}
    for group, rows in released.table.groupby("group"):
        np.testing.assert_array_equal(lines[group], rows["mean_kwh"])


def test_a_value_of_several_days_is_a_cross_over_its_days_and_interval():
    start = pd.date_range("2025-01-06", periods=3 * 7 * 48, freq="30min", tz="Europe/Berlin")
    frame = pd.MultiIndex.from_product([list("abcdef"), start], names=["household_id", "interval_start"]).to_frame()
    released = agedp.release(frame.reset_index(drop=True).assign(energy_wh=200), every="week", **TERMS)
    table = released.table.reset_index()
    days, heights = {}, {}
    for container in released.plot().containers:
        across, upright = container.lines[2]
        days[container.get_label()] = [segment[:, 0] for segment in across.get_segments()]
        heights[container.get_label()] = [segment[:, 1] for segment in upright.get_segments()]
    for group, rows in table.groupby("group"):
        ends = rows[["first_day", "day"]].apply(mpl.dates.date2num).to_numpy()
        np.testing.assert_allclose(days[group], ends)
        np.testing.assert_allclose(heights[group], rows[["low_kwh", "high_kwh"]].to_numpy())


def test_a_mean_count_has_two_standard_deviations_of_its_noise(readings):
    """Two days with noise of one standard deviation s: that of their mean is s / sqrt(2)."""
    released = agedp.release(readings, statistic="distribution", bins_kwh=[0, 10, 40], **TERMS)
    [sd] = released.table["noise_sd"].unique()
    for container in released.plot().containers:
        [upright] = container.lines[2]
        lengths = [np.ptp(segment[:, 1]) for segment in upright.get_segments()]
        np.testing.assert_allclose(lengths, 2 * 2 * sd / np.sqrt(2))
