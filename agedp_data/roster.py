"""The roster, who is a member on which day: `household_id,from,to[,group columns]`, as text or as a Parquet table.

Both days are included; an empty `to` means that the membership has not ended. A household may have several rows on
different days (it left and came back, or changed its group). Membership is public in the guarantee; the file itself is
confidential, so messages name a line or row, never a household.

Example: the row `A,2013-01-01,2013-03-31,north` makes household A a member of group north for 90 days.

Several columns, the finest first, are a hierarchy: ("feeder", "area"). Its groups are paths, the coarsest first:
"north/F12". So each group lies in exactly one coarser group, whatever the labels are.

Decisions:

* A million households are Arrow arrays and numbers of groups, not Python texts.
* Numbers of households by group are known without the rows (`roster_rows`): a plan loads no id.
"""

from __future__ import annotations

import csv
import hashlib
import io
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import date
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import csv as arrow_csv

from agedp_data.datasets import filesystem
from agedp_data.datasets.filesystem import is_parquet
from agedp_data.datasets.timestamps import day_number
from agedp_data.datasets.validation import Flags, Ints
from agedp_data.errors import InputError
from agedp_data.messages import suggest_file
from agedp_data.roster_rows import (
    ALL,
    FIXED_COLUMNS,
    NO_LAST_DAY,
    PATH_SEPARATOR,
    READ_OFF_MARK,
    GroupColumns,
    NumberedGroups,
    ParsedRoster,
    RosterCounts,
    RosterRows,
    TextColumn,
    check_header,
    columns_of,
    columns_text,
    group_columns,
    number_groups,
    one_array,
    roster_error,
    sort_rows,
)

__all__ = [
    "ALL",
    "FIXED_COLUMNS",
    "PATH_SEPARATOR",
    "READ_OFF_MARK",
    "GroupColumns",
    "Roster",
    "RosterCounts",
    "columns_of",
    "columns_text",
    "format_roster",
    "group_columns",
    "parse_roster",
    "read_roster",
    "read_roster_bytes",
]


# --------------------------------------------------------------------------------------------------
# Roster text: `household_id,from,to[,group columns]` -> rows. A large, well-formed file is parsed by columns.
#
# Each file is parsed by one of two parsers with the same result. The parser of columns (pyarrow) takes a file whose
# every line it understands; whatever it is not sure of goes to the parser of lines, which knows each line's number and
# error.
# --------------------------------------------------------------------------------------------------

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
    columns = [one_array(column) for column in table.columns]
    longest = max(int(pc.max(pc.binary_length(_texts(column))).as_py() or 0) for column in columns)
    return columns if longest < _LONGEST_FIELD else None


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
        texts = [text.strip(_BLANKS) for text in column.dictionary.to_pylist()]
        days = [days_since_1970(text) if text else NO_LAST_DAY for text in texts]
    except ValueError:
        return None
    return np.array(days, np.int64)[_codes(column)]


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


# --------------------------------------------------------------------------------------------------
# Roster tables: Parquet columns `household_id`, `from`, `to` and group columns -> rows.
#
# Columns are found by name, in any order. A household is a text or a whole number, a day a date or an ISO text; an
# empty or missing `to` has not ended. Labels are texts, dictionaries of texts, or whole numbers; a missing label is
# empty. Rows are numbered from 1. Errors name the column in public and the row in private: the row of a table is no
# line of a text that its reader has in front of them.
# --------------------------------------------------------------------------------------------------

_INDEX: Final = "__index_level_"
_FIRST_DAY, _LAST_DAY = day_number(date.min), day_number(date.max)
_MISSING, _WRONG = int(np.iinfo(np.int64).min), int(np.iinfo(np.int64).min) + 1


def parse_parquet(path: str, content: bytes) -> ParsedRoster:
    """Return the rows of a roster in a Parquet file.

    Raises:
        InputError: it is not Parquet, a column has another type, or a row cannot be parsed.
    """
    table = _read_table(path, content)
    names = [name for name in table.column_names if not name.startswith(_INDEX)]
    fixed = [name for name in FIXED_COLUMNS if name in names]
    check_header(path, fixed + [name.strip() for name in names if name not in fixed])
    texts = {name: _texts_without_blanks(path, name, table[name]) for name in names if name not in ("from", "to")}
    days = {name: _days(path, name, table[name]) for name in ("from", "to")}
    del table  # of a million households, so that its columns are not held twice
    is_row = _is_row(texts, days)
    _check_rows(path, texts["household_id"], days, is_row)
    if not is_row.all():
        texts = {name: column.filter(pa.array(is_row)) for name, column in texts.items()}
        days = {name: column[is_row] for name, column in days.items()}
    return ParsedRoster(
        TextColumn(texts["household_id"]),
        days["from"],
        np.where(days["to"] == _MISSING, NO_LAST_DAY, days["to"]),
        {name.strip(): TextColumn(column) for name, column in texts.items() if name != "household_id"},
        np.flatnonzero(is_row) + 1,
        "row",
    )


def _read_table(path: str, content: bytes) -> pa.Table:
    try:
        return pq.ParquetFile(pa.BufferReader(content), page_checksum_verification=True).read(use_threads=False)
    except (pa.ArrowException, OSError, EOFError, UnicodeDecodeError, ValueError):  # an ArrowInvalid quotes values
        raise roster_error(path, "is not Parquet, or is cut off or damaged; write it again") from None


def _texts_without_blanks(path: str, name: str, column: pa.ChunkedArray) -> pa.Array:
    """Return a column of texts or whole numbers as texts without blanks around them; "" for a null."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    if pa.types.is_null(kind) and name != "household_id":  # a column of labels without any label
        column, is_text = column.cast(pa.string()), True
    if not (is_text or pa.types.is_integer(kind)):
        raise roster_error(path, f"column {name} must be text or whole numbers")
    try:
        if pa.types.is_dictionary(column.type):
            encoded = column.unify_dictionaries().combine_chunks()
            joined = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
        else:
            joined = _joined(column.cast(pa.string()))
            joined = joined if name == "household_id" else joined.dictionary_encode()
        return _plain_texts(joined)
    except (pa.ArrowException, UnicodeDecodeError):
        raise roster_error(path, f"column {name} is not UTF-8 text") from None


def _plain_texts(array: pa.Array) -> pa.Array:
    if not pa.types.is_dictionary(array.type):
        array.validate(full=True)
        return pc.utf8_trim(array.fill_null(""), characters=_BLANKS)
    if array.null_count or array.dictionary.null_count:  # a null is the label ""
        return _plain_texts(array.cast(array.type.value_type).cast(pa.string())).dictionary_encode()
    labels = array.dictionary.cast(pa.string())
    labels.validate(full=True)
    return pa.DictionaryArray.from_arrays(array.indices, pc.utf8_trim(labels, characters=_BLANKS))


def _joined(column: pa.ChunkedArray) -> pa.Array:
    joined = column.combine_chunks()
    return joined.combine_chunks() if isinstance(joined, pa.ChunkedArray) else joined


def _days(path: str, name: str, column: pa.ChunkedArray) -> Ints:
    """Return the days of a column since 1970, `_MISSING` for none and `_WRONG` for what is no day."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_null(kind):
        return np.full(len(column), _MISSING)
    if pa.types.is_date(kind) or (pa.types.is_timestamp(kind) and kind.tz is None):
        try:
            dates = column.cast(kind).cast(pa.date32())
            is_whole = pc.all(pc.equal(dates.cast(kind), column.cast(kind))).as_py() is not False
        except pa.ArrowException:
            is_whole = False
        if not is_whole:  # a time of day
            raise _day_error(path, name)
        numbers = _joined(dates.cast(pa.int32()).cast(pa.int64()))
        days: Ints = numbers.fill_null(_MISSING).to_numpy(zero_copy_only=False)
        is_wrong = (days != _MISSING) & ((days < _FIRST_DAY) | (days > _LAST_DAY))
        return np.where(is_wrong, _WRONG, days) if is_wrong.any() else days
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)):
        raise _day_error(path, name)
    texts = _texts_without_blanks(path, name, column)
    labels = np.array([_day_of(text) for text in texts.dictionary.to_pylist()] or [_MISSING], np.int64)
    numbers_of_rows: Ints = labels[texts.indices.to_numpy(zero_copy_only=False)]
    return numbers_of_rows


def _day_error(path: str, name: str) -> InputError:
    advice = "; write it as dates, without a time of day or a time zone"
    return roster_error(path, f"column {name} must contain dates or texts like 2013-01-31{advice}")


def _day_of(text: str) -> int:
    try:
        return days_since_1970(text) if text else _MISSING
    except ValueError:
        return _WRONG


def _is_row(texts: dict[str, pa.Array], days: dict[str, Ints]) -> Flags:
    """Return which rows have a value: a row without any is skipped, as an empty line is."""
    is_row: Flags = (days["from"] != _MISSING) | (days["to"] != _MISSING)
    for column in texts.values():
        is_row = is_row | ~_is_empty(column)
    return is_row


def _is_empty(column: pa.Array) -> Flags:
    is_encoded = pa.types.is_dictionary(column.type)
    lengths = pc.binary_length(column.dictionary if is_encoded else column)
    is_empty: Flags = pc.equal(lengths, 0).to_numpy(zero_copy_only=False).astype(bool)
    return is_empty[column.indices.to_numpy(zero_copy_only=False)] if is_encoded else is_empty


def _check_rows(path: str, households: pa.Array, days: dict[str, Ints], is_row: Flags) -> None:
    """Check the rows one by one.

    Raises:
        InputError: the first row with an error, and its first error.
    """
    first, last = days["from"], days["to"]
    problems: list[tuple[Flags, str, str]] = [
        (_is_empty(households), "household_id", "no household_id"),
        (first <= _WRONG, "from", "`from` must be a date like 2013-01-31"),
        (last == _WRONG, "to", "`to` must be a date like 2013-01-31"),
        ((last > _WRONG) & (last < first), "to", "`to` lies before `from`"),
    ]
    errors = [
        (int(rows[0]), column, text)
        for is_wrong, column, text in problems
        if len(rows := np.flatnonzero(is_wrong & is_row))
    ]
    if errors:
        row, column, text = min(errors, key=lambda error: error[0])
        raise roster_error(path, f"row {row + 1}: {text}", public=f"column {column}, in a row: {text}")


# --------------------------------------------------------------------------------------------------
# The roster, and reading it.
# --------------------------------------------------------------------------------------------------


class Roster:
    """A roster: the numbers of households by group on each day, and its rows, which are read when they are needed.

    Rows (n): index into `ids` (sorted, distinct), first and last day (since 1970), group columns as text.
    `read_off` is True while the file still begins with the line that `agedp init` writes.

    Attributes:
        read_off: whether the roster is as `agedp init` wrote it.
        file_digest: SHA-256 of the bytes of its file, "" where it is of no file.
    """

    def __init__(
        self,
        ids: Sequence[str],
        household: Ints,
        first: Ints,
        last: Ints,
        groups: Mapping[str, Sequence[str]],
        read_off: bool = False,
    ) -> None:
        self.read_off, self.file_digest = read_off, ""
        self._rows: RosterRows | None = RosterRows(ids, household, first, last, groups)
        self._counts: RosterCounts | None = None
        self._load: Callable[[], RosterRows] | None = None
        self._numbered: dict[GroupColumns, NumberedGroups] = {}

    @classmethod
    def of_rows(cls, rows: RosterRows, *, read_off: bool, file_digest: str) -> Self:
        """Return the roster of the rows of a file."""
        roster = cls(rows.ids, rows.household, rows.first, rows.last, rows.groups, read_off)
        roster.file_digest = file_digest
        return roster

    @classmethod
    def of_counts(cls, counts: RosterCounts, load: Callable[[], RosterRows], *, file_digest: str) -> Self:
        """Return a roster of which the numbers are known; `load` returns its rows when they are needed first."""
        no_days = np.zeros(0, np.int64)
        roster = cls((), no_days, no_days, no_days, {}, counts.read_off)
        roster._rows, roster._counts, roster._load, roster.file_digest = None, counts, load, file_digest
        return roster

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how another process makes this roster, with its rows."""
        return _roster_of, (self.rows, self.read_off, self.file_digest)

    @property
    def rows(self) -> RosterRows:
        """Return the rows, which are read now if they were not needed before."""
        if self._rows is None:
            if self._load is None:
                raise RuntimeError("a roster has neither rows nor a file")
            self._rows = self._load()
        return self._rows

    @property
    def has_rows(self) -> bool:
        """Return whether the rows are in memory."""
        return self._rows is not None

    @property
    def ids(self) -> Sequence[str]:
        """Return the households, sorted and distinct."""
        return self.rows.ids

    @property
    def household(self) -> Ints:
        """Return the index of each row's household."""
        return self.rows.household

    @property
    def first(self) -> Ints:
        """Return the first day of each row."""
        return self.rows.first

    @property
    def last(self) -> Ints:
        """Return the last day of each row."""
        return self.rows.last

    @property
    def groups(self) -> Mapping[str, Sequence[str]]:
        """Return the labels of the rows by group column."""
        return self.rows.groups

    @property
    def counts(self) -> RosterCounts:
        """Return the numbers of households, without ids."""
        if self._counts is None:
            self._counts = RosterCounts.of_rows(self.first, self.last, self.groups, read_off=self.read_off)
        return self._counts

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the group columns."""
        return tuple(self.groups if self._counts is None else self._counts.groups)

    def on(self, day: date) -> Flags:
        """Return which rows are valid on a day, both dates of a row included.

        Returns:
            Flags, shape (n,); a household has at most one valid row a day.
        """
        number = day_number(day)
        counted: Flags = (self.first <= number) & (number <= self.last)
        return counted

    def households(self, day: date) -> int:
        """Return the number of households on the roster on a day."""
        return self.counts.households(day)

    def has(self, by: GroupColumns) -> bool:
        """Return whether the roster has these group columns."""
        return all(column in self.columns for column in columns_of(by))

    def cells(self, day: date, by: GroupColumns) -> tuple[tuple[str, int], ...]:
        """Return the groups of a day with their numbers of households, as `RosterCounts.cells`.

        Raises:
            KeyError: the roster has no such column.
        """
        return self.counts.cells(day, by)

    def members(self, day: date, by: GroupColumns) -> dict[str, Ints]:
        """Return the households of each group on a day; use it to select their daily totals.

        Args:
            day: day of the data.
            by: group column, or several, the finest first; None for one group "all".

        Returns:
            Indices into `ids` by group, the groups sorted as in `cells`.

        Raises:
            KeyError: the roster has no such column.
        """
        rows = np.flatnonzero(self.on(day))
        if by is None:
            return {ALL: self.household[rows]}
        if by not in self._numbered:
            self._numbered[by] = number_groups(self.groups, by)
        labels, numbers = self._numbered[by]
        ordered = self.household[rows[np.argsort(numbers[rows], kind="stable")]]
        ends = np.cumsum(np.bincount(numbers[rows], minlength=len(labels))).tolist()
        places = zip(labels, pairwise([0, *ends]), strict=True)
        return {label: ordered[start:end] for label, (start, end) in places if end > start}


def _roster_of(rows: RosterRows, read_off: bool, file_digest: str) -> Roster:
    return Roster.of_rows(rows, read_off=read_off, file_digest=file_digest)


def read_roster(path: str | Path, *, path_columns: Collection[str] = ()) -> Roster:
    """Return the roster of a file, text or Parquet, at a path or a URL.

    Args:
        path: the file; a name that ends with .parquet is a table.
        path_columns: columns of hierarchies, whose groups are named by paths: their labels are not empty and have no
            "/".

    Raises:
        InputError: the file or one of its rows cannot be parsed, or rows of one household overlap.
    """
    return parse_roster(str(path), read_roster_bytes(str(path)), path_columns=path_columns)


def parse_roster(path: str, content: bytes, *, path_columns: Collection[str] = ()) -> Roster:
    """Return the roster of the bytes of a file.

    Raises:
        InputError: as `read_roster`.
    """
    parsed = (parse_parquet if is_parquet(path) else parse_csv)(path, content)
    rows = sort_rows(path, parsed, path_columns)
    return Roster.of_rows(rows, read_off=parsed.read_off, file_digest=hashlib.sha256(content).hexdigest())


def read_roster_bytes(location: str) -> bytes:
    """Return the bytes of a roster file, at a path or a URL.

    Raises:
        InputError: it cannot be read.
    """
    if filesystem.is_url(location):
        return filesystem.read_bytes(location, "[population] roster")
    path = Path(location)
    try:
        if path.exists() and not path.is_file():  # a folder, or a pipe that might never end
            raise roster_error(location, "is not a file; `agedp init` writes a first one")
        return path.read_bytes()
    except OSError as error:
        reason = f"cannot be read ({error.strerror}); `agedp init` writes a first one"
        raise roster_error(location, reason, "" if path.exists() else suggest_file(path)) from None


def format_roster(spans: Iterable[tuple[str, date, date | None]]) -> str:
    """Return the text of a roster file, marked as read off the data.

    Args:
        spans: (household, first day, last day) triples; a last day of None has not ended.

    >>> print(format_roster([("A", date(2013, 1, 1), None)]).splitlines()[-1])
    A,2013-01-01,
    """
    lines = [f"{READ_OFF_MARK} by `agedp init`; delete this line once the list comes from your customer records"]
    lines.append(",".join(FIXED_COLUMNS))
    lines += [f"{_quote_field(household)},{first},{'' if last is None else last}" for household, first, last in spans]
    return "\n".join(lines) + "\n"


def _quote_field(text: str) -> str:
    # csv.writer leaves a lone carriage return unquoted, which other readers take for a line end.
    return '"' + text.replace('"', '""') + '"' if any(char in text for char in ',"\r\n') else text
