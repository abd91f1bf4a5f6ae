"""The clock changes of a zone over a period: what decides where its days begin, named so that a change is noticed.

The time zone database is an input: another version may move a change that is still to come, and with it the days. A
contract records the changes of its period as text, the offset at its beginning first:

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

ALWAYS_THE_SAME: Final = frozenset({"GMT", "UTC"})
"""Zones that no database changes: nothing of them needs to be recorded."""
FURTHEST_DAYS: Final = 3652
"""Changes are recorded for so many days of a period without an end: ten years."""

_LINE = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\dZ) ([+-])(\d\d):(\d\d)")
_DAY, _MINUTE = timedelta(days=1), timedelta(minutes=1)

Change = tuple[datetime, timedelta]
"""From an instant (UTC) on, this offset from UTC."""


def zone_changes(zone: str, first: date, last: date | None) -> tuple[str, ...]:
    """Return the offset at the beginning of a period of days, and its changes until the end.

    >>> zone_changes("Europe/London", date(2013, 1, 1), date(2013, 6, 1))
    ('2013-01-01T00:00Z +00:00', '2013-03-31T01:00Z +01:00')
    """
    end = last if last is not None else first + FURTHEST_DAYS * _DAY
    return tuple(_text(change) for change in _changes(zone, _start(zone, first), _start(zone, end + _DAY)))


def first_moved_day(recorded: Sequence[str], zone: str, since: date, last: date | None) -> date | None:
    """Return the first day, from `since` on, that lies otherwise than by the recorded changes; None if none does.

    Beyond what is recorded nothing is compared.
    """
    kept = [_change(line) for line in recorded]
    end = last if last is not None else kept[0][0].date() + FURTHEST_DAYS * _DAY
    begin, stop = _start(zone, since), _start(zone, end + _DAY)
    if begin >= stop:
        return None
    if not begins_as_recorded(recorded, zone, since):
        return since
    before = [change for change in kept if change[0] <= begin][-1:] or kept[:1]
    then = [(begin, before[0][1]), *(change for change in kept if begin < change[0] < stop)]
    moved = [instant for instant, _ in set(_changes(zone, begin, stop)) ^ set(then)]
    return min(moved).astimezone(ZoneInfo(zone)).date() if moved else None


def begins_as_recorded(recorded: Sequence[str], zone: str, day: date) -> bool:
    """Tell whether a day begins at the instant at which it begins by the recorded changes."""
    start = _start(zone, day)
    offset = [change for change in map(_change, recorded) if change[0] <= start][-1:]
    return not offset or start + offset[0][1] == datetime.combine(day, time(), UTC)


@lru_cache(maxsize=1)
def tzdata_version() -> str:
    """Return the version of the time zone database that decides where days begin, such as 2026b; "" if it says none."""
    for folder in zoneinfo.TZPATH:
        for name, pattern in (("tzdata.zi", r"# version (\S+)"), ("+VERSION", r"(\S+)")):
            try:
                with (Path(folder) / name).open(encoding="ascii", errors="replace") as stream:
                    found = re.match(pattern, stream.readline())
            except OSError:
                continue
            if found:
                return found[1]
    try:
        return metadata.version("tzdata")
    except metadata.PackageNotFoundError:
        return ""


def _changes(zone: str, begin: datetime, stop: datetime) -> Iterator[Change]:
    """Yield the offset at an instant, and each later one until another instant, to the minute."""
    of = ZoneInfo(zone)
    instant, offset = begin, _offset(of, begin)
    yield instant, offset
    while instant < stop:
        following = min(instant + _DAY, stop)
        if _offset(of, following) != offset:
            low, high = instant, following
            while high - low > _MINUTE:
                middle = low + (high - low) // _MINUTE // 2 * _MINUTE
                low, high = (low, middle) if _offset(of, middle) != offset else (middle, high)
            if high < stop:
                offset = _offset(of, high)
                yield high, offset
            following = high
        instant = following


def _offset(zone: ZoneInfo, instant: datetime) -> timedelta:
    return instant.astimezone(zone).utcoffset() or timedelta()


def _start(zone: str, day: date) -> datetime:
    return datetime.combine(day, time(), ZoneInfo(zone)).astimezone(UTC)


def _text(change: Change) -> str:
    instant, offset = change
    minutes = abs(offset) // _MINUTE
    sign = "-" if offset < timedelta() else "+"
    return f"{instant:%Y-%m-%dT%H:%MZ} {sign}{minutes // 60:02d}:{minutes % 60:02d}"


def _change(line: str) -> Change:
    found = _LINE.fullmatch(line)
    if found is None:
        raise ValueError(f"no clock change: {ascii(line)[:60]}")
    offset = timedelta(hours=int(found[3]), minutes=int(found[4]))
    return datetime.strptime(found[1], "%Y-%m-%dT%H:%MZ").replace(tzinfo=UTC), offset if found[2] == "+" else -offset
