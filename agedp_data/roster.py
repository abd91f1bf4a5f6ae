"""The roster, who is a member on which day: `household_id,from,to[,group columns]`.

Both days are included; an empty `to` means that the membership has not ended. A household may have several rows on
different days (it left and came back, or changed its group). Membership is public in the guarantee; the file itself is
confidential, so messages name a line, never a household.

Example: the row `A,2013-01-01,2013-03-31,north` makes household A a member of group north for 90 days.

Several columns, the finest first, are a hierarchy: ("feeder", "area"). Its groups are paths, the coarsest first:
"north/F12". So each group lies in exactly one coarser group, whatever the labels are.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import date
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import numpy as np

from agedp_data.datasets import filesystem
from agedp_data.datasets.timestamps import day_number
from agedp_data.datasets.validation import Flags, Ints
from agedp_data.errors import InputError
from agedp_data.messages import suggest_file

READ_OFF_MARK = "# read off the input files"
ALL = "all"
FIXED_COLUMNS = ["household_id", "from", "to"]
PATH_SEPARATOR = "/"
_NO_LAST_DAY = int(np.iinfo(np.int32).max)

GroupColumns = str | tuple[str, ...] | None
"""One group column; several, the finest first, whose groups are paths; None: one group "all" of all households."""


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


@dataclass(frozen=True, slots=True)
class Roster:
    """Roster rows (n): index into `ids` (sorted, distinct), first and last day (since 1970), group columns as text.

    `read_off` is True while the file still begins with the line that `agedp init` writes.
    """

    ids: tuple[str, ...]
    household: Ints
    first: Ints
    last: Ints
    groups: dict[str, tuple[str, ...]]
    read_off: bool = False
    _numbered: dict[GroupColumns, tuple[tuple[str, ...], Ints]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

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
        return int(self.on(day).sum())

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
        labels, numbers = self._groups_of_rows(by)
        sizes = np.bincount(numbers[self.on(day)], minlength=len(labels)).tolist()
        return tuple((label, size) for label, size in zip(labels, sizes, strict=True) if size)

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
        labels, numbers = self._groups_of_rows(by)
        ordered = self.household[rows[np.argsort(numbers[rows], kind="stable")]]
        ends = np.cumsum(np.bincount(numbers[rows], minlength=len(labels))).tolist()
        places = zip(labels, pairwise([0, *ends]), strict=True)
        return {label: ordered[start:end] for label, (start, end) in places if end > start}

    def _groups_of_rows(self, by: GroupColumns) -> tuple[tuple[str, ...], Ints]:
        """Return the groups, sorted, and the number of each row's group among them; computed once.

        Paths are sorted column by column: groups of one coarser group stand together, in its order.
        """
        if by not in self._numbered:
            paths = list(zip(*(self.groups[column] for column in reversed(columns_of(by))), strict=True))
            place = {path: i for i, path in enumerate(sorted(set(paths)))}
            numbers = np.array([place[path] for path in paths], np.int64)
            self._numbered[by] = tuple(map(PATH_SEPARATOR.join, place)), numbers
        return self._numbered[by]


def read_roster(path: str | Path, *, path_columns: Collection[str] = ()) -> Roster:
    """Return the roster of a file, at a path or a URL.

    Args:
        path: the file.
        path_columns: columns of hierarchies, whose groups are named by paths: their labels are not empty and have no
            "/".

    Raises:
        InputError: the file or one of its lines cannot be parsed, or rows of one household overlap.
    """
    try:
        text = _read_bytes(str(path)).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise _roster_error(path, "is not UTF-8 text") from None
    read_off = text.startswith(READ_OFF_MARK)
    lines = _parse_lines(path, text.partition("\n")[2] if read_off else text, above=1 if read_off else 0)
    header = [name.strip() for name in lines[0][1]] if lines else []
    if header[:3] != FIXED_COLUMNS or len(set(header)) != len(header) or not all(header):
        raise _roster_error(path, "must begin with household_id,from,to, then group columns with names of their own")
    rows = [_parse_row(path, number, header, cells) for number, cells in lines[1:] if any(cells)]
    _check_labels(path, header[3:], rows, path_columns)
    if not rows:
        raise _roster_error(path, "has no households; `agedp init` writes a first one from the files")
    return _build_roster(path, header[3:], rows, read_off=read_off)


def _read_bytes(location: str) -> bytes:
    if filesystem.is_url(location):
        return filesystem.read_bytes(location, "[population] roster")
    path = Path(location)
    try:
        if path.exists() and not path.is_file():  # a folder, or a pipe that might never end
            raise _roster_error(path, "is not a file; `agedp init` writes a first one")
        return path.read_bytes()
    except OSError as error:
        reason = f"cannot be read ({error.strerror}); `agedp init` writes a first one"
        raise _roster_error(path, reason, "" if path.exists() else suggest_file(path)) from None


def _parse_lines(path: str | Path, text: str, *, above: int) -> list[tuple[int, list[str]]]:
    """Return the rows of a CSV text, each with the number of its first line in the file; `above` lines precede it."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    lines: list[tuple[int, list[str]]] = []
    number = above + 1
    try:
        for cells in reader:
            lines.append((number, cells))
            number = above + reader.line_num + 1
    except csv.Error as error:
        raise _roster_error(path, f"line {number}: is not CSV ({error})") from None
    return lines


def _parse_row(
    path: str | Path, number: int, header: list[str], cells: list[str]
) -> tuple[str, int, int, list[str], int]:
    if len(cells) != len(header):
        raise _roster_error(path, f"line {number}: {len(cells)} fields where the header has {len(header)}")
    household, first, last, *groups = (cell.strip(" \t") for cell in cells)
    if not household:
        raise _roster_error(path, f"line {number}: no household_id")
    begin = _parse_day(path, number, "from", first)
    end = _NO_LAST_DAY if last == "" else _parse_day(path, number, "to", last)
    if end < begin:
        raise _roster_error(path, f"line {number}: `to` lies before `from`")
    return household, begin, end, groups, number


def _check_labels(
    path: str | Path,
    columns: list[str],
    rows: list[tuple[str, int, int, list[str], int]],
    path_columns: Collection[str],
) -> None:
    """Check the labels of a hierarchy; public is the column, the line is private."""
    places = [(i, column) for i, column in enumerate(columns) if column in path_columns]
    for *_, labels, number in rows:
        for i, column in places:
            if not labels[i] or PATH_SEPARATOR in labels[i]:
                found = f'contains "{PATH_SEPARATOR}"' if labels[i] else "is empty"
                advice = f"its groups are named by paths such as north{PATH_SEPARATOR}S1. Write another label"
                problem = f"a label in column {column}, a level of a hierarchy, {found}; {advice}"
                raise InputError(
                    f"[population] roster: {problem}",
                    private=f"{filesystem.format_location(str(path))}: line {number}: {problem}",
                )


def _parse_day(path: str | Path, number: int, column: str, text: str) -> int:
    try:
        return _days_since_1970(text)
    except ValueError:
        raise _roster_error(path, f"line {number}: `{column}` must be a date like 2013-01-31") from None


@lru_cache(maxsize=2**16)
def _days_since_1970(text: str) -> int:
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII):
        raise ValueError(text)
    return day_number(date.fromisoformat(text))


def _build_roster(
    path: str | Path, names: list[str], rows: list[tuple[str, int, int, list[str], int]], *, read_off: bool
) -> Roster:
    rows.sort(key=lambda row: (row[0], row[1]))
    for before, after in pairwise(rows):
        if before[0] == after[0] and after[1] <= before[2]:
            raise _roster_error(path, f"lines {before[4]} and {after[4]} count one household twice on the same day")
    ids = tuple(sorted({row[0] for row in rows}))
    code = {household: i for i, household in enumerate(ids)}
    return Roster(
        ids,
        np.array([code[row[0]] for row in rows], np.int64),
        np.array([row[1] for row in rows], np.int64),
        np.array([row[2] for row in rows], np.int64),
        {name: tuple(row[3][i] for row in rows) for i, name in enumerate(names)},
        read_off,
    )


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


def _roster_error(path: str | Path, problem: str, suggestion: str = "") -> InputError:
    return InputError(
        f"[population] roster: {problem}", private=f"{filesystem.format_location(str(path))}: {problem}{suggestion}"
    )
