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
from collections import Counter
from datetime import date
from typing import Final, NamedTuple

from agedp_data import mechanisms
from agedp_data.ledger import ReleaseRecord
from agedp_data.series.periods import days_of
from agedp_data.series.series import AnySeries
from agedp_data.series.series_terms import Cell

_WH_PER_KWH: Final = 1000.0


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
    days = Counter(map(series.kind_of, days_of(*series.covered_days(date.fromisoformat(row.day)))))
    return tuple(
        GroupNoise(part.group, number // days[part.kind], _noise(series, part, number, deviation), part.kind)
        for part, number in series.by_part(row.cells, row.households).items()
    )


def _noise(series: AnySeries, part: Cell, households: int, deviation: float) -> float:
    """Return the noise of a value of a part with so many households, or household-days."""
    if series.unit == "households":
        return deviation
    return deviation / (_WH_PER_KWH * series.weight(part.kind) * households) if households else math.nan


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
    most = series.most(interval_minutes)
    return float(households * most) if series.unit == "households" else most / _WH_PER_KWH
