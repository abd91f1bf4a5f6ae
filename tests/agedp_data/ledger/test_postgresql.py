"""A ledger on a PostgreSQL server: drawn once whatever the server, the network and other writers do."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import date
from itertools import count

import pytest

from agedp.ledger_transfer import export_ledger, import_ledger
from agedp_data.errors import LedgerBehind, LedgerError
from agedp_data.ledger import Ledger
from agedp_data.ledger.backends import backend, postgresql
from agedp_data.ledger.backends.backend import transaction
from agedp_data.ledger.backends.connect import database_at
from tests.agedp_data.ledger.behind import raw
from tests.agedp_data.ledger.conftest import Book
from tests.agedp_data.ledger.lossy import AFTER, BEFORE, LATE, Lossy
from tests.postgresql import ROLE


@pytest.fixture
def place(new_schema):
    return new_schema


@pytest.fixture
def network(server, book):
    network = Lossy(str(server.folder / f".s.PGSQL.{server.port}"))
    yield network
    network.close()


@pytest.fixture
def far(network, server, book):
    """The book behind the network."""
    url = book.url.replace("@/", f"@127.0.0.1:{network.port}/").replace(f"host={server.folder}&", "")
    return Book(url.replace(f"port={server.port}&", ""), book.contract)


# ------------------------------------------------------------------------------------------------ at once


def test_of_several_writers_at_once_one_draws_each_day(book):
    days, drawn = range(4), []

    def draw(row):
        drawn.append(row.day)
        return [len(drawn), 0]

    def write(_):
        with book.open() as ledger:
            return [book.release(ledger, number, draw, published_on="2025-02-01") for number in days]

    with ThreadPoolExecutor(3) as threads:
        first, *others = threads.map(write, range(3))
    assert others == [first, first]
    assert sorted(drawn) == [book.day(number) for number in days]
    with book.open() as ledger:
        assert ledger.verify() == ()


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
def test_a_lost_commit_is_looked_up_before_it_draws_again(network, far, book, fate, draws):
    counter = count(1)
    with far.open() as ledger:
        network.fates.append(fate)
        stored = book.release(ledger, 0, lambda _: [next(counter), 0])
    assert network.fates == []
    assert (next(counter) - 1, stored.values) == (draws, (draws, 0))
    with book.open() as ledger:
        assert (ledger.rows(), ledger.verify()) == ((stored,), ())


def test_whatever_is_written_is_written_once_though_its_commit_is_lost(network, far, server, own):
    book, handed = far, []
    amended = {**book.promise, "tags": ["new"]}
    with far.open() as ledger:
        for change in (
            lambda: far.add(ledger, 0),
            lambda: ledger.register_model(book.leakage_bound, at=book.day(7)),
            lambda: book.record(ledger, book.claim("a")),
            lambda: ledger.amend(amended, population=book.homes, at=book.day(9), after=book.contract),
            lambda: ledger.export_and_close(handed.append, at=book.day(10)),
        ):
            length = ledger.length()
            network.fates.append(AFTER)
            change()
            assert (network.fates, ledger.length()) == ([], length + 1)
        assert ledger.verify() == ()
        assert handed[-1] == ledger.all_rows()[:-1]
    url = f"postgresql+psycopg://{ROLE}@127.0.0.1:{network.port}/{own}"
    for fate in (AFTER, BEFORE):
        server.admin("DROP SCHEMA public CASCADE", f"CREATE SCHEMA public AUTHORIZATION {ROLE}", database=own)
        with Ledger.open(url, create=True) as copy:
            network.fates.append(fate)
            copy.import_rows(handed[-1])
            assert (network.fates, copy.all_rows()) == ([], handed[-1])


def test_after_a_server_that_stays_away_the_next_run_reads_what_was_stored(network, far, book, monkeypatch):
    monkeypatch.setattr(backend, "PAUSES", (0.0, 0.0))

    def draw(_):
        network.stop_listening()
        return [5, 0]

    with far.open() as ledger:
        network.fates += [AFTER]
        with pytest.raises(LedgerError, match="what was stored is read before anything is drawn") as caught:
            book.release(ledger, 0, draw)
    assert "\n" not in str(caught.value)
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


def test_a_server_that_lacks_what_was_read_from_it_is_refused(network, far, book):
    """As a standby that took over without the newest rows: within the attempts of one transaction."""

    def draw(_):
        assert network.fates
        with raw(book) as behind:
            behind("DELETE FROM release")
        return [1, 1]

    with far.open() as ledger:
        far.add(ledger, 0)
        assert ledger.length() == 2
        network.fates.append(BEFORE)
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
