"""Addresses and files that cannot be a ledger, in one line each; and what others do to a file."""

from __future__ import annotations

import sqlite3
import stat
from contextlib import closing

import pytest

from agedp_data.errors import LedgerBehind, LedgerError
from agedp_data.ledger import Ledger
from agedp_data.ledger.backends import sqlite
from agedp_data.ledger.backends.backend import transaction


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
