"""The protocol of a database that stores a ledger, implemented for SQLite and PostgreSQL, and its transactions.

There is one writer at a time, so the second of two runs waits until the first has stored what it drew.

Decisions:

* Every transaction opens a new connection: forked processes share none, a file restored from a backup is noticed, and
  closing leaves no file open.
* A transaction that the server aborted, or whose connection was lost, is retried a few times.
* The outcome of a lost COMMIT is never guessed: a retry becomes the writer only after the server has ended the lost
  session, and every retry reads the ledger before it draws.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError, DBAPIError

from agedp_data.errors import LedgerError
from agedp_data.ledger import records
from agedp_data.messages import escape_text

REPAIR_HINT: Final = "put back a good copy, or restore it from the release folder (`agedp ledger recover`)"
BUSY: Final = "another process has held it for a minute; wait for that run to end and start again"


class TransactionAborted(LedgerError):
    """The server aborted or lost a transaction; `run_transaction` retries it.

    It is unknown whether a lost COMMIT was carried out, so a retry begins by reading the stored rows.
    """


class ServerUnreachable(LedgerError):
    """The connection to a server failed; no transaction was begun.

    It ends a run at once, unless a transaction was lost before: then the server may be restarting.
    """


class LedgerDatabase(Protocol):
    """The database of one ledger, the part of a backend that differs between SQLite and PostgreSQL."""

    @property
    def engine(self) -> sa.Engine:
        """The engine, which connects anew for each transaction; one with `agedp_write` excludes other writers."""

    @property
    def folder(self) -> Path | None:
        """The folder whose disk stores the database, None for a database on a server."""

    def exists(self) -> bool:
        """Return whether the file exists; always True for a server."""

    def ensure_storage(self, *, create: bool) -> None:
        """Make sure that the storage of the ledger exists.

        Args:
            create: whether a missing storage is created.

        Raises:
            LedgerError: it is missing and not `create`, or it cannot be created.
        """

    def removed_on_error(self) -> AbstractContextManager[None]:
        """Remove a ledger created in this context if an exception leaves it; a ledger with rows stays."""

    def is_empty(self, connection: sa.Connection) -> bool:
        """Return whether the database has no table."""

    def create(self, connection: sa.Connection) -> None:
        """Create tables, triggers and schema version, inside the caller's transaction."""

    def changed_parts(self, connection: sa.Connection) -> tuple[tuple[str, str], ...]:
        """Return (part, difference) for every table, index or trigger that differs from what `create` makes.

        A ledger with changed parts is not written to: its triggers may no longer protect it.
        """

    def is_intact(self, connection: sa.Connection) -> bool:
        """Return whether the database's own integrity check passes, if it has one."""

    def require_writable(self, connection: sa.Connection) -> None:
        """Check, before anything is drawn, that a row can be added.

        Raises:
            LedgerError: the database is read-only for this user.
        """

    def error_about(self, text: str) -> LedgerError:
        """Return an error whose message is the name of this ledger and `text`."""

    def explain(self, error: DBAPIError) -> str:
        """Return the meaning and remedy of a database error, one sentence for the user without values of rows."""

    def ledger_error(self, error: DBAPIError) -> LedgerError:
        """Return the error to raise for a database error.

        Returns:
            TransactionAborted if a retry may succeed, LedgerError otherwise.
        """


def parse_url(url: str, subject: str, *, example: str) -> sa.URL:
    """Return the parts of a database's address; errors never quote a password.

    Args:
        url: the address.
        subject: what it is, for messages.
        example: an address of this kind, for messages.

    Raises:
        LedgerError: no address, or one with a password in it.
    """
    try:
        parts = sa.make_url(url)
    except (ArgumentError, ValueError):
        raise LedgerError(f"{subject} cannot be read; write {example}") from None
    if parts.password is not None or any("pass" in key.lower() for key in parts.query):
        raise LedgerError(f"{subject} contains a password; use ~/.pgpass or PGSERVICE instead")
    return parts


PAUSES = (0.1, 0.5, 2.0, 5.0, 10.0)
"""Seconds before each retry; a server that restarts is back within their sum."""

_Result = TypeVar("_Result")


def run_transaction(
    database: LedgerDatabase, work: Callable[[sa.Connection], _Result], *, write: bool, creating: bool = False
) -> _Result:
    """Return the result of `work` on a connection within one transaction; retry an aborted transaction.

    Raises:
        LedgerError: the database failed; the message explains its error in one line.
    """
    aborted: TransactionAborted | None = None
    pauses = iter(PAUSES)
    while True:
        try:
            with transaction(database, write=write, creating=creating) as connection:
                result = work(connection)
        except TransactionAborted as error:
            aborted = error
        except ServerUnreachable:
            if aborted is None:
                raise
        else:
            return result
        pause = next(pauses, None)
        if pause is None:
            raise aborted
        time.sleep(pause)


@contextmanager
def transaction(database: LedgerDatabase, *, write: bool, creating: bool = False) -> Iterator[sa.Connection]:
    """Yield a connection inside one transaction: committed at the end, rolled back on any exception.

    Every write passes the triggers. A ledger whose tables or triggers were changed is therefore not written to, unless
    it is being created (`creating`).

    Raises:
        LedgerError: the database failed; the message explains its error in one line.
    """
    try:
        with database.engine.connect().execution_options(agedp_write=write) as connection, connection.begin():
            if write and not creating:
                for part, difference in database.changed_parts(connection):
                    raise database.error_about(
                        f"was changed from outside: its {part} {difference}, so nothing is written to it; put back a "
                        "good copy, or move its rows to a new one (`agedp ledger export`, `agedp ledger import --lost`)"
                    )
            yield connection
    except DBAPIError as error:
        raise database.ledger_error(error) from None


# --------------------------------------------------------------------------------------------------
# The tables of a ledger, derived from the row classes, with queries on them and comparison of their definitions.
#
# Tables and queries are equal for every database. The triggers that keep them append-only differ by database
# (`sqlite`, `postgresql`). The definitions of a database's tables, indices and triggers are compared with those of
# a new ledger.
# --------------------------------------------------------------------------------------------------

METADATA = sa.MetaData()
META = sa.Table(
    "meta",
    METADATA,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("content", sa.Text, nullable=False),
)


def _table(name: str, row: type[records.Row]) -> sa.Table:
    """Return the table of a row class: integers as 64-bit integers, every other field as text."""
    types = {field.name: field.type for field in fields(row)}
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    names = [key for key in types if key not in ("seq", "at", "hash")]
    columns = [sa.Column(key, number if types[key] == "int" else sa.Text(), nullable=False) for key in ("at", *names)]
    unique = [sa.UniqueConstraint("population", "series", "day", "revision")] if name == "release" else []
    return sa.Table(
        name,
        METADATA,
        sa.Column("seq", number, primary_key=True, autoincrement=False),
        *columns,
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("hash", sa.Text, nullable=False, unique=True),
        *unique,
    )


TABLES = {name: _table(name, row) for name, row in records.TABLES.items()}


def create(connection: sa.Connection) -> None:
    """Create tables and schema version in an empty database, inside the caller's transaction.

    The triggers that keep the tables append-only are created by the backend.
    """
    METADATA.create_all(connection, checkfirst=False)
    connection.execute(META.insert().values(name="version", content=records.VERSION))
    if records.VERSION != "1":  # agedp 0.1 wrote no more than the version
        connection.execute(META.insert().values(name="needs", content=records.READABLE_VERSIONS[records.VERSION]))


def is_empty(connection: sa.Connection) -> bool:
    """Return whether the database has no table."""
    return not sa.inspect(connection).get_table_names()


def needed_version(connection: sa.Connection) -> str | None:
    """Return the version of agedp that a ledger needs, None if it does not name one.

    Use it for the message about a newer schema.
    """
    return connection.execute(sa.select(META.c.content).where(META.c.name == "needs")).scalar()


def schema_version(connection: sa.Connection) -> str | None:
    """Return the schema version of a database.

    Returns:
        The version; None if the database is no ledger: a table, or a column of `meta`, is missing.
    """
    tables = sa.inspect(connection)
    if not {"meta", *TABLES} <= set(tables.get_table_names()):
        return None
    if {column["name"] for column in tables.get_columns("meta")} != set(META.c.keys()):
        return None
    return connection.execute(sa.select(META.c.content).where(META.c.name == "version")).scalar()


StoredRow = tuple[str, Mapping[str, Any]]
PAGE: Final = 64
"""Rows of one table that are read at a time; a row may have thousands of cells."""


# Built once: a release asks both questions, and building them takes longer than answering them.
_PAGES = {
    name: sa.select(table).where(table.c.seq >= sa.bindparam("since")).order_by(table.c.seq).limit(PAGE)
    for name, table in TABLES.items()
}
_HEADS = sa.union_all(
    *(
        sa.select(table.c.seq, table.c.hash, sa.literal(name)).where(where)
        for name, table in TABLES.items()
        # apart: together, SQLite would scan the table
        for where in (table.c.seq >= sa.bindparam("since"), table.c.seq < 1)
    )
)


def rows_since(connection: sa.Connection, since: int) -> list[StoredRow]:
    """Return the stored rows of all tables from number `since` on, in the order of their numbers.

    Rows without a valid number, which only an edit from outside can make, come last.
    """
    return sort_rows(row for name in TABLES for row in table_rows_since(connection, name, since))


def pages_since(connection: sa.Connection, since: int) -> Iterator[list[StoredRow]]:
    """Yield the rows that `rows_since` returns in pages, so that years of rows are never in memory at once."""
    while True:
        pages = {name: _page(connection, name, since) for name in TABLES}
        ends = [page[-1][1]["seq"] for page in pages.values() if len(page) == PAGE]
        end = min(filter(records.is_row_number, ends), default=None)
        rows = sort_rows(row for page in pages.values() for row in page)
        yield [row for row in rows if end is None or not records.is_row_number(row[1]["seq"]) or row[1]["seq"] <= end]
        if end is None:
            break
        since = end + 1
    invalid = {name: sa.or_(table.c.seq < 1, table.c.seq.is_(None)) for name, table in TABLES.items()}
    if unnumbered := sort_rows(row for name in TABLES for row in _selected(connection, name, invalid[name])):
        yield unnumbered


def rows_up_to(connection: sa.Connection, name: str, last: int) -> Iterator[Mapping[str, Any]]:
    """Yield the stored rows of one table up to number `last`, oldest first, a page at a time."""
    since = 1
    while rows := [columns for _, columns in _page(connection, name, since) if columns["seq"] <= last]:
        yield from rows
        since = rows[-1]["seq"] + 1


def _page(connection: sa.Connection, name: str, since: int) -> list[StoredRow]:
    return [(name, dict(columns)) for columns in connection.execute(_PAGES[name], {"since": since}).mappings()]


def _selected(connection: sa.Connection, name: str, condition: sa.ColumnElement[bool]) -> list[StoredRow]:
    query = sa.select(TABLES[name]).where(condition)
    return [(name, dict(columns)) for columns in connection.execute(query).mappings()]


def heads_since(connection: sa.Connection, since: int) -> list[tuple[Any, str, str]]:
    """Return (number, hash, table) of the rows from number `since` on, and of those below 1, by one query."""
    return [(number, digest, name) for number, digest, name in connection.execute(_HEADS, {"since": since})]


def page_of_heads(connection: sa.Connection, heads: Sequence[tuple[Any, str, str]]) -> list[StoredRow] | None:
    """Return the rows with these heads, in the order of their numbers, from their tables alone.

    None if they do not fit into a page, or if a number is not valid; `pages_since` reads these.
    """
    if not 0 < len(heads) <= PAGE or not all(records.is_row_number(number) for number, _, _ in heads):
        return None
    since = min(number for number, _, _ in heads)
    return sort_rows(row for name in {name for _, _, name in heads} for row in _page(connection, name, since))


def rows_numbered(connection: sa.Connection, name: str, numbers: Sequence[int]) -> Iterator[StoredRow]:
    """Yield the stored rows of one table with these numbers, oldest first."""
    table = TABLES[name]
    for start in range(0, len(numbers), PAGE):
        query = sa.select(table).where(table.c.seq.in_(numbers[start : start + PAGE])).order_by(table.c.seq)
        for columns in connection.execute(query).mappings():
            yield name, dict(columns)


def stored_hashes(connection: sa.Connection) -> dict[str, int]:
    """Return the number of every row by its hash; it reads no content of a row."""
    return {
        digest: number
        for table in TABLES.values()
        for number, digest in connection.execute(sa.select(table.c.seq, table.c.hash))
    }


def table_rows_since(connection: sa.Connection, name: str, since: int) -> list[StoredRow]:
    """Return the stored rows of one table from number `since` on, and those without a valid number.

    Returns:
        Pairs of table name and columns, in no particular order.
    """
    seq = TABLES[name].c.seq
    return _selected(connection, name, sa.or_(seq >= since, seq < 1, seq.is_(None)))


def sort_rows(rows: Iterable[StoredRow]) -> list[StoredRow]:
    """Return rows in the order of their numbers; those without a valid number come last.

    >>> sort_rows([("model", {"seq": 2}), ("release", {"seq": None}), ("contract", {"seq": 1})])
    [('contract', {'seq': 1}), ('model', {'seq': 2}), ('release', {'seq': None})]
    """

    def position(row: StoredRow) -> tuple[float, str]:
        seq = row[1]["seq"]
        return (seq if records.is_row_number(seq) else math.inf), row[0]

    return sorted(rows, key=position)


Parts = Mapping[tuple[str, str], str]
"""Definitions of the tables, indices, triggers and views of a database, by kind and name."""


def compare_parts(expected: Parts, stored: Parts) -> tuple[tuple[str, str], ...]:
    """Return (part, difference) for every part that is missing, changed or does not belong to a ledger.

    >>> compare_parts({("table", "a"): "x", ("table", "b"): "y"}, {("table", "a"): "z", ("view", "c"): ""})
    (('table a', 'was changed'), ('table b', 'is missing'), ('view c', "is none of a ledger's"))
    """
    differences = []
    for part in sorted(expected.keys() | stored.keys()):
        if expected.get(part) != stored.get(part):
            changed = "was changed" if part in expected else "is none of a ledger's"
            name = f"{part[0]} {escape_text(part[1], 80)}"
            differences.append((name, changed if part in stored else "is missing"))
    return tuple(differences)
