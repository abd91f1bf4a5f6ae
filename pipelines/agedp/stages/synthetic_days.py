"""Roster counts -> the daily totals of synthetic households, for a rehearsal that reads no input file.

The n households on the roster of a day stand for the synthetic households 0 to n - 1; its groups, in alphabetical
order, take consecutive numbers, so that a group of a hierarchy has the same households as the finer groups in it. Ids
and readings do not enter: the sums follow from the number of households on the roster by day and group, and from
constants (`agedp_data.datasets.synthetic.households`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from functools import partial

import numpy as np

from agedp.stage_values import Delivery
from agedp.store.bucketed_roster import DayBlock, Sums, days_by_month, sum_household_days
from agedp.store.daily_totals import MonthMatrix
from agedp.store.half_hour_sums import half_hour_block, half_hour_states
from agedp_data.config import RunFile
from agedp_data.datasets.layout import slot_step
from agedp_data.datasets.synthetic.households import draw_month
from agedp_data.datasets.validation import SLOTS, Flags, Ints
from agedp_data.markov.states import RepresentativeValues
from agedp_data.roster import GroupColumns, RosterCounts
from agedp_data.series.profile import MISSING_HALF_HOUR
from agedp_data.series.series import AnySeries

NO_DELIVERY = Delivery((), (), 0, 0, {}, 0, 0)
"""The delivery of a rehearsal on synthetic households: no input file."""


def synthetic_members(roster: RosterCounts, day: date, by: GroupColumns) -> dict[str, Ints]:
    """Return the numbers of the synthetic households of each group on a day, the groups sorted."""
    sizes = dict(roster.cells(day, by))
    ends = np.cumsum([*sizes.values()])
    return {group: np.arange(end - sizes[group], end) for group, end in zip(sizes, ends.tolist(), strict=True)}


def synthetic_month(run: RunFile, roster: RosterCounts, days: Sequence[date]) -> MonthMatrix:
    """Return the daily totals of synthetic households for days of one month, by readings and by counted states.

    Rows are numbers of households, as many as the roster has on the day with most of them.
    """
    households, states, last = max(roster.households(day) for day in days), run.counted_states, max(days).day
    energy = np.zeros((households, 31), np.int64)
    readings, counted = np.zeros_like(energy), None if states is None else np.zeros_like(energy)
    for numbers, energy_wh, present in _drawn_month(run, days[0], last, households):
        energy[numbers, :last], readings[numbers, :last] = energy_wh.sum(axis=-1), present.sum(axis=-1)
        if states is not None and states.step == "half-hour" and counted is not None:
            counted[numbers, :last] = np.where(present, states.represent(energy_wh), 0).sum(axis=-1)
    if states is not None and states.step == "day":
        counted = np.where(readings > 0, states.represent(energy), 0)
    return MonthMatrix(energy, counted, readings)


def _drawn_month(run: RunFile, day: date, last: int, households: int) -> Iterator[tuple[slice, Ints, Flags]]:
    """Yield the readings of synthetic households from the first to the day `last` of the month of a day."""
    layout, max_half_hour_wh = run.input.layout, run.input.max_half_hour_wh
    return draw_month(
        day.replace(day=1), days=last, households=households, layout=layout, max_half_hour_wh=max_half_hour_wh
    )


# --------------------------------------------------------------------------------------------------
# Roster counts -> the half-hours of synthetic households, for a rehearsal of load profiles that reads no input file.
#
# The households are those of `synthetic_days`, and count by the rules of real ones (`store.half_hour_sums`).
# --------------------------------------------------------------------------------------------------


def sum_synthetic_half_hours(
    run: RunFile, roster: RosterCounts, *, days: Sequence[date], series: Mapping[str, AnySeries]
) -> Sums:
    """Return the exact sums of half-hours of synthetic households, by day and series; as `sum_half_hours`.

    Args:
        run: the run file of a rehearsal on synthetic households.
        roster: how many households each group has on a day.
        days: ascending.
        series: the series that read half-hours.
    """
    sums, states, members = Sums(), half_hour_states(series, run.counted_states), partial(synthetic_members, roster)
    for month_days in days_by_month(days if series else ()):
        households = max(roster.households(day) for day in month_days)
        blocks, layout = _blocks(run, month_days, households, states), run.input.layout
        sums |= sum_household_days(
            blocks, month_days, households=households, members=members, layout=layout, series=series
        )
    return sums


def _blocks(
    run: RunFile, days: Sequence[date], households: int, states: RepresentativeValues | None
) -> Iterator[DayBlock]:
    """Yield the household-days of some days of one month; household codes are numbers of synthetic households."""
    step = slot_step(run.input.layout.interval_minutes)
    for numbers, energy_wh, present in _drawn_month(run, days[0], days[-1].day, households):
        for i, day in enumerate(days):
            of_day = np.full((len(energy_wh), SLOTS), MISSING_HALF_HOUR, np.int64)
            of_day[:, ::step] = np.where(present[:, day.day - 1], energy_wh[:, day.day - 1], MISSING_HALF_HOUR)
            household = np.arange(numbers.start, numbers.start + len(energy_wh))
            yield half_hour_block(household, np.full(len(household), i), of_day, states)
