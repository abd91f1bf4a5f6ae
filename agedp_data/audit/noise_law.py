r"""The discrete Laplace law of a recorded noise scale: tails, quantiles, equal draws, expected signs.

The idea: the noise of an audited release is known, because the audit knows the exact values of its synthetic
households. Every test compares it with the law that the ledger records,

.. math:: P(X = k) = \frac{1 - q}{1 + q} q^{|k|}, \quad q = e^{-1/\mathrm{scale}}, \quad k \in \mathbb{Z}
   \quad \text{[GRS]}

Example: at a scale of 100,000 Wh two independent draws are equal with probability 2.5e-6.

Decisions:

* Closed forms of the discrete law, no continuous approximation: counts may have a scale below 1.

[GRS] Ghosh, Roughgarden, Sundararajan: Universally Utility-Maximizing Privacy Mechanisms. STOC 2009.
https://doi.org/10.1145/1536414.1536464
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from agedp_data.arrays import Floats


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
