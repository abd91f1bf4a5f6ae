"""A mean with a list of clamps on its whole way: cut exactly, drawn once, published, verified, amended and back."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from agedp import privacy_audit, synthetic_worlds
from agedp.ledger_transfer import recover
from agedp.release_folder.result_tables import parquet_bytes
from agedp.reports.svg import format_number
from agedp.stages.amend import amend, preview_amendment
from agedp_data import mechanisms
from agedp_data.audit.lower_bounds import AuditDatasets
from agedp_data.epsilon import NANO
from agedp_data.errors import InputError
from agedp_data.series.layered_mean import Layer
from agedp_data.series.series_terms import layer_number, mean_name
from agedp_flows.text.plan_text import amendment_lines
from tests.agedp.conftest import ended_in_draw
from tests.agedp.release_folder.resealed import reseal
from tests.agedp.test_distribution import DAYS, FIRST, HOMES, TODAY, build, day, energy

CLAMPS = (2, 10, 40)
LAYERED = "[2, 10, 40]\nshare = [0.5, 0.3, 0.2]\nmissing_kwh = 3"
AVERAGES, UPPER = "daily_averages.parquet", "daily_average_layers.parquet"
CAPS = "max_day_epsilon = 0.6\nepsilon_total = 9\n"
MODEL = '[model]\nsource = "declared"\nbasis = "made up"\nassume = "markov"\nkernel = "kernel.csv"\n'
PROMISES = {
    "classical": "epsilon_per_day = 0.5\n",
    "w-event": 'window_days = 3\nepsilon_per_window = 1\nspend = "remaining"\n',
    "age-dependent": 'age_days = 2\nrisk = 0.5\nmethod = "tight"\nsecret = "day"\n',
    "temporal": 'alpha = 2\nhorizon_days = 4\nbudget = "even"\n',
    "discounted": 'discount = "exponential"\nrate = 0.9\nepsilon = 1\nschedule = "constant"\nhorizon_days = 4\n'
    'clock = "data-day"\n',
    "w-event, delta": 'window_days = 30\nepsilon_per_window = 1\nspend = "even"\ndelta = 0.01\n',
    "neighbourhood": 'delta_kwh = 4\nwindow_days = 3\nepsilon_per_window = 0.5\nspend = "per-request"\n',
}
NEEDS_MODEL = ("age-dependent", "temporal")


def as_drawn(exact, **_):
    return np.asarray(exact)


@pytest.fixture(scope="module")
def kept(houses, tmp_path_factory):
    """Six homes, four days, three layers, published without noise."""
    house = build(houses(tmp_path_factory.mktemp("layers")))
    house.write(FIRST, day(DAYS - 1), clamp=LAYERED)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mechanisms, "discrete_laplace", as_drawn)
        house.run(today=TODAY)
    return house


@pytest.fixture
def made(kept, houses, tmp_path):
    return houses(shutil.copytree(kept.folder, tmp_path / "house"))


def cut(energy_wh, low_kwh, high_kwh):
    return min(max(energy_wh - 1000 * low_kwh, 0), 1000 * (high_kwh - low_kwh))


def counted(number, homes=HOMES):
    """What each home uses on a day; E has no reading on the third day, which counts as 3 kWh."""
    return [3000 if (home, number) == ("E", 2) else energy(home, number) for home in homes]


def test_published_layers_add_up_to_the_clamped_mean(kept):
    lowest = kept.release.table()
    upper = kept.release.table("daily_average_layers")
    assert upper["layer"].tolist() == [2, 3] * DAYS
    for number in range(DAYS):
        sums = [lowest["noisy_sum_wh"][number], *upper["noisy_sum_wh"][2 * number : 2 * number + 2]]
        edges = [(0, 2), (2, 10), (10, 40)]
        assert sums == [sum(cut(wh, *edge) for wh in counted(number)) for edge in edges]
        assert sum(sums) == sum(min(wh, 40_000) for wh in counted(number))
    # widths 2, 8 and 30 kWh at half, 0.3 and 0.2 of 0.5: scales 8, 53.3 and 300 kWh, over 6 homes
    noise = [*lowest["noise_sd_kwh"][:1], *upper["noise_sd_kwh"][:2]]
    assert noise == pytest.approx([2**0.5 * scale / 6 for scale in (8, 160 / 3, 300)], rel=1e-6)
    assert [*lowest["epsilon"][:1], *upper["epsilon"][:2]] == [0.25, 0.15, 0.1]


def test_layers_have_a_file_of_their_own_that_says_what_they_are(kept):
    release = kept.release
    release.verify()
    averages, upper = release.averages()[AVERAGES], release.layers()[UPPER]
    assert [*release.series_tables()] == [AVERAGES, UPPER]
    assert upper.column_names == [*averages.column_names, "layer"]
    metadata = {name: json.loads(table.schema.metadata[b"agedp"]) for name, table in release.series_tables().items()}
    assert metadata[AVERAGES]["clamp_kwh_by_version"] == {"1": "2"}
    layers = {"2": {"above_kwh": "2", "clamp_kwh": "10"}, "3": {"above_kwh": "10", "clamp_kwh": "40"}}
    assert metadata[UPPER]["layers_by_version"] == {"1": layers}
    assert {of["of"] for of in metadata.values()} == {"daily_mean"}
    package = json.loads((release.path / "datapackage.json").read_text())
    [lowest] = [of["description"] for of in package["resources"] if of["path"] == AVERAGES]
    assert lowest.startswith("daily_mean, layer 1, up to 2 kWh: averages over households by day")
    [resource] = [of for of in package["resources"] if of["path"] == UPPER]
    assert "layer 3: mean energy per household above 10 and up to 40 kWh a day" in resource["description"]
    assert resource["schema"]["primaryKey"] == ["day", "group", "revision", "layer"]
    words = (release.path / "STATEMENT.md").read_text()
    assert re.search(r"\| daily_mean/3 \| 1 \| [^|]+ \| daily averages \| from 10 to 40 kWh a day \|", words)
    assert "daily_mean/1, daily_mean/2 and daily_mean/3 are layers of one mean." in words
    page = (release.path / "report.html").read_text()
    assert "daily_mean, layer 2, up to 10 kWh; daily_mean, layer 3, up to 40 kWh" in page
    assert "Mean use per household and day: daily_mean, layer 2" not in page


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("mean_kwh", 0.0, "2013-01-01, layer 2, column mean_kwh: 0.0 differs"),
        ("noise_sd_kwh", 0.5, "2013-01-01, layer 2, column noise_sd_kwh: 0.5 differs"),
        ("layer", 4, "2013-01-01, layer 2, column layer: 4 differs"),
    ],
)
def test_a_changed_layer_is_named_by_verification(made, column, value, message):
    path = made.release.path / UPPER
    table = pq.read_table(path)
    values = [value, *table[column].to_pylist()[1:]]
    index = table.column_names.index(column)
    changed = pa.array(values, table[column].type)
    path.write_bytes(parquet_bytes(table.set_column(index, table.schema.field(index), changed)))
    with pytest.raises(InputError, match=f"{UPPER} differs from the published file"):
        made.release.verify()
    reseal(made.release.path)
    with pytest.raises(InputError, match=message):
        made.release.verify()


def test_lost_layers_are_named_by_verification(made):
    path = made.release.path / UPPER
    path.write_bytes(parquet_bytes(pq.read_table(path).slice(1)))
    reseal(made.release.path)
    with pytest.raises(InputError, match=f"{UPPER}: 2013-01-01, layer 2: the table lacks this row"):
        made.release.verify()
    path.unlink()
    reseal(made.release.path)
    with pytest.raises(InputError, match=f"{UPPER}: the folder lacks this table"):
        made.release.verify()


@pytest.mark.parametrize("draw", [2, 5])
def test_a_run_that_ended_between_two_layers_is_repeated(houses, tmp_path, draw):
    house = build(houses(tmp_path))
    house.write(FIRST, day(1), clamp=LAYERED)
    with ended_in_draw(draw):
        house.run(today=TODAY)
    house.run(today=TODAY)
    rows = house.rows()
    house.run(today=TODAY)
    assert house.rows() == rows
    assert Counter((row.day, row.series) for row in rows).most_common(1)[0][1] == 1
    assert len(rows) == 6
    assert {row.day: sum(other.loss for other in rows if other.day == row.day) for row in rows} == {
        f"{day(number)}": NANO // 2 for number in range(2)
    }
    house.release.verify()


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
    promise = f'notion = "{notion.partition(",")[0]}"\n{PROMISES[notion]}{CAPS}'
    house.write(FIRST, day(DAYS - 1), promise=promise, clamp=LAYERED, rest=MODEL if notion in NEEDS_MODEL else "")
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


def test_groups_and_total_are_consistent_in_every_layer(houses, tmp_path):
    house = build(houses(tmp_path))
    groups = '[series.tariffs]\nstatistic = "mean"\nclamp_kwh = [2, 40]\nshare = [0.3, 0.2]\nby = "tariff"\n'
    house.write(FIRST, FIRST, clamp="[2, 40]\nshare = [0.3, 0.2]", rest=groups, least=1)
    house.run(today=TODAY)
    house.release.verify()
    assert [*house.release.series_tables()] == [
        AVERAGES, "daily_averages_tariffs.parquet", UPPER, "daily_average_layers_tariffs.parquet",
    ]  # fmt: skip
    table = house.release.consistent_averages()
    assert {*table["series"]} == {"daily_mean/1", "tariffs/1", "daily_mean/2", "tariffs/2"}
    for number in (1, 2):
        layer = table[table["series"].map(layer_number) == number]
        kwh = layer["mean_kwh"] * layer["households"]
        is_total = layer["series"].map(mean_name) == "daily_mean"
        assert kwh[is_total].sum() == pytest.approx(kwh[~is_total].sum())


def test_the_clamp_of_layer_1_and_of_the_sum_are_in_the_confidential_report(kept):
    page = (kept.folder / "confidential" / "report.html").read_text()
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
