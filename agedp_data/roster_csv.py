"""Roster text: `household_id,from,to[,group columns]` -> rows. A large, well-formed file is parsed by columns.

Each file is parsed by one of two parsers with the same result. The parser of columns (pyarrow) takes a file whose every
line it understands; whatever it is not sure of goes to the parser of lines, which knows each line's number and error.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from datetime import date
from functools import lru_cache
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from agedp_data.datasets.timestamps import day_number
from agedp_data.datasets.validation import Flags, Ints
from agedp_data.roster_rows import FIXED_COLUMNS, NO_LAST_DAY, READ_OFF_MARK, ParsedRoster, check_header, roster_error
from agedp_data.text_columns import TextColumn

_BLANKS: Final = " \t"
_BOM: Final = "\ufeff".encode()
_LONGEST_FIELD: Final = 131_072
"""The `csv` module refuses longer fields."""
_TEXTS: Final = pa.dictionary(pa.int32(), pa.string())


def parse_csv(path: str, content: bytes) -> ParsedRoster:
    """Return the rows of a roster's text.

    Raises:
        InputError: the text or one of its lines cannot be parsed.
    """
    parsed = parse_columns(content)
    return parse_lines(path, content) if parsed is None else parsed


def parse_columns(content: bytes) -> ParsedRoster | None:
    """Return the rows of a well-formed text; None where a line needs the parser of lines."""
    content = content.removeprefix(_BOM)
    if b"\0" in content or not _is_utf8(content):
        return None
    plain = _without_quotes(content)
    if plain is None:
        return None
    mark, _, rest = plain.partition(b"\n") if plain.startswith(READ_OFF_MARK.encode()) else (b"", b"", plain)
    header_line, _, body = rest.partition(b"\n")
    body = body.rstrip(b"\n")
    names = [name.strip() for name in header_line.decode().split(",")]
    if names[:3] != FIXED_COLUMNS or len(set(names)) != len(names) or not all(names):
        return None
    is_plain = body and b"\n\n" not in body and not body.startswith(b"\n")
    columns = _read_columns(body, len(names)) if is_plain else None
    return None if columns is None else _parse_cells(names, columns, above=2 if mark else 1, read_off=bool(mark))


def _parse_cells(names: Sequence[str], columns: list[pa.Array], *, above: int, read_off: bool) -> ParsedRoster | None:
    """Return the rows of these cells by column; None if one of them is wrong. `above` lines precede the first."""
    is_row = ~np.logical_and.reduce([_is_blank(column) for column in columns])
    number = np.flatnonzero(is_row) + above + 1
    if not is_row.all():
        columns = [column.filter(pa.array(is_row)) for column in columns]
    first, last = (_parse_days(column) for column in columns[1:3])
    households = pc.utf8_trim(columns[0], characters=_BLANKS)
    if first is None or last is None or _is_blank(households).any():
        return None
    if (first == NO_LAST_DAY).any() or (last < first).any():
        return None
    groups = {name: TextColumn(_trimmed(labels)) for name, labels in zip(names[3:], columns[3:], strict=True)}
    return ParsedRoster(TextColumn(households), first, last, groups, number, "line", read_off)


def _is_utf8(content: bytes) -> bool:
    if content.isascii():
        return True
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


def _without_quotes(content: bytes) -> bytes | None:
    r"""Return a text without carriage returns before line feeds and without quotes; None if they mean more.

    Quotes mean nothing else where they enclose whole fields without a separator, a line end or a quote.

    >>> _without_quotes(b'"A",2013-01-01,\r\n'), _without_quotes(b'"A,B",2013-01-01,\n')
    (b'A,2013-01-01,\n', None)
    """
    if b"\r" in content:
        content = content.replace(b"\r\n", b"\n")
    if b"\r" in content:
        return None
    if b'"' not in content:
        return content
    letters = np.frombuffer(b"\n" + content + b"\n", np.uint8)
    is_end: Flags = (letters == ord(",")) | (letters == ord("\n"))
    quotes, ends = np.flatnonzero(letters == ord('"')), np.flatnonzero(is_end)
    opening, closing = quotes[::2], quotes[1::2]
    if len(quotes) % 2 or not (is_end[opening - 1].all() and is_end[closing + 1].all()):
        return None
    if (np.searchsorted(ends, opening) != np.searchsorted(ends, closing)).any():
        return None
    return bytes(letters[1:-1][letters[1:-1] != ord('"')])


def _read_columns(body: bytes, count: int) -> list[pa.Array] | None:
    """Return the cells of lines by column; None if a line has another number of fields, or a very long one."""
    names = [str(i) for i in range(count)]
    try:
        table = arrow_csv.read_csv(
            pa.BufferReader(body),
            read_options=arrow_csv.ReadOptions(column_names=names, use_threads=False, block_size=2**22),
            parse_options=arrow_csv.ParseOptions(quote_char=False, double_quote=False, ignore_empty_lines=False),
            convert_options=arrow_csv.ConvertOptions(
                column_types={"0": pa.string()} | dict.fromkeys(names[1:], _TEXTS), null_values=[], check_utf8=False
            ),
        )
    except pa.ArrowException:
        return None
    columns = [_one_array(column) for column in table.columns]
    longest = max(int(pc.max(pc.binary_length(_texts(column))).as_py() or 0) for column in columns)
    return columns if longest < _LONGEST_FIELD else None


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    joined = column.unify_dictionaries().combine_chunks()
    return joined.combine_chunks() if isinstance(joined, pa.ChunkedArray) else joined


def _texts(column: pa.Array) -> pa.Array:
    return column.dictionary if pa.types.is_dictionary(column.type) else column


def _is_blank(column: pa.Array) -> Flags:
    """Return which cells are empty."""
    is_blank: Flags = pc.binary_length(_texts(column)).to_numpy(zero_copy_only=False) == 0  # Arrow's needs pandas
    return is_blank[_codes(column)] if pa.types.is_dictionary(column.type) else is_blank


def _codes(column: pa.DictionaryArray) -> Ints:
    codes: Ints = column.indices.to_numpy(zero_copy_only=False)
    return codes


def _trimmed(column: pa.DictionaryArray) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(column.indices, pc.utf8_trim(column.dictionary, characters=_BLANKS))


def _parse_days(column: pa.DictionaryArray) -> Ints | None:
    """Return the days of a column, `NO_LAST_DAY` for an empty cell; None if a text is no day."""
    try:
        days = [_day_or_end(text.strip(_BLANKS)) for text in column.dictionary.to_pylist()]
    except ValueError:
        return None
    return np.array(days, np.int64)[_codes(column)]


def _day_or_end(text: str) -> int:
    return days_since_1970(text) if text else NO_LAST_DAY


def parse_lines(path: str, content: bytes) -> ParsedRoster:
    """Return the rows of a roster's text, line by line.

    Raises:
        InputError: the text or one of its lines cannot be parsed.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise roster_error(path, "is not UTF-8 text") from None
    read_off = text.startswith(READ_OFF_MARK)
    lines = _split_lines(path, text.partition("\n")[2] if read_off else text, above=1 if read_off else 0)
    header = [name.strip() for name in lines[0][1]] if lines else []
    check_header(path, header)
    rows = [_parse_row(path, number, header, cells) for number, cells in lines[1:] if any(cells)]
    return ParsedRoster(
        [row[0] for row in rows],
        np.array([row[1] for row in rows], np.int64),
        np.array([row[2] for row in rows], np.int64),
        {name: [row[3][i] for row in rows] for i, name in enumerate(header[3:])},
        np.array([row[4] for row in rows], np.int64),
        "line",
        read_off,
    )


def _split_lines(path: str, text: str, *, above: int) -> list[tuple[int, list[str]]]:
    """Return the rows of a CSV text, each with the number of its first line in the file; `above` lines precede it."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    lines: list[tuple[int, list[str]]] = []
    number = above + 1
    try:
        for cells in reader:
            lines.append((number, cells))
            number = above + reader.line_num + 1
    except csv.Error as error:
        raise roster_error(path, f"line {number}: is not CSV ({error})") from None
    return lines


def _parse_row(path: str, number: int, header: list[str], cells: list[str]) -> tuple[str, int, int, list[str], int]:
    if len(cells) != len(header):
        raise roster_error(path, f"line {number}: {len(cells)} fields where the header has {len(header)}")
    household, first, last, *groups = (cell.strip(_BLANKS) for cell in cells)
    if not household:
        raise roster_error(path, f"line {number}: no household_id")
    begin = _parse_day(path, number, "from", first)
    end = NO_LAST_DAY if last == "" else _parse_day(path, number, "to", last)
    if end < begin:
        raise roster_error(path, f"line {number}: `to` lies before `from`")
    return household, begin, end, groups, number


def _parse_day(path: str, number: int, column: str, text: str) -> int:
    try:
        return days_since_1970(text)
    except ValueError:
        raise roster_error(path, f"line {number}: `{column}` must be a date like 2013-01-31") from None


@lru_cache(maxsize=2**16)
def days_since_1970(text: str) -> int:
    """Return the number of a day that is written like 2013-01-31.

    Raises:
        ValueError: the text is no such day.
    """
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII):
        raise ValueError(text)
    return day_number(date.fromisoformat(text))
