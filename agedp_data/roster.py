"""The roster, who is a member on which day: `household_id,from,to[,group columns]`, as text or as a Parquet table.

Both days are included; an empty `to` means that the membership has not ended. A household may have several rows on
different days (it left and came back, or changed its group). Membership is public in the guarantee; the file itself is
confidential, so messages name a line or row, never a household.

Example: the row `A,2013-01-01,2013-03-31,north` makes household A a member of group north for 90 days.

Several columns, the finest first, are a hierarchy: ("feeder", "area"). Its groups are paths, the coarsest first:
"north/F12". So each group lies in exactly one coarser group, whatever the labels are.

Decisions:

* A million households are Arrow arrays and numbers of groups, not Python texts.
* Numbers of households by group are known without the rows (`roster_counts`): a plan loads no id.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import numpy as np

from agedp_data.datasets import filesystem
from agedp_data.datasets.file_listing import is_parquet
from agedp_data.datasets.timestamps import day_number
from agedp_data.datasets.validation import Flags, Ints
from agedp_data.messages import suggest_file
from agedp_data.roster_counts import (
    ALL,
    PATH_SEPARATOR,
    GroupColumns,
    NumberedGroups,
    RosterCounts,
    columns_of,
    columns_text,
    group_columns,
    number_groups,
)
from agedp_data.roster_csv import parse_csv
from agedp_data.roster_parquet import parse_parquet
from agedp_data.roster_rows import FIXED_COLUMNS, READ_OFF_MARK, RosterRows, roster_error, sort_rows

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
