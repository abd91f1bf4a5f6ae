"""Whatever surrounds a command, closed streams, a full disk, an odd environment or Ctrl-C, no traceback is seen."""

from __future__ import annotations

import fcntl
import os
import random
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.source_path import source_path

ROOT = Path(__file__).parents[2]
COMMANDS = {
    "help": ("--help",), "help of one": ("run", "--help"), "version": ("--version",), "nothing": (),
    "unknown": ("rnu",), "no such file": ("plan", "nowhere.toml"),
    "sample": ("sample", "london", "made", "--households", "2", "--days", "2"),
    "init": ("init", "input", "--in", "own"), "plan": ("plan", "london.toml"),
    "plan for machines": ("plan", "london.toml", "--json"), "run": ("run", "london.toml"),
    "publish": ("publish", "london.toml"), "verify": ("verify", "release", "--ledger", "sqlite:///ledger.sqlite"),
    "ledger show": ("ledger", "show", "london.toml"), "ledger verify": ("ledger", "verify", "london.toml"),
    "ledger amend": ("ledger", "amend", "london.toml"),
    "ledger export": ("ledger", "export", "london.toml", "new.jsonl"),
    "ledger import": ("ledger", "import", "rows.jsonl", "--to", "sqlite:///new.sqlite", "--lost"),
    "ledger recover": ("ledger", "recover", "release", "--to", "sqlite:///again.sqlite"),
}  # fmt: skip
WRONG = {"nothing", "unknown", "no such file"}
"""They end in status 2 wherever they are run."""
STREAMS = {
    "no standard input": "<&-",
    "no standard output": ">&-",
    "no standard error": "2>&-",
    "no stream at all": "<&- >&- 2>&-",
    "no room for errors": "2>/dev/full",
    "no room for results": ">/dev/full",
}
SURROUNDINGS: dict[str, dict[str, str | None]] = {
    "no home": {"HOME": None},
    "a home that is no folder": {"HOME": "/dev/null", "XDG_CACHE_HOME": "/dev/null/x"},
    "a zone that is nowhere": {"TZ": "Nowhere/Land"},
    "ASCII": {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    "a language that is not installed": {"LC_ALL": "xx_XX.ISO-8859-9", "PYTHONIOENCODING": "ascii"},
    "one column": {"COLUMNS": "1", "LINES": "1"},
    "columns that are no number": {"COLUMNS": "-3", "LINES": "x"},
    "an unknown terminal": {"TERM": "nothing", "FORCE_COLOR": "1"},
    "nowhere to put what is temporary": {"TMPDIR": "/nowhere"},
    "a Prefect server that is none": {"PREFECT_API_URL": "nonsense"},
}


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a release, its ledger and its exported rows."""
    folder = tmp_path_factory.mktemp("surroundings")
    done = folder / "lived"
    for words in (
        ("sample", "london", "lived", "--households", "3", "--days", "3"),
        ("run", "lived/london.toml"),
        ("ledger", "export", "lived/london.toml", "lived/rows.jsonl"),
    ):
        assert agedp(words, folder).returncode == 0
    (done / "own").mkdir()
    return done


@pytest.fixture
def house(lived: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(lived, tmp_path / "house"))


Done = subprocess.CompletedProcess[str]


def agedp(words: tuple[str, ...], folder: Path, streams: str = "", **told: str | None) -> Done:
    """Run the command in a process of its own; a shell arranges its streams."""
    environment = {**os.environ, "PYTHONPATH": source_path(), **told}
    return subprocess.run(
        ["sh", "-c", f'exec "$@" {streams}', "sh", sys.executable, "-m", "agedp_flows", *words],
        cwd=folder,
        env={name: value for name, value in environment.items() if value is not None},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=300,
        check=False,
    )


def ended_well(done: Done, name: str, *, full: bool = False) -> None:
    assert done.stderr == "" or (done.stderr.startswith("agedp: ") and done.stderr.count("\n") == 1), done.stderr
    told = full and name not in {"unknown", "no such file"}
    assert ("standard output cannot be written" in done.stderr) == told, done.stderr
    assert done.returncode == (2 if told or name in WRONG else 0), (name, done.returncode, done.stderr)


SHORT = [("help of one", "no room for results"), ("run", "no standard error")]


@pytest.mark.parametrize(
    ("streams", "names"),
    [(streams, [name]) for name, streams in SHORT]
    + [pytest.param(streams, list(COMMANDS), marks=pytest.mark.long) for streams in STREAMS],
)
def test_without_one_of_its_streams_a_command_does_what_it_does(streams, names, lived, tmp_path):
    for number, name in enumerate(names):
        house = shutil.copytree(lived, tmp_path / str(number))
        ended_well(agedp(COMMANDS[name], house, STREAMS[streams]), name, full="results" in streams)


def test_a_reader_that_is_slower_than_its_pipe_gets_the_whole_result(tmp_path: Path) -> None:
    taken, given = os.pipe()
    os.set_blocking(given, False)
    fcntl.fcntl(given, fcntl.F_SETPIPE_SZ, 4096)
    words = [sys.executable, "-m", "agedp_flows", "--help"]
    surroundings = {**os.environ, "COLUMNS": "300", "PYTHONPATH": source_path()}
    with subprocess.Popen(words, stdout=given, stderr=subprocess.PIPE, cwd=tmp_path, env=surroundings) as command:
        os.close(given)
        while not select.select((taken,), (), (), 0.1)[0]:
            pass
        time.sleep(0.5)  # the pipe is full by now
        with os.fdopen(taken, "rb") as reader:
            found = reader.read()
        assert command.stderr is not None
        assert (command.wait(60), command.stderr.read()) == (0, b"")
    assert len(found) > 2 * 4096


@pytest.mark.parametrize("name", [pytest.param("help", marks=pytest.mark.long), "plan"])
def test_who_takes_the_first_line_only_gets_one_line_about_the_rest(name: str, house: Path) -> None:
    agedp_words = " ".join([sys.executable, "-u", "-m", "agedp_flows", *COMMANDS[name]])
    done = subprocess.run(
        ["bash", "-c", f"{agedp_words} | true; exit ${{PIPESTATUS[0]}}"],
        cwd=house,
        env={**os.environ, "PYTHONPATH": source_path()},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.stderr == "agedp: standard output cannot be written (Broken pipe); completed work is kept\n"
    assert done.returncode == 2


@pytest.mark.parametrize(
    ("surroundings", "names"),
    [("one column", ["help"]), ("ASCII", ["help"])]
    + [pytest.param(surroundings, list(COMMANDS), marks=pytest.mark.long) for surroundings in SURROUNDINGS],
)
def test_in_odd_surroundings_a_command_does_what_it_does(surroundings, names, lived, tmp_path):
    for number, name in enumerate(names):
        house = shutil.copytree(lived, tmp_path / str(number))
        done = agedp(COMMANDS[name], house, **SURROUNDINGS[surroundings])
        ended_well(done, name)
        assert done.stdout or name in WRONG


STARTED = """
import os, sys
import agedp_flows.__main__

class Begun:
    def find_spec(self, name, *more):
        if name == "agedp_flows.cli.app":
            os.write(1, b"begun\\n")

sys.meta_path.insert(0, Begun())
agedp_flows.__main__.main()
"""
"""Tells when the command begins its imports: what Python itself does before is not the command's."""


def interrupted(words: tuple[str, ...], folder: Path, after: float) -> tuple[int, str]:
    """Press Ctrl-C some seconds after the command began; return its status and what it said."""
    with subprocess.Popen(
        [sys.executable, "-c", STARTED, *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": source_path()},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == b"begun\n"
        time.sleep(after)
        os.killpg(run.pid, signal.SIGINT)
        _, err = run.communicate(timeout=300)
    return run.returncode, err.decode()


def stopped_well(words: tuple[str, ...], folder: Path, after: float) -> int:
    status, err = interrupted(words, folder, after)
    if status == 130:
        assert err.startswith("agedp: stopped"), (after, err)
        assert err.count("\n") == 1, (after, err)
    else:  # it had said everything before
        assert (status, err) in ((0, ""), (-signal.SIGINT, "")), (after, status, err)
    return status


@pytest.mark.parametrize("after", [pytest.param(0.0, marks=pytest.mark.long), 0.3])
def test_told_to_stop_a_command_says_so_in_one_line(after: float, house: Path) -> None:
    stopped_well(("run", "london.toml"), house, after)


@pytest.mark.long
@pytest.mark.parametrize("name", ["sample", "init", "plan", "run", "publish", "verify", "ledger recover"])
def test_told_to_stop_at_any_moment_a_command_says_so_in_one_line(name: str, lived: Path, tmp_path: Path) -> None:
    """The moments cover what the command takes when nobody stops it, and a fifth more."""
    words, base = COMMANDS[name], Path(shutil.copytree(lived, tmp_path / "base"))
    if name == "run":
        for made in ("release", "confidential"):
            shutil.rmtree(base / made)
        (base / "ledger.sqlite").unlink()
    begun = time.monotonic()
    agedp(words, Path(shutil.copytree(base, tmp_path / "whole")))
    takes = time.monotonic() - begun
    chance = random.Random(name)  # noqa: S311 - moments, no secrets
    met = [
        stopped_well(words, Path(shutil.copytree(base, tmp_path / str(number))), chance.uniform(0, 1.2 * takes))
        for number in range(25)
    ]
    assert 130 in met
