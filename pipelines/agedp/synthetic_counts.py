"""What synthetic households of an audit add to a series: counted from the rules, not by the code that is audited.

Decisions:

* `_RULES` has an independent count of each statistic. One that is not in it counts by its own `counted`: its sums,
  noise and tables are audited, but not what a day counts.
* A profile is clamped and reduced here by its equation. A missing day is the public energy, spread evenly.
* Coverage counts a household as 1 if it has a usable day. Readings that are counted twice do not change it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Final, Literal

import numpy as np

from agedp_data.datasets.validation import SLOTS, Flags, Ints
from agedp_data.markov.states import RepresentativeValues
from agedp_data.series.series import AnySeries
from agedp_data.series.series_terms import HouseholdDays

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
        once, twice = (
            np.where(usable, self._counted(energy_wh).reshape(*usable.shape[:-1], -1), missing)
            for energy_wh in (single, double)
        )
        return DayTotals(once, twice, once)

    def _counted(self, energy_wh: Ints) -> Ints:
        days: HouseholdDays = HouseholdDays(energy_wh.reshape(-1, energy_wh.shape[-1]))
        return np.asarray(self.series.counted(days).values)

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
        return DayTotals(
            np.where(usable, np.clip(totals, above_wh, clamp_wh) - above_wh, missing_wh),
            np.where(usable, np.clip(doubled, above_wh, clamp_wh) - above_wh, missing_wh),
            np.where(usable, np.maximum(totals, above_wh) - above_wh, missing_wh),
        )

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
        return DayTotals(
            *(np.where(usable, of, missing) for of in (self._reduced(single), self._reduced(double), single))
        )

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


_RULES: Final[Mapping[str, type[Rules]]] = {
    "mean": _Sums,
    "distribution": _Ranges,
    "profile": _HalfHours,
    "coverage": _Usable,
}


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
