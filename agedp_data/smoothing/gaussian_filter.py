r"""Kalman filter and smoother of a linear Gaussian series with one observation a day, O(T), for many models at once.

The idea: a state x_t moves by x_{t+1} = F x_t + w_t with w_t ~ N(0, Q), and the day's observation is
y_t = h_t x_t + v_t with v_t ~ N(0, r_t). The filter gives the law of h_t x_t from y_1 ... y_t, the smoother from all
of y. A day without an observation is predicted.

Example: with one state that never moves, the filter is the running mean of the days so far.

Decisions: leading axes are models (amplitudes to be averaged, groups of households), which share F and Q. A missing
observation is one with infinite noise. The smoother is that of Bryson and Frazier, which inverts no matrix. No library
is taken: statsmodels' compiled filter is not faster for a stack of eight models, and is a dependency of 40 MB.

[DK] Durbin, Koopman: Time Series Analysis by State Space Methods. 2nd ed., Oxford University Press, 2012, chapter 4.
https://doi.org/10.1093/acprof:oso/9780199641178.001.0001
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from agedp_data.arrays import Floats


@dataclass(frozen=True, slots=True)
class Dynamics:
    """Motion of the state of k numbers: `transition` F and `innovation` Q, both (k, k), and its first law.

    The first state has mean 0 and covariance `start`, shape (k, k).
    """

    transition: Floats
    innovation: Floats
    start: Floats


@dataclass(frozen=True, slots=True)
class Filtered:
    """What the filter knows before and after each day, for each model.

    `mean` (..., T) and `variance` (..., T) are of h_t x_t given the days up to t; `log_likelihood` (...) of all of y.
    `predicted_mean` (..., T, k) and `predicted_covariance` (..., T, k, k) are of x_t given the days before t.
    `residual` y_t - h_t E[x_t] and its variance `residual_variance` are (..., T), 0 and inf where y_t is missing.
    """

    mean: Floats
    variance: Floats
    log_likelihood: Floats
    predicted_mean: Floats
    predicted_covariance: Floats
    residual: Floats
    residual_variance: Floats


def kalman_filter(observed: Floats, noise_variance: Floats, design: Floats, dynamics: Dynamics) -> Filtered:
    r"""Filter a series; use its mean for estimates that later days never revise.

    .. math:: K_t = P_t h_t / S_t, \quad S_t = h_t^\top P_t h_t + r_t, \quad
              m_{t+1} = F (m_t + K_t (y_t - h_t^\top m_t)), \quad P_{t+1} = F (P_t - K_t h_t^\top P_t) F^\top + Q

    Source: [DK] section 4.3.

    Args:
        observed: y, shape (..., T), NaN where missing.
        noise_variance: r, shape (..., T), > 0.
        design: h, shape (..., T, k).
        dynamics: F, Q and the first covariance.

    References:
        [DK] https://doi.org/10.1093/acprof:oso/9780199641178.001.0001

    >>> still = Dynamics(np.eye(1), np.zeros((1, 1)), 1e9 * np.eye(1))
    >>> kalman_filter(np.array([3.0, 5.0]), np.ones(2), np.ones((2, 1)), still).mean.round(3).tolist()
    [3.0, 4.0]
    """
    models, (days, size) = design.shape[:-2], design.shape[-2:]
    is_seen = np.isfinite(observed)
    values, noise = np.where(is_seen, observed, 0.0), np.where(is_seen, noise_variance, np.inf)
    means, covariances = np.empty((*models, days, size)), np.empty((*models, days, size, size))
    estimates, variances, residuals, residual_variances = np.empty((4, *models, days))
    mean, covariance = np.zeros((*models, size)), np.broadcast_to(dynamics.start, (*models, size, size)).copy()
    move = dynamics.transition
    for day in range(days):
        if day:
            mean, covariance = mean @ move.T, move @ covariance @ move.T + dynamics.innovation
        means[..., day, :], covariances[..., day, :, :] = mean, covariance
        row = design[..., day, :]
        gain = (covariance @ row[..., None])[..., 0]
        spread = (gain * row).sum(-1) + noise[..., day]
        residual = np.where(is_seen[..., day], values[..., day] - (mean * row).sum(-1), 0.0)
        mean = mean + gain * (residual / spread)[..., None]
        covariance = covariance - gain[..., :, None] * (gain / spread[..., None])[..., None, :]
        residuals[..., day], residual_variances[..., day] = residual, spread
        estimates[..., day] = (mean * row).sum(-1)
        variances[..., day] = np.maximum(((covariance @ row[..., None])[..., 0] * row).sum(-1), 0)
    squares = residuals**2 / residual_variances
    spreads = np.log(2 * np.pi * np.where(np.isfinite(residual_variances), residual_variances, 1 / (2 * np.pi)))
    log_likelihood = -0.5 * (squares + spreads).sum(-1)
    return Filtered(estimates, variances, log_likelihood, means, covariances, residuals, residual_variances)


def smooth(filtered: Filtered, design: Floats, dynamics: Dynamics) -> tuple[Floats, Floats]:
    r"""Return mean and variance of h_t x_t given all days, each (..., T).

    .. math:: s_{t-1} = h_t u_t / S_t + L_t^\top s_t, \quad N_{t-1} = h_t h_t^\top / S_t + L_t^\top N_t L_t, \quad
              L_t = F - F K_t h_t^\top, \quad E[x_t | y] = m_t + P_t s_{t-1}, \quad
              V[x_t | y] = P_t - P_t N_{t-1} P_t

    with u_t the residual. Source: [DK] section 4.4.

    Args:
        filtered: what `kalman_filter` returned.
        design: h, shape (..., T, k).
        dynamics: F, Q and the first covariance.

    References:
        [DK] https://doi.org/10.1093/acprof:oso/9780199641178.001.0001
    """
    days, size = design.shape[-2:]
    score, information = np.zeros((*design.shape[:-2], size)), np.zeros((*design.shape[:-2], size, size))
    means, variances = np.empty(design.shape[:-1]), np.empty(design.shape[:-1])
    for day in range(days - 1, -1, -1):
        row, covariance = design[..., day, :], filtered.predicted_covariance[..., day, :, :]
        spread, residual = filtered.residual_variance[..., day], filtered.residual[..., day]
        gain = (covariance @ row[..., None])[..., 0] / spread[..., None]
        carry = dynamics.transition - (dynamics.transition @ gain[..., None]) * row[..., None, :]
        score = row * (residual / spread)[..., None] + (score[..., None, :] @ carry)[..., 0, :]
        seen = row[..., :, None] * (row / spread[..., None])[..., None, :]
        information = seen + np.swapaxes(carry, -1, -2) @ information @ carry
        spanned = (covariance @ row[..., None])[..., 0]
        means[..., day] = (filtered.predicted_mean[..., day, :] * row).sum(-1) + (spanned * score).sum(-1)
        removed = ((information @ spanned[..., None])[..., 0] * spanned).sum(-1)
        variances[..., day] = np.maximum((spanned * row).sum(-1) - removed, 0)
    return means, variances
