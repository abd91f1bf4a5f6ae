"""The meters of households, `meter,household,from,to`: whose readings count for which household on which day.

Both days are included; an empty `to` means that it has not ended. A meter may belong to several households on different
days (it was moved, or its home was sold), and a household has any number of meters, which are added up. The file is
confidential like the roster, so messages name a line, never a meter.

Example: the rows `M1,A,2013-01-01,` and `M2,A,2013-01-01,` add up two meters of household A.
"""

from __future__ import annotations

import csv
import hashlib
import io
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np

from agedp_data.datasets import filesystem
from agedp_data.errors import InputError
from agedp_data.messages import suggest_file
from agedp_data.roster import Roster
from agedp_data.roster_csv import days_since_1970
from agedp_data.roster_rows import NO_LAST_DAY

COLUMNS: Final = ["meter", "household", "from", "to"]
HOUSEHOLD: Final = "household"
"""Group column of the meters, as those of a roster."""
_Row = tuple[str, int, int, str, int]
"""Meter, first day, last day, household, line."""


def read_meters(location: str) -> Roster:
    """Return the meters of a file at a path or a URL, as a roster of meters whose groups are households.

    Raises:
        InputError: the file or one of its lines cannot be parsed, or lines name one meter twice on the same day.
    """
    content = _read_bytes(location)
    try:
        lines = [*csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""), strict=True)]
    except (UnicodeDecodeError, csv.Error):
        raise _error(location, "is not CSV text in UTF-8") from None
    if not lines or [name.strip() for name in lines[0]] != COLUMNS:
        raise _error(location, f"must begin with {','.join(COLUMNS)}")
    numbered = [(number, [cell.strip(" \t") for cell in cells]) for number, cells in enumerate(lines[1:], 2)]
    rows = sorted(_parse_row(location, number, cells) for number, cells in numbered if any(cells))
    if not rows:
        raise _error(location, "has no meters")
    for (meter, _, end, _, line), (next_meter, begin, _, _, next_line) in pairwise(rows):
        if meter == next_meter and begin <= end:
            raise _error(location, f"lines {line} and {next_line} name one meter twice on the same day")
    meters, code = np.unique(np.array([row[0] for row in rows], object), return_inverse=True)
    first, last = (np.array([row[i] for row in rows], np.int64) for i in (1, 2))
    roster = Roster(meters.tolist(), code, first, last, {HOUSEHOLD: [row[3] for row in rows]})
    roster.file_digest = hashlib.sha256(content).hexdigest()
    return roster


def _parse_row(location: str, line: int, cells: list[str]) -> _Row:
    if len(cells) != len(COLUMNS):
        raise _error(location, f"line {line}: {len(cells)} fields where the header has {len(COLUMNS)}")
    meter, household, begin, end = cells
    if not (meter and household):
        raise _error(location, f"line {line}: no meter, or no household")
    try:
        first, last = days_since_1970(begin), days_since_1970(end) if end else NO_LAST_DAY
    except ValueError:
        raise _error(location, f"line {line}: `from` and `to` must be dates like 2013-01-31") from None
    if last < first:
        raise _error(location, f"line {line}: `to` lies before `from`")
    return meter, first, last, household, line


def _read_bytes(location: str) -> bytes:
    if filesystem.is_url(location):
        return filesystem.read_bytes(location, "[population] meters")
    try:
        return Path(location).read_bytes()
    except OSError as error:
        problem = f"cannot be read ({error.strerror})"
        raise _error(location, problem, "" if Path(location).exists() else suggest_file(Path(location))) from None


def _error(location: str, problem: str, suggestion: str = "") -> InputError:
    place = filesystem.format_location(location)
    return InputError(f"[population] meters: {problem}", private=f"{place}: {problem}{suggestion}")
