"""Total variation by brute force, bounds against it, refusals where a bound does not hold."""

from __future__ import annotations

import numpy as np
import pytest

from agedp_data.markov.mixing import is_reversible, reversibilised_bound, spectral_bound, spectral_gap, total_variation

STEPS = [0, 1, 2, 3, 7, 20, 60]


def random_chains(count, k, seed, concentration=0.4):
    return np.random.default_rng(seed).dirichlet(np.full(k, concentration), size=(count, k))


def test_two_states_forget_at_the_known_rate():
    p, q = 0.1, 0.25
    chain = [[1 - p, p], [q, 1 - q]]
    np.testing.assert_allclose(total_variation(chain, STEPS), (1 - p - q) ** np.array(STEPS), rtol=1e-12, atol=1e-15)
    assert spectral_gap(chain) == pytest.approx(p + q)


def test_the_distance_is_that_of_the_reversed_powers():
    for chain in random_chains(5, 5, 1):
        law = np.linalg.matrix_power(chain, 10_000)[0]
        for t, distance in zip(STEPS, total_variation(chain, STEPS), strict=True):
            backward = (law[:, None] * np.linalg.matrix_power(chain, t)).T / law[:, None]
            assert distance == pytest.approx(max(np.abs(x - y).sum() / 2 for x in backward for y in backward), abs=1e-9)


def test_bounds_hold_for_any_chain_and_eq_55_for_reversible_ones():
    for k, concentration in ((2, 1.0), (4, 0.1), (12, 0.4)):
        chains = random_chains(40, k, k, concentration)
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
