"""A mean with a list of clamps: what is its own beside the contract of every statistic; amended, charged, audited."""

from __future__ import annotations

import json
import re
from collections import Counter

import numpy as np
import pytest

from agedp import privacy_audit, synthetic_worlds
from agedp.ledger_transfer import recover
from agedp.reports.svg import format_number
from agedp.stages.amend import amend, preview_amendment
from agedp_data.audit.lower_bounds import AuditDatasets
from agedp_data.epsilon import NANO
from agedp_data.series.layered_mean import Layer
from agedp_data.series.series_terms import layer_number
from agedp_flows.text.plan_text import amendment_lines
from tests.agedp.six_homes import DAYS, FIRST, HOMES, TODAY, build, day, energy

CLAMPS = (2, 10, 40)
LAYERED = "[2, 10, 40]\nshare = [0.5, 0.3, 0.2]\nmissing_kwh = 3"
AVERAGES, UPPER = "daily_averages.parquet", "daily_average_layers.parquet"
CAPS = "max_day_epsilon = 0.6\nepsilon_total = 9\n"
MODEL = '[model]\nsource = "declared"\nbasis = "made up"\nassume = "markov"\nkernel = "kernel.csv"\n'
PROMISES = {
    "classical": "epsilon_per_day = 0.5\n",
    "age-dependent": 'age_days = 2\nrisk = 0.5\nmethod = "tight"\nsecret = "day"\n',
    "neighbourhood": 'delta_kwh = 4\nwindow_days = 3\nepsilon_per_window = 0.5\nspend = "per-request"\n',
}


def test_clamps_are_amended_there_and_back_and_no_day_is_drawn_again(houses, tmp_path):
    house = build(houses(tmp_path))
    promise = f'notion = "classical"\nage_days = 0\n{PROMISES["classical"]}{CAPS}'
    clamps = ["2", "[2, 10]\nshare = [0.7, 0.3]", "[3, 10, 40]\nshare = [0.5, 0.3, 0.2]", "2"]
    for number, clamp in enumerate(clamps):
        house.write(FIRST, day(30), mode="live", promise=promise, clamp=clamp)
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


@pytest.mark.parametrize("notion", PROMISES)
def test_every_notion_charges_the_sum_of_the_layers_to_the_day(houses, tmp_path, notion):
    house = build(houses(tmp_path))
    (house.folder / "kernel.csv").write_text("0.9,0.1\n0.2,0.8\n")
    promise = f'notion = "{notion}"\n{PROMISES[notion]}{CAPS}'
    house.write(FIRST, day(DAYS - 1), promise=promise, clamp=LAYERED, rest=MODEL if notion == "age-dependent" else "")
    house.run(today=TODAY)
    house.release.verify()
    rows = house.rows()
    assert [row.sensitivity for row in rows] == [2000, 8000, 30_000] * DAYS
    recover(house.folder / "release", f"sqlite:///{house.folder / 'again.sqlite'}", at=TODAY)
    assert [row.values for row in house.rows(name="again.sqlite")] == [row.values for row in rows]
    of_days = [rows[start : start + 3] for start in range(0, len(rows), 3)]
    stated = {bound.name: bound.epsilon for bound in house.release.read_statement().bounds}
    assert float(stated["day"]) == pytest.approx(max(sum(row.loss for row in of) for of in of_days) / NANO, abs=1e-9)
    assert float(stated["total"]) == pytest.approx(sum(row.loss for row in rows) / NANO, abs=1e-9)
    account = house.release.read_statement().household_account
    assert (account.day, account.total) == (stated["day"], stated["total"])  # the register counts every layer
    # under "neighbourhood" the shares are of the loss about a change of 4 kWh, which a layer meets up to its width
    parts = [min(4000, row.sensitivity) / row.scale if notion == "neighbourhood" else row.loss for row in of_days[0]]
    assert np.array(parts) / sum(parts) == pytest.approx([0.5, 0.3, 0.2], rel=1e-6)
    if notion == "neighbourhood":
        small = [sum(min(4000, row.sensitivity) / row.scale for row in of) for of in of_days]
        window = max(sum(small[:3]), sum(small[1:]))
        assert float(stated["change of 4 kWh, window of 3 days"]) == pytest.approx(window, rel=1e-6)
        assert window <= 0.5


def test_the_clamp_of_layer_1_and_of_the_sum_are_in_the_confidential_report(houses, tmp_path):
    house = build(houses(tmp_path))
    house.write(FIRST, day(DAYS - 1), clamp=LAYERED)
    house.run(today=TODAY)
    page = (house.folder / "confidential" / "report.html").read_text()
    names = ("a daily mean", "the sum of the layers up to daily_mean/2", "the sum of the layers up to daily_mean/3")
    used = [energy(home, i) for home in HOMES for i in range(DAYS) if (home, i) != ("E", 2)]
    for clamp, name in zip(CLAMPS, names, strict=True):
        lost_kwh = sum(max(wh / 1000 - clamp, 0) for wh in used) / len(HOMES) / DAYS
        assert f"The clamp lowers {name} by {format_number(lost_kwh)} kWh per household on average." in page


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


def test_synthetic_households_lie_in_every_layer(house):
    house.roster([("A", FIRST, None)])
    house.write(FIRST, day(3), clamp=LAYERED)
    run = house.context().run_file
    bits = np.zeros(AUDITED.groups, bool)
    worlds = synthetic_worlds.SyntheticWorlds.of(run, AUDITED, group_bits=bits, household_bits=bits)
    totals = np.maximum(worlds.varying_wh, 0).sum(axis=-1).ravel()
    assert all(((totals > 1000 * low) & (totals < 1000 * high)).any() for low, high in ((0, 2), (2, 10), (10, 40)))
