"""READINGS in any partition -> transition counts: within runs, and between consecutive runs.

A run is a sequence of one household's readings, one step apart. Each reading is in one partition (a part of a file, a
day, a month). A partition counts its transitions and returns the beginning and end of each run; a run that ends one
step before another begins is joined to it. Counts and gaps are then those of the complete series, independent of the
partition and its order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from agedp_data.datasets.validation import Flags, Ints
from agedp_data.markov.states import states

NO_STATE = -1
"""The state of a reading that takes part in no transition."""
Counts = np.ndarray[Any, np.dtype[np.int64]]
_MAX_TABLE_CELLS = 2**22
_NO_RUNS = np.zeros((0, 5), np.int64)


def runs_and_counts(household: Ints, time: Ints, state: Ints, *, households: int, n_states: int) -> tuple[Ints, Counts]:
    """Return the runs of readings (m), sorted by household and time, and the transitions within them.

    Shapes: (m,), (m,), (m,) -> (r, 5), (households, n_states, n_states).
    """
    runs, origins = find_runs(household, time, state)
    flat = (household[origins] * n_states + state[origins]) * n_states + state[origins + 1]
    counts = np.bincount(flat, minlength=households * n_states**2)
    return runs, counts.reshape(households, n_states, n_states)


def find_runs(household: Ints, time: Ints, state: Ints) -> tuple[Ints, Ints]:
    """Return the runs of readings (m), sorted by household and time, and the indices from which a transition starts.

    Shapes: (m,), (m,), (m,) -> (r, 5), (t,). A run is (household, first time, its state, last time, its state).
    """
    if len(household) == 0:
        return _NO_RUNS, np.zeros(0, np.int64)
    follows = (household[1:] == household[:-1]) & (time[1:] == time[:-1] + 1)
    ends = np.append(np.flatnonzero(~follows), len(household) - 1)
    starts = np.append(0, ends[:-1] + 1)
    runs = np.stack([household[starts], time[starts], state[starts], time[ends], state[ends]], axis=1)
    if (state < 0).any():
        follows &= (state[1:] >= 0) & (state[:-1] >= 0)
    return runs, np.flatnonzero(follows)


def count_by_phase(counts: np.ndarray[Any, np.dtype[Any]], household: Ints, time: Ints, state: Ints) -> Ints:
    """Add to `counts` the transitions within runs of readings, by the phase of their first reading; return the runs.

    Shapes: (h, phases, k, k), (m,), (m,), (m,) -> (r, 5). A phase is a time modulo their number.
    """
    runs, origins = find_runs(household, time, state)
    _, n_phases, n_states, _ = counts.shape
    flat = ((household[origins] * n_phases + time[origins] % n_phases) * n_states + state[origins]) * n_states + state[
        origins + 1
    ]
    np.add.at(counts.reshape(-1), flat, 1)
    return runs


def join_runs(counts: Counts, runs: Ints) -> Ints:
    """Add to `counts` the transition between runs of a household one step apart; return the gaps (h,).

    Shapes: (h, k, k) or (h, phases, k, k), (r, 5) -> (h,).
    """
    if len(runs) == 0:
        return np.zeros(len(counts), np.int64)
    household, first, state, last, last_state = runs[np.lexsort((runs[:, 1], runs[:, 0]))].T
    is_same_household = household[1:] == household[:-1]
    is_adjacent = is_same_household & (first[1:] == last[:-1] + 1)
    is_counted = is_adjacent & (last_state[:-1] >= 0) & (state[1:] >= 0)
    phases = () if counts.ndim == 3 else (last[:-1][is_counted] % counts.shape[1],)
    np.add.at(counts, (household[1:][is_counted], *phases, last_state[:-1][is_counted], state[1:][is_counted]), 1)
    return np.bincount(household[1:][is_same_household & ~is_adjacent], minlength=len(counts))


def states_by_household(household: Ints, energy_wh: Ints, edges: np.ndarray[Any, np.dtype[np.float64]]) -> Ints:
    """Return the state of each reading (m) under its household's state edges, by a table of all energies.

    Shapes: (m,), (m,), (h, k - 1) -> (m,); readings are sorted by household. As `markov.states.states`: a reading that
    equals an edge belongs to the state above it. Units: Wh.
    """
    state = np.empty(len(household), np.int64)
    if len(household) == 0:
        return state
    codes, starts = household_starts(household)
    cuts = np.clip(np.ceil(edges[codes]), 0, int(energy_wh.max()) + 1).astype(np.int64)
    width = int(cuts.max(initial=0)) + 1  # energies above the last edge are in the last state
    sizes = np.diff(cuts, axis=1, prepend=0, append=width)
    position = np.repeat(np.arange(len(codes)), np.diff(starts))
    if width > _MAX_TABLE_CELLS:
        for code, start, stop in zip(codes, starts[:-1], starts[1:], strict=True):
            state[start:stop] = states(energy_wh[start:stop], edges[code])
        return state
    households_per_table = _MAX_TABLE_CELLS // width
    for low in range(0, len(codes), households_per_table):
        high = min(low + households_per_table, len(codes))
        selection = slice(starts[low], starts[high])
        table = np.repeat(np.tile(np.arange(sizes.shape[1], dtype=np.int16), high - low), sizes[low:high].ravel())
        state[selection] = table[(position[selection] - low) * width + np.minimum(energy_wh[selection], width - 1)]
    return state


def household_starts(household: Ints) -> tuple[Ints, Ints]:
    """Return the households of sorted readings, and the index at which each begins; the last entry is the end.

    >>> household_starts(np.array([4, 4, 9]))
    (array([4, 9]), array([0, 2, 3]))
    """
    first: Flags = np.ones(len(household), bool)
    first[1:] = household[1:] != household[:-1]
    starts = np.flatnonzero(first)
    return household[starts], np.append(starts, len(household))
