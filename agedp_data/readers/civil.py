"""Civil days of a zone in half-hour slots: which slots a day lacks, and which hold two half-hours."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

_HALF_HOUR = timedelta(minutes=30)


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
