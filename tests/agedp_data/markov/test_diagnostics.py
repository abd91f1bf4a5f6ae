"""Likelihood-ratio tests against scipy's own, and against series whose order is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2_contingency, kstest

from agedp_data.markov.diagnostics import diagnose, independence_test
from agedp_data.markov.transitions import count_transitions


def chains_of(law_of, length, homes, rng):
    path = np.zeros((homes, length), int)
    for i in range(2, length):
        path[:, i] = rng.random(homes) < law_of(i, path[:, i - 1], path[:, i - 2])
    return path


def test_one_group_is_the_g_test_of_scipy():
    counts = np.random.default_rng(1).integers(1, 40, size=(4, 5))
    expected = chi2_contingency(counts, correction=False, lambda_="log-likelihood")
    found = independence_test(counts[None])
    np.testing.assert_allclose(found, [expected.statistic, expected.dof, expected.pvalue], rtol=1e-10)
    padded = np.zeros((2, 6, 7))
    padded[1, 1:5, 2:] = counts
    np.testing.assert_allclose(independence_test(padded), found)


def test_probabilities_are_even_where_the_hypothesis_holds():
    rng = np.random.default_rng(2)
    independent = (rng.random((400, 1500)) < 0.4).astype(int)
    assert kstest(diagnose(independent, n_states=2, segments=3).order_0_p, "uniform").pvalue > 1e-4
    first = chains_of(lambda i, last, before: 0.2 + 0.5 * last, 1500, 400, rng)
    found = diagnose(first, n_states=2, segments=3)
    assert kstest(found.order_1_p, "uniform").pvalue > 1e-4
    assert kstest(found.stationary_p, "uniform").pvalue > 1e-4
    assert (found.order_0_p < 1e-6).all()
    np.testing.assert_array_equal([found.order_0_df[0], found.order_1_df[0], found.stationary_df[0]], [1, 2, 4])


def test_a_second_step_of_memory_and_a_change_over_time_are_seen():
    rng = np.random.default_rng(3)
    second = chains_of(lambda i, last, before: 0.2 + 0.6 * before, 2000, 5, rng)
    assert (diagnose(second, n_states=2, segments=2).order_1_p < 1e-9).all()
    turning = chains_of(lambda i, last, before: 0.2 + 0.6 * (last ^ (i > 1000)), 2000, 5, rng)
    found = diagnose(turning, n_states=2, segments=2)
    assert (found.stationary_p < 1e-9).all()


def test_gaps_are_not_bridged_and_counts_are_those_of_the_chain():
    rng = np.random.default_rng(4)
    series = rng.integers(-1, 3, (2, 3, 300))
    found = diagnose(series, n_states=4, segments=5)
    assert found.shape == (2, 3)
    counts = count_transitions(series[1, 2], np.ones(299, bool), 4)
    assert found.transitions[1, 2] == counts.sum()
    assert found.order_0[1, 2] == pytest.approx(float(independence_test(counts[None])[0]))
    assert found.rarest[1, 2] == min((series[1, 2] == state).sum() for state in range(3))


def test_a_household_of_one_state_has_nothing_to_test():
    found = diagnose([[1] * 50, [-1] * 50], n_states=3, segments=2)
    np.testing.assert_array_equal([found.order_0_p, found.order_1_p, found.stationary_p], np.ones((3, 2)))
    assert found.transitions.tolist() == [49, 0]
