"""Readings of released days -> clamped households, and the effect of the clamp on a mean. Confidential.

Computed anew by every run from the newest months of the store that contain released days and are not deleted yet. It
informs the choice of a clamp; the clamp itself is public and is never computed from the data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np

from agedp.reports.internal_sources import InternalSources
from agedp.store.daily_totals import load_month_matrix

MAX_MONTHS = 13


@dataclass(frozen=True, slots=True)
class ClampedHousehold:
    """A clamped household: number of days above the clamp, and its largest daily total [kWh]."""

    household: str
    days_above: int
    largest_kwh: float


@dataclass(frozen=True, slots=True)
class ClampEffect:
    """Effect of a series' clamp: clamped households, most days first, and the reduction of the mean.

    `cut_kwh` is the reduction of a daily mean by the clamp, averaged over `days` days [kWh per household].
    """

    series: str
    clamp_kwh: float
    days: int
    clamped_households: tuple[ClampedHousehold, ...]
    cut_kwh: float


def clamp_effects(sources: InternalSources, days: Sequence[date]) -> list[ClampEffect]:
    """Return the effect of each series' clamp on released days, as far as the store still has their readings."""
    if not days:
        return []
    with sources.store.locked():
        first_month = sources.store.retained_from()
        months = sorted({f"{day:%Y-%m}" for day in days} & set(sources.delivery.months))
        stored = [month for month in months if month >= first_month][-MAX_MONTHS:]
        counts = {name: _ClampCounts.empty(sources) for name in sources.run.series}
        for month in stored:
            _count_month(sources, month, [day for day in days if f"{day:%Y-%m}" == month], counts)
    clamps = {name: series.clamp_wh / 1000.0 for name, series in sources.run.series.items()}
    return [
        series_counts.clamped(name, clamps[name], sources.roster.ids)
        for name, series_counts in counts.items()
        if series_counts.days
    ]


@dataclass(slots=True)
class _ClampCounts:
    number: np.ndarray[tuple[int], np.dtype[np.int64]]
    largest: np.ndarray[tuple[int], np.dtype[np.int64]]
    cut_kwh: float = 0.0
    days: int = 0

    @classmethod
    def empty(cls, sources: InternalSources) -> _ClampCounts:
        size = len(sources.roster.ids)
        return cls(np.zeros(size, np.int64), np.zeros(size, np.int64))

    def clamped(self, series: str, clamp_kwh: float, ids: Sequence[str]) -> ClampEffect:
        codes = sorted(np.flatnonzero(self.number).tolist(), key=lambda code: (-self.number[code], ids[code]))
        clamped_households = tuple(
            ClampedHousehold(ids[code], int(self.number[code]), float(self.largest[code]) / 1000.0) for code in codes
        )
        return ClampEffect(series, clamp_kwh, self.days, clamped_households, self.cut_kwh / self.days)


def _count_month(
    sources: InternalSources, month: str, days: Sequence[date], counts_by_series: Mapping[str, _ClampCounts]
) -> None:
    matrix = load_month_matrix(
        sources.store, sources.delivery, sources.roster, month, states=sources.run.counted_states
    )
    for day in days:
        codes = np.concatenate([np.zeros(0, np.int64), *sources.roster.members(day, None).values()])
        for name, counts in counts_by_series.items():
            energy_wh = matrix.energy_of(sources.run.series[name])[codes, day.day - 1]
            clamp = sources.run.series[name].clamp_wh
            counts.number[codes] += energy_wh > clamp
            counts.largest[codes] = np.maximum(counts.largest[codes], energy_wh)
            counts.cut_kwh += float(np.maximum(energy_wh - clamp, 0).sum()) / (1000.0 * max(len(codes), 1))
            counts.days += 1
