"""The sampling bound of cyclic chains: MATHS 8 written out by phase, and true chains that were drawn from."""

from __future__ import annotations

import numpy as np
import pytest

from agedp_data.markov.confidence import sampling_bound
from agedp_data.markov.cyclic import ascending_products, count_cyclic_transitions, cyclic_kernels, merge_phases
from agedp_data.markov.cyclic_inference import cyclic_sampling_bound
from agedp_data.markov.mixing import max_total_variation


def drawn(kernels, steps, seed):
    """States and phases of a chain drawn from forward kernels (p, k, k)."""
    rng, state = np.random.default_rng(seed), 0
    below = np.cumsum(kernels, axis=-1)
    states = np.empty(steps, int)
    for i, u in enumerate(rng.random(steps)):
        states[i] = state
        state = int((u >= below[i % len(kernels), state]).sum())
    return states, np.arange(steps) % len(kernels)


def counted(kernels, steps, seed, every=1):
    states, phases = drawn(kernels, steps, seed)
    states, phases = states[::every], phases[::every] // every
    follows = np.ones(len(states) - 1, bool)
    return count_cyclic_transitions(states, phases, follows, kernels.shape[-1], n_phases=len(kernels) // every)


def slow(p, k, seed, stay=0.6):
    return stay * np.eye(k) + (1 - stay) * np.random.default_rng(seed).dirichlet(np.full(k, 2.0), size=(p, k))


def true_distances(kernels, steps):
    """Delta(t) of the chain itself, backward by Bayes' rule from the law that the cycle keeps, largest over phases."""
    p = len(kernels)
    day = np.linalg.multi_dot(kernels)
    law = np.linalg.matrix_power(day, 200)[0]
    flows = []
    for kernel in kernels:
        flows.append(law[:, None] * kernel)
        law = law @ kernel
    back = cyclic_kernels(np.array(flows), np.arange(p), direction="backward")
    return np.array(
        [max_total_variation(found).max() for _, found in ascending_products(back, steps, direction="backward")]
    )


def written_out(counts, groups, last, level, households):
    """MATHS 8 with a row per phase, term by term; all 1 + p (p - 1) stretches of the clock might have been a group."""
    p, k, _ = counts.shape
    number = np.array([sum(counts[q] for q in range(p) if groups[q] == groups[at]) for at in range(p)], float)
    kernel, radius = {}, {}
    for at in range(p):
        flow = number[at - 1].T  # into phase `at`
        visits = flow.sum(axis=1)
        kernel[at] = flow / visits[:, None]
        ways = (2**k - 2) * households * k * (1 + p * (p - 1)) * counts.sum()
        radius[at] = np.minimum(np.sqrt(2 / visits * np.log(ways / (1 - level))), 2)
    bound = {(at, 0): 1.0 for at in range(p)}
    for t in range(1, last + 1):
        for at in range(p):
            found = 0.0
            for x in range(k):
                for y in range(k):
                    v = np.eye(k)[x] - np.eye(k)[y]
                    value = 0.0
                    for s in range(t):
                        value += (np.abs(v) * radius[(at - s) % p]).sum() * bound[(at - s - 1) % p, t - 1 - s]
                        v = v @ kernel[(at - s) % p]
                    found = max(found, (value + np.abs(v).sum()) / 2)
            split = [bound[at, a] * bound[(at - a) % p, t - a] for a in range(1, t)]
            bound[at, t] = min([bound[at, t - 1], found, *split])
    return np.array([max(bound[at, t] for at in range(p)) for t in range(last + 1)])


@pytest.mark.parametrize(
    ("p", "k", "days", "groups"),
    [(3, 2, 4000, [0, 1, 2]), (4, 3, 9000, [0, 1, 1, 0]), (3, 2, 20, [0, 0, 0])],
)
def test_it_is_the_recursion_of_the_mathematics_by_phase_term_by_term(p, k, days, groups):
    counts = counted(slow(p, k, p), p * days, 1)
    last = 2 * p
    expected = written_out(counts, groups, last, 0.9, 7)
    found = cyclic_sampling_bound({1: counts[None]}, {1: [groups]}, np.arange(last + 1), level=0.9, households=7)
    np.testing.assert_allclose(found[0], expected, rtol=1e-12)
    assert (expected[-1] < 1) == (days > 20)


@pytest.mark.parametrize("rarer", [2, 8, 32, 128])
def test_a_phase_that_is_hardly_known_is_helped_by_those_before_it(rarer):
    counts = counted(slow(3, 2, 3), 3 * 9000, 1)
    counts[0] //= rarer
    expected = written_out(counts, [0, 1, 2], 6, 0.9, 7)
    found = cyclic_sampling_bound({1: counts[None]}, {1: [[0, 1, 2]]}, np.arange(7), level=0.9, households=7)
    np.testing.assert_allclose(found[0], expected, rtol=1e-12)
    assert expected[3] < 1


def test_beyond_two_turns_of_the_clock_the_smallest_product_of_shorter_ages_stands():
    p = 3
    counts, groups = counted(slow(p, 2, 5), 30_000, 2)[None], [np.arange(p)]
    near, far = (
        cyclic_sampling_bound({1: counts}, {1: groups}, np.arange(last + 1), level=0.9, households=3)[0]
        for last in (2 * p, 25)
    )
    np.testing.assert_array_equal(far[: 2 * p + 1], near)
    for t in range(2 * p + 1, 26):
        assert far[t] == min([far[t - 1]] + [far[a] * far[t - a] for a in range(1, 2 * p + 1)])


def test_it_lies_above_the_truth_as_often_as_its_level_says_and_is_no_mere_one():
    chain, steps = slow(4, 2, 3), np.array([1, 4, 8, 20])
    truth = true_distances(chain, steps)
    below = beneath = 0
    for seed in range(25):
        counts = counted(chain, 12_000, seed)
        groups = merge_phases(counts, min_visits=100)[0]
        bound = cyclic_sampling_bound({1: counts[None]}, {1: groups[None]}, steps, level=0.95, households=1)[0]
        plain = cyclic_kernels(counts, groups, direction="backward")
        plug_in = [
            max_total_variation(found).max() for _, found in ascending_products(plain, steps, direction="backward")
        ]
        below += bool((plug_in < truth).any())
        beneath += bool((bound < truth).any())
        assert (bound[1:] < 0.9).all()
    assert below > 8
    assert beneath <= 1


def test_of_several_lags_each_shares_the_level_and_the_smaller_bound_stands():
    chain, steps = slow(6, 2, 4, stay=0.9), np.array([1, 6, 12, 24])
    counts = {lag: counted(chain, 60_000, 3, every=lag)[None] for lag in (1, 3)}
    groups = {1: np.zeros((1, 6), int), 3: np.zeros((1, 2), int)}
    both = cyclic_sampling_bound(counts, groups, steps, level=0.95, households=1)
    alone = cyclic_sampling_bound({1: counts[1]}, {1: groups[1]}, steps, level=0.975, households=1)
    coarse = cyclic_sampling_bound({1: counts[3]}, {1: groups[3]}, [0, 1, 3, 7], level=0.975, households=1)
    np.testing.assert_array_equal(both, np.minimum(alone, coarse))
    assert (coarse < alone).any()


@pytest.mark.parametrize("lag", [2, 3, 6])
def test_a_window_of_so_many_steps_holds_at_least_the_lags_that_are_counted_on(lag):
    counts = counted(slow(6, 2, 4), 60_000, 3, every=lag)[None]
    groups = np.zeros((1, 6 // lag), int)
    steps = np.arange(40)
    held = [min(sum(1 for at in range(a, a + t + 1) if at % lag == 0) for a in range(lag)) - 1 for t in steps]
    found = cyclic_sampling_bound({lag: counts}, {lag: groups}, steps, level=0.9, households=2)
    own = cyclic_sampling_bound({1: counts}, {1: groups}, np.arange(41), level=0.9, households=2)
    np.testing.assert_array_equal(found[0], own[0, np.maximum(held, 0)])


def test_one_group_of_phases_costs_only_that_it_was_chosen():
    counts = counted(np.tile(slow(1, 3, 6), (4, 1, 1)), 80_000, 4)
    steps, groups = np.array([1, 3, 8]), [[0, 0, 0, 0]]
    found = cyclic_sampling_bound({1: counts[None]}, {1: groups}, steps, level=0.9, households=5)
    # 13 stretches might have been chosen: as if for 13 times as many households
    plain = sampling_bound(counts.sum(axis=0), steps, level=0.9, households=65)
    np.testing.assert_allclose(found[0], plain, rtol=1e-12)


def test_a_state_that_its_phase_is_led_to_and_never_entered_keeps_it_at_one():
    counts = np.full((3, 2, 2), 5000)
    known = cyclic_sampling_bound({1: counts[None]}, {1: [[0, 1, 2]]}, [3], level=0.9, households=1)
    counts[0, :, 1] = 0  # state 1 is never entered at phase 1, though it is left there
    unknown = cyclic_sampling_bound({1: counts[None]}, {1: [[0, 1, 2]]}, [3], level=0.9, households=1)
    assert known[0, 0] < 0.1
    assert unknown[0, 0] == 1
    one = np.zeros((1, 3, 2, 2), int)
    one[..., 1, 1] = 9000
    assert cyclic_sampling_bound({1: one}, {1: [[0, 0, 0]]}, [3], level=0.9, households=1)[0, 0] == 1


def test_households_are_bounded_one_by_one():
    many = np.array([counted(slow(3, 2, seed), 9000, seed) for seed in range(20)])
    groups = np.tile([0, 1, 2], (20, 1))
    whole = cyclic_sampling_bound({1: many}, {1: groups}, [3, 9], level=0.9, households=20)
    for i in (0, 7, 19):
        own = cyclic_sampling_bound({1: many[i : i + 1]}, {1: groups[:1]}, [3, 9], level=0.9, households=20)
        np.testing.assert_array_equal(whole[i], own[0])
