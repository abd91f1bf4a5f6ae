"""The sampling bound against MATHS 8 written out, and against true chains that were counted."""

from __future__ import annotations

import numpy as np
import pytest

from agedp_data.markov.confidence import sampling_bound
from agedp_data.markov.mixing import total_variation
from agedp_data.markov.transitions import count_transitions


def written_out(counts, last, level, households):
    """MATHS 8, term by term."""
    k = len(counts)
    visits = counts.sum(axis=0).astype(float)
    backward = counts.T / visits[:, None]
    radius = np.sqrt(2 / visits * np.log((2**k - 2) * households * k * visits.sum() / (1 - level))).clip(max=2)
    bound = [1.0]
    for t in range(1, last + 1):
        found = 0.0
        for x in range(k):
            for y in range(k):
                v = np.eye(k)[x] - np.eye(k)[y]
                value = np.abs(v @ np.linalg.matrix_power(backward, t)).sum()
                for s in range(t):
                    value += (np.abs(v @ np.linalg.matrix_power(backward, s)) * radius).sum() * bound[t - 1 - s]
                found = max(found, value / 2)
        bound.append(min([bound[-1], found] + [bound[a] * bound[t - a] for a in range(1, t)]))
    return np.array(bound)


def counted(chain, length, seed, every=1):
    rng, state = np.random.default_rng(seed), 0
    below = np.cumsum(chain, axis=1)
    path = np.empty(length, int)
    for i, u in enumerate(rng.random(length)):
        path[i] = state
        state = int((u >= below[state]).sum())
    return {lag: count_transitions(path, np.ones(length - 1, bool), len(chain), every=lag) for lag in ([1, every])}


def slow_chain(k, seed):
    return 0.8 * np.eye(k) + 0.2 * np.random.default_rng(seed).dirichlet(np.ones(k), size=k)


@pytest.mark.parametrize(("k", "length"), [(2, 3000), (3, 20_000), (5, 60_000)])
def test_it_is_the_recursion_of_the_mathematics_term_by_term(k, length):
    counts = counted(slow_chain(k, k), length, k)[1]
    expected = written_out(counts, 30, 0.9, 7)
    np.testing.assert_allclose(sampling_bound(counts, np.arange(31), level=0.9, households=7), expected, rtol=1e-12)
    np.testing.assert_allclose(sampling_bound(counts, [30, 2], level=0.9, households=7), expected[[30, 2]], rtol=1e-12)


@pytest.mark.parametrize("length", [60, 500, 1000, 1500, 2000, 3000, 6000])
def test_chains_that_never_fall_below_one_are_told_from_those_that_do(length):
    counts = np.array([counted(slow_chain(2, seed), length, seed)[1] for seed in range(6)])
    expected = [written_out(each, 25, 0.9, 2) for each in counts]
    found = sampling_bound(counts, np.arange(26), level=0.9, households=2)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    if length in (60, 6000):
        assert (found[:, -1] < 1).tolist() == [length == 6000] * 6


def test_it_lies_above_the_truth_where_the_plug_in_is_below_half_the_time():
    chain, steps = slow_chain(3, 1), np.array([1, 3, 10, 20])
    truth = total_variation(chain, steps)
    below, beneath = 0, 0
    for seed in range(60):
        counts = counted(chain, 4000, seed)[1]
        plugged = total_variation(counts / counts.sum(axis=1, keepdims=True), steps)
        below += plugged[2] < truth[2]
        beneath += (sampling_bound(counts, steps, level=0.95, households=1) < truth).any()
    assert 15 <= below <= 45
    assert beneath == 0


def test_the_series_read_less_often_bounds_it_too_and_the_smaller_is_taken():
    chain, steps = np.array([[0.97, 0.03], [0.03, 0.97]]), np.array([1, 8, 16, 40, 41, 160, 400])
    lags = counted(chain, 20_000, 3, every=8)
    both = sampling_bound(lags, steps, level=0.95, households=1)
    alone = sampling_bound(lags[1], steps, level=0.975, households=1)
    coarse = sampling_bound(lags[8], steps // 8, level=0.975, households=1)
    np.testing.assert_allclose(both, np.minimum(alone, coarse))
    assert (coarse < alone).any()
    assert coarse[0] == 1
    assert (coarse[1:] >= total_variation(chain, steps[1:])).all()


def test_more_households_and_a_higher_level_cost_more():
    counts = counted(slow_chain(3, 2), 5000, 1)[1]
    bound = [
        sampling_bound(counts, [10], level=level, households=households)[0]
        for level, households in ((0.9, 1), (0.99, 1), (0.99, 5566))
    ]
    assert bound == sorted(bound)
    assert bound[0] < bound[2]


def test_rarely_visited_states_keep_it_at_one_and_states_never_seen_do_not():
    counts = np.array([[5000, 2, 0], [2, 3, 0], [0, 0, 0]])
    np.testing.assert_array_equal(sampling_bound(counts, [1, 100], level=0.95, households=1), [1, 1])
    common = np.array([[5000, 5000, 0], [5000, 5000, 0], [0, 0, 0]])
    assert sampling_bound(common, [1], level=0.95, households=1)[0] < 0.2
    for odd in ([[10, 5, 1], [5, 10, 0], [0, 0, 0]], [[10, 5, 0], [5, 10, 0], [1, 0, 0]]):
        assert (sampling_bound(np.array(odd) * 1000, [1], level=0.95, households=1)[0] == 1) == (odd[2][0] == 1)
    assert sampling_bound([[900]], [5], level=0.95, households=1)[0] == 1
    assert sampling_bound(np.zeros((3, 3)), [0, 5], level=0.95, households=1).tolist() == [1, 1]


def test_a_stack_gives_what_each_household_gives():
    counts = np.stack([counted(slow_chain(3, i), 3000, i)[1] for i in range(4)]).reshape(2, 2, 3, 3)
    table = sampling_bound(counts, [0, 3, 9], level=0.9, households=4)
    assert table.shape == (2, 2, 3)
    np.testing.assert_allclose(table[1, 0], sampling_bound(counts[1, 0], [0, 3, 9], level=0.9, households=4))


def test_long_ages_add_only_what_they_leave_out():
    counts = counted(slow_chain(2, 0), 50_000, 9)[1]
    far = sampling_bound(counts, [400, 2000], level=0.95, households=1)
    assert (far < 1e-6).all()
    assert far[1] <= far[0]


def test_a_series_read_every_sixth_step_begins_anew_after_a_gap():
    states = [0, 1, 0, 1, 1, 0, 1, 0, 1]
    follows = [True, True, True, False, True, True, True, True]
    # Runs 0..3 and 4..8; every second: (0, 2), then (4, 6), (6, 8).
    assert count_transitions(states, follows, 2, every=2).tolist() == [[1, 0], [0, 2]]
    assert count_transitions(states, follows, 2, every=4).tolist() == [[0, 0], [0, 1]]
    assert count_transitions([0, 1], [True], 2, every=5).tolist() == [[0, 0], [0, 0]]
