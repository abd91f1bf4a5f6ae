"""Reading a ledger: rows are read once, checked against the hash chain, and looked up by their hashes.

Each refresh reads only the rows added since the last one, and the last row seen must still exist. An edited row, a file
restored from an older copy, or a standby that lacks rows of its primary therefore raises an error.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Self, TypeVar

from sqlalchemy import Connection, select
from sqlalchemy.exc import DBAPIError

from agedp_data.config.contract_values import meaning_of, without_zone_changes
from agedp_data.errors import ContractChanged, LedgerBehind, LedgerError
from agedp_data.ledger.backends import connect, ledger_tables
from agedp_data.ledger.backends.backend import LedgerDatabase, TransactionAborted, run_transaction
from agedp_data.ledger.hash_chain import HashChain
from agedp_data.ledger.lifecycle import (
    LEDGER_POPULATION,
    CalibrationDraw,
    HouseholdAccount,
    RecoveryRecord,
    Takeover,
    read_lifecycle_record,
)
from agedp_data.ledger.records import (
    NO_HASH,
    ContractRecord,
    Fault,
    ModelRecord,
    ReleaseRecord,
    Row,
    StatementRecord,
    canonical,
    differences,
)
from agedp_data.series.series_tables import written_contracts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

History = tuple[ReleaseRecord, ...]
AnyRow = TypeVar("AnyRow", ContractRecord, ModelRecord, ReleaseRecord, StatementRecord)
_Result = TypeVar("_Result")


class LedgerReader:
    """The rows of one ledger, of one or more populations; use it wherever nothing is written.

    Every method reads the rows that were added since the last call, and raises LedgerError if the database cannot be
    read or a row was changed.
    """

    def __init__(self, database: LedgerDatabase) -> None:
        self._database = database
        self._chain = HashChain()
        self._last_head = NO_HASH
        self._lock = threading.RLock()
        self._connection: Connection | None = None
        self._url = ""

    @classmethod
    def open(cls, url: str, *, create: bool = False) -> Self:
        """Open the ledger at `url`; with `create`, create it if it does not exist (a file gets mode 0600).

        Raises:
            LedgerError: an address, file or server that cannot be used; the message states reason and remedy.
        """
        database = connect.database_at(url)
        connect.require_ledger(database, create=create)
        opened = cls(database)
        opened._url = url
        return opened

    @staticmethod
    def exists(url: str) -> bool:
        """Return whether a ledger exists at `url`; an empty file, or one whose creation was interrupted, is none.

        Raises:
            LedgerError: an address that cannot be used, a file that is no ledger, a server that cannot be asked.
        """
        return connect.ledger_exists(connect.database_at(url))

    @property
    def url(self) -> str:
        """The address at which the ledger was opened, as [output] ledger names it."""
        return self._url

    def close(self) -> None:
        """Close the database connection and discard the rows that were read; the next call reads all rows again."""
        self._database.engine.dispose()
        self._chain, self._last_head = HashChain(), NO_HASH

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def id(self) -> str:
        """The id of this ledger: the hash of its first row, "" while it is empty."""
        heads = self._read().heads
        return next(iter(heads), "")

    def rows(self, population: str | None = None, series: str | None = None) -> History:
        """Return the releases, oldest first, skipped days included.

        Args:
            population: name of a population; None for all.
            series: name of a series; None for all.
        """
        releases = _population_rows(self._read().releases, population)
        return tuple(row for row in releases if series is None or row.series == series)

    def require_unchanged(self, contract: Mapping[str, Any], *, population: str) -> None:
        """Check a run file's contract against the registered one; nothing is written.

        Raises:
            ContractChanged: they differ in meaning; the message lists the differences key by key. Without a registered
                contract nothing is raised.
        """
        contracts = self.contracts(population)
        if contracts:
            require_same_contract(contracts[-1], contract)

    def contracts(self, population: str | None = None) -> tuple[ContractRecord, ...]:
        """Return the contracts, oldest first, of one population or of all.

        The last contract of a population is in force; the earlier ones apply to the releases that name their hashes.
        """
        return tuple(_population_rows(self._read().contracts, population))

    def models(self) -> tuple[ModelRecord, ...]:
        """Return the models, oldest first, including those that no contract names any more."""
        return tuple(self._read().models.values())

    def statements(self, population: str | None = None) -> tuple[StatementRecord, ...]:
        """Return the statement rows, oldest first, of one population or of all.

        Lifecycle records are statement rows of the population "".
        """
        return tuple(_population_rows(self._read().statements, population))

    def calibration_draws(self, population: str | None = None) -> tuple[CalibrationDraw, ...]:
        """Return the calibration draws, oldest first, about one population or about all."""
        draws = self._read().calibration_draws.values()
        return tuple(draw for draw in draws if population in {None, draw.population})

    def household_account(self, population: str) -> HouseholdAccount | None:
        """Return the newest household account of a population, None if there is none."""
        return self._read().accounts.get(population)

    def head(self) -> str:
        """Return the hash of the newest row, 64 zeros for an empty ledger."""
        return self._read().head

    def content_head(self) -> str:
        """Return the hash of the newest row that is no statement and no record of the ledger's life."""
        return self._read().content_head

    def length(self) -> int:
        """Return the number of rows of all tables."""
        return self._read().length

    def contains(self, head: str) -> bool:
        """Return whether `head` was the head of this ledger at some time; True for the head of an empty ledger.

        Use it to detect a ledger that is shorter than a published folder. Hashes of the ledgers that this one was
        recovered from count as well.
        """
        return head == NO_HASH or self.row_number(head) is not None

    def row_number(self, head: str) -> int | None:
        """Return the number of the row with this hash, None if there is none.

        Hashes in the ledgers that this one was recovered from count as well.
        """
        return self._read().row_number(head)

    def is_closed(self) -> bool:
        """Return whether the ledger was closed: no row can be added, and another ledger continues it."""
        return bool(self._read().closing_text)

    def recovery(self) -> RecoveryRecord | None:
        """Return the recovery record of this ledger, None if it was never recovered."""
        records = [read_lifecycle_record(row) for row in self.statements(LEDGER_POPULATION)]
        return next((record for record in records if isinstance(record, RecoveryRecord)), None)

    def is_taken_over(self) -> bool:
        """Return whether rows of this ledger were exported from a ledger that was never closed and is lost.

        If that ledger turns up again, both must not be used: the same days would be drawn twice.
        """
        return any(isinstance(read_lifecycle_record(row), Takeover) for row in self.statements(LEDGER_POPULATION))

    def earlier_folder_files(self) -> tuple[tuple[tuple[str, str], ...], ...]:
        """Return the files (name, SHA-256) of the folders that the earlier ledgers were recovered from."""
        recovery = self.recovery()
        return () if recovery is None else tuple(earlier.files for earlier in recovery.earlier_ledgers)

    def all_rows(self) -> tuple[Row, ...]:
        """Return the rows of all tables, oldest first."""
        self._read()
        return self._all_rows()

    def verify(self) -> tuple[Fault, ...]:
        """Return every fault of the database and of its rows; each hash is recomputed from the columns.

        Rows removed at the end leave a valid, shorter chain; whether it `contains` a published head shows that.

        Raises:
            LedgerError: the database cannot be read at all.
        """
        return run_transaction(self._database, self._faults, write=False)

    def _faults(self, connection: Connection) -> tuple[Fault, ...]:
        return (*_row_faults(self._database, connection), *_database_faults(self._database, connection))

    def _read(self) -> HashChain:
        """Return the chain after reading all rows that are stored now."""
        with self._lock:
            if self._connection is not None:
                self._refresh(self._connection)
            else:
                run_transaction(self._database, self._with_fresh_chain(self._refresh), write=False)
                self._last_head = self._chain.head
            return self._chain

    def _with_fresh_chain(self, work: Callable[[Connection], _Result]) -> Callable[[Connection], _Result]:
        """Return `work` such that each retry begins with an empty chain: an aborted attempt may have read lost rows."""
        begun = False

        def attempt(connection: Connection) -> _Result:
            nonlocal begun
            if begun:
                self._reset_chain()
            begun = True
            return work(connection)

        return attempt

    def _reset_chain(self) -> None:
        self._chain = HashChain()

    def _all_rows(self) -> tuple[Row, ...]:
        """Return the rows of the chain in memory, oldest first."""
        chain = self._chain
        rows: list[Row] = [*chain.models.values(), *_population_rows(chain.contracts, None)]
        rows += [*_population_rows(chain.releases, None), *_population_rows(chain.statements, None)]
        return tuple(sorted(rows, key=lambda row: row.seq))

    def _refresh(self, connection: Connection) -> None:
        """Read the rows added since the last refresh, and check that the last row seen still exists."""
        newer = ledger_tables.rows_since(connection, self._chain.length)
        if self._chain.length and (not newer or newer.pop(0)[1]["hash"] != self._chain.head):
            raise _ledger_behind_error()
        for table, columns in newer:
            faults = self._chain.add(table, columns)
            if faults:
                self._chain = HashChain()
                raise LedgerError(
                    f"row {faults[0].seq} of the ledger was changed or damaged ({faults[0].problem});"
                    " put back a good copy; `agedp ledger verify` lists all faults"
                )
        if self._last_head != NO_HASH and self._last_head not in self._chain.heads:
            raise _ledger_behind_error()


def _ledger_behind_error() -> LedgerBehind:
    return LedgerBehind("the ledger was replaced or shortened while it was open; put back the newest copy")


def _row_faults(database: LedgerDatabase, connection: Connection) -> list[Fault]:
    chain, rows, faults = HashChain(), list[ledger_tables.StoredRow](), list[Fault]()
    for name in ledger_tables.TABLES:
        try:
            with connection.begin_nested():  # else one unreadable table would hide the rest
                rows += ledger_tables.table_rows_since(connection, name, 0)
        except DBAPIError as error:
            faults.append(Fault(0, f"table {name}", f"cannot be read: {_permanent_error_text(database, error)}"))
    for table, columns in ledger_tables.sort_rows(rows):
        faults += chain.add(table, columns)
    return faults


def _database_faults(database: LedgerDatabase, connection: Connection) -> list[Fault]:
    """Return the faults of everything but the rows: triggers, indices, tables, schema version, pages."""
    try:
        faults = [Fault(0, part, difference) for part, difference in database.changed_parts(connection)]
        is_intact = database.is_intact(connection)
        meta = [(name, content) for name, content in connection.execute(select(ledger_tables.META))]
    except DBAPIError as error:
        return [Fault(0, "file", _permanent_error_text(database, error))]
    if not is_intact:
        faults.append(Fault(0, "file", "the database is damaged"))
    if dict(meta).get("version") not in ledger_tables.READABLE_VERSIONS or not {name for name, _ in meta} <= {
        "version",
        "needs",
    }:
        faults.append(Fault(0, "table meta", "holds something other than the schema version"))
    return faults


def _permanent_error_text(database: LedgerDatabase, error: DBAPIError) -> str:
    """Return the explanation of a permanent error; raise an error that a retry may solve."""
    if isinstance(database.ledger_error(error), TransactionAborted):
        raise error
    return database.explain(error)


def require_same_contract(registered: ContractRecord, contract: Mapping[str, Any]) -> ContractRecord:
    """Return the registered contract if `contract` has the same meaning.

    Raises:
        ContractChanged: they differ; the message lists the differences key by key.
    """
    promise = canonical(contract)
    if registered.promise == promise:
        return registered
    changes = differences(
        *written_contracts(*(without_zone_changes(meaning_of(text)) for text in (registered.promise, promise)))
    )
    if not changes:
        return registered
    raise ContractChanged(
        f"the run file differs from the contract of {registered.population!r} of {registered.at}: {'; '.join(changes)};"
        " undo the change, or check with `agedp ledger amend` whether it can be recorded"
    )


def _population_rows(rows_by_population: Mapping[str, list[AnyRow]], population: str | None) -> list[AnyRow]:
    """Return the rows of one population or of all, in the order of the ledger."""
    if population is not None:
        return rows_by_population.get(population, [])
    return sorted((row for rows in rows_by_population.values() for row in rows), key=lambda row: row.seq)
