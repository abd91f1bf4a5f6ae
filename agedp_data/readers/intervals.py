"""How far apart readings are: the interval that the first rows of a file show.

Only rows that are parsed before a series begins are looked at: later no reading says how another is understood.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final

from agedp_data.readers.layout import Header
from agedp_data.readers.lines import split_fields
from agedp_data.readers.stamps import parse_stamp

INTERVALS: Final = (15, 30, 60)
"""Minutes between readings that a run file may declare."""
DECLARABLE: Final = f"{', '.join(map(str, INTERVALS[:-1]))} or {INTERVALS[-1]} minutes"
_LEAST_GAPS: Final = 8
_LONGEST: Final = 240
"""Minutes; households with fewer readings than that say nothing of the interval."""
_MINUTE_NS: Final = 60 * 10**9


def common_interval(timestamps: Iterable[Iterable[int]], *, longest: int = _LONGEST) -> int | None:
    """Return the minutes between most consecutive timestamps (in minutes) of the same household.

    None if too few say, or more than `longest` minutes lie between most.

    >>> common_interval([range(0, 600, 60)]), common_interval([[0, 30, 90]])
    (60, None)
    """
    gaps = Counter(later - earlier for own in timestamps for earlier, later in pairwise(sorted(set(own))))
    if gaps.total() < _LEAST_GAPS:
        return None
    minutes, times = gaps.most_common(1)[0]
    return minutes if 2 * times > gaps.total() and minutes <= longest else None


def interval_remedy(minutes: int, *, is_long: bool) -> str:
    """Return what to do about files whose readings are so many minutes apart; only a long table may declare it."""
    if minutes not in INTERVALS:
        return f"deliver readings of {DECLARABLE}"
    if is_long:
        return f"write [input] interval_minutes = {minutes}"
    return f'describe the columns under dataset = "long" with [input] interval_minutes = {minutes}'


def interval_of_rows(rows: Sequence[str], header: Header) -> int | None:
    """Return the minutes between the readings of a file's first rows; None if its rows are days, or too few say.

    `rows` are the bytes of the lines as Latin-1.
    """
    if not {"household", "time"} <= set(header.names):
        return None
    household, time = header.names.index("household"), header.names.index("time")
    timestamps: dict[str, list[int]] = {}
    for row in rows:
        cells = split_fields(row)
        stamp = parse_stamp(_bytes(cells[time]), header.time_formats) if len(cells) == len(header.names) else None
        if stamp is not None:
            timestamps.setdefault(cells[household].strip(), []).append(stamp.ns // _MINUTE_NS)
    return common_interval(timestamps.values())


def _bytes(cell: str) -> bytes:
    return cell.strip(" \t").encode("latin-1")
