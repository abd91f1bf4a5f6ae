"""What the documents tell their reader to do works, and what they say it prints, it prints."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from datetime import timedelta

import pytest

from agedp.stages.publish import open_release
from agedp_data import clock, mechanisms
from agedp_data.datasets.synthetic import write_ausgrid, write_london
from agedp_data.notions import NOTIONS
from tests.command import CommandFolder
from tests.documents.pages import NOISY, ROOT, Reader, blocks, pages, repeatable_noise, screen, unprinted
from tests.source_path import source_path

# What the documents tell their reader to do works, and what they say it prints, it prints.

BLOCKS = {page: list(blocks(page.read_text("utf-8"))) for page in pages()}
FOLLOWED = [
    pytest.param(
        page, with_long, marks=pytest.mark.long if with_long else [], id=f"{page.relative_to(ROOT)}-{with_long}"
    )
    for page, found in BLOCKS.items()
    for with_long in (False, True)
    if any(block.status is not None and (block.is_long or not with_long) for block in found)
]
WRONG = [
    "```sh run\nagedp plann\n```\n",
    "```sh fails=3\nagedp verify nowhere\n```\n",
    "```sh run\necho one two\n```\n\n```text says\none three\n```\n",
    "```sh run\necho 1 kWh\n```\n\n```text says\n2 kWh\n```\n",
    "```sh run\necho 1; echo 2\n```\n\n```text says\n2\n1\n```\n",
    "```sh run\nfalse\ntrue\n```\n",
    "```sh run\nfalse | cat\n```\n",
    "```sh run\nmkdir a; cd a\n```\n\n```sh run\ncd a\n```\n",
    "```python run long\nassert 1 == 2\n```\n",
]


@pytest.fixture
def reader(tmp_path, monkeypatch):
    folder = tmp_path / "folder"
    folder.mkdir()
    reader = Reader(folder, monkeypatch)
    yield reader
    reader.close()


@pytest.mark.parametrize(("page", "with_long"), FOLLOWED)
def test_a_reader_who_follows_a_page_sees_what_it_shows(page, with_long, reader, monkeypatch):
    text = page.read_text("utf-8")
    if page.name in NOISY:
        assert "Noise is drawn anew" in text
        monkeypatch.setattr(mechanisms, "discrete_laplace", repeatable_noise)
    reader.follow(text, with_long=with_long)


@pytest.mark.parametrize("wrong", WRONG)
def test_a_page_with_a_wrong_command_or_a_wrong_output_fails(wrong, reader):
    with pytest.raises(AssertionError):
        reader.follow(wrong, with_long=True)


# The documented ways to a folder under the notions of the papers: their lines are short, and each leads to one.

PAGE = (ROOT / "docs" / "your-files.md").read_text("utf-8")
FILES = "'incoming/*.csv' "
[ARCHIVE] = [block.text for block in blocks(PAGE) if "way=archive" in block.marks.split()]
ARCHIVES = ARCHIVE.splitlines()
NIGHTLY = [block.text for block in blocks(PAGE) if "way=nightly" in block.marks.split()]
WRITERS = {"london": write_london, "ausgrid": write_ausgrid}
MOST_CHARACTERS = 120
CONTINUED = re.compile(r" *\\\n\s*")
NOTIONS_SHOWN = ("discounted", "temporal", "age-dependent")


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
        notions = [notion for notion in NOTIONS_SHOWN for line in lines if f"--notion {notion}" in line]
        assert {*notions, *("age-dependent" for line in lines if "--protect today" in line)} == {*NOTIONS_SHOWN}


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


# The README: its first screen names what agedp is about, and its screen is what `make run` prints.

README = (ROOT / "README.md").read_text("utf-8")
FIRST_SCREEN_LINES = 25
_DEMO = """
from agedp_data import mechanisms
from agedp_flows.cli import app
from tests.documents.pages import repeatable_noise
mechanisms.discrete_laplace = repeatable_noise
app.main()
"""


def test_the_first_screen_names_chain_gap_dask_prefect_and_notions():
    first = " ".join(README.splitlines()[:FIRST_SCREEN_LINES])
    named = ["Markov chain", "transition matrix", "spectral gap", "Dask", "Prefect", "Parquet"]
    assert [name for name in [*named, *(notion.name for notion in NOTIONS)] if name not in first] == []
    text = screen(README)
    assert [name for name in ("spectral gap", "agedp-read") if name not in text.lower()] == []
    assert len([line for line in text.splitlines() if line.startswith("--- London, ")]) == 3


@pytest.mark.long
@pytest.mark.prefect
def test_make_run_prints_the_screen_and_six_releases_verify(tmp_path):
    env = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    command = [sys.executable, "-c", _DEMO, "demo", "out"]
    done = subprocess.run(
        command, cwd=tmp_path, env={**env, "PYTHONPATH": source_path()}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert unprinted(screen(README), done.stdout) == ""
    assert (tmp_path / "out" / "index.html").stat().st_size > 100_000
    releases = sorted((tmp_path / "out").glob("*/*/release"))
    assert [release.parts[-3:-1] for release in releases] == [
        (dataset, notion) for dataset in ("ausgrid", "london") for notion in ("age-dependent", "discounted", "temporal")
    ]
    for release in releases:
        folder = open_release(release)
        folder.verify()
        assert len(folder.table()) == 56
