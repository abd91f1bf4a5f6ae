"""Cyclic chains: counts by hand, products by plain multiplication, and risks by enumeration of all paths."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest

from agedp_data.accounting.ageing import cyclic_risk, risk
from agedp_data.errors import ChainError
from agedp_data.leakage.function import leakage
from agedp_data.leakage.population_bound import cyclic_leakage_bound
from agedp_data.markov.cyclic import ascending_products, count_cyclic_transitions, cyclic_kernels, merge_phases
from agedp_data.markov.transitions import count_transitions, reverse, stationary

GRID = np.array([0.1, 1.0, 3.0, np.inf])


def cycle_of_counts(phases, k, seed, *, total=100_000):
    """Counts that flow: what enters each phase leaves it."""
    rng = np.random.default_rng(seed)
    forward = rng.dirichlet(np.full(k, 0.6), size=(phases, k))
    day = np.linalg.multi_dot(forward) if phases > 1 else forward[0]
    law = stationary(day)
    tables = []
    for kernel in forward:
        tables.append(law[:, None] * kernel * total)
        law = law @ kernel
    return np.array(tables), forward


def test_transitions_are_counted_by_the_phase_they_leave():
    states = [0, 1, 1, 0, 1, 1, -1, 0]
    phases = [0, 1, 2, 0, 1, 2, 0, 1]
    follows = [True, True, True, False, True, True, True]
    found = count_cyclic_transitions(states, phases, follows, 2, n_phases=3)
    # 0: 0>1; 1: 1>1, 1>1; 2: 1>0; the gap before the fifth reading and the missing one are bridged by nothing.
    assert found.tolist() == [[[0, 1], [0, 0]], [[0, 0], [0, 2]], [[0, 0], [1, 0]]]


def test_counts_over_all_phases_are_those_of_the_homogeneous_chain():
    rng = np.random.default_rng(1)
    states, follows = rng.integers(-1, 4, 500), rng.random(499) < 0.9
    phases = np.arange(500) % 48
    by_phase = count_cyclic_transitions(states, phases, follows, 4)
    np.testing.assert_array_equal(by_phase.sum(axis=0), count_transitions(states, follows, 4))


def test_a_clock_that_is_put_forward_is_a_gap():
    assert count_cyclic_transitions([0, 1, 0], [1, 4, 5], [True, True], 2, n_phases=6).sum() == 1


def test_phases_merge_with_neighbours_round_the_clock_until_every_state_has_its_visits():
    rng = np.random.default_rng(2)
    for _ in range(40):
        counts = rng.integers(0, 12, size=(8, 3, 3)) * (rng.random((8, 1, 3)) < 0.7)
        group, reliable = merge_phases(counts, min_visits=25)
        assert (np.diff(np.flatnonzero(np.diff(np.append(group, group[0])) != 0)) > 0).all()
        number = len(set(group.tolist()))
        changes = int((group != np.roll(group, 1)).sum())
        assert changes == (number if number > 1 else 0)  # each group is one stretch of the clock
        tables = [counts[group == g].sum(axis=0) for g in set(group.tolist())]
        enough = all(
            min(t.sum(axis=0)[x], t.sum(axis=1)[x]) >= 25
            for t in tables
            for x in range(3)
            if t.sum(axis=0)[x] or t.sum(axis=1)[x]
        )
        assert reliable == enough
        assert reliable or number == 1


def test_the_rarest_phase_joins_the_neighbour_that_is_rarer_itself():
    one = np.ones((2, 2), int)
    for visits, expected in (
        ([40, 3, 30, 50], [0, 1, 1, 2]),
        ([30, 3, 40, 50], [0, 0, 1, 2]),
        ([3, 40, 50, 30], [2, 0, 1, 2]),  # round midnight
        ([50, 40, 30, 3], [0, 1, 2, 2]),
    ):
        assert merge_phases(np.array(visits)[:, None, None] * one, min_visits=20)[0].tolist() == expected


def test_plenty_of_data_leave_every_phase_by_itself_and_one_state_is_never_enough():
    group, reliable = merge_phases(np.full((5, 2, 2), 50), min_visits=100)
    assert (group.tolist(), reliable) == ([0, 1, 2, 3, 4], True)
    alone = np.zeros((4, 2, 2), int)
    alone[:, 1, 1] = 1000
    assert merge_phases(alone, min_visits=10)[1] is False
    empty = np.full((3, 2, 2), 50)
    empty[1] = 0
    assert len(set(merge_phases(empty, min_visits=10)[0].tolist())) == 2


def test_backward_kernels_are_bayes_rule_at_each_phase():
    counts, forward = cycle_of_counts(4, 3, 3)
    kernels = cyclic_kernels(counts, np.arange(4), direction="backward")
    np.testing.assert_allclose(cyclic_kernels(counts, np.arange(4), direction="forward"), forward, rtol=1e-12)
    for p in range(4):
        flow = counts[p - 1]  # from phase p - 1 into phase p
        np.testing.assert_allclose(kernels[p], flow.T / flow.sum(axis=0)[:, None], rtol=1e-12)


@pytest.mark.parametrize("direction", ["backward", "forward"])
def test_kernels_between_instants_are_products_of_those_between_them(direction):
    counts, _ = cycle_of_counts(5, 3, 4)
    once = cyclic_kernels(counts, np.arange(5), direction=direction)
    turn = -1 if direction == "backward" else 1
    for t, found in ascending_products(once, [0, 1, 3, 5, 11, 240, 241], direction=direction):
        for p in range(5):
            expected = np.eye(3)
            for i in range(t):
                expected = expected @ once[(p + turn * i) % 5]
            np.testing.assert_allclose(found[p], expected, rtol=1e-10, atol=1e-14)


def test_one_phase_is_the_homogeneous_chain():
    chain = np.random.default_rng(5).dirichlet(np.ones(4), size=4)
    counts = (stationary(chain)[:, None] * chain)[None] * 1e6
    kernels = cyclic_kernels(counts, [0], direction="backward")
    np.testing.assert_allclose(kernels[0], reverse(chain), rtol=1e-9)
    np.testing.assert_allclose(
        cyclic_risk(kernels, 1.5, [0, 1, 4, 50]), risk(chain, 1.5, [0, 1, 4, 50], method="tight"), rtol=1e-7, atol=1e-12
    )


def enumerated(counts, forward, loss, age, phase):
    """The exact loss about the state at `phase` of randomised response about the state `age` steps earlier."""
    start = (phase - age) % len(counts)
    law = counts[start].sum(axis=1) / counts[start].sum()
    k = len(law)
    keep = np.exp(loss) / (np.exp(loss) + k - 1)
    answer = np.full((k, k), (1 - keep) / (k - 1)) + (keep - (1 - keep) / (k - 1)) * np.eye(k)
    joint = np.zeros((k, k))
    for path in product(range(k), repeat=age + 1):
        weight = law[path[0]] * np.prod(
            [forward[(start + i) % len(counts)][x, y] for i, (x, y) in enumerate(pairwise(path))]
        )
        joint[path[-1]] += weight * answer[path[0]]
    given = joint / joint.sum(axis=1, keepdims=True)
    return max(np.log(given[x] / given[y]).max() for x in range(k) for y in range(k))


@pytest.mark.parametrize("age", [0, 1, 3, 7])
def test_the_risk_is_the_worst_phase_of_an_enumerated_mechanism(age):
    counts, forward = cycle_of_counts(3, 2, 6)
    kernels = cyclic_kernels(counts, np.arange(3), direction="backward")
    exact = [enumerated(counts, forward, 0.8, age, phase) for phase in range(3)]
    assert cyclic_risk(kernels, 0.8, [age])[0] == pytest.approx(max(exact), rel=1e-9)
    assert max(exact) - min(exact) > (1e-3 if age else -1)


def test_more_states_are_never_above_the_stated_risk():
    counts, forward = cycle_of_counts(3, 3, 7)
    kernels = cyclic_kernels(counts, np.arange(3), direction="backward")
    for age in (1, 2, 4):
        exact = max(enumerated(counts, forward, 1.1, age, phase) for phase in range(3))
        assert exact <= cyclic_risk(kernels, 1.1, [age])[0] + 1e-12


def test_states_that_lead_nowhere_known_are_left_out_at_their_phase_only():
    # State 2 is entered at phase 1 once and never left: no row at phase 1 forward, none that leads to it.
    counts = np.array([[[40, 9, 1], [10, 40, 0], [0, 0, 0]], [[45, 5, 0], [6, 43, 0], [0, 0, 0]]], float)
    forward = cyclic_kernels(counts, [0, 1], direction="forward")
    assert np.isnan(forward[:, 2]).all()
    np.testing.assert_allclose(forward[0, 0], [40 / 49, 9 / 49, 0])
    backward = cyclic_kernels(counts, [0, 1], direction="backward")
    np.testing.assert_allclose(backward[1, 2], [1, 0, 0])  # it came from 0, which is known
    assert np.isnan(backward[0, 2]).all()
    assert cyclic_risk(backward, 1.0, [1, 2, 3]).shape == (3,)


def test_merged_phases_share_one_kernel():
    counts, _ = cycle_of_counts(4, 2, 8)
    kernels = cyclic_kernels(counts, [0, 1, 1, 0], direction="forward")
    pooled = counts[1] + counts[2]
    np.testing.assert_allclose(kernels[1], pooled / pooled.sum(axis=1, keepdims=True))
    np.testing.assert_array_equal(kernels[1], kernels[2])
    np.testing.assert_array_equal(kernels[0], kernels[3])
    stack = cyclic_kernels(np.stack([counts, counts]), [[0, 1, 1, 0], [0, 1, 2, 3]], direction="forward")
    np.testing.assert_array_equal(stack[0], kernels)


def test_an_envelope_is_the_maximum_over_households_and_phases():
    many = [cycle_of_counts(6, 3, seed)[0] for seed in range(20)]
    backward = np.array([cyclic_kernels(counts, np.arange(6), direction="backward") for counts in many])
    forward = np.array([cyclic_kernels(counts, np.arange(6), direction="forward") for counts in many])
    ages = [1, 6, 12]
    known = cyclic_leakage_bound(backward, ages, GRID, reliable=np.ones(20, bool), forward=forward)
    assert (known.steps_per_day, known.assume, known.methods) == (6, "markov", ("tight", "total_variation"))
    for table, kernels, direction in ((known.backward, backward, "backward"), (known.forward, forward, "forward")):
        for row, (_, products) in zip(table, ascending_products(kernels, ages, direction=direction), strict=True):
            exact = leakage(products[..., None, :, :], GRID).max(axis=(0, 1))
            np.testing.assert_allclose(row, np.minimum(exact, GRID), atol=2e-9)
            assert (row >= np.minimum(exact, GRID) - 1e-15).all()
    alone = cyclic_leakage_bound(backward, ages, GRID, reliable=np.ones(20, bool))
    assert alone.forward is None
    assert (alone.bounds["total_variation"] <= known.bounds["total_variation"]).all()
    risks = cyclic_risk(backward, 1.0, ages).max(axis=0)
    np.testing.assert_allclose(known.backward[:, 1], risks, atol=2e-9)


def test_one_unreliable_household_decides_the_envelope():
    backward = np.stack([cyclic_kernels(cycle_of_counts(3, 2, 1)[0], np.arange(3), direction="backward")] * 2)
    backward[1] = np.nan
    known = cyclic_leakage_bound(backward, [1, 3], GRID, reliable=[True, False], forward=backward)
    np.testing.assert_array_equal(known.backward, np.tile(GRID, (2, 1)))
    np.testing.assert_array_equal(known.bounds["total_variation"], [1, 1])
    with pytest.raises(ChainError, match="at least one household"):
        cyclic_leakage_bound(backward[0], [1], GRID, reliable=[True])
    with pytest.raises(ChainError, match="same households"):
        cyclic_leakage_bound(backward, [1], GRID, reliable=[True, True], forward=backward[:1])
