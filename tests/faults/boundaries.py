"""Every write and transaction boundary of a process, counted, and death at the k-th.

A boundary is the instant before something changes on the disk: a file opened for writing, synced, renamed, removed, a
folder made or removed, and BEGIN, every statement, COMMIT and what follows it on a database that is written to; of the
book, every table that is put, COMMIT and what follows it.
Between two of them nothing changes that another process could find, but for the bytes inside one temporary file and
inside SQLite's own commit.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, event
from sqlalchemy.engine.default import DefaultDialect

from agedp.local_files.books import Books, BookTables

_CHANGING = {"os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.link", "os.truncate", "os.chmod"}
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Boundaries:
    """Writes each boundary below `house` as a line of `log`; at the `kill_at`-th like `like` it calls `then`."""

    def __init__(
        self, house: Path, log: Path, *, kill_at: int = 0, like: str = "*", then: Callable[[], object] = die
    ) -> None:
        self._house = str(house)
        self._log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
        self._kill_at, self._like, self._then = kill_at, like, then
        self._passed, self._writing = 0, False
        self._lock = threading.Lock()

    def watch(self) -> None:
        """Watch this process from now on; audit hooks cannot be taken back."""
        sys.addaudithook(self._audit)
        event.listen(Engine, "before_cursor_execute", self._execute)
        sync, commit = os.fsync, DefaultDialect.do_commit

        def syncing(descriptor: int) -> None:
            self.passes("fsync")
            sync(descriptor)

        def committing(dialect: DefaultDialect, connection: Any) -> None:
            if self._writing:
                self.passes("commit")
            commit(dialect, connection)
            if self._writing:
                self.passes("committed")

        os.fsync, DefaultDialect.do_commit = syncing, committing  # type: ignore[method-assign]
        writing, put = Books.writing, BookTables.put

        @contextmanager
        def writing_book(book: Books) -> Iterator[BookTables]:
            with writing(book) as tables:
                yield tables
                self.passes("commit the book")
            self.passes("committed the book")

        def putting(tables: BookTables, table: str, *rows: Any, **keys: Any) -> None:
            if sys._getframe(1).f_code.co_name != "_memory":
                self.passes(f"put {table}")
            put(tables, table, *rows, **keys)

        Books.writing, BookTables.put = writing_book, putting  # type: ignore[method-assign]

    def _execute(self, connection: Connection, _: object, statement: str, *__: object) -> None:
        self._writing = connection.get_execution_options().get("agedp_write", False)
        if self._writing and not statement.startswith("SELECT"):
            self.passes(f"execute {' '.join(statement.split())[:40]}")

    def passes(self, what: str) -> None:
        with self._lock:
            counts = fnmatchcase(what, self._like)
            self._passed += counts
            os.write(self._log, what.encode() + b"\n")
            if counts and self._passed == self._kill_at:
                self._then()

    def _audit(self, name: str, args: tuple[Any, ...]) -> None:
        if name == "open":
            path, _, flags = args
            if isinstance(path, str) and self._is_below(path) and flags & _WRITING:
                self.passes(f"open {Path(path).name}")
        elif name in _CHANGING and self._is_below(str(args[0])):
            self.passes(f"{name} {Path(str(args[0])).name}")

    def _is_below(self, path: str) -> bool:
        return path.startswith(self._house) or not path.startswith("/")
