"""READINGS of a month -> DAYS: what each household used each day, and how many readings say so.

    <confidential>/store/days/month=2013-03/<which parts>.parquet           DAYS
    <confidential>/store/days/month=2013-03/<which parts>.aside.parquet     rows that settling set aside

A month is settled once for a set of parts; a changed clamp, group or roster comes from DAYS. What is kept of it
names files by their place among those that have a part in the month: places among all of them change every night.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from agedp_data import tables
from agedp_data.readers.layout import SLOTS
from agedp_data.readers.settle import Readings
from pipelines import folders
from pipelines.store import Store, month_readings


def parts_of(store: Store, month: str, contents: Sequence[str]) -> list[str]:
    """Return the files that have a part in the month, in their order."""
    return [content for content in contents if store.part(month, content).exists()]


def days_path(store: Store, month: str, contents: Sequence[str]) -> Path:
    """Return where the days of a month lie for these files in this order."""
    there = parts_of(store, month, contents)
    name = hashlib.sha256(json.dumps([store.dataset, store.order.by, there]).encode()).hexdigest()
    return store.folder / "days" / f"month={month}" / f"{name}.parquet"


def settle_month(store: Store, month: str, contents: Sequence[str]) -> pa.Table:
    """Settle a month unless that was done; return the rows that it set aside (SETTLED), `file` as in `parts_of`."""
    path = days_path(store, month, contents)
    aside_path = path.with_suffix(".aside.parquet")
    if folders.rows_in(path) is not None and folders.rows_in(aside_path) is not None:
        return folders.read_table(aside_path)
    found = month_readings(store, month, parts_of(store, month, contents))
    folders.make_private(path.parent)
    aside = tables.columns(tables.SETTLED, file=found.aside_file, row=found.aside_row, reason=found.aside_reason)
    folders.write_table(aside_path, aside)
    folders.write_table(path, daily(found))
    return aside


def daily(found: Readings) -> pa.Table:
    """Return the DAYS of readings that are sorted by household and time."""
    day = found.time // SLOTS
    first = np.ones(len(day), bool)
    first[1:] = (day[1:] != day[:-1]) | (found.household[1:] != found.household[:-1])
    starts = np.flatnonzero(first)
    ids = pa.array(found.ids, pa.string())
    return tables.columns(
        tables.DAYS,
        household_id=pa.DictionaryArray.from_arrays(pa.array(found.household[starts], pa.int32()), ids),
        day=day[starts],
        energy_wh=np.add.reduceat(found.energy_wh, starts) if len(starts) else starts,
        readings=np.diff([*starts, len(day)]),
    )


def read_days(store: Store, month: str, contents: Sequence[str]) -> pa.Table:
    """Return the DAYS of a settled month."""
    return folders.read_table(days_path(store, month, contents))
