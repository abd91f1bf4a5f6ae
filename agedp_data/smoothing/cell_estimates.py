r"""Smoothed estimates of several cells of a release: a total, its groups, and the layers of a clamped mean.

Example: layers estimated as 9.8 and 0.3 kWh with variances 0.04 and 0.01 add up to 10.1 kWh with variance 0.05.

Decisions:

* A layer above the first has priors of its own: a seventh of those of the mean above 30 kWh, falling with e^(-1/10 kWh)
  as the part of the use above does. In towns of 5,000 synthetic households (30 + 45 kWh) the sum errs by 0.19 kWh.
* Given the estimates of the first layer, an upper layer follows them, in place of the weather: an error of 0.16 kWh.
  What drives a household above 30 kWh drives the mean, which is published with less noise.
* Variances of layers add. Intervals of 90 % for the sum held 95 % of days in three such towns, 89 % with 37 real
  households; both live and archive. The bias is below 0.02 kWh, that of a single clamp of 30 kWh is 0.3 to 0.5 kWh.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from agedp_data.arrays import Floats
from agedp_data.errors import ChainError
from agedp_data.smoothing.group_estimates import DIFFERENCE, Variant, estimate_groups, estimate_series
from agedp_data.smoothing.structural_model import DAILY_MEAN, Amplitudes, Covariates, Estimate, Prior

_ABOVE_30_KWH: Final = 0.15
_DECAY_KWH: Final = 10.0


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
    figures: Sequence[CellFigures],
    covariates: Covariates,
    *,
    parts: tuple[int, ...] | None,
    variant: Variant,
    first_layer: Sequence[Estimate] | None = None,
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
        first_layer: of an upper layer: the estimates of the same cells and variant in the first one, for more accuracy.

    Raises:
        ChainError: shapes that differ, layers that differ, or parts that leave more or less than one total.
    """
    publics = [covariates] * len(figures)
    if first_layer is not None:
        publics = [replace(covariates, heating=below.mean - DAILY_MEAN.constant_kwh) for below in first_layer]
    if parts is None:
        return [
            estimate_series(cell.observed, cell.noise_variance, public, prior=_prior(cell), variant=variant)
            for cell, public in zip(figures, publics, strict=True)
        ]
    order = [place for place in range(len(figures)) if place not in parts] + list(parts)
    if len(order) != len(parts) + 1 or sorted(order) != list(range(len(figures))) or not parts:
        raise ChainError("parts of a total leave a single cell, the total")
    cells = [figures[place] for place in order]
    if len({(cell.above_kwh, cell.observed.shape) for cell in cells}) > 1:
        raise ChainError("a total and its parts are of one layer and of the same days")
    rows = [np.array([getattr(cell, name) for cell in cells]) for name in ("observed", "noise_variance", "households")]
    priors = _prior(cells[0]), _difference(cells[0])
    estimates = estimate_groups((rows[0], rows[1], rows[2]), publics[order[0]], priors=priors, variant=variant)
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
    """Return the prior of a daily mean, or of the part of it that lies above a clamp."""
    if not cell.above_kwh:
        return DAILY_MEAN
    scale = _scale(cell.above_kwh)
    amplitudes = replace(_scaled(DAILY_MEAN.amplitudes, scale), heating=scale)
    return Prior(2 * scale, 4 * scale, amplitudes)


def _difference(cell: CellFigures) -> Prior:
    """Return the prior of the difference of a group from the total."""
    scale = _scale(cell.above_kwh) if cell.above_kwh else 1.0
    return Prior(0.0, scale * DIFFERENCE.constant_sd_kwh, _scaled(DIFFERENCE.amplitudes, scale))


def _scale(above_kwh: float) -> float:
    """Return the size of a layer's changes in those of the whole mean."""
    return min(_ABOVE_30_KWH * math.exp((30 - above_kwh) / _DECAY_KWH), 0.5)


def _scaled(amplitudes: Amplitudes, factor: float) -> Amplitudes:
    return Amplitudes(*(factor * np.exp(amplitudes.logarithms())).tolist())
