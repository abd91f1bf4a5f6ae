"""Noise of a total beside groups, if a part of the loss is for the total."""

from __future__ import annotations

import math


def total_beside_groups(groups: int, share: float) -> tuple[float, float]:
    """Return the noise of a group and of the total, by least squares, as multiples of a group's with all of rho.

    The groups divide the households; `share` of rho is for the total.
    """
    rest = 1 - share
    total = 1 / (share + rest / groups)
    group = (1 - share / (rest + groups * share)) / rest
    return math.sqrt(group), math.sqrt(total)
