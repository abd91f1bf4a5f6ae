"""The largest piece of L_K at one loss, without sorting a column.

With w = e^-a and u = 1 - w the quantity under the logarithm of MATHS 1 is a ratio of two linear forms,

    (u q(S) + w) / (u d(S) + w),

and Dinkelbach's iteration (Management Science 1967) maximises it: for a ratio r already reached, the best set is
S = {j : q_j > r d_j}, and a pair of rows whose own best set does not exceed r never will. So all pairs share one
r, most leave at once (the excess over one is at most (u/w) TV(q, d)), and three or four rounds over the few that
stay replace a sort of every pair.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from agedp_data.privacy.kernel import Floats
from agedp_data.privacy.pieces import gain, prefixes

Index = NDArray[np.intp]

_ELEMENTS = 2**18  # numbers in one temporary: what stays in a processor's cache
_FEW = 2**14  # so few that calls cost more than numbers
_LARGE = 700.0  # beyond it e^-a is near the end of the range of floats


def largest_gain(rows: Floats, loss: Floats) -> Floats:
    """Return L_K(a) for a stack of kernels without NaN: (h, k, n), (h, m) -> (h, m).

    >>> largest_gain(np.array([[[0.9, 0.1], [0.1, 0.9]]]), np.log([[11.0]])).round(12).tolist()  # ln(10/2)
    [[1.609437912434]]
    """
    h, k, n = rows.shape
    result = np.zeros(loss.shape)
    step = max(1, _ELEMENTS // (k * k * n))
    for start in range(0, h, step):
        part = slice(start, start + step)
        apart = _distances(rows[part])
        for column in range(loss.shape[1]):
            result[part, column] = _of_block(rows[part], apart, loss[part, column])
    return result


def _of_block(rows: Floats, apart: Floats, loss: Floats) -> Floats:
    usual = (loss > 0) & (loss <= _LARGE)
    if usual.all():
        return _by_ratio(rows, apart, loss)
    result = np.zeros(loss.shape)
    if usual.any():
        result[usual] = _by_ratio(rows[usual], apart[usual], loss[usual])
    infinite = np.isinf(loss)
    result[infinite] = _of_any_loss(rows[infinite])
    far = (loss > _LARGE) & ~infinite
    for i in np.flatnonzero(far):
        found = [gain(over[0], under[0], loss[i]) for _, over, under in prefixes(rows[i : i + 1])]
        result[i] = np.max(found)
    return result


def _of_any_loss(rows: Floats) -> Floats:
    """Return L_K(inf): the largest ratio within a column, since a ratio of sums is at most the largest ratio."""
    high, low = rows.max(axis=1), rows.min(axis=1)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.asarray(np.log1p(np.where(high > low, (high - low) / low, 0.0).max(axis=-1)))


def _distances(rows: Floats) -> Floats:
    """Return the total variation of each pair of rows: (h, k, n) -> (h, k, k)."""
    if rows.shape[0] * rows.shape[1] ** 2 * rows.shape[2] <= _FEW:
        return np.asarray(np.abs(rows[:, :, None, :] - rows[:, None, :, :]).sum(axis=-1) / 2)
    apart = np.zeros((*rows.shape[:2], rows.shape[1]))
    for x in range(1, rows.shape[1]):
        apart[:, x, :x] = np.abs(rows[:, x, None, :] - rows[:, :x]).sum(axis=-1) / 2
    return apart + np.swapaxes(apart, 1, 2)


def _by_ratio(rows: Floats, apart: Floats, loss: Floats) -> Floats:
    """Return L at losses (h,) that are neither zero nor extreme, kernel by kernel."""
    left, used = np.exp(-loss), -np.expm1(-loss)
    h, k, n = rows.shape
    flat = apart.reshape(h, -1)
    widest = flat.argmax(axis=1)
    excess = np.zeros(h)
    every = np.arange(h)
    # The widest pair first: what it reaches sends most other pairs away.
    _raise(excess, rows, (every, widest // k, widest % k), left, used)
    found = np.nonzero(flat * used[:, None] > (excess * left)[:, None])
    step = max(1, _ELEMENTS // n)
    if found[0].size > step:
        order = np.argsort(-flat[found], kind="stable")
        found = found[0][order], found[1][order]
    for start in range(0, found[0].size, step):
        kernel, pair = (side[start : start + step] for side in found)
        stays = flat[kernel, pair] * used[kernel] > excess[kernel] * left[kernel]
        kernel, pair = kernel[stays], pair[stays]
        _raise(excess, rows, (kernel, pair // k, pair % k), left, used)
    return np.minimum(np.log1p(excess), loss)


def _raise(excess: Floats, rows: Floats, pairs: tuple[Index, Index, Index], left: Floats, used: Floats) -> None:
    """Raise the excess (h,) of each kernel's ratio over one to the largest of these pairs of rows."""
    kernel, upper, lower = pairs
    q, d = rows[kernel, upper], rows[kernel, lower]
    while kernel.size:
        inside = q > (1 + excess[kernel])[:, None] * d
        # The difference is summed, not subtracted from sums: rows may agree to many digits.
        wide, under = np.einsum("ij,ij->i", q - d, inside), np.einsum("ij,ij->i", d, inside)
        reached = wide * used[kernel] / (under * used[kernel] + left[kernel])
        better = reached > excess[kernel]
        kernel, q, d = kernel[better], q[better], d[better]
        np.maximum.at(excess, kernel, reached[better])
