"""Utility parts of the confidential report: published values and true ones. Confidential.

* TRUE MEANS + LEDGER -> utility of a release: its errors compared with its noise.
* COUNTED STATES -> means by states compared with means by readings.
* TRUE COUNTS + LEDGER -> true and published counts of a distribution.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np

from agedp.internal_records.cell_tables import COUNTED_STATES, TRUE_COUNTS
from agedp.reports.axes import format_number, linear_axis
from agedp.reports.distributions import range_names, ranges_axis, ranges_hover, whiskers
from agedp.reports.html import paragraph, table
from agedp.reports.mean_series import CellMean, percent
from agedp.reports.report_data import InternalSources
from agedp.reports.svg import Line, chart
from agedp_data import mechanisms
from agedp_data.ledger import ReleaseRecord
from agedp_data.series.series import Distribution

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


_GROUPS = 12


def count_parts(sources: InternalSources, rows: Sequence[ReleaseRecord]) -> Iterator[str]:
    """Yield for each distribution of the run file true and published counts of its newest day, and all its errors."""
    true_rows = TRUE_COUNTS.of_population(sources.paths.true_counts, sources.population)
    true = {(line["series"], line["day"].isoformat(), line["cell"]): line["true_households"] for line in true_rows}
    for name, series in sources.run.series.items():
        if isinstance(series, Distribution):
            series_rows = [
                row for row in rows if row.series == name and row.state == "released" and series.holds(row.cells)
            ]
            recorded_rows = sorted(
                (row for row in series_rows if (name, row.day, row.cells[0]) in true), key=lambda row: row.day
            )
            if recorded_rows:
                yield from _newest_charts(sources, name, series, recorded_rows[-1], true)
                yield _error_table(sources, name, series, recorded_rows, true)
            else:
                yield paragraph(f"No true count of {name} is recorded yet.")


def _newest_charts(
    sources: InternalSources,
    name: str,
    series: Distribution,
    row: ReleaseRecord,
    true: Mapping[tuple[str, str, str], int],
) -> Iterator[str]:
    ranges = len(series.ranges_kwh)
    half_width = mechanisms.interval(row.scale, sources.run.output.interval)
    for start in range(0, min(len(row.cells), _GROUPS * ranges), ranges):
        cells, values = row.cells[start : start + ranges], row.values[start : start + ranges]
        true_counts = [float(true[name, row.day, cell]) for cell in cells]
        label = ", ".join([name, *([series.place(cells[0])[0]] if series.by is not None else [])])
        line_name = f"published, with the interval of its noise ({percent(sources.run.output.interval)})"
        layers = [
            whiskers(line_name, [float(value) for value in values], half_width, style=0),
            Line("true", [float(i) for i in range(ranges)], true_counts, letter="T", style=1),
        ]
        ends = [0.0, *true_counts, *(value + sign * half_width for value in values for sign in (-1, 1))]
        worst = max(range(ranges), key=lambda i: abs(values[i] - true_counts[i]))
        description = (
            f"The largest error is {format_number(values[worst] - true_counts[worst])} households, for "
            f"{range_names(series)[worst]} kWh."
        )
        title = f"Published and true number of households by use on {row.day}: {label}"
        x, y = ranges_axis(series), linear_axis(ends, zero=True)
        yield chart(title, description, [*layers, ranges_hover(series)], x=x, y=y, y_title="households")


def _error_table(
    sources: InternalSources,
    name: str,
    series: Distribution,
    rows: Sequence[ReleaseRecord],
    true: Mapping[tuple[str, str, str], int],
) -> str:
    ranges = len(series.ranges_kwh)
    half_widths = {row.scale: mechanisms.interval(row.scale, sources.run.output.interval) for row in rows}
    sd = {row.scale: mechanisms.standard_deviation(row.scale) for row in rows}
    errors_by_range: list[list[tuple[int, int, float, bool]]] = [[] for _ in range(ranges)]
    for row in rows:
        for i, (cell, value) in enumerate(zip(row.cells, row.values, strict=True)):
            true_count = true[name, row.day, cell]
            errors_by_range[i % ranges].append(
                (true_count, value - true_count, sd[row.scale], abs(value - true_count) <= half_widths[row.scale])
            )
    body = [
        _error_row(range_name, errors) for range_name, errors in zip(range_names(series), errors_by_range, strict=True)
    ]
    columns = ("kWh", "true", "error", "noise", "error / noise", "inside")
    return table(f"Households by use, means and root mean squares over {len(rows)} days: {name}", columns, body)


def _error_row(range_name: str, range_errors: Sequence[tuple[Any, ...]]) -> tuple[str, ...]:
    true_counts, errors, deviations, inside = zip(*range_errors, strict=True)
    rms, rms_noise = (
        math.sqrt(sum(value * value for value in values) / len(range_errors)) for values in (errors, deviations)
    )
    mean, share = format_number(sum(true_counts) / len(range_errors)), f"{100 * sum(inside) / len(range_errors):.1f} %"
    return range_name, mean, format_number(rms), format_number(rms_noise), format_number(rms / rms_noise), share
