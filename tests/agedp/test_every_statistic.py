"""The contract of a statistic, on its whole way, by layout and scheduler: counted, drawn once, published, verified.

Every test runs on each series of `every_statistic.TABLES`; a statistic that has none there fails the first one.
"""

from __future__ import annotations

import json
import math
import re
import shutil
from collections import Counter
from dataclasses import replace
from datetime import date
from functools import cache

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from frictionless import Package

from agedp import release_verification
from agedp.ledger_transfer import recover, verify
from agedp.pipeline import run_stages
from agedp.release_folder.partitions import list_files
from agedp.release_folder.result_tables import parquet_bytes
from agedp.run_context import RunContext
from agedp.stages.publish import publish_release, write_folder_as_of
from agedp_data import mechanisms
from agedp_data.errors import InputError, LedgerError, Refused
from agedp_data.mechanisms import standard_deviation
from agedp_data.series.series import STATISTICS
from tests.agedp.conftest import ended_in_draw
from tests.agedp.every_statistic import (
    FIRST,
    LEAVES,
    NIGHTS,
    SENSITIVITIES,
    SHARES,
    TABLES,
    build,
    expected,
)
from tests.agedp.release_folder.resealed import reseal
from tests.agedp.reports.html import faults_of
from tests.books import forget

VALUES = {
    "daily_averages": ("noisy_sum_wh", "_kwh", 1000), "daily_average_layers": ("noisy_sum_wh", "_kwh", 1000),
    "daily_distribution": ("households_noisy", "", 1), "daily_profile": ("noisy_sum_wh", "_kwh", 1000),
    "daily_coverage": ("usable_noisy", "", 1), "period_releases": ("noisy_sum_wh", "_kwh", 1000),
    "profile_releases": ("noisy_weighted_wh", "_kwh", 1000),
}  # fmt: skip
"""Column of the released number by kind of table, ending of the columns of its noise, and what a unit of it is."""
SERIES = [*SENSITIVITIES]


def stored(folder):
    return {name: (folder / name).read_bytes() for name in list_files(folder)}


def night(house, today, scheduler="threads"):
    now = pd.Timestamp(today, tz="UTC").to_pydatetime()
    summary = run_stages(RunContext.load(house.run_file, now=now, scheduler=scheduler))
    summary.check_not_refused()
    return summary


@pytest.fixture(scope="module")
def worlds(houses, tmp_path_factory):
    """By layout and scheduler, made once: the population after three nights, the second killed in a draw; no noise."""

    @cache
    def of(layout, scheduler):
        house = build(houses(tmp_path_factory.mktemp("every")), layout)
        house.layout, house.nights = layout, []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(mechanisms, "discrete_laplace", lambda exact, **_: np.asarray(exact))
            for number, today in enumerate(NIGHTS):
                if number == 1:
                    with ended_in_draw(17):
                        night(house, today)
                night(house, today, scheduler if today == NIGHTS[-1] else "threads")
                house.nights.append(stored(house.folder / "release"))
        house.released = [row for row in house.rows() if row.state == "released"]
        return house

    return of


@pytest.fixture(params=[("single", "threads"), ("monthly", "processes")], ids="-".join)
def kept(request, worlds):
    return worlds(*request.param)


@pytest.fixture
def single(worlds):
    return worlds("single", "threads")


def copied(house, place):
    copy = type(house)(shutil.copytree(house.folder, place))
    copy.layout, copy.nights, copy.released = house.layout, house.nights, house.released
    return copy


@pytest.fixture
def made(kept, tmp_path):
    return copied(kept, tmp_path / "house")


@pytest.fixture
def copy(single, tmp_path):
    return copied(single, tmp_path / "house")


def released_rows(house, series):
    return {row.day: row for row in house.released if row.series == series}


def table_of(house, series):
    """The published lines of a series and the columns of its value: of a layer or level its part of the table."""
    name, _, part = series.partition("/")
    for file, table in house.release.series_tables().items():
        about = json.loads(table.schema.metadata[b"agedp"])
        kind = next(kind for kind in sorted(VALUES, key=len, reverse=True) if file.startswith(kind))
        if about["of"] != name or (kind == "daily_average_layers") != (part in ("2", "3")):
            continue
        lines = table.to_pandas()
        if "layer" in lines:
            lines = lines[lines["layer"] == int(part)]
        if "level" in lines:
            lines = lines[lines["level"] == part]
        return lines, VALUES[kind]
    raise AssertionError(series)


def test_every_statistic_has_a_series_here(single):
    assert {of["statistic"] for of in single.release.statement["contract"]["series"].values()} == {
        statistic.KIND for statistic in STATISTICS
    }


@pytest.mark.parametrize("series", SERIES)
def test_every_row_is_counted_from_the_readings(single, series):
    rows, counted = released_rows(single, series), expected(series)
    assert [*rows] == [*counted]
    for day, row in rows.items():
        values = dict(zip(row.cells, zip(row.values, row.households, strict=True), strict=True))
        assert values == counted[day]


@pytest.mark.parametrize("series", SERIES)
def test_the_noise_is_that_of_the_largest_change_at_the_share(single, series):
    for row in released_rows(single, series).values():
        assert row.sensitivity == SENSITIVITIES[series]
        assert row.loss == math.ceil(1e9 * row.sensitivity / row.scale) == SHARES[series] * 5_000_000


@pytest.mark.parametrize("series", SERIES)
def test_every_line_has_value_noise_and_interval_of_its_row(single, series):
    lines, (column, ending, unit) = table_of(single, series)
    by_day = {f"{day:%Y-%m-%d}": of for day, of in lines.groupby("day")}
    rows = released_rows(single, series)
    assert [*by_day] == [*rows]
    for day, row in rows.items():
        of_day = by_day[day]
        assert of_day[column].tolist() == [*row.values]
        divisor = np.full(len(of_day), float(unit))
        if column != "households_noisy":
            size = "households" if "households" in of_day else "household_days"
            assert of_day[size].tolist() == [*row.households]
            divisor = divisor * of_day[size] * of_day.get("weight", 1)
        deviation = standard_deviation(row.scale) / (1 if column in ("households_noisy", "usable_noisy") else divisor)
        assert of_day[f"noise_sd{ending}"].tolist() == pytest.approx(
            np.broadcast_to(deviation, len(of_day)).tolist(), rel=1e-12
        )
        assert set(of_day["epsilon"]) == {row.loss / 1e9}
        starts = [30 * (slot % 48) for slot in range(len(of_day))]
        assert of_day.get("start_minute", pd.Series(starts)).tolist() == starts
        if series == "counts":
            assert of_day[["bin_low_kwh", "bin_high_kwh"]].to_numpy().tolist() == [
                [0, 2.5],
                [2.5, 5],
                [5, 10],
                [10, 40],
            ]
        elif series == "below":
            assert of_day["bin_high_kwh"].tolist() == [2.5, 5, 10] * of_day["group"].nunique()
        if column == "households_noisy":
            continue
        mean = of_day["coverage" if column == "usable_noisy" else "mean_kwh"]
        assert mean.tolist() == pytest.approx((np.array(row.values) / divisor).tolist(), rel=1e-12)
        q = math.exp(-1 / row.scale)
        for end, sign in ((f"low{ending}", -1), (f"high{ending}", 1)):
            [width] = {round(float(wide)) for wide in (of_day[end] - mean) * divisor * sign}
            outside = 2 * q ** (width + 1) / (1 + q)
            assert outside <= 0.05 < outside / q


START, END = "day:date32[day] group:string", "published_on:date32[day] epsilon:double version:int32"
MEANS = "mean_kwh:double noise_sd_kwh:double low_kwh:double high_kwh:double"
FORMS = {
    "daily_averages_total": f"{START} revision:int32 households:int64 noisy_sum_wh:int64 {MEANS} {END}",
    "daily_distribution": f"{START} revision:int32 bin_low_kwh:double bin_high_kwh:double households_noisy:int64 "
    f"noise_sd:double {END}",
    "daily_profile": f"{START} start_minute:int32 minutes:int32 revision:int32 households:int64 noisy_sum_wh:int64 "
    f"{MEANS} {END}",
    "daily_coverage": f"{START} revision:int32 households:int64 usable_noisy:int64 noise_sd:double coverage:double "
    f"low:double high:double {END}",
}
"""Frozen columns of published tables."""


@pytest.mark.parametrize("name", FORMS)
def test_the_columns_of_a_table_never_change(single, name):
    schema = single.release.series_tables()[f"{name}.parquet"].schema
    assert " ".join(f"{field.name}:{field.type}" for field in schema) == FORMS[name]
    assert not any(field.nullable for field in schema)


@pytest.mark.parametrize("series", ["counts", "below", "shape", "kinds"])
def test_a_row_of_other_cells_never_reaches_the_ledger(copy, series):
    row = [row for row in copy.released if row.series == series][-1]
    at = {"day": "2013-03-31", "seq": 0, "at": "", "hash": "", "values": (), "input_ended_at": "2013-04-01T00:00:00Z"}
    with copy.ledger() as ledger:
        for cells in (row.cells[::-1], row.cells[1:2] + row.cells[:1] + row.cells[2:], ("x", *row.cells[1:])):
            wrong = replace(row, **at, cells=cells)
            with pytest.raises(LedgerError, match="not those of its contract's"):
                ledger.release(
                    "homes", series, wrong.day, admit=lambda _, row=wrong: row, draw=lambda row: [1] * len(row.cells)
                )
    assert not [row for row in copy.rows(series) if row.day == "2013-03-31"]


@pytest.mark.parametrize("name", ["counts", "below", "shape", "usable"])
def test_a_statistic_can_be_published_alone(house, name):
    build(house)
    alone = next(f"[series.{name}]{text}" for text in TABLES.split("[series.") if text.startswith(f"{name}]"))
    house.write(
        FIRST, FIRST, rest=re.sub(r"share = .*\n", "", alone.replace(f"[series.{name}]{name}]", f"[series.{name}]"))
    )
    house.edit(('[series.daily_mean]\nstatistic = "mean"\nclamp_kwh = 50\n', ""))
    house.run(today=NIGHTS[0])
    house.release.verify()
    [table] = house.release.series_tables().values()
    assert table.num_rows
    assert faults_of((house.folder / "release" / "report.html").read_text()) == []


def test_losses_of_a_day_and_of_all_days_are_those_of_all_series(single):
    statement = single.release.read_statement()
    bounds = {bound.name: bound.epsilon for bound in statement.bounds}
    assert bounds["day"] == "0.5"
    assert float(bounds["total"]) == pytest.approx(33 * 0.4 + 4 * 0.025 + 0.025 + 0.05)
    assert (statement.household_account.day, statement.household_account.total) == (bounds["day"], bounds["total"])
    assert statement.days.released == 33


def test_each_row_is_drawn_once_and_a_later_night_draws_none(made):
    before, files = made.rows(), stored(made.folder / "release")
    assert Counter((row.day, row.series) for row in before).most_common(1)[0][1] == 1
    assert night(made, NIGHTS[-1]).checked.sums.by_day == {}
    assert (made.rows(), stored(made.folder / "release")) == (before, files)


@pytest.mark.parametrize("book", ["true_means", "true_counts", "coverage"])
def test_lost_confidential_records_are_made_again(copy, book):
    key = lambda line: tuple(map(str, line.values()))  # noqa: E731
    alone = ("shape", "usable") if book == "coverage" else SERIES  # others have it beside their values
    before = sorted((line for line in copy.records(book) if line["series"] in alone), key=key)
    assert before
    forget(copy.folder / "confidential", book)
    assert night(copy, NIGHTS[-1]).checked.sums.by_day
    assert sorted((line for line in copy.records(book) if line["series"] in alone), key=key) == before


def test_rows_are_restored_from_the_folder(kept, tmp_path):
    recover(kept.folder / "release", f"sqlite:///{tmp_path / 'again.sqlite'}", at=NIGHTS[-1])
    with type(kept)(tmp_path).ledger("again.sqlite") as again:
        assert again.verify() == ()
        assert [(row.day, row.series, row.values) for row in again.rows()] == [
            (row.day, row.series, row.values) for row in kept.rows()
        ]


def test_rows_and_figures_are_the_same_on_either_way(kept, single):
    assert [(row.day, row.series, row.cells, row.values) for row in kept.rows()] == [
        (row.day, row.series, row.cells, row.values) for row in single.rows()
    ]
    kept.release.verify()
    assert kept.release.statement["figures"] == single.release.statement["figures"]


def test_the_folder_of_every_night_verifies_and_is_made_again(made, tmp_path):
    for number, (today, files) in enumerate(zip(NIGHTS, made.nights, strict=True)):
        for name, content in files.items():
            (tmp_path / str(number) / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / str(number) / name).write_bytes(content)
        verify(tmp_path / str(number), ledger=f"sqlite:///{made.folder / 'ledger.sqlite'}")
        assert write_folder_as_of(made.session(today=NIGHTS[-1]), today)
        assert stored(made.folder / "release") == files


def test_the_reader_gets_the_same_tables_in_either_layout(made):
    before = dict(made.release.series_tables())
    assert any(path.is_dir() for path in made.release.path.iterdir()) == (made.layout == "monthly")
    derived = {name: made.release.table(name) for name in ("averages_by_week", "consistent_daily_averages")}
    other = {"single": "monthly", "monthly": "single"}[made.layout]
    made.edit((f'layout = "{made.layout}"', f'layout = "{other}"'))
    publish_release(made.session(today=NIGHTS[-1]))
    made.release.verify()
    assert {*made.release.series_tables()} == {*before}
    for name, table in made.release.series_tables().items():
        assert table.equals(before[name], check_metadata=True)
    for name, table in derived.items():
        pd.testing.assert_frame_equal(made.release.table(name), table)
    assert any(path.is_dir() for path in made.release.path.iterdir()) == (other == "monthly")


FILES = (
    "daily_averages", "daily_average_layers", "daily_averages_total", "daily_averages_levels", "daily_distribution",
    "daily_distribution_below", "daily_profile", "daily_coverage", "period_releases", "period_releases_months",
    "profile_releases", "averages_by_week", "averages_by_month", "averages_by_year", "profile_by_month",
    "consistent_daily_averages", "daily_quantiles",
)  # fmt: skip


def change(value):
    """Another value of the same type, as near as it gets."""
    if isinstance(value, str):
        return f"{value}x"
    return (
        value + pd.Timedelta(days=1).to_pytimedelta()
        if isinstance(value, date)
        else value + (1 if isinstance(value, int) else 1e-4)
    )


@pytest.mark.parametrize("name", FILES)
def test_a_changed_cell_and_a_lost_line_of_any_table_are_named(copy, name):
    path = copy.folder / "release" / f"{name}.parquet"
    table = pq.read_table(path)
    columns = [name for name in table.column_names if name not in ("day", "first_day", "revision")]
    place = len(table) // 2
    for column in columns[:: max(1, len(columns) // 2)]:
        values = table[column].to_pylist()
        values[place] = change(values[place])
        index = table.column_names.index(column)
        field = table.schema.field(index)
        path.write_bytes(parquet_bytes(table.set_column(index, field, pa.array(values, field.type))))
        reseal(copy.release.path)
        with pytest.raises(InputError, match=rf"^{path.name}: \d{{4}}-\d\d-\d\d.*(column {column}: |lacks this row)"):
            copy.release.verify()
    for changed, side in ((table.slice(1), "table"), (pa.concat_tables([table, table.slice(0, 1)]), "ledger")):
        path.write_bytes(parquet_bytes(changed))
        reseal(copy.release.path)
        with pytest.raises(InputError, match=rf"^{path.name}: \d{{4}}-\d\d-\d\d.*: the {side} lacks this row"):
            copy.release.verify()


def test_a_table_is_missed_and_a_foreign_one_named(copy):
    release = copy.release.path
    assert {path.stem for path in release.glob("*.parquet")} == {*FILES}
    derived = {f"{name}.parquet" for name in FILES if not name.startswith(tuple(VALUES))}
    for name in {path.name for path in release.glob("*.parquet")} - derived - {"daily_quantiles.parquet"}:
        content = (release / name).read_bytes()
        (release / name).unlink()
        reseal(release)
        with pytest.raises(InputError, match=f"{name}: the folder lacks this table"):
            copy.release.verify()
        (release / name).write_bytes(content)
    shutil.copy(release / "daily_profile.parquet", release / "daily_profile_mine.parquet")
    reseal(release)
    with pytest.raises(InputError, match=r"daily_profile_mine\.parquet: the ledger lacks this table"):
        copy.release.verify()


@pytest.mark.parametrize(("old", "new"), [
    (f"E,{FIRST},{LEAVES},", f"E,{FIRST},2013-02-06,"), ("north,n1", "north,n9"),
    (f"G,{FIRST},,two words", f"G,{FIRST},,Std"),
], ids=["days", "level", "group"])  # fmt: skip
def test_the_roster_of_a_released_day_or_period_cannot_change(copy, old, new):
    roster = copy.folder / "roster.csv"
    roster.write_text(roster.read_text().replace(old, new, 1))
    with pytest.raises(Refused, match=r"other (households|groups) on 2013-0"):
        night(copy, NIGHTS[-1])
    forget(copy.folder / "confidential", "released_rosters")  # then the numbers of households are compared
    with pytest.raises(Refused, match="other households on 2013-0"):
        night(copy, NIGHTS[-1])


def test_every_file_is_described_and_its_keys_are_unique(kept):
    release = kept.release
    report = Package(str(release.path / "datapackage.json")).validate()
    assert report.valid, report.flatten(["title", "note"])
    assert release.other_files() == ()
    resources = json.loads((release.path / "datapackage.json").read_text())["resources"]
    for resource in resources:
        if "schema" in resource:
            paths = [resource["path"]] if isinstance(resource["path"], str) else resource["path"]
            keys = resource["schema"]["primaryKey"]
            lines = [
                tuple(line.values())
                for path in paths
                for line in pq.read_table(release.path / path, columns=keys).to_pylist()
            ]
            assert len(set(lines)) == len(lines) > 0
    faults = faults_of((release.path / "report.html").read_text())
    assert [fault for fault in faults if not fault.startswith("a href=")] == []  # folders of months


STATED = {
    "layers": r"daily_mean/1, daily_mean/2 and daily_mean/3 are layers of one mean",
    "levels": r"levels/street and levels/area are levels of one hierarchy",
    "layer 3": r"\| daily_mean/3 \| [^\n]*\| daily averages \| from 10 to 40 kWh a day \|",
    "profile": r"daily load profiles \| 0.5 kWh a half-hour, 9 kWh a day \|",
    "coverage": r"daily numbers of households with a usable day \|[^\n]* one household \|",
    "counts": r"daily counts by range of use",
    "weights": r"\(2 x weekdays \+ 5 x days of weekends\) x sensitivity / epsilon",
    "consistency": r"the groups of levels/area add up to total",
}


@pytest.mark.parametrize("of", STATED)
def test_the_statement_says_what_each_series_counts(single, of):
    words = (single.release.path / "STATEMENT.md").read_text()
    assert re.search(STATED[of], words)
    assert "('" not in words


def daily(kept, name):
    """Released sums and variances of a mean by day and group, layers added [Wh]."""
    tables = [
        table.to_pandas()
        for file, table in kept.release.series_tables().items()
        if file.startswith("daily_average") and json.loads(table.schema.metadata[b"agedp"])["of"] == name
    ]
    lines = pd.concat(tables).assign(day=lambda of: pd.to_datetime(of["day"]))
    lines["variance"] = (1000 * lines["noise_sd_kwh"] * lines["households"]) ** 2
    sums = {"wh": ("noisy_sum_wh", "sum"), "variance": ("variance", "sum"), "households": ("households", "first")}
    return lines.groupby(["day", "group"]).agg(**sums).reset_index()


@pytest.mark.parametrize(("period", "length"), [("week", "W-SUN"), ("month", "M"), ("year", "Y")])
@pytest.mark.parametrize("name", ["daily_mean", "total", "levels"])
def test_averages_of_periods_are_those_that_pandas_adds_up(single, name, period, length):
    days = daily(single, name)
    table = single.release.period_averages(period)
    table = table[table["series"].isin([name, *(f"{name}/{level}" for level in ("street", "area"))])]
    sums = days.groupby([days["day"].dt.to_period(length), "group"])[["wh", "variance", "households"]].sum()
    numbers = days.groupby([days["day"].dt.to_period(length), "group"])["wh"].count()
    assert len(table) == len(sums)
    for row in table.to_dict("records"):
        key = pd.Period(row["first_day"], length), row["group"]
        household_wh = 1000 * sums.loc[key, "households"]
        assert row["mean_kwh"] == pytest.approx(sums.loc[key, "wh"] / household_wh, rel=1e-12)
        assert row["noise_sd_kwh"] == pytest.approx(sums.loc[key, "variance"] ** 0.5 / household_wh, rel=1e-9)
        assert (row["days_released"], row["household_days"]) == (numbers[key], sums.loc[key, "households"])
        assert row["is_complete"] == (numbers[key] == (row["last_day"] - row["first_day"]).days + 1)
        assert row["low_kwh"] < row["mean_kwh"] < row["high_kwh"]


def test_profiles_of_months_drawn_and_derived_agree(single):
    keys = ["group", "day_kind", "start_minute"]
    drawn = single.release.table("profile_releases").set_index(keys)["mean_kwh"]
    derived = single.release.profiles_by_month()
    february = derived[derived["first_day"].dt.month == 2].set_index(keys)
    assert set(february["is_complete"]) == {1}
    assert drawn.to_dict() == pytest.approx(february["mean_kwh"].to_dict(), rel=1e-12)


def test_groups_layers_and_levels_add_up_to_their_totals(single):
    table = single.release.consistent_averages()
    table["wh"] = table["mean_kwh"] * table["households"] * 1000
    assert {"total", "levels/street", "levels/area"} <= set(table["series"])
    for _, of_day in table[table["day"].dt.date <= LEAVES].groupby("day"):  # then a household is alone in its area
        by_level = {level: lines.set_index("group")["wh"] for level, lines in of_day.groupby("series")}
        assert by_level["levels/area"].sum() == pytest.approx(by_level["total"].sum(), rel=1e-12)
        streets = by_level["levels/street"].groupby(lambda group: group.partition("/")[0]).sum()
        assert streets.to_dict() == pytest.approx(by_level["levels/area"].to_dict(), rel=1e-12)
    months = single.release.period_averages("month").pivot_table(index="first_day", columns="series", values="mean_kwh")
    layers = months[[f"daily_mean/{i}" for i in (1, 2, 3)]].sum(axis=1)
    assert layers.tolist() == pytest.approx(months["daily_mean"].tolist(), rel=1e-12)


DERIVED = sorted({name for name in FILES if not name.startswith(tuple(VALUES))} | {"daily_quantiles"})
PERIODS = ("week", "month", "year")


@pytest.mark.parametrize("coverage", ["0.5", "NaN"])
def test_intervals_of_another_coverage_are_named(copy, coverage):
    for name in DERIVED:  # of several the first by name is reported
        path = copy.release.path / f"{name}.parquet"
        table = pq.read_table(path)
        guarantee = json.loads(table.schema.metadata[b"agedp"])
        if "interval" in guarantee:
            guarantee["interval"]["coverage"] = coverage
        pq.write_table(table.replace_schema_metadata({b"agedp": json.dumps(guarantee)}), path)
    reseal(copy.release.path)
    with pytest.raises(InputError, match=r"^averages_by_month.parquet: the interval in its guarantee has another cov"):
        copy.release.verify()


def test_a_folder_without_a_table_gives_it_from_its_rows(copy, monkeypatch):
    monkeypatch.setattr(release_verification, "_installed", lambda _: "9.9")  # that of an earlier version
    stored_tables = {period: copy.release.period_averages(period) for period in PERIODS}
    quantiles = copy.release.quantiles()
    for name in (*(f"averages_by_{period}" for period in PERIODS), "daily_quantiles", "consistent_daily_averages"):
        (copy.release.path / f"{name}.parquet").unlink()
    reseal(copy.release.path)
    copy.release.verify()
    for period in PERIODS:
        pd.testing.assert_frame_equal(copy.release.period_averages(period), stored_tables[period])
    pd.testing.assert_frame_equal(copy.release.quantiles(), quantiles)
    with pytest.raises(InputError, match="the release has no such table"):
        copy.release.consistent_averages()
