"""Rows of meters -> rows of the households that the meters belong to on their days, each meter with a label of its own.

The store has the ids of the files. They are replaced when a month is read, so that a corrected file of meters needs no
file of readings again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from agedp_data.datasets.layout import label_of
from agedp_data.datasets.validation import Ints
from agedp_data.errors import InputError
from agedp_data.meters import HOUSEHOLD, read_meters
from agedp_data.roster import Roster
from agedp_data.text_columns import sorted_codes

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
        column = table["household_id"].unify_dictionaries().combine_chunks()
        column = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
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
def _read(location: str, digest: str) -> tuple[Roster, list[str], Ints]:
    """Return the meters of a file, the names of their households, and the household of each row as an index of these.

    Raises:
        InputError: the file changed in the meantime, or as `read_meters`.
    """
    meters = read_meters(location)
    if meters.file_digest != digest:
        raise InputError("[population] meters: the file changed while it was read; run again")
    names, households = sorted_codes(meters.groups[HOUSEHOLD])
    return meters, names.to_pylist(), households
