"""Who is counted on which day: `household_id,from,to[,group columns]`.

Both days are included; an empty `to` means still there. A household may have several rows (it left and came
back, or changed group), on different days. Who is a customer is known to everybody in the guarantee; the file
itself stays confidential, so messages name a line, never a household.
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

from agedp_data.errors import InputError
from agedp_data.nearest import near_file
from agedp_data.readers import storage
from agedp_data.readers.layout import Flags, Ints

READ_OFF = "# read off the input files"
ALL = "all"
_FIXED = ["household_id", "from", "to"]
_EPOCH = date(1970, 1, 1).toordinal()
_OPEN = int(np.iinfo(np.int32).max)


@dataclass(frozen=True, slots=True)
class Roster:
    """Roster rows (n): code into `ids` (sorted, distinct), first and last day (since 1970), group columns as text.

    `read_off` says that the file still begins with the line that `agedp init` leaves.
    """

    ids: tuple[str, ...]
    household: Ints
    first: Ints
    last: Ints
    groups: dict[str, tuple[str, ...]]
    read_off: bool = False

    def on(self, day: date) -> Flags:
        """Return which rows count on a day."""
        number = day.toordinal() - _EPOCH
        counted: Flags = (self.first <= number) & (number <= self.last)
        return counted

    def households(self, day: date) -> int:
        """Return how many households are counted on a day."""
        return int(self.on(day).sum())

    def cells(self, day: date, by: str | None) -> tuple[tuple[str, int], ...]:
        """Return the groups of a column on a day and how many households each has; without a column ("all", n)."""
        if by is None:
            return ((ALL, self.households(day)),)
        groups = [self.groups[by][i] for i in np.flatnonzero(self.on(day))]
        return tuple(sorted(Counter(groups).items()))

    def members(self, day: date, by: str | None) -> dict[str, Ints]:
        """Return the household codes that are counted on a day, by group."""
        rows = np.flatnonzero(self.on(day))
        if by is None:
            return {ALL: self.household[rows]}
        found: dict[str, list[int]] = {}
        for row in rows.tolist():
            found.setdefault(self.groups[by][row], []).append(row)
        return {label: self.household[found[label]] for label in sorted(found)}


def read_roster(path: str | Path) -> Roster:
    """Return the roster of a file, at a path or a URL.

    Raises:
        InputError: the file or one of its lines cannot be understood; overlapping rows of one household.
    """
    try:
        text = _bytes(str(path)).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise _error(path, "is not UTF-8 text") from None
    read_off = text.startswith(READ_OFF)
    lines = _lines(path, text.partition("\n")[2] if read_off else text, above=1 if read_off else 0)
    header = [name.strip() for name in lines[0][1]] if lines else []
    if header[:3] != _FIXED or len(set(header)) != len(header) or not all(header):
        raise _error(path, "must begin with household_id,from,to, then group columns with names of their own")
    rows = [_row(path, number, header, cells) for number, cells in lines[1:] if any(cells)]
    if not rows:
        raise _error(path, "has no households; `agedp init` writes a first one from the files")
    return _roster(path, header[3:], rows, read_off=read_off)


def _bytes(place: str) -> bytes:
    if storage.is_url(place):
        return storage.read_bytes(place, "[population] roster")
    path = Path(place)
    try:
        if path.exists() and not path.is_file():  # a folder, or a pipe that might never end
            raise _error(path, "is no file; `agedp init` writes a first one")
        return path.read_bytes()
    except OSError as error:
        what = f"cannot be read ({error.strerror}); `agedp init` writes a first one"
        raise _error(path, what, "" if path.exists() else near_file(path)) from None


def _lines(path: str | Path, text: str, *, above: int) -> list[tuple[int, list[str]]]:
    """Return the rows of a CSV text, each with the number of its first line in the file; `above` lines precede it."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    lines: list[tuple[int, list[str]]] = []
    number = above + 1
    try:
        for cells in reader:
            lines.append((number, cells))
            number = above + reader.line_num + 1
    except csv.Error as error:
        raise _error(path, f"line {number}: is not CSV ({error})") from None
    return lines


def _row(path: str | Path, number: int, header: list[str], cells: list[str]) -> tuple[str, int, int, list[str], int]:
    if len(cells) != len(header):
        raise _error(path, f"line {number}: {len(cells)} fields where the header has {len(header)}")
    household, first, last, *groups = (cell.strip(" \t") for cell in cells)
    if not household:
        raise _error(path, f"line {number}: no household_id")
    begin = _day(path, number, "from", first)
    end = _OPEN if last == "" else _day(path, number, "to", last)
    if end < begin:
        raise _error(path, f"line {number}: `to` lies before `from`")
    return household, begin, end, groups, number


def _day(path: str | Path, number: int, column: str, text: str) -> int:
    try:
        return _days_since_1970(text)
    except ValueError:
        raise _error(path, f"line {number}: `{column}` must be a date like 2013-01-31") from None


@lru_cache(maxsize=2**16)
def _days_since_1970(text: str) -> int:
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII):
        raise ValueError(text)
    return date.fromisoformat(text).toordinal() - _EPOCH


def _roster(
    path: str | Path, names: list[str], rows: list[tuple[str, int, int, list[str], int]], *, read_off: bool
) -> Roster:
    rows.sort(key=lambda row: (row[0], row[1]))
    for before, after in pairwise(rows):
        if before[0] == after[0] and after[1] <= before[2]:
            raise _error(path, f"lines {before[4]} and {after[4]} count one household twice on the same day")
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


def roster_text(spans: Iterable[tuple[str, date, date | None]]) -> str:
    """Return a roster file, marked as read off the data, for (household, first day, last day) triples."""
    lines = [f"{READ_OFF} by `agedp init`; delete this line once the list comes from your customer records"]
    lines.append(",".join(_FIXED))
    lines += [f"{_quoted(household)},{first},{'' if last is None else last}" for household, first, last in spans]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    # csv.writer leaves a lone carriage return unquoted, which ends a line for whoever reads it.
    return '"' + text.replace('"', '""') + '"' if any(char in text for char in ',"\r\n') else text


def _error(path: str | Path, what: str, near: str = "") -> InputError:
    return InputError(f"[population] roster: {what}", private=f"{storage.format_location(str(path))}: {what}{near}")
