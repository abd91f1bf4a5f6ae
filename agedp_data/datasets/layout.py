"""The interface of a dataset: everything that a new dataset implements.

A layout recognises a header, names the columns to parse with their declared types, and turns the parsed
columns of a chunk into records. A record is one input row: a household, a channel (series that add up to the
household's use), the day, the first slot and `width` readings in whole watt-hours (-1: missing). Every row
gets a reason: `RejectionReason.KEPT`, or why it was rejected. All civil-time arithmetic ends here.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import pairwise
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa

from agedp_data.datasets import validation
from agedp_data.datasets.csv_lines import split_fields
from agedp_data.datasets.timestamps import ZoneDays, parse_timestamp
from agedp_data.datasets.validation import SLOTS, Bytes, Flags, Int32s, Ints, ReadingRules, RejectionReason
from agedp_data.errors import InputError
from agedp_data.parameters import Section

PASSES = 4
UNKNOWN_PASS = 3
"""The channel of a repeated half-hour whose timestamp fits both passes: see `deduplication`.

If readings are shorter than a half-hour, the n-th part of a half-hour has these channels plus n x `PASSES`.
"""


@dataclass(frozen=True, slots=True)
class Header:
    """The header line of a file; nothing in it depends on the rows.

    `names` are the columns in file order, parsed columns under the layout's names. `types` are their declared Arrow
    types. `time_formats` are the formats of a timestamp (see `timestamps`), tried row by row. `columns` are the names
    of the columns in the file, in the order of `names`; `float_ids` tells that its household ids are floating-point
    numbers. A row of a wide table has `readings_per_row` records, one for each household, and then `is_shared`; a row
    of a day has one for each interval. `household` is that of the file, if no column has it. A chunk of the file may
    begin after the first byte of each `block_start`.
    """

    variant: str
    lines: int
    names: tuple[str, ...]
    types: Mapping[str, pa.DataType]
    time_formats: tuple[str, ...] = ()
    null_values: tuple[str, ...] = ("", "Null")
    columns: tuple[str, ...] = ()
    separator: str = ","
    decimal: str = "."
    readings_per_row: int = 1
    float_ids: bool = False
    is_shared: bool = False
    household: str = ""
    thousands: str = ""
    block_start: bytes = b"\n"

    @property
    def energies(self) -> tuple[str, ...]:
        """Return the names of the columns of energies, in the order of the file."""
        return tuple(name for name in self.names if self.types.get(name) == pa.float64() and name != PERIOD)

    @property
    def has_timestamps(self) -> bool:
        """Return whether one column has the timestamp of each row, and not the date of a day or a period."""
        is_by_day = self.readings_per_row > 1 and not self.is_shared
        return "time" in self.names and PERIOD not in self.names and not is_by_day

    @property
    def time_parts(self) -> tuple[str, ...]:
        """Return the names of the columns whose texts make one timestamp; empty if it is one column."""
        return tuple(name for name in self.names if name in TIME_PARTS)


PERIOD: Final = "period"
"""Name of the column with the number of an interval within its day."""
TIME_PARTS: Final = ("time_0", "time_1")
BETWEEN_MINUTES: Final = 255
"""Minutes past a quarter of a timestamp that is not on a minute."""


@dataclass(frozen=True, slots=True)
class QuarterTimes:
    """The timestamps (n) of a chunk in quarters of an hour since 1970.

    Attributes:
        quarter: the quarter that contains the timestamp, shape (n,); any of 1970 for one that is unreadable.
        past: minutes past the beginning of the quarter, shape (n,); `BETWEEN_MINUTES` if it is not on a minute.
        unreadable: which cells are no timestamp, shape (n,).
        is_instant: which have a UTC offset: these are in UTC, all others are wall-clock times, shape (n,).
    """

    quarter: Int32s
    past: Bytes
    unreadable: Flags
    is_instant: Flags

    @property
    def is_exact(self) -> Flags:
        """Return which timestamps are the beginning of their quarter, shape (n,)."""
        is_exact: Flags = self.past == 0
        return is_exact


@dataclass(frozen=True, slots=True)
class Columns:
    """The parsed columns of a chunk; `unreadable[name]` marks cells that are not of the declared type.

    `times` are the columns of timestamps, `values` all others.
    """

    rows: int
    values: Mapping[str, pa.Array]
    unreadable: Mapping[str, Flags]
    times: Mapping[str, QuarterTimes]

    def unreadable_cells(self, name: str) -> Flags:
        """Return which cells of a column are not of the declared type, shape (rows,)."""
        flags = self.unreadable.get(name)
        return np.zeros(self.rows, bool) if flags is None else flags


_NO_HALF_HOUR = [int(reason) for reason in (RejectionReason.HOUSEHOLD, RejectionReason.DATE, RejectionReason.CATEGORY)]
"""Reasons that precede those of the energy: such a record names no household, no half-hour, or nothing asked for."""


@dataclass(frozen=True, slots=True)
class Records:
    """The records of a chunk, one per input row (n), or in a wide table one per row and household, row by row.

    `household` are indices into `ids`; `channel`, `time` of the first reading (day since 1970 x 48 + slot) and `reason`
    (`RejectionReason`) have shape (n,), `energy_wh` shape (n, width). `notes` counts remarks about kept rows, by text.
    `off_grid` (n,) tells which readable timestamps are none of an interval, whatever the reason; None: all are. `label`
    (n,) tells the meters of a household apart that are added up (`label_of`); None: each household has one.
    The types are as small as those of the stored rows: a chunk has millions of records.
    """

    ids: tuple[str, ...]
    household: Int32s
    channel: Bytes
    time: Int32s
    energy_wh: Int32s
    reason: Bytes
    notes: Mapping[str, int]
    off_grid: Flags | None = None
    label: Ints | None = None

    def names_half_hour(self, records: Ints) -> Flags:
        """Return which of these records, kept or rejected, name a household and a half-hour; no energy decides it."""
        reason = self.reason[records]
        names: Flags = ~np.isin(reason, _NO_HALF_HOUR)
        return names if self.off_grid is None else names & ~self.off_grid[records]

    def is_off_grid(self) -> Flags:
        """Return which records name a household and a time that is none of an interval; no energy decides it."""
        off_grid = np.zeros(len(self.reason), bool) if self.off_grid is None else self.off_grid
        return off_grid & ~np.isin(self.reason, [*_NO_HALF_HOUR, RejectionReason.FIELDS, RejectionReason.LINE])

    @property
    def day(self) -> Int32s:
        """Return the day of each record, since 1970."""
        return self.time // np.int32(SLOTS)

    @property
    def slot(self) -> Int32s:
        """Return the slot of the first reading of each record."""
        return self.time - self.day * np.int32(SLOTS)


Channels = tuple[frozenset[int], ...]
"""Sets of channels; the rows of exactly the channels of one set add up to a reading."""
SINGLE_CHANNEL: Channels = (frozenset({0}),)


class Layout(Protocol):
    """One dataset: `width` readings a row (1 or 48), channels 0 to `channels` - 1, days of `day_zone`.

    Readings of half-hours (`interval_minutes` 30) fill all slots of a day, and so do shorter ones, which add up to
    half-hours; readings of hours fill every second slot, that of their first half-hour.

    A header lies within the first `head_lines` lines of a file. Stored energies are in units of 1/`units_per_wh` Wh, so
    that readings which are added up are rounded once. With `has_labels` records have a `label`.
    """

    name: str
    day_zone: str
    width: int
    channels: int
    interval_minutes: int
    separator: str
    encoding: str
    head_lines: int
    units_per_wh: int
    has_labels: bool

    @property
    def keys(self) -> type[Section] | None:
        """The keys that this layout adds to [input], each with a default; None if it adds none."""

    def recognise(self, lines: Sequence[str], location: str = "") -> Header | None:
        """Return the header if the first lines of a file (up to `head_lines`) are this layout's, else None.

        Raises:
            InputError: the lines are not this layout's, and the layout can name the mistake.
        """

    def date_format_error(self, rows: Sequence[str], header: Header) -> InputError:
        """Return the error about a file whose first rows have no date that this layout reads."""

    def known_headers(self) -> tuple[str, ...]:
        """Return the known header lines; a message names the nearest one."""

    def records(self, columns: Columns, header: Header, rules: ReadingRules) -> Records:
        """Return the records of a chunk, one per row; a record depends on its row, the header and the rules only."""

    def complete_channels(self, rules: ReadingRules) -> Channels:
        """Return the sets of channels that add up to a reading; with any other channels a reading is missing."""

    def absent_slots(self, day: date) -> tuple[int, ...]:
        """Return the slots that do not exist on this day (the clock goes forward)."""

    def repeated_slots(self, day: date) -> tuple[int, ...]:
        """Return the slots that occur twice on this day (the clock goes back); no transition uses them."""

    def day_end(self, day: date) -> datetime:
        """Return the instant (UTC) at which a day of this layout ends."""


class PublishedLayout:
    """What layouts have in common unless they say otherwise: rows of one half-hour, one channel, days of `day_zone`."""

    day_zone: str
    width = 1
    interval_minutes = validation.INTERVAL_MINUTES
    channels = 1
    separator = ","
    encoding = "utf-8"
    head_lines = 2
    units_per_wh = 1
    has_labels = False
    keys: type[Section] | None = None

    def __init__(self) -> None:
        self._days = ZoneDays(self.day_zone)

    def complete_channels(self, rules: ReadingRules) -> Channels:  # noqa: ARG002
        """Return the one channel."""
        return SINGLE_CHANNEL

    def absent_slots(self, day: date) -> tuple[int, ...]:
        """Return the slots that do not exist on the day; none in a zone without summer time."""
        return self._days.absent_slots(day)

    def repeated_slots(self, day: date) -> tuple[int, ...]:
        """Return the slots that occur twice on the day; none in a zone without summer time."""
        return self._days.repeated_slots(day)

    def day_end(self, day: date) -> datetime:
        """Return the instant (UTC) at which the day ends."""
        return self._days.day_end(day)


def label_of(text: str) -> int:
    """Return the number that tells a meter of a household apart from its others, in every part of every file.

    >>> label_of("E1") == label_of("E1"), label_of("E1") == label_of("E2")
    (True, False)
    """
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little", signed=True)


def slot_step(interval_minutes: int) -> int:
    """Return the number of slots from one reading to the next: 2 for hourly readings, else 1.

    >>> slot_step(15), slot_step(30), slot_step(60)
    (1, 1, 2)
    """
    return max(1, interval_minutes // validation.INTERVAL_MINUTES)


def expected_readings(layout: Layout, day: date) -> int:
    """Return the number of readings of a complete day, in half-hours, or in hours if the layout has hourly readings.

    A household-day is usable if it lacks at most `max_missing` of them.

    >>> from agedp_data.datasets.ausgrid import Ausgrid
    >>> expected_readings(Ausgrid(), date(2012, 10, 6)), expected_readings(Ausgrid(), date(2012, 10, 7))
    (48, 46)
    """
    step = slot_step(layout.interval_minutes)
    return SLOTS // step - sum(slot % step == 0 for slot in layout.absent_slots(day))


def household_ids(column: pa.DictionaryArray) -> tuple[tuple[str, ...], Int32s, Flags]:
    """Return the households of a column of ids.

    Ids are UTF-8 without surrounding blanks; an empty or undecodable id is unusable.

    Args:
        column: the ids as bytes, dictionary-encoded, shape (n,).

    Returns:
        The distinct ids, sorted; the index of each row's id, shape (n,), -1 if unusable; which rows have no usable id.

    >>> ids, codes, _ = household_ids(pa.array([b"B", b" A", None, b"B"]).dictionary_encode())
    >>> ids, codes.tolist()
    (('A', 'B'), [1, 0, -1, 1])
    """
    texts: list[str | None] = []
    for raw in column.dictionary.to_pylist():
        try:
            text = raw.decode("utf-8").removeprefix("\ufeff").strip(" \t") if raw is not None else ""
        except UnicodeDecodeError:
            text = ""
        texts.append(text or None)
    ids = sorted({text for text in texts if text is not None})
    position = {text: i for i, text in enumerate(ids)}
    lookup = np.array([-1 if text is None else position[text] for text in texts] + [-1], np.int32)
    indices = fill_nulls(column.indices, len(texts))
    is_sorted = column.null_count == 0 and (lookup[:-1] == np.arange(len(texts))).all()
    codes = indices.astype(np.int32, copy=False) if is_sorted else lookup[indices]
    return tuple(ids), codes, codes < 0


def fill_nulls(column: pa.Array, value: float) -> np.ndarray[Any, np.dtype[Any]]:
    """Return the numbers of a column, with `value` for nulls.

    Arrow's own `to_numpy` imports pandas for this: 0.3 s and 60 MB.

    >>> fill_nulls(pa.array([1, None, 3])[1:], 7).tolist()
    [7, 3]
    """
    without_nulls = pa.Array.from_buffers(column.type, len(column), [None, column.buffers()[1]], offset=column.offset)
    numbers = np.from_dlpack(without_nulls)
    return np.where(is_null(column), value, numbers) if column.null_count else numbers


def one_array(column: pa.ChunkedArray) -> pa.Array:
    """Return a column as one array, with one dictionary; nothing is copied if it is one already.

    >>> one_array(pa.chunked_array([["A"], ["B", None]]).dictionary_encode()).dictionary.to_pylist()
    ['A', 'B']
    """
    if column.num_chunks == 1:
        return column.chunk(0)
    joined = (column.unify_dictionaries() if pa.types.is_dictionary(column.type) else column).combine_chunks()
    if isinstance(joined, pa.ChunkedArray):
        joined = joined.chunk(0) if joined.num_chunks else pa.array([], joined.type)
    return joined


def is_text(kind: pa.DataType) -> bool:
    """Return whether a type is one of Arrow's types of texts.

    >>> is_text(pa.large_string()), is_text(pa.binary())
    (True, False)
    """
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def arrow_numbers(values: np.ndarray[Any, np.dtype[Any]]) -> pa.Array:
    """Return numbers as an Arrow array that shares their memory.

    Arrow's own `pa.array` imports pandas for this: 0.3 s and 60 MB.

    >>> arrow_numbers(np.array([1, 3], np.int32)).type
    DataType(int32)
    """
    buffer = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [None, buffer])


def is_null(column: pa.Array) -> Flags:
    """Return which cells of a column are null.

    >>> is_null(pa.array([1, None, 3])).tolist()
    [False, True, False]
    """
    if column.null_count == 0:
        return np.zeros(len(column), bool)
    return np.from_dlpack(column.is_null().cast(pa.uint8())).astype(bool)


# --------------------------------------------------------------------------------------------------
# The interval between readings, measured on the first rows of a file.
#
# It is measured only before a series begins: later no reading changes how another reading is parsed.
# --------------------------------------------------------------------------------------------------

INTERVALS: Final = (5, 10, 15, 30, 60)
"""Minutes between readings that a run file may declare."""
DECLARABLE: Final = f"{', '.join(map(str, INTERVALS[:-1]))} or {INTERVALS[-1]} minutes"
DAY_MINUTES: Final = 1440
_MIN_GAPS: Final = 8
_MAX_INTERVAL_MINUTES: Final = 240
"""Minutes; longer gaps do not count as an interval."""
_MINUTE_NS: Final = 60 * 10**9


def common_interval(timestamps: Iterable[Iterable[int]], *, max_minutes: int = _MAX_INTERVAL_MINUTES) -> int | None:
    """Return the minutes between most consecutive timestamps (in minutes) of the same household.

    None if there are too few gaps, or most are longer than `max_minutes` minutes.

    >>> common_interval([range(0, 600, 60)]), common_interval([[0, 30, 90]])
    (60, None)
    """
    gaps = Counter(
        later - earlier for household_times in timestamps for earlier, later in pairwise(sorted(set(household_times)))
    )
    if gaps.total() < _MIN_GAPS:
        return None
    minutes, count = gaps.most_common(1)[0]
    return minutes if 2 * count > gaps.total() and minutes <= max_minutes else None


def interval_remedy(minutes: int, *, is_long: bool) -> str:
    """Return the remedy for files whose readings are this many minutes apart.

    >>> interval_remedy(60, is_long=True)
    'write [input] interval_minutes = 60'

    Args:
        minutes: measured interval.
        is_long: whether dataset = "long", which alone may declare an interval.
    """
    if minutes not in INTERVALS:
        return f"deliver readings of {DECLARABLE}"
    if is_long:
        return f"write [input] interval_minutes = {minutes}"
    return f'describe the columns under dataset = "long" with [input] interval_minutes = {minutes}'


def have_early_midnights(timestamps: Iterable[Sequence[int]], minutes: int) -> bool:
    """Return whether the rows of households go back only from the end of a day to the midnight that begins it.

    So they do where 00:00 under the date of a day is the midnight that ends it: the next row is of the next day.
    Timestamps are in the order of the file, in minutes.

    >>> day = [*range(30, 1440, 30), 0]
    >>> [have_early_midnights([[*day, *(time + 1440 for time in of_next)]], 30) for of_next in (day, sorted(day))]
    [True, False]
    """
    steps = [[later - earlier for earlier, later in pairwise(of_household)] for of_household in timestamps]
    backward = [pair for of_household in steps for pair in pairwise([*of_household, 0]) if pair[0] < 0]
    return len(backward) > 1 and set(backward) <= {(minutes - DAY_MINUTES, step) for step in (DAY_MINUTES + minutes, 0)}


def times_of_rows(rows: Sequence[str], header: Header) -> list[list[int]]:
    """Return the timestamps of each household in a file's first rows, in minutes; none for rows of days.

    `rows` are the bytes of the lines as Latin-1.
    """
    if not header.has_timestamps:
        return []
    time = header.names.index("time")
    household = header.names.index("household") if "household" in header.names else None  # of a wide table any
    timestamps: dict[str, list[int]] = {}
    for row in rows:
        cells = split_fields(row, header.separator)
        timestamp = (
            parse_timestamp(cells[time].strip(" \t").encode("latin-1"), header.time_formats)
            if len(cells) == len(header.names)
            else None
        )
        if timestamp is not None:
            name = "" if household is None else cells[household].strip()
            timestamps.setdefault(name, []).append(timestamp.ns // _MINUTE_NS)
    return [*timestamps.values()]
