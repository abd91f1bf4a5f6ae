"""Transitions of any pieces, joined, are those of the whole series, counted one by one."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from agedp.store.transition_counts import join_runs, runs_and_counts, states_by_household
from agedp_data.markov.states import states

HOMES, STATES = 3, 4
READINGS = st.dictionaries(
    st.tuples(st.integers(0, HOMES - 1), st.integers(0, 40)), st.integers(-1, STATES - 1), max_size=60
)


@given(READINGS, st.data())
def test_pieces_cut_anywhere_and_taken_in_any_order_count_as_the_whole(readings, data):
    pieces: dict[int, list[tuple[int, int, int]]] = {}
    for (home, time), state in sorted(readings.items()):
        pieces.setdefault(data.draw(st.integers(0, 3)), []).append((home, time, state))
    counts = np.zeros((HOMES, STATES, STATES), np.int64)
    every = [np.zeros((0, 5), np.int64)]
    for number in data.draw(st.permutations(sorted(pieces))):
        home, time, state = np.array(pieces[number], np.int64).T
        runs, own = runs_and_counts(home, time, state, households=HOMES, n_states=STATES)
        counts += own
        every.append(runs)
    gaps = join_runs(counts, np.concatenate(every))
    expected = np.zeros_like(counts)
    for (home, time), state in readings.items():
        after = readings.get((home, time + 1), -1)
        if state >= 0 and after >= 0:
            expected[home, state, after] += 1
    assert counts.tolist() == expected.tolist()
    for home in range(HOMES):
        times = sorted(time for own, time in readings if own == home)
        assert gaps[home] == sum(b - a > 1 for a, b in pairwise(times))


EDGES = st.lists(st.floats(0, 3000), min_size=3, max_size=3).map(sorted)


@given(
    st.lists(EDGES, min_size=4, max_size=4),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4000)), max_size=50),
    st.sampled_from([1, 5000, 2**22]),
)
def test_states_through_tables_are_those_of_each_households_own_cuts(edges, readings, at_once):
    import agedp.store.transition_counts as module

    readings = sorted(readings, key=lambda one: one[0])
    home = np.array([one for one, _ in readings], np.int64)
    energy = np.array([one for _, one in readings], np.int64)
    original, module._MAX_TABLE_CELLS = module._MAX_TABLE_CELLS, at_once  # a table for all, for each, and none
    try:
        found = states_by_household(home, energy, np.array(edges))
    finally:
        module._MAX_TABLE_CELLS = original
    assert found.tolist() == [int(states([wh], edges[one])[0]) for one, wh in readings]


def test_readings_on_a_cut_and_cuts_that_coincide():
    edges = np.array([[10.0, 10.0, 20.5]])
    energy = np.array([9, 10, 20, 21, 10**9])
    assert states_by_household(np.zeros(5, np.int64), energy, edges).tolist() == [0, 2, 2, 3, 3]
