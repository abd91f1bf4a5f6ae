r"""Amplitudes of the structural model from published figures: the most probable ones, and draws of their law.

Example: a year of figures with noise of 1.5 kWh settles the level to a factor of 1.4, the single day to a factor of 2.

Decisions:

* Amplitudes are fitted by BFGS on their logarithms. Differences cost five likelihoods, since the amplitudes of parts
  that never move share one factorisation.
* A year of noisy figures does not settle the amplitudes. With the most probable ones alone intervals of 90 % hold 86 %
  of the model's own days. So estimates are averaged over amplitudes drawn from Laplace's approximation of their law
  (91 %). The draws are fixed numbers, so that the same figures give the same estimates.
* Several series may share amplitudes (groups of households). Their figures settle them better, and 8 draws suffice.

[RW] Rasmussen, Williams: Gaussian Processes for Machine Learning. MIT Press, 2006, section 3.4.
https://doi.org/10.7551/mitpress/3206.001.0001
"""

from __future__ import annotations

import numpy as np
from scipy import optimize

from agedp_data.arrays import Floats
from agedp_data.smoothing.banded_likelihood import state_precision, whitened_products
from agedp_data.smoothing.structural_model import (
    DAILY_MEAN,
    Amplitudes,
    Covariates,
    Prior,
    check_series,
    fixed_amplitudes,
    fixed_parts,
    moving_design,
    moving_parts,
    single_variance,
)

_STEP = 1e-4
_GRADIENT = 0.01
_PRIOR_SD = 1.0
_CURVATURE_STEP = 0.05
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
        ChainError: shapes that differ, or a noise variance that is not positive.
    """
    check_series(observed, noise_variance, covariates)
    centre = prior.amplitudes.logarithms()
    steps = np.vstack([np.zeros(centre.size), _STEP * np.eye(centre.size)])

    def cost(logarithms: Floats) -> tuple[float, Floats]:
        costs = _costs(logarithms + steps, observed, noise_variance, covariates, prior)
        return float(costs[0]), (costs[1:] - costs[0]) / _STEP

    begin = centre if start is None else start.logarithms()
    result = optimize.minimize(cost, begin, jac=True, method="BFGS", options={"gtol": _GRADIENT})
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
    values, vectors = np.linalg.eigh(_curvature(logarithms, observed, noise_variance, covariates, prior))
    pairs = _PAIRS if observed.ndim == 1 else _SHARED_PAIRS
    normal = np.random.default_rng(0).normal(size=(pairs, logarithms.size))
    # the prior alone has curvature 1: the figures cannot make the law wider than it is
    moved = (np.vstack([normal, -normal]) / np.sqrt(np.maximum(values, 1 / _PRIOR_SD**2))) @ vectors.T
    return np.asarray(np.exp(logarithms + moved))


def log_likelihoods(
    observed: Floats, noise_variance: Floats, covariates: Covariates, amplitudes: Floats, prior: Prior
) -> Floats:
    r"""Return the log density of figures for each row of amplitudes, shape (n,).

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
    inner = np.eye(fixed.shape[-1]) + fixed[:, :, None] * product[:, 1:, 1:] * fixed[:, None, :]
    outer = fixed * product[:, 1:, 0]
    explained = (outer * np.linalg.solve(inner, outer[..., None])[..., 0]).sum(-1)
    spread = determinants[numbers] + np.linalg.slogdet(inner)[1]
    return np.asarray(-0.5 * (product[:, 0, 0] - explained + spread))


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
