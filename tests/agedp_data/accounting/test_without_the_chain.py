"""MATHS 2b: the counter-examples to taking the chain for true, each as exact as it can be written."""

from __future__ import annotations

import numpy as np
import pytest

from agedp_data.accounting.ageing import compose_without_markov, risk, risk_of_curve
from agedp_data.errors import ChainError
from agedp_data.leakage.bound_table import LeakageBound
from agedp_data.leakage.function import leakage, leakage_from_total_variation
from agedp_data.markov.mixing import max_total_variation, total_variation
from agedp_data.markov.transitions import transition_matrix


def test_the_last_half_hour_of_a_day_may_hide_a_habit_that_its_total_tells():
    # Noon is a habit kept for ever, midnight a coin. Secret: today's noon. Read: a past day.
    loss = 0.5
    last = np.array([[0.5, 0.5], [0.5, 0.5]])  # given the noon, the midnight
    total = np.array([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]])  # given the noon, noon + midnight
    both = np.array([[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5]])  # (noon, midnight): the truth for any mechanism
    assert leakage(last, loss) == 0
    assert leakage(total, loss) == pytest.approx(np.log1p(np.expm1(loss) / 2), rel=1e-12)
    assert leakage(both, loss) == pytest.approx(loss, rel=1e-12)


def test_the_sum_of_losses_through_the_nearest_kernel_is_unsafe_under_a_lasting_regime():
    keep = 1 / (1 + np.exp(-0.5))
    answered = 0.7 * keep + 0.3 * (1 - keep)
    favoured = (answered / (1 - answered)) ** 14
    exact = np.log((0.7 * favoured + 0.3) / (0.3 * favoured + 0.7))
    kernel = np.array([[0.7, 0.3], [0.3, 0.7]]) @ np.array([[0.7, 0.3], [0.3, 0.7]])
    assert exact == pytest.approx(0.735, abs=5e-4)
    assert leakage(kernel, 14 * 0.5) == pytest.approx(0.322, abs=5e-4)
    assert compose_without_markov([kernel] * 14, [0.5] * 14) >= exact


def test_coarser_input_states_never_raise_the_figure():
    rng = np.random.default_rng(1)
    fine = rng.dirichlet(np.full(6, 0.5), size=(50, 4))
    coarse = fine.reshape(50, 4, 3, 2).sum(axis=-1)
    assert (leakage(coarse, 1.3) <= leakage(fine, 1.3) + 1e-12).all()


def test_a_measured_curve_holds_for_every_later_instant():
    # London, eps 2: .69 at 18 h, 1.48 at 24 h: an output published at 18 h is 24 h old six hours later.
    at_18, at_24 = (np.expm1(risk) / np.expm1(2.0) for risk in (0.69, 1.48))
    with pytest.raises(ChainError, match="increase"):
        risk_of_curve([at_18, at_24], 2.0, [36, 48])
    known = LeakageBound(np.array([36, 48]), np.array([2.0]), None, None, {"total_variation": np.array([at_18, at_24])})
    assert known(36, 2.0, direction="backward", method="total_variation") == pytest.approx(1.48, abs=1e-6)


def test_smoothing_lowers_the_figure_by_a_power_of_the_age():
    rng = np.random.default_rng(2)
    weight = rng.gamma(1.0, size=(12, 12)) + 30 * np.eye(12)
    counts = np.rint((weight + weight.T) * 100)
    plain = transition_matrix(counts, smoothing=0)
    smoothed = transition_matrix(counts, smoothing=0.05)
    for steps in (1, 5, 36):
        apart, closer = (max_total_variation(np.linalg.matrix_power(each, steps)) for each in (plain, smoothed))
        assert closer == pytest.approx(float(apart) * (1 + 12 * 0.05) ** -steps, rel=1e-6)
    london_at_18_hours = 0.035 * 1.6**-36
    assert london_at_18_hours == pytest.approx(1.6e-9, rel=0.05)


def test_without_a_cap_the_chain_alone_would_permit_exact_means():
    # A chain that forgets to 1e-14 within the age permits a loss of tens a day for a target of .1.
    chain = np.array([[0.55, 0.45], [0.45, 0.55]])
    age = 14
    assert total_variation(chain, [age])[0] < 1e-13
    assert risk(chain, 29.0, [age], method="total_variation")[0] < 0.1
    assert leakage_from_total_variation(1.0, 29.0) == 29.0
