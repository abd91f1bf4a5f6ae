"""Any table of one row per household and interval: columns, zones, unit and stamp as the run file says.

A stamp is what a clock of `zone` shows at the end or at the start of an interval of 15, 30 or 60 minutes; with
`stamp = "end"` the interval is the one that began when that clock showed so many minutes less, as on the publishers'
column labels. (A file whose ends were converted from UTC one by one loses up to two readings at a change of the clock,
and gains none: give it in UTC.) The interval is then placed in a day of `day_zone`:

* Half-hours that the days of `day_zone` have twice are two readings, told apart by their instants, and are added up;
  if one of the passes is missing, so is the sum.
* A stamp that names its offset (`time_format = "iso"`) is an instant: `zone` does not matter to it.
* Stamps that the clock of `zone` never shows are set aside as impossible dates.
* Stamps that it shows twice are both passes, if a file has two rows with them and both belong to one slot of the
  day (`settle`); where they belong to different ones, nothing tells which is which, and they are set aside.

Two readings of 15 minutes add up to a half-hour; if one is missing, so is the half-hour. A reading of an hour stays as
it is, on the slot of its first half-hour, and must begin with an hour of `day_zone`: one that begins at half past
would belong to two days at midnight.

Columns are found by their exact names, in any order; other columns are not read.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from datetime import date, datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from agedp_data.errors import InputError
from agedp_data.readers.civil import ClockPass, WallClock, ZoneDays
from agedp_data.readers.layout import (
    FIRST_DAY,
    INTERVAL_MINUTES,
    LAST_DAY,
    PASSES,
    UNTOLD,
    Channels,
    Columns,
    Flags,
    Header,
    Ints,
    NamedColumns,
    ReadingRules,
    Records,
    RejectionReason,
    first_reason,
    household_ids,
    impossible_days,
    slot_step,
    whole_wh,
)
from agedp_data.readers.lines import column_names, first_cells
from agedp_data.readers.stamps import USUAL, fits, parser_format
from agedp_data.shown import escape_text

_TYPES = {
    "household": pa.dictionary(pa.int32(), pa.binary()),
    "time": pa.timestamp("ns"),
    "energy": pa.float64(),
}
_CHANNEL = {ClockPass.ONLY: 0, ClockPass.FIRST: 1, ClockPass.SECOND: 2, ClockPass.EITHER: UNTOLD}
_UNIT_WH = {"kWh": 1000.0, "Wh": 1.0}
_QUARTER_MINUTES = 15
_QUARTER_NS = 900 * 10**9
_QUARTERS = ((LAST_DAY - FIRST_DAY).days + 1) * 96
_NOTE = "rows of a half-hour that the day has twice (kept)"


class Long:
    """The layout that [input.columns] describes."""

    name = "long"
    width = 1
    keys = None

    def __init__(self, columns: NamedColumns, interval_minutes: int = INTERVAL_MINUTES) -> None:
        self.columns = columns
        self.interval_minutes = interval_minutes
        self._parts = max(1, INTERVAL_MINUTES // interval_minutes)
        self.channels = PASSES * self._parts
        self.day_zone = columns.day_zone
        self._days = ZoneDays(columns.day_zone)
        self._clock = WallClock(columns.zone, self._days)
        self._utc = WallClock("UTC", self._days)
        self._format = parser_format(columns.time_format)
        self._missing = tuple(sorted({word.strip(" \t") for word in columns.missing}))
        self._missing_numbers = _numbers(self._missing)

    def recognise(self, lines: Sequence[str]) -> Header | None:
        """Return the header; the three columns may stand anywhere in it.

        Raises:
            InputError: a column that is not there or there twice.
        """
        columns = [_utf8(name).strip(" \t") for name in column_names(lines[0])] if lines else []
        roles = {self._wanted[role].strip(): role for role in self._wanted}
        for name in roles:
            if columns.count(name) != 1:
                raise self._not_there(name, columns)
        names = tuple(roles.get(name, f"unused_{i}") for i, name in enumerate(columns))
        return Header("long", 1, names, _TYPES, (self._format,), self._missing)

    @property
    def _wanted(self) -> dict[str, str]:
        return {"household": self.columns.household, "time": self.columns.time, "energy": self.columns.energy}

    def _not_there(self, name: str, found: Sequence[str]) -> InputError:
        wanted = ", ".join(f'"{each}"' for each in self._wanted.values())
        what = f'[input.columns] wants the columns {wanted}; "{name}" is there {found.count(name)} times, not once'
        there = ", ".join(f'"{each}"' for each in found)
        return InputError(what, private=f"{what}; found are {escape_text(there, 200)}")

    def wrong_dates(self, rows: Sequence[str], header: Header) -> InputError:
        """Return the error about a file whose first rows have no stamp of the declared format."""
        cells = first_cells(rows, header.names.index("time"), fields=len(header.names))
        first = [cell for cell in cells if cell not in self._missing]
        what = f'no stamp of the first rows is as [input.columns] time_format = "{self.columns.time_format}" says'
        if not first:
            return InputError(what)
        usual = next((known for known in USUAL if all(fits(cell, known) for cell in first)), None)
        near = f'; did you mean "{usual}"?' if usual else ""
        return InputError(what, private=f'{what}; the first is "{escape_text(first[0], 40)}"{near}')

    def known_headers(self) -> tuple[str, ...]:
        """Return the header line that has the three columns and no other."""
        return (",".join(self._wanted.values()),)

    def records(self, columns: Columns, header: Header, rules: ReadingRules) -> Records:  # noqa: ARG002
        """Return one record per row; a row without a reading is `MISSING` wherever its stamp is a stamp."""
        ids, household, no_household = household_ids(columns.values["household"])
        no_place, place, off_grid = self._places(columns)
        energy, missing, why = self._energies(columns, rules)
        day, slot, channel = place
        reason = first_reason(
            columns.rows,
            [
                (RejectionReason.HOUSEHOLD, no_household),
                (RejectionReason.DATE, no_place | impossible_days(day)),
                (RejectionReason.MISSING, missing),
                (RejectionReason.TEXT, columns.bad("energy")),
                (RejectionReason.OFF_GRID, off_grid),
                *(
                    (kind, why == kind)
                    for kind in (RejectionReason.NOT_FINITE, RejectionReason.NEGATIVE, RejectionReason.ABOVE_BOUND)
                ),
            ],
        )
        twice = int(((channel % PASSES > 0) & (reason == RejectionReason.KEPT)).sum())
        notes = {_NOTE: twice} if twice else {}
        return Records(ids, household, channel, day, slot, energy.reshape(-1, 1), reason, notes)

    def _places(self, columns: Columns) -> tuple[Flags, tuple[Ints, Ints, Ints], Flags]:
        """Return which rows have no place, day, slot and channel of the others, and which are off the intervals."""
        stamp = columns.values["time"]
        unreadable = pc.is_null(stamp).to_numpy(zero_copy_only=False) | columns.bad("time")
        ns = pc.fill_null(stamp.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
        quarter, rest = np.divmod(ns, _QUARTER_NS)
        start = quarter - (self.interval_minutes // _QUARTER_MINUTES if self.columns.stamp == "end" else 0)
        unreadable |= (start < 0) | (start >= _QUARTERS)
        is_instant = columns.instants.get("time", np.zeros(columns.rows, bool))
        distinct, code = np.unique(np.where(unreadable, 0, 2 * start + is_instant), return_inverse=True)
        clocks = (self._clock, self._utc)
        places = [clocks[number % 2].at_quarter(number // 2) for number in distinct.tolist()]
        table = np.array(
            [(p.day, p.slot, _CHANNEL[p.passed], p.minutes) if p else (-1, 0, 0, 0) for p in places], np.int64
        ).reshape(-1, 4)[code]
        day, slot, channel, minutes = table.T
        off_grid = (rest != 0) | (slot % slot_step(self.interval_minutes) != 0)
        if self._parts == 1:
            off_grid |= minutes != 0
        else:
            channel = channel + PASSES * (minutes // self.interval_minutes)
        return unreadable | (day < 0), (day, slot, channel), off_grid

    def _energies(self, columns: Columns, rules: ReadingRules) -> tuple[Ints, Flags, Ints]:
        """Return watt-hours, which cells are a word for missing, and the reason of each cell."""
        cell = columns.values["energy"]
        missing = pc.is_null(cell).to_numpy(zero_copy_only=False) & ~columns.bad("energy")
        amount = pc.fill_null(cell, 0.0).to_numpy(zero_copy_only=False)
        there = ~missing & ~columns.bad("energy")
        for number in self._missing_numbers:  # however it is written: -9, -9.0 and " -9 " are one number
            missing |= there & (np.isnan(amount) if math.isnan(number) else amount == number)
        energy, why = whole_wh(amount, rules, unit_wh=_UNIT_WH[self.columns.unit])
        return energy, missing, why

    def complete(self, rules: ReadingRules) -> Channels:  # noqa: ARG002
        """Return the only interval of a slot, or both of its passes; with all parts, if there are several."""
        parts = range(0, self.channels, PASSES)
        return tuple(
            frozenset(one + part for one in passes for part in parts)
            for passes in ((_CHANNEL[ClockPass.ONLY],), (_CHANNEL[ClockPass.FIRST], _CHANNEL[ClockPass.SECOND]))
        )

    def absent_slots(self, day: date) -> tuple[int, ...]:
        """Return the slots that the day does not have."""
        return self._days.absent_slots(day)

    def repeated_slots(self, day: date) -> tuple[int, ...]:
        """Return the slots that the day has twice."""
        return self._days.repeated_slots(day)

    def day_end(self, day: date) -> datetime:
        """Return the instant (UTC) at which the day ends."""
        return self._days.day_end(day)


def _numbers(words: Sequence[str]) -> tuple[float, ...]:
    found: list[float] = []
    for word in words:
        with suppress(ValueError):  # a word, not a number
            found.append(float(word))
    return tuple(found)


def _utf8(latin: str) -> str:
    """Return a name whose bytes were read as Latin-1 as the UTF-8 that they are, if they are."""
    try:
        return latin.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return latin
