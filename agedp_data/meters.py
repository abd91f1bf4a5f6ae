"""The meters of households, `meter,household,from,to`: whose readings count for which household on which day.

Both days are included; an empty `to` means that it has not ended. A meter may belong to several households on different
days (it was moved, or its home was sold), and a household has any number of meters, which are added up. The file is
confidential like the roster, so messages name a line, never a meter.

Example: the rows `M1,A,2013-01-01,` and `M2,A,2013-01-01,` add up two meters of household A.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from agedp_data.datasets import filesystem
from agedp_data.datasets.layout import label_of, one_array
from agedp_data.datasets.validation import Ints
from agedp_data.errors import InputError
from agedp_data.messages import suggest_file
from agedp_data.roster import NO_LAST_DAY, Roster, RosterRows, days_since_1970, roster_error, sorted_codes

COLUMNS: Final = ["meter", "household", "from", "to"]
HOUSEHOLD: Final = "household"
"""Group column of the meters, as those of a roster."""
_Row = tuple[str, int, int, str, int]
"""Meter, first day, last day, household, line."""


def read_meters(location: str) -> Roster:
    """Return the meters of a file at a path or a URL, as a roster of meters whose groups are households.

    Raises:
        InputError: the file or one of its lines cannot be parsed, or lines name one meter twice on the same day.
    """
    content = _read_bytes(location)
    try:
        lines = [*csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""), strict=True)]
    except (UnicodeDecodeError, csv.Error):
        raise _error(location, "is not CSV text in UTF-8") from None
    if not lines or [name.strip() for name in lines[0]] != COLUMNS:
        raise _error(location, f"must begin with {','.join(COLUMNS)}")
    numbered = [(number, [cell.strip(" \t") for cell in cells]) for number, cells in enumerate(lines[1:], 2)]
    rows = sorted(_parse_row(location, number, cells) for number, cells in numbered if any(cells))
    if not rows:
        raise _error(location, "has no meters")
    for (meter, _, end, _, line), (next_meter, begin, _, _, next_line) in pairwise(rows):
        if meter == next_meter and begin <= end:
            raise _error(location, f"lines {line} and {next_line} name one meter twice on the same day")
    meters, code = np.unique(np.array([row[0] for row in rows], object), return_inverse=True)
    first, last = (np.array([row[i] for row in rows], np.int64) for i in (1, 2))
    meter_rows = RosterRows(meters.tolist(), code, first, last, {HOUSEHOLD: [row[3] for row in rows]})
    return Roster(meter_rows, file_digest=hashlib.sha256(content).hexdigest())


def _parse_row(location: str, line: int, cells: list[str]) -> _Row:
    if len(cells) != len(COLUMNS):
        raise _error(location, f"line {line}: {len(cells)} fields where the header has {len(COLUMNS)}")
    meter, household, begin, end = cells
    if not (meter and household):
        raise _error(location, f"line {line}: no meter, or no household")
    try:
        first, last = days_since_1970(begin), days_since_1970(end) if end else NO_LAST_DAY
    except ValueError:
        raise _error(location, f"line {line}: `from` and `to` must be dates like 2013-01-31") from None
    if last < first:
        raise _error(location, f"line {line}: `to` lies before `from`")
    return meter, first, last, household, line


def _read_bytes(location: str) -> bytes:
    if filesystem.is_url(location):
        return filesystem.read_bytes(location, "[population] meters")
    try:
        return Path(location).read_bytes()
    except OSError as error:
        problem = f"cannot be read ({error.strerror})"
        raise _error(location, problem, "" if Path(location).exists() else suggest_file(Path(location))) from None


def _error(location: str, problem: str, suggestion: str = "") -> InputError:
    return roster_error(location, problem, suggestion, key="meters")


# --------------------------------------------------------------------------------------------------
# Rows of meters -> rows of the households that the meters belong to on their days, each meter with a label of its own.
#
# The store has the ids of the files. They are replaced when a month is read, so that a corrected file of meters needs
# no file of readings again.
# --------------------------------------------------------------------------------------------------

_DAY_BITS = 32
_NOBODY = " "
"""Begins the household of a meter without one: ids of a roster have no surrounding blanks."""
_OTHER_LABELS = 3
"""Odd: labels of a meter's channels and of meters are told apart whatever their texts are."""


@dataclass(frozen=True, slots=True)
class MeterFile:
    """A file of meters, by its place and the SHA-256 of its bytes: cheap to pass to a task, which reads it once."""

    location: str
    digest: str

    def households(self, table: pa.Table) -> tuple[pa.Table, Ints]:
        """Return a table of the store with households for meters, and the label of each row's meter.

        A meter without a household on its day counts for nobody: its household is not on any roster.
        """
        column = one_array(table["household_id"])
        ids, code = column.dictionary.to_pylist(), column.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        meters, names, households = _read(self.location, self.digest)
        position = {meter: number for number, meter in enumerate(meters.ids)}
        meter = np.array([*(position.get(name, -1) for name in ids), -1], np.int64)[code]
        day = table["day"].cast(pa.int32()).to_numpy().astype(np.int64)
        keys = (meters.household << _DAY_BITS) | meters.first
        row = np.searchsorted(keys, (meter << _DAY_BITS) | day, side="right") - 1
        is_assigned = (row >= 0) & (meter >= 0)
        is_assigned &= (meters.household[row] == meter) & (day <= meters.last[row])
        number, household = np.unique(np.where(is_assigned, households[row], len(names) + code), return_inverse=True)
        every = pa.array([*names, *(f"{_NOBODY}{name}" for name in ids)], pa.string()).take(pa.array(number))
        labels = np.array([*map(label_of, ids), 0], np.int64)[code]
        place = table.schema.get_field_index("household_id")
        households_of_rows = pa.DictionaryArray.from_arrays(pa.array(household.astype(np.int32)), every)
        return table.set_column(place, table.schema.field(place), households_of_rows), labels

    def assigned(self, table: pa.Table) -> pa.Table:
        """Return the rows of meters that have a household on their day, with these households."""
        households, _ = self.households(table)
        is_nobody = pc.starts_with(households["household_id"].cast(pa.string()), _NOBODY)
        return households.filter(pc.invert(is_nobody))

    def numbers(self, ids: Sequence[str], household: Ints, day: Ints) -> Ints:
        """Return how many meters each household has on a day; households are indices of `ids`, all shapes are equal."""
        meters, names, households = _read(self.location, self.digest)
        position = {name: number for number, name in enumerate(names)}
        code = np.array([*(position.get(name, -1) for name in ids), -1], np.int64)[household]
        begins, ends = (np.sort((households << _DAY_BITS) | days) for days in (meters.first, meters.last + 1))
        keys = (code << _DAY_BITS) | day
        return np.searchsorted(begins, keys, side="right") - np.searchsorted(ends, keys, side="right")


def join_labels(label: Ints, of_meter: Ints) -> Ints:
    """Return labels that tell apart the channels of several meters."""
    return label * _OTHER_LABELS + of_meter


@lru_cache(maxsize=4)
def _read(location: str, digest: str) -> tuple[RosterRows, list[str], Ints]:
    """Return the meters of a file, the names of their households, and the household of each row as an index of these.

    Raises:
        InputError: the file changed in the meantime, or as `read_meters`.
    """
    meters = read_meters(location)
    if meters.file_digest != digest:
        raise InputError("[population] meters: the file changed while it was read; run again")
    names, households = sorted_codes(meters.rows.groups[HOUSEHOLD])
    return meters.rows, names.to_pylist(), households
