"""The checkpoint of a run's ledger in the confidential folder, and the calendar of complete readings.

    <confidential>/ledger_checkpoint.json     derived; the first line has the date of the last complete reading

A night reads the rows since the checkpoint, and the numbers and hashes of all rows. What it does not read is the text
of the rows below the checkpoint, so every 30 days a run reads the ledger completely, whatever the checkpoint says. The
same run publishes the release folder anew. `agedp ledger verify` reads everything whenever it is called.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Final

from agedp.local_files import atomic_files
from agedp.local_files.internal_files import FileKind, read_content
from agedp_data import clock
from agedp_data.errors import AgedpError, LedgerBehind
from agedp_data.ledger import Ledger
from agedp_data.ledger.checkpoint import LedgerCheckpoint, parse_checkpoint

VERIFIED_FOR_DAYS: Final = 30
"""Days after a complete reading of the ledger in which runs go on from its checkpoint."""


def open_ledger(url: str, path: Path, *, create: bool) -> Ledger:
    """Open the ledger of a run: from the checkpoint of the last run on, or completely once a month.

    Args:
        url: address of the ledger.
        path: the checkpoint.
        create: whether a missing ledger is created.

    Raises:
        LedgerError: as `Ledger.open`.
    """
    checkpoint = _read_checkpoint(path)
    is_recent = checkpoint is not None and _is_recent(checkpoint, clock.today())
    return Ledger.open(url, create=create, checkpoint=checkpoint if is_recent else None)


def _read_checkpoint(path: Path) -> LedgerCheckpoint | None:
    """Return the checkpoint of the last run, None if it is missing, damaged or of another version."""
    return read_content(
        path, lambda place: parse_checkpoint(place.read_bytes()), FileKind.DERIVED, advice="it is made again"
    ).value


def _is_recent(checkpoint: LedgerCheckpoint, today: date) -> bool:
    """Return whether a run may go on from a checkpoint, because the last complete reading is recent enough."""
    return 0 <= (today - checkpoint.verified_on).days < VERIFIED_FOR_DAYS


def _check_contains(ledger: Ledger, checkpoint: LedgerCheckpoint | None) -> None:
    """Check that a ledger does not end before what an earlier run has read in it; another ledger is not compared.

    Ledgers that begin with the same row are different ones as soon as they promise or release something else.
    """
    if checkpoint is not None and checkpoint.ends_after(ledger.content_head()):
        raise LedgerBehind(
            "the ledger lacks rows that an earlier run has read: it was replaced by an older copy, or shortened. Put "
            "back the newest copy, or restore it from the newest release folder (`agedp ledger recover`)"
        )


def update_checkpoint(path: Path, ledger: Ledger, *, may_begin_anew: bool) -> None:
    """Write the checkpoint of a ledger if rows were added since the last; without one the next run reads all rows.

    Args:
        path: the checkpoint.
        ledger: the ledger, after all other checks of a run.
        may_begin_anew: whether a ledger that lacks rows of the last checkpoint is a new one, as in rehearsals.

    Raises:
        LedgerBehind: the ledger was replaced by an older copy, or shortened.
    """
    if ledger.is_read_completely and not may_begin_anew:
        _check_contains(ledger, _read_checkpoint(path))
    checkpoint = ledger.advance_checkpoint(verified_on=clock.today())
    if checkpoint is not None:
        with suppress(AgedpError, OSError):
            atomic_files.write(path, checkpoint.format())
