"""A mean with a list of clamps in plans, comparisons and estimates: which layer a figure is of, and the sum."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import timedelta

import pytest

import agedp
from agedp_flows.text.run_text import skips_count_text
from tests.agedp.released_rows import Row

UPPER = "daily_average_layers.parquet"

HOURLY = {"A": 100, "B": 1000}


def test_plans_and_tables_of_readings_take_layers(tmp_path):
    import pandas as pd

    times = pd.date_range("2013-01-01", periods=96, freq="30min", tz="UTC")
    readings = pd.concat(
        pd.DataFrame({"household_id": home, "interval_start": times, "energy_wh": wh}) for home, wh in HOURLY.items()
    )
    options = {"clamp_kwh": [10, 50], "share": [0.75, 0.25], "min_households": 1}
    promise = agedp.Classical(
        epsilon_per_day=1, max_day_epsilon=1, epsilon_total=9, accept=["useless", "no-credit", "total"]
    )
    planned = agedp.plan(readings, promise=promise, **options)
    assert planned.table["series"].tolist() == ["use/1", "use/2"] * 2
    assert planned.table["epsilon"].tolist() == [0.75, 0.25] * 2
    expected = [2**0.5 * 10 / 0.75 / 2, 2**0.5 * 40 / 0.25 / 2]
    assert planned.table["noise_sd_kwh"].tolist() == pytest.approx(expected * 2, rel=1e-6)
    [compared] = agedp.compare(readings, [promise], **options).to_dict("records")
    assert (compared["epsilon_max"], compared["epsilon_sum"]) == (1, 2)
    assert compared["noise_of"] == "use, layer 1, up to 10 kWh"
    noises = [compared[name] for name in ("noise_sd_kwh", "noise_sd_of_sum_kwh")]
    assert noises == pytest.approx([expected[0], math.hypot(*expected)], rel=1e-6)
    assert compared["noise_sd_of_sum_kwh"] > 10 * compared["noise_sd_kwh"]
    notions = planned.compare().dropna(subset="noise_sd_kwh")
    assert set(notions["noise_of"]) == {"use, layer 1, up to 10 kWh"}
    ratios = notions["noise_sd_of_sum_kwh"] / notions["noise_sd_kwh"]
    assert ratios.tolist() == pytest.approx([math.hypot(*expected) / expected[0]] * len(ratios), rel=1e-6)
    released = agedp.release(readings, promise=promise, **options)
    released.verify()
    assert [*released.folder.layers()] == [UPPER]
    assert released.table["households"].tolist() == [2, 2]
    assert timedelta(days=1) == released.table.index[1] - released.table.index[0]


def test_a_day_skipped_in_some_series_is_counted_by_its_releases():
    one = Row("2013-01-01", (1,))
    skipped = replace(one, state="skipped", series="night")
    assert skips_count_text([one, skipped]) == "1 release on 1 of the same days"
    next_day = [replace(row, day="2013-01-02", state="skipped") for row in (one, skipped)]
    assert skips_count_text([one, skipped, *next_day]) == "1 release on 1 of the same days and 1 other day"
    assert skips_count_text([one]) == ""
