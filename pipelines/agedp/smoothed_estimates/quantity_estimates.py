r"""Figures of a quantity -> archive and live estimates of each cell; groups and total add up.

The live estimate of a day is computed from the days up to it that were in the ledger when this day, or the first later
one, entered it. Rows that come later cannot change it.

Example: of the days 1, 3, 2, in the order of the ledger, the live estimate of day 2 is that of day 1 alone, since day 3
came before day 2; that of a day 4 knows all three.

Decisions:

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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from agedp.smoothed_estimates.published_means import CellArrays, CellKey, QuantityFigures
from agedp_data.roster import ALL, GroupColumns
from agedp_data.smoothing.cell_estimates import CellFigures, Variant, above_first_layer, estimate_cells
from agedp_data.smoothing.daily_estimates import Days
from agedp_data.smoothing.structural_model import Covariates, Estimate

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
    below = None if first_layer is None else _over(first_layer, figures)
    archive = _estimate(
        figures.cells, _public(covariates, below and below[0]), above_kwh=figures.above_kwh, variant="archive"
    )
    return QuantityEstimates(figures, archive, _live_estimates(figures, covariates, below and below[1]))


def _over(first_layer: QuantityEstimates, figures: QuantityFigures) -> tuple[Estimate, Estimate]:
    """Return the total's estimates of the first layer, archive and live, over the days of an upper one."""
    start = (figures.first - first_layer.figures.first).days
    span = slice(start, start + len(figures.days))
    return _cut(first_layer.archive[TOTAL], span), _cut(first_layer.live[TOTAL], span)


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
