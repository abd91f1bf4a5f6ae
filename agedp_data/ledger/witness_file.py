"""A witness in a file: replaced atomically by renaming, synced with its folder, compared under a lock.

The folder is never created: an unmounted disk must not look like a witness that was never used.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from agedp_data.errors import LedgerError
from agedp_data.ledger.witness import WitnessState, damaged_record_error, format_state, parse_state, witness_error
from agedp_data.messages import escape_text

LOCK_SECONDS: Final = 60.0
_PAUSE_SECONDS: Final = 0.02


class FileWitness:
    """A file on another disk than the ledger, as a `Witness`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def address(self) -> str:
        """Return the path, quoted."""
        return repr(escape_text(str(self.path)))

    def read(self) -> WitnessState | None:
        """Return the record in the file, None if the file does not exist."""
        try:
            return parse_state(self.path.read_bytes())
        except FileNotFoundError:
            self._require_folder()
            return None
        except OSError as error:
            raise self._access_error("cannot be read", error) from None
        except ValueError:
            raise damaged_record_error(self) from None

    def compare_and_set(self, expected: WitnessState | None, state: WitnessState) -> bool:
        """Replace the file under an exclusive lock; return False if its record is not `expected`.

        Raises:
            LedgerError: the folder does not exist or cannot be written, or the lock is held for a minute.
        """
        self._require_folder()
        try:
            with self._exclusive_lock():
                if self.read() != expected:
                    return False
                self._replace(format_state(state))
                return True
        except OSError as error:
            raise self._access_error("cannot be written", error) from None

    def _replace(self, content: bytes) -> None:
        """Replace the content of the file; the lock makes sure that no other process uses the temporary name."""
        temporary = self.path.with_name(f".{self.path.name}.new")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(self.path)
        folder = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    @contextmanager
    def _exclusive_lock(self) -> Iterator[None]:
        lock = self.path.with_name(f".{self.path.name}.lock")
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            deadline = time.monotonic() + LOCK_SECONDS
            while not _is_locked(descriptor):
                if time.monotonic() > deadline:
                    problem = "is held by another process for a minute. End that process if it hangs, and run again"
                    raise witness_error(LedgerError, self, problem)
                time.sleep(_PAUSE_SECONDS)
            yield
        finally:
            os.close(descriptor)

    def _require_folder(self) -> None:
        if not self.path.parent.is_dir():
            raise witness_error(
                LedgerError, self, "lies in a folder that does not exist. Mount its disk, or make the folder"
            )

    def _access_error(self, problem: str, error: OSError) -> LedgerError:
        return witness_error(
            LedgerError, self, f"{problem} ({error.strerror or type(error).__name__}). Check its permissions"
        )


def _is_locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
