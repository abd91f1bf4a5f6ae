r"""Figures of a quantity -> archive and live estimates of each cell; groups and total add up.

The live estimate of a day is computed from the days up to it that were in the ledger when this day, or the first later
one, entered it. Rows that come later cannot change it.

Example: of the days 1, 3, 2, in the order of the ledger, the live estimate of day 2 is that of day 1 alone, since day 3
came before day 2; that of a day 4 knows all three.

Decisions:

* Groups of several columns are the same households. For each column the total enters with the sums of the other
  columns, by precision, so that every column leads to the same total, but for the end of the search for amplitudes;
  what that leaves is added to the groups.
* A group enters live estimates with its first figure: a group that is founded later revises none.
* Where there is no total, that of the groups is estimated with them and left out: groups share weather and weekdays.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from agedp.smoothed_estimates.published_means import CellArrays, CellKey, QuantityFigures
from agedp_data.arrays import Floats
from agedp_data.roster import ALL
from agedp_data.smoothing.amplitude_fit import most_probable
from agedp_data.smoothing.cell_estimates import CellFigures, estimate_cells
from agedp_data.smoothing.group_estimates import Variant
from agedp_data.smoothing.structural_model import Amplitudes, Covariates, Estimate

_TOTAL: Final[CellKey] = (None, ALL)
_Cells = Mapping[CellKey, CellArrays]
_Estimates = Mapping[CellKey, Estimate]


@dataclass(frozen=True, slots=True)
class QuantityEstimates:
    """Estimates of each cell over the days of its figures; live ones are NaN where there is none."""

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
    below = _over(first_layer, "archive", figures)
    archive = _estimate(figures.cells, covariates, "archive", figures.above_kwh, below)
    live = _live_estimates(figures, covariates, _over(first_layer, "live", figures))
    return QuantityEstimates(figures, archive, live)


def total_amplitudes(figures: QuantityFigures, covariates: Covariates) -> dict[CellKey, Amplitudes]:
    """Return the most probable amplitudes of the total, or of each group where there is none."""
    cells = {key: cell for key, cell in figures.cells.items() if key == _TOTAL or _TOTAL not in figures.cells}
    return {
        key: most_probable(cell.observed, np.where(np.isfinite(cell.observed), cell.noise_variance, 1.0), covariates)
        for key, cell in cells.items()
    }


def _over(first_layer: QuantityEstimates | None, variant: Variant, figures: QuantityFigures) -> Estimate | None:
    """Return the total's estimate of the first layer over the days of an upper one, None if it lacks a day."""
    if first_layer is None or _TOTAL not in first_layer.archive or first_layer.figures.first > figures.first:
        return None
    estimate = (first_layer.archive if variant == "archive" else first_layer.live)[_TOTAL]
    start, days = (figures.first - first_layer.figures.first).days, len(figures.days)
    cut = _cut(estimate, slice(start, start + days))
    return cut if cut.mean.size == days else None


def _cut(estimate: Estimate, span: slice) -> Estimate:
    return Estimate(estimate.mean[span], estimate.variance[span])


def _estimate(
    cells: _Cells, covariates: Covariates, variant: Variant, above_kwh: float, below: Estimate | None
) -> dict[CellKey, Estimate]:
    """Return the estimates of cells; `below` is the total's in the first layer, NaN where it has none."""
    columns: dict[str, list[CellKey]] = {}
    for by, group in cells:
        if by is not None:
            columns.setdefault(by, []).append((by, group))
    estimates: dict[CellKey, Estimate] = {}
    for column, keys in columns.items() or [("", [])]:
        total = _total_of_others(cells, [others for name, others in columns.items() if name != column])
        figures = [
            CellFigures(cell.observed, cell.noise_variance, cell.households, above_kwh)
            for cell in (total, *(cells[key] for key in keys))
        ]
        parts = tuple(range(1, len(figures))) or None
        has_layer = below is not None and bool(np.isfinite(below.mean).all())
        layer = [below] * len(figures) if below is not None and has_layer else None
        total_estimate, *groups = estimate_cells(figures, covariates, parts=parts, variant=variant, first_layer=layer)
        shift = estimates.setdefault(_TOTAL, total_estimate).mean - total_estimate.mean
        estimates |= {key: replace(group, mean=group.mean + shift) for key, group in zip(keys, groups, strict=True)}
    return {key: estimates[key] for key in cells}


def _total_of_others(cells: _Cells, columns: Sequence[Sequence[CellKey]]) -> CellArrays:
    """Return the total by its own figures and by the sums of these columns' groups, weighted by precision."""
    some = next(iter(cells.values()))
    nothing = np.full(some.observed.size, np.nan)
    total = cells.get(_TOTAL, CellArrays(nothing, nothing, nothing))
    figures = [(total.observed, total.noise_variance)]
    for keys in columns:
        observed, variance, households = (
            np.array([getattr(cells[key], name) for key in keys])
            for name in ("observed", "noise_variance", "households")
        )
        weights = households / total.households  # NaN, and no figure, unless all groups are published
        is_sum = households.sum(axis=0) == total.households
        figures.append(
            (np.where(is_sum, (weights * observed).sum(axis=0), np.nan), (weights**2 * variance).sum(axis=0))
        )
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
    live = {key: Estimate(np.full(days, np.nan), np.full(days, np.nan)) for key in figures.cells}
    made_at = estimation_places(figures.orders, days)
    known_from = _known_from(figures, made_at)
    complete = [day for day in known_from if day in figures.orders]
    if not complete:
        return live
    first = min(complete, key=figures.orders.__getitem__)
    entered = _entered(figures, {day: known for day, known in known_from.items() if day >= first})
    late = {day: known for day, known in known_from.items() if first <= day < known}
    passes: dict[tuple[frozenset[int], tuple[CellKey, ...]], list[int]] = {}
    for day in range(first, days):
        if math.isfinite(made_at[day]) and (below is None or np.isfinite(below.mean[day])):
            hidden = frozenset(late_day for late_day, known in late.items() if late_day <= day < known)
            passes.setdefault((hidden, tuple(key for key, since in entered.items() if since <= day)), []).append(day)
    for (hidden, keys), targets in passes.items():
        span = slice(first, targets[-1] + 1)
        seen = {key: _seen(figures.cells[key], span, hidden) for key in keys}
        layer = None if below is None else _cut(below, span)
        estimates = _estimate(seen, _slice(covariates, span), "live", figures.above_kwh, layer)
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


def _seen(cell: CellArrays, span: slice, hidden: frozenset[int]) -> CellArrays:
    """Return the figures of some days without the hidden ones."""

    def cut(values: Floats) -> Floats:
        shown = values.copy()
        shown[list(hidden)] = np.nan
        return shown[span]

    return replace(
        cell,
        observed=cut(cell.observed),
        noise_variance=cut(cell.noise_variance),
        households=cut(cell.households),
    )


def _slice(covariates: Covariates, span: slice) -> Covariates:
    heating = None if covariates.heating is None else covariates.heating[span]
    return Covariates(covariates.weekday[span], covariates.holiday[span], covariates.special[span], heating)
