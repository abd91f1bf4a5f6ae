"""`agedp.smooth`: from a release folder and public files alone, into a folder of its own."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from datetime import date, timedelta

import pandas as pd
import pyarrow.parquet as pq
import pytest
from frictionless import Package

import agedp
from agedp.local_files import atomic_files
from agedp.release_folder.result_tables import read_guarantee
from agedp.smoothed_estimates.smoothed_release import default_region
from agedp_data.errors import InputError
from tests.agedp.smoothed_estimates.conftest import DAYS, FIRST, SKIPPED, publish
from tests.source_path import source_path

LAST = FIRST + timedelta(days=DAYS - 1)
TABLE, SUMS = "daily_average_smoothed.parquet", "SHA256SUMS"


def weather(days: int = DAYS) -> pd.Series:
    index = pd.date_range(FIRST, periods=days)
    return pd.Series([5.0 + i % 7 for i in range(days)], index)


@pytest.fixture(scope="module")
def estimates(received):
    return agedp.smooth(received)


@pytest.fixture(scope="module")
def saved(estimates, tmp_path_factory):
    return estimates.save(tmp_path_factory.mktemp("saved") / "estimates")


def files(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_published_columns_are_those_of_the_release(estimates, received):
    for series, name in (("daily_mean", "daily_averages"), ("tariffs", "daily_averages_tariffs")):
        published = agedp.open_release(received).table(name).set_index(["day", "group"])
        lines = estimates.table[estimates.table["series"] == series].reset_index().set_index(["day", "group"])
        own = lines.dropna(subset="published_kwh")
        assert own["published_kwh"].to_dict() == published["mean_kwh"].to_dict()
        assert own["noise_sd_kwh"].to_dict() == pytest.approx(published["noise_sd_kwh"].to_dict())
        assert own["households"].to_dict() == published["households"].to_dict()
        [empty] = lines[lines["published_kwh"].isna()].index.get_level_values("day").unique()
        assert empty.date() == SKIPPED
        assert lines[["estimate_kwh", "low_kwh", "high_kwh", "live_kwh"]].notna().all(axis=None)
        assert len(lines.index.get_level_values("day").unique()) == DAYS


def test_readings_and_everything_confidential_are_without_influence(smoothed_house, houses, tmp_path):
    other = publish(houses(tmp_path / "other"), wh=1900)
    sums = [(house.folder / "confidential" / "sums.parquet").read_bytes() for house in (smoothed_house, other)]
    assert sums[0] != sums[1]
    assert smoothed_house.files() == other.files()
    folders = [tmp_path / str(number) / "release" for number in range(2)]
    for house, folder in zip((smoothed_house, other), folders, strict=True):  # without run file, ledger and readings
        shutil.copytree(house.folder / "release", folder)
    first, second = (files(agedp.smooth(folder, weather=weather()).save(folder.parent / "out")) for folder in folders)
    assert first == second
    assert len(first) == 5


@pytest.fixture(scope="module")
def without_publisher(received, tmp_path_factory):
    blocked = ("dask", "distributed", "opendp", "prefect", "matplotlib", "sqlalchemy.dialects.sqlite")
    code = f"import sys; sys.modules |= dict.fromkeys({blocked!r})\nsys.argv = ['agedp', *sys.argv[1:]]\n"
    code += "from agedp_flows.__main__ import main; main()"
    target = tmp_path_factory.mktemp("light") / "out"
    command = [sys.executable, "-c", code, "smooth", str(received), "--out", str(target), "--region", "none"]
    environment = {**os.environ, "PYTHONPATH": source_path()}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False), target


def test_a_reader_needs_neither_dask_nor_prefect_nor_opendp(without_publisher):
    done, target = without_publisher
    assert (done.returncode, done.stderr) == (0, "")
    assert "Calendar: weekdays and the days from 22 December to 1 January. Without weather" in done.stdout
    assert (target / TABLE).is_file()


def test_every_file_says_what_the_estimates_are_and_where_they_come_from(saved, received):
    record, table = json.loads((saved / "smoothing.json").read_text()), pq.read_schema(saved / TABLE)
    statement = agedp.open_release(received).statement
    assert read_guarantee(table).items() <= record.items()
    assert record["ledger"] == statement["ledger"]
    assert (record["population"], record["region"], record["weather"]) == ("homes", "GB-ENG", None)
    assert record["days"] == {"first": str(FIRST), "last": str(LAST)}
    assert [(entry["series"], entry["group"]) for entry in record["amplitudes"]] == [("daily_mean, tariffs", "all")]
    package = json.loads((saved / "datapackage.json").read_text())
    page = (saved / "smoothed.html").read_text()
    for text in (record["meaning"], package["description"], " ".join(page.split())):
        assert "from the published noisy averages and the calendar; it says nothing more about any household" in text
        assert "What the clamp cuts off is not in them" in text
        assert "without weather" in text
        assert "of the tenth of days that the calendar explains least" in text
    assert "<script" not in page
    assert not re.search(r"20[2-9]\d-\d\d-\d\d", page), "no date but those of the days"
    assert page.count("<figure") == 3
    assert Package(str(saved / "datapackage.json")).validate().valid
    [resource] = [entry for entry in package["resources"] if entry["path"] == TABLE]
    assert resource["schema"]["primaryKey"] == ["day", "series", "group"]


def test_the_weather_is_named_by_its_file_and_hash(received, tmp_path):
    path = tmp_path / "heathrow.csv"
    lines = [f"{day:%Y-%m-%d},{value},{value - 3}" for day, value in weather().items()]
    path.write_text("\n".join(["date,mean,minimum", *lines]) + "\n")
    with pytest.raises(InputError, match=r"heathrow.csv: several columns of numbers, of date, mean, minimum"):
        agedp.smooth(received, weather=path)
    path.write_text("\n".join(["date,mean_temp", *(line.rpartition(",")[0] for line in lines)]) + "\n")
    of_file, of_series = agedp.smooth(received, weather=path), agedp.smooth(received, weather=weather())
    assert of_file.source["meaning"].startswith("An estimate from the published noisy averages, the calendar and the")
    assert (of_file.source["weather"]["file"], of_file.source["weather"]["column"]) == ("heathrow.csv", "mean_temp")
    assert of_series.source["weather"]["file"] == "a table in memory"
    pd.testing.assert_frame_equal(of_file.table, of_series.table)
    assert not of_file.table.equals(agedp.smooth(received).table)


def test_a_changed_release_is_refused(received, tmp_path):
    folder = shutil.copytree(received, tmp_path / "release")
    (folder / "STATEMENT.md").write_text("nothing was published")
    with pytest.raises(InputError, match=r"STATEMENT\.md differs from the published file"):
        agedp.smooth(folder)


REFUSED = {
    "the release folder itself": (".", "is the release folder, whose files must not change"),
    "inside the release folder": ("deep/estimates", "is inside the release folder"),
    "around it": ("..", "has other files already"),
    "another release": ("../copy", "is a release folder"),
    "a file": ("SHA256SUMS", "is inside the release folder"),
    "a URL": ("s3://bucket/estimates", "is a URL"),
    "of another population": ("../others", "has estimates of another population"),
    "of a rehearsal": ("../rehearsed", "has estimates of a rehearsal"),
    "of another ledger": ("../lost", "has estimates of another ledger"),
    "a file elsewhere": ("../notes.txt", "is a file"),
}


@pytest.mark.parametrize(("place", "message"), REFUSED.values(), ids=REFUSED)
def test_estimates_are_written_beside_the_release_only(estimates, saved, received, tmp_path, place, message):
    release = shutil.copytree(received, tmp_path / "release")
    shutil.copytree(received, tmp_path / "copy")
    (tmp_path / "notes.txt").write_text("mine")
    others = shutil.copytree(saved, tmp_path / "others")
    (others / "smoothing.json").write_text(json.dumps({"population": "streets"}))
    record = json.loads((saved / "smoothing.json").read_text())
    for name, changed in {"rehearsed": {"rehearsal": True}, "lost": {"ledger": {"id": "0" * 32}}}.items():
        folder = shutil.copytree(saved, tmp_path / name)
        (folder / "smoothing.json").write_text(json.dumps({**record, **changed}))
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    result = replace(estimates, release=release)
    with pytest.raises(InputError, match=message):
        result.save(place if ":" in place else release / place)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_smoothing_again_replaces_the_files_and_completes_an_interrupted_folder(received, saved, monkeypatch, tmp_path):
    folder = shutil.copytree(saved, tmp_path / "estimates")
    (folder / "notes.txt").write_text("mine")
    again = agedp.smooth(received, region="none")
    write, count = atomic_files.write, iter(range(9))

    def interrupted(path, content, **keys):
        if next(count) == 2:
            raise OSError(28, "No space left on device")
        write(path, content, **keys)

    monkeypatch.setattr(atomic_files, "write", interrupted)
    with pytest.raises(OSError, match="No space"):
        again.save(folder)
    monkeypatch.undo()
    sums = ["sha256sum", "--check", "--quiet", SUMS]
    assert subprocess.run(sums, cwd=folder, capture_output=True, check=False).returncode != 0
    again.save(folder)
    assert subprocess.run(sums, cwd=folder, capture_output=True, check=False).returncode == 0
    fresh = again.save(tmp_path / "fresh")
    assert files(folder) == {**files(fresh), "notes.txt": b"mine"}
    assert files(folder)[TABLE] != files(saved)[TABLE]


def test_the_region_follows_from_a_dataset_or_zone_that_has_one(received):
    statement = agedp.open_release(received).read_statement()
    assert default_region(statement) == "GB-ENG"
    layout = {"household": "id", "time": "at", "time_format": "iso", "stamp": "end", "energy": "e", "unit": "kWh"}

    def of_zone(zone):
        columns = {**layout, "zone": "UTC", "day_zone": zone, "missing": []}
        changed = statement.contract.input.model_copy(update={"dataset": "long", "columns": columns})
        return statement.model_copy(update={"contract": statement.contract.model_copy(update={"input": changed})})

    assert default_region(of_zone("Australia/Sydney")) == "AU-NSW"
    with pytest.raises(InputError, match=r"of zone UTC, .* Give the region \(region, --region\), such as"):
        default_region(of_zone("UTC"))
    with pytest.raises(InputError, match=r"or 'none'; did you mean 'GB-ENG'\?$"):
        agedp.smooth(received, region="GB-EN")


def test_a_release_without_averages_is_refused_in_one_line(house):
    house.fill([FIRST])
    house.write(FIRST, FIRST)
    house.edit(
        ('[series.daily_mean]\nstatistic = "mean"\nclamp_kwh = 50\n',
         '[series.use]\nstatistic = "distribution"\nclamp_kwh = 50\nbins_kwh = [0, 10, 50]\n')
    )  # fmt: skip
    house.run(today=date(2026, 1, 1))
    with pytest.raises(InputError, match="the release has no daily averages, and only daily averages are smoothed"):
        agedp.smooth(house.release)
