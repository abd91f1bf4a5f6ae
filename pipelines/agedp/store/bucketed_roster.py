"""The roster by household bucket: one Parquet file for each bucket, so that a task reads the rows of its own alone.

    <confidential>/roster/<digest>-<buckets>/bucket=007.parquet

A bucket holds all rows of its households (`bucket_of`). So the members and cells of the buckets add up to those
of the roster. The folder is named by the digest of the roster file: it is written once for each state of the file, and
the last four that were used are kept.

Decisions:

* The files are derived. A damaged one is removed with its folder; the next call of `write_bucketed_roster` writes both.
* With one bucket nothing is written: the value holds the roster itself.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import groupby
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from agedp.local_files import atomic_files
from agedp.local_files.atomic_files import DamagedFile, FolderRemoved, read_columns
from agedp.stage_values import COUNTS, DailySum
from agedp.store.month_reader import is_first_of_key
from agedp.store.store import bucket_numbers
from agedp_data.datasets.layout import Layout, expected_readings, one_array
from agedp_data.datasets.validation import Int32s, Ints
from agedp_data.roster import (
    GroupColumns,
    Roster,
    RosterRows,
    TextColumn,
    as_strings,
    groups_of_table,
    read_roster,
    sorted_codes,
    stored_groups,
)
from agedp_data.series.profile import day_slots
from agedp_data.series.series import AnySeries
from agedp_data.series.series_terms import Cell, EnergySeries, HouseholdDays, Series

FOLDER: Final = "roster"
_MOST: Final = 4
"""Number of rosters kept, the last used ones: populations that share the confidential folder have one each."""


@dataclass(frozen=True, slots=True)
class BucketedRoster:
    """The roster rows by household bucket; a small value that tasks receive.

    Attributes:
        folder: the folder of the files of its buckets, on a path that all workers see.
        buckets: number of buckets.
        whole: the roster itself, where there is one bucket.
    """

    folder: Path
    buckets: int
    whole: Roster | None = None

    def bucket(self, number: int) -> RosterRows:
        """Return the roster rows of one bucket; `ids` are its households, which may be none.

        Args:
            number: the bucket, from 0.

        Raises:
            FolderRemoved: a file is damaged or missing; the next call of `write_bucketed_roster` writes it again.
            InputError: the system denies access.
        """
        if self.whole is not None:
            return self.whole.rows
        try:
            table = read_columns(_bucket_path(self.folder, number))
        except DamagedFile:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise FolderRemoved("the roster in the confidential folder was damaged; run again to rebuild it") from None
        ids, household = sorted_codes(TextColumn(one_array(table["household_id"])))
        first, last = (table[name].to_numpy() for name in ("first", "last"))
        return RosterRows(TextColumn(ids), household, first, last, groups_of_table(table))


def write_bucketed_roster(folder: Path, roster: Roster | Path | str, buckets: int) -> BucketedRoster:
    """Return the roster by bucket, written once for each state of it; the last used states are kept.

    Args:
        folder: the confidential folder.
        roster: the roster, or the path or URL of its file.
        buckets: number of buckets.

    Raises:
        InputError: the roster is invalid, or the folder cannot be written.
    """
    whole = roster if isinstance(roster, Roster) else read_roster(roster)
    if buckets == 1:
        return BucketedRoster(folder / FOLDER, 1, whole)
    target = folder / FOLDER / f"{whole.file_digest or _content_digest(whole.rows)}-{buckets}"
    with atomic_files.exclusive_lock(atomic_files.make_private(target.parent)):
        if not target.is_dir():
            with atomic_files.complete_folder(target) as temporary:
                _write_buckets(temporary, whole.rows, buckets)
        os.utime(target)
        folders = [path for path in target.parent.iterdir() if path.is_dir()]
        for path in sorted(folders, key=lambda path: (path == target, path.stat().st_mtime_ns))[:-_MOST]:
            shutil.rmtree(path, ignore_errors=True)
    return BucketedRoster(target, buckets)


def _content_digest(roster: RosterRows) -> str:
    digest = hashlib.sha256()
    for name, texts in (("", roster.ids), *roster.groups.items()):
        labels, codes = sorted_codes(texts)
        digest.update(json.dumps([name, labels.to_pylist()]).encode() + codes.astype("<i8").tobytes())
    for numbers in (roster.household, roster.first, roster.last):
        digest.update(numbers.astype("<i8").tobytes())
    return digest.hexdigest()


def _write_buckets(folder: Path, roster: RosterRows, buckets: int) -> None:
    """Write one file for each bucket, its rows in the order of the roster."""
    table = pa.table(
        {
            "household_id": as_strings(roster.ids).take(pa.array(roster.household)),
            "first": roster.first,
            "last": roster.last,
            **stored_groups(roster.groups),
        }
    )
    bucket = bucket_numbers(roster.ids, buckets)[roster.household]
    order = np.argsort(bucket, kind="stable")
    ends = np.searchsorted(bucket[order], np.arange(buckets + 1))
    for number in range(buckets):
        rows = table.take(pa.array(order[ends[number] : ends[number + 1]]))
        atomic_files.write_table(_bucket_path(folder, number), rows, sync=False)


def _bucket_path(folder: Path, number: int) -> Path:
    return folder / f"bucket={number:03}.parquet"


# --------------------------------------------------------------------------------------------------
# Household-days + roster -> exact vectors by day, series and group; of household buckets together, all households.
#
# Locality: what a household adds to a day is a function of its own rows of that day and of the run file. A
# household-day is usable if it lacks at most `max_missing` of the day's readings; it then counts as the statistic says
# (`counted`), never scaled up. Otherwise it counts as the public `missing` vector.
#
# Example: two usable household-days of 300 and 500 Wh in slot 0, and a missing one that counts as 10 Wh, sum to 810
# Wh.
#
# Decisions:
#
# * Household-days come in blocks: memory is that of one block and of the sums, never that of a month of all
#   households. Sums of integers do not depend on blocks, buckets or their order.
# * Series of one rule share the counted household-days: levels of a hierarchy cost one pass.
# --------------------------------------------------------------------------------------------------

Members = Callable[[date, GroupColumns], Mapping[str, Ints]]
"""A day's households by group, as household codes: `RosterRows.members`."""
Sums = dict[tuple[date, str], DailySum]


@dataclass(frozen=True, slots=True)
class Energies:
    """Energies of some household-days, in any arrangement.

    Attributes:
        energy_wh: by readings: of days, or of half-hours, -1 without a reading [Wh].
        states_wh: the same with every reading, or total, replaced by the value of its state; None without states.
        readings: number of readings of each household-day; 0 means that it is missing.
    """

    energy_wh: Ints
    states_wh: Ints | None
    readings: Ints

    def energy_of(self, series: Series) -> Ints:
        """Return the energy that a series counts.

        Raises:
            ValueError: it counts states, and there are none.
        """
        if not series.counts_states:
            return self.energy_wh
        if self.states_wh is None:
            raise ValueError("a series counts states, but no states are given")
        return self.states_wh


@dataclass(frozen=True, slots=True)
class DayBlock(Energies):
    """Some household-days (n), each at most once: energies of shape (n, 1), or of half-hours (n, 48).

    Attributes:
        household: household codes; -1 is not on the roster.
        day: indices of the days.
    """

    household: Ints
    day: Ints


def sum_household_days(
    blocks: Iterable[DayBlock],
    days: Sequence[date],
    *,
    households: int,
    members: Members,
    layout: Layout,
    series: Mapping[str, AnySeries],
) -> Sums:
    """Return the exact vectors of household-days, by day and series.

    Args:
        blocks: household-days; those without readings need not occur.
        days: the days to which the indices of `blocks` refer.
        households: number of household codes.
        members: a day's households by group.
        layout: the half-hours of a day, and its complete number of readings.
        series: all of daily totals, or all of half-hours, as the blocks are.

    Raises:
        ChainError: a day counts outside its range.
    """
    groups = {by: _number_groups(days, by, households, members) for by in {of.by for of in series.values()}}
    lines = {
        name: np.zeros((len(groups[of.by].sizes), len(COUNTS) + len(of.names)), np.int64) for name, of in series.items()
    }
    rules: dict[tuple[object, ...], list[str]] = {}
    for name, of in series.items():
        rules.setdefault(of.rule, []).append(name)
    expected = np.array([expected_readings(layout, day) for day in days], np.int64)
    for block in blocks:
        for names in rules.values():
            rule = series[names[0]]
            least = np.maximum(1, expected - rule.max_missing)
            usable = np.flatnonzero(block.readings >= least[block.day])
            counted = _counted_lines(block, usable, rule, layout.interval_minutes)
            for name in names:
                number = groups[series[name].by].numbers[block.household[usable], block.day[usable]]
                _add_lines(lines[name], number.astype(np.int64), counted)
    return {
        (day, name): _day_sum(of, groups[of.by], lines[name], (i, day), layout)
        for i, day in enumerate(days)
        for name, of in series.items()
    }


def _counted_lines(block: DayBlock, usable: Ints, series: AnySeries, minutes: int) -> Ints:
    """Return what usable household-days add to `COUNTS` and to the places of their group, a line for each."""
    energy_wh = block.energy_of(series)[usable]
    counted, clamped = series.counted(HouseholdDays(energy_wh, minutes))
    lines = np.zeros((len(usable), len(COUNTS) + counted.shape[1]), np.int64)
    lines[:, 1], lines[:, 2], lines[:, len(COUNTS) :] = 1, clamped, counted
    if isinstance(series, EnergySeries) and series.compares_states:
        lines[:, 3:4] = series.clamp_energy(block.energy_wh[usable])
        lines[:, 4:5] = series.clamp_energy(energy_wh)
    return lines


@dataclass(frozen=True, slots=True)
class _Groups:
    """The groups of all days, numbered from 0 day by day.

    Attributes:
        numbers: number of a household's group on a day, shape (households + 1, days); -1 without a group. The last row
            belongs to the code -1 of households that are not on the roster.
        names: the groups of each day.
        starts: first number of each day and the number of all, shape (days + 1,).
        sizes: households of each group, shape (n,).
    """

    numbers: Int32s
    names: tuple[tuple[str, ...], ...]
    starts: Ints
    sizes: Ints


def _number_groups(days: Sequence[date], by: GroupColumns, households: int, members: Members) -> _Groups:
    numbers = np.full((households + 1, len(days)), -1, np.int32)
    names: list[tuple[str, ...]] = []
    sizes: list[int] = []
    for i, day in enumerate(days):
        members_by_group = members(day, by)
        for codes in members_by_group.values():
            numbers[codes, i] = len(sizes)
            sizes.append(len(codes))
        names.append(tuple(members_by_group))
    return _Groups(numbers, tuple(names), np.cumsum([0, *map(len, names)]), np.array(sizes, np.int64))


def _add_lines(lines: Ints, number: Ints, counted: Ints) -> None:
    """Add counted household-days to the lines of their groups; those with the number -1 are in no group."""
    if len(number) and (number[0] < 0 or (number[1:] < number[:-1]).any()):
        order = np.argsort(number, kind="stable")
        order = order[np.searchsorted(number[order], 0) :]
        number, counted = number[order], counted[order]
    if len(number):
        starts = np.flatnonzero(is_first_of_key(number))
        lines[number[starts]] += np.add.reduceat(counted, starts, axis=0)


def _day_sum(
    series: AnySeries, groups: _Groups, lines: Ints, numbered_day: tuple[int, date], layout: Layout
) -> DailySum:
    i, day = numbered_day
    slots, chosen = day_slots(layout, day), slice(groups.starts[i], groups.starts[i + 1])
    places = [[*series.names.values()].index(place) for place in series.places(slots)]
    counts, exact = lines[chosen, : len(COUNTS)].copy(), lines[chosen, len(COUNTS) :][:, places]
    counts[:, 0] = groups.sizes[chosen]
    _add_missing(series, counts, exact, series.missing(slots, minutes=layout.interval_minutes))
    return DailySum(series, slots, tuple(map(Cell, groups.names[i])), counts, exact)


def _add_missing(series: AnySeries, counts: Ints, exact: Ints, missing: Ints) -> None:
    """Add what the household-days count that are not usable."""
    number = (counts[:, 0] - counts[:, 1])[:, None]
    exact += number * missing
    if isinstance(series, EnergySeries) and series.compares_states:
        counts[:, 3:] += number * series.missing_wh


def days_by_month(days: Iterable[date]) -> list[tuple[date, ...]]:
    """Return ascending days month by month."""
    return [tuple(month_days) for _, month_days in groupby(days, lambda day: (day.year, day.month))]


def add_sums(results: Sequence[Mapping[tuple[date, str], DailySum]]) -> Sums:
    """Return the sums of months and buckets together; associative, whatever the order."""
    by_key: dict[tuple[date, str], list[DailySum]] = {}
    for result in results:
        for key, of_key in result.items():
            by_key.setdefault(key, []).append(of_key)
    return {key: DailySum.added(sums) for key, sums in by_key.items()}
