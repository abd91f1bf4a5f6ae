"""Every write and transaction boundary of a process, counted, and death at the k-th.

A boundary is the instant before something changes on the disk: a file opened for writing, synced, renamed, removed, a
folder made or removed, and BEGIN, every statement, COMMIT and what follows it on a database that is written to.
Between two of them nothing changes that another process could find, but for the bytes inside one temporary file and
inside SQLite's own commit, which random instants and `strace` reach.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, event
from sqlalchemy.engine.default import DefaultDialect

_CHANGING = {"os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.link", "os.truncate", "os.chmod"}
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


class Boundaries:
    """Notes each boundary below `house` as a line of `log`.

    The `kill_at`-th like `like` is the last one, a pause, or where something is done `instead`.
    """

    def __init__(
        self,
        house: Path,
        log: Path,
        *,
        kill_at: int = 0,
        like: str = "*",
        pauses: float = 0,
        instead: Callable[[], None] | None = None,
    ) -> None:
        self._house = str(house)
        self._log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
        self._kill_at = kill_at
        self._like = like
        self._pauses = pauses
        self._instead = instead
        self._passed = 0
        self._writing = False
        self._lock = threading.Lock()

    def watch(self) -> None:
        """Watch this process from now on; audit hooks cannot be taken back."""
        sys.addaudithook(self._audit)
        os.fsync = self._before("fsync", os.fsync)
        event.listen(Engine, "before_cursor_execute", self._execute)
        commit = DefaultDialect.do_commit

        def committing(dialect: DefaultDialect, connection: Any) -> None:
            if self._writing:
                self.passes("commit")
            commit(dialect, connection)
            if self._writing:
                self.passes("committed")

        DefaultDialect.do_commit = committing  # type: ignore[method-assign]

    def _execute(self, connection: Connection, _: object, said: str, *__: object) -> None:
        self._writing = connection.get_execution_options().get("agedp_write", False)
        if self._writing and not said.startswith("SELECT"):
            self.passes(f"execute {' '.join(said.split())[:40]}")

    def passes(self, what: str) -> None:
        with self._lock:
            counts = fnmatchcase(what, self._like)
            self._passed += counts
            os.write(self._log, what.encode() + b"\n")
            if counts and self._passed == self._kill_at:
                if self._instead is not None:
                    self._instead()
                elif not self._pauses:
                    os.kill(os.getpid(), signal.SIGKILL)
                else:
                    time.sleep(self._pauses)

    def _audit(self, name: str, given: tuple[Any, ...]) -> None:
        if name == "open":
            path, _, flags = given
            if isinstance(path, str) and self._ours(path) and flags & _WRITING:
                self.passes(f"open {Path(path).name}")
        elif name in _CHANGING and self._ours(str(given[0])):
            self.passes(f"{name} {Path(str(given[0])).name}")

    def _ours(self, path: str) -> bool:
        return path.startswith(self._house) or not path.startswith("/")

    def _before(self, what: str, call: Callable[[int], None]) -> Callable[[int], None]:
        def wrapped(descriptor: int) -> None:
            self.passes(what)
            call(descriptor)

        return wrapped
