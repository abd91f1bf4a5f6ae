"""READINGS of a month -> DAYS and STATE_DAYS: the daily totals of each household, by readings or by states.

    <confidential>/store/days/month=2013-03/<hash of the parts>.parquet           DAYS, with the number of readings
    <confidential>/store/days/month=2013-03/<hash of the parts>.aside.parquet     rows rejected by deduplication
    <confidential>/store/days/month=2013-03/<hash of parts and states>.parquet    STATE_DAYS

In STATE_DAYS every half-hour counts as the value of its state. A missing half-hour counts as 0, as in DAYS. A repeated
half-hour counts once, as the state of the sum of both passes.

Decisions:

* A month is deduplicated once for a set of parts; a new clamp, group or roster uses the same DAYS.
* The stored tables number files among those with a part in the month: their numbers among all files change with every
  delivery.
* STATE_DAYS are computed only if a series counts states of half-hours, and only for the months that it needs. Their
  name is a hash of parts and states: different state edges give a different table.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from agedp.compute.engine import map_items
from agedp.compute.engine_settings import Engine
from agedp.local_files import atomic_files
from agedp.stage_values import Delivery
from agedp.store.month_reader import (
    daily_totals,
    day_numbers,
    deduplicate_stored_rows,
    distinct_keys,
    household_codes,
    household_day_key,
    index_month,
    is_in_sorted,
    iterate_month_readings,
    load_shared_rows,
    load_table,
    split_household_day_key,
)
from agedp.store.store import PartMonth, Store
from agedp_data import table_schemas
from agedp_data.datasets.layout import slot_step
from agedp_data.datasets.timestamps import day_number
from agedp_data.datasets.validation import SLOTS, Flags, Ints
from agedp_data.markov.states import RepresentativeValues
from agedp_data.roster import Roster
from agedp_data.series.series_terms import EnergySeries

RejectedRows = tuple[Ints, Ints, Ints]
"""Rows rejected by deduplication: file (index in the order of the files), data row of the file, reason."""


def daily_totals_path(
    store: Store, month: str, contents: Sequence[str], *, extra_key: Mapping[str, Any] | None = None
) -> Path:
    """Return the path of the DAYS of a month for these files in this order.

    `extra_key` is hashed into the name, for tables that depend on further settings.
    """
    part_names = [part.name for part in store.month_parts(month, contents)]
    hashed = [store.dataset, store.order.criterion, part_names, *([] if extra_key is None else [extra_key])]
    name = hashlib.sha256(json.dumps(hashed, sort_keys=True).encode()).hexdigest()
    return store.folder / "days" / f"month={month}" / f"{name}.parquet"


def deduplicate_month(store: Store, month: str, contents: Sequence[str]) -> RejectedRows:
    """Deduplicate a month unless it is stored already, and return the rejected rows.

    Writes DAYS and the rejected rows beside it, the rejected rows first: a month counts as stored once both tables are
    complete.

    Returns:
        The rows that deduplication rejected, sorted by file and row; files by their index in `contents`.

    Raises:
        InputError: the manifest of a file disappeared in the meantime, or the system denies access.
    """
    path = daily_totals_path(store, month, contents)
    rejected_path = path.with_suffix(".aside.parquet")
    parts = store.month_parts(month, contents)
    file_indices = np.array(sorted({part.file_index for part in parts}), np.int64)
    if atomic_files.count_rows(path) is not None and atomic_files.count_rows(rejected_path) is not None:
        with suppress(atomic_files.FolderRemoved):
            table = load_table(rejected_path, table_schemas.SETTLED)
            file, row, reason = (table[name].to_numpy().astype(np.int64) for name in ("file", "row", "reason"))
            return file_indices[file], row, reason
    days, (file, row, reason) = _deduplicated(store, month, parts)
    atomic_files.make_private(path.parent)
    rejected = table_schemas.table_from_columns(
        table_schemas.SETTLED, file=np.searchsorted(file_indices, file), row=row, reason=reason
    )
    atomic_files.write_table(rejected_path, rejected, sync=False)
    atomic_files.write_table(path, days, sync=False)
    return file, row, reason


def _deduplicated(store: Store, month: str, parts: Sequence[PartMonth]) -> tuple[pa.Table, RejectedRows]:
    """Return the DAYS of a month and the rejected rows, by file and row."""
    index = index_month(store, month, parts)
    shared = deduplicate_stored_rows(store, load_shared_rows(store, month, parts, index))
    shared_keys = distinct_keys(household_day_key(shared.household, shared.time // SLOTS))
    energy, readings = daily_totals(shared, shared_keys)
    key = [shared_keys]
    values = [(energy, readings)]
    rejected = [(shared.rejected_file, shared.rejected_row, shared.rejected_reason)]
    for part, table, keys in zip(parts, index.tables, index.keys, strict=True):
        final = ~is_in_sorted(keys, index.shared)
        read = table["readings"].to_numpy().astype(np.int64)
        with_reading = final & (read > 0)
        key.append(keys[with_reading])
        values.append((table["energy_wh"].to_numpy()[with_reading], read[with_reading]))
        rejected.append(_rejected_of_part(store, part, table, final))
    energy, readings = (np.concatenate([part_values[i] for part_values in values]) for i in range(2))
    days = _household_days_table(
        table_schemas.DAYS, index.ids, np.concatenate(key), energy_wh=energy, readings=readings
    )
    return days, _join_rejected(rejected)


def _rejected_of_part(store: Store, part: PartMonth, table: pa.Table, final: Flags) -> RejectedRows:
    """Return the rejected rows of one part, of the household-days without rows in any further part."""
    rows, reasons = (table[name].combine_chunks() for name in ("aside_row", "aside_reason"))
    is_final = np.repeat(final, np.diff(rows.offsets.to_numpy()))
    row, reason = (lists.flatten().to_numpy().astype(np.int64)[is_final] for lists in (rows, reasons))
    first = store.rows_before(part) if len(row) else 0
    return np.full(len(row), part.file_index), row + first, reason


def _join_rejected(rejected: Sequence[RejectedRows]) -> RejectedRows:
    file, row, reason = (np.concatenate([part_rows[i] for part_rows in rejected]) for i in range(3))
    order = np.lexsort((row, file))
    return file[order], row[order], reason[order]


def read_daily_totals(store: Store, month: str, contents: Sequence[str]) -> pa.Table:
    """Return the DAYS of a deduplicated month; a damaged table is computed again.

    Raises:
        FolderRemoved: a part of the store is damaged as well, so that its file must be parsed again.
    """
    path = daily_totals_path(store, month, contents)
    return _read_or_compute(path, table_schemas.DAYS, partial(deduplicate_month, store, month, contents))


def state_days_path(store: Store, month: str, contents: Sequence[str], states: RepresentativeValues) -> Path:
    """Return the path of the STATE_DAYS of a month for these files in this order and these states."""
    return daily_totals_path(store, month, contents, extra_key=states.to_json())


def write_state_days(month: str, *, store: Store, contents: Sequence[str], states: RepresentativeValues) -> None:
    """Compute the STATE_DAYS of a month unless they are stored already.

    The unit of work of `compute_state_days`. Tasks for different months write different files and need no lock.
    """
    path = state_days_path(store, month, contents, states)
    if atomic_files.count_rows(path) is None:
        atomic_files.make_private(path.parent)
        atomic_files.write_table(path, _state_days_table(store, month, contents, states), sync=False)


def read_state_days(store: Store, month: str, contents: Sequence[str], states: RepresentativeValues) -> pa.Table:
    """Return the STATE_DAYS of a month; they are computed if they are missing or damaged.

    Raises:
        FolderRemoved: a part of the store is damaged as well, so that its file must be parsed again.
    """
    compute = partial(write_state_days, month, store=store, contents=contents, states=states)
    return _read_or_compute(state_days_path(store, month, contents, states), table_schemas.STATE_DAYS, compute)


def _read_or_compute(path: Path, schema: pa.Schema, compute: Callable[[], object]) -> pa.Table:
    try:
        return load_table(path, schema)
    except atomic_files.FolderRemoved:
        compute()
        return load_table(path, schema)


def _state_days_table(store: Store, month: str, contents: Sequence[str], states: RepresentativeValues) -> pa.Table:
    ids: tuple[str, ...] = ()
    keys, values = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for part in iterate_month_readings(store, month, contents):  # each household-day is in one part only
        ids = part.ids
        part_keys = distinct_keys(household_day_key(part.household, part.time // SLOTS))
        counted, _ = daily_totals(replace(part, energy_wh=states.represent(part.energy_wh)), part_keys)
        keys.append(part_keys)
        values.append(counted)
    return _household_days_table(table_schemas.STATE_DAYS, ids, np.concatenate(keys), counted_wh=np.concatenate(values))


def _household_days_table(schema: pa.Schema, ids: Sequence[str], key: Ints, **columns: Ints) -> pa.Table:
    """Return a table with a row per household-day, in the order of the keys."""
    order = np.argsort(key, kind="stable")
    household, day = split_household_day_key(key[order])
    names = pa.DictionaryArray.from_arrays(pa.array(household.astype(np.int32)), pa.array(ids, pa.string()))
    ordered = {name: column[order] for name, column in columns.items()}
    return table_schemas.table_from_columns(schema, household_id=names, day=day, **ordered)


@dataclass(frozen=True, slots=True)
class MonthMatrix:
    """The daily totals of a roster's households in one month, as dense arrays.

    Attributes:
        energy_wh: energy by readings, shape (households of the roster, 31) [Wh]; 0 without a reading.
        states_wh: the same with every reading replaced by the value of its state; None if no states were requested.
        readings: number of readings of each household-day; 0 means that the household-day is missing.
    """

    energy_wh: Ints
    states_wh: Ints | None
    readings: Ints

    def energy_of(self, series: EnergySeries) -> Ints:
        """Return the energy that a series counts.

        Raises:
            ValueError: it counts states, and the matrix has none.
        """
        if not series.counts_states:
            return self.energy_wh
        if self.states_wh is None:
            raise ValueError("a series counts states, but no states are given")
        return self.states_wh


def compute_state_days(
    store: Store, delivery: Delivery, days: Iterable[date], states: RepresentativeValues | None, *, engine: Engine
) -> None:
    """Compute the STATE_DAYS of the months of these days in parallel, if a series counts states of half-hours.

    Call it before `load_month_matrix`, which would compute missing months one after the other. States of days need no
    table: they follow from DAYS.
    """
    if states is not None and states.step == "half-hour":
        months = sorted({f"{day:%Y-%m}" for day in days} & set(delivery.months))
        function = partial(write_state_days, store=store, contents=delivery.contents, states=states)
        map_items("states", months, function=function, engine=engine)


def load_month_matrix(
    store: Store, delivery: Delivery, roster: Roster, month: str, *, states: RepresentativeValues | None = None
) -> MonthMatrix:
    """Return the daily totals of the roster's households in a month, by readings and, if given, by states.

    Rows follow `roster.ids`; households that are not on the roster are left out. A month without data gives zeros.
    """
    energy = np.zeros((len(roster.ids), 31), np.int64)
    readings, counted = np.zeros_like(energy), None if states is None else np.zeros_like(energy)
    if month not in delivery.months:
        return MonthMatrix(energy, counted, readings)
    table = read_daily_totals(store, month, delivery.contents)
    code, day, on_roster = _household_days_on_roster(table, roster, month)
    energy[code, day] = table["energy_wh"].to_numpy()[on_roster]
    readings[code, day] = table["readings"].to_numpy()[on_roster]
    if states is not None and states.step == "day":
        counted = np.where(readings > 0, states.represent(energy), 0)
    elif states is not None and counted is not None:
        table = read_state_days(store, month, delivery.contents, states)
        code, day, on_roster = _household_days_on_roster(table, roster, month)
        counted[code, day] = table["counted_wh"].to_numpy()[on_roster]
    return MonthMatrix(energy, counted, readings)


def _household_days_on_roster(table: pa.Table, roster: Roster, month: str) -> tuple[Ints, Ints, Flags]:
    """Return household code and day of month of the rows on the roster, and which rows these are."""
    code = household_codes(table, {household: code for code, household in enumerate(roster.ids)})
    on_roster = code >= 0
    first = day_number(date.fromisoformat(f"{month}-01"))
    return code[on_roster], day_numbers(table)[on_roster] - first, on_roster


def day_spans(store: Store, delivery: Delivery) -> dict[str, tuple[date, date]]:
    """Return the first and last day of every household, by days with nearly all readings if it has any.

    The first reading is often a midnight, which belongs to the day before.
    """
    step = slot_step(store.layout.interval_minutes)
    full_days = _day_spans_with(store, delivery, min_readings=(SLOTS - 2) // step)
    return _day_spans_with(store, delivery, min_readings=1) | full_days


def _day_spans_with(store: Store, delivery: Delivery, *, min_readings: int) -> dict[str, tuple[date, date]]:
    """Return the first and last day with at least `min_readings` readings, by household."""
    spans: dict[str, tuple[date, date]] = {}
    for month in delivery.months:
        table = read_daily_totals(store, month, delivery.contents)
        table = table.filter(pc.greater_equal(table["readings"], min_readings))
        grouped = table.group_by("household_id").aggregate([("day", "min"), ("day", "max")])
        for row in grouped.to_pylist():
            first, last = spans.get(row["household_id"], (row["day_min"], row["day_max"]))
            spans[row["household_id"]] = (min(first, row["day_min"]), max(last, row["day_max"]))
    return spans
