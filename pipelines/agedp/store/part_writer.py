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
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from agedp.local_files import atomic_files
from agedp.store.buckets import bucket_numbers
from agedp.store.data_quality import count_reasons, rejected_rows, write_quarantine
from agedp.store.manifest import Part
from agedp.store.part_rows import MIN_RUN, Int32s, ParsedRows, collect_kept_rows
from agedp.store.part_totals import part_daily_totals
from agedp.store.store import Store, month_name, month_numbers
from agedp_data import table_schemas
from agedp_data.datasets.csv_parsing import ParsedChunk
from agedp_data.datasets.layout import Layout, arrow_numbers
from agedp_data.datasets.validation import SLOTS, Ints, RejectionReason

# Column statistics of these files are never used, and computing them takes a fifth of the writing time.
_OPTIONS: dict[str, Any] = {"write_statistics": False}
# A third quicker than zstd at its lowest level, for files that are a fifth larger.
_READINGS_OPTIONS: dict[str, Any] = {**_OPTIONS, "compression": "lz4"}
_DAYS_OPTIONS: dict[str, Any] = {**_OPTIONS, "compression_level": 1}
# Bytes of slots and days, split, compress as well as a dictionary or differences of them, in two thirds of the time.
_DICTIONARY_COLUMNS = ("household_id", "channel")
_DELTA_COLUMNS = ("row",)
Int16s = np.ndarray[Any, np.dtype[np.int16]]


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
    for month, rows in _rows_by_month(kept_rows):
        days[month] = int(rows.time.min()) // SLOTS, int(rows.time.max()) // SLOTS
        written = {
            bucket: _write_month(store, (month, bucket), name, bucket_rows, households)
            for bucket, bucket_rows in _rows_by_bucket(rows, households.bucket, store.buckets)
        }
        size, days_size = (sum(pair[i] for pair in written.values()) for i in range(2))
        months[month] = len(rows.row), size, days_size
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


def _rows_by_bucket(rows: ParsedRows, bucket: Int16s, buckets: int) -> Iterable[tuple[int, ParsedRows]]:
    """Yield each bucket with its rows, in their order."""
    if buckets == 1:
        yield 0, rows
        return
    bucket_of_row = bucket[rows.household]
    order = np.argsort(bucket_of_row, kind="stable")  # 16 bits: a radix sort
    bounds = np.searchsorted(bucket_of_row[order], np.arange(buckets + 1))
    for number, (start, stop) in enumerate(pairwise(bounds)):
        if stop > start:
            yield number, rows.select(order[start:stop])


def _add_counts(counts: dict[str, int], notes: dict[str, int], chunk: ParsedChunk) -> None:
    for name, number in chunk.records.notes.items():
        notes[name] = notes.get(name, 0) + number
    excluded = int((chunk.records.reason == int(RejectionReason.CATEGORY)).sum())
    if excluded:
        counts[RejectionReason.CATEGORY.words] = counts.get(RejectionReason.CATEGORY.words, 0) + excluded


def _rows_by_month(rows: ParsedRows) -> Iterable[tuple[str, ParsedRows]]:
    """Yield each month's name with its rows, in their order."""
    if len(rows.time) == 0:
        return
    first = int(rows.time.min()) // SLOTS
    months = month_numbers(np.arange(first, int(rows.time.max()) // SLOTS + 1))
    month = np.repeat((months - months[0]).astype(np.int16), SLOTS)[rows.time - np.int32(first * SLOTS)]
    starts = np.append(0, np.flatnonzero(month[1:] != month[:-1]) + 1)
    if len(starts) > 1 + len(month) // MIN_RUN:
        rows = rows.select(np.argsort(month, kind="stable"))  # 16 bits: a radix sort
    elif len(starts) > 1:
        rows = rows.join(_sorted_runs(month[starts], starts, len(month)))
    bounds = np.append(0, np.bincount(month).cumsum()).tolist()
    for number, (start, stop) in enumerate(pairwise(bounds)):
        if stop > start:
            yield month_name(int(months[0]) + number), rows.select(slice(start, stop))


def _sorted_runs(keys: Int16s, starts: Ints, length: int) -> list[slice]:
    """Return runs of rows with equal keys in the order of a stable sort by these keys.

    >>> _sorted_runs(np.array([5, 3, 5], np.int16), np.array([0, 2, 3]), 4)
    [slice(2, 3, None), slice(0, 2, None), slice(3, 4, None)]
    """
    stops = np.append(starts[1:], length)
    order = np.argsort(keys, kind="stable")
    return list(map(slice, starts[order].tolist(), stops[order].tolist()))


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
