"""READINGS of the model's period -> EDGES: at most 12 states per household.

A chain of half-hours has states of readings; a chain of days has states of daily totals in whole watt-hours, not
clamped (coarser states would mix faster). A day with more than two of its half-hours missing (of 48; of 46 when the
clock goes forward), or more than one of its hours, is missing and interrupts the chain, whatever `max_missing` a series
has: a model does not change when a series does.

One pass over household buckets and their months for the edges, merged by addition: exact for any parts and any order.
Histograms of months are added up when they take more than 96 MiB, so memory does not grow with the months.
`quantile` and `equal-width` edges are per household and confidential; a list of edges is public and the same for all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar, TypeVar

import numpy as np
import pyarrow as pa

from agedp.compute.engine import stream_items
from agedp.compute.engine_settings import Engine
from agedp.stage_values import Delivery
from agedp.store.daily_totals import read_daily_totals
from agedp.store.month_reader import (
    day_numbers,
    household_codes,
    household_days,
    iterate_month_readings,
    split_household_day_key,
)
from agedp.store.store import Store, bucket_numbers, months_between
from agedp_data.config.model_section import Step
from agedp_data.datasets.deduplication import Readings
from agedp_data.datasets.layout import Layout, expected_readings, slot_step
from agedp_data.datasets.timestamps import date_of_day, day_number
from agedp_data.datasets.validation import SLOTS, Flags, Ints
from agedp_data.markov.states import edges_equal_width, edges_quantile, states
from agedp_data.roster import RosterRows, as_strings

Floats = np.ndarray[Any, np.dtype[np.float64]]
Narrow = np.ndarray[Any, np.dtype[np.integer[Any]]]
_DENSE_BELOW_WH = 2**20
_ROWS_AT_ONCE = 2**19
_HISTOGRAM_BYTES = 96 * 2**20
_MAX_MISSING = 2
_SHORT_KEYS = 2**31
_MAX_TABLE_CELLS = 2**22
_PART_READINGS = 2**18
_EMPTY = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class MonthReadings:
    """Readings of roster households in a period (m), sorted by household and time; household codes are the roster's.

    `time` counts steps since 1970, half-hours or days; `energy_wh` is the energy of the step.
    """

    household: Ints
    time: Ints
    energy_wh: Ints


@dataclass(frozen=True, slots=True)
class Period:
    """The readings from which a model is estimated.

    Attributes:
        store: the confidential store.
        delivery: the ingested files.
        roster: the households; codes of readings are indices of `roster.ids`.
        first: the first day.
        last: the last day, included.
        step: "half-hour" or "day"; with "day" a reading is a daily total.
        bucket: the household bucket of the store that is read; None: all of them.
    """

    store: Store
    delivery: Delivery
    roster: RosterRows
    first: date
    last: date
    step: Step = "half-hour"
    bucket: int | None = None
    days_of_month: ClassVar = 31

    @property
    def layout(self) -> Layout:
        """Return the layout, which decides the clock changes."""
        return self.store.layout

    @property
    def buckets(self) -> int:
        """Return the number of household buckets."""
        return self.store.buckets

    @property
    def months(self) -> tuple[str, ...]:
        """Return the months of the period that have readings."""
        return tuple(month for month in months_between(self.first, self.last) if month in self.delivery.months)

    def parts(self, month: str) -> Iterator[MonthReadings]:
        """Yield the period's readings of one month, a part of them at a time.

        Each reading is in one part only; a part is sorted by household and time. Readings of households that are not
        on the roster, and days outside the period, are left out.
        """
        position = {household: code for code, household in enumerate(self.roster.ids)}
        for number in range(self.store.buckets) if self.bucket is None else [self.bucket]:
            if self.step == "day":
                yield self._days(month, number, position)
            else:
                yield from self._half_hours(month, number, position)

    def _half_hours(self, month: str, bucket: int, position: Mapping[str, int]) -> Iterator[MonthReadings]:
        """Yield the readings of one month and bucket, a part of them at a time."""
        codes = np.zeros(0, np.int64)
        for piece in iterate_month_readings(self.store, month, self.delivery.contents, bucket=bucket):
            if len(codes) != len(piece.ids):  # the same for all parts
                codes = np.array([position.get(household, -1) for household in piece.ids], np.int64)
            for start in range(0, len(piece.time), _ROWS_AT_ONCE):
                rows = slice(start, start + _ROWS_AT_ONCE)
                yield self._inside(codes[piece.household[rows]], piece.time[rows], piece.energy_wh[rows], SLOTS)
            del piece  # before the next is loaded

    def _days(self, month: str, bucket: int, position: Mapping[str, int]) -> MonthReadings:
        """Return the days of one month and bucket that are not missing."""
        table = read_daily_totals(self.store, month, self.delivery.contents, bucket)
        household, day = household_codes(table, position), day_numbers(table)
        readings, energy = (table[name].to_numpy().astype(np.int64) for name in ("readings", "energy_wh"))
        usable = has_most_readings(day, readings, self.layout)
        order = np.lexsort((day[usable], household[usable]))
        return self._inside(household[usable][order], day[usable][order], energy[usable][order], 1)

    def _inside(self, household: Ints, time: Ints, energy_wh: Ints, steps_per_day: int) -> MonthReadings:
        """Return the readings of roster households within the period."""
        low, high = (day_number(self.first) * steps_per_day, (day_number(self.last) + 1) * steps_per_day)
        is_inside = (household >= 0) & (time >= low) & (time < high)
        if is_inside.all():
            return MonthReadings(household, time, energy_wh)
        return MonthReadings(household[is_inside], time[is_inside], energy_wh[is_inside])


@dataclass(frozen=True, slots=True)
class PeriodInMemory:
    """The same of readings in memory: one month with all of them, and one bucket.

    Attributes:
        layout: the layout, which decides the clock changes.
        readings: sorted by household and time; household codes are indices of `roster.ids`.
        roster: the households.
        first: the first day with a reading.
        last: the last one.
        step: "half-hour" or "day".
    """

    layout: Layout
    readings: Readings
    roster: RosterRows
    first: date
    last: date
    step: Step = "half-hour"
    months: ClassVar = ("all",)
    buckets: ClassVar = 1

    @property
    def days_of_month(self) -> int:
        """Return the most days of a month."""
        return (self.last - self.first).days + 1

    def parts(self, _month: str) -> Iterator[MonthReadings]:
        """Yield the readings, some households at a time; each household is in one part only."""
        readings = self.readings
        if self.step == "day":
            key, energy, number = household_days(readings)
            household, day = split_household_day_key(key)
            usable = has_most_readings(day, number, self.layout)
            yield MonthReadings(household[usable], day[usable], energy[usable])
            return
        ends = np.searchsorted(readings.household, np.arange(len(self.roster.ids)), side="right")
        ends = np.append(ends[np.flatnonzero(np.diff(ends // _PART_READINGS))], len(readings.time))
        for start, end in pairwise([0, *ends.tolist()]):
            household, time, energy = (
                values[start:end].astype(np.int64) for values in (readings.household, readings.time, readings.energy_wh)
            )
            yield MonthReadings(household, time, np.maximum(energy, 0))  # as `iterate_month_readings`


AnyPeriod = Period | PeriodInMemory
OnePeriod = TypeVar("OnePeriod", bound=AnyPeriod)


def has_most_readings(day: Ints, readings: Ints, layout: Layout) -> Flags:
    """Return which household-days are not missing, by the number of their readings; shapes (m,), (m,) -> (m,)."""
    numbers, day_index = np.unique(day, return_inverse=True)
    expected = np.array([expected_readings(layout, date_of_day(number)) for number in numbers.tolist()], np.int64)
    has_most: Flags = readings >= expected[day_index] - _MAX_MISSING // slot_step(layout.interval_minutes)
    return has_most


def bucket_periods(period: OnePeriod) -> Iterator[tuple[Ints, OnePeriod]]:
    """Yield for each household bucket the indices of its households on the roster, and the period of these alone.

    A stage that takes one bucket after the other holds the results of all months for one bucket only.
    """
    ids, buckets = period.roster.ids, period.buckets
    if buckets == 1:
        yield np.arange(len(ids)), period
        return
    number = bucket_numbers(ids, buckets)
    strings = as_strings(ids)
    for bucket in range(buckets):
        households = np.flatnonzero(number == bucket)
        if len(households):
            roster = roster_of(strings.take(pa.array(households)).to_pylist())
            part: Any = period  # of a store: no other has several buckets
            yield households, replace(part, roster=roster, bucket=bucket)


def roster_of(ids: Sequence[str]) -> RosterRows:
    """Return a roster of these households, sorted, for a pass over their readings: without days and groups."""
    return RosterRows(tuple(ids), _EMPTY, _EMPTY, _EMPTY, {})


def quantize(period: AnyPeriod, *, edges: str | Sequence[float], n_states: int, engine: Engine) -> Floats:
    """Compute EDGES: inner edges per household of the roster, shape (h, n_states - 1) [Wh]; NaN rows have no reading.

    Args:
        period: the readings, by half-hours or by days.
        edges: "quantile", "equal-width", or the same edges for all households [Wh].
        n_states: number of states.
        engine: the scheduler.
    """
    if not isinstance(edges, str):
        return np.tile(np.asarray(edges, np.float64), (len(period.roster.ids), 1))
    table = np.full((len(period.roster.ids), n_states - 1), np.nan)
    for households, part in bucket_periods(period):
        histograms: list[_Histogram] = []
        for histogram in stream_items("edges", part.months, function=partial(_histogram, period=part), engine=engine):
            histograms.append(histogram)
            if sum(month.bytes for month in histograms[1:]) > max(histograms[0].bytes, _HISTOGRAM_BYTES):
                histograms = [_add_histograms(histograms)]
        for code, (value, count) in _by_household(histograms):
            if edges == "quantile":
                table[households[code]] = edges_quantile(value, count, n_states)
            else:
                table[households[code]] = edges_equal_width(float(value[-1]), n_states)
    return table


@dataclass(frozen=True, slots=True)
class _Histogram:
    """Runs (r) of one household each, a household possibly twice: where they end, values [Wh] and their counts."""

    household: Ints
    ends: Ints
    value: np.ndarray[Any, np.dtype[np.integer[Any]]]
    count: np.ndarray[Any, np.dtype[np.integer[Any]]]

    @property
    def bytes(self) -> int:
        """Return the memory of values and counts."""
        return self.value.nbytes + self.count.nbytes


def _histogram(month: str, *, period: AnyPeriod) -> _Histogram:
    parts = [_count_values(part) for part in period.parts(month)] or [(_EMPTY, _EMPTY, _EMPTY)]
    household, value, count = (np.concatenate([part_counts[i] for part_counts in parts]) for i in range(3))
    del parts
    if (household[1:] < household[:-1]).any():  # a household in several parts, such as nights
        household, value, count = _merge_counts(household.astype(np.int64), value, count)
    codes, starts = household_starts(household)
    return _Histogram(codes.astype(np.int64), starts[1:], _narrow(value), _narrow(count))


def _merge_counts(household: Ints, value: Narrow, count: Narrow) -> tuple[Ints, Ints, Ints]:
    """Return the distinct (household, value) pairs, sorted, and the sums of their counts."""
    width = int(value.max(initial=0)) + 1
    key = household * width + value
    order = np.argsort(key, kind="stable")
    distinct, starts = household_starts(key[order])
    household = distinct // width
    return household, distinct - household * width, np.add.reduceat(count[order].astype(np.int64), starts[:-1])


def _narrow(values: Narrow) -> Narrow:
    """Return numbers in as few bytes as hold them: histograms of all months are in memory together."""
    return values.astype(np.min_scalar_type(int(values.max(initial=0))))


def _count_values(part: MonthReadings) -> tuple[Narrow, Narrow, Narrow]:
    """Return the distinct (household, value) pairs, sorted, and how often each occurs."""
    width = int(part.energy_wh.max(initial=0)) + 1
    first = int(part.household.min()) if len(part.household) else 0
    key = (part.household - first) * width + part.energy_wh
    if (int(part.household.max(initial=0)) - first + 1) * width < _SHORT_KEYS:
        key = key.astype(np.int32)  # half the bytes to sort
    key.sort()
    distinct, starts = household_starts(key)
    household = distinct // width
    return _narrow(household + first), _narrow(distinct - household * width), _narrow(np.diff(starts))


def _add_histograms(histograms: Sequence[_Histogram]) -> _Histogram:
    """Return the sum of histograms, some of which have values."""
    runs = [(code, _narrow(value), _narrow(count)) for code, (value, count) in _by_household(histograms)]
    codes, values, counts = zip(*runs, strict=True)
    ends = np.cumsum([len(value) for value in values])
    return _Histogram(np.array(codes), ends, np.concatenate(values), np.concatenate(counts))


def _by_household(histograms: Sequence[_Histogram]) -> Iterator[tuple[int, tuple[Ints, Ints]]]:
    """Yield each household's values, ascending, with their counts over all months."""
    runs: dict[int, list[tuple[_Histogram, slice]]] = {}
    for month in histograms:
        starts = [0, *month.ends.tolist()][:-1]
        for code, start, stop in zip(month.household.tolist(), starts, month.ends.tolist(), strict=True):
            runs.setdefault(code, []).append((month, slice(start, stop)))
    for code, household_runs in runs.items():
        value = np.concatenate([month.value[run].astype(np.int64) for month, run in household_runs])
        count = np.concatenate([month.count[run].astype(np.int64) for month, run in household_runs])
        yield code, _sum_counts(value, count)


def _sum_counts(value: Ints, count: Ints) -> tuple[Ints, Ints]:
    """Return the distinct values, ascending, and the sums of their counts, below 2^53 and so exact."""
    if value.max() >= _DENSE_BELOW_WH:
        distinct, index = np.unique(value, return_inverse=True)
        return distinct, np.bincount(index, weights=count).astype(np.int64)
    total = np.bincount(value, weights=count).astype(np.int64)
    present = np.flatnonzero(total)
    return present, total[present]


def states_by_household(household: Ints, energy_wh: Ints, edges: np.ndarray[Any, np.dtype[np.float64]]) -> Ints:
    """Return the state of each reading (m) under its household's state edges, by a table of all energies.

    Shapes: (m,), (m,), (h, k - 1) -> (m,); readings are sorted by household. As `markov.states.states`: a reading that
    equals an edge belongs to the state above it. Units: Wh.
    """
    state = np.empty(len(household), np.int64)
    if len(household) == 0:
        return state
    codes, starts = household_starts(household)
    cuts = np.clip(np.ceil(edges[codes]), 0, int(energy_wh.max()) + 1).astype(np.int64)
    width = int(cuts.max(initial=0)) + 1  # energies above the last edge are in the last state
    sizes = np.diff(cuts, axis=1, prepend=0, append=width)
    position = np.repeat(np.arange(len(codes)), np.diff(starts))
    if width > _MAX_TABLE_CELLS:
        for code, start, stop in zip(codes, starts[:-1], starts[1:], strict=True):
            state[start:stop] = states(energy_wh[start:stop], edges[code])
        return state
    households_per_table = _MAX_TABLE_CELLS // width
    for low in range(0, len(codes), households_per_table):
        high = min(low + households_per_table, len(codes))
        selection = slice(starts[low], starts[high])
        table = np.repeat(np.tile(np.arange(sizes.shape[1], dtype=np.int16), high - low), sizes[low:high].ravel())
        state[selection] = table[(position[selection] - low) * width + np.minimum(energy_wh[selection], width - 1)]
    return state


def household_starts(household: Ints) -> tuple[Ints, Ints]:
    """Return the households of sorted readings, and the index at which each begins; the last entry is the end.

    >>> household_starts(np.array([4, 4, 9]))
    (array([4, 9]), array([0, 2, 3]))
    """
    first: Flags = np.ones(len(household), bool)
    first[1:] = household[1:] != household[:-1]
    starts = np.flatnonzero(first)
    return household[starts], np.append(starts, len(household))
