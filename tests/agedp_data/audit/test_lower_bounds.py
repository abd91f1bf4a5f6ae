"""Proven losses: never above the true one more often than the confidence says, and near it with many trials."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from agedp_data.audit import lower_bounds
from agedp_data.audit.lower_bounds import (
    MARGINS,
    detectable_epsilon,
    detection_power,
    epsilon_from_guesses,
    epsilon_lower_bound,
)


@pytest.mark.parametrize(("right", "guesses"), [(60, 100), (5, 50), (50, 50), (4, 7)])
def test_the_bound_is_the_loss_at_which_so_many_right_guesses_become_unlikely(right, guesses):
    shares = np.linspace(1e-6, 1 - 1e-6, 400_001)
    share = shares[binom.sf(right - 1, guesses, shares) <= 0.0005].max()
    assert epsilon_from_guesses(right, guesses, significance=0.0005) == pytest.approx(
        math.log(share / (1 - share)), abs=1e-4
    )


def test_without_a_right_guess_nothing_is_proven():
    assert epsilon_from_guesses(0, 100, significance=0.1) == epsilon_from_guesses(0, 0, significance=0.1) == -math.inf
    assert epsilon_from_guesses(50, 100, significance=0.1) < 0


@pytest.mark.parametrize("loss", [0.01, 0.3, 1.0, 4.0])
def test_a_mechanism_that_spends_all_it_may_is_accused_no_more_often_than_the_confidence_says(loss):
    trials, share = 60, 1 / (1 + math.exp(-loss))  # randomised response: each answer is as telling as the loss permits
    heads = np.arange(trials) < trials
    accused = [
        right
        for right in range(trials + 1)
        if epsilon_lower_bound((np.arange(trials) < right).astype(float), heads, confidence=0.9) > loss
    ]
    assert sum(binom.pmf(accused, trials, share)) <= 0.1 / len(MARGINS)
    if loss < 1:
        assert accused
    more = binom.pmf(np.array([accused[0] - 1]) if accused else trials, trials, share).sum() + sum(
        binom.pmf(accused, trials, share)
    )
    assert more > 0.1 / len(MARGINS)  # one right guess less would be accused too often: the bound is exact


def test_trials_that_all_depend_on_one_another_are_accused_no_more_often_either():
    source, loss, above = np.random.default_rng(5), 0.7, 0
    for _ in range(500):
        heads, lie = source.random(40) < 0.5, source.random() > 1 / (1 + math.exp(-loss))
        shown = np.full(40, 0.5)
        shown[0] = heads[0] != lie  # one coin is told, the others are hidden between the margins or beside the truth
        above += epsilon_lower_bound(np.where(shown == 0.5, 0.45, shown), heads, confidence=0.9) > loss
    assert above <= 50


@pytest.mark.parametrize("loss", [0.1, 1.0, 3.0])
def test_with_many_trials_it_is_near_the_true_loss(loss):
    source = np.random.default_rng(6)
    heads = source.random(400_000) < 0.5
    found = epsilon_lower_bound(np.clip(source.laplace(heads, 1 / loss), 0, 1), heads, confidence=0.999)
    assert 0.9 * loss - 0.03 < found <= loss


@pytest.mark.parametrize("parts", [(1.0,), (1.0, 1.0), (0.35, 0.15, 0.35, 0.15)])
def test_what_would_be_noticed_is_noticed_in_nearly_all_trials_and_half_less_of_it_in_few(parts):
    promised, trials, source = 0.5, 5_000, np.random.default_rng(7)
    found = detectable_epsilon(promised, trials, parts=parts, confidence=0.999)
    for more, least, most in ((found, 36, 40), (promised + 0.5 * (found - promised), 0, 30)):
        losses = [more * part / sum(parts) for part in parts]
        proven = [epsilon_lower_bound(*_trials(source, losses, trials), confidence=0.999) for _ in range(40)]
        assert least <= sum(one > promised for one in proven) <= most


@pytest.mark.parametrize(("losses", "promised", "trials"), [((1.6,), 1.0, 300), ((0.9, 0.9), 1.0, 350)])
def test_the_chance_is_how_often_many_audits_show_it(losses, promised, trials):
    source = np.random.default_rng(9)
    shown = [epsilon_lower_bound(*_trials(source, losses, trials), confidence=0.99) > promised for _ in range(400)]
    chance = detection_power(losses, promised, trials, confidence=0.99)
    assert 0.1 < chance < 0.95
    assert chance - 0.1 < np.mean(shown) < chance + 0.25  # it is that of the best margin alone


def _trials(source, losses, number):
    """The log likelihood ratios of composed Laplace mechanisms, 0 to 1, and the coins."""
    heads = source.random(number) < 0.5
    ways = sum(loss * np.clip(source.laplace(heads, 1 / loss), 0, 1) for loss in losses)
    return ways / sum(losses), heads


def test_the_law_of_a_sum_is_that_of_its_draws():
    source, losses, far = np.random.default_rng(8), [0.5, 1.0], 3.0
    draws = sum(loss * np.clip(source.laplace(far, 1 / loss, 200_000), 0, 1) for loss in losses)
    law = np.cumsum(lower_bounds._likelihood_ratio_laws(np.array(losses), np.full(2, far))[1])
    for place in (0.25, 0.5, 0.75, 0.95):
        assert law[int(place * (law.size - 1))] == pytest.approx(np.mean(draws <= place * 1.5), abs=0.005)


def test_nothing_is_noticed_of_what_is_promised_itself_or_by_too_few_trials():
    assert detection_power([0.5, 0.5], 1.0, 100_000, confidence=0.999) < 0.95
    assert detection_power([1.0, 1.0], 1.0, 2_000, confidence=0.999) >= 0.95
    assert detectable_epsilon(30.0, 1000, confidence=0.999) == math.inf
