"""Leakage function at few losses by Dinkelbach's iteration over pairs of rows, without sorting columns.

With w = e^-a and u = 1 - w the quantity under the logarithm of L is a ratio of two linear forms,

    (u q(S) + w) / (u d(S) + w).

For a ratio r already attained, the best set is S = {j : q_j > r d_j}; a pair of rows whose best set does not exceed r
never will. So all pairs share one r, and most are discarded at once: the excess over 1 is at most (u/w) TV(q, d). Three
or four rounds over the few remaining pairs replace a sort of every pair. Example: [[0.9, 0.1], [0.1, 0.9]] has one
pair, S = {1} and L(ln 11) = ln(10 / 2).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agedp_data.arrays import Floats, checked_loss, filled_kernel
from agedp_data.errors import ChainError
from agedp_data.leakage.pieces import gain, prefixes

Index = NDArray[np.intp]
_StackFunction = Callable[[Floats, Floats], Floats]

_ELEMENTS = 2**18  # numbers in one temporary array: fits into a processor's cache
_SMALL_STACK = 2**14  # below this, calls cost more than arithmetic
_LARGE = 700.0  # above this, e^-a is near the end of the range of floats


def apply_to_stack(kernel: ArrayLike, loss: ArrayLike, function: _StackFunction) -> Floats:
    """Apply a function of kernels (h, k, n) and losses (h, m) to all kernels of a stack (..., k, n) and losses (...).

    Source: broadcasting of leading axes, as numpy's.

    Raises:
        ChainError: shapes that do not fit.
    """
    rows, losses = filled_kernel(kernel), checked_loss(loss)
    try:
        shape = np.broadcast_shapes(rows.shape[:-2], losses.shape)
    except ValueError:
        raise ChainError(f"losses of shape {losses.shape} do not fit kernels of shape {rows.shape}") from None
    stack_shape = (1,) * (len(shape) - rows.ndim + 2) + rows.shape[:-2]
    order = [i for i, size in enumerate(stack_shape) if size > 1] + [
        i for i, size in enumerate(stack_shape) if size == 1
    ]
    transposed = np.broadcast_to(losses, shape).transpose(order)
    stack = rows.reshape((-1, *rows.shape[-2:]))
    # Without kernels or losses the result is empty, and -1 could not be resolved.
    if transposed.size == 0:
        return np.zeros(shape)
    table = function(stack, transposed.reshape(stack.shape[0], -1))
    result: Floats = table.reshape(transposed.shape).transpose(np.argsort(order))[()]
    return result


def largest_gain(rows: Floats, loss: Floats) -> Floats:
    r"""Leakage L_K(a) of each kernel of a stack at each of its losses.

    Use it for few losses per kernel; for many losses precompute the pieces (`KernelLeakage`, `BatchedLeakage`).

    .. math:: L_K(a) = \max_{q, d, S} \ln \frac{(1 - e^{-a}) q(S) + e^{-a}}{(1 - e^{-a}) d(S) + e^{-a}}

    Source: [T] eq. 24, solved by Dinkelbach's iteration in place of [T] Algorithm 1.

    Args:
        rows: kernels without NaN, shape (h, k, n), probabilities [-].
        loss: a, shape (h, m), >= 0, infinity allowed [epsilon].

    Returns:
        Shape (h, m) [epsilon].

    References:
        Dinkelbach: On Nonlinear Fractional Programming. Management Science 13(7), 1967.
        https://doi.org/10.1287/mnsc.13.7.492
        [T] https://doi.org/10.1109/TKDE.2018.2824328

    >>> largest_gain(np.array([[[0.9, 0.1], [0.1, 0.9]]]), np.log([[11.0]])).round(12).tolist()  # ln(10 / 2)
    [[1.609437912434]]
    """
    h, k, n = rows.shape
    result = np.zeros(loss.shape)
    step = max(1, _ELEMENTS // (k * k * n))
    for start in range(0, h, step):
        part = slice(start, start + step)
        distances = _distances(rows[part])
        for column in range(loss.shape[1]):
            result[part, column] = _part_gain(rows[part], distances, loss[part, column])
    return result


def _part_gain(rows: Floats, distances: Floats, loss: Floats) -> Floats:
    ordinary = (loss > 0) & (loss <= _LARGE)
    if ordinary.all():
        return _ratio_gain(rows, distances, loss)
    result = np.zeros(loss.shape)
    if ordinary.any():
        result[ordinary] = _ratio_gain(rows[ordinary], distances[ordinary], loss[ordinary])
    infinite = np.isinf(loss)
    result[infinite] = _infinite_loss_gain(rows[infinite])
    large = (loss > _LARGE) & ~infinite
    for i in np.flatnonzero(large):
        gains = [gain(over[0], under[0], loss[i]) for _, over, under in prefixes(rows[i : i + 1])]
        result[i] = np.max(gains)
    return result


def _infinite_loss_gain(rows: Floats) -> Floats:
    """L_K(inf): the largest ratio within a column, since a ratio of sums is at most the largest ratio."""
    high, low = rows.max(axis=1), rows.min(axis=1)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.asarray(np.log1p(np.where(high > low, (high - low) / low, 0.0).max(axis=-1)))


def _distances(rows: Floats) -> Floats:
    """Total variation of each pair of rows: (h, k, n) -> (h, k, k)."""
    if rows.shape[0] * rows.shape[1] ** 2 * rows.shape[2] <= _SMALL_STACK:
        return np.asarray(np.abs(rows[:, :, None, :] - rows[:, None, :, :]).sum(axis=-1) / 2)
    distances = np.zeros((*rows.shape[:2], rows.shape[1]))
    for x in range(1, rows.shape[1]):
        distances[:, x, :x] = np.abs(rows[:, x, None, :] - rows[:, :x]).sum(axis=-1) / 2
    return distances + np.swapaxes(distances, 1, 2)


def _ratio_gain(rows: Floats, distances: Floats, loss: Floats) -> Floats:
    """L at losses (h,) that are neither zero nor extreme, kernel by kernel."""
    weight, complement = np.exp(-loss), -np.expm1(-loss)
    h, k, n = rows.shape
    flat_distances = distances.reshape(h, -1)
    widest = flat_distances.argmax(axis=1)
    excess = np.zeros(h)
    kernels = np.arange(h)
    # The widest pair first: its ratio discards most of the pairs.
    _raise_excess(excess, rows, (kernels, widest // k, widest % k), weight, complement)
    pairs = np.nonzero(flat_distances * complement[:, None] > (excess * weight)[:, None])
    step = max(1, _ELEMENTS // n)
    if pairs[0].size > step:
        order = np.argsort(-flat_distances[pairs], kind="stable")
        pairs = pairs[0][order], pairs[1][order]
    for start in range(0, pairs[0].size, step):
        kernel, pair = (side[start : start + step] for side in pairs)
        remaining = flat_distances[kernel, pair] * complement[kernel] > excess[kernel] * weight[kernel]
        kernel, pair = kernel[remaining], pair[remaining]
        _raise_excess(excess, rows, (kernel, pair // k, pair % k), weight, complement)
    return np.minimum(np.log1p(excess), loss)


def _raise_excess(
    excess: Floats, rows: Floats, pairs: tuple[Index, Index, Index], weight: Floats, complement: Floats
) -> None:
    """Raise the excess (h,) of each kernel's ratio over 1 to the largest of these pairs of rows."""
    kernel, upper, lower = pairs
    q, d = rows[kernel, upper], rows[kernel, lower]
    while kernel.size:
        selected = q > (1 + excess[kernel])[:, None] * d
        # The difference is summed, not subtracted from sums: rows may agree to many digits.
        difference, under = np.einsum("ij,ij->i", q - d, selected), np.einsum("ij,ij->i", d, selected)
        new_excess = difference * complement[kernel] / (under * complement[kernel] + weight[kernel])
        better = new_excess > excess[kernel]
        kernel, q, d = kernel[better], q[better], d[better]
        np.maximum.at(excess, kernel, new_excess[better])
