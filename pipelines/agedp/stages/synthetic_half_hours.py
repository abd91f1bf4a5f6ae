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
from agedp.store.group_sums import DayBlock, Sums, sum_household_days
from agedp.store.half_hour_sums import half_hour_block, half_hour_states
from agedp_data.config import RunFile
from agedp_data.datasets.layout import slot_step
from agedp_data.datasets.synthetic.household_months import draw_month
from agedp_data.datasets.validation import SLOTS
from agedp_data.markov.states import RepresentativeValues
from agedp_data.roster import Roster
from agedp_data.series.load_profile import MISSING_HALF_HOUR
from agedp_data.series.series import AnySeries


def sum_synthetic_half_hours(
    run: RunFile, roster: Roster, *, days: Sequence[date], series: Mapping[str, AnySeries]
) -> Sums:
    """Return the exact sums of half-hours of synthetic households, by day and series; as `sum_half_hours`.

    Args:
        run: the run file of a rehearsal on synthetic households.
        roster: how many households each group has on a day.
        days: ascending.
        series: the series that read half-hours.
    """
    sums: Sums = {}
    states = half_hour_states(series, run.counted_states)
    for _, of_month in groupby(days if series else (), lambda day: (day.year, day.month)):
        month_days = tuple(of_month)
        households = max(roster.households(day) for day in month_days)
        sums |= sum_household_days(
            _blocks(run, month_days, households, states),
            month_days,
            households=households,
            members=partial(synthetic_members, roster),
            layout=run.input.layout,
            series=series,
        )
    return sums


def _blocks(
    run: RunFile, days: Sequence[date], households: int, states: RepresentativeValues | None
) -> Iterator[DayBlock]:
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
            yield half_hour_block(household, np.full(len(household), i), of_day, states)
