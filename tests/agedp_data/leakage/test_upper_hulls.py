"""Maxima over households against every household computed on its own."""

from __future__ import annotations

import numpy as np
import pytest

from agedp_data.leakage.function import leakage
from agedp_data.leakage.pieces import gain
from agedp_data.leakage.upper_hulls import UpperHulls, max_reversibilised_bound, upper_hulls
from agedp_data.markov.mixing import reversibilised_bound, total_variation_forward
from agedp_data.markov.transitions import ascending_powers, power

STEPS = np.array([0, 1, 2, 3, 7, 48, 49, 200])
LOSSES = np.array([1e-6, 0.1, 1.0, 4.0, 12.0, np.inf])


def populations():
    rng = np.random.default_rng(4)
    mixed = rng.dirichlet(np.full(5, 0.3), size=(900, 5))
    yield "mixed", mixed
    slow = mixed * 0.02 + 0.98 * np.eye(5)
    yield "slow", slow
    odd = np.concatenate((mixed[:600], slow[:1], np.full((40, 5, 5), 0.2)))
    yield "one odd household in the middle", odd[rng.permutation(len(odd))]
    holes = mixed[:30].copy()
    holes[:10, 2] = np.nan
    holes[:10, :, 2] = np.nan
    kept = np.isfinite(holes)
    holes = np.where(kept, holes / np.nansum(holes, axis=-1, keepdims=True), np.nan)
    yield "states without rows", holes
    yield "alike", np.full((3, 5, 5), 0.2)


@pytest.mark.parametrize(("name", "chains"), list(populations()), ids=lambda v: v if isinstance(v, str) else "")
def test_hulls_hold_the_largest_leakage_of_every_household(name, chains):
    found = upper_hulls(chains, STEPS)
    for age, step in enumerate(STEPS):
        exact = leakage(power(chains, step), LOSSES[:, None]).max(axis=1)
        np.testing.assert_allclose(gain(*found.hulls[age], LOSSES), exact, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(
        found.distances, total_variation_forward(chains, STEPS).max(axis=0), rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize(("name", "chains"), list(populations())[:4], ids=lambda v: v if isinstance(v, str) else "")
def test_the_largest_reversibilised_bound_is_that_of_every_household(name, chains):
    exact = reversibilised_bound(chains, STEPS).max(axis=0)
    np.testing.assert_allclose(max_reversibilised_bound(chains, STEPS), exact, rtol=1e-9, atol=1e-13)


def test_a_kernel_is_left_out_only_if_it_adds_nothing():
    # The second has the smaller distance and the larger ratio: it decides at large losses.
    wide, steep = np.array([[0.9, 0.1], [0.4, 0.6]]), np.array([[0.999, 0.001], [0.9, 0.1]])
    for order in ([wide, steep], [steep, wide]):
        hull = UpperHulls(1)
        for kernel in order:
            hull.add(0, kernel[None])
        for loss in LOSSES:
            expected = max(float(leakage(kernel, loss)) for kernel in (wide, steep))
            assert gain(*hull.hulls[0], np.array(loss)) == pytest.approx(expected, rel=1e-12)
    assert leakage(steep, 12.0) > leakage(wide, 12.0) > leakage(steep, 0.1)


def test_kernels_need_not_be_square():
    rows = np.random.default_rng(1).dirichlet(np.ones(7), size=(50, 3))
    hull = UpperHulls(1)
    hull.add(0, rows)
    assert gain(*hull.hulls[0], np.array(1.0)) == pytest.approx(float(leakage(rows, 1.0).max()), rel=1e-12)


def test_ascending_powers_are_powers_whatever_the_gaps():
    chains = np.random.default_rng(2).dirichlet(np.full(4, 0.3), size=(3, 4))
    chains[0, 1] = np.nan
    chains[0, [0, 2, 3], 1] = 0
    chains[0, [0, 2, 3]] /= chains[0, [0, 2, 3]].sum(axis=-1, keepdims=True)
    seen = []
    for step, kernel in ascending_powers(chains, [49, 1, 7, 0, 7, 1000, 48, 50]):
        seen.append(step)
        np.testing.assert_allclose(kernel, power(chains, step), rtol=1e-12, atol=1e-15)
    assert seen == [0, 1, 7, 48, 49, 50, 1000]
