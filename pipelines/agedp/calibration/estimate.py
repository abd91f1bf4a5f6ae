"""READINGS + EDGES -> TRANSITIONS: counts per household that never bridge a gap.

A run is a sequence of one household's readings, one step apart. Each reading is in one partition (a part of a file, a
day, a month). A partition counts its transitions and returns the beginning and end of each run; a run that ends one
step before another begins is joined to it. Counts and gaps are then those of the complete series, independent of the
partition and its order. Half-hours that contain two passes of the same wall clock (DATASETS, autumn) take part in no
transition; for days they do, since a day of 25 hours is one day.

A cyclic chain is counted by the half-hour of the day that a transition leaves. Subsampled series (for a sampling bound)
are counted in the same pass: the readings at times that are multiples of `steps` steps, with a gap wherever one of them
is missing. A reading from which the next of them is more or fewer half-hours away, because the clock changes in
between, takes no part in these.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from agedp.calibration.quantize import AnyPeriod, Floats, MonthReadings, bucket_periods, states_by_household
from agedp.compute.engine import map_in_batches
from agedp.compute.engine_settings import Engine
from agedp_data.config.model_section import Step
from agedp_data.datasets.layout import Layout
from agedp_data.datasets.timestamps import date_of_day
from agedp_data.datasets.validation import SLOTS, Flags, Ints
from agedp_data.errors import ChainError

NO_STATE = -1
"""The state of a reading that takes part in no transition."""
Counts = np.ndarray[Any, np.dtype[np.int64]]
_TABLES_BYTES = 2**28
_NO_RUNS = np.zeros((0, 5), np.int64)


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
        return self._at(households)

    def select(self, households: Ints) -> Transitions:
        """Return the transitions of these households, by their indices; without a copy if all are selected."""
        return self if len(households) == len(self.readings) else self._at(households)  # all: in their order

    def _at(self, households: slice | Ints) -> Transitions:
        return self.mapped(lambda table: table[households])

    def mapped(self, function: Callable[[Ints], Ints]) -> Transitions:
        """Return the transitions with a function of each table, whose first axis are the households."""
        subsampled = {steps: function(counts) for steps, counts in self.subsampled.items()}
        return Transitions(function(self.counts), function(self.readings), function(self.gaps), subsampled)


@dataclass(frozen=True, slots=True)
class _MonthCounts:
    """Counts of one month: by steps, in few bits (a month has few half-hours), and the runs at its ends."""

    counts: Mapping[int, np.ndarray[Any, np.dtype[np.unsignedinteger[Any]]]]
    runs: Mapping[int, Ints]
    readings: Ints


@dataclass(frozen=True, slots=True)
class _Counting:
    """What a pass counts: by steps, the shape of a household's table."""

    period: AnyPeriod
    edges: Floats
    n_states: int
    phases: Mapping[int, int]

    def shape(self, steps: int) -> tuple[int, ...]:
        phases = () if self.phases[steps] == 1 else (self.phases[steps],)
        return (len(self.period.roster.ids), *phases, self.n_states, self.n_states)


def estimate(
    period: AnyPeriod,
    edges: Floats,
    *,
    n_states: int,
    engine: Engine,
    n_phases: int = 1,
    subsampling: Sequence[int] = (),
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
            result = part.mapped(lambda table: np.zeros((size, *table.shape[1:]), table.dtype))
        result.counts[households], result.readings[households] = part.counts, part.readings
        result.gaps[households] = part.gaps
        for steps, table in part.subsampled.items():
            result.subsampled[steps][households] = table
    if result is None:
        raise ChainError("the roster has no household; a model needs some")
    return result


def _estimate_bucket(counting: _Counting, engine: Engine) -> Transitions:
    """Count the transitions of the households of one bucket."""
    period, phases = counting.period, counting.phases
    size, bits = len(period.roster.ids), np.int64 if max(phases.values()) == 1 else np.int32
    counts = {steps: np.zeros(counting.shape(steps), bits) for steps in phases}
    readings = np.zeros(size, np.int64)
    runs = {steps: [_NO_RUNS] for steps in phases}
    numbers_per_month = sum(int(np.prod(counting.shape(steps))) for steps in phases)
    months_at_once = max(_TABLES_BYTES // max(numbers_per_month, 1) // engine.workers, 1) * engine.workers
    count_month = partial(_count, counting=counting)
    batches = map_in_batches("counts", period.months, function=count_month, engine=engine, batch_size=months_at_once)
    for month in itertools.chain.from_iterable(batches):
        readings += month.readings
        for steps in phases:
            counts[steps] += month.counts[steps]
            runs[steps].append(month.runs[steps])
    gaps = {steps: join_runs(table, np.concatenate(runs[steps])) for steps, table in counts.items()}
    return Transitions(counts.pop(1), readings, gaps[1], counts)


def _count(month: str, *, counting: _Counting) -> _MonthCounts:
    period = counting.period
    most = period.days_of_month * (1 if max(counting.phases.values()) > 1 else SLOTS)  # once a day, or 48 times
    bits = np.min_scalar_type(most)
    counts = {steps: np.zeros(counting.shape(steps), bits) for steps in counting.phases}
    runs = {steps: [_NO_RUNS] for steps in counting.phases}
    readings = np.zeros(len(period.roster.ids), np.int64)
    for part in period.parts(month):
        if len(part.household) == 0:
            continue
        first_household, end_household = int(part.household.min()), int(part.household.max()) + 1
        readings[first_household:end_household] += np.bincount(part.household - first_household)
        state = _states(period.layout, part, counting.edges, period.step)
        for steps, n_phases in counting.phases.items():
            household, time, part_state = part.household - first_household, part.time, state
            if steps > 1:
                household, time, part_state = _subsample(period.layout, part, state, steps)
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
    dates = [(day, date_of_day(day)) for day in days]
    changed = [(day, slots_of(of)) for day, of in dates for slots_of in (layout.repeated_slots, layout.absent_slots)]
    changed_half_hours = [day * SLOTS + slot for day, slots in changed for slot in slots]
    subsampled = state[is_multiple]
    if changed_half_hours:
        spans_change = np.isin(time, np.add.outer(changed_half_hours, -np.arange(steps)))
        subsampled = np.where(spans_change, NO_STATE, subsampled)
    return part.household[is_multiple] - int(part.household.min()), time // steps, subsampled


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


def runs_and_counts(household: Ints, time: Ints, state: Ints, *, households: int, n_states: int) -> tuple[Ints, Counts]:
    """Return the runs of readings (m), sorted by household and time, and the transitions within them.

    Shapes: (m,), (m,), (m,) -> (r, 5), (households, n_states, n_states).
    """
    runs, origins = find_runs(household, time, state)
    flat = (household[origins] * n_states + state[origins]) * n_states + state[origins + 1]
    counts = np.bincount(flat, minlength=households * n_states**2)
    return runs, counts.reshape(households, n_states, n_states)


def find_runs(household: Ints, time: Ints, state: Ints) -> tuple[Ints, Ints]:
    """Return the runs of readings (m), sorted by household and time, and the indices from which a transition starts.

    Shapes: (m,), (m,), (m,) -> (r, 5), (t,). A run is (household, first time, its state, last time, its state).
    """
    if len(household) == 0:
        return _NO_RUNS, np.zeros(0, np.int64)
    follows = (household[1:] == household[:-1]) & (time[1:] == time[:-1] + 1)
    ends = np.append(np.flatnonzero(~follows), len(household) - 1)
    starts = np.append(0, ends[:-1] + 1)
    runs = np.stack([household[starts], time[starts], state[starts], time[ends], state[ends]], axis=1)
    if (state < 0).any():
        follows &= (state[1:] >= 0) & (state[:-1] >= 0)
    return runs, np.flatnonzero(follows)


def count_by_phase(counts: np.ndarray[Any, np.dtype[Any]], household: Ints, time: Ints, state: Ints) -> Ints:
    """Add to `counts` the transitions within runs of readings, by the phase of their first reading; return the runs.

    Shapes: (h, phases, k, k), (m,), (m,), (m,) -> (r, 5). A phase is a time modulo their number.
    """
    runs, origins = find_runs(household, time, state)
    _, n_phases, n_states, _ = counts.shape
    flat = ((household[origins] * n_phases + time[origins] % n_phases) * n_states + state[origins]) * n_states + state[
        origins + 1
    ]
    np.add.at(counts.reshape(-1), flat, 1)
    return runs


def join_runs(counts: Counts, runs: Ints) -> Ints:
    """Add to `counts` the transition between runs of a household one step apart; return the gaps (h,).

    Shapes: (h, k, k) or (h, phases, k, k), (r, 5) -> (h,).
    """
    if len(runs) == 0:
        return np.zeros(len(counts), np.int64)
    household, first, state, last, last_state = runs[np.lexsort((runs[:, 1], runs[:, 0]))].T
    is_same_household = household[1:] == household[:-1]
    is_adjacent = is_same_household & (first[1:] == last[:-1] + 1)
    is_counted = is_adjacent & (last_state[:-1] >= 0) & (state[1:] >= 0)
    phases = () if counts.ndim == 3 else (last[:-1][is_counted] % counts.shape[1],)
    np.add.at(counts, (household[1:][is_counted], *phases, last_state[:-1][is_counted], state[1:][is_counted]), 1)
    return np.bincount(household[1:][is_same_household & ~is_adjacent], minlength=len(counts))
