"""Transitions of any pieces, joined, are those of the whole series, counted one by one."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agedp.calibration import quantize
from agedp.calibration.estimate import join_runs, runs_and_counts
from agedp.calibration.quantize import states_by_household
from agedp_data.markov.states import states

HOMES, STATES = 3, 4
KEYS = st.tuples(st.integers(0, HOMES - 1), st.integers(0, 40))


@given(st.dictionaries(KEYS, st.integers(-1, STATES - 1), max_size=60), st.data())
def test_pieces_cut_anywhere_in_any_order_count_as_the_whole(readings, data):
    pieces: dict[int, list[tuple[int, int, int]]] = {}
    for (home, time), state in sorted(readings.items()):
        pieces.setdefault(data.draw(st.integers(0, 3)), []).append((home, time, state))
    counts, every = np.zeros((HOMES, STATES, STATES), np.int64), [np.zeros((0, 5), np.int64)]
    for number in data.draw(st.permutations(sorted(pieces))):
        runs, own = runs_and_counts(*np.array(pieces[number], np.int64).T, households=HOMES, n_states=STATES)
        counts += own
        every.append(runs)
    gaps = join_runs(counts, np.concatenate(every))
    expected = np.zeros_like(counts)
    for (home, time), state in readings.items():
        following = readings.get((home, time + 1), -1)
        if state >= 0 and following >= 0:
            expected[home, state, following] += 1
    assert counts.tolist() == expected.tolist()
    for home in range(HOMES):
        times = sorted(time for own, time in readings if own == home)
        assert gaps[home] == sum(b - a > 1 for a, b in pairwise(times))


EDGES = st.lists(st.floats(0, 3000), min_size=3, max_size=3).map(sorted)
ON_EDGES = [(0, 9), (0, 10), (0, 20), (0, 21), (0, 10**9)]


@given(
    st.lists(EDGES, min_size=4, max_size=4),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4000)), max_size=50),
    st.sampled_from([1, 5000, 2**22]),  # a table for all, for each, and none
)
@example([[10.0, 10.0, 20.5]] * 4, ON_EDGES, 2**22)
def test_states_are_those_of_each_households_own_edges(edges, readings, cells):
    readings = sorted(readings, key=lambda one: one[0])
    home, energy = np.array(readings, np.int64).reshape(-1, 2).T
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quantize, "_MAX_TABLE_CELLS", cells)
        found = states_by_household(home, energy, np.array(edges)).tolist()
    assert found == [int(states([wh], edges[one])[0]) for one, wh in readings]
    if readings == ON_EDGES and edges[0] == [10.0, 10.0, 20.5]:
        assert found == [0, 2, 2, 3, 3]
