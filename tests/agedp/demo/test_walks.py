"""Reflecting walks: closed forms against brute force, bounds above, and estimates that converge."""

from __future__ import annotations

import numpy as np
import pytest

from agedp.demo.demo_folder import WALKS, demonstration_chains, walk_eigenvalues, walk_matrix
from agedp_data.datasets.synthetic.households import draw_states
from agedp_data.markov.mixing import is_reversible, reversibilised_bound, spectral_bound, spectral_gap, total_variation
from agedp_data.markov.transitions import transition_matrix


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
def test_a_walk_has_its_closed_form_and_bounds_lie_above_it(walk):
    matrix, values = walk_matrix(walk), walk_eigenvalues(walk)
    np.testing.assert_allclose(matrix, stepped(walk), atol=1e-15)
    np.testing.assert_allclose(matrix, matrix.T, atol=0)
    assert is_reversible(matrix)
    np.testing.assert_allclose(np.sort(np.linalg.eigvalsh(matrix)), np.sort(values), atol=1e-13)
    assert spectral_gap(matrix) == pytest.approx(1 - np.sort(np.abs(values))[-2], abs=1e-12)
    place, number = np.arange(12) + 0.5, np.arange(12)
    cosines = np.cos(np.pi * place[:, None] * number / 12) * np.where(number == 0, np.sqrt(1 / 12), np.sqrt(1 / 6))
    steps = np.arange(1, 145)
    exact = total_variation(matrix, steps)
    for step in (1, 7, 48, 144):
        power = np.linalg.matrix_power(matrix, step)
        np.testing.assert_allclose(cosines * values**step @ cosines.T, power, atol=1e-12)
        assert exact[step - 1] == pytest.approx(max(np.abs(a - b).sum() / 2 for a in power for b in power), abs=1e-12)
    assert (spectral_bound(matrix, steps) >= exact).all()
    assert (reversibilised_bound(matrix, steps) >= exact).all()
    assert 0.1 < exact[47] < 0.4  # visible at one day
    assert exact[143] < exact[47] / 10  # and gone at three


@pytest.mark.parametrize(("kind", "steps"), [(0, 600), (0, 9600), (2, 9600)])
def test_estimated_total_variation_converges_to_the_exact_value(kind, steps):
    """Of n transitions the second eigenvalue has a standard error of at most sqrt(2 (1 - lambda^2) / n).

    (First-order perturbation with the cosine, which is at most sqrt(2).) Total variation decays like lambda^t, so its
    relative error is t / lambda times that. Six standard errors cannot flake; another walk is rejected.
    """
    generator, chains = np.random.default_rng([kind, steps]), demonstration_chains()
    states = draw_states(np.full(128, kind), steps=steps, generator=generator, chains=chains)
    pairs = states[:, :-1].astype(int) * 12 + states[:, 1:]
    counts = np.bincount(pairs.ravel(), minlength=144).reshape(12, 12).astype(float)
    value = total_variation(transition_matrix(counts, smoothing=0), [48])[0]
    second = walk_eigenvalues(WALKS[kind])[1]
    allowed = 6 * 48 / second * np.sqrt(2 * (1 - second**2) / (128 * (steps - 1)))
    for candidate, walk in enumerate(WALKS):
        exact = total_variation(walk_matrix(walk), [48])[0]
        if candidate == kind or steps == 9600:
            assert (abs(value / exact - 1) <= allowed) == (candidate == kind)
