r"""Estimates of the true figures of days: by all published figures (archive), or by those up to the day (live).

Example: noise of 1.5 kWh, calendar and weather: the archive estimate errs by 0.57 kWh, the live one by 0.65 kWh.

Decisions:

* The amplitudes of a live estimate are fitted anew every 28 days, to the days before, so no later row revises it.
* Leading axes are series that share amplitudes, such as groups of households.

[RW] Rasmussen, Williams: Gaussian Processes for Machine Learning. MIT Press, 2006, section 2.2.
https://doi.org/10.7551/mitpress/3206.001.0001
"""

from __future__ import annotations

from typing import Final

import numpy as np

from agedp_data.arrays import Floats
from agedp_data.smoothing.amplitude_fit import fit_amplitudes
from agedp_data.smoothing.gaussian_filter import Filtered, kalman_filter, smooth
from agedp_data.smoothing.structural_model import (
    DAILY_MEAN,
    Covariates,
    Estimate,
    Prior,
    check_series,
    single_variance,
    state_design,
    state_dynamics,
)

REFIT_DAYS: Final = 28


def estimate_all(
    observed: Floats, noise_variance: Floats, covariates: Covariates, amplitudes: Floats, *, prior: Prior = DAILY_MEAN
) -> Estimate:
    r"""Return each day's true figure as all published figures say it: the archive estimate.

    .. math:: E[f_t \mid y_1, \dots, y_T], \quad V[f_t \mid y_1, \dots, y_T]

    Source: conditional law of Gaussian vectors, [RW] eqs. 2.25 and 2.26, by `smooth`.

    Args:
        observed: published figures y, shape (..., T), NaN where none is published [kWh].
        noise_variance: variance of their noise, shape (..., T), > 0 [kWh^2].
        covariates: of the same days.
        amplitudes: of the parts, shape (..., n, 7); estimates are averaged over the n.
        prior: of the constant.

    Raises:
        ChainError: shapes that differ, or a noise variance that is not positive.

    References:
        [RW] https://doi.org/10.7551/mitpress/3206.001.0001
    """
    check_series(observed, noise_variance, covariates)
    filtered, design = _filter(observed, noise_variance, covariates, amplitudes, prior)
    parts = smooth(filtered, design, state_dynamics(covariates))
    return _with_single_days(observed, noise_variance, covariates, amplitudes, parts, prior)


def estimate_so_far(
    observed: Floats, noise_variance: Floats, covariates: Covariates, *, prior: Prior = DAILY_MEAN
) -> Estimate:
    r"""Return each day's true figure as the figures up to that day say it: the live estimate, never revised.

    .. math:: E[f_t \mid y_1, \dots, y_t], \quad V[f_t \mid y_1, \dots, y_t]

    Amplitudes are the prior's for the first 28 days. Afterwards they are fitted anew every 28 days, to the days before.

    Source: `kalman_filter`.

    Args:
        observed: published figures y, shape (..., T), NaN where none is published [kWh].
        noise_variance: variance of their noise, shape (..., T), > 0 [kWh^2].
        covariates: of the same days.
        prior: of the constant and the amplitudes.

    Raises:
        ChainError: shapes that differ, or a noise variance that is not positive.
    """
    check_series(observed, noise_variance, covariates)
    days, mode, draws = observed.shape[-1], None, np.exp(prior.amplitudes.logarithms())[None, :]
    mean, variance = np.empty(observed.shape), np.empty(observed.shape)
    for begin in range(0, days, REFIT_DAYS):
        end = min(begin + REFIT_DAYS, days)
        if begin:
            past = observed[..., :begin], noise_variance[..., :begin], covariates.until(begin)
            mode, draws = fit_amplitudes(*past, prior=prior, start=mode)
        figures = observed[..., :end], noise_variance[..., :end], covariates.until(end)
        filtered = _filter(*figures, draws, prior)[0]
        so_far = _with_single_days(*figures, draws, (filtered.mean, filtered.variance), prior)
        mean[..., begin:end], variance[..., begin:end] = so_far.mean[..., begin:], so_far.variance[..., begin:]
    return Estimate(mean, variance)


def _filter(
    observed: Floats, noise_variance: Floats, covariates: Covariates, amplitudes: Floats, prior: Prior
) -> tuple[Filtered, Floats]:
    """Filter for each row of amplitudes; return the design too."""
    noise = noise_variance[..., None, :] + single_variance(covariates, amplitudes)
    design = state_design(covariates, prior, amplitudes)
    design = np.broadcast_to(design, (*noise.shape, design.shape[-1]))
    figures = (observed - prior.constant_kwh)[..., None, :]
    return kalman_filter(figures, noise, design, state_dynamics(covariates)), design


def _with_single_days(
    observed: Floats,
    noise_variance: Floats,
    covariates: Covariates,
    amplitudes: Floats,
    parts: tuple[Floats, Floats],
    prior: Prior,
) -> Estimate:
    """Return the law of the true figure, averaged over amplitudes: its other parts, and the single day's deviation.

    `parts` are mean and variance of the other parts less the constant's mean, shape (..., n, T).
    """
    mean, variance = parts
    single, noise, figures = (
        single_variance(covariates, amplitudes),
        noise_variance[..., None, :],
        observed[..., None, :],
    )
    is_seen = np.isfinite(figures)
    weight = np.where(is_seen, single / (single + noise), 0.0)
    residual = np.where(is_seen, figures - prior.constant_kwh - mean, 0.0)
    rest = np.where(is_seen, weight * noise, single)
    means, variances = prior.constant_kwh + mean + weight * residual, (1 - weight) ** 2 * variance + rest
    return Estimate(means.mean(axis=-2), variances.mean(axis=-2) + means.var(axis=-2))
