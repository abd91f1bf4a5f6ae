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

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final, Protocol, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from agedp_data.errors import LedgerError

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
    def engine(self) -> Engine:
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

    def is_empty(self, connection: Connection) -> bool:
        """Return whether the database has no table."""

    def create(self, connection: Connection) -> None:
        """Create tables, triggers and schema version, inside the caller's transaction."""

    def changed_parts(self, connection: Connection) -> tuple[tuple[str, str], ...]:
        """Return (part, difference) for every table, index or trigger that differs from what `create` makes.

        A ledger with changed parts is not written to: its triggers may no longer protect it.
        """

    def is_intact(self, connection: Connection) -> bool:
        """Return whether the database's own integrity check passes, if it has one."""

    def require_writable(self, connection: Connection) -> None:
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


PAUSES = (0.1, 0.5, 2.0, 5.0, 10.0)
"""Seconds before each retry; a server that restarts is back within their sum."""

_Result = TypeVar("_Result")


def run_transaction(
    database: LedgerDatabase, work: Callable[[Connection], _Result], *, write: bool, creating: bool = False
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
def transaction(database: LedgerDatabase, *, write: bool, creating: bool = False) -> Iterator[Connection]:
    """Yield a connection inside one transaction: committed at the end, rolled back on any exception.

    Every write passes the triggers. A ledger whose tables or triggers were changed is therefore not written to, unless
    it is being created (`creating`).

    Raises:
        LedgerError: the database failed; the message explains its error in one line.
    """
    try:
        with database.engine.connect().execution_options(agedp_write=write) as connection, connection.begin():
            if write and not creating:
                _require_expected_parts(database, connection)
            yield connection
    except DBAPIError as error:
        raise database.ledger_error(error) from None


def _require_expected_parts(database: LedgerDatabase, connection: Connection) -> None:
    for part, difference in database.changed_parts(connection):
        raise database.error_about(
            f"was changed from outside: its {part} {difference}, so nothing is written to it; put "
            "back a good copy, or move its rows to a new one (`agedp ledger export`, `agedp ledger import --lost`)"
        )
