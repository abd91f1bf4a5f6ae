"""Edits of a ledger behind its back, in a file or on a server: cells and triggers at will, or the chain made anew."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

TABLES = ("contract", "model", "release", "statement")


@dataclass
class Behind:
    """A connection that the ledger knows nothing of; `?` marks a value for either kind of database."""

    connection: Any
    marks: str

    def __call__(self, statement, *values):
        cursor = self.connection.execute(statement.replace("?", self.marks), values)
        return cursor.fetchall() if cursor.description else []

    def rows(self):
        """Return (seq, table) of every row."""
        return sorted((seq, table) for table in TABLES for (seq,) in self(f'SELECT seq FROM "{table}"'))

    def row(self, table, seq):
        """Return a row by its columns."""
        cursor = self.connection.execute(f'SELECT * FROM "{table}" WHERE seq = {seq}')
        return dict(zip([column[0] for column in cursor.description], cursor.fetchone(), strict=True))

    def insert(self, table, row):
        self(f'INSERT INTO "{table}" VALUES ({", ".join("?" * len(row))})', *row.values())


@contextmanager
def raw(book, *, triggers=False):
    """Give the ledger itself, as the superuser; its triggers are off until the end, unless they are wanted."""
    with (_file if book.server is None else _schema)(book, triggers) as behind:
        yield behind


@contextmanager
def _file(book, triggers):
    with closing(sqlite3.connect(book.path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous=OFF")
        listed = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
        dropped = {} if triggers else dict(connection.execute(listed).fetchall())
        for name in dropped:
            connection.execute(f'DROP TRIGGER "{name}"')
        yield Behind(connection, "?")
        for statement in dropped.values():
            connection.execute(statement)


@contextmanager
def _schema(book, triggers):
    schema = book.url.rpartition("%3D")[2]
    with book.server.connection(book.url.partition("@/")[2].partition("?")[0]) as connection:
        connection.execute(f"SET search_path = {schema}")
        listed = connection.execute(
            "SELECT relname, tgname FROM pg_trigger JOIN pg_class c ON c.oid = tgrelid"
            f" WHERE NOT tgisinternal AND relnamespace = '{schema}'::regnamespace AND NOT {triggers}"
        ).fetchall()
        for table, name in listed:
            connection.execute(f"ALTER TABLE {table} DISABLE TRIGGER {name}")
        yield Behind(connection, "%s")
        for table, name in listed:
            connection.execute(f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {name}")


def faults(book):
    with book.open() as ledger:
        return ledger.verify()


def rechain(book, seq, column, value, **more):
    """Edit one cell and make texts and hashes anew from there, as a careful forger would."""
    with raw(book) as behind:
        previous = "0" * 64
        for number, table in behind.rows():
            row = behind.row(table, number)
            if number == seq:
                changed = {column: value, **more}
                row["text"] = json.dumps(json.loads(row["text"]) | changed, sort_keys=True, separators=(",", ":"))
                row |= {
                    key: cell if isinstance(cell, (str, int)) else json.dumps(cell, separators=(",", ":"))
                    for key, cell in changed.items()
                }
            row["hash"] = previous = hashlib.sha256((previous + row["text"]).encode()).hexdigest()
            names = ", ".join(f'"{name}" = ?' for name in row)
            behind(f'UPDATE "{table}" SET {names} WHERE seq = {number}', *row.values())
