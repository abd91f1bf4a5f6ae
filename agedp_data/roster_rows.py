"""Rows of a roster file, as they are parsed, and the rules that all of them keep together.

A parser gives columns of the same length: household, first and last day, groups, and the number of the row in its file,
by which errors name it. The rules are: labels of a hierarchy can be parts of a path, and a household has at most one
row a day.

A column of texts in one Arrow array: a million household ids take the room of their letters.

>>> column = TextColumn(pa.array(["A", "B"]))
>>> column[1], len(column), column == ("A", "B")
('B', 2, True)
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Final, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from agedp_data.datasets import filesystem
from agedp_data.datasets.timestamps import day_number
from agedp_data.datasets.validation import Flags, Ints
from agedp_data.errors import InputError

# --------------------------------------------------------------------------------------------------
# A column of texts in one Arrow array: a million household ids take the room of their letters.
# --------------------------------------------------------------------------------------------------

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


def one_array(column: pa.ChunkedArray) -> pa.Array:
    """Return a column of a table as one array, with one dictionary if it has any."""
    joined = column.unify_dictionaries().combine_chunks()
    return joined.combine_chunks() if isinstance(joined, pa.ChunkedArray) else joined


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
    array = texts.array if isinstance(texts, TextColumn) else pa.array(texts, pa.string())
    return array.cast(pa.string()) if pa.types.is_dictionary(array.type) else array


def sorted_codes(texts: Sequence[str]) -> tuple[pa.StringArray, Ints]:
    """Return the distinct texts, sorted by code points, and the index of each text among them.

    >>> labels, codes = sorted_codes(["b", "a", "b"])
    >>> labels.to_pylist(), codes.tolist()
    (['a', 'b'], [1, 0, 1])
    """
    array = texts.array if isinstance(texts, TextColumn) else pa.array(texts, pa.string())
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
    """Return group columns in the form that `Roster.cells` takes: a text for one column, None for none.

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
        distinct, numbers = number_values(numbers * size + column)
        count = len(distinct)
    rows = np.zeros(min(count, len(numbers)), np.int64)
    rows[numbers] = np.arange(len(numbers))  # of equal rows any
    return numbers, [column[rows] for column in columns]


def number_values(column: Ints) -> tuple[Ints, Ints]:
    """Return the distinct values of a column, ascending, and the number of each row's value among them.

    `np.unique` with its inverse does the same with twice the memory.
    """
    values = np.unique(column)
    return values, np.searchsorted(values, column)


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
        """Return the counts of rows, one household each."""
        encoded = [sorted_codes(labels) for labels in groups.values()]
        days = [number_values(column) for column in (first, last)]
        codes = [*(numbers for _, numbers in days), *(numbers for _, numbers in encoded)]
        sizes = [len(values) for values, _ in (*days, *encoded)]
        combined, distinct = combine_codes(codes, sizes)
        texts = {
            name: TextColumn(pa.DictionaryArray.from_arrays(pa.array(code.astype(np.int32)), labels))
            for name, (labels, _), code in zip(groups, encoded, distinct[2:], strict=True)
        }
        starts, ends = (values[code] for (values, _), code in zip(days, distinct[:2], strict=True))
        return cls(starts, ends, np.bincount(combined, minlength=len(starts)), texts, read_off)

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


def roster_error(path: str, problem: str, suggestion: str = "", *, public: str = "") -> InputError:
    """Return the error about a roster file.

    Args:
        path: the file, in the private text only.
        problem: what is wrong.
        suggestion: a nearest name, in the private text only.
        public: the problem in the public text, if it differs.
    """
    location = filesystem.format_location(path)
    return InputError(f"[population] roster: {public or problem}", private=f"{location}: {problem}{suggestion}")


def _encoded(labels: Sequence[str]) -> TextColumn:
    array = labels.array if isinstance(labels, TextColumn) else pa.array(labels, pa.string())
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
