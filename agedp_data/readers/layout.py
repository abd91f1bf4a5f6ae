"""The interface of a dataset: what a new one has to say, and nothing else.

A layout recognises a header, names the columns to parse with their declared types, and turns the parsed
columns of a block into records. A record is one input row: a household, a channel (series that add up to the
household's use), the day, the first slot and `width` readings in whole watt-hours (-1: missing). Every row
gets a reason: `RejectionReason.KEPT`, or why it was set aside. All civil-time arithmetic ends here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from enum import IntEnum
from typing import Any, Protocol, Self

import numpy as np
import pyarrow as pa

from agedp_data.errors import InputError
from agedp_data.notions.parameters import Section

Ints = np.ndarray[Any, np.dtype[np.int64]]
Flags = np.ndarray[Any, np.dtype[np.bool_]]

SLOTS = 48
INTERVAL_MINUTES = 30
"""Minutes between readings where a run file says nothing else: those of the two public datasets."""
MISSING = -1
PASSES = 4
UNTOLD = 3
"""The channel of a pass of a repeated half-hour that its stamp does not tell from the other: see `settle`.

Where a half-hour is read in parts, its n-th part has these channels plus n x `PASSES`.
"""
FIRST_DAY, LAST_DAY = date(1970, 1, 1), date(2199, 12, 31)
_EPOCH = date(1970, 1, 1)


class RejectionReason(IntEnum):
    """Why a row is not among the readings; the order is that of precedence.

    `LINE` precedes them all: such a row has no fields. Stores hold these numbers, so a new one is the last.
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
        """Return the reason as the reports print it."""
        return _WORDS[self]


_WORDS = {
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
    """[input.columns] of a run file: which columns a "long" table has and what they mean."""

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
    def of(cls, keys: Mapping[str, Any]) -> Self:
        """Return the columns that a run file or a contract writes out, key by key."""
        return cls(**{**keys, "missing": tuple(keys["missing"])})


@dataclass(frozen=True, slots=True)
class ReadingRules:
    """What of the run file decides how a row is read (part of a stored part's name).

    `own` holds the keys that the layout adds to [input] (`Layout.keys`), None for their defaults; `columns` and an
    `interval_minutes` other than 30 are for "long" only.
    """

    max_half_hour_wh: int = 50_000
    own: Section | None = None
    columns: NamedColumns | None = None
    interval_minutes: int = INTERVAL_MINUTES

    @property
    def max_reading_wh(self) -> int:
        """Return the most that a reading of the interval may be: as much power as the bound of a half-hour allows."""
        return self.max_half_hour_wh * self.interval_minutes // INTERVAL_MINUTES


@dataclass(frozen=True, slots=True)
class Header:
    """What the header line of a file says, and nothing that its rows say.

    `names` are the columns in file order, the ones to be parsed under the layout's own names; `types` their
    declared Arrow types; `time_formats` what a stamp may be written in (see `stamps`), told apart row by row.
    """

    variant: str
    lines: int
    names: tuple[str, ...]
    types: Mapping[str, pa.DataType]
    time_formats: tuple[str, ...] = ()
    null_values: tuple[str, ...] = ("", "Null")


@dataclass(frozen=True, slots=True)
class Columns:
    """The parsed columns of a block; `unreadable[name]` marks cells that are not of the declared type.

    `instants[name]` marks stamps that name their offset: these are in UTC, all others what a clock shows.
    """

    rows: int
    values: Mapping[str, pa.Array]
    unreadable: Mapping[str, Flags]
    instants: Mapping[str, Flags]

    def bad(self, name: str) -> Flags:
        """Return which cells of a column could not be read."""
        found = self.unreadable.get(name)
        return np.zeros(self.rows, bool) if found is None else found


@dataclass(frozen=True, slots=True)
class Records:
    """One line per input row (n): household code into `ids`, channel, day and slot, (n, width) energy, reason."""

    ids: tuple[str, ...]
    household: Ints
    channel: Ints
    day: Ints
    slot: Ints
    energy_wh: Ints
    reason: Ints
    notes: Mapping[str, int]


Channels = tuple[frozenset[int], ...]
"""Sets of channels; rows of all channels of one of them, and of no other, add up to a reading."""
ALONE: Channels = (frozenset({0}),)


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
        """Return the header if the first lines of a file (two, if there are as many) are this layout's, else None.

        Raises:
            InputError: what is wrong with them, where the layout can say it.
        """

    def wrong_dates(self, rows: Sequence[str], header: Header) -> InputError:
        """Return the error about a file whose first rows have no date that this layout reads."""

    def known_headers(self) -> tuple[str, ...]:
        """Return the known header lines, to name the nearest in a message."""

    def records(self, columns: Columns, header: Header, rules: ReadingRules) -> Records:
        """Return the records of a block."""

    def complete(self, rules: ReadingRules) -> Channels:
        """Return which channels make up a reading."""

    def absent_slots(self, day: date) -> tuple[int, ...]:
        """Return the slots that this day does not have (the clock goes forward)."""

    def repeated_slots(self, day: date) -> tuple[int, ...]:
        """Return the slots that hold two half-hours (the clock goes back); no transition uses them."""

    def day_end(self, day: date) -> datetime:
        """Return the instant (UTC) at which a day of this layout ends."""


def slot_step(interval_minutes: int) -> int:
    """Return on every how many slots of a day there is a reading: 2 for hours, else 1."""
    return max(1, interval_minutes // INTERVAL_MINUTES)


def expected_readings(layout: Layout, day: date) -> int:
    """Return how many readings a complete day has: 48 half-hours, 46 when the clock goes forward; 24 or 23 hours."""
    step = slot_step(layout.interval_minutes)
    return SLOTS // step - sum(slot % step == 0 for slot in layout.absent_slots(day))


def whole_wh(
    energy: np.ndarray[Any, np.dtype[np.float64]], rules: ReadingRules, *, unit_wh: float = 1000.0
) -> tuple[Ints, Ints]:
    """Return energies in whole watt-hours (-1 where unusable) and the reason of each cell.

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
    """Return distinct ids, a code per row (-1: unusable) and which rows have no usable id."""
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
    codes = lookup[filled(column.indices, len(texts))]
    return tuple(ids), codes, codes < 0


def filled(column: pa.Array, value: float) -> np.ndarray[Any, np.dtype[Any]]:
    """Return the numbers of a column, `value` where it has none.

    Arrow's own `to_numpy` imports pandas for this: 0.3 s and 60 MB.

    >>> filled(pa.array([1, None, 3])[1:], 7).tolist()
    [7, 3]
    """
    bare = pa.Array.from_buffers(column.type, len(column), [None, column.buffers()[1]], offset=column.offset)
    found = np.from_dlpack(bare)
    return np.where(nulls(column), value, found) if column.null_count else found


def nulls(column: pa.Array) -> Flags:
    """Return which cells of a column are empty.

    >>> nulls(pa.array([1, None, 3])).tolist()
    [False, True, False]
    """
    if column.null_count == 0:
        return np.zeros(len(column), bool)
    return np.from_dlpack(column.is_null().cast(pa.uint8())).astype(bool)


def impossible_days(day: Ints) -> Flags:
    """Return which days since 1970 lie outside 1970 to 2199: no meter wrote a half-hour then.

    >>> impossible_days(np.array([-1, 0, 84_005, 84_006])).tolist()
    [True, False, False, True]
    """
    return (day < 0) | (day > (LAST_DAY - _EPOCH).days)


def first_reason(rows: int, marks: Sequence[tuple[RejectionReason, Flags]]) -> Ints:
    """Return each row's first reason in the order of precedence, `KEPT` where no mark is set."""
    reason = np.zeros(rows, np.int64)
    for why, mark in sorted(marks, key=lambda pair: -pair[0]):
        if mark.any():
            reason[mark] = why
    return reason
