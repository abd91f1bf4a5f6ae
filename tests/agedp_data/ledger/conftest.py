"""Books, texts, places and witnesses for the tests of the ledger, and what is behind its back."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from agedp_data.config.contract_document import ContractDocument
from agedp_data.ledger import Ledger, ReleaseRecord
from agedp_data.ledger.witness import WitnessState, format_state
from agedp_data.notions.notion import LossBound
from agedp_data.statement.document import ContractVersion
from agedp_data.statement.facts import SeriesEnd, StatementFacts, build_statement
from tests.postgresql import ROLE, PostgreSQL

# Promises, claims and models' public parts of the form that a ledger takes.

ENVELOPE = json.dumps(
    {
        "envelope": {
            "ages": [48], "assume": "curve", "bounds": {"total_variation": [500_000_000]},
            "losses": [1_000_000_000, "inf"], "steps_per_day": 48,
        },
        "source": "declared",
    },
    sort_keys=True,
    separators=(",", ":"),
)  # fmt: skip


def promise(
    population: str = "london-homes", *, series: tuple[str, ...] = ("mean", "bins"), **terms: object
) -> dict[str, Any]:
    """A promise to these people about these series; `terms` change what is promised."""
    return {
        "version": 1,
        "input": {"dataset": "london"},
        "population": {"name": population, "min_households": 1},
        "schedule": {"mode": "archive", "first_day": "2013-01-01", "last_day": "2026-12-31"},
        "promise": {"notion": "classical", "epsilon": "0.5", "max_day_epsilon": "1", "epsilon_total": "9", **terms},
        "series": {name: {"statistic": "mean", "clamp_kwh": "50", "share": "1"} for name in series},
    }


def claim(contract: Mapping[str, Any], *, head: str, title: str = "") -> str:
    """What is claimed to the people of a contract before anything was released."""
    facts = StatementFacts(
        title={"title": title}, contract=ContractDocument.model_validate(contract), days=(), skipped=(),
        published_on=(),
        bounds=[LossBound(name, 0, "assumption-free", name) for name in ("day", "total")],
        limits={"day": 10**9, "total": 9 * 10**9}, ending=SeriesEnd("", "", None), model=None, notes=(),
        ledger_id=head, head=head, versions=[ContractVersion(registered="2013-01-01", changes=[])],
        software={"agedp": "0"},
    )  # fmt: skip
    return build_statement(facts).text()


# A ledger of known content: what the tests of the ledger are made of.

_NUMBERS = count(1)
everywhere = pytest.mark.parametrize("place", ["sqlite", "postgresql"], indirect=True)
"""In each kind of database; a test without it has a ledger in a file."""


@dataclass
class Book:
    """A place for a ledger, and releases of two cells: sensitivity 3 at scale 4, a loss of exactly 0.75."""

    url: str
    contract: str = ""
    server: PostgreSQL | None = None
    homes = "london-homes"
    promise = promise()
    leakage_bound = ENVELOPE
    digest = "ab" * 32

    @property
    def path(self) -> Path:
        """The file, of a ledger that is one."""
        return Path(self.url.removeprefix("sqlite:///"))

    def open(self) -> Ledger:
        return Ledger.open(self.url)

    def begin(self) -> Ledger:
        """Make the ledger and register the promise."""
        ledger = Ledger.open(self.url, create=True)
        self.contract = ledger.register(self.promise, population=self.homes, at=self.day(7)).hash
        return ledger

    def day(self, number: int) -> str:
        return (date(2025, 1, 1) + timedelta(days=number)).isoformat()

    def planned(self, number: int, **changed: object) -> ReleaseRecord:
        fields: dict[str, object] = {
            "population": self.homes, "series": "mean", "day": self.day(number), "revision": 0, "state": "released",
            "cells": ("all", "social"), "values": (), "households": (5, 2), "sensitivity": 3, "scale": 4.0,
            "mechanism": "discrete-laplace", "loss": 750_000_000, "input_ended_at": f"{self.day(number + 1)}T00:00:00Z",
            "published_on": self.day(number + 7), "contract": self.contract, "model": "",
        }  # fmt: skip
        return ReleaseRecord(**(fields | changed))  # type: ignore[arg-type]

    def add(self, ledger: Ledger, number: int, **changed: object) -> ReleaseRecord:
        return self.release(ledger, number, lambda _: [100 + number, -number], **changed)

    def release(self, ledger: Ledger, number: int, draw: Callable[..., Any], **changed: object) -> ReleaseRecord:
        """Release a day whose plan is admitted as it is."""
        row = self.planned(number, **changed)
        return ledger.release(row.population, row.series, row.day, draw=draw, admit=lambda _: row)

    def skip(self, ledger: Ledger, number: int) -> ReleaseRecord:
        return self.release(ledger, number, self.never, state="skipped", cells=(), households=(), loss=0, scale=0.0)

    def claim(self, title: str = "") -> str:
        """A claim whose head is the contract, told apart by its title."""
        return claim(self.promise, head=self.contract, title=title)

    def record(self, ledger: Ledger, claim: str, **changed: Any) -> Any:
        keys = {"population": self.homes, "files": {"a.parquet": self.digest}, "software": "1", "at": self.day(9)}
        return ledger.record(claim, **(keys | changed))

    def never(self, *_: object) -> ReleaseRecord:
        raise LookupError("this must not be called")


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a ledger that is still to be made."""
    if getattr(request, "param", "sqlite") == "sqlite":
        return f"sqlite:///{tmp_path / 'ledger.sqlite'}"
    return str(request.getfixturevalue("new_schema"))


@pytest.fixture(scope="session")
def shared_database(postgresql: PostgreSQL) -> str:
    """A database in which each test has a schema of its own."""
    return postgresql.database()


@pytest.fixture
def new_schema(postgresql: PostgreSQL, shared_database: str) -> str:
    """The address of an empty schema."""
    name = f"book_{next(_NUMBERS)}"
    postgresql.admin(f"CREATE SCHEMA {name} AUTHORIZATION {ROLE}", database=shared_database)
    return postgresql.url(shared_database, options=f"-csearch_path%3D{name}")


@pytest.fixture
def server(postgresql: PostgreSQL) -> PostgreSQL:
    return postgresql


@pytest.fixture
def own(server: PostgreSQL) -> Iterator[str]:
    """A database of one test alone."""
    name = server.database()
    yield name
    server.drop(name)


@pytest.fixture
def book(place: str, request: pytest.FixtureRequest) -> Book:
    """A ledger with a contract and nothing else."""
    book = Book(place, server=None if place.startswith("sqlite") else request.getfixturevalue("postgresql"))
    book.begin().close()
    return book


@pytest.fixture
def full(book: Book) -> Book:
    """Rows 1 contract, 2 model, 3 and 4 releases, 5 a skipped day, 6 and 7 statements."""
    with book.open() as ledger:
        model = ledger.register_model(book.leakage_bound, at=book.day(7)).model
        book.add(ledger, 0)
        book.add(ledger, 1, model=model)
        book.skip(ledger, 2)
        for title in ("claim 1", "claim 2"):
            book.record(ledger, book.claim(title))
    return book


# Edits of a ledger behind its back, in a file or on a server: cells and triggers at will, or the chain made anew.

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


# One place of a witness of each kind, for the tests that hold for all of them.

KINDS = ("file", "object")
"""Kinds of a new population."""


def place_of(kind: str, folder: Path, request: pytest.FixtureRequest) -> str:
    """Return a place that holds no record yet, as a run file names it."""
    name = os.urandom(8).hex()
    if kind == "file":
        return str(folder / f"{name}.witness")
    return f"{request.getfixturevalue('bucket')}/{name}/witness.json"


def stored_row(server: PostgreSQL, *records: tuple[str, WitnessState]) -> str:
    """Return a database with the table that 0.2 made, and with these records by name; a run file names one behind #."""
    name = server.database()
    server.admin(
        "CREATE TABLE agedp_witness (name text PRIMARY KEY, state text NOT NULL)",
        "GRANT SELECT, UPDATE ON agedp_witness TO agedp",
        *(f"INSERT INTO agedp_witness VALUES ('{row}', '{format_state(state).decode()}')" for row, state in records),
        database=name,
    )
    return name
