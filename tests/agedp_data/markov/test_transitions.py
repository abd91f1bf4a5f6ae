"""Counts by hand, laws in closed form, powers and total variation by plain multiplication, bounds against them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agedp_data.markov.mixing import is_reversible, reversibilised_bound, spectral_bound, spectral_gap, total_variation
from agedp_data.markov.transitions import count_transitions, power, reverse, stationary, transition_matrix

NAN = np.nan
CYCLE = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])


def random_chains(shape, k, seed, concentration=0.4):
    return np.random.default_rng(seed).dirichlet(np.full(k, concentration), size=(*shape, k))


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


STEPS = [0, 1, 2, 3, 7, 20, 60]


def test_the_distance_is_that_of_the_reversed_powers():
    for chain in random_chains((5,), 5, 1):
        law = np.linalg.matrix_power(chain, 10_000)[0]
        for t, distance in zip(STEPS, total_variation(chain, STEPS), strict=True):
            backward = (law[:, None] * np.linalg.matrix_power(chain, t)).T / law[:, None]
            assert distance == pytest.approx(max(np.abs(x - y).sum() / 2 for x in backward for y in backward), abs=1e-9)


def test_bounds_hold_for_any_chain_and_eq_55_for_reversible_ones():
    for k, concentration in ((2, 1.0), (4, 0.1), (12, 0.4)):
        chains = random_chains((40,), k, k, concentration)
        assert (reversibilised_bound(chains, STEPS) >= total_variation(chains, STEPS)).all()
    # Walks on weighted graphs: P(x, y) = w(x, y) / w(x) with symmetric w.
    weight = np.random.default_rng(5).gamma(0.3, size=(40, 6, 6)) + 1e-4
    weight = weight + np.swapaxes(weight, 1, 2)
    chains = weight / weight.sum(axis=-1, keepdims=True)
    assert is_reversible(chains).all()
    for bound in (spectral_bound, reversibilised_bound):
        assert (bound(chains, STEPS) >= total_variation(chains, STEPS)).all()


def test_equation_55_has_its_value_by_hand():
    # pi = (.75, .25), lambda = .6: sqrt(3) .6^t.
    expected = np.minimum(1, np.sqrt(3) * 0.6 ** np.array(STEPS))
    np.testing.assert_allclose(spectral_bound([[0.9, 0.1], [0.3, 0.7]], STEPS), expected, atol=1e-13)


def test_the_gap_of_a_rotation_is_its_modulus():
    # Eigenvalues of circulant (a, b, c): |a + b w + c w^2|, w a third root of one.
    root = np.exp(2j * np.pi / 3)
    chain = [[0.1, 0.8, 0.1], [0.1, 0.1, 0.8], [0.8, 0.1, 0.1]]
    assert not is_reversible(chain)
    assert spectral_gap(chain) == pytest.approx(1 - abs(0.1 + 0.8 * root + 0.1 * root**2))


def test_transient_and_unvisited_states_count_for_nothing():
    inner, outer = np.array([[0.9, 0.1], [0.3, 0.7]]), np.full((4, 4), np.nan)
    outer[1:3, 1:3] = inner
    outer[1:3, [0, 3]] = 0.0
    outer[0] = [0.2, 0.8, 0.0, 0.0]
    alone = [[1.0, 0.0], [np.nan, np.nan]]  # one visited state has nothing to forget
    for distance in (total_variation, spectral_bound, reversibilised_bound):
        np.testing.assert_allclose(distance(outer, STEPS), distance(inner, STEPS), atol=1e-12)
        np.testing.assert_array_equal(distance(alone, STEPS), np.zeros(len(STEPS)))
    assert spectral_gap(outer) == pytest.approx(float(spectral_gap(inner)))
    assert spectral_gap(alone) == 1.0
