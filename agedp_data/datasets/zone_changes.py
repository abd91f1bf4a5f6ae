"""The clock changes of a zone over a period: they decide when its days begin, and a contract records them.

The time zone database is an input: a new version may move a future clock change, and the days with it. A contract
records the changes of its period as text, the offset at the beginning first:

    ["2013-01-01T00:00Z +00:00", "2013-03-31T01:00Z +01:00", "2013-10-27T01:00Z +00:00"]
"""

from __future__ import annotations

import re
import zoneinfo
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

FIXED_ZONES: Final = frozenset({"GMT", "UTC"})
"""Zones without clock changes: nothing needs to be recorded."""
MAX_RECORDED_DAYS: Final = 3652
"""Days for which changes are recorded if a period has no end: ten years."""

_LINE = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\dZ) ([+-])(\d\d):(\d\d)")
_DAY, _MINUTE = timedelta(days=1), timedelta(minutes=1)

OffsetChange = tuple[datetime, timedelta]
"""An instant (UTC), and the UTC offset from then on."""


def zone_changes(zone: str, first: date, last: date | None) -> tuple[str, ...]:
    """Return the offset at the beginning of a period of days, and its changes until the end.

    >>> zone_changes("Europe/London", date(2013, 1, 1), date(2013, 6, 1))
    ('2013-01-01T00:00Z +00:00', '2013-03-31T01:00Z +01:00')
    """
    end = last if last is not None else first + MAX_RECORDED_DAYS * _DAY
    return tuple(_format_change(change) for change in _changes(zone, _start(zone, first), _start(zone, end + _DAY)))


def first_moved_day(recorded: Sequence[str], zone: str, since: date, last: date | None) -> date | None:
    """Return the first day, from `since` on, that differs from the recorded changes; None if none does.

    Days after the recorded period are not compared.
    """
    recorded_changes = [_parse_change(line) for line in recorded]
    end = last if last is not None else recorded_changes[0][0].date() + MAX_RECORDED_DAYS * _DAY
    begin, stop = _start(zone, since), _start(zone, end + _DAY)
    if begin >= stop:
        return None
    if not begins_as_recorded(recorded, zone, since):
        return since
    before = [change for change in recorded_changes if change[0] <= begin][-1:] or recorded_changes[:1]
    expected = [(begin, before[0][1]), *(change for change in recorded_changes if begin < change[0] < stop)]
    moved = [instant for instant, _ in set(_changes(zone, begin, stop)) ^ set(expected)]
    return min(moved).astimezone(ZoneInfo(zone)).date() if moved else None


def begins_as_recorded(recorded: Sequence[str], zone: str, day: date) -> bool:
    """Return whether a day begins at the instant that the recorded changes imply."""
    start = _start(zone, day)
    offset = [change for change in map(_parse_change, recorded) if change[0] <= start][-1:]
    return not offset or start + offset[0][1] == datetime.combine(day, time(), UTC)


@lru_cache(maxsize=1)
def tzdata_version() -> str:
    """Return the version of the time zone database, such as 2026b; "" if it has none."""
    for folder in zoneinfo.TZPATH:
        for name, pattern in (("tzdata.zi", r"# version (\S+)"), ("+VERSION", r"(\S+)")):
            try:
                with (Path(folder) / name).open(encoding="ascii", errors="replace") as stream:
                    match = re.match(pattern, stream.readline())
            except OSError:
                continue
            if match:
                return match[1]
    try:
        return metadata.version("tzdata")
    except metadata.PackageNotFoundError:
        return ""


def _changes(zone: str, begin: datetime, stop: datetime) -> Iterator[OffsetChange]:
    """Yield the offset at `begin`, and each later offset until `stop`, to the minute."""
    zone_info = ZoneInfo(zone)
    instant, offset = begin, _offset(zone_info, begin)
    yield instant, offset
    while instant < stop:
        following = min(instant + _DAY, stop)
        if _offset(zone_info, following) != offset:
            low, high = instant, following
            while high - low > _MINUTE:
                middle = low + (high - low) // _MINUTE // 2 * _MINUTE
                low, high = (low, middle) if _offset(zone_info, middle) != offset else (middle, high)
            if high < stop:
                offset = _offset(zone_info, high)
                yield high, offset
            following = high
        instant = following


def _offset(zone: ZoneInfo, instant: datetime) -> timedelta:
    return instant.astimezone(zone).utcoffset() or timedelta()


def _start(zone: str, day: date) -> datetime:
    return datetime.combine(day, time(), ZoneInfo(zone)).astimezone(UTC)


def _format_change(change: OffsetChange) -> str:
    instant, offset = change
    minutes = abs(offset) // _MINUTE
    sign = "-" if offset < timedelta() else "+"
    return f"{instant:%Y-%m-%dT%H:%MZ} {sign}{minutes // 60:02d}:{minutes % 60:02d}"


def _parse_change(line: str) -> OffsetChange:
    match = _LINE.fullmatch(line)
    if match is None:
        raise ValueError(f"no clock change: {ascii(line)[:60]}")
    offset = timedelta(hours=int(match[3]), minutes=int(match[4]))
    return datetime.strptime(match[1], "%Y-%m-%dT%H:%MZ").replace(tzinfo=UTC), offset if match[2] == "+" else -offset
