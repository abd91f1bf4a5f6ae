"""Complete verification of a ledger: every row is read and hashed again, whatever a checkpoint says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import select
from sqlalchemy.exc import DBAPIError

from agedp_data.ledger.backends import ledger_tables
from agedp_data.ledger.backends.backend import TransactionAborted
from agedp_data.ledger.hash_chain import HashChain
from agedp_data.ledger.records import Fault

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from agedp_data.ledger.backends.backend import LedgerDatabase


def ledger_faults(database: LedgerDatabase, connection: Connection) -> tuple[Fault, ...]:
    """Return every fault of the rows and of the database; each hash is recomputed from the columns."""
    return (*_row_faults(database, connection), *_database_faults(database, connection))


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
