r"""Structural model of a daily mean: level, weekday, holidays, heating, short memory, and each day's own deviation.

The published figure of a day is its true figure plus noise of known variance. The true figure is taken as

.. math:: f_t = c + \text{level}_t + \text{weekday}_t + \text{holiday}_t + \text{heating}_t + \text{short}_t
          + \text{own}_t

with independent Gaussian parts: a level that changes over weeks (Matérn 3/2, 45 days), an effect of each weekday and of
holidays, of the heating degrees of the day and of two days, a memory of four days, and a deviation of the day alone,
larger on special days. The size of each part, its amplitude, is fitted to the published figures, from a prior of
open households. Everything is post-processing: nothing but what is published enters, and nothing is lost.

Example: figures with noise of 1.5 kWh come to within 0.57 kWh with calendar and weather.

Decisions:

* The interval assumes the model. It is right on average over days, too narrow for days that neither calendar nor
  weather explain, and does not contain what a clamp cuts off.
* A constant has a prior of 10 kWh with a standard deviation of 10 kWh, which no figure of a year feels.
* Amplitudes are fitted by L-BFGS on their logarithms, with differences over a stack of models, filtered at once.
* A year of noisy figures does not settle the amplitudes. With the most probable ones alone intervals of 90 % hold 86 %
  of the model's own days. So estimates are averaged over amplitudes drawn from Laplace's approximation of their law
  (91 %). The draws are fixed numbers, so that the same figures give the same estimates.

[RW] Rasmussen, Williams: Gaussian Processes for Machine Learning. MIT Press, 2006, section 4.2.
https://doi.org/10.7551/mitpress/3206.001.0001
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from agedp_data.arrays import Floats
from agedp_data.errors import ChainError
from agedp_data.smoothing.gaussian_filter import Dynamics, Filtered, kalman_filter, smooth

LEVEL_DAYS: Final = 45.0
SHORT_DAYS: Final = 4.0
CONSTANT_KWH: Final = 10.0
_WEEKDAYS = 7
_STEP = 1e-4
_PRIOR_SD = 1.0
_REFIT_DAYS = 28
_CURVATURE_STEP = 0.05
_PAIRS = 16


@dataclass(frozen=True, slots=True)
class Covariates:
    """Public facts about T days: `weekday` 0 to 6, `holiday` and `special` flags, `heating` degrees [5 K] or None.

    Special days are those on which a day's own deviation may be larger. Without a weather table there is no heating.
    """

    weekday: NDArray[np.int64]
    holiday: NDArray[np.bool_]
    special: NDArray[np.bool_]
    heating: Floats | None = None

    def until(self, days: int) -> Covariates:
        """Return those of the first days."""
        heating = None if self.heating is None else self.heating[:days]
        return Covariates(self.weekday[:days], self.holiday[:days], self.special[:days], heating)


@dataclass(frozen=True, slots=True)
class Amplitudes:
    """Standard deviations of the parts [kWh per household], of heating per 5 K."""

    level: float = 1.55
    weekday: float = 0.22
    holiday: float = 0.30
    heating: float = 0.73
    short: float = 0.69
    own: float = 0.32
    special: float = 0.8

    def logarithms(self) -> Floats:
        """Return the natural logarithms, in the order of the fields, shape (7,)."""
        return np.log([self.level, self.weekday, self.holiday, self.heating, self.short, self.own, self.special])


PRIOR: Final = Amplitudes()
"""Amplitudes of open households, the prior of every fit (log-normal, standard deviation 1)."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Estimated true figures of T days: `mean` [kWh] and `variance` [kWh^2], each (T,)."""

    mean: Floats
    variance: Floats


def most_probable(
    observed: Floats,
    noise_variance: Floats,
    covariates: Covariates,
    *,
    prior: Amplitudes = PRIOR,
    start: Amplitudes | None = None,
) -> Amplitudes:
    r"""Return the most probable amplitudes given published figures.

    .. math:: \max_a \; \ln p(y \mid a) - \tfrac12 \sum_j (\ln a_j - \ln a_j^0)^2

    Source: maximum a posteriori estimate; the likelihood is the filter's (`kalman_filter`).

    Args:
        observed: published figures y, shape (T,), NaN where none is published [kWh].
        noise_variance: variance of their noise, shape (T,), > 0 [kWh^2].
        covariates: of the same days.
        prior: centre of the prior.
        start: where the search begins, by default at the prior.

    Raises:
        ChainError: shapes that differ, or a noise variance that is not positive.
    """
    _check(observed, noise_variance, covariates)
    centre = prior.logarithms()
    steps = np.vstack([np.zeros(centre.size), _STEP * np.eye(centre.size)])

    def cost(logarithms: Floats) -> tuple[float, Floats]:
        costs = _costs(logarithms + steps, centre, observed, noise_variance, covariates)
        return float(costs[0]), (costs[1:] - costs[0]) / _STEP

    bounds = [(mid - 5, mid + 5) for mid in centre.tolist()]
    begin = centre if start is None else np.clip(start.logarithms(), centre - 5, centre + 5)
    found = optimize.minimize(cost, begin, jac=True, method="L-BFGS-B", bounds=bounds, options={"ftol": 1e-7})
    return Amplitudes(*np.exp(found.x).tolist())


def draw_amplitudes(
    observed: Floats, noise_variance: Floats, covariates: Covariates, mode: Amplitudes, *, prior: Amplitudes = PRIOR
) -> Floats:
    r"""Return amplitudes that stand for their law given published figures: 32 fixed draws of Laplace's approximation.

    .. math:: \ln a \sim N(\ln \hat a, \; (-\nabla^2 \ln p(a \mid y))^{-1})

    Source: [RW] section 3.4, for the amplitudes.

    Args:
        observed: published figures y, shape (T,), NaN where none is published [kWh].
        noise_variance: variance of their noise, shape (T,), > 0 [kWh^2].
        covariates: of the same days.
        mode: the most probable amplitudes (`most_probable`).
        prior: centre of the prior.

    Returns:
        Shape (32, 7), in the order of `Amplitudes` [kWh].

    Raises:
        ChainError: shapes that differ, or a noise variance that is not positive.

    References:
        [RW] https://doi.org/10.7551/mitpress/3206.001.0001
    """
    found = mode.logarithms()
    curvature = _curvature(found, prior.logarithms(), observed, noise_variance, covariates)
    values, vectors = np.linalg.eigh(curvature)
    normal = np.random.default_rng(0).normal(size=(_PAIRS, found.size))
    # the prior alone has curvature 1: the figures cannot make the law wider than it is
    moved = (np.vstack([normal, -normal]) / np.sqrt(np.maximum(values, 1 / _PRIOR_SD**2))) @ vectors.T
    return np.asarray(np.exp(found + moved))


def _costs(stack: Floats, centre: Floats, observed: Floats, noise_variance: Floats, covariates: Covariates) -> Floats:
    """Return the negative log density of each row of log amplitudes, up to a constant."""
    filtered = _filter(observed, noise_variance, covariates, np.exp(stack))
    return np.asarray(0.5 * ((stack - centre) ** 2).sum(-1) / _PRIOR_SD**2 - filtered.log_likelihood)


def _curvature(
    found: Floats, centre: Floats, observed: Floats, noise_variance: Floats, covariates: Covariates
) -> Floats:
    """Return the second differences of the negative log density at `found`, shape (7, 7)."""
    sides = _CURVATURE_STEP * np.eye(found.size)
    first, second = np.triu_indices(found.size)
    moves = np.vstack(
        [np.zeros(found.size), sides, -sides, sides[first] + sides[second], -sides[first] - sides[second]]
    )
    costs = _costs(found + moves, centre, observed, noise_variance, covariates)
    ahead, behind, both_ahead, both_behind = np.split(costs[1:], np.cumsum([found.size, found.size, first.size]))
    alone = ahead[first] + ahead[second] + behind[first] + behind[second]
    curvature = np.empty((found.size, found.size))
    curvature[first, second] = (both_ahead + both_behind - alone + 2 * costs[0]) / (2 * _CURVATURE_STEP**2)
    curvature[second, first] = curvature[first, second]
    return curvature


def estimate_all(observed: Floats, noise_variance: Floats, covariates: Covariates, amplitudes: Floats) -> Estimate:
    r"""Return each day's true figure as all published figures say it: the archive estimate.

    .. math:: E[f_t \mid y_1, \dots, y_T], \quad V[f_t \mid y_1, \dots, y_T]

    Source: conditional law of Gaussian vectors, [RW] eqs. 2.25 and 2.26, by `smooth`.

    Args:
        observed: published figures y, shape (T,), NaN where none is published [kWh].
        noise_variance: variance of their noise, shape (T,), > 0 [kWh^2].
        covariates: of the same days.
        amplitudes: of the parts, shape (n, 7); estimates are averaged over them.

    Raises:
        ChainError: shapes that differ, or a noise variance that is not positive.

    References:
        [RW] https://doi.org/10.7551/mitpress/3206.001.0001
    """
    _check(observed, noise_variance, covariates)
    design, own = _design(covariates, amplitudes), _own_variance(covariates, amplitudes)
    mean, variance = smooth(_filter(observed, noise_variance, covariates, amplitudes), design, _dynamics(covariates))
    return _with_own_part(observed, noise_variance, own, mean, variance)


def estimate_so_far(observed: Floats, noise_variance: Floats, covariates: Covariates) -> Estimate:
    r"""Return each day's true figure as the figures up to that day say it: the live estimate, never revised.

    .. math:: E[f_t \mid y_1, \dots, y_t], \quad V[f_t \mid y_1, \dots, y_t]

    Amplitudes are the prior's for the first 28 days. Afterwards they are fitted anew every 28 days, to the days before.

    Source: `kalman_filter`.

    Args:
        observed: published figures y, shape (T,), NaN where none is published [kWh].
        noise_variance: variance of their noise, shape (T,), > 0 [kWh^2].
        covariates: of the same days.

    Raises:
        ChainError: shapes that differ, or a noise variance that is not positive.
    """
    _check(observed, noise_variance, covariates)
    days = observed.size
    mean, variance, mode, amplitudes = np.empty(days), np.empty(days), PRIOR, np.exp(PRIOR.logarithms())[None, :]
    for begin in range(0, days, _REFIT_DAYS):
        end = min(begin + _REFIT_DAYS, days)
        if begin:
            past = observed[:begin], noise_variance[:begin], covariates.until(begin)
            mode = most_probable(*past, start=mode)
            amplitudes = draw_amplitudes(*past, mode)
        known = covariates.until(end)
        own = _own_variance(known, amplitudes)
        filtered = _filter(observed[:end], noise_variance[:end], known, amplitudes)
        so_far = _with_own_part(observed[:end], noise_variance[:end], own, filtered.mean, filtered.variance)
        mean[begin:end], variance[begin:end] = so_far.mean[begin:], so_far.variance[begin:]
    return Estimate(mean, variance)


def _filter(observed: Floats, noise_variance: Floats, covariates: Covariates, amplitudes: Floats) -> Filtered:
    """Filter for each row of amplitudes, shape (..., 7)."""
    noise = noise_variance + _own_variance(covariates, amplitudes)
    return kalman_filter(observed - CONSTANT_KWH, noise, _design(covariates, amplitudes), _dynamics(covariates))


def _dynamics(covariates: Covariates) -> Dynamics:
    """Return the motion of the unit parts: level and its slope, short memory, and effects that never move."""
    rate = math.sqrt(3) / LEVEL_DAYS
    size = 3 + 1 + _WEEKDAYS + 1 + (0 if covariates.heating is None else 2)
    transition, start = np.eye(size), np.eye(size)
    transition[:2, :2] = math.exp(-rate) * np.array([[1 + rate, 1.0], [-(rate**2), 1 - rate]])
    transition[2, 2] = math.exp(-1 / SHORT_DAYS)
    start[1, 1] = rate**2
    moved = transition[:3, :3] @ start[:3, :3] @ transition[:3, :3].T
    innovation = np.zeros((size, size))
    innovation[:3, :3] = start[:3, :3] - moved
    return Dynamics(transition, innovation, start)


def _design(covariates: Covariates, amplitudes: Floats) -> Floats:
    """Return the part of each state in a day's figure, shape (..., T, k)."""
    level, weekday, holiday, heating, short = np.moveaxis(amplitudes, -1, 0)[:5]
    days = covariates.weekday.size
    columns = [(level, np.ones(days)), (level, np.zeros(days)), (short, np.ones(days))]
    columns += [(np.ones_like(level), np.full(days, CONSTANT_KWH))]
    columns += [(weekday, (covariates.weekday == number).astype(float)) for number in range(_WEEKDAYS)]
    columns += [(holiday, covariates.holiday.astype(float))]
    if covariates.heating is not None:
        two_days = (covariates.heating + np.append(covariates.heating[:1], covariates.heating[:-1])) / 2
        columns += [(heating, covariates.heating), (heating, two_days)]
    return np.stack([np.asarray(size)[..., None] * column for size, column in columns], axis=-1)


def _own_variance(covariates: Covariates, amplitudes: Floats) -> Floats:
    own, special = amplitudes[..., 5, None] ** 2, amplitudes[..., 6, None] ** 2
    return np.where(covariates.special, special, own)


def _with_own_part(observed: Floats, noise_variance: Floats, own: Floats, mean: Floats, variance: Floats) -> Estimate:
    """Return the law of the true figure, averaged over models: its other parts, and the own part of the residual.

    `mean` is of the other parts less the mean of the constant, shape (n, T).
    """
    is_seen = np.isfinite(observed)
    weight = np.where(is_seen, own / (own + noise_variance), 0.0)
    residual = np.where(is_seen, observed - CONSTANT_KWH - mean, 0.0)
    rest = np.where(is_seen, weight * noise_variance, own)
    means, variances = CONSTANT_KWH + mean + weight * residual, (1 - weight) ** 2 * variance + rest
    return Estimate(means.mean(axis=0), variances.mean(axis=0) + means.var(axis=0))


def _check(observed: Floats, noise_variance: Floats, covariates: Covariates) -> None:
    sizes = {observed.shape, noise_variance.shape, covariates.weekday.shape, covariates.special.shape}
    if len(sizes) > 1 or observed.ndim != 1:
        raise ChainError("figures, noise and covariates of a smoothed series must be of the same days")
    if not (noise_variance > 0).all():
        raise ChainError("the noise of a published figure has a variance above 0")
