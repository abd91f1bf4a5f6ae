"""TRUE COUNTS + LEDGER -> true and published counts of a distribution, in the confidential report. Confidential.

Decisions:

* The table of true counts stays in columns: 2,000 cells over three years are 2.2 million counts, as Python rows 1 GB.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from agedp.internal_records.cell_tables import TRUE_COUNTS
from agedp.reports.axes import format_number, format_percent, linear_axis
from agedp.reports.distributions import range_names, ranges_axis, ranges_hover, whiskers
from agedp.reports.html import paragraph, table
from agedp.reports.mean_series import percent
from agedp.reports.report_data import InternalSources
from agedp.reports.svg import Line, chart
from agedp_data import mechanisms
from agedp_data.datasets.validation import Ints
from agedp_data.ledger import ReleaseRecord
from agedp_data.series.distribution import Distribution

_GROUPS = 12
_COLUMNS = ("population", "day", "series", "cell", "true_households")
_UNKNOWN = -1


class _TrueCounts:
    """The true counts of one series; `of` returns those of a release in the order of its cells."""

    def __init__(self, counts: pa.Table) -> None:
        cells = counts["cell"].combine_chunks().dictionary_encode()
        self._codes, self._values = cells.indices.to_numpy(), counts["true_households"].to_numpy()
        self._place = {cell: code for code, cell in enumerate(cells.dictionary.to_pylist())}
        self._days = counts["day"].cast(pa.int32()).to_numpy()  # the table is sorted by population, then by day
        self._cells: dict[tuple[str, ...], Ints] = {}

    def of(self, row: ReleaseRecord) -> Ints | None:
        """Return the true counts of a release, None if some are not recorded."""
        if row.cells not in self._cells:
            codes = [self._place.get(cell, len(self._place)) for cell in row.cells]
            self._cells[row.cells] = np.array(codes, np.int64)
        day = date.fromisoformat(row.day).toordinal() - date(1970, 1, 1).toordinal()
        of_day = slice(*np.searchsorted(self._days, (day, day + 1)).tolist())
        by_code = np.full(len(self._place) + 1, _UNKNOWN, np.int64)
        by_code[self._codes[of_day]] = self._values[of_day]
        counts: Ints = by_code[self._cells[row.cells]]
        return None if (counts == _UNKNOWN).any() else counts


def count_parts(sources: InternalSources, rows: Sequence[ReleaseRecord]) -> Iterator[str]:
    """Yield for each distribution of the run file true and published counts of its newest day, and all its errors."""
    distributions = {name: series for name, series in sources.run.series.items() if isinstance(series, Distribution)}
    if not distributions:
        return
    recorded = TRUE_COUNTS.population_table(sources.paths.true_counts, sources.population, columns=_COLUMNS)
    for name, series in distributions.items():
        true = _TrueCounts(recorded.filter(pc.equal(recorded["series"], name)))
        series_rows = [
            row for row in rows if row.series == name and row.state == "released" and series.holds(row.cells)
        ]
        recorded_rows = sorted((row for row in series_rows if true.of(row) is not None), key=lambda row: row.day)
        if recorded_rows:
            yield from _newest_charts(sources, name, series, recorded_rows[-1], true)
            yield _error_table(sources, name, series, recorded_rows, true)
        else:
            yield paragraph(f"No true count of {name} is recorded yet.")


def _newest_charts(
    sources: InternalSources, name: str, series: Distribution, row: ReleaseRecord, true: _TrueCounts
) -> Iterator[str]:
    ranges, counts = len(series.ranges_kwh), true.of(row)
    half_width = mechanisms.interval(row.scale, sources.run.output.interval)
    for start in range(0, min(len(row.cells), _GROUPS * ranges), ranges):
        values = row.values[start : start + ranges]
        true_counts = [] if counts is None else [float(count) for count in counts[start : start + ranges]]
        label = ", ".join([name, *([series.read_cells(row.cells)[start].group] if series.by is not None else [])])
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
    sources: InternalSources, name: str, series: Distribution, rows: Sequence[ReleaseRecord], true: _TrueCounts
) -> str:
    ranges, scales = len(series.ranges_kwh), {row.scale for row in rows}
    half_widths = {scale: mechanisms.interval(scale, sources.run.output.interval) for scale in scales}
    variances = {scale: mechanisms.standard_deviation(scale) ** 2 for scale in scales}
    sums = np.zeros((4, ranges))  # of true counts, of squared errors and of variances; counts inside the interval
    cells = 0
    for row in rows:
        counts = true.of(row)
        if counts is not None:
            errors = np.array(row.values, np.float64) - counts
            is_inside = np.abs(errors) <= half_widths[row.scale]
            of_row = [counts, errors**2, np.full(len(errors), variances[row.scale]), is_inside]
            sums += np.array(of_row, np.float64).reshape(4, -1, ranges).sum(axis=1)
            cells += len(errors) // ranges
    mean, squared_error, variance, inside = sums / cells
    body = [
        (
            range_name,
            *map(
                format_number, (mean[i], error := squared_error[i] ** 0.5, noise := variance[i] ** 0.5, error / noise)
            ),
            format_percent(inside[i]),
        )
        for i, range_name in enumerate(range_names(series))
    ]
    columns = ("kWh", "true", "error", "noise", "error / noise", "inside")
    return table(f"Households by use, means and root mean squares over {len(rows)} days: {name}", columns, body)
