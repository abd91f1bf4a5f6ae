"""LEDGER -> how much a daily mean changes from day to day, as far as the published series says so.

Public: it reads what is published. Squared differences of neighbouring published days, less the noise of both, are an
estimate that may itself be mostly noise: it counts only if it is twice its own standard error at least, and where it
does not, 1 kWh a home is the yardstick. Of groups it is the smallest one's, whose noise is the largest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from agedp_data import noise
from agedp_data.ledger import ReleaseRecord

DEFAULT_CHANGE_KWH: Final = 1.0
_MIN_PAIRS: Final = 30
"""Changes from day to day that a published series must show before it is the yardstick."""

_MIN_STANDARD_ERRORS: Final = 2
"""How many times its standard error an estimate must be."""


class DayToDayChange(NamedTuple):
    """What a mean changes by [kWh a home], and its standard error, None for the yardstick."""

    kwh: float
    error_kwh: float | None = None

    @property
    def measured(self) -> bool:
        """Tell whether the published series says so."""
        return self.error_kwh is not None


def day_to_day_change(rows: Sequence[ReleaseRecord]) -> DayToDayChange:
    """Return how much the smallest group's mean moves from day to day, or the yardstick if that cannot be told."""
    squares = np.array(_squared_changes(rows))
    if squares.size < _MIN_PAIRS:
        return DayToDayChange(DEFAULT_CHANGE_KWH)
    mean, deviations = float(squares.mean()), squares - squares.mean()
    # neighbouring differences share the noise of a day
    variance = float(deviations @ deviations + 2 * max(0.0, float(deviations[1:] @ deviations[:-1]))) / squares.size
    error = math.sqrt(variance / squares.size)
    if mean <= 0 or mean < _MIN_STANDARD_ERRORS * error:
        return DayToDayChange(DEFAULT_CHANGE_KWH)
    return DayToDayChange(math.sqrt(mean), error / (2 * math.sqrt(mean)))


def _squared_changes(rows: Sequence[ReleaseRecord]) -> list[float]:
    released = sorted((row for row in rows if row.state == "released"), key=lambda row: row.day)
    if not released:
        return []
    households_by_cell = dict(zip(released[-1].cells, released[-1].households, strict=True))
    group = min(households_by_cell, key=lambda cell: (households_by_cell[cell], cell))
    daily_means = [
        (date.fromisoformat(row.day), *_mean_and_variance(row, group)) for row in released if group in row.cells
    ]
    return [
        (mean - previous_mean) ** 2 - variance - previous_variance
        for (previous_day, previous_mean, previous_variance), (day, mean, variance) in pairwise(daily_means)
        if (day - previous_day).days == 1
    ]


def _mean_and_variance(row: ReleaseRecord, group: str) -> tuple[float, float]:
    """Return a group's mean [kWh a home], and the variance of its noise."""
    i = row.cells.index(group)
    wh_per_kwh_mean = 1000.0 * row.households[i]
    return row.values[i] / wh_per_kwh_mean, (noise.standard_deviation(row.scale) / wh_per_kwh_mean) ** 2
