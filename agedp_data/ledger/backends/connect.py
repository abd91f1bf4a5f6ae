"""From the address of a ledger to its database: file of SQLite, or schema of PostgreSQL."""

from __future__ import annotations

from sqlalchemy import Connection

from agedp_data.config.contract import format_reader_version
from agedp_data.errors import LedgerError
from agedp_data.ledger import records
from agedp_data.ledger.backends import backend
from agedp_data.ledger.backends.backend import LedgerDatabase, run_transaction
from agedp_data.ledger.backends.postgresql import PostgreSQLDatabase
from agedp_data.ledger.backends.sqlite import SQLiteDatabase


def database_at(url: str) -> LedgerDatabase:
    """Return the database of a ledger's address; errors never quote a password.

    Raises:
        LedgerError: an address with a password, of another kind of database, or without a file or database in it.
    """
    parts = backend.parse_url(url, "the ledger address", example='"sqlite:///path/to/ledger.sqlite"')
    if parts.drivername in ("sqlite", "sqlite+pysqlite"):
        return SQLiteDatabase.of(parts)
    if parts.drivername in ("postgresql", "postgresql+psycopg"):
        return PostgreSQLDatabase.of(parts)
    raise LedgerError(
        f"no ledger on {parts.drivername!r}; use sqlite:///path/to/ledger.sqlite or "
        "postgresql+psycopg://user@host/database"
    )


def ledger_exists(database: LedgerDatabase) -> bool:
    """Return whether a database exists and is not empty.

    A run that was killed while it created its first ledger leaves an empty database, which counts as none.

    Raises:
        LedgerError: a file that is no database, or a server that cannot be asked.
    """
    return database.exists() and not run_transaction(database, database.is_empty, write=False)


def require_ledger(database: LedgerDatabase, *, create: bool) -> None:
    """Check that the database is a ledger; with `create`, create the ledger if it does not exist.

    Raises:
        LedgerError: the file or database does not exist and not `create`; it is no ledger, or a newer one.
    """
    database.ensure_storage(create=create)
    if create and run_transaction(database, database.is_empty, write=False):
        run_transaction(database, lambda connection: _create(database, connection), write=True, creating=True)
    version = run_transaction(database, backend.schema_version, write=False)
    if version is None:
        raise database.error_about("is not a ledger; point `ledger` to the right one")
    if version not in records.READABLE_VERSIONS:
        needed = run_transaction(database, backend.needed_version, write=False)
        raise database.error_about(
            f"has schema version {version}, which {format_reader_version(needed)} reads; update agedp"
        )


def _create(database: LedgerDatabase, connection: Connection) -> None:
    if database.is_empty(connection):  # another process may have been faster
        database.create(connection)
