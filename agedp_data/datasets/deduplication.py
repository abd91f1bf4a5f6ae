"""Deduplication: rows of a month -> readings; duplicates and conflicting rows rejected, channels and meters added up.

A pure function of the stored rows, in any order. Of equal rows one is kept. Conflicting rows (different energies of
one reading) are all rejected, within a file and between files, unless a later file corrects an earlier one. At most
one row per household, channel and time is kept, so the readings of a household are a function of its rows alone.

A table in civil time may contain a repeated autumn half-hour twice under one timestamp (`UNKNOWN_PASS`). Two such rows
of a file are the two passes, equal or not: half-hours of zero energy are common. With any other number of rows the
reading is missing. Readings shorter than a half-hour are deduplicated part by part.

The meters of a household, which labels tell apart, are deduplicated and completed one by one and then added up. A
half-hour that lacks a meter of which the household has a row on that day is missing. Energies that are added up are in
parts of a watt-hour: the sum of a half-hour is rounded once, half to even.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar, cast

import numpy as np

from agedp_data.datasets.layout import PASSES, UNKNOWN_PASS, Channels
from agedp_data.datasets.validation import MISSING, NO_READING, SLOTS, Flags, Int32s, Ints, RejectionReason

_MIN_RUN = 64
Energy = TypeVar("Energy", Ints, Int32s)


@dataclass(frozen=True, slots=True)
class StoredRows:
    """Stored rows (n): household code into `ids`, channel, time, file and row of origin, energy (n, width).

    `time` is day x 48 + slot, of the row's first reading; `energy_wh` is in the parts of a Wh that the layout stores.
    `label` (n,) tells the meters of a household apart; None: each has one. Arrays may have fewer bits than 64.
    """

    ids: tuple[str, ...]
    household: Ints
    channel: Ints
    time: Ints
    file: Ints
    row: Ints
    energy_wh: Ints
    label: Ints | None = None

    def take(self, indices: Ints) -> StoredRows:
        """Return the rows with these indices, in this order."""
        columns = (self.household, self.channel, self.time, self.file, self.row, self.energy_wh)
        household, channel, time, file, row, energy = (column.take(indices, axis=0) for column in columns)
        label = None if self.label is None else self.label[indices]
        return StoredRows(self.ids, household, channel, time, file, row, energy, label)


@dataclass(frozen=True, slots=True)
class Readings:
    """The readings (m) of a month, sorted by household and time, each key once; and the rejected rows (a).

    `household` are indices into `ids`, `time` is day x 48 + slot, `energy_wh` has shape (m,), below 0 for a net export.
    The rejected rows have file, row in the file, and reason. Arrays may have fewer bits than 64, as those of the rows.
    """

    ids: tuple[str, ...]
    household: Ints
    time: Ints
    energy_wh: Ints
    rejected_file: Ints
    rejected_row: Ints
    rejected_reason: Ints

    def without_exports(self) -> Readings:
        """Return the same readings with 0 for a net export, as half-hours count in states and profiles."""
        return replace(self, energy_wh=np.maximum(self.energy_wh, 0))


def join_rows(ids: tuple[str, ...], parts: Sequence[StoredRows], *, width: int) -> StoredRows:
    """Return the rows of all parts in their order; use it before `deduplicate_rows`.

    Args:
        ids: household ids; the household codes of every part are indices into them.
        parts: stored rows.
        width: readings per row, for an empty list of parts.
    """
    household, channel, time, file, row = (
        np.concatenate([np.zeros(0, np.int64), *(getattr(part, name) for part in parts)])
        for name in ("household", "channel", "time", "file", "row")
    )
    energy = np.concatenate([np.zeros((0, width), np.int64), *(part.energy_wh for part in parts)])
    labels = [part.label for part in parts if part.label is not None]
    return StoredRows(ids, household, channel, time, file, row, energy, np.concatenate(labels) if labels else None)


def deduplicate_rows(
    rows: StoredRows, *, complete_channels: Channels, later_wins: bool = False, units_per_wh: int = 1
) -> Readings:
    """Return the readings that the rows contain, and the rejected rows; see the head of the module.

    Args:
        rows: in any order; `file` numbers increase in the order of the files.
        complete_channels: sets of channels that add up to a reading (`Layout.complete_channels`).
        later_wins: whether a later file corrects an earlier one; otherwise conflicting rows are all rejected.
        units_per_wh: parts of a watt-hour in which the rows have their energies.
    """
    meters = None if rows.label is None else _number_meters(rows, rows.label)
    if meters is not None:
        rows = replace(rows, household=meters.of_row, label=None)
        rows = rows.take(np.flatnonzero(rows.energy_wh[:, 0] != NO_READING))
    rows = replace(rows, channel=_assign_passes(rows))
    reason = np.zeros(0, np.int64)
    if not _ascend(rows.household, rows.time):
        key = _row_keys(rows)
        order = _sort_order(key, rows)
        if order is not None:
            rows, key = rows.take(order), key[order]
        reason = _rejection_reasons(key, rows.file, rows.energy_wh, later_wins=later_wins)
    rejected = np.flatnonzero(reason != RejectionReason.KEPT)
    household, time, energy = _combine_channels(*_kept_columns(rows, rejected), complete_channels=complete_channels)
    if meters is not None:
        household, time, energy = _add_meters(meters, household, time, energy)
    energy_wh, of_rejected = whole_watt_hours(energy, units_per_wh), (rows.file, rows.row, reason)
    return Readings(rows.ids, household, time, energy_wh, *(column[rejected] for column in of_rejected))


def whole_watt_hours(energy: Energy, units_per_wh: int) -> Energy:
    """Return energies in whole watt-hours, half to even; exact, because all numbers are integers.

    >>> whole_watt_hours(np.array([-1800, -600, 600, 1799, 1800]), 1200).tolist()
    [-2, 0, 0, 1, 2]
    """
    if units_per_wh == 1:
        return energy
    whole, rest = np.divmod(energy, units_per_wh)
    whole += (2 * rest > units_per_wh) | ((2 * rest == units_per_wh) & (whole % 2 == 1))
    return cast("Energy", whole)


@dataclass(frozen=True, slots=True)
class _Meters:
    """The meters (k) of households, numbered by household: each one's household, the meter of each row.

    `day_keys` has household x `days` + day since `first_day` for each household-day with rows, ascending, and `on_day`
    how many meters have rows on it.
    """

    household: Ints
    of_row: Ints
    first_day: int
    days: int
    day_keys: Ints
    on_day: Ints


def _number_meters(rows: StoredRows, label: Ints) -> _Meters:
    """Return the meters of the rows. A rejected row counts as well: it shows that the household has the meter."""
    labels, label_code = np.unique(label, return_inverse=True)
    keys, of_row = np.unique(rows.household.astype(np.int64) * max(len(labels), 1) + label_code, return_inverse=True)
    household = keys // max(len(labels), 1)
    day = rows.time // SLOTS
    first_day, last_day = (int(day.min()), int(day.max())) if len(day) else (0, 0)
    days = last_day - first_day + 1
    meter_days = np.unique(of_row * days + day - first_day)
    day_keys, on_day = np.unique(household[meter_days // days] * days + meter_days % days, return_counts=True)
    return _Meters(household, of_row, first_day, days, day_keys, on_day)


def _add_meters(meters: _Meters, meter: Ints, time: Ints, energy: Ints) -> tuple[Ints, Ints, Ints]:
    """Return household, time and energy of the half-hours that all meters of the household and day have."""
    household = meters.household[meter]
    order = np.lexsort((time, household))
    household, time, energy = household[order], time[order], energy[order]
    starts = np.flatnonzero(_is_first(household, time))
    if len(starts) == 0:
        return household, time, energy
    present = np.diff(starts, append=len(time))
    household, time, energy = household[starts], time[starts], np.add.reduceat(energy, starts)
    day_key = household * meters.days + time // SLOTS - meters.first_day
    is_complete = present == meters.on_day[np.searchsorted(meters.day_keys, day_key)]
    return household[is_complete], time[is_complete], energy[is_complete]


def _is_first(household: Ints, time: Ints) -> Flags:
    """Return which rows, sorted by household and time, are the first with these two."""
    first = np.ones(len(household), bool)
    first[1:] = (household[1:] != household[:-1]) | (time[1:] != time[:-1])
    return first


def _kept_columns(rows: StoredRows, rejected: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """Return household, channel, time and energy of the rows that are not rejected."""
    columns = (rows.household, rows.channel, rows.time, rows.energy_wh)
    if len(rejected) * _MIN_RUN > len(rows.time):
        kept = np.ones(len(rows.time), bool)
        kept[rejected] = False
        household, channel, time, energy = (column[kept] for column in columns)
    elif len(rejected):  # few: the runs between them are copied as a whole
        runs = [*map(slice, np.append(0, rejected + 1).tolist(), np.append(rejected, len(rows.time)).tolist())]
        household, channel, time, energy = (np.concatenate([column[run] for run in runs]) for column in columns)
    else:
        household, channel, time, energy = columns
    return household, channel, time, energy


def _ascend(household: Ints, time: Ints) -> bool:
    """Return whether rows are sorted by household and time, each once, as those of published files are."""
    is_later = (household[1:] == household[:-1]) & (time[1:] > time[:-1])
    return bool((is_later | (household[1:] > household[:-1])).all())


def _row_keys(rows: StoredRows) -> Ints:
    """Return a number of household, time and channel of each row, which sorts by them in this order."""
    first, last = (int(rows.time.min()), int(rows.time.max())) if len(rows.time) else (0, 0)
    key = rows.household.astype(np.int64)
    key *= last - first + 1
    key += rows.time
    if rows.channel.any():
        key *= int(rows.channel.max()) + 1
        key += rows.channel
    return key


def _sort_order(key: Ints, rows: StoredRows) -> Ints | None:
    """Return the order by key, file and row; None if the rows are in this order already, as published files are."""
    rising = key[1:] > key[:-1]
    if rising.all():
        return None
    file, row = rows.file, rows.row
    is_next = (file[1:] > file[:-1]) | ((file[1:] == file[:-1]) & (row[1:] > row[:-1]))
    if not is_next.all():
        in_order = rising | ((key[1:] == key[:-1]) & is_next)
        return None if in_order.all() else np.lexsort((row, file, key))
    return None if (key[1:] >= key[:-1]).all() else np.argsort(key, kind="stable")


def _assign_passes(rows: StoredRows) -> Ints:
    """Return the channels: the two passes of one timestamp in one file are 1 and 2, ordered by energy."""
    if not rows.channel.any():
        return rows.channel
    ambiguous = np.flatnonzero(rows.channel % PASSES == UNKNOWN_PASS)
    if len(ambiguous) == 0:
        return rows.channel
    keys = np.stack([rows.file, rows.channel, rows.time, rows.household])[:, ambiguous]
    in_order = np.lexsort((rows.energy_wh[ambiguous, 0], *keys))
    order, keys = ambiguous[in_order], keys[:, in_order]
    starts = np.flatnonzero(np.append(True, (keys[:, 1:] != keys[:, :-1]).any(axis=0)))
    pairs = starts[np.diff([*starts, len(order)]) == 2]
    channel = rows.channel.copy()
    channel[order[pairs]] -= UNKNOWN_PASS - 1
    channel[order[pairs + 1]] -= UNKNOWN_PASS - 2
    return channel


def _rejection_reasons(key: Ints, file: Ints, energy: Ints, *, later_wins: bool) -> Ints:
    """Return the reason of each row (sorted by key and file): of equal rows the first is kept, conflicts are rejected.

    If later files win, the rows of the latest file with a key count, and all earlier rows that differ are superseded.
    """
    reason = np.zeros(len(key), np.int64)  # Reason.KEPT
    first = np.ones(len(key), bool)
    first[1:] = key[1:] != key[:-1]
    if first.all():
        return reason
    is_repeated = ~first
    is_repeated[:-1] |= is_repeated[1:]
    if not is_repeated.all():  # a row whose key occurs once is kept
        columns = (values[is_repeated] for values in (key, file, energy))
        reason[is_repeated] = _rejection_reasons(*columns, later_wins=later_wins)
        return reason
    starts = np.flatnonzero(first)
    equal = np.minimum.reduceat(energy, starts) == np.maximum.reduceat(energy, starts)
    is_equal: Flags = np.repeat(equal.all(axis=1), np.diff([*starts, len(first)]))
    reason[~first & is_equal] = RejectionReason.DUPLICATE
    reason[~is_equal] = RejectionReason.CONFLICT
    if not later_wins or is_equal.all():
        return reason
    latest = np.repeat(np.maximum.reduceat(file, starts), np.diff([*starts, len(key)]))
    reason[~is_equal & (file < latest)] = RejectionReason.SUPERSEDED
    last = np.flatnonzero(~is_equal & (file == latest))
    reason[last] = _rejection_reasons(key[last], file[last], energy[last], later_wins=False)
    return reason


def _combine_channels(
    household: Ints, channel: Ints, time: Ints, energy: Ints, *, complete_channels: Channels
) -> tuple[Ints, Ints, Ints]:
    """Return household, time and energy of every reading, the channels of a household added up.

    The channels must be `complete_channels`; a missing reading in any channel is a missing reading.
    """
    if frozenset({0}) not in complete_channels or channel.any():
        household, time, energy = _add_channels(household, channel, time, energy, complete_channels)
    if energy.shape[1] == 1:
        return household, time, energy[:, 0]
    household = np.repeat(household, SLOTS)
    time = (time[:, None] + np.arange(SLOTS)).ravel()
    flat = energy.ravel()
    is_present = flat != MISSING
    return household[is_present], time[is_present], flat[is_present]


def _add_channels(
    household: Ints, channel: Ints, time: Ints, energy: Ints, complete_channels: Channels
) -> tuple[Ints, Ints, Ints]:
    """Return household, time and energy of the rows, sorted by household, time and channel, that are complete."""
    starts = np.flatnonzero(_is_first(household, time))
    if len(starts) == 0:
        return household, time, energy
    total = np.add.reduceat(energy, starts, dtype=np.int64)
    if energy.shape[1] > 1:  # a row of one reading has it, and a net export may be of -1 Wh
        total[np.minimum.reduceat(energy, starts) == MISSING] = MISSING
    present_channels = np.bitwise_or.reduceat(1 << channel.astype(np.int64), starts)
    complete = [sum(1 << number for number in channels) for channels in complete_channels]
    is_complete = np.isin(present_channels, complete)
    chosen = starts[is_complete]
    return household[chosen], time[chosen], total[is_complete]
