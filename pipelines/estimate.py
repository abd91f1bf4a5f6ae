"""READINGS + EDGES -> TRANSITIONS: counts per household that never bridge a gap.

Months are counted on their own and merged in order: where a household's last reading of one month and its first
of the next are one step apart, that one transition is added. Half-hours that hold two passes of the same wall
clock (DATASETS, autumn) take part in no transition.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from agedp_data.chains.states import states as states_of
from agedp_data.readers.layout import SLOTS, Flags, Ints, Layout
from pipelines.blocks import Engine, map_each
from pipelines.quantize import Floats, MonthReadings, Period
from pipelines.store import day_of


@dataclass(frozen=True, slots=True)
class Transitions:
    """Per household of the roster (h): counts (h, k, k) of one-step transitions, readings (h,), gaps (h,)."""

    counts: Ints
    readings: Ints
    gaps: Ints


@dataclass(frozen=True, slots=True)
class _Month:
    counts: Ints
    readings: Ints
    gaps: Ints
    households: Ints
    first: Ints
    last: Ints


def estimate(period: Period, edges: Floats, *, n_states: int, engine: Engine) -> Transitions:
    """Count the transitions of every household of the roster over the period."""
    each = partial(_count, period=period, edges=edges, n_states=n_states)
    months = map_each("counts", period.months, each=each, engine=engine)
    size = len(period.roster.ids)
    counts = np.zeros((size, n_states, n_states), np.int64)
    readings, gaps = np.zeros(size, np.int64), np.zeros(size, np.int64)
    before = np.full((size, 2), -1)
    for month in months:
        counts[month.households] += month.counts
        readings[month.households] += month.readings
        gaps[month.households] += month.gaps
        _join(counts, gaps, before, month)
        before[month.households] = month.last
    return Transitions(counts, readings, gaps)


def _join(counts: Ints, gaps: Ints, before: Ints, month: _Month) -> None:
    """Add the one transition from the month before, or the gap between; (time, state) pairs, state -1: no part."""
    earlier = before[month.households]
    known = earlier[:, 0] >= 0
    adjacent = known & (earlier[:, 0] + 1 == month.first[:, 0])
    valid = adjacent & (earlier[:, 1] >= 0) & (month.first[:, 1] >= 0)
    np.add.at(counts, (month.households[valid], earlier[valid, 1], month.first[valid, 1]), 1)
    gaps[month.households[known & ~adjacent]] += 1


def _count(month: str, *, period: Period, edges: Floats, n_states: int) -> _Month:
    found = period.readings(month)
    state = np.where(repeated(period.store.layout, found.time), -1, _states(found, edges))
    same = found.household[1:] == found.household[:-1]
    adjacent = same & (found.time[1:] == found.time[:-1] + 1)
    valid = adjacent & (state[1:] >= 0) & (state[:-1] >= 0)
    households, position = np.unique(found.household, return_inverse=True)
    counts = np.zeros((len(households), n_states, n_states), np.int64)
    np.add.at(counts, (position[1:][valid], state[:-1][valid], state[1:][valid]), 1)
    readings = np.bincount(position, minlength=len(households))
    gaps = np.bincount(position[1:][same & ~adjacent], minlength=len(households))
    return _Month(counts, readings, gaps, households, *_ends(found, state, households))


def _states(found: MonthReadings, edges: Floats) -> Ints:
    """Return the state of every reading; readings are sorted by household."""
    state = np.full(len(found.time), -1)
    households, starts = np.unique(found.household, return_index=True)
    for household, start, stop in zip(households, starts, [*starts[1:], len(state)], strict=True):
        state[start:stop] = states_of(found.energy_wh[start:stop], edges[household])
    return state


def _ends(found: MonthReadings, state: Ints, households: Ints) -> tuple[Ints, Ints]:
    first = np.searchsorted(found.household, households)
    last = np.searchsorted(found.household, households, side="right") - 1
    return (
        np.stack([found.time[first], state[first]], axis=1),
        np.stack([found.time[last], state[last]], axis=1),
    )


def repeated(layout: Layout, time: Ints) -> Flags:
    """Return which half-hours hold two passes of the same wall clock."""
    day, slot = np.divmod(time, SLOTS)
    mark = np.zeros(len(time), bool)
    for number in np.unique(day):
        twice = layout.repeated_slots(day_of(number))
        if twice:
            mark |= (day == number) & np.isin(slot, twice)
    return mark
