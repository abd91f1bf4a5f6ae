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


def tail(scale: float, width: int) -> float:
    """P(noise > width) = q^(width + 1)/(1 + q), a geometric series."""
    q = math.exp(-1 / scale)
    return q ** (width + 1) / (1 + q)


def p_value(draws: np.ndarray, scale: float, *, strips: int = 4, reach: int = 4) -> float:
    """Chi-square of draws against the law: `strips` to a scale, up to `reach` scales, and both tails."""
    width = max(2, round(reach * scale))
    step = max(1, round(scale / strips))
    edges = np.arange(-width, width + 2, step)
    masses = np.add.reduceat(law(scale, int(edges[0]), int(edges[-1]) - 1), edges[:-1] - edges[0])
    expected = np.concatenate([[tail(scale, int(-edges[0]))], masses, [tail(scale, int(edges[-1]) - 1)]])
    observed = np.histogram(draws, [-np.inf, *edges, np.inf])[0]
    assert expected.min() * draws.size > 5
    return float(stats.chisquare(observed, expected / expected.sum() * draws.size).pvalue)


def same_law(one: np.ndarray, other: np.ndarray, *, cells: int = 40) -> float:
    """p-value of: are two samples of whole numbers of one law? Cells hold about equally many of both together."""
    edges = np.unique(np.quantile(np.concatenate([one, other]), np.linspace(0, 1, cells)))
    table = np.array([np.histogram(each, [-np.inf, *(edges[1:-1] - 0.5), np.inf])[0] for each in (one, other)])
    return float(stats.chi2_contingency(table[:, table.sum(axis=0) > 0]).pvalue)


def low_bits_give_away(figures: Callable[[int], np.ndarray]) -> float:
    """p-value of: are the low bits of figures near 0 distributed alike for the true values 0 and 1?

    Scale 1, figures below .25, share of multiples of 2^-53: numpy's Laplace betrays the value there.
    """
    table = []
    for true in (0, 1):
        near = figures(true)
        near = near[np.abs(near) < 0.25]
        whole = np.ldexp(near, 53) % 1 == 0
        table.append([whole.sum() + 1, (~whole).sum() + 1])
    return float(stats.chi2_contingency(np.array(table)).pvalue)
