"""Chains of counted states: transitions, lagged counts, reversible fits, states, and what is refused."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from agedp_data.errors import ChainError
from agedp_data.markov.confidence import sampling_bound
from agedp_data.markov.cyclic import cyclic_goodness_of_fit, cyclic_kernels, cyclic_sampling_bound
from agedp_data.markov.memory_check import count_state_pairs, markov_goodness_of_fit, smallest_state_type
from agedp_data.markov.mixing import (
    is_reversible,
    reversibilised_bound,
    reversible_fit_bound,
    reversible_transition_matrix,
    spectral_bound,
    spectral_gap,
    total_variation,
)
from agedp_data.markov.states import (
    RepresentativeValues,
    daily_totals,
    edges_equal_width,
    edges_quantile,
    merge_rare,
    representative_values,
    states,
)
from agedp_data.markov.transitions import (
    checked_lags,
    checked_states,
    count_lagged_pairs,
    count_transitions,
    lag_kernel,
    power,
    reverse,
    stationary,
    transition_matrix,
)

# Counts by hand, laws in closed form, powers and total variation by plain multiplication, bounds against them.

NAN = np.nan
CYCLE = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])


def random_chains(shape, k, seed, concentration=0.4):
    return np.random.default_rng(seed).dirichlet(np.full(k, concentration), size=(*shape, k))


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(-1, 3), st.booleans()), max_size=40))
def test_counts_are_those_of_a_plain_loop(series):
    states, follows = [s for s, _ in series], [f for _, f in series][1:]
    expected = np.zeros((4, 4), int)
    for before, after, near in zip(states, states[1:], follows, strict=False):
        if near and before >= 0 and after >= 0:
            expected[before, after] += 1
    assert count_transitions(states, follows, 4).tolist() == expected.tolist()


def test_a_series_read_less_often_begins_anew_after_a_gap():
    states = [0, 1, 0, 1, 1, 0, 1, 0, 1]
    follows = [True, True, True, False, True, True, True, True]
    # Runs 0..3 and 4..8; every second: (0, 2), then (4, 6), (6, 8).
    assert count_transitions(states, follows, 2, every=2).tolist() == [[1, 0], [0, 2]]
    assert count_transitions(states, follows, 2, every=4).tolist() == [[0, 0], [0, 1]]
    assert count_transitions([0, 1], [True], 2, every=5).tolist() == [[0, 0], [0, 0]]


def test_rows_are_shares_smoothed_by_equation_28_and_nan_without_visits():
    np.testing.assert_array_equal(transition_matrix([[[3, 1], [0, 0]]], smoothing=0), [[[0.75, 0.25], [NAN, NAN]]])
    smooth = transition_matrix(7 * np.eye(50), smoothing=0.05)
    np.testing.assert_allclose(smooth[0, :2], [1.05 / 3.5, 0.05 / 3.5])


def test_the_law_of_a_stack_is_left_fixed_by_each_chain():
    chains = random_chains((3, 4), 6, 1)
    law = stationary(chains)
    np.testing.assert_allclose(np.einsum("...i,...ij->...j", law, chains), law, atol=1e-14)
    np.testing.assert_allclose(law.sum(axis=-1), 1)
    np.testing.assert_allclose(stationary(CYCLE), np.full(3, 1 / 3))


def test_transient_states_have_probability_zero_and_no_reversed_row():
    chain = np.array([[0.5, 0.5, 0.0], [0.0, 0.9, 0.1], [0.0, 0.3, 0.7]])
    for order in ([0, 1, 2], [1, 0, 2], [1, 2, 0]):
        np.testing.assert_allclose(stationary(chain[np.ix_(order, order)]), np.array([0, 0.75, 0.25])[order])
    np.testing.assert_array_equal(np.isnan(reverse(chain)).all(axis=1), [True, False, False])
    np.testing.assert_allclose(reverse(chain)[1:, 1:], [[0.9, 0.1], [0.3, 0.7]])


def test_states_without_rows_are_left_out_with_what_leads_only_to_them():
    # State 3 was seen only last; 2 was always followed by 3. What is known is the chain on 0 and 1.
    chain = transition_matrix([[6, 3, 1, 0], [3, 1, 0, 0], [0, 0, 0, 2], [0, 0, 0, 0]], smoothing=0)
    inner = np.array([[6 / 9, 3 / 9], [3 / 4, 1 / 4]])
    np.testing.assert_allclose(stationary(chain), [*stationary(inner), 0, 0])
    for result in (power(chain, 1), reverse(chain)):
        np.testing.assert_array_equal(np.isnan(result).all(axis=1), [False, False, True, True])
        np.testing.assert_array_equal(result[:2, 2:], np.zeros((2, 2)))
    np.testing.assert_allclose(power(chain, 3)[:2, :2], np.linalg.matrix_power(inner, 3))
    np.testing.assert_array_equal(power(chain, 0)[:2], np.eye(4)[:2])
    np.testing.assert_array_equal(reverse([[1.0, 0.0], [NAN, NAN]]), [[1, 0], [NAN, NAN]])


def test_reversal_is_bayes_rule_and_its_own_inverse():
    chains = random_chains((5,), 4, 2)
    law = stationary(chains)
    flow = law[..., :, None] * chains
    np.testing.assert_allclose(reverse(chains), np.swapaxes(flow, 1, 2) / law[..., :, None], rtol=1e-12)
    np.testing.assert_allclose(reverse(reverse(chains)), chains, rtol=1e-10)


def test_powers_are_repeated_products_and_broadcast():
    chains = random_chains((2,), 5, 3)
    powers = power(chains, [[0], [1], [7], [31]])
    assert powers.shape == (4, 2, 5, 5)
    for steps, found in zip((0, 1, 7, 31), powers, strict=True):
        np.testing.assert_allclose(found[1], np.linalg.matrix_power(chains[1], steps), atol=1e-13)
        np.testing.assert_array_equal(found, power(chains, steps))


STEPS = [0, 1, 2, 3, 7, 20, 60]


def test_the_distance_is_that_of_the_reversed_powers():
    for chain in random_chains((5,), 5, 1):
        law = np.linalg.matrix_power(chain, 10_000)[0]
        for t, distance in zip(STEPS, total_variation(chain, STEPS), strict=True):
            backward = (law[:, None] * np.linalg.matrix_power(chain, t)).T / law[:, None]
            assert distance == pytest.approx(max(np.abs(x - y).sum() / 2 for x in backward for y in backward), abs=1e-9)


def test_bounds_hold_for_any_chain_and_eq_55_for_reversible_ones():
    for k, concentration in ((2, 1.0), (4, 0.1), (12, 0.4)):
        chains = random_chains((40,), k, k, concentration)
        assert (reversibilised_bound(chains, STEPS) >= total_variation(chains, STEPS)).all()
    # Walks on weighted graphs: P(x, y) = w(x, y) / w(x) with symmetric w.
    weight = np.random.default_rng(5).gamma(0.3, size=(40, 6, 6)) + 1e-4
    weight = weight + np.swapaxes(weight, 1, 2)
    chains = weight / weight.sum(axis=-1, keepdims=True)
    assert is_reversible(chains).all()
    for bound in (spectral_bound, reversibilised_bound):
        assert (bound(chains, STEPS) >= total_variation(chains, STEPS)).all()


def test_equation_55_has_its_value_by_hand():
    # pi = (.75, .25), lambda = .6: sqrt(3) .6^t.
    expected = np.minimum(1, np.sqrt(3) * 0.6 ** np.array(STEPS))
    np.testing.assert_allclose(spectral_bound([[0.9, 0.1], [0.3, 0.7]], STEPS), expected, atol=1e-13)


def test_the_gap_of_a_rotation_is_its_modulus():
    # Eigenvalues of circulant (a, b, c): |a + b w + c w^2|, w a third root of one.
    root = np.exp(2j * np.pi / 3)
    chain = [[0.1, 0.8, 0.1], [0.1, 0.1, 0.8], [0.8, 0.1, 0.1]]
    assert not is_reversible(chain)
    assert spectral_gap(chain) == pytest.approx(1 - abs(0.1 + 0.8 * root + 0.1 * root**2))


def test_transient_and_unvisited_states_count_for_nothing():
    inner, outer = np.array([[0.9, 0.1], [0.3, 0.7]]), np.full((4, 4), np.nan)
    outer[1:3, 1:3] = inner
    outer[1:3, [0, 3]] = 0.0
    outer[0] = [0.2, 0.8, 0.0, 0.0]
    alone = [[1.0, 0.0], [np.nan, np.nan]]  # one visited state has nothing to forget
    for distance in (total_variation, spectral_bound, reversibilised_bound):
        np.testing.assert_allclose(distance(outer, STEPS), distance(inner, STEPS), atol=1e-12)
        np.testing.assert_array_equal(distance(alone, STEPS), np.zeros(len(STEPS)))
    assert spectral_gap(outer) == pytest.approx(float(spectral_gap(inner)))
    assert spectral_gap(alone) == 1.0


# Lagged kernels against plain loops.


def by_loop(secret, read, lag, n_secret, n_read, used=lambda now, then: True):
    counts = np.zeros((n_secret, n_read))
    for i in range(lag, len(secret)):
        if secret[i] >= 0 and read[i - lag] >= 0 and used(i, i - lag):
            counts[secret[i], read[i - lag]] += 1
    return counts


def shares(counts):
    with np.errstate(invalid="ignore"):
        return counts / counts.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("lag", [0, 1, 5, 40, 60, 99])
def test_a_lag_kernel_is_that_of_a_plain_loop(lag):
    rng = np.random.default_rng(lag)
    secret, read, mark = rng.integers(-1, 3, 60), rng.integers(-1, 5, 60), rng.random(60) < 0.4
    kernel = lag_kernel(secret, read, lag, n_secret=3, n_read=5)
    np.testing.assert_allclose(kernel, shares(by_loop(secret, read, lag, 3, 5)))
    many = lag_kernel(np.stack([secret, secret[::-1]]), np.stack([read, read]), lag, n_secret=3, n_read=5)
    np.testing.assert_array_equal(many[0], kernel)
    marked = lag_kernel(secret, read, lag, n_secret=3, n_read=5, part=mark)  # a mark chooses the instants of the secret
    np.testing.assert_allclose(marked, shares(by_loop(secret, read, lag, 3, 5, used=lambda now, then: mark[now])))


@pytest.mark.parametrize(("k", "lag"), [(2, 0), (3, 1), (300, 2), (3, 60), (3, 90)])
def test_pairs_of_small_states_are_those_of_the_slow_count(k, lag):
    series = np.random.default_rng(k).integers(-1, k, (5, 60))
    small = np.where(series >= 0, series, k).astype(smallest_state_type(k))
    expected = [by_loop(row, row, lag, k, k) for row in series]
    np.testing.assert_array_equal(count_lagged_pairs(series, series, lag, n_secret=k, n_read=k), expected)
    np.testing.assert_array_equal(count_state_pairs(small, small, lag, k), expected)


def test_labels_give_a_kernel_for_each_pair_of_parts():
    rng = np.random.default_rng(2)
    secret, read = rng.integers(0, 2, 90), rng.integers(0, 2, 90)
    label = np.arange(90) % 3 - (np.arange(90) == 50) * 5  # one instant belongs to no part
    kernels = lag_kernel(secret, read, 4, n_secret=2, n_read=2, part=np.maximum(label, -1))
    pairs = sorted({(label[i], label[i - 4]) for i in range(4, 90) if min(label[i], label[i - 4]) >= 0})
    for kernel, pair in zip(kernels, pairs, strict=True):
        expected = by_loop(secret, read, 4, 2, 2, used=lambda i, j, pair=pair: (label[i], label[j]) == pair)
        np.testing.assert_allclose(kernel, shares(expected))


# The reversible fit is the most likely chain in detailed balance, whatever finds it; eq. 55 is that of the fit.

SPARSE = [[90, 7, 0, 0], [5, 60, 9, 0], [0, 11, 40, 2], [1, 0, 1, 30]]  # some pairs of states never follow each other


def random_counts(seed, size, k):
    """Counts of lasting states, of which a third are symmetric."""
    counts = np.random.default_rng(seed).integers(1, 400, (size, k, k)) + 900 * np.eye(k, dtype=np.int64)
    counts[::3] += np.swapaxes(counts[::3], 1, 2)
    return counts


def iterated(counts, rounds):
    """Return the fit by the fixed-point iteration of the literature, cell by cell."""
    n = np.array(counts, float)
    k, flow = len(n), n + n.T
    for _ in range(rounds):
        total = flow.sum(axis=1)
        ratio = n.sum(axis=1) / total
        flow = np.array([[(n[i, j] + n[j, i]) / (ratio[i] + ratio[j]) for j in range(k)] for i in range(k)])
    return flow / flow.sum(axis=1, keepdims=True)


def most_likely(counts):
    """Return the reversible matrix that a general optimiser finds over all symmetric flows of the pairs that occur."""
    n = np.array(counts, float)
    upper = np.triu_indices(len(n))
    occurring = [(i, j) for i, j in zip(*upper, strict=True) if n[i, j] + n[j, i]]
    pairs = tuple(np.array(occurring).T)

    def matrix(logarithms):
        flow = np.zeros_like(n)
        flow[pairs] = np.exp(logarithms)
        flow = np.maximum(flow, flow.T)
        return flow / flow.sum(axis=1, keepdims=True)

    def loss(logarithms):
        probability = matrix(logarithms)
        return -(n[n > 0] * np.log(probability[n > 0])).sum()

    start = np.log((n + n.T)[pairs])
    return matrix(minimize(loss, start, method="BFGS", options={"gtol": 1e-7}).x)


@pytest.mark.parametrize("counts", [[[5, 3, 1], [1, 4, 3], [3, 1, 6]], [[0, 9, 1], [2, 0, 7], [8, 3, 0]], SPARSE])
def test_no_reversible_chain_is_more_likely(counts):
    np.testing.assert_allclose(reversible_transition_matrix(counts), most_likely(counts), atol=2e-5)


@pytest.mark.parametrize(("counts", "rounds"), [(SPARSE, 3000), (random_counts(5, 1, 12)[0], 1000)])
def test_the_fixed_point_of_the_literature_is_found(counts, rounds):
    np.testing.assert_allclose(reversible_transition_matrix(counts), iterated(counts, rounds), atol=1e-10)


def test_a_fit_is_reversible_and_independent_of_its_stack():
    counts = random_counts(3, 20, 6)
    counts[4, 5], counts[4, :, 5] = 0, 0  # a state that the household does not visit
    fits = reversible_transition_matrix(counts)
    assert is_reversible(fits).all()
    assert np.isnan(fits[4, 5]).all()
    np.testing.assert_allclose(fits[4, :5, :5], reversible_transition_matrix(counts[4, :5, :5]), rtol=1e-12)
    for one, fit in zip(counts, fits, strict=True):
        np.testing.assert_array_equal(reversible_transition_matrix(one), fit)


def test_a_chain_that_is_not_reversible_exceeds_the_bound_of_its_fit():
    """A chain that goes round forgets nothing; its fit, which goes both ways, forgets by half in a step."""
    rounds = [[0, 100, 0], [0, 0, 100], [100, 0, 0]]
    assert total_variation(transition_matrix(rounds, smoothing=0), [4]).tolist() == [1.0]
    np.testing.assert_allclose(reversible_fit_bound(rounds, [4]), np.sqrt(2) / 16, rtol=1e-9)


@pytest.mark.parametrize(
    "counts",
    [
        [[5, 1, 0], [0, 5, 0], [0, 0, 5]],  # two classes
        [[5, 1], [0, 5]],  # one way
        [[5, 1], [0, 0]],  # a state that is never left
        [[0, 0], [0, 0]],
        [[1, -1], [1, 1]],
    ],
)
def test_counts_without_a_fit_are_refused(counts):
    with pytest.raises(ChainError):
        reversible_transition_matrix(counts)


# Cut points, states and what they are published as, against counts by hand.

CUTS = st.lists(st.integers(1, 3000), min_size=1, max_size=12, unique=True).map(sorted)


def test_equal_width_cuts_divide_the_range_and_a_cut_belongs_above():
    edges = edges_equal_width(1200, 12)
    assert edges.tolist() == [100.0 * i for i in range(1, 12)]
    assert states([0, 99, 100, 1199, 1200, 5000], edges).tolist() == [0, 0, 1, 11, 11, 11]
    assert states([np.nan, 2.0, -0.5], [3]).tolist() == [-1, 0, -1]  # a missing reading has no state


@pytest.mark.parametrize(
    ("values", "counts", "number"),
    [
        (np.arange(120), np.ones(120), 12),
        (np.arange(41), [60] + [1] * 40, 6),  # .4 of 12 states is 4.8: five more cuts' worth
        ([700], [17], 1),
        ([0, 40], [1, 999], 2),
        ([0, 40], [500, 500], 2),
    ],
)
def test_quantile_cuts_spread_values_evenly_and_single_out_heavy_ones(values, counts, number):
    visits = np.bincount(states(values, edges_quantile(values, counts, 12)), weights=counts)
    assert (visits > 0).sum() == number
    if number == 12:
        assert visits.tolist() == [10] * 12


def test_one_state_needs_no_cuts_and_one_value_one_state():
    assert edges_quantile([3, 4], [1, 1], 1).size == 0
    assert states([3, 4], edges_equal_width(10, 1)).tolist() == [0, 0]
    assert np.unique(states([700] * 5, edges_equal_width(700, 12))).size == 1


@settings(max_examples=60)
@given(st.dictionaries(st.integers(0, 5000), st.integers(1, 400), min_size=1, max_size=40), st.integers(1, 12))
def test_cuts_ascend_and_every_value_of_two_shares_is_alone(histogram, n):
    values = np.array(sorted(histogram))
    counts = np.array([histogram[v] for v in values.tolist()])
    edges = edges_quantile(values, counts, n)
    assert edges.shape == (n - 1,)
    assert (np.diff(edges) >= 0).all()
    state = states(values, edges)
    assert ((state >= 0) & (state < n)).all()
    for heavy in np.flatnonzero(counts * n >= 2 * counts.sum()):
        assert (state == state[heavy]).sum() == 1


def test_rare_states_go_to_the_nearest_frequent_one():
    series = np.repeat([0, 1, 2, 3, 4], [9, 2, 1, 2, 9])
    assert merge_rare(series, n_states=5, min_visits=5).tolist() == [0] * 12 + [4] * 11  # 2 is as near to 0 as to 4
    assert merge_rare([2, 2, -1, 0], n_states=3, min_visits=99).tolist() == [2, 2, -1, 2]
    assert merge_rare([[-1, -1]], n_states=3, min_visits=5).tolist() == [[-1, -1]]


def test_days_with_too_many_readings_missing_are_left_out():
    days = np.ravel([[0, 0, 3], [-1, -1, 5], [-1, 4, 4]])
    assert daily_totals(days, slots=3, max_missing=1).tolist() == [3, -1, 8]


def middle(edges, energy):
    """The upper middle of the whole numbers in the range of an energy; the last range is as wide as the one before."""
    ends = [0, *edges, edges[-1] + (edges[-1] - [0, *edges][-2])]
    held = next(range(low, high) for low, high in pairwise(ends) if energy < high or high == ends[-1])
    return held[len(held) // 2]


@given(CUTS, st.lists(st.integers(0, 50_000), min_size=1))
def test_a_reading_counts_as_the_middle_of_its_range_and_a_middle_as_itself(edges, energies):
    kept = RepresentativeValues("half-hour", tuple(edges))
    assert kept.represent(np.array(energies)).tolist() == [middle(edges, energy) for energy in energies]
    values = representative_values(edges)
    assert states(values, edges).tolist() == list(range(len(edges) + 1))
    assert kept.represent(values).tolist() == values.tolist() == list(kept.representative_values_wh)


def test_far_cuts_count_as_near_ones_and_no_day_more_than_its_half_hours_can():
    for last in (2**20, 2**20 + 1, 10**9):
        energies = [0, 5, last - 1, last, 2 * last]
        found = RepresentativeValues("day", (5, last)).represent(np.array(energies))
        assert found.tolist() == [middle([5, last], energy) for energy in energies]
    assert RepresentativeValues("half-hour", (100, 300)).max_day_wh == 48 * 400
    assert RepresentativeValues("day", (100, 300)).max_day_wh == 400


# What is no series, no chain, no count or no level is refused, and the message says what is wrong.

RNG = np.random.default_rng(0)
BOUNDS = (total_variation, spectral_bound, reversibilised_bound)
TURNING = [[0.1, 0.8, 0.1], [0.1, 0.1, 0.8], [0.8, 0.1, 0.1]]


def bounded(counts=((9, 1), (1, 9)), steps=(1,), **wrong):
    return sampling_bound(counts, steps, **{"level": 0.95, "households": 1} | wrong)


def bounded_by_phase(lag=1, groups=((0, 1),), steps=(1,), **wrong):
    counts = {lag: np.ones((1, 2, 2, 2), int)}
    return cyclic_sampling_bound(counts, {1: groups}, steps, **{"level": 0.95, "households": 1} | wrong)


def by_phase(**wrong):
    keys = {"n_phases": 8, "min_visits": 10, "level": 0.9, "replicates": 19} | wrong
    return cyclic_goodness_of_fit(np.zeros((1, 24), int), [1, 2, 7], RNG, **keys)


UNKNOWN_ROWS = [[[0, 1], [0, 0]], [[0, 0], [0, 1]], [[0, 0], [0, 0]]]
REFUSED = [
    (bounded, None, {"level": [1.0, 0.0], "households": [0], "counts": [{}, {0: [[1]]}], "steps": [3]}),
    (bounded_by_phase, None, {"level": [1.0], "households": [0], "lag": [2], "groups": [[[0, 1, 2]]], "steps": [3]}),
    (by_phase, None, {"n_phases": [7], "level": [1.0], "replicates": [3]}),
    (partial(markov_goodness_of_fit, [0, 1, 0], [1], RNG, n_states=2), "replicates",
     {"level": [1.0], "steps_per_day": [0]}),
    (checked_lags, None, {"lags": [[-1], 3]}),
    (partial(checked_states, n_states=2), None, {"states": [[0, 4], [0.5, 1.0]]}),
    (partial(daily_totals, [1, 2], max_missing=0), "multiple of 3", {"slots": [3]}),
    (partial(cyclic_kernels, UNKNOWN_ROWS, [0, 1, 2]), "no state that it can be followed", {"direction": ["backward"]}),
    (partial(cyclic_kernels, np.full((2, 2, 2), 9), [0, 1]), '"backward" or "forward"', {"direction": ["sideways"]}),
    (partial(spectral_bound, steps=[1]), "reversible chains only",
     {"transition": [TURNING, [TURNING, np.full((3, 3), 1 / 3)]]}),
    *((bound, "several recurrent classes", {"transition": [np.eye(3)]})
      for bound in (stationary, reverse, *(partial(bound, steps=[1]) for bound in BOUNDS))),
    (representative_values, None, {"edges": [[], [0, 5], [5, 5], [7, 5], [1.5, 2.0], [[1, 2]]]}),
    (partial(edges_quantile, [1, 2], n_states=3), None, {"counts": [[0, 0], [1, -1], [1]]}),
    (partial(edges_quantile, counts=[1, 1], n_states=3), None, {"values": [[2, 1], [-1, 1]]}),
    (partial(edges_equal_width, n_states=3), None, {"maximum": [-1.0, NAN, np.inf]}),
    (partial(count_transitions, [0, 1], [True]), None, {"n_states": [1]}),
    (partial(count_transitions, [0, 1], n_states=3), None, {"contiguous": [[], [True, True]]}),
    (partial(count_transitions, [0, 1], [True], 2), "every 0", {"every": [0]}),
    (partial(transition_matrix, smoothing=0.0), None, {"counts": [[[1, -1], [0, 1]], [[1, 1]]]}),
    (partial(transition_matrix, [[1, 0], [0, 1]]), None, {"smoothing": [-0.1, NAN]}),
    (stationary, None, {"transition": [np.full((2, 2), NAN), [[0.0, 1.0], [NAN, NAN]], [[0.5, 0.5]]]}),
    (partial(power, np.eye(2)), "whole numbers", {"steps": [-1, 0.5, NAN]}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (partial(call, **{key: wrong}), message)
        for call, message, keys in REFUSED
        for key in keys
        for wrong in keys[key]
    ],
)
def test_what_cannot_be_computed_is_refused(call, message):
    with pytest.raises(ChainError, match=message):
        call()
