"""Published values with noise -> estimates of days, groups and cells, and how often their bands contain the truth.

From the simple to the composed: the days of one series, a total and its groups, and all cells of a release. An estimate
is computed from published values alone, so it costs no privacy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from agedp_data.arrays import Floats
from agedp_data.errors import ChainError
from agedp_data.smoothing.structural_model import (
    DAILY_MEAN,
    Amplitudes,
    Covariates,
    Estimate,
    Filtered,
    Prior,
    check_series,
    fit_amplitudes,
    kalman_filter,
    level_scales,
    scaled_prior,
    single_variance,
    smooth,
    state_design,
    state_dynamics,
)

# --------------------------------------------------------------------------------------------------
# Estimates of the true figures of days: by all published figures (archive), or by those up to the day (live).
#
# Example: noise of 1.5 kWh, calendar and weather: the archive estimate errs by 0.57 kWh, the live one by 0.65 kWh.
#
# Decisions:
#
# * The amplitudes of a live estimate are fitted anew after 28 days, then whenever the days have become more by 28 and
#   by a quarter, to what was known before, so no later row revises it. Fits every 28 days take 2.6 times as long for
#   500 days and err by 0.694 kWh instead of 0.696 kWh in ten synthetic series with noise of 1.5 kWh.
# * Figures that become known late enter from then on. Fits do not multiply with late days.
# * Leading axes are series that share amplitudes, such as groups of households.
#
# [RW] Rasmussen, Williams: Gaussian Processes for Machine Learning. MIT Press, 2006, section 2.2.
# https://doi.org/10.7551/mitpress/3206.001.0001
# --------------------------------------------------------------------------------------------------

REFIT_DAYS: Final = 28
Days = NDArray[np.int64]


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
    observed: Floats,
    noise_variance: Floats,
    covariates: Covariates,
    *,
    prior: Prior = DAILY_MEAN,
    known_from: Days | None = None,
) -> Estimate:
    r"""Return each day's true figure as the figures up to that day say it: the live estimate, never revised.

    .. math:: E[f_t \mid y_1, \dots, y_t], \quad V[f_t \mid y_1, \dots, y_t]

    Amplitudes are the prior's for the first 28 days. Afterwards they are fitted anew, to what was known the day before,
    whenever the days have become more by 28 and by a quarter.

    Source: `kalman_filter`.

    Args:
        observed: published figures y, shape (..., T), NaN where none is published [kWh].
        noise_variance: variance of their noise, shape (..., T), > 0 [kWh^2].
        covariates: of the same days.
        prior: of the constant and the amplitudes.
        known_from: the day from which on each day's figures are known, shape (T,); by default the day itself.

    Raises:
        ChainError: shapes that differ, or a noise variance that is not positive.
    """
    check_series(observed, noise_variance, covariates)
    days, mode, draws = observed.shape[-1], None, np.exp(prior.amplitudes.logarithms())[None, :]
    known = np.arange(days) if known_from is None else known_from
    mean, variance = np.empty(observed.shape), np.empty(observed.shape)
    begins = refit_days(days)
    for begin, end in zip(begins, [*begins[1:], days], strict=True):
        if begin:
            past = np.where(known[:begin] < begin, observed[..., :begin], np.nan)
            mode, draws = fit_amplitudes(
                past, noise_variance[..., :begin], covariates.over(slice(begin)), prior=prior, start=mode
            )
        figures = observed[..., :end], noise_variance[..., :end], covariates.over(slice(end))
        so_far = _as_days_become_known(figures, draws, prior, begin, known[:end])
        mean[..., begin:end], variance[..., begin:end] = so_far.mean, so_far.variance
    return Estimate(mean, variance)


def refit_days(days: int) -> list[int]:
    """Return the days before which amplitudes of live estimates are fitted, and day 0.

    >>> refit_days(250)
    [0, 28, 56, 84, 112, 140, 175, 218]
    """
    begins = [0]
    while (begin := max(begins[-1] + REFIT_DAYS, begins[-1] * 5 // 4)) < days:
        begins.append(begin)
    return begins


def _as_days_become_known(
    figures: tuple[Floats, Floats, Covariates], draws: Floats, prior: Prior, begin: int, known_from: Days
) -> Estimate:
    """Return the live estimates of the days from `begin` on.

    When a late day becomes known, the filter steps back to it.
    """
    (observed, noise_variance, covariates), number = figures, np.arange(known_from.size)
    end = known_from.size
    seen = np.where((known_from <= begin) | (known_from == number), observed, np.nan)
    filtered, design = _filter(seen, noise_variance, covariates, draws, prior)
    noise, dynamics = noise_variance[..., None, :] + single_variance(covariates, draws), state_dynamics(covariates)
    means, variances = np.empty(observed.shape), np.empty(observed.shape)
    late = np.unique(known_from[(known_from > number) & (known_from > begin) & (known_from < end)]).tolist()
    for since, until in zip([begin, *late], [*late, end], strict=True):
        span = slice(since, until)
        if since > begin:
            seen = np.where((known_from <= since) | (known_from == number), observed, np.nan)
            back = slice(int((known_from == since).argmax()), until)
            law = filtered.predicted_mean[..., back.start, :], filtered.predicted_covariance[..., back.start, :, :]
            changed = (seen[..., back] - prior.constant_kwh)[..., None, :], noise[..., back], design[..., back, :]
            again = kalman_filter(*changed, dynamics, first_law=law)
            filtered.mean[..., back], filtered.variance[..., back] = again.mean, again.variance
            filtered.predicted_mean[..., back, :] = again.predicted_mean
            filtered.predicted_covariance[..., back, :, :] = again.predicted_covariance
        parts = filtered.mean[..., span], filtered.variance[..., span]
        rows = seen[..., span], noise_variance[..., span], covariates.over(span)
        so_far = _with_single_days(*rows, draws, parts, prior)
        means[..., span], variances[..., span] = so_far.mean, so_far.variance
    return Estimate(means[..., begin:], variances[..., begin:])


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
    average = _average(means)
    spread = _average(variances) + _average((means - average[..., None, :]) ** 2)
    # amplitudes that disagree, or digits that run out: the figure itself is never worse than its noise
    is_worse = np.isfinite(observed) & ~(spread <= noise_variance)
    return Estimate(np.where(is_worse, observed, average), np.where(is_worse, noise_variance, spread))


def _average(draws: Floats) -> Floats:
    """Return averages over draws, in their order: `mean` adds those of a single day in another order than of many."""
    return np.asarray(np.add.accumulate(draws, axis=-2)[..., -1, :] / draws.shape[-2])


# --------------------------------------------------------------------------------------------------
# Estimates of a total and of the groups that it is divided into; the groups add up to the total.
#
# The idea: groups share weather and weekdays, so that the total, and each group's difference from it, are estimated
# instead of each group. For groups of equal size both are independent, in signal and in noise, and this is the exact
# joint estimate; otherwise nearly. Differences share their amplitudes up to a factor.
#
# Example: four groups of nine real households with noise of 3 kWh: an error of 1.18 kWh, by the joint model 1.17 kWh,
# by smoothing each group and reconciling 1.23 kWh; the total's intervals of 90 % hold 89 %, 90 % and 76 % of days.
#
# Decisions:
#
# * The total of a day is first estimated from its figure and from the groups' weighted sum, by precision. Smoothing
#   both and reconciling afterwards takes their errors for independent, which they are not: hence the 76 %.
# * Differences of small groups are larger. Their amplitudes are taken in proportion to sqrt(1/n_g - 1/n), the law of a
#   random sample, and their mean to the fourth root of the number of households.
# * The number of households of a group is carried forward to days without a figure. A group without one on a day on
#   which the others make up the total was withdrawn: it has no households from that day on.
# * Without a published total, the groups of a day are taken for all. Groups whose numbers are not those of the total
#   are not moved to add up.
# * Each day is reconciled by estimates of that day alone, so that later rows never revise a live estimate.
# --------------------------------------------------------------------------------------------------

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


# --------------------------------------------------------------------------------------------------
# Smoothed estimates of several cells of a release: a total, its groups, and the layers of a clamped mean.
#
# Example: layers estimated as 9.8 and 0.3 kWh with variances 0.04 and 0.01 add up to 10.1 kWh with variance 0.05.
#
# Decisions:
#
# * A layer above the first has priors of its own: a seventh of those of the mean above 30 kWh, falling with e^(-1/10
#   kWh) as the part of the use above does. In towns of 5,000 synthetic households (30 + 45 kWh) the sum errs by 0.19
#   kWh.
# * Given the estimates of the first layer, an upper layer follows them, in place of the weather: an error of 0.16 kWh.
#   What drives a household above 30 kWh drives the mean, which is published with less noise.
# * Variances of layers add. Intervals of 90 % for the sum held 95 % of days in three such towns, 89 % with 37 real
#   households; both live and archive. The expected bias in such towns, without what lies above the last clamp, is
#   below 0.02 kWh, that of a single clamp of 30 kWh is 0.3 to 0.5 kWh.
# --------------------------------------------------------------------------------------------------

Variant = Literal["archive", "live"]

_ABOVE_30_KWH: Final = 0.15
_DECAY_KWH: Final = 10.0


@dataclass(frozen=True, slots=True)
class CellFigures:
    """Published figures of a cell, each (T,): `observed` [kWh per household], NaN where none is, and their noise.

    `noise_variance` [kWh^2] and `households` are not read where no figure is, but for reconciliation of a total and its
    parts, which takes place on the days on which `households` of all of them are positive. `above_kwh` is the lower
    bound of the layer, 0 for a mean and for the first layer.
    """

    observed: Floats
    noise_variance: Floats
    households: Floats
    above_kwh: float = 0.0


def estimate_cells(
    figures: Sequence[CellFigures],
    covariates: Covariates,
    *,
    parts: tuple[int, ...] | None,
    variant: Variant,
    known_from: Days | None = None,
) -> list[Estimate]:
    r"""Return the estimates of the cells of a series, in their order; parts and their total add up.

    A total that is not published is a cell without figures.

    .. math:: \sum_g n_g \hat f_g = n \hat f \text{ on days on which } \sum_g n_g = n

    Source: `estimate_groups`.

    Args:
        figures: of each cell.
        covariates: of the same days; of an upper layer `above_first_layer`, for more accuracy.
        parts: places in `figures` of the groups; the single cell that remains is their total; None without a total.
        variant: "archive", each day by all figures, or "live", each day by those known on it.
        known_from: of live estimates, the day from which on each day's figures are known; by default the day itself.

    Raises:
        ChainError: shapes that differ, layers that differ, or parts that leave more or less than one total.
    """
    known = None
    if variant == "live":
        known = np.arange(covariates.weekday.size) if known_from is None else known_from
    if parts is None:
        return [
            estimate_series(cell.observed, cell.noise_variance, covariates, prior=_prior(cell), known_from=known)
            for cell in figures
        ]
    order = [place for place in range(len(figures)) if place not in parts] + list(parts)
    if len(order) != len(parts) + 1 or sorted(order) != list(range(len(figures))) or not parts:
        raise ChainError("parts of a total leave a single cell, the total")
    cells = [figures[place] for place in order]
    if len({(cell.above_kwh, cell.observed.shape) for cell in cells}) > 1:
        raise ChainError("a total and its parts are of one layer and of the same days")
    rows = [np.array([getattr(cell, name) for cell in cells]) for name in ("observed", "noise_variance", "households")]
    priors = _prior(cells[0]), _difference(cells[0])
    estimates = estimate_groups((rows[0], rows[1], rows[2]), covariates, priors=priors, known_from=known)
    return [estimates[place] for place in np.argsort(order).tolist()]


def above_first_layer(covariates: Covariates, first_layer: Estimate) -> Covariates:
    """Return the covariates of an upper layer: the estimate of the first one of the same days, in place of weather."""
    return replace(covariates, heating=first_layer.mean - DAILY_MEAN.constant_kwh)


def layer_sum(layers: Sequence[Estimate]) -> Estimate:
    """Return the estimate of the sum of layers: of the daily mean under the uppermost clamp.

    Raises:
        ChainError: no layers, or of different days.
    """
    if len({layer.mean.shape for layer in layers}) != 1:
        raise ChainError("layers that are added must be of the same days")
    return Estimate(
        np.sum([layer.mean for layer in layers], axis=0), np.sum([layer.variance for layer in layers], axis=0)
    )


def _prior(cell: CellFigures) -> Prior:
    """Return the prior of a daily mean, or of the part of it that lies above a clamp."""
    if not cell.above_kwh:
        return DAILY_MEAN
    scale = _scale(cell.above_kwh)
    amplitudes = replace(_scaled(DAILY_MEAN.amplitudes, scale), heating=scale)
    return Prior(2 * scale, 4 * scale, amplitudes)


def _difference(cell: CellFigures) -> Prior:
    """Return the prior of the difference of a group from the total."""
    scale = _scale(cell.above_kwh) if cell.above_kwh else 1.0
    return Prior(0.0, scale * DIFFERENCE.constant_sd_kwh, _scaled(DIFFERENCE.amplitudes, scale))


def _scale(above_kwh: float) -> float:
    """Return the size of a layer's changes in those of the whole mean."""
    return min(_ABOVE_30_KWH * math.exp((30 - above_kwh) / _DECAY_KWH), 0.5)


def _scaled(amplitudes: Amplitudes, factor: float) -> Amplitudes:
    return Amplitudes(*(factor * np.exp(amplitudes.logarithms())).tolist())
