r"""Structural model of a daily mean: level, weekday, holidays, heating, short memory, and each day's single deviation.

The published figure of a day is its true figure plus noise of known variance. The true figure is taken as

.. math:: f_t = c + \text{level}_t + \text{weekday}_t + \text{holiday}_t + \text{heating}_t + \text{short}_t
          + \text{single}_t

with independent Gaussian parts: a level that changes over weeks (Matérn 3/2, 45 days), effects of weekdays, holidays
and heating degrees (of the day and of two days), a memory of four days, and a deviation of the single day. The last is
larger on special days. The size of each part, its amplitude, is fitted to the published figures, from a prior of
open households. Everything is post-processing: nothing but what is published enters, and no privacy is lost.

Example: figures with noise of 1.5 kWh come to within 0.57 kWh with calendar and weather.

Decisions:

* The interval assumes the model. It is right on average over days, too narrow for days that neither calendar nor
  weather explain, and does not contain what a clamp cuts off.
* A constant has a prior of 10 kWh with a standard deviation of 10 kWh, which no figure of a year feels. Constant and
  amplitudes grow with the level of the published figures (`structural_model`).
* Two waves of the year, school holidays, weekdays that change with the season and a memory of ten days were tried on
  means of 18 and 37 households: none lowers the error by more than 1 %, since the level follows the season already.

[RW] Rasmussen, Williams: Gaussian Processes for Machine Learning. MIT Press, 2006, section 4.2.
https://doi.org/10.7551/mitpress/3206.001.0001
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, optimize

from agedp_data.arrays import Floats
from agedp_data.errors import ChainError

# --------------------------------------------------------------------------------------------------
# Kalman filter and smoother of a linear Gaussian series with one observation a day, O(T), for many models at once.
#
# The idea: a state x_t moves by x_{t+1} = F x_t + w_t with w_t ~ N(0, Q), and the day's observation is
# y_t = h_t x_t + v_t with v_t ~ N(0, r_t). The filter gives the law of h_t x_t from y_1 ... y_t, the smoother from all
# of y. A day without an observation is predicted.
#
# Example: with one state that never moves, the filter is the running mean of the days so far.
#
# Decisions: leading axes are models (amplitudes to be averaged, groups of households), which share F and Q. A missing
# observation is one with infinite noise. The smoother is that of Bryson and Frazier, which inverts no matrix. No
# library is taken: statsmodels' compiled filter is not faster for a stack of eight models, and is a dependency of 40
# MB.
#
# [DK] Durbin, Koopman: Time Series Analysis by State Space Methods. 2nd ed., Oxford University Press, 2012, chapter 4.
# https://doi.org/10.1093/acprof:oso/9780199641178.001.0001
# --------------------------------------------------------------------------------------------------


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


def kalman_filter(
    observed: Floats,
    noise_variance: Floats,
    design: Floats,
    dynamics: Dynamics,
    *,
    first_law: tuple[Floats, Floats] | None = None,
) -> Filtered:
    r"""Filter a series; use its mean for estimates that later days never revise.

    .. math:: K_t = P_t h_t / S_t, \quad S_t = h_t^\top P_t h_t + r_t, \quad
              m_{t+1} = F (m_t + K_t (y_t - h_t^\top m_t)), \quad P_{t+1} = F (P_t - K_t h_t^\top P_t) F^\top + Q

    Source: [DK] section 4.3.

    Args:
        observed: y, shape (..., T), NaN where missing.
        noise_variance: r, shape (..., T), > 0.
        design: h, shape (..., T, k).
        dynamics: F, Q and the first covariance.
        first_law: mean (..., k) and covariance (..., k, k) of the first state of each model, in place of the latter.

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
    if first_law is not None:
        mean, covariance = first_law[0].copy(), first_law[1].copy()
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


# --------------------------------------------------------------------------------------------------
# The model: its parts, their priors and amplitudes.
# --------------------------------------------------------------------------------------------------

LEVEL_DAYS: Final = 45.0
SHORT_DAYS: Final = 4.0
_WEEKDAYS = 7


@dataclass(frozen=True, slots=True)
class Covariates:
    """Public facts about T days: `weekday` 0 to 6, `holiday` and `special` flags, `heating` degrees [5 K] or None.

    Special days are those on which the single day's deviation may be larger. Without a weather table there is no
    heating.
    """

    weekday: NDArray[np.int64]
    holiday: NDArray[np.bool_]
    special: NDArray[np.bool_]
    heating: Floats | None = None

    def over(self, span: slice) -> Covariates:
        """Return those of some consecutive days."""
        heating = None if self.heating is None else self.heating[span]
        return Covariates(self.weekday[span], self.holiday[span], self.special[span], heating)


@dataclass(frozen=True, slots=True)
class Amplitudes:
    """Standard deviations of the parts [kWh per household], of heating per 5 K."""

    level: float = 1.55
    weekday: float = 0.22
    holiday: float = 0.30
    heating: float = 0.73
    short: float = 0.69
    single: float = 0.32
    special: float = 0.8

    def logarithms(self) -> Floats:
        """Return the natural logarithms, in the order of the fields, shape (7,)."""
        return np.log([self.level, self.weekday, self.holiday, self.heating, self.short, self.single, self.special])


PRIOR: Final = Amplitudes()
"""Amplitudes of open households, the prior of every fit (log-normal, standard deviation 1)."""


@dataclass(frozen=True, slots=True)
class Prior:
    """What is assumed of a series before its figures: the constant with its standard deviation [kWh], the amplitudes.

    Each amplitude is log-normal with standard deviation 1. One that `follows_level` is for a level of `constant_kwh`,
    and is taken in proportion to that of the published figures.
    """

    constant_kwh: float = 10.0
    constant_sd_kwh: float = 10.0
    amplitudes: Amplitudes = PRIOR
    follows_level: bool = False


DAILY_MEAN: Final = Prior(follows_level=True)


@dataclass(frozen=True, slots=True)
class Estimate:
    """Estimated true figures of T days: `mean` [kWh] and `variance` [kWh^2], each (..., T).

    `amplitudes` are the most probable ones, of an archive estimate by its own fit.
    """

    mean: Floats
    variance: Floats
    amplitudes: Amplitudes | None = None


def moving_parts() -> Dynamics:
    """Return the motion of the moving parts in units of their amplitudes: level, its slope, and short memory."""
    rate = math.sqrt(3) / LEVEL_DAYS
    transition, start = np.zeros((3, 3)), np.diag([1.0, rate**2, 1.0])
    transition[:2, :2] = math.exp(-rate) * np.array([[1 + rate, 1.0], [-(rate**2), 1 - rate]])
    transition[2, 2] = math.exp(-1 / SHORT_DAYS)
    return Dynamics(transition, start - transition @ start @ transition.T, start)


def fixed_parts(covariates: Covariates) -> Floats:
    """Return how much each part that never moves counts on each day: constant, weekdays, holiday, heating; (k, T)."""
    flags = [covariates.weekday == number for number in range(_WEEKDAYS)]
    rows = np.vstack([np.ones(covariates.weekday.size), *flags, covariates.holiday])
    if covariates.heating is None:
        return rows
    two_days = (covariates.heating + np.append(covariates.heating[:1], covariates.heating[:-1])) / 2
    return np.vstack([rows, covariates.heating, two_days])


def fixed_amplitudes(covariates: Covariates, prior: Prior, amplitudes: Floats) -> Floats:
    """Return the standard deviation of each fixed part, shape (..., k), for amplitudes of shape (..., 7)."""
    weekday, holiday, heating = np.moveaxis(amplitudes, -1, 0)[1:4]
    heatings = [] if covariates.heating is None else [heating, heating]
    return np.stack([np.full_like(weekday, prior.constant_sd_kwh), *[weekday] * _WEEKDAYS, holiday, *heatings], axis=-1)


def moving_design(amplitudes: Floats) -> Floats:
    """Return how much the moving parts count, shape (..., 3)."""
    return np.stack([amplitudes[..., 0], np.zeros_like(amplitudes[..., 0]), amplitudes[..., 4]], axis=-1)


def state_dynamics(covariates: Covariates) -> Dynamics:
    """Return the motion of all parts but the single day's, in units of their amplitudes."""
    moving, still = moving_parts(), len(fixed_parts(covariates.over(slice(1))))
    transition = linalg.block_diag(moving.transition, np.eye(still))
    innovation = linalg.block_diag(moving.innovation, np.zeros((still, still)))
    return Dynamics(transition, innovation, linalg.block_diag(moving.start, np.eye(still)))


def state_design(covariates: Covariates, prior: Prior, amplitudes: Floats) -> Floats:
    """Return how much each state counts in a day's figure, shape (..., T, k)."""
    fixed = fixed_amplitudes(covariates, prior, amplitudes)[..., None, :] * fixed_parts(covariates).T
    moving = moving_design(amplitudes)[..., None, :]
    return np.concatenate([np.broadcast_to(moving, (*fixed.shape[:-1], 3)), fixed], axis=-1)


def single_variance(covariates: Covariates, amplitudes: Floats) -> Floats:
    """Return the variance of the deviation of each single day, shape (..., T) [kWh^2]."""
    single, special = amplitudes[..., 5, None] ** 2, amplitudes[..., 6, None] ** 2
    return np.where(covariates.special, special, single)


def check_series(observed: Floats, noise_variance: Floats, covariates: Covariates) -> None:
    """Check that figures, noise and covariates are of the same days, and that the noise is positive.

    Raises:
        ChainError: shapes that differ, or a noise variance that is not positive.
    """
    days = covariates.weekday.shape
    if not (observed.shape == noise_variance.shape and observed.shape[-1:] == days == covariates.special.shape):
        raise ChainError("figures, noise and covariates of a smoothed series must be of the same days")
    if not (noise_variance > 0).all():
        raise ChainError("the noise of a published figure has a variance above 0")


# --------------------------------------------------------------------------------------------------
# Likelihood of a linear Gaussian series by the banded precision of its states, O(T), in compiled code.
#
# The idea: states x_t that move by x_{t+1} = F x_t + w_t have a joint precision with blocks on three diagonals alone,
# and observations of noise r_t add to the blocks on the main one. Its Cholesky factor has the same band. A year of
# three states and twelve columns takes 0.3 ms, where a filter that steps through the days takes 8 ms.
#
# Example: one state that never moves and one day: the precision is 1/start + h^2/r.
#
# Decisions:
#
# * Parts that never move are columns beside the observations. Their amplitudes enter afterwards, so that one
#   factorisation serves all of them.
# * Only likelihoods are taken from it. Estimates need the variance of each day, for which `structural_model` is as
#   fast.
#
# [RH] Rue, Held: Gaussian Markov Random Fields. Chapman & Hall/CRC, 2005, chapter 2.
# https://doi.org/10.1201/9780203492024
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StatePrecision:
    """Precision of the states of T days before any observation: lower `band` (2k, T, k) and `log_determinant`."""

    band: Floats
    log_determinant: float


def state_precision(dynamics: Dynamics, days: int) -> StatePrecision:
    r"""Return the precision of all states of a number of days.

    .. math:: \Pi_{tt} = Q^{-1} + F^\top Q^{-1} F, \quad \Pi_{t+1,t} = -Q^{-1} F

    with the inverse of the first covariance in place of Q^{-1} on the first day, and without the second term on the
    last. Source: [RH] chapter 2, for a vector autoregression.

    Args:
        dynamics: F, Q of full rank, shape (k, k), and the first covariance.
        days: number of days.

    References:
        [RH] https://doi.org/10.1201/9780203492024
    """
    size = len(dynamics.transition)
    innovation, onward = np.linalg.inv(dynamics.innovation), -np.linalg.solve(dynamics.innovation, dynamics.transition)
    blocks = np.zeros((days, 2 * size, size))
    blocks[0, :size], blocks[1:, :size] = np.linalg.inv(dynamics.start), innovation
    blocks[:-1, :size] -= dynamics.transition.T @ onward
    blocks[:-1, size:] = onward
    band = np.zeros((2 * size, days, size))
    for column in range(size):
        band[: 2 * size - column, :, column] = blocks[:, column:, column].T
    determinants = np.linalg.slogdet(dynamics.start)[1] + (days - 1) * np.linalg.slogdet(dynamics.innovation)[1]
    return StatePrecision(band, -float(determinants))


def whitened_products(
    columns: Floats, precision: Floats, design: Floats, states: StatePrecision
) -> tuple[Floats, float]:
    r"""Return inner products of columns under the covariance of a series, and what the states add to its determinant.

    With C = H \Pi^{-1} H^T + R the covariance of the series, R diagonal and W the columns:

    .. math:: W^\top C^{-1} W = W^\top R^{-1} W - V^\top V, \quad L V = H^\top R^{-1} W, \quad
              \ln |C| - \ln |R| = \ln |L|^2 - \ln |\Pi|, \quad L L^\top = \Pi + H^\top R^{-1} H

    Source: Woodbury's identity; [RH] chapter 2.

    Args:
        columns: W, shape (n, T), finite.
        precision: inverse of R, shape (T,), 0 on days without an observation.
        design: h, how much each state counts, shape (k,), the same on each day.
        states: precision of the states.

    Returns:
        The products and the determinant, NaN and inf where floats do not factorise the precision.

    References:
        [RH] https://doi.org/10.1201/9780203492024
    """
    band, (number, days), size = states.band.copy(), columns.shape, design.size
    for column in range(size):
        for row in range(column, size):
            band[row - column, :, column] += design[row] * design[column] * precision
    factor, failure = linalg.lapack.dpbtrf(band.reshape(2 * size, -1), lower=1, overwrite_ab=1)
    if failure:
        return np.full((number, number), np.nan), math.inf
    weighted = columns * precision
    sides = (weighted[..., None] * design).reshape(number, days * size)
    whitened, failure = linalg.lapack.dtbtrs(factor, sides.T, uplo="L", overwrite_b=1)
    if failure:
        return np.full((number, number), np.nan), math.inf
    determinant = 2 * np.log(factor[0]).sum() - states.log_determinant
    # einsum rather than BLAS, whose threads cost more than such small products on a busy machine
    products = np.einsum("it,jt->ij", columns, weighted) - np.einsum("ti,tj->ij", whitened, whitened)
    return products, float(determinant)


# --------------------------------------------------------------------------------------------------
# Amplitudes of the structural model from published figures: the most probable ones, and draws of their law.
#
# Example: a year of figures with noise of 1.5 kWh settles the level to a factor of 1.3, the single day to a factor of
# 2.
#
# Decisions:
#
# * Amplitudes are fitted by L-BFGS-B on their logarithms, within factors of e^-5 and e^5 of the prior. Differences
#   cost five likelihoods, since the amplitudes of parts that never move share one factorisation.
# * A year of noisy figures does not settle the amplitudes. With the most probable ones alone intervals of 90 % hold 86
#   % of the model's own days. So estimates are averaged over amplitudes drawn from Laplace's approximation of their
#   law (91 %). The draws are fixed numbers, so that the same figures give the same estimates.
# * Several series may share amplitudes (groups of households). Their figures settle them better, and 8 draws suffice.
#
# [RW] Rasmussen, Williams: Gaussian Processes for Machine Learning. MIT Press, 2006, section 3.4.
# https://doi.org/10.7551/mitpress/3206.001.0001
# --------------------------------------------------------------------------------------------------

_STEP = 1e-4
_GRADIENT = 0.01
_PRIOR_SD = 1.0
_CURVATURE_STEP = 0.05
_FARTHEST = 5.0
_IMPOSSIBLE = 1e300
_PAIRS = 16
_SHARED_PAIRS = 4
_FITTED = 8
_FACTOR_SD = 0.5
_FACTORED = (0, 4, 5, 6)
"""Amplitudes that a factorisation depends on: level, short, single, special."""


def fit_amplitudes(
    observed: Floats,
    noise_variance: Floats,
    covariates: Covariates,
    *,
    prior: Prior = DAILY_MEAN,
    start: Amplitudes | None = None,
) -> tuple[Amplitudes, Floats]:
    """Return the most probable amplitudes and the draws that estimates are averaged over.

    Several series share their amplitudes up to a factor, log-normal around 1 with standard deviation 0.5. At most eight
    of them, evenly spread, settle the amplitudes.

    Args:
        observed: published figures, shape (T,) or (s, T), NaN where none is published [kWh].
        noise_variance: variance of their noise, of the same shape, > 0 [kWh^2].
        covariates: of the same days.
        prior: of the constant and the amplitudes.
        start: where the search begins, by default at the prior.

    Returns:
        The mode and the draws, shape (32, 7) for one series, (s, 8, 7) for several [kWh].

    Raises:
        ChainError: shapes that differ, or a noise variance that is not positive.
    """
    if observed.ndim == 1:
        mode = most_probable(observed, noise_variance, covariates, prior=prior, start=start)
        return mode, draw_amplitudes(observed, noise_variance, covariates, mode, prior=prior)
    chosen = np.unique(np.linspace(0, len(observed) - 1, _FITTED).round().astype(int))
    figures = observed[chosen], noise_variance[chosen], covariates
    mode = most_probable(*figures, prior=prior, start=start)
    draws = draw_amplitudes(*figures, mode, prior=prior)
    series = zip(observed, noise_variance, strict=True)
    factors = [_factors(*row, covariates, mode, prior) for row in series]
    return mode, np.asarray(np.array(factors)[..., None] * draws)


def _factors(
    observed: Floats, noise_variance: Floats, covariates: Covariates, mode: Amplitudes, prior: Prior
) -> Floats:
    """Return factors of the amplitudes of a series, quantiles of their law, one for each shared draw."""
    logarithms = _FACTOR_SD * np.linspace(-2, 2, 9)
    stack = np.exp(mode.logarithms() + logarithms[:, None])
    density = log_likelihoods(observed, noise_variance, covariates, stack, prior) - (logarithms / _FACTOR_SD) ** 2 / 2
    weights = np.exp(density - density.max())
    levels = (np.random.default_rng(1).permutation(2 * _SHARED_PAIRS) + 0.5) / (2 * _SHARED_PAIRS)
    reached = np.cumsum(weights) - weights / 2
    return np.exp(np.interp(levels, reached / weights.sum(), logarithms))


def most_probable(
    observed: Floats,
    noise_variance: Floats,
    covariates: Covariates,
    *,
    prior: Prior = DAILY_MEAN,
    start: Amplitudes | None = None,
) -> Amplitudes:
    r"""Return the most probable amplitudes given published figures.

    .. math:: \max_a \; \ln p(y \mid a) - \tfrac12 \sum_j (\ln a_j - \ln a_j^0)^2

    Source: maximum a posteriori estimate; the likelihood is that of `log_likelihoods`.

    Args:
        observed: published figures y, shape (..., T), NaN where none is published; rows share amplitudes [kWh].
        noise_variance: variance of their noise, shape (..., T), > 0 [kWh^2].
        covariates: of the same days.
        prior: of the constant and the amplitudes.
        start: where the search begins, by default at the prior.

    Raises:
        ChainError: shapes that differ, a noise variance that is not positive, or no amplitudes that floats can judge.
    """
    check_series(observed, noise_variance, covariates)
    centre = prior.amplitudes.logarithms()
    steps = np.vstack([np.zeros(centre.size), _STEP * np.eye(centre.size)])

    def cost(logarithms: Floats) -> tuple[float, Floats]:
        with np.errstate(over="ignore", invalid="ignore"):  # then the cost is not finite
            costs = _costs(logarithms + steps, observed, noise_variance, covariates, prior)
        if not np.isfinite(costs).all():
            return _IMPOSSIBLE, np.zeros(centre.size)
        return float(costs[0]), (costs[1:] - costs[0]) / _STEP

    begin = centre if start is None else start.logarithms()
    bounds = list(zip(centre - _FARTHEST, centre + _FARTHEST, strict=True))
    result = optimize.minimize(cost, begin, jac=True, method="L-BFGS-B", bounds=bounds, options={"gtol": _GRADIENT})
    if not result.fun < _IMPOSSIBLE:
        raise ChainError(
            "published averages do not fit the model of smoothed estimates with any amplitudes: "
            f"they reach {np.nanmax(np.abs(observed)):.3g} kWh. Check their unit and their noise"
        )
    return Amplitudes(*np.exp(result.x).tolist())


def draw_amplitudes(
    observed: Floats, noise_variance: Floats, covariates: Covariates, mode: Amplitudes, *, prior: Prior = DAILY_MEAN
) -> Floats:
    r"""Return amplitudes that stand for their law given published figures: fixed draws of Laplace's approximation.

    .. math:: \ln a \sim N(\ln \hat a, \; (-\nabla^2 \ln p(a \mid y))^{-1})

    Source: [RW] section 3.4, for the amplitudes.

    Args:
        observed: published figures y, shape (..., T), NaN where none is published; rows share amplitudes [kWh].
        noise_variance: variance of their noise, shape (..., T), > 0 [kWh^2].
        covariates: of the same days.
        mode: the most probable amplitudes (`most_probable`).
        prior: of the constant and the amplitudes.

    Returns:
        Shape (32, 7) for one series, (8, 7) for several, in the order of `Amplitudes` [kWh].

    Raises:
        ChainError: shapes that differ, or a noise variance that is not positive.

    References:
        [RW] https://doi.org/10.7551/mitpress/3206.001.0001
    """
    check_series(observed, noise_variance, covariates)
    logarithms = mode.logarithms()
    curvature = _curvature(logarithms, observed, noise_variance, covariates, prior)
    # where floats cannot tell the curvature the law is that of the prior
    values, vectors = np.linalg.eigh(curvature if np.isfinite(curvature).all() else np.eye(logarithms.size))
    pairs = _PAIRS if observed.ndim == 1 else _SHARED_PAIRS
    normal = np.random.default_rng(0).normal(size=(pairs, logarithms.size))
    # the prior alone has curvature 1: the figures cannot make the law wider than it is
    moved = (np.vstack([normal, -normal]) / np.sqrt(np.maximum(values, 1 / _PRIOR_SD**2))) @ vectors.T
    return np.asarray(np.exp(logarithms + moved))


def log_likelihoods(
    observed: Floats, noise_variance: Floats, covariates: Covariates, amplitudes: Floats, prior: Prior
) -> Floats:
    r"""Return the log density of figures for each row of amplitudes, shape (n,), -inf where floats cannot tell.

    .. math:: -2 \ln p(y \mid a) = y^\top C^{-1} y - v^\top S^{-1} v + \ln |C| + \ln |S| + T \ln 2\pi, \quad
              S = I + A X^\top C^{-1} X A, \quad v = A X^\top C^{-1} y

    with X the fixed parts, A their standard deviations, and C the covariance of the others with the noise.
    Source: [RW] section 2.7, a linear model with a Gaussian prior beside a Gaussian process.

    Args:
        observed: one series y, shape (T,), NaN where none is published [kWh].
        noise_variance: variance of its noise, shape (T,), > 0 [kWh^2].
        covariates: of the same days.
        amplitudes: of the parts, shape (n, 7) [kWh].
        prior: of the constant.

    References:
        [RW] https://doi.org/10.7551/mitpress/3206.001.0001
    """
    is_seen = np.isfinite(observed)
    columns = np.vstack([np.where(is_seen, observed - prior.constant_kwh, 0.0), fixed_parts(covariates)])
    states = state_precision(moving_parts(), observed.size)
    rows, places = np.unique(amplitudes[:, _FACTORED], axis=0, return_index=True)
    numbers = (amplitudes[:, None, _FACTORED] == rows).all(-1).argmax(-1)
    products, determinants = np.empty((len(rows), len(columns), len(columns))), np.empty(len(rows))
    for number, place in enumerate(places.tolist()):
        sizes = amplitudes[place]
        precision = np.where(is_seen, 1 / (noise_variance + single_variance(covariates, sizes)), 0.0)
        products[number], determinants[number] = whitened_products(columns, precision, moving_design(sizes), states)
        determinants[number] -= np.log(precision[is_seen] / (2 * np.pi)).sum()
    fixed = fixed_amplitudes(covariates, prior, amplitudes)
    product = products[numbers]
    is_factorised = np.isfinite(product).all(axis=(1, 2))
    product = np.where(is_factorised[:, None, None], product, 0.0)
    inner = np.eye(fixed.shape[-1]) + fixed[:, :, None] * product[:, 1:, 1:] * fixed[:, None, :]
    outer = fixed * product[:, 1:, 0]
    explained = (outer * np.linalg.solve(inner, outer[..., None])[..., 0]).sum(-1)
    sign, logarithm = np.linalg.slogdet(inner)
    likelihoods = -0.5 * (product[:, 0, 0] - explained + determinants[numbers] + logarithm)
    return np.where(is_factorised & (sign > 0) & np.isfinite(likelihoods), likelihoods, -np.inf)


def _costs(stack: Floats, observed: Floats, noise_variance: Floats, covariates: Covariates, prior: Prior) -> Floats:
    """Return the negative log density of each row of log amplitudes, up to a constant."""
    amplitudes, centre = np.exp(stack), prior.amplitudes.logarithms()
    series = zip(np.atleast_2d(observed), np.atleast_2d(noise_variance), strict=True)
    likelihoods = [log_likelihoods(*figures, covariates, amplitudes, prior) for figures in series]
    return np.asarray(0.5 * ((stack - centre) ** 2).sum(-1) / _PRIOR_SD**2 - np.sum(likelihoods, axis=0))


def _curvature(
    logarithms: Floats, observed: Floats, noise_variance: Floats, covariates: Covariates, prior: Prior
) -> Floats:
    """Return the second differences of the negative log density at a mode, shape (7, 7)."""
    size = logarithms.size
    sides, (first, second) = _CURVATURE_STEP * np.eye(size), np.triu_indices(size)
    both = sides[first] + sides[second]
    moves = np.vstack([np.zeros(size), sides, -sides, both, -both])
    costs = _costs(logarithms + moves, observed, noise_variance, covariates, prior)
    ahead, back, both_ahead, both_back = np.split(costs[1:], np.cumsum([size, size, first.size]))
    single = ahead[first] + ahead[second] + back[first] + back[second]
    curvature = np.empty((size, size))
    curvature[first, second] = (both_ahead + both_back - single + 2 * costs[0]) / (2 * _CURVATURE_STEP**2)
    curvature[second, first] = curvature[first, second]
    return curvature


# --------------------------------------------------------------------------------------------------
# Level of the published figures, which the prior of a daily mean is taken in proportion to.
#
# The idea: a household that uses ten times as much varies ten times as much. The level is public: each day's is
# computed from the figures published up to it, so that no later row revises it.
#
# Example: figures around 75 kWh with little noise: four times the prior, which is for 10 kWh.
#
# Decisions:
#
# * The level is the mean of the figures weighted by precision, if it is above the prior's by more than two standard
#   errors of its noise; otherwise the prior's. So nothing but noise has no level.
# * The factor is a power of four: series of up to 20 kWh have the prior as it was measured, in winter too, and the
#   factor of a series changes in its first days and then hardly ever. The amplitudes' prior is wider than a factor of
#   two.
# * No level lowers the prior: where the mean is small, a layer of it or its changes need not be.
# --------------------------------------------------------------------------------------------------

_ERRORS: Final = 2.0


def level_scales(
    observed: Floats, noise_variance: Floats, prior: Prior, *, known_from: NDArray[np.int64] | None = None
) -> Floats:
    r"""Return the factor of the prior as of each day, shape (T,): 1 throughout if the prior does not follow the level.

    .. math:: s_t = 4^{[\log_4 (|m_t| / c)]} \text{ if } |m_t| - c > 2 e_t \text{, else } 1, \quad
              m_t = e_t^2 \sum_{i \le t} y_i / v_i, \quad e_t^{-2} = \sum_{i \le t} 1 / v_i

    with c the constant of the prior, and [.] the nearest whole number.

    Args:
        observed: published figures y, shape (T,), NaN where none is published [kWh].
        noise_variance: v, shape (T,), > 0 where a figure is [kWh^2].
        prior: of the series.
        known_from: the day from which on each day's figure is known, shape (T,); by default the day itself.

    >>> from agedp_data.smoothing.structural_model import DAILY_MEAN
    >>> level_scales(np.array([75.0, 81.0, np.nan]), np.ones(3), DAILY_MEAN).tolist()
    [4.0, 4.0, 4.0]
    >>> level_scales(np.array([75.0, -60.0]), np.full(2, 50.0**2), DAILY_MEAN).tolist()
    [1.0, 1.0]
    """
    if not prior.follows_level:
        return np.ones(observed.size)
    is_seen = np.isfinite(observed)
    known = np.arange(observed.size) if known_from is None else known_from
    order = np.argsort(known, kind="stable")
    precision = np.where(is_seen, 1 / np.where(is_seen, noise_variance, 1.0), 0.0)[order]
    added, precisions = np.cumsum(precision * np.where(is_seen, observed, 0.0)[order]), np.cumsum(precision)
    # a day knows the figures of this many days
    counts = np.searchsorted(known[order], np.arange(observed.size), side="right")
    added, precisions = np.append(0.0, added)[counts], np.append(0.0, precisions)[counts]
    divisor = np.where(precisions > 0, precisions, 1.0)
    level = np.abs(added / divisor)
    is_higher = (precisions > 0) & (level - prior.constant_kwh > _ERRORS / np.sqrt(divisor))
    powers = np.round(np.log2(np.maximum(level / prior.constant_kwh, 1.0)) / 2)
    return np.where(is_higher, 4.0**powers, 1.0)


def scaled_prior(prior: Prior, scale: float) -> Prior:
    """Return a prior with its constant, that one's standard deviation and its amplitudes times a factor."""
    amplitudes = Amplitudes(*(scale * np.exp(prior.amplitudes.logarithms())).tolist())
    constants = scale * prior.constant_kwh, scale * prior.constant_sd_kwh
    return replace(prior, constant_kwh=constants[0], constant_sd_kwh=constants[1], amplitudes=amplitudes)
