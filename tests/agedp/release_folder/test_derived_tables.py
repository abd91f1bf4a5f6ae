"""Months and quantiles on their whole way: derived from what is published, recomputed by others, verified."""

from __future__ import annotations

import json
import shutil
from datetime import date, timedelta

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from frictionless import Package

from agedp import release_verification
from agedp.release_folder.origin import list_published_files
from agedp.release_verification import open_release
from agedp_data.errors import InputError
from tests.agedp.release_folder.resealed import reseal
from tests.compatibility.fixtures import unpack

FIRST, DAYS = date(2013, 1, 29), 34
LAST = FIRST + timedelta(days=DAYS - 1)
HOMES = {"A": "Std", "B": "Std", "C": "Std", "D": "ToU", "E": "ToU"}
MEAN = '[series.daily_mean]\nstatistic = "mean"\nclamp_kwh = 50\n'
LAYERED = '[series.use]\nstatistic = "mean"\nclamp_kwh = [5, 40]\nshare = [0.1, 0.2]\n'
GROUPS = '[series.tariff]\nstatistic = "mean"\nclamp_kwh = 40\nby = "tariff"\nshare = 0.2\n'
COUNTS = '[series.counts]\nstatistic = "distribution"\nclamp_kwh = 40\nbins_kwh = [0, 5, 10, 40]\nshare = 0.3\n'
FILES = [*(f"averages_by_{period}.parquet" for period in ("month", "week", "year")), "daily_quantiles.parquet"]
START = {"month": "MS", "week": "W-SUN", "year": "YS"}


@pytest.fixture(scope="module")
def kept(houses, tmp_path_factory):
    """Five households from 29 January to 3 March; E leaves on 20 February, after which D alone is too few."""
    house = houses(tmp_path_factory.mktemp("derived"))
    days = [FIRST + timedelta(days=i) for i in range(DAYS)]
    house.london({(home, day, slot): 150 + slot for home in HOMES for day in days for slot in range(48)})
    lines = [f"{home},{FIRST},{'2013-02-20' if home == 'E' else ''},{tariff}" for home, tariff in HOMES.items()]
    (house.folder / "roster.csv").write_text("\n".join(["household_id,from,to,tariff", *lines]) + "\n")
    house.write(FIRST, LAST, rest=LAYERED + GROUPS + COUNTS)
    house.edit((MEAN, f"{MEAN}share = 0.2\n"), ("[population]", f"averages_by = {[*START]}\n[population]"))
    house.run(today=date(2026, 1, 1))
    house.release.verify()
    return house


@pytest.fixture
def folder(kept, houses, tmp_path):
    return houses(shutil.copytree(kept.folder, tmp_path / "house")).release


def daily_sums(release, series):
    """Noisy sums and variances [Wh, Wh^2] of a mean by day and group, layers added, from its tables by pandas alone."""
    if series == "use":
        upper = pd.read_parquet(release.path / "daily_average_layers.parquet")
        days = pd.concat([pd.read_parquet(release.path / "daily_averages_use.parquet"), upper])
    else:
        end = "" if series == "daily_mean" else f"_{series}"
        days = pd.read_parquet(release.path / f"daily_averages{end}.parquet")
    days = days.assign(day=pd.to_datetime(days["day"]))
    days["variance"] = (1000 * days["noise_sd_kwh"] * days["households"]) ** 2
    by = days.groupby(["day", "group"])
    return by.agg(
        energy_wh=("noisy_sum_wh", "sum"), variance=("variance", "sum"), households=("households", "first")
    ).reset_index()


@pytest.mark.parametrize("series", ["daily_mean", "tariff", "use"])
@pytest.mark.parametrize("period", START)
def test_periods_equal_those_that_pandas_adds_up(kept, period, series):
    days = daily_sums(kept.release, series)
    expected = days.groupby([days["day"].dt.to_period(START[period][0]), "group"]).agg(
        energy_wh=("energy_wh", "sum"),
        variance=("variance", "sum"),
        household_days=("households", "sum"),
        number=("day", "count"),
    )
    table = kept.release.period_averages(period)
    table = table[table["series"] == series]
    assert len(table) == len(expected)
    for row in table.to_dict("records"):
        days_of = expected.loc[(pd.Period(row["first_day"], START[period][0]), row["group"])]
        wh = 1000 * days_of["household_days"]
        assert row["mean_kwh"] == pytest.approx(days_of["energy_wh"] / wh, rel=1e-12)
        assert row["noise_sd_kwh"] == pytest.approx(days_of["variance"] ** 0.5 / wh, rel=1e-9)
        assert (row["days_released"], row["household_days"]) == (days_of["number"], days_of["household_days"])
        length = (row["last_day"] - row["first_day"]).days + 1
        assert row["is_complete"] == (days_of["number"] == length)
        assert row["low_kwh"] < row["mean_kwh"] < row["high_kwh"]


def test_a_month_has_the_noise_of_a_day_by_the_root_of_its_days(kept):
    table = kept.release.period_averages("month").set_index(["series", "first_day"])
    day = pd.read_parquet(kept.release.path / "daily_averages.parquet")["noise_sd_kwh"].iloc[10]
    february = table.loc[("daily_mean", "2013-02-01")]
    # 20 days of 5 and 8 of 4 households
    assert february["noise_sd_kwh"] == pytest.approx(day * 5 * 28**0.5 / (20 * 5 + 8 * 4), rel=1e-9)


def test_the_interval_of_a_month_holds_as_often_as_it_says(kept):
    rng, runs = np.random.default_rng(7), 40_000
    rows = [row for name in ("use/1", "use/2") for row in kept.rows(name) if row.day[:7] == "2013-02"]
    assert len(rows) == 56
    noise = np.zeros(runs)
    for scale in (row.scale for row in rows):  # a difference of geometric numbers
        ends = rng.geometric(-np.expm1(-1 / scale), (2, runs))
        noise += ends[0] - ends[1]
    table = kept.release.period_averages("month").set_index(["series", "first_day"])
    row = table.loc[("use", "2013-02-01")]
    half_width = (row["high_kwh"] - row["mean_kwh"]) * row["household_days"] * 1000
    assert (np.abs(noise) <= half_width + 0.5).mean() == pytest.approx(0.95, abs=0.005)


def test_layers_of_a_month_add_up_to_their_mean(kept):
    table = kept.release.period_averages("month")
    months = table.pivot_table(index="first_day", columns="series", values="mean_kwh")
    assert (months["use/1"] + months["use/2"]).tolist() == pytest.approx(months["use"].tolist(), rel=1e-12)
    ranges = table.groupby("series")[["above_kwh", "clamp_kwh"]].first().T.to_dict("list")
    assert (ranges["use"], ranges["use/1"], ranges["use/2"]) == ([0, 40], [0, 5], [5, 40])


def test_the_peak_and_the_median_are_in_their_intervals(kept):
    table = kept.release.quantiles()
    assert len(table) == 8 * DAYS
    assert set(table["series"]) == {"counts"}
    assert (table["low_kwh"] <= table["value_kwh"]).all()
    assert (table["value_kwh"] <= table["high_kwh"]).all()
    use_kwh = sum(150 + slot for slot in range(48)) / 1000  # of every household on every day
    assert ((table["low_kwh"] <= use_kwh) & (use_kwh <= table["high_kwh"])).mean() > 0.95


def test_the_tables_are_described_and_listed(kept):
    release = kept.release
    assert set(FILES) <= set(release.checksums)
    assert {path.name for path in list_published_files(release.path)} >= set(FILES)
    assert release.other_files() == ()
    assert Package(str(release.path / "datapackage.json")).validate().valid
    resources = {one["path"]: one for one in json.loads(kept.files()["datapackage.json"])["resources"]}
    assert resources[FILES[0]]["schema"]["primaryKey"] == ["first_day", "series", "group", "version"]
    assert resources[FILES[3]]["schema"]["primaryKey"] == ["day", "series", "group", "share"]
    for name in FILES:
        keys = pq.read_table(release.path / name, columns=resources[name]["schema"]["primaryKey"]).to_pylist()
        assert len({tuple(key.values()) for key in keys}) == len(keys)
    assert "a period once none of its days is still to be released" in resources[FILES[1]]["description"]
    assert "the share 1 is the largest use" in resources[FILES[3]]["description"]


def forge(folder, name, table):
    pq.write_table(table, folder.path / name)
    reseal(folder.path)


def with_column(table, column, values):
    place = table.schema.get_field_index(column)
    return table.set_column(place, table.schema.field(place), pa.array(values, table.schema.field(place).type))


@pytest.mark.parametrize("name", FILES)
def test_verification_finds_a_forged_value_or_row(folder, name):
    table = pq.read_table(folder.path / name)
    for column in ("low_kwh", "series"):
        values = table[column].to_pylist()
        values[2] = values[2] + 0.1 if column == "low_kwh" else "daily"
        forge(folder, name, with_column(table, column, values))
        with pytest.raises(InputError, match=rf"^{name}: \d{{4}}-\d\d-\d\d(, ToU)?, column {column}: .* differs from"):
            folder.verify()
    for rows, side in ((table.slice(1), "table"), (pa.concat_tables([table, table.slice(0, 1)]), "ledger")):
        forge(folder, name, rows)
        with pytest.raises(InputError, match=rf"^{name}: \d{{4}}-\d\d-\d\d.*: the {side} lacks this row"):
            folder.verify()


@pytest.mark.parametrize("coverage", ["0.5", "NaN"])
def test_verification_finds_intervals_of_another_coverage(folder, coverage):
    for name in FILES:  # of several the first by name is reported
        table = pq.read_table(folder.path / name)
        guarantee = json.loads(table.schema.metadata[b"agedp"])
        guarantee["interval"]["coverage"] = coverage
        forge(folder, name, table.replace_schema_metadata({b"agedp": json.dumps(guarantee)}))
    with pytest.raises(InputError, match=rf"^{FILES[0]}: the interval in its guarantee has another coverage"):
        folder.verify()


def test_a_folder_without_a_table_gives_it_from_its_rows(folder, monkeypatch):
    monkeypatch.setattr(release_verification, "_installed", lambda _: "9.9")  # that of an earlier version
    stored = {period: folder.period_averages(period) for period in START}
    quantiles = folder.quantiles()
    for name in FILES:
        (folder.path / name).unlink()
    reseal(folder.path)
    folder.verify()
    for period in START:
        pd.testing.assert_frame_equal(folder.period_averages(period), stored[period])
    pd.testing.assert_frame_equal(folder.quantiles(), quantiles)


def test_a_folder_of_an_early_version_gives_months_too(tmp_path):
    release = unpack("classical-archive", tmp_path).release
    assert not {path.name for path in release.iterdir()} & set(FILES)
    opened = open_release(release)
    opened.verify()
    means = [pd.read_parquet(path) for path in release.glob("daily_averages*.parquet")]
    months = opened.period_averages("month")
    assert months["days_released"].sum() == sum(len(table) for table in means)
    total_wh = (months["mean_kwh"] * months["household_days"] * 1000).sum()
    assert total_wh == pytest.approx(sum(table["noisy_sum_wh"].sum() for table in means), rel=1e-9)


def test_what_was_not_released_has_no_derived_table(published_twice):
    release = published_twice.release
    with pytest.raises(InputError, match=r"^daily_quantiles.parquet: the release has no daily distribution"):
        release.quantiles()
    with pytest.raises(InputError, match=r"^period = 'quarter': must be one of 'week', 'month', 'year'$"):
        release.period_averages("quarter")
