"""A release: drawn once, stored whole, in one transaction, in a file that is its owner's."""

from __future__ import annotations

import hashlib
import json
import math
import sqlite3
import stat
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from sqlalchemy.exc import DatabaseError

from agedp_data.errors import ContractChanged, LedgerBehind, LedgerError, Refused
from agedp_data.ledger import Ledger
from agedp_data.ledger.backends import sqlite
from agedp_data.ledger.backends.backend import transaction
from agedp_data.ledger.records import header_of
from tests.agedp_data.ledger.conftest import everywhere, promise

# What a ledger takes, stores and refuses: a day is drawn once, within the rules, and read for ever.


@everywhere
def test_a_day_once_stored_is_read_again_and_not_drawn(book):
    with book.open() as ledger:
        first = book.add(ledger, 0)
        again = ledger.release(book.homes, "mean", book.day(0), draw=book.never, admit=book.never)
    with book.open() as ledger:
        later = ledger.release(book.homes, "mean", book.day(0), draw=book.never, admit=book.never)
        assert first == again == later
        assert (ledger.head(), ledger.length()) == (first.hash, 2)


@everywhere
def test_what_was_stored_comes_back_field_by_field(book):
    scale, ends = math.nextafter(1 / 3, 1), [-(2**63), 2**63 - 1]
    changed = {"scale": scale, "sensitivity": 1, "loss": 3_000_000_000, "cells": ("é", 'a"b')}
    with book.open() as ledger:
        stored = book.release(ledger, 0, lambda _: np.array(ends), **changed)
        given = book.planned(0, **changed)
        assert stored == replace(given, values=tuple(ends), seq=2, at=given.published_on, hash=stored.hash)
        assert stored.scale.hex() == scale.hex()
    with book.open() as ledger:
        assert ledger.rows() == (stored,)


def sha256_of(previous, fields):
    return hashlib.sha256((previous + json.dumps(fields, sort_keys=True, separators=(",", ":"))).encode()).hexdigest()


def test_a_hash_is_sha256_of_the_one_before_and_the_sorted_json(book):
    text = json.dumps(book.promise, sort_keys=True, separators=(",", ":"))
    contract = {"at": "2025-01-08", "population": "london-homes", "promise": text, "seq": 1}
    assert book.contract == sha256_of("0" * 64, contract)
    with book.open() as ledger:
        assert ledger.id == ledger.head() == book.contract
        stored = book.add(ledger, 0)
    assert stored.hash == sha256_of(book.contract, {
        "at": "2025-01-08", "cells": ["all", "social"], "contract": book.contract, "day": "2025-01-01",
        "households": [5, 2], "input_ended_at": "2025-01-02T00:00:00Z", "loss": 750000000,
        "mechanism": "discrete-laplace", "model": "", "population": "london-homes", "published_on": "2025-01-08",
        "revision": 0, "scale": "4.0", "sensitivity": 3, "seq": 2, "series": "mean", "state": "released",
        "values": [100, 0],
    })  # fmt: skip


def test_a_release_sees_all_of_its_population_and_no_other(book):
    seen = []
    with book.open() as ledger, book.open() as second:
        other = ledger.register(promise("elsewhere"), at=book.day(7))
        stored = [book.add(ledger, 0), book.add(second, 0, series="bins"), book.skip(ledger, 1)]
        book.add(second, 2, population="elsewhere", contract=other.hash)
        admit = lambda rows: seen.append(rows) or book.planned(3)  # noqa: E731
        ledger.release(book.homes, "mean", book.day(3), draw=lambda _: [1, 2], admit=admit)
        assert seen == [tuple(map(header_of, stored))]
        assert ledger.rows() == second.rows()
        assert ledger.rows(book.homes, "bins") == (stored[1],)
        assert ledger.contains("0" * 64)
        assert not ledger.contains("f" * 64)


def test_a_refusal_or_a_draw_that_fails_leaves_the_day_open(book):
    def fail(_):
        raise OSError("no randomness")

    def refuse(_):
        raise Refused("2025-01-01 would exceed the window")

    with book.open() as ledger:
        with pytest.raises(Refused, match="the window"):
            ledger.release(book.homes, "mean", book.day(0), draw=book.never, admit=refuse)
        with pytest.raises(OSError, match="no randomness"):
            book.release(ledger, 0, fail)
        assert (ledger.head(), ledger.verify()) == (book.contract, ())
        assert book.add(ledger, 0).values == (100, 0)


WRONG_PLANS = [
    ({"loss": 749_999_999}, "loss 0.749999999 is below sensitivity 3 / scale 4.0"), ({"loss": 2**63}, "64 bits"),
    ({"scale": math.nextafter(4, 0)}, "below sensitivity"), ({"sensitivity": 4}, "below sensitivity"),
    ({"scale": math.inf}, "not positive"), ({"scale": math.nan}, "not positive"), ({"scale": 0.0}, "not positive"),
    ({"sensitivity": 0}, "not positive"), ({"sensitivity": 2**62 + 1}, "beyond 2\\^62"),
    ({"scale": 2.0**56, "loss": 1}, "beyond 2\\^55"), ({"contract": "f" * 64}, "not the one in force"),
    ({"model": "f" * 64}, "model it names"), ({"published_on": "8 January"}, "published_on is not an ISO date"),
    ({"published_on": "9999-12-31"}, "published_on is not an ISO date"), ({"day": "9999-12-31"}, "admitted"),
    *(({"input_ended_at": text}, "not a UTC instant") for text in (
        "2025-01-02T00:00:00", "2025-01-02T00:00:00+01:00", "2025-01-02T00:00:00+00:00", "9999-12-31T00:00:00Z")),
    ({"households": (5, 0)}, "households is not from 1"), ({"households": (5, 10**9 + 1)}, "households is not from 1"),
    ({"cells": ("all",)}, "1 cells"), ({"cells": ("all", "all")}, "named twice"), ({"state": "planned"}, "state"),
    ({"series": "other"}, "admitted"), ({"revision": 1}, "admitted"), ({"values": (1, 2)}, "before the draw"),
    ({"state": "skipped"}, "skipped day with cells, values or a loss"),
]  # fmt: skip
WRONG_DRAWS = [([1], LedgerError), ([1, 2, 3], LedgerError), ([1, 2**63], LedgerError), ([1.5, 2.0], TypeError)]


def test_what_breaks_a_rule_is_neither_drawn_nor_stored(book):
    with book.open() as ledger:
        for changed, message in WRONG_PLANS:
            row = book.planned(0, **changed)
            with pytest.raises(LedgerError, match=message):
                ledger.release(book.homes, "mean", book.day(0), draw=book.never, admit=lambda _, row=row: row)
        for values, kind in WRONG_DRAWS:
            with pytest.raises(kind):
                book.release(ledger, 0, lambda _, values=values: values)
        assert ledger.length() == 1


def test_published_on_never_runs_backwards(book):
    with book.open() as ledger:
        book.add(ledger, 3)
        with pytest.raises(LedgerError, match=r"2025-01-10, before 2025-01-11"):
            book.add(ledger, 2, published_on="2025-01-10")
        assert book.add(ledger, 2, published_on="2025-01-11").seq == 3


@everywhere
@pytest.mark.parametrize("bound_by", ["release", "skip", "draw"])
def test_a_promise_binds_from_the_first_row_on(book, bound_by):
    with book.open() as ledger:
        loose = promise(epsilon="2")
        second = ledger.register(loose, population=book.homes, at=book.day(8))
        ledger.require_unchanged(book.promise, population=book.homes)
        third = ledger.register(book.promise, population=book.homes, at=book.day(8))
        assert ledger.register(book.promise, population=book.homes, at=book.day(9)) == third
        assert [row.hash for row in ledger.contracts()] == [book.contract, second.hash, third.hash]
        with pytest.raises(LedgerError, match="not the one in force"):
            book.release(ledger, 3, book.never)
        if bound_by == "draw":
            period = book.day(0), book.day(9)
            ledger.draw_once(book.homes, period, {"of": "x"}, loss=10**8, draw=lambda: [1], at=book.day(9))
        else:
            book.contract = third.hash
            book.add(ledger, 3) if bound_by == "release" else book.skip(ledger, 3)
        for check in (ledger.require_unchanged, partial(ledger.register, at=book.day(20))):
            with pytest.raises(ContractChanged):
                check(loose, population=book.homes)
        assert ledger.verify() == ()


def test_another_promise_is_refused_key_by_key(book):
    changed = promise(epsilon="0.6", cap=2, series=("mean",)) | {"tags": ["a", "b"]}
    with book.open() as ledger:
        again = ledger.register(dict(reversed(book.promise.items())), population=book.homes, at=book.day(99))
        assert (again.hash, again.at) == (book.contract, book.day(7))
        book.add(ledger, 3)
        with pytest.raises(ContractChanged) as caught:
            ledger.register(changed, population=book.homes, at=book.day(8))
        for value in (0.5, None, {1: "a"}):
            with pytest.raises(TypeError, match="canonical text"):
                ledger.register({"promise": value}, population="others", at=book.day(8))
        assert ledger.length() == 2
    for line in (
        *("promise.cap: (absent) -> 2", 'promise.epsilon: "0.5" -> "0.6"', 'series.bins.share: "1" -> (absent)'),
        'tags: (absent) -> ["a","b"]',
    ):
        assert line in str(caught.value)
    assert "notion" not in str(caught.value)


def test_models_and_statements_are_stored_when_they_are_new(book):
    with book.open() as ledger:
        model = ledger.register_model(book.leakage_bound, at=book.day(7))
        assert model.model == hashlib.sha256(book.leakage_bound.encode()).hexdigest()
        assert ledger.register_model(book.leakage_bound, at=book.day(8)) == model
        assert ledger.models() == (model,)
        titles = ("one", "one", "two", "one")
        assert [book.record(ledger, book.claim(title)).seq for title in titles] == [3, 3, 4, 5]
        assert [json.loads(row.claim)["title"] for row in ledger.statements(book.homes)] == ["one", "two", "one"]
        assert ledger.statements("elsewhere") == ()


@everywhere
def test_an_empty_ledger_has_no_rows_no_id_and_no_faults(place):
    assert not Ledger.exists(place)
    with Ledger.open(place, create=True) as ledger:
        assert (ledger.head(), ledger.length(), ledger.id, ledger.rows()) == ("0" * 64, 0, "", ())
        assert ledger.verify() == ()


# Several releases in one transaction, all or nothing of them; and of several writers, one draws.


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


# Addresses and files that cannot be a ledger, in one line each; and what others do to a file.


def test_a_writer_that_waits_in_vain_says_so_and_reading_goes_on(book, monkeypatch):
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.1)
    with closing(sqlite3.connect(book.path, isolation_level=None)) as other, book.open() as ledger:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerError, match="another process has held it"):
            book.add(ledger, 0)
        assert ledger.length() == 1


def test_a_ledger_is_made_where_asked_for_its_owner_alone(tmp_path, full):
    path = tmp_path / "out" / "new folder" / "a b#c.sqlite"
    Ledger.open(f"sqlite:///{path}", create=True).close()
    assert [each.name for each in path.parent.iterdir()] == ["a b#c.sqlite"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    (tmp_path / "empty.sqlite").touch()
    Ledger.open(f"sqlite:///{tmp_path / 'empty.sqlite'}", create=True).close()
    with Ledger.open(full.url, create=True) as ledger:  # there already
        assert ledger.length() == 7


@pytest.mark.parametrize("create", [False, True])
def test_what_is_no_ledger_is_refused_in_one_line(tmp_path, create):
    (tmp_path / "text").write_text("household_id,day\n" * 100)
    with closing(sqlite3.connect(tmp_path / "other")) as connection:
        for name in ("meta", "contract", "model", "release", "statement"):
            connection.execute(f'CREATE TABLE "{name}" (name)')
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty").touch()
    refused = {"text": "not a ledger", "other": "not a ledger", "folder": "is a folder", "text/x": "cannot be made"}
    if not create:
        refused |= {"none": "does not exist", "empty": "not a ledger", "text/x": "does not exist"}
    before = sorted(tmp_path.iterdir())
    for name, message in refused.items():
        with pytest.raises(LedgerError, match=message) as caught:
            Ledger.open(f"sqlite:///{tmp_path / name}", create=create)
        assert "\n" not in str(caught.value)
        assert "sqlite3" not in str(caught.value)
        assert caught.value.__suppress_context__ or caught.value.__context__ is None
    assert sorted(tmp_path.iterdir()) == before


def test_a_file_deleted_while_open_is_not_made_anew(book):
    with book.open() as ledger:
        book.path.unlink()
        with pytest.raises(LedgerError, match="cannot be opened"):
            book.add(ledger, 0)
    assert not book.path.exists()


def test_a_ledger_that_cannot_be_written_is_read(full, monkeypatch):
    monkeypatch.setattr(sqlite, "MODE", "ro")  # file permissions do not bind the superuser
    with full.open() as ledger:
        with pytest.raises(LedgerError, match="cannot be written"):
            full.release(ledger, 8, full.never)
        assert full.add(ledger, 0) == ledger.rows()[0]
        assert ledger.verify() == ()


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("postgresql+psycopg2://agedp@ledger.internal/agedp", "no ledger on 'postgresql.psycopg2'"),
        ("postgresql://agedp@ledger.internal", "names no database"),
        ("postgresql://ledger.internal/agedp?host=a&host=b", "has an option twice"),
        ("postgresql://agedp:hunter2@ledger.internal/agedp", "password"),
        ("sqlite://u:hunter2@h/ledger.sqlite", "password"),
        ("postgresql://ledger.internal/agedp?password=hunter2", "password"),
        ("sqlite+aiosqlite:///ledger.sqlite", "no ledger on 'sqlite.aiosqlite'"),
        *((url, "a file of its own") for url in ("sqlite://", "sqlite:///:memory:", "sqlite:///ledger.sqlite?mode=ro")),
        *((url, "cannot be read") for url in ("l.sqlite", "user:hunter2@nowhere", "postgresql://u:hunter2@h:port/x")),
    ],
)
def test_an_address_is_refused_and_no_password_quoted(url, message):
    with pytest.raises(LedgerError, match=message) as caught:
        Ledger.open(url, create=True)
    assert "hunter2" not in str(caught.value) + caught.value.private


def test_every_connection_waits_for_the_disk(full):
    with transaction(sqlite.SQLiteDatabase(full.path), write=True) as connection:
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 3
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "delete"


def test_a_ledger_put_back_from_an_older_copy_is_noticed(book):
    with book.open() as ledger:
        older = book.path.read_bytes()
        book.add(ledger, 0)
        ledger.rows()
        book.path.write_bytes(older)
        with pytest.raises(LedgerBehind, match="replaced or shortened"):
            book.add(ledger, 1)
