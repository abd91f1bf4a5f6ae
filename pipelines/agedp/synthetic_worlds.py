"""Two worlds that differ in one household of each group: the synthetic input of an audit, and its exact values.

The idea: a fair bit of each group chooses a world. At 1 a household uses the most on the first, third, ... day and
nothing between; at 0 the reverse. Each group also has a household whose use changes from day to day and from one
half-hour to the next, near half the clamp: a sum that counts it twice, or its readings twice, shows. With a list of
clamps these households are near the middle of one layer each, in turn; those of two worlds move all layers at once.

    group street00012    1 household, use near half the clamp, some readings missing
    group street01037    1 such household, 1 of two worlds over all days, k more of two worlds over the first two days

Decisions:

* The exact values are computed in this module by numpy from the readings themselves, by no function of the pipeline:
  the audit compares two independent computations.
* Some varying households have no reading on a day, and some lack one half-hour.
* The readings of some households arrive in two files; the same reading given twice counts once.
* The k households leave the roster after the second day.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv

from agedp_data.arrays import Floats, Mask
from agedp_data.audit.power import FAULTS_OF_SUMS, AuditDatasets
from agedp_data.config import RunFile
from agedp_data.datasets.validation import SLOTS, Ints
from agedp_data.errors import InputError
from agedp_data.markov.states import RepresentativeValues
from agedp_data.series.series import AnySeries, Distribution, Layer, Mean

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
    """

    datasets: AuditDatasets
    max_half_hour_wh: int
    varying_wh: Ints
    group_bits: Mask
    household_bits: Mask

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
        return cls(datasets, max_wh, varying_wh, group_bits, household_bits)

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
        profile = self.max_half_hour_wh - np.arange(SLOTS) % 2 * (self.max_half_hour_wh // 8)
        return np.asarray(is_high[:, :, None] * profile)

    def _totals(self, run: RunFile, series: AnySeries, days: Sequence[int]) -> tuple[DayTotals, DayTotals]:
        series = use_of(series)
        states = run.counted_states if series.counts_states else None
        # a fault may take a neighbouring day: the first and last days have themselves as neighbours
        near = np.clip(np.array(days)[:, None] + np.arange(-1, 2), 0, self.datasets.days - 1)
        return (
            DayTotals.of(self.varying_wh[:, near], series, states),
            DayTotals.of(self._alternating_wh[:, near], series, states),
        )


@dataclass(frozen=True, slots=True)
class DayTotals:
    """Daily totals of some households on days and their neighbours, shape (households, days, 3) [Wh].

    `counted_wh` is clamped, a missing day filled in; `doubled_wh` the same with each reading counted twice;
    `unclamped_wh` is not clamped.
    """

    counted_wh: Ints
    doubled_wh: Ints
    unclamped_wh: Ints

    @classmethod
    def of(cls, readings_wh: Ints, series: Mean | Distribution, states: RepresentativeValues | None) -> DayTotals:
        """Return the totals of readings of shape (households, days, 3, half-hours), -1 for a missing one."""
        is_there = readings_wh >= 0
        usable = is_there.sum(axis=-1) >= max(1, SLOTS - series.max_missing)

        def totals(factor: int) -> Ints:
            values = np.where(is_there, factor * readings_wh, 0)
            if states is None:
                return np.asarray(values.sum(axis=-1))
            if states.step == "day":
                return state_values(values.sum(axis=-1), states.edges_wh)
            return np.asarray(np.where(is_there, state_values(values, states.edges_wh), 0).sum(axis=-1))

        def filled(values: Ints) -> Ints:
            return np.where(usable, values, series.missing_wh)

        single, above_wh = totals(1), _above_wh(series)
        return cls(
            filled(np.clip(single, above_wh, series.clamp_wh) - above_wh),
            filled(np.clip(totals(2), above_wh, series.clamp_wh) - above_wh),
            filled(np.maximum(single, above_wh) - above_wh),
        )


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
        size = worlds.datasets.households_per_group * (np.array(days) < BIT_DAYS)[:, None, None]

        def values_of(
            totals: str, *, near: int = 1, group: Ints = group_bits, household: Ints = household_bits
        ) -> Ints:
            single, worlds_wh = (getattr(of, totals)[:, :, near] for of in (varying, alternating))
            by_world = cell_values(series, worlds_wh).swapaxes(0, 1)
            values = cell_values(series, single).swapaxes(0, 1).copy()
            values[:, varying_groups:] += by_world[:, household] + size * by_world[:, group]
            return values

        zeros = np.zeros_like(group_bits)
        values = values_of("counted_wh")
        shifts = (
            cell_values(series, varying.counted_wh[:, :, 1]).swapaxes(0, 1),
            values_of("doubled_wh") - values,
            values_of("unclamped_wh") - values,
            -values,
            values_of("counted_wh", near=0) - values,
            values_of("counted_wh", near=2) - values,
        )
        return cls(
            tuple(days),
            values,
            (values_of("counted_wh", group=zeros), values_of("counted_wh", group=zeros + 1)),
            (values_of("counted_wh", household=zeros), values_of("counted_wh", household=zeros + 1)),
            dict(zip((*FAULTS_OF_SUMS, *_OTHER_FAULTS), shifts, strict=True)),
        )


def state_values(energy_wh: Ints, edges_wh: tuple[int, ...]) -> Ints:
    """Return the middle of the state of each energy; the last state is as wide as the one before it.

    >>> state_values(np.array([0, 99, 100, 5000]), (100, 300)).tolist()
    [50, 50, 200, 400]
    """
    ends = [0, *edges_wh]
    ends.append(2 * ends[-1] - ends[-2])
    middles = np.array([(low + high) // 2 for low, high in pairwise(ends)], np.int64)
    return np.asarray(middles[np.searchsorted(np.array(edges_wh), energy_wh, side="right")])


def cell_values(series: AnySeries, totals_wh: Ints) -> Ints:
    """Return the contribution of each total to each cell of a series, shape (..., cells)."""
    if not isinstance(series, Distribution):
        return totals_wh[..., None]
    edges = [int(1000 * edge) for edge in series.bins_kwh]
    if series.form == "cumulative":
        return np.stack([totals_wh < edge for edge in edges[1:-1]], axis=-1).astype(np.int64)
    in_bin = [(low <= totals_wh) & (totals_wh < high) for low, high in pairwise(edges)]
    in_bin[-1] = totals_wh >= edges[-2]
    return np.stack(in_bin, axis=-1).astype(np.int64)


def sensitivity_of(series: AnySeries) -> int:
    """Return the L1 sensitivity of a series to one household's day [Wh, or households]."""
    series = use_of(series)
    if isinstance(series, Mean):
        return series.clamp_wh - _above_wh(series)
    return len(series.bins_kwh) - 2 if series.form == "cumulative" else 2


def use_of(series: AnySeries) -> Mean | Distribution:
    """Return a series of daily totals.

    Raises:
        InputError: the audit does not cover its statistic.
    """
    if series.covers_periods:
        raise InputError("[series] every: rows of weeks, months and years are not audited; audit them as rows of days")
    if isinstance(series, Mean | Distribution):
        return series
    raise InputError(f'[series] statistic = "{series.statistic}" is not audited; leave it out of the audited run file')


def _above_wh(series: AnySeries) -> int:
    """Return the energy above which a household's day counts [Wh]."""
    return int(1000 * series.above_kwh) if isinstance(series, Layer) else 0


def _middles_wh(run: RunFile) -> Floats:
    """Return half of the lowest clamp; with layers, the middle of each layer, the lowest first [Wh]."""
    lowest = min(use_of(series).clamp_wh for series in run.series.values())
    layers = [series for series in run.series.values() if isinstance(series, Layer)]
    return np.array([lowest / 2, *((_above_wh(layer) + layer.clamp_wh) / 2 for layer in layers)])


def _readings_table(households: list[str], energy_wh: Ints) -> pa.Table:
    """Return half-hourly readings with interval-end timestamps; energies of shape (households, days, half-hours)."""
    days = energy_wh.shape[1]
    timestamps = pa.array(list(_timestamps(days)))
    household, slot = np.nonzero(energy_wh.reshape(len(households), days * SLOTS) >= 0)
    return pa.table(
        {
            "LCLid": pa.array(households, pa.string()).take(pa.array(household)),
            "tstp": timestamps.take(pa.array(slot)),
            "energy(kWh/hh)": energy_wh.reshape(-1)[household * days * SLOTS + slot] / 1000,
        }
    )


def _timestamps(days: int) -> Iterator[str]:
    first = datetime(FIRST_DAY.year, FIRST_DAY.month, FIRST_DAY.day, tzinfo=UTC)
    for i in range(SLOTS * days):
        yield f"{first + timedelta(minutes=30 * (i + 1)):%Y-%m-%d %H:%M:%S}"
