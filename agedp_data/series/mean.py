"""[series.NAME] with statistic = "mean": the mean use of the households' days, or of weeks, months and years."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, TypeGuard

from agedp_data.parameters import (
    LATER,
)
from agedp_data.series.mean_tables import AVERAGES, AVERAGES_BY, CONSISTENT, PERIOD_RELEASES
from agedp_data.series.periods import Every
from agedp_data.series.result_table import ResultTable
from agedp_data.series.sensitivity import Change, sum_sensitivity
from agedp_data.series.series_terms import Counted, EnergySeries, HouseholdDays


class Mean(EnergySeries):
    """Mean of the households' days: one exact sum per group, to which noise is added.

    The published mean is the noisy sum, divided by the number of households on the roster, which is public.
    """

    KIND = "mean"
    PLURAL = "averages"
    TABLES: ClassVar[tuple[ResultTable, ...]] = (AVERAGES, PERIOD_RELEASES)
    DERIVED = (CONSISTENT, *AVERAGES_BY.values())
    unit = "kWh"
    true_values = "means"
    stated = ""

    statistic: Literal["mean"]
    every: Annotated[Literal["day", "week", "month", "year"], LATER] = "day"
    """Days of a row: each day, or the days of a calendar week from Monday, month or year together. A row of a period
    costs what one of its days has for this series, counts in every one of them, and has the noise of all of them.
    """

    @property
    def period(self) -> Every:
        """Return what a row covers: a day, week, month or year."""
        return self.every

    @property
    def above_wh(self) -> int:
        """Return the energy above which a household's day counts, in whole watt-hours."""
        return 0

    @property
    def width_wh(self) -> int:
        """Return the most that a household's day counts, in whole watt-hours."""
        return self.clamp_wh - self.above_wh

    @property
    def quantity(self) -> tuple[int, int, int, int, str]:
        """Return what counts as a household's day; means of one quantity on one day rest on the same numbers."""
        return self.above_wh, self.clamp_wh, self.missing_wh, self.max_missing, self.values

    def sensitivity(self, change: Change) -> int:
        """Return the L1 sensitivity of the sum to a change of one household's day [Wh]: at most the width.

        A household is in one group, so this is also the sensitivity of the vector of all groups.
        """
        return sum_sensitivity(self.counted_change(change), clamp=self.width_wh)

    def most(self, minutes: int) -> int:
        """Return the most that a household's day adds to the sum [Wh]."""
        del minutes
        return self.width_wh

    def counted(self, days: HouseholdDays) -> Counted:
        """Return the counted energy of each day [Wh].

        Raises:
            ChainError: an energy is outside the range of a counted day.
        """
        return self.clamped_days(days, self.width_wh)


def is_daily_mean(series: object) -> TypeGuard[Mean]:
    """Return whether a series is a mean, or a layer of one, with a row for each day.

    >>> is_daily_mean(Mean(statistic="mean", clamp_kwh=50, every="month"))
    False
    """
    return isinstance(series, Mean) and not series.covers_periods
