"""READINGS, DAYS and SUMS -> facts about the input files in a few numbers. Confidential.

Days and households are counted completely. Intervals and rising readings are measured on a sample of rows: the first
parts, in the order of the files, of the first and the middle month.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from agedp.stage_values import DailySum, Delivery
from agedp.store.conflicts import LostReadings, count_lost_to_conflicts
from agedp.store.daily_totals import read_daily_totals
from agedp.store.month_reader import load_table
from agedp.store.store import Store
from agedp_data.datasets.layout import PASSES, slot_step
from agedp_data.datasets.timestamps import date_of_day
from agedp_data.datasets.validation import INTERVAL_MINUTES, MISSING, SLOTS, Flags, Ints, RejectionReason

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
"""A larger share of rejected rows of a file is a warning: the publishers' files lose below 0.01."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """The coverage of one due day.

    Attributes:
        households: number of households on the roster.
        usable: number of these with a usable day, under the series that permits the most missing readings.
    """

    households: int
    usable: int


@dataclass(frozen=True, slots=True)
class RejectingFile:
    """A file of which many rows are rejected.

    Attributes:
        name: name of the file, confidential.
        rejected: number of rejected rows that should contain a reading.
        rows: number of all rows that should contain a reading.
    """

    name: str
    rejected: int
    rows: int


@dataclass(frozen=True, slots=True)
class InputFacts:
    """Facts about the input files.

    `rejected` counts rows by reason, except rows without a reading, duplicates, conflicting and corrected rows and
    categories that are not requested. `rejecting_files` lose more than `MAX_REJECTED_SHARE` of their rows. `unreadable`
    has one line per file that was rejected as a whole, with the reason. `household_days` counts those with a reading,
    `complete_days` those with nearly all expected readings. `interval_minutes` is the interval of the kept readings, 0
    if unknown. `other_interval_share` is the share of sampled households whose interval differs from that of most,
    `rising_share` the share whose readings rise and almost never fall within a day. `days` are the first and last day
    with a reading.
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
        """Return the rejected share of the rows that should contain a reading."""
        return sum(self.rejected.values()) / self.counted_rows if self.counted_rows else 0.0

    @property
    def off_grid_share(self) -> float:
        """Return the share of rows whose timestamp is not on the grid of the interval."""
        return self.rejected.get(RejectionReason.OFF_GRID.words, 0) / self.counted_rows if self.counted_rows else 0.0

    @property
    def absent_days(self) -> tuple[date, ...]:
        """Return the due days on which at most a tenth of the roster's households have a usable day."""
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
    """Return the facts about these months, from the store and the daily sums.

    Args:
        store: the confidential store.
        delivery: the ingested files.
        households: the ids of the households on the roster.
        months: the months to look at; months without data are ignored.
        sums: the daily sums of the due days, by day and series.
        days: the due days.
        all_days: whether all days of the months count, or `days` alone.
    """
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
    """Return the minimum number of readings of a nearly complete day.

    >>> complete_readings(30), complete_readings(60)
    (44, 22)
    """
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
        files.append(RejectingFile(manifest.name, rejected, manifest.rows_kept + rejected))
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
    """Yield rows of the first and the middle month, part by part, about `_SAMPLE_ROWS` rows each."""
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
    """Return the columns of a part that a sample needs."""
    energies = ["energy_wh"] if store.layout.width == 1 else [f"energy_wh_{slot}" for slot in range(SLOTS)]
    names = ["household_id", "day", *(["slot"] if store.layout.width == 1 else []), *energies]
    return [*names, "channel"] if store.layout.channels > 1 else names


def _sort_sample(table: pa.Table, store: Store) -> _Sample:
    """Return the readings of a part by household and time; if a row is a day, by household, channel and time."""
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
    """Return the interval in minutes of each sampled household with enough readings."""
    intervals = [
        sampled_interval(household_minutes)
        for household, minute, _ in samples
        for household_minutes in np.split(minute, np.flatnonzero(np.diff(household)) + 1)[:_MAX_HOUSEHOLDS]
        if len(household_minutes) >= _MIN_ROWS_OF_INTERVAL
    ]
    return np.array(intervals, np.int64)


def _other_share(intervals: Ints) -> float:
    """Return the share of the households whose interval differs from the most frequent one."""
    if not len(intervals):
        return 0.0
    values, counts = np.unique(intervals, return_counts=True)
    return float(1 - counts.max() / counts.sum()) if len(values) > 1 else 0.0


def sampled_interval(minute: Ints) -> int:
    """Return the minutes between readings: 60 for hourly data, 1440 for daily data, 0 if there are too few readings.

    The times of all readings have the same remainder by the interval, even if readings are missing.

    >>> sampled_interval(np.arange(0, 28800, 60)), sampled_interval(np.arange(0, 28800, 30))
    (60, 30)
    """
    if len(minute) < _MIN_ROWS_OF_INTERVAL:
        return 0
    quarter, count = np.unique(minute // _QUARTER_MINUTES % _QUARTERS, return_counts=True)
    steps = [step for step in range(_QUARTERS, 0, -1) if _QUARTERS % step == 0]
    return _QUARTER_MINUTES * next(step for step in steps if _largest_residue(quarter % step, count) >= _ONE_RESIDUE)


def _largest_residue(residue: Ints, count: Ints) -> float:
    """Return the share of the readings with the most frequent remainder."""
    return float(np.bincount(residue, count).max() / count.sum())


def _rising_share(samples: Sequence[_Sample]) -> float:
    rising = [flag for sample in samples for flag in rising_households(*sample).tolist()]
    return sum(rising) / len(rising) if rising else 0.0


def rising_households(household: Ints, minute: Ints, energy: Ints) -> Flags:
    """Return which households' readings rise within each day and almost never fall, like those of a register.

    Energy use rises and falls. Readings that rise in more than 1 % of the steps, and fall in at most 5 % as many, are
    those of a register, cumulative over all time or over the day. Households with fewer than 96 readings are excluded.
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
