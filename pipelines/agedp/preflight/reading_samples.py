"""Samples of READINGS: the interval between readings, and readings that rise like those of a register. Confidential.

A sample has the first parts, in the order of the files, of the first and the middle month.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from agedp.local_files.atomic_files import path_exists
from agedp.stage_values import Delivery
from agedp.store.month_reader import load_table
from agedp.store.store import PartMonth, Store
from agedp_data.datasets.layout import PASSES
from agedp_data.datasets.validation import INTERVAL_MINUTES, MISSING, SLOTS, Flags, Ints

_DAY_MINUTES = 24 * 60
_QUARTER_MINUTES = 15
_QUARTERS = _DAY_MINUTES // _QUARTER_MINUTES
_SAMPLE_ROWS = 200_000
_ONE_RESIDUE = 0.99
_MIN_ROWS, _MIN_ROWS_OF_INTERVAL = 96, 20
_MIN_RISE_SHARE, _MAX_FALL_SHARE = 0.01, 0.05
_MAX_HOUSEHOLDS = 500

Sample = tuple[Ints, Ints, Ints]
"""Code of the household or meter, minutes since 1970, energy of the rows of one part, in the order of both."""


def filter_days(table: pa.Table, day_filter: pa.Array | None) -> pa.Table:
    """Return the rows of these days; of all days if `day_filter` is None."""
    return table if day_filter is None else table.filter(pc.is_in(table["day"], value_set=day_filter))


def read_samples(
    store: Store, delivery: Delivery, months: Sequence[str], day_filter: pa.Array | None
) -> Iterator[Sample]:
    """Yield rows of the first and the middle month, part by part, about `_SAMPLE_ROWS` rows each."""
    for month in dict.fromkeys([*months[:1], *months[len(months) // 2 :][:1]]):
        rows = 0
        for part in _parts_of_buckets(store, month, delivery.contents):
            table = filter_days(_load_sample(store, month, part), day_filter)
            rows += table.num_rows
            yield _sort_sample(table, store)
            if rows >= _SAMPLE_ROWS:
                break


def _parts_of_buckets(store: Store, month: str, contents: Sequence[str]) -> list[PartMonth]:
    """Return the parts with rows of a month in any bucket, in the order of the files."""
    parts = {part for bucket in range(store.buckets) for part in store.month_parts(month, contents, bucket)}
    return sorted(parts, key=lambda part: (part.file_index, part.number))


def _load_sample(store: Store, month: str, part: PartMonth) -> pa.Table:
    """Return the rows of a part in a month, of all buckets."""
    paths = (store.month_folder(month, bucket) / part.name for bucket in range(store.buckets))
    tables = [
        load_table(path, store.schema, columns=_sample_columns(store))
        for path in paths
        if store.buckets == 1 or path_exists(path)
    ]
    return pa.concat_tables(tables) if len(tables) > 1 else tables[0]


def _sample_columns(store: Store) -> list[str]:
    """Return the columns of a part that a sample needs."""
    energies = ["energy_wh"] if store.layout.width == 1 else [f"energy_wh_{slot}" for slot in range(SLOTS)]
    names = ["household_id", "day", *(["slot"] if store.layout.width == 1 else []), *energies]
    further = {"channel": store.layout.channels > 1, "label": store.layout.has_labels}
    return [*names, *(name for name, is_stored in further.items() if is_stored)]


def _sort_sample(table: pa.Table, store: Store) -> Sample:
    """Return the readings of a part by household and time; if a row is a day, by household, channel and time."""
    column = table["household_id"].unify_dictionaries().combine_chunks()
    column = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
    # by id: the order of a dictionary depends on the household buckets
    position = np.argsort(np.argsort(np.array(column.dictionary.to_pylist(), object), kind="stable"), kind="stable")
    household = position[column.indices.to_numpy()]
    if store.layout.has_labels:  # each meter of a household by itself
        labels, label_code = np.unique(table["label"].to_numpy(), return_inverse=True)
        household = household * len(labels) + label_code
    minute = table["day"].cast(pa.int32()).to_numpy().astype(np.int64) * _DAY_MINUTES
    layout = store.layout
    channel = table["channel"].to_numpy().astype(np.int64) if layout.channels > 1 else np.zeros(len(minute), np.int64)
    if layout.width == 1:
        minute += table["slot"].to_numpy().astype(np.int64) * INTERVAL_MINUTES
        minute += channel // PASSES * min(layout.interval_minutes, INTERVAL_MINUTES)
        energy = table["energy_wh"].to_numpy().astype(np.int64)
    else:
        household = np.repeat(household * layout.channels + channel, SLOTS)
        minute = (minute[:, None] + np.arange(SLOTS) * INTERVAL_MINUTES).ravel()
        energy = np.stack([table[f"energy_wh_{slot}"].to_numpy() for slot in range(SLOTS)], axis=1).ravel()
        is_present = energy != MISSING
        household, minute, energy = household[is_present], minute[is_present], energy[is_present].astype(np.int64)
    order = np.lexsort((minute, household))
    return household[order], minute[order], energy[order]


def household_intervals(samples: Sequence[Sample]) -> Ints:
    """Return the interval in minutes of each sampled household with enough readings."""
    intervals = [
        sampled_interval(household_minutes)
        for household, minute, _ in samples
        for household_minutes in np.split(minute, np.flatnonzero(np.diff(household)) + 1)[:_MAX_HOUSEHOLDS]
        if len(household_minutes) >= _MIN_ROWS_OF_INTERVAL
    ]
    return np.array(intervals, np.int64)


def other_interval_share(intervals: Ints) -> float:
    """Return the share of the households whose interval differs from the most frequent one."""
    if not len(intervals):
        return 0.0
    values, counts = np.unique(intervals, return_counts=True)
    return float(1 - counts.max() / counts.sum()) if len(values) > 1 else 0.0


def sampled_interval(minute: Ints) -> int:
    """Return the minutes between readings: 60 for hourly data, 1440 for daily data, 0 if there are too few readings.

    The times of all readings have the same remainder by the interval, even if readings are missing.

    >>> sampled_interval(np.arange(0, 28800, 60)), sampled_interval(np.arange(0, 28800, 30))
    (60, 30)
    """
    if len(minute) < _MIN_ROWS_OF_INTERVAL:
        return 0
    quarter, count = np.unique(minute // _QUARTER_MINUTES % _QUARTERS, return_counts=True)
    steps = [step for step in range(_QUARTERS, 0, -1) if _QUARTERS % step == 0]
    return _QUARTER_MINUTES * next(step for step in steps if _largest_residue(quarter % step, count) >= _ONE_RESIDUE)


def _largest_residue(residue: Ints, count: Ints) -> float:
    """Return the share of the readings with the most frequent remainder."""
    return float(np.bincount(residue, count).max() / count.sum())


def rising_share(samples: Sequence[Sample]) -> float:
    """Return the share of the sampled households with enough readings whose readings rise like those of a register."""
    rising = [flag for sample in samples for flag in rising_households(*sample).tolist()]
    return sum(rising) / len(rising) if rising else 0.0


def rising_households(household: Ints, minute: Ints, energy: Ints) -> Flags:
    """Return which households' readings rise within each day and almost never fall, like those of a register.

    Energy use rises and falls. Readings that rise in more than 1 % of the steps, and fall in at most 5 % as many, are
    those of a register, cumulative over all time or over the day. Households with fewer than 96 readings are excluded.
    """
    codes, household_index = np.unique(household, return_inverse=True)
    day = minute // _DAY_MINUTES
    is_same_day = (household[1:] == household[:-1]) & (day[1:] == day[:-1])
    step = np.sign(np.diff(energy))[is_same_day]
    step_household = household_index[1:][is_same_day]
    rises, falls, steps = (
        np.bincount(step_household, weights=step_flags, minlength=len(codes))
        for step_flags in (step > 0, step < 0, np.ones(len(step)))
    )
    has_enough_rows = np.bincount(household_index, minlength=len(codes)) >= _MIN_ROWS
    flags: Flags = (rises > _MIN_RISE_SHARE * steps) & (falls <= _MAX_FALL_SHARE * rises)
    return flags[has_enough_rows]
