"""Readings of 15 and 60 minutes: placed by a brute-force walk over the minutes of each day, clock changes included."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest

from agedp_data.datasets.layout import expected_readings
from agedp_data.datasets.registry import layout_of
from agedp_data.datasets.validation import NamedColumns, ReadingRules
from tests.agedp_data.datasets import parsing

COLUMNS = NamedColumns("meter", "at", "%Y-%m-%d %H:%M", "start", "UTC", "Europe/London", "wh", "Wh", ("",))
PLAIN, SPRING, AUTUMN = date(2013, 5, 7), date(2013, 3, 31), date(2013, 10, 27)


def readings(columns: NamedColumns, minutes: int, rows: list[str]) -> dict[tuple[str, int], int]:
    layout, rules = layout_of("long", columns, minutes), ReadingRules(columns=columns, interval_minutes=minutes)
    found = parsing.settle(layout, rules, [parsing.parse(layout, "meter,at,wh", *rows, rules=rules)])
    assert found.rows_rejected == 0
    return found.readings


def starts_of(day: date, minutes: int, zone: str) -> list[datetime]:
    """Return the instants (UTC) at which the intervals of a civil day begin."""
    first, last = (datetime.combine(each, time(), ZoneInfo(zone)).astimezone(UTC) for each in (day, day + timedelta(1)))
    return [first + timedelta(minutes=part) for part in range(0, int((last - first) / timedelta(minutes=1)), minutes)]


def by_hand(starts: list[datetime], wh: dict[datetime, int], minutes: int, zone: str) -> dict[tuple[str, int], int]:
    """Return the sums by half-hour (or hour) of the clock, of those that have all of their parts."""
    parts: dict[tuple[str, int], list[int | None]] = defaultdict(list)
    for start in starts:
        wall = start.astimezone(ZoneInfo(zone))
        slot = 2 * wall.hour if minutes == 60 else 2 * wall.hour + wall.minute // 30
        parts["A", parsing.step(wall.date(), slot)].append(wh.get(start))
    return {key: sum(each) for key, each in parts.items() if None not in each}  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("minutes", "zone", "day_zone"),
    [
        *((minutes, zone, "Europe/London") for minutes in (15, 30, 60) for zone in ("UTC", "Europe/London")),
        (15, "UTC", "Asia/Kathmandu"),  # midnight there is 18:15 UTC
    ],
)
@pytest.mark.parametrize("day", [PLAIN, SPRING, AUTUMN])
@pytest.mark.parametrize("side", ["start", "end"])
def test_readings_add_up_to_the_half_hours_of_the_day(minutes, zone, day_zone, day, side):
    starts = starts_of(day, minutes, day_zone)
    wh = {start: 7 * i % 90 + 1 for i, start in enumerate(starts) if i % 11 != 5 or day == AUTUMN}
    shift = timedelta(minutes=minutes if side == "end" else 0)
    shown = [start.astimezone(ZoneInfo(zone)).replace(tzinfo=None) + shift for start in wh]
    rows = [f"A,{at:%Y-%m-%d %H:%M},{energy}" for at, energy in zip(shown, wh.values(), strict=True)]
    columns = replace(COLUMNS, stamp=side, zone=zone, day_zone=day_zone)
    assert readings(columns, minutes, rows) == by_hand(starts, wh, minutes, day_zone)
    complete = by_hand(starts, dict.fromkeys(starts, 0), minutes, day_zone)
    assert expected_readings(layout_of("long", columns, minutes), day) == len(complete)
