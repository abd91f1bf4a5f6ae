"""The roster, who is a member on which day: `household_id,from,to[,group columns]`, as text or as a Parquet table.

Both days are included; an empty `to` means that the membership has not ended. A household may have several rows on
different days (it left and came back, or changed its group). Membership is public in the guarantee; the file itself is
confidential, so messages name a line or row, never a household.

Example: the row `A,2013-01-01,2013-03-31,north` makes household A a member of group north for 90 days.

Several columns, the finest first, are a hierarchy: ("feeder", "area"). Its groups are paths, the coarsest first:
"north/F12". So each group lies in exactly one coarser group, whatever the labels are.

Decisions:

* A million households are Arrow arrays and numbers of groups, not Python texts.
* Numbers of households by group are known without the rows (`RosterCounts`): a plan loads no id.
* A parser gives columns of texts and days, and the rules are checked on columns: a household and a day in each row,
  labels of a hierarchy that can be parts of a path, at most one row a day of a household.
* A text is parsed by one of two parsers with the same result. The parser of columns (pyarrow) takes a file whose every
  line it understands; whatever it is not sure of goes to the parser of lines, which knows each line's number.
* The columns of a table are found by name, in any order. A household is a text or a whole number, a day a date or an
  ISO text; labels are texts, dictionaries of texts, or whole numbers. A null is an empty cell. Errors name the column
  in public and the row, counted from 1, in private: the row of a table is no line of a text that its reader has in
  front of them.

A column of texts in one Arrow array: a million household ids take the room of their letters.

>>> column = TextColumn(pa.array(["A", "B"]))
>>> column[1], len(column), column == ("A", "B")
('B', 2, True)
"""

from __future__ import annotations

import csv
import hashlib
import io
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date
from functools import lru_cache, partial
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any, Final, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import csv as arrow_csv

from agedp_data.datasets import filesystem
from agedp_data.datasets.csv_lines import is_utf8
from agedp_data.datasets.layout import is_text, one_array
from agedp_data.datasets.timestamps import day_number
from agedp_data.datasets.validation import Flags, Ints
from agedp_data.errors import InputError
from agedp_data.messages import suggest_file

_BATCH = 2**16


class TextColumn(Sequence[str]):
    """A sequence of texts over an Arrow array of text, or of a dictionary of texts; it has no nulls.

    It equals every sequence of the same texts. Iteration makes one batch of Python texts at a time.
    """

    __slots__ = ("array",)

    def __init__(self, array: pa.Array) -> None:
        self.array = array

    def __len__(self) -> int:
        """Return the number of texts."""
        return len(self.array)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        """Return one text, or a part of the column."""
        if isinstance(index, slice):
            return TextColumn(self.array.take(pa.array(np.arange(len(self))[index])))
        return str(self.array[range(len(self))[index]].as_py())

    def __iter__(self) -> Iterator[str]:
        """Yield the texts."""
        for start in range(0, len(self.array), _BATCH):
            yield from self.array.slice(start, _BATCH).to_pylist()

    def __eq__(self, other: object) -> bool:
        """Return whether a sequence has the same texts."""
        if isinstance(other, TextColumn):
            return bool(as_strings(self).equals(as_strings(other)))
        if not isinstance(other, Sequence) or isinstance(other, str):
            return NotImplemented
        return tuple(self) == tuple(other)

    def __hash__(self) -> int:
        """Return the hash of the same tuple."""
        return hash(tuple(self))

    def __repr__(self) -> str:
        """Return the number of texts; they may be confidential."""
        return f"TextColumn of {len(self)}"

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how another process makes this column."""
        return TextColumn, (self.array,)


_GROUP: Final = "group "
"""Prefix of stored group columns: a roster may have a group column of any name."""


def stored_groups(groups: Mapping[str, Sequence[str]]) -> dict[str, pa.Array]:
    """Return group columns as the columns of a stored table; `groups_of_table` is the inverse."""
    return {f"{_GROUP}{name}": as_strings(labels).dictionary_encode() for name, labels in groups.items()}


def groups_of_table(table: pa.Table) -> dict[str, TextColumn]:
    """Return the group columns of a stored table."""
    names = [name for name in table.column_names if name.startswith(_GROUP)]
    return {name.removeprefix(_GROUP): TextColumn(one_array(table[name])) for name in names}


def as_strings(texts: Sequence[str]) -> pa.StringArray:
    """Return texts as an Arrow array of strings, without a copy if they are one already."""
    array = _array(texts)
    return array.cast(pa.string()) if pa.types.is_dictionary(array.type) else array


def _array(texts: Sequence[str]) -> pa.Array:
    return texts.array if isinstance(texts, TextColumn) else pa.array(texts, pa.string())


def sorted_codes(texts: Sequence[str]) -> tuple[pa.StringArray, Ints]:
    """Return the distinct texts, sorted by code points, and the index of each text among them.

    >>> labels, codes = sorted_codes(["b", "a", "b"])
    >>> labels.to_pylist(), codes.tolist()
    (['a', 'b'], [1, 0, 1])
    """
    array = _array(texts)
    is_encoded = pa.types.is_dictionary(array.type)
    if not is_encoded and pc.all(pc.less(array[:-1], array[1:])).as_py() is True:  # ids that their owner sorted
        return array.cast(pa.string()), np.arange(len(array))
    encoded = array if is_encoded else array.dictionary_encode()
    labels, codes = encoded.dictionary, encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    if is_encoded and len(labels) != pc.count_distinct(labels).as_py():  # a dictionary may repeat a text
        encoded = labels.dictionary_encode()
        labels, codes = encoded.dictionary, encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)[codes]
    is_used = np.bincount(codes, minlength=len(labels)) > 0
    order = pc.sort_indices(labels).to_numpy().astype(np.int64)
    order = order[is_used[order]]
    rank = np.zeros(len(labels), np.int64)
    rank[order] = np.arange(len(order))
    return labels.take(pa.array(order)).cast(pa.string()), rank[codes]


# --------------------------------------------------------------------------------------------------
# How many households a roster has by group on each day, without their ids.
#
#     from 2013-01-01, no end, area north     812 households
#     from 2013-01-01, no end, area south     388 households
#     from 2013-02-10 to 2013-06-30, north      2 households
#
# Rows with the same days and groups are one row with their number, so a plan for a million households needs a few
# thousand rows. A household has at most one row a day: numbers of rows are numbers of households.
# --------------------------------------------------------------------------------------------------

ALL: Final = "all"
PATH_SEPARATOR: Final = "/"

GroupColumns = str | tuple[str, ...] | None
"""One group column; several, the finest first, whose groups are paths; None: one group "all" of all households."""
NumberedGroups = tuple[tuple[str, ...], Ints]
"""The groups, sorted, and the number of each row's group among them."""


def columns_of(by: Iterable[str] | None) -> tuple[str, ...]:
    """Return group columns as a tuple, the finest first; a text is one column.

    >>> columns_of(("feeder", "area")), columns_of("tariff"), columns_of(None)
    (('feeder', 'area'), ('tariff',), ())
    """
    return () if by is None else (by,) if isinstance(by, str) else tuple(by)


def group_columns(columns: Iterable[str] | None) -> GroupColumns:
    """Return group columns in the form that `RosterCounts.cells` takes: a text for one column, None for none.

    >>> group_columns(["feeder", "area"]), group_columns(["area"]), group_columns([])
    (('feeder', 'area'), 'area', None)
    """
    names = columns_of(columns)
    return names if len(names) > 1 else names[0] if names else None


def columns_text(by: Iterable[str] | None) -> str:
    """Return group columns for people, "" for none.

    >>> columns_text(("feeder", "substation", "area")), columns_text("tariff")
    ('feeder, substation and area', 'tariff')
    """
    *first, last = columns_of(by) or ("",)
    return f"{', '.join(first)} and {last}" if first else last


def number_groups(groups: Mapping[str, Sequence[str]], by: GroupColumns) -> NumberedGroups:
    """Return the groups of rows by columns that are not None.

    Paths are sorted column by column: groups of one coarser group stand together, in its order.
    """
    labels, codes = zip(*(sorted_codes(groups[column]) for column in reversed(columns_of(by))), strict=True)
    combined, paths = combine_codes(codes, [len(of_column) for of_column in labels])
    texts = [of_column.take(pa.array(code)).to_pylist() for of_column, code in zip(labels, paths, strict=True)]
    return tuple(PATH_SEPARATOR.join(path) for path in zip(*texts, strict=True)), combined


def combine_codes(columns: Sequence[Ints], sizes: Sequence[int]) -> tuple[Ints, list[Ints]]:
    """Return the number of each row's combination of codes, and the codes of each combination, in sorted order.

    >>> numbers, codes = combine_codes([np.array([1, 0, 1]), np.array([2, 2, 2])], [2, 3])
    >>> numbers.tolist(), [column.tolist() for column in codes]
    ([1, 0, 1], [[0, 1], [2, 2]])
    """
    numbers, count = np.zeros(len(columns[0]), np.int64), 1
    for column, size in zip(columns, sizes, strict=True):
        keys = numbers * size + column
        distinct = np.unique(keys)  # with its inverse it would take twice the memory
        numbers, count = np.searchsorted(distinct, keys), len(distinct)
    rows = np.zeros(min(count, len(numbers)), np.int64)
    rows[numbers] = np.arange(len(numbers))  # of equal rows any
    return numbers, [column[rows] for column in columns]


@dataclass(frozen=True, slots=True)
class RosterCounts:
    """Rows (n) of a roster without ids: first and last day (since 1970), number of households, group columns as text.

    `read_off` is as of the roster.
    """

    first: Ints
    last: Ints
    number: Ints
    groups: Mapping[str, Sequence[str]]
    read_off: bool = False
    _numbered: dict[GroupColumns, NumberedGroups] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def size(self) -> int:
        """Return the number of all roster rows: at least that of the households, without counting them."""
        return int(self.number.sum())

    @classmethod
    def of_rows(
        cls, first: Ints, last: Ints, groups: Mapping[str, Sequence[str]], *, read_off: bool = False
    ) -> RosterCounts:
        """Return the counts of rows, one household each, in any order."""
        columns = {f"{_GROUP}{name}": _array(labels) for name, labels in groups.items()}
        table = pa.table({"first": first, "last": last, **columns})
        counted = table.group_by(table.column_names, use_threads=False).aggregate([([], "count_all")])
        starts, ends, number = (counted[name].to_numpy() for name in ("first", "last", "count_all"))
        return cls(starts, ends, number, groups_of_table(counted), read_off)

    def households(self, day: date) -> int:
        """Return the number of households on the roster on a day."""
        return int(self._on(day).sum())

    def has(self, by: GroupColumns) -> bool:
        """Return whether the roster has these group columns."""
        return all(column in self.groups for column in columns_of(by))

    def cells(self, day: date, by: GroupColumns) -> tuple[tuple[str, int], ...]:
        """Return the groups of a day with their numbers of households, sorted by group.

        Only groups with a household on the roster are included.

        Args:
            day: day of the data.
            by: group column, or several, the finest first; None for the cell "all" with all households.

        Raises:
            KeyError: the roster has no such column.
        """
        if by is None:
            return ((ALL, self.households(day)),)
        if by not in self._numbered:
            self._numbered[by] = number_groups(self.groups, by)
        labels, numbers = self._numbered[by]
        sizes = np.zeros(len(labels), np.int64)
        np.add.at(sizes, numbers, self._on(day))
        return tuple((label, size) for label, size in zip(labels, sizes.tolist(), strict=True) if size)

    def _on(self, day: date) -> Ints:
        """Return the number of households of each row that are on the roster on a day."""
        number = day_number(day)
        counted: Ints = np.where((self.first <= number) & (number <= self.last), self.number, 0)
        return counted


# --------------------------------------------------------------------------------------------------
# Rows as they are parsed, and their rules.
# --------------------------------------------------------------------------------------------------

FIXED_COLUMNS: Final = ["household_id", "from", "to"]
NO_LAST_DAY: Final = int(np.iinfo(np.int32).max)
"""Last day of a membership that has not ended."""
READ_OFF_MARK: Final = "# read off the input files"


@dataclass(frozen=True, slots=True)
class ParsedRoster:
    """The rows (n) of a roster file, in its order.

    Attributes:
        households: the ids.
        first: first day of each row, since 1970.
        last: last day, `NO_LAST_DAY` where it has not ended.
        groups: the labels by group column.
        number: number of each row in the file.
        unit: what is numbered: "line" or "row".
        read_off: whether `agedp init` wrote the file.
    """

    households: Sequence[str]
    first: Ints
    last: Ints
    groups: Mapping[str, Sequence[str]]
    number: Ints
    unit: str
    read_off: bool = False


@dataclass(frozen=True, slots=True)
class RosterRows:
    """Rows (n) of a roster: index into `ids` (sorted, distinct), first and last day (since 1970), groups as text."""

    ids: Sequence[str]
    household: Ints
    first: Ints
    last: Ints
    groups: Mapping[str, Sequence[str]]
    _numbered: dict[GroupColumns, NumberedGroups] = field(default_factory=dict, init=False, repr=False, compare=False)

    def on(self, day: date) -> Flags:
        """Return which rows are valid on a day, both dates of a row included.

        Returns:
            Flags, shape (n,); a household has at most one valid row a day.
        """
        number = day_number(day)
        counted: Flags = (self.first <= number) & (number <= self.last)
        return counted

    def members(self, day: date, by: GroupColumns) -> dict[str, Ints]:
        """Return the households of each group on a day; use it to select their daily totals.

        Args:
            day: day of the data.
            by: group column, or several, the finest first; None for one group "all".

        Returns:
            Indices into `ids` by group, the groups sorted as in `RosterCounts.cells`.

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


def check_header(path: str, names: Sequence[str]) -> None:
    """Check the columns of a roster, the three fixed ones first.

    Raises:
        InputError: one of them is missing, or a group column has no name of its own.
    """
    if list(names[:3]) != FIXED_COLUMNS or len(set(names)) != len(names) or not all(names):
        raise roster_error(path, "must begin with household_id,from,to, then group columns with names of their own")


def sort_rows(path: str, parsed: ParsedRoster, path_columns: Collection[str]) -> RosterRows:
    """Return the rows sorted by household and first day, after the checks of all rows together.

    Raises:
        InputError: the file has no households, a label cannot be part of a path, or rows of one household overlap.
    """
    _check_labels(path, parsed, path_columns)
    if not len(parsed.first):
        raise roster_error(path, "has no households; `agedp init` writes a first one from the files")
    ids, household = sorted_codes(parsed.households)
    columns: tuple[Ints, Ints, Ints, Ints] = household, parsed.first, parsed.last, parsed.number
    groups = {name: _encoded(labels) for name, labels in parsed.groups.items()}
    steps = np.diff(household)
    if not np.all((steps > 0) | ((steps == 0) & (np.diff(parsed.first) >= 0))):
        order = np.lexsort((parsed.first, household))
        columns = household[order], parsed.first[order], parsed.last[order], parsed.number[order]
        groups = {name: TextColumn(labels.array.take(pa.array(order))) for name, labels in groups.items()}
    household, first, last, number = columns
    overlaps = np.flatnonzero((household[1:] == household[:-1]) & (first[1:] <= last[:-1]))
    if len(overlaps):
        before, after = (int(number[overlaps[0] + step]) for step in (0, 1))
        problem = f"{parsed.unit}s {before} and {after} count one household twice on the same day"
        public = "rows count one household twice on the same day" if parsed.unit == "row" else ""
        raise roster_error(path, problem, public=public)
    return RosterRows(TextColumn(ids), household, first, last, groups)


def check_path_labels(groups: Mapping[str, Sequence[str]], path_columns: Collection[str]) -> bool:
    """Return whether all labels of the columns of hierarchies can be parts of a path."""
    return not any(
        _is_no_path_part(label) for column in path_columns if column in groups for label in set(groups[column])
    )


def roster_error(path: str, problem: str, suggestion: str = "", *, public: str = "", key: str = "roster") -> InputError:
    """Return the error about a roster file.

    Args:
        path: the file, in the private text only.
        problem: what is wrong.
        suggestion: a nearest name, in the private text only.
        public: the problem in the public text, if it differs.
        key: the key that names the file.
    """
    location = filesystem.format_location(path)
    return InputError(f"[population] {key}: {public or problem}", private=f"{location}: {problem}{suggestion}")


def _encoded(labels: Sequence[str]) -> TextColumn:
    array = _array(labels)
    return TextColumn(array if pa.types.is_dictionary(array.type) else array.dictionary_encode())


def _is_no_path_part(label: str) -> bool:
    return not label or PATH_SEPARATOR in label


def _check_labels(path: str, parsed: ParsedRoster, path_columns: Collection[str]) -> None:
    """Check the labels of a hierarchy; public is the column, the row is private."""
    wrong_rows: list[tuple[int, int, str, str]] = []
    for position, column in enumerate(parsed.groups):
        if column not in path_columns:
            continue
        labels, codes = sorted_codes(parsed.groups[column])
        texts = labels.to_pylist()
        is_wrong: Flags = np.array([_is_no_path_part(label) for label in texts], bool)
        rows = np.flatnonzero(is_wrong[codes]) if is_wrong.any() else np.zeros(0, np.int64)
        if len(rows):
            wrong_rows.append((int(rows[0]), position, column, texts[codes[rows[0]]]))
    if wrong_rows:
        row, _, column, label = min(wrong_rows)
        problem_of_label = f'contains "{PATH_SEPARATOR}"' if label else "is empty"
        advice = f"its groups are named by paths such as north{PATH_SEPARATOR}S1. Write another label"
        problem = f"a label in column {column}, a level of a hierarchy, {problem_of_label}; {advice}"
        raise roster_error(path, f"{parsed.unit} {int(parsed.number[row])}: {problem}", public=problem)


# --------------------------------------------------------------------------------------------------
# Texts and tables -> rows.
# --------------------------------------------------------------------------------------------------

_DAYS: Final = ("from", "to")
_BLANKS: Final = " \t"
_BOM: Final = "\ufeff".encode()
_LONGEST_FIELD: Final = 131_072
"""The `csv` module refuses longer fields."""
_TEXTS: Final = pa.dictionary(pa.int32(), pa.string())
_INDEX: Final = "__index_level_"
_FIRST_DAY, _LAST_DAY = day_number(date.min), day_number(date.max)
_MISSING, _WRONG = int(np.iinfo(np.int64).min), int(np.iinfo(np.int64).min) + 1


def parse_columns(content: bytes) -> ParsedRoster | None:
    """Return the rows of a well-formed text; None where a line needs the parser of lines."""
    content = content.removeprefix(_BOM)
    if b"\0" in content or not is_utf8(content):
        return None
    plain = _without_quotes(content)
    if plain is None:
        return None
    mark, _, rest = plain.partition(b"\n") if plain.startswith(READ_OFF_MARK.encode()) else (b"", b"", plain)
    header_line, _, body = rest.partition(b"\n")
    body = body.rstrip(b"\n")
    names = [name.strip() for name in header_line.decode().split(",")]
    is_plain = body and b"\n\n" not in body and not body.startswith(b"\n")
    with suppress(InputError):
        check_header("", names)
        columns = _read_columns(body, names) if is_plain else None
        if columns is not None:
            is_row = ~np.logical_and.reduce([_is_blank(column) for column in columns.values()])
            number = np.arange(len(is_row)) + (3 if mark else 2)
            texts = {name: _trimmed(column) for name, column in columns.items()}
            days = {name: _days_of_texts(texts.pop(name)) for name in _DAYS}
            return _checked_rows("", texts, days, number, is_row, unit="line", read_off=bool(mark))
    return None


def _read_columns(body: bytes, names: Sequence[str]) -> dict[str, pa.Array] | None:
    """Return the cells of lines by column; None if a line has another number of fields, or a very long one."""
    types = {name: _TEXTS if number else pa.string() for number, name in enumerate(names)}
    try:
        table = arrow_csv.read_csv(
            pa.BufferReader(body),
            read_options=arrow_csv.ReadOptions(column_names=names, use_threads=False, block_size=2**22),
            parse_options=arrow_csv.ParseOptions(quote_char=False, double_quote=False, ignore_empty_lines=False),
            convert_options=arrow_csv.ConvertOptions(column_types=types, null_values=[], check_utf8=False),
        )
    except pa.ArrowException:
        return None
    columns = {name: one_array(table[name]) for name in names}
    longest = max(int(pc.max(pc.binary_length(_letters(column))).as_py() or 0) for column in columns.values())
    return columns if longest < _LONGEST_FIELD else None


def _letters(column: pa.Array) -> pa.Array:
    return column.dictionary if pa.types.is_dictionary(column.type) else column


def _is_blank(column: pa.Array) -> Flags:
    """Return which cells are empty."""
    is_blank: Flags = pc.binary_length(_letters(column)).to_numpy(zero_copy_only=False) == 0  # Arrow's needs pandas
    return is_blank[_codes(column)] if pa.types.is_dictionary(column.type) else is_blank


def _codes(column: pa.DictionaryArray) -> Ints:
    codes: Ints = column.indices.to_numpy(zero_copy_only=False)
    return codes


def _trimmed(column: pa.Array) -> pa.Array:
    """Return texts without blanks around them, "" for a null.

    Raises:
        pa.ArrowException: a text is not UTF-8.
    """
    if not pa.types.is_dictionary(column.type):
        column.validate(full=True)
        return pc.utf8_trim(column.fill_null(""), characters=_BLANKS)
    if column.null_count or column.dictionary.null_count:  # a null is the label ""
        return _trimmed(column.cast(column.type.value_type).cast(pa.string())).dictionary_encode()
    return pa.DictionaryArray.from_arrays(column.indices, _trimmed(column.dictionary.cast(pa.string())))


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
    rows = [row for row in lines[1:] if any(row[1])]
    full = [*takewhile(lambda row: len(row[1]) == len(header), rows)]
    texts = {name: _trimmed(pa.array([cells[i] for _, cells in full], pa.string())) for i, name in enumerate(header)}
    days = {name: _days_of_texts(texts.pop(name).dictionary_encode()) for name in _DAYS}
    number, is_row = np.array([number for number, _ in full], np.int64), np.ones(len(full), bool)
    parsed = _checked_rows(path, texts, days, number, is_row, unit="line", read_off=read_off)
    if len(full) < len(rows):
        line, cells = rows[len(full)]
        raise roster_error(path, f"line {line}: {len(cells)} fields where the header has {len(header)}")
    return parsed


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


@lru_cache(maxsize=2**16)
def days_since_1970(text: str) -> int:
    """Return the number of a day that is written like 2013-01-31.

    Raises:
        ValueError: the text is no such day.
    """
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII):
        raise ValueError(text)
    return day_number(date.fromisoformat(text))


def parse_parquet(path: str, content: bytes) -> ParsedRoster:
    """Return the rows of a roster in a Parquet file.

    Raises:
        InputError: it is not Parquet, a column has another type, or a row cannot be parsed.
    """
    try:
        table = pq.ParquetFile(pa.BufferReader(content), page_checksum_verification=True).read(use_threads=False)
    except (pa.ArrowException, OSError, EOFError, UnicodeDecodeError, ValueError):  # an ArrowInvalid quotes values
        raise roster_error(path, "is not Parquet, or is cut off or damaged; write it again") from None
    names = [name for name in table.column_names if not name.startswith(_INDEX)]
    fixed = [name for name in FIXED_COLUMNS if name in names]
    check_header(path, fixed + [name.strip() for name in names if name not in fixed])
    texts = {name.strip(): _texts_of(path, name, table[name]) for name in names if name not in _DAYS}
    days = {name: _days(path, name, table[name]) for name in _DAYS}
    del table  # of a million households, so that its columns are not held twice
    has_value = [*(column != _MISSING for column in days.values()), *(~_is_blank(column) for column in texts.values())]
    is_row = np.logical_or.reduce(has_value)  # a row without any value is skipped, as an empty line is
    return _checked_rows(path, texts, days, np.arange(len(is_row)) + 1, is_row, unit="row")


def _texts_of(path: str, name: str, column: pa.ChunkedArray) -> pa.Array:
    """Return a column of texts or whole numbers as texts without blanks around them; "" for a null."""
    is_encoded = pa.types.is_dictionary(column.type)
    kind = column.type.value_type if is_encoded else column.type
    if pa.types.is_null(kind) and name != "household_id":  # a column of labels without any label
        column, is_encoded, kind = column.cast(pa.string()), False, pa.string()
    if not (is_text(kind) or pa.types.is_integer(kind)):
        raise roster_error(path, f"column {name} must be text or whole numbers")
    try:
        joined = one_array(column if is_encoded else column.cast(pa.string()))
        return _trimmed(joined if is_encoded or name == "household_id" else joined.dictionary_encode())
    except (pa.ArrowException, UnicodeDecodeError):
        raise roster_error(path, f"column {name} is not UTF-8 text") from None


def _days(path: str, name: str, column: pa.ChunkedArray) -> Ints:
    """Return the days of a column since 1970, `_MISSING` for none and `_WRONG` for what is no day."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_null(kind):
        return np.full(len(column), _MISSING)
    if is_text(kind):
        return _days_of_texts(_texts_of(path, name, column))
    is_whole = False
    if pa.types.is_date(kind) or (pa.types.is_timestamp(kind) and kind.tz is None):
        with suppress(pa.ArrowException):
            dates = column.cast(kind).cast(pa.date32())
            is_whole = pc.all(pc.equal(dates.cast(kind), column.cast(kind))).as_py() is not False
    if not is_whole:  # a time of day, or another type
        problem = "must contain dates or texts like 2013-01-31; write it as dates, without a time of day or a time zone"
        raise roster_error(path, f"column {name} {problem}")
    days: Ints = one_array(dates.cast(pa.int32()).cast(pa.int64())).fill_null(_MISSING).to_numpy(zero_copy_only=False)
    is_wrong = (days != _MISSING) & ((days < _FIRST_DAY) | (days > _LAST_DAY))
    return np.where(is_wrong, _WRONG, days) if is_wrong.any() else days


def _days_of_texts(column: pa.DictionaryArray) -> Ints:
    """Return the days of texts since 1970, `_MISSING` for no text and `_WRONG` for what is no day."""
    days = [_MISSING]
    for text in column.dictionary.to_pylist():
        try:
            days.append(days_since_1970(text) if text else _MISSING)
        except ValueError:
            days.append(_WRONG)
    return np.array(days, np.int64)[_codes(column) + 1]


def _checked_rows(
    path: str,
    texts: dict[str, pa.Array],
    days: dict[str, Ints],
    number: Ints,
    is_row: Flags,
    *,
    unit: str,
    read_off: bool = False,
) -> ParsedRoster:
    """Return the rows of columns, after a check of each row by itself.

    Raises:
        InputError: the first row with an error, and its first error.
    """
    first, last = days["from"], days["to"]
    problems: list[tuple[Flags, str, str]] = [
        (_is_blank(texts["household_id"]), "household_id", "no household_id"),
        (first <= _WRONG, "from", "`from` must be a date like 2013-01-31"),
        (last == _WRONG, "to", "`to` must be a date like 2013-01-31"),
        ((last > _WRONG) & (last < first), "to", "`to` lies before `from`"),
    ]
    wrong = [(np.flatnonzero(flags & is_row), column, text) for flags, column, text in problems]
    if errors := [(int(rows[0]), column, text) for rows, column, text in wrong if len(rows)]:
        row, column, text = min(errors, key=lambda error: error[0])
        public = f"column {column}, in a row: {text}" if unit == "row" else ""
        raise roster_error(path, f"{unit} {number[row]}: {text}", public=public)
    last = np.where(last == _MISSING, NO_LAST_DAY, last)
    if not is_row.all():
        texts = {name: column.filter(pa.array(is_row)) for name, column in texts.items()}
        first, last, number = first[is_row], last[is_row], number[is_row]
    columns = {name: TextColumn(column) for name, column in texts.items()}
    return ParsedRoster(columns.pop("household_id"), first, last, columns, number, unit, read_off)


# --------------------------------------------------------------------------------------------------
# The roster, and reading it.
# --------------------------------------------------------------------------------------------------


class Roster:
    """A roster: the numbers of households by group on each day, and its rows, which are read when they are needed.

    Functions take one of the two: `counts` for what a plan needs, `rows` for who is a member.

    Attributes:
        read_off: whether the roster is as `agedp init` wrote it.
        file_digest: SHA-256 of the bytes of its file, "" where it is of no file.
    """

    def __init__(
        self,
        rows: RosterRows | Callable[[], RosterRows],
        counts: RosterCounts | None = None,
        *,
        read_off: bool = False,
        file_digest: str = "",
    ) -> None:
        self.read_off, self.file_digest = read_off, file_digest
        self._rows, self._counts = rows, counts

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how another process makes this roster, with its rows."""
        return partial(Roster, read_off=self.read_off, file_digest=self.file_digest), (self.rows,)

    @property
    def rows(self) -> RosterRows:
        """Return the rows, which are read now if they were not needed before."""
        if not isinstance(self._rows, RosterRows):
            self._rows = self._rows()
        return self._rows

    @property
    def has_rows(self) -> bool:
        """Return whether the rows are in memory."""
        return isinstance(self._rows, RosterRows)

    @property
    def counts(self) -> RosterCounts:
        """Return the numbers of households, without ids."""
        if self._counts is None:
            rows = self.rows
            self._counts = RosterCounts.of_rows(rows.first, rows.last, rows.groups, read_off=self.read_off)
        return self._counts


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
    if filesystem.is_parquet(path):
        parsed = parse_parquet(path, content)
    else:
        parsed = parse_columns(content) or parse_lines(path, content)
    rows = sort_rows(path, parsed, path_columns)
    return Roster(rows, read_off=parsed.read_off, file_digest=hashlib.sha256(content).hexdigest())


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
    for name, first, last in spans:  # csv.writer leaves a lone carriage return unquoted: a line end to other readers
        household = '"' + name.replace('"', '""') + '"' if any(char in name for char in ',"\r\n') else name
        lines.append(f"{household},{first},{'' if last is None else last}")
    return "\n".join(lines) + "\n"
