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


def test_counts_have_a_step_for_each_range_with_the_mean_of_its_days(readings):
    released = agedp.release(readings, statistic="distribution", bins_kwh=[0, 10, 40], **TERMS)
    steps = {patch.get_label(): patch.get_data() for patch in released.plot().patches}
    table = released.table
    for group in ("gas", "oil"):
        counts = [
            np.mean(table[(table["group"] == group) & (table["bin_low_kwh"] == low)]["households_noisy"])
            for low in (0, 10)
        ]
        np.testing.assert_allclose(steps[group].values, counts)
        np.testing.assert_array_equal(steps[group].edges, [0, 10, 40])


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


def test_a_profile_is_drawn_over_the_newest_day_with_its_intervals(readings):
    released = agedp.release(readings, statistic="profile", half_hour_clamp_kwh=2, **TERMS)
    axes, table = released.plot(), released.folder.table()
    newest = table[table["day"] == table["day"].max()]
    for line, (group, rows) in zip(axes.lines, newest.groupby("group"), strict=True):
        assert line.get_label() == group
        np.testing.assert_allclose(line.get_xdata(), rows["start_minute"] / 60)
        np.testing.assert_array_equal(line.get_ydata(), rows["mean_kwh"])
    bands = [band.get_datalim(axes.transData) for band in axes.collections]
    assert min(band.y0 for band in bands) == pytest.approx(newest["low_kwh"].min())
    assert max(band.y1 for band in bands) == pytest.approx(newest["high_kwh"].max())


def test_a_share_of_households_has_its_intervals(readings):
    terms = {key: value for key, value in TERMS.items() if key != "clamp_kwh"}
    released = agedp.release(readings, statistic="coverage", **terms)
    axes, table = released.plot(), released.table
    assert axes.get_ylabel() == "share of households"
    for line, (_, rows) in zip(axes.lines, table.groupby("group"), strict=True):
        np.testing.assert_array_equal(line.get_ydata(), rows["coverage"])


def test_a_mean_count_has_two_standard_deviations_of_its_noise(readings):
    """Two days with noise of one standard deviation s: that of their mean is s / sqrt(2)."""
    released = agedp.release(readings, statistic="distribution", bins_kwh=[0, 10, 40], **TERMS)
    [sd] = released.table["noise_sd"].unique()
    for container in released.plot().containers:
        [upright] = container.lines[2]
        lengths = [np.ptp(segment[:, 1]) for segment in upright.get_segments()]
        np.testing.assert_allclose(lengths, 2 * 2 * sd / np.sqrt(2))
