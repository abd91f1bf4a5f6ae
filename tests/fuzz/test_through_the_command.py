"""The same spoilt files through `agedp run`: done, or one line on stderr and nothing registered."""

# ruff: noqa: S311  (choices, not secrets)

from __future__ import annotations

import random
import sqlite3
import sys
from contextlib import closing
from datetime import date
from pathlib import Path

import pytest

from tests.fuzz.mutations import MUTATIONS, mutated
from tests.fuzz.originals import originals
from tests.fuzz.test_forged_ledgers import status_of
from tests.fuzz.test_packed_files import REFUSED
from tests.minimal import run_file

NAME = "london publisher"
RUN = run_file(
    input={"files": ["in/*"], "preflight": "report"},
    population={"min_households": 1},
    schedule={"first_day": date(2013, 2, 28), "last_day": date(2013, 2, 28)},
    promise={"epsilon_total": 1},
)
ROSTER = "household_id,from,to\nMAC000002,2012-01-01,\nMAC000003,2012-01-01,\n"


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


WARNINGS = ("agedp: warning: usable households", "agedp: warning: more than 5% of the rows")


@pytest.fixture
def judged(capsys, monkeypatch):
    """Return what runs a house; it ends in one line or a release, and a refusal leaves nothing behind."""
    monkeypatch.setattr(sys, "argv", sys.argv)

    def run(folder: Path) -> int:
        monkeypatch.chdir(folder)
        status = status_of("run", "run.toml")
        errors = capsys.readouterr().err
        assert status in (0, 2, 3), errors
        if status == 0:
            assert all(line.startswith(WARNINGS) for line in errors.splitlines()), errors
            assert (folder / "release").exists()
            return 0
        assert errors.startswith("agedp: ")
        assert errors.endswith("\n")
        assert errors[:-1].isprintable()
        assert registered(folder) == 0
        assert not (folder / "release").exists()
        return status

    return run


def test_the_unspoilt_house_releases_its_day(tmp_path, judged):
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
def test_what_cannot_be_understood_is_one_line_and_registers_nothing(tmp_path, name, judged):
    assert judged(house(tmp_path / "h", **REFUSALS[name])) == 2


def _sampled(folder: Path, examples: int, judged) -> None:
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


@pytest.mark.parametrize("examples", [12, pytest.param(100, marks=pytest.mark.long)])
def test_spoilt_houses_end_in_a_release_or_one_line(tmp_path, examples, judged):
    _sampled(tmp_path, examples, judged)
