"""READINGS of a month + roster -> exact sums of half-hours by day and group: the load profiles before noise.

Locality: what a household adds to a day is a function of its own rows of that day and of the run file. A household-day
is usable if it lacks at most `max_missing` of the day's readings. It then counts as its half-hours under both clamps
(`series.load_profile`), otherwise as the public vector of a missing day. A missing half-hour of a usable day counts as
0: nothing is scaled up.

Example: two usable household-days of 300 and 500 Wh in slot 0, and a missing one that counts as 10 Wh, sum to 810 Wh.

Decisions:

* Readings are read part by part, and household-days are counted in blocks: memory is that of one part and of the sums,
  never that of a month of all households. Sums of integers do not depend on parts, blocks or their order.
* One task sums one month and household bucket, and tasks add up the sums of buckets: the client receives one of them.
* Only parts with rows of the requested days are opened: a night reads its own delivery, not its month.
* Series with equal rules and different group columns share the counted vectors: levels of a hierarchy cost one pass.
* Nothing is stored. Unlike daily totals, these sums depend on roster, clamps and groups, and a day is summed once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from itertools import groupby, product
from typing import Final

import numpy as np

from agedp.compute.engine import map_reduce
from agedp.compute.engine_settings import Engine
from agedp.stage_values import Delivery
from agedp.store.bucketed_roster import BucketedRoster, write_bucketed_roster
from agedp.store.group_sums import add_groups, sort_groups
from agedp.store.month_reader import household_day_key, is_first_of_key, iterate_month_readings
from agedp.store.store import Store
from agedp_data.datasets.deduplication import Readings
from agedp_data.datasets.layout import Layout, expected_readings, slot_step
from agedp_data.datasets.timestamps import day_number
from agedp_data.datasets.validation import SLOTS, Flags, Ints
from agedp_data.roster import GroupColumns, Roster
from agedp_data.series.load_profile import MISSING_HALF_HOUR, ProfileRule, day_slots

_BLOCK: Final = 4096
"""Household-days that are counted at once: 1.5 MB of half-hours, which stay in the processor's cache."""

Members = Callable[[date, GroupColumns], Mapping[str, Ints]]
"""A day's households by group, as household codes: `Roster.members`."""


@dataclass(frozen=True, slots=True)
class GroupedProfile:
    """What a series counts as a household's profile, and the group columns of the roster; None: one group, "all"."""

    rule: ProfileRule
    by: GroupColumns = None


@dataclass(frozen=True, slots=True)
class HalfHourSums:
    """One day of one series by group (confidential): the exact sum of each half-hour.

    Attributes:
        slots: the half-hours of the day: slot s begins s x 30 minutes after midnight by its clock.
        sum_wh: sums of each group's households, shape (slots,) [Wh].
        households: households on the roster.
        usable: of these, with a usable day.
        clamped: of these, with energy above one of the clamps.
    """

    slots: tuple[int, ...]
    sum_wh: dict[str, Ints]
    households: dict[str, int]
    usable: dict[str, int]
    clamped: dict[str, int]

    def add(self, further: HalfHourSums) -> HalfHourSums:
        """Return the sums of these and of further households on the same day."""
        counts = ((getattr(self, name), getattr(further, name)) for name in ("households", "usable", "clamped"))
        return HalfHourSums(self.slots, add_groups([self.sum_wh, further.sum_wh]), *map(add_groups, counts))

    def sorted_by_group(self, by: GroupColumns) -> HalfHourSums:
        """Return the same with the groups in the order of the roster."""
        counts = (self.households, self.usable, self.clamped)
        return HalfHourSums(self.slots, sort_groups(self.sum_wh, by), *(sort_groups(count, by) for count in counts))


@dataclass(frozen=True, slots=True)
class HouseholdDays:
    """Some household-days (n): household code, index of the day, energies (n, 48) [Wh], -1 without a reading."""

    household: Ints
    day: Ints
    energy_wh: Ints


def sum_half_hours(
    store: Store,
    delivery: Delivery,
    roster: Roster | BucketedRoster,
    *,
    days: Sequence[date],
    profiles: Mapping[str, GroupedProfile],
    engine: Engine,
) -> dict[tuple[date, str], HalfHourSums]:
    """Return the exact sums of half-hours of days, by day and series; months and buckets are summed in parallel.

    Args:
        store: the confidential store.
        delivery: the input files, all of them in the store.
        roster: who is counted on which day, in which group.
        days: ascending.
        profiles: what each series counts, by its name.
        engine: how they are computed.

    Raises:
        FolderRemoved: a part of the store is damaged, so that its file must be parsed again.
    """
    months = [tuple(month_days) for _, month_days in groupby(days, lambda day: (day.year, day.month))]
    bucketed = roster
    if isinstance(bucketed, Roster):
        bucketed = write_bucketed_roster(store.folder.parent, bucketed, store.buckets)
    function = partial(_sum_month, store=store, delivery=delivery, roster=bucketed, profiles=profiles)
    items = list(product(months if profiles else [], range(store.buckets)))
    sums = map_reduce("profiles", items, function=function, combine=_add_sums, engine=engine)
    return {
        (day, name): sums[day, name].sorted_by_group(profile.by) for day in days for name, profile in profiles.items()
    }


def _add_sums(results: Sequence[Mapping[tuple[date, str], HalfHourSums]]) -> dict[tuple[date, str], HalfHourSums]:
    """Return the sums of months and buckets together."""
    total: dict[tuple[date, str], HalfHourSums] = {}
    for result in results:
        for key, sums in result.items():
            total[key] = total[key].add(sums) if key in total else sums
    return total


def _sum_month(
    month_bucket: tuple[Sequence[date], int],
    *,
    store: Store,
    delivery: Delivery,
    roster: BucketedRoster,
    profiles: Mapping[str, GroupedProfile],
) -> dict[tuple[date, str], HalfHourSums]:
    days, bucket = month_bucket
    month = f"{days[0]:%Y-%m}"
    contents = delivery.contents if month in delivery.months else ()
    parts = iterate_month_readings(store, month, contents, bucket=bucket, days=_day_numbers(days))
    of_bucket = roster.bucket(bucket)
    code_by_id = {household: code for code, household in enumerate(of_bucket.ids)}
    blocks = (block for part in parts for block in _blocks(part, days, code_by_id))
    return sum_household_days(
        blocks, days, households=len(of_bucket.ids), members=of_bucket.members, layout=store.layout, profiles=profiles
    )


def sum_household_days(
    blocks: Iterable[HouseholdDays],
    days: Sequence[date],
    *,
    households: int,
    members: Members,
    layout: Layout,
    profiles: Mapping[str, GroupedProfile],
) -> dict[tuple[date, str], HalfHourSums]:
    """Return the exact sums of half-hours of household-days, by day and series; use it where readings are in memory.

    Args:
        blocks: each household-day at most once; household-days without readings need not occur.
        days: the days to which the indices of `blocks` refer.
        households: number of household codes.
        members: a day's households by group.
        layout: the half-hours of a day, and its complete number of readings.
        profiles: what each series counts, by its name.
    """
    cells = {by: _number_cells(days, by, households, members) for by in {profile.by for profile in profiles.values()}}
    counts = {name: _no_counts(cells[profile.by]) for name, profile in profiles.items()}
    rules = dict.fromkeys(profile.rule for profile in profiles.values())
    least = {rule: _least_readings(layout, days, rule.max_missing) for rule in rules}
    step = slot_step(layout.interval_minutes)
    for block in blocks:
        readings = (block.energy_wh != MISSING_HALF_HOUR).sum(axis=1)
        for rule in rules:
            usable = np.flatnonzero(readings >= least[rule][block.day])
            energy_wh = rule.represent(block.energy_wh[usable])
            counted_wh = rule.clamp(energy_wh, step=step)
            is_clamped = np.asarray((counted_wh < energy_wh).any(axis=1))
            for name, profile in profiles.items():
                if profile.rule == rule:
                    cell = cells[profile.by].numbers[block.household[usable], block.day[usable]]
                    _add_days(counts[name], cell, counted_wh, is_clamped)
    return {
        (day, name): _day_sums(profile.rule, layout, cells[profile.by], counts[name], (i, day))
        for i, day in enumerate(days)
        for name, profile in profiles.items()
    }


def _least_readings(layout: Layout, days: Sequence[date], max_missing: int) -> Ints:
    """Return the readings of a usable household-day on each day, as daily totals require them."""
    return np.array([max(1, expected_readings(layout, day) - max_missing) for day in days], np.int64)


@dataclass(frozen=True, slots=True)
class _Cells:
    """The groups of all days, numbered from 0 day by day.

    Attributes:
        numbers: number of a household's group on a day, shape (households + 1, days); -1 without a group. The last row
            belongs to the code -1 of households that are not on the roster.
        groups: the groups of each day.
        starts: first number of each day and the number of all, shape (days + 1,).
        sizes: households of each group, shape (n,).
    """

    numbers: Ints
    groups: tuple[tuple[str, ...], ...]
    starts: Ints
    sizes: Ints


def _number_cells(days: Sequence[date], by: GroupColumns, households: int, members: Members) -> _Cells:
    numbers = np.full((households + 1, len(days)), -1, np.int64)
    groups: list[tuple[str, ...]] = []
    sizes: list[int] = []
    for i, day in enumerate(days):
        members_by_group = members(day, by)
        for codes in members_by_group.values():
            numbers[codes, i] = len(sizes)
            sizes.append(len(codes))
        groups.append(tuple(members_by_group))
    return _Cells(numbers, tuple(groups), np.cumsum([0, *map(len, groups)]), np.array(sizes, np.int64))


@dataclass(frozen=True, slots=True)
class _Counts:
    """Usable household-days by group: sums of half-hours, shape (n, 48) [Wh]; how many, and how many clamped, (n,)."""

    sum_wh: Ints
    usable: Ints
    clamped: Ints


def _no_counts(cells: _Cells) -> _Counts:
    number = len(cells.sizes)
    return _Counts(np.zeros((number, SLOTS), np.int64), np.zeros(number, np.int64), np.zeros(number, np.int64))


def _add_days(counts: _Counts, cell: Ints, counted_wh: Ints, is_clamped: Flags) -> None:
    """Add counted household-days to the counts of their groups; those with the number -1 are in no group."""
    order = np.argsort(cell, kind="stable")
    order = order[np.searchsorted(cell[order], 0) :]
    if not len(order):
        return
    ordered = cell[order]
    starts = np.flatnonzero(is_first_of_key(ordered))
    present = ordered[starts]
    counts.sum_wh[present] += np.add.reduceat(counted_wh[order], starts, axis=0)
    counts.usable[present] += np.diff([*starts, len(order)])
    counts.clamped[present] += np.add.reduceat(is_clamped[order].astype(np.int64), starts)


def _day_sums(
    rule: ProfileRule, layout: Layout, cells: _Cells, counts: _Counts, numbered_day: tuple[int, date]
) -> HalfHourSums:
    i, day = numbered_day
    slots, groups = day_slots(layout, day), cells.groups[i]
    chosen = slice(cells.starts[i], cells.starts[i + 1])
    households, usable, clamped = cells.sizes[chosen], counts.usable[chosen], counts.clamped[chosen]
    missing_wh = rule.missing_day(len(slots), step=slot_step(layout.interval_minutes))
    sum_wh = counts.sum_wh[chosen][:, slots] + (households - usable)[:, None] * missing_wh
    by_group = (dict(zip(groups, values.tolist(), strict=True)) for values in (households, usable, clamped))
    return HalfHourSums(slots, dict(zip(groups, sum_wh, strict=True)), *by_group)


def _blocks(readings: Readings, days: Sequence[date], code_by_id: Mapping[str, int]) -> Iterator[HouseholdDays]:
    """Yield the household-days of some readings in blocks; the readings are of these days."""
    code = np.array([code_by_id.get(household, -1) for household in readings.ids], np.int64)
    day = readings.time // SLOTS
    starts = np.flatnonzero(is_first_of_key(household_day_key(readings.household, day)))
    ends = np.append(starts[1:], len(day))
    household, day_index = code[readings.household[starts]], np.searchsorted(_day_numbers(days), day[starts])
    for low in range(0, len(starts), _BLOCK):
        high = min(low + _BLOCK, len(starts))
        block = slice(starts[low], ends[high - 1])
        row = np.repeat(np.arange(high - low), ends[low:high] - starts[low:high])
        energy_wh = np.full((high - low, SLOTS), MISSING_HALF_HOUR, np.int64)
        energy_wh[row, readings.time[block] - day[block] * SLOTS] = readings.energy_wh[block]
        yield HouseholdDays(household[low:high], day_index[low:high], energy_wh)


def _day_numbers(days: Sequence[date]) -> Ints:
    return np.array([day_number(day) for day in days], np.int64)
