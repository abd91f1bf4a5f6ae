"""The filter and smoother give the dense Gaussian formulas; estimates are calibrated and never revised."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from agedp_data.smoothing.estimates import estimate_all, estimate_so_far
from agedp_data.smoothing.structural_model import (
    PRIOR,
    Amplitudes,
    Covariates,
    draw_amplitudes,
    most_probable,
)

ONE = np.exp(PRIOR.logarithms())[None, :]


def covariates(days: int, *, weather: bool = True) -> Covariates:
    number = np.arange(days)
    heating = np.clip(15.5 - 10 - 8 * np.sin(number / 58), 0, None) / 5 if weather else None
    holiday = number % 61 == 17
    return Covariates(number % 7, holiday, holiday | (number % 365 > 350), heating)


def covariance(known: Covariates, amplitudes: Amplitudes) -> np.ndarray:
    """The covariance of the true figures, written down from the kernels of the parts."""
    days = known.weekday.size
    lag = np.abs(np.subtract.outer(np.arange(days), np.arange(days)))
    scaled = np.sqrt(3) * lag / 45
    total = 10.0**2 + amplitudes.level**2 * (1 + scaled) * np.exp(-scaled)
    total = total + amplitudes.short**2 * np.exp(-lag / 4)
    total = total + amplitudes.weekday**2 * np.equal.outer(known.weekday, known.weekday)
    total = total + amplitudes.holiday**2 * np.outer(known.holiday, known.holiday)
    if known.heating is not None:
        before = np.concatenate([known.heating[:1], known.heating[:-1]])
        for column in (known.heating, (known.heating + before) / 2):
            total = total + amplitudes.heating**2 * np.outer(column, column)
    return total + np.diag(np.where(known.special, amplitudes.special**2, amplitudes.single**2))


def dense(observed, noise, prior):
    """Mean and variance of the true figures given the observed ones, by the formula for Gaussian vectors."""
    seen = np.isfinite(observed)
    gain = prior[:, seen] @ np.linalg.inv(prior[np.ix_(seen, seen)] + np.diag(noise[seen]))
    return 10 + gain @ (observed[seen] - 10), np.diag(prior - gain @ prior[seen])


def draw(rng, known, amplitudes, sd):
    days = known.weekday.size
    truth = 10 + np.linalg.cholesky(covariance(known, amplitudes) + 1e-9 * np.eye(days)) @ rng.normal(size=days)
    return truth, truth + rng.laplace(scale=sd / np.sqrt(2), size=days)


@pytest.mark.parametrize("weather", [False, True])
def test_the_smoother_is_the_dense_formula(weather):
    rng, known = np.random.default_rng(5), covariates(120, weather=weather)
    noise = rng.uniform(0.1, 4, 120)
    observed = draw(rng, known, PRIOR, 1.0)[1]
    observed[rng.random(120) < 0.2] = np.nan
    mean, variance = dense(observed, noise, covariance(known, PRIOR))
    estimate = estimate_all(observed, noise, known, ONE)
    np.testing.assert_allclose(estimate.mean, mean, atol=1e-8)
    np.testing.assert_allclose(estimate.variance, variance, rtol=1e-7, atol=1e-8)


def test_the_live_estimate_is_the_dense_formula_of_the_days_so_far():
    rng, known = np.random.default_rng(6), covariates(27)
    noise, observed = np.full(27, 0.5), draw(rng, known, PRIOR, 0.7)[1]
    live = estimate_so_far(observed, noise, known)
    for day in (1, 10, 26):
        so_far = covariance(known.over(slice(day + 1)), PRIOR)
        mean, variance = dense(observed[: day + 1], noise[: day + 1], so_far)
        np.testing.assert_allclose([live.mean[day], live.variance[day]], [mean[-1], variance[-1]], atol=1e-8)


@pytest.mark.parametrize(("sd", "least", "most"), [(0.6, 0.88, 0.93), (1.5, 0.88, 0.93), (4.0, 0.90, 0.98)])
def test_intervals_of_series_of_the_model_are_calibrated(sd, least, most):
    """Amplitudes are at the centre of the prior: about .91, .93 and .97 of a year's days are inside.

    The more noise, the less the figures settle the amplitudes, and those of the prior, which are averaged over, are
    wider than its centre.
    """
    rng, known, inside, squares = np.random.default_rng(9), covariates(120), [], []
    for _ in range(10):
        truth, observed = draw(rng, known, PRIOR, sd)
        noise = np.full(120, sd**2)
        amplitudes = draw_amplitudes(observed, noise, known, most_probable(observed, noise, known))
        estimate = estimate_all(observed, noise, known, amplitudes)
        score = (truth - estimate.mean) / np.sqrt(estimate.variance)
        inside.append(np.abs(score) < 1.645)
        squares.append(score**2)
    assert least <= np.mean(inside) <= most
    assert 0.6 <= np.mean(squares) <= 1.15


def test_the_fit_is_the_maximum_of_the_dense_density():
    rng, known = np.random.default_rng(10), covariates(90)
    true = replace(PRIOR, level=3.0, single=0.1)
    noise, observed = np.full(90, 0.25), draw(rng, known, true, 0.5)[1]

    def cost(amplitudes: Amplitudes) -> float:
        total = covariance(known, amplitudes) + np.diag(noise)
        value = 0.5 * (np.linalg.slogdet(total)[1] + (observed - 10) @ np.linalg.solve(total, observed - 10))
        return value + 0.5 * ((amplitudes.logarithms() - PRIOR.logarithms()) ** 2).sum()

    fitted = most_probable(observed, noise, known)
    best = cost(fitted)
    for name in ("level", "weekday", "holiday", "heating", "short", "single", "special"):
        for factor in (0.97, 1.03):
            assert cost(replace(fitted, **{name: getattr(fitted, name) * factor})) > best
