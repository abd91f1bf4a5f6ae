"""The book of a confidential folder: `books.sqlite`, one database for what it records beside readings.

A row has the name of its table, a key, its content as bytes, and a digest of all three. Example:

    ("true_means", '["homes", "2013-01-01", "all"]', <the cells of the day>, <BLAKE2b of the three>)

`bookkeeping`, `roster_history` and the store decide keys and contents. A run adds the rows of new days; those of
earlier days are not written again. "Has anything changed?" is the comparison of one row.

Decisions:

* A changed byte of a row is noticed by its digest, a missing row by the digest of all digests of its table, a changed
  page by SQLite. Whatever is not as it was written does not count.
* `Books.check` makes a damaged book anew from its sound rows and keeps a copy of the damaged one: derived rows are
  computed again, records begin anew. A table that nothing replaces (`SOURCES`) is refused by whoever reads it.
* Removed rows are overwritten: the names of input files may be those of households.
* A new book is put in place by rename with its tables, so an empty file is a damaged book, never a new one.
* A connection lives as long as one reading or one writing, which is one transaction: what a run has read never blocks
  another run, and nothing is taken for damage because another run wrote between two queries.
* Only SQLite opens the file: closing it elsewhere in a process would end the locks of the process's connections.
"""

from __future__ import annotations

import errno
import hashlib
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from agedp.local_files import atomic_files
from agedp.local_files.atomic_files import DamagedFile, FileNotice
from agedp_data.errors import AgedpError, Busy, InputError

SOURCES: Final = {
    "released_rosters": "put back a copy of it, or remove it: then only the numbers of households are compared with "
    "those of released days"
}
"""Tables that nothing replaces, and what helps where one of them is damaged."""
TABLES: Final = (
    "ledger_checkpoints", "publications", "report", "rosters", "roster_checks", *SOURCES,
    "true_means", "true_counts", "coverage", "counted_states", "input_names", "manifests", "deduplicated", "buckets",
)  # fmt: skip

Rows = dict[str, bytes]
"""Contents by key, in the order of the keys."""

_BUSY_SECONDS: Final = 60.0
_IMMEDIATE: Final = "BEGIN IMMEDIATE"
"""Begin a transaction of one writer; a plain `BEGIN` is one of a reader."""
_SCHEMA: Final = """
CREATE TABLE row (name TEXT, key BLOB, digest BLOB, content BLOB, PRIMARY KEY (name, key)) WITHOUT ROWID;
CREATE TABLE total (name TEXT PRIMARY KEY, digest BLOB) WITHOUT ROWID;
PRAGMA application_id = 1634166882;
"""


class BookTables:
    """The tables of an open book."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def sound_rows(self, table: str) -> tuple[Rows, bool]:
        """Return the rows of a table that are as they were written, and whether these are all of them."""
        lines = self._fetch("SELECT key, digest, content FROM row WHERE name = ? ORDER BY key", table)
        stored = self._fetch("SELECT digest FROM total WHERE name = ?", table)
        if lines is None or stored is None:
            return {}, False
        rows = {_text(key): content for key, digest, content in lines if digest == _digest(table, key, content)}
        if len(rows) < len(lines):
            return rows, False
        return rows, _total(digest for _, digest, _ in lines) == (stored[0][0] if stored else _total(()))

    def rows(self, table: str) -> Rows:
        """Return the sound rows of a table.

        Raises:
            DamagedFile: rows are missing from a table that nothing replaces.
        """
        rows, are_all = self.sound_rows(table)
        if table in SOURCES and not are_all:
            raise DamagedFile(f"books.sqlite in the confidential folder is damaged; {SOURCES[table]}")
        return rows

    def row(self, table: str, key: str) -> bytes | None:
        """Return the content of one row; None if it is missing or damaged."""
        stored_key = _bytes(key)
        lines = self._fetch("SELECT digest, content FROM row WHERE name = ? AND key = ?", table, stored_key)
        return next((content for digest, content in lines or () if digest == _digest(table, stored_key, content)), None)

    def totals(self, *tables: str) -> list[str]:
        """Return the digest of each table, which differs once a row does; "" of a table without rows."""
        stored = dict(self._fetch("SELECT name, hex(digest) FROM total") or ())
        return [str(stored.get(table, "")) for table in tables]

    def keys(self, table: str) -> list[str]:
        """Return the keys of a table; its contents are not read."""
        lines = self._fetch("SELECT key FROM row WHERE name = ? ORDER BY key", table) or ()
        return [_text(key) for (key,) in lines if isinstance(key, bytes)]

    def put(self, table: str, rows: Mapping[str, bytes], *, removed: Iterable[str] = ()) -> None:
        """Write rows of a table within `Books.writing`; an existing row of the same key is replaced."""
        execute = self._connection.execute
        stored = ((_bytes(key), content) for key, content in rows.items())
        lines = [(table, key, _digest(table, key, content), content) for key, content in stored]
        gone = [(table, _bytes(key)) for key in removed]
        self._connection.executemany("DELETE FROM row WHERE name = ? AND key = ?", gone)
        self._connection.executemany("INSERT OR REPLACE INTO row VALUES (?, ?, ?, ?)", lines)
        digests = execute("SELECT digest FROM row WHERE name = ? ORDER BY key", (table,))
        execute("INSERT OR REPLACE INTO total VALUES (?, ?)", (table, _total(digest for (digest,) in digests)))

    def damaged(self) -> list[str]:
        """Return the names of the tables that are not as they were written."""
        return [name for name in TABLES if not self.sound_rows(name)[1]]

    def _fetch(self, query: str, *values: str | bytes) -> Sequence[tuple[Any, ...]] | None:
        """Return the lines of a query; None of a damaged book."""
        try:
            return self._connection.execute(query, values).fetchall()
        except sqlite3.DatabaseError as error:
            if not _is_damage(error):
                raise
            return None


@dataclass(frozen=True, slots=True)
class Books:
    """The book at a path; it is created with the first row, for its owner only.

    Every method raises InputError where the system denies reading or writing, and Busy where another run keeps writing.
    """

    path: Path

    def rows(self, table: str) -> Rows:
        """Return the sound rows of a table, none before the book exists.

        Raises:
            DamagedFile: rows are missing from a table that nothing replaces.
        """
        with self._open() as tables:
            return tables.rows(table)

    def row(self, table: str, key: str) -> bytes | None:
        """Return the content of one row; None if it is missing or damaged."""
        with self._open() as tables:
            return tables.row(table, key)

    def totals(self, *tables: str) -> list[str]:
        """Return the digest of each table, which differs once a row does; "" of a table without rows."""
        with self._open() as opened:
            return opened.totals(*tables)

    def keys(self, table: str) -> list[str]:
        """Return the keys of a table; its contents are not read."""
        with self._open() as tables:
            return tables.keys(table)

    def put(self, table: str, rows: Mapping[str, bytes], *, removed: Iterable[str] = ()) -> None:
        """Write rows of a table in one transaction.

        Raises:
            DamagedFile: the book is damaged.
        """
        with self.writing() as tables:
            tables.put(table, rows, removed=removed)

    def put_derived(self, table: str, rows: Mapping[str, bytes], *, removed: Iterable[str] = ()) -> None:
        """Write rows that the next run computes again where it lacks them: without permission or space, nothing."""
        with suppress(AgedpError, OSError):
            self.put(table, rows, removed=removed)

    @contextmanager
    def writing(self) -> Iterator[BookTables]:
        """Yield the tables within one transaction of one writer, which an error undoes.

        Raises:
            DamagedFile: the book is damaged.
        """
        if not atomic_files.path_exists(self.path):
            with atomic_files.exclusive_lock(self.path.parent):
                if not self.path.exists():
                    atomic_files.write(self.path, _new_book({}))
        with self._open(_IMMEDIATE) as tables:
            tables._connection.execute("PRAGMA secure_delete = ON")
            yield tables
            tables._connection.execute("COMMIT")

    def check(self) -> FileNotice | None:
        """Make a damaged book anew from its sound rows, and return the notice about it; None if it is sound.

        Raises:
            DamagedFile: rows are missing from a table that nothing replaces.
        """
        if not self._damaged_tables():
            return None
        copy = self.path.with_name(f"{self.path.name}.damaged")
        waiting = atomic_files.exclusive_lock(self.path.parent)
        with waiting, atomic_files.write_errors(copy), self._open(_IMMEDIATE) as tables:  # nobody else writes meanwhile
            if not (names := tables.damaged()):  # another run has made it anew
                return None
            contents = {name: tables.rows(name) for name in TABLES}
            _keep(self.path, copy)
            atomic_files.write(self.path, _new_book(contents))
        public = "a confidential record was damaged and begins anew"
        private = (
            f"{self.path} was damaged ({', '.join(names)}); its sound rows are kept, the others begin anew, and a copy "
            f"is {copy.name}. Put back a copy to keep its earlier days."
        )
        return FileNotice(public, private)

    def _damaged_tables(self) -> list[str]:
        with self._open() as tables:
            return tables.damaged()

    @contextmanager
    def _open(self, begin: str = "BEGIN") -> Iterator[BookTables]:
        """Yield the tables within one transaction, empty ones before the book exists."""
        if not atomic_files.path_exists(self.path):
            with closing(_memory({})) as connection:
                yield BookTables(connection)
            return
        if not os.access(self.path, os.R_OK):
            raise atomic_files.unreadable_error(self.path, errno.EACCES)
        try:
            with closing(self._connect(begin)) as connection:
                yield BookTables(connection)
        except sqlite3.DatabaseError as error:
            raise self._error(error) from None

    def _connect(self, begin: str) -> sqlite3.Connection:
        """Return a connection that has begun a transaction, of a damaged book perhaps none: its first query fails."""
        address = f"file:{quote(bytes(self.path.absolute()))}?mode=rw"
        while True:
            file = self.path.stat().st_ino
            connection = sqlite3.connect(address, uri=True, timeout=_BUSY_SECONDS, isolation_level=None)
            try:
                connection.execute(begin)
            except sqlite3.DatabaseError as error:
                if not _is_damage(error):
                    connection.close()
                    raise
            if begin != _IMMEDIATE or file == self.path.stat().st_ino:
                return connection
            connection.close()  # another run has put a book that it made anew in its place, while this one waited

    def _error(self, error: sqlite3.DatabaseError) -> AgedpError:
        if _is_damage(error):
            return DamagedFile(f"books.sqlite in the confidential folder is damaged; {', '.join(SOURCES.values())}")
        kind = Busy if error.sqlite_errorname.startswith("SQLITE_BUSY") else InputError
        problem = f"cannot be written ({error})"
        return kind(f"[output] {problem}", private=f"{self.path}: {problem}")


def _is_damage(error: sqlite3.DatabaseError) -> bool:
    """Return whether an error is about the content of the file, not about access, space or another writer."""
    name = getattr(error, "sqlite_errorname", "")
    return name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_ERROR", "SQLITE_FORMAT")) or not name


def _bytes(key: str) -> bytes:
    """Return a key as it is stored: the name of a file need not be UTF-8."""
    return key.encode("utf-8", "surrogatepass")


def _text(key: bytes) -> str:
    return key.decode("utf-8", "surrogatepass")


def _digest(table: str, key: object, content: object) -> bytes:
    """Return the digest of a row; "" where a damaged page gives another type."""
    if not (isinstance(key, bytes) and isinstance(content, bytes)):
        return b""
    return hashlib.blake2b(repr((table, key)).encode() + content, digest_size=16).digest()


def _total(digests: Iterable[bytes]) -> bytes:
    return hashlib.blake2b(repr([*digests]).encode(), digest_size=16).digest()


def _keep(path: Path, copy: Path) -> None:
    """Keep a file that is about to be replaced under another name."""
    copy.unlink(missing_ok=True)
    try:
        os.link(path, copy)
    except OSError:  # a file system without links
        atomic_files.write(copy, path.read_bytes())


def _memory(contents: Mapping[str, Rows]) -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.executescript(_SCHEMA)
    for table, rows in contents.items():
        BookTables(connection).put(table, rows)
    return connection


def _new_book(contents: Mapping[str, Rows]) -> bytes:
    with closing(_memory(contents)) as connection:
        return connection.serialize()
