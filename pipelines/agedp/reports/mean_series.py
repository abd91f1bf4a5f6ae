"""Report of a released mean: each day's value with its noise interval, as a chart and a table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from agedp.reports.axes import Scale, by_month, date_axis, format_number, linear_axis
from agedp.reports.chart_layers import Hover
from agedp.reports.downloads import Values, download_links
from agedp.reports.hover import day_text, positions_per_area, share_of_areas
from agedp.reports.html import closed, paragraph, side_by_side, table
from agedp.reports.svg import Line, Marks, chart
from agedp.row_means import places_of
from agedp_data import mechanisms
from agedp_data.ledger import ReleaseRecord

MAX_CELLS = 40
"""Number of groups on a page, the largest ones; the tables contain all of them."""

PUBLISHED_EXTREMES = "lowest published day (noise included)", "highest published day (noise included)"
"""Columns of a month: extremes of noisy values lie further apart than those of the true ones."""

_MAX_DAILY_ROWS = 31
_WIDE_RATIO = 2.5


@dataclass(frozen=True, slots=True)
class CellMean:
    """One cell of a series on one day: households, mean, noise interval and standard deviation [kWh per household]."""

    day: date
    households: int
    mean: float
    low: float
    high: float
    sd: float
    loss: int


def cell_means(rows: Sequence[ReleaseRecord], *, coverage: Decimal) -> dict[str, list[CellMean]]:
    """Return the published means of one series by cell and day, for the `MAX_CELLS` largest cells."""
    released = sorted((row for row in rows if row.state == "released"), key=lambda row: (row.day, row.revision))
    newest = _households(released)
    shown_cells = frozenset(sorted(newest, key=lambda cell: (-newest[cell], cell))[:MAX_CELLS])
    scales = {row.scale for row in released}
    half_widths = {scale: mechanisms.interval(scale, coverage) for scale in scales}
    deviation = {scale: mechanisms.standard_deviation(scale) for scale in scales}
    by_cell: dict[str, list[CellMean]] = {}
    for row in released:
        day = date.fromisoformat(row.day)
        for place in places_of(row.cells, shown_cells):
            cell, value, households = row.cells[place], row.values[place], row.households[place]
            wh_per_kwh_mean, half_width = 1000.0 * households, half_widths[row.scale]
            interval = (value - half_width) / wh_per_kwh_mean, (value + half_width) / wh_per_kwh_mean
            sd = deviation[row.scale] / wh_per_kwh_mean
            by_cell.setdefault(cell, []).append(
                CellMean(day, households, value / wh_per_kwh_mean, *interval, sd, row.loss)
            )
    return by_cell


def _households(released: Sequence[ReleaseRecord]) -> dict[str, int]:
    """Return the number of households of each cell in its newest release."""
    newest: dict[tuple[str, ...], ReleaseRecord] = {}
    for row in released:  # of rows with the same cells the last one
        newest.pop(row.cells, None)
        newest[row.cells] = row
    return {cell: number for row in newest.values() for cell, number in zip(row.cells, row.households, strict=True)}


def series_parts(
    name: str, rows: Sequence[ReleaseRecord], *, coverage: Decimal, label: str, file: str = ""
) -> Iterator[str]:
    """Yield charts and tables of one series: one chart per cell, all with one scale; `label` is in their titles.

    Cells are in the order of their names. A series of one day has its table alone. `file` is the Parquet file of the
    series, beside the page.
    """
    cells = cell_means(rows, coverage=coverage)
    if not cells:
        yield paragraph(f"{name}: no day is released yet.")
        return
    cells = dict(sorted(cells.items()))
    skipped = sorted({date.fromisoformat(row.day) for row in rows if row.state == "skipped"})
    all_means = [mean for means in cells.values() for mean in means]
    shown_days = [*(mean.day for mean in all_means), *skipped]
    x = date_axis(min(shown_days), max(shown_days))
    y = _value_axis(all_means)
    is_split = len(cells) > 1
    labels = {cell: ", ".join(filter(None, [label, cell if cell != "all" or is_split else ""])) for cell in cells}
    if len(set(shown_days)) > 1:
        scales, charts_shown = (x, y), len(cells)
        charts = [
            _chart(_title(labels[cell]), means, skipped, scales, coverage, charts=charts_shown)
            for cell, means in cells.items()
        ]
        yield side_by_side(charts) if is_split else charts[0]
        yield from _areas_note(all_means, charts_shown)
    if days_beyond := len({mean.day for mean in all_means if mean.low < y.low or mean.high > y.high}):
        yield paragraph(f"The axis is cut: {days_beyond} days with far more noise reach beyond the chart.", "soft")
    if hidden_cells := len(_households([row for row in rows if row.state == "released"])) - len(cells):
        yield paragraph(f"{hidden_cells:,} more groups, of fewer households, are in the Parquet file only.", "soft")
    yield download_links(name, _values(cells), file)
    tables = [_means_table(labels[cell], means, skipped) for cell, means in cells.items()]
    yield closed(f"Numbers of each of {len(tables)} groups", tables) if is_split else tables[0]


def _title(label: str) -> str:
    return f"Mean daily use per household{f': {label}' if label else ''}"


def _chart(
    title: str,
    means: Sequence[CellMean],
    skipped: Sequence[date],
    scales: tuple[Scale, Scale],
    coverage: Decimal,
    *,
    charts: int,
) -> str:
    x, y = scales
    by_number = {cell_mean.day.toordinal(): cell_mean for cell_mean in means}
    day_numbers = range(min(by_number), max(by_number) + 1)
    mean, low, high = (
        [getattr(by_number[day], name) if day in by_number else math.nan for day in day_numbers]
        for name in ("mean", "low", "high")
    )
    line_name = f"mean, with the interval that covers its noise ({percent(coverage)})"
    layers: list[Line | Marks] = [Line(line_name, [float(day) for day in day_numbers], mean, band=(low, high))]
    if skipped:
        layers.append(Marks("skipped days", [float(day.toordinal()) for day in skipped]))
    about, height = _description(means, skipped, y), 150 if charts > 1 else 240
    hover = Hover(day_text, "kWh per household", most=share_of_areas(charts))
    return chart(title, about, [*layers, hover], x=x, y=y, y_title="kWh per household", height=height)


def _areas_note(means: Sequence[CellMean], charts: int) -> Iterator[str]:
    """Yield a sentence if an area at the pointer stands for several days."""
    days = len({mean.day for mean in means})
    if (together := positions_per_area(days, share_of_areas(charts))) > 1:
        text = f"At the pointer a chart shows {together} days together, so that the page stays small."
        yield paragraph(text, "soft get")


def _values(cells: Mapping[str, Sequence[CellMean]]) -> Values:
    rows = [
        (str(mean.day), cell, mean.households, mean.mean, mean.low, mean.high, mean.sd)
        for cell, means in cells.items()
        for mean in means
    ]
    return Values(("day", "group", "households", "mean_kwh", "low_kwh", "high_kwh", "noise_sd_kwh"), rows)


def percent(share: Decimal) -> str:
    """Return a share in percent.

    >>> percent(Decimal("0.95")), percent(Decimal("0.999"))
    ('95 %', '99.9 %')
    """
    return f"{float(100 * share):.6g} %"


def _value_axis(means: Sequence[CellMean]) -> Scale:
    """Return an axis for means and intervals; a few days with much more noise may extend beyond it."""
    ends = sorted(end for mean in means for end in (mean.low, mean.high))
    inner = ends[len(ends) // 50 : len(ends) - len(ends) // 50]
    is_wide = ends[-1] - ends[0] > _WIDE_RATIO * (inner[-1] - inner[0])
    return linear_axis(inner if is_wide else ends)


def _description(means: Sequence[CellMean], skipped: Sequence[date], y: Scale) -> str:
    lowest, highest = min(means, key=lambda cell_mean: cell_mean.mean), max(means, key=lambda cell_mean: cell_mean.mean)
    average = sum(mean.mean for mean in means) / len(means)
    half_width = max(mean.high - mean.mean for mean in means)
    if len(means) == 1:
        first_part = f"One day, {means[0].day}: {format_number(average)} kWh per household"
    else:
        first_part = (
            f"{len(means)} days from {means[0].day} to {means[-1].day}: {format_number(average)} kWh "
            f"per household on average, lowest published day {format_number(lowest.mean)} on {lowest.day}, highest "
            f"{format_number(highest.mean)} on {highest.day} (noise included)"
        )
    last_part = f"; {len(skipped)} days were skipped" if skipped else ""
    means_beyond = sum(mean.low < y.low or mean.high > y.high for mean in means)
    last_part += f"; {means_beyond} days reach beyond the chart" if means_beyond else ""
    return (
        f"{first_part}; the noise interval reaches at most {format_number(half_width)} kWh to either side{last_part}."
    )


def _means_table(label: str, means: Sequence[CellMean], skipped: Sequence[date]) -> str:
    label_text = f" ({label})" if label else ""
    if len(means) <= _MAX_DAILY_ROWS:
        rows = [
            (str(mean.day), f"{mean.households:,}", *map(format_number, (mean.mean, mean.low, mean.high, mean.sd)))
            for mean in means
        ]
        caption = f"The same in numbers, kWh per household{label_text}"
        return table(caption, ("day", "households", "mean", "low", "high", "noise sd"), rows)
    skipped_months = [f"{day:%Y-%m}" for day in skipped]
    rows = []
    for month, month_means in by_month(means, lambda mean: mean.day).items():
        values, largest_sd = [mean.mean for mean in month_means], max(mean.sd for mean in month_means)
        numbers = map(format_number, (sum(values) / len(values), min(values), max(values), largest_sd))
        skips = f" (−{skipped_months.count(month)})" if month in skipped_months else ""
        rows.append((month, f"{len(month_means)}{skips}", *numbers))
    remark = "; (−n): skipped days" if skipped else ""
    caption = f"The same by month, kWh per household{label_text}; every day is in the Parquet file{remark}"
    return table(caption, ("month", "days", "mean", *PUBLISHED_EXTREMES, "noise sd of a day"), rows)
