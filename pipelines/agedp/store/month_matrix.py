"""DAYS and STATE_DAYS of a month + roster -> the daily totals of the roster's households as dense arrays."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final

import numpy as np
import pyarrow as pa

from agedp.stage_values import Delivery
from agedp.store.daily_totals import read_daily_totals
from agedp.store.group_sums import DayBlock, Energies
from agedp.store.month_reader import day_numbers, household_codes
from agedp.store.state_days import read_state_days
from agedp.store.store import Store
from agedp_data.datasets.timestamps import day_number
from agedp_data.datasets.validation import Flags, Ints
from agedp_data.markov.states import RepresentativeValues
from agedp_data.roster import Roster

_BLOCK: Final = 2**13
"""Household-days that are counted at once: with ten cells a megabyte, which stays in the processor's cache."""


@dataclass(frozen=True, slots=True)
class MonthMatrix(Energies):
    """The daily totals of a roster's households in one month, as dense arrays of shape (households of the roster, 31).

    Energies are 0 without a reading.
    """

    def blocks(self, days: Sequence[date]) -> Iterator[DayBlock]:
        """Yield the household-days with readings of these days; household codes are rows of the matrix."""
        columns = np.array([day.day - 1 for day in days])
        at_once = max(1, _BLOCK // max(1, len(self.readings)))
        for low in range(0, len(days), at_once):
            day, household = np.nonzero(self.readings.T[columns[low : low + at_once]])
            for start in range(0, len(household), _BLOCK):
                of, index = household[start : start + _BLOCK], low + day[start : start + _BLOCK]
                at = of, columns[index]
                states_wh = None if self.states_wh is None else self.states_wh[at][:, None]
                yield DayBlock(self.energy_wh[at][:, None], states_wh, self.readings[at], of, index)


def load_month_matrix(
    store: Store,
    delivery: Delivery,
    roster: Roster,
    month: str,
    *,
    bucket: int = 0,
    states: RepresentativeValues | None = None,
    days: Collection[date] | None = None,
) -> MonthMatrix:
    """Return the daily totals of the roster's households in a month and bucket, by readings and, if given, by states.

    Args:
        store: the confidential store.
        delivery: the ingested files.
        roster: the households of the bucket.
        month: the month, as in its folder; a month without data gives zeros.
        bucket: the household bucket.
        states: states of half-hours or of days, for a series that counts them.
        days: the days that are needed; others may be 0. None: all.

    Returns:
        Rows follow `roster.ids`; households that are not on the roster are left out.
    """
    energy = np.zeros((len(roster.ids), 31), np.int64, order="F")  # a night needs the memory of its days only
    readings, counted = np.zeros_like(energy), None if states is None else np.zeros_like(energy)
    if month not in delivery.months:
        return MonthMatrix(energy, counted, readings)
    numbers = None if days is None else np.array(sorted({day_number(day) for day in days}), np.int64)
    table = read_daily_totals(store, month, delivery.contents, bucket, days=numbers)
    code, day, on_roster = _household_days_on_roster(table, roster, month)
    energy[code, day] = table["energy_wh"].to_numpy()[on_roster]
    readings[code, day] = table["readings"].to_numpy()[on_roster]
    if states is not None and states.step == "day":
        counted = np.where(readings > 0, states.represent(energy), 0)
    elif states is not None and counted is not None:
        table = read_state_days(store, month, delivery.contents, states, bucket=bucket, days=numbers)
        code, day, on_roster = _household_days_on_roster(table, roster, month)
        counted[code, day] = table["counted_wh"].to_numpy()[on_roster]
    return MonthMatrix(energy, counted, readings)


def _household_days_on_roster(table: pa.Table, roster: Roster, month: str) -> tuple[Ints, Ints, Flags]:
    """Return household code and day of month of the rows on the roster, and which rows these are."""
    code = household_codes(table, {household: code for code, household in enumerate(roster.ids)})
    on_roster = code >= 0
    first = day_number(date.fromisoformat(f"{month}-01"))
    return code[on_roster], day_numbers(table)[on_roster] - first, on_roster
