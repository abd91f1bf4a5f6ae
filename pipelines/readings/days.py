"""READINGS of a month -> DAYS: what each household used each day, and how many readings say so.

    <confidential>/store/days/month=2013-03/<which parts>.parquet           DAYS
    <confidential>/store/days/month=2013-03/<which parts>.aside.parquet     rows that settling set aside

A month is settled once for a set of parts; a changed clamp, group or roster comes from DAYS. What is kept of it
names files by their place among those that have a part in the month: places among all of them change every night.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from agedp_data import tables
from agedp_data.errors import InputError
from agedp_data.readers.layout import SLOTS, Flags, Ints
from pipelines import folders
from pipelines.readings.household_days import among, distinct, packed, totals, unpacked
from pipelines.readings.months import MonthIndex, alone, contested_rows, load, settle_rows
from pipelines.readings.store import PartMonth, Store

Aside = tuple[Ints, Ints, Ints]
"""Rows that settling set aside: file (its place in the files' order), data row of the file, reason."""


def days_path(store: Store, month: str, contents: Sequence[str], *, also: Mapping[str, Any] | None = None) -> Path:
    """Return where the days of a month lie for these files in this order; `also` names what else they depend on."""
    there = [piece.name for piece in store.pieces(month, contents)]
    named = [store.dataset, store.order.by, there, *([] if also is None else [also])]
    name = hashlib.sha256(json.dumps(named, sort_keys=True).encode()).hexdigest()
    return store.folder / "days" / f"month={month}" / f"{name}.parquet"


def settle_month(store: Store, month: str, contents: Sequence[str]) -> Aside:
    """Settle a month unless that was done; return the rows that it set aside, files by their place in `contents`."""
    path = days_path(store, month, contents)
    aside_path = path.with_suffix(".aside.parquet")
    pieces = store.pieces(month, contents)
    places = np.array(sorted({piece.place for piece in pieces}), np.int64)
    if folders.rows_in(path) is not None and folders.rows_in(aside_path) is not None:
        with suppress(folders.FolderRemoved):
            table = load(aside_path, tables.SETTLED)
            file, row, reason = (table[name].to_numpy().astype(np.int64) for name in ("file", "row", "reason"))
            return places[file], row, reason
    days, (file, row, reason) = _settled(store, month, pieces)
    folders.make_private(path.parent)
    aside = tables.table_from_columns(tables.SETTLED, file=np.searchsorted(places, file), row=row, reason=reason)
    folders.write_table(aside_path, aside, sync=False)
    folders.write_table(path, days, sync=False)
    return file, row, reason


def _settled(store: Store, month: str, pieces: Sequence[PartMonth]) -> tuple[pa.Table, Aside]:
    """Return the DAYS of a month and the rows set aside, by file and row."""
    found = alone(store, month, pieces)
    together = settle_rows(store, contested_rows(store, month, pieces, found))
    there = distinct(packed(together.household, together.time // SLOTS))
    energy, readings = totals(together, there)
    key = [there]
    values = [(energy, readings)]
    aside = [(together.aside_file, together.aside_row, together.aside_reason)]
    for piece, table, keys in zip(pieces, found.tables, found.keys, strict=True):
        final = ~among(keys, found.contested)
        read = table["readings"].to_numpy().astype(np.int64)
        with_reading = final & (read > 0)
        key.append(keys[with_reading])
        values.append((table["energy_wh"].to_numpy()[with_reading], read[with_reading]))
        aside.append(_aside(store, piece, table, final))
    energy, readings = (np.concatenate([one[i] for one in values]) for i in range(2))
    return _days(found, np.concatenate(key), energy, readings), _together(aside)


def _aside(store: Store, piece: PartMonth, table: pa.Table, final: Flags) -> Aside:
    """Return the rows that a part alone sets aside, of the household-days that nobody else speaks of."""
    rows = table["aside_row"].combine_chunks()
    reasons = table["aside_reason"].combine_chunks()
    lengths = np.diff(rows.offsets.to_numpy())
    kept = np.repeat(final, lengths)
    row = rows.flatten().to_numpy().astype(np.int64)[kept]
    manifest = store.manifest(piece.content) if len(row) else None
    if manifest is None and len(row):
        raise InputError("the confidential store changed while it was read; run again")
    first = manifest.first_row(piece.number) if manifest else 0
    reason = reasons.flatten().to_numpy().astype(np.int64)[kept]
    return np.full(len(row), piece.place), row + first, reason


def _together(aside: Sequence[Aside]) -> Aside:
    file, row, reason = (np.concatenate([one[i] for one in aside]) for i in range(3))
    order = np.lexsort((row, file))
    return file[order], row[order], reason[order]


def _days(found: MonthIndex, key: Ints, energy: Ints, readings: Ints) -> pa.Table:
    order = np.argsort(key, kind="stable")
    household, day = unpacked(key[order])
    ids = pa.array(found.ids, pa.string())
    return tables.table_from_columns(
        tables.DAYS,
        household_id=pa.DictionaryArray.from_arrays(pa.array(household.astype(np.int32)), ids),
        day=day,
        energy_wh=energy[order],
        readings=readings[order],
    )


def read_days(store: Store, month: str, contents: Sequence[str]) -> pa.Table:
    """Return the DAYS of a settled month; damaged ones are settled again."""
    path = days_path(store, month, contents)
    try:
        return load(path, tables.DAYS)
    except folders.FolderRemoved:
        settle_month(store, month, contents)
        return load(path, tables.DAYS)
