r"""Privacy-loss distribution: the tightest (epsilon, delta) figure of a span, for plans; no promise is enforced by it.

The idea: of a release with sensitivity s and scale b the loss at the worst pair of datasets is a random number with a
known law. Losses of independent releases add, so their laws are convolved, and

.. math:: \delta(\varepsilon) = \mathbb{E} \bigl[ 1 - e^{\varepsilon - L} \bigr]^+ .

Example: a year of daily releases with epsilon 0.1 each: 10.13 at delta = 1e-6, where the Rényi curve gives 10.75.

Decisions:

* Losses are rounded up on a grid, so that the discretisation only raises the figure. The floats of the convolution are
  not certified: a plan may show the figure, `renyi` enforces.

[KJH] Koskela, Jälkö, Honkela: Computing Tight Differential Privacy Guarantees Using FFT. AISTATS 2020.
https://doi.org/10.48550/arXiv.1906.03049
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

import numpy as np

from agedp_data.arrays import Floats
from agedp_data.errors import ChainError

Release = tuple[int, float, int]
"""Sensitivity, scale, and how many such releases there are."""

_POINTS: Final = 2**21
_TOLERANCE: Final = 1e-9


def tight_epsilon(releases: Iterable[Release], delta: float) -> float:
    r"""Epsilon of independent discrete Laplace releases at a delta, within the grid's spacing above the exact one.

    .. math:: \min \left\{ \varepsilon : \mathbb{E} [1 - e^{\varepsilon - L_1 - \dots - L_n}]^+ \le \delta \right\}

    Source: [KJH] with losses rounded up.

    Args:
        releases: sensitivity [unit], scale [unit] and number of each kind of release.
        delta: probability, 0 < delta < 1 [-].

    Returns:
        Not above the sum of the pure losses [epsilon].

    Raises:
        ChainError: a delta outside (0, 1).

    References:
        [KJH] https://doi.org/10.48550/arXiv.1906.03049

    >>> round(tight_epsilon([(50_000, 500_000.0, 365)], 1e-6), 2)  # exact: 10.125
    10.13
    """
    if not 0 < delta < 1:
        raise ChainError(f"delta = {delta}: a probability between 0 and 1")
    rows = list(releases)
    pure = sum(count * sensitivity / scale for sensitivity, scale, count in rows)
    if not rows:
        return 0.0
    step = 2.2 * pure / _POINTS
    law = _composed_law(rows, step)
    losses = np.asarray((np.arange(_POINTS) - _POINTS // 2) * step, np.float64)
    return min(pure, _smallest_epsilon(losses, law, delta))


def _composed_law(releases: list[Release], step: float) -> Floats:
    """Return the law of the sum of all losses on the grid of `step`, 0 in the middle."""
    from scipy import fft  # noqa: PLC0415  (slow to import, and few commands need it)

    spectrum = np.ones(_POINTS // 2 + 1, np.complex128)
    for sensitivity, scale, count in releases:
        spectrum *= fft.rfft(_law(sensitivity, scale, step)) ** count
    return np.asarray(fft.fftshift(np.clip(fft.irfft(spectrum, _POINTS), 0, None)))


def _law(sensitivity: int, scale: float, step: float) -> Floats:
    """Return the law of one release's loss, rounded up to the grid; negative losses at the end of the array.

    P[L = s/b] = 1/(1 + q), P[L = -s/b] = q^s/(1 + q), P[L = (s - 2k)/b] = (1 - q)/(1 + q) q^k.
    """
    q = math.exp(-1 / scale)
    moved = np.arange(1, sensitivity)
    losses = np.concatenate([[sensitivity], sensitivity - 2 * moved, [-sensitivity]]) / scale
    rest = -math.expm1(-1 / scale) / (1 + q) * np.exp(-moved / scale)
    weights = np.concatenate([[1 / (1 + q)], rest, [math.exp(-sensitivity / scale) / (1 + q)]])
    cells = np.ceil(losses / step - _TOLERANCE).astype(np.int64) % _POINTS
    return np.asarray(np.bincount(cells, weights, minlength=_POINTS), np.float64)


def _smallest_epsilon(losses: Floats, law: Floats, delta: float) -> float:
    """Return the smallest epsilon on the grid at which the expected excess of the loss is at most delta."""
    # E[1 - e^(eps - L)]^+ = P(L > eps) - e^eps E[e^-L; L > eps]
    beyond = np.cumsum(law[::-1])[::-1] - law
    shrunk = law * np.exp(-np.clip(losses, 0, None))
    weighted = np.cumsum(shrunk[::-1])[::-1] - shrunk
    positive = losses >= 0
    excess = (beyond - np.exp(np.minimum(losses, 700.0)) * weighted)[positive]
    fitting = np.flatnonzero(excess <= delta)
    return float(losses[positive][fitting[0]]) if fitting.size else math.inf
