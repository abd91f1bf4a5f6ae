"""How much a loss counts once it is j releases old: exponential, hyperbolic or any non-increasing weights ([F]).

[F] is F. Farokhi, Temporally Discounted Differential Privacy for Evolving Datasets on an Infinite Horizon,
ICCPS 2020. Its formula after Definition 13 has 1/(1 + beta k) where 1/(1 + beta (t - k)) is meant.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy.fft import irfft, next_fast_len, rfft

from agedp_data.errors import ChainError
from agedp_data.privacy.kernel import Floats, checked_loss

_MAX_DIRECT_TERMS = 256
"""Up to so many releases sums are taken term by term, which is quicker than a transform, and sharper."""

_BLOCK = 512
"""Losses whose part in all later sums is taken at a time, where that is term by term."""

_MAX_RELATIVE_ERROR = 1e-10
"""The part of a sum that rounding may make of it."""

_UNDERFLOW_MARGIN = 1e-300
"""More than what products too small for a float come to together."""

_EPS = float(np.finfo(np.float64).eps)


class Discount(Protocol):
    """Non-increasing weights a(0) > 0, a(1), ... of a loss by its age in releases."""

    def weights(self, releases: int) -> Floats:
        """Return a(0), ..., a(releases - 1). Shapes: (T,). Units: [-]."""


@dataclass(frozen=True, slots=True)
class Exponential:
    """a(j) = alpha^j ([F] Definition 9), 0 < alpha <= 1; alpha = 1 discounts nothing.

    Raises:
        ChainError: alpha outside (0, 1].

    >>> Exponential(0.5).weights(3).tolist()
    [1.0, 0.5, 0.25]
    """

    alpha: float

    def __post_init__(self) -> None:
        if not 0 < parse_number(self.alpha, "alpha") <= 1:
            raise ChainError(f"alpha = {self.alpha}: a discount factor lies above 0 and is at most 1")

    def weights(self, releases: int) -> Floats:
        """Return alpha^j for j = 0, ..., releases - 1. Shapes: (T,). Units: [-]."""
        with np.errstate(under="ignore"):
            return np.asarray(np.power(float(self.alpha), _ages(releases)), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Hyperbolic:
    """a(j) = 1/(1 + beta j) ([F] Definition 13), beta >= 0; beta = 0 discounts nothing.

    Raises:
        ChainError: beta below 0 or not finite.

    >>> Hyperbolic(1).weights(3).tolist()[:2]
    [1.0, 0.5]
    """

    beta: float

    def __post_init__(self) -> None:
        if not 0 <= parse_number(self.beta, "beta") < math.inf:
            raise ChainError(f"beta = {self.beta}: a discounting coefficient is a finite number that is at least 0")

    def weights(self, releases: int) -> Floats:
        """Return 1/(1 + beta j) for j = 0, ..., releases - 1. Shapes: (T,). Units: [-]."""
        ages, beta = _ages(releases), float(self.beta)
        if beta * (releases + 1.0) < math.inf:
            return np.asarray(1 / (1 + beta * ages), dtype=np.float64)
        return np.concatenate([np.ones(min(1, releases)), 1 / beta / ages[1:]])


class Weights:
    """Any weights that do not increase and begin above 0, as many as there are releases.

    Raises:
        ChainError: no weights, one that is negative or not finite, one above the one before it, or a first one
            of 0.

    >>> Weights([1, 1, 1, 0]).weights(2).tolist()  # a window of three
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
            raise ChainError("weights must not increase with age, and the newest loss must count something")
        weights.flags.writeable = False
        self._weights = weights

    def weights(self, releases: int) -> Floats:
        """Return the first `releases` weights. Shapes: (T,). Units: [-].

        Raises:
            ChainError: more than there are.
        """
        if not 0 <= releases <= self._weights.size:
            raise ChainError(f"{self._weights.size} weights are given and {releases} needed; give one for each release")
        return self._weights[:releases]

    def __repr__(self) -> str:
        return f"Weights({self._weights.size} from {self._weights[0]} to {self._weights[-1]})"


def discounted_loss(losses: ArrayLike, discount: Discount) -> Floats:
    """Return sum over k <= t of a(t-k) r_k at every t ([F] (9), (12); both are meant for every t).

    O(T) for exponential weights, O(T log T) otherwise, and O(T^2) for sums of which transforms would lose more than
    1e-10 (1.5 s for a hundred thousand). What is computed is rounded up by a bound of its error (a few ulps for each
    addition; for transforms Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., Theorem 24.2, in the
    2-norm), so that no figure is below the truth, and none above it by more than 1e-9 of itself.

    Shapes: (..., T) -> (..., T). Units: [-] -> [-].

    Raises:
        ChainError: a loss that is negative or infinite, or fewer weights than releases.

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
        # each figure is a sum of positive terms, each of at most t products and additions
        return _round_up_sums(sums, 2.0 * np.arange(1, count + 1) * _EPS * sums, loss)
    return upper_convolution(discount.weights(count), loss)


def upper_convolution(weights: Floats, loss: Floats) -> Floats:
    """Return the first T terms of weights * loss along the last axis, rounded up by a bound of the error."""
    count = loss.shape[-1]
    if count <= _MAX_DIRECT_TERMS:
        sums = np.asarray(_linear_filter(weights, [1.0], loss))
    else:
        sums_by_transforms, error = _convolution_with_error(weights, loss)
        if (error <= _MAX_RELATIVE_ERROR * sums_by_transforms)[loss.cumsum(axis=-1) > 0].all():
            return _round_up_sums(sums_by_transforms, error, loss)
        sums = direct_convolution(weights, loss)
    return _round_up_sums(sums, (2.0 * count + 8) * _EPS * sums, loss)


def _convolution_with_error(weights: Floats, loss: Floats) -> tuple[Floats, Floats]:
    """Return weights * loss and a bound of the error; each doubling of the series by itself, with its own norms."""
    count, start = loss.shape[-1], 0
    sums, error = np.zeros(loss.shape), np.zeros(loss.shape)
    for end in [
        *(
            _MAX_DIRECT_TERMS << i
            for i in range((count // _MAX_DIRECT_TERMS).bit_length())
            if _MAX_DIRECT_TERMS << i < count
        ),
        count,
    ]:
        weights_so_far, losses_so_far = weights[:end], loss[..., :end]
        sums[..., start:end] = np.maximum(convolution(weights_so_far, losses_so_far), 0.0)[..., start:end]
        norms = float(np.linalg.norm(weights_so_far)) * np.linalg.norm(losses_so_far, axis=-1, keepdims=True)
        # three transforms, each with an error of at most 8 u log2(n) in the 2-norm; weights are given to a few ulps
        error[..., start:end] = 32.0 * math.log2(2 * end) * _EPS * norms
        start = end
    return sums, error


def direct_convolution(weights: Floats, loss: Floats) -> Floats:
    """Return the first T terms of weights * loss along the last axis; of positive terms, good to T ulps."""
    count = loss.shape[-1]
    result = np.zeros(loss.shape)
    for row, sums in zip(loss.reshape(-1, count), result.reshape(-1, count), strict=True):
        for start in range(0, count, _BLOCK):
            block = row[start : start + _BLOCK]
            if block.any():
                sums[start:] += np.convolve(block, weights[: count - start])[: count - start]
    return result


def convolution(first: Floats, second: Floats) -> Floats:
    """Return the first T terms of one * other along the last axis, by transforms, as computed."""
    count = second.shape[-1]
    size = next_fast_len(2 * count, real=True)
    return np.asarray(irfft(rfft(first[..., :count], size) * rfft(second, size), size)[..., :count])


def _round_up_sums(sums: Floats, error: Floats, loss: Floats) -> Floats:
    """Return what was found and its error, rounded up; exactly 0 before the first loss."""
    return np.where(loss.cumsum(axis=-1) > 0, np.nextafter(sums + error + _UNDERFLOW_MARGIN, np.inf), 0.0)


def parse_number(value: object, name: str) -> float:
    """Return a number as a float, or raise ChainError: for what comes from a caller without types."""
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
