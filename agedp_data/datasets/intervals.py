"""The interval between readings, measured on the first rows of a file.

It is measured only before a series begins: later no reading changes how another reading is parsed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final

from agedp_data.datasets.csv_lines import split_fields
from agedp_data.datasets.layout import Header
from agedp_data.datasets.timestamps import parse_timestamp

INTERVALS: Final = (5, 10, 15, 30, 60)
"""Minutes between readings that a run file may declare."""
DECLARABLE: Final = f"{', '.join(map(str, INTERVALS[:-1]))} or {INTERVALS[-1]} minutes"
DAY_MINUTES: Final = 1440
_MIN_GAPS: Final = 8
_MAX_INTERVAL_MINUTES: Final = 240
"""Minutes; longer gaps do not count as an interval."""
_MINUTE_NS: Final = 60 * 10**9


def common_interval(timestamps: Iterable[Iterable[int]], *, max_minutes: int = _MAX_INTERVAL_MINUTES) -> int | None:
    """Return the minutes between most consecutive timestamps (in minutes) of the same household.

    None if there are too few gaps, or most are longer than `max_minutes` minutes.

    >>> common_interval([range(0, 600, 60)]), common_interval([[0, 30, 90]])
    (60, None)
    """
    gaps = Counter(
        later - earlier for household_times in timestamps for earlier, later in pairwise(sorted(set(household_times)))
    )
    if gaps.total() < _MIN_GAPS:
        return None
    minutes, count = gaps.most_common(1)[0]
    return minutes if 2 * count > gaps.total() and minutes <= max_minutes else None


def interval_remedy(minutes: int, *, is_long: bool) -> str:
    """Return the remedy for files whose readings are this many minutes apart.

    >>> interval_remedy(60, is_long=True)
    'write [input] interval_minutes = 60'

    Args:
        minutes: measured interval.
        is_long: whether dataset = "long", which alone may declare an interval.
    """
    if minutes not in INTERVALS:
        return f"deliver readings of {DECLARABLE}"
    if is_long:
        return f"write [input] interval_minutes = {minutes}"
    return f'describe the columns under dataset = "long" with [input] interval_minutes = {minutes}'


def have_early_midnights(timestamps: Iterable[Sequence[int]], minutes: int) -> bool:
    """Return whether the rows of households go back only from the end of a day to the midnight that begins it.

    So they do where 00:00 under the date of a day is the midnight that ends it: the next row is of the next day.
    Timestamps are in the order of the file, in minutes.

    >>> day = [*range(30, 1440, 30), 0]
    >>> [have_early_midnights([[*day, *(time + 1440 for time in of_next)]], 30) for of_next in (day, sorted(day))]
    [True, False]
    """
    steps = [[later - earlier for earlier, later in pairwise(of_household)] for of_household in timestamps]
    backward = [pair for of_household in steps for pair in pairwise([*of_household, 0]) if pair[0] < 0]
    return len(backward) > 1 and set(backward) <= {(minutes - DAY_MINUTES, step) for step in (DAY_MINUTES + minutes, 0)}


def times_of_rows(rows: Sequence[str], header: Header) -> list[list[int]]:
    """Return the timestamps of each household in a file's first rows, in minutes; none for rows of days.

    `rows` are the bytes of the lines as Latin-1.
    """
    if not header.has_timestamps:
        return []
    time = header.names.index("time")
    household = header.names.index("household") if "household" in header.names else None  # of a wide table any
    timestamps: dict[str, list[int]] = {}
    for row in rows:
        cells = split_fields(row, header.separator)
        timestamp = (
            parse_timestamp(_bytes(cells[time]), header.time_formats) if len(cells) == len(header.names) else None
        )
        if timestamp is not None:
            name = "" if household is None else cells[household].strip()
            timestamps.setdefault(name, []).append(timestamp.ns // _MINUTE_NS)
    return [*timestamps.values()]


def _bytes(cell: str) -> bytes:
    return cell.strip(" \t").encode("latin-1")
