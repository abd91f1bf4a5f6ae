"""Reflecting walks: closed forms against brute force, bounds above, estimates that converge."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from agedp.demo.synthetic_datasets import WALKS, demonstration_chains, walk_eigenvalues, walk_matrix
from agedp_data.datasets.synthetic.households import draw_states
from agedp_data.markov.mixing import is_reversible, reversibilised_bound, spectral_bound, spectral_gap, total_variation
from agedp_data.markov.transitions import transition_matrix

STEPS = [1, 7, 48, 96, 144]


def distance_of_rows(matrix):
    """The largest total variation between two rows, row by row."""
    return max(np.abs(a - b).sum() / 2 for a in matrix for b in matrix)


def stepped(walk):
    """One step of the walk at a time: where each move leads, reflected half a level beyond the ends."""
    matrix = np.zeros((12, 12))
    moves = {0: 1 - 2 * (walk.by_one + walk.by_two), 1: walk.by_one, -1: walk.by_one, 2: walk.by_two, -2: walk.by_two}
    for state in range(12):
        for move, probability in moves.items():
            reached = state + move
            if reached < 0:
                reached = -1 - reached
            if reached > 11:
                reached = 23 - reached
            matrix[state, reached] += probability
    return matrix


@pytest.mark.parametrize("walk", WALKS, ids=lambda walk: walk.name)
def test_a_walk_is_a_reversible_chain_with_uniform_stationary_law(walk):
    matrix = walk_matrix(walk)
    np.testing.assert_allclose(matrix, stepped(walk), atol=1e-15)
    np.testing.assert_allclose(matrix.sum(axis=1), 1, atol=1e-14)
    np.testing.assert_allclose(matrix, matrix.T, atol=0)
    assert is_reversible(matrix)
    assert (matrix >= 0).all()


@pytest.mark.parametrize("walk", WALKS, ids=lambda walk: walk.name)
def test_eigenvalues_and_powers_have_their_closed_form(walk):
    matrix, values = walk_matrix(walk), walk_eigenvalues(walk)
    np.testing.assert_allclose(np.sort(np.linalg.eigvalsh(matrix)), np.sort(values), atol=1e-13)
    assert spectral_gap(matrix) == pytest.approx(1 - np.sort(np.abs(values))[-2], abs=1e-12)
    place, number = np.arange(12) + 0.5, np.arange(12)
    cosines = np.cos(np.pi * place[:, None] * number / 12) * np.where(number == 0, np.sqrt(1 / 12), np.sqrt(1 / 6))
    for steps in STEPS:
        power = np.linalg.matrix_power(matrix, steps)
        np.testing.assert_allclose(cosines * values**steps @ cosines.T, power, atol=1e-12)
        assert total_variation(matrix, [steps])[0] == pytest.approx(distance_of_rows(power), abs=1e-12)


@pytest.mark.parametrize("walk", WALKS, ids=lambda walk: walk.name)
def test_both_bounds_lie_above_the_exact_value_at_every_age(walk):
    matrix, steps = walk_matrix(walk), np.arange(1, 145)
    exact = total_variation(matrix, steps)
    assert (spectral_bound(matrix, steps) >= exact).all()
    assert (reversibilised_bound(matrix, steps) >= exact).all()
    assert 0.1 < exact[47] < 0.4  # visible at one day
    assert exact[143] < exact[47] / 10  # and gone at three


def counts_of(kind, *, households, steps):
    """Transitions of some households, counted by hand."""
    generator = np.random.default_rng([kind, steps])
    states = draw_states(np.full(households, kind), steps=steps, generator=generator, chains=demonstration_chains())
    counts = np.zeros((12, 12))
    for before, after in pairwise(states.T):
        np.add.at(counts, (before, after), 1)
    return counts


@pytest.mark.parametrize(("kind", "steps"), [(0, 600), (0, 9600), (1, 600), (2, 9600)])
def test_estimated_total_variation_converges_to_the_exact_value(kind, steps):
    """Of n transitions the second eigenvalue has a standard error of at most sqrt(2 (1 - lambda^2) / n).

    (First-order perturbation with the cosine, which is at most sqrt(2).) Total variation decays like lambda^t, so its
    relative error is t / lambda times that. Six standard errors cannot flake; another walk is rejected.
    """
    estimated = transition_matrix(counts_of(kind, households=128, steps=steps), smoothing=0)
    value = total_variation(estimated, [48])[0]
    second = walk_eigenvalues(WALKS[kind])[1]
    allowed = 6 * 48 / second * np.sqrt(2 * (1 - second**2) / (128 * (steps - 1)))
    for candidate, walk in enumerate(WALKS):
        exact = total_variation(walk_matrix(walk), [48])[0]
        if candidate == kind:
            assert abs(value / exact - 1) <= allowed
        elif steps == 9600:
            assert abs(value / exact - 1) > allowed
