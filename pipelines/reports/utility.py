"""TRUE MEANS + LEDGER -> utility of a release: its errors compared with its noise. Confidential."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np

from pipelines.reports.series import CellMean

SeriesCell = tuple[str, str]
"""Series and cell."""


@dataclass(frozen=True, slots=True)
class CellUtility:
    """A cell of a series on one day: true mean, and published mean with its noise [kWh per household]."""

    day: date
    true: float
    published: CellMean

    @property
    def error(self) -> float:
        """Return the published less the true mean [kWh per household]."""
        return self.published.mean - self.true


@dataclass(frozen=True, slots=True)
class Utility:
    """Errors over days: root mean square in kWh and in standard deviations of the noise.

    `inside` is the share of days whose true mean lies in the published interval; `change_kwh` the root mean square of
    the change of the true mean from one day to the next, NaN without two such days; `stale_kwh` the same from a day to
    the one `age_days` later; `expected_kwh` is the root mean square error that the noise alone would give, `relative`
    the mean over days of b/|true mean|, b = sd/sqrt(2) the expected size of Laplace noise (MATHS 5); NaN if every
    true mean is 0.
    """

    days: int
    rms_kwh: float
    expected_kwh: float
    relative: float
    inside: float
    change_kwh: float
    stale_kwh: float

    @property
    def in_sd(self) -> float:
        """Return the ratio of errors to noise: 1 if the noise is the only error."""
        return self.rms_kwh / self.expected_kwh


def pair_with_true_means(
    recorded: Sequence[Mapping[str, Any]], released: Mapping[str, Mapping[str, Sequence[CellMean]]]
) -> dict[SeriesCell, list[CellUtility]]:
    """Return by series and cell the days with a recorded true mean, each with its published mean."""
    true = {(line["series"], line["cell"], line["day"]): line["true_mean_kwh"] for line in recorded}
    utilities: dict[SeriesCell, list[CellUtility]] = {}
    for series, cells in released.items():
        for cell, days in cells.items():
            days_with_truth = [
                CellUtility(cell_mean.day, true[series, cell, cell_mean.day], cell_mean)
                for cell_mean in days
                if (series, cell, cell_mean.day) in true
            ]
            if days_with_truth:
                utilities[series, cell] = days_with_truth
    return utilities


def utility(days: Sequence[CellUtility], *, age_days: int) -> Utility:
    """Return the utility over these days."""
    error = np.array([day.error for day in days])
    sd = np.array([day.published.sd for day in days])
    inside = [day.published.low <= day.true <= day.published.high for day in days]
    return Utility(
        len(days),
        _rms(error),
        _rms(sd),
        _relative(days),
        float(np.mean(inside)),
        _change(days, 1),
        _change(days, age_days) if age_days else 0.0,
    )


def _relative(days: Sequence[CellUtility]) -> float:
    parts = [day.published.sd / math.sqrt(2) / abs(day.true) for day in days if day.true]
    return float(np.mean(parts)) if parts else math.nan


def _change(days: Sequence[CellUtility], gap: int) -> float:
    true = {day.day.toordinal(): day.true for day in days}
    changes = [true[number + gap] - value for number, value in true.items() if number + gap in true]
    return _rms(np.array(changes)) if changes else math.nan


def _rms(values: np.ndarray[Any, np.dtype[np.float64]]) -> float:
    return float(np.sqrt(np.mean(np.square(values))))
