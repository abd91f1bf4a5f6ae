"""docs/chains.md: the counter-examples to taking the chain for true, each as exact as it can be written."""

from __future__ import annotations

import numpy as np
import pytest

from agedp_data.accounting.ageing import compose_without_markov
from agedp_data.leakage.function import leakage
from agedp_data.markov.mixing import max_total_variation
from agedp_data.markov.transitions import transition_matrix


def test_the_sum_of_losses_through_the_nearest_kernel_is_unsafe_under_a_lasting_regime():
    likelier = 0.7 / (1 + np.exp(-0.5)) + 0.3 / (1 + np.exp(0.5))
    favoured = (likelier / (1 - likelier)) ** 14
    exact = np.log((0.7 * favoured + 0.3) / (0.3 * favoured + 0.7))
    kernel = np.linalg.matrix_power([[0.7, 0.3], [0.3, 0.7]], 2)
    assert exact == pytest.approx(0.735, abs=5e-4)
    assert leakage(kernel, 14 * 0.5) == pytest.approx(0.322, abs=5e-4)
    assert compose_without_markov([kernel] * 14, [0.5] * 14) >= exact


def test_smoothing_lowers_the_figure_by_a_power_of_the_age():
    weight = np.random.default_rng(2).gamma(1.0, size=(12, 12)) + 30 * np.eye(12)
    counts = np.rint((weight + weight.T) * 100)
    plain, smoothed = (transition_matrix(counts, smoothing=smoothing) for smoothing in (0, 0.05))
    for steps in (1, 5, 36):
        apart, closer = (max_total_variation(np.linalg.matrix_power(each, steps)) for each in (plain, smoothed))
        assert closer == pytest.approx(float(apart) * (1 + 12 * 0.05) ** -steps, rel=1e-6)
