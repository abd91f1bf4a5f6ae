"""Any table of readings of 5 to 60 minutes; the run file declares columns, zones, unit and timestamps.

A row is one household and interval, one household and day with a column for each interval (energy [first, last]), or
one interval with a column for each household (household and energy "*"). Columns are identified by their exact names,
in any order; all other columns are ignored.

A timestamp is the wall-clock time of `zone` at the end or start of an interval. With `stamp = "end"` the interval
begins at the wall-clock time that is an interval earlier, as in the publishers' column labels. (A file whose ends were
converted from UTC one by one loses up to two readings in autumn and gains none: deliver it in UTC.) In spring the
interval before the skipped hour may end at the beginning of that hour or at its end, which are one instant. The
interval is then assigned to a slot of a day of `day_zone`:

* Half-hours that occur twice on a day of `day_zone` are two readings, distinguished by their instants, and are added
  up; if one of the passes is missing, the sum is missing.
* A timestamp with a UTC offset (`time_format = "iso"`), or in seconds since 1970, is an instant: `zone` does not apply.
* Timestamps that the clock of `zone` never shows are rejected as impossible dates.
* Timestamps that it shows twice are both passes, if a file has two rows with them and both belong to one slot of the
  day (`deduplication`). If the passes belong to different slots, nothing distinguishes them, and the rows are rejected.
* With `repeated = "sum"` a half-hour that occurs twice is one row with the energy of both passes, as it always is in
  rows of days: these have a column for each time that a clock shows.
* The n-th period of a day begins n - `first_period` intervals after its midnight, whatever the clock shows: a day of 25
  hours has 50 half-hours.

Shorter readings add up to a half-hour; if one is missing, the half-hour is missing. An hourly reading is not split: it
belongs to the slot of its first half-hour and must begin on a full hour of `day_zone`, because one that begins at half
past would belong to two days at midnight. Energies that are added up, and powers, are stored in parts of a watt-hour
and rounded once (`units_per_wh`).

A line of a table with a column per household names its half-hour for every household of the header: each of its cells
counts as a row, even if it is empty. So does each cell of a row of a day.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from datetime import time as clock_time
from functools import lru_cache
from typing import TypeVar, cast
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa

from agedp_data.datasets import layout, timestamps, validation
from agedp_data.datasets.csv_lines import column_names, first_cells
from agedp_data.datasets.table_text import SEPARATOR_LINE, is_number, is_value
from agedp_data.datasets.validation import (
    SLOTS,
    Bytes,
    Flags,
    Int32s,
    Ints,
    NamedColumns,
    ReadingRules,
    RejectionReason,
)
from agedp_data.errors import InputError
from agedp_data.messages import escape_text

_TEXT = pa.dictionary(pa.int32(), pa.binary())
_TYPES = {
    "household": _TEXT,
    "time": pa.timestamp("ns"),
    **dict.fromkeys(layout.TIME_PARTS, pa.string()),
    layout.PERIOD: pa.float64(),
    "energy": pa.float64(),
}
Array = TypeVar("Array", Int32s, Ints, Bytes, Flags)
_WH_PER_KWH = 1000.0
_QUARTER_MINUTES, _HOUR_MINUTES, _DAY_MINUTES = 15, 60, 1440
_QUARTERS = ((validation.LAST_DAY - validation.FIRST_DAY).days + 1) * 96
_UNITS_PER_WH = 1200
"""Parts of a watt-hour that hold W of 5 minutes, kW and kWh with four decimals without a rest."""
_FIRST_SKIPPED = 2 * SLOTS  # before it are the times that cannot be read
_NOTE = "rows of a half-hour that the day has twice (kept)"


Positions = tuple[Flags, tuple[Int32s, Bytes], Flags]
"""Which records have no position, time and channel of all others, and which are off the grid."""


class Long(layout.PublishedLayout):
    """The layout that [input.columns] describes: readings of 5, 10, 15, 30 or 60 minutes.

    Timestamps are converted from `zone` to days and slots of `day_zone`. Channels are the passes of a repeated
    half-hour and, for shorter readings, its parts.
    """

    name = "long"

    def __init__(self, columns: NamedColumns, interval_minutes: int = validation.INTERVAL_MINUTES) -> None:
        self.columns, self.day_zone = columns, columns.day_zone
        super().__init__()
        self.interval_minutes = interval_minutes
        self._parts = max(1, validation.INTERVAL_MINUTES // interval_minutes)
        self.channels = layout.PASSES * self._parts
        self.separator = columns.separator
        self.encoding = columns.encoding
        self.head_lines = columns.skip_lines + 2
        self.has_labels = bool(columns.add)
        is_power = columns.unit in ("W", "kW")
        adds_up = interval_minutes < _QUARTER_MINUTES or self.has_labels
        self.units_per_wh = _UNITS_PER_WH if is_power or adds_up else 1
        hours = interval_minutes / _HOUR_MINUTES if is_power else 1.0
        self._unit_wh = (_WH_PER_KWH if columns.unit.startswith("k") else 1.0) * hours
        self._clock = timestamps.WallClock(columns.zone, self._days)
        self._utc = timestamps.WallClock("UTC", self._days)
        self._format = timestamps.parser_format(columns.time_format)
        self._missing = tuple(sorted({word.strip(" \t") for word in columns.missing}))
        self._missing_numbers = [float(word) for word in self._missing if is_number(word)]
        self._midnight = lru_cache(maxsize=4096)(self._find_midnight)

    def recognise(self, lines: Sequence[str], location: str = "") -> layout.Header | None:
        """Return the header below the lines that are skipped; its columns may be in any order.

        Raises:
            InputError: a column is missing or occurs twice, or no household stands where it should.
        """
        skipped = self.columns.skip_lines
        if not skipped and lines and SEPARATOR_LINE.fullmatch(lines[0].strip(" ")):
            skipped = 1
        names = [_decode_utf8(name).strip(" \t") for name in column_names("".join(lines[skipped:][:1]), self.separator)]
        roles = self._roles(names)
        used = [role for role in roles if not role.startswith("unused")]
        types = {role: _TYPES.get(role, _TEXT if role.startswith("text") else _TYPES["energy"]) for role in used}
        has_several = self.columns.is_wide or self.columns.is_by_day
        readings = sum(role.startswith("energy") for role in types) if has_several else 1
        return layout.Header(
            self.name, skipped + 1, roles, types, (self._format,), self._missing, tuple(names), self.separator,
            self.columns.decimal, readings, is_shared=self.columns.is_wide, thousands=self.columns.thousands,
            household=self._household(lines, location),
        )  # fmt: skip

    def _roles(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the role of each column by its name; the names of a header are texts without surrounding blanks."""
        role_by_name = {name.strip(): role for name, role in self._declared_roles}
        for name in (*role_by_name, *self.columns.ignore):
            if names.count(name) != 1:
                raise self._column_error(name, names)
        if self.columns.is_wide:
            return self._wide_roles(names, role_by_name)
        if self.columns.is_by_day:
            first, last = (names.index(name.strip()) for name in self.columns.energy)
            days = {names[i]: f"energy_{i}" for i in range(first, last + 1)}
            expected = _DAY_MINUTES // self.interval_minutes
            if len(days) != expected or days.keys() & role_by_name.keys() - {names[first], names[last]}:
                problem = f"[input.columns] energy names {len(days)} columns from the first to the last"
                raise InputError(f"{problem}; a day of {self.interval_minutes} minutes has {expected}")
            role_by_name |= days
        return tuple(role_by_name.get(name, f"unused_{i}") for i, name in enumerate(names))

    @property
    def _declared_roles(self) -> list[tuple[str, str]]:
        """Return the declared columns with their roles; columns of texts only if they have no other role."""
        columns = self.columns
        kind, place = columns.household_source
        household = [(place, "household")] if kind == "column" and not columns.is_wide else []
        times = columns.time_columns
        pair = ("time", layout.PERIOD) if columns.period_minutes else layout.TIME_PARTS
        time_roles = ("time",) if len(times) == 1 else pair
        energies = [] if columns.is_wide else [(name, "energy") for name in columns.energy_columns]
        declared = [*household, *zip(times, time_roles, strict=True), *energies]
        texts = dict.fromkeys([*(name for name, _ in columns.where), *([columns.add] if columns.add else [])])
        known = {name for name, _ in declared}
        return [*declared, *((name, f"text_{i}") for i, name in enumerate(texts) if name not in known)]

    def _wide_roles(self, names: Sequence[str], role_by_name: Mapping[str, str]) -> tuple[str, ...]:
        """Return the roles of the columns of a table with a column for each household.

        Raises:
            InputError: no household, or one with two columns.
        """
        not_households = {*role_by_name, *self.columns.ignore, ""}
        households = [name for name in names if name not in not_households]
        doubled = [name for name, number in Counter(households).items() if number > 1]
        if not households or doubled:
            found = f"{len(households)}, some of them twice" if doubled else "none"
            problem = (
                f"[input.columns] needs one column for each household besides the timestamp; the header has {found}"
            )
            twice = f": {escape_text(', '.join(doubled), 200)}. Give each column a name of its own, or ignore it"
            raise InputError(problem, private=problem + twice if doubled else problem)
        return tuple(
            role_by_name.get(name) or f"{'unused' if name in not_households else 'energy'}_{i}"
            for i, name in enumerate(names)
        )

    def _household(self, lines: Sequence[str], location: str) -> str:
        """Return the household of a file whose name, or a line before its header, has it; "" if a column has it."""
        kind, place = self.columns.household_source
        if kind == "file":
            before, household, *others = map(re.escape, place.split("*"))
            rest = ".*".join([household, *others])
            found = re.fullmatch(f"{before}(.+?){rest}(\\.gz|\\.zip|\\.zst)?", location.rpartition("/")[2])
            if location and not found:
                problem = f'the name of the file does not fit [input.columns] household = "{self.columns.household}"'
                raise InputError(problem)
            return found[1].strip() if found else ""
        if kind == "line":
            cells = column_names("".join(lines[int(place) - 1 :][:1]), self.separator)
            if int(place) > len(lines) or not cells or not (household := _decode_utf8(cells[0]).strip()):
                raise InputError(f'line {place} has no household, as [input.columns] household = "line:{place}" says')
            return household
        return ""

    def _column_error(self, name: str, columns: Sequence[str]) -> InputError:
        expected = ", ".join(f'"{column}"' for column, _ in self._declared_roles)
        problem = f"[input.columns] needs the columns {expected}; "
        problem += f'the header has "{name}" {columns.count(name)} times, not once'
        if any(map(is_value, columns)) and not self.columns.is_wide and not self.columns.is_by_day:
            problem += "; that line seems to be a row: write a header line above it, or skip_lines"
        else:
            problem += ". Give each column a name of its own" if name in columns else ". Name columns of the header"
        present = ", ".join(f'"{column}"' for column in columns)
        return InputError(problem, private=f"{problem}; columns found: {escape_text(present, 200)}")

    def date_format_error(self, rows: Sequence[str], header: layout.Header) -> InputError:
        """Return the error about a file whose first rows have no timestamp of the declared format.

        The private text quotes the first timestamp and proposes a common format that fits all of them.
        """
        position = header.names.index("time" if "time" in header.names else layout.TIME_PARTS[0])
        cells = first_cells(rows, position, fields=len(header.names), separator=self.separator)
        first = [cell for cell in cells if cell not in self._missing]
        problem = f'no timestamp of the first rows matches [input.columns] time_format = "{self.columns.time_format}"'
        if not first:
            return InputError(problem)
        formats = (*timestamps.COMMON_FORMATS, *timestamps.EPOCHS)
        fitting = (kind for kind in formats if all(timestamps.matches_format(cell, kind) for cell in first))
        common_format = next(fitting, None)
        suggestion = f'; did you mean "{common_format}"?' if common_format else ""
        return InputError(problem, private=f'{problem}; the first is "{escape_text(first[0], 40)}"{suggestion}')

    def known_headers(self) -> tuple[str, ...]:
        """Return the header line that consists of the declared columns."""
        return (self.separator.join(name for name, _ in self._declared_roles),)

    def records(self, columns: layout.Columns, header: layout.Header, rules: ReadingRules) -> layout.Records:
        """Return one record per row, or per cell of a row of several; a valid row without a reading is `MISSING`."""
        names, rows = header.energies, columns.rows
        no_position, (time, channel), off_grid = self._positions(columns, len(names))
        ids, household, no_household = self._households(columns, header, names)
        energies = [self._energies(columns, name, rules) for name in names]
        energy, missing, energy_reason, no_number = (
            values[0] if len(names) == 1 else np.stack(values, axis=1).ravel() for values in zip(*energies, strict=True)
        )
        role_by_name = dict(zip(header.columns, header.names, strict=True))
        excluded = np.zeros(rows, bool)
        for name, texts in self.columns.where:
            excluded |= ~_has_text(columns.values[role_by_name[name]], texts)
        label = _labels(columns.values[role_by_name[self.columns.add]]) if self.columns.add else None
        if no_position.any():  # a number at a time that the zone skips names its day, and no half-hour
            is_skipped = no_position & (time >= _FIRST_SKIPPED)
            time[no_position & no_number] = 0
            off_grid = off_grid | is_skipped
            no_position = no_position & ~(is_skipped & missing)  # an empty cell lacks nothing there
        no_date = no_position | validation.is_impossible_time(time)
        reason = validation.first_reason(
            energy_reason, HOUSEHOLD=no_household, DATE=no_date, MISSING=missing, TEXT=no_number, OFF_GRID=off_grid
        )
        if self.columns.where:  # a row that is not asked for names nobody, whatever else it lacks
            reason[_repeat(excluded, len(names))] = RejectionReason.CATEGORY
        repeated_rows = int(((channel % layout.PASSES > 0) & (reason == RejectionReason.KEPT)).sum())
        notes = {_NOTE: repeated_rows} if repeated_rows else {}
        labels = None if label is None else _repeat(label, len(names))
        return layout.Records(ids, household, channel, time, energy.reshape(-1, 1), reason, notes, off_grid, labels)

    def _households(
        self, columns: layout.Columns, header: layout.Header, names: Sequence[str]
    ) -> tuple[tuple[str, ...], Int32s, Flags]:
        """Return the ids, the index of each record's household in them, and which records have none."""
        rows = columns.rows
        if self.columns.is_wide:
            households = pa.array([header.columns[header.names.index(name)].encode() for name in names], pa.binary())
            ids, codes, no_id = layout.household_ids(households.dictionary_encode())
            return ids, np.tile(codes, rows), np.tile(no_id, rows)
        if "household" in header.names:
            ids, codes, no_id = layout.household_ids(columns.values["household"])
            return ids, _repeat(codes, len(names)), _repeat(no_id, len(names))
        number = rows * len(names)
        return (header.household,), np.zeros(number, np.int32), np.zeros(number, bool)

    def _positions(self, columns: layout.Columns, cells: int) -> Positions:
        """Return which records have no position, time and channel of all others, and which are off the grid."""
        timestamp = columns.times["time"]
        if self.columns.is_by_day:
            return self._positions_of_days(timestamp, cells)
        if self.columns.period_minutes:
            return self._positions_of_periods(timestamp, columns)
        if self.interval_minutes < _QUARTER_MINUTES:
            minute = timestamp.quarter * np.int32(_QUARTER_MINUTES) + timestamp.past
            minute -= np.int32(self.interval_minutes if self.columns.stamp == "end" else 0)
            between = timestamp.past == layout.BETWEEN_MINUTES
            start, extra = np.divmod(np.where(between, 0, minute), np.int32(_QUARTER_MINUTES))
        else:
            minutes_before = self.interval_minutes if self.columns.stamp == "end" else 0
            start, extra = timestamp.quarter - np.int32(minutes_before // _QUARTER_MINUTES), None
            between = ~timestamp.is_exact
        unreadable = timestamp.unreadable | (start < 0) | (start >= _QUARTERS)
        start[unreadable] = 0
        no_position, position, off_grid = self._slots(start, extra, timestamp.is_instant & ~unreadable)
        is_skipped = no_position & ~timestamp.is_instant
        if self.columns.stamp == "end" and is_skipped.any():
            rows = np.flatnonzero(is_skipped)
            skipped, end_skipped = map(self._clock.skipped_quarters, (start[rows], timestamp.quarter[rows]))
            before = start[rows] - np.where(end_skipped == 0, skipped, np.int32(0))
            parts = None if extra is None else extra[rows]
            found = self._slots(before, parts, np.zeros(len(rows), bool))
            no_position[rows], (position[0][rows], position[1][rows]), off_grid[rows] = found
        if cells > 1:
            time, channel = _repeat(position[0], cells), _repeat(position[1], cells)
            return _repeat(unreadable | no_position, cells), (time, channel), _repeat(off_grid | between, cells)
        return unreadable | no_position, position, off_grid | between

    def _positions_of_days(self, date: layout.QuarterTimes, cells: int) -> Positions:
        """Return the positions of the cells of days: the wall-clock times from midnight on."""
        off_grid = (date.quarter % np.int32(_DAY_MINUTES // _QUARTER_MINUTES) != 0) | ~date.is_exact
        minute = np.arange(cells, dtype=np.int32) * np.int32(self.interval_minutes)
        start = (date.quarter[:, None] + minute // np.int32(_QUARTER_MINUTES)).ravel()
        extra = np.tile(minute % np.int32(_QUARTER_MINUTES), len(date.quarter))
        unreadable = _repeat(date.unreadable | date.is_instant, cells) | (start < 0) | (start >= _QUARTERS)
        start[unreadable] = 0
        no_position, (time, channel), between = self._slots(start, extra, np.zeros(len(start), bool))
        return unreadable | no_position, (time, channel), _repeat(off_grid, cells) | between

    def _positions_of_periods(self, date: layout.QuarterTimes, columns: layout.Columns) -> Positions:
        """Return the positions of numbered periods: so many intervals after the midnight of their date."""
        cell = columns.values[layout.PERIOD]
        number = layout.fill_nulls(cell, -1.0) - self.columns.first_period
        unreadable = date.unreadable | date.is_instant | columns.unreadable_cells(layout.PERIOD) | (number < 0)
        unreadable |= (number != np.floor(number)) | (number >= 2 * _DAY_MINUTES // self.interval_minutes)
        off_grid = (date.quarter % np.int32(_DAY_MINUTES // _QUARTER_MINUTES) != 0) | ~date.is_exact
        days, code = np.unique(date.quarter, return_inverse=True)
        midnights = np.array([self._midnight(int(day) // 96) for day in days.tolist()], np.int64).reshape(-1, 2)
        minute = np.where(unreadable, 0, number).astype(np.int64) * self.interval_minutes
        unreadable |= minute >= midnights[code, 1]
        start, extra = np.divmod(midnights[code, 0] + np.where(unreadable, 0, minute), _QUARTER_MINUTES)
        start, extra = start.astype(np.int32), extra.astype(np.int32)
        unreadable |= (start < 0) | (start >= _QUARTERS)
        start[unreadable] = 0
        no_position, position, between = self._slots(start, extra, np.ones(len(start), bool))
        return unreadable | no_position, position, off_grid | between

    def _find_midnight(self, day: int) -> tuple[int, int]:
        """Return the midnight that begins a day of `zone` in minutes since 1970, and the minutes of the day."""
        zone = ZoneInfo(self.columns.zone)
        first, last = (datetime.combine(timestamps.date_of_day(day + i), clock_time(), zone) for i in range(2))
        start, end = (int(midnight.astimezone(UTC).timestamp()) // 60 for midnight in (first, last))
        return start, end - start

    def _slots(self, start: Int32s, extra: Int32s | None, is_instant: Flags) -> Positions:
        """Return which quarters have no slot, the slot and channel of the others, and which are off the grid.

        Args:
            start: quarters of an hour since 1970, by the clock of `zone`, or in UTC of instants, shape (n,).
            extra: minutes past them, shape (n,); None: none.
            is_instant: which are in UTC, shape (n,).
        """
        time, channel, minutes = (self._utc if is_instant.all() else self._clock).positions_at(start)
        if is_instant.any() and not is_instant.all():
            of_instants = self._utc.positions_at(start[is_instant])
            time[is_instant], channel[is_instant], minutes[is_instant] = of_instants
        if extra is not None:
            minutes = minutes + extra.astype(np.uint8)
        off_grid: Flags = np.zeros(len(start), bool)
        if (step := layout.slot_step(self.interval_minutes)) > 1:
            off_grid = time % SLOTS % step != 0
        if self.columns.repeated == "sum" or self.columns.is_by_day:
            channel = np.zeros_like(channel)
        if self._parts == 1:
            off_grid = off_grid | (minutes != 0)
        else:
            part = minutes // np.uint8(self.interval_minutes)
            off_grid = off_grid | (part * np.uint8(self.interval_minutes) != minutes)
            channel = channel + np.uint8(layout.PASSES) * part
        no_slot = time < 0
        time[no_slot] = start[no_slot] // np.int32(_DAY_MINUTES // _QUARTER_MINUTES) * np.int32(SLOTS)
        return no_slot, (time, channel), off_grid

    def _energies(self, columns: layout.Columns, name: str, rules: ReadingRules) -> tuple[Int32s, Flags, Bytes, Flags]:
        """Return watt-hours, which cells denote a missing reading, the reason against each, and which are no number."""
        cell, no_number = columns.values[name], columns.unreadable_cells(name)
        missing = layout.is_null(cell) & ~no_number
        amount = layout.fill_nulls(cell, 0.0)
        is_number = ~missing & ~no_number
        for number in self._missing_numbers:  # in any spelling: -9, -9.0 and " -9 " are one number
            missing |= is_number & (np.isnan(amount) if math.isnan(number) else amount == number)
        energy, reason = validation.round_to_wh(amount, rules, unit_wh=self._unit_wh, units_per_wh=self.units_per_wh)
        return energy, missing, reason, no_number

    def complete_channels(self, rules: ReadingRules) -> layout.Channels:  # noqa: ARG002
        """Return the channels of a slot that occurs once, and of one that occurs twice; each with all of its parts."""
        parts = range(0, self.channels, layout.PASSES)
        return tuple(
            frozenset(int(channel) + part for channel in passes for part in parts)
            for passes in ((timestamps.ClockPass.ONLY,), (timestamps.ClockPass.FIRST, timestamps.ClockPass.SECOND))
        )

    def slot_before_skip(self, day: date) -> int | None:
        """Return the slot of the interval that ends where the clock of `zone` skips no more than an interval; or None.

        Two timestamps are its end, and no row tells by itself that its clock is another one.
        """
        columns, minutes = self.columns, max(validation.INTERVAL_MINUTES, self.interval_minutes)
        skipped = timestamps.ZoneDays(columns.zone).absent_slots(day)
        is_row = columns.stamp == "end" and not (columns.is_by_day or columns.period_minutes)
        if not (is_row and 0 < len(skipped) * validation.INTERVAL_MINUTES <= self.interval_minutes):
            return None
        midnight = datetime.combine(day, clock_time())
        position = self._clock.slot_at(midnight + timedelta(minutes=skipped[0] * validation.INTERVAL_MINUTES - minutes))
        return position.slot if position is not None and timestamps.date_of_day(position.day) == day else None


def _has_text(column: pa.DictionaryArray, texts: Sequence[str]) -> Flags:
    """Return which cells have one of these texts, without surrounding blanks."""
    wanted = {text.encode() for text in texts}
    is_wanted = [*((raw or b"").strip(b" \t") in wanted for raw in column.dictionary.to_pylist()), False]
    found: Flags = np.array(is_wanted)[layout.fill_nulls(column.indices, len(is_wanted) - 1)]
    return found


def _labels(column: pa.DictionaryArray) -> Ints:
    """Return the number of each cell's text, without surrounding blanks (`label_of`)."""
    words = [(raw or b"").strip(b" \t").decode("utf-8", "replace") for raw in column.dictionary.to_pylist()]
    numbers = np.array([*map(layout.label_of, words), layout.label_of("")], np.int64)
    labels: Ints = numbers[layout.fill_nulls(column.indices, len(words))]
    return labels


def _repeat(values: Array, times: int) -> Array:
    return values if times == 1 else cast("Array", np.repeat(values, times))


def _decode_utf8(latin: str) -> str:
    """Return a name that was decoded as Latin-1 as UTF-8, if its bytes are UTF-8."""
    try:
        return latin.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return latin
