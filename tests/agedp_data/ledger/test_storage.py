"""Addresses and files that cannot be a ledger, in one line each; and what crashes and other processes do."""

from __future__ import annotations

import signal
import sqlite3
import stat
import subprocess
import sys
import time
from contextlib import closing

import pytest
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateTable

from agedp_data.errors import LedgerBehind, LedgerError
from agedp_data.ledger import Ledger
from agedp_data.ledger.backends import ledger_tables, sqlite
from agedp_data.ledger.backends.backend import transaction

CHILD = """
import os, sys, time
from pathlib import Path
from agedp_data.ledger import Ledger, ReleaseRecord

url, contract, how, days = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])

def draw(planned):
    if how == "exit":
        os._exit(7)
    if how == "hang":
        print("drawing", flush=True)
        time.sleep(60)
    with Path(url.removeprefix("sqlite:///") + ".draws").open("a") as draws:
        draws.write(planned.day + "\\n")
    return [os.getpid()]

ledger = Ledger.open(url)
for number in range(days):
    day = f"2025-01-{number + 1:02d}"
    planned = ReleaseRecord("london-homes", "mean", day, 0, "released", ("all",), (), (3,), 1, 2.0,
                      "discrete-laplace", 500_000_000, f"{day}T23:30:00Z", "2025-02-10", contract, "")
    stored = ledger.release("london-homes", "mean", day, draw=draw, admit=lambda history: planned)
    print(day, stored.values[0])
"""


def start(book, how, days):
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, book.url, book.contract, how, str(days)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_of_several_runs_at_once_exactly_one_draws_each_day_and_all_read_the_same(book):
    runs = [start(book, "draw", 12) for _ in range(3)]
    said = [run.communicate(timeout=60) for run in runs]
    assert [error for _, error in said] == ["", "", ""]
    assert len({out for out, _ in said}) == 1
    draws = book.path.with_name("ledger.sqlite.draws").read_text().split()
    assert sorted(draws) == [f"2025-01-{number + 1:02d}" for number in range(12)]
    with book.open() as ledger:
        assert ledger.verify() == ()
        assert ledger.length() == 13


@pytest.mark.parametrize("end", ["exit", "hang"])
def test_a_process_that_dies_inside_the_draw_leaves_the_day_open(book, end):
    run = start(book, end, 1)
    if end == "hang":
        assert run.stdout.readline() == "drawing\n"
        run.send_signal(signal.SIGKILL)
    run.communicate(timeout=60)
    assert run.returncode == (7 if end == "exit" else -signal.SIGKILL)
    with book.open() as ledger:
        assert (ledger.verify(), ledger.length()) == ((), 1)
        assert book.add(ledger, 0).seq == 2


def test_a_process_killed_at_any_instant_leaves_a_valid_ledger(book):
    for delay in (0.0, 0.05):
        run = start(book, "draw", 28)
        time.sleep(0.5 + delay)
        run.send_signal(signal.SIGKILL)
        run.communicate(timeout=60)
        with book.open() as ledger:
            assert ledger.verify() == ()
    run = start(book, "draw", 28)
    out, _ = run.communicate(timeout=60)
    with book.open() as ledger:
        assert out == "".join(f"{row.day} {row.values[0]}\n" for row in ledger.rows())
        assert ledger.length() == 29


def test_a_writer_that_waits_in_vain_says_so_in_one_line(book, monkeypatch):
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.1)
    with closing(sqlite3.connect(book.path, isolation_level=None)) as other, book.open() as ledger:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerError, match="another process has held it"):
            book.add(ledger, 0)
        assert ledger.length() == 1  # reading goes on


def test_a_new_ledger_is_made_in_a_new_folder_for_its_owner_alone(tmp_path):
    path = tmp_path / "out" / "new folder" / "a b#c.sqlite"
    with Ledger.open(f"sqlite:///{path}", create=True) as ledger:
        assert ledger.length() == 0
    assert [each.name for each in path.parent.iterdir()] == ["a b#c.sqlite"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_create_opens_a_ledger_that_is_there(full):
    with Ledger.open(full.url, create=True) as ledger:
        assert ledger.length() == 7


@pytest.mark.parametrize("create", [False, True])
def test_what_is_no_ledger_is_refused_in_one_line(tmp_path, create):
    text, other, folder = (tmp_path / name for name in ("text.sqlite", "other.sqlite", "folder"))
    text.write_text("household_id,day\n" * 100)
    with closing(sqlite3.connect(other)) as connection:
        for name in ("meta", "contract", "model", "release", "statement"):
            connection.execute(f'CREATE TABLE "{name}" (name)')
    folder.mkdir()
    for path, said in ((text, "not a ledger"), (other, "not a ledger"), (folder, "is a folder")):
        with pytest.raises(LedgerError, match=said) as caught:
            Ledger.open(f"sqlite:///{path}", create=create)
        assert "\n" not in str(caught.value)
        assert "sqlite3" not in str(caught.value)
        assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_a_file_that_is_not_there_is_not_made_unless_asked_for(tmp_path):
    with pytest.raises(LedgerError, match=r"the ledger .* does not exist"):
        Ledger.open(f"sqlite:///{tmp_path / 'none.sqlite'}")
    assert list(tmp_path.iterdir()) == []


def test_an_empty_file_is_no_ledger_until_one_is_made_of_it(tmp_path):
    path = tmp_path / "empty.sqlite"
    path.touch()
    with pytest.raises(LedgerError, match="not a ledger"):
        Ledger.open(f"sqlite:///{path}")
    Ledger.open(f"sqlite:///{path}", create=True).close()
    Ledger.open(f"sqlite:///{path}").close()


def test_a_file_deleted_while_open_is_not_made_anew(book):
    with book.open() as ledger:
        book.path.unlink()
        with pytest.raises(LedgerError, match="cannot be opened"):
            book.add(ledger, 0)
    assert not book.path.exists()


def test_a_ledger_that_cannot_be_written_is_read_and_refuses_to_draw(full, monkeypatch):
    monkeypatch.setattr(sqlite, "MODE", "ro")  # file permissions do not bind the superuser
    with full.open() as ledger:
        assert len(ledger.rows()) == 3
        assert ledger.verify() == ()
        with pytest.raises(LedgerError, match="cannot be written"):
            ledger.release(full.homes, "mean", full.day(8), draw=full.never, admit=lambda _: full.planned(8))
        assert full.add(ledger, 0).seq == 3  # what is stored can still be asked for


def test_a_folder_that_cannot_be_made_is_refused_in_one_line(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(LedgerError, match="cannot be made"):
        Ledger.open(f"sqlite:///{tmp_path / 'file' / 'ledger.sqlite'}", create=True)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("postgresql+psycopg2://agedp@ledger.internal/agedp", "no ledger on 'postgresql.psycopg2'"),
        ("postgresql://agedp@ledger.internal", "names no database"),
        ("postgresql://ledger.internal/agedp?host=a&host=b", "has an option twice"),
        ("postgresql://agedp:hunter2@ledger.internal/agedp", "password"),
        ("sqlite://u:hunter2@h/ledger.sqlite", "password"),
        ("postgresql://ledger.internal/agedp?password=hunter2", "password"),
        ("mysql://ledger.internal/agedp", "no ledger on 'mysql'"),
        ("sqlite+aiosqlite:///ledger.sqlite", "no ledger on 'sqlite.aiosqlite'"),
        ("sqlite://", "a file of its own"),
        ("sqlite:///:memory:", "a file of its own"),
        ("sqlite:///ledger.sqlite?mode=ro", "a file of its own"),
        ("ledger.sqlite", "cannot be read"),
        ("user:hunter2@nowhere", "cannot be read"),
        ("postgresql://u:hunter2@h:port/x", "cannot be read"),
    ],
)
def test_an_address_that_cannot_be_used_is_refused_and_no_password_quoted(url, message):
    with pytest.raises(LedgerError, match=message) as caught:
        Ledger.open(url, create=True)
    assert "hunter2" not in str(caught.value) + caught.value.private


def test_the_tables_are_ready_for_postgresql():
    for name, table in ledger_tables.TABLES.items():
        made = str(CreateTable(table).compile(dialect=postgresql.dialect()))
        assert "seq BIGINT NOT NULL" in made
        assert name in made
    assert "loss BIGINT NOT NULL" in str(
        CreateTable(ledger_tables.TABLES["release"]).compile(dialect=postgresql.dialect())
    )


def test_every_connection_waits_for_the_disk(full):
    with transaction(sqlite.SQLiteDatabase(full.path), write=True) as connection:
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 3
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "delete"


def test_a_ledger_put_back_from_an_older_copy_is_noticed_while_it_is_open(book):
    with book.open() as ledger:
        older = book.path.read_bytes()
        book.add(ledger, 0)
        ledger.rows()
        book.path.write_bytes(older)
        with pytest.raises(LedgerBehind, match="replaced or shortened"):
            book.add(ledger, 1)


def test_a_damaged_file_says_so_and_what_helps_and_never_to_verify_it_once_more(full):
    whole, refused = full.path.read_bytes(), 0
    for page in range(len(whole) // 4096):
        full.path.write_bytes(whole[: page * 4096] + bytes(range(256)) * 16 + whole[page * 4096 + 4096 :])
        try:
            with full.open() as ledger:
                assert ledger.verify()
        except LedgerError as error:
            refused += 1
            said = str(error)
            assert "ledger verify" not in said, page
            assert "put back a good copy" in said or "not a ledger" in said, said
    assert refused
