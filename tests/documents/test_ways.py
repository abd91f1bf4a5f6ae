"""The documented ways to a folder under the notions of the papers: their lines are short, and each leads to one."""

from __future__ import annotations

import re
import shlex
from datetime import timedelta

import pytest

from agedp_data import clock
from agedp_data.datasets.synthetic import write_ausgrid, write_london
from tests.command import CommandFolder
from tests.documents.pages import ROOT, blocks

PAGE = (ROOT / "docs" / "your-files.md").read_text("utf-8")
FILES = "'incoming/*.csv' "
[ARCHIVE] = [block.text for block in blocks(PAGE) if "way=archive" in block.marks.split()]
ARCHIVES = ARCHIVE.splitlines()
NIGHTLY = [block.text for block in blocks(PAGE) if "way=nightly" in block.marks.split()]
WRITERS = {"london": write_london, "ausgrid": write_ausgrid}
MOST_CHARACTERS = 120
CONTINUED = re.compile(r" *\\\n\s*")
NOTIONS = ("discounted", "temporal", "age-dependent")


def test_a_way_has_few_commands_and_characters():
    for way in NIGHTLY:
        init, *further = way.splitlines()
        assert further == [*(["agedp calibrate"] if "--publish-envelope" in init else []), "agedp run"]
    for line in [*ARCHIVES, *(way.splitlines()[0] for way in NIGHTLY)]:
        command, files, options = line.partition(FILES)
        assert (command, files) in (("agedp sanitise ", FILES), ("agedp init ", FILES)), line
        assert len(options) <= MOST_CHARACTERS, (len(options), line)
        assert "--epsilon " in options, line
    for lines in (ARCHIVES, NIGHTLY):
        notions = [notion for notion in NOTIONS for line in lines if f"--notion {notion}" in line]
        assert {*notions, *("age-dependent" for line in lines if "--protect today" in line)} == {*NOTIONS}


def test_no_line_of_the_first_pages_is_longer():
    for page in ("your-files", "choose", "start"):
        for block in blocks((ROOT / "docs" / f"{page}.md").read_text("utf-8")):
            for line in CONTINUED.sub(" ", block.text).splitlines():
                words = line.removeprefix("$ ").split(maxsplit=3)
                if words[:2] in (["agedp", "init"], ["agedp", "sanitise"]) and len(words) > 3:
                    assert len(words[3]) <= MOST_CHARACTERS, (page, len(words[3]), line)


@pytest.fixture(scope="module", params=["london", pytest.param("ausgrid", marks=pytest.mark.long)])
def here(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> CommandFolder:
    """A folder with the files of six weeks that ended nine days ago, of the next eight, and a kernel."""
    folder = tmp_path_factory.mktemp(request.param)
    last, homes = clock.today() - timedelta(days=9), {"households": 60, "seed": 5}
    for name, first, days in (("incoming", last - timedelta(days=41), 42), ("later", last + timedelta(days=1), 8)):
        (folder / name).mkdir()
        WRITERS[request.param](folder / name, first_day=first, days=days, **homes)
    for block in blocks(PAGE):
        if block.file == "kernel.csv":
            (folder / block.file).write_text(block.text)
    return CommandFolder(folder)


@pytest.mark.parametrize("line", ARCHIVES, ids=lambda line: line.split(" --out ")[1].split()[0])
def test_an_archive_is_handed_over_after_one_command(here, line):
    words = shlex.split(line)
    here.succeed(*words[1:], "--quiet")
    out = words[words.index("--out") + 1]
    assert here.load("verify", out)
    assert here.succeed(*words[1:], "--json").count('"released": []')


@pytest.mark.parametrize(
    "way", NIGHTLY, ids=lambda way: "-".join(way.split()[4:5] + ["estimated"] * ("calibrate" in way))
)
def test_a_nightly_series_is_handed_over_after_a_night(here, way, tmp_path):
    lines = [shlex.split(line)[1:] for line in way.splitlines()]
    night = CommandFolder(here.copy(tmp_path / "night").folder)
    for line in lines[:-1]:
        night.succeed(*line, "--quiet")
    for path in sorted((night.folder / "later").iterdir()):  # what was delivered until the first night
        path.rename(night.folder / "incoming" / f"later-{path.name}")
    assert len(night.load(*lines[-1])["released"]) in (6, 7)  # a day is two days old, by the clock of its zone
    assert night.load(*lines[-1])["released"] == []
    night.succeed("verify", "out/release")
