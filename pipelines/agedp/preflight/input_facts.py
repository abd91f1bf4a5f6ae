"""READINGS, DAYS and SUMS -> facts about the input files in a few numbers. Confidential.

Days and households are counted completely. Intervals and rising readings are measured on a sample of rows
(`reading_samples`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Final

import numpy as np
import pyarrow as pa

from agedp.compute.engine_settings import Engine
from agedp.preflight.household_facts import ExaminedDays, collect_household_facts
from agedp.preflight.reading_samples import (
    household_intervals,
    other_interval_share,
    read_samples,
    rising_share,
    sampled_interval,
)
from agedp.stage_values import DailySum, Delivery
from agedp.store.bucketed_roster import write_bucketed_roster
from agedp.store.data_quality import LostReadings
from agedp.store.store import Store
from agedp_data.datasets.layout import slot_step
from agedp_data.datasets.validation import SLOTS, RejectionReason
from agedp_data.roster import Roster

_NEARLY_COMPLETE = 11 / 12
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
class DayCoverage:
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
    coverage: Mapping[date, DayCoverage] = field(default_factory=dict)
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


def collect_facts(  # noqa: PLR0913 -- what is looked at, and how
    store: Store,
    delivery: Delivery,
    roster: Roster,
    *,
    months: Sequence[str],
    sums: Mapping[tuple[date, str], DailySum],
    days: Sequence[date],
    all_days: bool,
    engine: Engine,
) -> InputFacts:
    """Return the facts about these months, from the store and the daily sums.

    Args:
        store: the confidential store.
        delivery: the ingested files.
        roster: the households on the roster.
        months: the months to look at; months without data are ignored.
        sums: the daily sums of the due days, by day and series.
        days: the due days.
        all_days: whether all days of the months count, or `days` alone.
        engine: how household buckets are read.
    """
    delivered_months = tuple(month for month in months if month in delivery.months)
    day_filter = None if all_days else pa.array(sorted(days), pa.date32())
    min_readings = complete_readings(store.layout.interval_minutes)
    examined = ExaminedDays(delivered_months, day_filter, frozenset(days), min_readings)
    bucketed = write_bucketed_roster(store.folder.parent, roster, store.buckets)
    of_households = collect_household_facts(store, delivery, bucketed, examined, engine=engine)
    rejected = {reason: number for reason, number in delivery.rejected.items() if reason not in _NOT_REJECTED}
    counted = delivery.rows_read - sum(delivery.rejected.values()) + sum(rejected.values())
    sample = [*read_samples(store, delivery, delivered_months, day_filter)]
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
        days=of_households.days,
        household_days=of_households.household_days,
        complete_days=of_households.complete_days,
        median_day_kwh=of_households.median_kwh,
        interval_minutes=interval,
        other_interval_share=other_interval_share(intervals),
        rising_share=rising_share(sample),
        households=of_households.households,
        on_roster=of_households.on_roster,
        roster=len(roster.ids),
        coverage={day: _coverage(day, sums) for day in days},
        conflicts={day: lost for day, lost in sorted(of_households.conflicts.items()) if lost.lost},
    )


def complete_readings(interval_minutes: int) -> int:
    """Return the minimum number of readings of a nearly complete day.

    >>> complete_readings(30), complete_readings(60)
    (44, 22)
    """
    return round(SLOTS // slot_step(interval_minutes) * _NEARLY_COMPLETE)


def _empty_files(store: Store, contents: Sequence[str]) -> tuple[str, ...]:
    manifests = ((content, store.manifest(content)) for content in contents)
    return tuple(manifest.name for _, manifest in manifests if manifest is not None and manifest.rows_read == 0)


def _rejecting_files(store: Store, contents: Sequence[str]) -> tuple[RejectingFile, ...]:
    files = []
    for manifest in filter(None, map(store.manifest, contents)):
        rejected = sum(number for reason, number in manifest.rejected.items() if reason not in _NOT_REJECTED)
        files.append(RejectingFile(manifest.name, rejected, manifest.rows_kept + rejected))
    return tuple(file for file in files if file.rejected > MAX_REJECTED_SHARE * file.rows)


def _coverage(day: date, sums: Mapping[tuple[date, str], DailySum]) -> DayCoverage:
    day_sums = [daily_sum for (summed_day, _), daily_sum in sums.items() if summed_day == day]
    households = max((sum(daily_sum.households.values()) for daily_sum in day_sums), default=0)
    return DayCoverage(households, max((sum(daily_sum.usable.values()) for daily_sum in day_sums), default=0))
