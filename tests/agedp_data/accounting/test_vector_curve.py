"""The Rényi curve of a vector of bounded moves, against the probabilities of all outcomes for all small vectors."""

from __future__ import annotations

import itertools
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agedp_data.accounting.renyi import ORDERS, PICO, approximate_epsilon, laplace_curve, multiply, vector_curve
from agedp_data.errors import ChainError

OUTCOMES = np.arange(-1_500, 1_501)
CHOSEN = [0, 20, 40, 55]
"""Orders up to 450: beyond, probabilities to the power of the order are no floats."""


@cache
def by_outcomes(move: int, scale: float) -> np.ndarray:
    """Rényi losses of one value that moves, from the probability of each outcome, at the chosen orders."""
    q = np.exp(-1 / scale)
    log_zero = np.log((1 - q) / (1 + q)) - np.abs(OUTCOMES) / scale
    log_moved = np.log((1 - q) / (1 + q)) - np.abs(OUTCOMES - move) / scale
    losses = []
    for order in ORDERS[CHOSEN]:
        exponent = order * log_moved + (1 - order) * log_zero
        largest = exponent.max()
        losses.append((largest + np.log(np.exp(exponent - largest).sum())) / (order - 1))
    return np.array(losses)


@pytest.mark.parametrize("scale", [0.7, 4.0, 23.0])
def test_no_vector_of_bounded_moves_has_a_larger_curve(scale):
    moves = [move for move in itertools.product(range(6), repeat=4) if sum(move) > 0]
    losses = {move: sum(by_outcomes(each, scale) for each in move) for move in moves}
    for largest, sensitivity in itertools.product(range(1, 6), range(1, 11)):
        permitted = [move for move in moves if max(move) <= largest and sum(move) <= sensitivity]
        if sensitivity > 4 * largest:  # four cells cannot move so much
            continue
        worst = np.max([losses[move] for move in permitted], axis=0)
        curve = vector_curve(sensitivity, largest_move=largest, scale=scale)[CHOSEN] / PICO
        assert (curve >= worst * (1 - 1e-9)).all()
        np.testing.assert_allclose(curve, worst, rtol=1e-8, atol=1e-11)  # and one of them attains it


def test_one_large_move_is_the_worst_and_many_small_ones_cost_little():
    whole = laplace_curve(100_000, 1e6)
    assert (vector_curve(100_000, largest_move=100_000, scale=1e6) == whole).all()
    assert (vector_curve(100_000, largest_move=10**9, scale=1e6) == whole).all()
    years = [
        approximate_epsilon(
            multiply(vector_curve(100_000, largest_move=move, scale=1e6), 365), 1e-6, pure=36_500_000_000
        )
        for move in (2_000, 4_000, 50_000, 100_000)
    ]
    assert years == sorted(years)
    assert 5 * years[1] < years[3]


@given(st.integers(1, 10**5), st.integers(1, 10**5), st.floats(0.1, 1e6))
def test_a_vector_loses_at_most_what_one_value_loses(sensitivity, largest, scale):
    curve = vector_curve(sensitivity, largest_move=largest, scale=scale)
    assert (curve <= laplace_curve(sensitivity, scale)).all()
    assert (curve >= laplace_curve(min(largest, sensitivity), scale)).all()


def test_a_cell_moves_by_at_least_one():
    with pytest.raises(ChainError, match="a cell moves by 0: must be at least 1"):
        vector_curve(5, largest_move=0, scale=1.0)
