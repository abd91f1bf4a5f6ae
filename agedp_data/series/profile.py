"""[series.NAME] with statistic = "profile": the mean use of each half-hour of a day, one vector a day and group.

A household's day counts as its half-hours under two public clamps (`load_profile`). The published mean of a half-hour
is its noisy sum, divided by the number of households on the roster, which is public.

Decisions:

* A cell is named by the clock at which it begins, "18:30", or "Std 18:30" for a group.
* A day has the cells that its clock shows: 46 on the day on which the clock goes forward by an hour, 48 on any other.
  Hourly readings have 24 cells, or 23.
* The sensitivity is that of the days with most half-hours. All days of a series have the same noise.
* With `every = "weekday-month"` a row covers a month (`monthly_profile`). It has cells for weekdays and for weekends,
  "weekday 18:30" or "Std weekend 18:30", each kind with its own household-days.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Annotated, Final, Literal, Self

import numpy as np
from pydantic import model_validator

from agedp_data.amendment_rules import EITHER
from agedp_data.datasets.layout import slot_step
from agedp_data.datasets.validation import SLOTS
from agedp_data.parameters import LATER, PositiveKwh, watt_hours, wrong
from agedp_data.series.day_kinds import DAY_KINDS, Kind, day_kind
from agedp_data.series.load_profile import default_profile, profile_sensitivity, reduced_profile
from agedp_data.series.monthly_profile import WEIGHTS, month_sensitivity
from agedp_data.series.periods import Every
from agedp_data.series.profile_tables import PROFILE_BY_MONTH, PROFILE_RELEASES, PROFILES
from agedp_data.series.sensitivity import Change
from agedp_data.series.series_terms import Counted, EnergySeries, HouseholdDays, Place, Wh

_LEAST_SLOTS: Final = 46
"""Half-hours of a day on which the clock goes forward by an hour."""


class Profile(EnergySeries):
    """Mean use of each half-hour: an exact vector per group and day, to which noise is added in each cell."""

    KIND = "profile"
    PLURAL = "load profiles"
    TABLES = (PROFILES, PROFILE_RELEASES)
    DERIVED = (PROFILE_BY_MONTH,)
    unit = "kWh"
    reads_half_hours = True
    stated = ""
    cell_words = ("half-hours", "clamps")

    statistic: Literal["profile"]
    half_hour_clamp_kwh: Annotated[PositiveKwh, EITHER]
    """Upper bound on a household's half-hour; a larger one counts as this, then the day is reduced in proportion to
    `clamp_kwh`. Public, never derived from the data. Of hourly readings an hour has twice this bound.
    """
    every: Annotated[Literal["day", "weekday-month"], LATER] = "day"
    """Days of a row: each day, or the weekdays and the weekends of a calendar month, each kind with a profile of its
    own. A row of a month costs what one of its days has for this series, counts in every one of them, and has the noise
    of all of them. Public holidays count by their day of the week.
    """

    @property
    def period(self) -> Every:
        """Return what a row covers: a day or month."""
        return self.every

    def row_sensitivity(self, day: date) -> int:
        """Return the L1 sensitivity of the row named by a day to any change of all days of a household in it [Wh].

        A row of a month is weighted by kind of day, see `monthly_profile`.
        """
        sensitivity = self.sensitivity("replacement")
        return (
            month_sensitivity(*self.covered_days(day), day_sensitivity=sensitivity)
            if self.covers_periods
            else sensitivity
        )

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Return the kinds of day that a row of a month keeps apart."""
        return DAY_KINDS if self.covers_periods else ("",)

    def kind_of(self, day: date) -> Kind:
        """Return the kind of a day of a month."""
        return day_kind(day) if self.covers_periods else ""

    def weight(self, kind: Kind) -> int:
        """Return how often a day of a kind counts in the row of a month; see `monthly_profile`."""
        return WEIGHTS[kind] if kind else 1

    @property
    def half_hour_clamp_wh(self) -> int:
        """Return the public upper bound on a household's half-hour, in whole watt-hours."""
        return watt_hours(self.half_hour_clamp_kwh)

    @property
    def quantity(self) -> tuple[int, int, int, int, str]:
        """Return what counts as a household's day; profiles of one quantity add up over days."""
        return self.half_hour_clamp_wh, self.clamp_wh, self.missing_wh, self.max_missing, self.values

    def sensitivity(self, change: Change) -> int:
        """Return the L1 sensitivity of all cells together to a change of one household's day [Wh].

        Energy may move between half-hours, so it is twice the day's clamp, or 48 half-hours at theirs if that is less.
        A household is in one group, so this is also the sensitivity of the vector of all groups.
        """
        return profile_sensitivity(
            self.counted_change(change),
            slots=SLOTS,
            half_hour_clamp=self.half_hour_clamp_wh,
            day_clamp=self.clamp_wh,
        )

    def most(self, minutes: int) -> int:
        """Return the most that a household's day adds to one cell [Wh]: a half-hour at its clamp, an hour at twice."""
        return self.half_hour_clamp_wh * slot_step(minutes)

    def largest_move(self, change: Change, *, minutes: int) -> int:
        """Return the most that one cell changes [Wh]; any change of a day may move a cell from 0 to its clamp."""
        return min(self.clamp_wh, super().largest_move(change, minutes=minutes))

    def counted(self, days: HouseholdDays) -> Counted:
        """Return the half-hours of each day under both clamps [Wh]; one without a reading counts as 0."""
        counted_wh = reduced_profile(
            days.energy_wh, half_hour_clamp_wh=self.most(days.minutes), day_clamp_wh=self.clamp_wh
        )
        return Counted(counted_wh, np.asarray((counted_wh < days.energy_wh).any(axis=1)))

    def missing(self, slots: Sequence[int], *, minutes: int) -> Wh:
        """Return the vector that counts for a household-day without enough readings [Wh]: `missing_wh`, spread evenly.

        >>> terms = {"statistic": "profile", "clamp_kwh": 50, "half_hour_clamp_kwh": 4, "missing_kwh": 1}
        >>> Profile.model_validate(terms).missing([0, 1, 2], minutes=30).tolist()
        [333, 333, 334]
        """
        return default_profile(
            self.missing_wh, slots=len(slots), half_hour_clamp_wh=self.most(minutes), day_clamp_wh=self.clamp_wh
        )

    @property
    def names(self) -> Mapping[str, Place]:
        """Return the half-hours of a day, slots 0 to 47, by the clock at which they begin.

        >>> terms = {"statistic": "profile", "clamp_kwh": 50, "half_hour_clamp_kwh": 4, "by": "tariff"}
        >>> from agedp_data.series.series_terms import Cell
        >>> profile = Profile.model_validate(terms)
        >>> profile.write_cells(profile.cells([Cell("Std")], slots=[0, 37]))
        ('Std 00:00', 'Std 18:30')
        """
        return _SLOTS

    def places(self, slots: Sequence[int] = ()) -> tuple[Place, ...]:
        """Return the half-hours of a row's days."""
        return tuple(slots)

    def is_possible(self, exact: Wh, households: int) -> bool:
        """Return whether this number of households can have these sums of half-hours: all are within both clamps.

        Of months it is the number of household-days of one kind, and the sums are weighted.
        """
        step = 2 if exact.size <= SLOTS // 2 else 1  # of hourly readings a cell is an hour
        times = households * (max(WEIGHTS.values()) if self.covers_periods else 1)
        is_each_possible = bool((exact >= 0).all() and (exact <= times * step * self.half_hour_clamp_wh).all())
        return is_each_possible and int(exact.sum()) <= times * self.clamp_wh

    @model_validator(mode="after")
    def _clamps_agree(self) -> Self:
        if self.half_hour_clamp_kwh > self.clamp_kwh:
            raise wrong("must not exceed clamp_kwh", "half_hour_clamp_kwh")
        if self.missing_kwh > _LEAST_SLOTS * self.half_hour_clamp_kwh:
            raise wrong(f"must not exceed {_LEAST_SLOTS} times half_hour_clamp_kwh: it is spread evenly", "missing_kwh")
        return self


def clock_of(slot: int) -> str:
    """Return the time of day at which a half-hour begins.

    >>> clock_of(0), clock_of(37)
    ('00:00', '18:30')
    """
    return f"{slot // 2:02d}:{slot % 2 * 3}0"


_SLOTS: Final[Mapping[str, int]] = {clock_of(slot): slot for slot in range(SLOTS)}
