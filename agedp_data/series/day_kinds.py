"""Weekdays and weekends, by which profiles of a month are averaged.

Weekdays are Monday to Friday by the calendar, weekends Saturday and Sunday. Public holidays are not treated specially:
calendars of holidays differ by region, and change.

Example: 2013-01-01, a Tuesday and a holiday, is a weekday.
"""

from __future__ import annotations

from datetime import date
from typing import Final, Literal

DayKind = Literal["weekday", "weekend"]
Kind = DayKind | Literal[""]
"""The kind of a day; "" where days are not told apart."""
DAY_KINDS: Final[tuple[DayKind, ...]] = ("weekday", "weekend")
_SATURDAY: Final = 5


def day_kind(day: date) -> DayKind:
    """Return whether a day is a weekday or of a weekend.

    Source: Gregorian calendar.

    Args:
        day: the day.

    >>> day_kind(date(2013, 1, 4)), day_kind(date(2013, 1, 5))
    ('weekday', 'weekend')
    """
    return "weekend" if day.weekday() >= _SATURDAY else "weekday"
