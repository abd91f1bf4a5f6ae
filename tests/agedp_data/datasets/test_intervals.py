"""Readings of 15 and 60 minutes: placed by a brute-force walk over the minutes of each day, clock changes included."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from agedp_data.datasets.csv_parsing import ParsedChunk, parse_lines
from agedp_data.datasets.deduplication import StoredRows, deduplicate_rows
from agedp_data.datasets.intervals import interval_of_rows
from agedp_data.datasets.layout import expected_readings
from agedp_data.datasets.registry import layout_of
from agedp_data.datasets.validation import NamedColumns, ReadingRules, RejectionReason
from agedp_data.errors import InputError

COLUMNS = NamedColumns("meter", "at", "%Y-%m-%d %H:%M", "start", "UTC", "Europe/London", "wh", "Wh", ("",))
EPOCH = date(1970, 1, 1)
PLAIN, SPRING, AUTUMN = date(2013, 5, 7), date(2013, 3, 31), date(2013, 10, 27)


def records(columns: NamedColumns, minutes: int, lines: list[str], *, max_wh: int = 50_000) -> ParsedChunk:
    layout = layout_of("long", columns, minutes)
    header = layout.recognise(["meter,at,wh", *lines])
    assert header is not None
    rules = ReadingRules(max_half_hour_wh=max_wh, columns=columns, interval_minutes=minutes)
    return parse_lines("\n".join(lines).encode(), layout=layout, header=header, rules=rules)


def reasons(parsed: ParsedChunk) -> list[RejectionReason]:
    return [RejectionReason(code) for code in parsed.records.reason.tolist()]


def settled(columns: NamedColumns, minutes: int, lines: list[str]) -> dict[tuple[date, int], int]:
    """Return the readings of one household by day and slot."""
    found = records(columns, minutes, lines).records
    kept = found.reason == RejectionReason.KEPT
    layout, number = layout_of("long", columns, minutes), np.arange(kept.sum())
    time_of = found.day[kept] * 48 + found.slot[kept]
    rows = StoredRows(("A",), 0 * number, found.channel[kept], time_of, 0 * number, number, found.energy_wh[kept])
    readings = deduplicate_rows(
        rows, complete_channels=layout.complete_channels(ReadingRules(columns=columns, interval_minutes=minutes))
    )
    assert not len(readings.rejected_row)
    pairs = zip(readings.time.tolist(), readings.energy_wh.tolist(), strict=True)
    return {(EPOCH + timedelta(days=step // 48), step % 48): wh for step, wh in pairs}


def instants(day: date, minutes: int, zone: str) -> list[datetime]:
    """Return the instants (UTC) at which the intervals of a civil day begin."""
    first, last = (datetime.combine(each, time(), ZoneInfo(zone)).astimezone(UTC) for each in (day, day + timedelta(1)))
    return [first + timedelta(minutes=step) for step in range(0, int((last - first) / timedelta(minutes=1)), minutes)]


def by_hand(starts: list[datetime], wh: dict[datetime, int], minutes: int, zone: str) -> dict[tuple[date, int], int]:
    """Return the sums by day and half-hour (or hour) of the clock, of those that have all of their parts."""
    parts: dict[tuple[date, int], list[int | None]] = defaultdict(list)
    for start in starts:
        wall = start.astimezone(ZoneInfo(zone))
        slot = 2 * wall.hour if minutes == 60 else 2 * wall.hour + wall.minute // 30
        parts[wall.date(), slot].append(wh.get(start))
    return {key: sum(each) for key, each in parts.items() if None not in each}  # type: ignore[arg-type]


@pytest.mark.parametrize("minutes", [15, 30, 60])
@pytest.mark.parametrize("day", [PLAIN, SPRING, AUTUMN])
@pytest.mark.parametrize("side", ["start", "end"])
@pytest.mark.parametrize("zone", ["UTC", "Europe/London"])
def test_readings_add_up_to_the_half_hours_of_the_day(minutes, day, side, zone):
    starts = instants(day, minutes, "Europe/London")
    wh = {start: 7 * i % 90 + 1 for i, start in enumerate(starts) if i % 11 != 5 or day == AUTUMN}
    clock = ZoneInfo(zone)
    shift = timedelta(minutes=minutes if side == "end" else 0)
    lines = []
    for start, energy in wh.items():
        shown = start.astimezone(clock).replace(tzinfo=None) + shift
        lines.append(f"A,{shown:%Y-%m-%d %H:%M},{energy}")
    expected = by_hand(starts, wh, minutes, "Europe/London")
    assert settled(replace(COLUMNS, stamp=side, zone=zone), minutes, lines) == expected


@pytest.mark.parametrize(("minutes", "counts"), [(15, (48, 46, 48)), (30, (48, 46, 48)), (60, (24, 23, 24))])
def test_a_complete_day_has_so_many_readings(minutes, counts):
    layout = layout_of("long", COLUMNS, minutes)
    assert tuple(expected_readings(layout, day) for day in (PLAIN, SPRING, AUTUMN)) == counts


def test_offsets_of_a_quarter_of_an_hour_are_placed_by_readings_of_15_minutes():
    """Midnight in Kathmandu is 18:15 UTC."""
    columns = replace(COLUMNS, day_zone="Asia/Kathmandu")
    starts = instants(PLAIN, 15, "Asia/Kathmandu")
    wh = {start: i + 1 for i, start in enumerate(starts)}
    lines = [f"A,{start:%Y-%m-%d %H:%M},{energy}" for start, energy in wh.items()]
    assert settled(columns, 15, lines) == by_hand(starts, wh, 15, "Asia/Kathmandu")
    assert set(reasons(records(columns, 30, lines[1::2]))) == {RejectionReason.OFF_GRID}  # those at :00 and :30 UTC


def test_an_hour_that_begins_at_half_past_is_off_the_grid():
    """Of hours in UTC, every one begins at half past in Kolkata, and one of them lies in two days."""
    columns = replace(COLUMNS, day_zone="Asia/Kolkata")
    lines = [f"A,{PLAIN} {hour:02d}:00,10" for hour in range(24)]
    assert set(reasons(records(columns, 60, lines))) == {RejectionReason.OFF_GRID}


@pytest.mark.parametrize(("minutes", "most"), [(15, 500), (30, 1000), (60, 2000)])
def test_the_bound_of_a_reading_is_that_of_its_power(minutes, most):
    lines = [f"A,2013-05-07 01:00,{most}", f"A,2013-05-07 02:00,{most + 1}"]
    assert reasons(records(COLUMNS, minutes, lines, max_wh=1000)) == [RejectionReason.KEPT, RejectionReason.ABOVE_BOUND]


@pytest.mark.parametrize("minutes", [15, 30, 60])
def test_a_reading_between_two_intervals_is_off_the_grid(minutes):
    parsed = records(COLUMNS, minutes, ["A,2013-05-07 01:00,1", f"A,2013-05-07 01:{minutes // 2:02d},1"])
    assert reasons(parsed) == [RejectionReason.KEPT, RejectionReason.OFF_GRID]


@pytest.mark.parametrize("minutes", [1, 5, 15, 30, 60, 240])
@pytest.mark.parametrize("homes", [1, 7])
def test_the_interval_is_read_off_consecutive_stamps_of_a_household(minutes, homes):
    start = datetime(2013, 5, 7)
    stamps = [start + timedelta(minutes=minutes * step) for step in range(20) if step != 9]
    rows = [f"H{home},{stamp:%Y-%m-%d %H:%M},1" for stamp in stamps for home in range(homes)]
    layout = layout_of("long", COLUMNS)
    header = layout.recognise(["meter,at,wh"])
    assert interval_of_rows([*rows, "H1,tomorrow,1", 'H1,"2013', ""], header) == minutes
    assert interval_of_rows(rows[:homes], header) is None


def test_only_a_table_of_ones_own_has_another_interval():
    with pytest.raises(InputError, match=r'interval_minutes = 60 goes with dataset = "long"'):
        layout_of("london", None, 60)
