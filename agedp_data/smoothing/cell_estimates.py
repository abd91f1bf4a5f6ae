r"""Smoothed estimates of several cells of a release: a total, its groups, and the layers of a clamped mean.

Example: layers estimated as 9.8 and 0.3 kWh with variances 0.04 and 0.01 add up to 10.1 kWh with variance 0.05.

Decisions:

* A layer above the first has priors of its own, in proportion to the part of a household's use that lies above.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from agedp_data.arrays import Floats
from agedp_data.errors import ChainError
from agedp_data.smoothing.group_estimates import Variant, estimate_groups, estimate_series
from agedp_data.smoothing.structural_model import DAILY_MEAN, Covariates, Estimate, Prior


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
    r"""Return the estimates of the cells of a series, in their order; parts and their total add up.

    A total that is not published is a cell without figures.

    .. math:: \sum_g n_g \hat f_g = n \hat f \text{ on days on which } \sum_g n_g = n

    Source: `estimate_groups`.

    Args:
        figures: of each cell.
        covariates: of the same days.
        parts: places in `figures` of the groups; the single cell that remains is their total; None without a total.
        variant: "archive", each day by all figures, or "live", each day by those up to it.

    Raises:
        ChainError: shapes that differ, layers that differ, or parts that leave more or less than one total.
    """
    if parts is None:
        return [
            estimate_series(cell.observed, cell.noise_variance, covariates, prior=_prior(cell), variant=variant)
            for cell in figures
        ]
    order = [place for place in range(len(figures)) if place not in parts] + list(parts)
    if len(order) != len(parts) + 1 or sorted(order) != list(range(len(figures))) or not parts:
        raise ChainError("parts of a total leave a single cell, the total")
    cells = [figures[place] for place in order]
    if len({(cell.above_kwh, cell.observed.shape) for cell in cells}) > 1:
        raise ChainError("a total and its parts are of one layer and of the same days")
    rows = [np.array([getattr(cell, name) for cell in cells]) for name in ("observed", "noise_variance", "households")]
    estimates = estimate_groups((rows[0], rows[1], rows[2]), covariates, prior=_prior(cells[0]), variant=variant)
    places = np.argsort(order).tolist()
    return [Estimate(estimates.mean[place], estimates.variance[place]) for place in places]


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


def _prior(cell: CellFigures) -> Prior:
    return DAILY_MEAN
