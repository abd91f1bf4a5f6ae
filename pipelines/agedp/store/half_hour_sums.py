"""READINGS of a month + roster -> exact sums of half-hours by day and group: the load profiles before noise.

Household-days are counted as `bucketed_roster` has it; here they are read.

Decisions:

* Readings are read part by part, and household-days are counted in blocks: memory is that of one part and of the sums.
* One task sums one month and household bucket, and tasks add up the sums of buckets: the client receives one of them.
* Only parts with rows of the requested days are opened: a night reads its own delivery, not its month.
* Nothing is stored. Unlike daily totals, these sums depend on roster, clamps and groups, and a day is summed once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from functools import partial
from itertools import product
from typing import Final

import numpy as np

from agedp.compute.engine import map_reduce
from agedp.compute.engine_settings import Engine
from agedp.stage_values import Delivery
from agedp.store import bucketed_roster
from agedp.store.month_reader import household_day_key, is_first_of_key, iterate_month_readings
from agedp.store.store import Store
from agedp_data.datasets.deduplication import Readings
from agedp_data.datasets.timestamps import day_number
from agedp_data.datasets.validation import SLOTS, Ints
from agedp_data.errors import ChainError
from agedp_data.markov.states import RepresentativeValues
from agedp_data.roster import Roster
from agedp_data.series.profile import MISSING_HALF_HOUR
from agedp_data.series.series import AnySeries

_BLOCK: Final = 4096
"""Household-days that are counted at once: 1.5 MB of half-hours, which stay in the processor's cache."""


def sum_half_hours(
    store: Store,
    delivery: Delivery,
    roster: Roster | bucketed_roster.BucketedRoster,
    *,
    days: Sequence[date],
    series: Mapping[str, AnySeries],
    states: RepresentativeValues | None = None,
    engine: Engine,
) -> bucketed_roster.Sums:
    """Return the exact sums of half-hours of days, by day and series; months and buckets are summed in parallel.

    Args:
        store: the confidential store.
        delivery: the input files, all of them in the store.
        roster: who is counted on which day, in which group.
        days: ascending.
        series: the series that read half-hours.
        states: the states that series count, if any.
        engine: how they are computed.

    Raises:
        FolderRemoved: a part of the store is damaged, so that its file must be parsed again.
        ChainError: a series counts states of half-hours, and `states` are of days.
    """
    bucketed = roster
    if isinstance(bucketed, Roster):
        bucketed = bucketed_roster.write_bucketed_roster(store.folder.parent, bucketed, store.buckets)
    states = half_hour_states(series, states)
    function = partial(_sum_month, store=store, delivery=delivery, roster=bucketed, series=series, states=states)
    items = list(product(bucketed_roster.days_by_month(days if series else ()), range(store.buckets)))
    sums = map_reduce("profiles", items, function=function, combine=bucketed_roster.add_sums, engine=engine)
    return {(day, name): sums[day, name] for day in days for name in series}


def half_hour_states(
    series: Mapping[str, AnySeries], states: RepresentativeValues | None
) -> RepresentativeValues | None:
    """Return the states of half-hours that any of these series counts.

    Raises:
        ChainError: they are of days, which say nothing about half-hours.
    """
    if states is None or not any(of.counts_states for of in series.values()):
        return None
    if states.step != "half-hour":
        raise ChainError("a profile counts states of half-hours, not of days")
    return states


def half_hour_block(
    household: Ints, day: Ints, energy_wh: Ints, states: RepresentativeValues | None
) -> bucketed_roster.DayBlock:
    """Return household-days by their half-hours, -1 without a reading, and by their states, if any."""
    is_present = energy_wh != MISSING_HALF_HOUR
    states_wh = None
    if states is not None:
        states_wh = np.where(is_present, states.represent(np.maximum(energy_wh, 0)), MISSING_HALF_HOUR)
    return bucketed_roster.DayBlock(energy_wh, states_wh, is_present.sum(axis=1), household, day)


def _sum_month(
    month_bucket: tuple[Sequence[date], int],
    *,
    store: Store,
    delivery: Delivery,
    roster: bucketed_roster.BucketedRoster,
    series: Mapping[str, AnySeries],
    states: RepresentativeValues | None,
) -> bucketed_roster.Sums:
    days, bucket = month_bucket
    month = f"{days[0]:%Y-%m}"
    contents = delivery.contents if month in delivery.months else ()
    parts = iterate_month_readings(store, month, contents, bucket=bucket, days=_day_numbers(days))
    of_bucket = roster.bucket(bucket)
    code_by_id = {household: code for code, household in enumerate(of_bucket.ids)}
    blocks = (half_hour_block(*block, states) for part in parts for block in _blocks(part, days, code_by_id))
    return bucketed_roster.sum_household_days(
        blocks, days, households=len(of_bucket.ids), members=of_bucket.members, layout=store.layout, series=series
    )


def _blocks(
    readings: Readings, days: Sequence[date], code_by_id: Mapping[str, int]
) -> Iterator[tuple[Ints, Ints, Ints]]:
    """Yield household codes, indices of days and half-hours of some readings in blocks, all of them of these days."""
    code = np.array([code_by_id.get(household, -1) for household in readings.ids], np.int64)
    day = readings.time // SLOTS
    starts = np.flatnonzero(is_first_of_key(household_day_key(readings.household, day)))
    ends = np.append(starts[1:], len(day))
    household, day_index = code[readings.household[starts]], np.searchsorted(_day_numbers(days), day[starts])
    for low in range(0, len(starts), _BLOCK):
        high = min(low + _BLOCK, len(starts))
        block = slice(starts[low], ends[high - 1])
        row = np.repeat(np.arange(high - low), ends[low:high] - starts[low:high])
        energy_wh = np.full((high - low, SLOTS), MISSING_HALF_HOUR, np.int64)
        energy_wh[row, readings.time[block] - day[block] * SLOTS] = readings.energy_wh[block]
        yield household[low:high], day_index[low:high], energy_wh


def _day_numbers(days: Sequence[date]) -> Ints:
    return np.array([day_number(day) for day in days], np.int64)
