"""A ledger changed by somebody who knows it well: one value made odd, every hash and every reference made anew."""

# ruff: noqa: E501  (a table of odd values)

from __future__ import annotations

import copy
import hashlib
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

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
                said = json.loads(text)
                said |= {key: json.loads(said[key]) for key in INNER if key in said and said.get("population") != ""}
                found.append((table, said | {"hash": digest}))
    return sorted(found, key=lambda each: each[1]["seq"])


def places(path: Path) -> list[Place]:
    """Every value of every row, but its number and its hash."""
    return [
        (row["seq"], keys)
        for _, row in rows_of(path)
        for keys in _inside(row)
        if keys and keys[0] not in ("seq", "hash")
    ]


def _inside(value: object) -> Iterator[tuple[str | int, ...]]:
    yield ()
    items = value.items() if isinstance(value, dict) else enumerate(value[:2]) if isinstance(value, list) else ()
    for key, each in items:
        yield from ((key, *keys) for keys in _inside(each))


def forge(path: Path, place: Place, odd: object) -> bool:
    """Put an odd value at a place and make the chain anew; tell whether the database took it."""
    seq, keys = place
    renamed: dict[str, str] = {}
    head, made = "0" * 64, []
    for table, row in rows_of(path):
        fresh = json.loads(_renamed(json.dumps(row), renamed))
        before, before_model = row["hash"], fresh.get("model")
        if row["seq"] == seq:
            _put(fresh, keys, odd)
        del fresh["hash"]
        fresh |= {key: _written(key, fresh[key]) for key in INNER if not isinstance(fresh.get(key, ""), str)}
        if table == "model" and keys[0] == "envelope" and row["seq"] == seq:
            fresh["model"] = hashlib.sha256(str(fresh.get("envelope")).encode("ascii", "replace")).hexdigest()
            renamed[str(before_model)] = fresh["model"]
        text = json.dumps(fresh, sort_keys=True, separators=(",", ":"))
        head = hashlib.sha256((head + text).encode()).hexdigest()
        renamed[before] = head
        made.append((table, {key: _column(each) for key, each in fresh.items()} | {"text": text, "hash": head}))
    return _stored(path, made)


def _renamed(text: str, renamed: dict[str, str]) -> str:
    for old, new in renamed.items():
        text = text.replace(old, new)
    return text


def _put(value: Any, keys: tuple[str | int, ...], odd: object) -> None:
    *above, last = keys
    for key in above:
        value = value[key]
    if odd is GONE:
        del value[last]
    else:
        value[last] = copy.deepcopy(odd)


def _written(key: str, value: object) -> str:
    """What agedp would write: a claim with spaces, all else without."""
    return json.dumps(value, sort_keys=True, separators=None if key == "claim" else (",", ":"))


def _column(value: object) -> object:
    return (
        value
        if isinstance(value, str | int | float | None)
        else json.dumps(value, sort_keys=True, separators=(",", ":"))
    )


def _stored(path: Path, made: list[tuple[str, Row]]) -> bool:
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
