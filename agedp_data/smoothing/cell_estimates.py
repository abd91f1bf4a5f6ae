r"""Smoothed estimates of several cells of a release: a total, its groups, and the layers of a clamped mean.

The idea: each cell is smoothed on its own. Where cells are the parts of another, estimates of a day are then moved
until the mean of the parts, weighted by their households, is the total, each in proportion to its variance.

Example: estimates 10 for all, 9 and 12 for two equal groups, with variances 1, 1 and 1: the groups average 10.5, so the
total becomes 10.33, the groups 8.83 and 11.83.

Decisions:

* Each day is reconciled by estimates of that day alone, so that later rows never revise a live estimate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from agedp_data.arrays import Floats
from agedp_data.errors import ChainError
from agedp_data.smoothing.structural_model import (
    Covariates,
    Estimate,
    draw_amplitudes,
    estimate_all,
    estimate_so_far,
    most_probable,
)

Variant = Literal["archive", "live"]


@dataclass(frozen=True, slots=True)
class CellFigures:
    """Published figures of a cell, each (T,): `observed` [kWh per household], NaN where none is, and their noise.

    `noise_variance` [kWh^2] and `households` are not read where no figure is, but for reconciliation of a total and its
    parts, which takes place on the days on which `households` of all of them are positive. `above_kwh` is the lower
    bound of the layer, 0 for a mean and for the first layer.
    """

    observed: Floats
    noise_variance: Floats
    households: Floats
    above_kwh: float = 0.0


def estimate_cells(
    figures: Sequence[CellFigures], covariates: Covariates, *, parts: tuple[int, ...] | None, variant: Variant
) -> list[Estimate]:
    r"""Return the estimates of cells of a series, in their order; parts and their total add up.

    With x the estimates of the day, V their variances and a the weights of the constraint, 1 for the total and
    -n_g / n for a part:

    .. math:: \hat x = x - V a \frac{a^\top x}{a^\top V a}, \quad \hat V = V - \frac{V a a^\top V}{a^\top V a}

    Source: generalised least squares under a linear constraint.

    Args:
        figures: of each cell.
        covariates: of the same days.
        parts: places in `figures` of the groups; the single cell that remains is their total; None without a total.
        variant: "archive", each day by all figures, or "live", each day by those up to it.

    Raises:
        ChainError: shapes that differ, or parts that leave more or less than one total.
    """
    estimates = [_estimate(cell, covariates, variant) for cell in figures]
    if parts is None:
        return estimates
    totals = set(range(len(figures))) - set(parts)
    if len(totals) != 1:
        raise ChainError("parts of a total leave a single cell, the total")
    order = [*totals, *parts]
    households = np.array([figures[place].households for place in order[1:]])
    is_complete = (np.where(np.isnan(households), 0, households) > 0).all(axis=0)
    weights = np.where(is_complete, households, 0.0) / np.where(is_complete, households.sum(axis=0), 1.0)
    signed = np.vstack([is_complete.astype(float), -weights])
    means, variances = (np.array([getattr(estimates[place], name) for place in order]) for name in ("mean", "variance"))
    spread = (signed**2 * variances).sum(axis=0)
    gain = signed * variances / np.where(is_complete, spread, 1.0)
    means -= gain * (signed * means).sum(axis=0)
    variances -= gain * signed * variances
    for row, place in enumerate(order):
        estimates[place] = Estimate(means[row], variances[row])
    return estimates


def layer_sum(layers: Sequence[Estimate]) -> Estimate:
    """Return the estimate of the sum of layers: of the daily mean under the uppermost clamp.

    Raises:
        ChainError: no layers, or of different days.
    """
    if len({layer.mean.shape for layer in layers}) != 1:
        raise ChainError("layers that are added must be of the same days")
    return Estimate(
        np.sum([layer.mean for layer in layers], axis=0), np.sum([layer.variance for layer in layers], axis=0)
    )


def _estimate(cell: CellFigures, covariates: Covariates, variant: Variant) -> Estimate:
    is_seen = np.isfinite(cell.observed)
    noise = np.where(is_seen, cell.noise_variance, 1.0)
    if variant == "live":
        return estimate_so_far(cell.observed, noise, covariates)
    mode = most_probable(cell.observed, noise, covariates)
    return estimate_all(cell.observed, noise, covariates, draw_amplitudes(cell.observed, noise, covariates, mode))
