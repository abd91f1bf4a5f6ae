"""Diagnostics of a chain: is one step of memory too little or too much, and is the chain the same at all times?

Likelihood-ratio tests of conditional independence, G = 2 sum n ln(n / expected), against chi-squared with as many
degrees of freedom as visited rows and columns permit: of order 0 against 1 (any memory), of order 1 against 2 (is the
state before the last one informative), and of one chain against one per segment of time (stationarity). They are
confidential. With a year of half-hours almost every household fails the last two; `empirical_total_variation` measures
how much it matters.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agedp_data.arrays import Floats
from agedp_data.errors import ChainError
from agedp_data.markov.lagged_counts import checked_states, count_lagged_pairs

_FIELDS = [("transitions", np.int64), ("rarest", np.int64)] + [
    (f"{name}{figure}", np.float64) for name in ("order_0", "order_1", "stationary") for figure in ("", "_df", "_p")
]


def diagnose(states: ArrayLike, *, n_states: int, segments: int) -> np.recarray[Any, Any]:
    r"""Likelihood-ratio tests of order 0, of order 1 and of stationarity, for each household's series.

    .. math:: G = 2 \sum n \ln \frac{n}{\hat n} \sim \chi^2

    Source: Anderson and Goodman 1957.

    Args:
        states: one state per step, shape (..., m) int, -1 if missing.
        n_states: number of states.
        segments: number of parts of equal length for the test of stationarity, for example 12.

    Returns:
        A record array (...): transitions counted; rarest: visits of the rarest visited state; for each hypothesis
        (order_0: no memory; order_1: one step; stationary: the same chain in all segments) the statistic G, its
        degrees of freedom `_df`, and the probability `_p` of one as large under the hypothesis.

    Raises:
        ChainError: states of a wrong kind, or fewer than two segments.

    References:
        Anderson, Goodman: Statistical Inference about Markov Chains. Ann. Math. Statist. 28(1), 1957.
        https://doi.org/10.1214/aoms/1177707039

    >>> tests = diagnose([0, 0, 1, 1] * 50, n_states=2, segments=2)  # the last two states decide, the last one does not
    >>> tests.transitions.item(), bool(tests.order_0_p > 0.9), bool(tests.order_1_p < 1e-9)
    (199, True, True)
    """
    series = checked_states(states, n_states)
    if segments < 2:
        raise ChainError(f"stationarity is a matter of at least two segments, got {segments}")
    k, length = n_states, series.shape[-1]
    lead = series.shape[:-1]
    one_step = count_lagged_pairs(series, series, 1, n_secret=k, n_read=k)
    previous = np.concatenate((np.full((*lead, 1), -1), series[..., :-1]), axis=-1)[..., :length]
    pair = np.where((previous >= 0) & (series >= 0), previous * k + series, -1)
    two_steps = count_lagged_pairs(series, pair, 1, n_secret=k, n_read=k * k).reshape(*lead, k, k, k)
    segment = np.arange(length) * segments // max(length, 1)
    timed = np.where(series >= 0, segment * k + series, -1)
    by_segment = count_lagged_pairs(timed, series, 1, n_secret=segments * k, n_read=k).reshape(*lead, segments, k, k)
    visits = np.stack([(series == state).sum(axis=-1) for state in range(k)], axis=-1)
    table = np.zeros(lead, dtype=_FIELDS)
    table["transitions"] = one_step.sum(axis=(-1, -2))
    table["rarest"] = np.where(visits > 0, visits, length).min(axis=-1)
    tests = {
        "order_0": one_step[..., None, :, :],
        "order_1": np.moveaxis(two_steps, -1, -3),  # (middle, now, before)
        "stationary": np.moveaxis(by_segment, -1, -3),  # (from, segment, to)
    }
    for name, counts in tests.items():
        table[name], table[f"{name}_df"], table[f"{name}_p"] = independence_test(counts)
    return table.view(np.recarray)


def independence_test(counts: ArrayLike) -> tuple[Floats, Floats, Floats]:
    r"""Likelihood-ratio test that rows and columns are independent within each group.

    .. math:: G = 2 \sum n_{ij} \ln \frac{n_{ij} n}{n_i n_j}

    Source: Anderson and Goodman 1957.

    Args:
        counts: shape (..., groups, rows, columns), >= 0. Rows and columns without counts take no part.

    Returns:
        G, its degrees of freedom, and the p-value, shape (...) each; without any degree of freedom p is 1.

    References:
        Anderson, Goodman 1957. https://doi.org/10.1214/aoms/1177707039

    >>> statistic, freedom, _ = independence_test([[[10, 20], [20, 10]]])  # 2 * 2 * (10 ln(2/3) + 20 ln(4/3))
    >>> round(float(statistic), 6), freedom.item()
    (6.795961, 1.0)
    """
    from scipy.stats import chi2  # noqa: PLC0415  (slow to import, and few commands need it)

    number: NDArray[np.float64] = np.asarray(counts, dtype=np.float64)
    rows, columns = number.sum(axis=-1, keepdims=True), number.sum(axis=-2, keepdims=True)
    total = rows.sum(axis=-2, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(number > 0, number * np.log(number * total / (rows * columns)), 0.0)
    statistic = np.maximum(2 * terms.sum(axis=(-1, -2, -3)), 0.0)
    group_freedom = ((rows > 0).sum(axis=(-1, -2)) - 1.0).clip(0) * ((columns > 0).sum(axis=(-1, -2)) - 1.0).clip(0)
    freedom = group_freedom.sum(axis=-1)
    p = np.where(freedom > 0, chi2.sf(statistic, np.maximum(freedom, 1.0)), 1.0)
    return statistic, np.asarray(freedom), p
