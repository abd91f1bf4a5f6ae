"""Row of a release, planned or drawn -> the noise of each of its groups, as its published table has it.

`agedp plan`, `agedp.plan` and `agedp run` have these figures from here, so they equal `noise_sd_kwh` of the tables.

Example: a month of 23 weekdays and 8 days of weekends, drawn with a standard deviation of 8,600 kWh for 100 households,
has noise of 8,600 / (2 x 2,300) = 1.87 kWh in a half-hour of weekdays and of 8,600 / (5 x 800) = 2.15 kWh of weekends.

Decisions:

* Of rows that cover several days, `households` is the mean number of the days, rounded down, to be compared with the
  households of single days. The noise is that of household-days, by which the published sums are divided.
* Of a profile of months the noise is that of a half-hour which each day of its kind has once. The table has more where
  the clock skips a half-hour, and less where it occurs twice.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import date
from typing import Final, NamedTuple

from agedp_data import mechanisms
from agedp_data.ledger import ReleaseRecord
from agedp_data.series.coverage import Coverage
from agedp_data.series.day_kinds import day_kind
from agedp_data.series.monthly_profile import WEIGHTS
from agedp_data.series.periods import days_of
from agedp_data.series.profile import Profile
from agedp_data.series.series import AnySeries, Distribution

_WH_PER_KWH: Final = 1000.0
_HALF_HOUR: Final = 30


class GroupNoise(NamedTuple):
    """A group of a row, its number of households, and the standard deviation of the noise of each of its values.

    `noise_sd` is in kWh per household, of counts in households; NaN if nothing is drawn. `day_kind` is "weekday" or
    "weekend" of a profile of months, else "".
    """

    group: str
    households: int
    noise_sd: float
    day_kind: str = ""


def group_noises(row: ReleaseRecord, series: AnySeries) -> tuple[GroupNoise, ...]:
    """Return the groups of a row with their noise; of a profile of months, the kinds of day of each group."""
    deviation = mechanisms.standard_deviation(row.scale) if row.state == "released" else math.nan
    if isinstance(series, Profile) and series.covers_periods:
        return tuple(_kinds_of_months(row, series, deviation))
    days = len(days_of(*series.covered_days(date.fromisoformat(row.day))))
    counts = series.by_group(row.cells, row.households).items()
    if isinstance(series, Coverage | Distribution):
        return tuple(GroupNoise(group, households, deviation) for group, households in counts)
    return tuple(
        GroupNoise(group, number // days, deviation / (_WH_PER_KWH * number) if number else math.nan)
        for group, number in counts
    )


def _kinds_of_months(row: ReleaseRecord, series: Profile, deviation: float) -> Iterator[GroupNoise]:
    days = [day_kind(day) for day in days_of(*series.covered_days(date.fromisoformat(row.day)))]
    parts = {series.place(cell)[0]: number for cell, number in zip(row.cells, row.households, strict=True)}
    for part, household_days in parts.items():
        group, kind = series.split_part(part)
        wh_per_kwh = _WH_PER_KWH * WEIGHTS[kind] * household_days
        noise = deviation / wh_per_kwh if household_days else math.nan
        yield GroupNoise(group, household_days // days.count(kind), noise, kind)


def smallest_group(row: ReleaseRecord, series: AnySeries) -> tuple[GroupNoise, ...]:
    """Return the group of a row with the fewest households, one entry for each kind of day; () without a group."""
    noises = group_noises(row, series)
    if not noises:
        return ()
    smallest = min(noises, key=lambda of: (of.households, of.group)).group
    return tuple(of for of in noises if of.group == smallest)


def value_range(series: AnySeries, households: int, interval_minutes: int) -> float:
    """Return the most that a published value can be without noise [unit of its noise].

    It is the clamp of a mean, or the width of its layer, and that of a half-hour or hour of a profile [kWh]; of a count
    all households.
    """
    if isinstance(series, Coverage | Distribution):
        return float(households)
    if isinstance(series, Profile):
        return series.half_hour_clamp_wh * max(interval_minutes, _HALF_HOUR) / _HALF_HOUR / _WH_PER_KWH
    return series.width_wh / _WH_PER_KWH
