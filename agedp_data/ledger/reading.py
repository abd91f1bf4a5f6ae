"""What a ledger says: its rows read once, checked on their way out, and found again by their hashes.

Only the rows that came since the last look are read, and the last one seen must still be there: an edited row,
a file that was put back from a copy, or a standby that lacks what its primary had, stops whoever reads it.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Self, TypeVar

from sqlalchemy import Connection, select
from sqlalchemy.exc import DBAPIError

from agedp_data.config.meanings import meaning_of, without_zone_changes
from agedp_data.errors import ContractChanged, LedgerBehind, LedgerError
from agedp_data.ledger import schema, storage
from agedp_data.ledger.chain import HashChain
from agedp_data.ledger.database import LedgerDatabase, TransactionAborted
from agedp_data.ledger.marks import OF_LEDGER, RecoveryRecord, Takeover, mark_of
from agedp_data.ledger.rows import (
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
from agedp_data.ledger.transactions import carried_out

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

History = tuple[ReleaseRecord, ...]
AnyRow = TypeVar("AnyRow", ContractRecord, ModelRecord, ReleaseRecord, StatementRecord)
_Result = TypeVar("_Result")


class LedgerReader:
    """The rows of one database, of one or more populations."""

    def __init__(self, database: LedgerDatabase) -> None:
        self._database = database
        self._chain = HashChain()
        self._seen = NO_HASH
        self._lock = threading.RLock()
        self._held: Connection | None = None

    @classmethod
    def open(cls, url: str, *, create: bool = False) -> Self:
        """Open the ledger at `url`, or make it (a file with mode 0600) if `create` and there is none.

        Raises:
            LedgerError: an address, file or server that cannot be used; one line says why and what would help.
        """
        database = storage.database_at(url)
        storage.require_made(database, create=create)
        return cls(database)

    @staticmethod
    def exists(url: str) -> bool:
        """Tell whether there is a ledger at `url`; an empty file, or one whose making was cut off, is none.

        Raises:
            LedgerError: an address that cannot be used, a file that is no ledger, a server that cannot be asked.
        """
        return storage.is_made(storage.database_at(url))

    def close(self) -> None:
        """Let go of the database and of what was read from it."""
        self._database.engine.dispose()
        self._chain, self._seen = HashChain(), NO_HASH

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def id(self) -> str:
        """What names this ledger: the hash of its first row, "" before there is one."""
        heads = self._read().heads
        return next(iter(heads), "")

    def rows(self, population: str | None = None, series: str | None = None) -> History:
        """Return the releases, oldest first, of one population or series or of all."""
        found = _of(self._read().releases, population)
        return tuple(row for row in found if series is None or row.series == series)

    def require_unchanged(self, contract: Mapping[str, Any], *, population: str) -> None:
        """Raise ContractChanged if another promise was made to the population; writes nothing."""
        known = self.contracts(population)
        if known:
            unchanged(known[-1], contract)

    def contracts(self, population: str | None = None) -> tuple[ContractRecord, ...]:
        """Return the contracts, oldest first; the last of a population is in force."""
        return tuple(_of(self._read().contracts, population))

    def models(self) -> tuple[ModelRecord, ...]:
        """Return the models, oldest first."""
        return tuple(self._read().models.values())

    def statements(self, population: str | None = None) -> tuple[StatementRecord, ...]:
        """Return the statements, oldest first."""
        return tuple(_of(self._read().statements, population))

    def head(self) -> str:
        """Return the hash of the newest row, 64 zeros if there is none."""
        return self._read().head

    def length(self) -> int:
        """Return the number of rows of all tables."""
        return self._read().length

    def contains(self, head: str) -> bool:
        """Tell whether `head` was the head of this ledger at some time; an empty ledger's head always was."""
        return head == NO_HASH or self.place(head) is not None

    def place(self, head: str) -> int | None:
        """Return the number of the row with this hash, here or in the ledger this one was recovered from."""
        return self._read().place(head)

    def closed(self) -> bool:
        """Tell whether the ledger goes on elsewhere."""
        return bool(self._read().closed)

    def seam(self) -> RecoveryRecord | None:
        """Return what this ledger was recovered from, None if it is the one that drew its rows."""
        marks = [mark_of(row) for row in self.statements(OF_LEDGER)]
        return next((mark for mark in marks if isinstance(mark, RecoveryRecord)), None)

    def taken_over(self) -> bool:
        """Tell whether rows of this ledger were exported from one that was never closed and is lost."""
        return any(isinstance(mark_of(row), Takeover) for row in self.statements(OF_LEDGER))

    def former_files(self) -> tuple[tuple[tuple[str, str], ...], ...]:
        """Return the files (name, sha256) of the folders that this ledger's forerunners were recovered from."""
        seam = self.seam()
        return () if seam is None else tuple(former.files for former in seam.former)

    def everything(self) -> tuple[Row, ...]:
        """Return the rows of all tables, oldest first."""
        self._read()
        return self._everything()

    def verify(self) -> tuple[Fault, ...]:
        """Return everything that is wrong with the database, and with all rows, recomputed from their columns.

        Rows cut off at the end leave a valid, shorter chain: `contains` a published head shows that.

        Raises:
            LedgerError: it cannot be read at all.
        """
        return carried_out(self._database, self._faults, write=False)

    def _faults(self, connection: Connection) -> tuple[Fault, ...]:
        return (*_faults_of_rows(self._database, connection), *_faults_of_parts(self._database, connection))

    def _read(self) -> HashChain:
        """Return the chain with all rows that are stored now."""
        with self._lock:
            if self._held is not None:
                self._refresh(self._held)
            else:
                carried_out(self._database, self._anew(self._refresh), write=False)
                self._seen = self._chain.head
            return self._chain

    def _anew(self, work: Callable[[Connection], _Result]) -> Callable[[Connection], _Result]:
        """Return `work` so that each further attempt forgets what the one before it may have read and not stored."""
        begun = False

        def attempt(connection: Connection) -> _Result:
            nonlocal begun
            if begun:
                self._forget()
            begun = True
            return work(connection)

        return attempt

    def _forget(self) -> None:
        self._chain = HashChain()

    def _everything(self) -> tuple[Row, ...]:
        """Return the rows that are known."""
        chain = self._chain
        found: list[Row] = [*chain.models.values(), *_of(chain.contracts, None)]
        found += [*_of(chain.releases, None), *_of(chain.statements, None)]
        return tuple(sorted(found, key=lambda row: row.seq))

    def _refresh(self, connection: Connection) -> None:
        """Read the rows that came since the last look, and check that the last one seen is still there."""
        newer = schema.newer(connection, self._chain.length)
        if self._chain.length and (not newer or newer.pop(0)[1]["hash"] != self._chain.head):
            raise _behind()
        for table, columns in newer:
            faults = self._chain.add(table, columns)
            if faults:
                self._chain = HashChain()
                raise LedgerError(
                    f"row {faults[0].seq} of the ledger was changed or damaged ({faults[0].what});"
                    " put back a good copy; `agedp ledger verify` tells more"
                )
        if self._seen != NO_HASH and self._seen not in self._chain.heads:
            raise _behind()


def _behind() -> LedgerBehind:
    return LedgerBehind("the ledger was replaced or shortened while it was open; put back the newest copy")


def _faults_of_rows(database: LedgerDatabase, connection: Connection) -> list[Fault]:
    chain, found, faults = HashChain(), list[schema.Found](), list[Fault]()
    for name in schema.TABLES:
        try:
            with connection.begin_nested():  # or one table that cannot be read would hide the others
                found += schema.rows_of(connection, name, 0)
        except DBAPIError as error:
            faults.append(Fault(0, f"table {name}", f"cannot be read: {_lasting(database, error)}"))
    for table, columns in schema.in_order(found):
        faults += chain.add(table, columns)
    return faults


def _faults_of_parts(database: LedgerDatabase, connection: Connection) -> list[Fault]:
    """Return what is wrong with anything but the rows: triggers, indices, tables, the schema version, the pages."""
    try:
        faults = [Fault(0, what, how) for what, how in database.oddities(connection)]
        whole = database.is_whole(connection)
        meta = [(name, content) for name, content in connection.execute(select(schema.META))]
    except DBAPIError as error:
        return [Fault(0, "file", _lasting(database, error))]
    if not whole:
        faults.append(Fault(0, "file", "the database is damaged"))
    if dict(meta).get("version") not in schema.READS or not {name for name, _ in meta} <= {"version", "needs"}:
        faults.append(Fault(0, "table meta", "holds something other than the schema version"))
    return faults


def _lasting(database: LedgerDatabase, error: DBAPIError) -> str:
    """Return what an error says of the ledger; one that says nothing about it is raised on."""
    if isinstance(database.refusal(error), TransactionAborted):
        raise error
    return database.in_words(error)


def unchanged(known: ContractRecord, contract: Mapping[str, Any]) -> ContractRecord:
    """Return the known contract if it means the same.

    Raises:
        ContractChanged: what it means otherwise, key by key.
    """
    promise = canonical(contract)
    if known.promise == promise:
        return known
    changes = differences(*(without_zone_changes(meaning_of(text)) for text in (known.promise, promise)))
    if not changes:
        return known
    raise ContractChanged(
        f"the promise to {known.population!r} of {known.at} says otherwise: {'; '.join(changes)};"
        " undo the change, or see by `agedp ledger amend` whether it can be recorded"
    )


def _of(found: Mapping[str, list[AnyRow]], population: str | None) -> list[AnyRow]:
    """Return the rows of one population or of all, in the order of the ledger."""
    if population is not None:
        return found.get(population, [])
    return sorted((row for part in found.values() for row in part), key=lambda row: row.seq)
