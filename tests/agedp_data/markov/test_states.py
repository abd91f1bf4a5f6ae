"""Cut points and states against counts by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agedp_data.markov.states import edges_equal_width, edges_quantile, states

HISTOGRAM = st.dictionaries(st.integers(0, 5000), st.integers(1, 400), min_size=1, max_size=40)


def test_equal_width_cuts_divide_the_range_and_a_cut_belongs_above():
    edges = edges_equal_width(1200, 12)
    assert edges.tolist() == [100.0 * i for i in range(1, 12)]
    assert states([0, 99, 100, 1199, 1200, 5000], edges).tolist() == [0, 0, 1, 11, 11, 11]


def test_a_missing_reading_has_no_state():
    assert states([-1, 5], [3]).tolist() == [-1, 1]
    assert states([np.nan, 2.0, -0.5], [3]).tolist() == [-1, 0, -1]


def test_quantile_cuts_spread_distinct_values_evenly():
    edges = edges_quantile(np.arange(120), np.ones(120), 12)
    visits = np.bincount(states(np.arange(120), edges), minlength=12)
    assert visits.tolist() == [10] * 12


@pytest.mark.parametrize("below", [0, 15, 38])
def test_a_heavy_value_has_a_state_of_its_own(below):
    # `below` readings under it, 60 at 500 itself, the rest above: of 100.
    values = np.concatenate((np.arange(below), [500], 600 + np.arange(40 - below)))
    counts = np.where(values == 500, 60, 1)
    state = states(values, edges_quantile(values, counts, 12))
    assert (state == state[values == 500]).sum() == 1


def test_sixty_percent_zeros_leave_states_for_the_rest():
    values, counts = np.arange(41), np.array([60] + [1] * 40)
    state = states(values, edges_quantile(values, counts, 12))
    assert (state == state[0]).sum() == 1
    assert np.unique(state).size == 1 + 4 + 1  # .4 of 12 states is 4.8: five more cuts' worth


@pytest.mark.parametrize("value", [0, 700])
def test_a_household_with_one_value_visits_one_state(value):
    assert np.unique(states([value] * 5, edges_quantile([value], [17], 12))).size == 1
    assert np.unique(states([value] * 5, edges_equal_width(value, 12))).size == 1


def test_two_values_are_told_apart_whatever_their_shares():
    for share in (1, 500, 999):
        edges = edges_quantile([0, 40], [share, 1000 - share], 12)
        assert np.unique(states([0, 40], edges)).size == 2


def test_one_state_needs_no_cuts():
    assert edges_quantile([3, 4], [1, 1], 1).size == 0
    assert states([3, 4], edges_equal_width(10, 1)).tolist() == [0, 0]


@settings(max_examples=80, deadline=None)
@given(HISTOGRAM, st.integers(1, 12))
def test_cuts_ascend_and_every_value_of_two_shares_is_alone(histogram, n):
    values = np.array(sorted(histogram))
    counts = np.array([histogram[v] for v in values.tolist()])
    edges = edges_quantile(values, counts, n)
    assert edges.shape == (n - 1,)
    assert (np.diff(edges) >= 0).all()
    state = states(values, edges)
    assert ((state >= 0) & (state < n)).all()
    for heavy in np.flatnonzero(counts * n >= 2 * counts.sum()):
        assert (state == state[heavy]).sum() == 1
