r"""Estimates of a total and of the groups that it is divided into; the groups add up to the total.

The idea: groups share weather and weekdays, so that the total, and each group's difference from it, are estimated
instead of each group. For groups of equal size both are independent, in signal and in noise, and this is the exact
joint estimate; otherwise nearly. Differences share their amplitudes up to a factor.

Example: four groups of nine real households with noise of 3 kWh: an error of 1.18 kWh, by the joint model 1.17 kWh, by
smoothing each group and reconciling 1.23 kWh; the total's intervals of 90 % hold 89 %, 90 % and 76 % of days.

Decisions:

* The total of a day is first estimated from its figure and from the groups' weighted sum, by precision. Smoothing both
  and reconciling afterwards takes their errors for independent, which they are not: hence the 76 %.
* Differences of small groups are larger. Their amplitudes are taken in proportion to sqrt(1/n_g - 1/n), the law of a
  random sample, and their mean to the fourth root of the number of households.
* The number of households of a group is carried forward to days without a figure. A group without one on a day on
  which the others make up the total was withdrawn: it has no households from that day on.
* Without a published total, the groups of a day are taken for all. Groups whose numbers are not those of the total are
  not moved to add up.
* Each day is reconciled by estimates of that day alone, so that later rows never revise a live estimate.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from agedp_data.arrays import Floats
from agedp_data.smoothing.amplitude_fit import fit_amplitudes
from agedp_data.smoothing.daily_estimates import Days, estimate_all, estimate_so_far
from agedp_data.smoothing.level_scale import level_scales, scaled_prior
from agedp_data.smoothing.structural_model import Amplitudes, Covariates, Estimate, Prior

_LEAST_NOISE: Final = 1e-9
_SAMPLE_SIZE: Final = 9
"""Households of the groups that the prior of differences is taken from."""
DIFFERENCE: Final = Prior(0.0, 5.0, Amplitudes(1.0, 0.33, 0.33, 0.3, 0.8, 0.65, 0.9))
"""Differences of groups of nine open households from the mean of four such groups; of heating, by analogy."""


def estimate_series(
    observed: Floats,
    noise_variance: Floats,
    covariates: Covariates,
    *,
    prior: Prior,
    known_from: Days | None,
    scales: Floats | None = None,
) -> Estimate:
    """Return the archive or the live estimate of a series, or of several that share amplitudes.

    Args:
        observed: published figures, shape (T,) or (s, T), NaN where none is published [kWh].
        noise_variance: variance of their noise, of the same shape; not read where no figure is [kWh^2].
        covariates: of the same days.
        prior: of the constant and the amplitudes.
        known_from: of live estimates, the day from which on each day's figures are known, shape (T,); None: archive.
        scales: factor of the prior as of each day, shape (T,), by default that of the series' own level.

    Raises:
        ChainError: shapes that differ, or a noise variance that is not positive.
    """
    noise = np.where(np.isfinite(observed), noise_variance, 1.0)
    factors = level_scales(observed, noise, prior, known_from=known_from) if scales is None else scales
    if known_from is None:
        prior = scaled_prior(prior, float(factors[-1]))
        mode, draws = fit_amplitudes(observed, noise, covariates, prior=prior)
        return replace(estimate_all(observed, noise, covariates, draws, prior=prior), amplitudes=mode)
    mean, variance = np.empty(observed.shape), np.empty(observed.shape)
    for factor in np.unique(factors).tolist():
        live = estimate_so_far(observed, noise, covariates, prior=scaled_prior(prior, factor), known_from=known_from)
        mean[..., factors == factor] = live.mean[..., factors == factor]
        variance[..., factors == factor] = live.variance[..., factors == factor]
    return Estimate(mean, variance)


def estimate_groups(
    cells: tuple[Floats, Floats, Floats],
    covariates: Covariates,
    *,
    priors: tuple[Prior, Prior],
    known_from: Days | None,
) -> list[Estimate]:
    r"""Return the estimates of a total and of its groups; their weighted mean is the total.

    With y the figures, v their variances, w_g = n_g / n, s = \sum w_g y_g and S its variance: the day's total \hat y
    by precision from y_0 and s, with variance \hat v, and differences z_g from it, after least squares,

    .. math:: z_g = y_g - c_g s + (c_g - 1) \hat y, \quad c_g = w_g v_g / S, \quad
              V[z_g] = v_g - c_g^2 S + (c_g - 1)^2 \hat v, \quad
              \hat f_g = \hat f + \hat d_g - \frac{w_g V_g}{\sum_h w_h^2 V_h} \sum_h w_h \hat d_h

    with \hat f, \hat d_g the estimates from \hat y, z_g, and V_g the variance of the latter. On a day without all of
    the groups c_g = 0 and s is not used; without \hat y on a day, \hat f takes its place.
    Source: generalised least squares under a linear constraint.

    Args:
        cells: figures, noise variances and households of the total, first, and of its groups, each (1 + G, T).
        covariates: of the same days.
        priors: of the total, and of a group's difference from it.
        known_from: of live estimates, the day from which on each day's figures are known, shape (T,); None: archive.

    Raises:
        ChainError: shapes that differ, or a noise variance that is not positive.
    """
    (observed, noise, households), (prior, difference) = cells, priors
    is_known = np.full(observed.shape[-1], True) if known_from is None else known_from <= np.arange(known_from.size)
    own, counts = _households(households, is_known)
    day = _fuse(observed, noise, _weights(own))
    levels = level_scales(day.total, day.total_variance, prior, known_from=known_from)
    total = estimate_series(
        day.total, day.total_variance, covariates, prior=prior, known_from=known_from, scales=levels
    )
    weights = _weights(counts)
    is_fused, scale = np.isfinite(day.total), _scales(counts, weights)
    centre = np.where(is_fused, day.total, total.mean)
    spread = np.where(is_fused, day.total_variance, total.variance)
    figures = observed[1:] - day.correction * day.added + (day.correction - 1) * centre
    variance = np.where(np.isfinite(figures), noise[1:], 1.0)
    residual = variance - day.correction**2 * day.added_variance + (day.correction - 1) ** 2 * spread
    differences = estimate_series(
        figures / scale,
        np.maximum(residual, _LEAST_NOISE * variance) / scale**2,
        covariates,
        prior=difference,
        known_from=known_from,
        scales=levels,
    )
    rest = differences.variance * scale**2
    means = total.mean + _balanced(differences.mean * scale, rest, weights)
    return [total, *[Estimate(*rows) for rows in zip(means, total.variance + rest, strict=True)]]


@dataclass(frozen=True, slots=True)
class _FusedFigures:
    """What the figures of each day say about the total (T,), NaN where nothing, and about the groups' sum (T,).

    `correction` c_g (G, T) is 0 on days without all groups.
    """

    total: Floats
    total_variance: Floats
    added: Floats
    added_variance: Floats
    correction: Floats


def _fuse(observed: Floats, noise: Floats, weights: Floats) -> _FusedFigures:
    is_seen = np.isfinite(observed)
    figures, variances = np.where(is_seen, observed, 0.0), np.where(is_seen, noise, 1.0)
    is_summed = (is_seen[1:] | (weights == 0)).all(axis=0) & (weights > 0).any(axis=0)
    used = np.where(is_summed, weights, 0.0)
    added, added_variance = _sum(used * figures[1:]), _sum(used**2 * variances[1:])
    divisor = np.where(is_summed, added_variance, 1.0)
    measured, summed = is_seen[0] / variances[0], is_summed / divisor
    both = measured + summed
    variance = 1 / np.where(both > 0, both, 1.0)
    total = np.where(both > 0, variance * (measured * figures[0] + summed * added), np.nan)
    return _FusedFigures(total, variance, added, added_variance, used * variances[1:] / divisor)


def _households(households: Floats, is_known: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Return numbers of households by their own day, and as known on that day.

    On days without a number it is that of the last day that was known in time, 0 before the first.
    """
    is_counted = np.isfinite(households) & (households > 0)
    numbers = np.where(is_counted, households, 0.0)
    totals = _carried(numbers[:1], is_counted[:1] & is_known)[0]
    totals = np.where(is_counted[0], numbers[0], totals)
    is_all = is_counted[1:].any(axis=0) & ((totals == 0) | (np.abs(totals - _sum(numbers[1:])) < 0.5))
    is_counted = np.vstack([is_counted[:1], is_counted[1:] | is_all])
    known = _carried(numbers, is_counted & is_known)
    return np.where(is_counted, numbers, known), known


def _carried(numbers: Floats, is_counted: NDArray[np.bool_]) -> Floats:
    last = np.maximum.accumulate(np.where(is_counted, np.arange(numbers.shape[-1]), -1), axis=-1)
    return np.where(last >= 0, np.take_along_axis(numbers, np.maximum(last, 0), axis=-1), 0.0)


def _weights(counts: Floats) -> Floats:
    """Return the weights of the groups in the total, shape (G, T), 0 on days on which they do not add up to it."""
    added = _sum(counts[1:])
    is_complete = (added > 0) & ((counts[0] == 0) | (np.abs(counts[0] - added) < 0.5))
    return np.where(is_complete, counts[1:], 0.0) / np.where(is_complete, added, 1.0)


def _scales(counts: Floats, weights: Floats) -> Floats:
    """Return the sizes of the groups' differences, shape (G, T): 1 until each has added up, by its households then."""
    is_added, scale = weights > 0, np.ones(weights.shape)
    if is_added.any(axis=1).all() and len(weights) > 1:
        days = is_added.argmax(axis=1)
        number = counts[1:][np.arange(len(days)), days]
        sampled = np.log(1 / number - 1 / number.sum()) / 2
        size = np.log(_SAMPLE_SIZE / number).mean() / 4
        scale[:, int(days.max()) :] = np.exp(sampled - sampled.mean() + min(size, 0.0))[:, None]
    return scale


def _balanced(mean: Floats, variance: Floats, weights: Floats) -> Floats:
    """Return differences that cancel in the total.

    Their variances stay: those of groups of equal size cancel already, since their errors have a sum of zero.
    """
    spread = _sum(weights**2 * variance)
    gain = weights * variance / np.where(spread > 0, spread, 1.0)
    return np.asarray(mean - gain * _sum(weights * mean))


def _sum(groups: Floats) -> Floats:
    """Return the sum over groups, in their order: `sum` adds a single day in another order than the first of many."""
    return np.asarray(np.add.accumulate(groups, axis=0)[-1])
