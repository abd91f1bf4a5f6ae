"""Servers that cannot be reached or cannot keep a ledger, in one line each, and roles that may not write."""

from __future__ import annotations

import re
import socket
import sys
import time
from pathlib import Path

import psycopg
import pytest

from agedp_data.errors import LedgerError
from agedp_data.ledger import Ledger
from agedp_data.ledger.backends import backend, postgresql
from agedp_data.ledger.backends.backend import transaction
from agedp_data.ledger.backends.connect import database_at
from tests.agedp_data.ledger.conftest import Book
from tests.postgresql import PASSWORD, ROLE

ROOT = Path(__file__).parents[3]


@pytest.fixture
def place(new_schema):
    return new_schema


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
