r"""Closed forms of schedules: the least mean noise under exponential discounting, and the renewal series.

The idea: for a known number of releases the schedule with the least mean noise solves the convex programme

.. math:: \min \sum_k 1/r_k \quad \text{subject to} \quad (A r)_t \le 1 \text{ for every } t,

A the lower triangular Toeplitz matrix of the weights. The dual maximises 2 sum of sqrt((A' lambda)_k) - sum of lambda
over lambda >= 0. At the optimum A' lambda = 1/r^2, and lambda_t = 0 where the constraint at t is not tight. Nearly
always these are the first m constraints: from m on the losses are those of a renewal, which keeps every sum at 1.
`least_noise` determines m.

Example: alpha = 0.25 and three releases give the losses 1, 0.75, 0.75.
"""

from __future__ import annotations

import math

import numpy as np

from agedp_data.privacy.discounts import convolution
from agedp_data.privacy.kernel import Floats

_MAX_DIRECT_TERMS = 4096
_SMALL_TERM = 1e-5
"""Terms below this part of the first are not computed by transforms, whose errors are relative to the largest."""

_BLOCK = 512


def exponential_optimum(alpha: float, releases: int) -> Floats:
    r"""Return the schedule with the least mean noise for weights alpha^j and epsilon = 1, in closed form.

    .. math:: r_{k+1} = \sqrt\alpha \, r_k \text{ for } k < m, \quad r_k = 1 - \alpha \text{ for } k > m, \quad
       m = \min \{ k : \alpha^{k/2} \le 1/(1 + \sqrt\alpha) \}

    Source: optimality conditions of the programme of the module's head under [F] Theorem 11 (eq. 10). The discounted
    loss reaches 1 at m and stays there.

    Args:
        alpha: discount factor per release, 0 < alpha <= 1 [-].
        releases: number of releases T, >= 1.

    Returns:
        Losses, shape (T,), > 0 [epsilon].

    References:
        [F] Farokhi: Temporally Discounted Differential Privacy for Evolving Datasets on an Infinite Horizon. ICCPS
        2020. https://doi.org/10.48550/arXiv.1908.03995

    >>> exponential_optimum(0.25, 3).round(12).tolist()  # sqrt(alpha) = 1/2: at m = 1, 1/2 <= 2/3
    [1.0, 0.75, 0.75]
    """
    if alpha == 1:
        return np.full(releases, 1 / releases)
    root = math.sqrt(alpha)
    m = min(releases, max(1, math.ceil(2 * math.log1p(root) / -math.log(alpha))))
    last = (1 - alpha) / (1 + root) / -math.expm1(m / 2 * math.log(alpha))  # 1/(1 + root + ... + root^(m-1))
    decreasing = last * root ** -np.arange(m - 1, -1, -1.0)
    return np.concatenate([decreasing, np.full(releases - m, 1 - alpha)])


def renewal(weights: Floats) -> Floats:
    r"""Return the losses that meet every constraint with equality for epsilon = 1; use it where the horizon is unknown.

    .. math:: \sum_{k=1}^{t} a(t - k) \, r_k = 1 \text{ for every } t, \quad
       a(0) \, r_t = \sum_{j=1}^{t-1} (a(j-1) - a(j)) \, r_{t-j}, \quad r_1 = 1/a(0)

    Source: equality in [F] (9) and (12); as a power series, r = 1/((1 - z) A(z)). All terms are positive if a(0) >
    a(1). Long series are continued by Newton's iteration on power series, or term by term in O(T^2) where they fall to
    the size of its errors.

    Args:
        weights: a(0), ..., a(T - 1), shape (T,), non-increasing, a(0) > a(1) [-].

    Returns:
        Losses, shape (T,) [epsilon].

    References:
        [F] Farokhi: Temporally Discounted Differential Privacy for Evolving Datasets on an Infinite Horizon. ICCPS
        2020. https://doi.org/10.48550/arXiv.1908.03995

    >>> renewal(np.array([1.0, 0.5, 0.25])).tolist()  # 1, 1 - 1/2, 1 - 1/4 - 1/4
    [1.0, 0.5, 0.5]
    """
    losses = renewal_by_transforms(weights)
    if losses.size <= _MAX_DIRECT_TERMS or bool((losses > _SMALL_TERM * losses[0]).all()):
        return losses
    differences = np.diff(weights, prepend=0.0)
    losses = np.zeros(weights.size)
    losses[0] = 1.0
    for start in range(0, weights.size, _BLOCK):  # the remainder of earlier blocks, then term by term within the block
        block = slice(start, start + _BLOCK)
        losses[block] = _power_series_inverse(losses[block], differences[:_BLOCK])
        remaining = weights.size - start
        carried = np.convolve(losses[block], -differences[1:remaining])[: remaining - 1]
        losses[start + _BLOCK :] += carried[_BLOCK - 1 :]
    return losses


def renewal_by_transforms(weights: Floats) -> Floats:
    r"""Return `renewal` by transforms alone, with errors relative to the first term; use it where those do not matter.

    .. math:: r = \frac{1}{(1 - z) A(z)}

    Source: Newton's iteration for the inverse of a power series, doubling the number of terms.

    Args:
        weights: a(0), ..., a(T - 1), shape (T,), non-increasing [-].

    Returns:
        Losses, shape (T,), >= 0 [epsilon].

    >>> renewal_by_transforms(np.array([1.0, 0.5, 0.25])).tolist()
    [1.0, 0.5, 0.5]
    """
    differences = np.diff(weights, prepend=0.0)
    length = min(weights.size, _MAX_DIRECT_TERMS)
    inverse = _power_series_inverse(np.eye(1, length)[0], differences[:length])
    while inverse.size < weights.size:
        length = min(2 * inverse.size, weights.size)
        padded = np.concatenate([inverse, np.zeros(length - inverse.size)])
        residual = convolution(differences[:length], padded)
        residual[: inverse.size] = 0.0  # there it is 1, 0, 0, ... up to rounding
        inverse = padded - convolution(padded, residual)
    return np.asarray(np.maximum(inverse, 0.0))


def _power_series_inverse(numerator: Floats, divisor: Floats) -> Floats:
    from scipy.signal import lfilter  # noqa: PLC0415  (a second to import, which few commands need)

    return np.asarray(lfilter([1.0], divisor[: numerator.size], numerator))
