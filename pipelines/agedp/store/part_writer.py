"""Chunks of one input file -> its parts: the readings of each month, their daily totals, the rejected rows.

    <confidential>/store/month=2013-03_2014-02/<content>-<number>.parquet            READINGS, in the order of the file
    <confidential>/store/part_days/month=2013-03_2014-02/<content>-<number>.parquet  PART_DAYS: its daily totals

Each month of a part is a row group of both files, in a store of several household buckets each month and bucket.

One task writes one part from consecutive chunks: they are parsed one after the other into sixteen bytes per row, so
memory depends on the size of a part and not of the file. A part's position in the file is its number only; the
manifest contains the number of rows before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from agedp.local_files import atomic_files
from agedp.local_files.atomic_files import DamagedFile, GroupWriter, group_names, read_table
from agedp.store.data_quality import count_reasons, rejected_rows, write_quarantine
from agedp.store.month_reader import daily_totals, day_starts, distinct_keys, household_day_key, split_household_day_key
from agedp.store.store import (
    Part,
    Store,
    bucket_numbers,
    group_name,
    month_name,
    month_numbers,
    months_folder,
    write_manifest,
)
from agedp_data import table_schemas
from agedp_data.datasets.csv_parsing import ParsedChunk
from agedp_data.datasets.deduplication import StoredRows, deduplicate_rows, whole_watt_hours
from agedp_data.datasets.layout import SINGLE_CHANNEL, Layout, arrow_numbers, label_of
from agedp_data.datasets.validation import NO_READING, SLOTS, Ints, RejectionReason
from agedp_data.errors import InputError
from agedp_data.table_schemas import PART_DAYS

# --------------------------------------------------------------------------------------------------
# Parsed chunks of a part -> its kept rows as compact arrays, sixteen bytes each, or more with labels.
#
# Example: rows of two chunks whose households are A, B and B, C have the codes 0, 1 and 1, 2 of the ids A, B, C.
# --------------------------------------------------------------------------------------------------

_MAX_ROWS = 2**31 - 1
_NO_LABEL = label_of("")  # also that of a damaged line whose label cannot be read
MIN_RUN = 16
"""Rows in runs of this length on average are copied run by run."""
_MIN_VIEW = 4096
"""Rows in runs of this length on average are not copied."""
Int32s = np.ndarray[Any, np.dtype[np.int32]]


@dataclass(frozen=True, slots=True)
class ParsedRows:
    """The kept rows (n) of a part in the order of the file, as compact arrays.

    Attributes:
        household: code of the household, shape (n,).
        time: day since 1970 x 48 + slot, shape (n,).
        channel: channel of the layout, shape (n,).
        energy_wh: energy, shape (n, readings per row) [parts of a Wh: `Layout.units_per_wh`].
        row: number of the row within the part, shape (n,).
        label: number of the meter within its household, shape (n,); None if the layout has no labels.
    """

    household: Int32s
    time: Int32s
    channel: np.ndarray[Any, np.dtype[np.uint8]]
    energy_wh: Int32s
    row: Int32s
    label: Ints | None = None

    @property
    def kept(self) -> int:
        """Return the number of rows with a reading."""
        return len(self.row) if self.label is None else int((self.energy_wh[:, 0] != NO_READING).sum())

    def select(self, indices: Ints | slice) -> ParsedRows:
        """Return the rows with these indices."""
        label = None if self.label is None else self.label[indices]
        household, time, channel = self.household[indices], self.time[indices], self.channel[indices]
        return ParsedRows(household, time, channel, self.energy_wh[indices], self.row[indices], label)

    def without(self, indices: Ints) -> ParsedRows:
        """Return the other rows; `indices` ascend. If they are few, the runs between them are copied as a whole."""
        return join_parsed_rows(self.runs_between(indices, MIN_RUN))

    def runs_between(self, indices: Ints, min_run: int) -> list[ParsedRows]:
        """Return the rows between those with these indices as views; one copy if runs are shorter on average."""
        length = len(self.row)
        if len(indices) * min_run > length:
            return [self.select(np.delete(np.arange(length), indices))]
        starts, stops = np.append(0, indices + 1).tolist(), np.append(indices, length).tolist()
        runs = [self.select(slice(start, stop)) for start, stop in zip(starts, stops, strict=True) if stop > start]
        return runs or [self.select(slice(0, 0))]


_COLUMNS = tuple(column.name for column in fields(ParsedRows))


def join_parsed_rows(pieces: Sequence[ParsedRows]) -> ParsedRows:
    """Return the rows of pieces, at least one, one after the other; a single piece is not copied."""
    if len(pieces) == 1:
        return pieces[0]
    names = [name for name in _COLUMNS if getattr(pieces[0], name) is not None]
    return ParsedRows(**{name: np.concatenate([getattr(piece, name) for piece in pieces]) for name in names})


def no_rows(layout: Layout) -> ParsedRows:
    """Return no rows, in the types of a layout."""
    none = np.zeros(0, np.int32)
    label = np.zeros(0, np.int64) if layout.has_labels else None
    return ParsedRows(none, none, np.zeros(0, np.uint8), np.zeros((0, layout.width), np.int32), none, label)


def collect_kept_pieces(chunks: Iterable[ParsedChunk]) -> tuple[list[str], list[ParsedRows]]:
    """Return the household ids of chunks, and their kept rows in pieces: views of the columns of the chunks.

    Raises:
        InputError: too many rows for 32-bit row numbers.
    """
    ids: dict[str, int] = {}
    pieces: list[ParsedRows] = []
    rows = 0
    for chunk in chunks:
        pieces += _kept_pieces(chunk, ids, rows)
        rows += chunk.rows_read
        if rows > _MAX_ROWS:
            raise InputError("a chunk has more rows than can be numbered; split the file, or lower [engine] block_mib")
    return list(ids), pieces


def _kept_pieces(chunk: ParsedChunk, ids: dict[str, int], before: int) -> list[ParsedRows]:
    records, household = chunk.records, chunk.records.household
    codes = np.array([ids.setdefault(name, len(ids)) for name in records.ids], np.int32)
    if len(codes) and (codes != np.arange(len(codes))).any():
        household = codes[household]
    row = chunk.row + np.int32(before) if before else chunk.row
    rejected = np.flatnonzero(records.reason != int(RejectionReason.KEPT))
    rows = ParsedRows(household, records.time, records.channel, records.energy_wh, row, records.label)
    if records.label is not None and len(rejected):  # of a household's meters each is known on its days
        named = chunk.rejected_row[chunk.names_half_hour]
        named = named[records.label[named] != _NO_LABEL]
        energy_wh = records.energy_wh.copy()
        energy_wh[named] = NO_READING
        rows, rejected = replace(rows, energy_wh=energy_wh), np.setdiff1d(rejected, named, assume_unique=True)
    return rows.runs_between(rejected, _MIN_VIEW)


# --------------------------------------------------------------------------------------------------
# Kept rows of a part -> PART_DAYS: the daily totals of its household-days, and its repeated or contradicting rows.
#
# Rows of one channel that are sorted by household and time, as most files have them, are summed without a further
# sort; only rows with a repeated time are deduplicated. All others are deduplicated as a whole.
# --------------------------------------------------------------------------------------------------

_TIME_BITS = 32


def part_daily_totals(store: Store, rows: ParsedRows, names: pa.Array) -> pa.Table:
    """Return the daily totals of one part's rows: one line for each household-day with a row, even without a reading.

    The total of a household-day is a function of its rows: if no further part has rows of it, this total is final.
    """
    layout = store.layout
    complete_channels, units_per_wh = layout.complete_channels(store.rules), layout.units_per_wh
    repeated = _repeated_rows(layout, rows)
    is_sorted = repeated is not None and SINGLE_CHANNEL[0] in complete_channels
    chosen = np.arange(len(rows.row)) if repeated is None or not is_sorted else repeated
    deduplicated = deduplicate_rows(
        _stored_rows(rows, chosen), complete_channels=complete_channels, units_per_wh=units_per_wh
    )
    if is_sorted:
        keys, energy, readings = sorted_daily_totals(rows, deduplicated.rejected_row, units_per_wh=units_per_wh)
        rejected_keys = _household_day_keys(rows, deduplicated.rejected_row)
    else:
        row_keys = _household_day_keys(rows, chosen)
        keys, rejected_keys = distinct_keys(row_keys), row_keys[deduplicated.rejected_row]
        energy, readings = daily_totals(deduplicated, keys)
    order = np.argsort(rejected_keys, kind="stable")
    offsets = arrow_numbers(np.append(np.searchsorted(rejected_keys[order], keys), len(order)).astype(np.int32))
    rejected = deduplicated.rejected_row[order]
    reasons = arrow_numbers(deduplicated.rejected_reason[order].astype(np.uint8))
    household, day = split_household_day_key(keys)
    return table_schemas.table_from_columns(
        PART_DAYS,
        household_id=pa.DictionaryArray.from_arrays(arrow_numbers(household.astype(np.int32)), names),
        day=day,
        energy_wh=energy,
        readings=readings,
        aside_row=pa.ListArray.from_arrays(offsets, arrow_numbers(rows.row[rejected].astype(np.int64))),
        aside_reason=pa.ListArray.from_arrays(offsets, reasons),
    )


def _repeated_rows(layout: Layout, rows: ParsedRows) -> Ints | None:
    """Return the rows with the household and time of a further row; None unless all rows are sorted by these two.

    None as well for rows of a day, of several channels or of meters.
    """
    if layout.width > 1 or layout.has_labels or rows.channel.any():
        return None
    steps = time_steps(rows)
    if (least := steps.min(initial=1)) > 0:
        return np.zeros(0, np.int64)
    first = np.flatnonzero(steps == 0)
    return None if least < 0 else np.unique(np.concatenate([first, first + 1]))


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


def _stored_rows(rows: ParsedRows, indices: Ints) -> StoredRows:
    """Return these rows of a part, numbered within it; without household ids."""
    part = rows.select(indices)
    household, channel, time, energy_wh = (
        values.astype(np.int64) for values in (part.household, part.channel, part.time, part.energy_wh)
    )
    return StoredRows((), household, channel, time, np.zeros(len(indices), np.int64), indices, energy_wh, part.label)


def sorted_daily_totals(rows: ParsedRows, rejected: Ints, *, units_per_wh: int = 1) -> tuple[Ints, Ints, Ints]:
    """Return the household-days of sorted rows of one channel, and the energy and number of their readings.

    `rejected` rows, by their index, count as no reading. A net export of a day counts as 0.
    """
    starts = day_starts(rows.household, rows.time)
    keys = _household_day_keys(rows, starts)
    energy_wh = whole_watt_hours(rows.energy_wh[:, 0], units_per_wh)
    if len(rejected):
        energy_wh = energy_wh.copy()
        energy_wh[rejected] = 0
    readings = np.diff(starts, append=len(rows.time))
    readings -= np.bincount(np.searchsorted(starts, rejected, side="right") - 1, minlength=len(starts))
    return keys, np.maximum(np.add.reduceat(energy_wh, starts, dtype=np.int64), 0), readings


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
    """Write a part's readings and daily totals, and its quarantine files.

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
    part = Part(rows, sum(piece.kept for piece in pieces), counts | count_reasons(rejected), notes)
    return _write_months(store, f"{content}-{number}.parquet", pieces, ids, part)


def _write_months(store: Store, name: str, pieces: Sequence[ParsedRows], ids: Sequence[str], part: Part) -> Part:
    """Write the rows of a part by month and bucket; return its counts with those of the months."""
    months: dict[str, tuple[int, ...]] = {}
    days: dict[str, tuple[int, int]] = {}
    buckets: dict[str, dict[str, tuple[int, ...]]] = {}
    households = _split_households(ids, store.buckets)
    writers = GroupWriter(store.schema, **_readings_options(store.schema)), GroupWriter(PART_DAYS, **_DAYS_OPTIONS)
    for month, rows in _rows_by_month(pieces):
        days[month] = int(rows.time.min()) // SLOTS, int(rows.time.max()) // SLOTS
        months[month] = (rows.kept,)
        for bucket, bucket_rows in _rows_by_bucket(rows, households.bucket, store.buckets):
            if store.buckets > 1:
                buckets.setdefault(month, {})[str(bucket)] = ()
                bucket_rows = replace(bucket_rows, household=households.code[bucket_rows.household])  # noqa: PLW2901
            group, names = group_name(month, bucket, store.buckets), households.names[bucket]
            writers[0].add(group, _readings_table(store, bucket_rows, names))
            writers[1].add(group, part_daily_totals(store, bucket_rows, names))
    if not months:
        return part
    contents = [writer.content() for writer in writers]
    write_files(store.folder, months_folder(months), name, contents)
    return replace(part, months=months, days=days, buckets=buckets, files=(tuple(map(len, contents)),))


def write_files(folder: Path, months: str, name: str, contents: Sequence[bytes]) -> None:
    """Write the READINGS and the PART_DAYS of a part of the store in `folder`; `months` is the folder of its months."""
    for parent, content in zip((folder, folder / "part_days"), contents, strict=True):
        # a part that a power cut takes is noticed, and its file is parsed again
        path = atomic_files.make_private(parent / months) / name
        atomic_files.write(path, content, sync=False)


def rename_part(folder: Path, part: Part, name: str, new_name: str) -> None:
    """Give the READINGS and the PART_DAYS of a part of the store in `folder` another name."""
    for parent in (folder, folder / "part_days") if part.months else ():
        path = parent / months_folder(part.months) / name
        with atomic_files.write_errors(path):
            path.replace(path.with_name(new_name))


def cut_part(store: Store, months: str, name: str, first_kept: str) -> None:
    """Rewrite a part without the months before `first_kept`, unless it has none; a damaged part is removed.

    Both files are put in place by rename, after a manifest that describes them before and after. PART_DAYS are the
    last: without old months the part is done. A removal that a killed run began is completed under its manifest.
    """
    paths = store.folder / months / name, store.folder / "part_days" / months / name
    tables = (store.schema, _readings_options(store.schema)), (PART_DAYS, _DAYS_OPTIONS)
    try:
        if min(group_names(paths[1])) >= first_kept:
            return
        contents = [_without_groups(path, first_kept, *table) for path, table in zip(paths, tables, strict=True)]
    except DamagedFile:
        for path in paths:
            path.unlink(missing_ok=True)
        return
    content, _, number = name.removesuffix(".parquet").rpartition("-")
    manifest = store.manifest(content)
    if manifest is not None and int(number) < len(manifest.parts):
        parts, before = list(manifest.parts), tuple(path.stat().st_size for path in paths)
        after = tuple(map(len, contents))
        if [tuple(sizes) for sizes in parts[int(number)].files][1:] != [after]:
            parts[int(number)] = replace(parts[int(number)], files=(before, after))
            write_manifest(store.folder, replace(manifest, parts=tuple(parts)))
    write_files(store.folder, months, name, contents)


def _without_groups(path: Path, first_kept: str, schema: pa.Schema, options: Mapping[str, Any]) -> bytes:
    writer = GroupWriter(schema, **options)
    for name in group_names(path):
        if name >= first_kept:
            writer.add(name, read_table(path, schema, group=name))
    return writer.content()


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


def _readings_options(schema: pa.Schema) -> dict[str, Any]:
    columns = [name for name in schema.names if name in _DICTIONARY_COLUMNS]
    numbers = [name for name in schema.names if name not in columns]
    # byte-stream split compresses readings quicker and smaller
    encoding = dict.fromkeys(numbers, "BYTE_STREAM_SPLIT") | dict.fromkeys(_DELTA_COLUMNS, "DELTA_BINARY_PACKED")
    return {"use_dictionary": columns, "column_encoding": encoding, **_READINGS_OPTIONS}


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
