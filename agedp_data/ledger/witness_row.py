"""A witness in a row of a PostgreSQL table: compared and replaced in one statement.

The table `agedp_witness` is in the first schema of the role's search path and is created with the first record. The
address names the row after `#`; its default is "ledger". One database can therefore serve several ledgers.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from agedp_data.errors import LedgerError
from agedp_data.ledger.backends.postgresql import PostgreSQLDatabase, explain_sqlstate
from agedp_data.ledger.witness import WitnessState, damaged_record_error, format_state, parse_state, witness_error

if TYPE_CHECKING:
    import psycopg

_DEFAULT_NAME: Final = "ledger"
_CREATE: Final = "CREATE TABLE IF NOT EXISTS agedp_witness (name text PRIMARY KEY, state text NOT NULL)"
_SELECT: Final = "SELECT state FROM agedp_witness WHERE name = %s"
_INSERT: Final = "INSERT INTO agedp_witness (name, state) VALUES (%s, %s) ON CONFLICT DO NOTHING"
_UPDATE: Final = "UPDATE agedp_witness SET state = %s WHERE name = %s AND state = %s"
_NO_TABLE: Final = "42P01"
_NO_RIGHT: Final = "42501"
_TABLE_LOCK: Final = "SELECT pg_advisory_lock(hashtextextended('agedp witness ' || current_schema(), 0))"
"""Serialises the creation of the table: with IF NOT EXISTS alone, a concurrent CREATE fails by several codes. The lock
ends with the connection."""


class _WitnessServer(PostgreSQLDatabase):
    """A server whose errors are about the witness."""

    subject = "the witness"


class RowWitness:
    """One row of a table, as a `Witness`."""

    def __init__(self, url: str) -> None:
        url_without_name, _, name = url.partition("#")
        try:
            parts = make_url(url_without_name)
        except (ArgumentError, ValueError):
            raise LedgerError("the address of the witness cannot be read; write postgresql://host/database") from None
        if parts.password is not None or any("pass" in key.lower() for key in parts.query):
            raise LedgerError("the address of the witness contains a password; use ~/.pgpass or PGSERVICE instead")
        self._server = _WitnessServer.of(parts)
        self._name = name or _DEFAULT_NAME
        self._address = f"{self._name!r} in {parts.database!r} on {parts.host!r}"

    @property
    def address(self) -> str:
        """Return the names of row, database and host."""
        return self._address

    def read(self) -> WitnessState | None:
        """Return the record in the row, None if the row does not exist."""
        with self._open_connection() as connection:
            row = self._select_row(connection)
        try:
            return None if row is None else parse_state(str(row[0]).encode())
        except ValueError:
            raise damaged_record_error(self) from None

    def compare_and_set(self, expected: WitnessState | None, state: WitnessState) -> bool:
        """Insert the row, or update it if it still contains `expected`; return whether a row was written.

        The first record creates the table, unless an administrator did.

        Raises:
            LedgerError: the server refused or does not answer, or the table has other columns.
        """
        text = format_state(state).decode()
        with self._open_connection() as connection:
            row = self._select_row(connection)
            if expected is not None:
                expected_text = format_state(expected).decode()
                return row is not None and connection.execute(_UPDATE, (text, self._name, expected_text)).rowcount == 1
            if row is None:
                self._make_table(connection)
            return connection.execute(_INSERT, (self._name, text)).rowcount == 1

    def _select_row(self, connection: psycopg.Connection[Any]) -> Any:  # noqa: ANN401 - a row of one text, or None
        import psycopg  # noqa: PLC0415 - an extra, which only these witnesses need

        try:
            return connection.execute(_SELECT, (self._name,)).fetchone()
        except psycopg.Error as error:
            if error.sqlstate == _NO_TABLE:
                return None
            raise

    def _make_table(self, connection: psycopg.Connection[Any]) -> None:
        """Create the table unless it exists; a role without the right to create tables can use an existing one."""
        connection.execute(_TABLE_LOCK)
        if connection.execute("SELECT to_regclass('agedp_witness')").fetchone() == (None,):
            connection.execute(_CREATE)

    @contextmanager
    def _open_connection(self) -> Iterator[psycopg.Connection[Any]]:
        """Yield a connection in autocommit mode: each statement is one transaction."""
        try:
            import psycopg  # noqa: PLC0415
        except ImportError:
            problem = "needs the driver psycopg. Install agedp with its extra postgresql"
            raise witness_error(LedgerError, self, problem) from None
        connection = self._server.connect()
        try:
            yield connection
        except psycopg.Error as error:
            raise witness_error(LedgerError, self, f"cannot be used: {_explanation(error.sqlstate, error)}") from None
        finally:
            connection.close()


def _explanation(code: str | None, error: BaseException) -> str:
    if code is not None and code.startswith("42") and code != _NO_RIGHT:
        return "its table agedp_witness has other columns. Name another database, or another schema in search_path"
    return explain_sqlstate(error)
