"""The only module that reads the time; every recorded time is a UTC date or a whole UTC second.

A day of the data ends at its last half-hour and is due `age_days` x 24 h later. A date means its first instant,
00:00 UTC, so that a release published "on" a date is never younger than promised.

>>> due_on(datetime(2026, 3, 4, tzinfo=UTC), age_days=2)
datetime.date(2026, 3, 6)
>>> due_on(datetime(2012, 7, 1, 14, tzinfo=UTC), age_days=1)
datetime.date(2012, 7, 3)
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import Final

FIRST_DATE: Final = date(1970, 1, 1)
LAST_DATE: Final = date(2999, 12, 31)
"""Range of all dates in a ledger, so that later date arithmetic cannot overflow."""


def now() -> datetime:
    """Return the system's time, UTC."""
    return datetime.now(UTC)


def today() -> date:
    """Return the system's date, UTC."""
    return now().date()


def due_on(ended: datetime, *, age_days: int) -> date:
    """Return the first date whose first instant is at least `age_days` x 24 h after `ended`; use it to plan releases.

    Args:
        ended: end of the day of the data, timezone-aware.
        age_days: promised minimum age [days].
    """
    due = ended.astimezone(UTC) + timedelta(days=age_days)
    return due.date() if due.time() == time() else due.date() + timedelta(days=1)


def format_instant(moment: datetime) -> str:
    """Return an instant as it is recorded, in whole UTC seconds.

    >>> format_instant(datetime(2013, 3, 4, tzinfo=UTC))
    '2013-03-04T00:00:00Z'
    """
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def is_date(text: str) -> bool:
    """Return whether a text is an ISO date in the range that a ledger permits.

    >>> is_date("2026-03-04"), is_date("2026-3-4"), is_date("9999-12-31")
    (True, False, False)
    """
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return False
    return day.isoformat() == text and FIRST_DATE <= day <= LAST_DATE
