"""Edits of a ledger behind its back: cells and triggers at will, or a chain that is made anew behind the edit."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from contextlib import closing, contextmanager

TABLES = ("contract", "model", "release", "statement")


@contextmanager
def raw(book, *, triggers=False):
    """The file itself; without its triggers until the end, unless they are wanted."""
    with closing(sqlite3.connect(book.path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous=OFF")
        listed = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
        dropped = {} if triggers else dict(connection.execute(listed).fetchall())
        for name in dropped:
            connection.execute(f'DROP TRIGGER "{name}"')
        yield connection
        for statement in dropped.values():
            connection.execute(statement)


def faults(book):
    with book.open() as ledger:
        return ledger.verify()


def rechain(book, seq, column, value, **more):
    """Edit one cell and make texts and hashes anew from there, as a careful forger would."""
    with raw(book) as connection:
        connection.row_factory = sqlite3.Row
        rows = sorted(
            ((table, dict(row)) for table in TABLES for row in connection.execute(f'SELECT * FROM "{table}"')),
            key=lambda each: each[1]["seq"],
        )
        previous = "0" * 64
        for table, row in rows:
            if row["seq"] == seq:
                changed = {column: value, **more}
                row["text"] = json.dumps(json.loads(row["text"]) | changed, sort_keys=True, separators=(",", ":"))
                row |= {
                    key: each if isinstance(each, (str, int)) else json.dumps(each, separators=(",", ":"))
                    for key, each in changed.items()
                }
            row["hash"] = hashlib.sha256((previous + row["text"]).encode()).hexdigest()
            previous = row["hash"]
            names = ", ".join(f'"{name}" = ?' for name in row)
            connection.execute(f'UPDATE "{table}" SET {names} WHERE seq = {row["seq"]}', tuple(row.values()))
