"""Levels of a hierarchy on their whole way: counted exactly, drawn once, published, consistent, verified, amended."""

from __future__ import annotations

import json
import re
import shutil
from datetime import date, timedelta
from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from agedp.ledger_transfer import recover
from agedp.release_folder.result_tables import parquet_bytes
from agedp.stages.amend import amend
from agedp_data import mechanisms
from agedp_data.epsilon import NANO
from agedp_data.errors import ContractChanged, InputError, Refused, RunFileError
from tests.agedp.release_folder import span_oracle
from tests.agedp.release_folder.resealed import reseal
from tests.books import forget

FIRST, DAYS = date(2013, 1, 1), 3
TODAY = date(2013, 6, 1)
LEVELS = ("feeder", "substation", "area")
SMALL = "south/S3/9"  # one household: this feeder is never released
AVERAGES, COUNTS = "daily_averages.parquet", "daily_distribution.parquet"
FEEDERS = {"north/S1/1": 3, "north/S1/2": 2, "north/S2/1": 2, "south/S1/1": 2, "south/S3/1": 3, SMALL: 1}
HOMES = {f"H{i:02d}": path for i, path in enumerate(path for path, number in FEEDERS.items() for _ in range(number))}
CLAMP_WH = 5000
BY = f"clamp_kwh = 5\nby = {json.dumps(LEVELS)}\nshare = [0.3, 0.2, 0.1]"
REST = (
    '[series.total]\nstatistic = "mean"\nclamp_kwh = 5\nshare = 0.1\n'
    '[series.counts]\nstatistic = "distribution"\nclamp_kwh = 5\nbins_kwh = [0, 2, 5]\nby = ["feeder", "area"]\n'
    "share = [0.2, 0.1]\n"
)


def day(number):
    return FIRST + timedelta(days=number)


def as_drawn(exact, **_):
    return np.asarray(exact)


def half_hours(changed):
    """Wh of each half-hour, some above the clamp; H03 has no reading on the second day."""
    energy = {
        (home, day(i), slot): 7 * (number + 1) * (1 + slot % 3) + i
        for number, home in enumerate(HOMES)
        for i in range(DAYS)
        for slot in range(48)
        if (home, i) != ("H03", 1)
    }
    return energy | {(home, FIRST, slot): wh for home, wh in changed.items() for slot in range(48)}


def write(house, *, changed=(), least=2, rest=REST, **keys):
    house.london(half_hours(dict(changed)))
    rows = [f"{home},{FIRST},,{','.join(reversed(path.split('/')))}" for home, path in HOMES.items()]
    (house.folder / "roster.csv").write_text("\n".join([f"household_id,from,to,{','.join(LEVELS)}", *rows]) + "\n")
    house.write(FIRST, day(DAYS - 1), least=least, rest=rest, **keys)
    house.edit(("clamp_kwh = 50", BY))
    return house


@pytest.fixture(scope="module")
def kept(houses, tmp_path_factory):
    house = write(houses(tmp_path_factory.mktemp("levels")))
    house.run(today=TODAY)
    house.release.verify()
    return house


@pytest.fixture
def made(kept, houses, tmp_path):
    return houses(shutil.copytree(kept.folder, tmp_path / "house"))


def counted(house):
    """Wh of each household-day under the clamp, by pandas from the files, with its groups of every level."""
    readings = pd.read_csv(house.folder / "input" / "a.csv")
    readings["day"] = (pd.to_datetime(readings["tstp"]) - pd.Timedelta("30min")).dt.date
    totals = readings.groupby(["LCLid", "day"])["energy(kWh/hh)"].sum().mul(1000).round().clip(upper=CLAMP_WH)
    every = pd.MultiIndex.from_product([HOMES, map(day, range(DAYS))], names=["home", "day"])
    table = totals.reindex(every, fill_value=0).rename("wh").reset_index()
    for depth, level in enumerate(reversed(LEVELS), 1):
        table[level] = table["home"].map(lambda home, depth=depth: "/".join(HOMES[home].split("/")[:depth]))
    return table


def test_exact_sums_are_those_of_an_independent_count(houses, tmp_path, monkeypatch):
    monkeypatch.setattr(mechanisms, "discrete_laplace", as_drawn)
    house = write(houses(tmp_path))
    house.run(today=TODAY)
    table, use = house.release.table(), counted(house)
    for level in LEVELS:
        rows = table[table["level"] == level]
        expected = use.groupby(["day", level])["wh"].agg(["sum", "size"])
        expected = expected[expected["size"] >= 2]
        index = list(zip(rows["day"].dt.date, rows["group"], strict=True))
        assert index == expected.index.tolist()
        assert rows["noisy_sum_wh"].tolist() == expected["sum"].tolist()
        assert rows["households"].tolist() == expected["size"].tolist()
    counts = house.release.table("daily_distribution")
    below = (use["wh"] < 2000).groupby([use["day"], use["area"]]).sum()
    lowest = counts[(counts["level"] == "area") & (counts["bin_low_kwh"] == 0)]
    assert lowest["households_noisy"].tolist() == below.tolist()
    # without noise the estimates are the exact sums again
    consistent = house.release.consistent_averages()
    wh = (consistent["mean_kwh"] * consistent["households"] * 1000).round(6)
    raw = {(row.day.date(), row.level, row.group): row.noisy_sum_wh for row in table.itertuples()}
    for row, value in zip(consistent.itertuples(), wh, strict=True):
        if row.group != "all":
            assert value == raw[row.day.date(), row.group_column, row.group]


def test_one_file_has_all_levels_of_a_table_coarser_ones_first(kept):
    release = kept.release
    assert [*release.series_tables()] == [AVERAGES, "daily_averages_total.parquet", COUNTS]
    table = release.table()
    first = table[table["day"].dt.date == FIRST]
    assert first["level"].tolist() == ["area"] * 2 + ["substation"] * 4 + ["feeder"] * 5
    groups = ["north", "south", "north/S1", "north/S2", "south/S1", "south/S3", *FEEDERS]
    assert first["group"].tolist() == [group for group in groups if group != SMALL]
    tables = release.series_tables()
    for name in (AVERAGES, COUNTS):
        assert tables[name].column_names[:3] == ["day", "group", "level"]
        assert tables[name].schema.field("level").metadata[b"description"]
    assert "level" not in tables["daily_averages_total.parquet"].column_names
    package = json.loads((release.path / "datapackage.json").read_text())
    keys = {of["path"]: of["schema"]["primaryKey"] for of in package["resources"] if "schema" in of}
    assert keys[AVERAGES] == ["day", "level", "group", "revision"]
    words = (release.path / "STATEMENT.md").read_text()
    assert re.search(r"\| daily_mean/feeder \| [^\n]+ \| feeder, substation and area \|", words)
    assert "daily_mean/feeder, daily_mean/substation and daily_mean/area are levels of one hierarchy" in words
    assert "the groups of daily_mean/area add up to total, the groups of daily_mean/substation add up to those" in words
    for name, content in kept.files().items():
        assert b"('feeder'" not in content, name
    assert "('feeder'" not in (kept.folder / "confidential" / "report.html").read_text()


def test_a_changed_level_is_named_by_verification(made):
    path = made.release.path / AVERAGES
    table = pq.read_table(path)
    values = [*table["mean_kwh"].to_pylist()[:2], 0.5, *table["mean_kwh"].to_pylist()[3:]]
    place = table.column_names.index("mean_kwh")
    changed = table.set_column(place, table.schema.field(place), pa.array(values))
    path.write_bytes(parquet_bytes(changed))
    reseal(made.release.path)
    with pytest.raises(InputError, match=f"{AVERAGES}: 2013-01-01, substation north/S1, column mean_kwh: 0.5 differs"):
        made.release.verify()


def test_estimates_of_finer_groups_add_up_to_each_coarser_one(kept):
    table = kept.release.consistent_averages()
    table["wh"] = table["mean_kwh"] * table["households"] * 1000
    assert set(table["series"]) == {"total", *(f"daily_mean/{level}" for level in LEVELS)}
    for _, of_day in table.groupby("day"):
        by_level = {level: rows.set_index("group")["wh"] for level, rows in of_day.groupby("group_column")}
        assert by_level["area"].sum() == pytest.approx(by_level["all"].sum(), rel=1e-12)
        for finer, coarser in pairwise(LEVELS):
            sums = by_level[finer].groupby(lambda group: group.rpartition("/")[0]).sum()
            for group, wh in by_level[coarser].items():
                if (finer, group) != ("feeder", "south/S3"):  # one of its feeders is too small
                    assert sums[group] == pytest.approx(wh, rel=1e-12)
    kept_values = table[table["method"] != "least squares"]
    assert set(kept_values["group"]) == {"south/S3/1"}  # beside the feeder that is too small
    assert set(kept_values["method"]) == {"released value: the released groups leave out households"}
    raw = kept.release.table().set_index(["day", "group"])
    for row in kept_values.itertuples():
        assert row.mean_kwh == pytest.approx(raw.loc[(row.day, row.group), "mean_kwh"])


def test_losses_of_levels_add_up_by_day_and_over_all_days(kept):
    rows = [row for row in kept.rows() if row.day == str(FIRST)]
    shares = {"daily_mean/feeder": 0.3, "daily_mean/substation": 0.2, "daily_mean/area": 0.1, "total": 0.1}
    shares |= {"counts/feeder": 0.2, "counts/area": 0.1}
    assert {row.series: row.loss / NANO for row in rows} == pytest.approx({name: of / 2 for name, of in shares.items()})
    assert sum(row.loss for row in rows) == NANO // 2
    lines = [
        {"series": row.series, "sensitivity": row.sensitivity, "scale": row.scale, "loss": row.loss}
        for row in kept.rows()
    ]
    losses = span_oracle.of_rows(lines, counts=("counts/feeder", "counts/area"))
    expected = span_oracle.epsilon(losses, 1e-6, sum(line["loss"] for line in lines) / NANO)
    [bound] = kept.release.span_bounds(days=None, delta="1e-6")
    assert float(bound.epsilon) == pytest.approx(expected, abs=1e-8)
    recover(kept.folder / "release", f"sqlite:///{kept.folder / 'again.sqlite'}", at=TODAY)
    assert [row.values for row in kept.rows(name="again.sqlite")] == [row.values for row in kept.rows()]


def test_one_household_changes_every_level_by_the_clamp_at_most(houses, tmp_path, monkeypatch):
    monkeypatch.setattr(mechanisms, "discrete_laplace", as_drawn)
    sums = []
    for name, wh in (("before", 0), ("after", 900)):  # a day of 0 and one far above the clamp
        (tmp_path / name).mkdir()
        house = write(houses(tmp_path / name), changed={"H05": wh}, rest="[engine]\n")
        house.edit(("[0.3, 0.2, 0.1]", "[0.5, 0.3, 0.2]"))
        house.run(today=TODAY)
        sums.append({(row.day, row.series): np.array(row.values) for row in house.rows()})
    moves = {key: int(np.abs(sums[1][key] - values).sum()) for key, values in sums[0].items()}
    assert {series: move for (of, series), move in moves.items() if of == str(FIRST)} == {
        f"daily_mean/{level}": CLAMP_WH for level in LEVELS
    }
    assert {move for (of, _), move in moves.items() if of != str(FIRST)} == {0}


def test_a_released_day_keeps_the_group_of_every_level(made):
    path = made.folder / "roster.csv"
    text = path.read_text()
    path.write_text(text.replace("1,S1,south", "1,S9,south"))
    with pytest.raises(Refused, match="the roster's column 'substation' has other groups on 2013-01-01"):
        made.run(today=TODAY)
    path.write_text(text)
    forget(made.folder / "confidential", "released_rosters")
    path.write_text(text.replace("2,S1,north", "2,S2,north"))  # then the numbers of households are compared
    with pytest.raises(Refused, match="the roster has other households on 2013-01-01"):
        made.run(today=TODAY)


def test_a_label_or_column_that_is_no_level_stops_before_a_draw(houses, tmp_path):
    house = write(houses(tmp_path))
    text = (house.folder / "roster.csv").read_text()
    (house.folder / "roster.csv").write_text(text.replace("2,S1,north", "2/a,S1,north", 1))
    with pytest.raises(InputError, match='a label in column feeder, a level of a hierarchy, contains "/"'):
        house.run(today=TODAY)
    (house.folder / "roster.csv").write_text(text.replace("substation", "substations", 1))
    with pytest.raises(RunFileError, match=r"\[series.daily_mean\] by = 'substation': the roster has no such column"):
        house.run(today=TODAY)
    assert not (house.folder / "ledger.sqlite").exists()


def test_an_amendment_begins_levels_in_the_same_file(houses, tmp_path):
    promise = 'notion = "classical"\nage_days = 0\nepsilon_per_day = 0.5\nmax_day_epsilon = 0.5\nepsilon_total = 9\n'
    house = write(houses(tmp_path), mode="live", promise=promise, rest="")
    plain = 'clamp_kwh = 5\nby = "area"'
    levels = BY.replace("[0.3, 0.2, 0.1]", "[0.5, 0.3, 0.2]")
    house.edit((BY, plain))
    house.run(today=day(1))
    assert "level" not in house.release.averages()[AVERAGES].column_names
    house.edit((plain, levels))
    with pytest.raises(ContractChanged, match=r"series.daily_mean.by"):
        house.run(today=day(2))
    amend(house.context(today=day(1)))
    house.run(today=day(2))
    house.release.verify()
    table = house.release.table()
    by_day = table.groupby(table["day"].dt.date)["level"].agg(lambda of_day: [*dict.fromkeys(of_day)]).tolist()
    assert by_day == [["area"], ["area", "substation", "feeder"]]
    words = (house.release.path / "STATEMENT.md").read_text()
    assert 'series.daily_mean.by: "area" -> ["feeder","substation","area"]' in words


def test_synthetic_households_are_the_same_ones_in_every_level(houses, tmp_path, monkeypatch):
    monkeypatch.setattr(mechanisms, "discrete_laplace", as_drawn)
    promise = 'notion = "classical"\nage_days = 0\nepsilon_per_day = 0.5\nmax_day_epsilon = 0.5\nepsilon_total = 9\n'
    house = write(houses(tmp_path), mode="rehearsal", least=1, promise=promise, rest="")
    house.edit(('rehearsal_on = "readings"', 'rehearsal_on = "synthetic"'), ("[0.3, 0.2, 0.1]", "[0.5, 0.3, 0.2]"))
    house.run(as_of=TODAY)
    table = house.release.table()
    by_level = {level: rows.set_index(["day", "group"])["noisy_sum_wh"] for level, rows in table.groupby("level")}
    for finer, coarser in pairwise(LEVELS):
        sums = by_level[finer].groupby(lambda key: (key[0], key[1].rpartition("/")[0])).sum()
        assert sums.to_dict() == by_level[coarser].to_dict()
