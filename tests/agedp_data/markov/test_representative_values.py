"""What stands for a public state: its middle, in whole watt-hours, whatever the cuts."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agedp_data.markov.states import RepresentativeValues, representative_values, states

CUTS = st.lists(st.integers(1, 3000), min_size=1, max_size=12, unique=True).map(sorted)


def by_hand(edges, energy):
    """Return what stands for an energy: the upper middle of the whole numbers in its range."""
    ends = [0, *edges, edges[-1] + (edges[-1] - ([0, *edges])[-2])]
    for low, high in pairwise(ends):
        if low <= energy and (energy < high or high == ends[-1]):
            held = range(low, high)
            return held[len(held) // 2]
    raise AssertionError(energy)


@given(CUTS, st.lists(st.integers(0, 50_000), min_size=1))
def test_a_reading_counts_as_the_middle_of_the_range_that_it_lies_in(edges, energies):
    found = RepresentativeValues("half-hour", tuple(edges)).represent(np.array(energies))
    assert found.tolist() == [by_hand(edges, energy) for energy in energies]


@given(CUTS)
def test_what_stands_for_a_state_lies_in_it_and_rises_from_state_to_state(edges):
    middle = representative_values(edges)
    assert states(middle, edges).tolist() == list(range(len(edges) + 1))
    assert (np.diff(middle) > 0).all()
    kept = RepresentativeValues("day", tuple(edges))
    assert kept.represent(middle).tolist() == middle.tolist() == list(kept.representative_values_wh)


@pytest.mark.parametrize("last", [2**20, 2**20 + 1, 10**9])
def test_far_cuts_count_as_near_ones_do(last):
    found = RepresentativeValues("day", (5, last)).represent(np.array([0, 5, last - 1, last, 2 * last]))
    assert found.tolist() == [by_hand([5, last], energy) for energy in (0, 5, last - 1, last, 2 * last)]


def test_no_day_counts_more_than_its_half_hours_can():
    assert RepresentativeValues("half-hour", (100, 300)).max_day_wh == 48 * 400
    assert RepresentativeValues("day", (100, 300)).max_day_wh == 400
