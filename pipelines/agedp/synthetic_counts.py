"""What synthetic households of an audit add to a series: counted from the rules, not by the code that is audited.

Decisions:

* A profile is clamped and reduced here by its equation. A missing day is the public energy, spread evenly.
* Coverage counts a household as 1 if it has a usable day. Readings that are counted twice do not change it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from agedp_data.datasets.validation import SLOTS, Flags, Ints
from agedp_data.markov.states import RepresentativeValues
from agedp_data.series.coverage import Coverage
from agedp_data.series.profile import Profile
from agedp_data.series.series import AnySeries, Distribution, Layer, Mean


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

    @classmethod
    def of(cls, readings_wh: Ints, series: AnySeries, states: RepresentativeValues | None) -> DayTotals:
        """Return the parts of readings of shape (households, days, 3, half-hours), -1 for a missing one."""
        is_there = readings_wh >= 0
        usable = is_there.sum(axis=-1, keepdims=True) >= max(1, SLOTS - series.max_missing)
        if isinstance(series, Coverage):
            one = usable.astype(np.int64)
            return cls(one, one, one)
        single, double = (_represented(readings_wh * factor, is_there, states) for factor in (1, 2))
        if isinstance(series, Profile):
            return cls(
                _filled(series, usable, _reduced(series, single)),
                _filled(series, usable, _reduced(series, double)),
                _filled(series, usable, single),
            )
        above_wh = above_of(series)
        totals, doubled = (_daily_total(values, states) for values in (single, double))
        return cls(
            np.where(usable, np.clip(totals, above_wh, series.clamp_wh) - above_wh, series.missing_wh),
            np.where(usable, np.clip(doubled, above_wh, series.clamp_wh) - above_wh, series.missing_wh),
            np.where(usable, np.maximum(totals, above_wh) - above_wh, series.missing_wh),
        )


def _represented(half_hours_wh: Ints, is_there: Flags, states: RepresentativeValues | None) -> Ints:
    """Return half-hours as they count: the middles of their states, or as they are; a missing one is 0."""
    if states is not None and states.step == "half-hour":
        half_hours_wh = state_values(half_hours_wh, states.edges_wh)
    return np.asarray(np.where(is_there, half_hours_wh, 0))


def _daily_total(half_hours_wh: Ints, states: RepresentativeValues | None) -> Ints:
    totals: Ints = half_hours_wh.sum(axis=-1, keepdims=True)
    return totals if states is None or states.step == "half-hour" else state_values(totals, states.edges_wh)


def _reduced(series: Profile, half_hours_wh: Ints) -> Ints:
    """Return half-hours under both clamps: a day above its clamp keeps its shape, rounded down."""
    clipped = np.minimum(half_hours_wh, series.half_hour_clamp_wh)
    day_wh = clipped.sum(axis=-1, keepdims=True)
    return np.asarray(np.where(day_wh > series.clamp_wh, clipped * series.clamp_wh // np.maximum(day_wh, 1), clipped))


def _filled(series: Profile, usable: Flags, half_hours_wh: Ints) -> Ints:
    ends = np.arange(SLOTS + 1) * series.missing_wh // SLOTS
    return np.where(usable, half_hours_wh, np.diff(ends))


def state_values(energy_wh: Ints, edges_wh: tuple[int, ...]) -> Ints:
    """Return the middle of the state of each energy; the last state is as wide as the one before it.

    >>> state_values(np.array([0, 99, 100, 5000]), (100, 300)).tolist()
    [50, 50, 200, 400]
    """
    ends = [0, *edges_wh]
    ends.append(2 * ends[-1] - ends[-2])
    middles = np.array([(low + high) // 2 for low, high in pairwise(ends)], np.int64)
    return np.asarray(middles[np.searchsorted(np.array(edges_wh), energy_wh, side="right")])


def cell_values(series: AnySeries, parts_wh: Ints) -> Ints:
    """Return the contribution of each day to each cell of a series, shape (..., cells), from its parts."""
    if not isinstance(series, Distribution):
        return parts_wh
    totals_wh = parts_wh[..., 0]
    edges = [int(1000 * edge) for edge in series.bins_kwh]
    if series.form == "cumulative":
        return np.stack([totals_wh < edge for edge in edges[1:-1]], axis=-1).astype(np.int64)
    in_bin = [(low <= totals_wh) & (totals_wh < high) for low, high in pairwise(edges)]
    in_bin[-1] = totals_wh >= edges[-2]
    return np.stack(in_bin, axis=-1).astype(np.int64)


def sensitivity_of(series: AnySeries) -> int:
    """Return the L1 sensitivity of a series to one household's day [Wh, or households]."""
    if isinstance(series, Coverage):
        return 1
    if isinstance(series, Profile):
        return min(2 * series.clamp_wh, SLOTS * series.half_hour_clamp_wh)
    if isinstance(series, Mean):
        return series.clamp_wh - above_of(series)
    return len(series.bins_kwh) - 2 if series.form == "cumulative" else 2


def above_of(series: AnySeries) -> int:
    """Return the energy above which a household's day counts [Wh]."""
    return int(1000 * series.above_kwh) if isinstance(series, Layer) else 0
