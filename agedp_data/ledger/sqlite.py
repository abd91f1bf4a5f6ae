"""A ledger in a file of SQLite: how it is opened, and plain words for what fails.

Writers begin IMMEDIATE, so there is one at a time. `synchronous` is EXTRA, which is FULL plus a sync of the folder
after the journal is removed: with FULL a power cut just after the commit can bring the journal back and undo a draw
that was already published.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import URL, Connection, Engine, NullPool, create_engine, event, false
from sqlalchemy.exc import DBAPIError

from agedp_data.errors import LedgerError
from agedp_data.ledger import schema, sqlite_parts
from agedp_data.ledger.database import BUSY, MEND
from agedp_data.ledger.transactions import transaction

BUSY_SECONDS = 60.0
MODE = "rw"  # of the open file; not "rwc": a ledger that vanished is not made anew

_WORDS = {
    "SQLITE_BUSY": BUSY,
    "SQLITE_LOCKED": BUSY,
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


class SQLiteDatabase:
    """A file of SQLite; `Database` says what its methods are for."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def of(cls, parts: URL) -> SQLiteDatabase:
        """Return the file of an address, or refuse an address of none.

        >>> from sqlalchemy.engine import make_url
        >>> SQLiteDatabase.of(make_url("sqlite:///out/ledger.sqlite")).path.as_posix()
        'out/ledger.sqlite'
        """
        if parts.database in (None, "", ":memory:") or parts.query or parts.host:
            raise LedgerError("a ledger is a file of its own: sqlite:///path/to/ledger.sqlite, nothing after it")
        return cls(Path(str(parts.database)))

    @cached_property
    def engine(self) -> Engine:
        """What opens the file."""
        engine = create_engine("sqlite://", creator=self._connected, poolclass=NullPool)
        event.listen(engine, "begin", _begin)
        return engine

    @property
    def folder(self) -> Path:
        """The file's folder."""
        return self.path.parent

    def _connected(self) -> sqlite3.Connection:
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
            raise self._complaint(_WORDS["SQLITE_CORRUPT"]) from None
        return connection

    def there(self) -> bool:
        """Tell whether there is a file of this name.

        Raises:
            LedgerError: a folder is in its place.
        """
        found = _there(self.path)
        if found and self.path.is_dir():
            raise self.about("is a folder; name a file in it")
        return found

    def make_room(self, *, create: bool) -> None:
        """Make an empty file if there is none and `create`."""
        found = self.there()
        if create:
            self._touch()
        elif not found:
            raise LedgerError(
                f"there is no ledger {str(self.path)!r}; the first `agedp run` makes it, or point `ledger` to the "
                "right file"
            )

    def _touch(self) -> None:
        """Make an empty file that only its owner can read, unless there is one already."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileExistsError):
                os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except OSError as error:
            raise self.about(f"cannot be made: {error.strerror}") from None

    @contextmanager
    def unmade(self) -> Iterator[None]:
        """Take back the file that is made in here, and its folders."""
        missing = [each for each in (self.path, *self.path.parents) if not _there(each)]
        try:
            yield
        except BaseException:
            if self.path in missing:
                self._take_back()
            for folder in missing[1:]:
                with suppress(OSError):
                    folder.rmdir()
            raise

    def _take_back(self) -> None:
        """Remove a ledger without rows; the write lock keeps another process from filling it meanwhile."""
        with suppress(LedgerError, OSError), transaction(self, write=True, making=True) as connection:
            if self.is_empty(connection) or not schema.newer(connection, 0):
                self.path.unlink()

    def is_empty(self, connection: Connection) -> bool:
        """Tell whether the file holds no table."""
        return schema.is_empty(connection)

    def create(self, connection: Connection) -> None:
        """Make the parts of a ledger."""
        sqlite_parts.create(connection)

    def oddities(self, connection: Connection) -> tuple[tuple[str, str], ...]:
        """Compare the parts with those of a ledger made now."""
        return sqlite_parts.oddities(connection)

    def is_whole(self, connection: Connection) -> bool:
        """Ask SQLite: pages, indices, constraints."""
        return connection.exec_driver_sql("PRAGMA integrity_check").scalars().all() == ["ok"]

    def require_writable(self, connection: Connection) -> None:
        """Make SQLite take its write lock, which BEGIN IMMEDIATE leaves out for a read-only file."""
        connection.execute(schema.META.delete().where(false()))

    def about(self, words: str) -> LedgerError:
        """Name the file."""
        return LedgerError(f"the ledger {str(self.path)!r} {words}")

    def in_words(self, error: DBAPIError) -> str:
        """Say what SQLite's error code means."""
        name = str(getattr(error.orig, "sqlite_errorname", ""))
        for code, words in _WORDS.items():
            if name.startswith(code):
                return words
        return f"the database refused ({name or type(error.orig).__name__}): the file is damaged; {MEND}"

    def refusal(self, error: DBAPIError) -> LedgerError:
        """Say it of this file."""
        return self._complaint(self.in_words(error))

    def _complaint(self, words: str) -> LedgerError:
        return LedgerError(f"the ledger {str(self.path)!r}: {words}")


def _begin(connection: Connection) -> None:
    write = connection.get_execution_options().get("agedp_write", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")


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
