"""READINGS + EDGES -> TRANSITIONS of higher-order chains of days: [model] memory.

    memory = "pair"             states of two successive days, k^2 of them
    memory = "trailing-mean"    the day's state, and whether the mean of the week that ends with it is above the middle
                                one of the household's edges, 2 k of them

A week with half of its days missing or more has no mean, and a day after a missing one no pair: such days take part in
no transition. All days of the households are in memory at once (a year: three numbers of 365 per household).
"""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np

from agedp.calibration.estimate import Transitions
from agedp.calibration.quantize import Floats, MonthReadings, Period
from agedp.compute.engine import map_items
from agedp.compute.engine_settings import Engine
from agedp.store.transition_counts import states_by_household
from agedp_data.accounting.higher_order import pair_states, regime_states
from agedp_data.config.model_section import Memory
from agedp_data.datasets.timestamps import day_number
from agedp_data.datasets.validation import Ints
from agedp_data.markov.states import MISSING

_WEEK: Final = 7
_HOUSEHOLDS = 64


def estimate_higher_order(
    period: Period, edges: Floats, *, n_states: int, memory: Memory, engine: Engine
) -> Transitions:
    """Count the transitions of every household of the roster between extended states, one day to the next.

    Args:
        period: the days.
        edges: edges of each household, shape (h, n_states - 1) [Wh].
        n_states: k, of one day.
        memory: "pair" or "trailing-mean".
        engine: the scheduler.
    """
    households, length = len(period.roster.ids), (period.last - period.first).days + 1
    day_state, energy_wh = (
        np.full((households, length), MISSING, np.int64),
        np.full((households, length), MISSING, np.int64),
    )
    for months in map_items("counts", period.months, function=partial(_days, period=period), engine=engine):
        for part in months:
            day = part.time - day_number(period.first)
            day_state[part.household, day] = states_by_household(part.household, part.energy_wh, edges)
            energy_wh[part.household, day] = part.energy_wh
    has_state = day_state >= 0
    size = n_states**2 if memory == "pair" else 2 * n_states
    counts = np.zeros((households, size, size), np.int64)
    for start in range(0, households, _HOUSEHOLDS):
        batch = slice(start, start + _HOUSEHOLDS)
        counts[batch] = _count_transitions(
            _extended_states(day_state[batch], energy_wh[batch], edges[batch], n_states, memory), size
        )
    starts = has_state & ~np.pad(has_state, ((0, 0), (1, 0)))[:, :-1]
    return Transitions(counts, has_state.sum(axis=1), np.maximum(starts.sum(axis=1) - 1, 0))


def _days(month: str, *, period: Period) -> list[MonthReadings]:
    return [part for part in period.parts(month) if len(part.household)]


def _extended_states(state: Ints, energy_wh: Ints, edges: Floats, n_states: int, memory: Memory) -> Ints:
    """Return the extended state of each household's days (h, T), -1 where there is none."""
    if memory == "pair":
        return pair_states(state, n_states=n_states)
    extended = np.full_like(state, MISSING)
    for household in np.flatnonzero((state >= 0).any(axis=1)):
        middle = edges[household, (n_states - 1) // 2 : (n_states - 1) // 2 + 1]
        extended[household] = regime_states(
            state[household], energy_wh[household], middle, n_states=n_states, days=_WEEK
        )
    return extended


def _count_transitions(extended: Ints, size: int) -> Ints:
    """Return the transitions (h, size, size) from each day of (h, T) to the next."""
    previous, after = extended[:, :-1], extended[:, 1:]
    household, day = np.nonzero((previous >= 0) & (after >= 0))
    flat = (household * size + previous[household, day]) * size + after[household, day]
    return np.bincount(flat, minlength=len(extended) * size**2).reshape(len(extended), size, size)
