"""The record of removed months: the first month of which a store still has readings, with a checksum."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Final

from agedp.local_files import atomic_files
from agedp.local_files.internal_files import FileKind, read_content

_MONTH = re.compile(r"[0-9]{4}-[0-9]{2}")
_RECORD: Final = "forgotten_before"


def read_retained_from(folder: Path) -> str:
    """Return the first retained month of the store in this folder; "" if no month was removed.

    Raises:
        DamagedFile: the record is damaged; removed readings would count as missing ones.
    """
    advice = "put back a copy of it, or name another confidential folder"
    return read_content(folder / _RECORD, _parse_month, FileKind.SOURCE, advice=advice).value or ""


def write_retained_from(folder: Path, month: str) -> None:
    """Write the first retained month.

    Call it before earlier readings are removed: after an interruption they count as removed, never as missing.
    """
    atomic_files.write(folder / _RECORD, f"{month} {_month_checksum(month)}".encode())


def _parse_month(path: Path) -> str:
    """Return the month in the file; a file without a checksum was written by an earlier version."""
    month, space, check = path.read_text(encoding="ascii").partition(" ")
    if not _MONTH.fullmatch(month) or (space and check != _month_checksum(month)):
        raise ValueError("it names no month")
    return month


def _month_checksum(month: str) -> str:
    return hashlib.sha256(month.encode()).hexdigest()[:8]
