"""READINGS, DAYS and SUMS -> what the input files contain, in a few numbers. Confidential.

Days and households are counted in full. The order of half-hours and the course of readings are taken from a sample of
rows: of the first and the middle month, the first parts in the files' order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from agedp_data.readers.layout import INTERVAL_MINUTES, MISSING, PASSES, SLOTS, Flags, Ints, RejectionReason, slot_step
from pipelines.aggregate import DailySum
from pipelines.read import Delivery
from pipelines.readings.conflicts import LostReadings, count_lost_to_conflicts
from pipelines.readings.days import read_daily_totals
from pipelines.readings.months import load_table
from pipelines.readings.store import Store, date_of_day

_NEARLY_COMPLETE = 11 / 12
_DAY_MINUTES = 24 * 60
_QUARTER_MINUTES = 15
_QUARTERS = _DAY_MINUTES // _QUARTER_MINUTES
_SAMPLE_ROWS = 200_000
_ONE_RESIDUE = 0.99
_MIN_ROWS, _MIN_ROWS_OF_INTERVAL = 96, 20
_MIN_RISE_SHARE, _MAX_FALL_SHARE = 0.01, 0.05
_MAX_HOUSEHOLDS = 500
_ABSENT_PART = 10
_NOT_REJECTED = {
    RejectionReason.CATEGORY.words,
    RejectionReason.MISSING.words,
    RejectionReason.DUPLICATE.words,
    RejectionReason.CONFLICT.words,  # counted as readings that a day loses
    RejectionReason.SUPERSEDED.words,
}
MAX_REJECTED_SHARE: Final = 0.05
"""A file that loses a larger share of its rows is remarkable: the publishers' files lose below 0.01."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """One due day: households on the roster, and how many have a usable day under the most lenient series."""

    households: int
    usable: int


@dataclass(frozen=True, slots=True)
class RejectingFile:
    """A file: rows that should hold a reading, and how many of them were rejected when it was read."""

    name: str
    rejected: int
    rows: int


@dataclass(frozen=True, slots=True)
class InputFacts:
    """What the input files contain.

    `rejected` counts rows by reason, without rows that hold no reading, duplicates, conflicting and corrected rows and
    unwanted categories; `rejecting_files` lose more than `MAX_REJECTED_SHARE` of their rows; `unreadable` says in a line
    each which files were set apart as a whole, and why. `household_days` have a reading, `complete_days` of them about
    as many as the interval gives. `interval_minutes` lie between the readings that were kept, 0 if no sample says, and
    `other_interval_share` of the sampled households have another interval than most; `rising_share` is the share of
    them whose readings rise and almost never fall within a day. `days` are the first and last day with a reading.
    """

    files: int
    rows: int
    counted_rows: int
    rejected: Mapping[str, int]
    empty_files: tuple[str, ...]
    unreadable: tuple[str, ...]
    rejecting_files: tuple[RejectingFile, ...]
    days: tuple[date, date] | None
    household_days: int
    complete_days: int
    median_day_kwh: float | None
    interval_minutes: int
    other_interval_share: float
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
        return self.rejected.get(RejectionReason.OFF_GRID.words, 0) / self.counted_rows if self.counted_rows else 0.0

    @property
    def absent_days(self) -> tuple[date, ...]:
        """Return the due days on which hardly a household of the roster has a usable day: a tenth of them at most."""
        return tuple(
            day for day, coverage in self.coverage.items() if coverage.usable <= coverage.households // _ABSENT_PART
        )


def collect_facts(
    store: Store,
    delivery: Delivery,
    households: Collection[str],
    *,
    months: Sequence[str],
    sums: Mapping[tuple[date, str], DailySum],
    days: Sequence[date],
    all_days: bool,
) -> InputFacts:
    """Return what the files contain about these months and households of the roster: all of it, or due days alone."""
    delivered_months = [month for month in months if month in delivery.months]
    day_filter = None if all_days else pa.array(sorted(days), pa.date32())
    tables = {
        month: _filter_days(read_daily_totals(store, month, delivery.contents), day_filter)
        for month in delivered_months
    }
    households_with_readings = {household for table in tables.values() for household in _household_ids(table)}
    min_readings = complete_readings(store.layout.interval_minutes)
    complete = sum(int((table["readings"].to_numpy() >= min_readings).sum()) for table in tables.values())
    rejected = {reason: number for reason, number in delivery.rejected.items() if reason not in _NOT_REJECTED}
    counted = delivery.rows_read - sum(delivery.rejected.values()) + sum(rejected.values())
    sample = [*_read_samples(store, delivery, delivered_months, day_filter)]
    intervals = household_intervals(sample) if store.layout.width == 1 else np.zeros(0, np.int64)
    is_sampled = store.layout.width == 1 and bool(sample)
    interval = sampled_interval(np.concatenate([minute for _, minute, _ in sample])) if is_sampled else 0
    return InputFacts(
        files=delivery.files,
        rows=delivery.rows_read,
        counted_rows=counted,
        rejected=rejected,
        empty_files=_empty_files(store, delivery.contents),
        unreadable=delivery.unreadable,
        rejecting_files=_rejecting_files(store, delivery.contents if all_days else delivery.fresh),
        days=_first_and_last_day(tables.values()),
        household_days=sum(table.num_rows for table in tables.values()),
        complete_days=complete,
        median_day_kwh=_median_kwh(tables.values(), min_readings),
        interval_minutes=interval,
        other_interval_share=_other_share(intervals),
        rising_share=_rising_share(sample),
        households=len(households_with_readings),
        on_roster=len(households_with_readings.intersection(households)),
        roster=len(households),
        coverage={day: _coverage(day, sums) for day in days},
        conflicts=_count_conflicts(store, delivery, delivered_months, households, days),
    )


def _filter_days(table: pa.Table, day_filter: pa.Array | None) -> pa.Table:
    return table if day_filter is None else table.filter(pc.is_in(table["day"], value_set=day_filter))


def _household_ids(table: pa.Table) -> set[str]:
    return set(table["household_id"].unique().to_pylist())


def _first_and_last_day(tables: Collection[pa.Table]) -> tuple[date, date] | None:
    days = [table["day"].cast(pa.int32()).to_numpy() for table in tables if table.num_rows]
    return (
        (
            date_of_day(min(table_days.min() for table_days in days)),
            date_of_day(max(table_days.max() for table_days in days)),
        )
        if days
        else None
    )


def complete_readings(interval_minutes: int) -> int:
    """Return how many readings a day has at least whose energy is close to its use: 44 half-hours, 22 hours."""
    return round(SLOTS // slot_step(interval_minutes) * _NEARLY_COMPLETE)


def _median_kwh(tables: Collection[pa.Table], min_readings: int) -> float | None:
    energy = [table["energy_wh"].to_numpy()[table["readings"].to_numpy() >= min_readings] for table in tables]
    energy_wh = np.concatenate([np.zeros(0, np.int64), *energy])
    return float(np.median(energy_wh)) / 1000 if len(energy_wh) else None


def _empty_files(store: Store, contents: Sequence[str]) -> tuple[str, ...]:
    manifests = ((content, store.manifest(content)) for content in contents)
    return tuple(manifest.name for _, manifest in manifests if manifest is not None and manifest.rows_read == 0)


def _rejecting_files(store: Store, contents: Sequence[str]) -> tuple[RejectingFile, ...]:
    files = []
    for manifest in filter(None, map(store.manifest, contents)):
        rejected = sum(number for reason, number in manifest.rejected.items() if reason not in _NOT_REJECTED)
        files.append(RejectingFile(manifest.name, rejected, manifest.kept + rejected))
    return tuple(file for file in files if file.rejected > MAX_REJECTED_SHARE * file.rows)


def _coverage(day: date, sums: Mapping[tuple[date, str], DailySum]) -> Coverage:
    day_sums = [daily_sum for (summed_day, _), daily_sum in sums.items() if summed_day == day]
    households = max((sum(daily_sum.households.values()) for daily_sum in day_sums), default=0)
    return Coverage(households, max((sum(daily_sum.usable.values()) for daily_sum in day_sums), default=0))


def _count_conflicts(
    store: Store, delivery: Delivery, months: Sequence[str], households: Collection[str], days: Sequence[date]
) -> dict[date, LostReadings]:
    due_days = frozenset(days)
    due_months = {f"{day:%Y-%m}" for day in days}
    lost_by_month = [
        count_lost_to_conflicts(store, month, delivery.contents, households) for month in months if month in due_months
    ]
    return {day: lost for lost_by_day in lost_by_month for day, lost in sorted(lost_by_day.items()) if day in due_days}


_Sample = tuple[Ints, Ints, Ints]
"""Household code, minutes since 1970, energy in Wh of the rows of one part, in the order of both."""


def _read_samples(
    store: Store, delivery: Delivery, months: Sequence[str], day_filter: pa.Array | None
) -> Iterator[_Sample]:
    """Yield rows of the first and the middle month, part by part, up to a number of rows each."""
    for month in dict.fromkeys([*months[:1], *months[len(months) // 2 :][:1]]):
        rows = 0
        for part in store.month_parts(month, delivery.contents):
            table = _filter_days(
                load_table(store.month_folder(month) / part.name, store.schema, columns=_sample_columns(store)),
                day_filter,
            )
            rows += table.num_rows
            yield _sort_sample(table, store)
            if rows >= _SAMPLE_ROWS:
                break


def _sample_columns(store: Store) -> list[str]:
    """Return the columns of a part that are sampled."""
    energies = ["energy_wh"] if store.layout.width == 1 else [f"energy_wh_{slot}" for slot in range(SLOTS)]
    names = ["household_id", "day", *(["slot"] if store.layout.width == 1 else []), *energies]
    return [*names, "channel"] if store.layout.channels > 1 else names


def _sort_sample(table: pa.Table, store: Store) -> _Sample:
    """Return the readings of a part by household and time; of a layout with a row a day, by household and channel."""
    column = table["household_id"].unify_dictionaries().combine_chunks()
    column = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
    household = column.indices.to_numpy().astype(np.int64)
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


def household_intervals(samples: Sequence[_Sample]) -> Ints:
    """Return the minutes between the readings of each sampled household that has enough of them."""
    intervals = [
        sampled_interval(household_minutes)
        for household, minute, _ in samples
        for household_minutes in np.split(minute, np.flatnonzero(np.diff(household)) + 1)[:_MAX_HOUSEHOLDS]
        if len(household_minutes) >= _MIN_ROWS_OF_INTERVAL
    ]
    return np.array(intervals, np.int64)


def _other_share(intervals: Ints) -> float:
    """Return the share of the households whose interval is not that of most."""
    if not len(intervals):
        return 0.0
    values, counts = np.unique(intervals, return_counts=True)
    return float(1 - counts.max() / counts.sum()) if len(values) > 1 else 0.0


def sampled_interval(minute: Ints) -> int:
    """Return the minutes between readings: 60 for hourly data, 1440 for daily data, 0 if too few say.

    Readings of a longer interval fall on one minute in so many, whatever is missing between them.

    >>> sampled_interval(np.arange(0, 28800, 60)), sampled_interval(np.arange(0, 28800, 30))
    (60, 30)
    """
    if len(minute) < _MIN_ROWS_OF_INTERVAL:
        return 0
    quarter, count = np.unique(minute // _QUARTER_MINUTES % _QUARTERS, return_counts=True)
    steps = [step for step in range(_QUARTERS, 0, -1) if _QUARTERS % step == 0]
    return _QUARTER_MINUTES * next(step for step in steps if _largest_residue(quarter % step, count) >= _ONE_RESIDUE)


def _largest_residue(residue: Ints, count: Ints) -> float:
    """Return the share of the readings that leave the most frequent remainder."""
    return float(np.bincount(residue, count).max() / count.sum())


def _rising_share(samples: Sequence[_Sample]) -> float:
    rising = [flag for sample in samples for flag in rising_households(*sample).tolist()]
    return sum(rising) / len(rising) if rising else 0.0


def rising_households(household: Ints, minute: Ints, energy: Ints) -> Flags:
    """Return which households' readings rise within each day and almost never fall, as those of a register.

    Use goes up and down: what rises in a hundredth of the steps or more, and falls in a twentieth of those at most, is
    a register, be it of the meter or of the day. Households with fewer than 96 readings are left out.
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
