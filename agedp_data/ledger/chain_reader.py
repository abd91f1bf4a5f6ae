"""The chain of an open ledger: rows are read once, checked, and read again from the database when they are asked for.

Each refresh reads only the rows added since the last one, and the last row seen must still exist. An edited row, a file
restored from an older copy, or a standby that lacks rows of its primary therefore raises an error.

Of a release its header is held. Cells and values are read from the database when they are asked for; so are models and
statements. Each such row is hashed again and compared with the chain.

With a checkpoint (`checkpoint`) the rows below it are not read at all when the ledger is opened; their numbers and
hashes are compared with those of the checkpoint. Before a draw their texts are hashed again (`compare_restored`).
"""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar

from sqlalchemy import Connection

from agedp_data.errors import LedgerBehind, LedgerError
from agedp_data.ledger.backends import connect, ledger_tables
from agedp_data.ledger.backends.backend import LedgerDatabase, run_transaction
from agedp_data.ledger.checkpoint import LedgerCheckpoint
from agedp_data.ledger.hash_chain import HashChain, check_hash
from agedp_data.ledger.records import (
    NO_HASH,
    ContractRecord,
    Row,
    row_from_columns,
    sha256,
    text_from_columns,
    text_of,
)
from agedp_data.ledger.release_headers import HEADER_FIELDS, ReleaseHeader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import date

_Numbered = TypeVar("_Numbered", ContractRecord, ReleaseHeader)
_Result = TypeVar("_Result")


class ChainReader:
    """The rows of one ledger, read within transactions of the database; `LedgerReader` has the questions about them."""

    def __init__(self, database: LedgerDatabase) -> None:
        self._database = database
        self._chain = HashChain()
        self._last_head = NO_HASH
        self._lock = threading.RLock()
        self._connection: Connection | None = None
        self._url = ""
        self._checkpoint: LedgerCheckpoint | None = None
        self._is_restored = False
        self._is_compared = False

    @classmethod
    def open(cls, url: str, *, create: bool = False, checkpoint: LedgerCheckpoint | None = None) -> Self:
        """Open the ledger at `url`; with `create`, create it if it does not exist (a file gets mode 0600).

        Args:
            url: address of the ledger.
            create: whether a missing ledger is created.
            checkpoint: where an earlier reading of this ledger ended; without one all rows are read.

        Raises:
            LedgerError: an address, file or server that cannot be used; the message states reason and remedy.
        """
        database = connect.database_at(url)
        connect.require_ledger(database, create=create)
        opened = cls(database)
        opened._url, opened._checkpoint = url, checkpoint
        return opened

    @property
    def url(self) -> str:
        """The address at which the ledger was opened, as [output] ledger names it."""
        return self._url

    def close(self) -> None:
        """Close the database connection and discard the rows that were read.

        The next call reads the rows again: all of them, or those after the checkpoint.
        """
        self._database.engine.dispose()
        self._chain, self._last_head = HashChain(), NO_HASH

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def advance_checkpoint(self, *, verified_on: date) -> LedgerCheckpoint | None:
        """Return where this reading ends, from which a later one may go on; None if no row was added since the last.

        A reading that began from a checkpoint keeps its date; `verified_on` is that of a complete reading.
        """
        if self._connection is not None:
            return None  # its rows may never be committed
        chain, begun = self._read(), self._checkpoint
        if not chain.length or (begun is not None and begun.length == chain.length):
            return None
        self._checkpoint = LedgerCheckpoint.of(chain, begun.verified_on if begun is not None else verified_on)
        return self._checkpoint

    @property
    def is_read_completely(self) -> bool:
        """Whether the text of every row was read since the ledger was opened, and none is taken from a checkpoint."""
        return not self._is_restored

    def compare_restored(self) -> None:
        """Read the rows below the checkpoint and compare them with it; call it before the first draw of a run.

        Each text is hashed again. Columns, headers and contracts must be those of the texts. Lists of thousands of
        cells are compared as text and not parsed. A ledger that was read completely is not read again.

        Raises:
            LedgerError: a row was changed or damaged, or the checkpoint is not that of the ledger.
        """
        self._read()
        if self._is_restored and not self._is_compared and self._checkpoint is not None:
            self._within(partial(self._compare_texts, last=self._checkpoint.length))
        self._is_compared = True

    def _compare_texts(self, connection: Connection, *, last: int) -> None:
        chain, hashes = self._chain, [NO_HASH, *self._chain.heads]
        headers = {header.seq: header for header in rows_of_population(chain.releases, None)}
        contracts = rows_of_population(chain.contracts, None)
        texts = {row.seq: text_of(row) for row in contracts} | {row.seq: text_of(row) for row in chain.lifecycle_rows}
        number_of_rows = 0
        for table in ledger_tables.TABLES:
            for columns in ledger_tables.rows_up_to(connection, table, last):
                number, text, header = columns["seq"], columns["text"], headers.get(columns["seq"])
                if (
                    columns["hash"] != hashes[number]
                    or sha256(f"{hashes[number - 1]}{text}") != hashes[number]
                    or not _is_text_of(table, columns)
                    or texts.get(number, text) != text
                    or (table == "release" and (header is None or not _is_header_of(header, columns)))
                ):
                    raise _changed_row_error(number, "it is another row than before")
                number_of_rows += 1
        if number_of_rows != last:
            raise _ledger_behind_error()

    def _read(self) -> HashChain:
        """Return the chain after reading all rows that are stored now."""
        return self._within(lambda _: self._chain)

    def _within(self, work: Callable[[Connection], _Result]) -> _Result:
        """Return the result of `work` in the open transaction, or in one of its own, after reading all stored rows."""

        def read(connection: Connection) -> _Result:
            self._refresh(connection)
            return work(connection)

        with self._lock:
            if self._connection is not None:
                return read(self._connection)
            result = run_transaction(self._database, self._with_fresh_chain(read), write=False)
            self._last_head = self._chain.head
            return result

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

    def _stored_rows(self, table: str, numbers: Sequence[int]) -> tuple[Row, ...]:
        """Return rows of one table, read from the database and hashed again."""
        if not numbers:
            return ()
        return self._within(lambda connection: tuple(self._checked_rows(connection, table, numbers)))

    def _checked_rows(self, connection: Connection, table: str, numbers: Sequence[int]) -> Iterator[Row]:
        hashes = [NO_HASH, *self._chain.heads]
        awaited = sorted(numbers, reverse=True)
        for name, columns in ledger_tables.rows_numbered(connection, table, sorted(numbers)):
            number = awaited.pop()
            try:
                row = row_from_columns(name, columns)
                problems = [*check_hash(row, columns, previous=hashes[number - 1])]
            except ValueError as error:
                problems = [str(error)]
            if problems or columns["seq"] != number or columns["hash"] != hashes[number]:
                raise _changed_row_error(number, next(iter(problems), "it is another row than before"))
            yield row
        if awaited:
            raise _changed_row_error(awaited[-1], "it is missing")

    def _all_rows(self) -> tuple[Row, ...]:
        """Return all rows, oldest first."""

        def work(connection: Connection) -> tuple[Row, ...]:
            chain = self._chain
            numbers = {
                "contract": [row.seq for row in rows_of_population(chain.contracts, None)],
                "model": [*chain.models.values()],
                "release": [row.seq for row in rows_of_population(chain.releases, None)],
                "statement": [number for of_name in chain.statement_numbers.values() for number in of_name],
            }
            rows = [row for table in numbers for row in self._checked_rows(connection, table, numbers[table])]
            return tuple(sorted(rows, key=lambda row: row.seq))

        return self._within(work)

    def _refresh(self, connection: Connection) -> None:
        """Read the rows added since the last refresh, and check that the last row seen still exists."""
        if not self._chain.length and self._checkpoint is not None:
            self._restore(connection, self._checkpoint)
        self._read_newer(connection)
        if self._last_head != NO_HASH and self._last_head not in self._chain.heads:
            raise _ledger_behind_error()

    def _restore(self, connection: Connection, checkpoint: LedgerCheckpoint) -> None:
        """Begin with a checkpoint if the ledger has all its rows, and its triggers; otherwise it is read completely."""
        is_unchanged = not self._database.changed_parts(connection)
        self._is_restored = is_unchanged and checkpoint.is_part_of(ledger_tables.stored_hashes(connection))
        if self._is_restored:
            self._chain = checkpoint.chain()
        else:
            self._checkpoint = None

    def _read_newer(self, connection: Connection) -> None:
        last, head = self._chain.length, self._chain.head
        heads = ledger_tables.heads_since(connection, last) if last else []
        if last and [(number, digest) for number, digest, _ in heads] == [(last, head)]:
            return
        page_of_heads = ledger_tables.page_of_heads(connection, heads)
        pages = ledger_tables.pages_since(connection, last) if page_of_heads is None else [page_of_heads]
        for page in pages:
            newer = page
            if last and head:
                if not page or page[0][1]["hash"] != head:
                    raise _ledger_behind_error()
                newer, head = page[1:], ""
            for table, columns in newer:
                faults = self._chain.add(table, columns)
                if faults:
                    self._chain = HashChain()
                    raise _changed_row_error(faults[0].seq, faults[0].problem)


def _is_text_of(table: str, columns: Mapping[str, Any]) -> bool:
    """Return whether stored columns are those of the text that is stored beside them."""
    try:
        return bool(text_from_columns(table, columns) == columns["text"])
    except TypeError:
        return False


def _is_header_of(header: ReleaseHeader, columns: Mapping[str, Any]) -> bool:
    """Return whether a header has the values of stored columns; a scale is stored as the text of a number."""
    values = [getattr(header, name) for name in HEADER_FIELDS]
    stored = [repr(value) if isinstance(value, float) else value for value in values]
    return stored == [columns[name] for name in HEADER_FIELDS]


def _changed_row_error(number: int, problem: str) -> LedgerError:
    return LedgerError(
        f"row {number} of the ledger was changed or damaged ({problem});"
        " put back a good copy; `agedp ledger verify` lists all faults"
    )


def _ledger_behind_error() -> LedgerBehind:
    return LedgerBehind("the ledger was replaced or shortened while it was open; put back the newest copy")


def rows_of_population(rows_by_population: Mapping[str, list[_Numbered]], population: str | None) -> list[_Numbered]:
    """Return the rows of one population or of all, in the order of the ledger."""
    if population is not None:
        return rows_by_population.get(population, [])
    return sorted((row for rows in rows_by_population.values() for row in rows), key=lambda row: row.seq)
