"""Temporal privacy leakage: what all releases together say about any one of them ([T], MATHS 4).

[T] is Y. Cao, M. Yoshikawa, Y. Xiao, L. Xiong, "Quantifying differential privacy in continuous data release under
temporal correlations", IEEE TKDE 2018. A release of loss e_t about its own instant, of people who are Markov chains on
their own and independent of each other, leaks with the releases before and after it

    BPL_1 = e_1,  BPL_t = e_t + L_B(BPL_(t-1)),  FPL_T = e_T,  FPL_t = e_t + L_F(FPL_(t+1)),
    TPL_t = BPL_t + FPL_t - e_t.

[T] eqs. 5, 10 and 11 say "=": it is "at most", since the pair of values that maximises one side need not maximise the
other (`pairwise` looks for one that maximises both). Kernels have the protected value in their ROWS; transposed ones
understate several times. Figures are per household, the release's figure is the largest.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from agedp_data.errors import ChainError
from agedp_data.privacy.kernel import Floats
from agedp_data.privacy.recursion import (
    BudgetRecursion,
    LeakageFunction,
    LeakageMap,
    LeakageTotals,
    Recursion,
    checked_losses,
)
from agedp_data.privacy.stacked import Kernels
from agedp_data.privacy.temporal_blocks import block_recursion, blocks_through, daily_release_leakage, kernels
from agedp_data.privacy.temporal_budgets import METHODS, allocate, allocate_with, recursion, round_up_losses
from agedp_data.privacy.temporal_pairwise import pairwise

__all__ = [
    "METHODS",
    "BudgetRecursion",
    "LeakageFunction",
    "LeakageMap",
    "LeakageTotals",
    "Recursion",
    "allocate",
    "allocate_with",
    "backward",
    "block_recursion",
    "blocks_through",
    "daily_release_leakage",
    "forward",
    "kernels",
    "pairwise",
    "recursion",
    "round_up_losses",
    "temporal",
    "temporal_supremum",
    "user_level",
    "w_event",
    "window",
    "windows",
]


def backward(kernel_b: Kernels, losses: ArrayLike) -> Floats:
    """Return BPL_t, the loss about instant t of the releases up to t.

    Shapes: (..., k, k), (..., T) -> (..., T). Units: [-]. References: [T] eq. 13.

    Args:
        kernel_b: P_B, rows now, columns one release earlier. A stack is one of households, a tuple a set of which any
            may be in force at any step (the maximum is taken inside the recursion), None no known correlation.
        losses: e_t of each release about its own instant, infinity allowed.

    Raises:
        ChainError: kernels or losses as in `leakage`, or losses that are no list.

    >>> backward([[0.8, 0.2], [0.0, 1.0]], [0.1] * 4).round(10).tolist()
    [0.1, 0.1807840339, 0.2471477411, 0.3023648491]
    """
    return _leak(kernel_b, None, losses).backward


def forward(kernel_f: Kernels, losses: ArrayLike) -> Floats:
    """Return FPL_t, the loss about instant t of the releases from t on.

    Shapes, units and errors: as `backward`, with P_F: rows now, columns one release later. References: [T] eq. 15.

    >>> forward([[0.8, 0.2], [0.0, 1.0]], [0.1] * 4).round(10).tolist()
    [0.3023648491, 0.2471477411, 0.1807840339, 0.1]
    """
    return _leak(None, kernel_f, losses).forward


def temporal(kernel_b: Kernels, kernel_f: Kernels, losses: ArrayLike) -> Floats:
    """Return TPL_t = BPL_t + FPL_t - e_t, the loss about instant t of all releases.

    Shapes, units and errors: as `backward`; the stacks broadcast. References: [T] eqs. 10, 11, which are bounds.

    >>> drift = [[0.8, 0.2], [0.0, 1.0]]
    >>> temporal(drift, drift, [0.1] * 10).max().round(10).item()
    0.6368412821
    """
    return _leak(kernel_b, kernel_f, losses).total


def temporal_supremum(kernel_b: Kernels, kernel_f: Kernels, loss: ArrayLike) -> Floats:
    """Return what TPL builds up to if releases of this loss go on for ever: the suprema of both sides, less the loss.

    Shapes: (..., k, k), (...) -> (...), broadcast. Units: [-]. Infinite if a side has no supremum.

    References: [T] Theorem 11 as corrected in MATHS 4: over all pairs and prefixes, not the pair that is the largest
    at one loss.

    >>> stay = [[0.9, 0.1], [0.1, 0.9]]
    >>> temporal_supremum(stay, stay, 0.1).round(4).item(), temporal_supremum(np.eye(2), None, 0.1).item()
    (0.8724, inf)
    """
    return recursion(kernel_b, kernel_f).limit(loss)


def window(kernel_b: Kernels, kernel_f: Kernels, losses: ArrayLike, start: int, length: int) -> float:
    """Return the loss about `length` releases in a row, the first of them losses[start], of all releases.

    The largest over households. Units: [-]. Errors: as `windows`; also a start outside the series.

    >>> stay = [[0.9, 0.1], [0.1, 0.9]]
    >>> window(stay, stay, [0.5, 0.25, 0.25], 0, 3)  # all of it: the sum, whatever the correlation
    1.0
    """
    found = windows(_leak(kernel_b, kernel_f, losses), losses, length)
    if not 0 <= start < found.shape[-1]:
        raise ChainError(f"a window of {length} releases from number {start} on does not lie inside the series")
    return float(np.max(found[..., start]))


def windows(leak: LeakageTotals, losses: ArrayLike, length: int) -> Floats:
    """Return the loss about each `length` releases in a row, of all releases.

    One: TPL_t. Two: BPL_t + FPL_(t+1). More: BPL_t + FPL_(t+j) + the losses strictly between. Of
    `daily_release_leakage` too: then
    about whole days.

    Shapes: (..., T) -> (..., T - length + 1). Units: [-]. References: [T] Theorem 3.

    Raises:
        ChainError: a length below 1 or above T.

    >>> stay = [[0.9, 0.1], [0.1, 0.9]]
    >>> windows(recursion(stay, stay).leak([0.1] * 4), [0.1] * 4, 2).round(4).tolist()
    [0.3438, 0.36, 0.3438]
    """
    each = checked_losses(losses)
    count = each.shape[-1]
    if not 1 <= length <= count:
        raise ChainError(f"a window is of 1 to {count} releases here, asked for {length}")
    if length == 1:
        return leak.total
    ends = leak.backward[..., : count - length + 1] + leak.forward[..., length - 1 :]
    if length == 2:
        return ends
    between = np.lib.stride_tricks.sliding_window_view(each[..., 1:-1], length - 2, axis=-1).sum(axis=-1)
    return np.asarray(ends + between)


def w_event(kernel_b: Kernels, kernel_f: Kernels, losses: ArrayLike, length: int) -> Floats:
    """Return the largest loss about any `length` releases in a row; of a shorter series, about all of it.

    Shapes: (..., k, k), (..., T) -> (...). Units: [-]. Errors: as `backward`, or a length below 1.

    >>> w_event(None, None, [0.1, 0.2, 0.4], 2).round(4).item()  # without correlation it is w-event privacy
    0.6
    """
    each = checked_losses(losses)
    found = windows(_leak(kernel_b, kernel_f, each), each, min(length, max(each.shape[-1], 1)))
    return np.asarray(found.max(axis=-1))


def user_level(losses: ArrayLike) -> Floats:
    """Return the loss about a household's whole series, the sum: correlation adds nothing to it.

    Shapes: (..., T) -> (...). Units: [-]. References: [T] Corollary 1.

    >>> user_level([0.1, 0.2]).round(4).item()
    0.3
    """
    return np.asarray(checked_losses(losses).sum(axis=-1))


def _leak(kernel_b: Kernels, kernel_f: Kernels, losses: ArrayLike) -> LeakageTotals:
    each = checked_losses(losses)
    return recursion(kernel_b, kernel_f, releases=each.shape[-1]).leak(each)
