"""What a month says: duplicates and disagreements among its rows decided, channels added up.

One pure function of the stored rows, in any order: the same reading twice counts once; rows that disagree
about a reading are all set aside, within one file and, unless a later file corrects, between files. What is
left has at most one row per household, channel and time, so the readings of one household are a function of
its own rows alone.

Where a table stamped in civil time writes a repeated autumn half-hour twice under one stamp (`UNTOLD`), a file's
two rows are the two passes, equal or not: half-hours of nothing are common. Any other number of rows is not
interpreted, and the reading is missing. The parts of a half-hour are told one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from agedp_data.readers.layout import MISSING, PASSES, SLOTS, UNTOLD, Channels, Flags, Ints, RejectionReason


@dataclass(frozen=True, slots=True)
class StoredRows:
    """Stored rows (n): household code into `ids`, channel, time, file and row of origin, energy (n, width).

    `time` is day x 48 + slot, of the row's first reading.
    """

    ids: tuple[str, ...]
    household: Ints
    channel: Ints
    time: Ints
    file: Ints
    row: Ints
    energy_wh: Ints

    def taken(self, which: Ints) -> StoredRows:
        """Return the rows in these places, in this order."""
        return StoredRows(
            self.ids,
            self.household[which],
            self.channel[which],
            self.time[which],
            self.file[which],
            self.row[which],
            self.energy_wh.take(which, axis=0),
        )


@dataclass(frozen=True, slots=True)
class Readings:
    """Readings (m) sorted by household and time = day x 48 + slot, each key once; rows set aside (a) by file, row."""

    ids: tuple[str, ...]
    household: Ints
    time: Ints
    energy_wh: Ints
    aside_file: Ints
    aside_row: Ints
    aside_reason: Ints


def joined(ids: tuple[str, ...], parts: Sequence[StoredRows], *, width: int) -> StoredRows:
    """Return the rows of parts that name households by their places in the same `ids`, one after the other."""
    household, channel, time, file, row = (
        np.concatenate([np.zeros(0, np.int64), *(getattr(part, name) for part in parts)])
        for name in ("household", "channel", "time", "file", "row")
    )
    energy = np.concatenate([np.zeros((0, width), np.int64), *(part.energy_wh for part in parts)])
    return StoredRows(ids, household, channel, time, file, row, energy)


def settle(rows: StoredRows, *, complete: Channels, later_wins: bool = False) -> Readings:
    """Decide what the rows say; see the module's text. `file` numbers must grow with the files' order."""
    rows = replace(rows, channel=_told(rows))
    first, last = (int(rows.time.min()), int(rows.time.max())) if len(rows.time) else (0, 0)
    channels = int(rows.channel.max(initial=0)) + 1
    key = (rows.household * channels + rows.channel) * (last - first + 1) + rows.time - first
    order = _order(key, rows)
    if order is not None:
        rows, key = rows.taken(order), key[order]
    reason = _judge(key, rows.file, rows.energy_wh, later_wins=later_wins)
    lost = np.flatnonzero(reason != RejectionReason.KEPT)
    kept = rows.taken(np.flatnonzero(reason == RejectionReason.KEPT)) if len(lost) else rows
    return Readings(rows.ids, *_combine(kept, complete=complete), rows.file[lost], rows.row[lost], reason[lost])


def _order(key: Ints, rows: StoredRows) -> Ints | None:
    """Return the order by key, file and row; None if they are in it, as published."""
    rising = key[1:] > key[:-1]
    if rising.all():
        return None
    again = np.flatnonzero(~rising)
    before, after = again, again + 1
    in_order = (key[after] == key[before]) & (
        (rows.file[after] > rows.file[before])
        | ((rows.file[after] == rows.file[before]) & (rows.row[after] > rows.row[before]))
    )
    return None if in_order.all() else np.lexsort((rows.row, rows.file, key))


def _told(rows: StoredRows) -> Ints:
    """Return the channels: the two passes of one stamp in one file are 1 and 2, by size, whatever their order."""
    at = np.flatnonzero(rows.channel % PASSES == UNTOLD)
    if len(at) == 0:
        return rows.channel
    order = at[np.lexsort((rows.energy_wh[at, 0], rows.file[at], rows.channel[at], rows.time[at], rows.household[at]))]
    where = np.stack([rows.household[order], rows.time[order], rows.channel[order], rows.file[order]], axis=1)
    first = np.ones(len(order), bool)
    first[1:] = (where[1:] != where[:-1]).any(axis=1)
    starts = np.flatnonzero(first)
    pairs = starts[np.diff([*starts, len(order)]) == 2]
    channel = rows.channel.copy()
    channel[order[pairs]] -= UNTOLD - 1
    channel[order[pairs + 1]] -= UNTOLD - 2
    return channel


def _judge(key: Ints, file: Ints, energy: Ints, *, later_wins: bool) -> Ints:
    """Return a reason per row, sorted by key and file: the first of equal rows is kept, rows that disagree are not.

    If later files win, the rows of the latest file stand for their key, and the others are superseded unless they
    agree with it.
    """
    reason = np.zeros(len(key), np.int64)  # Reason.KEPT
    first = np.ones(len(key), bool)
    first[1:] = key[1:] != key[:-1]
    if first.all():
        return reason
    several = ~first
    several[:-1] |= several[1:]
    if not several.all():  # a row alone is kept
        reason[several] = _judge(key[several], file[several], energy[several], later_wins=later_wins)
        return reason
    agreed = _agree(first, energy)
    reason[~first & agreed] = RejectionReason.DUPLICATE
    reason[~agreed] = RejectionReason.CONFLICT
    if not later_wins or agreed.all():
        return reason
    starts = np.flatnonzero(first)
    latest = np.repeat(np.maximum.reduceat(file, starts), np.diff([*starts, len(key)]))
    reason[~agreed & (file < latest)] = RejectionReason.SUPERSEDED
    last = np.flatnonzero(~agreed & (file == latest))
    reason[last] = _judge(key[last], file[last], energy[last], later_wins=False)
    return reason


def _agree(first: Flags, energy: Ints) -> Flags:
    """Return for every row whether all rows of its key say the same."""
    starts = np.flatnonzero(first)
    same = np.minimum.reduceat(energy, starts) == np.maximum.reduceat(energy, starts)
    agreed: Flags = np.repeat(same.all(axis=1), np.diff([*starts, len(first)]))
    return agreed


def _combine(rows: StoredRows, *, complete: Channels) -> tuple[Ints, Ints, Ints]:
    """Return household, time and energy of every reading, the channels of a household added up.

    The channels must be `complete`; a missing reading in any channel is a missing reading.
    """
    household, time, energy = rows.household, rows.time, rows.energy_wh
    if frozenset({0}) not in complete or rows.channel.any():
        household, time, energy = _add_channels(household, rows.channel, time, energy, complete=complete)
    if energy.shape[1] == 1:
        return household, time, energy[:, 0]
    household = np.repeat(household, SLOTS)
    time = (time[:, None] + np.arange(SLOTS)).ravel()
    flat = energy.ravel()
    there = flat != MISSING
    return household[there], time[there], flat[there]


def _add_channels(
    household: Ints, channel: Ints, time: Ints, energy: Ints, *, complete: Channels
) -> tuple[Ints, Ints, Ints]:
    order = np.lexsort((channel, time, household))
    household, channel, time, energy = household[order], channel[order], time[order], energy[order]
    first = np.ones(len(household), bool)
    first[1:] = (household[1:] != household[:-1]) | (time[1:] != time[:-1])
    starts = np.flatnonzero(first)
    if len(starts) == 0:
        return household, time, energy
    total = np.add.reduceat(energy, starts)
    total[np.minimum.reduceat(energy, starts) == MISSING] = MISSING
    there = np.bitwise_or.reduceat(1 << channel, starts)
    counted = np.isin(there, [sum(1 << one for one in channels) for channels in complete])
    return household[starts][counted], time[starts][counted], total[counted]
