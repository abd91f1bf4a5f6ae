"""A ledger in a schema of a PostgreSQL database: how it is reached, who writes, and plain words for what fails.

A ledger is the first schema of its role's search path, so that one database can hold several, each in a schema of its
own. Writers queue at an advisory lock of the session, taken before the transaction begins: a lock within it would
come after the snapshot, and only the owner of tables may lock them. It ends with the session, and so it also tells
when a COMMIT whose answer was lost has been carried out or not. Transactions that write are serialisable besides:
whoever goes past the lock makes one of the two fail. Both the lock and the rules hold whatever the role's rights.

A commit waits for the disk, and for the standbys that the server is told to wait for.
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
from agedp_data.ledger.postgresql_words import is_away, is_coming_up, may_be_mended, of_code, of_refusal
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
    # A client that vanished without a word holds the lock until the server notices.
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
    """A schema on a server; `Database` says what its methods are for."""

    subject: ClassVar[str] = "the ledger"
    """What lies there, in errors."""

    def __init__(self, name: str, host: str, given: dict[str, Any]) -> None:
        self._private = f"{self.subject} {name!r} on {host!r}" if host else f"{self.subject} {name!r}"
        self._given = given

    @classmethod
    def of(cls, parts: URL) -> Self:
        """Return the database of an address, or refuse an address of none."""
        if not parts.database:
            raise LedgerError(f"{cls.subject} address names no database; write postgresql+psycopg://user@host/database")
        given = dict(parts.query)
        if any(not isinstance(value, str) for value in given.values()):
            raise LedgerError(
                f"{cls.subject} address says a thing twice; write postgresql+psycopg://user@host/database"
            )
        parsed = parts.translate_connect_args(username="user", database="dbname")
        return cls(parts.database, parts.host or str(given.get("host", "")), given | parsed)

    @cached_property
    def engine(self) -> Engine:
        """What connects to the server.

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
        event.listen(engine, "commit", _require_alive)
        return engine

    def connect(self) -> psycopg.Connection[Any]:
        """Return a connection in which every statement is a transaction of its own unless one is begun."""
        more: dict[str, Any] = {"application_name": "agedp", "client_encoding": "utf8", "prepare_threshold": None}
        if "PGCONNECT_TIMEOUT" not in os.environ:
            more["connect_timeout"] = CONNECT_SECONDS
        connection = self._answered(more | self._given)
        try:
            said = connection.execute(_SESSION, (str(int(BUSY_SECONDS * 1000)),)).fetchone()
            self._require_fit(*(said or ())[-3:])
        except BaseException:
            connection.close()
            raise
        return connection

    def _answered(self, where: dict[str, Any]) -> psycopg.Connection[Any]:
        """Return a connection; a server that is coming up, as after a crash, is waited for, or that is being restarted.

        An address at which nobody listens may also be a wrong one, so that wait is a few seconds shorter.
        """
        import psycopg  # noqa: PLC0415

        pauses = list(transactions.PAUSES)
        while True:
            try:
                return psycopg.connect(autocommit=True, **where)
            except psycopg.Error as error:
                waits = is_coming_up(error) or (is_away(error) and len(pauses) > 1)
                if not (waits and pauses):
                    raise self._complaint(ServerUnreachable, of_refusal(error)) from None
            time.sleep(pauses.pop(0))

    def _require_fit(self, schema_name: str | None, encoding: str, fsync: str) -> None:
        if schema_name is None:
            raise self.about("has no schema that this role may use; make one and grant USAGE on it")
        if encoding != "UTF8":
            raise self.about(f"lies in a database of encoding {encoding}; make one with ENCODING 'UTF8'")
        if fsync != "on":
            raise self.about(
                "lies on a server with fsync = off: a power cut could undo draws that are published already; "
                "switch it on"
            )

    @property
    def folder(self) -> None:
        """None of ours."""
        return

    def there(self) -> bool:
        """Say yes: whether there is a database, only the server can tell."""
        return True

    def make_room(self, *, create: bool) -> None:
        """Check that there is a ledger, unless one is to be made."""
        if create:
            return
        with transaction(self, write=False) as connection:
            empty = self.is_empty(connection)
        if empty:
            raise self.about("is not there: the schema is empty; the first `agedp run` makes it")

    @contextmanager
    def unmade(self) -> Iterator[None]:
        """Take back the tables that are made in here; a database or schema is never made."""
        with transaction(self, write=False) as connection:
            missing = self.is_empty(connection)
        try:
            yield
        except BaseException:
            if missing:
                self._take_back()
            raise

    def _take_back(self) -> None:
        with suppress(LedgerError), transaction(self, write=True, making=True) as connection:
            if not self.is_empty(connection) and not schema.newer(connection, 0):
                postgresql_parts.remove(connection)

    def is_empty(self, connection: Connection) -> bool:
        """Tell whether the schema holds no table."""
        return schema.is_empty(connection)

    def create(self, connection: Connection) -> None:
        """Make the parts of a ledger."""
        postgresql_parts.create(connection)

    def oddities(self, connection: Connection) -> tuple[tuple[str, str], ...]:
        """Compare the parts with what they should be."""
        return postgresql_parts.oddities(connection)

    def is_whole(self, connection: Connection) -> bool:  # noqa: ARG002
        """Say yes: the pages are the server's to check, and every row is read anyway."""
        return True

    def require_writable(self, connection: Connection) -> None:
        """Ask whether the role may add rows, and whether anybody may."""
        if not connection.exec_driver_sql(_WRITABLE, ([*schema.TABLES],)).scalar():
            raise self.about("cannot be written: its server is read-only, or this role lacks INSERT on its tables")

    def about(self, words: str) -> LedgerError:
        """Name database and host for those inside the house."""
        return LedgerError(f"{self.subject} on PostgreSQL {words}", private=f"{self._private} {words}")

    def in_words(self, error: DBAPIError) -> str:
        """Say what the server's error code means."""
        return of_code(error.orig)

    def refusal(self, error: DBAPIError) -> LedgerError:
        """Tell errors that another attempt may mend from others."""
        return self._complaint(TransactionAborted if may_be_mended(error.orig) else LedgerError, self.in_words(error))

    def _complaint(self, kind: type[LedgerError], words: str) -> LedgerError:
        return kind(f"{self.subject} on PostgreSQL: {words}", private=f"{self._private}: {words}")


def _begin(connection: Connection) -> None:
    if connection.get_execution_options().get("agedp_write", False):
        connection.exec_driver_sql(_LOCK)  # still outside of any transaction: what follows sees what came before
        connection.exec_driver_sql(_WRITE)
    else:
        connection.exec_driver_sql(_READ)


def _require_alive(connection: Connection) -> None:
    """Stop a COMMIT that the server would answer with ROLLBACK and without an error: a statement failed before it."""
    status = connection.connection.driver_connection.info.transaction_status  # type: ignore[union-attr]
    if status.name == "INERROR":
        raise RuntimeError("a statement of this transaction failed, so that nothing of it can be stored")
