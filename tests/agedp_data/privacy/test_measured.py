"""Proven losses: never above the true one more often than the confidence says, and near it with many draws."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from agedp_data.privacy.measured import least_loss, noticed_loss, proven_loss


@pytest.mark.parametrize(("hits", "of", "others"), [(60, 100, 20), (5, 50, 0), (50, 50, 3), (4, 7, 2)])
def test_the_bounds_are_those_at_which_the_counts_become_unlikely(hits, of, others):
    each, found = 0.0005, least_loss(hits, of, others, of, confidence=0.999)
    low, high = np.linspace(1e-6, 1, 400_001), np.linspace(0, 1 - 1e-6, 400_001)
    p = low[binom.sf(hits - 1, of, low) <= each].max()
    q = high[binom.cdf(others, of, high) <= each].min()
    assert found == pytest.approx(math.log(p / q), abs=1e-3)


def test_without_a_hit_nothing_is_proven():
    assert least_loss(0, 100, 0, 100, confidence=0.9) == -math.inf
    assert least_loss(100, 100, 100, 100, confidence=0.9) < 0


def test_the_proven_loss_is_above_the_true_one_in_at_most_a_tenth_of_many_trials():
    source, loss, above = np.random.default_rng(5), 0.7, 0
    for _ in range(300):
        one, other = source.laplace(1, 1 / loss, 400), source.laplace(0, 1 / loss, 400)
        above += proven_loss(one, other, confidence=0.9) > loss
    assert above <= 30  # of 300 at confidence .9


@pytest.mark.parametrize("loss", [0.1, 1.0, 3.0])
def test_with_many_draws_it_is_near_the_true_loss_whichever_input_is_named_first(loss):
    source = np.random.default_rng(6)
    one, other = source.laplace(1, 1 / loss, 200_000), source.laplace(0, 1 / loss, 200_000)
    for found in (proven_loss(one, other, confidence=0.999), proven_loss(other, one, confidence=0.999)):
        assert 0.8 * loss - 0.03 < found <= loss


def test_what_would_be_noticed_is_noticed_and_a_tenth_less_is_not_by_expected_counts():
    for promised, draws in ((0.1, 200_000), (1.0, 20_000), (4.0, 20_000)):
        found = noticed_loss(promised, draws, confidence=0.999)
        of = draws // 2
        for loss, shown in ((found, True), (0.9 * found, False)):
            hits, others = round(of / 2), round(of / 2 * math.exp(-loss))
            assert (least_loss(hits, of, others, of, confidence=0.999) > promised) == shown
    assert noticed_loss(30.0, 1000, confidence=0.999) == math.inf
