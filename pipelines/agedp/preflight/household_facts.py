"""DAYS of one household bucket -> facts about its households, which add up over buckets. Confidential.

Households are counted by bucket, so that no set of them grows with the population. The median of daily totals needs the
number of household-days by daily total, which is bounded by the largest daily total.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa

from agedp.compute.engine import map_reduce
from agedp.compute.engine_settings import Engine
from agedp.preflight.reading_samples import filter_days
from agedp.stage_values import Delivery
from agedp.store.bucketed_roster import BucketedRoster
from agedp.store.daily_totals import read_daily_totals
from agedp.store.data_quality import LostReadings, count_lost_to_conflicts
from agedp.store.store import Store
from agedp_data.datasets.timestamps import date_of_day, day_number
from agedp_data.datasets.validation import Ints

_NONE: Final = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class HouseholdFacts:
    """Facts about the households of one or more buckets.

    Attributes:
        households: number of households with a reading.
        on_roster: of these on the roster.
        household_days: number of household-days with a reading.
        complete_days: of these with nearly all readings.
        day_wh: distinct daily totals of the complete household-days, ascending [Wh].
        day_counts: number of complete household-days with each of them.
        days: first and last day with a reading; None without any.
        conflicts: readings lost to conflicting rows, and remaining ones, by due day.
    """

    households: int = 0
    on_roster: int = 0
    household_days: int = 0
    complete_days: int = 0
    day_wh: Ints = field(default_factory=_NONE.copy)
    day_counts: Ints = field(default_factory=_NONE.copy)
    days: tuple[date, date] | None = None
    conflicts: Mapping[date, LostReadings] = field(default_factory=dict)

    @property
    def median_kwh(self) -> float | None:
        """Return the median daily total of the complete household-days [kWh]; None without any."""
        if not self.complete_days:
            return None
        ends = np.cumsum(self.day_counts)
        middle = [(self.complete_days - 1) // 2, self.complete_days // 2]
        low, high = self.day_wh[np.searchsorted(ends, middle, side="right")].tolist()
        return float((low + high) / 2) / 1000


@dataclass(frozen=True, slots=True)
class ExaminedDays:
    """What is looked at: months with readings, their days (None: all), due days, and when a day is nearly complete."""

    months: tuple[str, ...]
    day_filter: pa.Array | None
    due: frozenset[date]
    min_readings: int


def collect_household_facts(
    store: Store, delivery: Delivery, roster: BucketedRoster, examined: ExaminedDays, *, engine: Engine
) -> HouseholdFacts:
    """Return the facts about all households; one task reads one bucket, a month at a time.

    Raises:
        FolderRemoved: a part of the store is damaged, so that its file must be parsed again.
    """
    function = partial(_facts_of_bucket, store=store, delivery=delivery, roster=roster, examined=examined)
    return map_reduce("checks", range(store.buckets), function=function, combine=_add_facts, engine=engine)  # type: ignore[no-any-return]


def _facts_of_bucket(
    bucket: int, *, store: Store, delivery: Delivery, roster: BucketedRoster, examined: ExaminedDays
) -> HouseholdFacts:
    members = frozenset(roster.bucket(bucket).ids)
    households: set[str] = set()
    facts = HouseholdFacts()
    for month in examined.months:
        days = None if examined.day_filter is None else _day_numbers(examined.day_filter.to_pylist())
        table = read_daily_totals(store, month, delivery.contents, bucket, days=days)
        table = filter_days(table, examined.day_filter)
        households.update(table["household_id"].unique().to_pylist())
        month_facts = _facts_of_days(table, examined.min_readings)
        if month in {f"{day:%Y-%m}" for day in examined.due}:
            lost = count_lost_to_conflicts(store, month, delivery.contents, members, bucket=bucket)
            month_facts = replace(month_facts, conflicts={day: lost[day] for day in lost if day in examined.due})
        facts = _add_facts([facts, month_facts])
    return replace(facts, households=len(households), on_roster=len(households & members))


def _day_numbers(days: Collection[date]) -> Ints:
    return np.array(sorted(map(day_number, days)), np.int64)


def _facts_of_days(table: pa.Table, min_readings: int) -> HouseholdFacts:
    if not table.num_rows:
        return HouseholdFacts()
    day = table["day"].cast(pa.int32()).to_numpy()
    is_complete = table["readings"].to_numpy() >= min_readings
    day_wh, counts = np.unique(table["energy_wh"].to_numpy()[is_complete], return_counts=True)
    return HouseholdFacts(
        household_days=table.num_rows,
        complete_days=int(is_complete.sum()),
        day_wh=day_wh,
        day_counts=counts,
        days=(date_of_day(int(day.min())), date_of_day(int(day.max()))),
    )


def _add_facts(results: Sequence[HouseholdFacts]) -> HouseholdFacts:
    """Return the facts about the households of all results, which are different ones."""
    day_wh, index = np.unique(np.concatenate([_NONE, *(facts.day_wh for facts in results)]), return_inverse=True)
    counts = np.zeros(len(day_wh), np.int64)
    np.add.at(counts, index, np.concatenate([_NONE, *(facts.day_counts for facts in results)]))
    spans = [facts.days for facts in results if facts.days is not None]
    conflicts: dict[date, LostReadings] = {}
    for day, lost in (item for facts in results for item in facts.conflicts.items()):
        conflicts[day] = conflicts[day].add(lost) if day in conflicts else lost
    return HouseholdFacts(
        households=sum(facts.households for facts in results),
        on_roster=sum(facts.on_roster for facts in results),
        household_days=sum(facts.household_days for facts in results),
        complete_days=sum(facts.complete_days for facts in results),
        day_wh=day_wh,
        day_counts=counts,
        days=(min(first for first, _ in spans), max(last for _, last in spans)) if spans else None,
        conflicts=conflicts,
    )
