"""Two worlds that differ in one household of each group: the synthetic input of an audit, and its exact values.

The idea: a fair bit of each group chooses a world. At 1 a household uses the most on the first, third, ... day and
nothing between; at 0 the reverse. Each group also has a household whose use changes from day to day and from one
half-hour to the next, near half the clamp: a sum that counts it twice, or its readings twice, shows. With a list of
clamps these households are near the middle of one layer each, in turn; those of two worlds move all layers at once.

    group street00012    1 household, use near half the clamp, some readings missing
    group street01037    1 such household, 1 of two worlds over all days, k more of two worlds over the first two days

Decisions:

* The exact values are computed by numpy from the readings themselves (`synthetic_worlds`), by no function of the
  pipeline: the audit compares two independent computations.
* The worlds differ in what reveals most. For a profile a household moves its energy between the halves of a day, for
  coverage its day lacks one reading too many. Where a run file has several such series, they take turns by days.
* Some varying households have no reading on a day, and some lack one half-hour.
* The readings of some households arrive in two files; the same reading given twice counts once.
* The k households leave the roster after the second day.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, Final, Literal

import numpy as np
import pyarrow as pa
from pyarrow import csv

from agedp_data.arrays import Floats, Mask
from agedp_data.audit.lower_bounds import FAULTS_OF_SUMS, AuditDatasets
from agedp_data.config import RunFile
from agedp_data.datasets.validation import INTERVAL_MINUTES, SLOTS, Flags, Ints
from agedp_data.errors import InputError
from agedp_data.markov.states import RepresentativeValues
from agedp_data.series.series import AnySeries
from agedp_data.series.series_terms import EnergySeries, HouseholdDays

# --------------------------------------------------------------------------------------------------
# What synthetic households of an audit add to a series: counted from the rules, not by the code that is audited.
#
# Decisions:
#
# * `_RULES` has an independent count of each statistic. One that is not in it counts by its own `counted`: its sums,
#   noise and tables are audited, but not what a day counts.
# * A profile is clamped and reduced here by its equation. A missing day is the public energy, spread evenly.
# * Coverage counts a household as 1 if it has a usable day. Readings that are counted twice do not change it.
# --------------------------------------------------------------------------------------------------

Pair = Literal["total", "moved", "incomplete"]
"""In what a day of two worlds differs: the energy, the half-hours that have it, or whether the day is usable."""


@dataclass(frozen=True, slots=True)
class DayTotals:
    """What households count on days and their neighbours, shape (households, days, 3, parts) [Wh].

    A day has one part, its total, and in a profile 48. Of coverage the part is 1 for a usable day, else 0.

    `counted_wh` is clamped, a missing day filled in; `doubled_wh` the same with each reading counted twice;
    `unclamped_wh` is not clamped.
    """

    counted_wh: Ints
    doubled_wh: Ints
    unclamped_wh: Ints


class Rules:
    """How an audit counts a series: parts of a day, what they add to the cells, and the sensitivity."""

    pair: ClassVar[Pair] = "total"

    def __init__(self, series: AnySeries) -> None:
        self.series: Any = series

    def totals(self, readings_wh: Ints, states: RepresentativeValues | None) -> DayTotals:
        """Return the parts of readings of shape (households, days, 3, half-hours), -1 for a missing one."""
        is_there = readings_wh >= 0
        usable = is_there.sum(axis=-1, keepdims=True) >= max(1, SLOTS - self.series.max_missing)
        single, double = (_represented(readings_wh * factor, is_there, states) for factor in (1, 2))
        return self.parts(usable, single, double, states)

    def parts(self, usable: Flags, single: Ints, double: Ints, states: RepresentativeValues | None) -> DayTotals:
        """Return the parts of half-hours, as they are and counted twice."""
        if not self.series.reads_half_hours:
            single, double = (_daily_total(values, states) for values in (single, double))
        missing = self.series.missing(range(SLOTS), minutes=30)
        days = (HouseholdDays(energy_wh.reshape(-1, energy_wh.shape[-1])) for energy_wh in (single, double))
        counted = (np.reshape(self.series.counted(of).values, (*usable.shape[:-1], -1)) for of in days)
        once, twice = (np.where(usable, values, missing) for values in counted)
        return DayTotals(once, twice, once)

    def cells(self, parts_wh: Ints) -> Ints:
        """Return the contribution of each day to each cell, shape (..., cells), from its parts."""
        return parts_wh

    @property
    def sensitivity(self) -> int:
        """Return the L1 sensitivity to one household's day [Wh, or households]."""
        return int(self.series.sensitivity("replacement"))


class _Sums(Rules):
    def parts(self, usable: Flags, single: Ints, double: Ints, states: RepresentativeValues | None) -> DayTotals:
        above_wh, clamp_wh, missing_wh = above_of(self.series), self.series.clamp_wh, self.series.missing_wh
        totals, doubled = (_daily_total(values, states) for values in (single, double))
        clamped = (np.clip(totals, above_wh, clamp_wh), np.clip(doubled, above_wh, clamp_wh))
        counted = (*clamped, np.maximum(totals, above_wh))
        return DayTotals(*(np.where(usable, energy_wh - above_wh, missing_wh) for energy_wh in counted))

    @property
    def sensitivity(self) -> int:
        return int(self.series.clamp_wh) - above_of(self.series)


class _Ranges(_Sums):
    def cells(self, parts_wh: Ints) -> Ints:
        totals_wh = parts_wh[..., 0]
        edges = [int(1000 * edge) for edge in self.series.bins_kwh]
        if self.series.form == "cumulative":
            return np.stack([totals_wh < edge for edge in edges[1:-1]], axis=-1).astype(np.int64)
        in_bin = [(low <= totals_wh) & (totals_wh < high) for low, high in pairwise(edges)]
        in_bin[-1] = totals_wh >= edges[-2]
        return np.stack(in_bin, axis=-1).astype(np.int64)

    @property
    def sensitivity(self) -> int:
        return len(self.series.bins_kwh) - 2 if self.series.form == "cumulative" else 2


class _HalfHours(Rules):
    pair = "moved"

    def parts(self, usable: Flags, single: Ints, double: Ints, states: RepresentativeValues | None) -> DayTotals:
        del states
        missing = np.diff(np.arange(SLOTS + 1) * self.series.missing_wh // SLOTS)
        counted = (self._reduced(single), self._reduced(double), single)
        return DayTotals(*(np.where(usable, energy_wh, missing) for energy_wh in counted))

    def _reduced(self, half_hours_wh: Ints) -> Ints:
        """Return half-hours under both clamps: a day above its clamp keeps its shape, rounded down."""
        clamp_wh, clipped = self.series.clamp_wh, np.minimum(half_hours_wh, self.series.half_hour_clamp_wh)
        day_wh = clipped.sum(axis=-1, keepdims=True)
        return np.asarray(np.where(day_wh > clamp_wh, clipped * clamp_wh // np.maximum(day_wh, 1), clipped))

    @property
    def sensitivity(self) -> int:
        return min(2 * int(self.series.clamp_wh), SLOTS * int(self.series.half_hour_clamp_wh))


class _Usable(Rules):
    pair = "incomplete"

    def parts(self, usable: Flags, single: Ints, double: Ints, states: RepresentativeValues | None) -> DayTotals:
        del single, double, states
        one = usable.astype(np.int64)
        return DayTotals(one, one, one)

    @property
    def sensitivity(self) -> int:
        return 1


_RULES: Final = {"mean": _Sums, "distribution": _Ranges, "profile": _HalfHours, "coverage": _Usable}


def rules_of(series: AnySeries) -> Rules:
    """Return how an audit counts a series."""
    return _RULES.get(series.statistic, Rules)(series)


def _represented(half_hours_wh: Ints, is_there: Flags, states: RepresentativeValues | None) -> Ints:
    """Return half-hours as they count: the middles of their states, or as they are; a missing one is 0."""
    if states is not None and states.step == "half-hour":
        half_hours_wh = state_values(half_hours_wh, states.edges_wh)
    return np.asarray(np.where(is_there, half_hours_wh, 0))


def _daily_total(half_hours_wh: Ints, states: RepresentativeValues | None) -> Ints:
    totals: Ints = half_hours_wh.sum(axis=-1, keepdims=True)
    return totals if states is None or states.step == "half-hour" else state_values(totals, states.edges_wh)


def state_values(energy_wh: Ints, edges_wh: tuple[int, ...]) -> Ints:
    """Return the middle of the state of each energy; the last state is as wide as the one before it.

    >>> state_values(np.array([0, 99, 100, 5000]), (100, 300)).tolist()
    [50, 50, 200, 400]
    """
    ends = [0, *edges_wh]
    ends.append(2 * ends[-1] - ends[-2])
    middles = np.array([(low + high) // 2 for low, high in pairwise(ends)], np.int64)
    return np.asarray(middles[np.searchsorted(np.array(edges_wh), energy_wh, side="right")])


def above_of(series: AnySeries) -> int:
    """Return the energy above which a household's day counts [Wh]: not 0 of an upper layer."""
    return int(1000 * getattr(series, "above_kwh", 0))


FIRST_DAY = date(2013, 1, 1)
BIT_DAYS = 2
"""Number of days on which k households of a group change with its bit."""
_OTHER_FAULTS = ("households left out", "the sums of the day before", "the sums of the next day")
_SEED = 20130101
_REPEATED_PART = 8  # of the varying households, whose readings arrive twice


@dataclass(frozen=True, slots=True)
class SyntheticWorlds:
    """Energies and bits of an audit's households.

    Args:
        datasets: numbers of groups, households and days.
        max_half_hour_wh: largest permitted reading [Wh].
        varying_wh: readings of the varying households, shape (all groups, days, half-hours); -1 is missing [Wh].
        group_bits: the bits of the k households of a group, shape (groups,).
        household_bits: the bits of the household that stays, shape (groups,).
        pairs: in what the two worlds differ, day by day in turn.
        least_missing: most readings that a usable day may lack, the least of all series of coverage.
        moved_slots: half-hours from which a day's energy moves to as many others, the fewest that fill a profile's day.
    """

    datasets: AuditDatasets
    max_half_hour_wh: int
    varying_wh: Ints
    group_bits: Mask
    household_bits: Mask
    pairs: tuple[Pair, ...] = ("total",)
    least_missing: int = 0
    moved_slots: int = SLOTS // 2

    @classmethod
    def of(cls, run: RunFile, datasets: AuditDatasets, *, group_bits: Mask, household_bits: Mask) -> SyntheticWorlds:
        """Return the worlds for the clamps of a run file."""
        max_wh = run.input.max_half_hour_wh
        middles_wh = _middles_wh(run)
        source = np.random.default_rng(_SEED)
        shape = (datasets.total_groups, datasets.days)
        near_wh = np.resize(np.minimum(middles_wh / SLOTS, max_wh / 1.6), (datasets.total_groups, 1))
        mean_wh = near_wh * source.uniform(0.9, 1.0, shape)
        varying_wh = np.rint(mean_wh[:, :, None] * source.uniform(0.5, 1.5, (*shape, SLOTS))).astype(np.int64)
        absent, incomplete = (source.random(shape) < 1 / 16 for _ in range(2))
        varying_wh[absent] = -1
        varying_wh[incomplete, source.integers(SLOTS)] = -1
        pairs = {name: rules_of(series).pair for name, series in run.series.items()}
        least_missing = min((run.series[name].max_missing for name in pairs if pairs[name] == "incomplete"), default=0)
        moved_slots = min((_moved_slots(run.series[name]) for name in pairs if pairs[name] == "moved"), default=0)
        return cls(datasets, max_wh, varying_wh, group_bits, household_bits, _pairs(run), least_missing, moved_slots)

    def opposite(self) -> SyntheticWorlds:
        """Return the same households on the same roster with other readings, on every day.

        All bits are the other ones. A varying household has the readings of its day before, the largest in place of
        missing ones; on the first, third, ... day it has none.
        """
        varying_wh = np.roll(np.where(self.varying_wh < 0, self.max_half_hour_wh, self.varying_wh), 1, axis=1)
        varying_wh[:, ::2] = -1
        return replace(self, varying_wh=varying_wh, group_bits=~self.group_bits, household_bits=~self.household_bits)

    @property
    def groups(self) -> list[str]:
        """Return the names of the groups; those with bits come last."""
        return [f"street{i:05d}" for i in range(self.datasets.total_groups)]

    def write(self, folder: Path, *, column: str) -> list[Path]:
        """Write roster.csv with the group column, and the input files; return the paths of the input files."""
        datasets, groups = self.datasets, self.groups
        two_worlds, k = groups[datasets.varying_groups :], datasets.households_per_group
        households = {
            "varying": groups,
            "staying": [f"{group}-stays" for group in two_worlds],
            "leaving": [f"{group}-{i}" for group in two_worlds for i in range(k)],
        }
        last = {"leaving": FIRST_DAY + timedelta(days=BIT_DAYS - 1)}
        lines = [
            f"{household},{FIRST_DAY},{last.get(kind, '')},{household.partition('-')[0]}"
            for kind, ids in households.items()
            for household in ids
        ]
        (folder / "roster.csv").write_text("\n".join([f"household_id,from,to,{column}", *lines]) + "\n")
        alternating, repeated = self._alternating_wh, max(1, len(groups) // _REPEATED_PART)
        tables = {
            "readings.csv": [
                (households["varying"], self.varying_wh),
                (households["staying"], alternating[self.household_bits.astype(int)]),
                (households["leaving"], alternating[np.repeat(self.group_bits, k).astype(int), :BIT_DAYS]),
            ],
            "repeated.csv": [(households["varying"][:repeated], self.varying_wh[:repeated])],
        }
        options = csv.WriteOptions(quoting_style="none")
        for name, parts in tables.items():
            csv.write_csv(pa.concat_tables(_readings_table(*part) for part in parts), folder / name, options)
        return [folder / name for name in tables]

    def exact(self, run: RunFile, series: AnySeries, *, days: Sequence[int]) -> ExactValues:
        """Return the exact values of a series on some days, by their index, and those under faults of the sums."""
        return ExactValues.of(self, series, days, *self._totals(run, series, days))

    @property
    def _alternating_wh(self) -> Ints:
        """Readings of a household of two worlds, shape (worlds, days, half-hours) [Wh]."""
        is_high = (np.arange(self.datasets.days) % 2 == 0) == np.array([[False], [True]])
        days = [self._days_of(self.pairs[day % len(self.pairs)]) for day in range(self.datasets.days)]
        return np.stack([of[high.astype(int)] for of, high in zip(days, is_high.T, strict=True)], axis=1)

    def _days_of(self, pair: Pair) -> Ints:
        """Return the two days of a pair, shape (2, half-hours), -1 for a missing reading [Wh]."""
        high = self.max_half_hour_wh - np.arange(SLOTS) % 2 * (self.max_half_hour_wh // 8)
        slots = np.arange(SLOTS)
        if pair == "moved":
            moved = self.moved_slots
            return np.stack([np.where(slots >= SLOTS - moved, high, 0), np.where(slots < moved, high, 0)])
        if pair == "incomplete":
            return np.stack([np.where(slots < self.least_missing + lacks, -1, high) for lacks in (1, 0)])
        return np.stack([0 * high, high])

    def _totals(self, run: RunFile, series: AnySeries, days: Sequence[int]) -> tuple[DayTotals, DayTotals]:
        states = run.counted_states if series.counts_states else None
        # a fault may take a neighbouring day: the first and last days have themselves as neighbours
        near = np.clip(np.array(days)[:, None] + np.arange(-1, 2), 0, self.datasets.days - 1)
        varying, alternating = (wh[:, near] for wh in (self.varying_wh, self._alternating_wh))
        return rules_of(series).totals(varying, states), rules_of(series).totals(alternating, states)


@dataclass(frozen=True, slots=True)
class ExactValues:
    """Exact values of a series on some days, and their shifts under faults of the sums, shape (days, groups, cells).

    Attributes:
        days: the days, as indices from the first day on.
        values: the exact values [Wh, or households].
        group_worlds: the values with each group's bit 0 and 1, all else equal.
        household_worlds: the same for the bit of the household that stays.
        shifts: shifts of `values` by fault.
    """

    days: tuple[int, ...]
    values: Ints
    group_worlds: tuple[Ints, Ints]
    household_worlds: tuple[Ints, Ints]
    shifts: dict[str, Ints]

    @classmethod
    def of(
        cls, worlds: SyntheticWorlds, series: AnySeries, days: Sequence[int], varying: DayTotals, alternating: DayTotals
    ) -> ExactValues:
        """Return the values of the worlds that the bits choose."""
        group_bits, household_bits = (bits.astype(int) for bits in (worlds.group_bits, worlds.household_bits))
        varying_groups = worlds.datasets.varying_groups
        cell_values = rules_of(series).cells
        size = worlds.datasets.households_per_group * (np.array(days) < BIT_DAYS)[:, None, None]

        def values_of(totals: str, near: int = 1, group: Ints = group_bits, household: Ints = household_bits) -> Ints:
            single, worlds_wh = (getattr(of, totals)[:, :, near] for of in (varying, alternating))
            by_world = cell_values(worlds_wh).swapaxes(0, 1)
            values = cell_values(single).swapaxes(0, 1).copy()
            values[:, varying_groups:] += by_world[:, household] + size * by_world[:, group]
            return values

        zeros = np.zeros_like(group_bits)
        values = values_of("counted_wh")
        before, after = (values_of("counted_wh", near=near) - values for near in (0, 2))
        once_more = cell_values(varying.counted_wh[:, :, 1]).swapaxes(0, 1)
        doubled, unclamped = (values_of(totals) - values for totals in ("doubled_wh", "unclamped_wh"))
        shifts = (once_more, doubled, unclamped, -values, before, after)
        by_fault = dict(zip((*FAULTS_OF_SUMS, *_OTHER_FAULTS), shifts, strict=True))
        group_worlds = values_of("counted_wh", group=zeros), values_of("counted_wh", group=zeros + 1)
        household_worlds = values_of("counted_wh", household=zeros), values_of("counted_wh", household=zeros + 1)
        return cls(tuple(days), values, group_worlds, household_worlds, by_fault)


def _pairs(run: RunFile) -> tuple[Pair, ...]:
    """Return the pairs of days that change the series of a run file most, the first series' first.

    Raises:
        InputError: a series has rows of several days, of which no pair of days tells enough.
    """
    if any(series.covers_periods for series in run.series.values()):
        raise InputError("[series] every: rows of weeks, months and years are not audited; audit them as rows of days")
    return tuple(dict.fromkeys(rules_of(series).pair for series in run.series.values()))


def _moved_slots(series: AnySeries) -> int:
    """Return how many half-hours at their clamp fill a day: the fewer, the less noise hides their change."""
    most = series.clamp_wh if isinstance(series, EnergySeries) else 0
    return min(SLOTS // 2, most // series.most(INTERVAL_MINUTES))


def _middles_wh(run: RunFile) -> Floats:
    """Return half of the lowest clamp; with layers, the middle of each layer, the lowest first [Wh].

    Coverage has no clamp. Alone it is audited on days of any use.
    """
    clamps = [series.clamp_wh for series in run.series.values() if isinstance(series, EnergySeries)]
    layers = [series for series in run.series.values() if isinstance(series, EnergySeries) and above_of(series)]
    lowest = min(clamps, default=SLOTS * run.input.max_half_hour_wh)
    return np.array([lowest / 2, *((above_of(layer) + layer.clamp_wh) / 2 for layer in layers)])


def _readings_table(households: list[str], energy_wh: Ints) -> pa.Table:
    """Return half-hourly readings with interval-end timestamps; energies of shape (households, days, half-hours)."""
    days = energy_wh.shape[1]
    midnight = datetime(FIRST_DAY.year, FIRST_DAY.month, FIRST_DAY.day, tzinfo=UTC)
    ends = (midnight + timedelta(minutes=30 * (i + 1)) for i in range(SLOTS * days))
    timestamps = pa.array([f"{end:%Y-%m-%d %H:%M:%S}" for end in ends])
    household, slot = np.nonzero(energy_wh.reshape(len(households), days * SLOTS) >= 0)
    ids = pa.array(households, pa.string()).take(pa.array(household))
    kwh = energy_wh.reshape(-1)[household * days * SLOTS + slot] / 1000
    return pa.table({"LCLid": ids, "tstp": timestamps.take(pa.array(slot)), "energy(kWh/hh)": kwh})
