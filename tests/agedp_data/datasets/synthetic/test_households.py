"""Synthetic households: chains of known kernels, with the daily and yearly course of the publishers' households."""

from __future__ import annotations

from datetime import date

import numpy as np
import pytest

from agedp_data.datasets.synthetic.households import (
    KERNELS,
    MOSTLY_ZERO,
    STATIONARY,
    Households,
    day_factors,
    day_shape,
    draw_energies,
    draw_households,
    draw_states,
)


def test_kernels_are_stochastic_and_have_their_stationary_distributions():
    assert KERNELS.shape == (4, 12, 12)
    assert (KERNELS > 0).all()
    np.testing.assert_allclose(KERNELS.sum(axis=2), 1, atol=1e-12)
    by_powers = np.stack([np.linalg.matrix_power(matrix, 4096)[0] for matrix in KERNELS])
    np.testing.assert_allclose(STATIONARY, by_powers, atol=1e-9)
    first = draw_states(np.ones(40_000, int), steps=1, generator=np.random.default_rng(2))[:, 0]
    assert np.abs(np.bincount(first, minlength=12) / 40_000 - STATIONARY[1]).max() < 6 * np.sqrt(0.25 / 40_000)


@pytest.mark.parametrize("kind", range(4))
def test_drawn_states_move_as_their_own_kernel_says_and_no_other(kind):
    states = draw_states(np.full(60, kind), steps=2500, generator=np.random.default_rng(1))
    counts = np.zeros((12, 12))
    np.add.at(counts, (states[:, :-1], states[:, 1:]), 1)
    seen = counts.sum(axis=1) > 200
    assert seen.sum() >= 4
    visits = counts[seen].sum(axis=1, keepdims=True)

    def fits(kernel: np.ndarray) -> bool:
        """Six standard deviations of a binomial share, and six visits for cells that expect hardly one."""
        allowed = 6 * np.sqrt(kernel[seen] * (1 - kernel[seen]) / visits) + 6 / visits
        return bool((np.abs(counts[seen] / visits - kernel[seen]) <= allowed).all())

    assert [fits(kernel) for kernel in KERNELS] == [other == kind for other in range(4)]


def test_readings_of_a_plain_chain_tell_the_state_one_to_one():
    households = Households(np.arange(4), np.array([3.5, 3.5, 3.5, 0.875]))
    _, energy = next(draw_energies(households, slots=tuple(range(48)) * 40, factors=None, seed=3))
    assert 6 < max(len(set(row.tolist())) for row in energy) <= 12
    assert (energy[MOSTLY_ZERO] == 0).mean() > 0.3


def test_days_and_years_have_their_course():
    shape = day_shape()
    assert 34 <= shape.argmax() <= 41  # the evening
    assert shape[2:10].max() < 0.7
    assert shape.mean() == pytest.approx(1)
    assert np.std(draw_households(300, mean_kwh=10.0, seed=4).mean_kwh) > 2
    factors = day_factors(date(2012, 7, 1), 365, seed=4, coldest=date(2013, 1, 20))
    assert 0.4 < 10 * np.abs(np.diff(factors)).mean() < 1.0
    assert 0.5 < 10 * factors[:364].reshape(52, 7).mean(axis=1).std() < 2
    assert 0.9 < factors.mean() < 1.1
