"""LEDGER rows of a release folder -> the published means to be smoothed, by what they count.

A mean is smoothed together with all means that count a household's day the same way (its quantity: clamp, lower bound
of a layer, value of a missing day, values): a total and its groups, before and after an amendment.

Example: the series "total" and, by tariff, "tariffs" of one clamp are one quantity with the cells (None, "all"),
("tariff", "Std") and ("tariff", "ToU").

Decisions:

* An amendment that changes what is counted, such as the clamp, begins a new quantity. Its days are smoothed by
  themselves: a level under another clamp says nothing that a reader could rely on. One that changes shares, names or
  the promise changes the noise alone, and the series goes on.
* A layer above the first follows the first one, so that it is another quantity above another first layer.
* Two series of the same quantity and group column are two figures of one mean; they enter as their average, weighted
  by precision.
* The day of a series that was added after the day was complete enters archive estimates alone.
* A day on which a series was not drawn belongs to the quantity of the row before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

import numpy as np

from agedp.budget import series_by_contract
from agedp.row_means import noisy_means
from agedp_data.arrays import Floats
from agedp_data.ledger import ContractRecord, ReleaseRecord
from agedp_data.roster import GroupColumns, columns_of
from agedp_data.series.layered_mean import layer_quantities
from agedp_data.series.mean import is_daily_mean
from agedp_data.series.series_terms import mean_name

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
