"""`agedp init` and `agedp sanitise` as a user meets them: what they print, and what they refuse in one line."""

from __future__ import annotations

import json
import math
import shlex
from datetime import date
from pathlib import Path

import pytest

from agedp_data.datasets.synthetic import write_london
from agedp_flows.cli.sanitise_commands import sanitise
from tests.agedp_flows.in_process import agedp, refused

SANITISE = (
    "--notion", "classical", "--epsilon-per-day", "0.5", "--max-day-epsilon", "0.5", "--epsilon-total", "3",
    "--clamp-kwh", "20", "--min-households", "2",
)  # fmt: skip


KERNEL = ("--kernel", "kernel.csv", "--basis", "made up", "--assume", "markov", "--step", "day")
COMMON = ("--max-day-epsilon", "1", "--epsilon-total", "4", "--clamp-kwh", "20", "--min-households", "2")
NOTIONS = {
    "classical": "--epsilon-per-day 0.5",
    "w-event": "--window-days 2 --epsilon-per-window 1 --spend even",
    "age-dependent": "--epsilon-per-day 0.5 --age-days 1 --method tight --secret day",
    "temporal": "--alpha 1 --horizon-days 4 --budget even",
    "discounted": "--discount exponential --rate 0.9 --epsilon 1 --schedule constant --clock data-day",
    "neighbourhood": "--delta-kwh 1 --window-days 2 --epsilon-per-window 0.1 --spend per-request",
}
FIRST_DAY_LOSS = {"classical": 0.5, "w-event": 0.5, "age-dependent": 0.5, "temporal": 0.25, "discounted": 0.1}
"""Closed forms: half of a window of two days, a quarter of alpha, 1 - rate; a small change is 1 kWh of 20."""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files") / "SECRET-in"
    write_london(folder, households=4, first_day=date(2013, 1, 1), days=4, seed=3)
    return folder


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_init_shows_noise_of_every_notion_and_what_is_left_to_decide(
    files: Path, here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--notion", "age-dependent", "--clamp-kwh", "20", "--epsilon-per-day", "0.5")
    assert agedp(monkeypatch, "init", str(files), *words) == 0
    shown = capsys.readouterr().out
    assert "london: 4 households, 4 days from 2013-01-01 to 2013-01-04" in shown
    notions = ("classical", "w-event", "age-dependent", "temporal", "discounted", "neighbourhood")
    rows = [line.split() for line in shown.splitlines() if line.split()[:1] and line.split()[0] in notions]
    assert list(dict.fromkeys(row[0] for row in rows)) == list(notions)
    # a household that comes later lowers the number of a day: sqrt(2) x 20 kWh / (0.5 x households), mean square
    spans = [line.split(",")[1:] for line in (here / "roster.csv").read_text().splitlines()[2:]]
    counts = [sum(first <= f"2013-01-0{day}" <= last for first, last in spans) for day in range(1, 5)]
    expected = math.sqrt(sum((math.sqrt(2) * 20 / (0.5 * count)) ** 2 for count in counts) / 4)
    assert float(rows[0][1]) == pytest.approx(expected, rel=1e-3)
    assert "--mode rehearsal" in shown  # 2013 is years ago, where no bound by age means anything
    assert "--age-days" in shown.partition("To decide:")[2]
    assert "--clamp-kwh" not in shown.partition("To decide:")[2]
    assert "Then: `agedp plan" in shown
    assert "Next:" not in shown
    assert '# mode = "rehearsal"' in (here / "run.toml").read_text()


@pytest.mark.parametrize("notion", NOTIONS)
def test_every_notion_is_written_by_options_alone_and_planned(
    notion: str, files: Path, here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "kernel.csv").write_text("0.9,0.1\n0.1,0.9\n")
    model = KERNEL if notion in ("age-dependent", "temporal") else ()
    words = (*COMMON, "--notion", notion, *NOTIONS[notion].split(), *model, "--in", "own", "--json")
    assert agedp(monkeypatch, "init", str(files), *words) == 0
    assert json.loads(capsys.readouterr().out)["to_decide"] == []
    assert agedp(monkeypatch, "plan", "own/run.toml", "--json") == 0
    first = json.loads(capsys.readouterr().out)["due"][0]
    assert float(first["epsilon"]) == pytest.approx(FIRST_DAY_LOSS.get(notion, 20 * 0.1 / 2), rel=1e-6)


def test_the_examples_of_sanitise_leave_nothing_to_decide(
    files: Path, here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    examples = (sanitise.__doc__ or "").replace("\\\n", " ").split("Example: ")[1:]
    assert ["--period" in example for example in examples] == [False, True]
    for number, example in enumerate(examples):
        words = shlex.split(example)[5:]  # agedp sanitise FILES --out DIR
        assert agedp(monkeypatch, "init", str(files), *words, "--in", f"{number}", "--json") == 0
        assert json.loads(capsys.readouterr().out)["to_decide"] == []


def test_a_rehearsal_prints_no_hint_about_archives(
    files: Path, here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert agedp(monkeypatch, "init", str(files), "--notion", "age-dependent", "--mode", "rehearsal") == 0
    assert "archive" not in capsys.readouterr().out
    assert 'mode      = "rehearsal"' in (here / "run.toml").read_text()


def test_machines_get_no_name_of_an_input_file(
    files: Path, here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert agedp(monkeypatch, "init", str(files), "--json") == 0
    made = capsys.readouterr().out
    assert json.loads(made)["to_decide"][0] == "[population] min_households"
    assert agedp(monkeypatch, "sanitise", str(files), "--out", "released", *SANITISE, "--json") == 0
    done = capsys.readouterr().out
    assert [each["day"] for each in json.loads(done)["released"]] == [f"2013-01-0{day}" for day in range(1, 5)]
    assert json.loads(done)["folder"] == "released"
    assert "SECRET" not in made + done


def test_sanitise_prints_what_run_prints_and_quiet_prints_nothing(
    files: Path, here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert agedp(monkeypatch, "sanitise", str(files), "--out", "out", *SANITISE) == 0
    shown = capsys.readouterr().out
    assert "4 days released now" in shown
    assert "release folder: out\nrun file, ledger and confidential folder: out-confidential (keep it)\n" in shown
    assert agedp(monkeypatch, "run", "out-confidential/run.toml") == 0  # the same run file, by the same ledger
    assert "0 days released now" in capsys.readouterr().out
    assert agedp(monkeypatch, "sanitise", str(files), "--out", "out", *SANITISE, "--quiet") == 0
    assert capsys.readouterr().out == ""
    unquoted = sorted(str(path) for path in files.iterdir())  # as a shell expands FOLDER/*
    assert agedp(monkeypatch, "sanitise", *unquoted, "--out", "out", *SANITISE) == 0
    assert "0 days released now" in capsys.readouterr().out
    assert agedp(monkeypatch, "verify", "out") == 0
    line = refused(monkeypatch, capsys, "sanitise", str(files), "--out", "out", *SANITISE, "--level", "0.9", status=3)
    assert "--level was not given and is 0.9" in line


def test_a_promise_that_ends_keeps_the_days_before(
    files: Path, here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [word if word != "3" else "1.2" for word in SANITISE]
    assert agedp(monkeypatch, "sanitise", str(files), "--out", "out", *words) == 3
    shown = capsys.readouterr()
    assert "2 days released now" in shown.out
    assert shown.err.startswith("agedp: 2013-01-03: ")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("--clamp-kwh", "-1"), "--clamp-kwh -1: must not be negative"),
        (
            ("--spend", "even"),
            "--spend is not used by --notion classical; it goes with --notion w-event or neighbourhood",
        ),
        (("--notion", "temporal", "--alpha", "x"), "--alpha x: must be a number"),
    ],
)
def test_a_wrong_option_is_one_line(
    words: tuple[str, ...],
    line: str,
    files: Path,
    here: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert line in refused(monkeypatch, capsys, "init", str(files), *words, status=2)
    assert list(here.iterdir()) == []
