"""The checkpoints of ledgers in the confidential folder, and the calendar of complete readings.

    <confidential>/ledger_checkpoint.json     derived; two lines for each ledger, the newest first

The first of them has the date of the last complete reading and the ledger's address: a file relative to the
confidential folder, or a server. Several populations may share the folder, each with a ledger. Of two runs at once one
may lose its checkpoint, which costs one complete reading.

A night reads the rows since the checkpoint, and the numbers and hashes of all rows. What it does not read is the text
of the rows below the checkpoint, so every 30 days a run reads the ledger completely, whatever the checkpoint says. The
same run publishes the release folder anew. `agedp ledger verify` reads everything whenever it is called.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Final

from agedp.local_files import atomic_files
from agedp.local_files.internal_files import FileKind, read_content
from agedp_data import clock
from agedp_data.config.paths import ledger_path
from agedp_data.errors import AgedpError, LedgerBehind
from agedp_data.ledger import Ledger
from agedp_data.ledger.checkpoint import LedgerCheckpoint, parse_checkpoint, parse_checkpoint_of_any_version

_DAMAGED: Final = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)
VERIFIED_FOR_DAYS: Final = 30
"""Days after a complete reading of the ledger in which runs go on from its checkpoint."""
_MOST: Final = 8
"""Number of checkpoints that are kept."""


def open_ledger(url: str, path: Path, *, create: bool) -> Ledger:
    """Open the ledger of a run: from the checkpoint of the last run on, or completely once a month.

    Args:
        url: address of the ledger.
        path: the file of checkpoints.
        create: whether a missing ledger is created.

    Raises:
        LedgerError: as `Ledger.open`.
    """
    checkpoint = _read_checkpoint(path, url)
    is_recent = checkpoint is not None and _is_recent(checkpoint, clock.today())
    return Ledger.open(url, create=create, checkpoint=checkpoint if is_recent else None)


def _read_checkpoint(path: Path, url: str) -> LedgerCheckpoint | None:
    """Return the checkpoint of a ledger, None if it is missing, damaged or of another version."""
    content = _contents(path).get(_address(url, path))
    with suppress(*_DAMAGED):
        return None if content is None else parse_checkpoint(content)
    return None


def _read_compared(path: Path, url: str) -> LedgerCheckpoint | None:
    """Return the checkpoint of a ledger with which it is compared, of any version; None if it is missing or damaged."""
    content = _contents(path).get(_address(url, path))
    with suppress(*_DAMAGED):
        return None if content is None else parse_checkpoint_of_any_version(content)
    return None


def _address(url: str, path: Path) -> str:
    """Return the address of a ledger; that of a file stays the same if it is moved with the confidential folder."""
    if url.startswith("postgresql"):
        return url
    with suppress(ValueError):  # on another drive
        return Path(os.path.relpath(ledger_path(url), path.parent)).as_posix()
    return url


def _contents(path: Path) -> dict[str, bytes]:
    """Return the content of each checkpoint in a file by the address of its ledger, none if the file is damaged."""
    content = read_content(path, lambda place: place.read_bytes(), FileKind.DERIVED, advice="it is made again").value
    return dict(_entries((content or b"").splitlines(keepends=True)))


def _entries(lines: list[bytes]) -> Iterator[tuple[str, bytes]]:
    for heading, body in zip(lines[::2], lines[1::2], strict=False):
        with suppress(*_DAMAGED):
            yield str(json.loads(heading)["ledger"]), heading + body


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
        path: the file of checkpoints.
        ledger: the ledger, after all other checks of a run.
        may_begin_anew: whether a ledger that lacks rows of the last checkpoint is a new one, as in rehearsals.

    Raises:
        LedgerBehind: the ledger was replaced by an older copy, or shortened.
    """
    if ledger.is_read_completely and not may_begin_anew:
        _check_contains(ledger, _read_compared(path, ledger.url))
    checkpoint = ledger.advance_checkpoint(verified_on=clock.today())
    if checkpoint is not None:
        address = _address(ledger.url, path)
        earlier = [content for name, content in _contents(path).items() if name != address]
        newest = replace(checkpoint, address=address).format()
        with suppress(AgedpError, OSError):
            atomic_files.write(path, b"".join([newest, *earlier[: _MOST - 1]]))
