"""ISO timestamps of one width as whole columns: eight characters of all rows are one array of 64-bit words.

Files contain millions of timestamps such as `2013-01-31 00:30:00.0000000`, all of one width. Their digits are checked
and combined by arithmetic on words instead of parsing one cell after the other. A cell is parsed here only if it has
exactly this form, an existing minute of the years 1970 to 2199 and no seconds; all other cells are left to
`csv_parsing`, so the result of a cell is the same whichever of the two parses it.

The words of `2013-01-31 00:30` are `2013-01-` and `31 00:30`: the month, parsed once for each run of equal months, and
the minute within it.
"""

from __future__ import annotations

import calendar
import re
from datetime import date
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pyarrow as pa

from agedp_data.datasets.layout import BETWEEN_MINUTES
from agedp_data.datasets.timestamps import SHORTEST_ISO, day_number
from agedp_data.datasets.validation import FIRST_DAY, LAST_DAY, Bytes, Flags, Ints

Int32s = np.ndarray[Any, np.dtype[np.int32]]
_Words = np.ndarray[Any, np.dtype[np.uint64]]

_WORD: Final = 8
_ZERO_SECONDS: Final = b":00.000000000"
_WIDTHS: Final = (SHORTEST_ISO, SHORTEST_ISO + 3, *range(SHORTEST_ISO + 5, SHORTEST_ISO + len(_ZERO_SECONDS) + 1))
_MINUTES_OF_DAY, _QUARTERS_OF_DAY, _QUARTER_MINUTES = 1440, 96, 15
_MAX_MONTHS_PER_ROW: Final = 1 / 16
_MONTH = re.compile(rb"(\d{4})-(\d\d)-")


def _word(characters: bytes) -> np.uint64:
    return np.uint64(int.from_bytes(characters, "little"))


_TOP_BITS = _word(b"\x80" * _WORD)
_ABOVE_NINE = _word(bytes([0x76, 0x76, 0x7F, 0x76, 0x76, 0x7F, 0x76, 0x76]))  # added to a digit above 9: the top bit
_TENS_AND_ONES = np.uint64(10 * 256 + 1)
_DAY_HOUR_MINUTE = _word(b"\xff\x00\x00\xff\x00\x00\xff\x00")
_TOO_LATE = _word(bytes([0x80 - 32, 0, 0, 0x80 - 24, 0, 0, 0x80 - 60, 0]))
_MINUTE_OF_MONTH = np.uint64(_MINUTES_OF_DAY << 48 | 60 << 24 | 1)  # a product's top 16 bits are their sum


def parse_iso_cells(cells: pa.Array) -> tuple[Int32s, Bytes, Flags] | None:
    """Return quarters of an hour since 1970, the minutes past them, and which cells are not parsed here.

    None if the cells have different widths, none of an ISO timestamp, or many changes of the month. The first two
    results of a cell that is not parsed have no meaning.

    >>> cells = pa.array(["2013-01-31 00:30:00", "2013-01-31 00:31:00", "2013-01-31 00:31:07"])
    >>> [values.tolist() for values in parse_iso_cells(cells)]
    [[1510658, 1510658, 1510658], [0, 1, 1], [False, False, True]]

    Args:
        cells: texts or bytes without nulls, shape (n,), at least one.
    """
    width = _common_width(cells)
    if width not in _WIDTHS:
        return None
    months = _load_words(cells, width, 0)
    starts = np.append(0, np.flatnonzero(months[1:] != months[:-1]) + 1)
    if len(starts) > max(1.0, len(cells) * _MAX_MONTHS_PER_ROW):
        return None
    minute, is_other = _minutes_of_month(cells, width)
    if width > SHORTEST_ISO:
        is_other |= _have_seconds(cells, width)
    first_quarter, minutes = np.array([_month_of_word(int(word)) for word in months[starts]], np.int32).T
    lengths = np.diff(starts, append=len(cells))
    latest, earliest = (reduction.reduceat(minute, starts) for reduction in (np.maximum, np.minimum))
    if ((latest >= minutes) | (earliest < _MINUTES_OF_DAY)).any():  # day 0 or 31 February
        is_other |= (minute >= np.repeat(minutes, lengths)) | (minute < _MINUTES_OF_DAY)
    quarter = minute // np.int32(_QUARTER_MINUTES)
    past: Bytes = (minute - quarter * np.int32(_QUARTER_MINUTES)).astype(np.uint8)
    quarter += np.repeat(first_quarter, lengths)
    return quarter, past, is_other


def _common_width(cells: pa.Array) -> int:
    """Return the bytes of each cell if all have as many, else 0."""
    offsets = np.frombuffer(cells.buffers()[1], np.int32)[cells.offset : cells.offset + len(cells) + 1]
    widths = offsets[1:] - offsets[:-1]
    return int(widths[0]) if widths.min() == widths.max() else 0


def run_starts(cells: pa.Array) -> Ints | None:
    """Return where a cell differs from the one before, from 0 on; None if the cells have different widths, or none.

    >>> run_starts(pa.array(["A1", "A1", "B1", "A1"])).tolist()
    [0, 2, 3]

    Args:
        cells: texts or bytes without nulls, shape (n,).
    """
    width = _common_width(cells) if len(cells) else 0
    if not width:
        return None
    _, offsets, characters = cells.buffers()
    first = int(np.frombuffer(offsets, np.int32)[cells.offset])
    column = np.frombuffer(characters, np.uint8)[first : first + width * len(cells)]
    changed = np.flatnonzero(column[width:] != column[:-width]) // width + 1
    is_first = np.ones(len(changed), bool)
    is_first[1:] = changed[1:] != changed[:-1]
    return np.append(0, changed[is_first])


def _load_words(cells: pa.Array, width: int, position: int) -> _Words:
    """Return eight characters of each cell, from `position` on, as words whose lowest byte is the first character."""
    _, offsets, characters = cells.buffers()
    first = int(np.frombuffer(offsets, np.int32)[cells.offset])
    return np.ascontiguousarray(np.ndarray(len(cells), "<u8", characters, first + position, (width,)))


def _minutes_of_month(cells: pa.Array, width: int) -> tuple[Int32s, Flags]:
    """Return the minutes from the beginning of the month's day 0 of `31 00:30`, and which cells have another form.

    Digits that are subtracted from their characters have no top bit, also after the addition of 0x76; separators that
    are subtracted are 0. A product with 2561 adds ten times the first of two digits to the second.
    """
    words = _load_words(cells, width, _WORD)
    separator = words[:1].tobytes()[2:3]
    digits = words ^ _word(b"00" + (separator if separator in b" T" else b" ") + b"00:00")
    parts = ((digits * _TENS_AND_ONES) >> np.uint64(8)) & _DAY_HOUR_MINUTE
    flaws = (digits | (digits + _ABOVE_NINE) | (parts + _TOO_LATE)) & _TOP_BITS
    minute = ((parts * _MINUTE_OF_MONTH) >> np.uint64(48)).astype(np.int32)
    return minute, flaws != 0


def _have_seconds(cells: pa.Array, width: int) -> Flags:
    """Return which cells do not end with zero seconds, shape (n,)."""
    ending = _ZERO_SECONDS[: width - SHORTEST_ISO]
    last = ending[-_WORD:].rjust(_WORD, b"\0")  # of a shorter ending only its own bytes are compared
    mask = _word(bytes(0xFF * (byte > 0) for byte in last))
    differences = (_load_words(cells, width, width - _WORD) & mask) ^ _word(last)
    if len(ending) > _WORD:
        differences |= _load_words(cells, width, SHORTEST_ISO) ^ _word(ending[:_WORD])
    have_seconds: Flags = differences != 0
    return have_seconds


@lru_cache(maxsize=4096)
def _month_of_word(word: int) -> tuple[int, int]:
    """Return the first quarter of day 0 of the month `2013-01-`, and the minutes to its end; 0 minutes for no month."""
    match = _MONTH.fullmatch(word.to_bytes(_WORD, "little"))
    year, month = (int(digits) for digits in match.groups()) if match else (0, 0)
    if not (FIRST_DAY.year <= year <= LAST_DAY.year and 1 <= month <= 12):
        return 0, 0
    days = calendar.monthrange(year, month)[1]
    return (day_number(date(year, month, 1)) - 1) * _QUARTERS_OF_DAY, (days + 1) * _MINUTES_OF_DAY


def quarters_of_ns(ns: Ints) -> tuple[Int32s, Bytes]:
    """Return quarters of an hour since 1970 of nanoseconds, and the minutes past them; 255 if it is not on a minute.

    >>> [values.tolist() for values in quarters_of_ns(np.array([-1, 0, 960_000_000_000]))]
    [[-1, 0, 1], [255, 0, 1]]
    """
    minute = ns // _MINUTE_NS
    quarter = minute // _QUARTER_MINUTES
    past = np.where(minute * _MINUTE_NS == ns, minute - quarter * _QUARTER_MINUTES, BETWEEN_MINUTES)
    return quarter.astype(np.int32), past.astype(np.uint8)


_MINUTE_NS: Final = 60 * 10**9
