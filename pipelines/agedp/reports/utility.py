"""Utility parts of the confidential report: published values and true ones. Confidential.

* TRUE MEANS + LEDGER -> utility of a release: its errors compared with its noise.
* COUNTED STATES -> means by states compared with means by readings.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np

from agedp.internal_records.cell_tables import COUNTED_STATES
from agedp.reports.axes import format_number
from agedp.reports.html import table
from agedp.reports.mean_series import CellMean
from agedp.reports.report_data import InternalSources

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
    the mean over days of b/|true mean|, b = sd/sqrt(2) the expected size of Laplace noise; NaN if every
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
        for cell, means in cells.items():
            days = [mean for mean in means if (series, cell, mean.day) in true]
            if days:
                utilities[series, cell] = [CellUtility(mean.day, true[series, cell, mean.day], mean) for mean in days]
    return utilities


def utility(days: Sequence[CellUtility], *, age_days: int) -> Utility:
    """Return the utility over these days."""
    error = np.array([day.error for day in days])
    sd = np.array([day.published.sd for day in days])
    inside = [day.published.low <= day.true <= day.published.high for day in days]
    change, stale = _change(days, 1), _change(days, age_days) if age_days else 0.0
    return Utility(len(days), _rms(error), _rms(sd), _relative(days), float(np.mean(inside)), change, stale)


def _relative(days: Sequence[CellUtility]) -> float:
    parts = [day.published.sd / math.sqrt(2) / abs(day.true) for day in days if day.true]
    return float(np.mean(parts)) if parts else math.nan


def _change(days: Sequence[CellUtility], gap: int) -> float:
    true = {day.day.toordinal(): day.true for day in days}
    changes = [true[number + gap] - value for number, value in true.items() if number + gap in true]
    return _rms(np.array(changes)) if changes else math.nan


def _rms(values: np.ndarray[Any, np.dtype[np.float64]]) -> float:
    return float(np.sqrt(np.mean(np.square(values))))


def state_parts(sources: InternalSources) -> Iterator[str]:
    """Yield the table of means by states and by readings, for each series that counts states."""
    table_rows = COUNTED_STATES.of_population(sources.paths.counted_states, sources.population)
    if not table_rows:
        return
    by_cell: dict[SeriesCell, list[Mapping[str, Any]]] = {}
    for table_row in table_rows:
        by_cell.setdefault((table_row["series"], table_row["cell"]), []).append(table_row)
    differences = ("difference", "smallest", "largest", "root mean square")
    columns = ("series, cell", "days", "by readings", "by states", *differences)
    caption = "Daily means by readings and by states, kWh per household; differences by day: states less readings"
    yield table(caption, columns, [(", ".join(key), *_row(cell_rows)) for key, cell_rows in by_cell.items()])


def _row(lines: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    differences = [line["states_kwh"] - line["readings_kwh"] for line in lines]
    means = [sum(line[name] for line in lines) / len(lines) for name in ("readings_kwh", "states_kwh")]
    rms = math.sqrt(sum(difference**2 for difference in differences) / len(differences))
    numbers = (*means, sum(differences) / len(differences), min(differences), max(differences), rms)
    return (f"{len(lines):,}", *map(format_number, numbers))
