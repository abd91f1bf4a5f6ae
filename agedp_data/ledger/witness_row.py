"""A witness in a row of a PostgreSQL table, of a population that 0.2 began: compared and replaced in one statement.

The table `agedp_witness` is in the first schema of the role's search path. The address names the row after `#`; its
default is "ledger". No table and no row is made any more: 0.3 withdrew them for new populations.
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
_SELECT: Final = "SELECT state FROM agedp_witness WHERE name = %s"
_UPDATE: Final = "UPDATE agedp_witness SET state = %s WHERE name = %s AND state = %s"
_NO_RIGHT: Final = "42501"


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
            row = connection.execute(_SELECT, (self._name,)).fetchone()
        try:
            return None if row is None else parse_state(str(row[0]).encode())
        except ValueError:
            raise damaged_record_error(self) from None

    def compare_and_set(self, expected: WitnessState | None, state: WitnessState) -> bool:
        """Update the row if it still contains `expected`; return whether it was written. A first record is none.

        Raises:
            LedgerError: the server refused or does not answer, or the table has other columns.
        """
        if expected is None:
            return False
        with self._open_connection() as connection:
            texts = format_state(state).decode(), self._name, format_state(expected).decode()
            return connection.execute(_UPDATE, texts).rowcount == 1

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
        return "its table agedp_witness is missing or has other columns. Put it back, or name its schema in search_path"
    return explain_sqlstate(error)
