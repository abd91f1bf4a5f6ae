r"""Level of the published figures, which the prior of a daily mean is taken in proportion to.

The idea: a household that uses ten times as much varies ten times as much. The level is public: each day's is computed
from the figures published up to it, so that no later row revises it.

Example: figures around 75 kWh with little noise: four times the prior, which is for 10 kWh.

Decisions:

* The level is the mean of the figures weighted by precision, if it is above the prior's by more than two standard
  errors of its noise; otherwise the prior's. So nothing but noise has no level.
* The factor is a power of four: series of up to 20 kWh have the prior as it was measured, in winter too, and the factor
  of a series changes in its first days and then hardly ever. The amplitudes' prior is wider than a factor of two.
* No level lowers the prior: where the mean is small, a layer of it or its changes need not be.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from agedp_data.arrays import Floats
from agedp_data.smoothing.structural_model import Amplitudes, Prior

_ERRORS: Final = 2.0


def level_scales(
    observed: Floats, noise_variance: Floats, prior: Prior, *, known_from: NDArray[np.int64] | None = None
) -> Floats:
    r"""Return the factor of the prior as of each day, shape (T,): 1 throughout if the prior does not follow the level.

    .. math:: s_t = 4^{[\log_4 (|m_t| / c)]} \text{ if } |m_t| - c > 2 e_t \text{, else } 1, \quad
              m_t = e_t^2 \sum_{i \le t} y_i / v_i, \quad e_t^{-2} = \sum_{i \le t} 1 / v_i

    with c the constant of the prior, and [.] the nearest whole number.

    Args:
        observed: published figures y, shape (T,), NaN where none is published [kWh].
        noise_variance: v, shape (T,), > 0 where a figure is [kWh^2].
        prior: of the series.
        known_from: the day from which on each day's figure is known, shape (T,); by default the day itself.

    >>> from agedp_data.smoothing.structural_model import DAILY_MEAN
    >>> level_scales(np.array([75.0, 81.0, np.nan]), np.ones(3), DAILY_MEAN).tolist()
    [4.0, 4.0, 4.0]
    >>> level_scales(np.array([75.0, -60.0]), np.full(2, 50.0**2), DAILY_MEAN).tolist()
    [1.0, 1.0]
    """
    if not prior.follows_level:
        return np.ones(observed.size)
    is_seen = np.isfinite(observed)
    known = np.arange(observed.size) if known_from is None else known_from
    order = np.argsort(known, kind="stable")
    precision = np.where(is_seen, 1 / np.where(is_seen, noise_variance, 1.0), 0.0)[order]
    added, precisions = np.cumsum(precision * np.where(is_seen, observed, 0.0)[order]), np.cumsum(precision)
    # a day knows the figures of this many days
    counts = np.searchsorted(known[order], np.arange(observed.size), side="right")
    added, precisions = np.append(0.0, added)[counts], np.append(0.0, precisions)[counts]
    divisor = np.where(precisions > 0, precisions, 1.0)
    level = np.abs(added / divisor)
    is_higher = (precisions > 0) & (level - prior.constant_kwh > _ERRORS / np.sqrt(divisor))
    powers = np.round(np.log2(np.maximum(level / prior.constant_kwh, 1.0)) / 2)
    return np.where(is_higher, 4.0**powers, 1.0)


def scaled_prior(prior: Prior, scale: float) -> Prior:
    """Return a prior with its constant, that one's standard deviation and its amplitudes times a factor."""
    amplitudes = Amplitudes(*(scale * np.exp(prior.amplitudes.logarithms())).tolist())
    constants = scale * prior.constant_kwh, scale * prior.constant_sd_kwh
    return replace(prior, constant_kwh=constants[0], constant_sd_kwh=constants[1], amplitudes=amplitudes)
