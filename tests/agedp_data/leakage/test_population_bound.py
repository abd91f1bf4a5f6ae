"""The leakage bound of a population against its households one by one."""

from __future__ import annotations

import numpy as np
import pytest

from agedp_data.errors import ChainError
from agedp_data.leakage import population_bound
from agedp_data.leakage.function import gain, leakage
from agedp_data.leakage.population_bound import (
    composition_age_steps,
    leakage_bound,
    leakage_bound_from_distances,
    max_reversibilised_bound,
    upper_hulls,
)
from agedp_data.markov.mixing import reversibilised_bound, total_variation, total_variation_forward
from agedp_data.markov.transitions import power, reverse

AGES = np.array([1, 6, 48])
GRID = np.array([0.1, 1.0, 3.0, 10.0, np.inf])
CHAINS = np.random.default_rng(8).dirichlet(np.full(4, 0.5), size=(300, 4))
ALL = np.ones(300, bool)


def test_tables_and_bounds_are_the_maxima_over_households():
    known = leakage_bound(reverse(CHAINS), AGES, GRID, reliable=ALL, forward=CHAINS)
    for table, kernels in ((known.backward, reverse(CHAINS)), (known.forward, CHAINS)):
        exact = np.array([leakage(power(kernels, t), GRID[:, None]).max(axis=1) for t in AGES])
        assert (table >= np.minimum(exact, GRID) - 1e-15).all()
        np.testing.assert_allclose(table, exact, atol=2e-9)
    behind = total_variation(CHAINS, AGES).max(axis=0)  # of the reversed chain
    np.testing.assert_allclose(known.bounds["total_variation"], behind, atol=2e-9)
    assert (known.bounds["total_variation"] >= behind).all()
    assert abs(total_variation(reverse(CHAINS), AGES).max(axis=0)[0] - behind[0]) > 0.003
    assert (known.bounds["reversibilised"] >= known.bounds["total_variation"] - 2e-9).all()
    assert "spectral" not in known.bounds
    assert (known.assume, known.steps_per_day) == ("markov", 48)
    alone = leakage_bound(reverse(CHAINS), AGES, GRID, reliable=ALL)  # what lies ahead changes nothing of ageing
    assert (known.bounds["total_variation"] == alone.bounds["total_variation"]).all()
    assert alone.forward is None


def test_one_household_that_does_not_forget_decides_for_all():
    mixes, unreliable = ALL.copy(), reverse(CHAINS)
    mixes[131], unreliable[131] = False, np.nan  # nothing is computed, so nothing need be known
    known = leakage_bound(unreliable, AGES, GRID, reliable=mixes, forward=CHAINS)
    for table in (known.backward, known.forward):
        np.testing.assert_array_equal(table, np.tile(GRID, (3, 1)))
    for method in ("total_variation", "spectral", "reversibilised"):
        np.testing.assert_array_equal(known.bounds[method], np.ones(3))


def test_a_household_of_one_state_adds_nothing():
    quiet, some = np.full((1, 4, 4), np.nan), reverse(CHAINS[:5])
    quiet[0, 2] = [0, 0, 1, 0]
    alone = leakage_bound(quiet, AGES, GRID, reliable=[True])
    np.testing.assert_array_equal(alone.backward, np.zeros((3, 5)))
    np.testing.assert_array_equal(alone.bounds["total_variation"], np.zeros(3))
    both = leakage_bound(np.concatenate((some, quiet)), AGES, GRID, reliable=[True] * 6)
    np.testing.assert_array_equal(both.backward, leakage_bound(some, AGES, GRID, reliable=[True] * 5).backward)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_one_chain_of_many_that_is_not_reversible_leaves_no_spectral_bound(place, monkeypatch):
    """In any batch: the bound of [A] eq. 55 holds for reversible chains alone."""
    monkeypatch.setattr(population_bound, "_CHAINS_PER_BATCH", 1)
    symmetric = np.tile([[0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.2, 0.2, 0.6]], (3, 1, 1))
    assert population_bound.max_spectral_bound(symmetric, AGES) is not None
    turning = symmetric.copy()
    turning[place] = [[0.1, 0.8, 0.1], [0.1, 0.1, 0.8], [0.8, 0.1, 0.1]]
    assert population_bound.max_spectral_bound(turning, AGES) is None


DISTANCES = np.array([[0.9, 0.5, 0.2], [0.8, 0.7, 0.0]])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: leakage_bound(np.zeros((0, 2, 2)), AGES, GRID, reliable=[]), "at least one household"),
        (lambda: leakage_bound(CHAINS, AGES, GRID, reliable=[True]), "at least one household"),
        (lambda: leakage_bound(CHAINS[0], AGES, GRID, reliable=[True]), "at least one household"),
        (lambda: leakage_bound(CHAINS, AGES, GRID, reliable=ALL, forward=CHAINS[:3]), "same households"),
        *(
            (lambda d=d: leakage_bound_from_distances(d, AGES, GRID, reliable=[True] * 2), "at least one household")
            for d in (DISTANCES[0], DISTANCES[:, :2], np.zeros((0, 3)))
        ),
        (lambda: leakage_bound_from_distances(DISTANCES + 0.2, AGES, GRID, reliable=[True] * 2), "from 0 to 1"),
    ],
)
def test_a_population_needs_households_and_marks(call, message):
    with pytest.raises(ChainError, match=message):
        call()


def test_of_distances_alone_the_largest_makes_the_table():
    known = leakage_bound_from_distances(DISTANCES, AGES, GRID, reliable=[True, True])
    exact = np.log1p(np.array([0.9, 0.7, 0.2])[:, None] * np.expm1(GRID[:-1]))
    np.testing.assert_allclose(known.backward[:, :-1], exact, atol=2e-9)
    assert (known.backward[:, :-1] >= exact).all()
    np.testing.assert_allclose(known.bounds["total_variation"], [0.9, 0.7, 0.2], atol=2e-9)
    assert not known.has_both_directions
    never = leakage_bound_from_distances(DISTANCES, AGES, GRID, reliable=[True, False])
    np.testing.assert_array_equal(never.backward, np.tile(GRID, (3, 1)))
    both = leakage_bound_from_distances([[0.5], [0.2]], [48], [1.0], reliable=[True, True], forward=[[0.1], [0.3]])
    expected = np.log1p(np.array([0.5, 0.3]) * np.expm1(1.0))
    np.testing.assert_allclose([both.backward[0, 0], both.forward[0, 0]], expected, atol=2e-9)
    assert both.has_both_directions


def test_ages_between_releases_reach_from_the_end_of_a_day_to_both_ends_of_another():
    # 7 days: 336 half-hours from end to end, 289 from the end to the beginning; two days: one less is tabulated
    assert composition_age_steps((1, 2, 7), steps_per_day=48).tolist() == [1, 48, 96, 289, 336]
    assert composition_age_steps((3,), steps_per_day=1).tolist() == [1, 3]


STEPS = np.array([0, 1, 3, 48, 49, 200])
LOSSES = np.array([1e-6, 0.1, 1.0, 4.0, 12.0, np.inf])


def populations():
    rng = np.random.default_rng(4)
    mixed = rng.dirichlet(np.full(5, 0.3), size=(900, 5))
    slow = mixed[:1] * 0.02 + 0.98 * np.eye(5)
    odd = np.concatenate((mixed[:600], slow, np.full((40, 5, 5), 0.2)))
    holes = mixed[:30].copy()
    holes[:10, 2] = holes[:10, :, 2] = np.nan
    holes = np.where(np.isfinite(holes), holes / np.nansum(holes, axis=-1, keepdims=True), np.nan)
    return {"mixed": mixed, "one odd household in the middle": odd[rng.permutation(len(odd))], "holes": holes}


@pytest.mark.parametrize("chains", populations().values(), ids=populations())
def test_hulls_and_largest_bounds_are_those_of_every_household(chains):
    hulls = upper_hulls(chains, STEPS)
    for hull, step in zip(hulls.hulls, STEPS, strict=True):
        exact = leakage(power(chains, step), LOSSES[:, None]).max(axis=1)
        np.testing.assert_allclose(gain(*hull, LOSSES), exact, rtol=1e-9, atol=1e-12)
    distances = total_variation_forward(chains, STEPS).max(axis=0)
    np.testing.assert_allclose(hulls.distances, distances, rtol=1e-9, atol=1e-12)
    exact = reversibilised_bound(chains, STEPS).max(axis=0)
    np.testing.assert_allclose(max_reversibilised_bound(chains, STEPS), exact, rtol=1e-9, atol=1e-13)
