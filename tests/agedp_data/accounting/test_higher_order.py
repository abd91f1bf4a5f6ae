"""Households that remember more than a day: chains of second order by enumeration."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from agedp_data.accounting.temporal_leakage import allocate_with, round_up_losses
from agedp_data.errors import ChainError
from tests.agedp_data.accounting.leaps import recursion_by_leaps
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
    recursion = recursion_by_leaps(pair_chain(after), max_days=leaps)
    assert (truth <= recursion.leakage_totals(losses[1:]).total + losses[0] + 1e-12).all()
    assert (truth[1:] <= recursion.leakage_totals(losses).total[2:] + 1e-12).all()


@pytest.mark.parametrize("leaps", [1, 2, 4])
def test_it_is_the_least_over_the_leaps(leaps):
    losses = [0.3, 0.8, 0.1, 0.5, 0.4, 0.6]
    for chain in (pair_chain(second_order(4)), dense(3, 2)):
        totals = recursion_by_leaps(chain, max_days=leaps).leakage_totals(losses)
        np.testing.assert_allclose(totals.backward, by_hand(reversed_chain(chain), losses, leaps), rtol=1e-9)
        np.testing.assert_allclose(totals.forward, by_hand(chain, losses[::-1], leaps)[::-1], rtol=1e-9)
        np.testing.assert_allclose(totals.total, totals.backward + totals.forward - losses)


@pytest.mark.parametrize("leaps", [2, 3])
def test_the_limit_is_what_long_series_build_up_to_and_budgets_hold(leaps):
    chain = pair_chain(second_order(2))
    recursion = recursion_by_leaps(chain, max_days=leaps)
    long = recursion.leakage_totals(np.full(500, 0.05)).total.max()
    assert recursion.total_supremum(0.05) == pytest.approx(long, rel=1e-9)
    assert long <= recursion.total_supremum(0.05) * (1 + 1e-13)
    plan = allocate_with(recursion, alpha=1.0, horizon=8, method="best")
    for losses in (plan, round_up_losses(recursion, plan, alpha=1.0)):
        assert recursion.leakage_totals(losses).total.max() <= 1.0
        behind, ahead = by_hand(reversed_chain(chain), losses, leaps), by_hand(chain, losses[::-1], leaps)[::-1]
        assert (behind + ahead - losses).max() <= 1 + 1e-9


@pytest.mark.parametrize(
    "call",
    [
        lambda: recursion_by_leaps(None, max_days=1),
        lambda: recursion_by_leaps(np.stack([np.eye(2)] * 2), max_days=2).leakage_totals(np.ones((3, 4))),
    ],
)
def test_what_does_not_fit_is_refused(call):
    with pytest.raises(ChainError):
        call()
