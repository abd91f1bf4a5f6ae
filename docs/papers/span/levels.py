"""Noise of the means over a day, a week, four weeks and a period, if noise is also added to sums of whole blocks.

A promise about all days of a household: each of T days may change by the clamp U. Level m adds Gaussian noise to the
sums of blocks of m days and has a share w of rho. Its noise has the variance T m U^2 / (2 w rho), so that the
information of all levels is (2 rho / T U^2) sum_m w_m P_m, with P_m the projection on series that are constant on
blocks of m days. Blocks of one level divide those of the next, so these projections commute.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

DAYS: Final = 364
BLOCKS: Final = (1, 7, 28, 364)

Shares = Mapping[int, float]
"""Share of rho by number of days of a block; the shares add up to 1."""


def bound(block: int) -> float:
    """Return the least noise of the mean of a block, as a multiple of that of a day: 1 / sqrt(m)."""
    return 1 / math.sqrt(block)


def noise(shares: Shares, block: int) -> float:
    """Return the noise of the mean of a block by least squares, as a multiple of a day's with all of rho on days."""
    counts = [DAYS // size for size in BLOCKS if size >= block]
    weights = [sum(shares.get(size, 0) for size in BLOCKS if size <= other) for other in BLOCKS if other >= block]
    dimensions = [count - coarser for count, coarser in zip(counts, [*counts[1:], 0], strict=True)]
    variance = sum(count / weight for count, weight in zip(dimensions, weights, strict=True)) / counts[0]
    return bound(block) * math.sqrt(variance)


def total_beside_groups(groups: int, share: float) -> tuple[float, float]:
    """Return the noise of a group and of the total, by least squares, as multiples of a group's with all of rho.

    The groups divide the households; `share` of rho is for the total.
    """
    rest = 1 - share
    total = 1 / (share + rest / groups)
    group = (1 - share / (rest + groups * share)) / rest
    return math.sqrt(group), math.sqrt(total)
