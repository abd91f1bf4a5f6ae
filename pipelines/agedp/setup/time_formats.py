"""The time formats that the first timestamps of a table permit.

A wrong format puts readings on wrong days without any error, so a format is decided by evidence only:

* A candidate reads at least 95 % of the distinct timestamps: a few broken ones do no harm.
* A second format that reads some timestamps remains a candidate, unless it fails on three distinct days or on most
  days. One typing error, such as 13/01/2013 among days that are written month first, excludes nothing.
* Among several, one is decided if the days then follow one another, and under no other format any two days do.
* Of ranges such as 00:00 - 00:30, and of times before the name of a zone, the beginning is read: the format ends with
  `*`. The second times of ranges differ; those of offsets, such as 00:00-05:00, do not.
* Whole numbers are seconds or milliseconds since 1970 if they are full minutes of the years from 1990 to 2100.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import pairwise
from typing import Final

from agedp_data.datasets import timestamps
from agedp_data.datasets.table_text import NEARLY_ALL, known_cells
from agedp_data.datasets.timestamps import EPOCHS, ISO, is_iso, matches_format, parse_timestamp, parser_format

_SHORT_DAYS: Final = ("%d/%m/%y ", "%m/%d/%y ", "%y/%m/%d ", "%d-%m-%y ", "%m-%d-%y ", "%y-%m-%d ", "%d.%m.%y ")
_LONG_DAYS: Final = ("%m-%d-%Y ", "%Y/%m/%d ", "%Y.%m.%d ", "%d-%b-%Y ", "%d %b %Y ", "%d-%b-%y ")
_COMMON_DAYS: Final = ("%Y-%m-%d ", "%d/%m/%Y ", "%d.%m.%Y ", "%d-%m-%Y ", "%m/%d/%Y ", "%Y%m%d ")
_DAYS: Final = (*_COMMON_DAYS, *_SHORT_DAYS, *_LONG_DAYS)
_OTHER_TIMES: Final = ("%H:%M:%S", "%H:%M", "%H%M", "%H.%M", "%I:%M:%S %p", "%I:%M %p", "%I:%M%p")
_OF_PROGRAMS: Final = ("%Y%m%d%H%M%S", "%Y%m%d%H%M", "%d-%b-%y %I.%M.%S.%f %p", "%d%b%Y:%H:%M:%S")
_COMBINED: Final = tuple(f"{day}{time}" for day in _DAYS for time in _OTHER_TIMES)
FORMATS: Final = tuple(dict.fromkeys((*timestamps.COMMON_FORMATS, *_COMBINED, *_OF_PROGRAMS)))
"""Time formats that are recognised: ISO, day or month first, names of months, years of two digits, AM and PM."""
DATE_FORMATS: Final = tuple(day.strip() for day in _DAYS)
_EPOCH_RANGE: Final = (631_152_000, 4_102_444_800)

_DATED = re.compile(r"\d{8}|\d[-/.: ]\w+[-/.: ]\d")
_RANGE: Final = re.compile(r"(.*?\d{1,2}:\d\d(?::\d\d)?(?: ?[AaPp][Mm])?)\s*(?:[-–]|to|bis|a|à)\s*(\d.*)")
_NAMED_ZONE: Final = re.compile(r"(.*\d:\d\d(?: ?[AaPp][Mm])?)( ?\(?[A-Z]{3,5}\)?)")
_MAX_OFFSETS: Final = 4
_SAMPLED: Final = 8
_SOME: Final = 0.05
_MANY_DAYS: Final = 3


def candidate_formats(cells: Sequence[str]) -> tuple[str, ...]:
    """Return the time formats that these timestamps permit, one for those that are parsed alike; none for other text.

    >>> candidate_formats(["20/01/2013 00:30", "21/01/2013 00:30"]), candidate_formats(["1704672000", "1704673800"])
    (('%d/%m/%Y %H:%M',), ('epoch',))
    >>> candidate_formats(["13/01/05 00:30"])
    ('%d/%m/%y %H:%M', '%y/%m/%d %H:%M')
    """
    distinct = _distinct(cells)
    for epoch, per_second in zip(EPOCHS, (1, 1000), strict=True):
        numbers = [
            int(cell) // per_second
            for cell in (cell.removesuffix(".0") for cell in distinct)
            if cell.isascii() and cell.isdigit()
        ]
        are_times = [_EPOCH_RANGE[0] <= seconds < _EPOCH_RANGE[1] and seconds % 60 == 0 for seconds in numbers]
        if any(numbers) and sum(are_times) >= NEARLY_ALL * len(distinct):
            return (epoch,)
    if are_ranges(cells):
        return _of_beginnings(distinct, _RANGE)
    if found := _candidates(distinct, FORMATS):
        return found
    timestamps = (parse_timestamp(cell.encode(), (ISO,)) for cell in distinct)
    if distinct and all(timestamp is not None and timestamp.is_instant for timestamp in timestamps):
        return (ISO,)  # an offset without minutes
    return _of_beginnings(distinct, _NAMED_ZONE)


def are_ranges(cells: Sequence[str]) -> bool:
    """Return whether timestamps are two times each.

    >>> are_ranges([f"08.01.2024 {hour:02}:00-{hour + 1:02}:00" for hour in range(9)])
    True
    >>> are_ranges([f"08.01.2024 {hour:02}:00-05:00" for hour in range(9)])
    False
    """
    distinct = _distinct(cells)
    seconds = [found[2] for found in map(_RANGE.fullmatch, distinct) if found]
    return len(set(seconds)) > _MAX_OFFSETS and len(seconds) >= NEARLY_ALL * len(distinct)


def _of_beginnings(distinct: Sequence[str], shape: re.Pattern[str]) -> tuple[str, ...]:
    beginnings = [found[1] for found in map(shape.fullmatch, distinct) if found]
    if not distinct or len(beginnings) < NEARLY_ALL * len(distinct):
        return ()
    formats = (pattern for pattern in FORMATS if pattern != ISO and "%z" not in pattern)
    return tuple(f"{pattern}{timestamps.REST}" for pattern in _candidates(sorted(set(beginnings)), [*formats]))


def candidate_dates(cells: Sequence[str]) -> tuple[str, ...]:
    """Return the formats of dates that cells permit; none if they are no dates, or have a time of day.

    >>> candidate_dates(["01/08/2024"]), candidate_dates(["2024-01-08"]), candidate_dates(["2024-01-08 00:30"])
    (('%d/%m/%Y', '%m/%d/%Y'), ('%Y-%m-%d',), ())
    """
    return _candidates(_distinct(cells), DATE_FORMATS)


def consecutive_format(cells: Sequence[str], formats: Sequence[str]) -> str | None:
    """Return the format under which days follow one another from row to row, if under no other any two days do.

    >>> consecutive_format(["01/08/2024", "01/09/2024", "01/10/2024", "01/11/2024"], ("%d/%m/%Y", "%m/%d/%Y"))
    '%m/%d/%Y'
    """
    steps: dict[str, dict[tuple[date, date], timedelta]] = {}
    for pattern in formats:  # the changes of the day from row to row, each pair of days once
        times = (clock_time(cell, _parsed_as(pattern)) for cell in cells)
        pairs = pairwise(time.date() for time in times if time is not None)
        steps[pattern] = {(earlier, later): later - earlier for earlier, later in pairs if later != earlier}
    following = {pattern: sum(step == timedelta(1) for step in of.values()) for pattern, of in steps.items()}
    found = [pattern for pattern, number in following.items() if number]
    if len(found) != 1 or following[found[0]] < _MANY_DAYS:
        return None
    forward = sum(step > timedelta() for step in steps[found[0]].values())
    return found[0] if 2 * following[found[0]] > forward else None


def _distinct(cells: Sequence[str]) -> list[str]:
    """Return the distinct cells in order; none if the first of them have no digits as a date has."""
    distinct = sorted(set(known_cells(cells)))
    return distinct if any(map(_DATED.search, distinct[: 4 * _SAMPLED])) else []


def _candidates(distinct: Sequence[str], formats: Sequence[str]) -> tuple[str, ...]:
    sample = distinct[:: max(1, len(distinct) // _SAMPLED)]
    dates_only = formats is DATE_FORMATS
    patterns = {pattern if dates_only else _parsed_as(pattern): pattern for pattern in reversed(formats)}
    patterns = {
        kind: pattern for kind, pattern in patterns.items() if any(matches_format(cell, kind) for cell in sample)
    }
    cells_read = {
        pattern: {cell for cell in distinct if matches_format(cell, kind)} for kind, pattern in patterns.items()
    }
    best = max(cells_read, key=lambda pattern: len(cells_read[pattern]), default="")
    if not cells_read or len(cells_read[best]) < max(1, NEARLY_ALL * len(distinct)):
        return ()
    return tuple(pattern for pattern in formats if pattern in cells_read and _is_candidate(pattern, best, cells_read))


def _is_candidate(pattern: str, best: str, cells_read: dict[str, set[str]]) -> bool:
    """Return whether a format remains possible in comparison with the one that reads most timestamps."""
    if len(cells_read[pattern]) < _SOME * len(cells_read[best]):
        return False
    failed = _days(cells_read[best] - cells_read[pattern], best)
    return len(failed) < _MANY_DAYS and 2 * len(failed) <= len(_days(cells_read[best], best))


def _days(cells: Iterable[str], pattern: str) -> set[date]:
    timestamps = (clock_time(cell, _parsed_as(pattern)) for cell in cells)
    return {timestamp.date() for timestamp in timestamps if timestamp is not None}


def _parsed_as(pattern: str) -> str:
    """Return the format to parse with; "iso" is parsed without an offset, because formats with %z cover offsets."""
    return timestamps.LOCAL_ISO if pattern == ISO else parser_format(pattern)


def clock_time(cell: str, time_format: str) -> datetime | None:
    """Return the local time of a timestamp without its offset; None if the format does not read it.

    `time_format` is one that `parser_format` returned.

    >>> clock_time("03/02/2013 00:30", "%d/%m/%Y %H:%M")
    datetime.datetime(2013, 2, 3, 0, 30)
    """
    if "%z" not in time_format and not (is_iso(time_format) and cell.find("24:") < 0):
        found = parse_timestamp(cell.encode(), (time_format,))
        return None if found is None else datetime(1970, 1, 1) + timedelta(microseconds=found.ns // 1000)
    try:
        if is_iso(time_format):
            return datetime.fromisoformat(re.sub(r"\.\d+$", "", cell)).replace(tzinfo=None)
        return datetime.strptime(cell, time_format).replace(tzinfo=None)
    except ValueError:
        return None


# --------------------------------------------------------------------------------------------------
# Numbers as tables write them: which mark is the decimal one, and which stands between thousands.
#
# A mark decides itself where it occurs twice in a number, beside another one, after a leading 0, or before more or
# fewer than three digits. Whole numbers beside numbers such as 1,234 leave both meanings open, and so does such a
# column alone.
# --------------------------------------------------------------------------------------------------

NUMBER: Final = re.compile(
    r"[+-]?(?=[.,]?\d)(?:\d+|\d{1,3}(?:([ '.,\u00a0\u202f\u2019])\d{3})(?:\1\d{3})*)?(?:([.,])\d*)?(?:[eE][+-]?\d+)?"
)
_THOUSANDS: Final = " '\u00a0\u202f\u2019"


@dataclass(frozen=True, slots=True)
class NumberMarks:
    """The marks of a column of numbers; `is_open` if one mark may be either, and is then both `decimal` and `open`.

    Attributes:
        decimal: the decimal mark.
        thousands: the mark between thousands, "" for none.
        is_open: whether the decimal mark may be the one between thousands.
    """

    decimal: str = "."
    thousands: str = ""
    is_open: bool = False


def parse_number(cell: str, marks: NumberMarks) -> float | None:
    """Return the number of a cell, None if it is none.

    >>> parse_number("1.234,5", NumberMarks(",", ".")), parse_number("n/a", NumberMarks())
    (1234.5, None)
    """
    try:
        return float(cell.replace(marks.thousands, "").replace(marks.decimal, "."))
    except ValueError:
        return None


def marks_of(cells: Iterable[str]) -> NumberMarks:
    """Return the marks of a column of numbers.

    >>> [marks_of(cells) == NumberMarks(*marks) for cells, marks in [(["0,145", "1,234"], ","), (["1.234,5"], ",.")]]
    [True, True]
    >>> [marks_of(cells).is_open for cells in (["987", "1,234"], ["987", "1.5"], ["1,234,567"])]
    [True, False, False]
    """
    numbers = [cell.lstrip("+-") for cell in cells if NUMBER.fullmatch(cell)]
    marked = [[mark for mark in number if mark in ".," + _THOUSANDS] for number in numbers]
    groups = {marks[0] for marks in marked if len(marks) > 1 or (marks and marks[0] in _THOUSANDS)}
    decimals = {marks[-1] for marks in marked if marks and marks[-1] not in groups and len(set(marks)) > 1}
    single = [number for number, marks in zip(numbers, marked, strict=True) if len(marks) == 1 and marks[0] in ".,"]
    marks = ["," if "," in number else "." for number in single]
    sure = {mark for mark, number in zip(marks, single, strict=True) if _is_surely_decimal(number)}
    thousands = next(iter(groups), "")
    found = decimals or sure or {mark for mark in marks if mark not in groups}
    decimal = next(iter(found), "," if thousands == "." else ".")
    is_open = bool(single) and not (groups or sure) and (decimal == "," or len(single) < len(numbers))
    return NumberMarks(decimal, "" if thousands == decimal else thousands, is_open)


def _is_surely_decimal(number: str) -> bool:
    """Return whether the one mark of a number is no mark between thousands."""
    whole, _, rest = number.replace(",", ".").partition(".")
    return len(rest) != 3 or not rest.isdigit() or whole in ("", "0") or len(whole) > 3
