r"""Physical lines: the unit of input. What one line contains never changes how another one is read.

A line ends with a line feed, or with carriage return and line feed; a last line may lack its end. Every line behind
the header is one row, an empty one too, so rows read equal line ends. A line is broken, and rejected by itself, if it

* is empty or longer than `LONGEST_LINE`,
* contains a control character other than a tab: NUL, a carriage return inside the line, DEL, ...
* contains a quote that does not enclose a whole field. A quote opens at the start of a field and closes at its end;
  a doubled quote between them is one quote of the text. Commas may lie between quotes, line ends may not.

Other bytes are judged by the field they are in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Ints = np.ndarray[Any, np.dtype[np.int64]]
Flags = np.ndarray[Any, np.dtype[np.bool_]]
LONGEST_LINE = 64 * 1024
"""Bytes of a line without its end. The publishers' longest lines have 400 bytes; the header is sought in as many."""
_STEP = LONGEST_LINE // 2
_SLICE = 256 * 1024  # counted while the caches hold it
_TAB, _LF, _CR, _QUOTE = b'\t\n\r"'
_IS_CONTROL = np.isin(np.arange(256), [*range(32), 127]) & (np.arange(256) != _TAB)
_OPENS_AFTER = np.isin(np.arange(256), list(b',\n"'))
_CLOSES_BEFORE = np.isin(np.arange(256), list(b',\r\n"'))
_FIELD = re.compile(r'"((?:[^"]|"")*)"(?=,|\Z)|((?!")[^,]*)')


@dataclass(frozen=True, slots=True)
class Lines:
    """The lines (n) of a stretch of bytes: where each begins, where its text ends, and which are broken.

    `empty` lines are broken lines, too.
    """

    starts: Ints
    stops: Ints
    is_empty: Flags
    is_broken: Flags


def count_plain_lines(data: bytes) -> int | None:
    r"""Return the number of lines if at most empty ones are broken and none has a quote; None if some may be.

    >>> count_plain_lines(b"a,1\r\nb,2"), count_plain_lines(b"a\r,1\n"), count_plain_lines(b'"a",1\n')
    (2, None, None)
    """
    if b'"' in data or b"\x7f" in data or _has_long_stretch(data):
        return None
    array = np.frombuffer(data, np.uint8)
    ends = 0
    for start in range(0, len(data), _SLICE):
        part, following = array[start : start + _SLICE], array[start + 1 : start + 1 + _SLICE]
        line_feeds = part == _LF
        in_part = int(np.count_nonzero(line_feeds))
        controls = int(np.count_nonzero(part < 32)) - in_part
        ends += in_part
        if controls:
            returns = part == _CR
            controls -= int(np.count_nonzero(returns[: len(following)] & (following == _LF)))
            controls -= int(np.count_nonzero(part == _TAB)) if controls else 0
        if controls:
            return None
    return ends + (not data.endswith(b"\n") and bool(data))


def _has_long_stretch(data: bytes) -> bool:
    """Return whether there may be a line beyond the limit: half of it, somewhere, without a line end."""
    return any(data.find(b"\n", start, start + _STEP) < 0 for start in range(0, len(data) - _STEP, _STEP))


def find_lines(data: bytes) -> Lines:
    r"""Return the lines of a stretch that begins with one.

    >>> find_lines(b'a,1\n"a,1\n"a",1\r\n\n').is_broken.tolist()
    [False, True, False, True]
    """
    array = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(array == _LF)
    if len(data) and not data.endswith(b"\n"):
        ends = np.append(ends, len(data))
    starts = np.zeros_like(ends)
    starts[1:] = ends[:-1] + 1
    before = array[np.maximum(ends - 1, 0)] if len(data) else array
    stops = ends - ((before == _CR) & (ends > starts))
    is_empty = stops == starts
    is_broken = is_empty | (stops - starts > LONGEST_LINE)
    controls = np.flatnonzero(_IS_CONTROL[array])
    line = np.searchsorted(ends, controls)
    is_broken[line[controls < stops[line]] if len(line) else line] = True
    if b'"' in data:
        is_broken[_lines_with_stray_quotes(array, ends)] = True
    return Lines(starts, stops, is_empty, is_broken)


def _lines_with_stray_quotes(array: np.ndarray[tuple[int], np.dtype[np.uint8]], ends: Ints) -> Ints:
    quotes = np.flatnonzero(array == _QUOTE)
    line = np.searchsorted(ends, quotes)
    opens = (np.arange(len(quotes)) - np.searchsorted(line, line)) % 2 == 0
    before = np.where(quotes > 0, array[quotes - 1], np.uint8(_LF))
    after = np.where(quotes + 1 < len(array), array[np.minimum(quotes + 1, len(array) - 1)], np.uint8(_LF))
    encloses = np.where(opens, _OPENS_AFTER[before], _CLOSES_BEFORE[after])
    is_last = np.append(line[1:] != line[:-1], True)
    stray: Ints = line[~encloses | (opens & is_last)]
    return stray


def without_lines(data: bytes, lines: Lines, dropped: Flags) -> bytes:
    r"""Return the stretch without some of its lines.

    >>> without_lines(b"a\nb\r\nc", find_lines(b"a\nb\r\nc"), np.array([False, True, False]))
    b'a\nc'
    """
    if not dropped.any():
        return data
    lengths = np.diff(np.append(lines.starts, len(data)))
    return np.frombuffer(data, np.uint8)[np.repeat(~dropped, lengths)].tobytes()


def text_of_line(data: bytes, lines: Lines, number: int) -> str:
    """Return the text of a line as it is in the file, at most its first `LONGEST_LINE` bytes."""
    start, stop = int(lines.starts[number]), int(lines.stops[number])
    return data[start : min(stop, start + LONGEST_LINE)].decode("utf-8", "replace")


def split_fields(line: str) -> list[str]:
    """Return the fields of one line; none of an empty one or one with a quote that does not close, or a carriage return.

    >>> split_fields('a, "b" ,"c,d","e""f",'), split_fields('a,"b')
    (['a', ' "b" ', 'c,d', 'e"f', ''], [])
    """
    fields, at = [], 0
    while line and at <= len(line) and "\r" not in line:
        field = _FIELD.match(line, at)
        if field is None:
            return []
        quoted, bare = field.groups()
        fields.append(bare if quoted is None else quoted.replace('""', '"'))
        at = field.end() + 1
    return fields


def column_names(line: str) -> list[str]:
    """Return the names of a header line without the blanks around them; none if it cannot be split.

    >>> column_names('a, "b" ,"c,d"')
    ['a', '"b"', 'c,d']
    """
    return [name.strip() for name in split_fields(line)]


def first_cells(lines: Sequence[str], position: int, *, fields: int) -> Iterator[str]:
    """Yield one column of some lines, lines with another number of fields omitted."""
    for line in lines:
        cells = split_fields(line)
        if len(cells) == fields:
            yield cells[position].strip()
