"""Numbers as tables write them: which mark is the decimal one, and which stands between thousands.

A mark decides itself where it occurs twice in a number, beside another one, after a leading 0, or before more or fewer
than three digits. Whole numbers beside numbers such as 1,234 leave both meanings open, and so does such a column alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

_NUMBER = re.compile(
    r"[+-]?(?=[.,]?\d)(?:\d+|\d{1,3}(?:([ '.,\u00a0])\d{3})(?:\1\d{3})*)?(?:([.,])\d*)?(?:[eE][+-]?\d+)?"
)
_THOUSANDS: Final = " '\u00a0"


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


def is_number(cell: str) -> bool:
    """Return whether a cell is a number with any marks.

    >>> [is_number(cell) for cell in ("0,25", "1.234,5", "-3", "1e-3", "E1", "")]
    [True, True, True, True, False, False]
    """
    return _NUMBER.fullmatch(cell) is not None


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
    numbers = [cell.lstrip("+-") for cell in cells if is_number(cell)]
    marked = [[mark for mark in number if mark in ".,'\u00a0 "] for number in numbers]
    groups = {marks[0] for marks in marked if len(marks) > 1 or (marks and marks[0] in _THOUSANDS)}
    decimals = {marks[-1] for marks in marked if marks and marks[-1] not in groups and len(set(marks)) > 1}
    single = [number for number, marks in zip(numbers, marked, strict=True) if len(marks) == 1 and marks[0] in ".,"]
    sure = {_mark(number) for number in single if _is_surely_decimal(number)}
    thousands = next(iter(groups), "")
    found = decimals or sure or {mark for mark in map(_mark, single) if mark not in groups}
    decimal = next(iter(found), "," if thousands == "." else ".")
    is_open = bool(single) and not (groups or sure) and (decimal == "," or len(single) < len(numbers))
    return NumberMarks(decimal, "" if thousands == decimal else thousands, is_open)


def _mark(number: str) -> str:
    return "," if "," in number else "."


def _is_surely_decimal(number: str) -> bool:
    """Return whether the one mark of a number is no mark between thousands."""
    whole, _, rest = number.replace(",", ".").partition(".")
    return len(rest) != 3 or not rest.isdigit() or whole in ("", "0") or len(whole) > 3
