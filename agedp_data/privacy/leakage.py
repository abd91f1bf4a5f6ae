"""L_K(a): how much of a loss `a` about the column value of a kernel passes to its row value (MATHS 1).

    L_K(a) = max over rows q, d and columns S of ln((1 + (e^a - 1) q(S)) / (1 + (e^a - 1) d(S)))

is attained by a mechanism, so it cannot be improved. One loss costs a few passes over the pairs of rows
(`privacy.largest`), all losses at once one sort per pair (`privacy.pieces`): they replace the linear-fractional
programmes and Algorithms 1 to 5 of Cao et al., "Quantifying differential privacy in continuous data release
under temporal correlations", IEEE TKDE 2018 ([T]).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from agedp_data.errors import ChainError
from agedp_data.privacy.kernel import Floats, checked_loss, filled
from agedp_data.privacy.largest import largest_gain
from agedp_data.privacy.pieces import fixed_point, frontier_of, gain, prefixes

_BUDGET = 2**21

Figure = Callable[[Floats, Floats], Floats]


def leakage(kernel: ArrayLike, loss: ArrayLike) -> Floats:
    """Return L_K(a), the loss about the row value if the loss about the column value is a.

    Shapes: (..., k, n), (...) -> (...), leading axes broadcast, also those that only the losses have. Units:
    [-]. Rows of NaN are left out. 0 <= L <= a; a = inf is allowed.

    Raises:
        ChainError: a kernel whose rows are no probabilities, a negative loss or NaN, shapes that do not fit.

    References: [T] eqs. 23, 24; MATHS 1.

    >>> leakage([[0.8, 0.2], [0.0, 1.0]], np.inf).item(), leakage([[0.5, 0.5], [0.5, 0.5]], 3).item()
    (inf, 0.0)
    >>> bool(np.isclose(leakage([[0.9, 0.1], [0.1, 0.9]], np.log(11)), np.log(10 / 2)))
    True
    """
    return _each(kernel, loss, largest_gain)


def supremum(kernel: ArrayLike, loss: ArrayLike) -> Floats:
    """Return the limit of x -> e + L_K(x) from 0: what infinitely many releases of loss e build up to.

    The largest over ALL pieces of their fixed points, not that of the piece which is largest at one loss
    ([T] Theorem 11 freezes it, which understates). Infinite cases are exact. Shapes and errors: as `leakage`.

    References: [T] Theorem 11 as corrected in MATHS 4 and 9.

    >>> round(float(supremum([[0.8, 0.2], [0.0, 1.0]], 0.1)), 10), supremum(np.eye(2), 0.1).item()
    (0.6459066161, inf)
    """
    return _each(kernel, loss, _limits)


def leakage_from_total_variation(distance: ArrayLike, loss: ArrayLike) -> Floats:
    """Return ln(1 + Delta (e^a - 1)), what total variation alone says about L_K(a).

    Shapes: (...), (...) -> (...), broadcast. Units: [-]. References: [A] Theorem 1.

    Raises:
        ChainError: a distance outside [0, 1], a negative loss or NaN.

    >>> round(float(leakage_from_total_variation(0.64, 0.5)), 15)
    0.347257871444443
    """
    distances, losses = np.broadcast_arrays(np.asarray(distance, dtype=np.float64), checked_loss(loss))
    if not ((distances >= 0) & (distances <= 1)).all():
        raise ChainError("a total variation is a number from 0 to 1")
    return gain(distances[..., None], np.zeros_like(distances)[..., None], losses)


class KernelLeakage:
    """L_K as a function of the loss, its pieces precomputed: O(log n) for each evaluation.

    Args:
        kernel: (k, n), one kernel; rows of NaN are left out.

    Attributes:
        over, under: (v,) the sums Q and D of the pieces that are ever the maximum, in the order of rising
            loss.
        breakpoints: (v - 1,) losses at which one piece takes over from the one before, ascending.

    Raises:
        ChainError: as `leakage`; also for a stack of kernels.

    References: replaces [T] Algorithms 2 to 5.

    >>> KernelLeakage([[0.8, 0.2], [0.0, 1.0]]).breakpoints.tolist()
    []
    """

    __slots__ = ("breakpoints", "over", "under")

    def __init__(self, kernel: ArrayLike) -> None:
        rows = filled(kernel)
        if rows.ndim != 2:
            raise ChainError(f"one kernel at a time, got a stack of shape {rows.shape}; use `leakage` for stacks")
        over, under = frontier_of(rows[None])
        self.over, self.under = over[::-1], under[::-1]
        self.breakpoints = _crossings(self.over, self.under)

    def __call__(self, loss: ArrayLike) -> Floats:
        """Return L_K at each loss, any shape."""
        losses = checked_loss(loss)
        at = np.searchsorted(self.breakpoints, losses)
        # The neighbours too: rounding may put a breakpoint on the wrong side of the loss.
        near = np.clip(at[..., None] + np.array([-1, 0, 1]), 0, self.over.size - 1)
        return gain(self.over[near], self.under[near], losses)


def _crossings(over: Floats, under: Floats) -> Floats:
    """Return the losses where neighbouring pieces agree: ln(1 + 1/w), w where their line meets Q = D = -w."""
    wide, narrow = slice(None, -1), slice(1, None)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        gap = (over[wide] - under[wide]) - (over[narrow] - under[narrow])
        weight = (over[narrow] * under[wide] - over[wide] * under[narrow]) / gap
        losses = np.log1p(1 / np.maximum(weight, 0.0))
    return np.maximum.accumulate(np.where(gap > 0, losses, 0.0))


def _each(kernel: ArrayLike, loss: ArrayLike, figure: Figure) -> Floats:
    """Apply a figure of kernels (h, k, n) and losses (h, m) to all kernels of a stack and their losses."""
    rows, losses = filled(kernel), checked_loss(loss)
    try:
        shape = np.broadcast_shapes(rows.shape[:-2], losses.shape)
    except ValueError:
        raise ChainError(f"losses of shape {losses.shape} do not fit kernels of shape {rows.shape}") from None
    own = (1,) * (len(shape) - rows.ndim + 2) + rows.shape[:-2]
    order = [i for i, size in enumerate(own) if size > 1] + [i for i, size in enumerate(own) if size == 1]
    turned = np.broadcast_to(losses, shape).transpose(order)
    stack = rows.reshape((-1, *rows.shape[-2:]))
    # An empty stack or no losses leave nothing to compute, and -1 could not be resolved.
    if turned.size == 0:
        return np.zeros(shape)
    table = figure(stack, turned.reshape(stack.shape[0], -1))
    result: Floats = table.reshape(turned.shape).transpose(np.argsort(order))[()]
    return result


def _limits(stack: Floats, losses: Floats) -> Floats:
    """Return the suprema for kernels (h, k, n) and losses (h, m) as (h, m), block by block."""
    result = np.zeros(losses.shape)
    for part, over, under in prefixes(stack):
        step = max(1, _BUDGET // max(1, over.size))
        for start in range(0, losses.shape[1], step):
            some = (part, slice(start, start + step))
            result[some] = np.maximum(result[some], fixed_point(over[:, None, :], under[:, None, :], losses[some]))
    return result
