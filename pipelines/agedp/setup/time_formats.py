"""The time formats that the first timestamps of a table permit.

A wrong format puts readings on wrong days without any error, so a format is decided by evidence only:

* A candidate reads at least 95 % of the distinct timestamps: a few broken ones do no harm.
* A second format that reads some timestamps remains a candidate, unless it fails on three distinct days or on most
  days. One typing error, such as 13/01/2013 among days that are written month first, excludes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from typing import Final

from agedp_data.datasets.timestamps import COMMON_FORMATS, ISO, LOCAL_ISO, is_iso, matches_format, parser_format

MISSING: Final = ("", "null", "na", "n/a", "nan", "none", "-", "missing")
NEARLY_ALL: Final = 0.95

_SHORT_DAYS: Final = ("%d/%m/%y ", "%m/%d/%y ", "%y/%m/%d ", "%d-%m-%y ", "%m-%d-%y ", "%y-%m-%d ", "%d.%m.%y ")
_LONG_DAYS: Final = ("%m-%d-%Y ", "%Y/%m/%d ", "%Y.%m.%d ")
FORMATS: Final = (
    *COMMON_FORMATS,
    *(f"{day}{time}" for day in (*_SHORT_DAYS, *_LONG_DAYS) for time in ("%H:%M:%S", "%H:%M")),
    "%m/%d/%Y %I:%M:%S %p",
    "%m/%d/%Y %I:%M %p",
    "%d/%m/%Y %I:%M:%S %p",
    "%d/%m/%Y %I:%M %p",
)
"""Time formats that are recognised: ISO, day first, month first, and two-digit years at either end."""

_SAMPLED: Final = 8
_SOME: Final = 0.05
_MANY_DAYS: Final = 3


def candidate_formats(cells: Sequence[str]) -> tuple[str, ...]:
    """Return the time formats that these timestamps permit, one for those that are parsed alike; none for other text.

    >>> candidate_formats(["20/01/2013 00:30", "21/01/2013 00:30"])
    ('%d/%m/%Y %H:%M',)
    >>> candidate_formats(["13/01/05 00:30"])
    ('%d/%m/%y %H:%M', '%y/%m/%d %H:%M')
    """
    distinct = sorted({cell for cell in cells if cell.lower() not in MISSING})
    sample = distinct[:: max(1, len(distinct) // _SAMPLED)]
    patterns = {_parsed_as(pattern): pattern for pattern in reversed(FORMATS)}
    patterns = {
        kind: pattern for kind, pattern in patterns.items() if any(matches_format(cell, kind) for cell in sample)
    }
    cells_read = {
        pattern: {cell for cell in distinct if matches_format(cell, kind)} for kind, pattern in patterns.items()
    }
    best = max(cells_read, key=lambda pattern: len(cells_read[pattern]), default="")
    if not cells_read or len(cells_read[best]) < max(1, NEARLY_ALL * len(distinct)):
        return ()
    return tuple(pattern for pattern in FORMATS if pattern in cells_read and _is_candidate(pattern, best, cells_read))


def _is_candidate(pattern: str, best: str, cells_read: dict[str, set[str]]) -> bool:
    """Return whether a format remains possible in comparison with the one that reads most timestamps."""
    if len(cells_read[pattern]) < _SOME * len(cells_read[best]):
        return False
    failed = _days(cells_read[best] - cells_read[pattern], best)
    return len(failed) < _MANY_DAYS and 2 * len(failed) <= len(_days(cells_read[best], best))


def _days(cells: Iterable[str], pattern: str) -> set[date]:
    timestamps = (clock_time(cell, _parsed_as(pattern)) for cell in cells)
    return {timestamp.date() for timestamp in timestamps if timestamp is not None}


def _parsed_as(pattern: str) -> str:
    """Return the format to parse with; "iso" is parsed without an offset, because formats with %z cover offsets."""
    return LOCAL_ISO if pattern == ISO else parser_format(pattern)


def clock_time(cell: str, time_format: str) -> datetime | None:
    """Return the local time of a timestamp without its offset; None if the format does not read it.

    `time_format` is one that `parser_format` returned.

    >>> clock_time("03/02/2013 00:30", "%d/%m/%Y %H:%M")
    datetime.datetime(2013, 2, 3, 0, 30)
    """
    try:
        if is_iso(time_format):
            return datetime.fromisoformat(re.sub(r"\.\d+$", "", cell)).replace(tzinfo=None)
        return datetime.strptime(cell, time_format).replace(tzinfo=None)
    except ValueError:
        return None
