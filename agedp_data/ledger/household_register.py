"""The household register: what every release cost whom, by digests of households, in a database beside the ledgers.

    source       1  ledger 9f3c...  population london  kind release   newest 2013-03-05
    draw         source 1, 2013-03-05, series daily_mean, row 4ab1...: 0.5
    membership   7  [[1, 2013-01-01, null]]: in source 1 from this day on     5,566 households
    household    digest d01e...: membership 7

A source is one population in one ledger. A draw is one release of readings; its `identity` is the hash of its row in
the ledger, "" while it is charged and not known to be drawn. A membership is what some households have in common: in
which sources they are, from which day to which, null for an open end. An open range lasts until the newest day of its
source, so that a night on which the roster did not change adds draws and nothing else.

Decisions:

* Days are whole numbers, days since 1970-01-01. Losses are in nano-epsilon.
* The database holds keyed digests, never ids. `register_meta` has a check value of the key, so that two machines with
  different keys cannot fill one register.
* Nothing here is hashed in a chain: the ledgers are the record of the losses, and a lost register is filled from them.
* Connections, retries and error texts are those of the ledger's backends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import ClassVar, Final, Self, TypeVar

from sqlalchemy import Connection, false
from sqlalchemy import inspect as inspector
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from agedp_data.errors import LedgerError
from agedp_data.ledger.backends.backend import LedgerDatabase, run_transaction
from agedp_data.ledger.backends.postgresql import PostgreSQLDatabase
from agedp_data.ledger.backends.sqlite import SQLiteDatabase
from agedp_data.ledger.register_rows import META, METADATA, RegisterRows

VERSION: Final = "1"
_SUBJECT: Final = "the household register"
_REPAIR: Final = "put back a good copy, or fill it anew (`agedp ledger households RUN.toml --rebuild`)"
_Result = TypeVar("_Result")


class _RegisterFile(SQLiteDatabase):
    """A register in a file of SQLite. Its errors name the file in the private text only: it is confidential."""

    explanations: ClassVar[Mapping[str, str]] = {
        **SQLiteDatabase.explanations,
        "SQLITE_NOTADB": f"the file is not a household register; {_REPAIR}",
        "SQLITE_CORRUPT": f"the file is damaged; {_REPAIR}",
        "SQLITE_ERROR": f"its tables are not those of a household register; {_REPAIR}",
        "SQLITE_CONSTRAINT": f"two rows contradict each other; {_REPAIR}",
    }

    def exists(self) -> bool:
        """Return whether the file exists.

        Raises:
            LedgerError: the path is a folder, or cannot be checked.
        """
        try:
            return super().exists()
        except LedgerError as error:
            problem = f"{_SUBJECT} cannot be used; check its path and permissions"
            raise LedgerError(problem, private=error.private) from None

    def error_about(self, text: str) -> LedgerError:
        """Return an error about this register."""
        return LedgerError(f"{_SUBJECT} {text}", private=f"{_SUBJECT} {str(self.path)!r} {text}")

    def _error(self, text: str) -> LedgerError:
        return LedgerError(f"{_SUBJECT}: {text}", private=f"{_SUBJECT} {str(self.path)!r}: {text}")

    def changed_parts(self, connection: Connection) -> tuple[tuple[str, str], ...]:  # noqa: ARG002
        """Return (): a register has no triggers."""
        return ()

    def require_writable(self, connection: Connection) -> None:
        """Make SQLite take its write lock, which BEGIN IMMEDIATE leaves out for a read-only file."""
        connection.execute(META.delete().where(false()))


class _RegisterServer(PostgreSQLDatabase):
    """A register in a schema of PostgreSQL; its writers have a lock of their own, for a ledger may be held open."""

    subject = _SUBJECT

    @property
    def lock(self) -> str:
        """The statement that makes a writer wait until the one before it has committed."""
        return "SELECT pg_advisory_lock(hashtextextended('agedp register ' || current_schema(), 0))"

    def changed_parts(self, connection: Connection) -> tuple[tuple[str, str], ...]:  # noqa: ARG002
        """Return (): a register has no triggers."""
        return ()


def _database_at(url: str) -> LedgerDatabase:
    try:
        parts = make_url(url)
    except (ArgumentError, ValueError):
        raise LedgerError(f"the address of {_SUBJECT} cannot be read; write postgresql://host/database") from None
    if parts.password is not None or any("pass" in key.lower() for key in parts.query):
        raise LedgerError(f"the address of {_SUBJECT} contains a password; use ~/.pgpass or PGSERVICE instead")
    if parts.drivername.startswith("postgresql"):
        return _RegisterServer.of(parts)
    return _RegisterFile.of(parts)


class HouseholdRegister:
    """The database of a register, at a SQLite file or a PostgreSQL schema."""

    def __init__(self, url: str) -> None:
        self._database = _database_at(url)

    def exists(self) -> bool:
        """Return whether the register exists; an empty file or schema is none.

        Raises:
            LedgerError: the file or schema holds something else, or cannot be asked.
        """
        return self._database.exists() and run_transaction(self._database, self._is_register, write=False)

    def _is_register(self, connection: Connection) -> bool:
        tables = set(inspector(connection).get_table_names())
        if not tables:
            return False
        if not set(METADATA.tables) <= tables:
            raise self._database.error_about(
                "holds tables of something else; name a file, or a schema, that holds nothing else"
            )
        version = RegisterRows(connection).meta().get("version")
        if version != VERSION:
            raise self._database.error_about("has a form that a newer agedp reads; update agedp")
        return True

    def create(self, properties: Mapping[str, str]) -> None:
        """Create the register with these properties, unless another process was faster."""
        self._database.ensure_storage(create=True)

        def work(connection: Connection) -> None:
            if not self._is_register(connection):
                METADATA.create_all(connection, checkfirst=False)
                rows = {"version": VERSION, **properties}
                connection.execute(META.insert(), [{"name": name, "content": rows[name]} for name in rows])

        run_transaction(self._database, work, write=True, creating=True)

    def read(self, work: Callable[[RegisterRows], _Result]) -> _Result:
        """Return the result of `work` on one snapshot of the rows."""
        return run_transaction(self._database, lambda connection: work(RegisterRows(connection)), write=False)

    def write(self, work: Callable[[RegisterRows], _Result]) -> _Result:
        """Return the result of `work` in one write transaction; an exception leaves the register unchanged."""

        def body(connection: Connection) -> _Result:
            if isinstance(self._database, _RegisterFile):
                self._database.require_writable(connection)
            return work(RegisterRows(connection))

        return run_transaction(self._database, body, write=True)

    def close(self) -> None:
        """Close the connection."""
        self._database.engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(LedgerError):
            self.close()
