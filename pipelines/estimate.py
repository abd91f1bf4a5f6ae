"""READINGS + EDGES -> TRANSITIONS: counts per household that never bridge a gap.

Parts of months are counted on their own, and joined where one household's readings go on in another (`runs`).
Half-hours that hold two passes of the same wall clock (DATASETS, autumn) take part in no transition.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from agedp_data.readers.layout import SLOTS, Flags, Ints, Layout
from pipelines.blocks import Engine, map_each
from pipelines.quantize import Floats, MonthReadings, Period
from pipelines.runs import NONE, join_runs, runs_and_counts, states_by_household
from pipelines.store import day_of


@dataclass(frozen=True, slots=True)
class Transitions:
    """Per household of the roster (h): counts (h, k, k) of one-step transitions, readings (h,), gaps (h,)."""

    counts: Ints
    readings: Ints
    gaps: Ints


@dataclass(frozen=True, slots=True)
class _Month:
    """What a month says alone; counts in 32 bits, for a month has few half-hours and there are many months."""

    counts: np.ndarray[tuple[int, int, int], np.dtype[np.int32]]
    readings: Ints
    runs: Ints


def estimate(period: Period, edges: Floats, *, n_states: int, engine: Engine) -> Transitions:
    """Count the transitions of every household of the roster over the period."""
    each = partial(_count, period=period, edges=edges, n_states=n_states)
    months = map_each("counts", period.months, each=each, engine=engine)
    size = len(period.roster.ids)
    counts = np.zeros((size, n_states, n_states), np.int64)
    readings = np.zeros(size, np.int64)
    for month in months:
        counts += month.counts
        readings += month.readings
    runs = np.concatenate([np.zeros((0, 5), np.int64), *(month.runs for month in months)])
    return Transitions(counts, readings, join_runs(counts, runs))


def _count(month: str, *, period: Period, edges: Floats, n_states: int) -> _Month:
    size = len(period.roster.ids)
    counts = np.zeros((size, n_states, n_states), np.int32)
    readings = np.zeros(size, np.int64)
    every = [np.zeros((0, 5), np.int64)]
    for part in period.parts(month):
        if len(part.household) == 0:
            continue
        low, high = int(part.household.min()), int(part.household.max()) + 1
        state = _states(period.store.layout, part, edges)
        runs, counted = runs_and_counts(
            part.household - low, part.time, state, households=high - low, n_states=n_states
        )
        counts[low:high] += counted.astype(np.int32)
        readings[low:high] += np.bincount(part.household - low)
        runs[:, 0] += low
        every.append(runs)
    return _Month(counts, readings, np.concatenate(every))


def _states(layout: Layout, part: MonthReadings, edges: Floats) -> Ints:
    state = states_by_household(part.household, part.energy_wh, edges)
    twice = repeated(layout, part.time)
    return np.where(twice, NONE, state) if twice.any() else state


def repeated(layout: Layout, time: Ints) -> Flags:
    """Return which half-hours hold two passes of the same wall clock."""
    mark = np.zeros(len(time), bool)
    if len(time) == 0:
        return mark
    day = time // SLOTS
    first = int(day.min())
    for number in np.flatnonzero(np.bincount(day - first)) + first:
        twice = layout.repeated_slots(day_of(int(number)))
        if twice:
            mark |= (day == number) & np.isin(time - day * SLOTS, twice)
    return mark
