r"""Discounted sums and series in floats: convolutions with a bound of the error, renewal, the sqrt(k) schedule.

The idea: for a known number of releases the schedule with the least mean noise solves the convex programme

.. math:: \min \sum_k 1/r_k \quad \text{subject to} \quad (A r)_t \le 1 \text{ for every } t,

A the lower triangular Toeplitz matrix of the weights. The dual maximises 2 sum of sqrt((A' lambda)_k) - sum of lambda
over lambda >= 0. At the optimum A' lambda = 1/r^2, and lambda_t = 0 where the constraint at t is not tight. Nearly
always these are the first m constraints: from m on the losses are those of a renewal, which keeps every sum at 1.
`least_noise` determines m. Example: alpha = 0.25 and three releases give the losses 1, 0.75, 0.75.

Under hyperbolic discounting noise may grow like sqrt(k): with noise scales b_k = C sqrt(k) sensitivity/epsilon the
discounted loss at t is epsilon S(t)/C,

.. math:: S(t) = \sum_{k=1}^{t} \frac{1}{(1 + \beta (t - k)) \sqrt k},

so that C must be at least the supremum of S. Example: beta = 1 needs C = 1.2744; the paper's constant is 2.178.

Erratum: the proof of Corollary 16 bounds each half of the sum by an integral. It omits the last term of the increasing
half, f(t) = 1/sqrt(t). It also takes atanh(u)/sqrt(1 + beta t), u^2 = beta t/(1 + beta t), for decreasing in t, which
increases as long as u atanh(u) < 1. The correct bound is

.. math:: S(t) \le \frac{2 \operatorname{asinh} \sqrt{\beta t}}{\sqrt{\beta (1 + \beta t)}} + \frac{1}{\sqrt t},

whose two parts decrease from beta t = sinh(x)^2, x tanh(x) = 1 on.

[F] Farokhi: Temporally Discounted Differential Privacy for Evolving Datasets on an Infinite Horizon. ICCPS 2020.
https://doi.org/10.48550/arXiv.1908.03995
"""

from __future__ import annotations

import math

import numpy as np

from agedp_data.arrays import Floats
from agedp_data.errors import ChainError

_MAX_FILTERED_TERMS = 4096
_SMALL_TERM = 1e-5
"""Terms below this part of the first are not computed by transforms, whose errors are relative to the largest."""

_MAX_DIRECT_TERMS = 256
"""Up to this number of releases sums are computed term by term: faster than a transform, and more accurate."""

_BLOCK = 512
"""Losses whose contributions to all later sums are added at once, in the term-by-term sum."""

_MAX_RELATIVE_ERROR = 1e-10
"""Largest relative rounding error of a sum."""

_UNDERFLOW_MARGIN = 1e-300
"""Above the sum of all products that underflow."""

_EPS = float(np.finfo(np.float64).eps)


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
        [F] https://doi.org/10.48550/arXiv.1908.03995

    >>> renewal(np.array([1.0, 0.5, 0.25])).tolist()  # 1, 1 - 1/2, 1 - 1/4 - 1/4
    [1.0, 0.5, 0.5]
    """
    losses = renewal_by_transforms(weights)
    if losses.size <= _MAX_FILTERED_TERMS or bool((losses > _SMALL_TERM * losses[0]).all()):
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

    Source: equality in [F] (9) and (12), as in `renewal`, by Newton's iteration for the inverse of a power series; it
    doubles the number of terms.

    Args:
        weights: a(0), ..., a(T - 1), shape (T,), non-increasing [-].

    References:
        [F] https://doi.org/10.48550/arXiv.1908.03995

    >>> renewal_by_transforms(np.array([1.0, 0.5, 0.25])).tolist()
    [1.0, 0.5, 0.5]
    """
    differences = np.diff(weights, prepend=0.0)
    length = min(weights.size, _MAX_FILTERED_TERMS)
    inverse = _power_series_inverse(np.eye(1, length)[0], differences[:length])
    while inverse.size < weights.size:
        length = min(2 * inverse.size, weights.size)
        padded = np.concatenate([inverse, np.zeros(length - inverse.size)])
        residual = convolution(differences[:length], padded)
        residual[: inverse.size] = 0.0  # there it is 1, 0, 0, ... up to rounding
        inverse = padded - convolution(padded, residual)
    return np.asarray(np.maximum(inverse, 0.0))


def _power_series_inverse(numerator: Floats, divisor: Floats) -> Floats:
    return _linear_filter([1.0], divisor[: numerator.size], numerator)


def upper_convolution(weights: Floats, loss: Floats) -> Floats:
    """Return the first T terms of weights * loss (..., T) in floats, rounded up by a bound of the error.

    Source: [F] (12); error bound of transforms: [H] Theorem 24.2. Used by `discounted_sums`.

    >>> upper_convolution(np.array([1.0, 0.5]), np.array([2.0, 4.0])).round(12).tolist()  # 2, 0.5 * 2 + 4
    [2.0, 5.0]
    """
    count = loss.shape[-1]
    if count <= _MAX_DIRECT_TERMS:
        sums = np.asarray(_linear_filter(weights, [1.0], loss))
    else:
        sums_by_transforms, error = _convolution_with_error(weights, loss)
        if (error <= _MAX_RELATIVE_ERROR * sums_by_transforms)[loss.cumsum(axis=-1) > 0].all():
            return _round_up_sums(sums_by_transforms, error, loss)
        sums = _direct_convolution(weights, loss)
    return _round_up_sums(sums, (2.0 * count + 8) * _EPS * sums, loss)


def upper_exponential_sums(alpha: float, loss: Floats) -> Floats:
    """Return `upper_convolution` for the weights alpha^j, by a recursion in O(T).

    Source: [F] (9); each sum has positive terms only, each of at most t products and additions.
    """
    with np.errstate(under="ignore"):
        sums = _linear_filter([1.0], [1.0, -alpha], loss)
    return _round_up_sums(sums, 2.0 * np.arange(1, loss.shape[-1] + 1) * _EPS * sums, loss)


def _convolution_with_error(weights: Floats, loss: Floats) -> tuple[Floats, Floats]:
    """Return weights * loss and a bound of the error; each doubling of the series by itself, with its own norms."""
    count, start = loss.shape[-1], 0
    sums, error = np.zeros(loss.shape), np.zeros(loss.shape)
    doublings = (_MAX_DIRECT_TERMS << i for i in range((count // _MAX_DIRECT_TERMS).bit_length()))
    for end in [*(end for end in doublings if end < count), count]:
        weights_so_far, losses_so_far = weights[:end], loss[..., :end]
        sums[..., start:end] = np.maximum(convolution(weights_so_far, losses_so_far), 0.0)[..., start:end]
        norms = float(np.linalg.norm(weights_so_far)) * np.linalg.norm(losses_so_far, axis=-1, keepdims=True)
        # three transforms, each with an error of at most 8 u log2(n) in the 2-norm; weights are given to a few ulps
        error[..., start:end] = 32.0 * math.log2(2 * end) * _EPS * norms
        start = end
    return sums, error


def _direct_convolution(weights: Floats, loss: Floats) -> Floats:
    """Return the sum of `upper_convolution` term by term, shape (..., T), where transforms are not accurate enough.

    All terms are positive, so the relative error is at most T rounding units. O(T^2).
    """
    count = loss.shape[-1]
    result = np.zeros(loss.shape)
    for row, sums in zip(loss.reshape(-1, count), result.reshape(-1, count), strict=True):
        for start in range(0, count, _BLOCK):
            block = row[start : start + _BLOCK]
            if block.any():
                sums[start:] += np.convolve(block, weights[: count - start])[: count - start]
    return result


def convolution(first: Floats, second: Floats) -> Floats:
    """Return the first T terms of first * second along the last axis by transforms, without a bound of the error.

    Source: convolution theorem. Use `discounted_sums` for losses; this serves iterations that correct their own error.

    >>> convolution(np.array([1.0, 0.5]), np.array([2.0, 4.0])).round(12).tolist()
    [2.0, 5.0]
    """
    from scipy.fft import irfft, next_fast_len, rfft  # noqa: PLC0415  (slow to import, and few commands need it)

    count = second.shape[-1]
    size = next_fast_len(2 * count, real=True)
    return np.asarray(irfft(rfft(first[..., :count], size) * rfft(second, size), size)[..., :count])


def _round_up_sums(sums: Floats, error: Floats, loss: Floats) -> Floats:
    """Return sums plus their error bounds, rounded up; exactly 0 before the first positive loss."""
    return np.where(loss.cumsum(axis=-1) > 0, np.nextafter(sums + error + _UNDERFLOW_MARGIN, np.inf), 0.0)


def _linear_filter(numerator: Floats | list[float], denominator: Floats | list[float], values: Floats) -> Floats:
    from scipy.signal import lfilter  # noqa: PLC0415  (a second to import, which few commands need)

    filtered: Floats = np.asarray(lfilter(numerator, denominator, values, axis=-1))
    return filtered


def parse_number(value: object, name: str) -> float:
    """Return a parameter of a caller without types as a float; raise ChainError if it is none.

    Source: conversion by Python's `float`.
    """
    try:
        return float(value)  # type: ignore[arg-type]  # that is asked here
    except (TypeError, ValueError, OverflowError):
        raise ChainError(f"{name} = {value!r}: a number is needed") from None


_BOUND_PEAK = 2.27671753122807
"""sinh(x)^2 where x tanh(x) = 1."""

_MIN_SUMMED_BETA = 1e-4
"""Below this beta S is taken from its expansion, whose first term left out is below 1e-15 of it there."""

_SLACK = 1e-12

# zeta(1/2), zeta(-1/2), zeta(-3/2), zeta(-5/2)
_ZETA = (-1.4603545088095868, -0.2078862249773546, -0.0254852018898330, 0.0085169287778503)


def certified_constant(beta: float) -> float:
    r"""Return the least sufficient constant of the sqrt(k) schedule, rounded up; use it instead of `paper_constant`.

    .. math:: C(\beta) = \sup_t S(t), \quad S(t) = \sum_{k=1}^{t} \frac{1}{(1 + \beta (t - k)) \sqrt k}

    Source: [F] Theorem 15 (eq. 13) with b_k = C sqrt(k) sensitivity/epsilon. Erratum: the constant of Corollary 16 (eq.
    14) is too small for beta > 3.6538 and for beta < 1.2203e-5. From beta = 1e-4 on, S is summed up to a t after which
    the bound of the module's head is below the maximum so far. For smaller beta the Euler-Maclaurin expansion at both
    ends ([N] at the square root) gives S at its only maximum near y = beta t = 2.28:

    .. math:: S = \frac{2 \operatorname{asinh} \sqrt y}{\sqrt{\beta (1+y)}} + \sum_j \zeta(\tfrac12 - j)
       \frac{\beta^j}{(1+y)^{j+1}} + \frac{f(t)}{2} + \frac{f'(t)}{12}, \quad f(t) = \frac{1}{\sqrt t}, \quad
       f'(t) = \frac{\beta}{\sqrt t} - \frac{1}{2 t \sqrt t}

    Args:
        beta: discounting coefficient per release, > 0 [-].

    Returns:
        C >= 1 [-]; 1 for every beta >= 1 + sqrt 2.

    Raises:
        ChainError: beta that is not a positive, finite number; for beta = 0 no constant is sufficient.

    References:
        [F] https://doi.org/10.48550/arXiv.1908.03995
        [N] Navot: An Extension of the Euler-Maclaurin Summation Formula to Functions with a Branch Singularity.
        J. Math. Phys. 40, 1961.

    >>> round(certified_constant(1), 4), certified_constant(3)
    (1.2744, 1.0)
    """
    if not 0 < parse_number(beta, "beta") < math.inf:
        raise ChainError(f"beta = {beta}: a constant exists for a positive, finite discounting coefficient only")
    if beta >= 1 + math.sqrt(2):
        return 1.0  # S falls in beta, and at 1 + sqrt(2) it is 1 at t = 1 and 2, less from then on
    return (_supremum_by_summation(beta) if beta >= _MIN_SUMMED_BETA else _supremum_by_expansion(beta)) * (1 + _SLACK)


def paper_constant(beta: float) -> float:
    r"""Return the constant of [F] Corollary 16; use it only to reproduce the paper.

    .. math:: C = \frac{2 \left( \operatorname{atanh} \frac{1}{\sqrt 3} + \operatorname{atanh}
       \sqrt{\frac{\beta}{1 + \beta}} \right)}{\sqrt{\beta (\beta + 1)}}

    Source: [F] Corollary 16 (eq. 14). Erratum: outside [1.2203e-5, 3.6538] it is smaller than `certified_constant`, and
    the promise breaks, above 3.6538 at the first release. Inside it is up to 1.7 times larger than needed.

    Args:
        beta: discounting coefficient per release, > 0 [-].

    Returns:
        C [-].

    Raises:
        ChainError: beta for which the constant breaks the promise; the message quotes the sufficient constant.

    References:
        [F] https://doi.org/10.48550/arXiv.1908.03995

    >>> round(paper_constant(1), 3)  # 2 (.6585 + .8814)/sqrt 2
    2.178
    """
    certified = certified_constant(beta)
    constant = 2 * (math.atanh(1 / math.sqrt(3)) + math.asinh(math.sqrt(beta)))
    constant /= math.sqrt(beta) * math.sqrt(beta + 1)
    if constant < certified:
        where = "already at the first release" if constant < 1 else f"at about release {_BOUND_PEAK / beta:.6g}"
        constant_text, certified_text = _format_distinct(constant, certified)
        excess_text, _ = _format_distinct(certified / constant, 1.0)
        raise ChainError(
            f"beta = {float(beta)!r}: Corollary 16's constant {constant_text} is too small, the discounted sum comes "
            f"to {excess_text} epsilon, {where}; use certified_constant({float(beta)!r}) = {certified_text}"
        )
    return constant


def _format_distinct(first: float, second: float) -> tuple[str, str]:
    """Return two different numbers in as few digits as distinguish them, at least six."""
    pairs = ((f"{first:.{digits}g}", f"{second:.{digits}g}") for digits in range(6, 18))
    return next(pair for pair in pairs if pair[0] != pair[1])


def _upper_bound(beta: float, t: float) -> float:
    """Return the integral of f from 0 to t, and f(t)."""
    y = beta * t
    return 2 * math.asinh(math.sqrt(y)) / (math.sqrt(beta) * math.sqrt(1 + y)) + 1 / math.sqrt(t)


def _supremum_by_summation(beta: float) -> float:
    """Return the maximum of S, summed until `_upper_bound` of all later t is below it."""
    count = max(64, math.ceil(2 * _BOUND_PEAK / beta))
    while True:
        sums = upper_convolution(1 / (1 + beta * np.arange(count)), 1 / np.sqrt(np.arange(1.0, count + 1)))
        largest = float(sums.max())
        if _upper_bound(beta, count + 1) <= largest:
            return largest
        count *= 2


def _supremum_by_expansion(beta: float) -> float:
    """Return the maximum of the expansion: outside y = 1.5..3.5 the bound is lower, inside it is concave."""
    low, high = 1.5, 3.5
    while high - low > 1e-9:
        lower_third, upper_third = low + (high - low) / 3, high - (high - low) / 3
        is_rising = _expansion(beta, lower_third) < _expansion(beta, upper_third)
        low, high = (lower_third, high) if is_rising else (low, upper_third)
    return _expansion(beta, (low + high) / 2)


def _expansion(beta: float, y: float) -> float:
    root = math.sqrt(y) / math.sqrt(beta)  # sqrt(t)
    end_terms = sum(zeta * beta**j / (1 + y) ** (j + 1) for j, zeta in enumerate(_ZETA))
    slope = beta / root - 0.5 / root / root / root
    return 2 * math.asinh(math.sqrt(y)) / (math.sqrt(beta) * math.sqrt(1 + y)) + end_terms + 0.5 / root + slope / 12
