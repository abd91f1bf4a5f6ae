"""READINGS of a month + states -> STATE_DAYS: daily totals in which every half-hour counts as the value of its state.

    <confidential>/store/days/month=2013-03/<hash of parts and states>.parquet    STATE_DAYS

A missing half-hour counts as 0, as in DAYS. A repeated half-hour counts once, as the state of the sum of both passes.

They are computed only if a series counts states of half-hours, and only for the days that it needs, one group of parts
at a time (`day_groups`). Their name is a hash of parts and states: different state edges give a different table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import date
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa

from agedp.compute.engine import map_items
from agedp.compute.engine_settings import Engine
from agedp.local_files import atomic_files
from agedp.stage_values import Delivery
from agedp.store.daily_totals import household_days_table, read_or_compute
from agedp.store.day_groups import DayGroup, stored_groups
from agedp.store.month_reader import daily_totals, distinct_keys, household_day_key, iterate_parts
from agedp.store.store import Store
from agedp_data import table_schemas
from agedp_data.datasets.timestamps import day_number
from agedp_data.datasets.validation import SLOTS, Ints
from agedp_data.markov.states import RepresentativeValues


def state_days_path(store: Store, month: str, group: DayGroup, states: RepresentativeValues, bucket: int = 0) -> Path:
    """Return the path of the STATE_DAYS of a group of parts in a month and bucket for these states."""
    return store.days_folder(month, bucket) / f"{group.key(states.to_json())}.parquet"


def compute_state_days(
    store: Store, delivery: Delivery, days: Iterable[date], states: RepresentativeValues | None, *, engine: Engine
) -> None:
    """Compute the STATE_DAYS of these days in parallel, if a series counts states of half-hours.

    Call it before `read_state_days`, which would compute missing tables one after the other. States of days need no
    table: they follow from DAYS.
    """
    if states is not None and states.step == "half-hour":
        numbers = np.array(sorted({day_number(day) for day in days}), np.int64)
        months = sorted({f"{day:%Y-%m}" for day in days} & set(delivery.months))
        function = partial(_write_month, store=store, contents=delivery.contents, states=states, days=numbers)
        map_items("states", list(product(months, range(store.buckets))), function=function, engine=engine)


def _write_month(
    month_bucket: tuple[str, int], *, store: Store, contents: Sequence[str], states: RepresentativeValues, days: Ints
) -> None:
    month, bucket = month_bucket
    for group in stored_groups(store, month, contents, bucket):
        if group.overlaps(days):
            write_state_days(store, month, group, states, bucket)


def write_state_days(store: Store, month: str, group: DayGroup, states: RepresentativeValues, bucket: int = 0) -> None:
    """Compute the STATE_DAYS of a group of parts unless they are stored already.

    Tasks for different groups write different files and need no lock.
    """
    path = state_days_path(store, month, group, states, bucket)
    if atomic_files.count_rows(path) is None:
        atomic_files.make_private(path.parent)
        atomic_files.write_table(path, _state_days_table(store, month, group, states, bucket), sync=False)


def read_state_days(
    store: Store,
    month: str,
    contents: Sequence[str],
    states: RepresentativeValues,
    *,
    bucket: int = 0,
    days: Ints | None = None,
) -> pa.Table:
    """Return the STATE_DAYS of a month and bucket; they are computed if they are missing or damaged.

    `days` as in `read_daily_totals`.

    Raises:
        FolderRemoved: a part of the store is damaged as well, so that its file must be parsed again.
    """
    tables = [
        read_or_compute(
            state_days_path(store, month, group, states, bucket),
            table_schemas.STATE_DAYS,
            partial(write_state_days, store, month, group, states, bucket),
        )
        for group in stored_groups(store, month, contents, bucket)
        if group.overlaps(days)
    ]
    return pa.concat_tables([table_schemas.STATE_DAYS.empty_table(), *tables]) if len(tables) != 1 else tables[0]


def _state_days_table(store: Store, month: str, group: DayGroup, states: RepresentativeValues, bucket: int) -> pa.Table:
    ids: tuple[str, ...] = ()
    keys, values = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    # each household-day is in one part only
    for part in iterate_parts(store, month, group.parts, bucket=bucket, days=group.days):
        ids = part.ids
        part_keys = distinct_keys(household_day_key(part.household, part.time // SLOTS))
        represented = states.represent(part.without_exports().energy_wh)
        counted, _ = daily_totals(replace(part, energy_wh=represented), part_keys)
        keys.append(part_keys)
        values.append(counted)
    return household_days_table(table_schemas.STATE_DAYS, ids, np.concatenate(keys), counted_wh=np.concatenate(values))
