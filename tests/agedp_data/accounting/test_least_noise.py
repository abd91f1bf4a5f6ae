"""The least mean noise under weights of any kind, against closed forms and a dual bound; renewal far out."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import nnls

from agedp_data.accounting.discount_optimiser import least_noise
from agedp_data.accounting.discount_schedules import Exponential, Hyperbolic, Weights, discounted_loss, schedule


def window(count, width):
    return np.where(np.arange(count) < width, 1.0, 0.0)


def stairs(count, *, seed, steps=4):
    made = np.random.default_rng(seed)
    levels, ends = np.sort(made.random(steps + 1))[::-1], np.sort(made.integers(1, count, size=steps))
    return levels[np.searchsorted(ends, np.arange(count), side="right")]


def kinds(count):
    ages = np.arange(count)
    return {
        "sorted uniform": np.sort(np.random.default_rng(1).random(count))[::-1],
        "window of a third": window(count, count // 3 + 1),
        "fast, then level": np.concatenate([np.ones(5), np.full(20, 0.5), np.full(count - 25, 0.01)]),
        "uneven stairs": stairs(count, seed=2),
        "stairs, then nothing": np.pad(stairs(count // 3 + 2, seed=7), (0, count))[:count],
        "stairs on a curve": stairs(count, seed=8) + 0.3 / (1 + ages / 50),
    }


@pytest.mark.parametrize(("count", "width"), [(1095, 1), (1099, 7), (1094, 365)])
def test_under_a_window_it_is_the_closed_form(count, width):
    # any `width` in a row sum to 1, so losses repeat, and a place that comes n times gets a part like sqrt(n)
    least = sum(math.sqrt(len(range(place, count, width))) for place in range(width)) ** 2
    losses = schedule(Weights(window(count, width)), epsilon=1, horizon=count, method="optimal")
    assert (1 / losses).sum() == pytest.approx(least, rel=1e-6)


@pytest.mark.parametrize("name", kinds(100))
def test_a_bound_from_the_dual_proves_it(name):
    # for any multipliers l >= 0 and any schedule sum(1/r) >= 2 sum(sqrt(A' l)) - sum(l), since 1/r + p r >= 2 sqrt(p);
    # l of sums at their bound, nearest to the slopes
    weights = kinds(300)[name]
    losses, gap = least_noise(weights)
    matrix = np.array([[weights[t - k] if k <= t else 0.0 for k in range(300)] for t in range(300)])
    reaching = matrix[matrix @ losses > 1 - 1e-7].T
    multipliers, _ = nnls(losses[:, None] ** 1.5 * reaching, losses**-0.5)
    lower = np.sqrt(reaching @ multipliers).sum() ** 2 / multipliers.sum()
    assert (1 / losses).sum() <= lower * (1 + 1e-6)
    assert gap <= 1e-6
    assert (losses > 0).all()
    planned = schedule(Weights(weights), epsilon=1, horizon=300, method="optimal")
    assert discounted_loss(planned, Weights(weights)).max() <= 1


def test_renewal_keeps_its_digits_far_out():
    # a(j) = .005 from j = 1 on: each loss is .995 of the one before it
    losses = schedule(Weights([1.0] + [0.005] * 8999), epsilon=1, horizon=9000, method="renewal")
    assert losses == pytest.approx(0.995 ** np.arange(9000.0), rel=1e-9)
    losses = schedule(Weights([1.0, 0.99] + [0.0] * 5998), epsilon=1, horizon=6000, method="renewal")
    expected = [1.0, 0.01]
    while len(expected) < 6000:
        expected.append(0.01 * expected[-1] + 0.99 * expected[-2])
    assert losses == pytest.approx(np.array(expected), rel=1e-9)


@pytest.mark.parametrize(
    ("losses", "discount"),
    [
        (np.r_[1.0, np.full(4999, 1e-9)], Weights(np.exp(-np.arange(5000.0) / 200))),
        (np.r_[np.full(2500, 1e-9), np.full(2500, 5.0)], Hyperbolic(1)),
        (np.full(5000, 2e-4), Hyperbolic(1e-5)),
        (np.full(5000, 0.1), Exponential(0.999)),
    ],
)
def test_long_sums_are_never_below_the_truth_and_right_to_a_billionth(losses, discount):
    sums, weights = discounted_loss(losses, discount), discount.weights(5000)
    for t in (0, 1, 255, 256, 2499, 2500, 4999):
        exact = math.fsum(weights[: t + 1][::-1] * losses[: t + 1])
        assert exact <= sums[t] <= exact * (1 + 1e-9)
