"""Civil days in half-hour slots, against the published dates of clock changes."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest

from agedp_data.datasets.layout import expected_readings
from agedp_data.datasets.registry import LAYOUTS
from agedp_data.datasets.timestamps import ZoneDays

# New South Wales: first Sunday of October at 2:00, first Sunday of April at 3:00
SPRING = (date(2010, 10, 3), date(2011, 10, 2), date(2012, 10, 7))
AUTUMN = (date(2011, 4, 3), date(2012, 4, 1), date(2013, 4, 7))
DAYS = [date(2010, 7, 1) + timedelta(days=i) for i in range(3 * 365 + 1)]


def test_in_the_three_years_of_ausgrid_only_the_published_sundays_differ() -> None:
    sydney = ZoneDays("Australia/Sydney")
    for day in DAYS:
        assert sydney.absent_slots(day) == ((4, 5) if day in SPRING else ())
        assert sydney.repeated_slots(day) == ((4, 5) if day in AUTUMN else ())
    ausgrid = LAYOUTS["ausgrid"]
    assert {day for day in DAYS if expected_readings(ausgrid, day) != 48} == set(SPRING)
    assert {expected_readings(ausgrid, day) for day in SPRING} == {46}


def test_a_sydney_day_lasts_23_24_or_25_hours_and_ends_at_its_own_midnight() -> None:
    ausgrid = LAYOUTS["ausgrid"]
    for day in DAYS:
        hours = (ausgrid.day_end(day) - ausgrid.day_end(day - timedelta(days=1))) / timedelta(hours=1)
        assert hours == (23 if day in SPRING else 25 if day in AUTUMN else 24)
    assert ausgrid.day_end(date(2012, 12, 31)) == datetime(2012, 12, 31, 13, tzinfo=UTC)  # summer: UTC + 11


@pytest.mark.parametrize(
    ("zone", "day", "absent", "repeated"),
    [
        ("Australia/Lord_Howe", date(2012, 10, 7), (4,), ()),  # by half an hour: 2:00 to 2:30
        ("Australia/Lord_Howe", date(2013, 4, 7), (), (3,)),  # 1:30 to 2:00 twice
        ("Pacific/Apia", date(2011, 12, 30), tuple(range(48)), ()),  # the day that Samoa left out
        ("Europe/London", date(2013, 3, 31), (2, 3), ()),
        ("Europe/London", date(2013, 10, 27), (), (2, 3)),
        ("UTC", date(2013, 10, 27), (), ()),
    ],
)
def test_other_zones_changes_are_their_own(
    zone: str, day: date, absent: tuple[int, ...], repeated: tuple[int, ...]
) -> None:
    days = ZoneDays(zone)
    assert (days.absent_slots(day), days.repeated_slots(day)) == (absent, repeated)
