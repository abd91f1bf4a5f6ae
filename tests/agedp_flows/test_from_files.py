"""`agedp init` and `agedp sanitise` as a user meets them: what they print, and what they refuse in one line."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest

from agedp_data.datasets.synthetic import write_london
from tests.command import CommandFolder

COMMON = ("--max-day-epsilon", "1", "--epsilon-total", "4", "--clamp-kwh", "20", "--min-households", "2")
SANITISE = (*COMMON, "--notion", "classical", "--epsilon-per-day", "0.5", "--out", "open", "--accept", "useless")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files") / "SECRET-in"
    write_london(folder, households=4, first_day=date(2013, 1, 1), days=4, seed=3)
    return folder


@pytest.fixture
def here(tmp_path: Path) -> CommandFolder:
    return CommandFolder(tmp_path)


def test_sanitise_prints_what_run_prints_and_names_no_input_file(files: Path, here: CommandFolder) -> None:
    shown = here.succeed("sanitise", files, *SANITISE)
    assert "4 days released now" in shown
    assert "release folder: open\nrun file, ledger and confidential folder: open-confidential (keep it)\n" in shown
    assert "0 days released now" in here.succeed("run", "open-confidential/run.toml")  # the same file and ledger
    assert here.succeed("sanitise", files, *SANITISE, "--quiet") == ""
    unquoted = sorted(files.iterdir())  # as a shell expands FOLDER/*
    done, begun = here.succeed("sanitise", *unquoted, *SANITISE, "--json"), here.succeed("init", files, "--json")
    assert (json.loads(done)["released"], json.loads(done)["folder"]) == ([], "open")
    assert json.loads(begun)["to_decide"][0] == "[population] min_households"
    assert "SECRET" not in begun + done
    here.succeed("verify", "open")
    line = here.refuse("sanitise", files, *SANITISE, "--level", "0.9", status=3)
    assert "--level was not given and is 0.9" in line


def test_several_group_columns_are_given_as_a_list(files: Path, here: CommandFolder) -> None:
    first = sorted(files.glob("*"))[0].read_text().splitlines()[1].split(",")[0]
    roster = f"household_id,from,to,feeder,area\n{first},2013-01-01,,F1,north\n"
    (here.folder / "roster.csv").write_text(roster)
    line = here.refuse("init", files, "--by", "feeder,region", status=2)
    assert "--by region: roster.csv has no such column" in line
    shown = here.succeed("init", files, "--by", "feeder,area")
    assert 'by        = ["feeder", "area"]' in (here.folder / "run.toml").read_text()
    assert "roster.csv: kept as it is" in shown
    assert (here.folder / "roster.csv").read_text() == roster
