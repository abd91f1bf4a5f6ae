"""Several releases in one transaction: all at once at its end, or nothing of them; a refusal keeps what came before."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from sqlalchemy import Connection
from sqlalchemy.exc import DatabaseError

from agedp_data.errors import LedgerError, Refused
from agedp_data.ledger import ReleaseRecord
from agedp_data.ledger.backends.backend import LedgerDatabase
from agedp_data.ledger.backends.connect import database_at

if TYPE_CHECKING:
    from tests.agedp_data.ledger.conftest import Book

EVERYWHERE = True


def days(ledger):
    return [row.day for row in ledger.rows()]


def test_what_is_released_together_is_read_inside_and_seen_by_others_at_its_end(book: Book) -> None:
    with book.open() as ledger, book.open() as other:

        def three_days() -> None:
            for number in range(3):
                book.add(ledger, number)
                assert days(ledger) == [book.day(i) for i in range(number + 1)]
            assert days(other) == []

        ledger.in_one_transaction(three_days)
        assert days(ledger) == days(other) == [book.day(i) for i in range(3)]
        assert not other.verify()


def test_a_refusal_keeps_what_was_released_before_it(book: Book) -> None:
    def refuse(_: object) -> ReleaseRecord:
        raise Refused("no more")

    def two_days() -> None:
        book.add(ledger, 0)
        row = book.planned(1)
        ledger.release(row.population, row.series, row.day, draw=book.never, admit=refuse)

    with book.open() as ledger:
        with pytest.raises(Refused, match="no more"):
            ledger.in_one_transaction(two_days)
        assert days(ledger) == [book.day(0)]
        book.add(ledger, 1)
    with book.open() as ledger:
        assert days(ledger) == [book.day(0), book.day(1)]
        assert not ledger.verify()


def test_of_an_interrupted_one_nothing_stays_neither_stored_nor_in_memory(book: Book) -> None:
    def interrupted() -> None:
        book.add(ledger, 0)
        assert days(ledger) == [book.day(0)]
        raise KeyboardInterrupt

    with book.open() as ledger:
        before = ledger.head()
        with pytest.raises(KeyboardInterrupt):
            ledger.in_one_transaction(interrupted)
        assert (days(ledger), ledger.head()) == ([], before)
        book.add(ledger, 0)
        assert not ledger.verify()


def test_when_the_disk_fails_nothing_of_it_stays_and_the_next_one_goes_on(
    book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = type(database_at(book.url))
    sound, asked = kind.require_writable, []

    def fails_late(database: LedgerDatabase, connection: Connection) -> None:
        asked.append(connection)
        if len(asked) > 4:
            raise DatabaseError("INSERT", {}, OSError("the disk is full"))
        sound(database, connection)

    def three_days() -> None:
        for number in range(3):
            book.add(ledger, number)

    with book.open() as ledger:
        monkeypatch.setattr(kind, "require_writable", fails_late)
        with pytest.raises(LedgerError, match="refused"):
            ledger.in_one_transaction(three_days)
        monkeypatch.undo()
        assert days(ledger) == []
        book.add(ledger, 0)
        assert days(ledger) == [book.day(0)]


def test_a_second_one_inside_is_a_mistake_of_whoever_writes_it(book: Book) -> None:
    with book.open() as ledger:
        with pytest.raises(RuntimeError, match="held already"):
            ledger.in_one_transaction(lambda: ledger.in_one_transaction(lambda: None))
        ledger.in_one_transaction(lambda: book.add(ledger, 0))
        assert days(ledger) == [book.day(0)]
