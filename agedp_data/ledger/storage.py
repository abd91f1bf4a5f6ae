"""Where a ledger lies: its address, its SQLite connections, its transactions, and plain words for what fails.

Every transaction opens the file anew: a fork shares no lock, a file put back from a backup is seen, and
closing leaves nothing behind. Writers begin IMMEDIATE, so the second of two runs waits until the first has
stored what it drew. `synchronous` is EXTRA, which is FULL plus a sync of the folder after the journal is
removed: with FULL a power cut just after the commit can bring the journal back and undo a draw that was
already published.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from sqlalchemy import Connection, Engine, NullPool, create_engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError

from agedp_data.errors import LedgerError
from agedp_data.ledger import schema

if TYPE_CHECKING:
    from collections.abc import Iterator

BUSY_SECONDS = 60.0
MODE = "rw"  # of the open file; not "rwc": a ledger that vanished is not made anew

MEND = "put back a good copy, or restore it from the release folder (`agedp ledger recover`)"

_WORDS = {
    "SQLITE_BUSY": "another process has held it for a minute; wait for that run to end and start again",
    "SQLITE_LOCKED": "another process has held it for a minute; wait for that run to end and start again",
    "SQLITE_NOTADB": "this is not a ledger; point `ledger` to the right file",
    "SQLITE_READONLY": "it cannot be written, or was moved meanwhile; check its permissions and its folder's",
    "SQLITE_PERM": "it cannot be opened; check its permissions and its folder's",
    "SQLITE_CANTOPEN": "it cannot be opened; check that it exists, its permissions and its folder's",
    "SQLITE_CORRUPT": f"the file is damaged; {MEND}",
    "SQLITE_ERROR": f"its tables are not those of a ledger, or are damaged; {MEND}",
    "SQLITE_FULL": "the disk is full; nothing was stored",
    "SQLITE_IOERR": "the disk fails to read or write; nothing was stored",
    "SQLITE_CONSTRAINT": "it refused a row that does not continue it; run `agedp ledger verify`",
}


def path_of(url: str) -> Path:
    """Return the file of a ledger address, or refuse the address without quoting any password.

    >>> path_of("sqlite:///out/ledger.sqlite").as_posix()
    'out/ledger.sqlite'

    Raises:
        LedgerError: an address with a password, of another database than SQLite, or without a file.
    """
    try:
        parts = make_url(url)
    except (ArgumentError, ValueError):
        raise LedgerError('the ledger address cannot be read; write "sqlite:///path/to/ledger.sqlite"') from None
    if parts.password is not None or any("pass" in key.lower() for key in parts.query):
        raise LedgerError("the ledger address contains a password; use ~/.pgpass or PGSERVICE instead")
    backend = parts.get_backend_name()
    if backend == "postgresql":
        raise LedgerError("ledgers on PostgreSQL are not built yet; use sqlite:///path/to/ledger.sqlite")
    if parts.drivername not in ("sqlite", "sqlite+pysqlite"):
        raise LedgerError(f"no ledger on {backend!r}; use sqlite:///path/to/ledger.sqlite")
    if parts.database in (None, "", ":memory:") or parts.query or parts.host:
        raise LedgerError("a ledger is a file of its own: sqlite:///path/to/ledger.sqlite, nothing after it")
    return Path(str(parts.database))


def is_made(path: Path) -> bool:
    """Tell whether there is a ledger, or anything else that must not be taken for none.

    An empty database is none: so a run leaves it that was killed while it made its first ledger.

    Raises:
        LedgerError: a file that is no database.
    """
    if not _there(path) or path.is_dir():
        return _there(path)
    with transaction(_engine(path), path, write=False) as connection:
        return not schema.is_empty(connection)


def _there(path: Path) -> bool:
    """Tell whether there is something of this name; not being allowed to look is no answer."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise LedgerError(
            f"the ledger {str(path)!r} cannot be looked for ({why}); check its folder's permissions"
        ) from None
    return True


def prepared(path: Path, *, create: bool) -> Engine:
    """Return the engine of a ledger that exists, or that was created because `create` says so.

    Raises:
        LedgerError: no such file and not `create`; a folder; a file that is no ledger or a newer one.
    """
    found_there = _there(path)
    if found_there and path.is_dir():
        raise LedgerError(f"the ledger {str(path)!r} is a folder; name a file in it")
    if create:
        _touch(path)
    elif not found_there:
        raise LedgerError(
            f"there is no ledger {str(path)!r}; the first `agedp run` makes it, or point `ledger` to the right file"
        )
    engine = _engine(path)
    with transaction(engine, path, write=False) as connection:
        empty = schema.is_empty(connection)
    if empty and create:
        with transaction(engine, path, write=True, making=True) as connection:
            if schema.is_empty(connection):  # another process may have been faster
                schema.create(connection)
    with transaction(engine, path, write=False) as connection:
        found = schema.version(connection)
    if found is None:
        raise LedgerError(f"{str(path)!r} is not a ledger; point `ledger` to the right file")
    if found != schema.VERSION:
        raise LedgerError(
            f"the ledger {str(path)!r} has schema version {found}, this agedp knows {schema.VERSION}; update agedp"
        )
    return engine


@contextmanager
def transaction(engine: Engine, path: Path, *, write: bool, making: bool = False) -> Iterator[Connection]:
    """Give a connection inside one transaction: committed at the end, rolled back on any exception.

    What is written goes through the triggers: a ledger that lacks one, or has one more, is not written to unless it
    is only `making`.

    Raises:
        LedgerError: in one line, whatever the database has to complain about.
    """
    try:
        with engine.connect().execution_options(agedp_write=write) as connection, connection.begin():
            if write and not making:
                _require_as_made(connection, path)
            yield connection
    except DBAPIError as error:
        raise LedgerError(f"the ledger {str(path)!r}: {in_words(error)}") from None


def _require_as_made(connection: Connection, path: Path) -> None:
    for what, how in schema.oddities(connection):
        raise LedgerError(
            f"the ledger {str(path)!r} was changed from outside: its {what} {how}, so nothing is written to it; put "
            "back a good copy, or move its rows to a new one (`agedp ledger export`, `agedp ledger import --lost`)"
        )


@contextmanager
def nothing_left(url: str) -> Iterator[None]:
    """Take back the ledger that is made in here, and its folders, if anything fails; what holds rows stays."""
    path = path_of(url)
    missing = [each for each in (path, *path.parents) if not _there(each)]
    try:
        yield
    except BaseException:
        if path in missing:
            _take_back(path)
        for folder in missing[1:]:
            with suppress(OSError):
                folder.rmdir()
        raise


def _take_back(path: Path) -> None:
    """Remove a ledger without rows; the write lock keeps another process from filling it meanwhile."""
    with suppress(LedgerError, OSError), transaction(_engine(path), path, write=True, making=True) as connection:
        if schema.is_empty(connection) or not schema.newer(connection, 0):
            path.unlink()


def _touch(path: Path) -> None:
    """Make an empty file that only its owner can read, unless there is one already."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except OSError as error:
        raise LedgerError(f"the ledger {str(path)!r} cannot be made: {error.strerror}") from None


def _engine(path: Path) -> Engine:
    address = f"file:{quote(str(path.absolute()))}?mode={MODE}"

    def connect() -> sqlite3.Connection:
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
            raise LedgerError(f"the ledger {str(path)!r}: {_WORDS['SQLITE_CORRUPT']}") from None
        return connection

    engine = create_engine("sqlite://", creator=connect, poolclass=NullPool)

    def begin(connection: Connection) -> None:
        write = connection.get_execution_options().get("agedp_write", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")

    event.listen(engine, "begin", begin)
    return engine


def in_words(error: DBAPIError) -> str:
    """Say what SQLite's error code means to the user."""
    name = str(getattr(error.orig, "sqlite_errorname", ""))
    for code, words in _WORDS.items():
        if name.startswith(code):
            return words
    return f"the database refused ({name or type(error.orig).__name__}): the file is damaged; {MEND}"
