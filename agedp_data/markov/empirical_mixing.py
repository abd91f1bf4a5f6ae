"""Empirical mixing: how fast households mix by lagged counts, against the matrix powers of the one-step chain.

Example: the series 0, 0, 1, 1, 0, 0, ... looks independent by its one-step kernel, but repeats itself every 4 steps.

A chain predicts the dependence after t steps by the t-th power of its one-step kernel. Lagged counts measure it: the
empirical kernel between instants t steps apart. On 40 London households the prediction is near 0 from 12 hours on; the
measured total variation is near .3 at 12 hours and .7 at 24. All values are indicative and confidential: they never
set noise and are in no statement.

Two effects distort lagged counts:

* Null level. A maximum of noisy numbers is above 0 even for independent readings. The level is estimated by shifting
  one copy of the series; it is reported, never subtracted. It is too high for strict habits, which survive the shift.
* Calendar. An adversary knows it, and a kernel pooled over it is not a bound (one half-hour copies the state, another
  flips it: pooled 0, truth 1). So kernels may be counted for each pair of labels, and the maximum is taken.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from agedp_data.arrays import Floats
from agedp_data.errors import ChainError
from agedp_data.markov.lagged_counts import (
    checked_lags,
    checked_states,
    count_lagged_pairs,
    max_row_distance,
    predicted_total_variation,
)


def empirical_total_variation(
    states: ArrayLike,
    lags: ArrayLike,
    *,
    n_states: int,
    by: str,
    part: ArrayLike | None = None,
    min_visits: int = 1,
) -> Floats:
    r"""Largest total variation between two rows of the kernel at each lag, by lagged counts or by matrix powers.

    Compare both to see whether a household mixes as fast as its first-order chain predicts.

    .. math:: \hat\Delta(t) = \max_{x, x'} \frac{1}{2} \sum_y |K_t(x, y) - K_t(x', y)|

    Source: [A] eq. 12 with the empirical kernel at lag t ("direct") or the t-th power of that at lag 1 ("powers").

    Args:
        states: one state per step and household, shape (..., m) int, -1 if missing.
        lags: steps between the two instants, shape (T,) [steps].
        n_states: number of states.
        by: "direct" (lagged counts) or "powers" (matrix powers of the kernel at lag 1).
        part: as in `lag_kernel`, for lagged counts: the maximum over label pairs.
        min_visits: rows with fewer visits are left out [pairs].

    Returns:
        Shape (..., T), between 0 and 1 [-]; NaN without any row, 0 for a single row.

    Raises:
        ChainError: as `lag_kernel`, or an unknown value of `by`.

    References:
        [A] https://doi.org/10.1109/TIT.2023.3340147

    >>> empirical_total_variation([0, 0, 1, 1] * 50, [1, 2, 4], n_states=2, by="direct").round(1).tolist()
    [0.0, 1.0, 1.0]
    >>> empirical_total_variation([0, 0, 1, 1] * 50, [1, 2, 4], n_states=2, by="powers").round(1).tolist()
    [0.0, 0.0, 0.0]
    """
    series, steps = checked_states(states, n_states), checked_lags(lags)
    if by == "powers":
        if part is not None:
            raise ChainError("powers of one chain know no parts; `markov.cyclic` has chains that do")
        counts = count_lagged_pairs(series, series, 1, n_secret=n_states, n_read=n_states)
        return predicted_total_variation(np.where(counts.sum(axis=-1, keepdims=True) < min_visits, 0, counts), steps)
    if by != "direct":
        raise ChainError(f'mixing is computed by "direct" or "powers", got "{by}"')
    result = np.empty((*series.shape[:-1], steps.size))
    for i, lag in enumerate(steps.tolist()):
        counts = count_lagged_pairs(series, series, lag, n_secret=n_states, n_read=n_states, part=part)
        distance = max_row_distance(np.where(counts.sum(axis=-1, keepdims=True) < min_visits, 0, counts))
        if distance.ndim == series.ndim:
            is_empty = np.isnan(distance).all(axis=-1)
            distance = np.where(is_empty, np.nan, np.nan_to_num(distance).max(axis=-1, initial=0.0))
        result[..., i] = distance
    return result
