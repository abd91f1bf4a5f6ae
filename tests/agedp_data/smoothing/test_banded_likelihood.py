"""The banded likelihood is the density of the dense Gaussian law, and that of the filter."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from agedp_data.smoothing.structural_model import (
    DAILY_MEAN,
    PRIOR,
    Amplitudes,
    fit_amplitudes,
    kalman_filter,
    log_likelihoods,
    most_probable,
    single_variance,
    state_design,
    state_dynamics,
)
from tests.agedp_data.smoothing.test_structural_model import covariance, covariates, draw


@pytest.mark.parametrize("weather", [False, True])
def test_it_is_the_dense_density_and_that_of_the_filter(weather):
    rng, public = np.random.default_rng(1), covariates(90, weather=weather)
    noise, observed = rng.uniform(0.05, 4, 90), draw(rng, public, PRIOR, 1.0)[1]
    observed[rng.random(90) < 0.2] = np.nan
    stack = np.exp(PRIOR.logarithms() + rng.normal(scale=0.5, size=(4, 7)))
    stack[1, 1:4] = stack[0, 1:4] * 2  # rows that share a factorisation
    stack[1, [0, 4, 5, 6]] = stack[0, [0, 4, 5, 6]]
    likelihoods = log_likelihoods(observed, noise, public, stack, DAILY_MEAN)
    seen = np.isfinite(observed)
    for row, likelihood in zip(stack, likelihoods, strict=True):
        law = (covariance(public, Amplitudes(*row)) + np.diag(noise))[np.ix_(seen, seen)]
        dense = stats.multivariate_normal(np.full(seen.sum(), 10.0), law).logpdf(observed[seen])
        assert likelihood == pytest.approx(dense, abs=1e-8)
    rest = noise + single_variance(public, stack)
    filtered = kalman_filter(observed - 10, rest, state_design(public, DAILY_MEAN, stack), state_dynamics(public))
    np.testing.assert_allclose(filtered.log_likelihood, likelihoods, atol=1e-8)


@pytest.mark.parametrize("variance", [1e-8, 1e8])
def test_the_fit_survives_no_noise_and_nothing_but_noise(variance):
    public = covariates(120)
    observed = draw(np.random.default_rng(2), public, PRIOR, 0.1)[1]
    fitted = most_probable(observed, np.full(120, variance), public).logarithms()
    assert np.isfinite(fitted).all()
    if variance > 1:
        np.testing.assert_allclose(fitted, PRIOR.logarithms(), atol=0.01)  # the figures say nothing


def test_series_that_share_amplitudes_differ_by_a_factor():
    rng, public = np.random.default_rng(3), covariates(200)
    smaller, larger = (Amplitudes(*(factor * np.exp(PRIOR.logarithms()))) for factor in (0.5, 2.0))
    series = np.array([draw(rng, public, size, 0.3)[1] for size in (smaller, smaller, smaller, larger)])
    draws = fit_amplitudes(series, np.full(series.shape, 0.09), public)[1]
    assert draws.shape == (4, 8, 7)
    sizes = np.exp(np.log(draws).mean(axis=(1, 2)))
    assert (sizes[3] > 1.5 * sizes[:3]).all()
