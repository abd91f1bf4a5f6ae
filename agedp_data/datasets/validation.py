"""Which readings are kept: the rejection reasons of a row, and the rules of a run file that decide them.

Every layout applies the same checks: a day must lie between `FIRST_DAY` and `LAST_DAY`, a reading must be finite, not
negative and at most `max_half_hour_kwh` (`round_to_wh`). A row gets the first reason that applies to it
(`first_reason`); rejected rows are counted by reason and go to a quarantine file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING as MISSING_DEFAULT
from dataclasses import asdict, dataclass, fields
from datetime import date
from enum import IntEnum
from typing import Any, Self

import numpy as np

from agedp_data.datasets.timestamps import day_number
from agedp_data.parameters import Section

Ints = np.ndarray[Any, np.dtype[np.int64]]
Int32s = np.ndarray[Any, np.dtype[np.int32]]
Integers = np.ndarray[Any, np.dtype[np.integer[Any]]]
Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Flags = np.ndarray[Any, np.dtype[np.bool_]]

SLOTS = 48
INTERVAL_MINUTES = 30
"""Default minutes between readings: those of the two public datasets."""
MISSING = -1
NO_READING = -(2**31)
"""Energy of a stored row without a reading, which shows that its household has the meter; no energy has this size."""
ALL_COLUMNS = "*"
"""Household and energy of [input.columns] in a wide table: every column that no other key names is a household's."""
HOUSEHOLD_SOURCES = ("file", "line")
"""Beginnings of a household of [input.columns], before a colon, that names no column."""
FIRST_DAY, LAST_DAY = date(1970, 1, 1), date(2199, 12, 31)


class RejectionReason(IntEnum):
    """Why a row is rejected, in order of precedence; `KEPT` for a row that is not.

    `LINE` precedes all reasons: such a row has no fields. Stores contain these numbers, so a new reason comes last.
    """

    words: str

    def __new__(cls, number: int, words: str = "") -> Self:
        """Return a reason by its number, with its text as reports print it."""
        reason = int.__new__(cls, number)
        reason._value_, reason.words = number, words
        return reason

    KEPT = 0, "kept"
    FIELDS = 1, "wrong number of fields"
    HOUSEHOLD = 2, "no household id, or one that is not UTF-8"
    DATE = 3, "impossible date"
    CATEGORY = 4, "consumption category not asked for"
    MISSING = 5, "no reading (Null or empty)"
    TEXT = 6, "text in a number"
    NOT_FINITE = 7, "infinite or not a number"
    NEGATIVE = 8, "negative energy"
    ABOVE_BOUND = 9, "above the physical bound of a half-hour"
    OFF_GRID = 10, "stamp is not on a half-hour"
    DUPLICATE = 11, "exact duplicate"
    CONFLICT = 12, "disagrees with another row about the same reading"
    SUPERSEDED = 13, "corrected by a later file"
    LINE = 14, "no line of text (empty, stray quote, control character, or over 64 KiB)"


@dataclass(frozen=True, slots=True)
class NamedColumns:
    """[input.columns] of a run file: the columns of a "long" table and their meaning."""

    household: str
    time: str | tuple[str, ...]
    time_format: str
    stamp: str
    zone: str
    day_zone: str
    energy: str | tuple[str, ...]
    unit: str
    missing: tuple[str, ...]
    separator: str = ","
    decimal: str = "."
    repeated: str = "passes"
    ignore: tuple[str, ...] = ()
    period_minutes: int | None = None
    first_period: int = 1
    thousands: str = ""
    encoding: str = "utf-8"
    skip_lines: int = 0
    where: tuple[tuple[str, tuple[str, ...]], ...] = ()
    add: str = ""
    negative: str = "reject"

    @property
    def is_wide(self) -> bool:
        """Return whether every column but the time is a household's."""
        return self.household == ALL_COLUMNS

    @property
    def is_by_day(self) -> bool:
        """Return whether a row is a day of a household, with a column for each interval."""
        return not isinstance(self.energy, str)

    @property
    def time_columns(self) -> tuple[str, ...]:
        """Return the columns of the timestamp, its number of the period included."""
        return (self.time,) if isinstance(self.time, str) else self.time

    @property
    def energy_columns(self) -> tuple[str, ...]:
        """Return the column of the energy, or the first and the last one of a row of a day."""
        return (self.energy,) if isinstance(self.energy, str) else self.energy

    @property
    def row_names(self) -> tuple[str, ...]:
        """Return the columns that every row has: not those of a row of several readings, nor one without a name."""
        kind, place = self.household_source
        household = (place,) if kind == "column" and not self.is_wide else ()
        energies = () if self.is_wide or self.is_by_day else self.energy_columns
        return tuple(name for name in (*household, *self.time_columns, *energies) if name)

    @property
    def household_source(self) -> tuple[str, str]:
        """Return where a household's id stands: "column", "file" or "line", and which column, pattern or line."""
        kind, mark, place = self.household.partition(":")
        return (kind, place) if mark and kind in HOUSEHOLD_SOURCES else ("column", self.household)

    @property
    def keys(self) -> dict[str, Any]:
        """Return the keys of [input.columns], without later ones that have their defaults."""
        later = {field.name: field.default for field in fields(self) if field.default is not MISSING_DEFAULT}
        return {key: value for key, value in asdict(self).items() if later.get(key, MISSING_DEFAULT) != value}

    @classmethod
    def from_keys(cls, keys: Mapping[str, Any]) -> Self:
        """Return the columns that the keys of [input.columns] declare, from a run file or from a contract.

        Raises:
            TypeError: a key is missing or unknown.
        """
        lists = {key: tuple(value) for key, value in keys.items() if isinstance(value, list | tuple)}
        if where := keys.get("where"):
            pairs = where.items() if isinstance(where, Mapping) else where
            lists["where"] = tuple((name, tuple(values)) for name, values in pairs)
        return cls(**{**keys, "where": (), **lists})


@dataclass(frozen=True, slots=True)
class ReadingRules:
    """The settings of a run file that decide how a row is parsed; the content id of a file depends on them.

    `layout_keys` are the keys that the layout adds to [input] (`Layout.keys`), None for their defaults. `columns` and
    an `interval_minutes` other than 30 are for "long" only.
    """

    max_half_hour_wh: int = 50_000
    layout_keys: Section | None = None
    columns: NamedColumns | None = None
    interval_minutes: int = INTERVAL_MINUTES

    @property
    def max_reading_wh(self) -> int:
        """Return the largest plausible reading of the interval [Wh]: the same power as the bound of a half-hour."""
        return self.max_half_hour_wh * self.interval_minutes // INTERVAL_MINUTES


def round_to_wh(
    energy: np.ndarray[Any, np.dtype[np.float64]],
    rules: ReadingRules,
    *,
    unit_wh: float = 1000.0,
    units_per_wh: int = 1,
) -> tuple[Int32s, Bytes]:
    """Round energies to whole watt-hours, or parts of one (-1 if unusable), and tell the rejection reason of each cell.

    Float noise is rounded to the nearest watt-hour: 1.4529999 kWh is 1453 Wh. `unit_wh` is the unit of `energy`, and
    `units_per_wh` the number of parts. A negative energy is rejected unless `rules` say otherwise.
    """
    negative_energy = "reject" if rules.columns is None else rules.columns.negative
    bound = rules.max_reading_wh * units_per_wh
    with np.errstate(over="ignore", invalid="ignore"):  # 1e308 kWh is above any bound
        wh = energy * (unit_wh * units_per_wh)
        np.rint(wh, out=wh)
        # almost always; the least and the largest of numbers that include NaN are NaN
        if energy.min(initial=0) >= 0 and wh.max(initial=0) <= bound:
            return wh.astype(np.int32), np.zeros(len(wh), np.uint8)
    finite, negative = np.isfinite(energy), energy < 0
    if negative_energy == "zero":
        wh[negative & finite] = 0
    above = np.abs(wh) > bound if negative_energy == "net" else wh > bound
    if negative_energy != "reject":
        negative = np.zeros(len(wh), bool)
    reason = np.select(
        [~finite, negative, above],
        [int(RejectionReason.NOT_FINITE), int(RejectionReason.NEGATIVE), int(RejectionReason.ABOVE_BOUND)],
        int(RejectionReason.KEPT),
    )
    return np.where(finite & ~above & ~negative, wh, MISSING).astype(np.int32), reason.astype(np.uint8)


def energy_flags(reason: Bytes) -> dict[RejectionReason, Flags]:
    """Return which energies each of the reasons of `round_to_wh` rejects, without those that reject none.

    >>> {kind.name: flags.tolist() for kind, flags in energy_flags(np.array([0, 8], np.uint8)).items()}
    {'NEGATIVE': [False, True]}
    """
    kinds = (RejectionReason.NOT_FINITE, RejectionReason.NEGATIVE, RejectionReason.ABOVE_BOUND) if reason.any() else ()
    return {kind: flags for kind in kinds if (flags := reason == int(kind)).any()}


def is_impossible_time(time: Int32s) -> Flags:
    """Return which times (day since 1970 x 48 + slot) are outside 1970 to 2199.

    >>> is_impossible_time(np.array([-1, 0, 84_006 * 48 - 1, 84_006 * 48], np.int32)).tolist()
    [True, False, False, True]
    """
    return (time < 0) | (time >= (day_number(LAST_DAY) + 1) * SLOTS)


def first_reason(energy: Bytes | None = None, /, **flags_by_reason: Flags) -> Bytes:
    """Return each row's first rejection reason in order of precedence, `KEPT` if no flag is set.

    Args:
        energy: the reason against the energy of each row, as of `round_to_wh`.
        flags_by_reason: which rows each further reason rejects, by its name.

    >>> date_flags, text_flags = np.array([True, False, False]), np.array([True, True, False])
    >>> first_reason(TEXT=text_flags, DATE=date_flags).tolist()
    [3, 6, 0]
    """
    flags = {RejectionReason[name]: flags for name, flags in flags_by_reason.items()}
    rows = len(next(iter(flags.values())))
    flags |= energy_flags(energy) if energy is not None else {}
    reason = np.zeros(rows, np.uint8)
    for row_reason in sorted(flags, reverse=True):
        if flags[row_reason].any():
            reason[flags[row_reason]] = row_reason
    return reason
