"""Counts by hand, stationary laws in closed form and in exact fractions, powers by plain multiplication."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agedp_data.markov.transitions import count_transitions, power, reverse, stationary, transition_matrix

NAN = np.nan
CYCLE = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])


def random_chains(shape, k, seed):
    return np.random.default_rng(seed).dirichlet(np.full(k, 0.4), size=(*shape, k))


def test_transitions_are_counted_between_neighbours_and_never_across_a_gap():
    states = [0, 1, 1, 2, -1, 0, 0, 2]
    contiguous = [True, True, False, True, True, True, True]
    #  0>1, 1>1, (gap) , 2>-1 no, -1>0 no, 0>0, 0>2
    expected = [[1, 1, 1], [0, 1, 0], [0, 0, 0]]
    assert count_transitions(states, contiguous, 3).tolist() == expected


def test_no_reading_and_one_reading_have_no_transition():
    assert count_transitions([], [], 2).tolist() == [[0, 0], [0, 0]]
    assert count_transitions([1], [], 2).tolist() == [[0, 0], [0, 0]]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(-1, 3), st.booleans()), max_size=40))
def test_counts_are_those_of_a_plain_loop(series):
    states, follows = [s for s, _ in series], [f for _, f in series][1:]
    expected = np.zeros((4, 4), int)
    for before, after, near in zip(states, states[1:], follows, strict=False):
        if near and before >= 0 and after >= 0:
            expected[before, after] += 1
    assert count_transitions(states, follows, 4).tolist() == expected.tolist()


def test_a_row_without_visits_is_nan():
    np.testing.assert_array_equal(transition_matrix([[[3, 1], [0, 0]]], smoothing=0), [[[0.75, 0.25], [NAN, NAN]]])


def test_smoothing_is_that_of_equation_28():
    smooth = transition_matrix(7 * np.eye(50), smoothing=0.05)
    np.testing.assert_allclose(smooth[0, :2], [1.05 / 3.5, 0.05 / 3.5])


def test_two_states_have_their_closed_law():
    p, q = 1e-9, 3e-13
    np.testing.assert_allclose(stationary([[1 - p, p], [q, 1 - q]]), [q / (p + q), p / (p + q)], rtol=1e-12)


def exact_law(chain):
    """Solve pi P = pi in fractions by elimination."""
    k = len(chain)
    rows = [[chain[j][i] - (i == j) for j in range(k)] + [Fraction(0)] for i in range(k)][:-1]
    rows.append([Fraction(1)] * k + [Fraction(1)])
    for i in range(k):
        pivot = next(r for r in range(i, k) if rows[r][i] != 0)
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [x / rows[i][i] for x in rows[i]]
        for r in range(k):
            if r != i:
                rows[r] = [x - rows[r][i] * y for x, y in zip(rows[r], rows[i], strict=True)]
    return [row[-1] for row in rows]


def test_nearly_separate_blocks_keep_every_digit():
    tiny = Fraction(1, 2**50)
    half, third = Fraction(1, 2), Fraction(1, 4)
    chain = [
        [half, half - tiny, tiny, 0],
        [third, 1 - third, Fraction(0), Fraction(0)],
        [Fraction(0), 3 * tiny, half, half - 3 * tiny],
        [Fraction(0), Fraction(0), third, 1 - third],
    ]
    expected = [float(x) for x in exact_law([[Fraction(x) for x in row] for row in chain])]
    np.testing.assert_allclose(stationary([[float(x) for x in row] for row in chain]), expected, rtol=1e-13)


def test_the_law_of_a_stack_is_left_fixed_by_each_chain():
    chains = random_chains((3, 4), 6, 1)
    law = stationary(chains)
    np.testing.assert_allclose(np.einsum("...i,...ij->...j", law, chains), law, atol=1e-14)
    np.testing.assert_allclose(law.sum(axis=-1), 1)


def test_transient_states_have_probability_zero_wherever_they_stand():
    chain = np.array([[0.5, 0.5, 0.0], [0.0, 0.9, 0.1], [0.0, 0.3, 0.7]])
    for order in ([0, 1, 2], [1, 0, 2], [1, 2, 0]):
        np.testing.assert_allclose(stationary(chain[np.ix_(order, order)]), np.array([0, 0.75, 0.25])[order])


def test_a_periodic_chain_has_a_law():
    np.testing.assert_allclose(stationary(CYCLE), np.full(3, 1 / 3))


def test_states_without_rows_are_left_out_with_what_leads_only_to_them():
    # State 3 was seen only last; 2 was always followed by 3. What is known is the chain on 0 and 1.
    counts = [[6, 3, 1, 0], [3, 1, 0, 0], [0, 0, 0, 2], [0, 0, 0, 0]]
    chain = transition_matrix(counts, smoothing=0)
    inner = np.array([[6 / 9, 3 / 9], [3 / 4, 1 / 4]])
    np.testing.assert_allclose(stationary(chain), [*stationary(inner), 0, 0])
    for result in (power(chain, 1), reverse(chain)):
        np.testing.assert_array_equal(np.isnan(result).all(axis=1), [False, False, True, True])
        np.testing.assert_array_equal(result[:2, 2:], np.zeros((2, 2)))
    np.testing.assert_allclose(power(chain, 3)[:2, :2], np.linalg.matrix_power(inner, 3))
    np.testing.assert_array_equal(power(chain, 0)[:2], np.eye(4)[:2])


def test_one_visited_state_is_a_chain():
    chain = [[1.0, 0.0], [NAN, NAN]]
    np.testing.assert_array_equal(stationary(chain), [1, 0])
    np.testing.assert_array_equal(reverse(chain), [[1, 0], [NAN, NAN]])


def test_reversal_is_bayes_rule_and_its_own_inverse():
    chains = random_chains((5,), 4, 2)
    law = stationary(chains)
    flow = law[..., :, None] * chains
    np.testing.assert_allclose(reverse(chains), np.swapaxes(flow, 1, 2) / law[..., :, None], rtol=1e-12)
    np.testing.assert_allclose(reverse(reverse(chains)), chains, rtol=1e-10)
    np.testing.assert_array_equal(reverse(CYCLE), CYCLE.T)


def test_transient_states_have_no_reversed_row():
    chain = [[0.5, 0.5, 0.0], [0.0, 0.9, 0.1], [0.0, 0.3, 0.7]]
    backward = reverse(chain)
    np.testing.assert_array_equal(np.isnan(backward).all(axis=1), [True, False, False])
    np.testing.assert_allclose(backward[1:, 1:], [[0.9, 0.1], [0.3, 0.7]])


@pytest.mark.parametrize("steps", [0, 1, 2, 5, 31])
def test_powers_are_repeated_products(steps):
    chains = random_chains((3,), 5, 3)
    expected = np.broadcast_to(np.eye(5), chains.shape)
    for _ in range(steps):
        expected = expected @ chains
    np.testing.assert_allclose(power(chains, steps), expected, atol=1e-13)


def test_steps_broadcast_against_the_stack():
    chains = random_chains((2,), 3, 4)
    several = power(chains, [[0], [7], [7], [2]])
    assert several.shape == (4, 2, 3, 3)
    np.testing.assert_array_equal(several[1], power(chains, 7))
    np.testing.assert_array_equal(power(chains[0], [2, 7])[1], power(chains[0], 7))


def test_a_million_steps_leave_rows_that_sum_to_one():
    chain = [[1 - 1e-7, 1e-7], [2e-7, 1 - 2e-7]]
    far = power(chain, 10**6)
    np.testing.assert_allclose(far.sum(axis=1), 1, rtol=1e-15)
    assert far[0, 0] - far[1, 0] == pytest.approx((1 - 3e-7) ** 10**6, rel=1e-8)
