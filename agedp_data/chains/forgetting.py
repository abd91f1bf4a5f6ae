"""Does the chain forget as fast as the households do? Counted directly, against the powers of the one-step chain.

A chain says how much of a value is left after t steps: the t-th power of its one-step kernel. Readings say it
themselves: the kernel counted between instants t steps apart. On 40 London homes the first is near 0 from 12 hours on
and the second near .3 at 12 hours and .7 at 24 (MATHS 2b). All figures here are indicative and confidential: they
never set noise and stand in no statement.

Two things blur a direct count. It is a maximum of noisy numbers, so it is above 0 where nothing is remembered (the
FLOOR: the figure of a series against a shifted copy of itself; shown, never subtracted; too high for strict habits,
which survive the shift). And an adversary knows the calendar: pooled over it a kernel bounds nothing (one half-hour
copies, another flips: pooled 0, truth 1), so kernels may be counted for each pair of PARTS and the largest is taken.

Conventions of the table in MATHS 2b: `chains.states.mask_incomplete_days` with at most four readings missing, then
`chains.states.merge_rare` with 200 visits for half-hours; `day_totals` for days.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from agedp_data.chains.direct import (
    checked_lags,
    checked_states,
    count_lagged_pairs,
    max_row_distance,
    normalise_rows,
    predicted_total_variation,
)
from agedp_data.chains.markov_check import markov_goodness_of_fit
from agedp_data.errors import ChainError
from agedp_data.privacy.kernel import Floats

__all__ = ["empirical_total_variation", "lag_kernel", "markov_goodness_of_fit"]


def lag_kernel(
    secret: ArrayLike,
    read: ArrayLike,
    lag: int,
    *,
    n_secret: int,
    n_read: int,
    part: ArrayLike | None = None,
) -> Floats:
    """Return how what was read `lag` steps earlier is distributed given the secret now, counted directly.

    K(x, y) = #{i: secret_i = x, read_(i - lag) = y} / #{i: secret_i = x, read_(i - lag) not missing}; a secret that
    was never seen with a reading has a row of NaN. Pass it to `leakage` for what a release says about the secret.

    Shapes: (..., m) int, (..., m) int -> (..., n_secret, n_read). Units: [steps] -> [-].

    Args:
        secret: what is protected, by instant, for example the half-hour's state; -1 is missing.
        read: what a mechanism read, by the same instants, for example the day's total; -1 is missing.
        lag: how many steps before the secret it was read.
        n_secret: number of secrets 0, 1, ...
        n_read: number of values read.
        part: (m,) bool, the instants of the secret that count; or (m,) labels 0, 1, ... (-1: none) of instants:
            then a kernel for each pair of labels (now, earlier) that occurs, (..., pairs, n_secret, n_read), in
            ascending order.

    Raises:
        ChainError: lengths that do not fit, values out of range, or a lag that is no number of steps.

    >>> lag_kernel([0, 1, 0, 1, -1, 1], [0, 1, 1, 1, 0, 1], 1, n_secret=2, n_read=2).tolist()
    [[0.0, 1.0], [0.6666666666666666, 0.3333333333333333]]
    """
    return normalise_rows(count_lagged_pairs(secret, read, lag, n_secret=n_secret, n_read=n_read, part=part))


def empirical_total_variation(
    states: ArrayLike,
    lags: ArrayLike,
    *,
    n_states: int,
    by: str,
    part: ArrayLike | None = None,
    min_visits: int = 1,
) -> Floats:
    """Return the largest total variation between two rows of the kernel to what was seen each lag earlier.

    Shapes: (..., m) int, (T,) int -> (..., T). Units: [steps] -> [-]. NaN where there is nothing to compare (no row
    at all), 0 for a single row.

    Args:
        states: one state per step and household, -1 if missing.
        lags: steps between the two instants.
        n_states: number of states.
        by: "direct", counted at each lag, or "powers" of the kernel counted at lag 1.
        part: as `lag_kernel`, for direct counts: the maximum over parts.
        min_visits: rows with fewer visits are left out, not guessed.

    Raises:
        ChainError: as `lag_kernel`, or an unknown way.

    >>> empirical_total_variation([0, 0, 1, 1] * 50, [1, 2, 4], n_states=2, by="direct").round(1).tolist()
    [0.0, 1.0, 1.0]
    >>> empirical_total_variation([0, 0, 1, 1] * 50, [1, 2, 4], n_states=2, by="powers").round(1).tolist()
    [0.0, 0.0, 0.0]
    """
    series, steps = checked_states(states, n_states), checked_lags(lags)
    if by == "powers":
        if part is not None:
            raise ChainError("powers of one chain know no parts; `chains.cyclic` has chains that do")
        counts = count_lagged_pairs(series, series, 1, n_secret=n_states, n_read=n_states)
        return predicted_total_variation(np.where(counts.sum(axis=-1, keepdims=True) < min_visits, 0, counts), steps)
    if by != "direct":
        raise ChainError(f'forgetting is counted "direct" or by "powers", got "{by}"')
    result = np.empty((*series.shape[:-1], steps.size))
    for i, lag in enumerate(steps.tolist()):
        counts = count_lagged_pairs(series, series, lag, n_secret=n_states, n_read=n_states, part=part)
        distance = max_row_distance(np.where(counts.sum(axis=-1, keepdims=True) < min_visits, 0, counts))
        if distance.ndim == series.ndim:
            is_empty = np.isnan(distance).all(axis=-1)
            distance = np.where(is_empty, np.nan, np.nan_to_num(distance).max(axis=-1, initial=0.0))
        result[..., i] = distance
    return result
