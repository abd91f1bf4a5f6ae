"""Civil days of a zone in half-hour slots: absent slots, repeated slots, and the slot of a wall-clock time.

The only input is the name of the zone; the dates of its clock changes come from the time zone database.
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
        self._changes = lru_cache(maxsize=4096)(self._find_changes)

    def absent_slots(self, day: date) -> tuple[int, ...]:
        """Return the slots that do not exist on the day (the clock goes forward)."""
        return self._changes(day)[0]

    def repeated_slots(self, day: date) -> tuple[int, ...]:
        """Return the slots that occur twice on the day (the clock goes back)."""
        return self._changes(day)[1]

    def day_end(self, day: date) -> datetime:
        """Return the instant (UTC) at which the day ends."""
        return datetime.combine(day + timedelta(days=1), time(), self.zone).astimezone(UTC)

    def _find_changes(self, day: date) -> tuple[tuple[int, ...], tuple[int, ...]]:
        start = datetime.combine(day, time(), self.zone).astimezone(UTC)
        half_hours = int((self.day_end(day) - start) / _HALF_HOUR)
        if half_hours == 48:
            return (), ()
        walls = [(start + i * _HALF_HOUR).astimezone(self.zone) for i in range(half_hours)]
        slots = [wall.hour * 2 + wall.minute // 30 for wall in walls]
        absent = tuple(slot for slot in range(48) if slot not in slots)
        return absent, tuple(slot for slot in range(48) if slots.count(slot) > 1)


class ClockPass(IntEnum):
    """Which pass of a slot: the only one, the first or second of two, or either if the clock shows both alike."""

    ONLY = 0
    FIRST = 1
    SECOND = 2
    EITHER = 3


class SlotPosition(NamedTuple):
    """Position of a half-hour: day since 1970, slot, pass, and its `minutes` past the start of the slot."""

    day: int
    slot: int
    clock_pass: ClockPass
    minutes: int = 0


class WallClock:
    """Half-hours by the wall-clock time of one zone at their start, in days and slots of another zone.

    An hour that the clock skips has no position. For an hour that it shows twice nothing distinguishes the passes. If
    both belong to one slot of the day (both zones go back together), the pass is `EITHER`; otherwise there is none.

    >>> clock = WallClock("UTC", ZoneDays("Europe/London"))
    >>> clock.slot_at(datetime(2013, 10, 27, 1, 30))
    SlotPosition(day=16005, slot=3, clock_pass=<ClockPass.SECOND: 2>, minutes=0)
    >>> london = WallClock("Europe/London", ZoneDays("Europe/London"))
    >>> london.slot_at(datetime(2013, 10, 27, 1, 30)).clock_pass.name, london.slot_at(datetime(2013, 3, 31, 1, 30))
    ('EITHER', None)
    """

    def __init__(self, zone: str, days: ZoneDays) -> None:
        self._zone, self._days = ZoneInfo(zone), days
        self.at_quarter = lru_cache(maxsize=2**17)(self._at_quarter)

    def _at_quarter(self, number: int) -> SlotPosition | None:
        return self.slot_at(_EPOCH + number * _QUARTER)

    def slot_at(self, wall_time: datetime) -> SlotPosition | None:
        """Return the position of the half-hour that starts at a wall-clock time (naive); None if it has none."""
        first, second = (wall_time.replace(tzinfo=self._zone, fold=fold) for fold in (0, 1))
        first_position = self._position(first)
        if first.utcoffset() == second.utcoffset():
            return first_position
        if _seconds(first) < _seconds(second):  # shown twice
            second_position = self._position(second)
            return (
                first_position._replace(clock_pass=ClockPass.EITHER)
                if first_position[:2] == second_position[:2]
                else None
            )
        return None

    def _position(self, start: datetime) -> SlotPosition:
        wall = start.astimezone(UTC).astimezone(self._days.zone)
        slot, minutes = divmod(wall.hour * 60 + wall.minute, 30)
        clock_pass = ClockPass.ONLY
        if slot in self._days.repeated_slots(wall.date()):
            clock_pass = ClockPass.SECOND if wall.fold else ClockPass.FIRST
        return SlotPosition((wall.date() - _EPOCH.date()).days, slot, clock_pass, minutes)


def _seconds(start: datetime) -> float:
    return start.astimezone(UTC).timestamp()
