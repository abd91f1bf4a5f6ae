"""Estimates -> the rows of `daily_average_smoothed.parquet`: each published value beside its estimates.

A row is a day and a group of a series. It has what was published, the archive estimate, from all rows of the folder,
and the live estimate, which later rows never revise. Layers of a series are added here.

Decisions:

* A group has rows from its first published day to its last, and on to the days that were skipped since. On a day
  without a published value the columns of the value are empty.
* A day that is delivered late, after an amendment of what is counted, is of the new contract, and so is its live
  estimate; that of the old one, a prediction, is no longer in the table.
* Estimates are rounded to a milliwatt-hour: further digits are those of the search for the amplitudes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from statistics import NormalDist
from typing import Any, Final

import pyarrow as pa

from agedp.smoothed_estimates.published_means import CellKey, PublishedMean, Quantity, cell_values
from agedp.smoothed_estimates.quantity_estimates import QuantityEstimates
from agedp_data import table_schemas
from agedp_data.roster import ALL, GroupColumns, columns_of
from agedp_data.smoothing.cell_estimates import layer_sum
from agedp_data.smoothing.structural_model import Estimate

COVERAGE: Final = 0.9
_QUANTILE: Final = NormalDist().inv_cdf((1 + COVERAGE) / 2)
_DIGITS: Final = 6


@dataclass(frozen=True, slots=True)
class SeriesSpan:
    """Consecutive days on which a series counts the same: its layers, group column, and its rows by day.

    `versions` is the number of the contract by day, that of the row before where a day has none.
    """

    series: str
    layers: tuple[Quantity, ...]
    by: GroupColumns
    versions: Mapping[date, int]
    rows: Mapping[date, tuple[PublishedMean, ...]]


def series_spans(means: Sequence[PublishedMean]) -> list[SeriesSpan]:
    """Return the spans of each series, in the order of names and days."""
    by_series: dict[str, dict[date, list[PublishedMean]]] = {}
    for mean in means:
        by_series.setdefault(mean.series, {}).setdefault(mean.day, []).append(mean)
    return [span for name in sorted(by_series) for span in _spans(name, by_series[name])]


def _spans(name: str, by_day: Mapping[date, list[PublishedMean]]) -> Iterator[SeriesSpan]:
    versions: dict[date, int] = {}
    rows: dict[date, tuple[PublishedMean, ...]] = {}
    current = by_day[min(by_day)][-1]
    for number in range((max(by_day) - min(by_day)).days + 1):
        day = min(by_day) + timedelta(days=number)
        if day in by_day:
            newest = max(by_day[day], key=lambda mean: mean.row.seq)
            if (newest.layers, newest.by) != (current.layers, current.by):
                yield SeriesSpan(name, current.layers, current.by, versions, rows)
                versions, rows = {}, {}
            current = newest
            rows[day] = tuple(mean for mean in by_day[day] if mean.quantity in newest.layers)
        versions[day] = current.version
    yield SeriesSpan(name, current.layers, current.by, versions, rows)


def last_days(spans: Sequence[SeriesSpan]) -> dict[Quantity, date]:
    """Return the last day on which estimates of each quantity are needed."""
    last: dict[Quantity, date] = {}
    for span in spans:
        for quantity in span.layers:
            last[quantity] = max([*span.versions, last.get(quantity, date.min)])
    return last


def smoothed_table(spans: Sequence[SeriesSpan], estimates: Mapping[Quantity, QuantityEstimates]) -> pa.Table:
    """Return the table, by series, group and day."""
    rows = [row for span in spans for row in _span_rows(span, estimates)]
    rows.sort(key=lambda row: (row["series"], row["group"], row["day"]))
    return table_schemas.table_from_rows(table_schemas.DAILY_AVERAGE_SMOOTHED, rows)


def _span_rows(span: SeriesSpan, estimates: Mapping[Quantity, QuantityEstimates]) -> Iterator[dict[str, Any]]:
    if not set(span.layers) <= estimates.keys():  # a layer was never drawn
        return
    layers = [estimates[quantity] for quantity in span.layers]
    names = dict.fromkeys(name for layer in layers for name in layer.figures.series)
    published = _published_cells(span)
    drawn = [day for day, cells in published.items() if cells]
    drawn_groups = {group for cells in published.values() for group in cells}
    for group in sorted(group for group in drawn_groups if all((span.by, group) in layer.archive for layer in layers)):
        days = [day for day in drawn if group in published[day]]
        first, last = days[0], (max(span.versions) if days[-1] == drawn[-1] else days[-1])
        archive, live = _layered(layers, (span.by, group), "archive"), _layered(layers, (span.by, group), "live")
        for day, version in span.versions.items():
            if first <= day <= last:
                yield {
                    "day": day,
                    "series": span.series,
                    "group_column": (*columns_of(span.by), ALL)[0],
                    "group": group,
                    **_value_columns(published.get(day, {}).get(group)),
                    **_estimate_columns("", archive[day]),
                    **_estimate_columns("live_", live[day]),
                    "version": version,
                    "layers": len(span.layers),
                    "based_on": ", ".join(names),
                }


def _published_cells(span: SeriesSpan) -> dict[date, dict[str, tuple[float, float, int] | None]]:
    """Return mean, variance of the noise and households by day and group; None unless all layers were drawn."""
    published: dict[date, dict[str, tuple[float, float, int] | None]] = {}
    for day, rows in span.rows.items():
        cells: dict[str, list[tuple[float, float, int]]] = {}
        for row in rows:
            for group, mean, variance, households in cell_values(row) if row.is_released else ():
                cells.setdefault(group, []).append((mean, variance, households))
        published[day] = {
            group: (sum(mean for mean, _, _ in layers), sum(variance for _, variance, _ in layers), layers[0][2])
            if len(layers) == len(span.layers)
            else None
            for group, layers in cells.items()
        }
    return published


def _value_columns(value: tuple[float, float, int] | None) -> dict[str, float | int | None]:
    if value is None:
        return {"households": None, "published_kwh": None, "noise_sd_kwh": None}
    mean, variance, households = value
    return {"households": households, "published_kwh": mean, "noise_sd_kwh": variance**0.5}


def _layered(layers: Sequence[QuantityEstimates], key: CellKey, variant: str) -> dict[date, tuple[float, float]]:
    """Return mean and standard deviation of the sum of layers by day, of the days that all of them have."""
    first = max(layer.figures.first for layer in layers)
    cells = []
    for layer in layers:
        estimate, skipped = getattr(layer, variant)[key], (first - layer.figures.first).days
        cells.append((estimate.mean[skipped:], estimate.variance[skipped:]))
    days = min(mean.size for mean, _ in cells)
    total = layer_sum([Estimate(mean[:days], variance[:days]) for mean, variance in cells])
    return {
        first + timedelta(days=i): (mean, variance**0.5)
        for i, (mean, variance) in enumerate(zip(total.mean.tolist(), total.variance.tolist(), strict=True))
    }


def _estimate_columns(prefix: str, estimate: tuple[float, float]) -> dict[str, float | None]:
    mean, sd = estimate
    values = {"estimate_kwh" if not prefix else "kwh": mean, "low_kwh": mean - _QUANTILE * sd}
    values["high_kwh"] = mean + _QUANTILE * sd
    return {f"{prefix}{name}": None if math.isnan(value) else round(value, _DIGITS) for name, value in values.items()}
