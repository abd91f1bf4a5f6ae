"""Discrete Laplace noise from OpenDP: the only module that makes randomness.

The draw is OpenDP's exact integer sampler fed by the system's cryptographic source; there is no seed.
OpenDP saturates at the ends of int64, which costs no privacy but would bias a figure silently: values beyond
2^62 and scales beyond 2^55 are refused, so that a value is cut with a probability below e^-127.

With q = e^(-1/scale) the law is P(k) = (1 - q)/(1 + q) q^|k|, k integer (Ghosh, Roughgarden and Sundararajan,
STOC 2009).
"""

from __future__ import annotations

import math
import operator
import secrets
import sys
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import opendp.prelude as dp

from agedp_data import losses
from agedp_data.errors import ChainError, InputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

dp.enable_features("contrib")

LARGEST_SCALE = 2.0**55
LARGEST_VALUE = 2**62
_EXACT = Context(prec=80, traps=[])


def discrete_laplace(values: ArrayLike, *, sensitivity: int, loss: losses.Amount) -> NDArray[np.int64]:
    """Return `values` plus one independent discrete Laplace draw each, at a loss of at most `loss`.

    `values` (m,) int64 [any whole unit]; `sensitivity` the L1 sensitivity of the whole vector [same unit];
    `loss` epsilon [-]. OpenDP's privacy map of the very measurement that draws is compared with `loss` first.

    Raises:
        TypeError: `values` is not a vector of integers.
        InputError: a value too large for noise in 64 bits.
        ChainError: a sensitivity or loss for which no scale exists.
    """
    vector = np.asarray(values)
    if vector.shape == (0,):
        vector = vector.astype(np.int64)
    if vector.ndim != 1 or vector.dtype.kind not in "iu" or not np.can_cast(vector.dtype, np.int64):
        raise TypeError(f"noise is added to a vector of int64, not to {vector.dtype} of shape {vector.shape}")
    if vector.size and (int(vector.max()) > LARGEST_VALUE or int(vector.min()) < -LARGEST_VALUE):
        raise InputError("a sum is beyond 2^62 units, too large for noise in 64 bits; use a larger unit")
    measurement = _measurement(laplace_scale(sensitivity=sensitivity, loss=loss))
    if not _within(measurement, sensitivity, _positive(loss)):
        raise ChainError(f"OpenDP's privacy map exceeds the loss {loss} at sensitivity {sensitivity}")
    return np.asarray(measurement(vector.tolist()), dtype=np.int64)


def fair_bits(number: int) -> NDArray[np.bool_]:
    """Return so many fair coins, True for heads, from the system's cryptographic source; shape (number,)."""
    return np.array([secrets.randbits(1) for _ in range(number)], np.bool_)


def laplace_scale(*, sensitivity: int, loss: losses.Amount) -> float:
    """Return the smallest float scale at which OpenDP's privacy map does not exceed `loss`.

    The two are compared as exact fractions.
    `sensitivity` [unit of the values], `loss` epsilon [-], result [unit of the values].

    >>> laplace_scale(sensitivity=3, loss=2)
    1.5

    Raises:
        ChainError: a sensitivity below 1, a loss that is not a positive number, a scale that no float holds.
    """
    whole, allowed = _whole(sensitivity), _positive(loss)
    exact = whole / allowed
    if not sys.float_info.min <= exact <= LARGEST_SCALE:
        raise ChainError(
            f"sensitivity {sensitivity} at loss {loss} asks for a noise scale outside"
            " [2^-1022, 2^55]; choose a loss nearer to 1"
        )
    return _smallest_scale(whole, allowed)


@lru_cache(maxsize=1024)
def _smallest_scale(whole: Fraction, allowed: Fraction) -> float:
    """Return the scale by trying; a series asks for the same one every day."""
    scale = float(whole / allowed)
    while _within(_measurement(scale), whole, allowed):
        scale = math.nextafter(scale, 0.0)
    while not _within(_measurement(scale), whole, allowed):
        scale = math.nextafter(scale, math.inf)
    return scale


def recorded_loss(*, sensitivity: int, scale: float) -> int:
    """Return sensitivity/scale in whole 1e-9 epsilon, rounded up from the exact fraction.

    >>> recorded_loss(sensitivity=1, scale=3.0)
    333333334

    Raises:
        ChainError: a sensitivity below 1 or a scale that is not a positive number.
    """
    return losses.ceil_nano(_whole(sensitivity) / _positive(scale, "noise scale"))


def standard_deviation(scale: float) -> float:
    """Return the standard deviation of the noise, sqrt(2 q)/(1 - q) [unit of `scale`].

    Written as sqrt(2) e^-x/(1 - e^-2x) with x = 1/(2 scale), which neither cancels nor overflows.

    >>> round(standard_deviation(1.0), 3)  # sqrt(2/e)/(1 - 1/e) = .8578/.6321
    1.357

    Raises:
        ChainError: a scale that is not a positive number.
    """
    x = float(1 / (2 * _positive(scale, "noise scale")))
    return math.sqrt(2.0) * math.exp(-x) / -math.expm1(-2.0 * x)


def interval(scale: float, coverage: losses.Amount) -> int:
    """Return the smallest whole w with P(|noise| <= w) >= coverage [unit of `scale`].

    P(|noise| > w) = 2 q^(w+1)/(1 + q), hence w = ceil(-scale ln((1 - coverage)(1 + q)/2)) - 1. Floats lose
    the last unit of a large w, so this is 80-digit arithmetic; equality never occurs (q is transcendental).
    With q = 1/e: P(0) = .462, P(|noise| <= 1) = .802.

    >>> interval(1.0, 0.46), interval(1.0, 0.8), interval(1.0, 0.81)
    (0, 1, 2)

    Raises:
        ChainError: a scale that is not a positive number, a coverage outside (0, 1).
    """
    exact, share = _positive(scale, "noise scale"), _positive(coverage, "coverage")
    if share >= 1:
        raise ChainError(f"an interval covers a share between 0 and 1, not {coverage}")
    width = _decimal(exact)
    q = _EXACT.exp(_decimal(-1 / exact))
    tail = _EXACT.multiply(_decimal((1 - share) / 2), _EXACT.add(Decimal(1), q))
    steps = _EXACT.multiply(width, -_EXACT.ln(tail)).to_integral_value(ROUND_CEILING)
    return max(int(steps) - 1, 0)


def _measurement(scale: float) -> Any:  # noqa: ANN401 - OpenDP has no types
    """Return OpenDP's discrete Laplace measurement on integer vectors."""
    return dp.m.make_laplace(
        dp.vector_domain(dp.atom_domain(T="i64")),
        dp.l1_distance(T="i64"),
        scale=scale,
    )


def _within(measurement: Any, sensitivity: int | Fraction, allowed: Fraction) -> bool:  # noqa: ANN401
    """Tell whether the privacy map stays within the loss, both taken at their exact values."""
    spent = float(measurement.map(int(sensitivity)))
    return math.isfinite(spent) and Fraction(spent) <= allowed


def _whole(sensitivity: int) -> Fraction:
    """Return a sensitivity as a fraction, or refuse it."""
    whole = operator.index(sensitivity)
    if not 1 <= whole <= LARGEST_VALUE:
        raise ChainError(f"a sensitivity is a whole number from 1 to 2^62, not {whole}")
    return Fraction(whole)


def _positive(amount: losses.Amount, what: str = "loss") -> Fraction:
    """Return an amount as an exact fraction, or refuse what is not a positive number."""
    try:
        exact = Fraction(float(amount) if isinstance(amount, np.floating) else amount)
    except (ValueError, OverflowError):
        raise ChainError(f"the {what} must be a positive number, not {amount}") from None
    if exact <= 0:
        raise ChainError(f"the {what} must be a positive number, not {amount}")
    return exact


def _decimal(exact: Fraction) -> Decimal:
    """Return a fraction to 80 digits."""
    return _EXACT.divide(Decimal(exact.numerator), Decimal(exact.denominator))
