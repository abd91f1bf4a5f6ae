"""READINGS of a month -> STATE_DAYS: daily totals in which every half-hour counts as the value of its state.

    <confidential>/store/days/month=2013-03/<hash of parts and states>.parquet    STATE_DAYS

They are computed only if a series counts states of half-hours, and only for the months that it needs. The name is a
hash of parts and states: different state edges give a different table. A missing half-hour counts as 0, as in DAYS. A
repeated half-hour counts once, as the state of the sum of both passes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from agedp_data import tables
from agedp_data.chains.represented import RepresentativeValues
from agedp_data.readers.layout import SLOTS
from pipelines import folders
from pipelines.readings.days import daily_totals_path
from pipelines.readings.household_days import daily_totals, distinct_keys, household_day_key, split_household_day_key
from pipelines.readings.months import iterate_month_readings, load_table
from pipelines.readings.store import Store


def state_days_path(store: Store, month: str, contents: Sequence[str], states: RepresentativeValues) -> Path:
    """Return the path of the STATE_DAYS of a month for these files in this order and these states."""
    return daily_totals_path(store, month, contents, extra_key=states.to_json())


def write_state_days(month: str, *, store: Store, contents: Sequence[str], states: RepresentativeValues) -> None:
    """Compute the STATE_DAYS of a month unless they are stored already."""
    path = state_days_path(store, month, contents, states)
    if folders.count_rows(path) is None:
        folders.make_private(path.parent)
        folders.write_table(path, _state_days_table(store, month, contents, states), sync=False)


def read_state_days(store: Store, month: str, contents: Sequence[str], states: RepresentativeValues) -> pa.Table:
    """Return the STATE_DAYS of a month; they are computed if they are not stored."""
    write_state_days(month, store=store, contents=contents, states=states)
    path = state_days_path(store, month, contents, states)
    try:
        return load_table(path, tables.STATE_DAYS)
    except folders.FolderRemoved:
        write_state_days(month, store=store, contents=contents, states=states)
        return load_table(path, tables.STATE_DAYS)


def _state_days_table(store: Store, month: str, contents: Sequence[str], states: RepresentativeValues) -> pa.Table:
    ids: tuple[str, ...] = ()
    keys, values = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for part in iterate_month_readings(store, month, contents):  # each household-day is in one part only
        ids = part.ids
        part_keys = distinct_keys(household_day_key(part.household, part.time // SLOTS))
        counted, _ = daily_totals(replace(part, energy_wh=states.represent(part.energy_wh)), part_keys)
        keys.append(part_keys)
        values.append(counted)
    key, energy = np.concatenate(keys), np.concatenate(values)
    order = np.argsort(key, kind="stable")
    household, day = split_household_day_key(key[order])
    names = pa.DictionaryArray.from_arrays(pa.array(household.astype(np.int32)), pa.array(ids, pa.string()))
    return tables.table_from_columns(tables.STATE_DAYS, household_id=names, day=day, counted_wh=energy[order])
