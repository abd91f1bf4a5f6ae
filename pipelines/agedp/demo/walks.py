r"""Reflecting random walks on twelve levels: reversible chains whose powers have a closed form.

In each half-hour a household's use moves by one level with probability `by_one` to either side, by two levels with
probability `by_two` to either side, and stays otherwise; the walk is reflected at both ends. The transition matrix is
symmetric, so the chain is reversible and its stationary distribution is uniform. Its eigenvectors are the cosines of
the discrete cosine transform (type II), with theta_j = pi j / 12:

.. math:: \lambda_j = 1 - 2 a (1 - \cos\theta_j) - 2 b (1 - \cos 2\theta_j), \quad
    P^t(x, y) = \frac{1}{12} + \frac{1}{6} \sum_{j=1}^{11} \lambda_j^t
    \cos(\theta_j (x + \tfrac12)) \cos(\theta_j (y + \tfrac12))

Decisions. Moves by two levels keep estimated chains from being reversible by accident: counts of a walk that moves by
one level only are (up to one) symmetric for every draw. The three walks mix at different speeds; all states are
visited equally often, so that a few months of readings count every transition reliably.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from agedp_data.datasets.synthetic.households import STATES, Floats, HouseholdChains
from agedp_data.datasets.validation import Ints


@dataclass(frozen=True, slots=True)
class Walk:
    """A kind of chain: a random walk on twelve levels.

    Attributes:
        name: the name of the kind.
        by_one: probability per half-hour of a move by one level, to either side [-].
        by_two: probability per half-hour of a move by two levels, to either side [-].
    """

    name: str
    by_one: float
    by_two: float


WALKS = (Walk("slow", 0.17, 0.06), Walk("medium", 0.22, 0.08), Walk("fast", 0.25, 0.12))
"""The kinds of chain that synthetic households follow, the slowest first."""


def walk_matrix(walk: Walk) -> Floats:
    """Return the transition matrix (12, 12) [-] of a walk, reflected half a level beyond both ends.

    >>> walk_matrix(Walk("", 0.25, 0.0))[0, :3].tolist()
    [0.75, 0.25, 0.0]
    """
    probability = {0: 1 - 2 * walk.by_one - 2 * walk.by_two, 1: walk.by_one, 2: walk.by_two}
    level = np.arange(STATES)
    start, end = level[:, None], level[None, :]
    images = (end - start, -1 - end - start, 2 * STATES - 1 - end - start)
    matrix = np.zeros((STATES, STATES))
    for moved in images:
        for distance, share in probability.items():
            matrix += share * (np.abs(moved) == distance)
    return matrix


def walk_eigenvalues(walk: Walk) -> Floats:
    """Return the eigenvalues (12,) [-] in closed form: of the constant, then of each cosine.

    >>> walk_eigenvalues(Walk("", 0.25, 0.0))[[0, 6]].round(12).tolist()
    [1.0, 0.5]
    """
    angle = np.pi * np.arange(STATES) / STATES
    values: Floats = 1 - 2 * walk.by_one * (1 - np.cos(angle)) - 2 * walk.by_two * (1 - np.cos(2 * angle))
    return values


def relative_energies() -> Ints:
    """Return the energy of each state as a multiple of half a step: 1, 3, ..., 23.

    Equal steps, the lowest half a step above 0: so `equal-width` edges of a household that was seen in its highest
    state have each state's energy between them (edge i lies at i x 23/24 steps).
    """
    return 2 * np.arange(STATES) + 1


def demonstration_chains() -> HouseholdChains:
    """Return the walks as chains of synthetic households, with energies relative to the household's mean [-]."""
    kernels = np.stack([walk_matrix(walk) for walk in WALKS])
    uniform = np.full((len(WALKS), STATES), 1 / STATES)
    return HouseholdChains(kernels, uniform, np.tile(relative_energies() / STATES, (len(WALKS), 1)))
