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


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(-1, 3), st.booleans()), max_size=40))
def test_counts_are_those_of_a_plain_loop(series):
    states, follows = [s for s, _ in series], [f for _, f in series][1:]
    expected = np.zeros((4, 4), int)
    for before, after, near in zip(states, states[1:], follows, strict=False):
        if near and before >= 0 and after >= 0:
            expected[before, after] += 1
    assert count_transitions(states, follows, 4).tolist() == expected.tolist()


def test_a_series_read_less_often_begins_anew_after_a_gap():
    states = [0, 1, 0, 1, 1, 0, 1, 0, 1]
    follows = [True, True, True, False, True, True, True, True]
    # Runs 0..3 and 4..8; every second: (0, 2), then (4, 6), (6, 8).
    assert count_transitions(states, follows, 2, every=2).tolist() == [[1, 0], [0, 2]]
    assert count_transitions(states, follows, 2, every=4).tolist() == [[0, 0], [0, 1]]
    assert count_transitions([0, 1], [True], 2, every=5).tolist() == [[0, 0], [0, 0]]


def test_rows_are_shares_smoothed_by_equation_28_and_nan_without_visits():
    np.testing.assert_array_equal(transition_matrix([[[3, 1], [0, 0]]], smoothing=0), [[[0.75, 0.25], [NAN, NAN]]])
    smooth = transition_matrix(7 * np.eye(50), smoothing=0.05)
    np.testing.assert_allclose(smooth[0, :2], [1.05 / 3.5, 0.05 / 3.5])


def test_two_states_have_their_closed_law():
    p, q = 1e-9, 3e-13
    np.testing.assert_allclose(stationary([[1 - p, p], [q, 1 - q]]), [q / (p + q), p / (p + q)], rtol=1e-12)


def exact_law(chain):
    """Solve pi P = pi in fractions by elimination."""
    k = len(chain)
    rows = [[chain[j][i] - (i == j) for j in range(k)] + [Fraction(0)] for i in range(k)][:-1]
    rows.append([Fraction(1)] * (k + 1))
    for i in range(k):
        pivot = next(r for r in range(i, k) if rows[r][i] != 0)
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [x / rows[i][i] for x in rows[i]]
        for r in set(range(k)) - {i}:
            rows[r] = [x - rows[r][i] * y for x, y in zip(rows[r], rows[i], strict=True)]
    return [row[-1] for row in rows]


def test_nearly_separate_blocks_keep_every_digit():
    tiny, half, quarter = Fraction(1, 2**50), Fraction(1, 2), Fraction(1, 4)
    chain = [
        [half, half - tiny, tiny, 0],
        [quarter, 1 - quarter, 0, 0],
        [0, 3 * tiny, half, half - 3 * tiny],
        [0, 0, quarter, 1 - quarter],
    ]
    expected = [float(x) for x in exact_law([[Fraction(x) for x in row] for row in chain])]
    np.testing.assert_allclose(stationary([[float(x) for x in row] for row in chain]), expected, rtol=1e-13)


def test_the_law_of_a_stack_is_left_fixed_by_each_chain():
    chains = random_chains((3, 4), 6, 1)
    law = stationary(chains)
    np.testing.assert_allclose(np.einsum("...i,...ij->...j", law, chains), law, atol=1e-14)
    np.testing.assert_allclose(law.sum(axis=-1), 1)
    np.testing.assert_allclose(stationary(CYCLE), np.full(3, 1 / 3))


def test_transient_states_have_probability_zero_and_no_reversed_row():
    chain = np.array([[0.5, 0.5, 0.0], [0.0, 0.9, 0.1], [0.0, 0.3, 0.7]])
    for order in ([0, 1, 2], [1, 0, 2], [1, 2, 0]):
        np.testing.assert_allclose(stationary(chain[np.ix_(order, order)]), np.array([0, 0.75, 0.25])[order])
    np.testing.assert_array_equal(np.isnan(reverse(chain)).all(axis=1), [True, False, False])
    np.testing.assert_allclose(reverse(chain)[1:, 1:], [[0.9, 0.1], [0.3, 0.7]])


def test_states_without_rows_are_left_out_with_what_leads_only_to_them():
    # State 3 was seen only last; 2 was always followed by 3. What is known is the chain on 0 and 1.
    chain = transition_matrix([[6, 3, 1, 0], [3, 1, 0, 0], [0, 0, 0, 2], [0, 0, 0, 0]], smoothing=0)
    inner = np.array([[6 / 9, 3 / 9], [3 / 4, 1 / 4]])
    np.testing.assert_allclose(stationary(chain), [*stationary(inner), 0, 0])
    for result in (power(chain, 1), reverse(chain)):
        np.testing.assert_array_equal(np.isnan(result).all(axis=1), [False, False, True, True])
        np.testing.assert_array_equal(result[:2, 2:], np.zeros((2, 2)))
    np.testing.assert_allclose(power(chain, 3)[:2, :2], np.linalg.matrix_power(inner, 3))
    np.testing.assert_array_equal(power(chain, 0)[:2], np.eye(4)[:2])
    np.testing.assert_array_equal(reverse([[1.0, 0.0], [NAN, NAN]]), [[1, 0], [NAN, NAN]])


def test_reversal_is_bayes_rule_and_its_own_inverse():
    chains = random_chains((5,), 4, 2)
    law = stationary(chains)
    flow = law[..., :, None] * chains
    np.testing.assert_allclose(reverse(chains), np.swapaxes(flow, 1, 2) / law[..., :, None], rtol=1e-12)
    np.testing.assert_allclose(reverse(reverse(chains)), chains, rtol=1e-10)


def test_powers_are_repeated_products_and_broadcast():
    chains = random_chains((2,), 5, 3)
    powers = power(chains, [[0], [1], [7], [31]])
    assert powers.shape == (4, 2, 5, 5)
    for steps, found in zip((0, 1, 7, 31), powers, strict=True):
        np.testing.assert_allclose(found[1], np.linalg.matrix_power(chains[1], steps), atol=1e-13)
        np.testing.assert_array_equal(found, power(chains, steps))


def test_a_million_steps_leave_rows_that_sum_to_one():
    far = power([[1 - 1e-7, 1e-7], [2e-7, 1 - 2e-7]], 10**6)
    np.testing.assert_allclose(far.sum(axis=1), 1, rtol=1e-15)
    assert far[0, 0] - far[1, 0] == pytest.approx((1 - 3e-7) ** 10**6, rel=1e-8)
