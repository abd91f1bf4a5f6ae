r"""Figures of a quantity -> archive and live estimates of each cell; groups and total add up.

    published figures -> least squares of the day -> each cell smoothed -> moved until groups add up -> estimates

The live estimate of a day is computed from the days up to it that were in the ledger when this day, or the first later
one, entered it. Rows that come later cannot change it.

Example: of the days 1, 3, 2, in the order of the ledger, the live estimate of day 2 is that of day 1 alone, since day 3
came before day 2; that of a day 4 knows all three.

Decisions:

* Least squares comes before smoothing. The noise of a total and of its groups is independent, so that their mean is
  better than either. What smoothing leaves out of a day is not independent, since the groups are the total: their
  smoothed estimates agree in that error. Measured with four groups, intervals of 90 % that are combined after smoothing
  hold 83 %, before it 92 %.
* Smoothed estimates are then moved until they add up, as little as their variances suggest; the intervals keep the
  width that they had.
* A cell that is withheld on a day has no households there, and groups add up on that day only if the others have all.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

import numpy as np
from numpy.typing import NDArray

from agedp.compute.engine_settings import SILENT, ProgressReporter
from agedp.smoothed_estimates.published_means import CellArrays, CellKey, QuantityFigures, estimation_places
from agedp_data.roster import ALL
from agedp_data.series.consistency import HierarchyNode, NoisyValue, consistent_estimates
from agedp_data.smoothing.cell_estimates import CellFigures, Variant, estimate_cells
from agedp_data.smoothing.structural_model import Amplitudes, Covariates, Estimate, most_probable

_TOTAL: Final[CellKey] = (None, ALL)


@dataclass(frozen=True, slots=True)
class QuantityEstimates:
    """Estimates of each cell over the days of its figures; live ones are NaN where there is none."""

    figures: QuantityFigures
    archive: Mapping[CellKey, Estimate]
    live: Mapping[CellKey, Estimate]
    amplitudes: Mapping[CellKey, Amplitudes]


def estimate_quantity(
    figures: QuantityFigures, covariates: Covariates, *, progress: ProgressReporter = SILENT, done: int = 0, of: int = 0
) -> QuantityEstimates:
    """Return the estimates of all cells of a quantity.

    Args:
        figures: what was published.
        covariates: of the days of the figures.
        progress: is called after each cell.
        done: cells that other quantities have finished.
        of: number of all cells.
    """
    consistent = _consistent_figures(figures)
    archive, live, amplitudes = {}, {}, {}
    for number, (key, cell) in enumerate(consistent.cells.items(), 1):
        archive[key] = _estimate(cell, covariates, "archive", figures.above_kwh)
        live[key] = _live_estimate(cell, consistent, covariates)
        noise = np.where(np.isnan(cell.noise_variance), 1.0, cell.noise_variance)
        amplitudes[key] = most_probable(cell.observed, noise, covariates)
        if progress.progress is not None:
            progress.progress("smooth", done + number, of)
    return QuantityEstimates(figures, _adding_up(archive, figures), _adding_up(live, figures), amplitudes)


def _estimate(cell: CellArrays, covariates: Covariates, variant: Variant, above_kwh: float) -> Estimate:
    figures = CellFigures(cell.observed, cell.noise_variance, cell.households, above_kwh)
    return estimate_cells([figures], covariates, parts=None, variant=variant)[0]


def _live_estimate(cell: CellArrays, figures: QuantityFigures, covariates: Covariates) -> Estimate:
    """Return the live estimates of a cell, from its first figure in the ledger on."""
    days, orders = cell.observed.size, figures.orders
    live = Estimate(np.full(days, np.nan), np.full(days, np.nan))
    visible_from, made_at = _visibility(cell, orders)
    complete = [day for day in visible_from if day in orders]
    if not complete:
        return live
    first = min(complete, key=orders.__getitem__)
    late = {day: seen for day, seen in visible_from.items() if first <= day < seen}
    passes: dict[frozenset[int], list[int]] = {}
    for day in range(first, days):
        if math.isfinite(made_at[day]):
            hidden = frozenset(late_day for late_day, seen in late.items() if late_day <= day < seen)
            passes.setdefault(hidden, []).append(day)
    for hidden, targets in passes.items():
        span = slice(first, targets[-1] + 1)
        observed = cell.observed.copy()
        observed[list(hidden)] = np.nan
        seen = replace(cell, observed=observed[span], noise_variance=cell.noise_variance[span])
        estimate = _estimate(seen, _slice(covariates, span), "live", figures.above_kwh)
        places = np.array(targets) - first
        live.mean[targets], live.variance[targets] = estimate.mean[places], estimate.variance[places]
    return live


def _visibility(cell: CellArrays, orders: Mapping[int, int]) -> tuple[dict[int, int], list[float]]:
    """Return from which day on each figure is known, and the place in the ledger at which each day's estimate is made.

    A figure of day d is known to the estimates of the days t >= d that are made at its place in the ledger or later; a
    figure of an incomplete day to none.
    """
    days = cell.observed.size
    made_at, visible_from = estimation_places(orders, days), {}
    for day in np.flatnonzero(np.isfinite(cell.observed)).tolist():
        order = orders.get(day, math.inf)
        visible_from[day] = next((t for t in range(day, days) if order <= made_at[t] < math.inf), days)
    return visible_from, made_at


def _slice(covariates: Covariates, span: slice) -> Covariates:
    heating = None if covariates.heating is None else covariates.heating[span]
    return Covariates(covariates.weekday[span], covariates.holiday[span], covariates.special[span], heating)


def _consistent_figures(figures: QuantityFigures) -> QuantityFigures:
    """Return the figures after least squares of each day on which groups add up to the total."""
    cells = figures.cells
    noisy = {key: NoisyValue(cell.observed, cell.noise_variance) for key, cell in cells.items()}
    estimates = _least_squares(noisy, figures)
    return replace(
        figures,
        cells={
            key: CellArrays(np.asarray(value.value), np.asarray(value.variance), cells[key].households)
            for key, value in estimates.items()
        },
    )


def _adding_up(estimates: Mapping[CellKey, Estimate], figures: QuantityFigures) -> dict[CellKey, Estimate]:
    """Return the estimates, moved until groups add up to the total; variances are kept."""
    noisy = {key: NoisyValue(estimate.mean, estimate.variance) for key, estimate in estimates.items()}
    moved = _least_squares(noisy, figures)
    return {key: replace(estimate, mean=np.asarray(moved[key].value)) for key, estimate in estimates.items()}


def _least_squares(noisy: Mapping[CellKey, NoisyValue], figures: QuantityFigures) -> dict[CellKey, NoisyValue]:
    """Return values per household, those of days on which groups add up to the total after least squares."""
    result = {key: NoisyValue(np.array(value.value), np.array(value.variance)) for key, value in noisy.items()}
    columns = _complete_parts(noisy, figures)
    if not columns:
        return result
    presence = np.array([is_part for parts in columns.values() for is_part in parts.values()])
    for pattern in np.unique(presence, axis=1).T:
        if pattern.any():
            days = np.flatnonzero((presence == pattern[:, None]).all(axis=0))
            partitions = [[key for key, is_part in parts.items() if is_part[days[0]]] for parts in columns.values()]
            _add_up_on(days, [keys for keys in partitions if keys], result, figures)
    return result


def _add_up_on(
    days: NDArray[np.int64],
    partitions: Sequence[Sequence[CellKey]],
    values: Mapping[CellKey, NoisyValue],
    figures: QuantityFigures,
) -> None:
    """Replace the values of some days by least squares; `partitions` are the parts that add up to the total."""
    keys = [_TOTAL, *chain.from_iterable(partitions)]
    households = {key: figures.cells[key].households[days] for key in keys}
    nodes = {}
    for key, weight in households.items():
        value, variance = np.asarray(values[key].value)[days], np.asarray(values[key].variance)[days]
        nodes[key] = HierarchyNode(NoisyValue(value * weight, variance * weight**2))
    root = consistent_estimates(
        replace(nodes[_TOTAL], partitions=tuple(tuple(nodes[key] for key in parts) for parts in partitions))
    )
    for key, node in zip(keys, [root, *chain.from_iterable(root.partitions)], strict=True):
        np.asarray(values[key].value)[days] = node.noisy.value / households[key]
        np.asarray(values[key].variance)[days] = node.noisy.variance / households[key] ** 2


def _complete_parts(
    noisy: Mapping[CellKey, NoisyValue], figures: QuantityFigures
) -> dict[str, dict[CellKey, NDArray[np.bool_]]]:
    """Return, by column and group, the days on which the group is a part of groups that have all households."""
    if _TOTAL not in noisy:
        return {}
    total = figures.cells[_TOTAL].households
    has_total = np.isfinite(np.asarray(noisy[_TOTAL].value))
    by_column: dict[str, dict[CellKey, NDArray[np.bool_]]] = {}
    for key, value in noisy.items():
        if key[0] is not None:
            is_part = np.isfinite(np.asarray(value.value)) & np.isfinite(figures.cells[key].households)
            by_column.setdefault(key[0], {})[key] = is_part
    for parts in by_column.values():
        households = sum(np.where(is_part, figures.cells[key].households, 0.0) for key, is_part in parts.items())
        for key, is_part in parts.items():
            parts[key] = is_part & has_total & (households == total)
    return by_column
