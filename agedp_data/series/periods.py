"""Periods of the calendar that a row may cover instead of a day: a week from Monday, a month, or a year.

A row of a period names its last day; the first one follows from the calendar, so that it need not be stored. Periods
are whole: a week, month or year that begins before the first day of the schedule, or ends after its last one, is never
published.

Example: the month of 2012-02-29 begins on 2012-02-01 and has 29 days.
"""

from __future__ import annotations

from calendar import monthrange
from datetime import date, timedelta
from functools import lru_cache
from typing import Literal

Every = Literal["day", "week", "month", "year", "weekday-month"]


@lru_cache(maxsize=2**12)
def period_of(day: date, every: Every) -> tuple[date, date]:
    """Return the first and last day of the calendar period that contains a day.

    Source: Gregorian calendar; weeks begin on Monday (ISO 8601).

    Args:
        day: the day.
        every: "day", "week", "month" or "year"; "weekday-month" is a month, whose kinds of day are kept apart.

    >>> first, last = period_of(date(2012, 2, 10), "month")
    >>> f"{first} to {last}"
    '2012-02-01 to 2012-02-29'
    """
    match every:
        case "week":
            monday = day - timedelta(days=day.weekday())
            return monday, monday + timedelta(days=6)
        case "month" | "weekday-month":
            return day.replace(day=1), day.replace(day=monthrange(day.year, day.month)[1])
        case "year":
            return day.replace(month=1, day=1), day.replace(month=12, day=31)
        case _:
            return day, day


def days_of(first: date, last: date) -> tuple[date, ...]:
    """Return the days from the first to the last, both included.

    Source: calendar arithmetic.

    Args:
        first: the first day.
        last: the last day.

    >>> [f"{day}" for day in days_of(date(2012, 2, 28), date(2012, 3, 1))]
    ['2012-02-28', '2012-02-29', '2012-03-01']
    """
    return tuple(first + timedelta(days=i) for i in range((last - first).days + 1))
