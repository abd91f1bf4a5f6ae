"""Before the first draw: can what is drawn be stored and published? What nobody can read is spent for nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agedp_data.errors import AgedpError, InputError, LedgerError
from agedp_data.ledger.storage import database_at
from pipelines import folders

_LEAST_BYTES = 2**16
"""Of room: a short release, or some days of a ledger; nobody can promise that a disk does not fill up meanwhile."""


def require_room(release: Path, ledger: str) -> None:
    """Check that the release folder and the ledger's can be written, by writing a temporary file into each.

    Raises:
        InputError: the release folder cannot.
        LedgerError: the folder of the ledger at this address cannot; what a server has room for, it says itself.
    """
    with _refused("[output] release: the folder", InputError, release):
        folders.try_writing(release, _LEAST_BYTES + _largest(release))  # each file is written beside the old one
    place = database_at(ledger).folder
    if place is not None:
        with _refused("[output] ledger: its folder", LedgerError, place):
            folders.try_writing(place, _LEAST_BYTES)


def _largest(folder: Path) -> int:
    try:
        with os.scandir(folder) as entries:
            return max((entry.stat().st_size for entry in entries), default=0)
    except FileNotFoundError:
        return 0


@contextmanager
def _refused(what: str, kind: type[AgedpError], folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        why = f"cannot be written ({error.strerror}); nothing was drawn; check its permissions and the room on its disk"
        raise kind(f"{what} {why}", private=f"{what} {str(folder)!r} {why}") from None
