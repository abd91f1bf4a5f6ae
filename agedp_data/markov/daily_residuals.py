r"""Daily residuals: what remains of a household's day once season, weather and weekday are taken out.

An adversary knows the calendar, the weather and the published mean. So the daily totals are compared with those of the
other households of the population, scaled to the household, and with the household's own mean of the weekday.

Example: a household that always uses half of the population's mean has the residual 0 on every day.

Decisions:

* The population's day is the mean over the OTHER households: one's own days never hide in it.
* The household's own season is not taken out: fitted on the same year, it removes the habit that is to be measured
  (`year_warning` in `regime_check`).
* Quartiles, four equally frequent symbols: coarser values only lower a memory.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from agedp_data.arrays import Floats
from agedp_data.errors import ChainError
from agedp_data.markov.lagged_counts import Ints

SYMBOLS = 4


def daily_residuals(totals: ArrayLike, weekday: ArrayLike) -> Floats:
    r"""Return the residuals of daily totals given the population's day and the household's own weekdays.

    .. math:: r_{it} = u_{it} - \overline{u_{is}}_{s: w_s = w_t}, \qquad u_{it} = \frac{x_{it}}{b_i} - m_{-i,t}, \qquad
              b_i = \frac{\overline{x}_i}{\overline{m_{-i}}}

    with m the mean over the other households of their totals as parts of their own means.

    Source: this project; a multiplicative day effect, then means of the household's weekdays.

    Args:
        totals: daily totals, shape (h, T), negative where missing [Wh].
        weekday: of each day, shape (T,), any labels.

    Returns:
        Shape (h, T), as parts of the household's mean day; NaN where a day is missing or all days are 0.

    Raises:
        ChainError: shapes that do not fit.

    >>> daily_residuals([[2, 4, 2, 4], [1, 2, 3, 2], [1, 2, 1, 2]], [0, 1, 0, 1]).round(3).tolist()[1]
    [-0.5, 0.0, 0.5, 0.0]
    """
    value: Floats = np.array(totals, dtype=np.float64)
    label = np.asarray(weekday)
    if value.ndim != 2 or label.shape != value.shape[1:]:
        raise ChainError(f"daily totals come by household and day, with a weekday for each day, got {value.shape}")
    is_present = value >= 0
    value[~is_present] = 0.0
    days = np.maximum(is_present.sum(axis=1, keepdims=True), 1)
    mean = value.sum(axis=1, keepdims=True) / days
    has_use = mean > 0
    parts = np.divide(value, mean, out=np.zeros_like(value), where=has_use)
    is_counted = is_present & has_use
    others = is_counted.sum(axis=0) - is_counted
    population = np.divide(parts.sum(axis=0) - parts, others, out=np.ones_like(parts), where=others > 0)
    level = (population * is_counted).sum(axis=1, keepdims=True) / days
    residual = np.where(is_counted, parts * level - population, 0.0)
    for number in np.unique(label):
        same = label == number
        count = np.maximum(is_counted[:, same].sum(axis=1, keepdims=True), 1)
        residual[:, same] -= residual[:, same].sum(axis=1, keepdims=True) / count
    return np.where(is_counted, residual, np.nan)


def quartile_symbols(residuals: ArrayLike) -> Ints:
    r"""Return in which quarter of the household's own values each day lies: 0 (low) to 3 (high).

    .. math:: y_t = \left\lfloor \frac{4 \cdot \mathrm{rank}(r_t)}{n} \right\rfloor

    Source: elementary (ranks); equal values are ranked by their day.

    Args:
        residuals: shape (h, T), NaN where missing.

    Returns:
        Shape (h, T) int64, -1 where missing.

    >>> quartile_symbols([[0.1, np.nan, -3.0, 5.0, 0.2]]).tolist()
    [[1, -1, 0, 3, 2]]
    """
    value: Floats = np.asarray(residuals, dtype=np.float64)
    is_present = ~np.isnan(value)
    rank = np.argsort(np.argsort(value, axis=-1, kind="stable"), axis=-1, kind="stable")  # missing last
    number = np.maximum(is_present.sum(axis=-1, keepdims=True), 1)
    return np.where(is_present, rank * SYMBOLS // number, -1)
