"""datapackage.json: what the Frictionless library accepts, with every file and column as they are."""

from __future__ import annotations

import copy
import hashlib
import json
import shutil
from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from frictionless import FrictionlessException, Package, Resource

from agedp_data import table_schemas
from agedp_data.statement.datapackage import datapackage
from agedp_data.statement.document import read_statement

FIRST = date(2013, 1, 1)
CREDITS = (
    'title = "Use of three homes"\nsource = "The utility\'s own meters"\nlicence = "CC-BY-4.0"\n'
    'contact = "open-data@utility.example"'
)
TWO = (
    'clamp_kwh = 50\nshare = 0.5\nby = "tariff"\n[series.small-Homes]\nstatistic = "mean"\nclamp_kwh = 5\nshare = 0.5\n'
)


@pytest.fixture(scope="module")
def release(houses, tmp_path_factory):
    """Two series of four days, one of them by group."""
    house = houses(tmp_path_factory.mktemp("house"))
    days = [FIRST + timedelta(days=i) for i in range(4)]
    house.london({(home, day, slot): 200 for home in "ABCD" for day in days for slot in range(48)})
    roster = ["household_id,from,to,tariff", *(f"{home},{FIRST},,{'Std' if home < 'C' else 'ToU'}" for home in "ABCD")]
    (house.folder / "roster.csv").write_text("\n".join(roster) + "\n")
    house.write(FIRST, days[-1])
    text = house.run_file.read_text().replace('title = "Made up"', CREDITS).replace("clamp_kwh = 50\n", TWO)
    house.run_file.write_text(text)
    house.run(today=date(2026, 1, 1))
    found = house.release
    found.verify()
    return found


@pytest.fixture(scope="module")
def package(release):
    return json.loads((release.path / "datapackage.json").read_text())


def table_of(package):
    return next(one for one in package["resources"] if "schema" in one)


def problems(package):
    """Return what the library says against a descriptor."""
    try:
        return [str(error) for error in Package.metadata_validate(package)]
    except FrictionlessException as error:
        return [str(error)]


def test_the_library_accepts_it_as_a_package_of_the_second_version(package):
    assert package["$schema"] == "https://datapackage.org/profiles/2.0/datapackage.json"
    assert problems(package) == []


@pytest.mark.parametrize(
    "edit",
    [
        lambda one: one.pop("resources"),
        lambda one: one.update(title=3),
        lambda one: table_of(one).pop("path"),
        lambda one: table_of(one)["schema"]["fields"][0].update(type="dat"),
        lambda one: table_of(one)["schema"]["fields"].append({"type": "string"}),
        lambda one: table_of(one)["schema"].update(primaryKey=["nothing"]),
        lambda one: one["licenses"].append("CC0-1.0"),
    ],
)
def test_the_library_would_say_so_if_it_were_none(package, edit):
    other = copy.deepcopy(package)
    edit(other)
    assert problems(other)


def validated(folder):
    """Return what the plain call says, as a recipient makes it."""
    return Package(str(folder / "datapackage.json")).validate()


def test_the_plain_call_of_the_library_finds_the_release_valid_and_reads_every_table(release):
    report = validated(release.path)
    assert report.valid, report.flatten(["title", "note"])
    rows = {task.name: task.stats.get("rows") for task in report.tasks if task.type == "table"}
    read = {path.stem.lower(): pq.read_metadata(path).num_rows for path in release.path.glob("*.parquet")}
    assert list(rows.values()) == [read[name.replace("-", "_")] if name not in read else read[name] for name in rows]
    assert len(rows) == 2


@pytest.mark.parametrize("name", ["daily_averages.parquet", "ledger_rows.jsonl"])
def test_the_plain_call_of_the_library_finds_a_changed_file(release, tmp_path, name):
    folder = Path(shutil.copytree(release.path, tmp_path / "copy"))
    if name.endswith(".jsonl"):
        (folder / name).write_bytes((folder / name).read_bytes() + b"\n")
    else:
        table = pq.read_table(folder / name)
        i = table.schema.get_field_index("households")
        none = pa.array([0] * len(table), table.schema.field(i).type)
        pq.write_table(table.set_column(i, table.schema.field(i), none), folder / name)
    report = validated(folder)
    assert [task.place for task in report.tasks if not task.valid] == [name]


def test_the_library_finds_every_file_with_its_size_and_checksum(release, package):
    for one in package["resources"]:
        plain = {key: one[key] for key in ("name", "path", "hash")}
        plain["bytes"] = one.get("bytes", (release.path / one["path"]).stat().st_size)
        whole = Resource.from_descriptor({**plain, "type": "file"}, basepath=str(release.path)).validate()
        assert whole.valid, whole.flatten()
        spoilt = {**plain, "type": "file", "bytes": plain["bytes"] + 1}
        assert not Resource.from_descriptor(spoilt, basepath=str(release.path)).validate().valid


def test_it_lists_every_file_but_itself_as_the_checksums_do(release, package):
    listed = {one["path"]: one["hash"] for one in package["resources"]}
    sums = {name: f"sha256:{digest}" for name, digest in release.checksums.items() if name != "datapackage.json"}
    assert listed == sums
    names = [one["name"] for one in package["resources"]]
    assert len(set(names)) == len(names)
    for one in package["resources"]:
        content = (release.path / one["path"]).read_bytes()
        size = len(content) if one["type"] == "file" else None
        assert (one.get("bytes"), one["hash"]) == (size, f"sha256:{hashlib.sha256(content).hexdigest()}")


def test_every_column_of_every_table_has_type_unit_and_meaning(release, package):
    kinds = {"date32[day]": "date", "string": "string", "int32": "integer", "int64": "integer", "double": "number"}
    dictionaries = {one["path"]: one["schema"] for one in package["resources"] if "schema" in one}
    assert set(dictionaries) == {path.name for path in release.path.glob("*.parquet")}
    assert len(dictionaries) == 2
    for path, schema in dictionaries.items():
        table = pq.read_table(release.path / path)
        assert [(one["name"], one["type"]) for one in schema["fields"]] == [
            (field.name, kinds[str(field.type)]) for field in table.schema
        ]
        meant = {field.name: field.metadata[b"description"].decode() for field in table_schemas.DAILY_AVERAGES}
        assert {one["name"]: one["description"] for one in schema["fields"]} == meant
        assert all(one["constraints"]["required"] for one in schema["fields"])
        rows = table.to_pylist()
        for one in schema["fields"]:
            assert all(row[one["name"]] >= one["constraints"].get("minimum", row[one["name"]]) for row in rows)
        key = [tuple(row[name] for name in schema["primaryKey"]) for row in rows]
        assert len(set(key)) == len(rows) > 0
        assert {one["name"]: one.get("unit") for one in schema["fields"]} == {
            "day": None, "group": None, "revision": "1", "households": "household", "noisy_sum_wh": "Wh",
            "mean_kwh": "kWh", "noise_sd_kwh": "kWh", "low_kwh": "kWh", "high_kwh": "kWh", "published_on": None,
            "epsilon": "1", "version": "1",
        }  # fmt: skip


def test_it_names_source_licence_and_contact_as_the_run_file_does(package):
    assert package["title"] == "Use of three homes"
    assert package["licenses"] == [{"name": "CC-BY-4.0"}]
    assert package["sources"] == [{"title": "The utility's own meters"}]
    assert package["contributors"] == [{"title": "open-data@utility.example", "roles": ["contact"]}]


def test_a_licence_in_words_is_a_title_and_what_is_not_said_is_left_out(release):
    claim = {key: part for key, part in release.statement.items() if key not in ("title", "source", "contact")}
    claim |= {"population": "Höme  sweet!", "rehearsal": 1, "licence": "ask us first"}
    package = datapackage(read_statement(json.dumps(claim)), {})
    assert package["licenses"] == [{"name": "other", "title": "ask us first"}]
    assert not {"sources", "contributors"} & set(package)
    assert package["name"] == "h-me-sweet"
    assert package["title"] == "REHEARSAL: Daily averages of Höme  sweet!"
    assert problems(package) == []


def test_series_that_differ_in_case_only_are_two_resources(release):
    content = (release.path / "daily_averages.parquet").read_bytes()
    names = ("daily_averages.parquet", "daily_averages_a.parquet", "daily_averages_A.parquet")
    package = datapackage(release.read_statement(), dict.fromkeys(names, content))
    assert len({one["name"] for one in package["resources"]}) == 3
    assert problems(package) == []
