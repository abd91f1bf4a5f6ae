"""Peaks of periodic schedules, (eps, delta) and artificial ageing, against enumeration, limits and closed forms."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
from scipy.stats import chisquare

from agedp_data.accounting.ageing import age_artificially, approximate_risk, compose, compose_approximate, peak
from agedp_data.errors import ChainError
from agedp_data.leakage.function import leakage
from agedp_data.markov.mixing import total_variation
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


def hockey_stick(chain, reads, mechanisms, now, loss):
    """The exact delta at this loss: sum of [p(o | x) - e^loss p(o | x')]_+ over outputs, worst over pairs of states."""
    first, law = min([*reads, now]), np.linalg.matrix_power(chain, 10_000)[0]
    joint = np.zeros((2, *(mechanism.shape[1] for mechanism in mechanisms)))
    for path in product(range(2), repeat=max([*reads, now]) - first + 1):
        weight = law[path[0]] * np.prod([chain[x, y] for x, y in pairwise(path)]) / law[path[now - first]]
        for mechanism, read in zip(mechanisms, reads, strict=True):
            weight = np.multiply.outer(weight, mechanism[path[read - first]])
        joint[path[now - first]] += weight
    return max(np.maximum(p - np.exp(loss) * q, 0).sum() for p, q in (joint, joint[::-1]))


def leaky(loss, delta):
    """With probability delta the state itself is told, else randomised response: (loss, delta)-DP exactly."""
    noisy = np.array([[1, np.exp(-loss)], [np.exp(-loss), 1]]) / (1 + np.exp(-loss))
    return np.hstack((delta * np.eye(2), (1 - delta) * noisy))


@pytest.mark.parametrize("chain", [FLIP, UNEVEN])
@pytest.mark.parametrize(
    ("published", "ages"), [([1, 2, 3], [1, 0, 2]), ([3, 1, 2], [0, 1, 0]), ([2, 2, 3], [0, 2, 1])]
)
def test_approximate_guarantees_hold_for_enumerated_mechanisms(chain, published, ages):
    losses, deltas, now = [0.4, 0.9, 0.2], [0.03, 0.0, 0.05], 4
    reads = [s - a for s, a in zip(published, ages, strict=True)]
    mechanisms = [leaky(e, d) for e, d in zip(losses, deltas, strict=True)]
    loss, delta = compose_approximate(chain, published, ages, losses, deltas, [now])
    assert hockey_stick(chain, reads, mechanisms, now, loss[0]) <= delta[0] + 1e-12
    assert loss[0] == pytest.approx(compose(chain, published, ages, losses, [now], method="total_variation")[0])
    loss, delta = approximate_risk(chain, 0.8, 0.05, [0, 1, 4])
    exact = [hockey_stick(chain, [0], [leaky(0.8, 0.05)], age, each) for age, each in zip((0, 1, 4), loss, strict=True)]
    assert (exact <= delta + 1e-12).all()
    assert exact[0] == pytest.approx(delta[0])  # what it says about the input itself is attained
    np.testing.assert_allclose(delta, 0.05 * total_variation(chain, [0, 1, 4]))


def test_approximate_guarantees_compose_as_written_out_by_hand():
    loss, delta = compose_approximate(FLIP, [9, 3, 5], [6, 0, 0], [0.3, 0.3, 0.5], [1e-3, 2e-3, 4e-3], [4, 5, 9, 11])
    # Inputs at 3, 3, 5: the first of them is published at 9 only.
    expected = [2e-3 * 0.8, 4e-3 + 2e-3 * 0.64, (4e-3 + 3e-3 * 0.64) * 0.8**4]
    np.testing.assert_allclose(delta[:3], expected)
    z = 0.5 + np.log1p(0.64 * np.expm1(0.6))
    assert loss[3] == pytest.approx(np.log1p(0.8**6 * np.expm1(z)))


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
    answer = power(reverse(UNEVEN), steps) @ leaky(loss, 0.0)[:, 2:]
    exact = np.abs(np.log(answer[0] / answer[1])).max()
    assert exact == pytest.approx(float(leakage(power(reverse(UNEVEN), steps), loss)), rel=1e-12)
    # Drawn and answered twice: independent given the present, so the loss doubles ...
    assert compose(UNEVEN, [5, 5], [0, 0], [exact, exact], [5], method="tight")[0] == pytest.approx(2 * exact)
    # ... which two queries with a really old input would not cost: to account for them as such is unsafe.
    assert compose(UNEVEN, [5, 5], [steps, steps], [loss, loss], [5], method="tight")[0] < 2 * exact - 0.1
