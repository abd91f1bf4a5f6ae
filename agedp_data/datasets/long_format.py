"""Any table of one row per household and interval; the run file declares columns, zones, unit and timestamps.

A timestamp is the wall-clock time of `zone` at the end or start of an interval of 15, 30 or 60 minutes. With
`stamp = "end"` the interval begins at the wall-clock time that is 15, 30 or 60 minutes earlier, as in the publishers'
column labels. (A file whose ends were converted from UTC one by one loses up to two readings at a clock change and
gains none: deliver it in UTC.) The interval is then assigned to a slot of a day of `day_zone`:

* Half-hours that occur twice on a day of `day_zone` are two readings, distinguished by their instants, and are added
  up; if one of the passes is missing, the sum is missing.
* A timestamp with a UTC offset (`time_format = "iso"`) is an instant: `zone` does not apply to it.
* Timestamps that the clock of `zone` never shows are rejected as impossible dates.
* Timestamps that it shows twice are both passes, if a file has two rows with them and both belong to one slot of the
  day (`deduplication`). If the passes belong to different slots, nothing distinguishes them, and the rows are rejected.

Two readings of 15 minutes add up to a half-hour; if one is missing, the half-hour is missing. An hourly reading is
not split: it belongs to the slot of its first half-hour and must begin on a full hour of `day_zone`, because one that
begins at half past would belong to two days at midnight.

Columns are identified by their exact names, in any order; all other columns are ignored. In a wide table (household
and energy "*") every column but the timestamp and those of `ignore` is a household. Each of its cells counts as a row,
even if it is empty: a line names its half-hour for every household of the header. With `repeated = "sum"` a half-hour
that occurs twice is one row with the energy of both passes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime
from typing import TypeVar, cast

import numpy as np
import pyarrow as pa

from agedp_data.datasets.csv_lines import column_names, first_cells
from agedp_data.datasets.layout import (
    PASSES,
    Channels,
    Columns,
    Header,
    Records,
    fill_nulls,
    household_ids,
    is_null,
    slot_step,
)
from agedp_data.datasets.timestamps import COMMON_FORMATS, ClockPass, WallClock, ZoneDays, matches_format, parser_format
from agedp_data.datasets.validation import (
    FIRST_DAY,
    INTERVAL_MINUTES,
    LAST_DAY,
    SLOTS,
    Bytes,
    Flags,
    Int32s,
    NamedColumns,
    ReadingRules,
    RejectionReason,
    first_reason,
    is_impossible_time,
    round_to_wh,
)
from agedp_data.errors import InputError
from agedp_data.messages import escape_text

_TYPES = {
    "household": pa.dictionary(pa.int32(), pa.binary()),
    "time": pa.timestamp("ns"),
    "energy": pa.float64(),
}
Array = TypeVar("Array", Int32s, Bytes, Flags)
_UNIT_WH = {"kWh": 1000.0, "Wh": 1.0}
_QUARTER_MINUTES = 15
_QUARTERS = ((LAST_DAY - FIRST_DAY).days + 1) * 96
_NOTE = "rows of a half-hour that the day has twice (kept)"


class Long:
    """The layout that [input.columns] describes: a row is one household and interval of 15, 30 or 60 minutes.

    Timestamps are converted from `zone` to days and slots of `day_zone`. Channels are the passes of a repeated
    half-hour and, for readings of 15 minutes, its two quarters.
    """

    name = "long"
    width = 1
    keys = None

    def __init__(self, columns: NamedColumns, interval_minutes: int = INTERVAL_MINUTES) -> None:
        self.columns = columns
        self.interval_minutes = interval_minutes
        self._parts = max(1, INTERVAL_MINUTES // interval_minutes)
        self.channels = PASSES * self._parts
        self.separator = columns.separator
        self.day_zone = columns.day_zone
        self._days = ZoneDays(columns.day_zone)
        self._clock = WallClock(columns.zone, self._days)
        self._utc = WallClock("UTC", self._days)
        self._format = parser_format(columns.time_format)
        self._missing = tuple(sorted({word.strip(" \t") for word in columns.missing}))
        self._missing_numbers = _parse_numbers(self._missing)

    def recognise(self, lines: Sequence[str]) -> Header | None:
        """Return the header; the three columns may be in any order.

        Raises:
            InputError: a column is missing or occurs twice.
        """
        lines = lines[:1]
        columns = [_decode_utf8(name).strip(" \t") for line in lines for name in column_names(line, self.separator)]
        roles = {self._declared_columns[role].strip(): role for role in self._declared_columns}
        for name in (*roles, *self.columns.ignore):
            if columns.count(name) != 1:
                raise self._column_error(name, columns)
        if self.columns.is_wide:
            return self._wide_header(columns)
        names = tuple(roles.get(name, f"unused_{i}") for i, name in enumerate(columns))
        return self._header(names, _TYPES, tuple(columns), readings_per_row=1)

    def _wide_header(self, columns: Sequence[str]) -> Header:
        """Return the header of a table with a column for each household.

        Raises:
            InputError: no household, or one with two columns.
        """
        not_households = {self.columns.time.strip(), *self.columns.ignore, ""}
        households = [name for name in columns if name not in not_households]
        if not households or len(set(households)) < len(households):
            problem = "needs one column for each household besides the timestamp"
            raise InputError(f"[input.columns] {problem}; the header has {len(households)}, some of them twice or none")
        names = tuple(
            "time" if name == self.columns.time.strip() else f"{'unused' if name in not_households else 'energy'}_{i}"
            for i, name in enumerate(columns)
        )
        types = {name: _TYPES["energy"] for name in names if name.startswith("energy")}
        return self._header(names, {"time": _TYPES["time"], **types}, tuple(columns), len(types))

    def _header(
        self, names: tuple[str, ...], types: Mapping[str, pa.DataType], columns: tuple[str, ...], readings_per_row: int
    ) -> Header:
        formats, marks = (self._format,), (self.separator, self.columns.decimal)
        return Header("long", 1, names, types, formats, self._missing, columns, *marks, readings_per_row)

    @property
    def _declared_columns(self) -> dict[str, str]:
        if self.columns.is_wide:
            return {"time": self.columns.time}
        return {"household": self.columns.household, "time": self.columns.time, "energy": self.columns.energy}

    def _column_error(self, name: str, columns: Sequence[str]) -> InputError:
        expected = ", ".join(f'"{column}"' for column in self._declared_columns.values())
        problem = (
            f"[input.columns] needs the columns {expected}; "
            f'the header has "{name}" {columns.count(name)} times, not once'
        )
        present = ", ".join(f'"{column}"' for column in columns)
        return InputError(problem, private=f"{problem}; columns found: {escape_text(present, 200)}")

    def date_format_error(self, rows: Sequence[str], header: Header) -> InputError:
        """Return the error about a file whose first rows have no timestamp of the declared format.

        The private text quotes the first timestamp and proposes a common format that fits all of them.
        """
        cells = first_cells(rows, header.names.index("time"), fields=len(header.names), separator=self.separator)
        first = [cell for cell in cells if cell not in self._missing]
        problem = f'no timestamp of the first rows matches [input.columns] time_format = "{self.columns.time_format}"'
        if not first:
            return InputError(problem)
        common_format = next(
            (time_format for time_format in COMMON_FORMATS if all(matches_format(cell, time_format) for cell in first)),
            None,
        )
        suggestion = f'; did you mean "{common_format}"?' if common_format else ""
        return InputError(problem, private=f'{problem}; the first is "{escape_text(first[0], 40)}"{suggestion}')

    def known_headers(self) -> tuple[str, ...]:
        """Return the header line that consists of the three columns."""
        return (self.separator.join(self._declared_columns.values()),)

    def records(self, columns: Columns, header: Header, rules: ReadingRules) -> Records:
        """Return one record per row, of a wide table one per cell; a valid row without a reading is `MISSING`."""
        no_position, position, off_grid = self._positions(columns)
        names = ["energy"]
        if self.columns.is_wide:
            names = [name for name in header.names if name in header.types and name != "time"]
            ids, codes, no_id = _column_households([header.columns[header.names.index(name)] for name in names])
            household: Int32s = np.tile(codes, columns.rows)
            no_household: Flags = np.tile(no_id, columns.rows)
        else:
            ids, household, no_household = household_ids(columns.values["household"])
        time, channel = _repeat(position[0], len(names)), _repeat(position[1], len(names))
        no_position, off_grid = _repeat(no_position, len(names)), _repeat(off_grid, len(names))
        energies = [self._energies(columns, name, rules) for name in names]
        energy, missing, energy_reason, no_number = (
            np.stack(values, axis=1).ravel() for values in zip(*energies, strict=True)
        )
        reason = first_reason(
            len(energy),
            [
                (RejectionReason.HOUSEHOLD, no_household),
                (RejectionReason.DATE, no_position | is_impossible_time(time)),
                (RejectionReason.MISSING, missing),
                (RejectionReason.TEXT, no_number),
                (RejectionReason.OFF_GRID, off_grid),
                *(
                    (energy_kind, energy_reason == energy_kind)
                    for energy_kind in (
                        RejectionReason.NOT_FINITE,
                        RejectionReason.NEGATIVE,
                        RejectionReason.ABOVE_BOUND,
                    )
                ),
            ],
        )
        repeated_rows = int(((channel % PASSES > 0) & (reason == RejectionReason.KEPT)).sum())
        notes = {_NOTE: repeated_rows} if repeated_rows else {}
        return Records(ids, household, channel, time, energy.reshape(-1, 1), reason, notes, off_grid)

    def _positions(self, columns: Columns) -> tuple[Flags, tuple[Int32s, Bytes], Flags]:
        """Return which rows have no position, time and channel of all others, and which rows are off the grid."""
        timestamp = columns.times["time"]
        minutes_before = self.interval_minutes if self.columns.stamp == "end" else 0
        start = timestamp.quarter - np.int32(minutes_before // _QUARTER_MINUTES)
        unreadable = timestamp.unreadable | (start < 0) | (start >= _QUARTERS)
        start[unreadable] = 0
        is_instant = timestamp.is_instant & ~unreadable
        time, channel, minutes = (self._utc if is_instant.all() else self._clock).positions_at(start)
        if is_instant.any() and not is_instant.all():
            of_instants = self._utc.positions_at(start[is_instant])
            time[is_instant], channel[is_instant], minutes[is_instant] = of_instants
        off_grid = ~timestamp.is_exact
        if (step := slot_step(self.interval_minutes)) > 1:
            off_grid |= time % SLOTS % step != 0
        if self.columns.repeated == "sum":
            channel = np.zeros_like(channel)
        if self._parts == 1:
            off_grid |= minutes != 0
        else:
            channel = channel + np.uint8(PASSES) * (minutes // np.uint8(self.interval_minutes))
        return unreadable | (time < 0), (time, channel), off_grid

    def _energies(self, columns: Columns, name: str, rules: ReadingRules) -> tuple[Int32s, Flags, Bytes, Flags]:
        """Return watt-hours, which cells denote a missing reading, the reason against each, and which are no number."""
        cell, no_number = columns.values[name], columns.unreadable_cells(name)
        missing = is_null(cell) & ~no_number
        amount = fill_nulls(cell, 0.0)
        is_number = ~missing & ~no_number
        for number in self._missing_numbers:  # in any spelling: -9, -9.0 and " -9 " are one number
            missing |= is_number & (np.isnan(amount) if math.isnan(number) else amount == number)
        energy, reason = round_to_wh(amount, rules, unit_wh=_UNIT_WH[self.columns.unit])
        return energy, missing, reason, no_number

    def complete_channels(self, rules: ReadingRules) -> Channels:  # noqa: ARG002
        """Return the channels of a slot that occurs once, and of one that occurs twice; each with all of its parts."""
        parts = range(0, self.channels, PASSES)
        return tuple(
            frozenset(int(channel) + part for channel in passes for part in parts)
            for passes in ((ClockPass.ONLY,), (ClockPass.FIRST, ClockPass.SECOND))
        )

    def absent_slots(self, day: date) -> tuple[int, ...]:
        """Return the slots that do not exist on the day."""
        return self._days.absent_slots(day)

    def repeated_slots(self, day: date) -> tuple[int, ...]:
        """Return the slots that occur twice on the day."""
        return self._days.repeated_slots(day)

    def day_end(self, day: date) -> datetime:
        """Return the instant (UTC) at which the day ends."""
        return self._days.day_end(day)


def _repeat(values: Array, times: int) -> Array:
    return values if times == 1 else cast("Array", np.repeat(values, times))


def _column_households(names: Sequence[str]) -> tuple[tuple[str, ...], Int32s, Flags]:
    """Return the households of the columns of a wide table, as `household_ids` those of a column."""
    return household_ids(pa.array([name.encode() for name in names], pa.binary()).dictionary_encode())


def _parse_numbers(words: Sequence[str]) -> tuple[float, ...]:
    numbers: list[float] = []
    for word in words:
        with suppress(ValueError):  # a word, not a number
            numbers.append(float(word))
    return tuple(numbers)


def _decode_utf8(latin: str) -> str:
    """Return a name that was decoded as Latin-1 as UTF-8, if its bytes are UTF-8."""
    try:
        return latin.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return latin
