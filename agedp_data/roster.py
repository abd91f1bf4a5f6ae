"""The roster, who is a member on which day: `household_id,from,to[,group columns]`.

Both days are included; an empty `to` means that the membership has not ended. A household may have several rows on
different days (it left and came back, or changed its group). Membership is public in the guarantee; the file itself is
confidential, so messages name a line, never a household.

Example: the row `A,2013-01-01,2013-03-31,north` makes household A a member of group north for 90 days.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
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
_NO_LAST_DAY = int(np.iinfo(np.int32).max)


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

    def cells(self, day: date, by: str | None) -> tuple[tuple[str, int], ...]:
        """Return the groups of a column on a day with their numbers of households, sorted by group.

        Only groups with a household on the roster are included.

        Args:
            day: day of the data.
            by: group column; None for the cell "all" with all households.

        Raises:
            KeyError: the roster has no such column.
        """
        if by is None:
            return ((ALL, self.households(day)),)
        groups = [self.groups[by][i] for i in np.flatnonzero(self.on(day))]
        return tuple(sorted(Counter(groups).items()))

    def members(self, day: date, by: str | None) -> dict[str, Ints]:
        """Return the households of each group on a day; use it to select their daily totals.

        Args:
            day: day of the data.
            by: group column; None for one group "all".

        Returns:
            Indices into `ids` by group, the groups sorted.

        Raises:
            KeyError: the roster has no such column.
        """
        rows = np.flatnonzero(self.on(day))
        if by is None:
            return {ALL: self.household[rows]}
        rows_by_group: dict[str, list[int]] = {}
        for row in rows.tolist():
            rows_by_group.setdefault(self.groups[by][row], []).append(row)
        return {label: self.household[rows_by_group[label]] for label in sorted(rows_by_group)}


def read_roster(path: str | Path) -> Roster:
    """Return the roster of a file, at a path or a URL.

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
