"""The protocol of a database that stores a ledger; implemented for SQLite and PostgreSQL."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final, Protocol

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from agedp_data.errors import LedgerError

REPAIR_HINT: Final = "put back a good copy, or restore it from the release folder (`agedp ledger recover`)"
BUSY: Final = "another process has held it for a minute; wait for that run to end and start again"


class TransactionAborted(LedgerError):
    """The server aborted or lost a transaction. A retry begins by reading what is stored."""


class ServerUnreachable(LedgerError):
    """The connection to a server failed; no transaction was begun."""


class LedgerDatabase(Protocol):
    """The database of one ledger."""

    @property
    def engine(self) -> Engine:
        """The engine, which connects anew for each transaction; one with `agedp_write` excludes other writers."""

    @property
    def folder(self) -> Path | None:
        """The folder whose disk stores the database, None for a database on a server."""

    def exists(self) -> bool:
        """Return whether the file exists; always True for a server."""

    def ensure_storage(self, *, create: bool) -> None:
        """Create the storage of a new ledger if `create`; raise LedgerError if it is missing or cannot be created."""

    def removed_on_error(self) -> AbstractContextManager[None]:
        """Remove a ledger created in this context if an exception leaves it; a ledger with rows stays."""

    def is_empty(self, connection: Connection) -> bool:
        """Return whether the database has no table."""

    def create(self, connection: Connection) -> None:
        """Create tables, triggers and schema version, inside the caller's transaction."""

    def changed_parts(self, connection: Connection) -> tuple[tuple[str, str], ...]:
        """Return (part, difference) for every part of the database that differs from what `create` makes."""

    def is_intact(self, connection: Connection) -> bool:
        """Return whether the database's own integrity check passes, if it has one."""

    def require_writable(self, connection: Connection) -> None:
        """Raise, before anything is drawn, if no row can be added."""

    def error_about(self, text: str) -> LedgerError:
        """Return an error whose message is the name of this ledger and `text`."""

    def explain(self, error: DBAPIError) -> str:
        """Return a database error as a sentence for the user."""

    def ledger_error(self, error: DBAPIError) -> LedgerError:
        """Return the LedgerError to raise for a database error; TransactionAborted if a retry may succeed."""
