r"""Noise that grows like sqrt(k) under hyperbolic discounting: the certified constant, and that of [F] Corollary 16.

The idea: with noise scales b_k = C sqrt(k) sensitivity/epsilon the discounted loss at t is epsilon S(t)/C,

.. math:: S(t) = \sum_{k=1}^{t} \frac{1}{(1 + \beta (t - k)) \sqrt k},

so that C must be at least the supremum of S.

Example: beta = 1 needs C = 1.2744; the paper's constant is 2.178.

Erratum: the proof of Corollary 16 bounds each half of the sum by an integral, but omits the last term of the increasing
half, f(t) = 1/sqrt(t), and takes atanh(u)/sqrt(1 + beta t), u^2 = beta t/(1 + beta t), for decreasing in t. It
increases as long as u atanh(u) < 1. The correct bound is

.. math:: S(t) \le \frac{2 \operatorname{asinh} \sqrt{\beta t}}{\sqrt{\beta (1 + \beta t)}} + \frac{1}{\sqrt t},

whose two parts decrease from beta t = sinh(x)^2, x tanh(x) = 1 on.

[F] Farokhi: Temporally Discounted Differential Privacy for Evolving Datasets on an Infinite Horizon. ICCPS 2020.
https://doi.org/10.48550/arXiv.1908.03995
"""

from __future__ import annotations

import math

import numpy as np

from agedp_data.errors import ChainError
from agedp_data.privacy.discounts import Hyperbolic, parse_number, upper_convolution

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
        [F] Farokhi: Temporally Discounted Differential Privacy for Evolving Datasets on an Infinite Horizon. ICCPS
        2020. https://doi.org/10.48550/arXiv.1908.03995
        [N] Navot: An Extension of the Euler-Maclaurin Summation Formula to Functions with a Branch Singularity.
        J. Math. Phys. 40, 1961. https://doi.org/10.1002/sapm1961401271

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
        [F] Farokhi: Temporally Discounted Differential Privacy for Evolving Datasets on an Infinite Horizon. ICCPS
        2020. https://doi.org/10.48550/arXiv.1908.03995

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
        sums = upper_convolution(Hyperbolic(beta).weights(count), 1 / np.sqrt(np.arange(1.0, count + 1)))
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
