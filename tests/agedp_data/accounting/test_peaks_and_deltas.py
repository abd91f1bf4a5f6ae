"""Peaks of periodic schedules, (eps, delta) and artificial ageing, against enumeration, limits and closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chisquare

from agedp_data.accounting.ageing import age_artificially, approximate_risk, compose, compose_approximate, peak
from agedp_data.errors import ChainError
from agedp_data.leakage.function import leakage
from agedp_data.markov.transitions import power, reverse

FLIP = np.array([[0.9, 0.1], [0.1, 0.9]])
UNEVEN = np.array([[0.95, 0.05], [0.3, 0.7]])
LOPSIDED = np.array([[0.5, 0.45, 0.05], [0.05, 0.55, 0.4], [0.8, 0.1, 0.1]])


def test_the_peak_of_figure_3_has_its_thirty_digit_reference():
    assert peak(FLIP, 0.5, age=2, interval=4, method="total_variation") == pytest.approx(
        0.823616566145902061388416501793, rel=1e-13
    )


@pytest.mark.parametrize(
    ("chain", "method"),
    [(LOPSIDED, "tight"), (LOPSIDED, "total_variation"), (UNEVEN, "spectral"), (LOPSIDED, "reversibilised")],
)
@pytest.mark.parametrize(("age", "interval"), [(0, 4), (9, 4)])
def test_a_peak_is_the_limit_of_the_composed_schedule(chain, method, age, interval):
    published = np.arange(1, 200) * interval + age
    composed = compose(chain, published, np.full(199, age), np.full(199, 0.15), published[[20, -1]], method=method)
    limit = peak(chain, 0.15, age=age, interval=interval, method=method)
    assert (composed <= limit + 1e-12).all()
    assert composed[-1] == pytest.approx(float(limit), rel=1e-6)


def test_peaks_of_extreme_schedules():
    # A finite peak although the loss about the inputs grows for ever: one step back .9/.1 at most.
    assert peak(FLIP, 50.0, age=1, interval=1, method="tight") == pytest.approx(np.log(9), rel=1e-9)
    assert peak(FLIP, 0.0, age=0, interval=1, method="tight") == 0
    assert peak(FLIP, 0.1, age=0, interval=0, method="tight") == np.inf
    assert peak(np.ones((1, 1)), 5.0, age=2, interval=1, method="tight") == 0
    assert peak([[0.0, 1.0], [1.0, 0.0]], 0.1, age=0, interval=2, method="tight") == np.inf
    assert peak(FLIP, 800.0, age=0, interval=3, method="tight") >= 800
    assert peak(np.full((2, 2), 0.5), 0.7, age=0, interval=1, method="total_variation") == pytest.approx(0.7)
    for method in ("tight", "total_variation"):
        both = peak(np.stack([FLIP, UNEVEN]), [[0.1], [0.4]], age=2, interval=5, method=method)
        assert both.shape == (2, 2)
        assert both[1, 1] == peak(UNEVEN, 0.4, age=2, interval=5, method=method)


@pytest.mark.parametrize("wrong", [{"age": -1}, {"age": [1, 2]}, {"interval": 0.5}, {"method": "paper"}])
def test_a_schedule_that_is_none_is_refused(wrong):
    with pytest.raises(ChainError):
        peak(FLIP, 0.1, **({"age": 1, "interval": 1, "method": "tight"} | wrong))


def test_approximate_guarantees_compose_as_written_out_by_hand():
    loss, delta = compose_approximate(FLIP, [9, 3, 5], [6, 0, 0], [0.3, 0.3, 0.5], [1e-3, 2e-3, 4e-3], [4, 5, 9, 11])
    # Inputs at 3, 3, 5: the first of them is published at 9 only.
    expected = [2e-3 * 0.8, 4e-3 + 2e-3 * 0.64, (4e-3 + 3e-3 * 0.64) * 0.8**4]
    np.testing.assert_allclose(delta[:3], expected)
    aged = approximate_risk(FLIP, 0.8, 0.05, [0, 1, 4])
    np.testing.assert_allclose(aged[0], np.log1p(0.8 ** np.array([0, 1, 4]) * np.expm1(0.8)))
    np.testing.assert_allclose(aged[1], 0.05 * 0.8 ** np.array([0, 1, 4]))
    z = 0.5 + np.log1p(0.64 * np.expm1(0.6))
    assert loss[3] == pytest.approx(np.log1p(0.8**6 * np.expm1(z)))


@pytest.mark.parametrize("wrong", [-1e-9, 1.5, np.nan])
def test_what_is_no_probability_is_refused(wrong):
    with pytest.raises(ChainError, match="probability"):
        approximate_risk(FLIP, 0.5, wrong, [1])
    with pytest.raises(ChainError, match="one delta per loss"):
        compose_approximate(FLIP, [1], [0], [0.5], [0.1, 0.1], [1])


def test_artificially_aged_states_follow_the_reversed_kernel():
    rng = np.random.default_rng(3)
    chain = np.array([[0.5, 0.5, 0.0], [0.0, 0.4, 0.6], [0.8, 0.0, 0.2]])
    for start in range(3):
        counts = np.bincount(age_artificially(np.full(20_000, start), chain, 2, rng), minlength=3)
        expected = power(reverse(chain), 2)[start]
        assert (counts[expected == 0] == 0).all()
        assert chisquare(counts[expected > 0], expected[expected > 0] * 20_000).pvalue > 1e-6
        forward = np.linalg.matrix_power(chain, 2)[start]  # is rejected: the check can fail
        assert np.abs(counts / 20_000 - forward).max() > 0.04


def test_each_household_ages_by_its_own_chain_and_missing_states_stay():
    cycle = np.roll(np.eye(3), 1, axis=1)
    states = np.array([[0, 1, -1, 2], [0, 1, 2, -1]])
    aged = age_artificially(states, np.stack([cycle, cycle.T]), 1, np.random.default_rng(0))
    assert aged.tolist() == [[2, 0, -1, 1], [1, 2, 0, -1]]
    assert age_artificially([1, -1], cycle, 0, np.random.default_rng(0)).tolist() == [1, -1]


@pytest.mark.parametrize(
    ("states", "chain", "message"),
    [
        ([1], [[1.0, 0.0], [np.nan, np.nan]], "without a row"),
        ([2], FLIP, "got a higher one"),
        ([0, 1, 0], np.stack([FLIP, FLIP]), "do not fit"),
        ([0.5], FLIP, "do not fit"),
    ],
)
def test_states_that_cannot_be_aged_are_refused(states, chain, message):
    with pytest.raises(ChainError, match=message):
        age_artificially(states, chain, 1, np.random.default_rng(0))


def test_an_artificially_aged_randomised_response_costs_what_its_kernel_lets_through():
    loss, steps = 2.0, 2
    response = np.array([[1, np.exp(-loss)], [np.exp(-loss), 1]]) / (1 + np.exp(-loss))
    answer = power(reverse(UNEVEN), steps) @ response
    exact = np.abs(np.log(answer[0] / answer[1])).max()
    assert exact == pytest.approx(float(leakage(power(reverse(UNEVEN), steps), loss)), rel=1e-12)
    # Drawn and answered twice: independent given the present, so the loss doubles ...
    assert compose(UNEVEN, [5, 5], [0, 0], [exact, exact], [5], method="tight")[0] == pytest.approx(2 * exact)
    # ... which two queries with a really old input would not cost: to account for them as such is unsafe.
    assert compose(UNEVEN, [5, 5], [steps, steps], [loss, loss], [5], method="tight")[0] < 2 * exact - 0.1
