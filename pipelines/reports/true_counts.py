"""TRUE COUNTS + LEDGER -> true and published counts of a distribution. Confidential."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agedp_data import noise
from agedp_data.config.series import Distribution
from agedp_data.ledger import ReleaseRecord
from agedp_data.pictures.chart import Line, chart
from agedp_data.pictures.page import paragraph, table
from agedp_data.pictures.scales import format_number, linear_axis
from pipelines.notes.true_means import TRUE_COUNTS
from pipelines.reports.distributions import range_names, ranges_axis, whiskers
from pipelines.reports.series import percent
from pipelines.work import Work

_GROUPS = 12


def count_parts(work: Work, rows: Sequence[ReleaseRecord]) -> Iterator[str]:
    """Yield for each distribution of the run file true and published counts of its newest day, and all its errors."""
    true_rows = [line for line in TRUE_COUNTS.read(work.true_counts) if line["population"] == work.population]
    true = {(line["series"], line["day"].isoformat(), line["cell"]): line["true_households"] for line in true_rows}
    for name, series in work.run.series.items():
        if isinstance(series, Distribution):
            series_rows = [
                row for row in rows if row.series == name and row.state == "released" and series.holds(row.cells)
            ]
            recorded_rows = sorted(
                (row for row in series_rows if (name, row.day, row.cells[0]) in true), key=lambda row: row.day
            )
            if recorded_rows:
                yield from _newest_charts(work, name, series, recorded_rows[-1], true)
                yield _error_table(work, name, series, recorded_rows, true)
            else:
                yield paragraph(f"No true count of {name} is noted yet.")


def _newest_charts(
    work: Work, name: str, series: Distribution, row: ReleaseRecord, true: Mapping[tuple[str, str, str], int]
) -> Iterator[str]:
    ranges = len(series.ranges_kwh)
    half_width = noise.interval(row.scale, work.run.output.interval)
    for start in range(0, min(len(row.cells), _GROUPS * ranges), ranges):
        cells, values = row.cells[start : start + ranges], row.values[start : start + ranges]
        true_counts = [float(true[name, row.day, cell]) for cell in cells]
        label = ", ".join([name, *([series.place(cells[0])[0]] if series.by is not None else [])])
        line_name = f"published, with the interval of its noise ({percent(work.run.output.interval)})"
        layers = [
            whiskers(line_name, [float(value) for value in values], half_width, style=0),
            Line("true", [float(i) for i in range(ranges)], true_counts, letter="T", style=1),
        ]
        ends = [0.0, *true_counts, *(value + sign * half_width for value in values for sign in (-1, 1))]
        worst = max(range(ranges), key=lambda i: abs(values[i] - true_counts[i]))
        description = (
            f"The largest error is {format_number(values[worst] - true_counts[worst])} homes, of "
            f"{range_names(series)[worst]} kWh."
        )
        title = f"Published and true homes by use on {row.day}: {label}"
        yield chart(title, description, layers, x=ranges_axis(series), y=linear_axis(ends, zero=True), y_title="homes")


def _error_table(
    work: Work, name: str, series: Distribution, rows: Sequence[ReleaseRecord], true: Mapping[tuple[str, str, str], int]
) -> str:
    ranges = len(series.ranges_kwh)
    half_widths = {row.scale: noise.interval(row.scale, work.run.output.interval) for row in rows}
    sd = {row.scale: noise.standard_deviation(row.scale) for row in rows}
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
    return table(f"Homes by use, means and root mean squares over {len(rows)} days: {name}", columns, body)


def _error_row(range_name: str, range_errors: Sequence[tuple[Any, ...]]) -> tuple[str, ...]:
    true_counts, errors, deviations, inside = zip(*range_errors, strict=True)
    rms, rms_noise = (
        math.sqrt(sum(value * value for value in values) / len(range_errors)) for values in (errors, deviations)
    )
    mean, share = format_number(sum(true_counts) / len(range_errors)), f"{100 * sum(inside) / len(range_errors):.1f} %"
    return range_name, mean, format_number(rms), format_number(rms_noise), format_number(rms / rms_noise), share
