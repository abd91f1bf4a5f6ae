"""A ledger in a schema of a PostgreSQL database: connections, one writer at a time, and error messages.

A ledger is the first schema of its role's search path, so that one database can store several, each in its own schema.
Writers queue at an advisory lock of the session, taken before the transaction begins: a lock within the transaction
would come after the snapshot, and only the owner of tables may lock them. The lock ends with the session, so the next
writer sees whether a COMMIT whose answer was lost was carried out. Write transactions are serialisable as well: if
somebody bypasses the lock, one of the two transactions fails. Lock and triggers hold for every role.

A commit waits for the disk, and for the standbys that the server's settings name.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

from sqlalchemy import URL, Connection, Engine, NullPool, create_engine, event
from sqlalchemy.exc import DBAPIError

from agedp_data.errors import LedgerError
from agedp_data.ledger import postgresql_parts, schema, transactions
from agedp_data.ledger.database import ServerUnreachable, TransactionAborted
from agedp_data.ledger.postgresql_words import (
    explain_connection_error,
    explain_sqlstate,
    is_retryable,
    is_starting_up,
    is_unreachable,
)
from agedp_data.ledger.transactions import transaction

if TYPE_CHECKING:
    import psycopg

BUSY_SECONDS = 60.0
CONNECT_SECONDS = 10

_SESSION = (
    "SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', false),"
    " set_config('synchronous_commit',"
    " CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, false),"
    " set_config('lock_timeout', %s, false),"
    # A client that vanished without closing its connection holds the lock until the server notices.
    " set_config('tcp_keepalives_idle', '20', false), set_config('tcp_keepalives_interval', '5', false),"
    " set_config('tcp_keepalives_count', '4', false),"
    " current_schema(), current_setting('server_encoding'), current_setting('fsync')"
)
_LOCK = "SELECT pg_advisory_lock(hashtextextended('agedp ledger ' || current_schema(), 0))"
_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_WRITE = "BEGIN ISOLATION LEVEL SERIALIZABLE"
_WRITABLE = (
    "SELECT current_setting('transaction_read_only') = 'off' AND bool_and(has_table_privilege(oid, 'INSERT'))"
    " FROM pg_class WHERE relnamespace = quote_ident(current_schema())::regnamespace AND relname = ANY (%s)"
)


class PostgreSQLDatabase:
    """A schema on a server, as a `LedgerDatabase`."""

    subject: ClassVar[str] = "the ledger"
    """What is stored in the schema, for error messages."""

    def __init__(self, name: str, host: str, options: dict[str, Any]) -> None:
        self._private = f"{self.subject} {name!r} on {host!r}" if host else f"{self.subject} {name!r}"
        self._options = options

    @classmethod
    def of(cls, parts: URL) -> Self:
        """Return the database of an address; raise LedgerError if the address names no database."""
        if not parts.database:
            raise LedgerError(f"{cls.subject} address names no database; write postgresql+psycopg://user@host/database")
        options = dict(parts.query)
        if any(not isinstance(value, str) for value in options.values()):
            raise LedgerError(
                f"{cls.subject} address says a thing twice; write postgresql+psycopg://user@host/database"
            )
        parsed = parts.translate_connect_args(username="user", database="dbname")
        return cls(parts.database, parts.host or str(options.get("host", "")), options | parsed)

    @cached_property
    def engine(self) -> Engine:
        """The engine that connects to the server.

        Raises:
            LedgerError: the driver is not installed.
        """
        try:
            import psycopg  # noqa: F401, PLC0415 - an extra, which only these ledgers need
        except ImportError:
            raise LedgerError(
                "a ledger on PostgreSQL needs the driver psycopg; install agedp with its extra postgresql"
            ) from None
        engine = create_engine(
            "postgresql+psycopg://", creator=self.connect, poolclass=NullPool, use_native_hstore=False
        )
        event.listen(engine, "begin", _begin)
        event.listen(engine, "commit", _require_usable_transaction)
        return engine

    def connect(self) -> psycopg.Connection[Any]:
        """Return a connection in autocommit mode: each statement is one transaction unless BEGIN is executed."""
        options: dict[str, Any] = {"application_name": "agedp", "client_encoding": "utf8", "prepare_threshold": None}
        if "PGCONNECT_TIMEOUT" not in os.environ:
            options["connect_timeout"] = CONNECT_SECONDS
        connection = self._connect_with_retries(options | self._options)
        try:
            settings = connection.execute(_SESSION, (str(int(BUSY_SECONDS * 1000)),)).fetchone()
            self._require_suitable_server(*(settings or ())[-3:])
        except BaseException:
            connection.close()
            raise
        return connection

    def _connect_with_retries(self, options: dict[str, Any]) -> psycopg.Connection[Any]:
        """Return a connection; retry while the server is starting, as after a crash, or is being restarted.

        If no server listens, the address may be wrong as well, so that wait is a few seconds shorter.
        """
        import psycopg  # noqa: PLC0415

        pauses = list(transactions.PAUSES)
        while True:
            try:
                return psycopg.connect(autocommit=True, **options)
            except psycopg.Error as error:
                is_transient = is_starting_up(error) or (is_unreachable(error) and len(pauses) > 1)
                if not (is_transient and pauses):
                    raise self._error(ServerUnreachable, explain_connection_error(error)) from None
            time.sleep(pauses.pop(0))

    def _require_suitable_server(self, schema_name: str | None, encoding: str, fsync: str) -> None:
        if schema_name is None:
            raise self.error_about("has no schema that this role may use; make one and grant USAGE on it")
        if encoding != "UTF8":
            raise self.error_about(f"lies in a database of encoding {encoding}; make one with ENCODING 'UTF8'")
        if fsync != "on":
            raise self.error_about(
                "lies on a server with fsync = off: a power cut could undo draws that are published already; "
                "switch it on"
            )

    @property
    def folder(self) -> None:
        """None: the server's disk is not ours."""
        return

    def exists(self) -> bool:
        """Return True: only the server knows whether the database exists."""
        return True

    def ensure_storage(self, *, create: bool) -> None:
        """Raise LedgerError if the schema is empty, unless a ledger is to be created."""
        if create:
            return
        with transaction(self, write=False) as connection:
            empty = self.is_empty(connection)
        if empty:
            raise self.error_about("is not there: the schema is empty; the first `agedp run` makes it")

    @contextmanager
    def removed_on_error(self) -> Iterator[None]:
        """Drop the tables that were created in this context if it fails; a database or schema is never created."""
        with transaction(self, write=False) as connection:
            missing = self.is_empty(connection)
        try:
            yield
        except BaseException:
            if missing:
                self._remove_new_ledger()
            raise

    def _remove_new_ledger(self) -> None:
        with suppress(LedgerError), transaction(self, write=True, creating=True) as connection:
            if not self.is_empty(connection) and not schema.rows_since(connection, 0):
                postgresql_parts.remove(connection)

    def is_empty(self, connection: Connection) -> bool:
        """Return whether the schema has no table."""
        return schema.is_empty(connection)

    def create(self, connection: Connection) -> None:
        """Create the tables and triggers of a ledger."""
        postgresql_parts.create(connection)

    def changed_parts(self, connection: Connection) -> tuple[tuple[str, str], ...]:
        """Return (part, difference) for every part that differs from a new ledger's."""
        return postgresql_parts.changed_parts(connection)

    def is_intact(self, connection: Connection) -> bool:  # noqa: ARG002
        """Return True: the server checks its pages, and every row is read anyway."""
        return True

    def require_writable(self, connection: Connection) -> None:
        """Raise LedgerError if the role may not insert rows, or the server is read-only."""
        if not connection.exec_driver_sql(_WRITABLE, ([*schema.TABLES],)).scalar():
            raise self.error_about(
                "cannot be written: its server is read-only, or this role lacks INSERT on its tables"
            )

    def error_about(self, text: str) -> LedgerError:
        """Return an error about this ledger; only its private text names database and host."""
        return LedgerError(f"{self.subject} on PostgreSQL {text}", private=f"{self._private} {text}")

    def explain(self, error: DBAPIError) -> str:
        """Return the meaning of the server's error code."""
        return explain_sqlstate(error.orig)

    def ledger_error(self, error: DBAPIError) -> LedgerError:
        """Return TransactionAborted for an error that a retry may solve, LedgerError for every other one."""
        return self._error(TransactionAborted if is_retryable(error.orig) else LedgerError, self.explain(error))

    def _error(self, kind: type[LedgerError], text: str) -> LedgerError:
        return kind(f"{self.subject} on PostgreSQL: {text}", private=f"{self._private}: {text}")


def _begin(connection: Connection) -> None:
    if connection.get_execution_options().get("agedp_write", False):
        connection.exec_driver_sql(
            _LOCK
        )  # before the transaction, so that its snapshot contains the previous writer's rows
        connection.exec_driver_sql(_WRITE)
    else:
        connection.exec_driver_sql(_READ)


def _require_usable_transaction(connection: Connection) -> None:
    """Raise instead of a COMMIT after a failed statement, which the server would turn into a silent ROLLBACK."""
    status = connection.connection.driver_connection.info.transaction_status  # type: ignore[union-attr]
    if status.name == "INERROR":
        raise RuntimeError("a statement of this transaction failed, so that nothing of it can be stored")
