"""Stamps as text: which format a file's are in, and the instant that one of them names.

ISO stamps are Arrow's to parse. All others are read here, by pattern and distinct cell: Arrow's strptime takes
31 February for 3 March.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from agedp_data.errors import InputError

ISO = "iso"
SHORTEST_ISO = len("2013-01-31 00:30")
DAY_FIRST = "%d/%m/%Y %H:%M:%S"
_ISO_PATTERNS = (ISO, "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M")
USUAL = (
    ISO,
    *(
        f"{day}{time}"
        for day in ("%Y-%m-%dT", "%Y-%m-%d ", "%d/%m/%Y ", "%d.%m.%Y ", "%d-%m-%Y ", "%m/%d/%Y ", "%Y%m%d")
        for time in ("%H:%M:%S%z", "%H:%M:%S.%f%z", "%H:%M%z", "%H:%M:%S", "%H:%M", "%H%M")
    ),
)
"""Formats that tables come in: what is proposed where another one was asked for, day before month."""
_EPOCH, _MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)
_FARTHEST = timedelta(seconds=9e9)  # nanoseconds in 64 bits end in the year 2262
_DAY, _MONTH = r"(0?[1-9]|[12]\d|3[01])", r"(0?[1-9]|1[0-2])"
_KNOWN = (r"\s*\d{4}-\d{1,2}-\d{1,2}([ T].*)?", rf"\s*{_DAY}/{_MONTH}/\d{{4}}.*", rf"\s*{_MONTH}/{_DAY}/\d{{4}}.*")
_DIRECTIVES = {"d": _DAY, "m": _MONTH, "Y": r"\d{4}", "y": r"\d{2}"}


def parser_format(pattern: str) -> str:
    """Return what stands for a strptime pattern here: ISO for what Arrow reads as such, else the pattern itself.

    >>> parser_format("%Y-%m-%d %H:%M"), parser_format("%d.%m.%Y %H:%M")
    ('iso', '%d.%m.%Y %H:%M')
    """
    return ISO if pattern in _ISO_PATTERNS else pattern


def fits(text: str, time_format: str) -> bool:
    """Return whether a stamp is of this format; an ISO one has any number of digits in its fraction, and no zone.

    >>> fits("2012-10-12 00:30:00.0000000", ISO), fits("2012-10-12T00:30Z", ISO), fits("31.02.2013", "%d.%m.%Y")
    (True, False, False)
    """
    if time_format != ISO:
        return instant_ns(text.encode(), time_format) is not None
    try:
        return datetime.fromisoformat(re.sub(r"\.\d+$", "", text.strip())).tzinfo is None
    except ValueError:
        return False


def instant_ns(cell: bytes, time_format: str) -> int | None:
    """Return the nanoseconds since 1970 of what a clock shows, or of the instant if the stamp names its offset.

    None if the stamp is of another format, or no calendar has it.

    >>> instant_ns(b"02/01/1970 00:00:00", DAY_FIRST) == 86_400 * 10**9, instant_ns(b"31/02/2013 00:30:00", DAY_FIRST)
    (True, None)
    """
    if time_format == DAY_FIRST and not re.fullmatch(rb"\d{1,2}/\d{1,2}/\d{4} \d{1,2}:\d{2}:\d{2}", cell):
        return None  # strptime alone would take any blanks, and minutes of one digit
    try:
        found = datetime.strptime(cell.decode().strip(), time_format)
    except ValueError:
        return None
    since = (found if found.tzinfo else found.replace(tzinfo=UTC)) - _EPOCH
    return since // _MICROSECOND * 1000 if abs(since) < _FARTHEST else None


def refuse_other_formats(cells: Sequence[bytes], time_format: str) -> None:
    """Raise InputError if one of these stamps, which could not be read, is of another format than the file's."""
    own = _written_as(time_format)
    for cell in cells:
        text = cell.decode("latin-1")
        others = (pattern for pattern in _KNOWN if pattern != own)
        if not re.fullmatch(own, text) and any(re.fullmatch(pattern, text) for pattern in others):
            raise InputError("no single date format fits all rows of the file; dates must be ISO or day first")


def _written_as(time_format: str) -> str:
    """Return what the dates of a format look like: its text up to the time of day, then anything."""
    if time_format == ISO:
        return _KNOWN[0]
    pieces = re.split(r"%([A-Za-z%])", time_format)
    shape = r"\s*" + re.escape(pieces[0])
    for directive, literal in zip(pieces[1::2], pieces[2::2], strict=True):
        if directive in "HIMSfpz" and "%d" in time_format.partition(f"%{directive}")[0]:
            return shape.removesuffix(r"\ ") + ".*"
        shape += _DIRECTIVES.get(directive, r"\w+") + re.escape(literal)
    return shape
