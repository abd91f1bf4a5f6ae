"""Temporal leakage of households with memory beyond the last day: a chain on larger states.

A chain of single days mixes too fast for real households. So the state may be a PAIR of days, or a day with a REGIME,
the mean of the previous days. A release still reads the day only; the bound is about the larger state, which contains
it.

One step of such a chain loses no information: (yesterday, today) is followed by (today, tomorrow), so the recursion of
single steps grows without end. The recursion may therefore use up to J steps at once: the releases in between reveal no
more than the sum of their losses,

    b_t = min over j of [ e_t + ... + e_(t-j+1) + L_{P^^j}(b_(t-j)) ],

which is BPL for j = 1. For constant losses e its limit is the least over j of the suprema of x -> j e + L_{P^^j}(x): a
limit x is a fixed point for the j that attains the minimum, and at most every fixed point of the others. Example: two
steps bound the chain of pairs in `higher_order_recursion` by 0.56, one step by infinity.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agedp_data.accounting.temporal_half_hourly import temporal_kernels
from agedp_data.accounting.temporal_recursion import OneSidedRecursion, Recursion
from agedp_data.arrays import Floats, checked_steps
from agedp_data.errors import ChainError
from agedp_data.leakage.batched import BatchedLeakage, Kernels, kernel_set
from agedp_data.markov.states import MISSING
from agedp_data.markov.transitions import power

Ints = NDArray[np.int64]


def pair_states(states: ArrayLike, *, n_states: int) -> Ints:
    """State of each day together with that of the previous day.

    Use it to estimate a second-order chain as a first-order chain of pairs.

    .. math:: s_t = x_{t-1} k + x_t

    Source: this project; [T] assumes a first-order chain.

    Args:
        states: x, one per consecutive day, shape (..., T), integers below k, -1 if missing.
        n_states: k.

    Returns:
        Shape (..., T), integers below k^2, -1 if a day of the pair is missing.

    Raises:
        ChainError: a state that is not below `n_states`, or not an integer.

    References:
        [T] https://doi.org/10.1109/TKDE.2018.2824328

    >>> pair_states([0, 2, -1, 1, 1], n_states=3).tolist()
    [-1, 2, -1, -1, 4]
    """
    now = _checked_states(states, n_states)
    before = np.full_like(now, MISSING)
    before[..., 1:] = now[..., :-1]
    return np.where((now >= 0) & (before >= 0), before * n_states + now, MISSING)


def regime_states(states: ArrayLike, values: ArrayLike, cuts: ArrayLike, *, n_states: int, days: int) -> Ints:
    r"""State of each day together with its regime, the class of the mean of the `days` days that end with it.

    Use it to estimate a chain that knows the recent level of use.

    .. math:: s_t = r_t k + x_t, \qquad r_t = \#\{i : \text{cut}_i \le \text{mean of the last days}\}

    Source: this project; [T] assumes a first-order chain.

    Args:
        states: x, one per consecutive day, shape (..., T), integers below k, -1 if missing.
        values: total of each day, shape (..., T), negative or NaN if missing [unit of the cuts].
        cuts: boundaries between the r regimes, shape (r-1,), ascending; a mean equal to a cut is in the upper regime.
        n_states: k.
        days: number of days in the mean, this day included, >= 1 [days].

    Returns:
        Shape (..., T), integers below r k; -1 if the day or at least half of the days are missing.

    Raises:
        ChainError: shapes that do not fit, cuts that do not ascend, no days, or as `pair_states`.

    References:
        [T] https://doi.org/10.1109/TKDE.2018.2824328

    >>> regime_states([0, 1, 1, -1], [2, 6, 8, -1], [5], n_states=2, days=2).tolist()  # means 2, 4, 7
    [0, 1, 3, -1]
    """
    now, total, edges = _checked_states(states, n_states), np.asarray(values, dtype=np.float64), np.asarray(cuts)
    if total.shape != now.shape or edges.ndim != 1 or (np.diff(edges) <= 0).any() or days < 1:
        raise ChainError("regimes need a value for each state, ascending cuts and at least one day to look back over")
    is_present = total >= 0
    pad = [(0, 0)] * (now.ndim - 1) + [(days, 0)]
    # Sums of whole Wh stay exact in floats.
    sums = np.pad(np.where(is_present, total, 0.0), pad).cumsum(axis=-1)
    counts = np.pad(is_present, pad).cumsum(axis=-1)
    sums, counts = (cumulative[..., days:] - cumulative[..., :-days] for cumulative in (sums, counts))
    expected = np.minimum(np.arange(1, now.shape[-1] + 1), days)
    regime = np.searchsorted(edges, sums / np.maximum(counts, 1), side="right")
    return np.where((now >= 0) & (2 * counts > expected), regime * n_states + now, MISSING).astype(np.int64)


def higher_order_recursion(transition: Kernels, *, max_days: int) -> Recursion[Floats]:
    r"""Recursion of daily releases on chains of days that may be followed several days at a time.

    Use it for chains of pairs or regimes. One day at a time is `temporal`; more days never increase the bound.

    .. math:: \sup BPL = \min_j \sup \text{ of } x \mapsto j \varepsilon + L_{\hat P^j}(x)

    Source: this project, from [T] Theorem 11.

    Args:
        transition: forward transition matrix of days, shape (..., k, k), probabilities [-]; a tuple is a set of chains
            of which one, always the same, is true.
        max_days: J, the largest number of days at a time, >= 1 [days].

    Returns:
        The recursion.

    Raises:
        ChainError: `max_days` below 1; as `temporal_kernels`.

    References:
        [T] https://doi.org/10.1109/TKDE.2018.2824328

    >>> pairs = [[0.7, 0.3, 0, 0], [0, 0, 0.4, 0.6], [0.6, 0.4, 0, 0], [0, 0, 0.3, 0.7]]  # 00, 01, 10, 11
    >>> [higher_order_recursion(pairs, max_days=j).total_supremum(0.1).round(4).item() for j in (1, 2)]
    [inf, 0.5633]
    """
    count = int(checked_steps(max_days, quantity="leaps"))
    if count < 1:
        raise ChainError("a recursion takes at least one step at a time")
    sides = []
    for chains in temporal_kernels(tuple(kernel_set(transition))):
        leakages = {j: BatchedLeakage(tuple(power(chain, j) for chain in chains)) for j in range(1, count + 1)}
        sides.append(OneSidedRecursion(leakages.__getitem__, orders=leakages.keys()))
    return Recursion(*sides)


def _checked_states(states: ArrayLike, n_states: int) -> Ints:
    series = np.asarray(states)
    if series.ndim < 1 or (series.size and series.dtype.kind not in "iu"):
        raise ChainError("states are whole numbers, one a day, -1 where missing")
    if (series >= n_states).any():
        raise ChainError(f"there are {n_states} states, got a higher one")
    return series.astype(np.int64)
