"""A private selection keeps its loss and its coverage: every neighbour of small populations, and simulated ones."""

from __future__ import annotations

from decimal import Decimal
from itertools import product

import numpy as np

from agedp_data.leakage.nested_family import (
    required_households,
    required_loss,
    selection_margin,
    selection_scores,
    selection_target,
)

EPSILON, MEMBERS = 1.0, 3
MILLIONTH = Decimal("0.000001")


def margin(loss: str | int = 1, choices: int = 10) -> Decimal:
    return selection_margin(choices=choices, failure_probability=MILLIONTH, loss=Decimal(loss))


def law(scores, exponent):
    """The law of the exponential mechanism, in closed form."""
    weights = np.exp(exponent * (scores - np.max(scores)))
    return weights / weights.sum()


def largest_log_ratio(exponent: float) -> float:
    """The largest log-ratio over all pairs of populations of up to four that differ in one household."""
    largest = 0.0
    for size, target in ((n, t) for n in (1, 2, 3, 4) for t in range(1, n + 1)):
        laws = {
            members: law(selection_scores(np.bincount(members, minlength=MEMBERS + 1)[1:].cumsum(), target), exponent)
            for members in product(range(1, MEMBERS + 1), repeat=size)
        }
        for members, probabilities in laws.items():
            for i, other in product(range(size), range(1, MEMBERS + 1)):
                neighbour = laws[(*members[:i], other, *members[i + 1 :])]
                largest = max(largest, float(np.log(probabilities / neighbour).max()))
    return largest


def test_no_neighbour_exceeds_the_loss_and_half_the_noise_would():
    assert largest_log_ratio(EPSILON / 2) <= EPSILON + 1e-12
    assert largest_log_ratio(EPSILON) > 1.3 * EPSILON  # without the factor 2


def random_counts(rng, households):
    """Households below each of ten nested choices, all of them below the last."""
    share = np.sort(rng.random(9)) ** rng.choice([0.1, 0.5, 1.0, 3.0])
    return np.append(np.sort(rng.binomial(households, share)), households)


def test_the_selection_covers_what_it_says_and_a_nearest_score_does_not():
    rng, households, failures = np.random.default_rng(3), 5566, {"selection": 0, "nearest": 0}
    share = Decimal("0.95")
    target = selection_target(households, coverage=share, margin=margin())
    for _ in range(2000):
        counts = random_counts(rng, households)
        for name, scores in (("selection", selection_scores(counts, target)), ("nearest", -np.abs(counts - target))):
            chosen = rng.choice(10, p=law(scores, EPSILON / 2))
            failures[name] += counts[chosen] < 0.95 * households
    assert failures["selection"] == 0
    assert failures["nearest"] > 200
    counts = np.array([1000, 5250, 5566])  # 5,250 is nearer to every target, and too few
    assert law(selection_scores(counts, target), EPSILON / 2).argmax() == 2
    assert law(-np.abs(counts - target), EPSILON / 2)[1] > 1 - 1e-12


def test_a_choice_of_too_few_households_is_as_improbable_as_stated():
    rng, households, beta = np.random.default_rng(4), 40, Decimal("0.05")
    target = selection_target(
        households,
        coverage=Decimal("0.6"),
        margin=selection_margin(choices=10, failure_probability=beta, loss=Decimal(1)),
    )
    worst = 0.0
    for _ in range(500):
        counts = random_counts(rng, households)
        worst = max(worst, law(selection_scores(counts, target), 0.5)[counts < 24].sum())
    assert 0 < worst <= 0.05


def test_5566_households_suffice_where_60_do_not():
    assert np.ceil(float(margin())) == 33
    assert selection_target(5566, coverage=Decimal("0.95"), margin=margin()) == 5320
    needed = required_households(coverage=Decimal("0.95"), margin=margin())
    assert needed == 645
    at = [selection_target(number, coverage=Decimal("0.95"), margin=margin()) <= number for number in (60, 644, 645)]
    assert at == [False, False, True]
    enough = required_loss(60, choices=10, coverage=Decimal("0.95"), failure_probability=MILLIONTH)
    targets = [
        selection_target(60, coverage=Decimal("0.95"), margin=margin(str(loss)))
        for loss in (enough, enough - Decimal("0.01"))
    ]
    assert targets == [60, 61]
