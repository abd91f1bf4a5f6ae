"""How well draws fit the discrete Laplace law, at a significance that cannot flake."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy import stats

CANNOT_FLAKE = 1e-9
"""The probability with which a test of a correct sampler fails."""


def law(scale: float, low: int, high: int) -> np.ndarray:
    """P(k) for k = low..high of the discrete Laplace law, by its definition."""
    q = math.exp(-1 / scale)
    return (1 - q) / (1 + q) * q ** np.abs(np.arange(low, high + 1))


def p_value(draws: np.ndarray, scale: float) -> float:
    """Chi-square of draws against the law: four strips to a scale, up to four scales, and both tails."""
    width, step = max(2, round(4 * scale)), max(1, round(scale / 4))
    edges = np.arange(-width, width + 2, step)
    masses = np.add.reduceat(law(scale, int(edges[0]), int(edges[-1]) - 1), edges[:-1] - edges[0])
    q = math.exp(-1 / scale)
    tails = [q ** (1 - int(edges[0])) / (1 + q), q ** int(edges[-1]) / (1 + q)]  # geometric series
    expected = np.concatenate([tails[:1], masses, tails[1:]])
    assert expected.min() * draws.size > 5
    observed = np.histogram(draws, [-np.inf, *edges, np.inf])[0]
    return float(stats.chisquare(observed, expected / expected.sum() * draws.size).pvalue)


def low_bits_give_away(values_of: Callable[[int], np.ndarray]) -> float:
    """p-value of: are the low bits of values near 0 distributed alike for the true values 0 and 1?

    Scale 1, values below .25, share of multiples of 2^-53: numpy's Laplace betrays the value there.
    """
    table = []
    for true in (0, 1):
        near = values_of(true)
        near = near[np.abs(near) < 0.25]
        whole = np.ldexp(near, 53) % 1 == 0
        table.append([whole.sum() + 1, (~whole).sum() + 1])
    return float(stats.chi2_contingency(np.array(table)).pvalue)
