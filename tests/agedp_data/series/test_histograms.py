"""Histograms, shifted histograms and cumulative counts, and every sensitivity by brute force over small datasets."""

from __future__ import annotations

import functools
import itertools
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agedp_data.accounting.delta_neighbourhood import cumulative_counts, shifted_histograms
from agedp_data.errors import ChainError
from agedp_data.series.histograms import cumulative, delta_grid, histogram
from agedp_data.series.sensitivity import (
    Move,
    cumulative_sensitivity,
    edges_crossed,
    histogram_sensitivity,
    shifted_sensitivity,
    sum_sensitivity,
)

NINE = range(9)
HALVES = [value / 2 for value in range(17)]
UNEVEN = [0, 1, 3, 4, 8]
GRIDS = [(1, 1), (2, 1), (3, 1), (4, 2), (6, 2), (3, 3), (12, 3), (40, 5)]


def largest(statistic, universe, change):
    """The largest L1 change of a statistic over all pairs of datasets of up to two that differ by one such change."""
    pairs, counted = [], functools.cache(lambda values: np.asarray(statistic(values)))
    for rest in [(), *((value,) for value in universe)]:
        if change in ("arrival", "departure"):
            pairs += [((*rest, one), rest) for one in universe]
        else:
            reach = change.size if isinstance(change, Move) else math.inf
            pairs += [((*rest, a), (*rest, b)) for a, b in itertools.product(universe, repeat=2) if abs(a - b) <= reach]
    return max(int(np.abs(counted(tuple(sorted(a))) - counted(tuple(sorted(b)))).sum()) for a, b in pairs)


CHANGES = [
    Move(0), Move(1), Move(2), Move(3), Move(5), Move(8), "arrival", "departure", "replacement",
]  # fmt: skip


class TestSensitivities:
    @pytest.mark.parametrize("change", CHANGES, ids=str)
    @pytest.mark.parametrize("universe", [NINE, HALVES], ids=["whole", "halves"])
    def test_of_histograms_and_cumulative_counts_of_any_edges_are_the_largest_of_all(self, change, universe):
        for edges in (UNEVEN, [0, 2, 4, 6, 8], [0, 8], [2, 3, 5]):
            found = largest(lambda values, edges=edges: histogram(values, edges=edges), universe, change)
            assert histogram_sensitivity(change, edges=edges) == found, edges
            found = largest(lambda values, edges=edges: cumulative(values, edges=edges), universe, change)
            assert cumulative_sensitivity(change, edges=edges) == found, edges

    @pytest.mark.parametrize("change", CHANGES, ids=str)
    @pytest.mark.parametrize(("width", "delta"), GRIDS)
    def test_of_shifted_histograms_are_the_largest_of_all(self, change, width, delta):
        space = {"width": width, "delta": delta, "low": 0, "high": 8}
        found = largest(lambda values: shifted_histograms(values, **space), NINE, change)
        assert shifted_sensitivity(change, **space) == found

    @pytest.mark.parametrize("change", [Move(0), Move(3), Move(2.5), Move(99), "arrival", "replacement"], ids=str)
    def test_of_a_clamped_sum_are_the_largest_of_all(self, change):
        assert sum_sensitivity(change, clamp=8) == largest(sum, NINE, change)

    @pytest.mark.parametrize("delta", [2, 3, 4])
    @pytest.mark.parametrize("universe", [NINE, HALVES], ids=["whole", "halves"])
    def test_moves_shorter_than_delta_change_cumulative_counts_by_1_and_shifted_histograms_by_2(self, delta, universe):
        space = {"delta": delta, "low": 0, "high": 8}
        shorter = Move(delta - 1 if universe is NINE else delta - 0.5)
        assert largest(lambda values: cumulative_counts(values, **space), universe, shorter) == 1
        assert cumulative_sensitivity(Move(delta), edges=delta_grid(**space)) == 1
        for k in (1, 2, 3):
            wide = {"width": k * delta, **space}
            assert largest(lambda values, wide=wide: shifted_histograms(values, **wide), universe, shorter) == 2
            assert shifted_sensitivity(Move(delta), **wide) == 2

    @settings(max_examples=200, deadline=None)
    @given(
        st.floats(0.001, 3),
        st.floats(-5, 5),
        st.floats(0.5, 20),
        st.lists(st.tuples(st.floats(-6, 26), st.floats(0, 1, exclude_max=True)), min_size=1, max_size=4),
    )
    def test_no_rounding_lets_a_move_shorter_than_delta_cross_two_edges(self, delta, low, span, changes):
        space = {"delta": delta, "low": low, "high": low + span}
        for start, part in changes:
            end = float(Fraction(str(start)) + Fraction(str(delta)) * Fraction(str(part)))
            if abs(Fraction(str(end)) - Fraction(str(start))) < Fraction(str(delta)):
                assert np.abs(cumulative_counts([start], **space) - cumulative_counts([end], **space)).sum() <= 1

    def test_in_binary_a_move_shorter_than_delta_would_cross_two_edges(self):
        # floor(x/.1) in floats puts .29999999999999998 into cell 2 and .3999999999999999 into 3, but .6 into 5.
        values = [0.59999999999999, 0.6, 0.69999999999999]
        cells = [int(np.argmax(cumulative_counts([value], delta=0.1, low=0, high=1))) for value in values]
        assert cells == [5, 6, 6]
        assert math.floor(0.6 / 0.1) == 5


class TestWhereTheSlidesErr:
    """ "The sensitivity is still 2" is so for moves of at most delta and shifts of at least delta."""

    def test_the_sensitivity_of_shifted_histograms_is_k_for_an_arrival_and_2k_for_a_replacement(self):
        space = {"width": 6, "delta": 2, "low": 0, "high": 8}
        for change, exact in (("arrival", 3), ("departure", 3), ("replacement", 6)):
            assert largest(lambda values: shifted_histograms(values, **space), NINE, change) == exact
            assert shifted_sensitivity(change, **space) == exact > 2

    def test_shifts_below_the_length_of_a_move_double_it(self):
        space = {"width": 4, "delta": 1, "low": 0, "high": 8}
        assert largest(lambda values: shifted_histograms(values, **space), NINE, Move(2)) == 4
        assert shifted_sensitivity(Move(2), **space) == 4

    def test_the_sensitivity_of_a_histogram_is_not_2_regardless_of_the_neighbourhood(self):
        assert largest(lambda values: histogram(values, edges=UNEVEN), NINE, "arrival") == 1
        assert histogram_sensitivity("arrival", edges=UNEVEN) == 1


class TestCounts:
    @settings(max_examples=100, deadline=None)
    @given(st.lists(st.integers(-3, 25), max_size=20), st.integers(1, 7), st.integers(-2, 2), st.integers(1, 24))
    def test_cumulative_counts_are_those_of_a_loop_and_end_with_everybody(self, values, delta, low, span):
        high = low + span
        edges = [*range(low + delta, high, delta), math.inf]
        inside = [min(max(value, low), high) for value in values]
        expected = [sum(value < edge for value in inside) for edge in edges]
        assert cumulative_counts(values, delta=delta, low=low, high=high).tolist() == expected
        assert expected[-1] == len(values)

    @settings(max_examples=100, deadline=None)
    @given(st.lists(st.integers(0, 20), max_size=20), st.integers(1, 4), st.integers(1, 5), st.integers(1, 20))
    def test_each_shifted_histogram_counts_everybody_in_bins_with_edges_at_j_delta_and_every_width_from_there(
        self, values, delta, k, high
    ):
        found = shifted_histograms(values, width=k * delta, delta=delta, low=0, high=high)
        assert found.shape[0] == k
        for j, row in enumerate(found.tolist()):
            edges = [0, *(edge for edge in range(j * delta, high, k * delta) if edge > 0), math.inf]
            expected = [sum(a <= min(v, high) < b for v in values) for a, b in itertools.pairwise(edges)]
            assert row == expected + [0] * (found.shape[1] - len(expected))

    def test_histograms_are_those_of_numpy(self):
        rng = np.random.default_rng(1)
        values, edges = rng.integers(0, 51, 1000), [0, 2, 4, 6, 8, 10, 12, 15, 20, 30, 50]
        found = histogram(np.minimum(values, 50), edges=edges)
        assert found.tolist() == np.histogram(values, bins=edges)[0].tolist()
        assert cumulative(values, edges=edges).tolist() == np.cumsum(found).tolist()

    def test_what_lies_outside_counts_at_the_end_and_an_upper_end_belongs_to_the_last_cell(self):
        assert cumulative_counts([-7, 0, 5, 6, 99], delta=2, low=0, high=6).tolist() == [2, 2, 5]
        assert histogram([-7, 0, 5, 6, 99], edges=[0, 2, 6]).tolist() == [2, 3]

    def test_whole_floats_decimals_and_integers_beyond_64_bits_count_alike(self):
        space = {"delta": 2, "low": 0, "high": 10}
        expected = [1, 2, 3, 3, 4]
        for kind in (int, float, Decimal, Fraction):
            assert cumulative_counts([kind(v) for v in (1, 3, 5, 9)], **space).tolist() == expected
        big = 10**30
        shifted = [v + big for v in (1, 3, 5, 9)]
        assert cumulative_counts(shifted, delta=2, low=big, high=big + 10).tolist() == expected

    def test_a_grid_of_tenths_has_ten_cells_to_one_and_its_edges_are_as_written(self):
        assert [float(edge) for edge in delta_grid(delta=0.1, low=0, high=1)] == [i / 10 for i in range(11)]
        assert len(cumulative_counts([0.3], delta=0.3, low=0, high=3)) == 10
        assert shifted_histograms([0.3], width=1, delta=0.1, low=0, high=1).shape == (10, 2)

    def test_no_household_gives_zeros(self):
        assert cumulative_counts([], delta=1, low=0, high=3).tolist() == [0, 0, 0]
        assert shifted_histograms([], width=2, delta=1, low=0, high=3).sum() == 0

    @settings(max_examples=100, deadline=None)
    @given(st.lists(st.integers(0, 30), min_size=2, max_size=8, unique=True), st.integers(0, 31))
    def test_edges_crossed_are_the_most_that_any_change_of_that_size_crosses(self, edges, size):
        edges = sorted(edges)
        crossed = max(
            sum(start < edge <= start + size for edge in edges[1:-1]) for start in range(edges[0] - 1, edges[-1] + 1)
        )
        assert edges_crossed(edges, size=size) == crossed

    @pytest.mark.parametrize(
        ("ask", "message"),
        [
            (lambda: cumulative_counts([1], delta=0, low=0, high=1), "delta = 0"),
            (lambda: cumulative_counts([1], delta=1, low=1, high=1), "low must be below high"),
            (lambda: cumulative_counts([1], delta=1e-9, low=0, high=1), "10\\^7"),
            (lambda: cumulative_counts([math.nan], delta=1, low=0, high=1), "finite"),
            (lambda: cumulative_counts([math.inf], delta=1, low=0, high=1), "finite"),
            (lambda: shifted_histograms([1], width=3, delta=2, low=0, high=6), "whole multiple of delta = 2"),
            (lambda: shifted_histograms([1], width=1, delta=2, low=0, high=6), "whole multiple"),
            (lambda: histogram([1], edges=[0]), "two or more"),
            (lambda: histogram([1], edges=[0, 2, 2]), "above the one before"),
            (lambda: edges_crossed([3, 1], size=1), "above the one before"),
            (lambda: Move(-1), "size -1"),
        ],
    )
    def test_what_cannot_be_counted_is_refused(self, ask, message):
        with pytest.raises(ChainError, match=message):
            ask()
