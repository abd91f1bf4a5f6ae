"""A ledger on a PostgreSQL server: drawn once whatever the server, the network and other writers do."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import date
from itertools import count
from pathlib import Path

import psycopg
import pytest

from agedp.ledger_transfer import export_ledger, import_ledger
from agedp_data.errors import LedgerBehind, LedgerError
from agedp_data.ledger import Ledger, ReleaseRecord
from agedp_data.ledger.backends import backend, postgresql
from agedp_data.ledger.backends.backend import transaction
from agedp_data.ledger.backends.connect import database_at
from tests.agedp_data.ledger.behind import raw
from tests.agedp_data.ledger.conftest import Book
from tests.agedp_data.ledger.lossy import AFTER, BEFORE, LATE, Lossy
from tests.postgresql import PASSWORD, ROLE, PostgreSQL

ROOT = Path(__file__).parents[3]


@pytest.fixture
def place(new_schema: str) -> str:
    return new_schema


@pytest.fixture
def server(postgresql: PostgreSQL) -> PostgreSQL:
    return postgresql


@pytest.fixture
def own(server: PostgreSQL) -> Iterator[str]:
    """A database of this test alone."""
    name = server.database()
    yield name
    server.drop(name)


# ------------------------------------------------------------------------------------------------ at once


@pytest.mark.parametrize("locked", [True, False])
def test_of_several_writers_at_once_one_draws_each_day_and_all_read_the_same(
    book: Book, monkeypatch: pytest.MonkeyPatch, locked: bool
) -> None:
    """Without the lock the transactions are serialisable still: what was drawn in vain was seen by nobody."""
    if not locked:
        monkeypatch.setattr(postgresql, "_LOCK", "SELECT 1")
        monkeypatch.setattr(backend, "PAUSES", (0.01,) * 50)
    days, drawn = range(6), []

    def write(_: int) -> list[ReleaseRecord]:
        with book.open() as ledger:
            return [released(ledger, number) for number in days]

    def released(ledger: Ledger, number: int) -> ReleaseRecord:
        def draw(row: ReleaseRecord) -> list[int]:
            drawn.append(row.day)
            return [len(drawn), 0]

        return book.release(ledger, number, draw, published_on="2025-02-01")

    with ThreadPoolExecutor(3) as threads:
        first, *others = threads.map(write, range(3))
    assert others == [first, first]
    assert set(drawn) == {book.day(number) for number in days}
    assert len(drawn) == len(days) or not locked
    with book.open() as ledger:
        assert ledger.verify() == ()
        assert list(ledger.rows()) == sorted(first, key=lambda row: row.seq)


def test_a_writer_that_waits_in_vain_says_so_and_reading_goes_on(
    book: Book, server: PostgreSQL, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgresql, "BUSY_SECONDS", 0.1)
    with transaction(database_at(book.url), write=True), book.open() as ledger:
        with pytest.raises(LedgerError, match="another process has held it"):
            book.add(ledger, 0)
        assert ledger.length() == 1


def test_ledgers_in_two_schemas_of_a_database_do_not_wait_for_each_other(
    book: Book, server: PostgreSQL, shared_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgresql, "BUSY_SECONDS", 0.1)
    server.admin(f"CREATE SCHEMA IF NOT EXISTS beside AUTHORIZATION {ROLE}", database=shared_database)
    other = Book(server.url(shared_database, options="-csearch_path%3Dbeside"))
    with transaction(database_at(book.url), write=True), Ledger.open(other.url, create=True) as ledger:
        other.contract = ledger.register(other.promise, at=other.day(7)).hash
        other.add(ledger, 0)
        assert ledger.length() == 2
    with book.open() as ledger:
        assert ledger.length() == 1


def test_what_another_serialisable_writer_undid_is_carried_out_again(
    book: Book, server: PostgreSQL, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other writer goes past the lock and stores a row while ours is being drawn."""
    monkeypatch.setattr(postgresql, "_LOCK", "SELECT 1")
    monkeypatch.setattr(backend, "PAUSES", (0.0, 0.0))
    drawn = []
    with book.open() as ledger, book.open() as other:

        def draw(_: object) -> list[int]:
            drawn.append(1)
            if len(drawn) == 1:
                other.register_model(book.leakage_bound, at=book.day(7))
            return [len(drawn), 0]

        stored = book.release(ledger, 0, draw)
        assert (stored.values, stored.seq, len(drawn)) == ((2, 0), 3, 2)
        assert ledger.verify() == ()


# ------------------------------------------------------------------------------------------------ lost connections


@pytest.fixture
def lossy(server: PostgreSQL, book: Book) -> Iterator[Callable[..., tuple[Lossy, Book]]]:
    made: list[Lossy] = []

    def over(*fates: str, **more: float) -> tuple[Lossy, Book]:
        made.append(Lossy(str(server.folder / f".s.PGSQL.{server.port}"), list(fates), **more))
        far = book.url.replace("@/", f"@127.0.0.1:{made[-1].port}/").replace(f"host={server.folder}&", "")
        return made[-1], Book(far.replace(f"port={server.port}&", ""), book.contract)

    yield over
    for each in made:
        each.close()


@pytest.mark.parametrize(("fates", "draws"), [([BEFORE], 2), ([AFTER], 1), ([LATE], 1), ([BEFORE, AFTER], 2)])
def test_a_lost_commit_is_looked_up_before_anything_is_drawn_again(
    lossy: Callable[..., tuple[Lossy, Book]], book: Book, fates: list[str], draws: int
) -> None:
    network, far = lossy()
    counter = count(1)
    with far.open() as ledger:
        network.fates += fates
        stored = book.release(ledger, 0, lambda _: [next(counter), 0])
    assert network.fates == []
    assert (next(counter) - 1, stored.values) == (draws, (draws, 0))
    with book.open() as ledger:
        assert ledger.rows() == (stored,)
        assert ledger.verify() == ()


@pytest.mark.parametrize("fate", [BEFORE, AFTER])
def test_whatever_is_written_survives_a_lost_commit(
    lossy: Callable[..., tuple[Lossy, Book]], book: Book, fate: str, tmp_path: Path
) -> None:
    network, far = lossy()
    handed = []
    with far.open() as ledger:
        for change in (
            lambda: far.add(ledger, 0),
            lambda: ledger.register_model(book.leakage_bound, at=book.day(7)),
            lambda: ledger.record(book.claim("a"), population=book.homes, files={}, software="1", at=book.day(8)),
            lambda: ledger.amend(
                {**book.promise, "tags": ["new"]}, population=book.homes, at=book.day(9), after=book.contract
            ),
            lambda: ledger.export_and_close(handed.append, at=book.day(10)),
        ):
            length = ledger.length()
            network.fates.append(fate)
            change()
            assert network.fates == []
            assert ledger.length() == length + 1
        assert ledger.verify() == ()
        assert handed[-1] == ledger.all_rows()[:-1]


@pytest.mark.parametrize("fate", [BEFORE, AFTER])
def test_a_ledger_is_filled_once_although_the_commit_was_lost(
    lossy: Callable[..., tuple[Lossy, Book]], server: PostgreSQL, full: Book, fate: str, tmp_path: Path
) -> None:
    network, _ = lossy()
    server.admin(
        "DROP SCHEMA IF EXISTS filled CASCADE", f"CREATE SCHEMA filled AUTHORIZATION {ROLE}", database="postgres"
    )
    with (
        full.open() as ledger,
        Ledger.open(
            f"postgresql+psycopg://{ROLE}@127.0.0.1:{network.port}/postgres?options=-csearch_path%3Dfilled", create=True
        ) as copy,
    ):
        network.fates.append(fate)
        copy.import_rows(ledger.all_rows())
        assert copy.all_rows() == ledger.all_rows()
        with pytest.raises(LedgerError, match="holds rows already"):
            copy.import_rows(ledger.all_rows())


def test_a_server_that_does_not_come_back_is_one_line_and_the_next_run_finds_what_was_stored(
    lossy: Callable[..., tuple[Lossy, Book]], book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backend, "PAUSES", (0.0, 0.0))
    network, far = lossy()
    with far.open() as ledger:
        network.fates += [AFTER]

        def draw(_: object) -> list[int]:
            network.stop_listening()
            return [5, 0]

        row = book.planned(0)
        with pytest.raises(LedgerError, match="what was stored is read before anything is drawn") as caught:
            ledger.release(row.population, row.series, row.day, draw=draw, admit=lambda _: row)
    assert "\n" not in str(caught.value)
    with book.open() as ledger:
        found = ledger.release(row.population, row.series, row.day, draw=book.never, admit=book.never)
        assert found.values == (5, 0)


@pytest.mark.parametrize("event", ["backend killed", "server restarted"])
def test_a_transaction_that_is_cut_off_costs_time_alone(event: str, server: PostgreSQL, own: str) -> None:
    book = Book(server.url(own))
    with Ledger.open(book.url, create=True) as ledger:
        book.contract = ledger.register(book.promise, at=book.day(7)).hash
        cut: list[list[int]] = []

        def days() -> list[int]:
            book.add(ledger, 0)
            if not cut:
                cut.append(server.backends(own))
                if event == "backend killed":
                    server.kill(own)
                else:
                    server.stop()
                    server.start()
            return [book.add(ledger, number).seq for number in range(1, 4)]

        assert ledger.in_one_transaction(days) == [3, 4, 5]
        assert len(cut[0]) == 1
        assert [row.seq for row in ledger.rows()] == [2, 3, 4, 5]
        assert ledger.verify() == ()


def test_a_server_that_lacks_what_was_read_from_it_before_is_refused(
    book: Book, server: PostgreSQL, lossy: Callable[..., tuple[Lossy, Book]]
) -> None:
    """As a standby that took over without the newest rows: within the attempts of one transaction."""
    network, far = lossy()
    with far.open() as ledger:
        far.add(ledger, 0)
        assert ledger.length() == 2
        network.fates.append(BEFORE)

        def draw(_: object) -> list[int]:
            assert network.fates
            with raw(book) as behind:
                behind("DELETE FROM release")
            return [1, 1]

        with pytest.raises(LedgerBehind, match="replaced or shortened"):
            book.release(ledger, 1, draw)


def test_a_commit_behind_a_failed_statement_is_an_error_and_not_a_silent_rollback(book: Book) -> None:
    with (
        pytest.raises(RuntimeError, match="nothing of it can be stored"),
        transaction(database_at(book.url), write=True) as connection,
        pytest.raises(Exception, match="does not exist"),
    ):
        connection.exec_driver_sql("SELECT * FROM nowhere")


# ------------------------------------------------------------------------------------------------ no connection


def refused(url: str) -> str:
    with pytest.raises(LedgerError) as caught:
        Ledger.open(url, create=True)
    for said in (str(caught.value), caught.value.private):
        assert "\n" not in said
        assert PASSWORD not in said
        assert len(said) < 300
    assert "127.0.0.1" not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return str(caught.value)


def test_each_reason_for_no_connection_is_a_line_of_its_own(
    server: PostgreSQL, own: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passwords = tmp_path / "pgpass"
    passwords.write_text(f"127.0.0.1:{server.port}:*:*:wrong\n")
    passwords.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(passwords))
    assert "refuses the password" in refused(server.url_over_tcp(own))
    passwords.write_text(f"127.0.0.1:{server.port}:*:*:{PASSWORD}\n")
    assert "no such database" in refused(server.url_over_tcp("nowhere"))
    with Ledger.open(server.url_over_tcp(own), create=True) as ledger:
        assert ledger.length() == 0
    passwords.unlink()
    assert "asks for a password" in refused(server.url_over_tcp(own))
    assert "no such role" in refused(server.url(own).replace(ROLE, "nobody-here"))
    monkeypatch.setattr(backend, "PAUSES", ())
    assert "no server listens" in refused(f"postgresql+psycopg://{ROLE}@127.0.0.1:1/{own}")
    assert "no server listens" in refused(f"postgresql+psycopg://{ROLE}@/{own}?host={tmp_path}")
    assert "a server of that name does not exist" in refused(f"postgresql+psycopg://{ROLE}@nowhere.invalid/{own}")
    assert "service is not in" in refused(f"postgresql+psycopg:///{own}?service=none")
    assert "option that the driver does not know" in refused(server.url(own, colour="red"))


def test_a_server_that_does_not_answer_is_given_up(own: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgresql, "CONNECT_SECONDS", 2)
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        begun = time.monotonic()
        assert "does not answer" in refused(f"postgresql+psycopg://{ROLE}@127.0.0.1:{deaf.getsockname()[1]}/{own}")
        assert time.monotonic() - begun < 30


def test_the_server_is_found_by_a_service_and_the_password_by_pgpass(
    server: PostgreSQL, own: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "services").write_text(f"[agedp]\nhost=127.0.0.1\nport={server.port}\nuser={ROLE}\n")
    (tmp_path / "pgpass").write_text(f"127.0.0.1:{server.port}:{own}:{ROLE}:{PASSWORD}\n")
    (tmp_path / "pgpass").chmod(0o600)
    monkeypatch.setenv("PGSERVICEFILE", str(tmp_path / "services"))
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "pgpass"))
    monkeypatch.setenv("PGSERVICE", "agedp")
    Ledger.open(f"postgresql+psycopg:///{own}", create=True).close()
    assert Ledger.exists(server.url(own))


def test_without_the_driver_it_says_which_extra_to_install(own: str, server: PostgreSQL) -> None:
    program = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from agedp_data.errors import LedgerError\nfrom agedp_data.ledger import Ledger\n"
        "try:\n    Ledger.open(sys.argv[1])\nexcept LedgerError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", program, server.url(own)], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == (
        "a ledger on PostgreSQL needs the driver psycopg; install agedp with its extra postgresql\n", "",
    )  # fmt: skip


def test_nothing_of_the_driver_is_loaded_for_a_file() -> None:
    program = (
        "import sys\nfrom agedp_data.ledger import Ledger\nLedger.exists('sqlite:////nowhere/x')\n"
        "print('psycopg' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout == b"False\n"


# ------------------------------------------------------------------------------------------------ what it will not use


def test_a_database_of_another_encoding_a_server_without_fsync_and_a_schema_that_is_taken_are_refused(
    server: PostgreSQL, own: str
) -> None:
    server.admin("DROP DATABASE IF EXISTS latin", "CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0")
    assert "of encoding LATIN1" in refused(server.url("latin"))
    assert "no schema that this role may use" in refused(server.url(own, options="-csearch_path%3Dnone"))
    server.admin("CREATE TABLE public.orders (id int)", database=own)
    assert "is not a ledger" in refused(server.url(own))
    server.admin("ALTER SYSTEM SET fsync = off", "SELECT pg_reload_conf()")
    try:
        time.sleep(0.3)
        assert "fsync = off" in refused(server.url(own))
    finally:
        server.admin("ALTER SYSTEM RESET fsync", "SELECT pg_reload_conf()")
        time.sleep(0.3)


def test_an_empty_schema_is_refused(server: PostgreSQL, own: str) -> None:
    with pytest.raises(LedgerError, match="the schema is empty"):
        Ledger.open(server.url(own))
    assert not Ledger.exists(server.url(own))


def on_the_page(number: int, role: str) -> list[str]:
    """Return the statements of the n-th block of SQL on the how-to page, for another role."""
    text = (ROOT / "docs" / "postgresql.md").read_text(encoding="utf-8")
    block = re.findall(r"```sql\n(.*?)```", text, re.DOTALL)[number]
    lines = [line for line in block.splitlines() if not line.startswith("--")]
    return [each.strip() for each in re.sub(r"\bagedp", role, " ".join(lines)).split(";") if each.strip()]


def test_with_the_statements_of_the_how_to_page_a_role_adds_rows_and_can_change_none(server: PostgreSQL) -> None:
    server.admin(*on_the_page(0, "keeper"))
    book = Book(server.url("keeper").replace(f"//{ROLE}@", "//keeper@"))
    with Ledger.open(book.url, create=True) as ledger:
        book.contract = ledger.register(book.promise, at=book.day(7)).hash
    *before, grant_insert = on_the_page(1, "keeper")
    assert grant_insert.startswith("GRANT INSERT")
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


def test_a_read_only_role_reads_and_does_not_draw(book: Book, server: PostgreSQL) -> None:
    with Ledger.open(book.url + "%20-cdefault_transaction_read_only%3Don") as ledger:
        assert ledger.length() == 1
        with pytest.raises(LedgerError, match="read-only"):
            book.release(ledger, 0, book.never)


def test_every_transaction_that_writes_is_serialisable_and_waits_for_the_disk(book: Book) -> None:
    with transaction(database_at(book.url + "%20-csynchronous_commit%3Doff"), write=True) as connection:
        said = [
            connection.exec_driver_sql(f"SHOW {name}").scalar()
            for name in ("transaction_isolation", "synchronous_commit")
        ]
    assert said == ["serializable", "on"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small disk")
def test_where_the_servers_disk_is_full_nothing_is_stored_and_it_says_so(server: PostgreSQL, tmp_path: Path) -> None:
    disk = server.folder / "small"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "small", disk], check=False).returncode:
        pytest.skip("no small disk can be mounted here")
    try:
        shutil.chown(disk, server.user)
        server.admin(f"CREATE TABLESPACE small LOCATION '{disk}'", "CREATE DATABASE full_up TABLESPACE small")
        server.admin(f"GRANT ALL ON SCHEMA public TO {ROLE}", database="full_up")
        book = Book(server.url("full_up"))
        with Ledger.open(book.url, create=True) as ledger:
            book.contract = ledger.register(book.promise, at=book.day(7)).hash
            with (disk / "ballast").open("wb", buffering=0) as ballast, suppress(OSError):
                while True:
                    ballast.write(bytes(4096))
            with pytest.raises(LedgerError, match="disk is full; nothing was stored"):
                book.add(ledger, 0)
            assert ledger.length() == 1
            (disk / "ballast").unlink()
            book.add(ledger, 0)
            assert ledger.verify() == ()
        server.admin("DROP DATABASE full_up WITH (FORCE)", "DROP TABLESPACE small")
    finally:
        subprocess.run(["umount", disk], check=True)


# ------------------------------------------------------------------------------------------------ moving


def test_a_ledger_moves_from_a_file_to_a_server_and_back_with_the_same_heads(
    full: Book, server: PostgreSQL, own: str, tmp_path: Path
) -> None:
    first, second = (f"sqlite:///{tmp_path / name}.sqlite" for name in ("first", "second"))
    with full.open() as ledger, Ledger.open(first, create=True) as copy:
        copy.import_rows(ledger.all_rows())
    heads = []
    for number, (here, there) in enumerate([(first, server.url(own)), (server.url(own), second)]):
        with Ledger.open(here) as ledger:
            full.add(ledger, 10 + number)
            head, rows = ledger.head(), ledger.all_rows()
        rows_read = export_ledger(here, tmp_path / f"{number}.jsonl", closed_at=date(2025, 2, 1))
        assert import_ledger(tmp_path / f"{number}.jsonl", there) == rows_read == len(rows)
        with Ledger.open(there) as ledger, Ledger.open(here) as old:
            assert (ledger.head(), ledger.all_rows(), ledger.verify()) == (head, rows, ())
            assert (old.is_closed(), ledger.is_closed()) == (True, False)
            assert ledger.contains(head)
            with pytest.raises(LedgerError, match="continues elsewhere"):
                full.add(old, 20)
        heads.append(head)
    assert len(set(heads)) == 2


def test_a_ledger_that_cannot_be_filled_is_taken_back(server: PostgreSQL, full: Book, own: str, tmp_path: Path) -> None:
    export_ledger(full.url, tmp_path / "rows.jsonl", closed_at=date(2025, 2, 1))
    text = (tmp_path / "rows.jsonl").read_text()
    (tmp_path / "rows.jsonl").write_text(text.replace('\\"london-homes\\"', '\\"london-hones\\"'))
    with pytest.raises(LedgerError):
        import_ledger(tmp_path / "rows.jsonl", server.url(own))
    assert not Ledger.exists(server.url(own))
    left = "SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace"
    assert server.admin(left, database=own) == []


def test_a_dump_that_is_restored_is_the_same_ledger(server: PostgreSQL, own: str) -> None:
    book = Book(server.url(own))
    with Ledger.open(book.url, create=True) as ledger:
        book.contract = ledger.register(book.promise, at=book.day(7)).hash
        book.add(ledger, 0)
        head = ledger.head()
    restored = server.restored(server.dumped(own))
    try:
        copy = Book(server.url(restored), book.contract)
        with copy.open() as ledger:
            assert (ledger.head(), ledger.verify()) == (head, ())
            copy.add(ledger, 1)
    finally:
        server.drop(restored)


AWAY = [
    ("the database system is not yet accepting connections", 2, True),
    ("the database system is in recovery mode", 2, True),
    ("server closed the connection unexpectedly", 1, True),
    ("the database system is starting up", 3, False),
    ("the database system is shutting down", 1, True),
    ("the database system is shutting down", 2, False),
    ("connection failed: Connection refused", 1, True),
    ("connection failed: Connection refused", 2, False),
]


@pytest.mark.parametrize(("answer", "times", "waited_for"), AWAY)
def test_a_server_that_is_away_for_seconds_is_waited_for(
    answer: str, times: int, waited_for: bool, book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers, connect = iter([answer] * times), psycopg.connect

    def connected(**where: object) -> psycopg.Connection[object]:
        if (refusal := next(answers, None)) is not None:
            raise psycopg.OperationalError(f"connection failed: FATAL:  {refusal}")
        return connect(**where)  # type: ignore[arg-type]

    monkeypatch.setattr(backend, "PAUSES", (0.0, 0.0))
    monkeypatch.setattr(psycopg, "connect", connected)
    if waited_for:
        assert book.open().verify() == ()
    else:
        with pytest.raises(LedgerError, match=r"start again (in a moment|when it is back)$|no server listens there"):
            book.open()
