"""Part of the confidential report on clamped households, and on the effect of the clamp on a mean. Confidential.

Both are computed anew by every run from the newest months of the store that contain released days and are not deleted
yet, one household bucket after the other. They inform the choice of a clamp; the clamp itself is public and is never
computed from the data.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Final

import numpy as np

from agedp.reports.axes import format_number
from agedp.reports.html import paragraph, table
from agedp.reports.report_data import InternalSources
from agedp.store.bucketed_roster import write_bucketed_roster
from agedp.store.month_matrix import load_month_matrix
from agedp_data.roster import Roster
from agedp_data.series.layered_mean import is_upper
from agedp_data.series.series_terms import EnergySeries

MAX_MONTHS: Final = 13
_MAX_SHOWN: Final = 20


@dataclass(frozen=True, slots=True)
class ClampedHousehold:
    """A clamped household: number of days above the clamp, and its largest daily total [kWh]."""

    household: str
    days_above: int
    largest_kwh: float


@dataclass(frozen=True, slots=True)
class ClampEffect:
    """Effect of a series' clamp: the number of clamped households, those with most days, and the reduction of the mean.

    `cut_kwh` is the reduction of a daily mean by the clamp, averaged over `days` days [kWh per household].
    """

    series: str
    clamp_kwh: float
    days: int
    clamped: int
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
        days_by_month = {month: [day for day in days if f"{day:%Y-%m}" == month] for month in stored}
        uses = {name: series for name, series in sources.run.series.items() if isinstance(series, EnergySeries)}
        counts = {name: _ClampCounts() for name in uses}
        roster = write_bucketed_roster(sources.paths.folder, sources.roster, sources.store.buckets)
        for bucket in range(sources.store.buckets if days_by_month else 0):
            _count_bucket(sources, (bucket, roster.bucket(bucket)), days_by_month, uses, counts)
    return [
        series_counts.effect(name, uses[name].clamp_wh / 1000.0)
        for name, series_counts in counts.items()
        if series_counts.cut_wh
    ]


@dataclass(slots=True)
class _ClampCounts:
    """Clamped households, those with most days, and by day what the clamp cuts off [Wh] and the households."""

    clamped: int = 0
    households: list[ClampedHousehold] = field(default_factory=list)
    cut_wh: dict[date, int] = field(default_factory=lambda: defaultdict(int))
    members: dict[date, int] = field(default_factory=lambda: defaultdict(int))

    def effect(self, series: str, clamp_kwh: float) -> ClampEffect:
        cut_kwh = 0.0
        for day, cut_wh in self.cut_wh.items():
            cut_kwh += float(cut_wh) / (1000.0 * max(self.members[day], 1))
        days = len(self.cut_wh)
        return ClampEffect(series, clamp_kwh, days, self.clamped, tuple(self.households), cut_kwh / days)


def _count_bucket(
    sources: InternalSources,
    numbered_roster: tuple[int, Roster],
    days_by_month: Mapping[str, Sequence[date]],
    uses: Mapping[str, EnergySeries],
    counts_by_series: Mapping[str, _ClampCounts],
) -> None:
    bucket, roster = numbered_roster
    number = {name: np.zeros(len(roster.ids), np.int64) for name in counts_by_series}
    largest = {name: np.zeros(len(roster.ids), np.int64) for name in counts_by_series}
    states = sources.run.counted_states
    for month, days in days_by_month.items():
        matrix = load_month_matrix(
            sources.store, sources.delivery, roster, month, bucket=bucket, states=states, days=days
        )
        for day in days:
            codes = np.concatenate([np.zeros(0, np.int64), *roster.members(day, None).values()])
            for name, counts in counts_by_series.items():
                energy_wh, clamp_wh = matrix.energy_of(uses[name])[codes, day.day - 1], uses[name].clamp_wh
                number[name][codes] += energy_wh > clamp_wh
                largest[name][codes] = np.maximum(largest[name][codes], energy_wh)
                counts.cut_wh[day] += int(np.maximum(energy_wh - clamp_wh, 0).sum())
                counts.members[day] += len(codes)
    for name, counts in counts_by_series.items():
        clamped = np.flatnonzero(number[name]).tolist()
        households = [
            ClampedHousehold(roster.ids[code], int(number[name][code]), float(largest[name][code]) / 1000.0)
            for code in clamped
        ]
        counts.clamped += len(clamped)
        counts.households = heapq.nsmallest(
            _MAX_SHOWN, [*counts.households, *households], key=lambda one: (-one.days_above, one.household)
        )


def clamp_parts(effects: Sequence[ClampEffect]) -> Iterator[str]:
    """Yield the table of clamped households of each series."""
    for effect in effects:
        description = (
            f"{effect.series}, clamp {format_number(effect.clamp_kwh)} kWh, "
            f"{effect.days:,} days with readings in the store"
        )
        if not effect.clamped:
            yield paragraph(f"No household was above the clamp: {description}.")
            continue
        rows = [
            (household.household, f"{household.days_above:,}", format_number(household.largest_kwh))
            for household in effect.clamped_households
        ]
        shown_text = f"; the first {_MAX_SHOWN} of {effect.clamped:,}" if effect.clamped > _MAX_SHOWN else ""
        columns = ("household", "days above", "largest day, kWh")
        yield table(f"Clamped households: {description}{shown_text}", columns, rows)
        lowered = f"The clamp lowers {_lowered(effect.series)} by {format_number(effect.cut_kwh)} kWh"
        yield paragraph(f"{lowered} per household on average.", "soft")


def _lowered(series: str) -> str:
    """Return what the clamp of a series lowers: of an upper layer, the sum of the layers up to it."""
    return f"the sum of the layers up to {series}" if is_upper(series) else "a daily mean"
