"""How many households a roster has by group on each day, without their ids.

    from 2013-01-01, no end, area north     812 households
    from 2013-01-01, no end, area south     388 households
    from 2013-02-10 to 2013-06-30, north      2 households

Rows with the same days and groups are one row with their number, so a plan for a million households needs a few
thousand rows. A household has at most one row a day: numbers of rows are numbers of households.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Final

import numpy as np
import pyarrow as pa

from agedp_data.datasets.timestamps import day_number
from agedp_data.datasets.validation import Ints
from agedp_data.text_columns import TextColumn, sorted_codes

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
