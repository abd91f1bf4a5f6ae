"""A mean with a list of clamps in plans, comparisons and estimates: which layer a figure is of, and the sum."""

from __future__ import annotations

import html
import math
import re
from dataclasses import replace
from datetime import timedelta

import pytest

import agedp
from agedp.stages.amend import preview_amendment
from agedp_flows.text.plan_text import amendment_lines, plan_lines
from agedp_flows.text.run_text import result_lines, skips_count_text
from agedp_flows.text.smoothing_text import smoothing_lines
from tests.agedp.released_rows import Row
from tests.agedp.six_homes import FIRST, TODAY, build, day

LAYERED = "[2, 10, 40]\nshare = [0.5, 0.3, 0.2]\nmissing_kwh = 3"
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


def test_layer_1_is_never_called_the_mean(houses, tmp_path):
    house = build(houses(tmp_path))
    house.write(FIRST, day(1), clamp="[2, 10]\nshare = [0.75, 0.25]")
    lines = result_lines(house.run(today=TODAY))
    label = "daily_mean, layer 1, up to 2 kWh"
    assert f"day households mean kWh of {label} interval from to published on" in [
        " ".join(line.split()) for line in lines
    ]
    # widths 2 and 8 kWh at 0.375 and 0.125: scales 16/3 and 64 kWh, over 6 homes
    total = 2**0.5 * math.hypot(16 / 3, 64) / 6
    assert f"daily_mean, sum of the layers: noise {total:.3g} kWh per household on {day(1)}" in lines
    page = html.unescape((house.folder / "release" / "report.html").read_text("utf-8"))
    assert f"Mean use per household and day: {label}" in page
    [half_width] = re.findall(r"daily_mean, day</th><td>(\S+)\u00a0kWh", page)
    assert 1.4 * total < float(half_width) < 1.7 * total  # 90 % of a normal law are 1.64, of Laplace noise 1.63
    statement = (house.folder / "release" / "STATEMENT.md").read_text("utf-8")
    assert re.search(r"\| daily_mean/1 \| [^|]+ \| [^|]+ \| daily averages \| 2 kWh a day \|", statement)
    house.release.verify()


def test_a_skipped_day_of_several_layers_is_one_day(houses, tmp_path):
    house = build(houses(tmp_path))
    house.write(FIRST, day(3), clamp=LAYERED)
    house.edit(("[schedule]", f"[schedule]\nskip_days = [{day(1)}, {day(2)}]"))
    planned = plan_lines(house.session(today=TODAY))
    assert "2 days, 6 releases are due and 2 days will be skipped:" in planned
    assert sum(line.startswith(f"{day(1)}  ") for line in planned) == 1
    assert next(line for line in planned if line.startswith("skipped (")).endswith(f": {day(1)} to {day(2)}")
    lines = result_lines(house.run(today=TODAY))
    assert any(line.startswith("2 days released now, 2 days skipped (") for line in lines)


def test_a_day_skipped_in_some_series_is_counted_by_its_releases():
    one = Row("2013-01-01", (1,))
    skipped = replace(one, state="skipped", series="night")
    assert skips_count_text([one, skipped]) == "1 release on 1 of the same days"
    next_day = [replace(row, day="2013-01-02", state="skipped") for row in (one, skipped)]
    assert skips_count_text([one, skipped, *next_day]) == "1 release on 1 of the same days and 1 other day"
    assert skips_count_text([one]) == ""


def test_commands_say_what_an_upper_layer_is(houses, tmp_path):
    house = build(houses(tmp_path))
    house.write(FIRST, day(1), clamp="[2, 10]\nshare = [0.75, 0.25]")
    planned = plan_lines(house.session(today=TODAY), verbose=True)
    sentence = "daily_mean/2 is an upper layer of daily_mean: daily use above 2 and up to 10 kWh."
    assert any(line.startswith(sentence) for line in planned)
    # the notions are compared by the noise of layer 1: 2 kWh / (0.75 x 0.5), over 6 homes
    label = "daily_mean, layer 1, up to 2 kWh"
    joined = re.sub(r"\s+", " ", " ".join(planned))
    assert re.search(f"Notions that guarantee [^:]*: {label}, 2 days", joined)
    # widths of 2 and 8 kWh at 0.75 and 0.25 of 0.5, over 6 homes
    total = math.hypot(2 / 0.375, 8 / 0.125) * 2**0.5 / 6
    assert f"daily_mean, sum of the layers: noise {total:.1f} kWh per household" in planned
    assert any(line.startswith(f"{label}: Noise 1.26 kWh per household") for line in planned)
    assert f"The noise is that of {label}; the sum of its layers has 12.0 times that noise." in joined
    assert any("=> classical" in line and f"{2**0.5 * 2 / 0.375 / 6:.3g}" in line for line in planned)
    summary = house.run(today=TODAY)
    assert any(line.startswith(sentence) for line in result_lines(summary, verbose=True))
    house.edit(("clamp_kwh = [2, 10]\nshare = [0.75, 0.25]", "clamp_kwh = 2"))
    amended = amendment_lines(preview_amendment(house.session(today=TODAY)))
    assert any("series.daily_mean.share" in line and "allowed" in line for line in amended)
    assert not any("daily_mean/1" in line for line in amended)
    smoothed = agedp.smooth(house.release)
    [line] = [line for line in smoothing_lines(smoothed, tmp_path) if "(sum of 2 layers)" in line]
    # of two Laplace noises of sum variance s^2 90 % lie within 1.645 s, as of a normal one
    shown = float(line.partition("(sum of 2 layers)")[2].split()[1])
    assert shown == pytest.approx(1.645 * total, rel=0.01)
    assert "published, sum of 2 layers, with the interval" in smoothed.files()["smoothed.html"].decode()
