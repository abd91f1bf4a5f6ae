"""READINGS + EDGES -> TRANSITIONS of chains of days that remember more than the last day: [model] memory.

    memory = "pair"             states of two successive days, k^2 of them
    memory = "trailing-mean"    the day's state and whether the mean of the week that ends with it lies above the middle
                                one of the household's edges, 2 k of them

A week of which half or more is missing has no mean, and a day behind a missing one no pair: such days take part in no
transition. The households' days are all in memory at once (a year of them is three numbers of 365 a home).
"""

from __future__ import annotations

from datetime import date
from functools import partial
from typing import Final

import numpy as np

from agedp_data.chains.states import MISSING
from agedp_data.config.model import Memory
from agedp_data.privacy.longer_memory import pair_states, regime_states
from agedp_data.readers.layout import Ints
from pipelines.blocks import Engine, map_items
from pipelines.estimate import Transitions
from pipelines.quantize import Floats, MonthReadings, Period
from pipelines.readings.runs import states_by_household

_EPOCH: Final = date(1970, 1, 1)
_WEEK: Final = 7
_HOUSEHOLDS = 64


def estimate_longer(period: Period, edges: Floats, *, n_states: int, memory: Memory, engine: Engine) -> Transitions:
    """Count the transitions of every household of the roster between larger states, one day to the next.

    Args:
        period: the days.
        edges: (h, n_states - 1) of each household.
        n_states: k, of a day alone.
        memory: "pair" or "trailing-mean".
        engine: how it runs.
    """
    homes, length = len(period.roster.ids), (period.last - period.first).days + 1
    state, used = np.full((homes, length), MISSING, np.int64), np.full((homes, length), MISSING, np.int64)
    for months in map_items("counts", period.months, function=partial(_days, period=period), engine=engine):
        for part in months:
            place = part.time - (period.first - _EPOCH).days
            state[part.household, place] = states_by_household(part.household, part.energy_wh, edges)
            used[part.household, place] = part.energy_wh
    there = state >= 0
    size = n_states**2 if memory == "pair" else 2 * n_states
    counts = np.zeros((homes, size, size), np.int64)
    for start in range(0, homes, _HOUSEHOLDS):
        some = slice(start, start + _HOUSEHOLDS)
        counts[some] = _counted(_larger(state[some], used[some], edges[some], n_states, memory), size)
    begins = there & ~np.pad(there, ((0, 0), (1, 0)))[:, :-1]
    return Transitions(counts, there.sum(axis=1), np.maximum(begins.sum(axis=1) - 1, 0))


def _days(month: str, *, period: Period) -> list[MonthReadings]:
    return [part for part in period.parts(month) if len(part.household)]


def _larger(state: Ints, used: Ints, edges: Floats, n_states: int, memory: Memory) -> Ints:
    """Return the larger state of each household's days (h, T), -1 where there is none."""
    if memory == "pair":
        return pair_states(state, n_states=n_states)
    found = np.full_like(state, MISSING)
    for home in np.flatnonzero((state >= 0).any(axis=1)):
        middle = edges[home, (n_states - 1) // 2 : (n_states - 1) // 2 + 1]
        found[home] = regime_states(state[home], used[home], middle, n_states=n_states, days=_WEEK)
    return found


def _counted(larger: Ints, size: int) -> Ints:
    """Return the transitions (h, size, size) from each day of (h, T) to the next."""
    before, after = larger[:, :-1], larger[:, 1:]
    home, day = np.nonzero((before >= 0) & (after >= 0))
    flat = (home * size + before[home, day]) * size + after[home, day]
    return np.bincount(flat, minlength=len(larger) * size**2).reshape(len(larger), size, size)
