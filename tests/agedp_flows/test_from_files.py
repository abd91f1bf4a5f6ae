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
KERNEL = ("--kernel", "kernel.csv", "--basis", "made up", "--assume", "markov", "--step", "day")
NOTIONS = {
    "classical": ("--epsilon-per-day 0.5", 0.5),
    "w-event": ("--window-days 2 --epsilon-per-window 1 --spend even", 0.5),
    "age-dependent": ("--epsilon-per-day 0.5 --age-days 1 --method tight --secret day", 0.5),
    "temporal": ("--alpha 1 --horizon-days 4 --budget even", 0.25),
    "discounted": ("--discount exponential --rate 0.9 --epsilon 1 --schedule constant --clock data-day", 0.1),
    "neighbourhood": ("--delta-kwh 1 --window-days 2 --epsilon-per-window 0.1 --spend per-request", 1.0),
}
"""Options, and the loss of the first day by closed forms: half of a window of two days, a quarter of alpha, 1 - rate;
of a window of 0.1, half is spent on a change of 1 kWh of 20."""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files") / "SECRET-in"
    write_london(folder, households=4, first_day=date(2013, 1, 1), days=4, seed=3)
    return folder


@pytest.fixture
def here(tmp_path: Path) -> CommandFolder:
    return CommandFolder(tmp_path)


def test_init_shows_the_advice_and_what_is_to_decide(files: Path, here: CommandFolder) -> None:
    words = ("--notion", "age-dependent", "--clamp-kwh", "20", "--epsilon-per-day", "0.5")
    shown = here.succeed("init", files, *words)
    assert "london: 4 households, 4 days from 2013-01-01 to 2013-01-04" in shown
    assert "What 4 households can publish over 4 days." in shown
    assert "--mode rehearsal" in shown  # 2013 is years ago, where no bound by age means anything
    to_decide = shown.partition("To decide:")[2]
    assert ("--age-days" in to_decide, "--clamp-kwh" in to_decide) == (True, False)
    assert '# mode = "rehearsal"' in (here.folder / "run.toml").read_text()
    assert "archive" not in here.succeed("init", files, *words, "--mode", "rehearsal", "--in", "own")


@pytest.mark.parametrize("notion", NOTIONS)
def test_options_alone_write_and_plan_every_notion(notion: str, files: Path, here: CommandFolder) -> None:
    (here.folder / "kernel.csv").write_text("0.9,0.1\n0.1,0.9\n")
    options, loss = NOTIONS[notion]
    model = KERNEL if notion in ("age-dependent", "temporal") else ()
    words = (*COMMON, "--notion", notion, *options.split(), *model, "--in", "own")
    assert here.load("init", files, *words)["to_decide"] == []
    assert float(here.load("plan", "own/run.toml")["due"][0]["epsilon"]) == pytest.approx(loss, rel=1e-6)


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


def test_a_wrong_option_is_one_line(files: Path, here: CommandFolder) -> None:
    for words, message in (
        ("--clamp-kwh -1", "--clamp-kwh -1: must not be negative"),
        ("--spend even", "--spend is not used by --notion classical; it goes with --notion w-event or neighbourhood"),
        ("--notion temporal --alpha x", "--alpha x: must be a number"),
    ):
        assert message in here.refuse("init", files, *words.split(), status=2)
    assert list(here.folder.iterdir()) == []


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
