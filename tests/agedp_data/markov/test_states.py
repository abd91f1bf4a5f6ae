"""Cut points, states and what they are published as, against counts by hand."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agedp_data.markov.states import (
    RepresentativeValues,
    daily_totals,
    edges_equal_width,
    edges_quantile,
    merge_rare,
    representative_values,
    states,
)

CUTS = st.lists(st.integers(1, 3000), min_size=1, max_size=12, unique=True).map(sorted)


def test_equal_width_cuts_divide_the_range_and_a_cut_belongs_above():
    edges = edges_equal_width(1200, 12)
    assert edges.tolist() == [100.0 * i for i in range(1, 12)]
    assert states([0, 99, 100, 1199, 1200, 5000], edges).tolist() == [0, 0, 1, 11, 11, 11]
    assert states([np.nan, 2.0, -0.5], [3]).tolist() == [-1, 0, -1]  # a missing reading has no state


@pytest.mark.parametrize(
    ("values", "counts", "number"),
    [
        (np.arange(120), np.ones(120), 12),
        (np.arange(41), [60] + [1] * 40, 6),  # .4 of 12 states is 4.8: five more cuts' worth
        ([700], [17], 1),
        ([0, 40], [1, 999], 2),
        ([0, 40], [500, 500], 2),
    ],
)
def test_quantile_cuts_spread_values_evenly_and_single_out_heavy_ones(values, counts, number):
    visits = np.bincount(states(values, edges_quantile(values, counts, 12)), weights=counts)
    assert (visits > 0).sum() == number
    if number == 12:
        assert visits.tolist() == [10] * 12


def test_one_state_needs_no_cuts_and_one_value_one_state():
    assert edges_quantile([3, 4], [1, 1], 1).size == 0
    assert states([3, 4], edges_equal_width(10, 1)).tolist() == [0, 0]
    assert np.unique(states([700] * 5, edges_equal_width(700, 12))).size == 1


@settings(max_examples=60)
@given(st.dictionaries(st.integers(0, 5000), st.integers(1, 400), min_size=1, max_size=40), st.integers(1, 12))
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


def test_rare_states_go_to_the_nearest_frequent_one():
    series = np.repeat([0, 1, 2, 3, 4], [9, 2, 1, 2, 9])
    assert merge_rare(series, n_states=5, min_visits=5).tolist() == [0] * 12 + [4] * 11  # 2 is as near to 0 as to 4
    assert merge_rare([2, 2, -1, 0], n_states=3, min_visits=99).tolist() == [2, 2, -1, 2]
    assert merge_rare([[-1, -1]], n_states=3, min_visits=5).tolist() == [[-1, -1]]


def test_days_with_too_many_readings_missing_are_left_out():
    days = np.ravel([[0, 0, 3], [-1, -1, 5], [-1, 4, 4]])
    assert daily_totals(days, slots=3, max_missing=1).tolist() == [3, -1, 8]


def middle(edges, energy):
    """The upper middle of the whole numbers in the range of an energy; the last range is as wide as the one before."""
    ends = [0, *edges, edges[-1] + (edges[-1] - [0, *edges][-2])]
    held = next(range(low, high) for low, high in pairwise(ends) if energy < high or high == ends[-1])
    return held[len(held) // 2]


@given(CUTS, st.lists(st.integers(0, 50_000), min_size=1))
def test_a_reading_counts_as_the_middle_of_its_range_and_a_middle_as_itself(edges, energies):
    kept = RepresentativeValues("half-hour", tuple(edges))
    assert kept.represent(np.array(energies)).tolist() == [middle(edges, energy) for energy in energies]
    values = representative_values(edges)
    assert states(values, edges).tolist() == list(range(len(edges) + 1))
    assert kept.represent(values).tolist() == values.tolist() == list(kept.representative_values_wh)


def test_far_cuts_count_as_near_ones_and_no_day_more_than_its_half_hours_can():
    for last in (2**20, 2**20 + 1, 10**9):
        energies = [0, 5, last - 1, last, 2 * last]
        found = RepresentativeValues("day", (5, last)).represent(np.array(energies))
        assert found.tolist() == [middle([5, last], energy) for energy in energies]
    assert RepresentativeValues("half-hour", (100, 300)).max_day_wh == 48 * 400
    assert RepresentativeValues("day", (100, 300)).max_day_wh == 400
