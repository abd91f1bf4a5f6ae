"""A ledger in a file of SQLite: connections, one writer at a time, error messages, tables and append-only triggers.

Decisions:

* Writers begin IMMEDIATE, so there is one at a time.
* `synchronous` is EXTRA, which is FULL plus a sync of the folder after the journal is removed: with FULL a power cut
  just after the commit can bring the journal back and undo a draw that was already published.
* Triggers protect against mistakes (an UPDATE, a DELETE, an INSERT OR REPLACE), not against the owner of the file. Hash
  chain, `verify` and the heads in published folders detect what an owner changes.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property, lru_cache
from pathlib import Path
from typing import ClassVar, Final, Self
from urllib.parse import quote

from sqlalchemy import URL, Connection, Engine, NullPool, create_engine, event, false
from sqlalchemy.exc import DBAPIError

from agedp_data.errors import LedgerError
from agedp_data.ledger.backends import backend
from agedp_data.ledger.backends.backend import BUSY, REPAIR_HINT, Parts, compare_parts, transaction

_PARTS: Final = "SELECT type, name, coalesce(tbl_name, ''), coalesce(sql, '') FROM sqlite_master"
_OF_SQLITE: Final = "sqlite_stat"  # tables of ANALYZE, which are ignored


def _create(connection: Connection) -> None:
    backend.create(connection)
    for trigger in _triggers():
        connection.exec_driver_sql(trigger)


@lru_cache(maxsize=1)
def _expected_parts() -> Parts:
    engine = create_engine("sqlite://")
    try:
        with engine.begin() as connection:
            _create(connection)
            return _parts(connection)
    finally:
        engine.dispose()


def _parts(connection: Connection) -> Parts:
    """Return the definitions of a database's parts, without regard to spaces and quotes.

    Tables are compared by columns and keys, because later versions may word CREATE TABLE differently.
    """
    listed = connection.exec_driver_sql(_PARTS).all()
    return {
        (kind, name): _table_definition(connection, name)
        if kind == "table"
        else "".join(f"{of} {sql}".replace('"', " ").split())
        for kind, name, of, sql in listed
        if not name.startswith(_OF_SQLITE)
    }


def _table_definition(connection: Connection, table: str) -> str:
    """Return the columns of a table (name, type, may be null, key) and which of them are unique together."""
    columns = connection.exec_driver_sql("SELECT * FROM pragma_table_xinfo(?)", (table,)).all()
    indices = connection.exec_driver_sql(
        'SELECT l.name, i.name FROM pragma_index_list(?) l, pragma_index_info(l.name) i WHERE l."unique" ORDER BY 1, 2',
        (table,),
    ).all()
    return repr(([tuple(row) for row in columns], [tuple(row) for row in indices]))


def _triggers() -> list[str]:
    """Return the statements that make SQLite refuse updates, deletions and rows with a wrong number."""
    newest = ", ".join(f'coalesce((SELECT max(seq) FROM "{name}"), 0)' for name in backend.TABLES)  # noqa: S608 - our own names
    refuse = "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
    unchangeable = [
        f'CREATE TRIGGER "{name}_{verb.lower()}" BEFORE {verb} ON "{name}" {refuse}'
        for name in ("meta", *backend.TABLES)
        for verb in ("UPDATE", "DELETE")
    ]
    not_next = f"NEW.seq IS NOT 1 + max({newest})"
    consecutive = [
        f'CREATE TRIGGER "{name}_next" BEFORE INSERT ON "{name}" WHEN {not_next} {refuse}' for name in backend.TABLES
    ]
    same_release = " AND ".join(f"{key} = NEW.{key}" for key in ("population", "series", "day", "revision"))
    is_stored = f'EXISTS (SELECT 1 FROM "release" WHERE {same_release})'  # noqa: S608 - our own names
    unique_release = f'CREATE TRIGGER "release_once" BEFORE INSERT ON "release" WHEN {is_stored} {refuse}'
    same_key = "EXISTS (SELECT 1 FROM meta WHERE name = NEW.name)"
    unique_meta = f'CREATE TRIGGER "meta_once" BEFORE INSERT ON "meta" WHEN {same_key} {refuse}'
    return [*unchangeable, *consecutive, unique_release, unique_meta]


BUSY_SECONDS = 60.0
MODE = "rw"  # of the open file; not "rwc": a ledger that vanished must not be created again

_EXPLANATIONS = {
    "SQLITE_BUSY": BUSY,
    "SQLITE_LOCKED": BUSY,
    "SQLITE_NOTADB": "this is not a ledger; point `ledger` to the right file",
    "SQLITE_READONLY": "it cannot be written, or was moved meanwhile; check its permissions and its folder's",
    "SQLITE_PERM": "it cannot be opened; check its permissions and its folder's",
    "SQLITE_CANTOPEN": "it cannot be opened; check that it exists, its permissions and its folder's",
    "SQLITE_CORRUPT": f"the file is damaged; {REPAIR_HINT}",
    "SQLITE_ERROR": f"its tables are not those of a ledger, or are damaged; {REPAIR_HINT}",
    "SQLITE_FULL": "the disk is full; nothing was stored",
    "SQLITE_IOERR": "the disk fails to read or write; nothing was stored",
    "SQLITE_CONSTRAINT": "it refused a row that does not continue it; run `agedp ledger verify`",
}


class SQLiteDatabase:
    """A file of SQLite, as a `LedgerDatabase`."""

    explanations: ClassVar[Mapping[str, str]] = _EXPLANATIONS
    """Meaning and remedy by SQLite's error code."""
    subject: ClassVar[str] = "the ledger"
    """What is stored in the file, for error messages."""
    is_named: ClassVar[bool] = True
    """Whether the public text of an error names the file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def of(cls, parts: URL) -> Self:
        """Return the file of an address; raise LedgerError if the address names no file.

        >>> from sqlalchemy.engine import make_url
        >>> SQLiteDatabase.of(make_url("sqlite:///out/ledger.sqlite")).path.as_posix()
        'out/ledger.sqlite'
        """
        if parts.database in (None, "", ":memory:") or parts.query or parts.host:
            raise LedgerError("a ledger is a file of its own: sqlite:///path/to/ledger.sqlite, nothing after it")
        return cls(Path(str(parts.database)))

    @cached_property
    def engine(self) -> Engine:
        """The engine that opens the file."""
        engine = create_engine("sqlite://", creator=self._connect, poolclass=NullPool)
        event.listen(engine, "begin", _begin)
        return engine

    @property
    def folder(self) -> Path:
        """The file's folder."""
        return self.path.parent

    def _connect(self) -> sqlite3.Connection:
        address = f"file:{quote(str(self.path.absolute()))}?mode={MODE}"
        connection = sqlite3.connect(
            address, uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        try:
            connection.execute("PRAGMA journal_mode=DELETE")
            connection.execute("PRAGMA synchronous=EXTRA")
        except sqlite3.Error:
            connection.close()
            raise
        except UnicodeDecodeError:  # SQLite quotes the bytes that it cannot make sense of
            connection.close()
            raise self._error(self.explanations["SQLITE_CORRUPT"]) from None
        return connection

    def exists(self) -> bool:
        """Return whether the file exists.

        Raises:
            LedgerError: the path is a folder.
        """
        exists = self._path_exists(self.path)
        if exists and self.path.is_dir():
            raise self.error_about("is a folder; name a file in it")
        return exists

    def _path_exists(self, path: Path) -> bool:
        """Return whether a path exists; raise LedgerError if that cannot be determined."""
        try:
            path.stat()
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            problem = f"cannot be checked ({error.strerror or type(error).__name__}); check its folder's permissions"
            raise self.error_about(problem) from None
        return True

    def ensure_storage(self, *, create: bool) -> None:
        """Make sure that the file exists; with `create`, create an empty file of mode 0600 and its folders.

        Raises:
            LedgerError: the file is missing and not `create`, is a folder, or cannot be created.
        """
        exists = self.exists()
        if not create:
            if not exists:
                remedy = "the first `agedp run` makes it, or point `ledger` to the right file"
                raise LedgerError(f"the ledger {str(self.path)!r} does not exist; {remedy}")
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileExistsError):
                os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except OSError as error:
            raise self.error_about(f"cannot be made: {error.strerror}") from None

    @contextmanager
    def removed_on_error(self) -> Iterator[None]:
        """Remove the file that was created in this context, and its new folders, if it fails."""
        missing = [path for path in (self.path, *self.path.parents) if not self._path_exists(path)]
        try:
            yield
        except BaseException:
            if self.path in missing:
                self._remove_new_ledger()
            for folder in missing[1:]:
                with suppress(OSError):
                    folder.rmdir()
            raise

    def _remove_new_ledger(self) -> None:
        """Remove a ledger without rows; the write lock keeps another process from filling it meanwhile."""
        with suppress(LedgerError, OSError), transaction(self, write=True, creating=True) as connection:
            if self.is_empty(connection) or not backend.rows_since(connection, 0):
                self.path.unlink()

    def is_empty(self, connection: Connection) -> bool:
        """Return whether the file has no table."""
        return backend.is_empty(connection)

    def create(self, connection: Connection) -> None:
        """Create the tables and triggers of a ledger."""
        _create(connection)

    def changed_parts(self, connection: Connection) -> tuple[tuple[str, str], ...]:
        """Return (part, difference) for every part that differs from a new ledger's."""
        return compare_parts(_expected_parts(), _parts(connection))

    def is_intact(self, connection: Connection) -> bool:
        """Return the result of SQLite's integrity check: pages, indices, constraints."""
        return connection.exec_driver_sql("PRAGMA integrity_check").scalars().all() == ["ok"]

    def require_writable(self, connection: Connection) -> None:
        """Make SQLite take its write lock, which BEGIN IMMEDIATE leaves out for a read-only file."""
        connection.execute(backend.META.delete().where(false()))

    def error_about(self, text: str) -> LedgerError:
        """Return an error about this file."""
        return self._error(text, after="")

    def explain(self, error: DBAPIError) -> str:
        """Return the meaning of SQLite's error code."""
        name = str(getattr(error.orig, "sqlite_errorname", ""))
        if text := next((text for code, text in self.explanations.items() if name.startswith(code)), ""):
            return text
        return f"the database refused ({name or type(error.orig).__name__}): the file is damaged; {REPAIR_HINT}"

    def ledger_error(self, error: DBAPIError) -> LedgerError:
        """Return the error with its explanation and the name of the file."""
        return self._error(self.explain(error))

    def _error(self, text: str, *, after: str = ":") -> LedgerError:
        private = f"{self.subject} {str(self.path)!r}{after} {text}"
        return LedgerError(private if self.is_named else f"{self.subject}{after} {text}", private=private)


def _begin(connection: Connection) -> None:
    write = connection.get_execution_options().get("agedp_write", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")
