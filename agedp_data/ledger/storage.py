"""Where ledgers lie: from an address to a database that holds a ledger."""

from __future__ import annotations

from sqlalchemy import Connection
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from agedp_data.errors import LedgerError
from agedp_data.format_versions import format_reader_version
from agedp_data.ledger import schema
from agedp_data.ledger.database import LedgerDatabase
from agedp_data.ledger.postgresql import PostgreSQLDatabase
from agedp_data.ledger.sqlite import SQLiteDatabase
from agedp_data.ledger.transactions import carried_out


def database_at(url: str) -> LedgerDatabase:
    """Return the database of a ledger address, or refuse the address without quoting any password.

    Raises:
        LedgerError: an address with a password, of another kind of database, or without a file or database in it.
    """
    try:
        parts = make_url(url)
    except (ArgumentError, ValueError):
        raise LedgerError('the ledger address cannot be read; write "sqlite:///path/to/ledger.sqlite"') from None
    if parts.password is not None or any("pass" in key.lower() for key in parts.query):
        raise LedgerError("the ledger address contains a password; use ~/.pgpass or PGSERVICE instead")
    if parts.drivername in ("sqlite", "sqlite+pysqlite"):
        return SQLiteDatabase.of(parts)
    if parts.drivername in ("postgresql", "postgresql+psycopg"):
        return PostgreSQLDatabase.of(parts)
    raise LedgerError(
        f"no ledger on {parts.drivername!r}; use sqlite:///path/to/ledger.sqlite or "
        "postgresql+psycopg://user@host/database"
    )


def is_made(database: LedgerDatabase) -> bool:
    """Tell whether there is a ledger, or anything else that must not be taken for none.

    An empty database is none: so a run leaves it that was killed while it made its first ledger.

    Raises:
        LedgerError: a file that is no database, or a server that cannot be asked.
    """
    return database.there() and not carried_out(database, database.is_empty, write=False)


def require_made(database: LedgerDatabase, *, create: bool) -> None:
    """Check that there is a ledger, or make it because `create` says so.

    Raises:
        LedgerError: no such file or database and not `create`; one that holds no ledger, or a newer one.
    """
    database.make_room(create=create)
    if create and carried_out(database, database.is_empty, write=False):
        carried_out(database, lambda connection: _create(database, connection), write=True, making=True)
    found = carried_out(database, schema.version, write=False)
    if found is None:
        raise database.about("is not a ledger; point `ledger` to the right one")
    if found not in schema.READS:
        needs = carried_out(database, schema.needs, write=False)
        raise database.about(f"has schema version {found}, which {format_reader_version(needs)} reads; update agedp")


def _create(database: LedgerDatabase, connection: Connection) -> None:
    if database.is_empty(connection):  # another process may have been faster
        database.create(connection)
