"""The reversible fit is the most likely chain in detailed balance, whatever finds it; eq. 55 is that of the fit."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from agedp_data.errors import ChainError
from agedp_data.markov.mixing import is_reversible, reversible_fit_bound, reversible_transition_matrix, total_variation
from agedp_data.markov.transitions import transition_matrix

SPARSE = [[90, 7, 0, 0], [5, 60, 9, 0], [0, 11, 40, 2], [1, 0, 1, 30]]  # some pairs of states never follow each other


def random_counts(seed, size, k):
    """Counts of lasting states, of which a third are symmetric."""
    counts = np.random.default_rng(seed).integers(1, 400, (size, k, k)) + 900 * np.eye(k, dtype=np.int64)
    counts[::3] += np.swapaxes(counts[::3], 1, 2)
    return counts


def iterated(counts, rounds):
    """Return the fit by the fixed-point iteration of the literature, cell by cell."""
    n = np.array(counts, float)
    k, flow = len(n), n + n.T
    for _ in range(rounds):
        total = flow.sum(axis=1)
        ratio = n.sum(axis=1) / total
        flow = np.array([[(n[i, j] + n[j, i]) / (ratio[i] + ratio[j]) for j in range(k)] for i in range(k)])
    return flow / flow.sum(axis=1, keepdims=True)


def most_likely(counts):
    """Return the reversible matrix that a general optimiser finds over all symmetric flows of the pairs that occur."""
    n = np.array(counts, float)
    upper = np.triu_indices(len(n))
    occurring = [(i, j) for i, j in zip(*upper, strict=True) if n[i, j] + n[j, i]]
    pairs = tuple(np.array(occurring).T)

    def matrix(logarithms):
        flow = np.zeros_like(n)
        flow[pairs] = np.exp(logarithms)
        flow = np.maximum(flow, flow.T)
        return flow / flow.sum(axis=1, keepdims=True)

    def loss(logarithms):
        probability = matrix(logarithms)
        return -(n[n > 0] * np.log(probability[n > 0])).sum()

    start = np.log((n + n.T)[pairs])
    return matrix(minimize(loss, start, method="BFGS", options={"gtol": 1e-7}).x)


@pytest.mark.parametrize("counts", [[[5, 3, 1], [1, 4, 3], [3, 1, 6]], [[0, 9, 1], [2, 0, 7], [8, 3, 0]], SPARSE])
def test_no_reversible_chain_is_more_likely(counts):
    np.testing.assert_allclose(reversible_transition_matrix(counts), most_likely(counts), atol=2e-5)


@pytest.mark.parametrize(("counts", "rounds"), [(SPARSE, 3000), (random_counts(5, 1, 12)[0], 1000)])
def test_the_fixed_point_of_the_literature_is_found(counts, rounds):
    np.testing.assert_allclose(reversible_transition_matrix(counts), iterated(counts, rounds), atol=1e-10)


def test_a_fit_is_reversible_and_independent_of_its_stack():
    counts = random_counts(3, 20, 6)
    counts[4, 5], counts[4, :, 5] = 0, 0  # a state that the household does not visit
    fits = reversible_transition_matrix(counts)
    assert is_reversible(fits).all()
    assert np.isnan(fits[4, 5]).all()
    np.testing.assert_allclose(fits[4, :5, :5], reversible_transition_matrix(counts[4, :5, :5]), rtol=1e-12)
    for one, fit in zip(counts, fits, strict=True):
        np.testing.assert_array_equal(reversible_transition_matrix(one), fit)


def test_a_chain_that_is_not_reversible_exceeds_the_bound_of_its_fit():
    """A chain that goes round forgets nothing; its fit, which goes both ways, forgets by half in a step."""
    rounds = [[0, 100, 0], [0, 0, 100], [100, 0, 0]]
    assert total_variation(transition_matrix(rounds, smoothing=0), [4]).tolist() == [1.0]
    np.testing.assert_allclose(reversible_fit_bound(rounds, [4]), np.sqrt(2) / 16, rtol=1e-9)


@pytest.mark.parametrize(
    "counts",
    [
        [[5, 1, 0], [0, 5, 0], [0, 0, 5]],  # two classes
        [[5, 1], [0, 5]],  # one way
        [[5, 1], [0, 0]],  # a state that is never left
        [[0, 0], [0, 0]],
        [[1, -1], [1, 1]],
    ],
)
def test_counts_without_a_fit_are_refused(counts):
    with pytest.raises(ChainError):
        reversible_transition_matrix(counts)
