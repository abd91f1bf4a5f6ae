"""Distances and losses of delta-neighbourhood privacy, against shortest paths through all small datasets."""

from __future__ import annotations

import itertools
import math
from collections import deque
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from agedp_data.accounting.delta_neighbourhood import (
    distance,
    full_range_loss,
    loss_of_change,
    moves,
    standard_distance,
)
from agedp_data.epsilon import ceil_nano
from agedp_data.errors import ChainError
from agedp_data.mechanisms import laplace_scale


def multisets(universe, sizes):
    return [tuple(each) for size in sizes for each in itertools.combinations_with_replacement(universe, size)]


def steps(dataset, universe, *, delta, arrive=(), leave=()):
    """All datasets one step away: a move shorter than delta, an arrival at or a departure from the given points."""
    for index, value in enumerate(dataset):
        rest = dataset[:index] + dataset[index + 1 :]
        yield from (tuple(sorted((*rest, to))) for to in universe if 0 < abs(to - value) < delta)
        if value in leave:
            yield rest
    yield from (tuple(sorted((*dataset, value))) for value in arrive)


def shortest(start, universe, *, largest, **allowed):
    """The length of the shortest path to every dataset that can be reached."""
    lengths, queue = {start: 0}, deque([start])
    while queue:
        dataset = queue.popleft()
        for neighbour in steps(dataset, universe, **allowed):
            if len(neighbour) <= largest and neighbour not in lengths:
                lengths[neighbour] = lengths[dataset] + 1
                queue.append(neighbour)
    return lengths


@pytest.mark.parametrize("delta", [2, 2.5])
def test_between_whole_numbers_it_is_the_shortest_path_by_moves(delta):
    for size in (1, 2, 3):
        for start in multisets(range(5), [size]):
            paths = shortest(start, range(5), largest=3, delta=delta)
            for end in multisets(range(5), [size]):
                assert distance(start, end, delta=delta) == paths[end], (start, end)


def test_on_the_line_it_is_the_shortest_path_through_a_fine_grid():
    # Steps of an eighth: x < m for floor(x) + 1 = m leaves room for m steps of at most 7/8.
    fine = [Fraction(eighth, 8) for eighth in range(17)]
    coarse = fine[::4]
    for start in multisets(coarse, [1, 2]):
        paths = shortest(start, fine, largest=2, delta=Fraction(1))
        for end in multisets(coarse, [len(start)]):
            assert distance([float(x) for x in start], [float(x) for x in end], delta=1.0) == paths[end]


@pytest.mark.parametrize(("delta", "source"), [(2, [0]), (3, [1, 5]), (1, range(6))])
def test_with_a_source_it_is_the_shortest_path_by_moves_arrivals_and_departures(delta, source):
    universe = range(6)
    gate = [value for value in universe if any(abs(value - point) < delta for point in source)]
    for start in multisets(universe, [0, 1, 2]):
        paths = shortest(start, universe, largest=4, delta=delta, arrive=gate, leave=gate)
        for end in multisets(universe, [0, 1, 2]):
            assert distance(start, end, delta=delta, source=list(source)) == paths[end], (start, end)


def test_a_float_is_the_decimal_it_was_written_as():
    # In binary .3 - 0 lies below 3 times .1, and would be three moves.
    assert distance([0.0], [0.3], delta=0.1) == 4
    assert distance([Decimal("0.1")], [Decimal("0.3")], delta=Decimal("0.1")) == 3


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: distance([0], [1], delta=0), "delta = 0: must be above 0"),
        (lambda: distance([0], [1], delta=math.nan), "finite"),
        (lambda: distance([math.nan], [1.0], delta=1), "finite"),
        (lambda: distance(["x"], [1], delta=1), "finite"),
        (lambda: distance([0], [1], delta=2, source=[]), "no value arrives"),
        (lambda: standard_distance([3, 4], [3], neighbours="bounded"), "different sizes"),
        (lambda: loss_of_change(-1, epsilon=1, delta=1), None),
        (lambda: loss_of_change(1, epsilon=0, delta=1), None),
        (lambda: loss_of_change(1, epsilon=1, delta=0), None),
        (lambda: loss_of_change(1, epsilon=1, delta=1, full=0), None),
        (lambda: loss_of_change(1, epsilon=math.inf, delta=1), None),
        (lambda: full_range_loss(1, protected=0, full=1), None),
        (lambda: full_range_loss(1, protected=3, full=2), None),
        (lambda: moves(-1, delta=2), None),
        (lambda: moves(1.0, delta=0), None),
    ],
)
def test_what_has_no_distance_and_no_loss_is_refused(call, message):
    with pytest.raises(ChainError, match=message):
        call()


def test_a_change_of_size_x_costs_epsilon_x_over_delta_which_laplace_noise_says_exactly():
    # ln of the ratio of two Laplace densities x apart, at an output beyond both
    scale = laplace_scale(sensitivity=2000, loss=Decimal("0.1")) / 500
    for size in (1, 700, 2000, 4000, 50_000):
        ratio = (5000 + size / 500) / scale - 5000 / scale
        assert loss_of_change(size, epsilon=0.1, delta=2000, full=50_000) == pytest.approx(ratio, rel=1e-9)


def test_of_the_reference_the_full_range_costs_two_and_a_half_and_is_never_rounded_down():
    assert full_range_loss(0.1, protected=2000, full=50_000) == Fraction(5, 2)  # U = 50, delta = 2, eps = .1
    for size in (50, 10**9):
        assert loss_of_change(size, epsilon=0.1, delta=2, full=50) == Fraction(5, 2)
    assert ceil_nano(loss_of_change(1, epsilon=1, delta=3)) == 333_333_334


def test_bounded_and_unbounded_are_the_other_way_round():
    # Kifer and Machanavajjhala 2011: unbounded neighbours differ in size, bounded ones never do.
    assert standard_distance([3, 4], [3], neighbours="unbounded") == 1
    assert standard_distance([3, 4], [3, 9], neighbours="unbounded") == 2
    assert standard_distance([3, 4], [3, 9], neighbours="bounded") == 1


@pytest.mark.parametrize(
    ("neighbours", "delta", "ends"), [("bounded", 99, ()), ("unbounded", 0, range(4)), ("combined", 99, range(4))]
)
def test_standard_distances_are_shortest_paths(neighbours, delta, ends):
    sizes = [2] if neighbours == "bounded" else [0, 1, 2]
    for start in multisets(range(4), sizes):
        paths = shortest(start, range(4), largest=3, delta=delta, arrive=ends, leave=ends)
        for end in multisets(range(4), sizes):
            assert standard_distance(start, end, neighbours=neighbours) == paths[end]


def test_of_the_table_the_standard_distances_and_the_first_row_hold():
    assert standard_distance([0, 0, 0, 0], [0, 0, 1, 1], neighbours="bounded") == 2
    assert standard_distance([0, 0, 0, 0], [0, 0, 0, 9], neighbours="bounded") == 1
    assert distance([0, 0, 0, 0], [0, 0, 1, 1], delta=5) == 2


def test_of_the_table_the_second_row_is_two_on_the_line_and_three_in_whole_numbers():
    assert distance([0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 9.0], delta=5) == 2
    assert distance([0, 0, 0, 0], [0, 0, 0, 9], delta=5) == 3


def test_two_delta_costs_three_epsilon_of_a_mechanism_that_counts_moves():
    # The number of moves from 0, with Laplace noise: neighbours are at most 1 apart, so it is epsilon-private.
    line = np.arange(0, 101) / 10
    counted = moves(line, delta=5)
    apart = np.abs(counted[:, None] - counted[None, :])
    assert apart[np.abs(line[:, None] - line[None, :]) < 5].max() == 1
    assert apart[0, line == 10.0] == 3 == moves(10.0, delta=5)
    assert apart[0, line < 10].max() == 2


def test_without_values_half_way_two_delta_may_cost_anything():
    # Delta of 1 kWh, use in whole kWh: no two values are neighbours, so even publishing all of them is "private".
    with pytest.raises(ChainError, match="whole numbers differ by at least 1"):
        moves([2], delta=1)
    with pytest.raises(ChainError, match="whole numbers differ"):
        distance([0, 7], [2, 7], delta=1)
