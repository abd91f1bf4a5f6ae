r"""Discrete Laplace noise and private selection from OpenDP: the only module that draws random numbers.

The idea: add integer noise to integer statistics, so that no low bits of a float identify the true value. With
q = exp(-1/scale) the law is

.. math:: P(k) = \frac{1 - q}{1 + q} q^{|k|}, \quad k \in \mathbb{Z} \quad \text{[GRS]}

Example: a sum with sensitivity 50,000 Wh at epsilon 0.5 gets noise of scale 100,000 Wh.

Decisions:

* The sampler is OpenDP's exact integer sampler, fed by the system's cryptographic source. A seed does not exist.
* OpenDP saturates at the ends of int64. That costs no privacy but would bias a release silently. Values beyond 2^62
  and scales beyond 2^55 are refused, so that a value saturates with a probability below e^-127.
* Sensitivity and loss are compared as exact fractions; a recorded loss is rounded up.
* A selection draws by Gumbel noise, whose law is that of the exponential mechanism. OpenDP's measurement for pure
  differential privacy (permute-and-flip) has another law.

[GRS] Ghosh, Roughgarden, Sundararajan: Universally Utility-Maximizing Privacy Mechanisms. STOC 2009.
https://doi.org/10.1145/1536414.1536464
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

from agedp_data import epsilon
from agedp_data.errors import ChainError, InputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


LARGEST_SCALE = 2.0**55
LARGEST_VALUE = 2**62
_LARGEST_SCORE = 2**53
_BOTH_WAYS = 2
"""Sensitivity of a difference of two scores, of which one may rise by 1 while the other falls by 1."""
_ROUNDINGS = 16
"""Units in the last place by which OpenDP's upward roundings may enlarge its map."""
_EXACT = Context(prec=80, traps=[])


def discrete_laplace(values: ArrayLike, *, sensitivity: int, loss: epsilon.EpsilonLike) -> NDArray[np.int64]:
    r"""Return `values` plus an independent discrete Laplace draw each; use it for every release.

    .. math:: y_i = x_i + Z_i, \quad P(Z_i = k) = \frac{1 - q}{1 + q} q^{|k|}, \quad q = e^{-1/\mathrm{scale}},
       \quad \mathrm{scale} \approx \Delta_1 / \varepsilon

    Source: [GRS] for the law, [DMNS] Proposition 1 for the calibration by L1 sensitivity. OpenDP's privacy map of the
    measurement that draws is compared with `loss` before the draw.

    Args:
        values: exact statistics, shape (m,), int64, at most 2^62 in size [any integer unit].
        sensitivity: L1 sensitivity of the vector, integer from 1 to 2^62 [unit of `values`].
        loss: privacy loss of all m draws together, > 0 [epsilon].

    Returns:
        Noisy statistics, shape (m,), int64 [unit of `values`].

    Raises:
        TypeError: `values` is not a vector of integers.
        InputError: a value is too large for noise in 64 bits.
        ChainError: the sensitivity or loss has no noise scale.

    References:
        [GRS] Ghosh, Roughgarden, Sundararajan: Universally Utility-Maximizing Privacy Mechanisms. STOC 2009.
        https://doi.org/10.1145/1536414.1536464
        [DMNS] Dwork, McSherry, Nissim, Smith: Calibrating Noise to Sensitivity in Private Data Analysis. TCC 2006.
        https://doi.org/10.1007/11681878_14

    >>> discrete_laplace([7, 9], sensitivity=1, loss=10_000).tolist()  # q = e^-10000: the noise is 0
    [7, 9]
    """
    vector = np.asarray(values)
    if vector.shape == (0,):
        vector = vector.astype(np.int64)
    if vector.ndim != 1 or vector.dtype.kind not in "iu" or not np.can_cast(vector.dtype, np.int64):
        raise TypeError(f"noise is added to a vector of int64, not to {vector.dtype} of shape {vector.shape}")
    if vector.size and (int(vector.max()) > LARGEST_VALUE or int(vector.min()) < -LARGEST_VALUE):
        raise InputError("a sum is beyond 2^62 units, too large for noise in 64 bits; use a larger unit")
    scale = laplace_scale(sensitivity=sensitivity, loss=loss)
    if not _is_within_loss(scale, sensitivity, _exact_positive(loss)):
        raise ChainError(f"OpenDP's privacy map exceeds the loss {loss} at sensitivity {sensitivity}")
    return np.asarray(_measurement(scale)(vector.tolist()), dtype=np.int64)


def fair_bits(count: int) -> NDArray[np.bool_]:
    """Return independent fair bits from the system's cryptographic source; use them to choose the datasets of an audit.

    .. math:: P(b_i = 1) = 1/2

    Args:
        count: number of bits, >= 0.

    Returns:
        Shape (count,), bool.

    >>> fair_bits(3).shape
    (3,)
    """
    return np.array([secrets.randbits(1) for _ in range(count)], np.bool_)


def exponential_mechanism(scores: ArrayLike, *, loss: epsilon.EpsilonLike) -> int:
    r"""Return the index of a score, high scores with exponentially higher probability; use it to select privately.

    .. math:: P(k) = \frac{e^{\varepsilon u_k / 2}}{\sum_j e^{\varepsilon u_j / 2}}

    Source: [MT] Theorem 6 for scores that one household changes by at most 1. It may raise some and lower others, hence
    the factor 2. OpenDP adds exact Gumbel noise of scale 2 / loss to each score and returns the largest. Its map of
    this measurement is rho = loss^2 / 8, by the bounded range of [CR]; 8 rho is compared with loss^2 before the draw.

    Args:
        scores: one score for each choice, shape (m,), integers at most 2^53 in size [households].
        loss: privacy loss of the draw, > 0 [epsilon].

    Returns:
        Index from 0 to m - 1.

    Raises:
        TypeError: `scores` is not a vector of integers, or it is empty.
        ChainError: the loss has no noise scale.

    References:
        [MT] McSherry, Talwar: Mechanism Design via Differential Privacy. FOCS 2007.
        https://doi.org/10.1109/FOCS.2007.66
        [CR] Cesar, Rogers: Bounding, Concentrating, and Truncating: Unifying Privacy Loss Composition for Data
        Analytics. ALT 2021.

    >>> exponential_mechanism([0, 5, 1], loss=10_000)  # the others have probability e^-20000
    1
    """
    vector = np.asarray(scores)
    if vector.ndim != 1 or not vector.size or vector.dtype.kind not in "iu" or np.abs(vector).max() > _LARGEST_SCORE:
        raise TypeError(f"a selection is among integer scores, not {vector.dtype} of shape {vector.shape}")
    measurement = _gumbel_selection(_exact_positive(loss), laplace_scale(sensitivity=_BOTH_WAYS, loss=loss))
    return int(measurement(vector.tolist()))


def laplace_scale(*, sensitivity: int, loss: epsilon.EpsilonLike) -> float:
    r"""Return the smallest float scale at which OpenDP's privacy map does not exceed `loss`; use it to plan a release.

    .. math:: \mathrm{scale} = \min \{ b : \mathrm{map}_b(\Delta_1) \le \varepsilon \} \approx \Delta_1 / \varepsilon

    Source: [DMNS] Proposition 1. The map is the quotient of sensitivity and scale, rounded up to a float. So it does
    not exceed `loss` exactly if the quotient does not exceed the largest float up to `loss`. OpenDP itself is not
    imported: `discrete_laplace` asks its map before the draw.

    Args:
        sensitivity: L1 sensitivity, integer from 1 to 2^62 [unit of the values].
        loss: privacy loss, > 0 [epsilon].

    Returns:
        Noise scale [unit of the values].

    Raises:
        ChainError: a sensitivity below 1, a loss that is not a positive number, or a scale outside [2^-1022, 2^55].

    References:
        [DMNS] Dwork, McSherry, Nissim, Smith: Calibrating Noise to Sensitivity in Private Data Analysis. TCC 2006.
        https://doi.org/10.1007/11681878_14

    >>> laplace_scale(sensitivity=3, loss=2)  # 3/2
    1.5
    """
    exact_sensitivity, max_loss = _exact_sensitivity(sensitivity), _exact_positive(loss)
    exact_scale = exact_sensitivity / max_loss
    if not sys.float_info.min <= exact_scale <= LARGEST_SCALE:
        raise ChainError(
            f"sensitivity {sensitivity} at loss {loss} asks for a noise scale outside"
            " [2^-1022, 2^55]; choose a loss nearer to 1"
        )
    return _round_up(exact_sensitivity / Fraction(_round_down(max_loss)))


def recorded_loss(*, sensitivity: int, scale: float) -> int:
    r"""Return the loss of a draw as the ledger records it, rounded up from the exact fraction.

    .. math:: n = \lceil 10^9 \, \Delta_1 / \mathrm{scale} \rceil

    Source: [DMNS] Proposition 1.

    Args:
        sensitivity: L1 sensitivity, integer from 1 to 2^62 [unit of the values].
        scale: noise scale, > 0 [unit of the values].

    Returns:
        Privacy loss, integer [nano-epsilon].

    Raises:
        ChainError: a sensitivity below 1 or a scale that is not a positive number.

    References:
        [DMNS] Dwork, McSherry, Nissim, Smith: Calibrating Noise to Sensitivity in Private Data Analysis. TCC 2006.
        https://doi.org/10.1007/11681878_14

    >>> recorded_loss(sensitivity=1, scale=3.0)
    333333334
    """
    return epsilon.ceil_nano(_exact_sensitivity(sensitivity) / _exact_positive(scale, "noise scale"))


def standard_deviation(scale: float) -> float:
    r"""Return the standard deviation of discrete Laplace noise; use it to report the error of a release.

    .. math:: \sigma = \frac{\sqrt{2 q}}{1 - q} = \frac{\sqrt 2 \, e^{-x}}{1 - e^{-2x}},
       \quad q = e^{-1/\mathrm{scale}}, \quad x = \frac{1}{2 \, \mathrm{scale}}

    Source: variance 2q/(1 - q)^2 of the law of [GRS]. The second form neither cancels nor overflows. For a large scale
    it approaches sqrt(2) scale, the value of the continuous Laplace law.

    Args:
        scale: noise scale, > 0 [any unit].

    Returns:
        Standard deviation [unit of `scale`].

    Raises:
        ChainError: a scale that is not a positive number.

    References:
        [GRS] Ghosh, Roughgarden, Sundararajan: Universally Utility-Maximizing Privacy Mechanisms. STOC 2009.
        https://doi.org/10.1145/1536414.1536464

    >>> round(standard_deviation(1.0), 3)  # sqrt(2/e)/(1 - 1/e) = .8578/.6321
    1.357
    """
    x = float(1 / (2 * _exact_positive(scale, "noise scale")))
    return math.sqrt(2.0) * math.exp(-x) / -math.expm1(-2.0 * x)


def interval(scale: float, coverage: epsilon.EpsilonLike) -> int:
    r"""Return the half-width of the noise interval: the smallest integer w with P(abs(noise) <= w) >= coverage.

    .. math:: P(|Z| > w) = \frac{2 q^{w+1}}{1 + q}, \quad
       w = \left\lceil -\mathrm{scale} \, \ln \frac{(1 - c)(1 + q)}{2} \right\rceil - 1, \quad q = e^{-1/\mathrm{scale}}

    Source: tail of the law of [GRS]. Floats lose the last unit of a large w, so the arithmetic has 80 digits. Equality
    never occurs, because q is transcendental.

    Args:
        scale: noise scale, > 0 [any unit].
        coverage: probability c that the interval holds, in (0, 1) [-].

    Returns:
        Half-width, integer >= 0 [unit of `scale`].

    Raises:
        ChainError: a scale that is not a positive number, or a coverage outside (0, 1).

    References:
        [GRS] Ghosh, Roughgarden, Sundararajan: Universally Utility-Maximizing Privacy Mechanisms. STOC 2009.
        https://doi.org/10.1145/1536414.1536464

    >>> interval(1.0, 0.46), interval(1.0, 0.8), interval(1.0, 0.81)  # q = 1/e: P(0) = .462, P(abs <= 1) = .802
    (0, 1, 2)
    """
    exact_scale, exact_coverage = _exact_positive(scale, "noise scale"), _exact_positive(coverage, "coverage")
    if exact_coverage >= 1:
        raise ChainError(f"an interval covers a share between 0 and 1, not {coverage}")
    decimal_scale = _to_decimal(exact_scale)
    q = _EXACT.exp(_to_decimal(-1 / exact_scale))
    tail = _EXACT.multiply(_to_decimal((1 - exact_coverage) / 2), _EXACT.add(Decimal(1), q))
    bound = _EXACT.multiply(decimal_scale, -_EXACT.ln(tail)).to_integral_value(ROUND_CEILING)
    return max(int(bound) - 1, 0)


@lru_cache(maxsize=64)
def _measurement(scale: float) -> Any:  # noqa: ANN401 - OpenDP has no types
    """Return OpenDP's discrete Laplace measurement on integer vectors; only a draw needs OpenDP.

    It has no state: each call of it draws anew. The days of an archive have few scales.
    """
    import opendp.prelude as dp  # noqa: PLC0415

    dp.enable_features("contrib")
    return dp.m.make_laplace(
        dp.vector_domain(dp.atom_domain(T="i64")),
        dp.l1_distance(T="i64"),
        scale=scale,
    )


def _gumbel_selection(max_loss: Fraction, scale: float) -> Any:  # noqa: ANN401 - OpenDP has no types
    """Return OpenDP's selection by Gumbel noise, at the smallest scale from `scale` on that its map permits."""
    import opendp.prelude as dp  # noqa: PLC0415

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.linf_distance(T="i64")
    for _ in range(_ROUNDINGS):
        measurement: Any = dp.m.make_noisy_max(*space, dp.zero_concentrated_divergence(), scale=scale)
        rho = float(measurement.map(1))
        if math.isfinite(rho) and 8 * Fraction(rho) <= max_loss**2:
            return measurement
        scale = math.nextafter(scale, math.inf)
    raise ChainError(f"OpenDP's privacy map exceeds the loss {float(max_loss)} of a selection")


@lru_cache(maxsize=64)
def _is_within_loss(scale: float, sensitivity: int | Fraction, max_loss: Fraction) -> bool:
    """Return whether the measurement's privacy map does not exceed the loss, both at their exact values."""
    map_loss = float(_measurement(scale).map(int(sensitivity)))
    return math.isfinite(map_loss) and Fraction(map_loss) <= max_loss


def _exact_sensitivity(sensitivity: int) -> Fraction:
    """Return a sensitivity as a fraction. Raises ChainError outside 1..2^62."""
    integer = operator.index(sensitivity)
    if not 1 <= integer <= LARGEST_VALUE:
        raise ChainError(f"a sensitivity is a whole number from 1 to 2^62, not {integer}")
    return Fraction(integer)


def _exact_positive(value: epsilon.EpsilonLike, name: str = "loss") -> Fraction:
    """Return a value as an exact fraction. Raises ChainError if it is not a positive number."""
    try:
        exact = Fraction(float(value) if isinstance(value, np.floating) else value)
    except (ValueError, OverflowError):
        raise ChainError(f"the {name} must be a positive number, not {value}") from None
    if exact <= 0:
        raise ChainError(f"the {name} must be a positive number, not {value}")
    return exact


def _round_down(fraction: Fraction) -> float:
    """Return the largest float up to a positive fraction."""
    try:
        nearest = float(fraction)
    except OverflowError:
        return sys.float_info.max
    return nearest if nearest <= fraction else math.nextafter(nearest, 0.0)


def _round_up(fraction: Fraction) -> float:
    """Return the smallest float from a fraction below 2^1000 on."""
    nearest = float(fraction)
    return nearest if nearest >= fraction else math.nextafter(nearest, math.inf)


def _to_decimal(fraction: Fraction) -> Decimal:
    """Return a fraction to 80 digits."""
    return _EXACT.divide(Decimal(fraction.numerator), Decimal(fraction.denominator))
