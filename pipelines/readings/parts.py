"""Blocks of one input file -> its parts: the readings of each month, the days they come to, the rows set aside.

    <confidential>/store/month=2013-03/<content>-<number>.parquet            READINGS, as they stood there
    <confidential>/store/part_days/month=2013-03/<content>-<number>.parquet  PART_DAYS: what the part alone says

A part is what one task makes of consecutive blocks: they are parsed one after the other and kept in sixteen bytes a
row, so that memory depends on the size of a part and not on that of the file. Nothing of a part names its place in
the file but its number; the manifest says how many rows come before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from agedp_data import tables
from agedp_data.errors import InputError
from agedp_data.readers.layout import SLOTS, Ints, Layout, RejectionReason
from agedp_data.readers.parse import ParsedChunk
from agedp_data.readers.settle import StoredRows, settle
from pipelines import folders
from pipelines.readings.household_days import distinct, packed, totals, unpacked
from pipelines.readings.manifest import Part
from pipelines.readings.quarantine import count_reasons, rejected_rows, write_quarantine
from pipelines.readings.store import Store, month_name, month_of

_MOST_ROWS = 2**31 - 1
# Nobody asks these files for their smallest and largest values, and finding them takes a fifth of the writing.
_OPTIONS: dict[str, Any] = {"compression_level": 1, "write_statistics": False}
_REPEATING = ("household_id", "slot", "channel")
_RISING = ("row", "day")
Small = np.ndarray[Any, np.dtype[np.int32]]


@dataclass(frozen=True, slots=True)
class ParsedRows:
    """Rows (n) in the order of the file: household code, day x 48 + slot, channel, energy (n, width), row."""

    household: Small
    time: Small
    channel: np.ndarray[Any, np.dtype[np.uint8]]
    energy_wh: Small
    row: Small

    def of(self, which: Ints | slice) -> ParsedRows:
        """Return some of the rows."""
        return ParsedRows(
            self.household[which], self.time[which], self.channel[which], self.energy_wh[which], self.row[which]
        )


def write_part(store: Store, content: str, number: int, blocks: Iterable[ParsedChunk]) -> Part:
    """Write a part's readings and days by month, and its quarantine.

    Raises:
        InputError: more rows than a part may have.
    """
    counts: dict[str, int] = {}
    notes: dict[str, int] = {}
    rejected: list[pa.Table] = []
    rows = 0

    def counted() -> Iterator[ParsedChunk]:
        nonlocal rows
        for block in blocks:
            _count(counts, notes, block)
            if len(block.aside_row):
                rejected.append(rejected_rows(block, rows))
            rows += block.rows_read
            yield block

    ids, whole = kept_of(store.layout, counted())
    write_quarantine(store, content, number, rejected)
    names = pa.array(ids, pa.string())
    months = {
        name: _write_month(store, name, f"{content}-{number}", whole.of(which), names)
        for name, which in _by_month(whole.time)
    }
    return Part(rows, len(whole.row), counts | count_reasons(rejected), notes, months)


def kept_of(layout: Layout, blocks: Iterable[ParsedChunk]) -> tuple[list[str], ParsedRows]:
    """Return the household ids of blocks, and the rows that were kept of them.

    Raises:
        InputError: more rows than can be numbered.
    """
    ids: dict[str, int] = {}
    kept: list[ParsedRows] = []
    rows = 0
    for block in blocks:
        kept.append(_kept(block, ids, layout, rows))
        rows += block.rows_read
        if rows > _MOST_ROWS:
            raise InputError("more rows in one piece than can be numbered; cut the file, or lower [engine] block_mib")
    return list(ids), _together(kept, layout)


def _kept(block: ParsedChunk, ids: dict[str, int], layout: Layout, before: int) -> ParsedRows:
    records = block.records
    good = records.reason == RejectionReason.KEPT
    which = slice(None) if good.all() else np.flatnonzero(good)
    codes = np.array([ids.setdefault(name, len(ids)) for name in records.ids], np.int32)
    household = codes[records.household[which]] if len(codes) else np.zeros(0, np.int32)
    time = (records.day * SLOTS + records.slot if layout.width == 1 else records.day * SLOTS).astype(np.int32)
    return ParsedRows(
        household,
        time[which],
        records.channel[which].astype(np.uint8),
        records.energy_wh[which].astype(np.int32),
        (block.row[which] + before).astype(np.int32),
    )


def _count(counts: dict[str, int], notes: dict[str, int], block: ParsedChunk) -> None:
    for name, number in block.records.notes.items():
        notes[name] = notes.get(name, 0) + number
    other = int((block.records.reason == RejectionReason.CATEGORY).sum())
    if other:
        counts[RejectionReason.CATEGORY.words] = counts.get(RejectionReason.CATEGORY.words, 0) + other


def _together(kept: Sequence[ParsedRows], layout: Layout) -> ParsedRows:
    if len(kept) == 1:
        return kept[0]
    household, time, row = (
        np.concatenate([np.zeros(0, np.int32), *(getattr(one, name) for one in kept)])
        for name in ("household", "time", "row")
    )
    channel = np.concatenate([np.zeros(0, np.uint8), *(one.channel for one in kept)])
    energy = np.concatenate([np.zeros((0, layout.width), np.int32), *(one.energy_wh for one in kept)])
    return ParsedRows(household, time, channel, energy, row)


def _by_month(time: Small) -> Iterable[tuple[str, Ints]]:
    """Yield each month's name with the places of its rows, in their order."""
    if len(time) == 0:
        return
    day = time // SLOTS
    first = int(day.min())
    months = month_of(np.arange(first, int(day.max()) + 1))
    month = (months - months[0]).astype(np.int16)[day - first]
    order = np.argsort(month, kind="stable")  # 16 bits: a radix sort
    bounds = np.searchsorted(month[order], np.arange(int(months[-1] - months[0]) + 2))
    for i, (start, stop) in enumerate(pairwise(bounds)):
        if stop > start:
            yield month_name(int(months[0]) + i), order[start:stop]


def _write_month(store: Store, month: str, name: str, rows: ParsedRows, names: pa.Array) -> tuple[int, int, int]:
    """Write one month of a part; return its rows, its bytes and the bytes of its days."""
    path, days = store.month(month) / f"{name}.parquet", store.part_days(month) / f"{name}.parquet"
    folders.make_private(path.parent)
    folders.make_private(days.parent)
    table = _readings(store.layout, rows, names)
    size = folders.write_table(
        path,
        table,
        use_dictionary=[name for name in table.column_names if name in _REPEATING],
        column_encoding={name: _encoding(name) for name in table.column_names if name not in _REPEATING},
        **_OPTIONS,
        sync=False,
    )
    return len(rows.row), size, folders.write_table(days, part_days(store, rows, names), sync=False, **_OPTIONS)


def _encoding(name: str) -> str:
    """Return how a column of numbers is stored: readings byte by byte, which packs quicker and smaller."""
    return "DELTA_BINARY_PACKED" if name in _RISING else "BYTE_STREAM_SPLIT"


def _readings(layout: Layout, rows: ParsedRows, names: pa.Array) -> pa.Table:
    day = rows.time // np.int32(SLOTS)
    slot = rows.time - day * np.int32(SLOTS)
    values: dict[str, Any] = {
        "household_id": pa.DictionaryArray.from_arrays(pa.array(rows.household), names),
        "day": day,
        "row": rows.row.astype(np.int64),
    }
    if layout.width == 1:
        values |= {"slot": slot.astype(np.uint8), "energy_wh": rows.energy_wh[:, 0]}
    else:
        values |= {f"energy_wh_{i}": rows.energy_wh[:, i] for i in range(SLOTS)}
    if layout.channels > 1:
        values |= {"channel": rows.channel}
    return tables.table_from_columns(tables.readings_schema(width=layout.width, channels=layout.channels), **values)


def part_days(store: Store, rows: ParsedRows, names: pa.Array) -> pa.Table:
    """Return what rows say by themselves: one line for each household-day that they touch, with or without a reading.

    What a household-day comes to is a function of its own rows: where no other part has any, this is final.
    """
    count = len(rows.row)
    found = settle(
        StoredRows(
            tuple(names.to_pylist()),
            rows.household.astype(np.int64),
            rows.channel.astype(np.int64),
            rows.time.astype(np.int64),
            np.zeros(count, np.int64),
            np.arange(count),
            rows.energy_wh.astype(np.int64),
        ),
        complete=store.layout.complete(store.rules),
    )
    touched = packed(rows.household.astype(np.int64), rows.time.astype(np.int64) // SLOTS)
    there = distinct(touched)
    energy, readings = totals(found, there)
    lost = touched[found.aside_row]
    order = np.argsort(lost, kind="stable")
    offsets = pa.array(np.append(np.searchsorted(lost[order], there), len(order)).astype(np.int32))
    aside = found.aside_row[order]
    household, day = unpacked(there)
    return tables.table_from_columns(
        tables.PART_DAYS,
        household_id=pa.DictionaryArray.from_arrays(pa.array(household.astype(np.int32)), names),
        day=day,
        energy_wh=energy,
        readings=readings,
        aside_row=pa.ListArray.from_arrays(offsets, pa.array(rows.row[aside].astype(np.int64))),
        aside_reason=pa.ListArray.from_arrays(offsets, pa.array(found.aside_reason[order].astype(np.uint8))),
    )
