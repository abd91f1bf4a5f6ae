"""Row of a release, planned or drawn -> the noise of each of its groups, as its published table has it.

`agedp plan`, `agedp.plan` and `agedp run` have these figures from here, so they equal `noise_sd_kwh` of the tables.

Example: a month of 23 weekdays and 8 days of weekends, drawn with a standard deviation of 8,600 kWh for 100 households,
has noise of 8,600 / (2 x 2,300) = 1.87 kWh in a half-hour of weekdays and of 8,600 / (5 x 800) = 2.15 kWh of weekends.

Decisions:

* Of rows that cover several days, `households` is the mean number of the days, rounded down, to be compared with the
  households of single days. The noise is that of household-days, by which the published sums are divided.
* Layer 1 of `clamp_kwh = [10, 40]` is no mean of the households: it has little noise and leaves out what a day exceeds
  10 kWh by. The mean up to 40 kWh is the sum of the layers. Their noise is independent, so its variances add.
* Of a profile of months the noise is that of a half-hour which each day of its kind has once. The table has more where
  the clock skips a half-hour, and less where it occurs twice.
* Planned noise is judged against the day-to-day change of the mean: the estimate of `agedp.signal_against_noise` for
  the smallest group, or 1 kWh. An estimate of 0.7 kWh with a standard error of 0.1 makes noise of 0.4 kWh usable, of
  1 kWh unusable, and of 0.6 kWh uncertain.
* Noise is USABLE if it is below the estimate by two standard errors, UNUSABLE if it is above it by two, else NOT
  CERTAIN. Without an estimate it is compared with the assumed 1 kWh, and one of the first two.
* The number of households or the bound that a plan advises brings the noise down to one change: the estimate if it
  is at least two standard errors above 0. Below that it may be nothing but noise. Then it is 1 kWh, or the estimate
  plus two standard errors where this is less: a larger change would contradict the released rows.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Final, NamedTuple

from agedp.signal_against_noise import ASSUMED_CHANGE_KWH, smallest_group_signal
from agedp_data import mechanisms
from agedp_data.ledger import ReleaseRecord
from agedp_data.series.series import AnySeries
from agedp_data.series.series_terms import days_of
from agedp_data.smoothing.signal_estimate import SignalEstimate, Verdict

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
    noises = []
    for part, number in series.by_part(row.cells, row.households).items():  # households, or household-days
        noise = deviation
        if series.unit != "households":
            noise = deviation / (_WH_PER_KWH * series.weight(part.kind) * number) if number else math.nan
        noises.append(GroupNoise(part.group, number // days[part.kind], noise, part.kind))
    return tuple(noises)


def smallest_group(row: ReleaseRecord, series: AnySeries) -> tuple[GroupNoise, ...]:
    """Return the group of a row with the fewest households, one entry for each kind of day; () without a group."""
    noises = group_noises(row, series)
    if not noises:
        return ()
    smallest = min(noises, key=lambda of: (of.households, of.group)).group
    return tuple(of for of in noises if of.group == smallest)


def noise_deviation(row: ReleaseRecord, series: AnySeries) -> tuple[float, str]:
    """Return the standard deviation of a planned day's noise, and its unit.

    For a mean, or each half-hour of a profile: that of its smallest group [kWh]. For counts: that of each [households].
    """
    sd = max(of.noise_sd for of in group_noises(row, series))
    return sd, "kwh" if series.unit == "kWh" else "households"


def root_mean_square(values: Sequence[float]) -> float:
    """Return the root of the mean of the squares, as which noise of several days or layers is stated.

    >>> root_mean_square([1, 7])
    5.0
    """
    return math.sqrt(sum(value**2 for value in values) / len(values))


@dataclass(frozen=True, slots=True)
class ChangeYardstick:
    """Change that planned noise is compared with [kWh per household], and its `estimate`, None without enough days."""

    kwh: float = ASSUMED_CHANGE_KWH
    estimate: SignalEstimate | None = None

    @property
    def is_estimated(self) -> bool:
        """Return whether the change is the estimate; otherwise it is assumed."""
        return self.estimate is not None and self.estimate.is_significant

    def verdict(self, noise_kwh: float) -> Verdict:
        """Return whether days of this noise can be told apart: "visible" is usable, "hidden" unusable."""
        if self.estimate is not None:
            return self.estimate.verdict(noise_kwh)
        return "visible" if noise_kwh <= self.kwh else "hidden"

    @property
    def facts(self) -> dict[str, Any]:
        """Return the change as JSON; without a standard error it is assumed."""
        estimate = self.estimate if self.is_estimated else None
        source = "published series" if estimate else "yardstick"
        error = estimate and estimate.standard_error
        return {"change_kwh": self.kwh, "change_error_kwh": error, "change_from": source}


def change_yardstick(rows: Iterable[ReleaseRecord], series: str) -> ChangeYardstick:
    """Return the change that noise of a series is compared with, from the released rows of all means."""
    signal = smallest_group_signal(rows, series)
    estimate = None if signal is None else signal.daily.estimate
    if estimate is None:
        return ChangeYardstick()
    if estimate.is_significant:
        return ChangeYardstick(estimate.change, estimate)
    highest = estimate.change + 2 * estimate.standard_error
    return ChangeYardstick(min(ASSUMED_CHANGE_KWH, highest) or ASSUMED_CHANGE_KWH, estimate)
