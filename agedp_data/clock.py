"""The one module that knows the time; everything that is recorded is a UTC date, never finer.

A day of the data ends at its last half-hour and is due `age_days` x 24 h later. A date stands for its first
instant, 00:00 UTC, so what is published "on" a date is never younger than promised.

>>> due_on(datetime(2026, 3, 4, tzinfo=UTC), age_days=2)
datetime.date(2026, 3, 6)
>>> due_on(datetime(2012, 7, 1, 14, tzinfo=UTC), age_days=1)
datetime.date(2012, 7, 3)
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta


def now() -> datetime:
    """Return the system's time, UTC."""
    return datetime.now(UTC)


def today() -> date:
    """Return the system's date, UTC."""
    return now().date()


def due_on(ended: datetime, *, age_days: int) -> date:
    """Return the first date whose first instant is at least `age_days` x 24 h after `ended`."""
    due = ended.astimezone(UTC) + timedelta(days=age_days)
    return due.date() if due.time() == time() else due.date() + timedelta(days=1)


def format_instant(moment: datetime) -> str:
    """Return an instant as it is recorded, for example 2013-03-04T00:00:00Z."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
