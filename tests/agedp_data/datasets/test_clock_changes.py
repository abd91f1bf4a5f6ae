"""Clock changes: the published dates, a walk through the period, and databases in which a change was moved."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from agedp_data.datasets.timestamps import WallClock, ZoneDays, begins_as_recorded, first_moved_day, zone_changes

SYDNEY, LONDON, LORD_HOWE = "Australia/Sydney", "Europe/London", "Australia/Lord_Howe"
FIRST, LAST = date(2013, 1, 1), date(2014, 12, 31)


@pytest.mark.parametrize(
    ("zone", "day", "absent", "repeated"),
    [
        (LORD_HOWE, date(2012, 10, 7), (4,), ()),  # by half an hour: 2:00 to 2:30
        (LORD_HOWE, date(2013, 4, 7), (), (3,)),  # 1:30 to 2:00 twice
        ("Pacific/Apia", date(2011, 12, 30), tuple(range(48)), ()),  # the day that Samoa left out
        (LONDON, date(2013, 3, 31), (2, 3), ()),
        (LONDON, date(2013, 10, 27), (), (2, 3)),
        ("UTC", date(2013, 10, 27), (), ()),
    ],
)
def test_a_zone_has_its_own_changes(zone, day, absent, repeated):
    assert (ZoneDays(zone).absent_slots(day), ZoneDays(zone).repeated_slots(day)) == (absent, repeated)


@pytest.mark.parametrize(
    ("zone", "day_zone", "near"),
    [
        ("UTC", LONDON, date(2013, 3, 31)), (LONDON, "UTC", date(2013, 10, 27)), (LONDON, SYDNEY, date(2013, 4, 7)),
        (LORD_HOWE, LORD_HOWE, date(2012, 10, 7)), ("UTC", "Asia/Kathmandu", date(1986, 1, 1)),
        ("America/St_Johns", LORD_HOWE, date(2013, 3, 10)), ("UTC", "Africa/Monrovia", date(1971, 12, 30)),
    ],
)  # fmt: skip
def test_positions_of_many_timestamps_are_those_of_each(zone, day_zone, near):
    """Quarters of the days around a change, against one conversion by zoneinfo for each that the clock shows once."""
    first = (near - date(1970, 1, 1)).days - 8
    quarters = np.arange(first * 96, (first + 16) * 96, dtype=np.int32)
    times, _, minutes = WallClock(zone, ZoneDays(day_zone)).positions_at(quarters)
    number = 0
    for quarter, found in zip(quarters.tolist(), zip(times.tolist(), minutes.tolist(), strict=True), strict=True):
        wall = (datetime(1970, 1, 1) + quarter * timedelta(minutes=15)).replace(tzinfo=ZoneInfo(zone))
        if wall.utcoffset() != wall.replace(fold=1).utcoffset():
            continue
        start = wall.astimezone(UTC).astimezone(ZoneInfo(day_zone))
        slot, past = divmod(start.hour * 60 + start.minute, 30)
        assert found == ((start.date() - date(1970, 1, 1)).days * 48 + slot, past)
        number += 1
    assert number >= 15 * 96


def walked(zone: str) -> list[tuple[datetime, timedelta]]:
    """Return instants and offsets by a walk in steps of a quarter of an hour."""
    of = ZoneInfo(zone)
    at, stop = (datetime.combine(each, time(), of).astimezone(UTC) for each in (FIRST, LAST + timedelta(1)))
    found: list[tuple[datetime, timedelta]] = []
    while at < stop:
        offset = at.astimezone(of).utcoffset()
        if not found or found[-1][1] != offset:
            found.append((at, offset))
        at += timedelta(minutes=15)
    return found


def offset_of(text: str) -> timedelta:
    return (-1 if text[0] == "-" else 1) * timedelta(hours=int(text[1:3]), minutes=int(text[4:]))


@pytest.mark.parametrize("zone", [LONDON, LORD_HOWE, "America/St_Johns", "UTC"])
def test_changes_are_those_of_a_walk_and_move_no_day(zone):
    recorded = zone_changes(zone, FIRST, LAST)
    assert walked(zone) == [
        (datetime.strptime(line[:17], "%Y-%m-%dT%H:%MZ").replace(tzinfo=UTC), offset_of(line[18:])) for line in recorded
    ]
    for since in (FIRST, date(2013, 4, 7), date(2013, 10, 6), LAST, date(2015, 5, 1)):
        assert first_moved_day(recorded, zone, since, LAST) is None
        assert begins_as_recorded(recorded, zone, min(since, LAST))


def moved(zone: str, true: str, recorded: str) -> list[str]:
    lines = [line.replace(true, recorded) for line in zone_changes(zone, FIRST, LAST)]
    assert lines != list(zone_changes(zone, FIRST, LAST))
    return lines


# the change is on 6 April 2014 in this database, and was on the 13th in the one before it
LATER = (SYDNEY, "2014-04-05T16:00Z", "2014-04-12T16:00Z")
EARLIER = (LONDON, "2014-03-30T01:00Z", "2014-03-23T01:00Z")


@pytest.mark.parametrize(
    ("change", "since", "expected"),
    [
        (LATER, date(2014, 3, 1), date(2014, 4, 6)),
        (LATER, date(2014, 4, 6), date(2014, 4, 6)),
        (LATER, date(2014, 4, 8), date(2014, 4, 8)),
        (LATER, date(2014, 4, 13), date(2014, 4, 13)),
        (LATER, date(2014, 4, 14), None),  # all of them are released
        (EARLIER, date(2014, 1, 1), date(2014, 3, 23)),
        (EARLIER, date(2014, 3, 31), None),
    ],
)
def test_a_moved_change_is_noticed_where_a_day_is_unreleased(change, since, expected):
    assert first_moved_day(moved(*change), change[0], since, LAST) == expected


def test_a_day_between_two_changes_begins_at_another_instant():
    begins = {number: begins_as_recorded(moved(*LATER), SYDNEY, date(2014, 4, number)) for number in (5, 6, 7, 13, 14)}
    assert begins == {5: True, 6: True, 7: False, 13: False, 14: True}
