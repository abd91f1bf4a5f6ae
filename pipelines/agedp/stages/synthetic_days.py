"""Roster counts -> the daily totals of synthetic households, for a rehearsal that reads no input file.

The n households on the roster of a day stand for the synthetic households 0 to n - 1; its groups, in alphabetical
order, take consecutive numbers, so that a group of a hierarchy has the same households as the finer groups in it. Ids
and readings do not enter: the sums follow from the number of households on the roster by day and group, and from
constants (`agedp_data.datasets.synthetic.household_months`).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

import numpy as np

from agedp.stage_values import Delivery
from agedp.store.month_matrix import MonthMatrix
from agedp_data.config import RunFile
from agedp_data.datasets.synthetic.household_months import draw_month
from agedp_data.datasets.validation import Ints
from agedp_data.roster import GroupColumns, Roster

NO_DELIVERY = Delivery((), (), 0, 0, {}, 0, 0, 0)
"""The delivery of a rehearsal on synthetic households: no input file."""


def synthetic_members(roster: Roster, day: date, by: GroupColumns) -> dict[str, Ints]:
    """Return the numbers of the synthetic households of each group on a day, the groups sorted."""
    sizes = dict(roster.cells(day, by))
    ends = np.cumsum([*sizes.values()])
    return {group: np.arange(end - sizes[group], end) for group, end in zip(sizes, ends.tolist(), strict=True)}


def synthetic_month(run: RunFile, roster: Roster, days: Sequence[date]) -> MonthMatrix:
    """Return the daily totals of synthetic households for days of one month, by readings and by counted states.

    Rows are numbers of households, as many as the roster has on the day with most of them.
    """
    households, states = max(roster.households(day) for day in days), run.counted_states
    energy = np.zeros((households, 31), np.int64)
    readings, counted = np.zeros_like(energy), None if states is None else np.zeros_like(energy)
    last = max(days).day
    batches = draw_month(
        days[0].replace(day=1),
        days=last,
        households=households,
        layout=run.input.layout,
        max_half_hour_wh=run.input.max_half_hour_wh,
    )
    for numbers, energy_wh, present in batches:
        energy[numbers, :last], readings[numbers, :last] = energy_wh.sum(axis=-1), present.sum(axis=-1)
        if states is not None and states.step == "half-hour" and counted is not None:
            counted[numbers, :last] = np.where(present, states.represent(energy_wh), 0).sum(axis=-1)
    if states is not None and states.step == "day":
        counted = np.where(readings > 0, states.represent(energy), 0)
    return MonthMatrix(energy, counted, readings)
