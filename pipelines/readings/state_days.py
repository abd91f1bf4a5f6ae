"""READINGS of a month -> STATE_DAYS: what each household's day comes to if every half-hour counts as its state.

    <confidential>/store/days/month=2013-03/<which parts, which states>.parquet    STATE_DAYS

Beside DAYS, made only where a series counts states of half-hours and only of the months that it needs, named by the
parts and by the states: other cuts are another table. A half-hour without a reading counts as nothing, as it does in
DAYS. One that holds two passes of the same wall clock counts once, as the state of what both used together.
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
from pipelines.readings.days import days_path
from pipelines.readings.household_days import distinct, packed, totals, unpacked
from pipelines.readings.months import load, month_in_pieces
from pipelines.readings.store import Store


def states_path(store: Store, month: str, contents: Sequence[str], states: RepresentativeValues) -> Path:
    """Return where the days of a month lie for these files in this order, counted by these states."""
    return days_path(store, month, contents, also=states.to_json())


def settle_states(month: str, *, store: Store, contents: Sequence[str], states: RepresentativeValues) -> None:
    """Count the days of a month by their states unless that was done."""
    path = states_path(store, month, contents, states)
    if folders.rows_in(path) is None:
        folders.make_private(path.parent)
        folders.write_table(path, _counted(store, month, contents, states), sync=False)


def read_state_days(store: Store, month: str, contents: Sequence[str], states: RepresentativeValues) -> pa.Table:
    """Return the STATE_DAYS of a month, counted now if nobody did."""
    settle_states(month, store=store, contents=contents, states=states)
    path = states_path(store, month, contents, states)
    try:
        return load(path, tables.STATE_DAYS)
    except folders.FolderRemoved:
        settle_states(month, store=store, contents=contents, states=states)
        return load(path, tables.STATE_DAYS)


def _counted(store: Store, month: str, contents: Sequence[str], states: RepresentativeValues) -> pa.Table:
    ids: tuple[str, ...] = ()
    keys, values = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for part in month_in_pieces(store, month, contents):  # a household-day lies in one of them as a whole
        ids = part.ids
        there = distinct(packed(part.household, part.time // SLOTS))
        counted, _ = totals(replace(part, energy_wh=states.represent(part.energy_wh)), there)
        keys.append(there)
        values.append(counted)
    key, energy = np.concatenate(keys), np.concatenate(values)
    order = np.argsort(key, kind="stable")
    household, day = unpacked(key[order])
    names = pa.DictionaryArray.from_arrays(pa.array(household.astype(np.int32)), pa.array(ids, pa.string()))
    return tables.table_from_columns(tables.STATE_DAYS, household_id=names, day=day, counted_wh=energy[order])
