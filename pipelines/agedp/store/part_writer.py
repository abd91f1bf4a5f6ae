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
from agedp.store.part_rows import MIN_RUN, Int32s, ParsedRows, collect_kept_pieces, join_parsed_rows
from agedp.store.part_totals import part_daily_totals
from agedp.store.store import Store, month_name, month_numbers
from agedp_data import table_schemas
from agedp_data.datasets.csv_parsing import ParsedChunk
from agedp_data.datasets.layout import arrow_numbers
from agedp_data.datasets.validation import SLOTS, Ints, RejectionReason

# Column statistics of these files are never used, and computing them takes a fifth of the writing time.
_OPTIONS: dict[str, Any] = {"write_statistics": False}
# A third quicker than zstd at its lowest level, for files that are a fifth larger.
_READINGS_OPTIONS: dict[str, Any] = {**_OPTIONS, "compression": "lz4"}
_DAYS_OPTIONS: dict[str, Any] = {**_OPTIONS, "compression_level": 1}
# Bytes of slots and days, split, compress as well as a dictionary or differences of them, in two thirds of the time.
_DICTIONARY_COLUMNS = ("household_id", "channel", "label")
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

    ids, pieces = collect_kept_pieces(counted())
    write_quarantine(store, content, number, rejected)
    months, days, sizes = _write_months(store, f"{content}-{number}", pieces, ids)
    return Part(
        rows, sum(len(piece.row) for piece in pieces), counts | count_reasons(rejected), notes, months, days, sizes
    )


def _write_months(
    store: Store, name: str, pieces: Sequence[ParsedRows], ids: Sequence[str]
) -> tuple[dict[str, tuple[int, int, int]], dict[str, tuple[int, int]], dict[str, dict[str, tuple[int, int]]]]:
    """Write the rows of a part by month and bucket; return `months`, `days` and `buckets` of its counts."""
    months: dict[str, tuple[int, int, int]] = {}
    days: dict[str, tuple[int, int]] = {}
    sizes: dict[str, dict[str, tuple[int, int]]] = {}
    households = _split_households(ids, store.buckets)
    for month, rows in _rows_by_month(pieces):
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


def _rows_by_month(pieces: Sequence[ParsedRows]) -> Iterable[tuple[str, ParsedRows]]:
    """Yield each month's name with its rows, in their order."""
    filled = [piece for piece in pieces if len(piece.time)]
    if not filled:
        return
    first = min(int(piece.time.min()) for piece in filled) // SLOTS
    last = max(int(piece.time.max()) for piece in filled) // SLOTS
    months = month_numbers(np.arange(first, last + 1))
    month_of_slot = np.repeat((months - months[0]).astype(np.int16), SLOTS)
    runs: dict[int, list[ParsedRows]] = {}
    for piece in filled:
        for number, run in _runs_of_months(piece, month_of_slot[piece.time - np.int32(first * SLOTS)]):
            runs.setdefault(number, []).append(run)
    for number in sorted(runs):
        yield month_name(int(months[0]) + number), join_parsed_rows(runs.pop(number))


def _runs_of_months(rows: ParsedRows, month: Int16s) -> Iterable[tuple[int, ParsedRows]]:
    """Yield the months of consecutive rows and these rows as views; rows of many short runs are sorted by month."""
    starts = _run_starts(month)
    if len(starts) > 1 + len(month) // MIN_RUN:
        order = np.argsort(month, kind="stable")  # 16 bits: a radix sort
        rows, month = rows.select(order), month[order]
        starts = _run_starts(month)
    for start, stop in pairwise([*starts.tolist(), len(month)]):
        yield int(month[start]), rows.select(slice(start, stop))


def _run_starts(keys: Int16s) -> Ints:
    return np.append(0, np.flatnonzero(keys[1:] != keys[:-1]) + 1)


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
    table = _readings_table(store, rows, names)
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


def _readings_table(store: Store, rows: ParsedRows, names: pa.Array) -> pa.Table:
    layout = store.layout
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
    if layout.has_labels:
        values |= {"label": rows.label}
    return table_schemas.table_from_columns(store.schema, **values)
