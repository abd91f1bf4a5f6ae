"""A mean with a list of clamps: what is its own beside the contract of every statistic; amended, planned, audited."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from dataclasses import replace
from datetime import date, timedelta

import numpy as np
import pytest

import agedp
from agedp import privacy_audit
from agedp.stages.amend import amend, preview_amendment
from agedp_data.audit.lower_bounds import AuditDatasets
from agedp_data.series.layered_mean import Layer
from agedp_data.series.series_terms import layer_number
from agedp_flows.text.plan_text import amendment_lines
from agedp_flows.text.run_text import skips_count_text
from tests.agedp.released_rows import Row

AVERAGES, UPPER = "daily_averages.parquet", "daily_average_layers.parquet"
FIRST, DAYS = date(2013, 1, 1), 4
PROMISE = 'notion = "classical"\nage_days = 0\nepsilon_per_day = 0.5\nmax_day_epsilon = 0.6\nepsilon_total = 9\n'


def day(number):
    return FIRST + timedelta(days=number)


def test_clamps_are_amended_there_and_back_and_no_day_is_drawn_again(house):
    house.fill([day(number) for number in range(DAYS)], households="ABCDEF")
    clamps = ["2", "[2, 10]\nshare = [0.7, 0.3]", "[3, 10, 40]\nshare = [0.5, 0.3, 0.2]", "2"]
    for number, clamp in enumerate(clamps):
        house.write(FIRST, day(30), mode="live", promise=PROMISE, clamp=clamp)
        if number:
            preview = preview_amendment(house.session(today=day(number)))
            assert {change.key.rpartition(".")[2] for change in preview.changes} <= {"clamp_kwh", "share"}
            assert {change.verdict for change in preview.changes} == {"allowed"}
            noise = [line.partition(", kWh")[0] for line in amendment_lines(preview) if "noise of " in line]
            assert noise == [f"  noise of daily_mean, layer {i}" for i in (1, 2, 3)[: (0, 2, 3, 3)[number]]]
            amend(house.context(today=day(number)))
        house.run(today=day(number + 1))
        house.release.verify()
        kept_rows = [row for row in house.rows() if row.state == "released"]
        assert Counter((row.day, layer_number(row.series) or 1) for row in kept_rows).most_common(1)[0][1] == 1
    layers = [sorted(row.series for row in kept_rows if row.day == str(day(number))) for number in range(DAYS)]
    assert layers == [
        ["daily_mean"],
        ["daily_mean/1", "daily_mean/2"],
        ["daily_mean/1", "daily_mean/2", "daily_mean/3"],
        ["daily_mean"],
    ]
    averages, upper = house.release.table(), house.release.table("daily_average_layers")
    assert averages["day"].dt.date.tolist() == [day(number) for number in range(DAYS)]
    assert averages["version"].tolist() == [1, 2, 3, 4]
    assert [*zip(upper["day"].dt.date, upper["layer"], strict=True)] == [(day(1), 2), (day(2), 2), (day(2), 3)]
    metadata = json.loads(house.release.averages()[AVERAGES].schema.metadata[b"agedp"])
    assert metadata["clamp_kwh_by_version"] == {"1": "2", "2": "2", "3": "3", "4": "2"}
    package = json.loads((house.release.path / "datapackage.json").read_text())
    [described] = [of["description"] for of in package["resources"] if of["path"] == UPPER]
    assert "version 2: layer 2: mean energy per household above 2 and up to 10 kWh a day; version 3: " in described
    assert "version 3: layer 2: mean energy per household above 3 and up to 10 kWh a day; layer 3: " in described
    words = (house.release.path / "STATEMENT.md").read_text()
    assert 'series.daily_mean.clamp_kwh: "2" -> ["2","10"]' in words
    assert 'series.daily_mean.clamp_kwh: ["3","10","40"] -> "2"' in words


AUDITED = AuditDatasets(60, 1, varying_groups=20, days=2, ledgers=1)


def audited(house):
    house.roster([("A", FIRST, None)])
    promise = 'notion = "classical"\nepsilon_per_day = 3\nmax_day_epsilon = 3\nepsilon_total = "unlimited"\n'
    house.write(FIRST, day(3), promise=promise, clamp="[2, 10]\nshare = [0.5, 0.5]")
    return privacy_audit.audit(house.run_file, datasets=AUDITED)


def test_the_audit_moves_a_household_through_all_layers(house):
    found = audited(house)
    assert (found.faults, found.is_within_promise) == ((), True)
    assert [loss.promised for loss in found.measured] == [1.5, 6.0]


@pytest.mark.parametrize(
    ("attribute", "planted", "fault"),
    [
        (
            "sensitivity",
            lambda layer, _: layer.width_wh // 2,
            "daily_mean/2: the recorded noise scale is too small",
        ),
        (
            "clamp_energy",
            lambda layer, energy_wh: np.minimum(energy_wh, layer.width_wh),
            "series daily_mean/2: on .* days the sums that noise was added to differ",
        ),
    ],
)
def test_the_audit_exposes_a_layer_that_is_cut_wrongly(house, monkeypatch, attribute, planted, fault):
    monkeypatch.setattr(Layer, attribute, planted)
    assert any(re.search(fault, found) for found in audited(house).faults)


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
    roster = pd.DataFrame({"household_id": [*HOURLY], "from": "2013-01-01", "to": None, "area": ["N", "S"]})
    [of_groups] = agedp.compare(readings, [promise], roster=roster, by="area", **options).to_dict("records")
    assert of_groups["noise_sd_of_sum_kwh"] == pytest.approx(2 * math.hypot(*expected), rel=1e-6)  # one home in each
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
