"""The envelope of a population against its households one by one."""

from __future__ import annotations

import numpy as np
import pytest

from agedp_data.errors import ChainError
from agedp_data.leakage.function import leakage
from agedp_data.leakage.population_bound import composition_age_steps, leakage_bound, leakage_bound_from_distances
from agedp_data.markov.mixing import total_variation
from agedp_data.markov.transitions import power, reverse

AGES = np.array([1, 6, 48])
GRID = np.array([0.1, 1.0, 3.0, 10.0, np.inf])
CHAINS = np.random.default_rng(8).dirichlet(np.full(4, 0.5), size=(700, 4))
ALL = np.ones(700, bool)


def test_tables_and_bounds_are_the_maxima_over_households():
    known = leakage_bound(reverse(CHAINS), AGES, GRID, reliable=ALL, forward=CHAINS)
    for table, kernels in ((known.backward, reverse(CHAINS)), (known.forward, CHAINS)):
        exact = np.array([leakage(power(kernels, t), GRID[:, None]).max(axis=1) for t in AGES])
        assert (table >= np.minimum(exact, GRID) - 1e-15).all()
        np.testing.assert_allclose(table, exact, atol=2e-9)
    behind = total_variation(CHAINS, AGES).max(axis=0)  # of the reversed chain
    np.testing.assert_allclose(known.bounds["total_variation"], behind, atol=2e-9)
    assert (known.bounds["total_variation"] >= behind).all()
    alone = leakage_bound(reverse(CHAINS), AGES, GRID, reliable=ALL)  # what lies ahead changes nothing of ageing
    assert (known.bounds["total_variation"] == alone.bounds["total_variation"]).all()
    assert total_variation(reverse(CHAINS), AGES).max(axis=0)[0] > behind[0] + 0.005
    assert (known.bounds["reversibilised"] >= known.bounds["total_variation"] - 2e-9).all()
    assert "spectral" not in known.bounds
    assert (known.assume, known.steps_per_day) == ("markov", 48)


def test_without_forward_chains_only_the_backward_distance_counts():
    falling = np.zeros((12, 12))
    falling[:, 0] = 0.5
    falling[np.arange(12), np.minimum(np.arange(12) + 1, 11)] += 0.5
    known = leakage_bound(reverse(falling)[None], [1, 2], GRID, reliable=[True])
    np.testing.assert_array_equal(known.bounds["total_variation"], [1.0, 1.0])
    ahead = leakage_bound(falling[None], [1, 2], GRID, reliable=[True])
    np.testing.assert_allclose(ahead.bounds["total_variation"], [0.5, 0.25], atol=2e-9)
    assert known.forward is None


def test_reversible_households_have_the_spectral_bound_too():
    two = np.array([[[0.9, 0.1], [0.3, 0.7]], [[0.8, 0.2], [0.2, 0.8]]])
    known = leakage_bound(reverse(two), [1, 10], GRID, reliable=[True, True], steps_per_day=1)
    np.testing.assert_allclose(known.bounds["spectral"], [1.0, np.sqrt(3) * 0.6**10], atol=2e-9)
    assert known.steps_per_day == 1


def test_one_household_that_does_not_forget_decides_for_all():
    forgets = ALL.copy()
    forgets[331] = False
    unreliable = reverse(CHAINS)
    unreliable[331] = np.nan  # nothing is computed, so nothing need be known
    known = leakage_bound(unreliable, AGES, GRID, reliable=forgets, forward=CHAINS)
    for table in (known.backward, known.forward):
        np.testing.assert_array_equal(table, np.tile(GRID, (3, 1)))
    for method in ("total_variation", "spectral", "reversibilised"):
        np.testing.assert_array_equal(known.bounds[method], np.ones(3))
    assert known(48, 0.7, direction="forward", method="tight") == 0.7


def test_a_household_of_one_state_adds_nothing():
    quiet = np.full((1, 4, 4), np.nan)
    quiet[0, 2] = [0, 0, 1, 0]
    alone = leakage_bound(quiet, AGES, GRID, reliable=[True])
    np.testing.assert_array_equal(alone.backward, np.zeros((3, 5)))
    np.testing.assert_array_equal(alone.bounds["total_variation"], np.zeros(3))
    some = reverse(CHAINS[:5])
    together = leakage_bound(np.concatenate((some, quiet)), AGES, GRID, reliable=np.ones(6, bool))
    np.testing.assert_array_equal(
        together.backward, leakage_bound(some, AGES, GRID, reliable=np.ones(5, bool)).backward
    )


def test_a_population_needs_households_and_marks():
    for kernels, forgets in ((np.zeros((0, 2, 2)), []), (CHAINS, [True]), (CHAINS[0], [True])):
        with pytest.raises(ChainError, match="at least one household"):
            leakage_bound(kernels, AGES, GRID, reliable=forgets)
    with pytest.raises(ChainError, match="same households"):
        leakage_bound(CHAINS, AGES, GRID, reliable=ALL, forward=CHAINS[:3])


def test_of_distances_alone_the_largest_makes_the_table():
    distances = np.array([[0.9, 0.5, 0.2], [0.8, 0.7, 0.0]])
    known = leakage_bound_from_distances(distances, AGES, GRID, reliable=[True, True])
    exact = np.log1p(np.array([0.9, 0.7, 0.2])[:, None] * np.expm1(GRID[:-1]))
    np.testing.assert_allclose(known.backward[:, :-1], exact, atol=2e-9)
    assert (known.backward[:, :-1] >= exact).all()
    np.testing.assert_allclose(known.bounds["total_variation"], [0.9, 0.7, 0.2], atol=2e-9)
    never = leakage_bound_from_distances(distances, AGES, GRID, reliable=[True, False])
    np.testing.assert_array_equal(never.backward, np.tile(GRID, (3, 1)))
    for wrong in (distances[0], distances[:, :2], np.zeros((0, 3))):
        with pytest.raises(ChainError, match="at least one household"):
            leakage_bound_from_distances(wrong, AGES, GRID, reliable=[True, True])
    with pytest.raises(ChainError, match="from 0 to 1"):
        leakage_bound_from_distances(distances + 0.2, AGES, GRID, reliable=[True, True])


def test_distances_of_both_directions_are_kept_apart():
    known = leakage_bound_from_distances([[0.5], [0.2]], [48], [1.0], reliable=[True, True], forward=[[0.1], [0.3]])
    left = np.log1p(np.array([0.5, 0.3]) * np.expm1(1.0))
    np.testing.assert_allclose([known.backward[0, 0], known.forward[0, 0]], left, atol=2e-9)
    assert known.has_both_directions
    assert not leakage_bound_from_distances([[0.5]], [48], [1.0], reliable=[True]).has_both_directions


def test_ages_between_releases_reach_from_the_end_of_a_day_to_the_beginning_and_the_end_of_another():
    # 7 days: 336 half-hours from end to end, 289 from the end to the beginning; two days: one less is tabulated
    assert composition_age_steps((1, 2, 7), steps_per_day=48).tolist() == [1, 48, 96, 289, 336]
    assert composition_age_steps((3,), steps_per_day=1).tolist() == [1, 3]
    assert composition_age_steps((3,), steps_per_day=48).tolist() == [1, 48, 97, 144]
