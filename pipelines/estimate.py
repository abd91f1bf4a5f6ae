"""READINGS + EDGES -> TRANSITIONS: counts per household that never bridge a gap.

Parts of months are counted on their own, and joined where one household's readings go on in another (`runs`).
Half-hours that hold two passes of the same wall clock (DATASETS, autumn) take part in no transition; of days they do,
a day of 25 hours being one day.

A cyclic chain is counted by the half-hour of the day that a transition leaves. Series that are read EVERY few steps
only (for a sampling bound) are counted in the same pass: the readings at times that are multiples of so many steps,
a gap wherever one of them is missing. A reading from which the next of them is more or less than so many half-hours
away, because the clock changes in between, takes no part in these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from agedp_data.config.model import Step
from agedp_data.readers.layout import SLOTS, Flags, Ints, Layout
from pipelines.blocks import Engine, map_in_batches
from pipelines.quantize import Floats, MonthReadings, Period
from pipelines.readings.runs import NO_STATE, count_by_phase, join_runs, runs_and_counts, states_by_household
from pipelines.readings.store import date_of_day

_TABLES_BYTES = 2**28


@dataclass(frozen=True, slots=True)
class Transitions:
    """Per household of the roster (h): counts of one-step transitions, readings (h,), gaps (h,).

    `counts` are (h, k, k), or (h, phases, k, k) of a cyclic chain; `every` holds such counts by the number of steps
    of one step, with as many times fewer phases. Of a chain of days a reading is a day.
    """

    counts: Ints
    readings: Ints
    gaps: Ints
    every: Mapping[int, Ints] = field(default_factory=dict)

    def of(self, households: Ints) -> Transitions:
        """Return the transitions of some households."""
        if len(households) == len(self.readings):  # all of them, in their order: nothing to copy
            return self
        every = {steps: counts[households] for steps, counts in self.every.items()}
        return Transitions(self.counts[households], self.readings[households], self.gaps[households], every)


@dataclass(frozen=True, slots=True)
class _Month:
    """What a month says alone: by steps, counts in few bits (a month has few half-hours) and runs."""

    counts: Mapping[int, np.ndarray[Any, np.dtype[np.unsignedinteger[Any]]]]
    runs: Mapping[int, Ints]
    readings: Ints


@dataclass(frozen=True, slots=True)
class _Counting:
    """What is counted of a period: by steps, the shape of a household's table."""

    period: Period
    edges: Floats
    n_states: int
    phases: Mapping[int, int]

    def shape(self, steps: int) -> tuple[int, ...]:
        phases = () if self.phases[steps] == 1 else (self.phases[steps],)
        return (len(self.period.roster.ids), *phases, self.n_states, self.n_states)


def estimate(
    period: Period, edges: Floats, *, n_states: int, engine: Engine, n_phases: int = 1, every: Sequence[int] = ()
) -> Transitions:
    """Count the transitions of every household of the roster over the period, in one pass.

    Args:
        period: the readings, by half-hours or by days.
        edges: (h, n_states - 1) of each household.
        n_states: k.
        engine: how it runs.
        n_phases: 48 for a cyclic chain, else 1.
        every: of which series that are read every so many steps the transitions are counted too; these divide
            `n_phases`, if there are several.
    """
    phases = {steps: max(n_phases // steps, 1) for steps in (1, *every)}
    counting = _Counting(period, edges, n_states, phases)
    size = len(period.roster.ids)
    counts = {steps: np.zeros(counting.shape(steps), np.int64 if n_phases == 1 else np.int32) for steps in phases}
    readings = np.zeros(size, np.int64)
    runs = {steps: [np.zeros((0, 5), np.int64)] for steps in phases}
    of_month = sum(int(np.prod(counting.shape(steps))) for steps in phases)
    at_once = max(_TABLES_BYTES // max(of_month, 1) // engine.workers, 1) * engine.workers
    each = partial(_count, counting=counting)
    for months in map_in_batches("counts", period.months, function=each, engine=engine, batch_size=at_once):
        for month in months:
            readings += month.readings
            for steps in phases:
                counts[steps] += month.counts[steps]
                runs[steps].append(month.runs[steps])
    gaps = {steps: join_runs(table, np.concatenate(runs[steps])) for steps, table in counts.items()}
    return Transitions(counts.pop(1), readings, gaps[1], counts)


def _count(month: str, *, counting: _Counting) -> _Month:
    period = counting.period
    bits = np.uint8 if max(counting.phases.values()) > 1 else np.uint16  # once a day, or 48 times
    counts = {steps: np.zeros(counting.shape(steps), bits) for steps in counting.phases}
    runs = {steps: [np.zeros((0, 5), np.int64)] for steps in counting.phases}
    readings = np.zeros(len(period.roster.ids), np.int64)
    for part in period.parts(month):
        if len(part.household) == 0:
            continue
        low, high = int(part.household.min()), int(part.household.max()) + 1
        readings[low:high] += np.bincount(part.household - low)
        state = _states(period.store.layout, part, counting.edges, period.step)
        for steps, n_phases in counting.phases.items():
            home, time, read = part.household - low, part.time, state
            if steps > 1:
                home, time, read = _rarer(period.store.layout, part, state, steps)
            if n_phases > 1:
                own = count_by_phase(counts[steps][low:high], home, time, read)
            else:
                own, counted = runs_and_counts(home, time, read, households=high - low, n_states=counting.n_states)
                counts[steps][low:high] += counted.astype(bits)
            own[:, 0] += low
            runs[steps].append(own)
    return _Month(counts, {steps: np.concatenate(found) for steps, found in runs.items()}, readings)


def _states(layout: Layout, part: MonthReadings, edges: Floats, step: Step) -> Ints:
    state = states_by_household(part.household, part.energy_wh, edges)
    if step == "day":
        return state
    twice = repeated(layout, part.time)
    return np.where(twice, NO_STATE, state) if twice.any() else state


def _rarer(layout: Layout, part: MonthReadings, state: Ints, steps: int) -> tuple[Ints, Ints, Ints]:
    """Return household (from the lowest), time in so many steps, and state of the readings at multiples of them."""
    some = part.time % steps == 0
    time = part.time[some]
    days = range(int(part.time.min()) // SLOTS, (int(part.time.max()) + steps) // SLOTS + 1)
    changed = [day * SLOTS + slot for day in days for slot in _changed_slots(layout, day)]
    unsteady = np.isin(time, np.add.outer(changed, -np.arange(steps))) if changed else np.zeros(len(time), bool)
    return part.household[some] - int(part.household.min()), time // steps, np.where(unsteady, NO_STATE, state[some])


def _changed_slots(layout: Layout, day: int) -> tuple[int, ...]:
    """Return the slots of a day that hold two half-hours, or none."""
    return layout.repeated_slots(date_of_day(day)) + layout.absent_slots(date_of_day(day))


def repeated(layout: Layout, time: Ints) -> Flags:
    """Return which half-hours hold two passes of the same wall clock."""
    mark = np.zeros(len(time), bool)
    if len(time) == 0:
        return mark
    day = time // SLOTS
    first = int(day.min())
    for number in np.flatnonzero(np.bincount(day - first)) + first:
        twice = layout.repeated_slots(date_of_day(int(number)))
        if twice:
            mark |= (day == number) & np.isin(time - day * SLOTS, twice)
    return mark
