"""Questions on a terminal: what is asked, what Enter accepts, and that scripts are never asked."""

from __future__ import annotations

import contextlib
import io
import os
import pty
import re
import shlex
import subprocess
import sys
import tomllib
from datetime import date
from pathlib import Path

import pytest

from agedp_data.datasets.synthetic import write_london
from agedp_flows.cli import questions
from tests.command import Ended, agedp
from tests.source_path import source_path

SPANS = ("day", "week", "month", "year", "all", "today")
SOLAR = "meter_id,direction,read_at,wh\n" + "".join(
    f'M{home},import,{day:02d}/01/2026 {hour:02d}:00,"{home + 1},{hour:02d}5"\n'
    for home in range(4)
    for day in range(13, 16)
    for hour in range(24)
)


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files") / "in"
    write_london(folder, households=60, first_day=date(2013, 1, 1), days=70, seed=5)
    return folder


@pytest.fixture(autouse=True)
def _plain_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")


def answered(*words: str | Path, answers: str, folder: Path) -> Ended:
    """Run the command in a folder on a terminal with these lines typed in."""
    return agedp(*words, folder=folder, answer=answers, terminal=Terminal)


def printed_command(err: str) -> list[str]:
    """Return the words of the command line that has the answers, without "agedp"."""
    [line] = [line for line in err.splitlines() if "Without questions: " in line]
    return shlex.split(line.partition("Without questions: agedp ")[2])


def test_answers_end_in_the_run_file_as_options_do(files: Path, tmp_path: Path) -> None:
    for name in ("asked", "given"):
        (tmp_path / name).mkdir()
    asked = answered("init", files, answers="month\n\n5\n", folder=tmp_path / "asked")
    assert asked.status == 0, asked
    assert all(f"\n  {span} " in asked.err for span in SPANS)
    assert asked.err.count("--epsilon:") == 2  # Enter is no answer
    given = printed_command(asked.err)
    assert given == ["init", str(files), "--protect", "month", "--epsilon", "5", "--yes"]
    assert agedp(*given, folder=tmp_path / "given").status == 0
    assert (tmp_path / "asked" / "run.toml").read_bytes() == (tmp_path / "given" / "run.toml").read_bytes()


def test_a_wrong_answer_is_named_and_asked_again(files: Path, tmp_path: Path) -> None:
    asked = answered("init", files, answers="mnth\ntoday\nmonth\nmuch\n5\n", folder=tmp_path)
    assert asked.status == 0, asked
    assert "--protect mnth: must be one of day, week, month" in asked.err
    assert "--protect today is about days that are published late" in asked.err
    assert "--epsilon much: must be a number between 0 and 1,000" in asked.err
    assert tomllib.loads((tmp_path / "run.toml").read_text())["promise"]["epsilon_per_window"] == 5


@pytest.mark.parametrize(
    ("mark", "meaning"), [(",", {"decimal": ","}), (".", {"thousands": ","}), ("2", {"thousands": ","})]
)
def test_enter_accepts_how_a_file_is_read_and_the_rest_is_typed(
    mark: str, meaning: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "solar.csv").write_text(SOLAR)
    answers = f"{mark}\nday\n0.5\n" + "\n" * 4
    asked = answered("init", "solar.csv", "--min-households", "1", answers=answers, folder=tmp_path)
    assert asked.status == 0, asked
    columns = tomllib.loads((tmp_path / "run.toml").read_text())["input"]["columns"]
    assert meaning.items() <= columns.items()
    assert (columns["zone"], columns["day_zone"]) == ("UTC", "UTC")
    assert "\n# decide:" not in (tmp_path / "run.toml").read_text()
    first, *_ = re.findall(r"^--([a-z-]+)(?: \[.*\])?: ", asked.err, re.M)
    assert first == "decimal"  # without it no row can be read


def test_a_proposal_that_follows_readings_is_recorded_as_that(tmp_path: Path) -> None:
    text = "meter_id,read_at,used\n" + "".join(
        f"M{home},{day:02d}/01/2026 {hour:02d}:{minute},0.{hour + 10}\n"
        for home in range(4)
        for day in range(13, 16)
        for hour in range(24)
        for minute in ("00", "30")
    )
    (tmp_path / "plain.csv").write_text(text)
    given = ["--protect", "day", "--epsilon", "1", "--min-households", "2"]
    asked = answered("init", "plain.csv", *given, answers="\n" * 9, folder=tmp_path)
    assert asked.status == 0, asked
    read_off = tomllib.loads((tmp_path / "run.toml").read_text())["input"]["read_off"]
    assert "unit" in read_off
    words = printed_command(asked.err)
    assert [words[i + 1] for i, word in enumerate(words) if word == "--read-off"] == read_off


@pytest.mark.parametrize("option", ["--yes", "--json", "--quiet"])
def test_an_option_of_scripts_ends_all_questions(option: str, files: Path, tmp_path: Path) -> None:
    ended = answered("sanitise", files, "--out", "out", option, answers="day\n1\ny\n", folder=tmp_path)
    assert (ended.status, ended.out) == (2, "")
    assert ended.err.startswith("agedp: options that decide have no default. Also give --protect ")
    given = ("--protect", "month", "--epsilon", "5", option)
    ended = answered("sanitise", files, "--out", "out", *given, answers="", folder=tmp_path)
    assert (ended.status, "Release now?" in ended.err) == (0, False)


def test_without_a_terminal_nothing_is_asked(files: Path, tmp_path: Path) -> None:
    ended = agedp("init", files, folder=tmp_path, answer="month\n5\n")
    assert (ended.status, ended.err) == (0, "")
    assert "\n# decide: " in (tmp_path / "run.toml").read_text()


def test_a_release_is_confirmed_after_its_verdict(files: Path, tmp_path: Path) -> None:
    words = ("sanitise", files, "--out", "out", "--protect", "month", "--epsilon", "5")
    declined = answered(*words, answers="\n", folder=tmp_path)
    assert (declined.status, declined.out) == (0, "not released; the same command asks again\n")
    assert declined.err.startswith("\nVerdict before the first release: rough for weeks, fit for months; ")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out-confidential"]
    assert not (tmp_path / "out-confidential" / "ledger.sqlite").exists()
    accepted = answered(*words, answers="y\n", folder=tmp_path)
    assert accepted.status == 0, accepted
    assert accepted.err.count("Verdict before the first release") == 1
    assert agedp("verify", "out", folder=tmp_path).status == 0
    again = answered(*words, answers="", folder=tmp_path)
    assert (again.status, again.err) == (0, "")  # nothing is due, so that nothing is asked


def test_a_private_model_is_drawn_only_after_a_yes(monkeypatch: pytest.MonkeyPatch) -> None:
    private = {("model", "selection_epsilon"): "0.7"}
    for typed, is_confirmed in (("\n", False), ("n\n", False), ("yes\n", True)):
        shown = Terminal()
        monkeypatch.setattr(sys, "stdin", Terminal(typed))
        with contextlib.redirect_stderr(shown):
            assert questions.confirm_draw(private) is is_confirmed
        assert "draws its model with epsilon 0.7" in shown.getvalue()
    assert questions.confirm_draw({})  # reads nothing: the input has ended


def test_the_end_of_the_input_stops_and_writes_no_run_file(files: Path, tmp_path: Path) -> None:
    ended = answered("init", files, answers="month\n", folder=tmp_path)
    assert (ended.status, ended.out) == (130, "")
    assert not (tmp_path / "run.toml").exists()


def test_a_conversation_on_a_real_terminal_releases(files: Path, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "agedp_flows", "sanitise", str(files), "--out", "out"]
    environment = {**os.environ, "PYTHONPATH": source_path(), "TERM": "xterm", "COLUMNS": "80"}
    child = subprocess.Popen(
        command, cwd=tmp_path, stdin=theirs, stdout=subprocess.PIPE, stderr=theirs, env=environment
    )
    os.close(theirs)
    shown = ""
    for prompt, answer in (("--protect: ", "month"), ("--epsilon: ", "5"), ("Release now? [y/N] ", "y")):
        while prompt not in shown:
            shown += os.read(ours, 65536).decode()
        os.write(ours, f"{answer}\n".encode())
        shown = ""
    with contextlib.suppress(OSError):  # what Linux answers when the other end is closed
        while os.read(ours, 65536):
            pass
    out, _ = child.communicate(timeout=120)
    os.close(ours)
    assert child.returncode == 0
    assert "--protect:" not in out.decode()
    assert "Hand over out and nothing else" in out.decode()
