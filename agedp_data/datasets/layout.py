"""The interface of a dataset: everything that a new dataset implements.

A layout recognises a header, names the columns to parse with their declared types, and turns the parsed
columns of a chunk into records. A record is one input row: a household, a channel (series that add up to the
household's use), the day, the first slot and `width` readings in whole watt-hours (-1: missing). Every row
gets a reason: `RejectionReason.KEPT`, or why it was rejected. All civil-time arithmetic ends here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from enum import IntEnum
from typing import Any, Protocol, Self

import numpy as np
import pyarrow as pa

from agedp_data.datasets.timestamps import day_number
from agedp_data.errors import InputError
from agedp_data.parameters import Section

Ints = np.ndarray[Any, np.dtype[np.int64]]
Flags = np.ndarray[Any, np.dtype[np.bool_]]

SLOTS = 48
INTERVAL_MINUTES = 30
"""Default minutes between readings: those of the two public datasets."""
MISSING = -1
PASSES = 4
UNKNOWN_PASS = 3
"""The channel of a repeated half-hour whose timestamp fits both passes: see `deduplication`.

If readings are shorter than a half-hour, the n-th part of a half-hour has these channels plus n x `PASSES`.
"""
FIRST_DAY, LAST_DAY = date(1970, 1, 1), date(2199, 12, 31)


class RejectionReason(IntEnum):
    """Why a row is rejected, in order of precedence; `KEPT` for a row that is not.

    `LINE` precedes all reasons: such a row has no fields. Stores contain these numbers, so a new reason comes last.
    """

    KEPT = 0
    FIELDS = 1
    HOUSEHOLD = 2
    DATE = 3
    CATEGORY = 4
    MISSING = 5
    TEXT = 6
    NOT_FINITE = 7
    NEGATIVE = 8
    ABOVE_BOUND = 9
    OFF_GRID = 10
    DUPLICATE = 11
    CONFLICT = 12
    SUPERSEDED = 13
    LINE = 14

    @property
    def words(self) -> str:
        """Return the reason as text, as reports print it."""
        return _LABELS[self]


_LABELS = {
    RejectionReason.KEPT: "kept",
    RejectionReason.FIELDS: "wrong number of fields",
    RejectionReason.HOUSEHOLD: "no household id, or one that is not UTF-8",
    RejectionReason.DATE: "impossible date",
    RejectionReason.CATEGORY: "consumption category not asked for",
    RejectionReason.MISSING: "no reading (Null or empty)",
    RejectionReason.TEXT: "text in a number",
    RejectionReason.NOT_FINITE: "infinite or not a number",
    RejectionReason.NEGATIVE: "negative energy",
    RejectionReason.ABOVE_BOUND: "above the physical bound of a half-hour",
    RejectionReason.OFF_GRID: "stamp is not on a half-hour",
    RejectionReason.DUPLICATE: "exact duplicate",
    RejectionReason.CONFLICT: "disagrees with another row about the same reading",
    RejectionReason.SUPERSEDED: "corrected by a later file",
    RejectionReason.LINE: "no line of text (empty, stray quote, control character, or over 64 KiB)",
}


@dataclass(frozen=True, slots=True)
class NamedColumns:
    """[input.columns] of a run file: the columns of a "long" table and their meaning."""

    household: str
    time: str
    time_format: str
    stamp: str
    zone: str
    day_zone: str
    energy: str
    unit: str
    missing: tuple[str, ...]

    @classmethod
    def from_keys(cls, keys: Mapping[str, Any]) -> Self:
        """Return the columns that the keys of [input.columns] declare, from a run file or from a contract.

        Raises:
            TypeError: a key is missing or unknown.
        """
        return cls(**{**keys, "missing": tuple(keys["missing"])})


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


@dataclass(frozen=True, slots=True)
class Header:
    """The header line of a file; nothing in it depends on the rows.

    `names` are the columns in file order, parsed columns under the layout's names. `types` are their declared Arrow
    types. `time_formats` are the formats of a timestamp (see `timestamps`), tried row by row.
    """

    variant: str
    lines: int
    names: tuple[str, ...]
    types: Mapping[str, pa.DataType]
    time_formats: tuple[str, ...] = ()
    null_values: tuple[str, ...] = ("", "Null")


@dataclass(frozen=True, slots=True)
class Columns:
    """The parsed columns of a chunk; `unreadable[name]` marks cells that are not of the declared type.

    `instants[name]` marks timestamps with a UTC offset: these are in UTC, all others are wall-clock times.
    """

    rows: int
    values: Mapping[str, pa.Array]
    unreadable: Mapping[str, Flags]
    instants: Mapping[str, Flags]

    def unreadable_cells(self, name: str) -> Flags:
        """Return which cells of a column are not of the declared type, shape (rows,)."""
        flags = self.unreadable.get(name)
        return np.zeros(self.rows, bool) if flags is None else flags


@dataclass(frozen=True, slots=True)
class Records:
    """The records of a chunk, one per input row (n).

    `household` are indices into `ids`; `channel`, `day` (since 1970), `slot` of the first reading and `reason`
    (`RejectionReason`) have shape (n,), `energy_wh` shape (n, width). `notes` counts remarks about kept rows, by text.
    """

    ids: tuple[str, ...]
    household: Ints
    channel: Ints
    day: Ints
    slot: Ints
    energy_wh: Ints
    reason: Ints
    notes: Mapping[str, int]


Channels = tuple[frozenset[int], ...]
"""Sets of channels; the rows of exactly the channels of one set add up to a reading."""
SINGLE_CHANNEL: Channels = (frozenset({0}),)


class Layout(Protocol):
    """One dataset: `width` readings a row (1 or 48), channels 0 to `channels` - 1, days of `day_zone`.

    Readings of half-hours (`interval_minutes` 30) fill all slots of a day, and so do those of 15 minutes, two of which
    add up to a half-hour; readings of hours fill every second slot, that of their first half-hour.
    """

    name: str
    day_zone: str
    width: int
    channels: int
    interval_minutes: int

    @property
    def keys(self) -> type[Section] | None:
        """The keys that this layout adds to [input], each with a default; None if it adds none."""

    def recognise(self, lines: Sequence[str]) -> Header | None:
        """Return the header if the first lines of a file (up to two) are this layout's, else None.

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


def slot_step(interval_minutes: int) -> int:
    """Return the number of slots from one reading to the next: 2 for hourly readings, else 1.

    >>> slot_step(15), slot_step(30), slot_step(60)
    (1, 1, 2)
    """
    return max(1, interval_minutes // INTERVAL_MINUTES)


def expected_readings(layout: Layout, day: date) -> int:
    """Return the number of readings of a complete day, in half-hours, or in hours if the layout has hourly readings.

    A household-day is usable if it lacks at most `max_missing` of them.

    >>> from agedp_data.datasets.ausgrid import Ausgrid
    >>> expected_readings(Ausgrid(), date(2012, 10, 6)), expected_readings(Ausgrid(), date(2012, 10, 7))
    (48, 46)
    """
    step = slot_step(layout.interval_minutes)
    return SLOTS // step - sum(slot % step == 0 for slot in layout.absent_slots(day))


def round_to_wh(
    energy: np.ndarray[Any, np.dtype[np.float64]], rules: ReadingRules, *, unit_wh: float = 1000.0
) -> tuple[Ints, Ints]:
    """Round energies to whole watt-hours (-1 if unusable); return them with the rejection reason of each cell.

    Float noise is rounded to the nearest watt-hour: 1.4529999 kWh is 1453 Wh. `unit_wh` is the unit of `energy`.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # 1e308 kWh is above any bound
        wh = np.rint(energy * unit_wh)
        if ((energy >= 0) & (wh <= rules.max_reading_wh)).all():  # almost always
            return wh.astype(np.int64), np.zeros(len(wh), np.int64)
    finite = np.isfinite(energy)
    above, negative = wh > rules.max_reading_wh, energy < 0
    reason = np.select(
        [~finite, negative, above],
        [int(RejectionReason.NOT_FINITE), int(RejectionReason.NEGATIVE), int(RejectionReason.ABOVE_BOUND)],
        int(RejectionReason.KEPT),
    )
    return np.where(finite & ~above & ~negative, wh, MISSING).astype(np.int64), reason


def household_ids(column: pa.DictionaryArray) -> tuple[tuple[str, ...], Ints, Flags]:
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
    lookup = np.array([-1 if text is None else position[text] for text in texts] + [-1], np.int64)
    codes = lookup[fill_nulls(column.indices, len(texts))]
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


def is_null(column: pa.Array) -> Flags:
    """Return which cells of a column are null.

    >>> is_null(pa.array([1, None, 3])).tolist()
    [False, True, False]
    """
    if column.null_count == 0:
        return np.zeros(len(column), bool)
    return np.from_dlpack(column.is_null().cast(pa.uint8())).astype(bool)


def is_impossible_day(day: Ints) -> Flags:
    """Return which days since 1970 are outside 1970 to 2199; no meter recorded a half-hour then.

    >>> is_impossible_day(np.array([-1, 0, 84_005, 84_006])).tolist()
    [True, False, False, True]
    """
    return (day < 0) | (day > day_number(LAST_DAY))


def first_reason(rows: int, flags_by_reason: Sequence[tuple[RejectionReason, Flags]]) -> Ints:
    """Return each row's first rejection reason in order of precedence, `KEPT` if no flag is set.

    >>> date_flags, text_flags = np.array([True, False, False]), np.array([True, True, False])
    >>> first_reason(3, [(RejectionReason.TEXT, text_flags), (RejectionReason.DATE, date_flags)]).tolist()
    [3, 6, 0]
    """
    reason = np.zeros(rows, np.int64)
    for row_reason, flags in sorted(flags_by_reason, key=lambda pair: -pair[0]):
        if flags.any():
            reason[flags] = row_reason
    return reason
