"""READINGS, DAYS and SUMS -> facts about the input files in a few numbers. Confidential.

Days, households, rejected and conflicting rows are counted completely. Registers of short periods, half-hours that
nobody has and repeated hours are looked for in samples (`reading_samples`), the form of numbers in the first rows of
files (`number_forms`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import chain
from typing import Final

import pyarrow as pa

from agedp.compute.engine_settings import Engine
from agedp.preflight.household_facts import (
    DaySums,
    ExaminedDays,
    HouseholdFacts,
    add_touched,
    collect_household_facts,
    have_total,
)
from agedp.preflight.number_forms import column_orders, has_ambiguous_numbers
from agedp.preflight.reading_samples import (
    SampleFacts,
    before_skip,
    examine_samples,
    find_absent_slots,
    layout_slots,
    read_samples,
    repeats_before_skip,
    repeats_no_half_hour,
)
from agedp.preflight.rejected_days import NOT_REJECTED, OTHER_ORDER, count_rejected, quarantine_tables
from agedp.preflight.touched_days import RosterDays, Touched
from agedp.stage_values import DailySum, Delivery
from agedp.store.bucketed_roster import write_bucketed_roster
from agedp.store.data_quality import LostReadings
from agedp.store.store import Store
from agedp_data.datasets.layout import slot_step
from agedp_data.datasets.timestamps import day_number
from agedp_data.datasets.validation import SLOTS
from agedp_data.parameters import FindingName
from agedp_data.roster import ALL, GroupColumns, Roster, columns_text

_NEARLY_COMPLETE = 11 / 12
_ABSENT_PART = 10
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
    `complete_days` those with nearly all expected readings. `days` are the first and last day with a reading.
    `touched` are household-days by the name of a finding, of the `roster_days` of `members`, by group.
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
    households: int
    on_roster: int
    roster: int
    coverage: Mapping[date, DayCoverage] = field(default_factory=dict)
    conflicts: Mapping[date, LostReadings] = field(default_factory=dict)
    touched: Mapping[FindingName, Touched] = field(default_factory=dict)
    roster_days: Mapping[str, int] = field(default_factory=dict)
    members: int = 0

    @property
    def rejected_share(self) -> float:
        """Return the rejected share of the rows that should contain a reading."""
        return sum(self.rejected.values()) / self.counted_rows if self.counted_rows else 0.0

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
    by: Sequence[GroupColumns] = (),
    files: Sequence[str] = (),
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
        by: group columns of the series.
        files: the input files, whose first rows are read if all days count.
    """
    delivered_months = tuple(month for month in months if month in delivery.months)
    day_filter = None if all_days else pa.array(sorted(days), pa.date32())
    min_readings = complete_readings(store.layout.interval_minutes)
    samples = examine_samples(read_samples(store, delivery, delivered_months, day_filter))
    readings = SLOTS // slot_step(store.layout.interval_minutes)
    due, minutes = frozenset(days), store.layout.interval_minutes
    examined = ExaminedDays(
        delivered_months, day_filter, due, min_readings, readings, tuple(by), samples.rising, minutes
    )
    bucketed = write_bucketed_roster(store.folder.parent, roster, store.buckets)
    of_households = collect_household_facts(store, delivery, bucketed, examined, engine=engine)
    rejected = {reason: number for reason, number in delivery.rejected.items() if reason not in NOT_REJECTED}
    columns = store.rules.columns
    touched = dict(of_households.touched)
    of_no_month = [""] if all_days else []  # such rows are of no night in particular
    examined_months = [*of_no_month, *sorted({f"{day:%Y-%m}" for day in days})]
    tables = quarantine_tables(store, delivery.contents, examined_months)
    if (first := next(tables, None)) is not None:  # else no household is looked up
        roster_days = RosterDays(roster, [*map(day_number, days)], by)
        of_rows = count_rejected(chain([first], tables), roster_days, columns=columns, minutes=minutes)
        touched = add_touched([of_rows.touched, touched])
        rejected = +(Counter(rejected) - of_rows.without_reading)
        if of_rows.headers and of_rows.have_other_order(column_orders(store, files)):
            touched["rejected"] = replace(_in_proportion(of_households, 1.0), details=OTHER_ORDER)
    counted = delivery.rows_read - sum(delivery.rejected.values()) + sum(rejected.values())
    sampled_days = _sampled(store, delivery, delivered_months, of_households, touched, samples)
    if all_days and columns is not None and has_ambiguous_numbers(store, files):
        sampled_days["numbers"] = _in_proportion(of_households, 1.0)
    if once := _repeated_once(store, delivery, days, roster, by):
        touched["clock"] = touched.get("clock", Touched()) + once
    if another := _of_another_clock(store, delivery, days, roster, by):
        touched["clock"] = touched.get("clock", Touched()) + another
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
        households=of_households.households,
        on_roster=of_households.on_roster,
        roster=len(roster.ids),
        coverage=_coverage(days, sums),
        conflicts={day: lost for day, lost in sorted(of_households.conflicts.items()) if lost.lost},
        touched=touched | sampled_days,
        roster_days=of_households.roster_days,
        members=of_households.members,
    )


def _sampled(
    store: Store,
    delivery: Delivery,
    months: Sequence[str],
    facts: HouseholdFacts,
    touched: Mapping[FindingName, Touched],
    samples: SampleFacts,
) -> dict[FindingName, Touched]:
    """Return what is measured in samples: slots that nobody has, registers if their share exceeds those counted, ..."""
    sampled = in_samples(samples, facts.day_sums, facts.members, facts.roster_days)
    explained = sum(found.days.get(ALL, 0) for found in touched.values())
    incomplete = facts.incomplete_days - explained
    if 2 * incomplete >= facts.household_days > 0 and (slots := find_absent_slots(store, delivery, months)):
        details = {f"slot {slot}": 1 for slot in slots}
        sampled["slot"] = replace(_in_proportion(facts, incomplete / facts.household_days), details=details)
    found, counted = len(samples.rising), touched.get("registers", Touched())
    if found > 1 and found / samples.households * facts.members > counted.households:
        sampled["registers"] = _in_proportion(facts, found / samples.households)
    return sampled


def in_samples(
    samples: SampleFacts, day_sums: DaySums, members: int, roster_days: Mapping[str, int]
) -> dict[FindingName, Touched]:
    """Return what samples and the sums of days show of a roster: a slot that is 0, marks, a total among households."""
    found: dict[FindingName, Touched] = {}
    if samples.zero_slots:
        details = {f"slot {slot}": 1 for slot in samples.zero_slots}
        found["slot"] = replace(_part_of(members, roster_days, 1.0), details=details)
    if samples.marked:
        found["marker"] = _part_of(members, roster_days, samples.marked)
    if have_total(day_sums):
        found["total"] = Touched(1, roster_days)
    return found


def _in_proportion(facts: HouseholdFacts, share: float) -> Touched:
    return _part_of(facts.members, facts.roster_days, share)


def _part_of(members: int, roster_days: Mapping[str, int], share: float) -> Touched:
    days = {group: math.ceil(share * number) for group, number in roster_days.items()}
    return Touched(math.ceil(share * members), days, is_sampled=True)


def _repeated_once(
    store: Store, delivery: Delivery, days: Sequence[date], roster: Roster, by: Sequence[GroupColumns]
) -> Touched | None:
    """Return what a first autumn hour touches that the zone shows twice, and no household."""
    repeated = [day for day in days if layout_slots(store.layout, day)]
    if not repeated or not (households := repeats_no_half_hour(store, delivery, repeated[0])):
        return None
    cells = {f"{columns_text(columns)} {label}": n for columns in by for label, n in roster.cells(repeated[0], columns)}
    members = roster.households(repeated[0])
    return Touched(members, {ALL: members} | cells, details={"repeated": households}, is_sampled=True)


def _of_another_clock(
    store: Store, delivery: Delivery, days: Sequence[date], roster: Roster, by: Sequence[GroupColumns]
) -> Touched | None:
    """Return what a first spring hour touches that the zone skips and most households have: it and all later days."""
    first = next((day for day in sorted(days) if before_skip(store.layout, day) is not None), None)
    if first is None or not (households := repeats_before_skip(store, delivery, first)):
        return None
    later = RosterDays(roster, [day_number(day) for day in days if day >= first], by)
    return Touched(later.households, later.totals, details={"skipped": households}, is_sampled=True)


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
        rejected = sum(number for reason, number in manifest.rejected.items() if reason not in NOT_REJECTED)
        files.append(RejectingFile(manifest.name, rejected, manifest.rows_kept + rejected))
    return tuple(file for file in files if file.rejected > MAX_REJECTED_SHARE * file.rows)


def _coverage(days: Sequence[date], sums: Mapping[tuple[date, str], DailySum]) -> dict[date, DayCoverage]:
    coverage = dict.fromkeys(days, DayCoverage(0, 0))
    for (day, _), daily_sum in sums.items():
        if day in coverage:
            most = coverage[day]
            households, usable = int(daily_sum.households.sum()), int(daily_sum.usable.sum())
            coverage[day] = DayCoverage(max(most.households, households), max(most.usable, usable))
    return coverage
