"""Temporal privacy leakage [T]: what all releases together reveal about the instant or day of each one.

A release of loss e_t about its own instant leaks, together with the releases before and after it,

    BPL_1 = e_1,  BPL_t = e_t + L_B(BPL_(t-1)),  FPL_T = e_T,  FPL_t = e_t + L_F(FPL_(t+1)),
    TPL_t = BPL_t + FPL_t - e_t.

Example: two states that persist with probability 0.9, releases of 0.1 without end: total leakage 0.87.

Decisions:

* Erratum to [T] eqs. 5, 10 and 11: they are upper bounds, not equalities. The pair of values that maximises one
  direction need not maximise the other; `pairwise` takes the same pair for both.
* Kernels have the protected value in their ROWS; transposed kernels understate several times.
* Runs use the same recursion in nano-epsilon (`TemporalLosses`).
* Households are independent Markov chains. Leakage is per household; the bound of a release is the maximum.

[T] Cao, Yoshikawa, Xiao, Xiong: Quantifying Differential Privacy in Continuous Data Release Under Temporal
Correlations. IEEE Trans. Knowl. Data Eng. 31(7), 2019. https://doi.org/10.1109/TKDE.2018.2824328
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from agedp_data.accounting.temporal_allocation import METHODS, allocate, allocate_with, round_up_losses
from agedp_data.accounting.temporal_recursion import (
    LeakageTotals,
    OneSidedRecursion,
    Recursion,
    checked_loss_series,
    daily_leakage_with,
    daily_recursion,
    daily_release_leakage,
    temporal_kernels,
    temporal_recursion,
)
from agedp_data.arrays import Floats
from agedp_data.errors import ChainError
from agedp_data.leakage.function import Kernels, PairwiseLeakage

__all__ = [
    "METHODS",
    "OneSidedRecursion",
    "Recursion",
    "allocate",
    "allocate_with",
    "backward",
    "daily_leakage_with",
    "daily_recursion",
    "daily_release_leakage",
    "forward",
    "pairwise",
    "round_up_losses",
    "temporal",
    "temporal_kernels",
    "temporal_recursion",
    "temporal_supremum",
    "user_level",
    "w_event",
    "window",
    "windows",
]


def backward(kernel_b: Kernels, losses: ArrayLike) -> Floats:
    r"""Backward privacy leakage: the loss about instant t of the releases up to t.

    Use it for an observer who knows the correlation with the past only.

    .. math:: BPL_1 = \varepsilon_1, \qquad BPL_t = \varepsilon_t + L_{P_B}(BPL_{t-1})

    Source: [T] eq. 13. Erratum to Fig. 3: the chain of the example, the paper's, has no reverse.

    Args:
        kernel_b: P_B, shape (..., k, k), probabilities [-]; rows: now, columns: one release earlier. A stack is one of
            households, a tuple a set of possible kernels (the maximum is inside the recursion), None independent
            releases.
        losses: e, loss of each release about its own instant, shape (..., T), >= 0, infinity allowed [epsilon].

    Returns:
        Shape (..., T) [epsilon].

    Raises:
        ChainError: kernels or losses as in `leakage`, or losses that are not a series.

    References:
        [T] https://doi.org/10.1109/TKDE.2018.2824328

    >>> backward([[0.8, 0.2], [0.0, 1.0]], [0.1] * 4).round(10).tolist()  # .1 + ln(1 + .8 (e^.1 - 1)) = .1807840339
    [0.1, 0.1807840339, 0.2471477411, 0.3023648491]
    """
    return _totals(kernel_b, None, losses).backward


def forward(kernel_f: Kernels, losses: ArrayLike) -> Floats:
    r"""Forward privacy leakage: the loss about instant t of the releases from t on.

    Use it for an observer who knows the correlation with the future only. It increases with every later release.

    .. math:: FPL_T = \varepsilon_T, \qquad FPL_t = \varepsilon_t + L_{P_F}(FPL_{t+1})

    Source: [T] eq. 15.

    Args:
        kernel_f: P_F, shape (..., k, k), probabilities [-]; rows: now, columns: one release later. Stacks, sets and
            None as in `backward`.
        losses: as in `backward`, shape (..., T) [epsilon].

    Returns:
        Shape (..., T) [epsilon].

    References:
        [T] https://doi.org/10.1109/TKDE.2018.2824328

    >>> forward([[0.8, 0.2], [0.0, 1.0]], [0.1] * 4).round(10).tolist()
    [0.3023648491, 0.2471477411, 0.1807840339, 0.1]
    """
    return _totals(None, kernel_f, losses).forward


def temporal(kernel_b: Kernels, kernel_f: Kernels, losses: ArrayLike) -> Floats:
    r"""Total temporal privacy leakage: the loss about instant t of all releases.

    Use it for event-level privacy: alpha-DP_T holds if the maximum is at most alpha.

    .. math:: TPL_t \le BPL_t + FPL_t - \varepsilon_t

    Source: [T] eqs. 10 and 11. Erratum: they are upper bounds, not equalities.

    Args:
        kernel_b: P_B as in `backward`, shape (..., k, k) [-].
        kernel_f: P_F as in `forward`, shape (..., k, k) [-]; the stacks broadcast.
        losses: as in `backward`, shape (..., T) [epsilon].

    Returns:
        Shape (..., T) [epsilon].

    References:
        [T] https://doi.org/10.1109/TKDE.2018.2824328

    >>> drift = [[0.8, 0.2], [0.0, 1.0]]
    >>> temporal(drift, drift, [0.1] * 10).max().round(10).item()
    0.6368412821
    """
    return _totals(kernel_b, kernel_f, losses).total


def pairwise(kernel_b: Kernels, kernel_f: Kernels, losses: ArrayLike) -> Floats:
    r"""Total temporal leakage of one household, with the same pair of values in both directions.

    Use it where `temporal` is too large: it is never above it, but costs k^3 per step.

    .. math:: TPL_t = \varepsilon_t + \max_{x, y} \big[ L_{P_B}^{xy}(BPL_{t-1}) + L_{P_F}^{xy}(FPL_{t+1}) \big]

    Source: this project. Erratum to [T] eqs. 10 and 11: they are upper bounds, not equalities.

    Args:
        kernel_b: P_B as in `backward`, shape (k, k), probabilities [-]; a tuple for a set, or None.
        kernel_f: P_F, of the same values in its rows, shape (k, k) [-].
        losses: e, shape (T,), >= 0 [epsilon].

    Returns:
        Shape (T,) [epsilon]. States without data in either kernel are left out.

    Raises:
        ChainError: as `backward`; a stack of households, or kernels of different values.

    References:
        [T] https://doi.org/10.1109/TKDE.2018.2824328

    >>> cycle, stay = [[0, 1, 0], [0, 0, 1], [1, 0, 0]], [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    >>> pairwise(cycle, stay, [0.1, 0.1, 0.1]).round(4).tolist()  # nothing is lost in either direction: the sum
    [0.3, 0.3, 0.3]
    """
    series = checked_loss_series(losses)
    past, future = (PairwiseLeakage(kernel) for kernel in (kernel_b, kernel_f))
    if past.valid.shape[-1] != future.valid.shape[-1] and past.valid.size > 1 < future.valid.size:
        raise ChainError("backward and forward kernels must be about the same values")
    if series.ndim != 1:
        raise ChainError(f"losses of one household are a list, got shape {series.shape}")
    totals = temporal_recursion(kernel_b, kernel_f, releases=series.size).leakage_totals(series)
    valid = past.valid & future.valid
    valid_pairs = valid[:, None] & valid
    before, after = np.append(0.0, totals.backward[:-1]), np.append(totals.forward[1:], 0.0)
    pair_maxima = [np.where(valid_pairs, past(a) + future(b), 0.0).max() for a, b in zip(before, after, strict=True)]
    return np.asarray(series + np.array(pair_maxima))


def temporal_supremum(kernel_b: Kernels, kernel_f: Kernels, loss: ArrayLike) -> Floats:
    r"""Supremum of the total temporal leakage if releases of one loss go on without end.

    Use it for a series without a known end.

    .. math:: \sup TPL = b^* + f^* - \varepsilon, \qquad b^* = \sup \text{ of } x \mapsto \varepsilon + L_{P_B}(x)

    and f* likewise with P_F.

    Source: [T] Theorem 11. Erratum: the maximum is over all pairs and prefixes, not the pair that is the largest at one
    loss.

    Args:
        kernel_b: P_B as in `backward`, shape (..., k, k) [-].
        kernel_f: P_F as in `forward`, shape (..., k, k) [-].
        loss: e, shape (...), >= 0 [epsilon].

    Returns:
        Shape (...), broadcast [epsilon], `inf` if a direction is unbounded.

    References:
        [T] https://doi.org/10.1109/TKDE.2018.2824328

    >>> stay = [[0.9, 0.1], [0.1, 0.9]]
    >>> temporal_supremum(stay, stay, 0.1).round(4).item(), temporal_supremum(np.eye(2), None, 0.1).item()
    (0.8724, inf)
    """
    return temporal_recursion(kernel_b, kernel_f).total_supremum(loss)


def window(kernel_b: Kernels, kernel_f: Kernels, losses: ArrayLike, start: int, length: int) -> float:
    r"""Leakage about one window of consecutive releases, by all releases; maximum over households.

    Use it for w-event privacy of one window; `w_event` is the maximum over all windows.

    .. math:: BPL_t + \sum_{k=t+1}^{t+j-1} \varepsilon_k + FPL_{t+j}

    Source: [T] Theorem 3, eq. 16.

    Args:
        kernel_b: P_B as in `backward`, shape (..., k, k) [-].
        kernel_f: P_F as in `forward`, shape (..., k, k) [-].
        losses: as in `backward`, shape (..., T) [epsilon].
        start: index of the first release of the window.
        length: number of releases, j + 1.

    Raises:
        ChainError: as `windows`; a window outside the series.

    References:
        [T] https://doi.org/10.1109/TKDE.2018.2824328

    >>> stay = [[0.9, 0.1], [0.1, 0.9]]
    >>> window(stay, stay, [0.5, 0.25, 0.25], 0, 3)  # all releases: the sum, for every correlation
    1.0
    """
    leakages = windows(_totals(kernel_b, kernel_f, losses), losses, length)
    if not 0 <= start < leakages.shape[-1]:
        raise ChainError(f"a window of {length} releases from number {start} on does not lie inside the series")
    return float(np.max(leakages[..., start]))


def windows(totals: LeakageTotals, losses: ArrayLike, length: int) -> Floats:
    r"""Leakage about each window of consecutive releases, by all releases.

    Use it with precomputed totals, also those of daily releases: then the windows consist of whole days.

    .. math:: TPL_t; \qquad BPL_t + FPL_{t+1}; \qquad BPL_t + \sum_{k=t+1}^{t+j-1} \varepsilon_k + FPL_{t+j}, \; j \ge 2

    for windows of one, two and j + 1 releases.

    Source: [T] Theorem 3, eq. 16.

    Args:
        totals: backward, forward and total leakage, shape (..., T) each [epsilon].
        losses: e, shape (..., T) [epsilon].
        length: number of releases in a window.

    Returns:
        Shape (..., T - length + 1) [epsilon].

    Raises:
        ChainError: a length below 1 or above T.

    References:
        [T] https://doi.org/10.1109/TKDE.2018.2824328

    >>> stay = [[0.9, 0.1], [0.1, 0.9]]
    >>> windows(temporal_recursion(stay, stay).leakage_totals([0.1] * 4), [0.1] * 4, 2).round(4).tolist()
    [0.3438, 0.36, 0.3438]
    """
    series = checked_loss_series(losses)
    count = series.shape[-1]
    if not 1 <= length <= count:
        raise ChainError(f"a window is of 1 to {count} releases here, asked for {length}")
    if length == 1:
        return totals.total
    ends = totals.backward[..., : count - length + 1] + totals.forward[..., length - 1 :]
    if length == 2:
        return ends
    between = np.lib.stride_tricks.sliding_window_view(series[..., 1:-1], length - 2, axis=-1).sum(axis=-1)
    return np.asarray(ends + between)


def w_event(kernel_b: Kernels, kernel_f: Kernels, losses: ArrayLike, length: int) -> Floats:
    r"""Largest leakage about any window of `length` consecutive releases; of a shorter series, about all of it.

    Use it for w-event privacy under temporal correlation.

    .. math:: \max_t \Big[ BPL_t + \sum_{k=t+1}^{t+w-2} \varepsilon_k + FPL_{t+w-1} \Big]

    Source: [T] Theorem 3, eq. 16, and Table 2.

    Args:
        kernel_b: P_B as in `backward`, shape (..., k, k) [-].
        kernel_f: P_F as in `forward`, shape (..., k, k) [-].
        losses: as in `backward`, shape (..., T) [epsilon].
        length: w, number of releases in a window, >= 1.

    Returns:
        Shape (...) [epsilon].

    References:
        [T] https://doi.org/10.1109/TKDE.2018.2824328

    >>> w_event(None, None, [0.1, 0.2, 0.4], 2).round(4).item()  # independent releases: .2 + .4
    0.6
    """
    series = checked_loss_series(losses)
    leakages = windows(_totals(kernel_b, kernel_f, series), series, min(length, max(series.shape[-1], 1)))
    return np.asarray(leakages.max(axis=-1))


def user_level(losses: ArrayLike) -> Floats:
    r"""Leakage about a household's whole series: the sum of the losses, for every correlation.

    Use it for user-level privacy.

    .. math:: \sum_{t=1}^T \varepsilon_t

    Source: [T] Corollary 1.

    Args:
        losses: e, shape (..., T), >= 0 [epsilon].

    References:
        [T] https://doi.org/10.1109/TKDE.2018.2824328

    >>> user_level([0.1, 0.2]).round(4).item()
    0.3
    """
    return np.asarray(checked_loss_series(losses).sum(axis=-1))


def _totals(kernel_b: Kernels, kernel_f: Kernels, losses: ArrayLike) -> LeakageTotals:
    series = checked_loss_series(losses)
    return temporal_recursion(kernel_b, kernel_f, releases=series.shape[-1]).leakage_totals(series)
