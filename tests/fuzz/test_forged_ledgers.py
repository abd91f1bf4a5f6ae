"""Ledgers whose rows are odd and whose hashes are right: one line from every command, never a traceback.

The forger knows the ledger well: one value is made odd, every hash and every reference made anew.
"""

# ruff: noqa: E501, S311  (a table of odd values; choices, not secrets)

from __future__ import annotations

import copy
import hashlib
import json
import random
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from agedp_data.ledger import Ledger
from agedp_flows.cli.app import main
from tests import minimal

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

Row = dict[str, Any]
Place = tuple[int, tuple[str | int, ...]]
"""A row's number, and the keys that lead to a value inside it."""


def rows_of(path: Path) -> list[tuple[str, Row]]:
    """Every row as what its text says, the promises, claims and models inside it read too."""
    found = []
    with closing(sqlite3.connect(path)) as connection:
        for table in TABLES:
            for text, digest in connection.execute(f'SELECT text, hash FROM "{table}"'):
                row = json.loads(text)
                row |= {key: json.loads(row[key]) for key in INNER if key in row and row.get("population") != ""}
                found.append((table, row | {"hash": digest}))
    return sorted(found, key=lambda each: each[1]["seq"])


def inside(value: object) -> Iterator[tuple[str | int, ...]]:
    yield ()
    items = value.items() if isinstance(value, dict) else enumerate(value[:2]) if isinstance(value, list) else ()
    for key, each in items:
        yield from ((key, *keys) for keys in inside(each))


def forge(path: Path, place: Place, odd: object) -> bool:
    """Put an odd value at a place and make the chain anew; return whether the database took it."""
    seq, keys = place
    renamed: dict[str, str] = {}
    head, made = "0" * 64, []
    for table, row in rows_of(path):
        text = json.dumps(row)
        for old, new in renamed.items():
            text = text.replace(old, new)
        fresh = json.loads(text)
        model = fresh.get("model")
        if row["seq"] == seq:
            put(fresh, keys, odd)
        del fresh["hash"]
        for key in INNER:
            if not isinstance(fresh.get(key, ""), str):  # a claim is written with spaces, all else without
                separators = None if key == "claim" else (",", ":")
                fresh[key] = json.dumps(fresh[key], sort_keys=True, separators=separators)
        if table == "model" and keys[0] == "envelope" and row["seq"] == seq:
            fresh["model"] = hashlib.sha256(str(fresh.get("envelope")).encode("ascii", "replace")).hexdigest()
            renamed[str(model)] = fresh["model"]
        text = canonical(fresh)
        head = hashlib.sha256((head + text).encode()).hexdigest()
        renamed[row["hash"]] = head
        plain = {
            key: each if isinstance(each, str | int | float | None) else canonical(each) for key, each in fresh.items()
        }
        made.append((table, plain | {"text": text, "hash": head}))
    return stored(path, made)


def canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def put(value: Any, keys: tuple[str | int, ...], odd: object) -> None:
    *above, last = keys
    for key in above:
        value = value[key]
    if odd is GONE:
        del value[last]
    else:
        value[last] = copy.deepcopy(odd)


def stored(path: Path, made: list[tuple[str, Row]]) -> bool:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        triggers = dict(connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall())
        connection.execute("BEGIN")
        for name in triggers:
            connection.execute(f'DROP TRIGGER "{name}"')
        for table in TABLES:
            connection.execute(f'DELETE FROM "{table}"')
        try:
            for table, row in made:
                names, marks = ", ".join(f'"{name}"' for name in row), ", ".join("?" * len(row))
                connection.execute(f'INSERT INTO "{table}" ({names}) VALUES ({marks})', tuple(row.values()))
        except (sqlite3.Error, OverflowError, UnicodeEncodeError):
            connection.execute("ROLLBACK")
            return False
        for statement in triggers.values():
            connection.execute(statement)
        connection.execute("COMMIT")
        return True


URL = "sqlite:///ledger.sqlite"
COMMANDS = [  # a ledger with a fault is refused by the first six; the first three accept any other
    ("ledger", "verify", "run.toml"),
    ("ledger", "show", "run.toml"),
    ("ledger", "show", URL, "--json"),
    ("plan", "run.toml"),
    ("ledger", "amend", "run.toml", "--yes"),
    ("publish", "run.toml"),
    ("run", "run.toml", "--json"),
    ("verify", "release", "--ledger", URL),
    ("ledger", "recover", "release", "--to", "sqlite:///recovered.sqlite"),
    ("ledger", "export", "run.toml", "rows.jsonl", "--close"),
]


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
            "notion": "age-dependent", "age_days": 1, "method": "total_variation", "secret": "day", "epsilon_total": 30,
        },
        model={"source": "declared", "basis": "made up", "assume": "curve", "curve": f"{curve}.csv"},
    )  # fmt: skip


COMMANDS = [
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


def ended(*words: str) -> int:
    """Run the command in this process; a traceback is the test's failure."""
    sys.argv = ["agedp", *words]
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


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
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(house)
        patch.setattr(sys, "argv", sys.argv)
        for last, curve, words in ((3, "slow", ("run",)), (5, "fast", ("ledger", "amend")), (5, "fast", ("publish",))):
            (house / "run.toml").write_text(run_file(last, curve))
            assert ended(*words, "run.toml", *(["--yes"] if "amend" in words else [])) == 0
    shutil.rmtree(house / "release")  # its head would be found missing before anything else is read
    return house


@pytest.fixture
def judged(good, tmp_path, capsys, monkeypatch):
    """Return what forges a copy and runs every command on it; what `ledger verify` refuses, no other command reads."""
    monkeypatch.setattr(sys, "argv", sys.argv)

    def run(place: Place, odd: object) -> dict[tuple[str, ...], int] | None:
        monkeypatch.chdir(tmp_path)
        shutil.rmtree(tmp_path / "house", ignore_errors=True)
        monkeypatch.chdir(shutil.copytree(good, tmp_path / "house"))
        if not forge(tmp_path / "house" / "ledger.sqlite", place, odd):
            return None
        with Ledger.open(URL) as ledger:
            sound = not ledger.verify()
        met = {}
        for number, words in enumerate(COMMANDS):
            met[words] = status = ended(*words)
            errors = capsys.readouterr().err
            if status:
                [line] = errors.splitlines()
                assert (line.startswith("agedp: "), line.isprintable(), status in (2, 3)) == (True,) * 3, errors
                assert len(line) < 2000
            assert sound or number >= 6 or status == 3, words
            assert not sound or number >= 3 or status == 0, words
        return met

    return run


def test_a_chain_made_anew_around_nothing_odd_is_as_good_as_the_first(judged):
    assert set(judged((1, ("at",)), "2013-01-03").values()) == {0}
    with Ledger.open(URL) as ledger:
        assert {row.state for row in ledger.rows()} == {"released", "skipped"}
        assert (len(ledger.contracts()), len(ledger.models())) == (2, 2)


@pytest.mark.parametrize(
    ("seed", "trials"), [(20261121, 5), *(pytest.param(seed, 100, marks=pytest.mark.long) for seed in range(8))]
)
def test_forged_ledgers_end_in_a_fault_or_one_line(good, judged, seed, trials):
    choice, ends = random.Random(seed), {0: 0, 3: 0}
    rows = [row for _, row in rows_of(good / "ledger.sqlite")]
    places = [(row["seq"], keys) for row in rows for keys in inside(row) if keys and keys[0] not in ("seq", "hash")]
    while sum(ends.values()) < trials:
        place, odd = choice.choice(places), choice.choice(ODD)
        if isinstance(place[1][-1], int) and odd is GONE:
            continue
        try:
            met = judged(place, odd)
        except BaseException as error:
            error.add_note(f"at {place}: {str(odd)[:80]!r}")
            raise
        if met is not None:
            ends[met[COMMANDS[0]]] += 1
    assert min(ends.values()) > 5 or (trials < 100 and ends[3]), ends
