"""LEDGER -> day-to-day change of a daily mean, estimated from the published series.

    change^2 = mean of (m_t - m_(t-1))^2 - v_t - v_(t-1)      [kWh^2 per household]

with m the published mean and v the variance of its noise, over consecutive days. Public: it reads published values
only. The estimate may itself be mostly noise: it is used if it is at least twice its standard error, else 1 kWh per
household is assumed. For a series with groups it is the smallest group's, whose noise is the largest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from agedp_data import mechanisms
from agedp_data.ledger import ReleaseRecord

DEFAULT_CHANGE_KWH: Final = 1.0
_MIN_PAIRS: Final = 30
"""Pairs of consecutive days that an estimate needs."""

_MIN_STANDARD_ERRORS: Final = 2
"""Standard errors that an estimate must reach."""


class DayToDayChange(NamedTuple):
    """Day-to-day change of a mean [kWh per household], and its standard error, None for the assumed default."""

    kwh: float
    error_kwh: float | None = None

    @property
    def is_estimated(self) -> bool:
        """Return whether the change is estimated from the published series."""
        return self.error_kwh is not None


def day_to_day_change(rows: Sequence[ReleaseRecord]) -> DayToDayChange:
    """Return the day-to-day change of the smallest group's mean, or the default without enough days."""
    squares = np.array(_squared_changes(rows))
    if squares.size < _MIN_PAIRS:
        return DayToDayChange(DEFAULT_CHANGE_KWH)
    mean, deviations = float(squares.mean()), squares - squares.mean()
    # consecutive differences contain the noise of the same day
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
    """Return a group's mean [kWh per household], and the variance of its noise."""
    i = row.cells.index(group)
    wh_per_kwh_mean = 1000.0 * row.households[i]
    return row.values[i] / wh_per_kwh_mean, (mechanisms.standard_deviation(row.scale) / wh_per_kwh_mean) ** 2
