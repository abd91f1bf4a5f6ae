"""Roster counts -> the half-hours of synthetic households, for a rehearsal of load profiles that reads no input file.

The households are those of `synthetic_days`, and count by the rules of real ones (`store.half_hour_sums`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from functools import partial
from itertools import groupby

import numpy as np

from agedp.stages.synthetic_days import synthetic_members
from agedp.store.half_hour_sums import GroupedProfile, HalfHourSums, HouseholdDays, sum_household_days
from agedp_data.config import RunFile
from agedp_data.datasets.layout import slot_step
from agedp_data.datasets.synthetic.household_months import draw_month
from agedp_data.datasets.validation import SLOTS
from agedp_data.roster import Roster
from agedp_data.series.load_profile import MISSING_HALF_HOUR


def sum_synthetic_half_hours(
    run: RunFile, roster: Roster, *, days: Sequence[date], profiles: Mapping[str, GroupedProfile]
) -> dict[tuple[date, str], HalfHourSums]:
    """Return the exact sums of half-hours of synthetic households, by day and series; as `sum_half_hours`.

    Args:
        run: the run file of a rehearsal on synthetic households.
        roster: how many households each group has on a day.
        days: ascending.
        profiles: what each series counts, by its name.
    """
    sums: dict[tuple[date, str], HalfHourSums] = {}
    for _, of_month in groupby(days if profiles else (), lambda day: (day.year, day.month)):
        month_days = tuple(of_month)
        households = max(roster.households(day) for day in month_days)
        sums |= sum_household_days(
            _blocks(run, month_days, households),
            month_days,
            households=households,
            members=partial(synthetic_members, roster),
            layout=run.input.layout,
            profiles=profiles,
        )
    return sums


def _blocks(run: RunFile, days: Sequence[date], households: int) -> Iterator[HouseholdDays]:
    """Yield the household-days of some days of one month; household codes are numbers of synthetic households."""
    step = slot_step(run.input.layout.interval_minutes)
    batches = draw_month(
        days[0].replace(day=1),
        days=days[-1].day,
        households=households,
        layout=run.input.layout,
        max_half_hour_wh=run.input.max_half_hour_wh,
    )
    for numbers, energy_wh, present in batches:
        for i, day in enumerate(days):
            of_day = np.full((len(energy_wh), SLOTS), MISSING_HALF_HOUR, np.int64)
            of_day[:, ::step] = np.where(present[:, day.day - 1], energy_wh[:, day.day - 1], MISSING_HALF_HOUR)
            household = np.arange(numbers.start, numbers.start + len(energy_wh))
            yield HouseholdDays(household, np.full(len(household), i), of_day)
