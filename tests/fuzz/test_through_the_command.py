"""The same spoilt files through `agedp run`: done, or one line on stderr and nothing registered."""

# ruff: noqa: S311  (choices, not secrets)

from __future__ import annotations

import os
import random
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import date
from pathlib import Path

import pytest

from tests.fuzz.mutations import MUTATIONS, mutated
from tests.fuzz.originals import originals
from tests.fuzz.test_packed_files import REFUSED
from tests.minimal import run_file
from tests.source_path import source_path

NAME = "london publisher"
RUN = run_file(
    input={"files": ["in/*"], "preflight": "report"},
    population={"min_households": 1},
    schedule={"first_day": date(2013, 2, 28), "last_day": date(2013, 2, 28)},
    promise={"epsilon_total": 1},
)
ROSTER = "household_id,from,to\nMAC000002,2012-01-01,\nMAC000003,2012-01-01,\n"


def agedp(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the command inside a folder."""
    return subprocess.run(
        [sys.executable, "-m", "agedp_flows.cli.app", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": source_path()},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def registered(folder: Path) -> int:
    """How many rows of any kind the ledger has."""
    path = folder / "ledger.sqlite"
    if not path.exists():
        return 0
    with closing(sqlite3.connect(path)) as ledger:
        tables = [name for (name,) in ledger.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return sum(ledger.execute(f'SELECT count(*) FROM "{table}"').fetchone()[0] for table in tables)


def house(folder: Path, *, run: str | bytes = RUN, roster: str | bytes = ROSTER, **files: bytes) -> Path:
    folder.mkdir()
    (folder / "in").mkdir()
    for name, content in files.items():
        (folder / "in" / name.replace("__", ".")).write_bytes(content)
    for name, text in (("run.toml", run), ("roster.csv", roster)):
        (folder / name).write_bytes(text.encode() if isinstance(text, str) else text)
    return folder


def judged(folder: Path) -> int:
    """Run it; whatever it ends in is one line or a release, and a refusal leaves nothing behind."""
    done = agedp(folder, "run", "run.toml")
    assert done.returncode in (0, 2, 3), done.stderr
    assert "Traceback" not in done.stderr + done.stdout
    if done.returncode == 0:
        assert all(line.startswith("agedp: warning: usable households") for line in done.stderr.splitlines())
        assert (folder / "release").exists()
        return 0
    assert done.stderr.startswith("agedp: ")
    assert done.stderr.endswith("\n")
    assert done.stderr[:-1].isprintable()
    assert registered(folder) == 0
    assert not (folder / "release").exists()
    return done.returncode


def test_the_unspoilt_house_releases_its_day(tmp_path):
    folder = house(tmp_path / "h", a__csv=originals()[NAME].data)
    assert judged(folder) == 0
    assert registered(folder) > 0


REFUSALS: dict[str, dict[str, str | bytes]] = {
    "cut off": {"a__csv__gz": REFUSED["e.gz"][0]},
    "two members": {"a__zip": REFUSED["h.zip"][0]},
    "header": {"a__csv": b"LCLid,When,kWh\nMAC000002,2013,1\n"},
    "empty roster": {"a__csv": originals()[NAME].data, "roster": b""},
    "overlap": {"a__csv": originals()[NAME].data, "roster": ROSTER + "MAC000003,2013-01-01,\n"},
    "misspelt": {"a__csv": originals()[NAME].data, "run": RUN.replace("clamp_kwh", "clamp_wh")},
    "no toml": {"run": b"version = \x00"},
    "far": {"a__csv": originals()[NAME].data, "run": RUN.replace("last_day = 2013", "last_day = 9999")},
    "long name": {"a__csv": originals()[NAME].data, "run": RUN.replace('"release"', f'"{"x" * 300}"')},
}


QUICK = ("misspelt", "long name")


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.long) for name in REFUSALS]
)
def test_what_cannot_be_understood_is_one_line_and_registers_nothing(tmp_path, name):
    assert judged(house(tmp_path / "h", **REFUSALS[name])) == 2


def _sampled(folder: Path, examples: int) -> None:
    choice, met = random.Random(20261121), {0: 0, 2: 0, 3: 0}
    for number in range(examples):
        plan = [(choice.choice(sorted(MUTATIONS)), choice.randrange(2**32)) for _ in range(choice.randrange(1, 4))]
        spoil = {"a__csv": mutated(originals()[NAME].data, plan)}
        if number % 4 == 1:
            spoil = {"a__csv": originals()[NAME].data, "roster": mutated(ROSTER.encode(), plan)}
        if number % 4 == 2:
            spoil = {"a__csv": originals()[NAME].data, "run": mutated(RUN.encode(), plan)}
        met[judged(house(folder / str(number), **spoil))] += 1
    assert examples < 100 or met[0] > 0 < met[2], met


@pytest.mark.parametrize("examples", [3, pytest.param(100, marks=pytest.mark.long)])
def test_spoilt_houses_end_in_a_release_or_one_line(tmp_path, examples):
    _sampled(tmp_path, examples)
