"""Proven losses: never above the true one more often than the confidence says, and near it with many draws."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from agedp_data.privacy import measured
from agedp_data.privacy.measured import least_loss, noticed_loss, proven_loss, shows


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


@pytest.mark.parametrize("parts", [(1.0,), (1.0, 1.0), (0.35, 0.15, 0.35, 0.15)])
def test_what_would_be_noticed_is_noticed_in_nearly_all_trials_and_a_quarter_less_of_it_in_few(parts):
    promised, draws, source = 0.5, 20_000, np.random.default_rng(7)
    found = noticed_loss(promised, draws, parts=parts, confidence=0.999)
    for more, least, most in ((found, 36, 40), (promised + 0.75 * (found - promised), 0, 36)):
        losses = [more * part / sum(parts) for part in parts]
        proven = [proven_loss(*(_sums(source, losses, x, draws) for x in (1, 0)), confidence=0.999) for _ in range(40)]
        assert least <= sum(one > promised for one in proven) <= most


def _sums(source, losses, x, draws):
    """The log likelihood ratios of composed Laplace mechanisms, up to a constant."""
    return sum(loss * np.clip(source.laplace(x, 1 / loss, draws), 0, 1) for loss in losses)


def test_the_law_of_a_sum_is_that_of_its_draws():
    source, losses, far = np.random.default_rng(8), [0.5, 1.0], 3.0
    draws = sum(loss * np.clip(source.laplace(far, 1 / loss, 200_000), 0, 1) for loss in losses)
    law = np.cumsum(measured._composed(np.array(losses), np.full(2, far))[1])
    for place in (0.25, 0.5, 0.75, 0.95):
        assert law[int(place * (law.size - 1))] == pytest.approx(np.mean(draws <= place * 1.5), abs=0.005)


def test_nothing_is_noticed_of_what_is_promised_itself_or_by_too_few_draws():
    assert not shows([0.5, 0.5], 1.0, 1_000_000, confidence=0.999)
    assert shows([1.0, 1.0], 1.0, 20_000, confidence=0.999)
    assert noticed_loss(30.0, 1000, confidence=0.999) == math.inf
