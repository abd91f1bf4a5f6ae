"""READINGS, DAYS and SUMS -> what the input files contain, in a few numbers. Confidential.

Days and households are counted in full. The order of half-hours and the course of readings are taken from a sample of
rows: of the first and the middle month, the first parts in the files' order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from agedp_data.readers.layout import INTERVAL_MINUTES, PASSES, SLOTS, Flags, Ints, Reason, slot_step
from pipelines.aggregate import Sum
from pipelines.read import Delivery
from pipelines.readings.conflicts import LostReadings, lost_to_conflicts
from pipelines.readings.days import read_days
from pipelines.readings.months import load
from pipelines.readings.store import Store, day_of

_NEARLY_COMPLETE = 11 / 12
_DAY_MINUTES = 24 * 60
_SHORTEST = 15
_QUARTERS = _DAY_MINUTES // _SHORTEST
_SAMPLE_ROWS = 200_000
_ONE_RESIDUE = 0.99
_LEAST_ROWS = 96
_LEAST_RISES, _MOST_FALLS = 0.1, 0.01
_NOT_REJECTED = {
    Reason.CATEGORY.words,
    Reason.MISSING.words,
    Reason.DUPLICATE.words,
    Reason.SUPERSEDED.words,
}


@dataclass(frozen=True, slots=True)
class Coverage:
    """One due day: households on the roster, and how many have a usable day under the most lenient series."""

    households: int
    usable: int


@dataclass(frozen=True, slots=True)
class InputFacts:
    """What the input files contain.

    `rejected` counts rows by reason, without rows that hold no reading, duplicates, corrected rows and unwanted
    categories; `household_days` have a reading, `complete_days` of them about as many as the interval gives;
    `interval_minutes` lie between the readings that were kept, 0 if no sample says; `rising_share` is the share of
    sampled households whose readings rise and almost never fall; `days` are the first and last day with a reading.
    """

    files: int
    rows: int
    counted_rows: int
    rejected: Mapping[str, int]
    empty_files: tuple[str, ...]
    days: tuple[date, date] | None
    household_days: int
    complete_days: int
    median_day_kwh: float | None
    interval_minutes: int
    rising_share: float
    households: int
    on_roster: int
    roster: int
    coverage: Mapping[date, Coverage] = field(default_factory=dict)
    conflicts: Mapping[date, LostReadings] = field(default_factory=dict)

    @property
    def rejected_share(self) -> float:
        """Return which share of the rows that should hold a reading was rejected."""
        return sum(self.rejected.values()) / self.counted_rows if self.counted_rows else 0.0

    @property
    def off_grid_share(self) -> float:
        """Return which share of the rows has a timestamp between those of the interval."""
        return self.rejected.get(Reason.OFF_GRID.words, 0) / self.counted_rows if self.counted_rows else 0.0

    @property
    def absent_days(self) -> tuple[date, ...]:
        """Return the due days on which no household of the roster has a usable day."""
        return tuple(day for day, found in self.coverage.items() if found.usable == 0)


def collect_facts(
    store: Store,
    delivery: Delivery,
    households: Collection[str],
    *,
    months: Sequence[str],
    sums: Mapping[tuple[date, str], Sum],
    days: Sequence[date],
    whole: bool,
) -> InputFacts:
    """Return what the files contain about these months and households of the roster: all of it, or due days alone."""
    own = [month for month in months if month in delivery.months]
    only = None if whole else pa.array(sorted(days), pa.date32())
    tables = {month: _of_days(read_days(store, month, delivery.contents), only) for month in own}
    found = {household for table in tables.values() for household in _ids(table)}
    least = complete_readings(store.layout.interval_minutes)
    complete = sum(int((table["readings"].to_numpy() >= least).sum()) for table in tables.values())
    rejected = {reason: number for reason, number in delivery.aside.items() if reason not in _NOT_REJECTED}
    counted = delivery.rows_read - sum(delivery.aside.values()) + sum(rejected.values())
    sample = [*_samples(store, delivery, own, only)] if store.layout.width == 1 else []
    return InputFacts(
        files=delivery.files,
        rows=delivery.rows_read,
        counted_rows=counted,
        rejected=rejected,
        empty_files=_empty_files(store, delivery.contents),
        days=_span(tables.values()),
        household_days=sum(table.num_rows for table in tables.values()),
        complete_days=complete,
        median_day_kwh=_median_kwh(tables.values(), least),
        interval_minutes=sampled_interval(np.concatenate([minute for _, minute, _ in sample])) if sample else 0,
        rising_share=_rising_share(sample),
        households=len(found),
        on_roster=len(found.intersection(households)),
        roster=len(households),
        coverage={day: _coverage(day, sums) for day in days},
        conflicts=_conflicts(store, delivery, own, households, days),
    )


def _of_days(table: pa.Table, only: pa.Array | None) -> pa.Table:
    return table if only is None else table.filter(pc.is_in(table["day"], value_set=only))


def _ids(table: pa.Table) -> set[str]:
    return set(table["household_id"].unique().to_pylist())


def _span(tables: Collection[pa.Table]) -> tuple[date, date] | None:
    days = [table["day"].cast(pa.int32()).to_numpy() for table in tables if table.num_rows]
    return (day_of(min(each.min() for each in days)), day_of(max(each.max() for each in days))) if days else None


def complete_readings(interval_minutes: int) -> int:
    """Return how many readings a day has at least whose energy is close to its use: 44 half-hours, 22 hours."""
    return round(SLOTS // slot_step(interval_minutes) * _NEARLY_COMPLETE)


def _median_kwh(tables: Collection[pa.Table], least: int) -> float | None:
    energy = [table["energy_wh"].to_numpy()[table["readings"].to_numpy() >= least] for table in tables]
    every = np.concatenate([np.zeros(0, np.int64), *energy])
    return float(np.median(every)) / 1000 if len(every) else None


def _empty_files(store: Store, contents: Sequence[str]) -> tuple[str, ...]:
    manifests = ((content, store.manifest(content)) for content in contents)
    return tuple(found.name for _, found in manifests if found is not None and found.rows_read == 0)


def _coverage(day: date, sums: Mapping[tuple[date, str], Sum]) -> Coverage:
    own = [one for (of, _), one in sums.items() if of == day]
    households = max((sum(one.households.values()) for one in own), default=0)
    return Coverage(households, max((sum(one.usable.values()) for one in own), default=0))


def _conflicts(
    store: Store, delivery: Delivery, months: Sequence[str], households: Collection[str], days: Sequence[date]
) -> dict[date, LostReadings]:
    wanted = frozenset(days)
    of = {f"{day:%Y-%m}" for day in days}
    found = [lost_to_conflicts(store, month, delivery.contents, households) for month in months if month in of]
    return {day: lost for each in found for day, lost in sorted(each.items()) if day in wanted}


_Sample = tuple[Ints, Ints, Ints]
"""Household code, minutes since 1970, energy in Wh of the rows of one part, in the order of both."""


def _samples(store: Store, delivery: Delivery, months: Sequence[str], only: pa.Array | None) -> Iterator[_Sample]:
    """Yield rows of the first and the middle month, part by part, up to a number of rows each."""
    for month in dict.fromkeys([*months[:1], *months[len(months) // 2 :][:1]]):
        rows = 0
        for piece in store.pieces(month, delivery.contents):
            names = ["household_id", "day", "slot", "energy_wh", *(["channel"] if store.layout.channels > 1 else [])]
            table = _of_days(load(store.month(month) / piece.name, store.schema, columns=names), only)
            rows += table.num_rows
            yield _sorted(table, store.layout.interval_minutes)
            if rows >= _SAMPLE_ROWS:
                break


def _sorted(table: pa.Table, interval_minutes: int) -> _Sample:
    column = table["household_id"].unify_dictionaries().combine_chunks()
    column = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
    household = column.indices.to_numpy().astype(np.int64)
    minute = table["day"].cast(pa.int32()).to_numpy().astype(np.int64) * _DAY_MINUTES
    minute += table["slot"].to_numpy().astype(np.int64) * INTERVAL_MINUTES
    if interval_minutes < INTERVAL_MINUTES:
        minute += table["channel"].to_numpy().astype(np.int64) // PASSES * interval_minutes
    order = np.lexsort((minute, household))
    return household[order], minute[order], table["energy_wh"].to_numpy().astype(np.int64)[order]


def sampled_interval(minute: Ints) -> int:
    """Return the minutes between readings: 60 for hourly data, 1440 for daily data, 0 if too few say.

    Readings of a longer interval fall on one minute in so many, whatever is missing between them.

    >>> sampled_interval(np.arange(0, 28800, 60)), sampled_interval(np.arange(0, 28800, 30))
    (60, 30)
    """
    if len(minute) < _LEAST_ROWS:
        return 0
    quarter, count = np.unique(minute // _SHORTEST % _QUARTERS, return_counts=True)
    steps = [step for step in range(_QUARTERS, 0, -1) if _QUARTERS % step == 0]
    return _SHORTEST * next(step for step in steps if _largest_residue(quarter % step, count) >= _ONE_RESIDUE)


def _largest_residue(residue: Ints, count: Ints) -> float:
    """Return the share of the readings that leave the most frequent remainder."""
    return float(np.bincount(residue, count).max() / count.sum())


def _rising_share(samples: Sequence[_Sample]) -> float:
    rising = [flag for household, _, energy in samples for flag in rising_households(household, energy).tolist()]
    return sum(rising) / len(rising) if rising else 0.0


def rising_households(household: Ints, energy: Ints) -> Flags:
    """Return which households' readings, in the order of time, rise and almost never fall, as those of a register.

    Use goes up and down: over two days or more a tenth of the steps rises without a hundredth that falls in registers
    only. Households with fewer than 96 readings are left out.
    """
    codes, place = np.unique(household, return_inverse=True)
    same = household[1:] == household[:-1]
    step = np.sign(np.diff(energy))[same]
    of = place[1:][same]
    rises, falls, steps = (
        np.bincount(of, weights=each, minlength=len(codes)) for each in (step > 0, step < 0, np.ones(len(step)))
    )
    enough = steps >= _LEAST_ROWS - 1
    flags: Flags = (rises >= _LEAST_RISES * steps) & (falls <= _MOST_FALLS * steps)
    return flags[enough]
