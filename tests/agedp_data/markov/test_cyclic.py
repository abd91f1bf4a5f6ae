"""Cyclic chains: counts by hand, products by plain multiplication, and risks by enumeration of all paths."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest

from agedp_data.accounting.ageing import cyclic_risk
from agedp_data.leakage.function import leakage
from agedp_data.leakage.population_bound import cyclic_leakage_bound
from agedp_data.markov.cyclic import count_cyclic_transitions, cyclic_kernels, merge_phases
from agedp_data.markov.transitions import ascending_products, count_transitions, stationary

GRID = np.array([0.1, 1.0, 3.0, np.inf])


def cycle_of_counts(phases, k, seed):
    """Counts that flow: what enters each phase leaves it."""
    forward = np.random.default_rng(seed).dirichlet(np.full(k, 0.6), size=(phases, k))
    law, tables = stationary(np.linalg.multi_dot(forward)), []
    for kernel in forward:
        tables.append(law[:, None] * kernel * 100_000)
        law = law @ kernel
    return np.array(tables), forward


def test_transitions_are_counted_by_the_phase_they_leave():
    rng = np.random.default_rng(1)
    states, phases, follows = rng.integers(-1, 4, 500), np.arange(500) % 48, rng.random(499) < 0.9
    expected = np.zeros((48, 4, 4), int)
    for i in np.flatnonzero(follows):
        if states[i] >= 0 and states[i + 1] >= 0:
            expected[phases[i], states[i], states[i + 1]] += 1
    np.testing.assert_array_equal(count_cyclic_transitions(states, phases, follows, 4), expected)
    np.testing.assert_array_equal(expected.sum(axis=0), count_transitions(states, follows, 4))
    # a clock that is put forward is a gap
    assert count_cyclic_transitions([0, 1, 0], [1, 4, 5], [True, True], 2, n_phases=6).sum() == 1


def test_phases_merge_with_neighbours_round_the_clock_until_every_state_has_its_visits():
    rng = np.random.default_rng(2)
    for _ in range(40):
        counts = rng.integers(0, 12, size=(8, 3, 3)) * (rng.random((8, 1, 3)) < 0.7)
        group, reliable = merge_phases(counts, min_visits=25)
        number = len(set(group.tolist()))
        changes = int((group != np.roll(group, 1)).sum())
        assert changes == (number if number > 1 else 0)  # each group is one stretch of the clock
        tables = [counts[group == g].sum(axis=0) for g in set(group.tolist())]
        visits = [(t.sum(axis=0)[x], t.sum(axis=1)[x]) for t in tables for x in range(3)]
        assert reliable == all(min(pair) >= 25 for pair in visits if any(pair))
        assert reliable or number == 1


@pytest.mark.parametrize(
    ("visits", "expected"),
    [
        ([40, 3, 30, 50], [0, 1, 1, 2]),  # the rarest phase joins the neighbour that is rarer itself
        ([30, 3, 40, 50], [0, 0, 1, 2]),
        ([3, 40, 50, 30], [2, 0, 1, 2]),  # round midnight
        ([50, 40, 30, 3], [0, 1, 2, 2]),
        ([10, 10, 10], [0, 1, 2]),
        ([50, 0, 50], None),
    ],
)
def test_phases_merge_as_counted_by_hand(visits, expected):
    group, reliable = merge_phases(np.array(visits)[:, None, None] * np.ones((2, 2), int), min_visits=20)
    assert reliable
    assert group.tolist() == expected or (expected is None and len(set(group.tolist())) == 2)


def test_kernels_are_bayes_rule_at_each_phase_and_merged_phases_share_one():
    counts, forward = cycle_of_counts(4, 3, 3)
    np.testing.assert_allclose(cyclic_kernels(counts, np.arange(4), direction="forward"), forward, rtol=1e-9)
    backward = cyclic_kernels(counts, np.arange(4), direction="backward")
    for p in range(4):
        flow = counts[p - 1]  # into phase p
        np.testing.assert_allclose(backward[p], flow.T / flow.sum(axis=0)[:, None], rtol=1e-12)
    merged = cyclic_kernels(counts, [0, 1, 1, 0], direction="forward")
    pooled = counts[1] + counts[2]
    np.testing.assert_allclose(merged[1], pooled / pooled.sum(axis=1, keepdims=True))
    np.testing.assert_array_equal(merged[[0, 1]], merged[[3, 2]])
    stack = cyclic_kernels(np.stack([counts, counts]), [[0, 1, 1, 0], [0, 1, 2, 3]], direction="forward")
    np.testing.assert_array_equal(stack[0], merged)


@pytest.mark.parametrize(("direction", "turn"), [("backward", -1), ("forward", 1)])
def test_kernels_between_instants_are_products_of_those_between_them(direction, turn):
    once = cyclic_kernels(cycle_of_counts(5, 3, 4)[0], np.arange(5), direction=direction)
    for t, kernels in ascending_products(once, [0, 1, 3, 5, 11, 241], direction=direction):
        for p in range(5):
            expected = np.eye(3)
            for i in range(t):
                expected = expected @ once[(p + turn * i) % 5]
            np.testing.assert_allclose(kernels[p], expected, rtol=1e-10, atol=1e-14)


def enumerated(counts, forward, loss, age, phase):
    """The exact loss about the state at `phase` of randomised response about the state `age` steps earlier."""
    start, k = (phase - age) % len(counts), counts.shape[-1]
    law = counts[start].sum(axis=1) / counts[start].sum()
    answer = np.exp(loss * np.eye(k)) / (np.exp(loss) + k - 1)
    joint = np.zeros((k, k))
    for path in product(range(k), repeat=age + 1):
        steps = [forward[(start + i) % len(counts)][x, y] for i, (x, y) in enumerate(pairwise(path))]
        joint[path[-1]] += law[path[0]] * np.prod(steps) * answer[path[0]]
    given = joint / joint.sum(axis=1, keepdims=True)
    return max(np.log(x / y).max() for x in given for y in given)


@pytest.mark.parametrize("age", [0, 1, 4])
@pytest.mark.parametrize("k", [2, 3])
def test_the_risk_is_the_worst_phase_of_an_enumerated_mechanism(age, k):
    counts, forward = cycle_of_counts(3, k, 6)
    kernels = cyclic_kernels(counts, np.arange(3), direction="backward")
    exact = [enumerated(counts, forward, 0.8, age, phase) for phase in range(3)]
    assert max(exact) <= cyclic_risk(kernels, 0.8, [age])[0] + 1e-12
    if k == 2:
        assert cyclic_risk(kernels, 0.8, [age])[0] == pytest.approx(max(exact), rel=1e-9)
        assert max(exact) - min(exact) > (1e-3 if age else -1)


def test_a_leakage_bound_is_the_maximum_over_households_and_phases():
    many, ages, directions = [cycle_of_counts(6, 3, seed)[0] for seed in range(20)], [1, 6, 12], ("backward", "forward")
    backward, forward = (np.array([cyclic_kernels(c, np.arange(6), direction=d) for c in many]) for d in directions)
    known = cyclic_leakage_bound(backward, ages, GRID, reliable=np.ones(20, bool), forward=forward)
    assert (known.steps_per_day, known.assume, known.methods) == (6, "markov", ("tight", "total_variation"))
    for table, kernels, direction in ((known.backward, backward, "backward"), (known.forward, forward, "forward")):
        for row, (_, products) in zip(table, ascending_products(kernels, ages, direction=direction), strict=True):
            exact = np.minimum(leakage(products[..., None, :, :], GRID).max(axis=(0, 1)), GRID)
            np.testing.assert_allclose(row, exact, atol=2e-9)
            assert (row >= exact - 1e-15).all()
    alone = cyclic_leakage_bound(backward, ages, GRID, reliable=np.ones(20, bool))
    assert alone.forward is None
    assert (alone.bounds["total_variation"] <= known.bounds["total_variation"]).all()
