r"""Bounds of tail probabilities that hold for every number of trials: the p-values of the tests of an audit.

The idea: an alarm forbids every release, so a p-value of 1e-8 must be one. Normal approximations are wrong by factors
so far out. Each function returns an exact tail, or a proven upper bound of it:

* counts: the binomial tail, exact for equal probabilities and an upper bound for different ones [Ho];
* weighted sums of signs: 3.178 times the normal tail [BD];
* sums of the sizes of noise: the exponential moment [C].

Example: 60 of 60 equal signs have a p-value of 2^-60.

[Ho] Hoeffding: On the Distribution of the Number of Successes in Independent Trials. Annals of Mathematical Statistics
27, 1956, Theorem 4.
[BD] Bentkus, Dzindzalieta: A Tight Gaussian Bound for Weighted Sums of Rademacher Random Variables. Bernoulli 21, 2015.
https://doi.org/10.3150/14-BEJ603
[C] Chernoff: A Measure of Asymptotic Efficiency for Tests of a Hypothesis Based on the Sum of Observations. Annals of
Mathematical Statistics 23, 1952.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq, minimize_scalar
from scipy.stats import binom, norm

from agedp_data.arrays import Floats
from agedp_data.audit.noise_law import size_log_moment, size_moments

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
