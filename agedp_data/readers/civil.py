"""Civil days of a zone in half-hour slots: which slots a day lacks, which hold two half-hours, and what a clock says.

A zone's own name is all that is asked: the dates of its changes come from the time zone database.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo

_HALF_HOUR = timedelta(minutes=30)
_EPOCH = datetime(1970, 1, 1)
_QUARTER = timedelta(minutes=15)


class ZoneDays:
    """The days of one zone; slot s is the wall-clock half-hour that starts s x 30 minutes after midnight.

    >>> sydney = ZoneDays("Australia/Sydney")
    >>> sydney.absent_slots(date(2012, 10, 7)), sydney.repeated_slots(date(2013, 4, 7))
    ((4, 5), (4, 5))
    >>> sydney.day_end(date(2012, 7, 1)).isoformat()
    '2012-07-01T14:00:00+00:00'
    """

    def __init__(self, zone: str) -> None:
        self.zone = ZoneInfo(zone)
        self._changes = lru_cache(maxsize=4096)(self._find)

    def absent_slots(self, day: date) -> tuple[int, ...]:
        """Return the slots that the day does not have."""
        return self._changes(day)[0]

    def repeated_slots(self, day: date) -> tuple[int, ...]:
        """Return the slots that the day has twice."""
        return self._changes(day)[1]

    def day_end(self, day: date) -> datetime:
        """Return the instant (UTC) at which the day ends."""
        return datetime.combine(day + timedelta(days=1), time(), self.zone).astimezone(UTC)

    def _find(self, day: date) -> tuple[tuple[int, ...], tuple[int, ...]]:
        start = datetime.combine(day, time(), self.zone).astimezone(UTC)
        half_hours = int((self.day_end(day) - start) / _HALF_HOUR)
        if half_hours == 48:
            return (), ()
        walls = [(start + i * _HALF_HOUR).astimezone(self.zone) for i in range(half_hours)]
        slots = [wall.hour * 2 + wall.minute // 30 for wall in walls]
        absent = tuple(slot for slot in range(48) if slot not in slots)
        return absent, tuple(slot for slot in range(48) if slots.count(slot) > 1)


class ClockPass(IntEnum):
    """Which half-hour of a day's slot: the only one, one of two, or one of two that the clock does not tell apart."""

    ONLY = 0
    FIRST = 1
    SECOND = 2
    EITHER = 3


class SlotPosition(NamedTuple):
    """Where a half-hour lies: day since 1970, slot, pass; `minutes` past the slot's start, 0 if it is a slot at all."""

    day: int
    slot: int
    passed: ClockPass
    minutes: int = 0


class WallClock:
    """Half-hours by what a clock of one zone shows at their start, as the days of another zone count them.

    An hour that the clock skips has no place. In one that it shows twice the two passes are told apart by nothing:
    where both fall into one slot of the day (the zones go back together) either may be meant, elsewhere neither is.

    >>> clock = WallClock("UTC", ZoneDays("Europe/London"))
    >>> clock.place(datetime(2013, 10, 27, 1, 30))
    SlotPosition(day=16005, slot=3, passed=<ClockPass.SECOND: 2>, minutes=0)
    >>> london = WallClock("Europe/London", ZoneDays("Europe/London"))
    >>> london.place(datetime(2013, 10, 27, 1, 30)).passed.name, london.place(datetime(2013, 3, 31, 1, 30))
    ('EITHER', None)
    """

    def __init__(self, zone: str, days: ZoneDays) -> None:
        self._zone, self._days = ZoneInfo(zone), days
        self.at_quarter = lru_cache(maxsize=2**17)(self._at_quarter)

    def _at_quarter(self, number: int) -> SlotPosition | None:
        return self.place(_EPOCH + number * _QUARTER)

    def place(self, shown: datetime) -> SlotPosition | None:
        """Return the place of the half-hour at whose start the clock shows this (without a zone); None if unknown."""
        first, second = (shown.replace(tzinfo=self._zone, fold=fold) for fold in (0, 1))
        place = self._place(first)
        if first.utcoffset() == second.utcoffset():
            return place
        if _seconds(first) < _seconds(second):  # shown twice
            other = self._place(second)
            return place._replace(passed=ClockPass.EITHER) if place[:2] == other[:2] else None
        return None

    def _place(self, start: datetime) -> SlotPosition:
        wall = start.astimezone(UTC).astimezone(self._days.zone)
        slot, minutes = divmod(wall.hour * 60 + wall.minute, 30)
        passed = ClockPass.ONLY
        if slot in self._days.repeated_slots(wall.date()):
            passed = ClockPass.SECOND if wall.fold else ClockPass.FIRST
        return SlotPosition((wall.date() - _EPOCH.date()).days, slot, passed, minutes)


def _seconds(start: datetime) -> float:
    return start.astimezone(UTC).timestamp()
