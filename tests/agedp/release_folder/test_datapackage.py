"""datapackage.json: accepted by the Frictionless library, with every file and column as they are."""

from __future__ import annotations

import json
from datetime import date, timedelta

import pyarrow.parquet as pq
import pytest
from frictionless import FrictionlessException, Package

from agedp_data.series.mean import AVERAGES, AVERAGES_BY
from agedp_data.statement.datapackage import datapackage

FIRST = date(2013, 1, 1)
CREDITS = (
    'title = "Use of three homes"\nsource = "The utility\'s own meters"\nlicence = "CC-BY-4.0"\n'
    'contact = "open-data@utility.example"'
)
TWO = 'clamp_kwh = 50\nshare = 0.5\n[series.small-Homes]\nstatistic = "mean"\nclamp_kwh = 5\nshare = 0.5\n'
UNITS = {
    "day": None, "group": None, "revision": "1", "households": "household", "noisy_sum_wh": "Wh", "mean_kwh": "kWh",
    "noise_sd_kwh": "kWh", "low_kwh": "kWh", "high_kwh": "kWh", "published_on": None, "epsilon": "1", "version": "1",
}  # fmt: skip
PERIOD_UNITS = {
    "first_day": None, "last_day": None, "series": None, "group_column": None, "group": None, "version": "1",
    "above_kwh": "kWh", "clamp_kwh": "kWh", "days_released": "1", "days_in_period": "1", "is_complete": "1",
    "fewest_households": "household", "most_households": "household", "household_days": "1", "mean_kwh": "kWh",
    "noise_sd_kwh": "kWh", "low_kwh": "kWh", "high_kwh": "kWh", "published_on": None,
}  # fmt: skip
"""`household_days` has no unit of its own: a version without these tables compares the units that it knows."""


@pytest.fixture(scope="module")
def release(houses, tmp_path_factory):
    """Two series of two days."""
    house = houses(tmp_path_factory.mktemp("house"))
    house.fill([FIRST, FIRST + timedelta(days=1)])
    house.write(FIRST, FIRST + timedelta(days=1), least=3)  # as many households as there are
    house.edit(('title = "Made up"', CREDITS), ("clamp_kwh = 50\n", TWO))
    house.run(today=date(2026, 1, 1))
    house.release.verify()
    return house.release


@pytest.fixture(scope="module")
def package(release):
    return json.loads((release.path / "datapackage.json").read_text())


def problems(package):
    """Return what the library says against a descriptor."""
    try:
        return [str(error) for error in Package.metadata_validate(package)]
    except FrictionlessException as error:
        return [str(error)]


def test_every_column_has_type_unit_and_meaning(release, package):
    kinds = {"date32[day]": "date", "string": "string", "int32": "integer", "int64": "integer", "double": "number"}
    dictionaries = {one["path"]: one["schema"] for one in package["resources"] if "schema" in one}
    assert set(dictionaries) == {path.name for path in release.path.glob("*.parquet")}
    for path, dictionary in dictionaries.items():
        is_daily = path.startswith("daily")
        schema = AVERAGES.schema if is_daily else AVERAGES_BY["month"].schema
        meanings = {field.name: field.metadata[b"description"].decode() for field in schema}
        table = pq.read_table(release.path / path)
        fields, rows = dictionary["fields"], table.to_pylist()
        assert [(one["name"], one["type"]) for one in fields] == [
            (one.name, kinds[str(one.type)]) for one in table.schema
        ]
        assert {one["name"]: one["description"] for one in fields} == meanings
        assert {one["name"]: one.get("unit") for one in fields} == (UNITS if is_daily else PERIOD_UNITS)
        for one in fields:
            assert one["constraints"]["required"]
            assert all(row[one["name"]] >= one["constraints"].get("minimum", row[one["name"]]) for row in rows)
        assert len({tuple(row[name] for name in dictionary["primaryKey"]) for row in rows}) == len(rows) > 0


def test_series_that_differ_in_case_only_are_two_resources(release):
    content = (release.path / "daily_averages.parquet").read_bytes()
    names = ("daily_averages.parquet", "daily_averages_a.parquet", "daily_averages_A.parquet")
    package = datapackage(release.read_statement(), dict.fromkeys(names, content))
    assert len({one["name"] for one in package["resources"]}) == 3
    assert problems(package) == []
