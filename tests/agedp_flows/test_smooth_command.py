"""`agedp smooth`: what a reader of a release folder is shown, and one line for everything that is wrong."""

from __future__ import annotations

import json
import shutil
from datetime import date, timedelta
from pathlib import Path

import pytest

from tests.agedp.conftest import House
from tests.command import CommandFolder

FIRST, DAYS = date(2013, 3, 1), 12


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    house = House(tmp_path_factory.mktemp("published"))
    house.fill([FIRST + timedelta(days=i) for i in range(DAYS)])
    house.write(FIRST, FIRST + timedelta(days=DAYS - 1))
    house.run(today=date(2026, 1, 1))
    return house.folder / "release"


@pytest.fixture
def reader(release: Path, tmp_path: Path) -> CommandFolder:
    shutil.copytree(release, tmp_path / "received")
    lines = [f"{FIRST + timedelta(days=i)},{5 + i % 3},{i}" for i in range(DAYS)]
    (tmp_path / "weather.csv").write_text("\n".join(["day,mean,rain", *lines]) + "\n")
    return CommandFolder(tmp_path)


def test_json_has_the_record_of_the_sources(reader: CommandFolder) -> None:
    words = ("smooth", "received", "--out", "out", "--weather", "weather.csv", "--temperature-column", "mean")
    printed = reader.load(*words, "--region", "none")
    record = json.loads((reader.folder / "out" / "smoothing.json").read_text())
    assert printed["folder"] == "out"
    assert (printed["weather"], printed["region"]) == (record["weather"], "none")
    assert printed["weather"]["file"] == "weather.csv"
    assert "Weather: mean of weather.csv, 5.0 to 7.0 degrees C." in reader.succeed(*words, "--region", "none")
    [cell] = printed["cells"]
    assert (cell["series"], cell["group"], cell["days"], cell["published"]) == ("daily_mean", "all", DAYS, DAYS)
    assert reader.succeed(*words, "--quiet") == ""


REFUSED = {
    "two columns of numbers": (("--weather", "weather.csv"), "several columns of numbers, of day, mean, rain. Name"),
    "a column without a table": (("--temperature-column", "mean"), "give --weather FILE too"),
    "a table that is not there": (("--weather", "wether.csv"), "Name the weather table; did you mean 'weather.csv'?"),
    "an unknown region": (("--region", "GB-ENGLAND"), "such as 'GB-ENG', or 'none'; did you mean 'GB-ENG'?"),
    "a URL": (("--out", "https://example.com/x"), "--out: is a URL; name a folder of this machine"),
    "the release itself": (("--out", "received"), "received: is the release folder, whose files must not change"),
}  # fmt: skip


@pytest.mark.parametrize(("options", "message"), REFUSED.values(), ids=REFUSED)
def test_what_is_wrong_is_one_line_and_nothing_is_written(
    options: tuple[str, ...], message: str, reader: CommandFolder
) -> None:
    before = sorted(reader.folder.rglob("*"))
    ended = reader.agedp("smooth", "received", *(("--out", "out") if "--out" not in options else ()), *options)
    assert (ended.status, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert message in ended.err
    assert sorted(reader.folder.rglob("*")) == before


def test_the_folder_around_a_release_is_named_as_such(reader: CommandFolder) -> None:
    for words in (("smooth", ".", "--out", "out"), ("verify", ".")):
        ended = reader.agedp(*words)
        assert (ended.status, ended.out) == (2, "")
        assert ended.err.endswith(". is not a release folder; name the release folder itself, such as received\n")
