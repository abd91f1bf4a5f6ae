"""One run at a time in a folder, by a lock that ends with its process.

A stopped run keeps its lock, so a waiting run logs a warning, and gives up in the end.
"""

from __future__ import annotations

import fcntl
import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agedp.local_files.atomic_files import write_errors
from agedp_data.errors import Busy

WARN_AFTER_SECONDS = 5.0
MAX_WAIT_SECONDS = 3600.0
"""An hour: a first run over a large archive may take that long. A run that gives up has neither ingested nor drawn."""

_LOG = logging.getLogger("agedp")


@contextmanager
def exclusive_lock(folder: Path, *, max_wait_seconds: float | None = None) -> Iterator[None]:
    """Hold the exclusive lock of a folder; wait for it at most `max_wait_seconds`, by default an hour.

    On a file system without locks it does not wait.

    Raises:
        Busy: another process held the lock all the time; it may be stopped, or hang.
    """
    with write_errors(folder):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        _wait_for_lock(descriptor, folder, MAX_WAIT_SECONDS if max_wait_seconds is None else max_wait_seconds)
        yield
    finally:
        os.close(descriptor)


def _wait_for_lock(descriptor: int, folder: Path, max_wait_seconds: float) -> None:
    started, is_warned = time.monotonic(), False
    while not _try_lock(descriptor):
        waited = time.monotonic() - started
        if waited > max_wait_seconds:
            problem = "another run has held the folder for too long; end it if it hangs or is suspended"
            raise Busy(problem, private=f"{folder}: {problem}")
        if waited > WARN_AFTER_SECONDS and not is_warned:
            _LOG.warning("agedp: another run works in the same folder; waiting until it ends")
            is_warned = True
        time.sleep(min(0.02 + waited / 20, 0.5))


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True
