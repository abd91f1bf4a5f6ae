from __future__ import annotations

from datetime import date
from itertools import pairwise

import numpy as np
import pytest

from agedp_data.datasets.synthetic.households import (
    KERNELS,
    LEVELS,
    MOSTLY_ZERO,
    STATIONARY,
    Households,
    day_factors,
    day_shape,
    draw_energies,
    draw_households,
    draw_states,
)


def counted(states, size=12):
    """Plain loop over neighbours."""
    counts = np.zeros((size, size))
    for row in states.tolist():
        for before, after in pairwise(row):
            counts[before, after] += 1
    return counts


def test_kernels_and_their_stationary_laws_are_what_those_words_mean():
    assert KERNELS.shape == (4, 12, 12)
    assert (KERNELS > 0).all()
    np.testing.assert_allclose(KERNELS.sum(axis=2), 1, atol=1e-12)
    by_powers = np.stack([np.linalg.matrix_power(matrix, 4096)[0] for matrix in KERNELS])
    np.testing.assert_allclose(STATIONARY, by_powers, atol=1e-9)


@pytest.mark.parametrize("kind", range(4))
def test_drawn_states_move_as_the_known_chain_says(kind):
    states = draw_states(np.full(60, kind), steps=2500, generator=np.random.default_rng(1))
    counts = counted(states)
    visits = counts.sum(axis=1, keepdims=True)
    # six standard deviations of a binomial share, and six visits for cells that expect hardly one
    allowed = 6 * np.sqrt(KERNELS[kind] * (1 - KERNELS[kind]) / np.maximum(visits, 1)) + 6 / np.maximum(visits, 1)
    assert visits.sum() == 60 * 2499
    seen = visits[:, 0] > 200
    assert seen.sum() >= 4
    assert (np.abs(counts / np.maximum(visits, 1) - KERNELS[kind]) <= allowed)[seen].all()


def test_the_transition_check_would_reject_another_kernel():
    counts = counted(draw_states(np.zeros(60, int), steps=2500, generator=np.random.default_rng(1)))
    shares = counts / counts.sum(axis=1, keepdims=True)
    assert np.abs(shares[0] - KERNELS[1][0]).max() > 0.1


def test_households_start_in_the_stationary_law():
    first = draw_states(np.ones(40_000, int), steps=1, generator=np.random.default_rng(2))[:, 0]
    shares = np.bincount(first, minlength=12) / 40_000
    assert np.abs(shares - STATIONARY[1]).max() < 6 * np.sqrt(0.25 / 40_000)


def test_readings_of_a_plain_chain_tell_the_state_one_to_one():
    homes = Households(np.arange(4), np.array([3.5, 3.5, 3.5, 0.875]))
    for kind in range(4):
        values = np.rint(homes.mean_kwh[kind] * 1000 / 48 * LEVELS[kind])
        assert len(set(values.tolist())) == 12
    _, energy = next(draw_energies(homes, slots=tuple(range(48)) * 40, factors=None, seed=3))
    assert all(len(set(row.tolist())) <= 12 for row in energy)
    assert (energy[MOSTLY_ZERO] == 0).mean() > 0.3


def test_the_day_has_its_peak_in_the_evening_and_base_load_at_night():
    shape = day_shape()
    assert 34 <= shape.argmax() <= 41
    assert shape[2:10].max() < 0.7
    assert shape.max() > 1.5
    assert shape.mean() == pytest.approx(1)


def test_the_mean_of_300_homes_moves_from_day_to_day_and_over_the_weeks():
    homes = draw_households(300, mean_kwh=10.0, seed=4)
    assert np.std(homes.mean_kwh) > 2
    factors = day_factors(date(2012, 7, 1), 365, seed=4, coldest=date(2013, 1, 20))
    moves = 10 * np.abs(np.diff(factors))
    weeks = 10 * factors[:364].reshape(52, 7).mean(axis=1)
    assert 0.4 < moves.mean() < 1.0
    assert 0.5 < weeks.std() < 2
    assert 0.9 < factors.mean() < 1.1
