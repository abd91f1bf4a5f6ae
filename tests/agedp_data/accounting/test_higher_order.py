"""Households that remember more than a day: states by hand, chains of second order by enumeration."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from agedp_data.accounting.higher_order import higher_order_recursion, pair_states, regime_states
from agedp_data.accounting.temporal_leakage import (
    allocate_with,
    round_up_losses,
    temporal,
    temporal_kernels,
    temporal_supremum,
)
from agedp_data.errors import ChainError
from agedp_data.markov.transitions import count_transitions, transition_matrix
from tests.agedp_data.accounting.temporal_oracles import (
    algorithm_1,
    dense,
    kernels_of_every_kind,
    largest_ratio,
    mechanisms,
    reversed_chain,
    stationary,
)

BANDED = np.array([[0.6, 0.4, 0, 0], [0.3, 0.4, 0.3, 0], [0, 0.3, 0.4, 0.3], [0, 0, 0.4, 0.6]])


def pair_chain(after):
    """The chain of pairs (yesterday, today) of a household with P(tomorrow | yesterday, today) = after (k, k, k)."""
    k = len(after)
    chain = np.zeros((k * k, k * k))
    for a, b, c in product(range(k), repeat=3):
        chain[a * k + b, b * k + c] = after[a, b, c]
    return chain


def second_order(seed, k=2):
    return np.random.default_rng(seed).dirichlet(np.full(k, 0.8), size=(k, k))


def exact_about_states(after, losses):
    """The exact loss about each day's pair (days 1, 2, ...) when each release reads one day: all paths, all outputs."""
    k, count = len(after), len(losses)
    chain = pair_chain(after)
    law = stationary(chain)
    joint = np.zeros([k] * count)
    for path in product(range(k), repeat=count):
        weight = law[path[0] * k + path[1]]
        for a, b, c in zip(path, path[1:], path[2:], strict=False):
            weight *= after[a, b, c]
        joint[path] = weight
    letters, marks = "abcdef"[:count], "ABCDEF"[:count]
    outputs = [mechanisms(k, e) for e in losses]
    found = []
    for t in range(1, count):
        kept = letters[t - 1 : t + 1]
        inputs = ",".join(m + x for m, x in zip(marks, letters, strict=True))
        given = np.einsum(f"{letters},{inputs}->{marks}{kept}", joint, *outputs, optimize=True)
        found.append(largest_ratio(given.reshape(-1, k * k) / np.einsum(f"{letters}->{kept}", joint).ravel()))
    return np.array(found)


def by_hand(chain, losses, leaps):
    """MATHS' recursion with leaps, kernels by numpy's powers and leakage by Algorithm 1."""
    powers = [np.linalg.matrix_power(chain, j) for j in range(1, leaps + 1)]
    found = []
    for t in range(len(losses)):
        ways = (
            sum(losses[t - j + 1 : t + 1]) + algorithm_1(powers[j - 1], found[t - j])
            for j in range(1, min(leaps, t) + 1)
        )
        found.append(min([sum(losses[: t + 1]), *ways]))
    return np.array(found)


@pytest.mark.parametrize("leaps", [1, 2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_no_mechanism_tells_more_about_a_state_of_two_days(seed, leaps):
    after, losses = second_order(seed), [0.6, 0.9, 0.4, 0.7, 0.5]
    total = higher_order_recursion(pair_chain(after), max_days=leaps).leakage_totals(losses).total
    # The first state of the chain is that of days 0 and 1; what day 0 says is said about it in full.
    truth = exact_about_states(after, losses)
    found = higher_order_recursion(pair_chain(after), max_days=leaps).leakage_totals(losses[1:]).total
    assert (truth <= found + losses[0] + 1e-12).all()
    assert (truth[1:] <= total[2:] + 1e-12).all()


@pytest.mark.parametrize("leaps", [1, 2, 4])
def test_it_is_the_least_over_the_leaps(leaps):
    losses = [0.3, 0.8, 0.1, 0.5, 0.4, 0.6]
    for chain in (pair_chain(second_order(4)), dense(3, 2), BANDED):
        found = higher_order_recursion(chain, max_days=leaps).leakage_totals(losses)
        np.testing.assert_allclose(found.backward, by_hand(reversed_chain(chain), losses, leaps), rtol=1e-9)
        np.testing.assert_allclose(found.forward, by_hand(chain, losses[::-1], leaps)[::-1], rtol=1e-9)
        np.testing.assert_allclose(found.total, found.backward + found.forward - losses)


def test_one_step_at_a_time_is_the_form_of_the_paper_and_adds_up_pairs_of_days():
    chain, losses = pair_chain(second_order(1)), np.full(30, 0.1)
    one = higher_order_recursion(chain, max_days=1)
    np.testing.assert_allclose(one.leakage_totals(losses).total, temporal(*temporal_kernels(chain), losses), rtol=1e-12)
    np.testing.assert_allclose(one.leakage_totals(losses).total, 3.0)
    assert one.total_supremum(0.1) == temporal_supremum(*temporal_kernels(chain), 0.1) == np.inf
    assert higher_order_recursion(chain, max_days=2).leakage_totals(losses).total.max() < 1.5


@pytest.mark.parametrize("seed", range(3))
def test_the_limit_is_what_long_series_build_up_to(seed):
    chain = pair_chain(second_order(seed))
    for leaps in (2, 3):
        course = higher_order_recursion(chain, max_days=leaps)
        long = course.leakage_totals(np.full(1000, 0.05)).total.max()
        assert course.total_supremum(0.05) == pytest.approx(long, rel=1e-9)
        assert long <= course.total_supremum(0.05) * (1 + 1e-13)


def test_more_leaps_never_say_more():
    losses = [0.3, 0.8, 0.1, 0.5, 0.4, 0.6]
    for kind, chain in kernels_of_every_kind(5, 8).items():
        if kind != "identity":
            figures = [higher_order_recursion(chain, max_days=j).leakage_totals(losses).total for j in (1, 2, 3)]
            assert (figures[1] <= figures[0] + 1e-12).all(), kind
            assert (figures[2] <= figures[1] + 1e-12).all(), kind


@pytest.mark.parametrize("method", ["supremum", "exact", "even", "best"])
def test_budgets_on_longer_memory_hold(method):
    course = higher_order_recursion(pair_chain(second_order(2)), max_days=3)
    plan = allocate_with(course, alpha=1.0, horizon=10, method=method)
    for losses in (plan, round_up_losses(course, plan, alpha=1.0)):
        assert course.leakage_totals(losses).total.max() <= 1.0
        behind = by_hand(reversed_chain(pair_chain(second_order(2))), losses, 3)
        ahead = by_hand(pair_chain(second_order(2)), losses[::-1], 3)[::-1]
        assert (behind + ahead - losses).max() <= 1 + 1e-9


def test_a_memory_of_one_day_seen_as_pairs_leaks_no_less_than_it_does():
    chain = dense(3, 5)
    losses = [0.3, 0.6, 0.2, 0.5]
    pairs = pair_chain(np.broadcast_to(chain[None], (3, 3, 3)).copy())
    assert (
        higher_order_recursion(pairs, max_days=2).leakage_totals(losses).total
        >= temporal(*temporal_kernels(chain), losses) - 1e-12
    ).all()


def test_households_in_a_stack_and_chains_in_a_set():
    stack = np.stack([dense(3, 1), dense(3, 2)])
    losses = [0.3, 0.6, 0.2]
    found = higher_order_recursion(stack, max_days=2).leakage_totals(losses).total
    for i, chain in enumerate(stack):
        np.testing.assert_array_equal(found[i], higher_order_recursion(chain, max_days=2).leakage_totals(losses).total)
    assert (
        higher_order_recursion(tuple(stack), max_days=2).leakage_totals(losses).total >= found.max(axis=0) - 1e-15
    ).all()
    assert higher_order_recursion(stack, max_days=2).leakage_totals([]).total.shape == (2, 0)
    with pytest.raises(ChainError, match="do not fit"):
        higher_order_recursion(stack, max_days=2).leakage_totals(np.ones((3, 4)))


def test_pairs_are_made_of_days_in_a_row_and_lead_to_pairs_that_share_a_day():
    states = np.random.default_rng(3).integers(-1, 3, size=400)
    pairs = pair_states(states, n_states=3)
    assert pairs[0] == -1
    for t in range(1, 400):
        both = states[t - 1] >= 0 and states[t] >= 0
        assert pairs[t] == (states[t - 1] * 3 + states[t] if both else -1)
    counts = count_transitions(pairs, np.ones(399, bool), 9)
    before, after = np.nonzero(counts)
    np.testing.assert_array_equal(before % 3, after // 3)
    assert transition_matrix(counts, smoothing=0).shape == (9, 9)
    np.testing.assert_array_equal(pair_states(np.stack([states, states]), n_states=3)[1], pairs)


@pytest.mark.parametrize("days", [1, 4, 7])
def test_regimes_are_means_of_the_days_that_end_today(days):
    rng = np.random.default_rng(4)
    values = np.where(rng.random(200) < 0.2, -1, rng.integers(0, 100, size=200))
    states = np.where(values >= 0, values // 50, -1)
    found = regime_states(states, values, [40, 60], n_states=2, days=days)
    for t in range(200):
        span = values[max(0, t - days + 1) : t + 1]
        known = span[span >= 0]
        if states[t] < 0 or 2 * known.size <= span.size:
            assert found[t] == -1
        else:
            regime = int(known.mean() >= 40) + int(known.mean() >= 60)
            assert found[t] == regime * 2 + states[t]
    both = regime_states(np.stack([states] * 2), np.stack([values] * 2), [40, 60], n_states=2, days=days)
    np.testing.assert_array_equal(both[1], found)


@pytest.mark.parametrize(
    "call",
    [
        lambda: pair_states([0, 3], n_states=3),
        lambda: pair_states(0, n_states=3),
        lambda: pair_states([0.5], n_states=3),
        lambda: regime_states([0, 1], [1.0], [5], n_states=2, days=2),
        lambda: regime_states([0, 1], [1.0, 2.0], [5, 5], n_states=2, days=2),
        lambda: regime_states([0, 1], [1.0, 2.0], [5], n_states=2, days=0),
        lambda: higher_order_recursion(np.eye(2), max_days=0),
        lambda: higher_order_recursion(None, max_days=1),
    ],
)
def test_what_does_not_fit_is_refused(call):
    with pytest.raises(ChainError):
        call()
