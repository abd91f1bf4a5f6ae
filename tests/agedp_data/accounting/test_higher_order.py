"""Households that remember more than a day: states by hand, chains of second order by enumeration."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest

from agedp_data.accounting.higher_order import higher_order_recursion, pair_states, regime_states
from agedp_data.accounting.temporal_leakage import allocate_with, round_up_losses
from agedp_data.errors import ChainError
from agedp_data.markov.transitions import count_transitions
from tests.agedp_data.accounting.temporal_oracles import (
    algorithm_1,
    dense,
    loss_about,
    mechanisms,
    reversed_chain,
    stationary,
)


def pair_chain(after):
    """The chain of pairs (yesterday, today) of a household with P(tomorrow | yesterday, today) = after (k, k, k)."""
    k = len(after)
    chain = np.zeros((k * k, k * k))
    for a, b, c in product(range(k), repeat=3):
        chain[a * k + b, b * k + c] = after[a, b, c]
    return chain


def second_order(seed):
    return np.random.default_rng(seed).dirichlet(np.full(2, 0.8), size=(2, 2))


def by_hand(chain, losses, leaps):
    """The recursion of docs/mathematics.md with leaps, kernels by numpy's powers and leakage by Algorithm 1."""
    powers, course = [np.linalg.matrix_power(chain, j) for j in range(leaps + 1)], []
    for t in range(len(losses)):
        ways = (
            sum(losses[t - j + 1 : t + 1]) + algorithm_1(powers[j], course[t - j]) for j in range(1, min(leaps, t) + 1)
        )
        course.append(min([sum(losses[: t + 1]), *ways]))
    return np.array(course)


@pytest.mark.parametrize("leaps", [1, 3])
@pytest.mark.parametrize("seed", range(2))
def test_no_mechanism_tells_more_about_a_state_of_two_days(seed, leaps):
    after, losses = second_order(seed), [0.6, 0.9, 0.4, 0.7, 0.5]
    law, joint = stationary(pair_chain(after)), np.zeros([2] * 5)
    for path in product(range(2), repeat=5):
        steps = zip(path, path[1:], path[2:], strict=False)
        joint[path] = law[path[0] * 2 + path[1]] * np.prod([after[step] for step in steps])
    outputs = [mechanisms(2, e) for e in losses]
    truth = np.array([loss_about(joint, (t - 1, t), outputs) for t in range(1, 5)])
    # The first state of the chain is that of days 0 and 1; what day 0 says is said about it in full.
    recursion = higher_order_recursion(pair_chain(after), max_days=leaps)
    assert (truth <= recursion.leakage_totals(losses[1:]).total + losses[0] + 1e-12).all()
    assert (truth[1:] <= recursion.leakage_totals(losses).total[2:] + 1e-12).all()


@pytest.mark.parametrize("leaps", [1, 2, 4])
def test_it_is_the_least_over_the_leaps(leaps):
    losses = [0.3, 0.8, 0.1, 0.5, 0.4, 0.6]
    for chain in (pair_chain(second_order(4)), dense(3, 2)):
        totals = higher_order_recursion(chain, max_days=leaps).leakage_totals(losses)
        np.testing.assert_allclose(totals.backward, by_hand(reversed_chain(chain), losses, leaps), rtol=1e-9)
        np.testing.assert_allclose(totals.forward, by_hand(chain, losses[::-1], leaps)[::-1], rtol=1e-9)
        np.testing.assert_allclose(totals.total, totals.backward + totals.forward - losses)


@pytest.mark.parametrize("leaps", [2, 3])
def test_the_limit_is_what_long_series_build_up_to_and_budgets_hold(leaps):
    chain = pair_chain(second_order(2))
    recursion = higher_order_recursion(chain, max_days=leaps)
    long = recursion.leakage_totals(np.full(500, 0.05)).total.max()
    assert recursion.total_supremum(0.05) == pytest.approx(long, rel=1e-9)
    assert long <= recursion.total_supremum(0.05) * (1 + 1e-13)
    plan = allocate_with(recursion, alpha=1.0, horizon=8, method="best")
    for losses in (plan, round_up_losses(recursion, plan, alpha=1.0)):
        assert recursion.leakage_totals(losses).total.max() <= 1.0
        behind, ahead = by_hand(reversed_chain(chain), losses, leaps), by_hand(chain, losses[::-1], leaps)[::-1]
        assert (behind + ahead - losses).max() <= 1 + 1e-9


def test_pairs_are_made_of_days_in_a_row_and_lead_to_pairs_that_share_a_day():
    states = np.random.default_rng(3).integers(-1, 3, size=400)
    pairs = pair_states(states, n_states=3)
    expected = [a * 3 + b if min(a, b) >= 0 else -1 for a, b in pairwise(states)]
    assert pairs.tolist() == [-1, *expected]
    before, after = np.nonzero(count_transitions(pairs, np.ones(399, bool), 9))
    np.testing.assert_array_equal(before % 3, after // 3)
    np.testing.assert_array_equal(pair_states(np.stack([states, states]), n_states=3)[1], pairs)


@pytest.mark.parametrize("days", [1, 4, 7])
def test_regimes_are_means_of_the_days_that_end_today(days):
    rng = np.random.default_rng(4)
    values = np.where(rng.random(200) < 0.2, -1, rng.integers(0, 100, size=200))
    states = np.where(values >= 0, values // 50, -1)
    regimes = regime_states(np.stack([states] * 2), np.stack([values] * 2), [40, 60], n_states=2, days=days)
    for t in range(200):
        span = values[max(0, t - days + 1) : t + 1]
        known = span[span >= 0]
        expected = -1
        if states[t] >= 0 and 2 * known.size > span.size:
            expected = (int(known.mean() >= 40) + int(known.mean() >= 60)) * 2 + states[t]
        assert regimes[:, t].tolist() == [expected] * 2


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
        lambda: higher_order_recursion(np.stack([np.eye(2)] * 2), max_days=2).leakage_totals(np.ones((3, 4))),
    ],
)
def test_what_does_not_fit_is_refused(call):
    with pytest.raises(ChainError):
        call()
