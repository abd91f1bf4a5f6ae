r"""Physical lines: the unit of input. The content of one line never changes how another line is parsed.

A line ends with a line feed, or with carriage return and line feed; the line end of the last line may be missing.
Every line after the header is one row, including empty lines, so rows read equal line ends. A line is broken, and
rejected by itself, if it

* is empty or longer than `LONGEST_LINE`,
* contains a control character other than a tab: NUL, a carriage return inside the line, DEL, ...
* contains a quote that does not enclose a complete field. A quote opens at the start of a field and closes at its end;
  a doubled quote between them is one quote of the text. Quotes may enclose separators, but no line ends. A cell such
  as `="0123"`, in which spreadsheets keep a number as text, is a text with two ordinary characters.

All other bytes are checked by the field that contains them. Fields are separated by commas, or by the separator that
[input.columns] declares.

A line of a table with a column per meter belongs to several households. There the unit is the cell: a stray quote or a
control character spoils the cell that contains it. Nobody can tell to which columns the cells of a line with too many
or too few belong, nor what lies between the stray quotes of two cells that together enclose a field: such a line is
rejected as a whole, because no household may receive the reading of another one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, Final

import numpy as np

Ints = np.ndarray[Any, np.dtype[np.int64]]
Flags = np.ndarray[Any, np.dtype[np.bool_]]
Bytes = np.ndarray[Any, np.dtype[np.uint8]]
LONGEST_LINE = 64 * 1024
"""Bytes of a line without its end; the header is searched in as many. The publishers' longest lines have 400 bytes."""
_STEP = LONGEST_LINE // 2
_SLICE = 512 * 1024  # counted while the caches hold it
_SEARCHED = 256 * 1024
_TAB, _LF, _CR, _QUOTE = b'\t\n\r"'
_FIRST_PRINTABLE, _DELETE = b" \x7f"
_CRLF = int.from_bytes(b"\r\n", "little")
_IS_CONTROL = np.isin(np.arange(256), [*range(32), 127]) & (np.arange(256) != _TAB)
COMMA: Final = ","


def count_sound_lines(data: bytes, separator: str = COMMA) -> int | None:
    r"""Return the number of lines if no line is broken; a different number, or None, if a line is broken.

    The caller compares the result with the number of rows that its parser returns. The two differ for broken lines:
    the parser skips an empty line, and this function counts a control character within a line as one more.

    >>> count_sound_lines(b'a,1\r\n"b",2'), count_sound_lines(b"a\r,1\n"), count_sound_lines(b'a"b",1\n')
    (2, None, None)
    """
    # a line may exceed the limit where half of it has no line end
    if any(data.find(b"\n", start, start + _STEP) < 0 for start in range(0, len(data) - _STEP, _STEP)):
        return None
    array = np.frombuffer(data, np.uint8)
    has_returns, has_quotes, controls, pairs = b"\r" in data, b'"' in data, 0, 0
    if not has_quotes and (lines := _count_plain_lines(array, has_returns=has_returns)) is not None:
        return lines
    for start in range(0, len(data), _SLICE):
        stop = start + _SLICE
        controls += int(np.count_nonzero(array[start:stop] < 32))
        if data.find(b"\t", start, stop) >= 0:
            controls -= data.count(b"\t", start, stop)
        if has_returns:
            following = array[start + 1 : stop + 1]
            pairs += int(np.count_nonzero((array[start:stop][: len(following)] == _CR) & (following == _LF)))
        if data.find(b"\x7f", start, stop) >= 0:
            return None
    if has_returns and controls != 2 * pairs and controls != pairs + data.count(b"\n"):
        return None
    if has_quotes and len(_stray_quotes(_enclosing(data, separator), separator)):
        return None
    return controls - pairs + (not data.endswith(b"\n") and bool(data))


def _count_plain_lines(array: Bytes, *, has_returns: bool) -> int | None:
    """Return the number of lines of ASCII whose only control characters are line ends of one kind; None for others.

    Two bytes are compared at once, from even and from odd positions: so few passes that counting costs little.
    """
    if len(array) == 0 or array[-1] != _LF:
        return None
    controls = ends = 0
    for start in range(0, len(array), _SLICE):
        piece = array[start : start + _SLICE]
        if piece.max() >= _DELETE:
            return None
        controls += int(np.count_nonzero(piece < _FIRST_PRINTABLE))
        if has_returns:
            for offset in (0, 1):
                pairs = array[start + offset : start + offset + _SLICE]
                pairs = pairs[: len(pairs) // 2 * 2]
                ends += int(np.count_nonzero(pairs.view("<u2") == _CRLF))
        else:
            ends += int(np.count_nonzero(piece == _LF))
    return ends if controls == ends * (1 + has_returns) else None


def is_utf8(data: bytes) -> bool:
    """Return whether bytes are UTF-8."""
    if data.isascii():
        return True
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def line_ends(data: bytes) -> Ints:
    r"""Return the positions of the line ends: line feeds, and the end of the bytes for the last line.

    >>> line_ends(b"a,1\nb").tolist()
    [3, 5]
    """
    ends = np.flatnonzero(np.frombuffer(data, np.uint8) == _LF)
    return ends if data.endswith(b"\n") or not data else np.append(ends, len(data))


def broken_lines(data: bytes, ends: Ints, separator: str = COMMA) -> Flags:
    r"""Return which lines are broken.

    >>> broken_lines(data := b'a,1\n"a,1\n"a",1\r\n\n', line_ends(data)).tolist()
    [False, True, False, True]
    """
    array = np.frombuffer(data, np.uint8)
    starts = _line_starts(ends)
    stops = ends - ((array[np.maximum(ends - 1, 0)] == _CR) & (ends > starts)) if len(ends) else ends
    is_broken: Flags = (stops == starts) | (stops - starts > LONGEST_LINE)
    controls = np.flatnonzero(_IS_CONTROL[array])
    line = np.searchsorted(ends, controls)
    is_broken[line[controls < stops[line]]] = True
    if b'"' in data:
        is_broken[np.searchsorted(ends, _stray_quotes(_enclosing(data, separator), separator))] = True
    return is_broken


def _enclosing(data: bytes, separator: str) -> Bytes:
    r"""Return the bytes with blanks for the quotes of cells such as `="0123"`, which enclose no field.

    >>> _enclosing(b'="01";"a"\n', ";").tobytes()
    b'= 01 ;"a"\n'
    """
    if b'="' in data:
        data = _text_cell(separator).sub(lambda cell: cell[0].replace(b'"', b" "), data)
    return np.frombuffer(data, np.uint8)


@cache
def _text_cell(separator: str) -> re.Pattern[bytes]:
    mark = re.escape(separator).encode()
    return re.compile(rb'(?:(?<=[%b\n])|\A)="[^"%b\r\n]*"(?=[%b\r\n]|\Z)' % (mark, mark, mark))


def _stray_quotes(array: Bytes, separator: str) -> Ints:
    """Return the positions of quotes that do not enclose a complete field of one line."""
    marks = np.flatnonzero((array == _QUOTE) | (array == _LF))
    is_quote = array[marks] == _QUOTE
    number = np.cumsum(is_quote)
    before_line = np.where(is_quote, 0, number)
    np.maximum.accumulate(before_line, out=before_line)
    number -= before_line  # number of each quote within its line, from 1
    quotes, opens = marks[is_quote], number[is_quote] % 2 == 1
    before = np.where(quotes > 0, array[quotes - 1], np.uint8(_LF))
    after = np.where(quotes + 1 < len(array), array[np.minimum(quotes + 1, len(array) - 1)], np.uint8(_LF))
    is_stray = ~np.where(opens, _is_one_of(separator + '\n"')[before], _is_one_of(separator + '\r\n"')[after])
    is_last = np.append(~is_quote[1:], True)[is_quote]
    stray: Ints = quotes[is_stray | (opens & is_last)]
    return stray


@cache
def _is_one_of(characters: str) -> Flags:
    """Return which bytes are one of these characters, shape (256,)."""
    flags: Flags = np.isin(np.arange(256), list(characters.encode("ascii")))
    return flags


@cache
def _field(separator: str) -> re.Pattern[str]:
    mark = re.escape(separator)
    return re.compile(rf'"((?:[^"]|"")*)"(?={mark}|\Z)|((?!")[^{mark}]*)')


@cache
def _cell(separator: str) -> re.Pattern[str]:
    mark = re.escape(separator)
    return re.compile(rf'"(?:[^"]|"")*"(?={mark}|\Z)|[^{mark}]*')


_SOUND_CELL = re.compile(
    r'[^"\x00-\x08\x0a-\x1f\x7f]*|"(?:[^"\x00-\x08\x0a-\x1f\x7f]|"")*"|="[^"\x00-\x08\x0a-\x1f\x7f]*"'
)


def field_counts(data: bytes, ends: Ints, separator: str = COMMA) -> Ints:
    r"""Return the number of fields of each line; no line may be broken.

    >>> field_counts(b'a,"b,c"\nd\n', np.array([7, 9])).tolist()
    [2, 1]
    """
    array = np.frombuffer(data, np.uint8)
    marks = np.flatnonzero(array == ord(separator))
    if b'"' in data:
        quotes = np.flatnonzero(_enclosing(data, separator) == _QUOTE)
        marks = marks[np.searchsorted(quotes, marks) % 2 == 0]
    return 1 + np.bincount(np.searchsorted(ends, marks), minlength=len(ends))


def drop_lines(data: bytes, ends: Ints, dropped: Flags) -> bytes:
    r"""Return the bytes without the dropped lines.

    >>> drop_lines(b"a\nb\r\nc", line_ends(b"a\nb\r\nc"), np.array([False, True, False]))
    b'a\nc'
    """
    if not dropped.any():
        return data
    lengths = np.minimum(ends + 1, len(data)) - _line_starts(ends)
    return np.frombuffer(data, np.uint8)[np.repeat(~dropped, lengths)].tobytes()


def line_texts(data: bytes, numbers: Ints) -> tuple[str, ...]:
    r"""Return the texts of lines as in the file, at most the first `LONGEST_LINE` bytes of each; for quarantine files.

    >>> line_texts(b"a,1\r\nb,2\n", np.array([1]))
    ('b,2',)

    Args:
        data: bytes of whole lines.
        numbers: numbers of the lines to return, from 0, ascending.
    """
    pairs = _line_positions(data, numbers)
    lines = (data[start : min(end, start + LONGEST_LINE + 1)].removesuffix(b"\r") for start, end in pairs)
    return tuple(line[:LONGEST_LINE].decode("utf-8", "replace") for line in lines)


def _line_positions(data: bytes, numbers: Ints) -> Iterator[tuple[int, int]]:
    """Yield the start and the end of these lines; only the parts of the bytes that contain them are searched."""
    array = np.frombuffer(data, np.uint8)
    before, counted, start, stop = 0, 0, 0, 0  # lines that end before `start` and before `stop`
    searched, ends = -1, np.zeros(0, np.int64)
    for number in numbers.tolist():
        while counted <= number and stop < len(data):
            start, before = stop, counted
            stop += _SEARCHED
            counted += int(np.count_nonzero(array[start:stop] == _LF))
        if start != searched:
            searched, ends = start, start + np.flatnonzero(array[start:stop] == _LF)
        first = int(ends[number - before - 1]) + 1 if number > before else data.rfind(b"\n", 0, start) + 1
        yield first, int(ends[number - before]) if number < counted else len(data)


def _line_starts(ends: Ints) -> Ints:
    return np.append(np.zeros(min(len(ends), 1), np.int64), ends[:-1] + 1)


def split_fields(line: str, separator: str = COMMA) -> list[str]:
    """Return the fields of a line; none if it is empty, has a carriage return, or a quote that does not close.

    >>> split_fields('a, "b" ,"c,d","e""f",'), split_fields('a,"b')
    (['a', ' "b" ', 'c,d', 'e"f', ''], [])
    """
    fields, position = [], 0
    while line and position <= len(line) and "\r" not in line:
        field = _field(separator).match(line, position)
        if field is None:
            return []
        quoted, bare = field.groups()
        fields.append(bare if quoted is None else quoted.replace('""', '"'))
        position = field.end() + 1
    return fields


def raw_cells(line: str, separator: str = COMMA) -> list[str]:
    """Return the cells of any line as they are written; a quote that does not enclose a complete cell is a character.

    >>> raw_cells('a,"b,c","d,e')
    ['a', '"b,c"', '"d', 'e']
    """
    cells, position = [], 0
    while position <= len(line):
        cell = _cell(separator).match(line, position)
        if cell is None:
            raise RuntimeError("every text begins with a cell")
        cells.append(cell.group())
        position = cell.end() + 1
    return cells


def raw_cells_from_end(line: str, separator: str = COMMA) -> list[str]:
    """Return the cells of any line as `raw_cells`, divided from its end to its beginning.

    With one cell spoilt, by anything but a separator or a line end, this divides the others as a sound line. From the
    beginning it would not: a number such as ",5" begins with the characters that close a stray quote before it, and
    none ends with them.

    >>> raw_cells_from_end('"2,3,",5"'), raw_cells('"2,3,",5"')
    (['"2', '3', '",5"'], ['"2,3,"', '5"'])
    """
    return [cell[::-1] for cell in reversed(raw_cells(line[::-1], separator))]


def is_sound_cell(cell: str) -> bool:
    r"""Return whether a cell as it is written has no control character but tabs, and no quote that encloses no cell.

    >>> is_sound_cell('"0,5"'), is_sound_cell('0"5'), is_sound_cell("0\x005")
    (True, False, False)
    """
    return _SOUND_CELL.fullmatch(cell) is not None


def column_names(line: str, separator: str = COMMA) -> list[str]:
    """Return the column names of a header line without surrounding blanks; none if it cannot be split.

    >>> column_names('a, "b" ,"c,d"')
    ['a', '"b"', 'c,d']
    """
    return [name.strip(" \t") for name in split_fields(line, separator)]


def has_index(columns: Sequence[str]) -> bool:
    """Return whether the first column is the index of a data frame, which a table has once it was saved with it.

    >>> has_index(["", "id"]), has_index(["Unnamed: 0", "id"]), has_index(["id", ""])
    (True, True, False)
    """
    return bool(columns) and columns[0].strip('"').lower() in ("", "unnamed: 0")


def first_cells(lines: Sequence[str], position: int, *, fields: int, separator: str = COMMA) -> Iterator[str]:
    """Yield one column of lines; lines with a different number of fields are skipped.

    >>> list(first_cells(["A,30", "B", "C,60"], 1, fields=2))
    ['30', '60']
    """
    for line in lines:
        cells = split_fields(line, separator)
        if len(cells) == fields:
            yield cells[position].strip()
