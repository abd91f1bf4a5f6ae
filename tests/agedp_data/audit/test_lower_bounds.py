"""Proven losses: never above the true one more often than the confidence says, and near it with many trials."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from agedp_data.audit.lower_bounds import (
    MARGINS,
    detectable_epsilon,
    detection_power,
    epsilon_from_guesses,
    epsilon_lower_bound,
)


def audit(source, losses, number):
    """The log likelihood ratios of composed Laplace mechanisms, 0 to 1, and the coins."""
    heads = source.random(number) < 0.5
    ratios = sum(loss * np.clip(source.laplace(heads, 1 / loss), 0, 1) for loss in losses)
    return ratios / sum(losses), heads


@pytest.mark.parametrize(("right", "guesses"), [(60, 100), (5, 50), (50, 50), (4, 7)])
def test_the_bound_is_the_loss_at_which_so_many_right_guesses_become_unlikely(right, guesses):
    shares = np.linspace(1e-6, 1 - 1e-6, 100_001)
    share = shares[binom.sf(right - 1, guesses, shares) <= 0.0005].max()
    expected = math.log(share / (1 - share))
    assert epsilon_from_guesses(right, guesses, significance=0.0005) == pytest.approx(expected, abs=1e-3)


def test_without_a_right_guess_nothing_is_proven():
    assert epsilon_from_guesses(0, 100, significance=0.1) == epsilon_from_guesses(0, 0, significance=0.1) == -math.inf
    assert epsilon_from_guesses(50, 100, significance=0.1) < 0


@pytest.mark.parametrize("loss", [0.01, 0.3, 1.0, 4.0])
def test_what_spends_all_it_may_is_accused_as_often_as_the_confidence_says(loss):
    trials, share = 60, 1 / (1 + math.exp(-loss))  # randomised response: each answer is as telling as the loss permits
    coins = np.arange(trials)
    bounds = [
        epsilon_lower_bound((coins < right).astype(float), coins < trials, confidence=0.9)
        for right in range(trials + 1)
    ]
    accused = [right for right, bound in enumerate(bounds) if bound > loss]
    assert accused or loss >= 1
    assert binom.pmf(accused, trials, share).sum() <= 0.1 / len(MARGINS)
    more = [min(accused, default=trials + 1) - 1, *accused]
    assert binom.pmf(more, trials, share).sum() > 0.1 / len(MARGINS)  # the bound is exact


def test_trials_that_all_depend_on_one_another_are_accused_no_more_often():
    source, loss, above = np.random.default_rng(5), 0.7, 0
    for _ in range(200):
        heads, lie = source.random(40) < 0.5, source.random() > 1 / (1 + math.exp(-loss))
        shown = np.full(40, 0.45)
        shown[0] = heads[0] != lie  # one coin is told, the others are hidden between the margins or beside the truth
        above += epsilon_lower_bound(shown, heads, confidence=0.9) > loss
    assert above <= 20


@pytest.mark.parametrize("loss", [0.1, 1.0, 3.0])
def test_with_many_trials_it_is_near_the_true_loss(loss):
    bound = epsilon_lower_bound(*audit(np.random.default_rng(6), [loss], 400_000), confidence=0.999)
    assert 0.9 * loss - 0.03 < bound <= loss


@pytest.mark.parametrize("parts", [(1.0,), (0.35, 0.15, 0.35, 0.15)])
def test_what_would_be_noticed_is_noticed_and_half_less_of_it_hardly(parts):
    promised, trials, source = 0.5, 5_000, np.random.default_rng(7)
    detectable = detectable_epsilon(promised, trials, parts=parts, confidence=0.999)
    for more, least, most in ((detectable, 36, 40), (promised + 0.5 * (detectable - promised), 0, 30)):
        losses = [more * part / sum(parts) for part in parts]
        proven = [epsilon_lower_bound(*audit(source, losses, trials), confidence=0.999) for _ in range(40)]
        assert least <= sum(bound > promised for bound in proven) <= most


@pytest.mark.parametrize(("losses", "promised", "trials"), [((1.6,), 1.0, 300), ((0.9, 0.9), 1.0, 350)])
def test_the_power_is_how_often_many_audits_show_it(losses, promised, trials):
    source = np.random.default_rng(9)
    shown = [epsilon_lower_bound(*audit(source, losses, trials), confidence=0.99) > promised for _ in range(400)]
    power = detection_power(losses, promised, trials, confidence=0.99)
    assert 0.1 < power < 0.95
    assert power - 0.1 < np.mean(shown) < power + 0.25  # it is that of the best margin alone


def test_nothing_is_noticed_of_what_is_promised_or_by_too_few_trials():
    assert detection_power([0.5, 0.5], 1.0, 20_000, confidence=0.999) < 0.95
    assert detection_power([1.0, 1.0], 1.0, 2_000, confidence=0.999) >= 0.95
    assert detectable_epsilon(30.0, 1000, confidence=0.999) == math.inf
