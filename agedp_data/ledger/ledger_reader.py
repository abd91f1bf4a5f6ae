"""Questions about a ledger: contracts, models, releases and statements, by population; heads, and faults.

A ledger is read row by row into a chain of hashes, which answers what needs no vector; vectors are read again from the
database and compared with the hashes.

Decisions:

* Every row is verified when it is read. A checkpoint may stand for rows that the same version of agedp has verified.
* Complete verification asks no checkpoint: it reads and hashes every row again.
"""

from __future__ import annotations

import hashlib
import json
import threading
from dataclasses import dataclass, fields
from datetime import date
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from sqlalchemy import Connection, select
from sqlalchemy.exc import DBAPIError

from agedp_data.config.contract import parse_contract
from agedp_data.errors import ContractChanged, LedgerBehind, LedgerError
from agedp_data.ledger import lifecycle, records
from agedp_data.ledger.backends import backend, connect
from agedp_data.ledger.backends.backend import LedgerDatabase, TransactionAborted, run_transaction
from agedp_data.ledger.hash_chain import HashChain, check_hash
from agedp_data.versions import version

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence


# --------------------------------------------------------------------------------------------------
# A checkpoint: the end of a reading of a ledger that verified every row, so that the next one goes on from there.
#
# It holds what `HashChain` holds: numbers and hashes of all rows, contracts, records of the ledger's life, headers of
# releases. It is derived. A checkpoint that is missing, damaged or of another version costs one complete reading.
#
#     {"checkpoint": 1, "ledger": "../l.sqlite", "sha256": "5b1c...", "software": "0.2.0", "verified_on": "2026-03-04"}
#     {"content_head": "9f3c...", "hashes": ["1b7a...", ...], "releases": {"day": ["2013-01-01", ...], ...}, ...}
#
# Decisions.
#
# * The checksum finds damage, not forgery: who can write here can write the ledger too. Hashes on release folders and
#   at the witness, and complete readings by the calendar, are what finds a forged ledger.
# * The software's version is part of it: another version may have further rules for rows, so it reads all of them. The
#   hashes of an earlier version's checkpoint are still compared, so that an older copy is noticed.
# --------------------------------------------------------------------------------------------------

FORMAT: Final = 1
_HEADER_TYPES: Final = tuple((field.name, str(field.type)) for field in fields(records.ReleaseHeader))


@dataclass(frozen=True, slots=True)
class LedgerCheckpoint:
    """The state of a hash chain after a reading.

    Attributes:
        state: the state, as JSON.
        verified_on: the date of the last reading of all rows (UTC).
        address: where the ledger is, in the words of whoever keeps the checkpoint.
    """

    state: Mapping[str, Any]
    verified_on: date
    address: str = ""

    @classmethod
    def of(cls, chain: HashChain, verified_on: date) -> LedgerCheckpoint:
        """Return the checkpoint of a chain without faults."""
        headers = sorted((header for of_name in chain.releases.values() for header in of_name), key=_number)
        contracts = sorted((row for of_name in chain.contracts.values() for row in of_name), key=_number)
        state = {
            "hashes": list(chain.heads),
            "content_head": chain.content_head,
            "contracts": [records.text_of(row) for row in contracts],
            "models": dict(chain.models),
            "releases": {name: [getattr(header, name) for header in headers] for name in records.HEADER_FIELDS},
            "statement_numbers": dict(chain.statement_numbers),
            "lifecycle": [records.text_of(row) for row in chain.lifecycle_rows],
            "accounts": [records.text_of(row) for row in chain.account_rows.values()],
            "newest_dates": dict(chain.newest_dates),
        }
        return cls(state, verified_on)

    @property
    def length(self) -> int:
        """The number of rows up to the checkpoint."""
        return len(self.state["hashes"])

    @property
    def ledger(self) -> str:
        """The id of the ledger: the hash of its first row, "" for an empty one."""
        return next(iter(self.state["hashes"]), "")

    def ends_after(self, content_head: str) -> bool:
        """Return whether a ledger with this newest row, statements left out, is an earlier part of this one."""
        return content_head in self.state["hashes"] and content_head != self.state["content_head"]

    def is_part_of(self, numbers: Mapping[str, int]) -> bool:
        """Return whether a ledger, the numbers of whose rows are given by hash, has exactly these rows so far."""
        stored = {digest: number for digest, number in numbers.items() if number <= self.length}
        return stored == {digest: number for number, digest in enumerate(self.state["hashes"], start=1)}

    def chain(self) -> HashChain:
        """Return a new chain that goes on from here."""
        state, chain = self.state, HashChain()
        hashes: list[str] = state["hashes"]
        chain.heads = {digest: number for number, digest in enumerate(hashes, start=1)}
        chain.length, chain.content_head = len(hashes), state["content_head"]
        chain.head = hashes[-1] if hashes else chain.head
        chain.models = dict(state["models"])
        for text in state["contracts"]:
            contract = _row("contract", text, hashes)
            if isinstance(contract, records.ContractRecord):
                chain.index_contract(contract)
        for header in zip(*(state["releases"][name] for name in records.HEADER_FIELDS), strict=True):
            chain.index_release(records.ReleaseHeader(*header))
        for text in (*state["lifecycle"], *state["accounts"]):
            record = _row("statement", text, hashes)
            if isinstance(record, records.StatementRecord):
                chain.index_lifecycle(record)
        for name, numbers in state["statement_numbers"].items():
            chain.statement_numbers[name] = list(numbers)
        chain.newest_dates = dict(state["newest_dates"])
        return chain

    def format(self) -> bytes:
        """Return the content of a checkpoint's file."""
        body = json.dumps(self.state, separators=(",", ":")).encode()
        heading = _heading(body, self.verified_on.isoformat(), self.address)
        return json.dumps(heading, sort_keys=True).encode() + b"\n" + body + b"\n"


def parse_checkpoint(content: bytes) -> LedgerCheckpoint:
    """Return the checkpoint in the content of a file.

    Raises:
        ValueError: it is damaged, or of another version; the ledger has to be read completely.
    """
    checkpoint = parse_checkpoint_of_any_version(content)
    if json.loads(content.partition(b"\n")[0])["software"] != version("agedp"):
        raise ValueError("a checkpoint of another version")
    _check_headers(checkpoint.chain())
    return checkpoint


def _check_headers(chain: HashChain) -> None:
    """Check the types of headers, and that the chain has the contracts and models that they name.

    Raises:
        ValueError: a header that no ledger has.
    """
    contracts = {row.hash for of_name in chain.contracts.values() for row in of_name}
    for header in (header for of_name in chain.releases.values() for header in of_name):
        is_typed = all(type(getattr(header, name)).__name__ == kind for name, kind in _HEADER_TYPES)
        if not is_typed or header.contract not in contracts or (header.model and header.model not in chain.models):
            raise ValueError("a checkpoint with a header that no ledger has")


def parse_checkpoint_of_any_version(content: bytes) -> LedgerCheckpoint:
    """Return the checkpoint in the content of a file, whose hashes can be compared; no chain may go on from it.

    Raises:
        ValueError: it is damaged, or of another format.
    """
    first_line, _, body = content.partition(b"\n")
    body, heading = body.removesuffix(b"\n"), json.loads(first_line)
    verified_on, address = heading["verified_on"], heading["ledger"]
    if heading != {**_heading(body, verified_on, address), "software": heading["software"]}:
        raise ValueError("a checkpoint that is damaged, or of another format")
    return LedgerCheckpoint(json.loads(body), date.fromisoformat(verified_on), address)


def _heading(body: bytes, verified_on: str, address: str) -> dict[str, Any]:
    digest = hashlib.sha256(verified_on.encode() + body).hexdigest()
    facts = {"checkpoint": FORMAT, "software": version("agedp"), "verified_on": verified_on, "ledger": address}
    return {**facts, "sha256": digest}


def _row(table: str, text: str, hashes: list[str]) -> object:
    return records.row_from_text(table, text, hashes[json.loads(text)["seq"] - 1])


def _number(row: records.ReleaseHeader | records.ContractRecord) -> int:
    return row.seq


# --------------------------------------------------------------------------------------------------
# The chain of an open ledger: rows are read once, checked, and read again from the database when they are asked for.
#
# Each refresh reads only the rows added since the last one, and the last row seen must still exist. An edited row, a
# file restored from an older copy, or a standby that lacks rows of its primary therefore raises an error.
#
# Of a release its header is held. Cells and values are read from the database when they are asked for; so are models
# and statements. Each such row is hashed again and compared with the chain.
#
# With a checkpoint (`checkpoint`) the rows below it are not read at all when the ledger is opened; their numbers and
# hashes are compared with those of the checkpoint. Before a draw their texts are hashed again (`compare_restored`).
# --------------------------------------------------------------------------------------------------

_Numbered = TypeVar("_Numbered", records.ContractRecord, records.ReleaseHeader)
_Result = TypeVar("_Result")


class ChainReader:
    """The rows of one ledger, read within transactions of the database; `LedgerReader` has the questions about them."""

    def __init__(self, database: LedgerDatabase) -> None:
        self._database = database
        self._chain = HashChain()
        self._last_head = records.NO_HASH
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
        self._chain, self._last_head = HashChain(), records.NO_HASH

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
        chain, hashes = self._chain, [records.NO_HASH, *self._chain.heads]
        headers = {header.seq: header for header in rows_of_population(chain.releases, None)}
        contracts = rows_of_population(chain.contracts, None)
        texts = {row.seq: records.text_of(row) for row in contracts} | {
            row.seq: records.text_of(row) for row in chain.lifecycle_rows
        }
        number_of_rows = 0
        for table in backend.TABLES:
            for columns in backend.rows_up_to(connection, table, last):
                number, text, header = columns["seq"], columns["text"], headers.get(columns["seq"])
                if (
                    not _is_known(table, columns, number, hashes)
                    or texts.get(number, text) != text
                    or (table == "release" and (header is None or not _is_header_of(header, columns)))
                ):
                    raise _changed_row_error(number, _ANOTHER)
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
                return work(self._connection)
            result = run_transaction(self._database, self._with_fresh_chain(read), write=False)
            self._last_head = self._chain.head
            return result

    def _with_fresh_chain(self, work: Callable[[Connection], _Result]) -> Callable[[Connection], _Result]:
        """Return `work` such that each retry begins with an empty chain: an aborted attempt may have read lost rows."""
        begun = False

        def attempt(connection: Connection) -> _Result:
            nonlocal begun
            if begun:
                self._chain = HashChain()
            begun = True
            return work(connection)

        return attempt

    def _stored_rows(self, table: str, numbers: Sequence[int]) -> tuple[records.Row, ...]:
        """Return rows of one table, read from the database and hashed again."""
        if not numbers:
            return ()
        return self._within(lambda connection: tuple(self._checked_rows(connection, table, numbers)))

    def _checked_rows(self, connection: Connection, table: str, numbers: Sequence[int]) -> Iterator[records.Row]:
        hashes = [records.NO_HASH, *self._chain.heads]
        awaited = sorted(numbers, reverse=True)
        for name, columns in backend.rows_numbered(connection, table, sorted(numbers)):
            number = awaited.pop()
            try:
                row = records.row_from_columns(name, columns)
            except ValueError as error:
                raise _changed_row_error(number, str(error)) from None
            if columns["seq"] != number or not _is_known(name, columns, number, hashes):
                problems = check_hash(row, columns, previous=hashes[number - 1])
                raise _changed_row_error(number, next(problems, _ANOTHER))
            yield row
        if awaited:
            raise _changed_row_error(awaited[-1], "it is missing")

    def _all_rows(self) -> tuple[records.Row, ...]:
        """Return all rows, oldest first."""

        def work(connection: Connection) -> tuple[records.Row, ...]:
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
        if self._last_head != records.NO_HASH and self._last_head not in self._chain.heads:
            raise _ledger_behind_error()

    def _restore(self, connection: Connection, checkpoint: LedgerCheckpoint) -> None:
        """Begin with a checkpoint if the ledger has all its rows, and its triggers; otherwise it is read completely."""
        is_unchanged = not self._database.changed_parts(connection)
        self._is_restored = is_unchanged and checkpoint.is_part_of(backend.stored_hashes(connection))
        if self._is_restored:
            self._chain = checkpoint.chain()
        else:
            self._checkpoint = None

    def _read_newer(self, connection: Connection) -> None:
        last, head = self._chain.length, self._chain.head
        heads = backend.heads_since(connection, last) if last else []
        if last and [(number, digest) for number, digest, _ in heads] == [(last, head)]:
            return
        page_of_heads = backend.page_of_heads(connection, heads)
        pages = backend.pages_since(connection, last) if page_of_heads is None else [page_of_heads]
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


def _is_known(table: str, columns: Mapping[str, Any], number: int, hashes: Sequence[str]) -> bool:
    """Return whether stored columns are those of the row with this number, whose hash and rules were checked before."""
    try:
        text = records.text_from_columns(table, columns)
    except TypeError:
        return False
    digest = records.sha256(f"{hashes[number - 1]}{text}")
    return bool(columns["text"] == text and columns["hash"] == digest == hashes[number])


def _is_header_of(header: records.ReleaseHeader, columns: Mapping[str, Any]) -> bool:
    """Return whether a header has the values of stored columns; a scale is stored as the text of a number."""
    values = [getattr(header, name) for name in records.HEADER_FIELDS]
    stored = [repr(value) if isinstance(value, float) else value for value in values]
    return stored == [columns[name] for name in records.HEADER_FIELDS]


_ANOTHER: Final = "it is another row than before"


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


# --------------------------------------------------------------------------------------------------
# Complete verification of a ledger: every row is read and hashed again, whatever a checkpoint says.
# --------------------------------------------------------------------------------------------------


def ledger_faults(database: LedgerDatabase, connection: Connection) -> tuple[records.Fault, ...]:
    """Return every fault of the rows and of the database; each hash is recomputed from the columns."""
    return (*_row_faults(database, connection), *_database_faults(database, connection))


def _row_faults(database: LedgerDatabase, connection: Connection) -> list[records.Fault]:
    chain, rows, faults = HashChain(), list[backend.StoredRow](), list[records.Fault]()
    for name in backend.TABLES:
        try:
            with connection.begin_nested():  # else one unreadable table would hide the rest
                rows += backend.table_rows_since(connection, name, 0)
        except DBAPIError as error:
            faults.append(
                records.Fault(0, f"table {name}", f"cannot be read: {_permanent_error_text(database, error)}")
            )
    for table, columns in backend.sort_rows(rows):
        faults += chain.add(table, columns)
    return faults


def _database_faults(database: LedgerDatabase, connection: Connection) -> list[records.Fault]:
    """Return the faults of everything but the rows: triggers, indices, tables, schema version, pages."""
    try:
        faults = [records.Fault(0, part, difference) for part, difference in database.changed_parts(connection)]
        is_intact = database.is_intact(connection)
        meta = [(name, content) for name, content in connection.execute(select(backend.META))]
    except DBAPIError as error:
        return [records.Fault(0, "file", _permanent_error_text(database, error))]
    if not is_intact:
        faults.append(records.Fault(0, "file", "the database is damaged"))
    if dict(meta).get("version") not in records.READABLE_VERSIONS or not {name for name, _ in meta} <= {
        "version",
        "needs",
    }:
        faults.append(records.Fault(0, "table meta", "holds something other than the schema version"))
    return faults


def _permanent_error_text(database: LedgerDatabase, error: DBAPIError) -> str:
    """Return the explanation of a permanent error; raise an error that a retry may solve."""
    if isinstance(database.ledger_error(error), TransactionAborted):
        raise error
    return database.explain(error)


# --------------------------------------------------------------------------------------------------
# Questions about the rows.
# --------------------------------------------------------------------------------------------------

History = tuple[records.ReleaseHeader, ...]


class LedgerReader(ChainReader):
    """The rows of one ledger, of one or more populations; use it wherever nothing is written.

    Every method reads the rows that were added since the last call, and raises LedgerError if the database cannot be
    read or a row was changed.
    """

    @staticmethod
    def exists(url: str) -> bool:
        """Return whether a ledger exists at `url`; an empty file, or one whose creation was interrupted, is none.

        Raises:
            LedgerError: an address that cannot be used, a file that is no ledger, a server that cannot be asked.
        """
        return connect.ledger_exists(connect.database_at(url))

    @property
    def id(self) -> str:
        """The id of this ledger: the hash of its first row, "" while it is empty."""
        heads = self._read().heads
        return next(iter(heads), "")

    def history(self, population: str | None = None, series: str | None = None) -> History:
        """Return the headers of the releases, oldest first, skipped days included; nothing of their vectors is read.

        Args:
            population: name of a population; None for all.
            series: name of a series; None for all.
        """
        headers = rows_of_population(self._read().releases, population)
        return tuple(header for header in headers if series is None or header.series == series)

    def rows(
        self, population: str | None = None, series: str | None = None, *, days: tuple[str, str] | None = None
    ) -> tuple[records.ReleaseRecord, ...]:
        """Return the releases with their values, oldest first, skipped days included; use `history` where it suffices.

        Args:
            population: name of a population; None for all.
            series: name of a series; None for all.
            days: first and last day (ISO dates); None for all.
        """
        return self.rows_of(
            [header for header in self.history(population, series) if days is None or days[0] <= header.day <= days[1]]
        )

    def rows_of(self, headers: Iterable[records.AnyRelease]) -> tuple[records.ReleaseRecord, ...]:
        """Return the complete releases with these headers, oldest first."""
        rows = self._stored_rows("release", [header.seq for header in headers])
        return tuple(row for row in rows if isinstance(row, records.ReleaseRecord))

    def require_unchanged(self, contract: Mapping[str, Any], *, population: str) -> None:
        """Check a run file's contract against the registered one; nothing is written.

        Raises:
            ContractChanged: they differ in meaning; the message lists the differences key by key. While no contract
                binds, nothing is raised.
        """
        if self.is_bound(population):
            for registered in self.contracts(population)[-1:]:
                require_same_contract(registered, contract)

    def is_bound(self, population: str) -> bool:
        """Return whether the contract of a population binds: a release, a skipped day or a calibration draw is stored.

        Before that it is one of a run that ended before its first row, and the next run may register another.
        """
        return bool(self.history(population) or self.calibration_draws(population))

    def contracts(self, population: str | None = None) -> tuple[records.ContractRecord, ...]:
        """Return the contracts, oldest first, of one population or of all.

        The last contract of a population is in force; the earlier ones apply to the releases that name their hashes.
        """
        return tuple(rows_of_population(self._read().contracts, population))

    def models(self) -> tuple[records.ModelRecord, ...]:
        """Return the models, oldest first, including those that no contract names any more."""
        rows = self._stored_rows("model", sorted(self._read().models.values()))
        return tuple(row for row in rows if isinstance(row, records.ModelRecord))

    def statements(self, population: str | None = None) -> tuple[records.StatementRecord, ...]:
        """Return the statement rows, oldest first, of one population or of all.

        Lifecycle records are statement rows of the population "".
        """
        numbers = self._read().statement_numbers
        return self._statements(
            sorted(number for name in numbers for number in numbers[name] if population in {None, name})
        )

    def newest_statement(self, population: str) -> records.StatementRecord | None:
        """Return the newest privacy statement of a population, None before the first."""
        return next(iter(self.newest_statements(population, 1)), None)

    def first_statement(self, population: str) -> records.StatementRecord | None:
        """Return the first privacy statement of a population, None without one; no others are read."""
        return next(iter(self._statements(self._read().statement_numbers.get(population, [])[:1])), None)

    def newest_statements(self, population: str, number: int) -> tuple[records.StatementRecord, ...]:
        """Return the newest so many privacy statements of a population, oldest first; no others are read."""
        return self._statements(self._read().statement_numbers.get(population, [])[-number:])

    def _statements(self, numbers: Sequence[int]) -> tuple[records.StatementRecord, ...]:
        return tuple(row for row in self._stored_rows("statement", numbers) if isinstance(row, records.StatementRecord))

    def newest_date(self, population: str) -> str:
        """Return the newest date (ISO) of the rows of the ledger, of statements only those of a population counting."""
        dates = self._read().newest_dates
        return max(dates.get("", ""), dates.get(population, ""))

    def calibration_draws(self, population: str | None = None) -> tuple[lifecycle.CalibrationDraw, ...]:
        """Return the calibration draws, oldest first, about one population or about all."""
        draws = self._read().calibration_draws.values()
        return tuple(draw for draw in draws if population in {None, draw.population})

    def household_account(self, population: str) -> lifecycle.HouseholdAccount | None:
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
        return head == records.NO_HASH or self.row_number(head) is not None

    def row_number(self, head: str) -> int | None:
        """Return the number of the row with this hash, None if there is none.

        Hashes in the ledgers that this one was recovered from count as well.
        """
        return self._read().row_number(head)

    def is_closed(self) -> bool:
        """Return whether the ledger was closed: no row can be added, and another ledger continues it."""
        return bool(self._read().closing_text)

    def recovery(self) -> lifecycle.RecoveryRecord | None:
        """Return the recovery record of this ledger, None if it was never recovered."""
        return next((of for of in self._lifecycle_records() if isinstance(of, lifecycle.RecoveryRecord)), None)

    def _lifecycle_records(self) -> list[lifecycle.LifecycleRecord | None]:
        return [lifecycle.read_lifecycle_record(row) for row in self._read().lifecycle_rows]

    def is_taken_over(self) -> bool:
        """Return whether rows of this ledger were exported from a ledger that was never closed and is lost.

        If that ledger turns up again, both must not be used: the same days would be drawn twice.
        """
        return any(isinstance(record, lifecycle.Takeover) for record in self._lifecycle_records())

    def earlier_folder_files(self) -> tuple[tuple[tuple[str, str], ...], ...]:
        """Return the files (name, SHA-256) of the folders that the earlier ledgers were recovered from."""
        recovery = self.recovery()
        return () if recovery is None else tuple(earlier.files for earlier in recovery.earlier_ledgers)

    def all_rows(self) -> tuple[records.Row, ...]:
        """Return the rows of all tables, oldest first."""
        return self._all_rows()

    def verify(self) -> tuple[records.Fault, ...]:
        """Return every fault of the database and of its rows; each hash is recomputed from the columns.

        Rows removed at the end leave a valid, shorter chain; whether it `contains` a published head shows that.

        Raises:
            LedgerError: the database cannot be read at all.
        """
        return run_transaction(self._database, partial(ledger_faults, self._database), write=False)


_MAX_CHANGE: Final = 300  # characters of a message about one changed key


def require_same_contract(registered: records.ContractRecord, contract: Mapping[str, Any]) -> records.ContractRecord:
    """Return the registered contract if `contract` has the same meaning.

    Raises:
        ContractChanged: they differ; the message lists the differences key by key.
    """
    promise = records.canonical(contract)
    if registered.promise == promise:
        return registered
    changes = registered.terms.counted.differences(parse_contract(promise).counted)
    if not changes:
        return registered
    shown = (change if len(change) <= _MAX_CHANGE else f"{change[:_MAX_CHANGE]}..." for change in changes)
    raise ContractChanged(
        f"the run file differs from the contract of {registered.population!r} of {registered.at}: {'; '.join(shown)};"
        " undo the change, or check with `agedp ledger amend` whether it can be recorded"
    )
