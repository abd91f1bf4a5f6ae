"""READINGS of the model's period -> EDGES: at most 12 states per household.

A chain of half-hours is of readings, a chain of days of DAYS: what a household used each day, in whole watt-hours, by
no clamp (what is coarser would forget faster). A day that lacks more than two of the half-hours that it can have (48;
46 when the clock goes forward), or more than one of its hours, is missing and breaks the chain, whatever `max_missing`
a series has: a model does not change when a series does.

A pass over the months for the edges, merged by addition: exact whatever the parts and the order. `quantile` and
`equal-width` edges are each household's own and confidential; a list of edges is public and the same for all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from agedp_data.chains.states import edges_equal_width, edges_quantile
from agedp_data.config.model import Step
from agedp_data.readers.layout import SLOTS, Ints, expected_readings, slot_step
from agedp_data.roster import Roster
from pipelines.blocks import Engine, map_items
from pipelines.read import Delivery
from pipelines.readings.days import read_daily_totals
from pipelines.readings.months import iterate_month_readings
from pipelines.readings.runs import household_starts
from pipelines.readings.store import Store, date_of_day, months_between

Floats = np.ndarray[Any, np.dtype[np.float64]]
Narrow = np.ndarray[Any, np.dtype[np.integer[Any]]]
_EPOCH = date(1970, 1, 1)
_AT_ONCE = 2**20
_MAX_MISSING = 2
_NONE = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class MonthReadings:
    """Readings of roster households in a period (m), sorted by household and time; household codes are the roster's.

    `time` counts steps since 1970, half-hours or days; `energy_wh` is what was used in the step.
    """

    household: Ints
    time: Ints
    energy_wh: Ints


@dataclass(frozen=True, slots=True)
class Period:
    """Which readings a model is estimated from, by half-hours or by days."""

    store: Store
    delivery: Delivery
    roster: Roster
    first: date
    last: date
    step: Step = "half-hour"

    @property
    def months(self) -> tuple[str, ...]:
        """Return the months of the period that have readings."""
        return tuple(month for month in months_between(self.first, self.last) if month in self.delivery.months)

    def parts(self, month: str) -> Iterator[MonthReadings]:
        """Yield the period's readings of one month, a part of them at a time."""
        position = {household: code for code, household in enumerate(self.roster.ids)}
        if self.step == "day":
            yield self._days(month, position)
            return
        codes = np.zeros(0, np.int64)
        for found in iterate_month_readings(self.store, month, self.delivery.contents):
            if len(codes) != len(found.ids):  # the same for all parts
                codes = np.array([position.get(household, -1) for household in found.ids], np.int64)
            yield self._inside(codes[found.household], found.time, found.energy_wh, SLOTS)

    def _days(self, month: str, position: Mapping[str, int]) -> MonthReadings:
        """Return the days of one month that are not missing."""
        table = read_daily_totals(self.store, month, self.delivery.contents)
        chunks = [
            np.array([position.get(name, -1) for name in chunk.dictionary.to_pylist()] or [-1], np.int64)[
                chunk.indices.to_numpy()
            ]
            for chunk in table["household_id"].chunks
        ]
        household = np.concatenate([np.zeros(0, np.int64), *chunks])
        day = table["day"].cast(pa.int32()).to_numpy().astype(np.int64)
        readings, energy = (table[name].to_numpy().astype(np.int64) for name in ("readings", "energy_wh"))
        numbers, place = np.unique(day, return_inverse=True)
        least = np.array([expected_readings(self.store.layout, date_of_day(number)) for number in numbers], np.int64)
        usable = readings >= least[place] - _MAX_MISSING // slot_step(self.store.layout.interval_minutes)
        order = np.lexsort((day[usable], household[usable]))
        return self._inside(household[usable][order], day[usable][order], energy[usable][order], 1)

    def _inside(self, household: Ints, time: Ints, energy_wh: Ints, steps_per_day: int) -> MonthReadings:
        """Return the readings of roster households within the period."""
        low, high = ((self.first - _EPOCH).days * steps_per_day, ((self.last - _EPOCH).days + 1) * steps_per_day)
        inside = (household >= 0) & (time >= low) & (time < high)
        if inside.all():
            return MonthReadings(household, time, energy_wh)
        return MonthReadings(household[inside], time[inside], energy_wh[inside])


def quantize(period: Period, *, edges: str | Sequence[float], n_states: int, engine: Engine) -> Floats:
    """Return EDGES: (households of the roster, n_states - 1) inner cut points in Wh; NaN rows have no reading."""
    if not isinstance(edges, str):
        return np.tile(np.asarray(edges, np.float64), (len(period.roster.ids), 1))
    found = map_items("edges", period.months, function=partial(_histogram, period=period), engine=engine)
    table = np.full((len(period.roster.ids), n_states - 1), np.nan)
    for code, (value, count) in _by_household(found):
        if edges == "quantile":
            table[code] = edges_quantile(value, count, n_states)
        else:
            table[code] = edges_equal_width(float(value[-1]), n_states)
    return table


@dataclass(frozen=True, slots=True)
class _Histogram:
    """Runs (r) of one household each, some household perhaps twice: where they end, values (Wh) and their counts."""

    household: Ints
    ends: Ints
    value: np.ndarray[Any, np.dtype[np.integer[Any]]]
    count: np.ndarray[Any, np.dtype[np.integer[Any]]]


def _histogram(month: str, *, period: Period) -> _Histogram:
    found = [_counted(part) for part in period.parts(month)] or [(_NONE, _NONE, _NONE)]
    household, value, count = (np.concatenate([one[i] for one in found]) for i in range(3))
    del found
    if (household[1:] < household[:-1]).any():  # a household in several parts, such as nights
        household, value, count = _together(household.astype(np.int64), value, count)
    codes, starts = household_starts(household)
    return _Histogram(codes.astype(np.int64), starts[1:], _narrow(value), _narrow(count))


def _together(household: Ints, value: Narrow, count: Narrow) -> tuple[Ints, Ints, Ints]:
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


def _counted(part: MonthReadings) -> tuple[Narrow, Narrow, Narrow]:
    """Return the distinct (household, value) pairs, sorted, and how often each occurs."""
    width = int(part.energy_wh.max(initial=0)) + 1
    key = np.sort(part.household * width + part.energy_wh)
    distinct, starts = household_starts(key)
    household = distinct // width
    return _narrow(household), _narrow(distinct - household * width), _narrow(np.diff(starts))


def _by_household(found: Sequence[_Histogram]) -> Iterator[tuple[int, tuple[Ints, Ints]]]:
    """Yield each household's values, ascending, with their counts of all months together."""
    places: dict[int, list[tuple[_Histogram, slice]]] = {}
    for month in found:
        starts = [0, *month.ends[:-1].tolist()]
        for code, start, stop in zip(month.household.tolist(), starts, month.ends.tolist(), strict=True):
            places.setdefault(code, []).append((month, slice(start, stop)))
    for code, own in places.items():
        value = np.concatenate([month.value[where].astype(np.int64) for month, where in own])
        count = np.concatenate([month.count[where].astype(np.int64) for month, where in own])
        yield code, _summed(value, count)


def _summed(value: Ints, count: Ints) -> tuple[Ints, Ints]:
    """Return the distinct values, ascending, and the sums of their counts, below 2^53 and so exact."""
    if value.max() >= _AT_ONCE:
        distinct, place = np.unique(value, return_inverse=True)
        return distinct, np.bincount(place, weights=count).astype(np.int64)
    total = np.bincount(value, weights=count).astype(np.int64)
    there = np.flatnonzero(total)
    return there, total[there]
