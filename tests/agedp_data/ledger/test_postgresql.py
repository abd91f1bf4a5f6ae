"""Ledgers on PostgreSQL: lost commits, servers that go away, roles and refusals."""

from __future__ import annotations

import re
import socket
import sys
import threading
import time
from datetime import date
from itertools import count
from pathlib import Path

import psycopg
import pytest

from agedp.ledger_transfer import export_ledger, import_ledger
from agedp_data.errors import LedgerBehind, LedgerError
from agedp_data.ledger import Ledger
from agedp_data.ledger.backends import backend, postgresql
from agedp_data.ledger.backends.backend import transaction
from agedp_data.ledger.backends.connect import database_at
from tests.agedp_data.ledger.conftest import Book, raw
from tests.postgresql import PASSWORD, ROLE

# A ledger on a PostgreSQL server: drawn once whatever the server, the network and other writers do.


@pytest.fixture
def place(new_schema):
    return new_schema


BEFORE, AFTER, LATE = "before", "after", "late"
"""A COMMIT never arrives; it is carried out and the answer is lost; it is carried out when the client has gone."""


@pytest.fixture
def fates(monkeypatch):
    """How connections are lost at the next COMMITs, one after the other."""
    fates, timers = [], []
    commit, close = psycopg.Connection.commit, psycopg.Connection.close

    def arrive(connection):
        commit(connection)
        close(connection)

    def lose(connection):
        if not fates or connection.info.parameter_status("application_name") != "agedp":
            return commit(connection)
        fate = fates.pop(0)
        if fate == AFTER:
            commit(connection)
        if fate == LATE:
            connection.rollback = connection.close = lambda: None  # the server hears no more of the client
            timers.append(threading.Timer(0.5, arrive, [connection]))
            timers[-1].start()
        connection.close()
        raise psycopg.OperationalError("server closed the connection unexpectedly")

    monkeypatch.setattr(psycopg.Connection, "commit", lose)
    yield fates
    for timer in timers:
        timer.join()


# ------------------------------------------------------------------------------------------------ at once


def test_a_writer_waits_for_its_own_ledger_alone_and_reading_goes_on(book, server, own, monkeypatch):
    monkeypatch.setattr(postgresql, "BUSY_SECONDS", 0.1)
    server.admin(f"CREATE SCHEMA beside AUTHORIZATION {ROLE}", database=own)
    first, other = (Book(server.url(own, options=f"-csearch_path%3D{name}")) for name in ("public", "beside"))
    first.begin().close()
    with transaction(database_at(first.url), write=True), first.open() as ledger:
        with pytest.raises(LedgerError, match="another process has held it"):
            first.add(ledger, 0)
        assert ledger.length() == 1
        with other.begin() as beside:
            assert other.add(beside, 0).seq == 2


def test_what_another_serialisable_writer_undid_is_carried_out_again(book, monkeypatch):
    """The other writer goes past the lock and stores a row while ours is being drawn."""
    monkeypatch.setattr(postgresql, "_LOCK", "SELECT 1")
    monkeypatch.setattr(backend, "PAUSES", (0.0, 0.0))
    drawn = []
    with book.open() as ledger, book.open() as other:

        def draw(_):
            drawn.append(1)
            if len(drawn) == 1:
                other.register_model(book.leakage_bound, at=book.day(7))
            return [len(drawn), 0]

        stored = book.release(ledger, 0, draw)
        assert (stored.values, stored.seq, len(drawn)) == ((2, 0), 3, 2)
        assert ledger.verify() == ()


# ------------------------------------------------------------------------------------------------ lost connections


@pytest.mark.parametrize(("fate", "draws"), [(BEFORE, 2), (AFTER, 1), (LATE, 1)])
def test_a_lost_commit_is_looked_up_before_it_draws_again(fates, book, fate, draws):
    counter = count(1)
    with book.open() as ledger:
        fates.append(fate)
        stored = book.release(ledger, 0, lambda _: [next(counter), 0])
    assert fates == []
    assert (next(counter) - 1, stored.values) == (draws, (draws, 0))
    with book.open() as ledger:
        assert (ledger.rows(), ledger.verify()) == ((stored,), ())


def test_whatever_is_written_is_written_once_though_its_commit_is_lost(fates, book, server, own):
    handed, amended = [], {**book.promise, "tags": ["new"]}
    with book.open() as ledger:
        for change in (
            lambda: book.add(ledger, 0),
            lambda: ledger.register_model(book.leakage_bound, at=book.day(7)),
            lambda: book.record(ledger, book.claim("a")),
            lambda: ledger.amend(amended, population=book.homes, at=book.day(9), after=book.contract),
            lambda: ledger.export_and_close(handed.append, at=book.day(10)),
        ):
            length = ledger.length()
            fates.append(AFTER)
            change()
            assert (fates, ledger.length()) == ([], length + 1)
        assert ledger.verify() == ()
        assert handed[-1] == ledger.all_rows()[:-1]
    for fate in (AFTER, BEFORE):
        server.admin("DROP SCHEMA public CASCADE", f"CREATE SCHEMA public AUTHORIZATION {ROLE}", database=own)
        with Ledger.open(server.url(own), create=True) as copy:
            fates.append(fate)
            copy.import_rows(handed[-1])
            assert (fates, copy.all_rows()) == ([], handed[-1])


def test_after_a_server_that_stays_away_the_next_run_reads_what_was_stored(fates, book, monkeypatch):
    monkeypatch.setattr(backend, "PAUSES", (0.0, 0.0))

    def away(**where):
        raise psycopg.OperationalError("Connection refused")

    def draw(_):
        fates.append(AFTER)
        monkeypatch.setattr(psycopg, "connect", away)
        return [5, 0]

    connect = psycopg.connect
    with book.open() as ledger, pytest.raises(LedgerError, match="read before anything is drawn") as caught:
        book.release(ledger, 0, draw)
    assert "\n" not in str(caught.value)
    monkeypatch.setattr(psycopg, "connect", connect)
    with book.open() as ledger:
        assert book.release(ledger, 0, book.never).values == (5, 0)


def test_a_transaction_that_is_cut_off_costs_time_alone(server, own):
    book, cut = Book(server.url(own)), []
    with book.begin() as ledger:

        def days():
            book.add(ledger, 0)
            if not cut:
                cut.append(server.backends(own))
                server.kill(own)
            return [book.add(ledger, number).seq for number in range(1, 4)]

        assert ledger.in_one_transaction(days) == [3, 4, 5]
        assert len(cut[0]) == 1
        assert [row.seq for row in ledger.rows()] == [2, 3, 4, 5]
        assert ledger.verify() == ()


def test_a_server_that_lacks_what_was_read_from_it_is_refused(fates, book):
    """As a standby that took over without the newest rows: within the attempts of one transaction."""

    def draw(_):
        assert fates
        with raw(book) as behind:
            behind("DELETE FROM release")
        return [1, 1]

    with book.open() as ledger:
        book.add(ledger, 0)
        assert ledger.length() == 2
        fates.append(BEFORE)
        with pytest.raises(LedgerBehind, match="replaced or shortened"):
            book.release(ledger, 1, draw)


def test_a_commit_behind_a_failed_statement_is_an_error(book):
    with (
        pytest.raises(RuntimeError, match="nothing of it can be stored"),
        transaction(database_at(book.url), write=True) as connection,
        pytest.raises(Exception, match="does not exist"),
    ):
        connection.exec_driver_sql("SELECT * FROM nowhere")


# ------------------------------------------------------------------------------------------------ moving


def test_a_ledger_moves_to_a_server_and_back_with_the_same_heads(full, server, own, tmp_path):
    first, second = (f"sqlite:///{tmp_path / name}.sqlite" for name in ("first", "second"))
    with full.open() as ledger, Ledger.open(first, create=True) as copy:
        copy.import_rows(ledger.all_rows())
    for number, (here, there) in enumerate([(first, server.url(own)), (server.url(own), second)]):
        file = tmp_path / f"{number}.jsonl"
        with Ledger.open(here) as ledger:
            full.add(ledger, 10 + number)
            head, rows = ledger.head(), ledger.all_rows()
        rows_read = export_ledger(here, file, closed_at=date(2025, 2, 1))
        if number == 0:  # what cannot be filled is taken back
            text = file.read_text()
            file.write_text(text.replace('\\"london-homes\\"', '\\"london-hones\\"'))
            with pytest.raises(LedgerError):
                import_ledger(file, there)
            assert not Ledger.exists(there)
            left = "SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace"
            assert server.admin(left, database=own) == []
            file.write_text(text)
        assert import_ledger(file, there) == rows_read == len(rows)
        with Ledger.open(there) as ledger, Ledger.open(here) as old:
            assert (ledger.head(), ledger.all_rows(), ledger.verify()) == (head, rows, ())
            assert (old.is_closed(), ledger.is_closed(), ledger.contains(head)) == (True, False, True)
            with pytest.raises(LedgerError, match="continues elsewhere"):
                full.add(old, 20)


# Servers that cannot be reached or cannot keep a ledger, in one line each, and roles that may not write.

ROOT = Path(__file__).parents[3]


def refused(url, *, create=True):
    with pytest.raises(LedgerError) as caught:
        Ledger.open(url, create=create)
    for text in (str(caught.value), caught.value.private):
        assert "\n" not in text
        assert PASSWORD not in text
        assert len(text) < 300
    assert "127.0.0.1" not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return str(caught.value)


def test_each_reason_for_no_connection_is_a_line_of_its_own(server, own, tmp_path, monkeypatch):
    passwords, anyone = tmp_path / "pgpass", f"postgresql+psycopg://{ROLE}@"
    passwords.write_text(f"127.0.0.1:{server.port}:*:*:wrong\n")
    passwords.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(passwords))
    monkeypatch.setattr(postgresql, "CONNECT_SECONDS", 2)
    monkeypatch.setattr(backend, "PAUSES", ())
    assert "refuses the password" in refused(server.url_over_tcp(own))
    passwords.write_text(f"127.0.0.1:{server.port}:*:*:{PASSWORD}\n")
    assert "no such database" in refused(server.url_over_tcp("nowhere"))
    Ledger.open(server.url_over_tcp(own), create=True).close()
    passwords.unlink()
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        for url, message in (
            (server.url_over_tcp(own), "asks for a password"),
            (server.url(own).replace(ROLE, "nobody-here"), "no such role"),
            (f"{anyone}127.0.0.1:1/{own}", "no server listens"),
            (f"{anyone}/{own}?host={tmp_path}", "no server listens"),
            (f"{anyone}127.0.0.1:{deaf.getsockname()[1]}/{own}", "does not answer"),
            (f"{anyone}nowhere.invalid/{own}", "a server of that name does not exist"),
            (f"postgresql+psycopg:///{own}?service=none", "service is not in"),
            (server.url(own, colour="red"), "option that the driver does not know"),
        ):
            assert message in refused(url), message


def test_without_the_driver_it_names_the_extra_and_opens_files(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    Book(f"sqlite:///{tmp_path / 'l.sqlite'}").begin().close()
    with pytest.raises(LedgerError, match="needs the driver psycopg; install agedp with its extra postgresql"):
        Ledger.open("postgresql://somewhere/agedp")


def test_a_server_that_is_away_for_seconds_is_waited_for(book, monkeypatch):
    connect, answers = psycopg.connect, []

    def connected(**where):
        if answers:
            raise psycopg.OperationalError(f"connection failed: {answers.pop()}")
        return connect(**where)

    monkeypatch.setattr(backend, "PAUSES", (0.0, 0.0))
    monkeypatch.setattr(psycopg, "connect", connected)
    for answer, waited_for in (("the database system is starting up", 2), ("Connection refused", 1)):
        answers[:] = [answer] * waited_for
        assert book.open().verify() == ()
        answers[:] = [answer] * (waited_for + 1)
        with pytest.raises(LedgerError, match=r"start again in a moment$|no server listens"):
            book.open()


def test_what_cannot_keep_a_ledger_is_refused(server, own):
    server.admin("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0")
    assert "of encoding LATIN1" in refused(server.url("latin"))
    assert "no schema that this role may use" in refused(server.url(own, options="-csearch_path%3Dnone"))
    assert "the schema is empty" in refused(server.url(own), create=False)
    assert not Ledger.exists(server.url(own))
    server.admin("CREATE TABLE public.orders (id int)", database=own)
    assert "is not a ledger" in refused(server.url(own))
    for statement, fsync in (("ALTER SYSTEM SET fsync = off", "off"), ("ALTER SYSTEM RESET fsync", "on")):
        server.admin(statement, "SELECT pg_reload_conf()")
        while server.admin("SHOW fsync") != [(fsync,)]:
            time.sleep(0.02)
        assert ("fsync = off" in refused(server.url(own))) == (fsync == "off")


def on_the_page(number, role):
    """Return the statements of the n-th block of SQL on the how-to page, for another role."""
    text = (ROOT / "docs" / "operate.md").read_text(encoding="utf-8")
    block = re.findall(r"```sql\n(.*?)```", text, re.DOTALL)[number]
    lines = [line for line in block.splitlines() if not line.startswith("--")]
    return [each.strip() for each in re.sub(r"\bagedp", role, " ".join(lines)).split(";") if each.strip()]


def test_by_the_how_to_page_a_role_adds_rows_and_can_change_none(server):
    server.admin(*on_the_page(0, "keeper"))
    book = Book(server.url("keeper").replace(f"//{ROLE}@", "//keeper@"))
    book.begin().close()
    *before, grant_insert = on_the_page(1, "keeper")
    server.admin(*before, database="keeper")
    with book.open() as ledger:
        with pytest.raises(LedgerError, match="lacks INSERT"):
            book.release(ledger, 0, book.never)
        server.admin(grant_insert, database="keeper")
        book.add(ledger, 0)
        assert ledger.verify() == ()
    with server.connection("keeper", "keeper") as connection:
        for statement in (
            *(b"DELETE FROM release", b"TRUNCATE release", b"UPDATE model SET at = at"),
            *(b"DROP TRIGGER release_kept ON release", b"ALTER TABLE release DISABLE TRIGGER ALL", b"DROP TABLE model"),
            *(b"INSERT INTO meta VALUES ('x', 'y')", b"CREATE OR REPLACE FUNCTION ledger_kept() RETURNS trigger AS ''"),
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement)


def test_a_read_only_role_reads_and_does_not_draw(book):
    with Ledger.open(book.url + "%20-cdefault_transaction_read_only%3Don") as ledger:
        assert ledger.length() == 1
        with pytest.raises(LedgerError, match="read-only"):
            book.release(ledger, 0, book.never)


def test_what_writes_is_serialisable_and_waits_for_the_disk(book):
    with transaction(database_at(book.url + "%20-csynchronous_commit%3Doff"), write=True) as connection:
        settings = ("transaction_isolation", "synchronous_commit")
        values = [connection.exec_driver_sql(f"SHOW {name}").scalar() for name in settings]
    assert values == ["serializable", "on"]
