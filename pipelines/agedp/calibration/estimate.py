"""READINGS + EDGES -> TRANSITIONS: counts per household that never bridge a gap.

Parts of months are counted separately, and joined where the readings of a household continue in another part (`runs`).
Half-hours that contain two passes of the same wall clock (DATASETS, autumn) take part in no transition; for days they
do, since a day of 25 hours is one day.

A cyclic chain is counted by the half-hour of the day that a transition leaves. Subsampled series (for a sampling bound)
are counted in the same pass: the readings at times that are multiples of `steps` steps, with a gap wherever one of them
is missing. A reading from which the next of them is more or fewer half-hours away, because the clock changes in
between, takes no part in these.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from agedp.calibration.quantize import Floats, MonthReadings, Period, bucket_periods
from agedp.compute.engine import map_in_batches
from agedp.compute.engine_settings import Engine
from agedp.store.transition_counts import NO_STATE, count_by_phase, join_runs, runs_and_counts, states_by_household
from agedp_data.config.model_section import Step
from agedp_data.datasets.layout import Layout
from agedp_data.datasets.timestamps import date_of_day
from agedp_data.datasets.validation import SLOTS, Flags, Ints
from agedp_data.errors import ChainError

_TABLES_BYTES = 2**28


@dataclass(frozen=True, slots=True)
class Transitions:
    """Per household of the roster (h): counts of one-step transitions, readings (h,), gaps (h,).

    `counts` are (h, k, k), or (h, phases, k, k) for a cyclic chain; `subsampled` contains such counts by the number
    of steps between readings, with as many times fewer phases. For a chain of days a reading is a day.
    """

    counts: Ints
    readings: Ints
    gaps: Ints
    subsampled: Mapping[int, Ints] = field(default_factory=dict)

    def block(self, households: slice) -> Transitions:
        """Return the transitions of a block of the households, without a copy."""
        subsampled = {steps: counts[households] for steps, counts in self.subsampled.items()}
        return Transitions(self.counts[households], self.readings[households], self.gaps[households], subsampled)

    def select(self, households: Ints) -> Transitions:
        """Return the transitions of these households, by their indices; without a copy if all are selected."""
        if len(households) == len(self.readings):  # all of them, in their order: nothing to copy
            return self
        subsampled = {steps: counts[households] for steps, counts in self.subsampled.items()}
        return Transitions(self.counts[households], self.readings[households], self.gaps[households], subsampled)


@dataclass(frozen=True, slots=True)
class _MonthCounts:
    """Counts of one month: by steps, in few bits (a month has few half-hours), and the runs at its ends."""

    counts: Mapping[int, np.ndarray[Any, np.dtype[np.unsignedinteger[Any]]]]
    runs: Mapping[int, Ints]
    readings: Ints


@dataclass(frozen=True, slots=True)
class _Counting:
    """What a pass counts: by steps, the shape of a household's table."""

    period: Period
    edges: Floats
    n_states: int
    phases: Mapping[int, int]

    def shape(self, steps: int) -> tuple[int, ...]:
        phases = () if self.phases[steps] == 1 else (self.phases[steps],)
        return (len(self.period.roster.ids), *phases, self.n_states, self.n_states)


def estimate(
    period: Period, edges: Floats, *, n_states: int, engine: Engine, n_phases: int = 1, subsampling: Sequence[int] = ()
) -> Transitions:
    """Count the transitions of every household of the roster over the period, in one pass.

    Args:
        period: the readings, by half-hours or by days.
        edges: edges of each household, shape (h, n_states - 1) [Wh].
        n_states: number of states k.
        engine: the scheduler.
        n_phases: 48 for a cyclic chain, else 1.
        subsampling: steps of each subsampled series to count too; these divide `n_phases`, unless it is 1.
    """
    phases = {steps: max(n_phases // steps, 1) for steps in (1, *subsampling)}
    parts = (
        (households, _estimate_bucket(_Counting(part, edges[households], n_states, phases), engine))
        for households, part in bucket_periods(period)
    )
    return _join_buckets(parts, len(period.roster.ids))


def _join_buckets(parts: Iterable[tuple[Ints, Transitions]], size: int) -> Transitions:
    """Return the transitions of `size` households from those of each bucket, as they come."""
    result: Transitions | None = None
    for households, part in parts:
        if len(households) == size:
            return part
        if result is None:
            result = Transitions(
                _spread(part.counts, size),
                _spread(part.readings, size),
                _spread(part.gaps, size),
                {steps: _spread(table, size) for steps, table in part.subsampled.items()},
            )
        result.counts[households], result.readings[households] = part.counts, part.readings
        result.gaps[households] = part.gaps
        for steps, table in part.subsampled.items():
            result.subsampled[steps][households] = table
    if result is None:
        raise ChainError("the roster has no household; a model needs some")
    return result


def _spread(part: Ints, size: int) -> Ints:
    """Return zeros for `size` households, of the shape and type that part of them have."""
    return np.zeros((size, *part.shape[1:]), part.dtype)


def _estimate_bucket(counting: _Counting, engine: Engine) -> Transitions:
    """Count the transitions of the households of one bucket."""
    period, phases = counting.period, counting.phases
    size, bits = len(period.roster.ids), np.int64 if max(phases.values()) == 1 else np.int32
    counts = {steps: np.zeros(counting.shape(steps), bits) for steps in phases}
    readings = np.zeros(size, np.int64)
    runs = {steps: [np.zeros((0, 5), np.int64)] for steps in phases}
    numbers_per_month = sum(int(np.prod(counting.shape(steps))) for steps in phases)
    months_at_once = max(_TABLES_BYTES // max(numbers_per_month, 1) // engine.workers, 1) * engine.workers
    count_month = partial(_count, counting=counting)
    for months in map_in_batches(
        "counts", period.months, function=count_month, engine=engine, batch_size=months_at_once
    ):
        for month in months:
            readings += month.readings
            for steps in phases:
                counts[steps] += month.counts[steps]
                runs[steps].append(month.runs[steps])
    gaps = {steps: join_runs(table, np.concatenate(runs[steps])) for steps, table in counts.items()}
    return Transitions(counts.pop(1), readings, gaps[1], counts)


def _count(month: str, *, counting: _Counting) -> _MonthCounts:
    period = counting.period
    bits = np.uint8 if max(counting.phases.values()) > 1 else np.uint16  # once a day, or 48 times
    counts = {steps: np.zeros(counting.shape(steps), bits) for steps in counting.phases}
    runs = {steps: [np.zeros((0, 5), np.int64)] for steps in counting.phases}
    readings = np.zeros(len(period.roster.ids), np.int64)
    for part in period.parts(month):
        if len(part.household) == 0:
            continue
        first_household, end_household = int(part.household.min()), int(part.household.max()) + 1
        readings[first_household:end_household] += np.bincount(part.household - first_household)
        state = _states(period.store.layout, part, counting.edges, period.step)
        for steps, n_phases in counting.phases.items():
            household, time, part_state = part.household - first_household, part.time, state
            if steps > 1:
                household, time, part_state = _subsample(period.store.layout, part, state, steps)
            if n_phases > 1:
                part_runs = count_by_phase(counts[steps][first_household:end_household], household, time, part_state)
            else:
                part_runs, counted = runs_and_counts(
                    household, time, part_state, households=end_household - first_household, n_states=counting.n_states
                )
                counts[steps][first_household:end_household] += counted.astype(bits)
            part_runs[:, 0] += first_household
            runs[steps].append(part_runs)
    return _MonthCounts(counts, {steps: np.concatenate(tables) for steps, tables in runs.items()}, readings)


def _states(layout: Layout, part: MonthReadings, edges: Floats, step: Step) -> Ints:
    state = states_by_household(part.household, part.energy_wh, edges)
    if step == "day":
        return state
    is_repeated = repeated_half_hours(layout, part.time)
    return np.where(is_repeated, NO_STATE, state) if is_repeated.any() else state


def _subsample(layout: Layout, part: MonthReadings, state: Ints, steps: int) -> tuple[Ints, Ints, Ints]:
    """Return household (from the lowest), time in units of `steps`, and state of the readings at multiples of them."""
    is_multiple = part.time % steps == 0
    time = part.time[is_multiple]
    days = range(int(part.time.min()) // SLOTS, (int(part.time.max()) + steps) // SLOTS + 1)
    changed_half_hours = [
        day * SLOTS + slot
        for day in days
        for slots_of in (layout.repeated_slots, layout.absent_slots)
        for slot in slots_of(date_of_day(day))
    ]
    spans_change = (
        np.isin(time, np.add.outer(changed_half_hours, -np.arange(steps)))
        if changed_half_hours
        else np.zeros(len(time), bool)
    )
    return (
        part.household[is_multiple] - int(part.household.min()),
        time // steps,
        np.where(spans_change, NO_STATE, state[is_multiple]),
    )


def repeated_half_hours(layout: Layout, time: Ints) -> Flags:
    """Return which half-hours contain two passes of the same wall clock, shape of `time`.

    At the end of summer time a local hour is repeated, and its two slots contain the sum of both passes. No transition
    may use them.

    Args:
        layout: the layout of the dataset, which decides the clock changes.
        time: day since 1970 x 48 + slot.
    """
    is_repeated = np.zeros(len(time), bool)
    if len(time) == 0:
        return is_repeated
    day = time // SLOTS
    first = int(day.min())
    for number in np.flatnonzero(np.bincount(day - first)) + first:
        repeated = layout.repeated_slots(date_of_day(int(number)))
        if repeated:
            is_repeated |= (day == number) & np.isin(time - day * SLOTS, repeated)
    return is_repeated
