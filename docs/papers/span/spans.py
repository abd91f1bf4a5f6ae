"""Losses of spans, and the noise that a promise about a span needs, by mechanism and accountant.

All noise is the standard deviation of a published mean, for the clamp and the households below.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Final

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr
from scipy.stats import binom

from agedp_data.accounting.renyi import (
    Curve,
    approximate_epsilon,
    counts_curve,
    laplace_curve,
    largest_equal_loss,
    multiply,
)
from agedp_data.epsilon import NANO

YEAR: Final = 365
CLAMP_KWH: Final = 30
HOUSEHOLDS: Final = 5000
MILLIONTH, BILLIONTH = Decimal("1e-6"), Decimal("1e-9")

_CLAMP_WH = 1000 * CLAMP_KWH
_ORDERS = 1 + np.exp(np.linspace(np.log(1e-3), np.log(1e5), 4000))  # the Gaussian mechanism has a curve at each


def day_curve(loss: int) -> Curve:
    """Return the curve of a day's sum with this loss [nano-epsilon]."""
    return laplace_curve(_CLAMP_WH, _CLAMP_WH * NANO / loss)


def span_epsilon(loss: float, days: int, delta: Decimal) -> float:
    """Return the epsilon of days with equal losses at a delta, from the Rényi curve."""
    nano = round(loss * NANO)
    return approximate_epsilon(multiply(day_curve(nano), days), delta, pure=days * nano) / NANO


def histogram_epsilon(loss: float, days: int, delta: Decimal) -> float:
    """Return the same of a histogram, of which a household moves two counts by one each."""
    return approximate_epsilon(multiply(counts_curve(2, 2 / loss), days), delta, pure=round(days * loss * NANO)) / NANO


def day_loss(days: int, epsilon: float, delta: Decimal) -> float:
    """Return the largest equal loss of a day with which a span stays within (epsilon, delta)."""
    nano = round(epsilon * NANO)
    return largest_equal_loss(day_curve, days, epsilon=nano, delta=delta, cap=nano) / NANO


def any_mechanism_epsilon(loss: float, days: int, delta: Decimal) -> float:
    """Return the exact epsilon of the worst mechanisms with equal losses: a binomial of randomised responses."""
    truths = np.arange(days + 1)
    weights = binom.pmf(truths, days, math.exp(loss) / (1 + math.exp(loss)))

    def excess(epsilon: float) -> float:
        gains = -np.expm1(np.minimum(epsilon - (2 * truths - days) * loss, 0))
        return float(gains @ weights) - float(delta)

    return float(brentq(excess, 0, days * loss))


def laplace_noise(loss: float) -> float:
    """Return the noise of a day with this loss [kWh]."""
    return math.sqrt(2) * CLAMP_KWH / (loss * HOUSEHOLDS)


def concentrated_rho(epsilon: float, delta: Decimal) -> float:
    """Return the rho of zero-concentrated privacy that stays within (epsilon, delta)."""
    rest = np.log1p(-1 / _ORDERS) - (math.log(delta) + np.log(_ORDERS)) / (_ORDERS - 1)
    return float(brentq(lambda rho: float((rho * _ORDERS + rest).min()) - epsilon, 1e-9, epsilon))


def gaussian_noise(days: int, epsilon: float, delta: Decimal) -> float:
    """Return the noise of a day of the Gaussian mechanism, accounted by zero-concentrated privacy [kWh]."""
    return CLAMP_KWH / HOUSEHOLDS * math.sqrt(days / (2 * concentrated_rho(epsilon, delta)))


def exact_gaussian_noise(days: int, epsilon: float, delta: Decimal) -> float:
    """Return the noise of a day of the Gaussian mechanism, accounted exactly [kWh]."""

    def excess(shift: float) -> float:  # shift: distance of the two means, in standard deviations
        near, far = log_ndtr(shift / 2 - epsilon / shift), log_ndtr(-shift / 2 - epsilon / shift)
        return math.exp(near) - math.exp(epsilon + far) - float(delta)

    return CLAMP_KWH / HOUSEHOLDS * math.sqrt(days) / float(brentq(excess, 1e-3, 100.0))
