"""Disk space before the first draw: a release that cannot be stored and published would spend its budget in vain."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agedp.local_files import atomic_files
from agedp_data.errors import AgedpError, InputError, LedgerError
from agedp_data.ledger.backends.connect import database_at

_MIN_BYTES = 2**16
"""Space for a short release, or some days of a ledger; the disk may still fill up meanwhile."""


def check_disk_space(release: Path, ledger: str) -> None:
    """Check that the release folder and the ledger's folder can be written, by a temporary file in each.

    Raises:
        InputError: the release folder cannot be written.
        LedgerError: the folder of the ledger at this address cannot be written. A ledger on a server is not checked.
    """
    with _write_errors("[output] release: the folder", InputError, release):
        atomic_files.check_writable(
            release, _MIN_BYTES + _largest_file(release)
        )  # a new file is written before the old one is replaced
    ledger_folder = database_at(ledger).folder
    if ledger_folder is not None:
        with _write_errors("[output] ledger: its folder", LedgerError, ledger_folder):
            atomic_files.check_writable(ledger_folder, _MIN_BYTES)


def _largest_file(folder: Path) -> int:
    try:
        with os.scandir(folder) as entries:
            return max((entry.stat().st_size for entry in entries), default=0)
    except FileNotFoundError:
        return 0


@contextmanager
def _write_errors(label: str, kind: type[AgedpError], folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        advice = "nothing was drawn; check its permissions and the free space on its disk"
        problem = f"cannot be written ({error.strerror}); {advice}"
        raise kind(f"{label} {problem}", private=f"{label} {str(folder)!r} {problem}") from None
