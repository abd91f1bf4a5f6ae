"""The schedule with the least mean noise for a known number of releases (MATHS 5): a convex programme.

Minimise sum of 1/r_k subject to (A r)_t <= 1 at every t, A the lower triangular Toeplitz matrix of the weights. The
dual is to maximise 2 sum of sqrt((A' lambda)_k) - sum of lambda over lambda >= 0; at the optimum A' lambda = 1/r^2, and
lambda_t = 0 where the sum at t is below 1. That is nearly always the case of the first m sums and of no other: from
then on the losses are those of a renewal, which keeps every sum at 1. `least_noise` finds m.
"""

from __future__ import annotations

import math

import numpy as np

from agedp_data.privacy.discounts import convolution
from agedp_data.privacy.kernel import Floats

_MAX_DIRECT_TERMS = 4096
_SMALL_TERM = 1e-5
"""Terms so much below the first are not left to transforms, whose errors are relative to the largest."""

_BLOCK = 512


def exponential_optimum(alpha: float, releases: int) -> Floats:
    """Return the optimum for weights alpha^j and epsilon = 1.

    r_(k+1) = sqrt(alpha) r_k up to the first m with sqrt(alpha) r_m <= 1 - alpha, that is
    alpha^(m/2) <= 1/(1 + sqrt(alpha)); the sum at m is 1, and from then on r = 1 - alpha keeps it there.

    Shapes: (T,). Units: [-].

    >>> exponential_optimum(0.25, 3).round(12).tolist()  # sqrt(alpha) = 1/2: at m = 1, 1/2 <= 2/3
    [1.0, 0.75, 0.75]
    """
    if alpha == 1:
        return np.full(releases, 1 / releases)
    root = math.sqrt(alpha)
    m = min(releases, max(1, math.ceil(2 * math.log1p(root) / -math.log(alpha))))
    largest = (1 - alpha) / (1 + root) / -math.expm1(m / 2 * math.log(alpha))  # 1/(1 + root + ... + root^(m-1))
    increasing = largest * root ** -np.arange(m - 1, -1, -1.0)
    return np.concatenate([increasing, np.full(releases - m, 1 - alpha)])


def renewal(weights: Floats) -> Floats:
    """Return r with sum over k <= t of a(t-k) r_k = 1 at every t: the power series 1/((1 - z) A(z)).

    Its terms are the differences d(j) = a(j-1) - a(j) >= 0: r_1 = 1/a(0), a(0) r_t = sum over j < t of d(j) r_(t-j),
    all positive. Long series are continued by Newton's iteration on power series, or term by term in O(T^2) if they
    fall to where its errors would be seen. Shapes: (T,) -> (T,).
    """
    losses = renewal_by_transforms(weights)
    if losses.size <= _MAX_DIRECT_TERMS or bool((losses > _SMALL_TERM * losses[0]).all()):
        return losses
    differences = np.diff(weights, prepend=0.0)
    losses = np.zeros(weights.size)
    losses[0] = 1.0
    for start in range(0, weights.size, _BLOCK):  # what earlier ones leave, and then each of the block the next ones
        block = slice(start, start + _BLOCK)
        losses[block] = _power_series_inverse(losses[block], differences[:_BLOCK])
        remaining = weights.size - start
        carried = np.convolve(losses[block], -differences[1:remaining])[: remaining - 1]
        losses[start + _BLOCK :] += carried[_BLOCK - 1 :]
    return losses


def renewal_by_transforms(weights: Floats) -> Floats:
    """Return the same by transforms alone: errors are relative to the first term. Shapes: (T,) -> (T,)."""
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
