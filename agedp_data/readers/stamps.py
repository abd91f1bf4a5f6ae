"""Timestamps as text: the formats that a table may declare, and the instant of one stamp.

Each stamp is read by itself: whether it can be read depends on nothing else in the file. ISO stamps are Arrow's to
parse. All others are read here, by pattern and distinct cell: Arrow's strptime takes 31 February for 3 March.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

ISO = "iso"
"""With or without an offset: a stamp that names its offset is an instant, any other what a clock shows."""
LOCAL_ISO = "iso without offset"
SHORTEST_ISO = len("2013-01-31 00:30")
DAY_FIRST = "%d/%m/%Y %H:%M:%S"
_LOCAL_PATTERNS = ("%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M")
USUAL = (
    ISO,
    *(
        f"{day}{time}"
        for day in ("%Y-%m-%dT", "%Y-%m-%d ", "%d/%m/%Y ", "%d.%m.%Y ", "%d-%m-%Y ", "%m/%d/%Y ", "%Y%m%d")
        for time in ("%H:%M:%S%z", "%H:%M:%S.%f%z", "%H:%M%z", "%H:%M:%S", "%H:%M", "%H%M")
    ),
)
"""Formats that tables come in: what is proposed where another one was asked for, day before month."""
_EPOCH, _SECOND, _MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(seconds=1), timedelta(microseconds=1)
_FARTHEST = timedelta(seconds=9e9)  # nanoseconds in 64 bits end in the year 2262
_ISO_SHAPE = re.compile(  # what Arrow takes, but for stamps that do not say the minute
    rb"(\d{4})-(\d\d)-(\d\d)[ T](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?(Z|([+-])(\d\d)(?::?(\d\d))?)?"
)


class Timestamp(NamedTuple):
    """Nanoseconds since 1970: of an instant, or of what a clock shows as if it were in UTC."""

    ns: int
    is_instant: bool


def parser_format(pattern: str) -> str:
    """Return the format that stands for a strptime pattern here: `LOCAL_ISO` where Arrow reads it, else the pattern.

    >>> parser_format("%Y-%m-%d %H:%M"), parser_format("%d.%m.%Y %H:%M"), parser_format("iso")
    ('iso without offset', '%d.%m.%Y %H:%M', 'iso')
    """
    return LOCAL_ISO if pattern in _LOCAL_PATTERNS else pattern


def is_iso(time_format: str) -> bool:
    """Return whether Arrow parses stamps of this format."""
    return time_format in (ISO, LOCAL_ISO)


def fits(text: str, time_format: str) -> bool:
    """Return whether a stamp is of this format.

    >>> fits("2012-10-12 00:30:00.0000000", ISO), fits("2012-10-12T00:30Z", ISO), fits("31.02.2013", "%d.%m.%Y")
    (True, True, False)
    """
    return parse_stamp(text.strip().encode(), (time_format,)) is not None


def parse_stamp(cell: bytes, time_formats: Sequence[str]) -> Timestamp | None:
    """Return the stamp by the first of the formats that it is of; None if it is of none, or no calendar has it.

    >>> parse_stamp(b"02/01/1970 00:00:00", (LOCAL_ISO, DAY_FIRST)), parse_stamp(b"31/02/2013 00:30:00", (DAY_FIRST,))
    (Timestamp(ns=86400000000000, is_instant=False), None)
    >>> parse_stamp(b"1970-01-02T01:00+01:00", (ISO,)), parse_stamp(b"1970-01-02T01:00+01:00", (LOCAL_ISO,))
    (Timestamp(ns=86400000000000, is_instant=True), None)
    """
    for time_format in time_formats:
        try:
            stamp = _iso(cell, time_format) if is_iso(time_format) else _by_pattern(cell, time_format)
        except ValueError:
            continue
        if stamp is not None:
            return stamp
    return None


def _iso(cell: bytes, time_format: str) -> Timestamp | None:
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
    return Timestamp(since // _SECOND * 10**9 + fraction, parts[8] is not None) if abs(since) < _FARTHEST else None


def _by_pattern(cell: bytes, pattern: str) -> Timestamp | None:
    if pattern == DAY_FIRST and not re.fullmatch(rb"\d{1,2}/\d{1,2}/\d{4} \d{1,2}:\d{2}:\d{2}", cell):
        return None  # strptime alone would take any blanks, and minutes of one digit
    text = cell.decode("utf-8").strip()
    if any(character.isdecimal() and not character.isascii() for character in text):
        return None
    shown = datetime.strptime(text, pattern)
    since = (shown if shown.tzinfo else shown.replace(tzinfo=UTC)) - _EPOCH
    return Timestamp(since // _MICROSECOND * 1000, shown.tzinfo is not None) if abs(since) < _FARTHEST else None
