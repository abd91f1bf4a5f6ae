"""A ledger of known content: what the tests of the ledger are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from agedp_data.ledger import Ledger, ReleaseRecord
from tests.agedp_data.ledger.texts import ENVELOPE, claim, promise
from tests.postgresql import ROLE, PostgreSQL

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
