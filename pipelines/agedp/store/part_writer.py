"""Chunks of one input file -> its parts: the readings of each month, their daily totals, the rejected rows.

    <confidential>/store/month=2013-03/<content>-<number>.parquet            READINGS, in the order of the file
    <confidential>/store/part_days/month=2013-03/<content>-<number>.parquet  PART_DAYS: daily totals of this part

In a store of several household buckets each bucket of a month has a folder and files of its own.

One task writes one part from consecutive chunks: they are parsed one after the other into sixteen bytes per row, so
memory depends on the size of a part and not of the file. A part's position in the file is its number only; the
manifest contains the number of rows before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from agedp.local_files import atomic_files
from agedp.store.buckets import bucket_numbers
from agedp.store.data_quality import count_reasons, rejected_rows, write_quarantine
from agedp.store.manifest import Part
from agedp.store.month_reader import daily_totals, distinct_keys, household_day_key, split_household_day_key
from agedp.store.store import Store, month_name, month_numbers
from agedp_data import table_schemas
from agedp_data.datasets.csv_parsing import ParsedChunk
from agedp_data.datasets.deduplication import StoredRows, deduplicate_rows
from agedp_data.datasets.layout import SINGLE_CHANNEL, Layout, arrow_numbers
from agedp_data.datasets.validation import SLOTS, Ints, RejectionReason
from agedp_data.errors import InputError

_MAX_ROWS = 2**31 - 1
_TIME_BITS = 32
_MIN_RUN = 16
# Column statistics of these files are never used, and computing them takes a fifth of the writing time.
_OPTIONS: dict[str, Any] = {"write_statistics": False}
# A third quicker than zstd at its lowest level, for files that are a fifth larger.
_READINGS_OPTIONS: dict[str, Any] = {**_OPTIONS, "compression": "lz4"}
_DAYS_OPTIONS: dict[str, Any] = {**_OPTIONS, "compression_level": 1}
# Bytes of slots and days, split, compress as well as a dictionary or differences of them, in two thirds of the time.
_DICTIONARY_COLUMNS = ("household_id", "channel")
_DELTA_COLUMNS = ("row",)
Int16s = np.ndarray[Any, np.dtype[np.int16]]
Int32s = np.ndarray[Any, np.dtype[np.int32]]


@dataclass(frozen=True, slots=True)
class ParsedRows:
    """The kept rows (n) of a part in the order of the file, as compact arrays.

    Attributes:
        household: code of the household, shape (n,).
        time: day since 1970 x 48 + slot, shape (n,).
        channel: channel of the layout, shape (n,).
        energy_wh: energy, shape (n, readings per row) [Wh].
        row: number of the row within the part, shape (n,).
    """

    household: Int32s
    time: Int32s
    channel: np.ndarray[Any, np.dtype[np.uint8]]
    energy_wh: Int32s
    row: Int32s

    def select(self, indices: Ints | slice) -> ParsedRows:
        """Return the rows with these indices."""
        return ParsedRows(*(getattr(self, column.name)[indices] for column in fields(self)))

    def without(self, indices: Ints) -> ParsedRows:
        """Return the other rows; `indices` ascend. If they are few, the runs between them are copied as a whole."""
        kept = _runs_between(indices, len(self.row))
        return ParsedRows(*(_select(getattr(self, column.name), kept) for column in fields(self)))


def write_part(store: Store, content: str, number: int, chunks: Iterable[ParsedChunk]) -> Part:
    """Write a part's readings and daily totals by month, and its quarantine file.

    Raises:
        InputError: the part has too many rows.
    """
    counts: dict[str, int] = {}
    notes: dict[str, int] = {}
    rejected: list[pa.Table] = []
    rows = 0

    def counted() -> Iterator[ParsedChunk]:
        nonlocal rows
        for chunk in chunks:
            _add_counts(counts, notes, chunk)
            if len(chunk.rejected_row):
                rejected.append(rejected_rows(chunk, rows))
            rows += chunk.rows_read
            yield chunk

    ids, kept_rows = collect_kept_rows(store.layout, counted())
    write_quarantine(store, content, number, rejected)
    months, days, sizes = _write_months(store, f"{content}-{number}", kept_rows, ids)
    return Part(rows, len(kept_rows.row), counts | count_reasons(rejected), notes, months, days, sizes)


def _write_months(
    store: Store, name: str, kept_rows: ParsedRows, ids: Sequence[str]
) -> tuple[dict[str, tuple[int, int, int]], dict[str, tuple[int, int]], dict[str, dict[str, tuple[int, int]]]]:
    """Write the rows of a part by month and bucket; return `months`, `days` and `buckets` of its counts."""
    months: dict[str, tuple[int, int, int]] = {}
    days: dict[str, tuple[int, int]] = {}
    sizes: dict[str, dict[str, tuple[int, int]]] = {}
    households = _split_households(ids, store.buckets)
    for month, indices in _rows_by_month(kept_rows.time):
        time = kept_rows.time[indices]
        days[month] = int(time.min()) // SLOTS, int(time.max()) // SLOTS
        written = {
            bucket: _write_month(store, (month, bucket), name, kept_rows.select(rows), households)
            for bucket, rows in _rows_by_bucket(kept_rows.household, indices, households.bucket, store.buckets)
        }
        size, days_size = (sum(pair[i] for pair in written.values()) for i in range(2))
        months[month] = len(indices), size, days_size
        if store.buckets > 1:
            sizes[month] = {str(bucket): pair for bucket, pair in written.items()}
    return months, days, sizes


@dataclass(frozen=True, slots=True)
class _BucketedHouseholds:
    """The households of a part by bucket.

    Attributes:
        bucket: bucket of each household code.
        code: its code among the households of its bucket.
        names: the household ids of each bucket.
    """

    bucket: Int16s
    code: Int32s
    names: tuple[pa.Array, ...]


def _split_households(ids: Sequence[str], buckets: int) -> _BucketedHouseholds:
    names = pa.array(ids, pa.string())
    if buckets == 1:
        return _BucketedHouseholds(np.zeros(len(ids), np.int16), np.arange(len(ids), dtype=np.int32), (names,))
    bucket = bucket_numbers(ids, buckets).astype(np.int16)
    order = np.argsort(bucket, kind="stable")
    bounds = np.searchsorted(bucket[order], np.arange(buckets + 1))
    code = np.empty(len(ids), np.int32)
    code[order] = np.arange(len(ids)) - bounds[bucket[order]]
    of_buckets = tuple(names.take(pa.array(order[start:stop])) for start, stop in pairwise(bounds))
    return _BucketedHouseholds(bucket, code, of_buckets)


def _rows_by_bucket(household: Int32s, indices: Ints, bucket: Int16s, buckets: int) -> Iterable[tuple[int, Ints]]:
    """Yield each bucket with the indices of its rows among `indices`, in their order."""
    if buckets == 1:
        yield 0, indices
        return
    bucket_of_row = bucket[household[indices]]
    order = np.argsort(bucket_of_row, kind="stable")  # 16 bits: a radix sort
    bounds = np.searchsorted(bucket_of_row[order], np.arange(buckets + 1))
    for number, (start, stop) in enumerate(pairwise(bounds)):
        if stop > start:
            yield number, indices[order[start:stop]]


def collect_kept_rows(layout: Layout, chunks: Iterable[ParsedChunk]) -> tuple[list[str], ParsedRows]:
    """Return the household ids of chunks, and their kept rows.

    Raises:
        InputError: too many rows for 32-bit row numbers.
    """
    ids: dict[str, int] = {}
    kept_chunks: list[ParsedRows] = []
    rows = 0
    for chunk in chunks:
        kept_chunks.append(_kept_rows(chunk, ids, rows))
        rows += chunk.rows_read
        if rows > _MAX_ROWS:
            raise InputError("a chunk has more rows than can be numbered; split the file, or lower [engine] block_mib")
    return list(ids), _join_parsed(kept_chunks, layout)


def _kept_rows(chunk: ParsedChunk, ids: dict[str, int], before: int) -> ParsedRows:
    records = chunk.records
    kept = _runs_between(np.flatnonzero(records.reason != int(RejectionReason.KEPT)), len(records.reason))
    codes = np.array([ids.setdefault(name, len(ids)) for name in records.ids], np.int32)
    columns = (records.household, records.time, records.channel, records.energy_wh, chunk.row)
    household, time, channel, energy_wh, row = (_select(column, kept) for column in columns)
    if len(codes) and (codes != np.arange(len(codes))).any():
        household = codes[household]
    return ParsedRows(household, time, channel, energy_wh, row + np.int32(before) if before else row)


def _runs_between(indices: Ints, length: int) -> list[slice] | Ints:
    """Return all other indices below `length`: the runs between `indices`, unless these are many."""
    if len(indices) * _MIN_RUN > length:
        return np.delete(np.arange(length), indices)
    starts, stops = np.append(0, indices + 1).tolist(), np.append(indices, length).tolist()
    return [slice(start, stop) for start, stop in zip(starts, stops, strict=True)]


def _select(column: np.ndarray[Any, Any], rows: list[slice] | Ints) -> np.ndarray[Any, Any]:
    if isinstance(rows, list):
        return column[rows[0]] if len(rows) == 1 else np.concatenate([column[part] for part in rows])
    return column[rows]


def _add_counts(counts: dict[str, int], notes: dict[str, int], chunk: ParsedChunk) -> None:
    for name, number in chunk.records.notes.items():
        notes[name] = notes.get(name, 0) + number
    excluded = int((chunk.records.reason == int(RejectionReason.CATEGORY)).sum())
    if excluded:
        counts[RejectionReason.CATEGORY.words] = counts.get(RejectionReason.CATEGORY.words, 0) + excluded


def _join_parsed(chunks: Sequence[ParsedRows], layout: Layout) -> ParsedRows:
    if len(chunks) == 1:
        return chunks[0]
    household, time, row = (
        np.concatenate([np.zeros(0, np.int32), *(getattr(rows, name) for rows in chunks)])
        for name in ("household", "time", "row")
    )
    channel = np.concatenate([np.zeros(0, np.uint8), *(rows.channel for rows in chunks)])
    energy = np.concatenate([np.zeros((0, layout.width), np.int32), *(rows.energy_wh for rows in chunks)])
    return ParsedRows(household, time, channel, energy, row)


def _rows_by_month(time: Int32s) -> Iterable[tuple[str, Ints]]:
    """Yield each month's name with the indices of its rows, in their order."""
    if len(time) == 0:
        return
    day = time // SLOTS
    first = int(day.min())
    months = month_numbers(np.arange(first, int(day.max()) + 1))
    month = (months - months[0]).astype(np.int16)[day - first]
    order = stable_order(month)
    bounds = np.searchsorted(month[order], np.arange(int(months[-1] - months[0]) + 2))
    for i, (start, stop) in enumerate(pairwise(bounds)):
        if stop > start:
            yield month_name(int(months[0]) + i), order[start:stop]


def stable_order(keys: np.ndarray[Any, np.dtype[np.int16]]) -> Ints:
    """Return the order of a stable sort; of long runs of equal keys only the runs are sorted.

    >>> stable_order(np.array([5, 5, 3, 5], np.int16)).tolist()
    [2, 0, 1, 3]
    """
    starts = np.append(0, np.flatnonzero(keys[1:] != keys[:-1]) + 1)
    if len(starts) > 1 + len(keys) // _MIN_RUN:
        return np.argsort(keys, kind="stable")  # 16 bits: a radix sort
    runs = np.argsort(keys[starts], kind="stable")
    lengths = np.diff(starts, append=len(keys))[runs]
    moved_by = starts[runs] - (np.cumsum(lengths) - lengths)
    order: Ints = np.arange(len(keys)) + np.repeat(moved_by, lengths)
    return order


def _write_month(
    store: Store, month_bucket: tuple[str, int], name: str, rows: ParsedRows, households: _BucketedHouseholds
) -> tuple[int, int]:
    """Write one month and bucket of a part; return the bytes of its rows and of its days."""
    month, bucket = month_bucket
    names = households.names[bucket]
    if store.buckets > 1:
        rows = replace(rows, household=households.code[rows.household])
    path, days = (
        folder / f"{name}.parquet"
        for folder in (store.month_folder(month, bucket), store.part_days_folder(month, bucket))
    )
    atomic_files.make_private(path.parent)
    atomic_files.make_private(days.parent)
    table = _readings_table(store.layout, rows, names)
    size = atomic_files.write_table(
        path,
        table,
        use_dictionary=[name for name in table.column_names if name in _DICTIONARY_COLUMNS],
        column_encoding={name: _encoding(name) for name in table.column_names if name not in _DICTIONARY_COLUMNS},
        **_READINGS_OPTIONS,
        sync=False,
    )
    return size, atomic_files.write_table(days, part_daily_totals(store, rows, names), sync=False, **_DAYS_OPTIONS)


def _encoding(name: str) -> str:
    """Return the encoding of a column of numbers: byte-stream split compresses readings quicker and smaller."""
    return "DELTA_BINARY_PACKED" if name in _DELTA_COLUMNS else "BYTE_STREAM_SPLIT"


def _readings_table(layout: Layout, rows: ParsedRows, names: pa.Array) -> pa.Table:
    day = rows.time // np.int32(SLOTS)
    slot = rows.time - day * np.int32(SLOTS)
    values: dict[str, Any] = {
        "household_id": pa.DictionaryArray.from_arrays(arrow_numbers(rows.household), names),
        "day": day,
        "row": rows.row,
    }
    if layout.width == 1:
        values |= {"slot": slot.astype(np.uint8), "energy_wh": rows.energy_wh[:, 0]}
    else:
        values |= {f"energy_wh_{i}": rows.energy_wh[:, i] for i in range(SLOTS)}
    if layout.channels > 1:
        values |= {"channel": rows.channel}
    return table_schemas.table_from_columns(
        table_schemas.readings_schema(width=layout.width, channels=layout.channels), **values
    )


def part_daily_totals(store: Store, rows: ParsedRows, names: pa.Array) -> pa.Table:
    """Return the daily totals of one part's rows: one line for each household-day with a row, even without a reading.

    The total of a household-day is a function of its rows: if no further part has rows of it, this total is final.
    """
    complete_channels = store.layout.complete_channels(store.rules)
    repeated = _repeated_rows(store.layout, rows)
    if repeated is None or SINGLE_CHANNEL[0] not in complete_channels:
        repeated = np.arange(len(rows.row))
        deduplicated = deduplicate_rows(_stored_rows(rows, repeated), complete_channels=complete_channels)
        row_keys = _household_day_keys(rows, repeated)
        keys = distinct_keys(row_keys)
        energy, readings = daily_totals(deduplicated, keys)
        rejected_keys = row_keys[deduplicated.rejected_row]
    else:
        deduplicated = deduplicate_rows(_stored_rows(rows, repeated), complete_channels=complete_channels)
        keys, energy, readings = sorted_daily_totals(rows, deduplicated.rejected_row)
        rejected = deduplicated.rejected_row
        rejected_keys = _household_day_keys(rows, rejected)
    order = np.argsort(rejected_keys, kind="stable")
    offsets = arrow_numbers(np.append(np.searchsorted(rejected_keys[order], keys), len(order)).astype(np.int32))
    rejected = deduplicated.rejected_row[order]
    household, day = split_household_day_key(keys)
    return table_schemas.table_from_columns(
        table_schemas.PART_DAYS,
        household_id=pa.DictionaryArray.from_arrays(arrow_numbers(household.astype(np.int32)), names),
        day=day,
        energy_wh=energy,
        readings=readings,
        aside_row=pa.ListArray.from_arrays(offsets, arrow_numbers(rows.row[rejected].astype(np.int64))),
        aside_reason=pa.ListArray.from_arrays(
            offsets, arrow_numbers(deduplicated.rejected_reason[order].astype(np.uint8))
        ),
    )


def _repeated_rows(layout: Layout, rows: ParsedRows) -> Ints | None:
    """Return the rows with the household and time of a further row; None unless all rows are sorted by these two.

    None as well for rows of a day or of several channels.
    """
    if layout.width > 1 or rows.channel.any():
        return None
    steps = time_steps(rows)
    if (least := steps.min(initial=1)) > 0:
        return np.zeros(0, np.int64)
    return None if least < 0 else _with_following(np.flatnonzero(steps == 0))


def time_steps(rows: ParsedRows) -> Ints:
    """Return the half-hours from each row to the next; beyond 2^31 in size between two households.

    Rows are sorted by household and time if none is negative, and a step of 0 is a repeated row.
    """
    key = (rows.household.astype(np.int64) << _TIME_BITS) | rows.time
    steps: Ints = key[1:] - key[:-1]
    return steps


def _household_day_keys(rows: ParsedRows, indices: Ints) -> Ints:
    household, time = (values[indices].astype(np.int64) for values in (rows.household, rows.time))
    return household_day_key(household, time // SLOTS)


def _with_following(rows: Ints) -> Ints:
    """Return these rows and the next one of each, ascending."""
    return np.unique(np.concatenate([rows, rows + 1]))


def _stored_rows(rows: ParsedRows, indices: Ints) -> StoredRows:
    """Return these rows of a part, numbered within it; without household ids."""
    part = rows.select(indices)
    household, channel, time, energy_wh = (
        values.astype(np.int64) for values in (part.household, part.channel, part.time, part.energy_wh)
    )
    return StoredRows((), household, channel, time, np.zeros(len(indices), np.int64), indices, energy_wh)


def sorted_daily_totals(rows: ParsedRows, rejected: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the household-days of sorted rows of one channel, and the energy and number of their readings.

    `rejected` rows, by their index, count as no reading.
    """
    day = rows.time // np.int32(SLOTS)
    is_first = np.ones(len(day), bool)
    np.not_equal(day[1:], day[:-1], out=is_first[1:])
    is_first[1:] |= rows.household[1:] != rows.household[:-1]
    starts = np.flatnonzero(is_first)
    keys = _household_day_keys(rows, starts)
    energy_wh = rows.energy_wh[:, 0]
    if len(rejected):
        energy_wh = energy_wh.copy()
        energy_wh[rejected] = 0
    readings = np.diff(starts, append=len(day))
    readings -= np.bincount(np.searchsorted(starts, rejected, side="right") - 1, minlength=len(starts))
    return keys, np.add.reduceat(energy_wh, starts, dtype=np.int64), readings
