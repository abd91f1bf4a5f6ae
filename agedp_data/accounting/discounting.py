"""Discount weights and discounted sums of losses: a loss counts a(j) times after j further releases ([F], Section III).

The idea: people mind an old loss less than a new one, so that the loss of release k counts a(t - k) times at release t.
The weights are exponential, a(j) = alpha^j, hyperbolic, a(j) = 1/(1 + beta j), or any non-increasing sequence. Example:
three losses of 1 with alpha = 0.5 have the discounted losses 1, 1.5 and 1.75.

Decisions:

* Weights never increase: between two releases the discounted loss then falls, and only releases need a check. So a
  promise holds for ever if it holds on the days with a loss.
* Releases are admitted by sums in whole nano-epsilon, exact: weights are integers in units of 2^-64, rounded up
  (`DiscountWeights`). Sums in floats, for schedules and papers, are rounded up by a bound of their error
  (`discounted_loss`). Both are `discounted_sums`: no discounted loss is below the truth.

Erratum: the sentence after Definition 13 of [F] has 1/(1 + beta k) where 1/(1 + beta (t - k)) is meant.

[F] Farokhi: Temporally Discounted Differential Privacy for Evolving Datasets on an Infinite Horizon. ICCPS 2020.
https://doi.org/10.48550/arXiv.1908.03995
[H] Higham: Accuracy and Stability of Numerical Algorithms. 2nd ed., SIAM 2002. https://doi.org/10.1137/1.9780898718027
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import MAX_EMAX, MAX_PREC, Context, Decimal
from fractions import Fraction
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agedp_data.arrays import Floats, checked_loss
from agedp_data.errors import ChainError

# --------------------------------------------------------------------------------------------------
# Discounted sums and series in floats: convolutions with a bound of the error, renewal, the sqrt(k) schedule.
#
# The idea: for a known number of releases the schedule with the least mean noise solves the convex programme
#
# .. math:: \min \sum_k 1/r_k \quad \text{subject to} \quad (A r)_t \le 1 \text{ for every } t,
#
# A the lower triangular Toeplitz matrix of the weights. The dual maximises 2 sum of sqrt((A' lambda)_k) - sum of
# lambda over lambda >= 0. At the optimum A' lambda = 1/r^2, and lambda_t = 0 where the constraint at t is not tight.
# Nearly always these are the first m constraints: from m on the losses are those of a renewal, which keeps every sum
# at 1. `least_noise` determines m. Example: alpha = 0.25 and three releases give the losses 1, 0.75, 0.75.
#
# Under hyperbolic discounting noise may grow like sqrt(k): with noise scales b_k = C sqrt(k) sensitivity/epsilon the
# discounted loss at t is epsilon S(t)/C,
#
# .. math:: S(t) = \sum_{k=1}^{t} \frac{1}{(1 + \beta (t - k)) \sqrt k},
#
# so that C must be at least the supremum of S. Example: beta = 1 needs C = 1.2744; the paper's constant is 2.178.
#
# Erratum: the proof of Corollary 16 bounds each half of the sum by an integral. It omits the last term of the
# increasing half, f(t) = 1/sqrt(t). It also takes atanh(u)/sqrt(1 + beta t), u^2 = beta t/(1 + beta t), for decreasing
# in t, which increases as long as u atanh(u) < 1. The correct bound is
#
# .. math:: S(t) \le \frac{2 \operatorname{asinh} \sqrt{\beta t}}{\sqrt{\beta (1 + \beta t)}} + \frac{1}{\sqrt t},
#
# whose two parts decrease from beta t = sinh(x)^2, x tanh(x) = 1 on.
#
# [F] Farokhi: Temporally Discounted Differential Privacy for Evolving Datasets on an Infinite Horizon. ICCPS 2020.
# https://doi.org/10.48550/arXiv.1908.03995
# --------------------------------------------------------------------------------------------------

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


# --------------------------------------------------------------------------------------------------
# Weights of later releases, and the discounted sums of losses.
# --------------------------------------------------------------------------------------------------

DiscountName = Literal["exponential", "hyperbolic"]

_BITS = 64
_FINE_BITS = 192  # of the running power, so that its roundings never add up to a unit of a weight
_OLDEST = 40_000
"""Days; what is older counts as if it were this old, which is never less."""

_FEW = 16
_LIMB_BITS = 16
_LIMBS = 5
"""A weight is at most 2^64: in parts of so many bits its products with losses add up within an int64."""
SAFE_TOTAL = 1 << 46
_EXACT = Context(prec=MAX_PREC, Emax=MAX_EMAX)


class Discount(Protocol):
    """Non-increasing weights a(0) > 0, a(1), ... of a loss by the number of releases since.

    Source: [F] Definitions 9 and 13, of which this is the common form.

    References:
        [F] https://doi.org/10.48550/arXiv.1908.03995

    >>> discount: Discount = Exponential(0.5)
    >>> discount.weights(3).tolist()
    [1.0, 0.5, 0.25]
    """

    def weights(self, releases: int) -> Floats:
        """Return a(0), ..., a(releases - 1), shape (releases,) [-]."""


@dataclass(frozen=True, slots=True)
class Exponential:
    r"""Exponential discounting; use it where the noise must stay bounded over an infinite horizon.

    .. math:: a(j) = \alpha^j

    Source: [F] Definition 9. alpha = 1 does not discount: the discounted loss is the composed loss.

    Args:
        alpha: discount factor per release, 0 < alpha <= 1 [-].

    Raises:
        ChainError: alpha outside (0, 1].

    References:
        [F] https://doi.org/10.48550/arXiv.1908.03995

    >>> Exponential(0.5).weights(3).tolist()
    [1.0, 0.5, 0.25]
    """

    alpha: float

    def __post_init__(self) -> None:
        if not 0 < parse_number(self.alpha, "alpha") <= 1:
            raise ChainError(f"alpha = {self.alpha}: a discount factor lies above 0 and is at most 1")

    def weights(self, releases: int) -> Floats:
        """Return alpha^j for j = 0, ..., releases - 1, shape (releases,) [-]."""
        with np.errstate(under="ignore"):
            return np.asarray(np.power(float(self.alpha), _ages(releases)), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Hyperbolic:
    r"""Hyperbolic discounting, closer to how people discount losses; the noise of a long series grows slowly.

    .. math:: a(j) = \frac{1}{1 + \beta j}

    Source: [F] Definition 13. Erratum: the sentence after it has beta k where beta (t - k) is meant. beta = 0 does not
    discount.

    Args:
        beta: discounting coefficient per release, >= 0 [-].

    Raises:
        ChainError: beta below 0 or not finite.

    References:
        [F] https://doi.org/10.48550/arXiv.1908.03995

    >>> Hyperbolic(1).weights(3).tolist()[:2]
    [1.0, 0.5]
    """

    beta: float

    def __post_init__(self) -> None:
        if not 0 <= parse_number(self.beta, "beta") < math.inf:
            raise ChainError(f"beta = {self.beta}: a discounting coefficient is a finite number that is at least 0")

    def weights(self, releases: int) -> Floats:
        """Return 1/(1 + beta j) for j = 0, ..., releases - 1, shape (releases,) [-]."""
        ages, beta = _ages(releases), float(self.beta)
        if beta * (releases + 1.0) < math.inf:
            return np.asarray(1 / (1 + beta * ages), dtype=np.float64)
        return np.concatenate([np.ones(min(1, releases)), 1 / beta / ages[1:]])


class Weights:
    r"""Any non-increasing weights, one per release; use it for a window or a measured discounting.

    .. math:: a(0) \ge a(1) \ge ... \ge 0, \quad a(0) > 0

    Source: generalisation of [F] Definitions 9 and 13. Ones and then zeros are a w-event window.

    Args:
        array: weights by the number of releases since, shape (T,) [-].

    Raises:
        ChainError: no weights, a weight that is negative or not finite, an increase, or a first weight of 0.

    References:
        [F] https://doi.org/10.48550/arXiv.1908.03995

    >>> Weights([1, 1, 1, 0]).weights(2).tolist()  # a window of three releases
    [1.0, 1.0]
    """

    def __init__(self, array: ArrayLike) -> None:
        try:
            weights = np.array(array, dtype=np.float64)
        except (TypeError, ValueError):
            raise ChainError("weights are a list of numbers, one for each age") from None
        if weights.ndim != 1 or not weights.size or not np.isfinite(weights).all() or (weights < 0).any():
            raise ChainError("weights are a list of finite numbers that are at least 0")
        if weights[0] == 0 or (np.diff(weights) > 0).any():
            raise ChainError("weights must not increase with age, and the weight of the newest loss must be above 0")
        weights.flags.writeable = False
        self._weights = weights

    def weights(self, releases: int) -> Floats:
        """Return the first `releases` weights, shape (releases,) [-].

        Raises:
            ChainError: `releases` exceeds the number of weights.
        """
        if not 0 <= releases <= self._weights.size:
            raise ChainError(f"{self._weights.size} weights are given and {releases} needed; give one for each release")
        return self._weights[:releases]

    def __repr__(self) -> str:
        return f"Weights({self._weights.size} from {self._weights[0]} to {self._weights[-1]})"


def discounted_loss(losses: ArrayLike, discount: Discount) -> Floats:
    r"""Return the discounted loss at every release; use it to check or report a schedule.

    .. math:: D_t = \sum_{k=1}^{t} a(t - k) \, r_k

    Source: `discounted_sums` of [F] (9) for exponential and (12) for hyperbolic weights; never below the truth, above
    it by less than 1e-9 of itself. Effort: O(T) for exponential weights, else O(T log T), or O(T^2) where transforms
    would lose more than 1e-10.

    Args:
        losses: losses r_k of the releases, shape (..., T), finite and >= 0 [epsilon].
        discount: `Exponential`, `Hyperbolic` or `Weights`.

    Returns:
        Discounted losses, shape (..., T) [epsilon].

    Raises:
        ChainError: a loss that is negative or infinite, or fewer weights than releases.

    References:
        [F] https://doi.org/10.48550/arXiv.1908.03995

    >>> discounted_loss([1, 1, 1], Exponential(0.5)).round(12).tolist()
    [1.0, 1.5, 1.75]
    """
    loss = checked_loss(losses)
    if loss.ndim == 0 or not np.isfinite(loss).all():
        raise ChainError("discounted losses are of a series of finite losses")
    if not loss.size:
        return loss.copy()
    if isinstance(discount, Exponential):
        return upper_exponential_sums(float(discount.alpha), loss)
    return np.asarray(discounted_sums(discount.weights(loss.shape[-1]), loss))


def discounted_sums(weights: Any, losses: Any) -> Any:  # noqa: ANN401  (arrays, or lists of integers)
    r"""Return the discounted sum at every release: of integers exact, of floats rounded up by a bound of the error.

    .. math:: D_t = \sum_{k=1}^{t} a(t - k) \, r_k

    Source: [F] Definitions 10 and 14, (9) and (12). Errata: the definitions do not say for which t the bound holds; it
    is needed for every t. After Definition 13 the factor is 1/(1 + beta (t-k)). Of integers by one multiplication of
    two long numbers with a sum in each group of digits; error bound of transforms of floats: [H] Theorem 24.2.

    Args:
        weights: a(0), ..., a(T - 1), shape (T,), >= 0 [-, or 2^-64].
        losses: r, shape (..., T), finite and >= 0 [epsilon], or a list of T integers [nano-epsilon].

    Returns:
        Sums, shape (..., T) or T integers [unit of the products], exactly 0 before the first positive loss.

    References:
        [F] https://doi.org/10.48550/arXiv.1908.03995
        [H] https://doi.org/10.1137/1.9780898718027

    >>> discounted_sums(np.array([1.0, 0.5]), np.array([2.0, 4.0])).round(12).tolist()  # 2, 0.5 * 2 + 4
    [2.0, 5.0]
    >>> discounted_sums([10, 5], [2, 4])
    [20, 50]
    """
    if isinstance(losses, list):
        count = len(losses)
        digits = len(str(max(sum(losses), 1) * max(weights)))
        factors = (
            Decimal("".join(f"{number:0{digits}d}" for number in numbers[::-1])) for numbers in (weights, losses)
        )
        product = str(_EXACT.multiply(*factors)).zfill(2 * digits * count)
        ends = range(len(product), len(product) - digits * count, -digits)
        return [int(product[end - digits : end]) for end in ends]
    return upper_convolution(weights, losses)


class DiscountWeights:
    r"""Weights [-] of losses by their age j [days], exact to 2^-64 and rounded up.

    .. math:: a(j) = \alpha^j \text{ ("exponential")} \qquad a(j) = \frac{1}{1 + \beta j} \text{ ("hyperbolic")}

    Source: [F] Definitions 9 and 13. Erratum: after Definition 13 the factor is 1/(1 + beta (t-k)).

    References:
        [F] https://doi.org/10.48550/arXiv.1908.03995

    >>> weights = DiscountWeights("exponential", Decimal("0.5"))
    >>> weighted_sum_to_nano(weights.total({1: 8, 2: 2}, 3))  # 8/4 + 2/2
    3
    """

    def __init__(self, discount: DiscountName, rate: Decimal) -> None:
        self._discount = discount
        self._rate = Fraction(rate)
        self._power = 1 << _FINE_BITS
        self._weights: list[int] = []
        self._limbs = np.zeros((_LIMBS, 0), np.int64)

    def weight(self, age: int) -> int:
        """Return the weight at an age in days, in 2^-64, rounded up.

        >>> weights = DiscountWeights("exponential", Decimal("0.5")), DiscountWeights("hyperbolic", Decimal(3))
        >>> [weight.weight(1) / 2**64 for weight in weights]
        [0.5, 0.25]
        """
        age = min(age, _OLDEST)
        while len(self._weights) <= age:
            self._weights.append(self._next())
        return self._weights[age]

    def _next(self) -> int:
        if self._discount == "hyperbolic":
            return _up(Fraction(1 << _BITS) / (1 + self._rate * len(self._weights)))
        weight = -(-self._power >> (_FINE_BITS - _BITS))
        self._power = _up(self._power * self._rate)
        return weight

    def total(self, losses: Mapping[int, int], day: int) -> int:
        """Return the discounted sum on a day of losses by day number, in 2^-64; exact, whatever their number."""
        if len(losses) <= _FEW or sum(losses.values()) >= SAFE_TOTAL:
            return sum([loss * self.weight(day - loss_day) for loss_day, loss in losses.items() if loss_day <= day])
        days, values = (np.fromiter(numbers, np.int64, len(losses)) for numbers in (losses, losses.values()))
        return self.total_of(days, values, day)

    def total_of(self, days: NDArray[np.int64], losses: NDArray[np.int64], day: int) -> int:
        """Return `total` of losses of these days, which come to less than 2^46 together."""
        ages = day - days
        limbs = self._limbs_until(min(max(0, int(ages.max())), _OLDEST))
        parts = limbs.take(np.clip(ages, 0, _OLDEST), axis=1) @ np.where(ages < 0, 0, losses)
        return sum(part << _LIMB_BITS * place for place, part in enumerate(parts.tolist()))

    def _limbs_until(self, age: int) -> NDArray[np.int64]:
        """Return the weights at ages of at least 0 to `age`, in parts of 16 bits, the lowest first."""
        if age >= self._limbs.shape[1]:
            self.weight(2 * age)
            places = [_LIMB_BITS * i for i in range(_LIMBS)]
            self._limbs = np.array([[w >> place & (1 << _LIMB_BITS) - 1 for w in self._weights] for place in places])
        return self._limbs

    def largest(self, losses: Mapping[int, int], *, since: int = 0) -> int:
        """Return the largest discounted sum on any day from `since` on, whole losses, rounded up.

        >>> DiscountWeights("exponential", Decimal("0.5")).largest({1: 8, 2: 2, 3: 7})  # 8, 6, 10
        10
        """
        days = [day for day in losses if day >= since]
        if len(days) > _FEW and len(days) * len(losses) > 20 * (max(losses) - min(losses)):
            first, count = min(losses), max(losses) - min(losses) + 1
            weights = [self.weight(age) for age in range(count)]
            sums = discounted_sums(weights, [losses.get(first + i, 0) for i in range(count)])
            return weighted_sum_to_nano(max(sums[day - first] for day in days))
        return weighted_sum_to_nano(max((self.total(losses, day) for day in days), default=0))

    def with_loss(self, total: int, loss: int) -> int:
        """Return a discounted sum on the newest day, in 2^-64, with a further loss of this day, rounded up."""
        return weighted_sum_to_nano(total + loss * self.weight(0))

    def rest(self, total: int, bound: int) -> int:
        """Return what a discounted sum on the newest day, in 2^-64, leaves of a bound, rounded down, also below 0."""
        return int(((bound << _BITS) - total) // self.weight(0))

    def available(self, losses: Mapping[int, int], day: int, bound: int) -> int:
        """Largest further loss on a day that keeps the discounted sum within `bound` on every day [nano-epsilon].

        It is below 0 if the sum exceeds the bound already.

        >>> DiscountWeights("exponential", Decimal("0.5")).available({1: 8}, 2, 10)  # 8 counts as 4 on day 2
        6
        """
        days = [day, *(loss_day for loss_day in losses if loss_day > day)]
        return min(
            ((bound << _BITS) - self.total(losses, later_day)) // self.weight(later_day - day) for later_day in days
        )


def weighted_sum_to_nano(total: int) -> int:
    """Return a weighted sum [nano-epsilon 2^-64] in nano-epsilon, rounded up.

    Source: integer arithmetic.

    >>> weighted_sum_to_nano(3 << 64), weighted_sum_to_nano((3 << 64) + 1)
    (3, 4)
    """
    return -(-total >> _BITS)


def _ages(releases: int) -> Floats:
    if releases < 0:
        raise ChainError(f"a series has at least 0 releases, not {releases}")
    return np.arange(releases, dtype=np.float64)


def _up(amount: Fraction) -> int:
    return -(-amount.numerator // amount.denominator)
