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

import re
from collections.abc import Mapping, Sequence
from datetime import date
from functools import lru_cache
from itertools import groupby
from typing import Annotated, Final, Literal, Self

from pydantic import model_validator

from agedp_data.datasets.layout import slot_step
from agedp_data.datasets.validation import SLOTS
from agedp_data.markov.states import RepresentativeValues
from agedp_data.parameters import LATER, PositiveKwh, watt_hours, wrong
from agedp_data.roster import ALL
from agedp_data.series.day_kinds import DAY_KINDS, DayKind, day_kind
from agedp_data.series.load_profile import ProfileRule, profile_sensitivity
from agedp_data.series.monthly_profile import WEIGHTS, month_sensitivity
from agedp_data.series.periods import period_of
from agedp_data.series.sensitivity import Change
from agedp_data.series.series_terms import EnergySeries, Wh

_CLOCK: Final = re.compile(r"([01][0-9]|2[0-3]):([03])0")
_LEAST_SLOTS: Final = 46
"""Half-hours of a day on which the clock goes forward by an hour."""


class Profile(EnergySeries):
    """Mean use of each half-hour: an exact vector per group and day, to which noise is added in each cell."""

    statistic: Literal["profile"]
    half_hour_clamp_kwh: PositiveKwh
    """Upper bound on a household's half-hour; a larger one counts as this, then the day is reduced in proportion to
    `clamp_kwh`. Public, never derived from the data. Of hourly readings an hour has twice this bound.
    """
    every: Annotated[Literal["day", "weekday-month"], LATER] = "day"
    """Days of a row: each day, or the weekdays and the weekends of a calendar month, each kind with a profile of its
    own. A row of a month costs what one of its days has for this series, counts in every one of them, and has the noise
    of all of them. Public holidays count by their day of the week.
    """

    @property
    def covers_periods(self) -> bool:
        """Return whether a row covers a month."""
        return self.every != "day"

    def covered_days(self, day: date) -> tuple[date, date]:
        """Return the first and last day of the month that contains a day; for daily profiles the day itself."""
        return period_of(day, self.every)

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

    def counted_parts(self, counts: Mapping[date, Mapping[str, int]]) -> dict[str, int]:
        """Return the household-days of each part of a row that has cells of its own: a group, and its kinds of day.

        Args:
            counts: households by group, of each covered day.
        """
        totals: dict[str, int] = {}
        for day, households in counts.items():
            for group, number in households.items():
                part = self.part_of(group, day_kind(day)) if self.covers_periods else group
                totals[part] = totals.get(part, 0) + number
        return totals

    def part_of(self, group: str, kind: DayKind) -> str:
        """Return the name of a group's kind of day in cells.

        >>> terms = {"statistic": "profile", "clamp_kwh": 50, "half_hour_clamp_kwh": 4, "by": "tariff"}
        >>> Profile.model_validate(terms | {"every": "weekday-month"}).part_of("Std", "weekend")
        'Std weekend'
        """
        return kind if self.by is None else f"{group} {kind}"

    @property
    def half_hour_clamp_wh(self) -> int:
        """Return the public upper bound on a household's half-hour, in whole watt-hours."""
        return watt_hours(self.half_hour_clamp_kwh)

    @property
    def quantity(self) -> tuple[int, int, int, int, str]:
        """Return what counts as a household's day; profiles of one quantity add up over days."""
        return self.half_hour_clamp_wh, self.clamp_wh, self.missing_wh, self.max_missing, self.values

    def rule(self, states: RepresentativeValues | None) -> ProfileRule:
        """Return what counts as a household's profile; series with equal rules add up the same vectors.

        Args:
            states: the states that series of the run file count, if any.

        Raises:
            ChainError: the series counts states, and they are of days.
        """
        return ProfileRule(
            self.half_hour_clamp_wh,
            self.clamp_wh,
            self.missing_wh,
            self.max_missing,
            states if self.counts_states else None,
        )

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

    def largest_move(self, change: Change, *, minutes: int) -> int:
        """Return the most that one cell changes [Wh]: a half-hour at its clamp, or an hour at twice that.

        Args:
            change: change of one household's day; any may move a cell from 0 to its clamp.
            minutes: length of a reading's interval.
        """
        step = slot_step(minutes)
        return min(self.half_hour_clamp_wh * step, self.clamp_wh, self.sensitivity(change))

    def cells(self, group: str, *, slots: Sequence[int]) -> tuple[str, ...]:
        """Return the names of a group's cells on a day with these half-hours (`load_profile.day_slots`).

        >>> terms = {"statistic": "profile", "clamp_kwh": 50, "half_hour_clamp_kwh": 4, "by": "tariff"}
        >>> Profile.model_validate(terms).cells("Std", slots=[0, 37])
        ('Std 00:00', 'Std 18:30')
        """
        of = "" if self.by is None and not self.covers_periods else f"{group} "
        return tuple(f"{of}{clock_of(slot)}" for slot in slots)

    def holds(self, cells: Sequence[str]) -> bool:
        """Return whether the cells of a stored release can be of this series: the same half-hours of each group."""
        try:
            places = [self.place(cell) for cell in cells]
        except ValueError:
            return False
        slots_by_group = [
            (group, [slot for _, slot in of]) for group, of in groupby(places, key=lambda place: place[0])
        ]
        expected = sorted({slot for _, slot in places})
        is_once = len({group for group, _ in slots_by_group}) == len(slots_by_group)
        return is_once and all(slots == expected for _, slots in slots_by_group)

    def group_of(self, cell: str) -> str:
        """Return the group of a cell, by its name; see `place`."""
        part = self.place(cell)[0]
        return self.split_part(part)[0] if self.covers_periods else part

    def place(self, cell: str) -> tuple[str, int]:
        """Return the group and the half-hour (slot 0 to 47) of a cell, by its name; of months a group's kind of day.

        Raises:
            ValueError: the name is not a cell of this series.
        """
        group, slot = _place(cell, self.by is not None or self.covers_periods)
        if self.covers_periods:
            self.split_part(group)
        return group, slot

    def split_part(self, part: str) -> tuple[str, DayKind]:
        """Return the group and the kind of day of a name by `part_of`.

        Raises:
            ValueError: the name is not one.
        """
        group, separator, name = part.rpartition(" ")
        kind = next((kind for kind in DAY_KINDS if kind == name), None)
        if kind is None or bool(separator) != (self.by is not None):
            raise ValueError("the cell is not of a kind of day of this series")
        return group if separator else ALL, kind

    def by_group(self, cells: Sequence[str], households: Sequence[int]) -> dict[str, int]:
        """Return the number of households of a release by group; household-days of both kinds of day, of months.

        Args:
            cells: names of the release's cells.
            households: number of households, or household-days of the kind, of each cell in the same order.

        Raises:
            ValueError: a name is not a cell of this series.
        """
        parts = _groups_of(tuple(cells), self.by is not None or self.covers_periods)  # releases repeat cells of others
        by_part = dict(zip(parts, households, strict=True))
        if not self.covers_periods:
            return by_part
        totals: dict[str, int] = {}
        for part, number in by_part.items():
            group = self.split_part(part)[0]
            totals[group] = totals.get(group, 0) + number
        return totals

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


@lru_cache(maxsize=8)
def _groups_of(cells: tuple[str, ...], is_grouped: bool) -> tuple[str, ...]:
    """Return the group of each cell."""
    return tuple(_place(cell, is_grouped)[0] for cell in cells)


def _place(cell: str, is_grouped: bool) -> tuple[str, int]:
    group, separator, clock = cell.rpartition(" ")
    match = _CLOCK.fullmatch(clock)
    if match is None or bool(separator) != is_grouped:
        raise ValueError("the cell is not a half-hour of this series")
    return group if separator else ALL, 2 * int(match[1]) + int(match[2]) // 3


def clock_of(slot: int) -> str:
    """Return the time of day at which a half-hour begins.

    >>> clock_of(0), clock_of(37)
    ('00:00', '18:30')
    """
    return f"{slot // 2:02d}:{slot % 2 * 3}0"
