"""Report of a table that has no pictures of its own: a chart of each group, as its statistic says. Public.

A statistic names the columns that its chart shows (`series.result_table.Chart`), so that one of a plug-in is drawn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from agedp.reports.axes import date_axis, format_number, linear_axis
from agedp.reports.chart_layers import Hover, Line
from agedp.reports.downloads import Values, download_links
from agedp.reports.hover import day_text, share_of_areas
from agedp.reports.html import paragraph, side_by_side
from agedp.reports.mean_series import MAX_CELLS
from agedp.reports.svg import chart
from agedp_data.series.result_table import Chart

_Rows = Sequence[Mapping[str, Any]]


def table_parts(name: str, table: pa.Table, shown: Chart, *, file: str = "") -> Iterator[str]:
    """Yield a chart of each group of a table of released rows, and links to its values.

    Args:
        name: the series.
        table: its lines, each with a day and a group.
        shown: the columns to draw.
        file: the Parquet file of the series, beside the page; "" without one.
    """
    by_group: dict[str, list[Mapping[str, Any]]] = {}
    for line in table.to_pylist():
        by_group.setdefault(line["group"], []).append(line)
    if not by_group:
        yield paragraph(f"{name}: no day is released yet.")
        return
    drawn = {group: by_group[group] for group in sorted(by_group)[:MAX_CELLS]}
    charts = [_chart(f"{name}: {group}", rows, shown, len(drawn)) for group, rows in drawn.items()]
    yield side_by_side(charts) if len(charts) > 1 else charts[0]
    if hidden := len(by_group) - len(drawn):
        yield paragraph(f"{hidden:,} more groups are {f'in {file}' if file else 'in the Parquet file'} only.", "soft")
    lines = [tuple(line.values()) for rows in drawn.values() for line in rows]
    yield download_links(name, Values(tuple(table.column_names), lines), file)


def _chart(title: str, rows: _Rows, shown: Chart, charts: int) -> str:
    days = [row["day"] for row in rows]
    values = [float(row[shown.y]) for row in rows]
    band = None if shown.band is None else tuple([float(row[end]) for row in rows] for end in shown.band)
    layers: list[Line | Hover] = [
        Line(shown.y, [float(day.toordinal()) for day in days], values, band),  # type: ignore[arg-type]
        Hover(day_text, shown.unit, most=share_of_areas(charts)),
    ]
    about = (
        f"{len(days)} days from {days[0]} to {days[-1]}: {format_number(min(values))} to {format_number(max(values))}"
    )
    ends = [*values, *(end for side in band or () for end in side)]
    return chart(title, about, layers, x=date_axis(days[0], days[-1]), y=linear_axis(ends), y_title=shown.unit)
