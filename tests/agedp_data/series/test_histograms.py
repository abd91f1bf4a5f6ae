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
from agedp_data.series.sensitivity import (
    Move,
    cumulative,
    cumulative_sensitivity,
    delta_grid,
    edges_crossed,
    histogram,
    histogram_sensitivity,
    shifted_sensitivity,
    sum_sensitivity,
)

NINE = range(9)
HALVES = [value / 2 for value in range(17)]
UNEVEN = [0, 1, 3, 4, 8]
CHANGES = [Move(0), Move(1), Move(2), Move(3), Move(5), Move(8), "arrival", "departure", "replacement"]


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


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_sensitivities_are_the_largest_change_of_all(change):
    for edges in (UNEVEN, [0, 2, 4, 6, 8], [0, 8], [2, 3, 5]):
        found = largest(lambda values, edges=edges: histogram(values, edges=edges), NINE, change)
        assert histogram_sensitivity(change, edges=edges) == found, edges
        found = largest(lambda values, edges=edges: cumulative(values, edges=edges), NINE, change)
        assert cumulative_sensitivity(change, edges=edges) == found, edges
    for width, delta in [(1, 1), (2, 1), (4, 2), (6, 2), (3, 3), (12, 3), (40, 5)]:
        space = {"width": width, "delta": delta, "low": 0, "high": 8}
        found = largest(lambda values, space=space: shifted_histograms(values, **space), NINE, change)
        assert shifted_sensitivity(change, **space) == found, space
    for amount in (change, Move(2.5), Move(99)):
        assert sum_sensitivity(amount, clamp=8) == largest(sum, NINE, amount)


@settings(max_examples=60, deadline=None)
@given(
    st.floats(0.001, 3),
    st.floats(-5, 5),
    st.floats(0.5, 20),
    st.lists(st.tuples(st.floats(-6, 26), st.floats(0, 1, exclude_max=True)), min_size=1, max_size=4),
)
def test_no_rounding_lets_a_shorter_move_cross_two_edges(delta, low, span, changes):
    space = {"delta": delta, "low": low, "high": low + span}
    for start, part in changes:
        end = float(Fraction(str(start)) + Fraction(str(delta)) * Fraction(str(part)))
        if abs(Fraction(str(end)) - Fraction(str(start))) < Fraction(str(delta)):
            assert np.abs(cumulative_counts([start], **space) - cumulative_counts([end], **space)).sum() <= 1


def test_edges_are_as_written_where_binary_fractions_would_err():
    # floor(x/.1) in floats puts .6 into cell 5, and a shorter move would cross two edges
    values = [0.59999999999999, 0.6, 0.69999999999999]
    assert [int(np.argmax(cumulative_counts([value], delta=0.1, low=0, high=1))) for value in values] == [5, 6, 6]
    assert [float(edge) for edge in delta_grid(delta=0.1, low=0, high=1)] == [i / 10 for i in range(11)]
    assert len(cumulative_counts([0.3], delta=0.3, low=0, high=3)) == 10
    assert shifted_histograms([0.3], width=1, delta=0.1, low=0, high=1).shape == (10, 2)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-3, 25), max_size=20), st.integers(1, 7), st.integers(-2, 2), st.integers(1, 24))
def test_cumulative_counts_are_those_of_a_loop(values, delta, low, span):
    high = low + span
    edges = [*range(low + delta, high, delta), math.inf]
    expected = [sum(min(max(value, low), high) < edge for value in values) for edge in edges]
    assert cumulative_counts(values, delta=delta, low=low, high=high).tolist() == expected
    assert expected[-1] == len(values)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 20), max_size=20), st.integers(1, 4), st.integers(1, 5), st.integers(1, 20))
def test_shifted_histograms_have_edges_at_j_delta_and_every_width_on(values, delta, k, high):
    counts = shifted_histograms(values, width=k * delta, delta=delta, low=0, high=high)
    assert counts.shape[0] == k
    for j, row in enumerate(counts.tolist()):
        edges = [0, *(edge for edge in range(j * delta, high, k * delta) if edge > 0), math.inf]
        expected = [sum(a <= min(v, high) < b for v in values) for a, b in itertools.pairwise(edges)]
        assert row == expected + [0] * (counts.shape[1] - len(expected))


def test_histograms_are_those_of_numpy():
    values, edges = np.random.default_rng(1).integers(0, 51, 1000), [0, 2, 4, 6, 8, 10, 12, 15, 20, 30, 50]
    counts = histogram(np.minimum(values, 50), edges=edges)
    assert counts.tolist() == np.histogram(values, bins=edges)[0].tolist()
    assert cumulative(values, edges=edges).tolist() == np.cumsum(counts).tolist()
    assert histogram([-7, 0, 5, 6, 99], edges=[0, 2, 6]).tolist() == [2, 3]  # what lies outside counts at the end


def test_numbers_of_any_kind_and_size_count_alike():
    space, expected, values = {"delta": 2, "low": 0, "high": 10}, [1, 2, 3, 3, 4], (1, 3, 5, 9)
    for kind in (int, float, Decimal, Fraction):
        assert cumulative_counts([kind(value) for value in values], **space).tolist() == expected
    big = 10**30
    counts = cumulative_counts([value + big for value in values], delta=2, low=big, high=big + 10)
    assert counts.tolist() == expected


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: cumulative_counts([1], delta=0, low=0, high=1), "delta = 0"),
        (lambda: cumulative_counts([1], delta=1, low=1, high=1), "low must be below high"),
        (lambda: cumulative_counts([1], delta=1e-9, low=0, high=1), "10\\^7"),
        (lambda: cumulative_counts([math.nan], delta=1, low=0, high=1), "finite"),
        (lambda: shifted_histograms([1], width=3, delta=2, low=0, high=6), "whole multiple of delta = 2"),
        (lambda: shifted_histograms([1], width=1, delta=2, low=0, high=6), "whole multiple"),
        (lambda: histogram([1], edges=[0]), "two or more"),
        (lambda: histogram([1], edges=[0, 2, 2]), "above the one before"),
        (lambda: edges_crossed([3, 1], size=1), "above the one before"),
        (lambda: Move(-1), "size -1"),
    ],
)
def test_what_cannot_be_counted_is_refused(ask, message):
    with pytest.raises(ChainError, match=message):
        ask()
