"""A ledger of known content: what the tests of the ledger are made of."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING

import pytest

from agedp_data.ledger import Ledger, Release
from tests.agedp_data.ledger.texts import ENVELOPE, claim, promise

if TYPE_CHECKING:
    from pathlib import Path


@dataclass
class Book:
    """A place for a ledger, and releases of two cells: sensitivity 3 at scale 4, a loss of exactly 0.75."""

    path: Path
    contract: str = ""
    homes = "london-homes"
    promise = promise()
    envelope = ENVELOPE
    digest = "ab" * 32

    @property
    def url(self) -> str:
        return f"sqlite:///{self.path}"

    def open(self) -> Ledger:
        return Ledger.open(self.url)

    def day(self, number: int) -> str:
        return (date(2025, 1, 1) + timedelta(days=number)).isoformat()

    def planned(self, number: int, **changed: object) -> Release:
        fields: dict[str, object] = {
            "population": self.homes,
            "series": "mean",
            "day": self.day(number),
            "revision": 0,
            "state": "released",
            "cells": ("all", "social"),
            "values": (),
            "households": (5, 2),
            "sensitivity": 3,
            "scale": 4.0,
            "mechanism": "discrete-laplace",
            "loss": 750_000_000,
            "input_ended_at": f"{self.day(number + 1)}T00:00:00Z",
            "published_on": self.day(number + 7),
            "contract": self.contract,
            "model": "",
        }
        return Release(**(fields | changed))  # type: ignore[arg-type]

    def add(self, ledger: Ledger, number: int, **changed: object) -> Release:
        row = self.planned(number, **changed)
        values = [100 + number, -number]
        return ledger.release(row.population, row.series, row.day, draw=lambda _: values, admit=lambda _: row)

    def skip(self, ledger: Ledger, number: int) -> Release:
        return self.add(ledger, number, state="skipped", cells=(), households=(), loss=0, scale=0.0)

    def claim(self, title: str = "") -> str:
        """A claim whose head is the contract, told apart by its title."""
        return claim(self.promise, head=self.contract, title=title)

    def never(self, *_: object) -> Release:
        raise LookupError("this must not be called")


@pytest.fixture
def book(tmp_path: Path) -> Book:
    """A ledger with a contract and nothing else."""
    book = Book(tmp_path / "ledger.sqlite")
    with Ledger.open(book.url, create=True) as ledger:
        book.contract = ledger.register(book.promise, population=book.homes, at=book.day(7)).hash
    return book


@pytest.fixture
def full(book: Book) -> Book:
    """Rows 1 contract, 2 model, 3 and 4 releases, 5 a skipped day, 6 and 7 statements."""
    with book.open() as ledger:
        model = ledger.adopt(book.envelope, at=book.day(7)).model
        book.add(ledger, 0)
        book.add(ledger, 1, model=model)
        book.skip(ledger, 2)
        for number in (1, 2):
            ledger.record(
                book.claim(f"claim {number}"),
                population=book.homes,
                files={"a.parquet": book.digest},
                software="1",
                at=book.day(9),
            )
    return book
