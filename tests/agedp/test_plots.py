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


def test_the_table_of_a_folder_is_the_one_that_it_has(readings, tmp_path):
    means = agedp.sanitise(readings, folder=tmp_path / "means", **TERMS)
    counts = agedp.sanitise(
        readings, folder=tmp_path / "counts", statistic="distribution", bins_kwh=[0, 10, 40], **TERMS
    )
    assert ("mean_kwh" in means.table(), "households_noisy" in counts.table()) == (True, True)
