"""Exact sums of half-hours -> the daily sums of series of profiles: vectors in the order of their cells."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date

from agedp.stage_values import DailySum
from agedp.store.half_hour_sums import GroupedProfile, HalfHourSums
from agedp_data.markov.states import RepresentativeValues
from agedp_data.series.profile import Profile
from agedp_data.series.series import AnySeries


def grouped_profiles(series: Mapping[str, AnySeries], states: RepresentativeValues | None) -> dict[str, GroupedProfile]:
    """Return what each series of profiles counts, by its name; `states` are those that series count, if any."""
    profiles = {name: of_name for name, of_name in series.items() if isinstance(of_name, Profile)}
    return {name: GroupedProfile(profile.rule(states), profile.by) for name, profile in profiles.items()}


def profile_sums(
    series: Mapping[str, AnySeries], half_hours: Mapping[tuple[date, str], HalfHourSums]
) -> dict[tuple[date, str], DailySum]:
    """Return the daily sums of series of profiles by day and series."""
    return {(day, name): _daily_sum(series[name], sums) for (day, name), sums in half_hours.items()}


def _daily_sum(series: AnySeries, sums: HalfHourSums) -> DailySum:
    exact = {group: tuple(sum_wh.tolist()) for group, sum_wh in sums.sum_wh.items()}
    return DailySum(series, exact, sums.households, sums.usable, sums.clamped, slots=sums.slots)
