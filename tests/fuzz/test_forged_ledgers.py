"""Ledgers whose rows are odd and whose hashes are right: one line from every command, never a traceback.

The forger knows the ledger well: one value of a row is made odd, its hash made anew.
"""

# ruff: noqa: E501, S311  (a table of odd values; choices, not secrets)

from __future__ import annotations

import copy
import hashlib
import json
import random
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from agedp_data.ledger import Ledger
from tests import minimal
from tests.command import agedp

TABLES = ("contract", "model", "release", "statement")
INNER = ("promise", "claim", "envelope")
GONE = object()
"""In place of a value: its key is taken out."""
DEEP = json.loads("[" * 60 + "]" * 60)
ODD = [
    GONE, None, True, -1, 0, 1, 2**31, 2**63 - 1, 2**70, 0.5, "", "x", "0", "1", "0.5", "-1", "1e400", "nan", "unlimited", "mean", "all",
    "\ud800", "9999-12-31", "0001-01-01", "1970-01-01", "2999-12-31", "2013-01-02", "2999-12-31T00:00:00Z", "1970-01-01T00:00:00Z",
    "9999-12-31T23:59:59Z", [], {}, [None], [[]], {"a": []}, [1, 2], ["x"], {"x": "x"}, "x" * 5000, "two\nlines", "\x1b[31m", DEEP,
]  # fmt: skip


def canonical(value: object, key: str = "") -> str:
    """Return JSON as it is stored: a claim with spaces, all else without."""
    return json.dumps(value, sort_keys=True, separators=None if key == "claim" else (",", ":"))


def rows_of(path: Path) -> list[tuple[str, dict[str, Any]]]:
    """Every row as what its text says, the promises, claims and models inside it read too."""
    found = []
    with closing(sqlite3.connect(path)) as connection:
        for table in TABLES:
            for (text,) in connection.execute(f'SELECT text FROM "{table}"'):
                row = json.loads(text)
                row |= {key: json.loads(row[key]) for key in INNER if key in row and row.get("population") != ""}
                found.append((table, row))
    return sorted(found, key=lambda each: each[1]["seq"])


def inside(value: object) -> Iterator[tuple[str | int, ...]]:
    """Yield the keys that lead to each value."""
    yield ()
    items = value.items() if isinstance(value, dict) else enumerate(value[:2]) if isinstance(value, list) else ()
    for key, each in items:
        yield from ((key, *keys) for keys in inside(each))


def forge(path: Path, seq: int, keys: tuple[str | int, ...], odd: object) -> bool:
    """Make one value of a row odd, its hash anew, and the row the last; return whether the database took it."""
    table, row = next((table, row) for table, row in rows_of(path) if row["seq"] == seq)
    value: Any = row
    for key in keys[:-1]:
        value = value[key]
    if odd is GONE:
        del value[keys[-1]]
    else:
        value[keys[-1]] = copy.deepcopy(odd)
    row |= {key: canonical(row[key], key) for key in INNER if not isinstance(row.get(key, ""), str)}
    if table == "model" and keys[0] == "envelope":
        row["model"] = hashlib.sha256(str(row.get("envelope")).encode("ascii", "replace")).hexdigest()
    text = canonical(row)
    columns = {
        key: each if isinstance(each, str | int | float | None) else canonical(each) for key, each in row.items()
    }
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        triggers = dict(connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall())
        heads = [
            connection.execute(f'SELECT hash FROM "{each}" WHERE seq = ?', (seq - 1,)).fetchone() for each in TABLES
        ]
        head = next((found[0] for found in heads if found), "0" * 64)
        columns |= {"text": text, "hash": hashlib.sha256((head + text).encode("utf-8", "replace")).hexdigest()}
        for name in triggers:
            connection.execute(f'DROP TRIGGER "{name}"')
        for each in TABLES:
            connection.execute(f'DELETE FROM "{each}" WHERE seq >= ?', (seq,))
        try:
            names, marks = ", ".join(f'"{name}"' for name in columns), ", ".join("?" * len(columns))
            connection.execute(f'INSERT INTO "{table}" ({names}) VALUES ({marks})', tuple(columns.values()))
        except (sqlite3.Error, OverflowError, UnicodeEncodeError):
            return False
        for statement in triggers.values():
            connection.execute(statement)
    return True


URL = "sqlite:///ledger.sqlite"


def run_file(last: int, curve: str) -> str:
    """Two series under an aged promise on a declared model."""
    return minimal.run_file(
        input={"files": ["in/*"]},
        output={"title": "Made up"},
        schedule={"last_day": date(2013, 1, last)},
        **{
            "series.daily_mean": {"share": 0.5},
            "series.by_area": {"statistic": "mean", "by": "area", "clamp_kwh": 40, "share": 0.5},
        },
        promise={
            "accept": ["useless", "total"],
            "notion": "age-dependent", "age_days": 1, "method": "total_variation", "secret": "day", "epsilon_total": 30,
        },
        model={"source": "declared", "basis": "made up", "assume": "curve", "curve": f"{curve}.csv"},
    )  # fmt: skip


COMMANDS = [  # a ledger with a fault is refused by the first six; the first three accept any other
    ("ledger", "verify", "run.toml"),
    ("ledger", "show", "run.toml"),
    ("ledger", "show", URL, "--json"),
    ("plan", "run.toml"),
    ("ledger", "amend", "run.toml", "--yes"),
    ("publish", "run.toml"),
    ("verify", "release", "--ledger", URL),
    ("run", "run.toml", "--json"),
    ("verify", "release", "--ledger", URL),
    ("ledger", "recover", "release", "--to", "sqlite:///recovered.sqlite"),
    ("ledger", "export", "run.toml", "rows.jsonl", "--close"),
]


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """Two models, two contracts, two series, three days, one of them skipped, statements; two days still to come."""
    house = tmp_path_factory.mktemp("house")
    (house / "in").mkdir()
    stamps = [date(2013, 1, 1) + timedelta(days=day) for day in range(6)]
    times = [f"{day} {slot // 2:02}:{slot % 2 * 30:02}:00" for day in stamps for slot in range(48)]
    lines = [f"{home},{at},0.2" for home in "ABCD" for at in times]
    (house / "in" / "a.csv").write_text("\n".join(["LCLid,tstp,energy(kWh/hh)", *lines]) + "\n")
    others = "".join(f"{home},2013-01-01,2013-01-01,n\n{home},2013-01-03,,n\n" for home in "BCD")
    (house / "roster.csv").write_text(f"household_id,from,to,area\nA,2013-01-01,,n\n{others}")
    (house / "slow.csv").write_text("1,0.9\n7,0.8\n")
    (house / "fast.csv").write_text("1,0.1\n7,0.01\n")
    for last, curve, words in (
        (3, "slow", ("run",)),
        (5, "fast", ("ledger", "amend", "--yes")),
        (5, "fast", ("publish",)),
    ):
        (house / "run.toml").write_text(run_file(last, curve))
        assert agedp(*words, "run.toml", folder=house).status == 0
    shutil.rmtree(house / "release")  # its head would be found missing before anything else is read
    return house


def judged(house: Path, odd: str) -> bool:
    """Run every command; what `ledger verify` refuses, no other command reads. Return whether it is sound."""
    with Ledger.open(f"sqlite:///{house / 'ledger.sqlite'}") as ledger:
        sound = not ledger.verify()
    for number, words in enumerate(COMMANDS):
        ended = agedp(*words, folder=house)
        if ended.status:
            [line] = ended.err.splitlines()
            assert (line.startswith("agedp: "), line.isprintable(), ended.status in (2, 3)) == (True,) * 3, (
                odd,
                ended.err,
            )
            assert len(line) < 2000
        assert sound or number >= 6 or ended.status == 3, (odd, words)
        assert not sound or number >= 3 or ended.status == 0, (odd, words)
    return sound


@pytest.mark.parametrize(
    ("seed", "trials"), [(20261121, 4), *(pytest.param(seed, 100, marks=pytest.mark.long) for seed in range(8))]
)
def test_forged_ledgers_end_in_a_fault_or_one_line(good, tmp_path, seed, trials):
    choice, met = random.Random(seed), Counter()
    rows = [row for _, row in rows_of(good / "ledger.sqlite")]
    places = [(row["seq"], keys) for row in rows for keys in inside(row) if keys and keys[0] != "seq"]
    while met.total() < trials:
        (seq, keys), odd = choice.choice(places), choice.choice(ODD)
        house = shutil.copytree(good, tmp_path / "house")
        if not (isinstance(keys[-1], int) and odd is GONE) and forge(house / "ledger.sqlite", seq, keys, odd):
            met[judged(house, f"{seq} {keys} {str(odd)[:80]!r}")] += 1
        shutil.rmtree(house)
    assert met[False], met
    assert met[True] or trials < 100, met


def test_a_row_made_anew_around_nothing_odd_is_sound(good, tmp_path):
    house = shutil.copytree(good, tmp_path / "house")
    assert forge(house / "ledger.sqlite", 1, ("at",), "2013-01-03")
    assert judged(house, "")
