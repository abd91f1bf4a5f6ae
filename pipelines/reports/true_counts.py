"""TRUE COUNTS beside LEDGER -> a distribution as it was and as it was published. Confidential."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agedp_data import noise
from agedp_data.config.series import Distribution
from agedp_data.ledger import ReleaseRecord
from agedp_data.pictures.chart import Line, chart
from agedp_data.pictures.page import paragraph, table
from agedp_data.pictures.scales import linear, plain
from pipelines.notes.true_means import TRUE_COUNTS
from pipelines.reports.distributions import range_names, ranges_axis, whiskers
from pipelines.reports.series import percent
from pipelines.work import Work

_GROUPS = 12


def count_parts(work: Work, rows: Sequence[ReleaseRecord]) -> Iterator[str]:
    """Yield for every distribution of the run file its newest day, true and published, and its errors in all."""
    noted = [line for line in TRUE_COUNTS.read(work.true_counts) if line["population"] == work.population]
    true = {(line["series"], line["day"].isoformat(), line["cell"]): line["true_households"] for line in noted}
    for name, series in work.run.series.items():
        if isinstance(series, Distribution):
            own = [row for row in rows if row.series == name and row.state == "released" and series.holds(row.cells)]
            known = sorted((row for row in own if (name, row.day, row.cells[0]) in true), key=lambda row: row.day)
            if known:
                yield from _newest_charts(work, name, series, known[-1], true)
                yield _error_table(work, name, series, known, true)
            else:
                yield paragraph(f"No true count of {name} is noted yet.")


def _newest_charts(
    work: Work, name: str, series: Distribution, row: ReleaseRecord, true: Mapping[tuple[str, str, str], int]
) -> Iterator[str]:
    ranges = len(series.ranges_kwh)
    half = noise.interval(row.scale, work.run.output.interval)
    for start in range(0, min(len(row.cells), _GROUPS * ranges), ranges):
        cells, values = row.cells[start : start + ranges], row.values[start : start + ranges]
        was = [float(true[name, row.day, cell]) for cell in cells]
        of = ", ".join([name, *([series.place(cells[0])[0]] if series.by is not None else [])])
        named = f"published, with the interval of its noise ({percent(work.run.output.interval)})"
        layers = [
            whiskers(named, [float(value) for value in values], half, style=0),
            Line("true", [float(i) for i in range(ranges)], was, letter="T", style=1),
        ]
        ends = [0.0, *was, *(value + sign * half for value in values for sign in (-1, 1))]
        worst = max(range(ranges), key=lambda i: abs(values[i] - was[i]))
        about = f"The largest error is {plain(values[worst] - was[worst])} homes, of {range_names(series)[worst]} kWh."
        title = f"Published and true homes by use on {row.day}: {of}"
        yield chart(title, about, layers, x=ranges_axis(series), y=linear(ends, zero=True), y_title="homes")


def _error_table(
    work: Work, name: str, series: Distribution, rows: Sequence[ReleaseRecord], true: Mapping[tuple[str, str, str], int]
) -> str:
    ranges = len(series.ranges_kwh)
    half = {row.scale: noise.interval(row.scale, work.run.output.interval) for row in rows}
    sd = {row.scale: noise.standard_deviation(row.scale) for row in rows}
    lines: list[list[tuple[int, int, float, bool]]] = [[] for _ in range(ranges)]
    for row in rows:
        for i, (cell, value) in enumerate(zip(row.cells, row.values, strict=True)):
            was = true[name, row.day, cell]
            lines[i % ranges].append((was, value - was, sd[row.scale], abs(value - was) <= half[row.scale]))
    body = [_error_row(of, found) for of, found in zip(range_names(series), lines, strict=True)]
    columns = ("kWh", "true", "error", "noise", "error / noise", "inside")
    return table(f"Homes by use, means and root mean squares over {len(rows)} days: {name}", columns, body)


def _error_row(of: str, found: Sequence[tuple[Any, ...]]) -> tuple[str, ...]:
    was, errors, deviations, inside = zip(*found, strict=True)
    rms, noisy = (math.sqrt(sum(x * x for x in each) / len(found)) for each in (errors, deviations))
    mean, share = plain(sum(was) / len(found)), f"{100 * sum(inside) / len(found):.1f} %"
    return of, mean, plain(rms), plain(noisy), plain(rms / noisy), share
