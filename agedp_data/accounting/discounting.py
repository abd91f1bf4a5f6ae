"""Discount weights and discounted losses: a loss counts a(j) times after j further releases ([F], Section III).

The idea: people mind an old loss less than a new one, so that the loss of release k counts a(t - k) times at release t.
The weights are exponential, a(j) = alpha^j, hyperbolic, a(j) = 1/(1 + beta j), or any non-increasing sequence.

Example: three losses of 1 with alpha = 0.5 have the discounted losses 1, 1.5 and 1.75.

Decisions:

* Sums are rounded up by a bound of their error, so that no discounted loss is below the truth.
* Weights never increase: between two releases the discounted loss then falls, and only releases need a check.

Erratum: the sentence after Definition 13 of [F] has 1/(1 + beta k) where 1/(1 + beta (t - k)) is meant.

[F] Farokhi: Temporally Discounted Differential Privacy for Evolving Datasets on an Infinite Horizon. ICCPS 2020.
https://doi.org/10.48550/arXiv.1908.03995
[H] Higham: Accuracy and Stability of Numerical Algorithms. 2nd ed., SIAM 2002. https://doi.org/10.1137/1.9780898718027
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy.fft import irfft, next_fast_len, rfft

from agedp_data.arrays import Floats, checked_loss
from agedp_data.errors import ChainError

_MAX_DIRECT_TERMS = 256
"""Up to this number of releases sums are computed term by term: faster than a transform, and more accurate."""

_BLOCK = 512
"""Losses whose contributions to all later sums are added at once, in the term-by-term sum."""

_MAX_RELATIVE_ERROR = 1e-10
"""Largest relative rounding error of a sum."""

_UNDERFLOW_MARGIN = 1e-300
"""Above the sum of all products that underflow."""

_EPS = float(np.finfo(np.float64).eps)


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

    Source: [F] (9) for exponential and (12) for hyperbolic weights. Erratum: Definitions 10 and 14 do not say for which
    t the bound holds; it is needed for every t. The result is rounded up by a bound of the rounding error (for
    transforms [H] Theorem 24.2): never below the truth, above it by less than 1e-9 of itself.
    Effort: O(T) for exponential weights, else O(T log T), or O(T^2) where transforms would lose more than 1e-10.

    Args:
        losses: losses r_k of the releases, shape (..., T), finite and >= 0 [epsilon].
        discount: `Exponential`, `Hyperbolic` or `Weights`.

    Returns:
        Discounted losses, shape (..., T) [epsilon].

    Raises:
        ChainError: a loss that is negative or infinite, or fewer weights than releases.

    References:
        [F] https://doi.org/10.48550/arXiv.1908.03995
        [H] https://doi.org/10.1137/1.9780898718027

    >>> discounted_loss([1, 1, 1], Exponential(0.5)).round(12).tolist()
    [1.0, 1.5, 1.75]
    """
    loss = checked_loss(losses)
    if loss.ndim == 0 or not np.isfinite(loss).all():
        raise ChainError("discounted losses are of a series of finite losses")
    count = loss.shape[-1]
    if not count:
        return loss.copy()
    if isinstance(discount, Exponential):
        with np.errstate(under="ignore"):
            sums = np.asarray(_linear_filter([1.0], [1.0, -float(discount.alpha)], loss))
        # each sum has positive terms only, each of at most t products and additions
        return _round_up_sums(sums, 2.0 * np.arange(1, count + 1) * _EPS * sums, loss)
    return upper_convolution(discount.weights(count), loss)


def upper_convolution(weights: Floats, loss: Floats) -> Floats:
    r"""Return the first T terms of weights * loss along the last axis, rounded up by a bound of the error.

    .. math:: c_t = \sum_{k=1}^{t} a(t - k) \, r_k

    Source: [F] (12), for any weights; error bound of transforms: [H] Theorem 24.2. Callers use `discounted_loss`; this
    is for weights and losses that are checked already.

    Args:
        weights: a(0), ..., a(T - 1), shape (T,), >= 0 [-].
        loss: losses, shape (..., T), finite and >= 0 [epsilon].

    Returns:
        Shape (..., T) [epsilon], exactly 0 before the first positive loss.

    References:
        [F] https://doi.org/10.48550/arXiv.1908.03995
        [H] https://doi.org/10.1137/1.9780898718027

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
    r"""Return the first T terms of first * second along the last axis by transforms, without a bound of the error.

    .. math:: c_t = \sum_{k=1}^{t} u_{t-k+1} \, v_k

    Use `upper_convolution` for losses; this serves iterations that correct their own error. Effort O(T log T).

    Args:
        first: shape (..., >= T).
        second: shape (..., T).

    Returns:
        Shape (..., T) [product of the two units].

    References:
        [H] Higham: Accuracy and Stability of Numerical Algorithms, chapter 24. https://doi.org/10.1137/1.9780898718027

    >>> convolution(np.array([1.0, 0.5]), np.array([2.0, 4.0])).round(12).tolist()
    [2.0, 5.0]
    """
    count = second.shape[-1]
    size = next_fast_len(2 * count, real=True)
    return np.asarray(irfft(rfft(first[..., :count], size) * rfft(second, size), size)[..., :count])


def _round_up_sums(sums: Floats, error: Floats, loss: Floats) -> Floats:
    """Return sums plus their error bounds, rounded up; exactly 0 before the first positive loss."""
    return np.where(loss.cumsum(axis=-1) > 0, np.nextafter(sums + error + _UNDERFLOW_MARGIN, np.inf), 0.0)


def parse_number(value: object, name: str) -> float:
    """Return a value as a float; use it for parameters from callers without types.

    Source: conversion by Python's `float`; the ranges of [F] Definitions 9 and 13 are tested by the caller.

    Args:
        value: anything.
        name: name of the parameter, for the message.

    Returns:
        The value as a float [unit of `value`].

    Raises:
        ChainError: `value` is not a number.

    >>> parse_number("0.5", "alpha")
    0.5
    """
    try:
        return float(value)  # type: ignore[arg-type]  # that is asked here
    except (TypeError, ValueError, OverflowError):
        raise ChainError(f"{name} = {value!r}: a number is needed") from None


def _ages(releases: int) -> Floats:
    if releases < 0:
        raise ChainError(f"a series has at least 0 releases, not {releases}")
    return np.arange(releases, dtype=np.float64)


def _linear_filter(numerator: Floats | list[float], denominator: list[float], values: Floats) -> Floats:
    from scipy.signal import lfilter  # noqa: PLC0415  (a second to import, which few commands need)

    filtered: Floats = np.asarray(lfilter(numerator, denominator, values, axis=-1))
    return filtered
