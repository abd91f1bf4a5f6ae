"""Timestamps as text: the formats that a table may declare, and the parser of one timestamp.

Each timestamp is parsed by itself: the result depends on nothing else in the file. Arrow parses ISO timestamps. All
others are parsed here, by pattern and distinct cell, because Arrow's strptime parses 31 February as 3 March.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

ISO = "iso"
"""With or without a UTC offset: a timestamp with an offset is an instant, any other a wall-clock time."""
LOCAL_ISO = "iso without offset"
SHORTEST_ISO = len("2013-01-31 00:30")
DAY_FIRST = "%d/%m/%Y %H:%M:%S"
_LOCAL_PATTERNS = ("%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M")
COMMON_FORMATS = (
    ISO,
    *(
        f"{day}{time}"
        for day in ("%Y-%m-%dT", "%Y-%m-%d ", "%d/%m/%Y ", "%d.%m.%Y ", "%d-%m-%Y ", "%m/%d/%Y ", "%Y%m%d")
        for time in ("%H:%M:%S%z", "%H:%M:%S.%f%z", "%H:%M%z", "%H:%M:%S", "%H:%M", "%H%M")
    ),
)
"""Formats that a message proposes if the declared one does not fit; day before month."""
_EPOCH, _SECOND, _MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(seconds=1), timedelta(microseconds=1)
_MAX_OFFSET = timedelta(seconds=9e9)  # nanoseconds in 64 bits end in the year 2262
_ISO_SHAPE = re.compile(  # as Arrow, except for timestamps without minutes
    rb"(\d{4})-(\d\d)-(\d\d)[ T](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?(Z|([+-])(\d\d)(?::?(\d\d))?)?"
)


class Timestamp(NamedTuple):
    """Nanoseconds since 1970 of an instant, or of a wall-clock time as if it were in UTC."""

    ns: int
    is_instant: bool


def parser_format(pattern: str) -> str:
    """Return the internal format of a strptime pattern: `LOCAL_ISO` if Arrow parses it, else the pattern.

    >>> parser_format("%Y-%m-%d %H:%M"), parser_format("%d.%m.%Y %H:%M"), parser_format("iso")
    ('iso without offset', '%d.%m.%Y %H:%M', 'iso')
    """
    return LOCAL_ISO if pattern in _LOCAL_PATTERNS else pattern


def is_iso(time_format: str) -> bool:
    """Return whether Arrow parses timestamps of this format."""
    return time_format in (ISO, LOCAL_ISO)


def matches_format(text: str, time_format: str) -> bool:
    """Return whether a timestamp has this format.

    >>> matches_format("2012-10-12 00:30:00.0000000", ISO), matches_format("2012-10-12T00:30Z", ISO)
    (True, True)
    >>> matches_format("31.02.2013", "%d.%m.%Y")
    False
    """
    return parse_timestamp(text.strip().encode(), (time_format,)) is not None


def parse_timestamp(cell: bytes, time_formats: Sequence[str]) -> Timestamp | None:
    """Return the timestamp in the first format that fits; None if no format fits or the date does not exist.

    >>> parse_timestamp(b"02/01/1970 00:00:00", (LOCAL_ISO, DAY_FIRST))
    Timestamp(ns=86400000000000, is_instant=False)
    >>> parse_timestamp(b"31/02/2013 00:30:00", (DAY_FIRST,)) is None
    True
    >>> parse_timestamp(b"1970-01-02T01:00+01:00", (ISO,))
    Timestamp(ns=86400000000000, is_instant=True)
    >>> parse_timestamp(b"1970-01-02T01:00+01:00", (LOCAL_ISO,)) is None
    True
    """
    for time_format in time_formats:
        try:
            timestamp = _parse_iso(cell, time_format) if is_iso(time_format) else _parse_pattern(cell, time_format)
        except ValueError:
            continue
        if timestamp is not None:
            return timestamp
    return None


def _parse_iso(cell: bytes, time_format: str) -> Timestamp | None:
    parts = _ISO_SHAPE.fullmatch(cell)
    if parts is None or (parts[8] and time_format == LOCAL_ISO):
        return None
    year, month, day, hour, minute, second = (int(part or 0) for part in parts.groups()[:6])
    since = datetime(year, month, day, hour, minute, second, tzinfo=UTC) - _EPOCH
    hours, minutes = int(parts[10] or 0), int(parts[11] or 0)
    if hours > 23 or minutes > 59:
        return None
    since -= timedelta(hours=hours, minutes=minutes) * (-1 if parts[9] == b"-" else 1)
    fraction = int((parts[7] or b"").ljust(9, b"0"))
    return Timestamp(since // _SECOND * 10**9 + fraction, parts[8] is not None) if abs(since) < _MAX_OFFSET else None


def _parse_pattern(cell: bytes, pattern: str) -> Timestamp | None:
    if pattern == DAY_FIRST and not re.fullmatch(rb"\d{1,2}/\d{1,2}/\d{4} \d{1,2}:\d{2}:\d{2}", cell):
        return None  # strptime alone would accept any blanks, and minutes of one digit
    text = cell.decode("utf-8").strip()
    if any(character.isdecimal() and not character.isascii() for character in text):
        return None
    parsed = datetime.strptime(text, pattern)
    since = (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)) - _EPOCH
    return Timestamp(since // _MICROSECOND * 1000, parsed.tzinfo is not None) if abs(since) < _MAX_OFFSET else None
