"""Tests of the noise in an audit: its law, its scale, where it lies, and whether it is drawn anew each time.

The idea: the audit computes the exact values of its synthetic households itself, so it knows every residual: published
value minus exact value. Under the promise the residuals are independent discrete Laplace draws of the recorded scales.

Example: with equal noise on successive days all 60 of 60 pairs are equal, where 0.00015 equal pairs are expected.

Decisions:

* Every p-value is an exact tail or a proven bound of it (`noise_tests`), valid for any number of draws.
* A pair of draws is compared in three ways. Equality finds copies, even of few draws. Equal signs find copies of
  another scale. Sizes on the same side of the median find noise that is mirrored.
* Pairs are disjoint, so that their results are independent.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq, minimize_scalar
from scipy.stats import binom, norm

from agedp_data.arrays import Floats, Whole

# --------------------------------------------------------------------------------------------------
# The discrete Laplace law of a recorded noise scale: tails, quantiles, equal draws, expected signs.
#
# The idea: the noise of an audited release is known, because the audit knows the exact values of its synthetic
# households. Every test compares it with the law that the ledger records,
#
# .. math:: P(X = k) = \frac{1 - q}{1 + q} q^{|k|}, \quad q = e^{-1/\mathrm{scale}}, \quad k \in \mathbb{Z}
#    \quad \text{[GRS]}
#
# Example: at a scale of 100,000 Wh two independent draws are equal with probability 2.5e-6.
#
# Decisions:
#
# * Closed forms of the discrete law, no continuous approximation: counts may have a scale below 1.
#
# [GRS] Ghosh, Roughgarden, Sundararajan: Universally Utility-Maximizing Privacy Mechanisms. STOC 2009.
# https://doi.org/10.1145/1536414.1536464
# --------------------------------------------------------------------------------------------------


def tail_probability(scale: ArrayLike, width: ArrayLike) -> Floats:
    r"""Return the probability that noise is larger than a width.

    .. math:: P(|X| > w) = \frac{2 q^{w+1}}{1 + q}, \quad w \ge 0

    Source: tail of the law of [GRS].

    Args:
        scale: noise scale, shape (...), > 0 [any unit].
        width: shape (...), integers; below 0 the probability is 1 [unit of `scale`].

    Returns:
        Shape (...) [-].

    References:
        [GRS] Ghosh, Roughgarden, Sundararajan: Universally Utility-Maximizing Privacy Mechanisms. STOC 2009.
        https://doi.org/10.1145/1536414.1536464

    >>> tail_probability(1.0, [-1, 0, 1]).round(3).tolist()  # q = 1/e: 1 - .462, and 2 q^2/(1 + q)
    [1.0, 0.538, 0.198]
    """
    rate, widths = 1 / np.asarray(scale, np.float64), np.asarray(width, np.float64)
    return np.asarray(np.where(widths < 0, 1.0, 2 * np.exp(-rate * (widths + 1)) / (1 + np.exp(-rate))))


def noise_width(scale: ArrayLike, tail: float) -> Floats:
    r"""Return the smallest width that noise exceeds with at most a given probability.

    .. math:: w = \min \{ w \ge 0 : P(|X| > w) \le \mathrm{tail} \}

    Source: inverse of `tail_probability`.

    Args:
        scale: noise scale, shape (...), > 0 [any unit].
        tail: probability, in (0, 1) [-].

    Returns:
        Shape (...), integers as floats [unit of `scale`].

    >>> noise_width([1.0, 100_000.0], 0.5).tolist()  # about ln 2 * 100,000
    [1.0, 69315.0]
    """
    scales = np.asarray(scale, np.float64)
    width = np.ceil(-scales * np.log(tail * (1 + np.exp(-1 / scales)) / 2) - 1)
    return np.asarray(np.maximum(0.0, np.where(tail_probability(scales, width) > tail, width + 1, width)))


def equality_probability(scale: ArrayLike, second_scale: ArrayLike) -> Floats:
    r"""Return the probability that two independent draws are equal.

    .. math:: P(X = Y) = \frac{(1 - q)(1 - r)}{(1 + q)(1 + r)} \cdot \frac{1 + q r}{1 - q r}

    Source: sum of the product of two laws of [GRS], with q and r of the two scales.

    Args:
        scale: noise scale of the first draw, shape (...), > 0 [any unit].
        second_scale: noise scale of the second draw, shape (...), > 0 [unit of `scale`].

    Returns:
        Shape (...) [-].

    References:
        [GRS] Ghosh, Roughgarden, Sundararajan: Universally Utility-Maximizing Privacy Mechanisms. STOC 2009.
        https://doi.org/10.1145/1536414.1536464

    >>> equality_probability(100_000.0, 100_000.0).round(9).item()  # 1/(4 scale)
    2.5e-06
    """
    rate, second_rate = 1 / np.asarray(scale, np.float64), 1 / np.asarray(second_scale, np.float64)
    return np.asarray(np.tanh(rate / 2) * np.tanh(second_rate / 2) / np.tanh((rate + second_rate) / 2))


def expected_sign(scale: ArrayLike, shift: ArrayLike) -> Floats:
    r"""Return the expected sign of noise around a shifted value.

    .. math:: E \, \mathrm{sign}(X + m) = \mathrm{sign}(m) \, (1 - q^{|m|})

    Source: distribution function of the law of [GRS].

    Args:
        scale: noise scale, shape (...), > 0 [any unit].
        shift: shift m, shape (...), integers [unit of `scale`].

    Returns:
        Shape (...), from -1 to 1 [-].

    References:
        [GRS] Ghosh, Roughgarden, Sundararajan: Universally Utility-Maximizing Privacy Mechanisms. STOC 2009.
        https://doi.org/10.1145/1536414.1536464

    >>> expected_sign(1.0, [-1, 0, 2]).round(3).tolist()  # 1 - 1/e and 1 - 1/e^2
    [-0.632, 0.0, 0.865]
    """
    shifts = np.asarray(shift, np.float64)
    return np.asarray(-np.sign(shifts) * np.expm1(-np.abs(shifts) / np.asarray(scale, np.float64)))


def nonzero_probability(scale: ArrayLike, shift: ArrayLike = 0) -> Floats:
    r"""Return the probability that noise around a shifted value differs from 0.

    .. math:: P(X + m \ne 0) = 1 - \frac{1 - q}{1 + q} q^{|m|}

    Source: the law of [GRS].

    Args:
        scale: noise scale, shape (...), > 0 [any unit].
        shift: shift m, shape (...), integers [unit of `scale`].

    Returns:
        Shape (...) [-].

    References:
        [GRS] Ghosh, Roughgarden, Sundararajan: Universally Utility-Maximizing Privacy Mechanisms. STOC 2009.
        https://doi.org/10.1145/1536414.1536464

    >>> nonzero_probability(1.0).round(3).item()  # 1 - (1 - 1/e)/(1 + 1/e)
    0.538
    """
    rate = 1 / np.asarray(scale, np.float64)
    return np.asarray(1 - np.tanh(rate / 2) * np.exp(-rate * np.abs(np.asarray(shift, np.float64))))


def size_log_moment(scale: ArrayLike, rate: ArrayLike) -> Floats:
    r"""Return the logarithm of the moment generating function of the size of noise.

    .. math:: \ln E \, e^{\theta |X|} = \ln \frac{(1 - q)(1 + q z)}{(1 + q)(1 - q z)}, \quad z = e^\theta, \quad q z < 1

    Source: geometric series over the law of [GRS].

    Args:
        scale: noise scale, shape (...), > 0 [any unit].
        rate: theta, shape (...), below 1/scale [1/unit of `scale`].

    Returns:
        Shape (...) [-].

    References:
        [GRS] Ghosh, Roughgarden, Sundararajan: Universally Utility-Maximizing Privacy Mechanisms. STOC 2009.
        https://doi.org/10.1145/1536414.1536464

    >>> size_log_moment(2.0, [0.0, -0.1]).round(3).tolist()
    [0.0, -0.173]
    """
    decay = 1 / np.asarray(scale, np.float64)
    return np.asarray(np.log(np.tanh(decay / 2)) - np.log(np.tanh((decay - np.asarray(rate, np.float64)) / 2)))


def size_moments(scale: ArrayLike) -> tuple[Floats, Floats]:
    r"""Return mean and variance of the size of noise.

    .. math:: E|X| = \frac{2 q}{1 - q^2} = \frac{1}{\sinh(1/\mathrm{scale})}, \quad
       \mathrm{Var}|X| = \frac{2 q}{(1 - q)^2} - (E|X|)^2

    Source: moments of the law of [GRS].

    Args:
        scale: noise scale, shape (...), > 0 [any unit].

    Returns:
        Mean [unit of `scale`] and variance [its square], shape (...).

    References:
        [GRS] Ghosh, Roughgarden, Sundararajan: Universally Utility-Maximizing Privacy Mechanisms. STOC 2009.
        https://doi.org/10.1145/1536414.1536464

    >>> [moment.round(3).item() for moment in size_moments(1.0)]
    [0.851, 1.117]
    """
    decay = 1 / np.asarray(scale, np.float64)
    mean = 2 * np.exp(-decay) / -np.expm1(-2 * decay)
    return np.asarray(mean), np.asarray(2 * np.exp(-decay) / np.expm1(-decay) ** 2 - mean**2)


# --------------------------------------------------------------------------------------------------
# Bounds of tail probabilities that hold for every number of trials: the p-values of the tests of an audit.
#
# The idea: an alarm forbids every release, so a p-value of 1e-8 must be one. Normal approximations are wrong by
# factors so far out. Each function returns an exact tail, or a proven upper bound of it:
#
# * counts: the binomial tail, exact for equal probabilities and an upper bound for different ones [Ho];
# * weighted sums of signs: 3.178 times the normal tail [BD];
# * sums of the sizes of noise: the exponential moment [C].
#
# Example: 60 of 60 equal signs have a p-value of 2^-60.
#
# [Ho] Hoeffding: On the Distribution of the Number of Successes in Independent Trials. Annals of Mathematical
# Statistics 27, 1956, Theorem 4. [BD] Bentkus, Dzindzalieta: A Tight Gaussian Bound for Weighted Sums of Rademacher
# Random Variables. Bernoulli 21, 2015. https://doi.org/10.3150/14-BEJ603 [C] Chernoff: A Measure of Asymptotic
# Efficiency for Tests of a Hypothesis Based on the Sum of Observations. Annals of Mathematical Statistics 23, 1952.
# --------------------------------------------------------------------------------------------------

_SIGN_FACTOR: Final = 1 / (4 * float(norm.sf(math.sqrt(2))))


def count_tails(count: int, trials: int, probability: float) -> tuple[float, float]:
    r"""Return bounds of the probabilities of at most, and of at least, this number of successes.

    .. math:: P(S \le k) \le P\bigl( \mathrm{Bin}(n, \bar p) \le k \bigr), \; k \le n \bar p - 1, \qquad
       P(S \ge k) \le P\bigl( \mathrm{Bin}(n, \bar p) \ge k \bigr), \; k \ge n \bar p + 1

    Nearer to the mean the bound is 1. Source: [Ho] Theorem 4; equality for equal probabilities.

    Args:
        count: number k of successes.
        trials: number n of independent trials.
        probability: mean of their probabilities of success [-].

    Returns:
        Two bounds [-].

    >>> [round(p, 4) for p in count_tails(0, 10, 0.5)]
    [0.001, 1.0]
    """
    mean = trials * probability
    low = float(binom.cdf(count, trials, probability)) if count <= mean - 1 else 1.0
    high = float(binom.sf(count - 1, trials, probability)) if count >= mean + 1 else 1.0
    return low, high


def sign_sum_tail(total: float, norm_of_weights: float) -> float:
    r"""Return a bound of the probability that a weighted sum of fair signs is at least `total`.

    .. math:: P\Bigl( \sum_i w_i s_i \ge t \Bigr) \le c \, P(Z \ge t / \|w\|_2), \quad
       c = \frac{1}{4 P(Z \ge \sqrt 2)} = 3.178...

    Source: [BD] Theorem 1.1, Z standard normal.

    Args:
        total: sum t [-].
        norm_of_weights: Euclidean norm of the weights, >= 0 [-].

    Returns:
        Bound, at most 1 [-].

    References:
        [BD] Bentkus, Dzindzalieta: A Tight Gaussian Bound for Weighted Sums of Rademacher Random Variables. Bernoulli
        21, 2015. https://doi.org/10.3150/14-BEJ603

    >>> round(sign_sum_tail(2**0.5, 1.0), 9), round(sign_sum_tail(6.0, 1.0), 11)
    (0.25, 3.14e-09)
    """
    if total <= 0 or norm_of_weights <= 0:
        return 1.0
    return min(1.0, _SIGN_FACTOR * float(norm.sf(total / norm_of_weights)))


def sign_sum_threshold(significance: float) -> float:
    r"""Return the smallest sum of fair signs, in norms of the weights, that is significant.

    .. math:: x = \Phi^{-1}(1 - \alpha / c)

    Source: inverse of `sign_sum_tail`.

    Args:
        significance: probability of a false alarm, in (0, 1) [-].

    Returns:
        Threshold [norms of the weights].

    >>> round(sign_sum_threshold(sign_sum_tail(6.0, 1.0)), 6)
    6.0
    """
    return float(norm.isf(significance / _SIGN_FACTOR))


def size_tails(total: float, scales: ArrayLike, draws: int) -> tuple[float, float]:
    r"""Return bounds of the probabilities that sizes of noise add up to at most, and to at least, `total`.

    .. math:: T = \sum_{j} \sum_{i=1}^{n} \frac{|X_{ji}|}{\mathrm{scale}_j}, \quad P(T \le t) \le \inf_{\theta < 0}
       e^{-\theta t} E \, e^{\theta T}, \quad P(T \ge t) \le \inf_{\theta > 0} e^{-\theta t} E \, e^{\theta T}

    Source: [C] Theorem 1, with the moments of `size_log_moment`.

    Args:
        total: sum t of sizes, each over its scale [-].
        scales: recorded noise scales of the releases, shape (m,), > 0 [any unit].
        draws: number n of draws of each release.

    Returns:
        Two bounds; the tail on the side of the mean is 1 [-].

    >>> low, high = size_tails(900.0, [1000.0], 1000)  # sd 31.6: 3.2 deviations
    >>> 0.0008 < low < 0.006, high
    (True, 1.0)
    """
    scale = np.atleast_1d(np.asarray(scales, np.float64))

    def exponent(theta: float) -> float:
        return float(draws * size_log_moment(scale, theta / scale).sum() - theta * total)

    lower = minimize_scalar(exponent, bounds=(-50.0, 0.0), method="bounded", options={"xatol": 1e-6}).fun
    upper = minimize_scalar(exponent, bounds=(0.0, 1 - 1e-9), method="bounded", options={"xatol": 1e-6}).fun
    return math.exp(min(0.0, lower)), math.exp(min(0.0, upper))


def small_size_threshold(scales: Floats, draws: int, *, significance: float) -> float:
    r"""Return the largest sum of sizes of noise that is significantly small.

    .. math:: \max \{ t : P(T \le t) \text{ is bounded by } \alpha \}

    Source: inverse of the first bound of `size_tails`.

    Args:
        scales: recorded noise scales of the releases, shape (m,) [any unit].
        draws: number of draws of each release.
        significance: probability of a false alarm, in (0, 1) [-].

    Returns:
        Threshold [-]; below 0 if no sum is significant.

    >>> 840 < small_size_threshold(np.array([1000.0]), 1000, significance=1e-6) < 860  # 5.3 deviations for a normal law
    True
    """
    mean = draws * float(np.sum(size_moments(scales)[0] / scales))

    def excess(total: float) -> float:
        return size_tails(total, scales, draws)[0] - significance

    return float(brentq(excess, 0.0, mean)) if excess(0.0) < 0 < excess(mean) else -1.0


# --------------------------------------------------------------------------------------------------
# The tests, each with the fault that it finds.
# --------------------------------------------------------------------------------------------------

SCALE, SHAPE, PLACE, SIZES = "scale", "shape", "place", "sizes"
_SIZES_FAULT = "too many or too few draws have similar sizes for independent noise of the recorded scale"
SIZE_CELLS: Final = 8
_RARE_DRAWS = 40  # expected draws beyond the outermost width


@dataclass(frozen=True, slots=True)
class Residuals:
    """Published values minus exact values of a series, and the recorded scales.

    Args:
        noise: shape (ledgers, days, groups, cells), integers [Wh, or households].
        scale: recorded noise scale, shape (ledgers, days) [unit of `noise`].
        first_night: number of the days that were released in the first night.

    >>> Residuals(np.zeros((2, 4, 10, 1), np.int64), np.ones((2, 4)), 2).draws_per_release
    10
    """

    noise: Whole
    scale: Floats
    first_night: int

    @property
    def draws_per_release(self) -> int:
        """Return the number of draws of a release."""
        return int(np.prod(self.noise.shape[2:]))


@dataclass(frozen=True, slots=True)
class NoiseTest:
    """A test: the property that it is about, the fault that a small p-value shows, and the p-value [-]."""

    about: str
    fault: str
    p_value: float


def noise_tests(residuals: Residuals, shifts: Mapping[str, Whole]) -> list[NoiseTest]:
    """Return all tests of the residuals of a series.

    Args:
        residuals: residuals of the series.
        shifts: by fault of the sums, how far it shifts each exact value, shape (days, groups, cells).

    >>> draws = np.round(np.random.default_rng(1).laplace(scale=1e6, size=(2, 4, 500, 1))).astype(np.int64)
    >>> tests = noise_tests(Residuals(draws, np.full((2, 4), 1e6), 2), {})
    >>> len(tests), min(test.p_value for test in tests) > 1e-5
    (42, True)
    """
    return [
        *scale_tests(residuals),
        *shape_tests(residuals),
        *place_tests([(residuals, shifts)]),
        *independence_tests(residuals),
    ]


def scale_tests(residuals: Residuals) -> Iterator[NoiseTest]:
    r"""Yield two tests of the sum of the residuals' sizes, the most powerful statistic for a wrong scale.

    .. math:: T = \sum_i |x_i| / \mathrm{scale}_i
    """
    total = float((np.abs(residuals.noise) / residuals.scale[:, :, None, None]).sum())
    small, large = size_tails(total, residuals.scale.ravel(), residuals.draws_per_release)
    yield NoiseTest(SCALE, "the noise is smaller than its recorded scale", small)
    yield NoiseTest(SCALE, "the noise is larger than its recorded scale", large)


def shape_tests(residuals: Residuals) -> Iterator[NoiseTest]:
    r"""Yield two tests of the number of residuals in each cell of sizes, and of those beyond nearly all noise.

    The cells are as equally probable as integers permit: their edges are the eighths of the law of |X|.
    """
    fault = "the noise does not follow the discrete Laplace law of its recorded scale"
    size = np.abs(residuals.noise)
    tails = [1 - i / SIZE_CELLS for i in range(1, SIZE_CELLS)]
    tails.append(min(_RARE_DRAWS / size.size, tails[-1]))
    beyond_before, probability_before = size.size, 1.0
    for tail in tails:
        width = noise_width(residuals.scale, tail)
        beyond = int(np.count_nonzero(size > width[:, :, None, None]))
        probability = float(tail_probability(residuals.scale, width).mean())
        cell_probability = max(0.0, probability_before - probability)
        yield from _count_tests(SHAPE, fault, beyond_before - beyond, size.size, cell_probability)
        beyond_before, probability_before = beyond, probability
    yield from _count_tests(SHAPE, fault, beyond_before, size.size, probability_before)


def place_tests(series: Sequence[tuple[Residuals, Mapping[str, Whole]]]) -> Iterator[NoiseTest]:
    r"""Yield tests of weighted sums of the residuals' signs: whether exact values are what the audit computed.

    .. math:: S = \sum_i w_i \, \mathrm{sign}(x_i), \quad w_i = E \, \mathrm{sign}(X_i + m_i)

    For small shifts m this is the most powerful test. Without a fault the signs of residuals other than 0 are fair. A
    fault of the sums concerns all series, so that their signs add up.

    Args:
        series: residuals of each series and, by fault, how far it shifts the exact values, shape (days, groups, cells).
    """
    signs = [np.sign(residuals.noise) for residuals, _ in series]
    yield _sign_test("the published values are too large", signs, [np.ones(sign.shape) for sign in signs])
    yield _sign_test("the published values are too small", signs, [-np.ones(sign.shape) for sign in signs])
    for fault in series[0][1]:
        weights = [
            expected_sign(residuals.scale[:, :, None, None], shifts[fault][None]) for residuals, shifts in series
        ]
        yield _sign_test(f"the values are shifted as by {fault}", signs, weights)


def independence_tests(residuals: Residuals) -> Iterator[NoiseTest]:
    """Yield tests of disjoint pairs of residuals: of days, nights, groups, cells and ledgers."""
    noise, scale = residuals.noise, np.broadcast_to(residuals.scale[:, :, None, None], residuals.noise.shape)
    for about, axis in (("ledgers", 0), ("days", 1), ("groups", 2), ("cells", 3)):
        pairs = noise.shape[axis] // 2
        first, second = ((slice(None),) * axis + (slice(i, 2 * pairs, 2),) for i in range(2))
        yield from pair_tests(about, noise[first], noise[second], scale[first], scale[second])
    night = residuals.first_night
    again = min(night, noise.shape[1] - night)
    first_days, later_days = np.s_[:, :again], np.s_[:, night : night + again]
    yield from pair_tests("nights", noise[first_days], noise[later_days], scale[first_days], scale[later_days])


def series_tests(residuals: Residuals, second: Residuals) -> Iterator[NoiseTest]:
    """Yield tests of pairs of residuals of two series, at equal positions of the releases of a day."""
    draws = min(residuals.draws_per_release, second.draws_per_release)
    days = min(residuals.noise.shape[1], second.noise.shape[1])
    noise = [series.noise[:, :days].reshape(-1, series.draws_per_release)[:, :draws] for series in (residuals, second)]
    scale = [np.broadcast_to(series.scale[:, :days].reshape(-1, 1), noise[0].shape) for series in (residuals, second)]
    yield from pair_tests("series", noise[0], noise[1], scale[0], scale[1])


def pair_tests(about: str, first: Whole, second: Whole, scale: Floats, second_scale: Floats) -> Iterator[NoiseTest]:
    r"""Yield tests of pairs of independent draws: equal values, equal signs, sizes on the same side of the median.

    .. math:: P(X = Y), \qquad P(\mathrm{sign} X = \mathrm{sign} Y \mid X Y \ne 0) = 1/2, \qquad
       p p' + (1 - p)(1 - p'), \; p = P(|X| > w)

    Args:
        about: relation of the pairs.
        first: first draws, any shape.
        second: second draws, the same shape.
        scale: recorded scales of the first draws, the same shape.
        second_scale: recorded scales of the second draws, the same shape.
    """
    if not first.size:
        return
    fault = PAIR_FAULTS[about]
    equal = int(np.count_nonzero(first == second))
    equality = float(equality_probability(scale, second_scale).mean())
    yield NoiseTest(about, fault, count_tails(equal, first.size, equality)[1])
    both = (first != 0) & (second != 0)
    agreeing = int(np.count_nonzero(both & ((first > 0) == (second > 0))))
    yield from _count_tests(about, fault, agreeing, int(np.count_nonzero(both)), 0.5)
    width, second_width = noise_width(scale, 0.5), noise_width(second_scale, 0.5)
    p, second_p = tail_probability(scale, width), tail_probability(second_scale, second_width)
    agreeing = int(np.count_nonzero((np.abs(first) > width) == (np.abs(second) > second_width)))
    probability = float((p * second_p + (1 - p) * (1 - second_p)).mean())
    yield from _count_tests(SIZES, f"of pairs of {about}, {_SIZES_FAULT}", agreeing, first.size, probability)


PAIR_FAULTS: Final = {
    "ledgers": "the noise of a day depends on that of the same day in another ledger",
    "days": "the noise of a day depends on that of the day before",
    "groups": "the noise of a group depends on that of another group",
    "cells": "the noise of a cell depends on that of another cell",
    "nights": "the noise of a night depends on that of the night before",
    "series": "the noise of a series depends on that of another series",
}
"""The fault that pairs of draws show, by their relation."""


def significant_tests(tests: Sequence[NoiseTest], *, significance: float) -> list[NoiseTest]:
    r"""Return for each property the test with the smallest p-value, if that is below the significance.

    Args:
        tests: tests of one series, or of a pair of series.
        significance: probability of a false alarm of each test, in (0, 1): that of the audit over the number of all
            its tests (Bonferroni's inequality) [-].

    >>> tests = [NoiseTest("days", "copies", p) for p in (0.5, 1e-9, 1e-8)]
    >>> [test.p_value for test in significant_tests(tests, significance=1e-7)]
    [1e-09]
    """
    smallest: dict[str, NoiseTest] = {}
    for test in tests:
        if test.p_value < min(significance, smallest[test.about].p_value if test.about in smallest else 1.0):
            smallest[test.about] = test
    return list(smallest.values())


def _count_tests(about: str, fault: str, count: int, trials: int, probability: float) -> Iterator[NoiseTest]:
    for p_value in count_tails(count, trials, min(1.0, probability)):
        yield NoiseTest(about, fault, p_value)


def _sign_test(fault: str, signs: Sequence[Whole], weights: Sequence[Floats]) -> NoiseTest:
    total = sum(float((weight * sign).sum()) for sign, weight in zip(signs, weights, strict=True))
    square = sum(float((weight**2 * (sign != 0)).sum()) for sign, weight in zip(signs, weights, strict=True))
    return NoiseTest(PLACE, fault, sign_sum_tail(total, math.sqrt(square)))
