"""What a chain of counts proves: sampling bounds and goodness of fit."""

from __future__ import annotations

import numpy as np
import pytest

from agedp_data.markov.confidence import sampling_bound
from agedp_data.markov.cyclic import count_cyclic_transitions, cyclic_goodness_of_fit, cyclic_sampling_bound
from agedp_data.markov.memory_check import markov_goodness_of_fit
from agedp_data.markov.transitions import count_lagged_pairs, max_row_distance, predicted_total_variation

# Sampling bounds written out, by phase and for one, and against true chains that were counted.


def counted(kernels, steps, seed, every=1):
    """Counts (p / every, k, k) of a chain drawn from forward kernels (p, k, k)."""
    rng, state = np.random.default_rng(seed), 0
    below = np.cumsum(kernels, axis=-1)
    states = np.empty(steps, int)
    for i, u in enumerate(rng.random(steps)):
        states[i] = state
        state = int((u >= below[i % len(kernels), state]).sum())
    phases, number = np.arange(steps) % len(kernels), max(1, len(kernels) // every)
    states, phases = states[::every], phases[::every] // every
    return count_cyclic_transitions(states, phases, [True] * (len(states) - 1), kernels.shape[-1], n_phases=number)


def slow(p, k, seed, stay=0.6):
    return stay * np.eye(k) + (1 - stay) * np.random.default_rng(seed).dirichlet(np.full(k, 2.0), size=(p, k))


def written_out(counts, groups, last, level, households):
    """Term by term, with a row per phase; all 1 + p (p - 1) stretches of the clock might have been a group."""
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
            largest = 0.0
            for x, y in np.ndindex(k, k):
                v, value = np.eye(k)[x] - np.eye(k)[y], 0.0
                for s in range(t):
                    value += (np.abs(v) * radius[(at - s) % p]).sum() * bound[(at - s - 1) % p, t - 1 - s]
                    v = v @ kernel[(at - s) % p]
                largest = max(largest, (value + np.abs(v).sum()) / 2)
            split = [bound[at, a] * bound[(at - a) % p, t - a] for a in range(1, t)]
            bound[at, t] = min([bound[at, t - 1], largest, *split])
    return np.array([max(bound[at, t] for at in range(p)) for t in range(last + 1)])


@pytest.mark.parametrize(("k", "length"), [(2, 60), (2, 1500), (2, 6000), (3, 20_000), (5, 40_000)])
def test_it_is_the_recursion_of_the_mathematics_term_by_term(k, length):
    counts = counted(slow(1, k, k), length, k)
    expected = written_out(counts, [0], 20, 0.9, 7)
    bound = sampling_bound(counts[0], np.arange(21), level=0.9, households=7)
    np.testing.assert_allclose(bound, expected, rtol=1e-12)
    np.testing.assert_allclose(sampling_bound(counts[0], [20, 2], level=0.9, households=7), expected[[20, 2]])
    assert (expected[-1] < 1) == (length > 60)


@pytest.mark.parametrize(
    ("p", "k", "days", "groups", "rarer"),
    [(3, 2, 3000, [0, 1, 2], 1), (4, 3, 6000, [0, 1, 1, 0], 1), (3, 2, 20, [0, 0, 0], 1), (3, 2, 9000, [0, 1, 2], 32)],
)
def test_by_phase_it_is_the_recursion_of_the_mathematics_term_by_term(p, k, days, groups, rarer):
    counts = counted(slow(p, k, p), p * days, 1)
    counts[0] //= rarer  # a phase that is hardly known is helped by those before it
    expected = written_out(counts, groups, 2 * p, 0.9, 7)
    bound = cyclic_sampling_bound({1: counts[None]}, {1: [groups]}, np.arange(2 * p + 1), level=0.9, households=7)
    np.testing.assert_allclose(bound[0], expected, rtol=1e-12)
    assert (expected[-1] < 1) == (days > 20)


def test_by_phase_several_lags_share_the_level_and_count_the_steps_they_contain():
    chain, steps = slow(6, 2, 4, stay=0.9), np.arange(25)
    counts = {lag: counted(chain, 30_000, 3, every=lag)[None] for lag in (1, 3)}
    groups = {1: np.zeros((1, 6), int), 3: np.zeros((1, 2), int)}
    both = cyclic_sampling_bound(counts, groups, steps, level=0.95, households=1)
    alone = cyclic_sampling_bound({1: counts[1]}, {1: groups[1]}, steps, level=0.975, households=1)
    # a window of t steps holds at least so many whole lags
    held = [min(sum(at % 3 == 0 for at in range(a, a + t + 1)) for a in range(3)) - 1 for t in steps]
    rarely = cyclic_sampling_bound({1: counts[3]}, {1: groups[3]}, steps, level=0.975, households=1)
    rarely = rarely[:, np.maximum(held, 0)]
    np.testing.assert_array_equal(both, np.minimum(alone, rarely))
    assert (rarely < alone).any()


def test_rarely_visited_states_keep_it_at_one_and_states_never_seen_do_not():
    def at(counts, *steps):
        return sampling_bound(counts, steps, level=0.95, households=1).tolist()

    assert at([[5000, 2, 0], [2, 3, 0], [0, 0, 0]], 1, 100) == [1, 1]
    assert at([[5000, 5000, 0], [5000, 5000, 0], [0, 0, 0]], 1)[0] < 0.2
    assert at([[10_000, 5000, 1000], [5000, 10_000, 0], [0, 0, 0]], 1)[0] < 1
    assert at([[10_000, 5000, 0], [5000, 10_000, 0], [1000, 0, 0]], 1) == [1]
    assert at([[900]], 5) == [1]
    assert at(np.zeros((3, 3)), 0, 5) == [1, 1]
    far = at(counted(slow(1, 2, 0), 20_000, 9)[0], 400, 2000)
    assert far[1] <= far[0] < 1e-6


def test_a_state_that_its_phase_is_led_to_and_never_entered_keeps_it_at_one():
    def at(counts):
        return cyclic_sampling_bound({1: counts[None]}, {1: [[0, 1, 2]]}, [3], level=0.9, households=1)[0, 0]

    counts = np.full((3, 2, 2), 5000)
    assert at(counts) < 0.1
    counts[0, :, 1] = 0  # state 1 is never entered at phase 1, though it is left there
    assert at(counts) == 1
    counts[:] = [[0, 0], [0, 9000]]
    assert at(counts) == 1


def test_of_several_lags_each_shares_the_level_and_the_smaller_bound_stands():
    chain, steps = np.array([[[0.97, 0.03], [0.03, 0.97]]]), np.array([1, 8, 16, 40, 41, 160, 400])
    fine, coarse = (counted(chain, 20_000, 3, every=lag)[0] for lag in (1, 8))
    both = sampling_bound({1: fine, 8: coarse}, steps, level=0.95, households=1)
    alone = sampling_bound(fine, steps, level=0.975, households=1)
    rarely = sampling_bound(coarse, steps // 8, level=0.975, households=1)
    np.testing.assert_allclose(both, np.minimum(alone, rarely))
    assert (rarely < alone).any()


# The check of the chains: households that are one pass, habits and regimes are found.

LAGS = [1, 2, 7, 14, 28]


def chains_of_days(chain, days, households, rng):
    below, state = np.cumsum(chain, axis=1), rng.integers(0, len(chain), households)
    path = np.empty((days, households), int)
    for i in range(days):
        path[i] = state
        state = (rng.random(households)[:, None] >= below[state]).sum(axis=1)
    return path.T


def regimes(days, households, rng):
    """High or low for 30 to 180 days; each day shows it with probability .9."""
    series = np.empty((households, days), int)
    for row in series:
        at, regime = -int(rng.integers(0, 180)), int(rng.integers(0, 2))
        while at < days:
            end = at + int(rng.integers(30, 181))
            row[max(at, 0) : max(end, 0)] = regime
            at, regime = end, 1 - regime
    return np.where(rng.random(series.shape) < 0.9, series, 1 - series)


def weekly(days, households, rng):
    weekend = np.arange(days) % 7 >= 5
    return np.where(rng.random((households, days)) < 0.85, weekend, ~weekend).astype(int)


@pytest.mark.parametrize(
    "chain",
    [
        np.array([[0.8, 0.2], [0.4, 0.6]]),
        np.array([[0.7, 0.2, 0.1, 0.0], [0.2, 0.6, 0.1, 0.1], [0.0, 0.2, 0.7, 0.1], [0.1, 0.1, 0.2, 0.6]]),
    ],
)
def test_households_that_are_chains_pass_at_the_stated_rate(chain):
    rng = np.random.default_rng(11)
    series = chains_of_days(chain, 365, 120, rng)
    series[:, 100:120] = -1
    found = markov_goodness_of_fit(series, LAGS, rng, n_states=len(chain), level=0.9, replicates=39)
    # 10 % of 120 with four standard deviations; the estimated chain is a little more extreme than the true one.
    assert found.rejected.any(axis=1).mean() <= 0.1 + 4 * np.sqrt(0.1 * 0.9 / 120)
    assert not found.rejected[:, 0].any()


@pytest.mark.parametrize("kind", [weekly, regimes])
def test_households_with_a_habit_or_a_slow_regime_are_rejected(kind):
    rng = np.random.default_rng(12)
    found = markov_goodness_of_fit(kind(364, 40, rng), LAGS, rng, n_states=2, replicates=39)
    assert found.rejected.any(axis=1).mean() > 0.9
    assert (found.direct[found.rejected] > found.powers[found.rejected]).all()


def test_the_table_has_a_row_for_each_household_and_lag():
    rng = np.random.default_rng(13)
    series = chains_of_days(np.array([[0.9, 0.1], [0.1, 0.9]]), 730, 40, rng).reshape(2, 20, 730)
    found = markov_goodness_of_fit(series, [1, 3], rng, n_states=2, replicates=19)
    assert found.shape == (2, 20, 2)
    assert found.dtype.names == ("lag", "powers", "direct", "low", "high", "floor", "rejected")
    np.testing.assert_array_equal(found.lag[1, 2], [1, 3])
    by_lag = [count_lagged_pairs(series, series, lag, n_secret=2, n_read=2) for lag in (1, 3)]
    np.testing.assert_array_equal(found.direct, np.stack([max_row_distance(counts) for counts in by_lag], axis=-1))
    np.testing.assert_array_equal(found.powers, predicted_total_variation(by_lag[0], np.array([1, 3])))
    assert (found.low <= found.high).all()
    np.testing.assert_allclose(np.median(found.direct, axis=(0, 1)), [0.8, 0.8**3], atol=0.08)
    assert (np.median(found.floor, axis=(0, 1)) < 0.2).all()  # of a shifted copy, not of the series itself


PHASES, DAYS, DAY_LAGS = 8, 200, [1, 2, 7]


def clocked(count, rng, *, habit=False):
    """Asleep in phases 0 and 1, where nothing moves; drawn anew around the hour's level else; noon tells weekends."""
    series = np.empty((count, DAYS * PHASES), int)
    state = rng.integers(0, 4, count)
    for i in range(DAYS * PHASES):
        day, phase = divmod(i, PHASES)
        if phase >= 2:
            state = np.minimum(rng.integers(0, 3, count) + (phase >= 5), 3)
        if habit and phase == 4:
            state = np.where(rng.random(count) < 0.85, 3 * (day % 7 >= 5), state)
        series[:, i] = state
    series[:, 300:340] = -1
    return series


def checked(series, rng):
    keys = {"n_phases": PHASES, "min_visits": 10, "level": 0.9, "replicates": 19}
    return cyclic_goodness_of_fit(series, DAY_LAGS, rng, **keys)


def test_cyclic_chains_pass_at_the_stated_rate_and_one_chain_for_the_whole_day_is_rejected():
    rng = np.random.default_rng(1)
    series = clocked(100, rng)
    series[0], series[1] = -1, 2
    found = checked(series, rng)
    assert np.isnan(found.direct[:2]).all()
    assert not found.rejected[:2].any()
    assert found.rejected.any(axis=1).mean() <= 0.1 + 4 * np.sqrt(0.1 * 0.9 / 100)
    # What the chain says is what it shows in the same count: noise on both sides.
    direct = np.nanmedian(found.direct, axis=0)
    np.testing.assert_allclose(np.nanmedian(found.powers, axis=0), direct, atol=0.05)
    np.testing.assert_allclose(np.nanmedian(found.floor, axis=0), direct, atol=0.05)
    keys = {"n_states": 4, "steps_per_day": PHASES, "level": 0.9, "replicates": 19}
    pooled = markov_goodness_of_fit(series[2:22], [lag * PHASES for lag in DAY_LAGS], rng, **keys)
    assert pooled.rejected.any(axis=1).mean() > 0.9


def test_a_habit_that_lasts_over_days_is_found():
    rng = np.random.default_rng(2)
    found = checked(clocked(30, rng, habit=True), rng)
    assert found.rejected[:, 2].mean() > 0.9
    assert (found.direct > found.powers)[:, 2].mean() > 0.9
