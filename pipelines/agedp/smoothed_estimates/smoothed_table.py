"""Estimates -> the rows of `daily_average_smoothed.parquet`: each published value beside its estimates.

A row is a day and a group of a series. It has what was published, the archive estimate, from all rows of the folder,
and the live estimate, which later rows never revise. Layers of a series are added here.

Decisions:

* A group has rows from its first published day to its last, and on to the days that were skipped since. On a day
  without a published value the columns of the value are empty.
* A day that is delivered late, after an amendment of what is counted, is of the new contract, and so is its live
  estimate; that of the old one, a prediction, is no longer in the table.
* Estimates are rounded to a milliwatt-hour: further digits are those of the search for the amplitudes.
* An amendment that changes what is counted, such as the clamp, begins a new quantity. Its days are smoothed by
  themselves: a level under another clamp says nothing that a reader could rely on. One that changes shares, names or
  the promise changes the noise alone, and the series goes on.
* A layer above the first follows the first one, so that it is another quantity above another first layer.
* Two series of the same quantity and group column are two figures of one mean; they enter as their average, weighted
  by precision.
* The day of a series that was added after the day was complete enters archive estimates alone.
* A day on which a series was not drawn belongs to the quantity of the row before it.
* Groups of several columns are the same households. For each column the total enters with the sums of the other
  columns, by precision, so that every column leads to the same total, but for the end of the search for amplitudes;
  what that leaves is added to the groups.
* Levels of a hierarchy are such columns: the groups of each level add up to the total, and not to each other.
* A group enters live estimates with its first figure: a group that is founded later revises none.
* Where there is no total, that of the groups is estimated with them: groups share weather and weekdays.
* An upper layer follows the total of the first layer, live by its live estimates.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from statistics import NormalDist
from typing import Any, Final

import numpy as np
import pyarrow as pa

from agedp.budget import series_by_contract
from agedp.signal_against_noise import noisy_means
from agedp_data import table_schemas
from agedp_data.arrays import Floats
from agedp_data.ledger import ContractRecord, ReleaseRecord
from agedp_data.roster import ALL, GroupColumns, columns_of
from agedp_data.series.layered_mean import layer_quantities
from agedp_data.series.mean import is_daily_mean
from agedp_data.series.series_terms import mean_name
from agedp_data.smoothing.estimates import CellFigures, Days, Variant, above_first_layer, estimate_cells, layer_sum
from agedp_data.smoothing.structural_model import Covariates, Estimate

# --------------------------------------------------------------------------------------------------
# LEDGER rows of a release folder -> the published means to be smoothed, by what they count.
#
# A mean is smoothed together with all means that count a household's day the same way (its quantity: clamp, lower
# bound of a layer, value of a missing day, values): a total and its groups, before and after an amendment.
#
# Example: the series "total" and, by tariff, "tariffs" of one clamp are one quantity with the cells (None, "all"),
# ("tariff", "Std") and ("tariff", "ToU").
# --------------------------------------------------------------------------------------------------

_LEAST_VARIANCE: Final = 1e-12
"""Of a figure with hardly any noise [kWh^2]: the mathematics needs a positive one."""

Quantity = tuple[object, ...]
"""What counts as a household's day: `Mean.quantity`."""
CellKey = tuple[GroupColumns, str]
"""Group columns, None for all households, and group."""


@dataclass(frozen=True, slots=True)
class PublishedMean:
    """A row of a mean: its quantity and those of all `layers` of its series, group column, number of its contract.

    `order` is the place in the ledger at which the last series of its quantity had its row of the day, of those in the
    contract of the day's first row; None while one is still to come.
    """

    row: ReleaseRecord
    layers: tuple[Quantity, ...]
    quantity: Quantity
    above_kwh: float
    by: GroupColumns
    version: int
    order: int | None

    @property
    def day(self) -> date:
        """Return the day of the data."""
        return date.fromisoformat(self.row.day)

    @property
    def series(self) -> str:
        """Return the name of the series in the run file, of which the row may be a layer."""
        return mean_name(self.row.series)

    @property
    def is_released(self) -> bool:
        """Return whether noise was drawn, rather than the day skipped."""
        return self.row.state == "released"


@dataclass(frozen=True, slots=True)
class CellArrays:
    """Figures of a cell over the days of its quantity, each (T,), NaN where there is none.

    `observed` [kWh per household], `noise_variance` [kWh^2], and `households`.
    """

    observed: Floats
    noise_variance: Floats
    households: Floats


@dataclass(frozen=True, slots=True)
class QuantityFigures:
    """All figures of one quantity: T consecutive days from `first`, cells in their order, names of the series.

    `orders` is the place in the ledger of each complete day, by the day's number from 0; `above_kwh` the lower end of
    a layer, 0 for a mean and for the first layer. `in_time` are the figures that came before their day was complete, if
    others came later.
    """

    first: date
    cells: Mapping[CellKey, CellArrays]
    orders: Mapping[int, int]
    series: tuple[str, ...]
    above_kwh: float = 0.0
    in_time: Mapping[CellKey, CellArrays] | None = None

    @property
    def days(self) -> list[date]:
        """Return the days, in order."""
        return [self.first + timedelta(days=i) for i in range(len(next(iter(self.cells.values())).observed))]


def published_means(rows: Sequence[ReleaseRecord], contracts: Sequence[ContractRecord]) -> list[PublishedMean]:
    """Return the rows of means with their places, in the order of the ledger."""
    versions = {contract.hash: number for number, contract in enumerate(contracts, 1)}
    by_contract = {
        contract: {name: mean for name, mean in series.items() if is_daily_mean(mean)}
        for contract, series in series_by_contract(contracts).items()
    }
    released = sorted((row for row in rows if row.series in by_contract[row.contract]), key=lambda row: row.seq)
    layers = {
        (contract, table): layer_quantities({name: mean for name, mean in means.items() if mean_name(name) == table})
        for contract, means in by_contract.items()
        for table in {mean_name(name) for name in means}
    }
    orders = _orders(released, layers)
    return [
        PublishedMean(
            row=row,
            layers=tuple(layers[row.contract, mean_name(row.series)].values()),
            quantity=(quantity := layers[row.contract, mean_name(row.series)][row.series]),
            above_kwh=(mean := by_contract[row.contract][row.series]).above_wh / 1000,
            by=mean.by,
            version=versions[row.contract],
            order=orders.get((quantity, row.day)),
        )
        for row in released
    ]


def _orders(
    rows: Sequence[ReleaseRecord], layers: Mapping[tuple[str, str], Mapping[str, Quantity]]
) -> dict[tuple[Quantity, str], int]:
    """Return the place of each complete day of a quantity: that of the last row that its contract expects."""
    of_day: dict[tuple[Quantity, str], list[ReleaseRecord]] = {}
    names: dict[tuple[str, Quantity], set[str]] = {}
    for (contract, _), quantities in layers.items():
        for name, quantity in quantities.items():
            names.setdefault((contract, quantity), set()).add(name)
    for row in rows:
        of_day.setdefault((layers[row.contract, mean_name(row.series)][row.series], row.day), []).append(row)
    orders = {}
    for (quantity, day), day_rows in of_day.items():
        first = {row.series: row.seq for row in reversed(day_rows)}
        expected = names[day_rows[0].contract, quantity]
        if expected <= first.keys():
            orders[quantity, day] = max(first[name] for name in expected)
    return orders


def quantity_figures(
    means: Sequence[PublishedMean], last_days: Mapping[Quantity, date]
) -> dict[Quantity, QuantityFigures]:
    """Return the figures of each quantity that was drawn and is needed, from its series' first draw to its last day."""
    by_quantity: dict[Quantity, list[PublishedMean]] = {}
    first: dict[Quantity, date] = {}
    last = dict(last_days)
    for mean in means:
        by_quantity.setdefault(mean.quantity, []).append(mean)
        for quantity in mean.layers:
            last[quantity] = max(mean.day, last.get(quantity, date.min))
            if mean.is_released:
                first[quantity] = min(mean.day, first.get(quantity, date.max))
    return {
        quantity: _figures(rows, first[quantity], last[quantity])
        for quantity, rows in by_quantity.items()
        if quantity in last_days and any(mean.is_released for mean in rows)
    }


def _figures(means: Sequence[PublishedMean], first: date, last: date) -> QuantityFigures:
    released = [mean for mean in means if mean.is_released]
    days = (last - first).days + 1
    orders = {place: mean.order for mean in means if mean.order is not None and (place := (mean.day - first).days) >= 0}
    names = tuple(dict.fromkeys(mean.row.series for mean in sorted(released, key=lambda mean: columns_of(mean.by))))
    in_time = [mean for mean in released if mean.order is None or mean.row.seq <= mean.order]
    return QuantityFigures(
        first,
        _cells(released, first, days),
        orders,
        names,
        means[0].above_kwh,
        _cells(in_time, first, days) if len(in_time) < len(released) else None,
    )


def _cells(means: Sequence[PublishedMean], first: date, days: int) -> dict[CellKey, CellArrays]:
    sums: dict[CellKey, Floats] = {}
    for mean in means:
        place = (mean.day - first).days
        for group, value, variance, households in cell_values(mean):
            cell = sums.setdefault((mean.by, group), np.zeros((3, days)))
            cell[:2, place] += [value / variance, 1 / variance]
            cell[2, place] = households
    order = sorted(sums, key=lambda key: (columns_of(key[0]), key[1]))
    return {key: _arrays(sums[key]) for key in order}


def cell_values(mean: PublishedMean) -> Iterator[tuple[str, float, float, int]]:
    """Yield group, mean [kWh], variance of its noise [kWh^2] and households of each cell of a row."""
    for cell in noisy_means(mean.row):
        yield cell.group, cell.mean_kwh, max(cell.noise_sd_kwh**2, _LEAST_VARIANCE), cell.households


def _arrays(cell: Floats) -> CellArrays:
    """Return the arrays of a cell from sums of value / variance, sums of 1 / variance, and households."""
    is_seen = cell[1] > 0
    precision = np.where(is_seen, cell[1], 1.0)
    return CellArrays(
        np.where(is_seen, cell[0] / precision, np.nan),
        np.where(is_seen, 1 / precision, np.nan),
        np.where(is_seen, cell[2], np.nan),
    )


# --------------------------------------------------------------------------------------------------
# Figures of a quantity -> archive and live estimates of each cell; groups and total add up.
#
# The live estimate of a day is computed from the days up to it that were in the ledger when this day, or the first
# later one, entered it. Rows that come later cannot change it.
#
# Example: of the days 1, 3, 2, in the order of the ledger, the live estimate of day 2 is that of day 1 alone, since
# day 3 came before day 2; that of a day 4 knows all three.
# --------------------------------------------------------------------------------------------------

TOTAL: Final[CellKey] = (None, ALL)
_Cells = Mapping[CellKey, CellArrays]
_Estimates = Mapping[CellKey, Estimate]


@dataclass(frozen=True, slots=True)
class QuantityEstimates:
    """Estimates of each cell and of the total over the days of the figures; live ones are NaN where there is none."""

    figures: QuantityFigures
    archive: _Estimates
    live: _Estimates


def estimate_quantity(
    figures: QuantityFigures, covariates: Covariates, *, first_layer: QuantityEstimates | None = None
) -> QuantityEstimates:
    """Return the estimates of all cells of a quantity.

    Args:
        figures: what was published.
        covariates: of the days of the figures.
        first_layer: of an upper layer, the estimates of the first one.
    """
    below, live_below = None, None
    if first_layer is not None:  # its total over the days of the upper layer
        start = (figures.first - first_layer.figures.first).days
        span = slice(start, start + len(figures.days))
        below, live_below = _cut(first_layer.archive[TOTAL], span), _cut(first_layer.live[TOTAL], span)
    archive = _estimate(figures.cells, _public(covariates, below), above_kwh=figures.above_kwh, variant="archive")
    return QuantityEstimates(figures, archive, _live_estimates(figures, covariates, live_below))


def _cut(estimate: Estimate, span: slice) -> Estimate:
    return Estimate(estimate.mean[span], estimate.variance[span])


def _public(covariates: Covariates, below: Estimate | None) -> Covariates:
    return covariates if below is None else above_first_layer(covariates, below)


def _estimate(
    cells: _Cells, covariates: Covariates, *, above_kwh: float, variant: Variant, known_from: Days | None = None
) -> dict[CellKey, Estimate]:
    """Return the estimates of cells and of their total, even if it is not among them."""
    columns: dict[GroupColumns, list[CellKey]] = {}
    for by, group in cells:
        if by is not None:
            columns.setdefault(by, []).append((by, group))
    estimates: dict[CellKey, Estimate] = {}
    for column, keys in columns.items() or [(None, [])]:
        total = _total_of_others(cells, [others for name, others in columns.items() if name != column])
        figures = [
            CellFigures(cell.observed, cell.noise_variance, cell.households, above_kwh)
            for cell in (total, *(cells[key] for key in keys))
        ]
        parts = tuple(range(1, len(figures))) or None
        total_estimate, *groups = estimate_cells(
            figures, covariates, parts=parts, variant=variant, known_from=known_from
        )
        shift = estimates.setdefault(TOTAL, total_estimate).mean - total_estimate.mean
        estimates |= {key: replace(group, mean=group.mean + shift) for key, group in zip(keys, groups, strict=True)}
    return estimates


def _total_of_others(cells: _Cells, columns: Sequence[Sequence[CellKey]]) -> CellArrays:
    """Return the total by its own figures and by the sums of these columns' groups, weighted by precision."""
    some = next(iter(cells.values()))
    nothing = np.full(some.observed.size, np.nan)
    total = cells.get(TOTAL, CellArrays(nothing, nothing, nothing))
    figures = [(total.observed, total.noise_variance)]
    for keys in columns:
        observed, variance, households = (
            np.array([getattr(cells[key], name) for key in keys])
            for name in ("observed", "noise_variance", "households")
        )
        weights = np.where(np.isfinite(households), households, 0.0) / total.households  # NaN, no figure, without it
        is_sum = np.nansum(households, axis=0) == total.households
        value, spread = np.nansum(weights * observed, axis=0), np.nansum(weights**2 * variance, axis=0)
        figures.append((np.where(is_sum, value, np.nan), np.where(is_sum, spread, np.nan)))
    is_seen = np.array([np.isfinite(value) for value, _ in figures])
    precision = np.array(
        [np.where(seen, 1 / variance, 0.0) for seen, (_, variance) in zip(is_seen, figures, strict=True)]
    )
    added = np.where(precision.sum(axis=0) > 0, precision.sum(axis=0), np.nan)
    values = np.array([np.where(seen, value, 0.0) for seen, (value, _) in zip(is_seen, figures, strict=True)])
    return CellArrays((precision * values).sum(axis=0) / added, 1 / added, total.households)


def _live_estimates(
    figures: QuantityFigures, covariates: Covariates, below: Estimate | None
) -> dict[CellKey, Estimate]:
    """Return the live estimates, from the first day that entered the ledger complete.

    A day that has none in the first layer yet, `below`, has none in an upper layer.
    """
    days = len(figures.days)
    live = {key: Estimate(np.full(days, np.nan), np.full(days, np.nan)) for key in (*figures.cells, TOTAL)}
    if figures.in_time is not None:
        figures = replace(figures, cells=figures.in_time)
    made_at = np.array(estimation_places(figures.orders, days))
    known_from = _known_from(figures, made_at.tolist())
    complete = [day for day in known_from if day in figures.orders]
    is_made = np.isfinite(made_at) & (True if below is None else np.isfinite(below.mean))
    if not complete or not is_made.any():
        return live
    first = max(min(complete, key=figures.orders.__getitem__), int(is_made.argmax()))
    entered = _entered(figures, {day: known for day, known in known_from.items() if day >= first})
    known = np.array([known_from.get(day, day) for day in range(days)])
    passes: dict[tuple[CellKey, ...], list[int]] = {}
    for day in range(first, days):
        if is_made[day]:
            passes.setdefault(tuple(key for key, since in entered.items() if since <= day), []).append(day)
    for keys, targets in passes.items():
        if not keys:  # nothing but days before the first layer's
            continue
        span = slice(first, targets[-1] + 1)
        cells = {key: _over_days(figures.cells[key], span) for key in keys}
        public = _public(covariates.over(span), None if below is None else _cut(below, span))
        estimates = _estimate(
            cells, public, above_kwh=figures.above_kwh, variant="live", known_from=known[span] - first
        )
        places = np.array(targets) - first
        for key, estimate in estimates.items():
            live[key].mean[targets], live[key].variance[targets] = estimate.mean[places], estimate.variance[places]
    return live


def estimation_places(orders: Mapping[int, int], days: int) -> list[float]:
    """Return the place in the ledger at which the live estimate of each day is made: that of the day or a later one.

    >>> estimation_places({0: 5, 1: 9, 2: 7}, 4)
    [5, 7, 7, inf]
    """
    places = [math.inf] * (days + 1)
    for day in reversed(range(days)):
        places[day] = min(places[day + 1], orders.get(day, math.inf))
    return places[:days]


def _known_from(figures: QuantityFigures, made_at: Sequence[float]) -> dict[int, int]:
    """Return, by day with figures, from which day on estimates know them; never those of an incomplete day."""
    observed = np.array([cell.observed for cell in figures.cells.values()])
    known_from = {}
    for day in np.flatnonzero(np.isfinite(observed).any(axis=0)).tolist():
        order, later = figures.orders.get(day, math.inf), range(day, len(made_at))
        known_from[day] = next((t for t in later if order <= made_at[t] < math.inf), len(made_at))
    return known_from


def _entered(figures: QuantityFigures, known_from: Mapping[int, int]) -> dict[CellKey, int]:
    """Return the day from which on estimates know a figure of each cell."""
    never = len(figures.days)
    return {
        key: min((known for day, known in known_from.items() if np.isfinite(cell.observed[day])), default=never)
        for key, cell in figures.cells.items()
    }


def _over_days(cell: CellArrays, span: slice) -> CellArrays:
    return CellArrays(cell.observed[span], cell.noise_variance[span], cell.households[span])


# --------------------------------------------------------------------------------------------------
# Estimates -> the rows of `daily_average_smoothed.parquet`: each published value beside its estimates.
# --------------------------------------------------------------------------------------------------

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
