"""READINGS of a month -> DAYS: the daily totals of each household, and the rows that deduplication rejects.

    <confidential>/store/days/month=2013-03/<hash of the parts>.parquet           DAYS, with the number of readings
    <confidential>/store/days/month=2013-03/<hash of the parts>.aside.parquet     rows rejected by deduplication

A missing half-hour counts as 0. A repeated half-hour counts once, as the sum of both passes.

Decisions:

* A group of parts (`day_groups`) is deduplicated once; a new clamp, group or roster uses the same DAYS.
* The stored tables number files among those with a part in the group: their numbers among all files change with every
  delivery.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import date
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from agedp.local_files import atomic_files
from agedp.stage_values import Delivery
from agedp.store.day_groups import DayGroup, stored_groups
from agedp.store.month_reader import (
    daily_totals,
    distinct_keys,
    household_day_key,
    index_month,
    is_in_sorted,
    load_table,
    shared_readings,
    split_household_day_key,
)
from agedp.store.store import PartMonth, Store
from agedp_data import table_schemas
from agedp_data.datasets.validation import SLOTS, Flags, Ints

RejectedRows = tuple[Ints, Ints, Ints]
"""Rows rejected by deduplication: file (index in the order of the files), data row of the file, reason."""


def daily_totals_path(store: Store, month: str, group: DayGroup, bucket: int = 0) -> Path:
    """Return the path of the DAYS of a group of parts in a month and bucket."""
    return store.days_folder(month, bucket) / f"{group.name}.parquet"


def deduplicate_month(store: Store, month: str, contents: Sequence[str], bucket: int = 0) -> RejectedRows:
    """Deduplicate a month and bucket as far as it is not stored yet, and return the rejected rows.

    Returns:
        The rows that deduplication rejected, sorted by file and row; files by their index in `contents`.

    Raises:
        InputError: the manifest of a file disappeared in the meantime, or the system denies access.
    """
    groups = stored_groups(store, month, contents, bucket)
    return _join_rejected([deduplicate_group(store, month, group, bucket) for group in groups])


def deduplicate_group(store: Store, month: str, group: DayGroup, bucket: int = 0) -> RejectedRows:
    """Deduplicate a group of parts unless it is stored already, and return the rejected rows as `deduplicate_month`.

    Writes DAYS and the rejected rows beside it, the rejected rows first: a group counts as stored once both tables are
    complete.

    Raises:
        InputError: the manifest of a file disappeared in the meantime, or the system denies access.
    """
    path = daily_totals_path(store, month, group, bucket)
    rejected_path = path.with_suffix(".aside.parquet")
    if atomic_files.count_rows(path) is not None and atomic_files.count_rows(rejected_path) is not None:
        with suppress(atomic_files.FolderRemoved):
            return _read_rejected(rejected_path, group)
    days, (file, row, reason) = _deduplicated(store, month, group, bucket)
    atomic_files.make_private(path.parent)
    rejected = table_schemas.table_from_columns(
        table_schemas.SETTLED, file=np.searchsorted(_file_indices(group), file), row=row, reason=reason
    )
    atomic_files.write_table(rejected_path, rejected, sync=False)
    atomic_files.write_table(path, days, sync=False)
    return file, row, reason


def _file_indices(group: DayGroup) -> Ints:
    return np.array(sorted({part.file_index for part in group.parts}), np.int64)


def _read_rejected(path: Path, group: DayGroup) -> RejectedRows:
    table = load_table(path, table_schemas.SETTLED)
    file, row, reason = (table[name].to_numpy().astype(np.int64) for name in ("file", "row", "reason"))
    return _file_indices(group)[file], row, reason


def _deduplicated(store: Store, month: str, group: DayGroup, bucket: int) -> tuple[pa.Table, RejectedRows]:
    """Return the DAYS of a group of parts and the rejected rows, by file and row."""
    index = index_month(store, month, group.parts, bucket=bucket, days=group.days)
    shared = shared_readings(store, month, group.parts, index, bucket=bucket)
    shared_keys = distinct_keys(household_day_key(shared.household, shared.time // SLOTS))
    energy, readings = daily_totals(shared, shared_keys)
    key = [shared_keys]
    values = [(energy, readings)]
    rejected = [(shared.rejected_file, shared.rejected_row, shared.rejected_reason)]
    for part, table, keys in zip(group.parts, index.tables, index.keys, strict=True):
        final = ~is_in_sorted(keys, index.shared)
        read = table["readings"].to_numpy().astype(np.int64)
        with_reading = final & (read > 0)
        key.append(keys[with_reading])
        values.append((table["energy_wh"].to_numpy()[with_reading], read[with_reading]))
        rejected.append(_rejected_of_part(store, part, table, final))
    energy, readings = (np.concatenate([part_values[i] for part_values in values]) for i in range(2))
    days = household_days_table(table_schemas.DAYS, index.ids, np.concatenate(key), energy_wh=energy, readings=readings)
    return days, _join_rejected(rejected)


def _rejected_of_part(store: Store, part: PartMonth, table: pa.Table, final: Flags) -> RejectedRows:
    """Return the rejected rows of one part, of the household-days without rows in any further part."""
    rows, reasons = (table[name].combine_chunks() for name in ("aside_row", "aside_reason"))
    is_final = np.repeat(final, np.diff(rows.offsets.to_numpy()))
    row, reason = (lists.flatten().to_numpy().astype(np.int64)[is_final] for lists in (rows, reasons))
    first = store.rows_before(part) if len(row) else 0
    return np.full(len(row), part.file_index), row + first, reason


def _join_rejected(rejected: Sequence[RejectedRows]) -> RejectedRows:
    none = np.zeros(0, np.int64)
    file, row, reason = (np.concatenate([none, *(part_rows[i] for part_rows in rejected)]) for i in range(3))
    order = np.lexsort((row, file))
    return file[order], row[order], reason[order]


def read_daily_totals(
    store: Store, month: str, contents: Sequence[str], bucket: int = 0, *, days: Ints | None = None
) -> pa.Table:
    """Return the DAYS of a deduplicated month and bucket; a damaged table is computed again.

    Args:
        store: the confidential store.
        month: the month, as in its folder.
        contents: the content ids of the files, in order.
        bucket: the household bucket.
        days: days since 1970 that must be in the result; groups without any of them are not read. None: all.

    Returns:
        The household-days, group by group, each by household and day.

    Raises:
        FolderRemoved: a part of the store is damaged as well, so that its file must be parsed again.
    """
    groups = [group for group in stored_groups(store, month, contents, bucket) if group.overlaps(days)]
    tables = [
        read_or_compute(
            daily_totals_path(store, month, group, bucket),
            table_schemas.DAYS,
            partial(deduplicate_group, store, month, group, bucket),
        )
        for group in groups
    ]
    return pa.concat_tables([table_schemas.DAYS.empty_table(), *tables]) if len(tables) != 1 else tables[0]


def read_or_compute(path: Path, schema: pa.Schema, compute: Callable[[], object]) -> pa.Table:
    """Return a table of the store; it is computed if it is missing or damaged.

    Raises:
        FolderRemoved: a part of the store is damaged as well, so that its file must be parsed again.
    """
    try:
        return load_table(path, schema)
    except atomic_files.FolderRemoved:
        compute()
        return load_table(path, schema)


def household_days_table(schema: pa.Schema, ids: Sequence[str], key: Ints, **columns: Ints) -> pa.Table:
    """Return a table with a row per household-day, in the order of the keys."""
    order = np.argsort(key, kind="stable")
    household, day = split_household_day_key(key[order])
    names = pa.DictionaryArray.from_arrays(pa.array(household.astype(np.int32)), pa.array(ids, pa.string()))
    ordered = {name: column[order] for name, column in columns.items()}
    return table_schemas.table_from_columns(schema, household_id=names, day=day, **ordered)


def days_with_readings(store: Store, delivery: Delivery) -> tuple[date, date]:
    """Return the first and last day on which any household has a reading."""
    tables = (
        read_daily_totals(store, month, delivery.contents, bucket)
        for month, bucket in product(delivery.months, range(store.buckets))
    )
    days = pa.chunked_array(
        [table.filter(pc.greater(table["readings"], 0))["day"].combine_chunks() for table in tables]
    )
    ends = pc.min_max(days).as_py()
    return ends["min"], ends["max"]
