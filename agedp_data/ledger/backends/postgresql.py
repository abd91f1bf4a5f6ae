"""A ledger in a schema of a PostgreSQL database: connections, one writer at a time, and error messages.

A ledger is the first schema of its role's search path, so that one database can store several, each in its own schema.

Decisions:

* Writers queue at an advisory lock of the session, taken before the transaction begins: a lock within the transaction
  would come after the snapshot, and only the owner of tables may lock them. The lock ends with the session, so the next
  writer sees whether a COMMIT whose answer was lost was carried out.
* Write transactions are serialisable as well: if a writer bypasses the lock, one of the two transactions fails.
* Lock and triggers hold for every role.
* A commit waits for the disk, and for the standbys that the server's settings name.
* PostgreSQL's errors are explained to the user; the server's own text is never quoted: it may contain values.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from agedp_data.errors import LedgerError
from agedp_data.ledger.backends import backend

if TYPE_CHECKING:
    import psycopg


# --------------------------------------------------------------------------------------------------
# The tables of a ledger in PostgreSQL, and the triggers that keep them append-only.
#
# Triggers protect against mistakes, not against the owner of the tables. They fire ALWAYS, also for changes that a
# replication applies. Each part is compared with the server's catalogue: columns and keys by name, functions by their
# source. A table that a crash empties (UNLOGGED), that shows only some of its rows (row security, rules) or rows of
# further tables (inheritance) is refused as well. Objects of an extension are ignored.
# --------------------------------------------------------------------------------------------------

_FUNCTIONS: Final = {
    "kept": """CREATE FUNCTION ledger_kept() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the ledger is append-only' USING ERRCODE = 'restrict_violation';
END $$""",
    "next": """CREATE FUNCTION ledger_next() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    place text := quote_ident(TG_TABLE_SCHEMA);
    newest bigint;
BEGIN
    EXECUTE 'SELECT greatest('
        || 'coalesce((SELECT max(seq) FROM ' || place || '.contract), 0), '
        || 'coalesce((SELECT max(seq) FROM ' || place || '.model), 0), '
        || 'coalesce((SELECT max(seq) FROM ' || place || '.release), 0), '
        || 'coalesce((SELECT max(seq) FROM ' || place || '.statement), 0))' INTO newest;
    IF NEW.seq IS DISTINCT FROM newest + 1 THEN
        RAISE EXCEPTION 'the ledger is append-only' USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END $$""",
}
_ROW, _BEFORE, _INSERT, _DELETE, _UPDATE, _TRUNCATE = 1, 2, 4, 8, 16, 32
"""Bits of pg_trigger.tgtype."""

_TABLES: Final = """
    WITH own AS (
        SELECT * FROM pg_class AS c WHERE relnamespace = quote_ident(current_schema())::regnamespace
        AND relkind IN ('r', 'v', 'm', 'p', 'f', 'S')
        AND NOT EXISTS (SELECT FROM pg_depend WHERE objid = c.oid AND deptype = 'e')
    ), fields AS (
        SELECT attrelid, string_agg(
            attname || ' ' || format_type(atttypid, atttypmod) || CASE WHEN attnotnull THEN '' ELSE ' null' END
            || CASE WHEN atthasdef OR attidentity <> '' THEN ' default' ELSE '' END, ', ' ORDER BY attnum) AS said
        FROM pg_attribute WHERE attnum > 0 AND NOT attisdropped GROUP BY attrelid
    ), keys AS (
        SELECT conrelid, CASE WHEN contype IN ('p', 'u') THEN contype::text ELSE conname END || ' '
            || (SELECT coalesce(string_agg(attname, ', ' ORDER BY attname), '') FROM pg_attribute
                WHERE attrelid = conrelid AND attnum = ANY (conkey)) AS said
        FROM pg_constraint WHERE contype <> 'n'
    )
    SELECT relname, relkind::text || relpersistence::text, relrowsecurity
        OR EXISTS (SELECT FROM pg_inherits WHERE own.oid IN (inhrelid, inhparent)),
        (SELECT said FROM fields WHERE attrelid = own.oid),
        (SELECT string_agg(said, '; ' ORDER BY said COLLATE "C") FROM keys WHERE conrelid = own.oid)
    FROM own"""
_INDICES_AND_RULES: Final = """
    SELECT 'index', relname::text, '' FROM pg_class AS c
    WHERE relkind IN ('i', 'I') AND relnamespace = quote_ident(current_schema())::regnamespace
    AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = c.oid)
    AND NOT EXISTS (SELECT FROM pg_depend WHERE objid = c.oid AND deptype = 'e')
    UNION ALL
    SELECT 'rule', rulename::text, relname::text FROM pg_rewrite JOIN pg_class AS c ON c.oid = ev_class
    WHERE relkind IN ('r', 'p') AND relnamespace = quote_ident(current_schema())::regnamespace"""
_TRIGGERS: Final = """
    SELECT tgname, relname, tgtype, tgenabled::text, tgqual IS NULL AND tgnargs = 0 AND proconfig IS NULL, prosrc
    FROM pg_trigger JOIN pg_class AS c ON c.oid = tgrelid JOIN pg_proc AS p ON p.oid = tgfoid
    WHERE NOT tgisinternal AND relnamespace = quote_ident(current_schema())::regnamespace"""
_KINDS: Final = {"v": "view", "m": "view", "S": "sequence"}


def _triggers() -> list[str]:
    """Return the statements that make PostgreSQL refuse updates, deletions and rows with a wrong number."""
    kept = [(name, "kept", "UPDATE OR DELETE OR TRUNCATE", "") for name in ("meta", *backend.TABLES)]
    consecutive = [(name, "next", "INSERT", "FOR EACH ROW ") for name in backend.TABLES]
    statements = []
    for name, kind, events, rows in (*kept, *consecutive):
        trigger = f"CREATE TRIGGER {name}_{kind} BEFORE {events} ON {name} {rows}EXECUTE FUNCTION ledger_{kind}()"
        statements += [trigger, f"ALTER TABLE {name} ENABLE ALWAYS TRIGGER {name}_{kind}"]
    return statements


def _expected_parts() -> backend.Parts:
    triggers = {f"{name}_kept": (name, _BEFORE | _DELETE | _UPDATE | _TRUNCATE) for name in ("meta", *backend.TABLES)}
    triggers |= {f"{name}_next": (name, _ROW | _BEFORE | _INSERT) for name in backend.TABLES}
    return {
        **{("table", name): _table_definition(table) for name, table in backend.METADATA.tables.items()},
        **{
            ("trigger", name): repr((table, kind, "A", True, _FUNCTIONS[name.rpartition("_")[2]].split("$$")[1]))
            for name, (table, kind) in triggers.items()
        },
    }


def _table_definition(table: sa.Table) -> str:
    columns = ", ".join(
        f"{item.name} {'text' if isinstance(item.type, sa.Text) else 'bigint'}" for item in table.columns
    )
    keys = [
        f"{'p' if isinstance(item, sa.PrimaryKeyConstraint) else 'u'} {', '.join(sorted(item.columns.keys()))}"
        for item in table.constraints
        if isinstance(item, sa.PrimaryKeyConstraint | sa.UniqueConstraint)
    ]
    return repr(("rp", False, columns, "; ".join(sorted(keys))))


def _stored_parts(connection: sa.Connection) -> backend.Parts:
    parts: dict[tuple[str, str], str] = {}
    for name, kind, *definition in connection.exec_driver_sql(_TABLES):
        parts[_KINDS.get(kind[0], "table"), name] = repr((kind, *definition))
    for name, *definition in connection.exec_driver_sql(_TRIGGERS):
        parts["trigger", name] = repr(tuple(definition))
    for kind, name, table in connection.exec_driver_sql(_INDICES_AND_RULES):
        parts[kind, name] = table
    return parts


# --------------------------------------------------------------------------------------------------
# Connections and errors.
# --------------------------------------------------------------------------------------------------

_LOST_CODES: Final = ("08", "57P01", "57P02", "57P03")
_CONFLICT_CODES: Final = ("40001", "40P01")

_LOST_TEXT: Final = (
    "the connection to the server was lost repeatedly; what was stored is read before anything is drawn, so "
    "start again when the server is there"
)
_DAMAGED: Final = f"its tables are not those of a ledger, or are damaged; {backend.REPAIR_HINT}"

_EXPLANATIONS_BY_CODE: Final = {
    "55P03": backend.BUSY,
    **dict.fromkeys(_CONFLICT_CODES, "other transactions interfered repeatedly; start again"),
    **dict.fromkeys(_LOST_CODES, _LOST_TEXT),
    "53100": "the server's disk is full; nothing was stored",
    "53": "the server has no room or no connections left; nothing was stored",
    "57014": "the server stopped a statement that took longer than it permits; nothing was stored",
    "25006": "it cannot be written: the server, the database or the role is read-only",
    "0A000": "it cannot be written: the server is a standby; name its primary",
    "42501": "the role lacks a right; docs/operate.md names those that it needs",
    "42": _DAMAGED,
    "3F": _DAMAGED,
    "XX": f"the server finds the tables damaged; {backend.REPAIR_HINT}",
    "58": "the server's disk fails to read or write; nothing was stored",
    "23": "it refused a row that does not continue it; run `agedp ledger verify`",
    "22": "it refused a text that it cannot store; nothing was stored",
}

_STARTING_TEXTS: Final = (
    *("starting up", "not yet accepting connections", "recovery mode"),
    *("closed the connection unexpectedly", "Connection reset"),  # it crashed in that very moment
)

_UNREACHABLE_TEXTS: Final = ("shutting down", "Connection refused", "No such file")

_EXPLANATIONS_BY_TEXT: Final = (
    ("password authentication failed", "the server refuses the password; check ~/.pgpass (mode 0600) or PGSERVICE"),
    ("no password supplied", "the server asks for a password; put it into ~/.pgpass (mode 0600)"),
    ("authentication failed", "the server does not accept this identity; check the role and pg_hba.conf"),
    ("no pg_hba.conf entry", "the server does not admit this role from this address; check pg_hba.conf"),
    ('role "', "the server knows no such role, or it may not log in; create it (docs/operate.md)"),
    ('database "', "the server has no such database; create it (docs/operate.md)"),
    ("definition of service", "the service is not in ~/.pg_service.conf"),
    ("connection option", "the address has an option that the driver does not know"),
    ("permission denied for database", "the role may not connect to the database; grant it CONNECT"),
    *((part, "the server is starting, or recovers from a crash; start again in a moment") for part in _STARTING_TEXTS),
    ("shutting down", "the server is shutting down; start again when it is back"),
    ("too many", "the server has no connections left; start again later"),
    ("connection slots", "the server has no connections left; start again later"),
    ("could not write init file", "the server's disk is full, or cannot be written; nothing was stored"),
    ("No space left", "the server's disk is full; nothing was stored"),
    ("could not translate host name", "a server of that name does not exist; check the address"),
    ("failed to resolve host", "a server of that name does not exist; check the address"),
    ("Name or service not known", "a server of that name does not exist; check the address"),  # psycopg 3.2
    ("timeout expired", "the server does not answer; check the address and the network"),
    ("SSL", "the server and this side do not agree on encryption; check sslmode"),
    ("Connection refused", "no server listens there; check host and port, and whether it runs"),
    ("No such file", "no server listens there; check host and port, and whether it runs"),
)
"""Explanations by a part of libpq's message: a connection that fails has no error code."""


def explain_sqlstate(error: BaseException | None) -> str:
    """Return the meaning and remedy of a statement's error, by its SQLSTATE.

    The server's own message is not used: it may quote values of rows.
    """
    code = str(getattr(error, "sqlstate", None) or ("08" if _is_lost(error) else "22"))
    text = _EXPLANATIONS_BY_CODE.get(code[:5]) or _EXPLANATIONS_BY_CODE.get(code[:2])
    return text or f"the server refused ({code}); nothing was stored"


def explain_connection_error(error: BaseException) -> str:
    """Return why a connection failed, by libpq's message."""
    message = str(error)
    return next(
        (text for part, text in _EXPLANATIONS_BY_TEXT if part in message),
        "the connection to the server failed; try `psql` with the same address",
    )


def is_retryable(error: BaseException | None) -> bool:
    """Return whether a retry may succeed: the server aborted the transaction, or the connection was lost."""
    return _is_lost(error) or getattr(error, "sqlstate", None) in _CONFLICT_CODES


def _is_lost(error: BaseException | None) -> bool:
    code = getattr(error, "sqlstate", None)
    if code is not None:
        return str(code).startswith(_LOST_CODES)
    return type(error).__name__ in ("OperationalError", "InterfaceError", "AdminShutdown", "CrashShutdown")


BUSY_SECONDS = 60.0
CONNECT_SECONDS = 10
_EXAMPLE: Final = "postgresql+psycopg://user@host/database"

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
    def of(cls, parts: sa.URL) -> Self:
        """Return the database of an address.

        Raises:
            LedgerError: the address names no database, or an option twice.
        """
        if not parts.database:
            raise LedgerError(f"{cls.subject} address names no database; write {_EXAMPLE}")
        options = dict(parts.query)
        if any(not isinstance(value, str) for value in options.values()):
            raise LedgerError(f"{cls.subject} address has an option twice; write {_EXAMPLE}")
        parsed = parts.translate_connect_args(username="user", database="dbname")
        return cls(parts.database, parts.host or str(options.get("host", "")), options | parsed)

    @cached_property
    def engine(self) -> sa.Engine:
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
        engine = sa.create_engine(
            "postgresql+psycopg://", creator=self.connect, poolclass=sa.NullPool, use_native_hstore=False
        )
        sa.event.listen(engine, "begin", self._begin)
        sa.event.listen(engine, "commit", _require_usable_transaction)
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

        pauses = list(backend.PAUSES)
        while True:
            try:
                return psycopg.connect(autocommit=True, **options)
            except psycopg.Error as error:
                message = str(error)
                is_starting, is_unreachable = (
                    any(part in message for part in parts) for parts in (_STARTING_TEXTS, _UNREACHABLE_TEXTS)
                )
                if not pauses or not (is_starting or (is_unreachable and len(pauses) > 1)):
                    raise self._error(backend.ServerUnreachable, explain_connection_error(error)) from None
            time.sleep(pauses.pop(0))

    def _require_suitable_server(self, schema_name: str | None, encoding: str, fsync: str) -> None:
        if schema_name is None:
            raise self.error_about("has no schema that this role may use; make one and grant USAGE on it")
        if encoding != "UTF8":
            raise self.error_about(f"lies in a database of encoding {encoding}; make one with ENCODING 'UTF8'")
        if fsync != "on":
            problem = "lies on a server with fsync = off: a power cut could undo draws that are published already"
            raise self.error_about(f"{problem}; switch it on")

    @property
    def lock(self) -> str:
        """The statement that makes a writer wait until the one before it has committed."""
        return _LOCK

    def _begin(self, connection: sa.Connection) -> None:
        if connection.get_execution_options().get("agedp_write", False):
            # before the transaction, so that its snapshot contains the previous writer's rows
            connection.exec_driver_sql(self.lock)
            connection.exec_driver_sql(_WRITE)
        else:
            connection.exec_driver_sql(_READ)

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
        with backend.transaction(self, write=False) as connection:
            empty = self.is_empty(connection)
        if empty:
            raise self.error_about("is not there: the schema is empty; the first `agedp run` makes it")

    @contextmanager
    def removed_on_error(self) -> Iterator[None]:
        """Drop the tables that were created in this context if it fails; a database or schema is never created."""
        with backend.transaction(self, write=False) as connection:
            missing = self.is_empty(connection)
        try:
            yield
        except BaseException:
            if missing:
                self._remove_new_ledger()
            raise

    def _remove_new_ledger(self) -> None:
        with suppress(LedgerError), backend.transaction(self, write=True, creating=True) as connection:
            if not self.is_empty(connection) and not backend.rows_since(connection, 0):
                backend.METADATA.drop_all(connection, checkfirst=False)
                connection.exec_driver_sql("DROP FUNCTION ledger_kept(), ledger_next()")

    def is_empty(self, connection: sa.Connection) -> bool:
        """Return whether the schema has no table."""
        return backend.is_empty(connection)

    def create(self, connection: sa.Connection) -> None:
        """Create the tables and triggers of a ledger."""
        backend.create(connection)
        for statement in (*_FUNCTIONS.values(), *_triggers()):
            connection.exec_driver_sql(statement)

    def changed_parts(self, connection: sa.Connection) -> tuple[tuple[str, str], ...]:
        """Return (part, difference) for every part that differs from a new ledger's."""
        return backend.compare_parts(_expected_parts(), _stored_parts(connection))

    def is_intact(self, connection: sa.Connection) -> bool:  # noqa: ARG002
        """Return True: the server checks its pages, and every row is read anyway."""
        return True

    def require_writable(self, connection: sa.Connection) -> None:
        """Raise LedgerError if the role may not insert rows, or the server is read-only."""
        if not connection.exec_driver_sql(_WRITABLE, ([*backend.TABLES],)).scalar():
            problem = "its server is read-only, or this role lacks INSERT on its tables"
            raise self.error_about(f"cannot be written: {problem}")

    def error_about(self, text: str) -> LedgerError:
        """Return an error about this ledger; only its private text names database and host."""
        return LedgerError(f"{self.subject} on PostgreSQL {text}", private=f"{self._private} {text}")

    def explain(self, error: DBAPIError) -> str:
        """Return the meaning of the server's error code."""
        return explain_sqlstate(error.orig)

    def ledger_error(self, error: DBAPIError) -> LedgerError:
        """Return TransactionAborted for an error that a retry may solve, LedgerError for every other one."""
        return self._error(backend.TransactionAborted if is_retryable(error.orig) else LedgerError, self.explain(error))

    def _error(self, kind: type[LedgerError], text: str) -> LedgerError:
        return kind(f"{self.subject} on PostgreSQL: {text}", private=f"{self._private}: {text}")


def _require_usable_transaction(connection: sa.Connection) -> None:
    """Raise instead of a COMMIT after a failed statement, which the server would turn into a silent ROLLBACK."""
    status = connection.connection.driver_connection.info.transaction_status  # type: ignore[union-attr]
    if status.name == "INERROR":
        raise RuntimeError("a statement of this transaction failed, so that nothing of it can be stored")
