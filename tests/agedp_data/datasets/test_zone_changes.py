"""Clock changes of a period, against a walk over every hour, and databases in which a change was moved."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest

from agedp_data.datasets.zone_changes import begins_as_recorded, first_moved_day, zone_changes

ZONES = ("Europe/London", "Australia/Sydney", "Australia/Lord_Howe", "America/St_Johns", "Asia/Kolkata", "UTC")
SYDNEY, LONDON = "Australia/Sydney", "Europe/London"
FIRST, LAST = date(2013, 1, 1), date(2014, 12, 31)


def by_hand(zone: str, first: date, last: date) -> list[tuple[datetime, timedelta]]:
    """Return offsets by a walk in steps of five minutes."""
    of = ZoneInfo(zone)
    start, stop = (datetime.combine(each, time(), of).astimezone(UTC) for each in (first, last + timedelta(1)))
    found: list[tuple[datetime, timedelta]] = []
    while start < stop:
        offset = start.astimezone(of).utcoffset()
        assert offset is not None
        if not found or found[-1][1] != offset:
            found.append((start, offset))
        start += timedelta(minutes=5)
    return found


@pytest.mark.parametrize("zone", ZONES)
def test_changes_are_those_of_a_walk_over_the_period(zone):
    found = [
        (datetime.strptime(line[:17], "%Y-%m-%dT%H:%MZ").replace(tzinfo=UTC), line[18:])
        for line in zone_changes(zone, FIRST, LAST)
    ]
    expected = by_hand(zone, FIRST, LAST)
    assert [instant for instant, _ in found] == [instant for instant, _ in expected]
    for (_, text), (_, offset) in zip(found, expected, strict=True):
        hours, minutes = int(text[1:3]), int(text[4:])
        assert (-1 if text[0] == "-" else 1) * timedelta(hours=hours, minutes=minutes) == offset


def test_an_open_period_is_recorded_for_ten_years():
    assert len(zone_changes(LONDON, FIRST, None)) == 1 + 2 * 10


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("since", [FIRST, date(2013, 4, 7), date(2013, 10, 6), date(2014, 12, 31), date(2015, 5, 1)])
def test_the_same_database_moves_no_day(zone, since):
    recorded = zone_changes(zone, FIRST, LAST)
    assert first_moved_day(recorded, zone, since, LAST) is None
    assert begins_as_recorded(recorded, zone, min(since, LAST))


@pytest.mark.parametrize(
    ("zone", "true", "recorded", "since", "moved"),
    [
        # the change is on 6 April 2014 in this database, and was on the 13th in the one before it
        (SYDNEY, "2014-04-05T16:00Z", "2014-04-12T16:00Z", date(2014, 3, 1), date(2014, 4, 6)),
        (SYDNEY, "2014-04-05T16:00Z", "2014-04-12T16:00Z", date(2014, 4, 6), date(2014, 4, 6)),
        (SYDNEY, "2014-04-05T16:00Z", "2014-04-12T16:00Z", date(2014, 4, 8), date(2014, 4, 8)),
        (SYDNEY, "2014-04-05T16:00Z", "2014-04-12T16:00Z", date(2014, 4, 13), date(2014, 4, 13)),
        (SYDNEY, "2014-04-05T16:00Z", "2014-04-12T16:00Z", date(2014, 4, 14), None),  # all of them are released
        (LONDON, "2014-03-30T01:00Z", "2014-03-23T01:00Z", date(2014, 1, 1), date(2014, 3, 23)),
        (LONDON, "2014-03-30T01:00Z", "2014-03-23T01:00Z", date(2014, 3, 31), None),
    ],
)
def test_a_moved_change_is_noticed_where_it_touches_an_unreleased_day(zone, true, recorded, since, moved):
    lines = [line.replace(true, recorded) for line in zone_changes(zone, FIRST, LAST)]
    assert lines != list(zone_changes(zone, FIRST, LAST))
    assert first_moved_day(lines, zone, since, LAST) == moved


def test_a_day_between_the_old_and_the_new_change_begins_at_another_instant():
    lines = [line.replace("2014-04-05T16:00Z", "2014-04-12T16:00Z") for line in zone_changes(SYDNEY, FIRST, LAST)]
    begins = {number: begins_as_recorded(lines, SYDNEY, date(2014, 4, number)) for number in (5, 6, 7, 13, 14)}
    assert begins == {5: True, 6: True, 7: False, 13: False, 14: True}
