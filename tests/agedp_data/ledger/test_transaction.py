"""Several releases in one transaction, all or nothing of them; and of several writers, one draws."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy.exc import DatabaseError

from agedp_data.errors import LedgerError, Refused
from agedp_data.ledger.ledger import Ledger
from tests.agedp_data.ledger.conftest import everywhere


def days(ledger):
    return [row.day for row in ledger.rows()]


@everywhere
def test_what_is_released_together_is_seen_by_others_at_its_end(book):
    def three_days():
        for number in range(3):
            book.add(ledger, number)
            assert days(ledger) == [book.day(i) for i in range(number + 1)]
        assert days(other) == []

    with book.open() as ledger, book.open() as other:
        with pytest.raises(RuntimeError, match="held already"):
            ledger.in_one_transaction(lambda: ledger.in_one_transaction(lambda: None))
        ledger.in_one_transaction(three_days)
        assert days(ledger) == days(other) == [book.day(i) for i in range(3)]
        assert not other.verify()


@everywhere
@pytest.mark.parametrize(("error", "kept"), [(Refused("no more"), 1), (KeyboardInterrupt(), 0)])
def test_a_refusal_keeps_what_came_before_an_interrupt_nothing(book, error, kept):
    def fail(_):
        raise error

    def two_days():
        book.add(ledger, 0)
        row = book.planned(1)
        ledger.release(row.population, row.series, row.day, draw=book.never, admit=fail)

    with book.open() as ledger:
        with pytest.raises(type(error)):
            ledger.in_one_transaction(two_days)
        assert days(ledger) == [book.day(0)][:kept]
        book.add(ledger, 1)
    with book.open() as ledger:
        assert days(ledger) == [*[book.day(0)][:kept], book.day(1)]
        assert not ledger.verify()


@everywhere
def test_when_the_disk_fails_nothing_of_it_stays(book, monkeypatch):
    inserted, sound = [], Ledger._insert

    def fails_late(ledger, row):
        inserted.append(row)
        if len(inserted) > 2:
            raise DatabaseError("INSERT", {}, OSError("the disk is full"))
        sound(ledger, row)

    with book.open() as ledger:
        monkeypatch.setattr(Ledger, "_insert", fails_late)
        with pytest.raises(LedgerError, match="refused"):
            ledger.in_one_transaction(lambda: [book.add(ledger, number) for number in range(3)])
        monkeypatch.undo()
        assert days(ledger) == []
        assert book.add(ledger, 0).seq == 2


@everywhere
def test_of_several_writers_at_once_one_draws_each_day(book):
    numbers, drawn = range(4), []

    def draw(row):
        drawn.append(row.day)
        return [len(drawn), 0]

    def write(_):
        with book.open() as ledger:
            return [book.release(ledger, number, draw, published_on="2025-02-01") for number in numbers]

    with ThreadPoolExecutor(3) as threads:
        first, *others = threads.map(write, range(3))
    assert others == [first, first]
    assert sorted(drawn) == [book.day(number) for number in numbers]
    with book.open() as ledger:
        assert ledger.verify() == ()
