"""A witness in a row of a PostgreSQL table: compared and replaced in one statement.

The table `agedp_witness` lies in the first schema of the role's search path and is made with the first record. A row
is named behind `#` in the address, "ledger" unless it is, so that one database can serve several ledgers.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from agedp_data.errors import LedgerError
from agedp_data.ledger.postgresql import PostgreSQLDatabase
from agedp_data.ledger.postgresql_words import of_code
from agedp_data.ledger.witness import WitnessState, damaged, format_state, parse_state, refusal

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
"""Writers make the table one after the other: IF NOT EXISTS alone fails for the loser, by several codes. The lock ends
with the connection."""


class _WitnessServer(PostgreSQLDatabase):
    """A server that speaks of the witness in its errors."""

    subject = "the witness"


class RowWitness:
    """One row of a table; `Witness` says what its methods are for."""

    def __init__(self, url: str) -> None:
        address, _, name = url.partition("#")
        try:
            parts = make_url(address)
        except (ArgumentError, ValueError):
            raise LedgerError("the address of the witness cannot be read; write postgresql://host/database") from None
        if parts.password is not None or any("pass" in key.lower() for key in parts.query):
            raise LedgerError("the address of the witness contains a password; use ~/.pgpass or PGSERVICE instead")
        self._server = _WitnessServer.of(parts)
        self._name = name or _DEFAULT_NAME
        self._place = f"{self._name!r} in {parts.database!r} on {parts.host!r}"

    @property
    def place(self) -> str:
        """Return the names of row, database and host."""
        return self._place

    def read(self) -> WitnessState | None:
        """Return what the row holds."""
        with self._connected() as connection:
            row = self._selected(connection)
        try:
            return None if row is None else parse_state(str(row[0]).encode())
        except ValueError:
            raise damaged(self) from None

    def compare_and_set(self, expected: WitnessState | None, state: WitnessState) -> bool:
        """Insert the row, or update it where it still says what is expected."""
        text = format_state(state).decode()
        with self._connected() as connection:
            row = self._selected(connection)
            if expected is not None:
                expected_text = format_state(expected).decode()
                return row is not None and connection.execute(_UPDATE, (text, self._name, expected_text)).rowcount == 1
            if row is None:
                self._make_table(connection)
            return connection.execute(_INSERT, (self._name, text)).rowcount == 1

    def _selected(self, connection: psycopg.Connection[Any]) -> Any:  # noqa: ANN401 - a row of one text, or None
        import psycopg  # noqa: PLC0415 - an extra, which only these witnesses need

        try:
            return connection.execute(_SELECT, (self._name,)).fetchone()
        except psycopg.Error as error:
            if error.sqlstate == _NO_TABLE:
                return None
            raise

    def _make_table(self, connection: psycopg.Connection[Any]) -> None:
        """Make the table unless it exists: a role that may not make tables can use one that somebody made for it."""
        connection.execute(_TABLE_LOCK)
        if connection.execute("SELECT to_regclass('agedp_witness')").fetchone() == (None,):
            connection.execute(_CREATE)

    @contextmanager
    def _connected(self) -> Iterator[psycopg.Connection[Any]]:
        """Open a connection in which every statement is a transaction of its own."""
        try:
            import psycopg  # noqa: PLC0415
        except ImportError:
            what = "needs the driver psycopg. Install agedp with its extra postgresql"
            raise refusal(LedgerError, self, what) from None
        connection = self._server.connect()
        try:
            yield connection
        except psycopg.Error as error:
            raise refusal(LedgerError, self, f"cannot be used: {_reason(error.sqlstate, error)}") from None
        finally:
            connection.close()


def _reason(code: str | None, error: BaseException) -> str:
    if code is not None and code.startswith("42") and code != _NO_RIGHT:
        return "its table agedp_witness has other columns. Name another database, or another schema in search_path"
    return of_code(error)
