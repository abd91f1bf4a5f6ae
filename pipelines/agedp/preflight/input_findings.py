"""READINGS, DAYS and SUMS -> facts about the input files in a few numbers. Confidential.

Days, households, rejected and conflicting rows are counted completely. Registers of short periods, half-hours that
nobody has and repeated hours are looked for in samples (`rejection_findings`), the form of numbers in the first rows of
files (`rejection_findings`).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import date
from functools import cache, partial
from itertools import chain
from typing import Final, TypeVar

import numpy as np
import pyarrow as pa

from agedp.compute.engine import map_reduce
from agedp.compute.engine_settings import Engine
from agedp.preflight import rejection_findings
from agedp.preflight.rejection_findings import RosterDays, Touched
from agedp.stage_values import DailySum, Delivery
from agedp.store import month_reader
from agedp.store.bucketed_roster import BucketedRoster, write_bucketed_roster
from agedp.store.daily_totals import read_daily_totals
from agedp.store.data_quality import ConflictingRows, LostReadings, count_lost_readings, find_conflicting_rows
from agedp.store.month_reader import MonthIndex, household_day_key, is_in_sorted, split_household_day_key
from agedp.store.store import Store, month_name, month_numbers
from agedp_data.datasets.layout import Layout, slot_step
from agedp_data.datasets.timestamps import date_of_day, day_number
from agedp_data.datasets.validation import INTERVAL_MINUTES, SLOTS, Flags, Ints
from agedp_data.messages import count_text
from agedp_data.parameters import FindingName
from agedp_data.roster import ALL, GroupColumns, Roster, columns_text

# --------------------------------------------------------------------------------------------------
# DAYS of one household bucket -> facts about its households, which add up over buckets. Confidential.
#
# Households are counted by bucket, so that no set of them grows with the population. The median of daily totals needs
# the number of household-days by daily total, which is bounded by the largest daily total.
#
# What findings touch is counted completely, household by household:
#
# * an interval of hours or days: on most days the household has every second, third, ... reading, and never more;
#   where shorter readings add up to half-hours, it has rows on most days and no complete half-hour;
# * a register of a meter: the totals of complete days rise on 14 days or more, and almost never fall;
# * a total: on nearly all days one household has the sum of all others, or of all but one that is no meter;
# * rounded: the complete days that are not 0 have fewer watt-hours than half-hours, in all or in months that are 1/250
#   to 1/8000 of another one; or all households are 250 times above or below other days, from one day to the next;
#   days and households of 0 do not count, as those of heaters in summer;
# * channels or meters: rows of one file conflict in half of a day's half-hours or more; all others are conflicts.
# --------------------------------------------------------------------------------------------------

_NONE: Final = np.zeros(0, np.int64)
_NO_MEMBER_DAYS: Final = np.zeros((4, 0), np.int64)
_NO_CONFLICT: Final = ConflictingRows(_NONE, _NONE, np.zeros(0, bool))
_EXTRA_READINGS: Final = 2
"""Readings of a day that a clock change adds."""
_MIN_READINGS: Final = 20
"""Fewer readings of a household show no interval."""
_AT_ONCE: Final = 2**19
"""Household-days that are compared at once, about: 16 MB."""
_MIN_RISES: Final = 14
_MIN_OTHERS: Final = 3
"""Fewer households beside one show no total."""
_TOTAL_SHARE, _TOTAL_TOLERANCE = 0.9, 0.001
_UNITS_APART, _MOST_APART = 250, 8000
"""kWh taken for Wh are 1/1000, more or less once they are rounded; no season or holiday is."""
_MIN_ROUNDED_SHARE, _MIN_COMPARED = 0.05, 5

Key = TypeVar("Key")
Value = TypeVar("Value")
_NUMBERS: Final = ("households", "on_roster", "household_days", "complete_days", "members", "incomplete_days")
DaySums = Mapping[int, tuple[int, int, int, int]]
"""Sum, largest, number, and number of zeros of the daily totals of households by day."""


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
        roster_days: household-days of the roster on due days, by group.
        members: households of the roster on due days.
        incomplete_days: of the household-days with a reading, those that lack one.
        touched: what findings touch, by their names.
        day_sums: of the roster's households by due day.
    """

    households: int = 0
    on_roster: int = 0
    household_days: int = 0
    complete_days: int = 0
    day_wh: Ints = field(default_factory=_NONE.copy)
    day_counts: Ints = field(default_factory=_NONE.copy)
    days: tuple[date, date] | None = None
    conflicts: Mapping[date, LostReadings] = field(default_factory=dict)
    roster_days: Mapping[str, int] = field(default_factory=dict)
    members: int = 0
    incomplete_days: int = 0
    touched: Mapping[FindingName, Touched] = field(default_factory=dict)
    day_sums: DaySums = field(default_factory=dict)

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
    """What is looked at: months with readings, their days (None: all), due days, and when a day is nearly complete.

    `interval_minutes` are those between readings, `by` the groups that are published, and `rising` sampled households
    with registers.
    """

    months: tuple[str, ...] = ()
    day_filter: pa.Array | None = None
    due: frozenset[date] = frozenset()
    by: tuple[GroupColumns, ...] = ()
    rising: frozenset[str] = frozenset()
    interval_minutes: int = INTERVAL_MINUTES

    @property
    def readings(self) -> int:
        """Return the number of readings of a day."""
        return SLOTS // slot_step(self.interval_minutes)

    @property
    def min_readings(self) -> int:
        """Return the minimum number of readings of a nearly complete day.

        >>> ExaminedDays().min_readings, ExaminedDays(interval_minutes=60).min_readings
        (44, 22)
        """
        return round(self.readings * _NEARLY_COMPLETE)


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
    of_bucket = roster.bucket(bucket)
    code_by_id = {name: code for code, name in enumerate(of_bucket.ids)}
    roster_days = RosterDays(of_bucket, _day_numbers(examined.due).tolist(), examined.by)
    households: set[str] = set()
    facts, member_days, conflicting, bare = HouseholdFacts(), list[Ints](), [_NO_CONFLICT], [_NONE]
    day_sums: dict[int, tuple[int, int, int, int]] = {}
    days = None if examined.day_filter is None else _day_numbers(examined.day_filter.to_pylist())
    for month in examined.months:
        table = rejection_findings.filter_days(
            read_daily_totals(store, month, delivery.contents, bucket, days=days), examined.day_filter
        )
        households.update(table["household_id"].unique().to_pylist())
        month_facts = _facts_of_days(table, examined)
        if month in {f"{day:%Y-%m}" for day in examined.due}:
            rows = find_conflicting_rows(store, month, delivery.contents, code_by_id, bucket=bucket)
            lost = count_lost_readings(table, rows, code_by_id, width=store.layout.width)
            month_facts = replace(month_facts, conflicts={day: lost[day] for day in lost if day in examined.due})
            values = (table[name].to_numpy() for name in ("readings", "energy_wh"))
            of_month = np.stack(
                [month_reader.household_codes(table, code_by_id), month_reader.day_numbers(table), *values]
            )
            member_days.append(of_month[:, of_month[0] >= 0])
            day_sums |= sum_days(member_days[-1])
            conflicting.append(rows)
            if examined.interval_minutes < INTERVAL_MINUTES:
                parts = store.month_parts(month, delivery.contents, bucket)
                bare.append(_bare_days(month_reader.index_month(store, parts, days=days), code_by_id))
        facts = _add_facts([facts, month_facts])
    touched = find_in_days(member_days, roster_days, examined, np.concatenate(bare))
    touched |= find_in_conflicts(conflicting, roster_days, store.layout)
    return replace(
        facts,
        households=len(households),
        on_roster=len(households & code_by_id.keys()),
        roster_days=roster_days.totals,
        members=roster_days.households,
        touched={name: of_name for name, of_name in touched.items() if of_name.days[ALL]},
        day_sums=day_sums,
    )


def _bare_days(index: MonthIndex, code_by_id: Mapping[str, int]) -> Ints:
    """Return keys of the roster's household-days whose rows, none of them rejected, make no complete half-hour."""
    codes = np.array([code_by_id.get(name, -1) for name in index.ids], np.int64)
    found = [_NONE]
    for table, keys in zip(index.tables, index.keys, strict=True):
        is_bare = (table["readings"].to_numpy() == 0) & ~is_in_sorted(keys, index.shared)
        is_bare &= np.diff(table["aside_row"].combine_chunks().offsets.to_numpy()) == 0
        household, day = split_household_day_key(keys[is_bare])
        household = codes[household]
        found.append(household_day_key(household[household >= 0], day[household >= 0]))
    return np.concatenate(found)


def find_in_days(
    member_days: Sequence[Ints], roster: RosterDays, examined: ExaminedDays, bare: Ints = _NONE
) -> dict[FindingName, Touched]:
    """Return what another interval and registers touch; households are looked at in blocks.

    Args:
        member_days: household code, day, readings and energy [Wh] of household-days, arrays of shape (4, n).
        roster: the household-days that count.
        examined: the readings of a day, and the sampled households whose readings rise like those of a register.
        bare: keys of household-days with rows, but without a complete half-hour.
    """
    bare_household, _ = split_household_day_key(bare)
    count = 1 + max(int(codes.max(initial=0)) for codes in (bare_household, *(days[0] for days in member_days)))
    at_once = -(-count // max(1, sum(days.shape[1] for days in member_days) // _AT_ONCE))

    def found(low: int) -> dict[FindingName, Touched]:
        parts = [days[:, (low <= days[0]) & (days[0] < low + at_once)] for days in member_days]
        is_in = (low <= bare_household) & (bare_household < low + at_once)
        return _find_in_days(np.concatenate([_NO_MEMBER_DAYS, *parts], axis=1), roster, examined, bare[is_in])

    touched = add_touched([found(low) for low in range(0, count, at_once)])
    return {**touched, "total": Touched(1, roster.totals)} if has_total_beside(member_days, count) else touched


def _find_in_days(
    member_days: Ints, roster: RosterDays, examined: ExaminedDays, bare: Ints
) -> dict[FindingName, Touched]:
    household, day, readings, energy = member_days[:, np.lexsort((member_days[1], member_days[0]))]
    codes, index, number = np.unique(household, return_inverse=True, return_counts=True)
    most = np.zeros(len(codes), np.int64)
    np.maximum.at(most, index, readings)
    of_day = examined.readings
    fewer = [of_day // factor for factor in range(2, of_day + 1) if of_day % factor == 0]
    details: dict[str, int] = {}
    has_interval, is_enough = np.zeros(len(codes), bool), np.bincount(index, readings, len(codes)) >= _MIN_READINGS
    for of_day in fewer:
        is_of = 2 * np.bincount(index, readings == of_day, len(codes)) >= number
        is_of &= is_enough & ~has_interval & (most <= of_day + _EXTRA_READINGS)
        has_interval |= is_of
        if is_of.any():
            details[f"{24 * 60 // of_day} minutes"] = int(is_of.sum())
    bare_household, bare_day = split_household_day_key(bare)
    longer, numbers = np.unique(bare_household, return_counts=True)
    longer = longer[numbers >= np.searchsorted(household, longer, "right") - np.searchsorted(household, longer)]
    if len(longer):
        details[f"more than {examined.interval_minutes} minutes"] = len(longer)
    is_complete = readings >= examined.min_readings
    day_energy, day_index = energy[is_complete], index[is_complete]
    step = np.sign(np.diff(day_energy))[same := day_index[1:] == day_index[:-1]]
    rises, falls = (np.bincount(day_index[1:][same], flags, len(codes)) for flags in (step > 0, step < 0))
    is_rising = (rises >= _MIN_RISES) & (falls <= rejection_findings.MAX_FALL_SHARE * rises)
    sampled = roster.codes(pa.array(sorted(examined.rising), pa.string()))
    is_rising |= np.isin(codes, sampled)
    is_longer = np.isin(bare_household, longer)
    of_longer = roster.on_roster(bare_household[is_longer], bare_day[is_longer])
    is_used = is_complete & (energy > 0)
    small, used, complete = (
        np.bincount(index, flags, len(codes))
        for flags in (is_used & (energy < examined.readings), is_used, is_complete)
    )
    is_rounded = (small > 1) & (2 * small > used) & (small >= _MIN_ROUNDED_SHARE * complete)
    is_low = _are_low(index, day, energy, is_used, examined.readings) & ~is_rounded[index]
    flags_of_days = is_rounded[index] | is_low, has_interval[index], is_rising[index]
    rounded, interval, registers = (roster.on_roster(household[flags], day[flags]) for flags in flags_of_days)
    months, _ = np.unique(np.stack([month_numbers(day[is_low]), index[is_low]]), axis=1)
    in_months = {month_name(month): number for month, number in sorted(Counter(months.tolist()).items())}
    return {
        "rounded": roster.touched(rounded, details=in_months),
        "interval": roster.touched(np.concatenate([interval, of_longer]), details=details),
        "registers": roster.touched(registers),
    }


def _are_low(household: Ints, day: Ints, energy: Ints, is_used: Flags, readings: int) -> Flags:
    """Return which days are of a month with few watt-hours, 1/250 to 1/8000 of those of a month of the household."""
    key, month = np.unique(household_day_key(household, month_numbers(day)), return_inverse=True)
    number, total = np.bincount(month, is_used), np.bincount(month, np.where(is_used, energy, 0))
    mean, most = total / np.maximum(number, 1), np.zeros(len(key))
    of_household, _ = split_household_day_key(key)
    np.maximum.at(most, of_household, mean)
    most = most[of_household]
    is_low = (number > 1) & (mean < readings) & (mean * _UNITS_APART <= most) & (most <= mean * _MOST_APART)
    flags: Flags = is_low[month]
    return flags


def sum_days(member_days: Ints) -> DaySums:
    """Return sum, largest and number of the daily totals by day; `member_days` as one array of `find_in_days`."""
    days, index, number = np.unique(member_days[1], return_inverse=True, return_counts=True)
    total, largest = np.zeros((2, len(days)), np.int64)
    np.add.at(total, index, member_days[3])
    np.maximum.at(largest, index, member_days[3])
    zeros = np.bincount(index, (member_days[2] > 0) & (member_days[3] == 0), len(days)).astype(int)
    rows = zip(total.tolist(), largest.tolist(), number.tolist(), zeros.tolist(), strict=True)
    return dict(zip(days.tolist(), rows, strict=True))


def have_total(day_sums: DaySums) -> bool:
    """Return whether one household has the sum of all others on nearly all days.

    >>> [have_total({0: (600, most, 4, 0), 1: (800, most + 100, 4, 0)}) for most in (300, 290)]
    [True, False]
    """
    days = [of_day for of_day in day_sums.values() if of_day[0] and of_day[2] > _MIN_OTHERS]
    equal = sum(abs(2 * most - total) <= max(number, _TOTAL_TOLERANCE * total) for total, most, number, _ in days)
    return equal > 1 and equal >= _TOTAL_SHARE * len(days)


def has_total_beside(member_days: Sequence[Ints], households: int) -> bool:
    """Return whether one household has the sum of all others but one, the same one on nearly all days.

    >>> days = [np.array([[0, 1, 2, 3, 4], [day] * 5, [48] * 5, [40, 50, 60, 150, 30 + day]]) for day in range(4)]
    >>> has_total_beside(days, 5), has_total_beside([day + np.array([[0], [0], [0], [20]]) for day in days], 5)
    (True, False)
    """
    equal, number = np.zeros(households, np.int64), 0
    for household, day, _, energy in member_days:
        days, index, counts = np.unique(day, return_inverse=True, return_counts=True)
        largest = np.zeros(len(days), np.int64)
        np.maximum.at(largest, index, energy)
        total = np.bincount(index, energy, len(days))
        tolerance, is_counted = np.maximum(counts, _TOTAL_TOLERANCE * total), counts > _MIN_OTHERS
        # the largest is the total, and this household is no meter; or the reverse
        for expected in (total - 2 * largest, (total - largest) / 2):
            is_equal = (is_counted & (expected > tolerance))[index]
            is_equal &= np.abs(energy - expected[index]) <= tolerance[index]
            equal += np.bincount(household[is_equal], minlength=households)
        number += int(is_counted.sum())
    return bool(equal.max() > 1 and equal.max() >= _TOTAL_SHARE * number)


def days_in_another_unit(day_sums: DaySums) -> list[date]:
    """Return the days on which households use 250 times less or more than on others, from one day to the next.

    >>> days_in_another_unit({day: (9 if day == 3 else 9000, 2, 20, 0) for day in range(9)})
    [datetime.date(1970, 1, 4)]
    """
    used = {day: (total, number - zeros) for day, (total, _, number, zeros) in sorted(day_sums.items())}
    means = {day: total / number for day, (total, number) in used.items() if total > 0 and number >= _MIN_COMPARED}
    logs, limit = np.log([*means.values()]), math.log(_UNITS_APART)
    if not (np.abs(np.diff(logs)) >= limit).any():
        return []
    apart = np.abs(logs - np.sort(logs)[len(logs) // 2]) >= limit
    return [date_of_day(day) for day, is_apart in zip(means, apart.tolist(), strict=True) if is_apart]


def find_in_conflicts(
    conflicting: Sequence[ConflictingRows], roster: RosterDays, layout: Layout
) -> dict[FindingName, Touched]:
    """Return what channels or meters, and what other conflicting rows touch."""
    household, time, in_one_file = (
        np.concatenate([getattr(rows, name) for rows in conflicting]) for name in ("household", "time", "in_one_file")
    )
    day = time // SLOTS
    keys, index = np.unique(household_day_key(household, day), return_inverse=True)
    of_day = max(1, SLOTS // slot_step(layout.interval_minutes) // (2 * layout.width))
    is_pattern = np.bincount(index, in_one_file, len(keys)) >= of_day
    found: dict[FindingName, Touched] = {}
    kinds: tuple[tuple[FindingName, Flags], ...] = ("channels", is_pattern), ("conflicts", ~is_pattern)
    for name, flags in kinds:
        due = roster.on_roster(*split_household_day_key(keys[flags]))
        rows = int(np.bincount(index, minlength=len(keys))[flags & np.isin(keys, due)].sum())
        found[name] = roster.touched(due, rows=rows)
    return found


def _day_numbers(days: Collection[date]) -> Ints:
    return np.array(sorted(map(day_number, days)), np.int64)


def _facts_of_days(table: pa.Table, examined: ExaminedDays) -> HouseholdFacts:
    if not table.num_rows:
        return HouseholdFacts()
    day = table["day"].cast(pa.int32()).to_numpy()
    readings = table["readings"].to_numpy()
    is_complete = readings >= examined.min_readings
    day_wh, counts = np.unique(table["energy_wh"].to_numpy()[is_complete], return_counts=True)
    return HouseholdFacts(
        household_days=table.num_rows,
        complete_days=int(is_complete.sum()),
        incomplete_days=int((readings < examined.readings).sum()),
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
    numbers = {name: sum(getattr(facts, name) for facts in results) for name in _NUMBERS}
    return HouseholdFacts(
        **numbers,
        day_wh=day_wh,
        day_counts=counts,
        days=(min(first for first, _ in spans), max(last for _, last in spans)) if spans else None,
        conflicts=_added([facts.conflicts for facts in results], LostReadings.add),
        roster_days=sum((Counter(facts.roster_days) for facts in results), Counter()),
        touched=add_touched([facts.touched for facts in results]),
        day_sums=_added([facts.day_sums for facts in results], _add_sums),
    )


def _add_sums(sums: tuple[int, int, int, int], further: tuple[int, int, int, int]) -> tuple[int, int, int, int]:
    return sums[0] + further[0], max(sums[1], further[1]), sums[2] + further[2], sums[3] + further[3]


def add_touched(results: Sequence[Mapping[FindingName, Touched]]) -> dict[FindingName, Touched]:
    """Return what findings about different households, or of different kinds, touch together."""
    return _added(results, Touched.__add__)


def _added(results: Sequence[Mapping[Key, Value]], add: Callable[[Value, Value], Value]) -> dict[Key, Value]:
    """Return the values of all results by their keys, those of one key added up."""
    added: dict[Key, Value] = {}
    for key, value in (item for result in results for item in result.items()):
        added[key] = add(added[key], value) if key in added else value
    return added


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


@dataclass(frozen=True, slots=True, kw_only=True)
class InputFacts(HouseholdFacts):
    """Facts about the input files, beside those about all of their households.

    `rejected` counts rows by reason, except rows without a reading, duplicates, conflicting and corrected rows and
    categories that are not requested. `rejecting_files` lose more than `MAX_REJECTED_SHARE` of their rows. `unreadable`
    has one line per file that was rejected as a whole, with the reason. `superseded` has files with rows that files
    later in the order correct: name, number of rows, name of the one that it seems to correct, or "". `roster` are
    households on the roster, `conflicts` the days that lose a reading; `touched` includes what rejected rows and
    samples touch.
    """

    files: int
    rows: int
    counted_rows: int
    rejected: Mapping[str, int]
    empty_files: tuple[str, ...]
    unreadable: tuple[str, ...]
    rejecting_files: tuple[RejectingFile, ...]
    superseded: tuple[tuple[str, int, str], ...]
    roster: int
    coverage: Mapping[date, DayCoverage]

    @property
    def rejected_share(self) -> float:
        """Return the rejected share of the rows that should contain a reading."""
        return sum(self.rejected.values()) / self.counted_rows if self.counted_rows else 0.0

    @property
    def zero_days(self) -> dict[date, tuple[int, int]]:
        """Return the due days on which most households with a reading have 0 kWh: their number, and that of all."""
        zeros = {day: self.day_sums.get(day_number(day), (0, 0, 0, 0))[:1:-1] for day in self.coverage}
        return {day: (of_zero, number) for day, (of_zero, number) in zeros.items() if 2 * of_zero > number}

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
    samples = rejection_findings.examine_samples(
        rejection_findings.read_samples(store, delivery, delivered_months, day_filter)
    )
    due, minutes = frozenset(days), store.layout.interval_minutes
    examined = ExaminedDays(delivered_months, day_filter, due, tuple(by), samples.rising, minutes)
    bucketed = write_bucketed_roster(store.folder.parent, roster, store.buckets)
    of_households = collect_household_facts(store, delivery, bucketed, examined, engine=engine)
    rejected = _lacking(delivery.rejected)
    columns = store.rules.columns
    touched = dict(of_households.touched)
    of_no_month = [""] if all_days else []  # such rows are of no night in particular
    examined_months = [*of_no_month, *sorted({f"{day:%Y-%m}" for day in days})]
    tables = rejection_findings.quarantine_tables(store, delivery.contents, examined_months)
    if (first := next(tables, None)) is not None:  # else no household is looked up
        roster_days = RosterDays(roster.rows, [*map(day_number, days)], by, read_off=roster.read_off)
        orders = cache(partial(rejection_findings.column_orders, store, files))
        of_rows = rejection_findings.count_rejected(
            chain([first], tables), roster_days, columns=columns, minutes=minutes, orders=orders
        )
        touched = add_touched([of_rows.touched, touched])
        rejected = +(Counter(rejected) - of_rows.without_reading)
        if of_rows.headers and of_rows.have_other_order(orders()):
            touched["rejected"] = replace(_in_proportion(of_households, 1.0), details=rejection_findings.OTHER_ORDER)
    counted = delivery.rows_read - sum(delivery.rejected.values()) + sum(rejected.values())
    sampled_days = _sampled(store, delivery, delivered_months, of_households, touched, samples)
    if all_days and columns is not None and rejection_findings.has_ambiguous_numbers(store, files):
        sampled_days["numbers"] = _in_proportion(of_households, 1.0)
    for contradicts in (_repeated_once, _of_another_clock):
        if of_clock := contradicts(store, delivery, days, roster, by):
            touched["clock"] = touched.get("clock", Touched()) | of_clock
    conflicts = {day: lost for day, lost in sorted(of_households.conflicts.items()) if lost.lost}
    own = {"conflicts": conflicts, "touched": touched | sampled_days}
    return InputFacts(
        **{field.name: getattr(of_households, field.name) for field in fields(of_households)} | own,
        files=delivery.files,
        rows=delivery.rows_read,
        counted_rows=counted,
        rejected=rejected,
        empty_files=tuple(of.name for of in filter(None, map(store.manifest, delivery.contents)) if of.rows_read == 0),
        unreadable=delivery.unreadable,
        rejecting_files=_rejecting_files(store, delivery.contents if all_days else delivery.fresh),
        superseded=_superseded(store, delivery, [] if all_days else days),
        roster=len(roster.rows.ids),
        coverage=_coverage(days, sums),
    )


def _sampled(
    store: Store,
    delivery: Delivery,
    months: Sequence[str],
    facts: HouseholdFacts,
    touched: Mapping[FindingName, Touched],
    samples: rejection_findings.SampleFacts,
) -> dict[FindingName, Touched]:
    """Return what is measured in samples: slots that nobody has, registers if their share exceeds those counted, ..."""
    sampled = in_samples(samples, facts.day_sums, facts.members, facts.roster_days)
    explained = sum(found.days.get(ALL, 0) for found in touched.values())
    incomplete = facts.incomplete_days - explained
    if 2 * incomplete >= facts.household_days > 0 and (
        slots := rejection_findings.find_absent_slots(store, delivery, months)
    ):
        details = {f"slot {slot}": 1 for slot in slots}
        sampled["slot"] = replace(_in_proportion(facts, incomplete / facts.household_days), details=details)
    found, counted = len(samples.rising), touched.get("registers", Touched())
    if found > 1 and found / samples.households * facts.members > counted.households:
        sampled["registers"] = _in_proportion(facts, found / samples.households)
    return sampled


def in_samples(
    samples: rejection_findings.SampleFacts, day_sums: DaySums, members: int, roster_days: Mapping[str, int]
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
    if days := days_in_another_unit(day_sums):
        details = {f"text {count_text(len(days), 'day')} from {days[0]} to {days[-1]}": 1}
        of_days = _part_of(members, roster_days, len(days) / len(day_sums)).days
        found["rounded"] = Touched(members, of_days, details=details)
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
    repeated = [day for day in days if rejection_findings.layout_slots(store.layout, day)]
    if not repeated or not (households := rejection_findings.repeats_no_half_hour(store, delivery, repeated[0])):
        return None
    cells = {
        f"{columns_text(columns)} {label}": n
        for columns in by
        for label, n in roster.counts.cells(repeated[0], columns)
    }
    members = roster.counts.households(repeated[0])
    return Touched(members, {ALL: members} | cells, details={"repeated": households}, is_sampled=True)


def _of_another_clock(
    store: Store, delivery: Delivery, days: Sequence[date], roster: Roster, by: Sequence[GroupColumns]
) -> Touched | None:
    """Return what a first spring hour touches that the zone skips and most households have: it and all later days."""
    first = next((day for day in sorted(days) if rejection_findings.before_skip(store.layout, day) is not None), None)
    if first is None or not (households := rejection_findings.repeats_before_skip(store, delivery, first)):
        return None
    later = RosterDays(roster.rows, [day_number(day) for day in days if day >= first], by)
    return Touched(later.households, later.totals, details={"skipped": households}, is_sampled=True)


def _rejecting_files(store: Store, contents: Sequence[str]) -> tuple[RejectingFile, ...]:
    manifests = filter(None, map(store.manifest, contents))
    rejected = [(manifest, sum(_lacking(manifest.rejected).values())) for manifest in manifests]
    files = [RejectingFile(manifest.name, number, manifest.rows_kept + number) for manifest, number in rejected]
    return tuple(file for file in files if file.rejected > MAX_REJECTED_SHARE * file.rows)


def _superseded(store: Store, delivery: Delivery, days: Sequence[date]) -> tuple[tuple[str, int, str], ...]:
    """Return listed files of some days (none: all) with superseded rows, and a later one that each seems to correct.

    That is one with which its name begins, but for one of the same name in another folder, which is its correction.
    Which files are new does not count: an interrupted run has stored them.
    """
    if not delivery.superseded:
        return ()
    manifests = [store.manifest(content) for content in delivery.contents]
    names = ["" if manifest is None else manifest.name.rpartition("/")[2] for manifest in manifests]
    stems = [name_stem(name) if store.order.criterion == "name" else "" for name in names]
    numbers, found = [day_number(day) for day in days], []
    for i, (content, manifest) in enumerate(zip(delivery.contents, manifests, strict=True)):
        spans = [span for part in manifest.parts for span in part.days.values()] if manifest is not None else []
        if content in delivery.superseded and (
            not days or any(first <= number <= last for first, last in spans for number in numbers)
        ):
            later = (k for k in range(i + 1, len(names)) if stems[k] and names[i].startswith(stems[k]))
            corrected = next((names[k] for k in later if names[k] != names[i]), "")
            found.append((names[i], delivery.superseded[content], corrected))
    return tuple(found)


def name_stem(name: str) -> str:
    """Return the name of a file without its endings.

    >>> name_stem("2013.01.csv.gz")
    '2013.01'
    """
    return re.sub(r"(\.[A-Za-z]\w*)+$", "", name)


def _lacking(rejected: Mapping[str, int]) -> dict[str, int]:
    """Return the numbers of rejected rows, by the reasons for which a row lacks a reading."""
    return {reason: number for reason, number in rejected.items() if reason not in rejection_findings.NOT_REJECTED}


def _coverage(days: Sequence[date], sums: Mapping[tuple[date, str], DailySum]) -> dict[date, DayCoverage]:
    coverage = dict.fromkeys(days, DayCoverage(0, 0))
    for (day, _), daily_sum in sums.items():
        if day in coverage:
            most = coverage[day]
            households, usable = int(daily_sum.households.sum()), int(daily_sum.usable.sum())
            coverage[day] = DayCoverage(max(most.households, households), max(most.usable, usable))
    return coverage
