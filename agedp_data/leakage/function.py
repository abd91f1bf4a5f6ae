"""Leakage function L_K(a): the loss about the row value of a kernel that a loss `a` about its column value implies.

    L_K(a) = max over rows q, d and columns S of ln((1 + (e^a - 1) q(S)) / (1 + (e^a - 1) d(S)))

Example: for [[0.9, 0.1], [0.1, 0.9]], L(ln 11) = ln(10 / 2) = 1.61 of 2.40. A mechanism attains the value, so no
smaller bound exists. All accounting of this project is this function, applied to different kernels.

Decisions:

* One loss costs a few passes over the pairs of rows (`largest_gain`), many losses cost one sort per pair
  (`KernelLeakage`). Both replace the linear-fractional programmes and Algorithms 1-5 of [T].
* 0 <= L(a) <= a holds in floats as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol, SupportsFloat, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agedp_data.arrays import Floats, Mask, checked_kernel, checked_loss, filled_kernel
from agedp_data.errors import ChainError

# --------------------------------------------------------------------------------------------------
# Pieces of the leakage function: prefix sums (Q, D) of pairs of rows, and the few pieces that attain the maximum.
#
# For rows q, d and columns S with Q = q(S), D = d(S), one piece is ln((1 + (e^a - 1) Q) / (1 + (e^a - 1) D)). Example:
# the kernel [[0.9, 0.1], [0.1, 0.9]] has the piece Q = 0.9, D = 0.1, and L(ln 11) = ln(10 / 2).
#
# With w = 1/(e^a - 1) a piece is ln((w + Q)/(w + D)): the slope from the point (-w, -w) to the point (D, Q). So the
# maximum over any set of pieces is attained on the upper hull of its points, between the largest Q/D (a = inf) and the
# largest Q - D (a -> 0, total variation). That hull has a handful of points even for thousands of kernels together.
#
# Decisions:
#
# * Stacks are processed in parts of bounded size, so memory stays constant.
# * Sums are capped at 1 and L at the loss, so rounding never exceeds the bound L(a) <= a.
# --------------------------------------------------------------------------------------------------

_MOST_PIECES = 2**20  # pieces in memory at a time; a handful of temporaries of this many floats
_LARGE = 700.0  # beyond it e^a is near the end of the range of floats
_INFINITE = 1e-15  # q e^e within rounding of 1 counts as 1, towards the infinite side


def prefixes(rows: Floats) -> Iterator[tuple[slice, Floats, Floats]]:
    r"""Prefix sums of all ordered pairs of rows, part of the stack by part.

    Use it to enumerate the pieces of L. The columns of a pair are sorted by q/d in descending order; the maximising set
    of columns is such a prefix. The full set has ratio 1 and is omitted.

    .. math:: Q_i = \sum_{j \le i} q_{\sigma(j)}, \quad D_i = \sum_{j \le i} d_{\sigma(j)}, \qquad
        \frac{q_{\sigma(1)}}{d_{\sigma(1)}} \ge \frac{q_{\sigma(2)}}{d_{\sigma(2)}} \ge \dots

    Source: [T] Theorems 5 and 8 (eqs. 22-25).

    Args:
        rows: kernels without NaN, shape (h, k, n), probabilities [-].

    Yields:
        A slice of the kernels; Q and D, shape (c, P) each, between 0 and 1 [-]. c is the length of the slice, P the
        number of pairs of rows times n - 1. A kernel that is larger than a part comes in several parts.

    References:
        [T] https://doi.org/10.1109/TKDE.2018.2824328

    >>> [(q.tolist(), d.tolist()) for _, q, d in prefixes(np.array([[[0.75, 0.25], [0.25, 0.75]]]))]
    [([[0.75, 0.75, 0.75, 0.25]], [[0.75, 0.25, 0.25, 0.25]])]
    """
    h, k, n = rows.shape
    kernels_per_part = max(1, _MOST_PIECES // (k * k * n))
    rows_per_part = max(1, min(k, _MOST_PIECES // (k * n)))
    for start in range(0, h, kernels_per_part):
        part = slice(start, min(start + kernels_per_part, h))
        for first in range(0, k, rows_per_part):
            yield part, *_prefix_sums(rows[part, first : first + rows_per_part], rows[part])


def _prefix_sums(upper: Floats, lower: Floats) -> tuple[Floats, Floats]:
    q, d = np.broadcast_arrays(upper[:, :, None, :], lower[:, None, :, :])
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = np.where(d > 0, q / d, np.where(q > 0, np.inf, -1.0))
    order = np.argsort(-ratio, axis=-1)[..., :-1]
    shape = (upper.shape[0], -1)
    over = np.take_along_axis(q, order, axis=-1).cumsum(axis=-1).reshape(shape)
    under = np.take_along_axis(d, order, axis=-1).cumsum(axis=-1).reshape(shape)
    return np.minimum(over, 1.0), np.minimum(under, 1.0)


def gain(over: Floats, under: Floats, loss: Floats) -> Floats:
    r"""Largest piece at each loss, never above the loss.

    Use it to evaluate L from precomputed pieces.

    .. math:: L(a) = \max_i \ln \frac{Q_i (1 - e^{-a}) + e^{-a}}{D_i (1 - e^{-a}) + e^{-a}}

    Source: [T] eq. 24. Erratum: e^a overflows as printed; this form does not, and log1p of the excess over 1 keeps the
    digits of tiny losses.

    Args:
        over: Q, shape (..., P) [-].
        under: D, shape (..., P) [-].
        loss: a, shape (...), >= 0, infinity allowed [epsilon].

    Returns:
        Shape (...) [epsilon], 0 without pieces.

    References:
        [T] https://doi.org/10.1109/TKDE.2018.2824328

    >>> gain(np.array([0.9]), np.array([0.1]), np.log(11.0)).round(6).item()  # ln(10 / 2)
    1.609438
    """
    weight = np.exp(-loss)[..., None]
    complement = -np.expm1(-loss)[..., None]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        excess = np.where(over > under, (over - under) * complement / (under * complement + weight), 0.0)
        value = np.log1p(excess.max(axis=-1, initial=0.0))
        if (loss > _LARGE).any():
            logs = np.log(over * complement + weight) - np.logaddexp(np.log(under * complement), -loss[..., None])
            large_values = np.where(over > under, logs, 0.0).max(axis=-1, initial=0.0)
            value = np.where(loss > _LARGE, large_values, value)
    capped: Floats = np.minimum(value, loss)
    return capped


def fixed_point(over: Floats, under: Floats, loss: Floats) -> Floats:
    r"""Largest fixed point of x = e + piece(x) over the pieces: the supremum of the recursion x -> e + L(x).

    Use it for the loss that infinitely many releases of loss e accumulate to.

    .. math:: D g^2 + h g - (Q - D) u = 0, \quad g = e^{x - e} - 1, \quad u = 1 - e^{-e}, \quad
        h = 1 - (Q - D) - (1 - D) u

    Source: [T] Theorem 11, divided by e^(2e) against overflow and reduced by its value at x = e, so that tiny losses
    keep their digits. D = 0 and h <= 0 has no finite root. A piece is above x before its own fixed point and below x
    after it, so the least fixed point of the maximum is the largest one. Errata to Theorem 11: all pairs and prefixes
    are searched, not the pair that is the largest at one loss; its second case needs a strict inequality; a small d
    needs the stable root.

    Args:
        over: Q, shape (..., P) [-].
        under: D, shape (..., P) [-].
        loss: e, shape (...), >= 0, infinity allowed [epsilon].

    Returns:
        Shape (...) [epsilon], `inf` if the recursion is unbounded, 0 where the loss is 0.

    References:
        [T] https://doi.org/10.1109/TKDE.2018.2824328

    >>> fixed_point(np.array([0.5]), np.array([0.0]), np.log(1.5)).round(6).item()  # ln(.75 / .25)
    1.098612
    """
    epsilon = loss[..., None]
    complement = -np.expm1(-epsilon)
    difference = np.where(over > under, over - under, 0.0)
    linear_term = (1 - difference) - (1 - under) * complement
    constant_term = difference * complement
    root = np.sqrt(linear_term**2 + 4 * under * constant_term)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        growth = np.where(linear_term > 0, 2 * constant_term / (root + linear_term), (root - linear_term) / (2 * under))
        growth = np.where((under == 0) & (linear_term <= _INFINITE), np.inf, growth)
        value = epsilon + np.log1p(np.where(over > under, growth, 0.0))
    largest: Floats = np.maximum(value.max(axis=-1, initial=0.0), loss)
    return np.where(loss == 0, 0.0, largest)


def frontier(over: Floats, under: Floats) -> tuple[Floats, Floats]:
    r"""Pieces that attain the maximum for some loss, from the largest Q/D to the largest Q - D.

    Use it once per kernel; every evaluation of L then needs these few pieces only.

    .. math:: \{i : \exists a \ge 0: L(a) = \text{piece}_i(a)\} \subseteq \text{upper hull of the points } (D_i, Q_i)

    Source: replaces [T] Algorithms 2-5.

    Args:
        over: Q, shape (P,) [-].
        under: D, shape (P,) [-].

    Returns:
        Q and D of the selected pieces, shape (v,) each [-]; the point (0, 0) if no piece has Q > D.

    References:
        [T] https://doi.org/10.1109/TKDE.2018.2824328

    >>> frontier(np.array([0.5, 0.8, 0.6]), np.array([0.1, 0.3, 0.3]))
    (array([0.5, 0.8]), array([0.1, 0.3]))
    """
    useful = over > under
    over, under = over[useful], under[useful]
    if not over.size:
        return np.zeros(1), np.zeros(1)
    order = np.lexsort((-over, under))
    over, under = over[order], under[order]
    running_maximum = np.maximum.accumulate(over)
    rises = np.concatenate(([True], running_maximum[1:] > running_maximum[:-1]))
    over, under = _upper_hull(over[rises], under[rises])
    with np.errstate(divide="ignore", over="ignore"):
        ratio = over / under
    start = ratio.size - 1 - int(ratio[::-1].argmax())
    end = max(start, int((over - under).argmax()))
    return over[start : end + 1], under[start : end + 1]


def _upper_hull(over: Floats, under: Floats) -> tuple[Floats, Floats]:
    hull: list[tuple[float, float]] = []
    for d, q in zip(under.tolist(), over.tolist(), strict=True):
        while len(hull) > 1:
            (d0, q0), (d1, q1) = hull[-2], hull[-1]
            if (d1 - d0) * (q - q0) < (q1 - q0) * (d - d0):
                break
            hull.pop()
        hull.append((d, q))
    points = np.array(hull)
    return points[:, 1], points[:, 0]


def frontier_of(rows: Floats, earlier: tuple[Floats, Floats] | None = None) -> tuple[Floats, Floats]:
    r"""Frontier of all kernels of a stack together with an earlier frontier.

    Use it for the maximum of L over households at every loss at once. Memory stays that of one part of the stack.

    .. math:: \max_h L_{K_h}(a) = \max_{i \in \text{frontier}} \text{piece}_i(a)

    Source: as `frontier`; the maximum over households as in [T] section 3.5.

    Args:
        rows: kernels without NaN, shape (h, k, n), probabilities [-].
        earlier: Q and D of the frontier of kernels already processed, or None.

    Returns:
        Q and D of the common frontier, shape (v,) each [-].

    References:
        [T] https://doi.org/10.1109/TKDE.2018.2824328

    >>> frontier_of(np.array([[[0.75, 0.25], [0.25, 0.75]]]))
    (array([0.75]), array([0.25]))
    """
    over, under = earlier or (np.zeros(1), np.zeros(1))
    for _, new_over, new_under in prefixes(rows):
        outside = is_above_hull(new_over, new_under, over, under)
        over, under = frontier(np.concatenate((over, new_over[outside])), np.concatenate((under, new_under[outside])))
    return over, under


def is_above_hull(over: Floats, under: Floats, hull_over: Floats, hull_under: Floats) -> Mask:
    r"""Mask of the points above an upper hull that is continued to the origin and, to the right, with slope 1.

    Use it to discard pieces that cannot change a frontier.

    .. math:: Q > \text{hull}(D) \text{ for } D \le D_v, \qquad Q - D > Q_v - D_v \text{ for } D > D_v

    Source: this project; see the head of the module for the geometry.

    Args:
        over: Q of the points, shape (P,) [-].
        under: D of the points, shape (P,) [-].
        hull_over: Q of the hull, shape (v,) [-].
        hull_under: D of the hull, ascending, shape (v,) [-].

    Returns:
        Shape (P,), true above the hull.

    References:
        [T] https://doi.org/10.1109/TKDE.2018.2824328

    >>> is_above_hull(np.array([0.5, 0.4]), np.array([0.2, 0.2]), np.array([0.9]), np.array([0.4])).tolist()  # hull .45
    [True, False]
    """
    above_continuation = over - under > hull_over[-1] - hull_under[-1]
    if hull_under[0] > 0:
        hull_over, hull_under = np.append(0.0, hull_over), np.append(0.0, hull_under)
    above_hull: Mask = over > np.interp(under, hull_under, hull_over)
    return np.where(under <= hull_under[-1], above_hull, above_continuation)


# --------------------------------------------------------------------------------------------------
# Leakage function at few losses by Dinkelbach's iteration over pairs of rows, without sorting columns.
#
# With w = e^-a and u = 1 - w the quantity under the logarithm of L is a ratio of two linear forms,
#
#     (u q(S) + w) / (u d(S) + w).
#
# For a ratio r already attained, the best set is S = {j : q_j > r d_j}; a pair of rows whose best set does not exceed
# r never will. So all pairs share one r, and most are discarded at once: the excess over 1 is at most (u/w) TV(q, d).
# Three or four rounds over the few remaining pairs replace a sort of every pair. Example: [[0.9, 0.1], [0.1, 0.9]] has
# one pair, S = {1} and L(ln 11) = ln(10 / 2).
# --------------------------------------------------------------------------------------------------

Index = NDArray[np.intp]
_StackFunction = Callable[[Floats, Floats], Floats]

_ELEMENTS = 2**18  # numbers in one temporary array: fits into a processor's cache
_SMALL_STACK = 2**14  # below this, calls cost more than arithmetic


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


# --------------------------------------------------------------------------------------------------
# Leakage of a stack of kernels, one per household, with precomputed pieces, for recursions over many releases.
#
# Example: for the kernels [[0.9, 0.1], [0.1, 0.9]] and the identity, L(ln 11) is (ln 5, ln 11).
#
# Decisions:
#
# * Every household's frontier has a handful of points, so one step of 5,566 households costs a few thousand
#   logarithms.
# * A set of possible kernels shares one frontier: the maximum over the set is taken at every step, inside the
#   recursion.
# --------------------------------------------------------------------------------------------------

Kernels = ArrayLike | tuple[ArrayLike, ...] | None
"""A kernel, a stack of kernels, a set of either (a tuple of matrices or stacks), or None for independent values."""


class BatchedLeakage:
    r"""Leakage function of each kernel of a stack, or the maximum over a set of kernels.

    Use it as the step of a recursion over releases (`Recursion`), for all households at once.

    .. math:: L(a) = \max_{K \in \text{set}} L_K(a), \text{ for each household}

    Source: [T] eq. 24; the set of kernels covers an unknown correlation.

    Args:
        kernel: shape (..., k, n), probabilities [-]; a tuple is a set whose shapes broadcast and may differ in k and n.
            Rows of NaN are left out. None means independent values: L = 0.
        evaluations: expected number of evaluations; for few evaluations of large kernels the pieces are not
            precomputed.

    Attributes:
        shape: leading axes of the stack.

    Raises:
        ChainError: kernels as in `leakage`, an empty set, or stacks of a set that do not fit each other.

    References:
        [T] https://doi.org/10.1109/TKDE.2018.2824328

    >>> BatchedLeakage([[[0.9, 0.1], [0.1, 0.9]], [[1, 0], [0, 1]]])(np.log(11)).round(4).tolist()  # ln 5, ln 11
    [1.6094, 2.3979]
    """

    __slots__ = ("_evaluates_directly", "_pieces", "_rows", "shape")

    shape: tuple[int, ...]
    """The leading axes of the stack."""

    def __init__(self, kernel: Kernels, *, evaluations: int | None = None) -> None:
        self._rows = [filled_kernel(matrix) for matrix in kernel_set(kernel)]
        self._pieces: tuple[Floats, Floats] | None = None
        try:
            self.shape = np.broadcast_shapes(*(rows.shape[:-2] for rows in self._rows))
        except ValueError:
            raise ChainError("the kernels of a set must be of as many households as each other") from None
        # Pieces cost as much as about 6 evaluations of 25 rows, 20 of 50, 75 of 100, 110 of 200.
        self._evaluates_directly = evaluations is not None and all(
            2 * evaluations <= rows.shape[-2] for rows in self._rows
        )

    @property
    def pieces(self) -> tuple[Floats, Floats]:
        """Prefix sums Q and D of the pieces, shape (..., v) each [-], padded with Q = D = 0."""
        if self._pieces is None:
            parts = [_frontiers(rows) for rows in self._rows] or [(np.zeros(0), np.zeros(0))]
            over, under = (
                [np.broadcast_to(part[side], (*self.shape, part[side].shape[-1])) for part in parts] for side in (0, 1)
            )
            self._pieces = np.concatenate(over, axis=-1), np.concatenate(under, axis=-1)
        return self._pieces

    def __call__(self, loss: ArrayLike) -> Floats:
        """L of each kernel at its loss.

        Args:
            loss: shape (...), broadcast against the stack, >= 0, infinity allowed [epsilon].

        Returns:
            Shape (...) [epsilon].

        Raises:
            ChainError: a negative loss or NaN, shapes that do not fit.
        """
        losses = self._losses(loss)
        if self._evaluates_directly and self._rows and (losses <= _LARGE).all():
            maximum: Floats = np.max([apply_to_stack(rows, losses, largest_gain) for rows in self._rows], axis=0)
            return maximum
        return gain(*self.pieces, losses)

    def supremum(self, loss: ArrayLike) -> Floats:
        """Supremum of x -> loss + L(x) from 0 for each kernel.

        Args:
            loss: shape (...), broadcast against the stack, >= 0 [epsilon].

        Returns:
            Shape (...) [epsilon], `inf` if unbounded.

        Raises:
            ChainError: as a call.
        """
        return fixed_point(*self.pieces, self._losses(loss))

    def _losses(self, loss: ArrayLike) -> Floats:
        losses = checked_loss(loss)
        try:
            return np.broadcast_to(losses, np.broadcast_shapes(losses.shape, self.shape))
        except ValueError:
            raise ChainError(f"losses of shape {losses.shape} do not fit a stack of shape {self.shape}") from None


class PairwiseLeakage:
    """L between each two rows of a kernel, or the maximum over a set of kernels: loss -> (k, k).

    Source: [T] eq. 18, before its maximum over pairs.

    References:
        [T] https://doi.org/10.1109/TKDE.2018.2824328
    """

    def __init__(self, kernel: Kernels) -> None:
        chains = kernel_set(kernel)
        if any(chain.ndim != 2 or chain.shape[0] != chains[0].shape[0] for chain in chains):
            raise ChainError("pairs are those of one household's values; take the households one by one")
        rows: list[Mask] = [checked_kernel(chain)[1] for chain in chains]
        self.valid: Mask = np.all(rows, axis=0) if rows else np.ones(1, dtype=np.bool_)
        pieces = [_pieces(filled_kernel(chain)) for chain in chains] or [(np.zeros((1, 1, 0)),) * 2]
        self._over, self._under = (np.concatenate(side, axis=-1) for side in zip(*pieces, strict=True))

    def __call__(self, loss: float) -> Floats:
        """Return L of each pair of rows at one loss, shape (k, k) [epsilon]."""
        return gain(self._over, self._under, np.full(self._over.shape[:-1], loss))


def _pieces(rows: Floats) -> tuple[Floats, Floats]:
    k, n = rows.shape
    parts = [(over.reshape(-1, k, n - 1), under.reshape(-1, k, n - 1)) for _, over, under in prefixes(rows[None])]
    over, under = (np.concatenate(side) for side in zip(*parts, strict=True))
    return over, under


def kernel_set(kernel: Kernels) -> list[Floats]:
    r"""Kernels of a set as a list: one for a kernel or a stack, none for None.

    Use it where a parameter of type `Kernels` is read. A tuple of tuples of numbers is one matrix.

    .. math:: K \mapsto [K], \qquad (K_1, \dots, K_m) \mapsto [K_1, \dots, K_m]

    Source: this project; [T] has one kernel per direction and person.

    Args:
        kernel: kernel, stack of kernels, set (tuple) of them, or None.

    Returns:
        List of arrays of shape (..., k, n), probabilities [-].

    Raises:
        ChainError: an empty tuple.

    References:
        [T] section 3.5 discusses unknown correlations. https://doi.org/10.1109/TKDE.2018.2824328

    >>> len(kernel_set((np.eye(2), np.eye(3)))), len(kernel_set(((1, 0), (0, 1)))), len(kernel_set(None))
    (2, 1, 0)
    """
    if kernel is None:
        return []
    # A tuple of tuples of numbers is one matrix; a tuple of matrices or stacks is a set.
    if not isinstance(kernel, tuple) or (kernel and np.ndim(kernel[0]) < 2):
        return [np.asarray(kernel, dtype=np.float64)]
    if not kernel:
        raise ChainError("a set of kernels has at least one; None means that no correlation is known")
    return [np.asarray(matrix, dtype=np.float64) for matrix in kernel]


def _frontiers(rows: Floats) -> tuple[Floats, Floats]:
    """Frontier of each kernel of a stack (..., k, n) without NaN as (..., v), (..., v)."""
    stack = rows.reshape(-1, *rows.shape[-2:])
    parts: list[list[tuple[Floats, Floats]]] = [[] for _ in stack]
    for part, over, under in prefixes(stack):
        for kernel_parts, q, d in zip(parts[part], over, under, strict=True):
            kernel_parts.append(frontier(q, d))
    # A kernel that is larger than a part comes in several.
    merged = [
        kernel_parts[0] if len(kernel_parts) == 1 else frontier(*map(np.concatenate, zip(*kernel_parts, strict=True)))
        for kernel_parts in parts
    ]
    size = max((over.size for over, _ in merged), default=0)
    padded = np.zeros((2, len(merged), size))
    for i, (over, under) in enumerate(merged):
        padded[0, i, : over.size], padded[1, i, : under.size] = over, under
    over, under = padded.reshape(2, *rows.shape[:-2], size)
    return over, under


# --------------------------------------------------------------------------------------------------
# The function itself, at any number of losses.
# --------------------------------------------------------------------------------------------------

Number = TypeVar("Number")
"""Losses: float arrays [epsilon], or an integer [nano-epsilon]."""

_BUDGET = 2**21


def leakage(kernel: ArrayLike, loss: ArrayLike) -> Floats:
    r"""Privacy loss about the row value of a kernel, given a privacy loss about its column value.

    Use it with the t-step reversed chain for a release of age t, with the one-step reversed chain for backward leakage,
    and with the forward chain for forward leakage.

    .. math:: L_K(a) = \max_{q, d \in \text{rows}(K)} \max_S \ln \frac{1 + (e^a - 1) q(S)}{1 + (e^a - 1) d(S)}

    Source: [T] eqs. 18 and 24. Erratum: e^a overflows as printed; an overflow-free form is evaluated.

    Args:
        kernel: shape (..., k, n), probabilities [-]; rows of NaN are left out.
        loss: a, shape (...), >= 0, infinity allowed [epsilon]; leading axes broadcast, also extra ones.

    Returns:
        Shape (...) [epsilon], between 0 and `loss`; 0 if all rows are equal, `loss` if two rows have disjoint support.

    Raises:
        ChainError: rows that are not probabilities, a negative loss or NaN, shapes that do not fit.

    References:
        [T] https://doi.org/10.1109/TKDE.2018.2824328

    >>> leakage([[0.8, 0.2], [0.0, 1.0]], np.inf).item(), leakage([[0.5, 0.5], [0.5, 0.5]], 3).item()
    (inf, 0.0)
    >>> bool(np.isclose(leakage([[0.9, 0.1], [0.1, 0.9]], np.log(11)), np.log(10 / 2)))
    True
    """
    return apply_to_stack(kernel, loss, largest_gain)


def supremum(kernel: ArrayLike, loss: ArrayLike) -> Floats:
    r"""Supremum of x -> e + L_K(x) from 0: the loss that infinitely many releases of loss e accumulate to.

    Use it to decide whether a constant loss per release keeps the leakage bounded.

    .. math:: x^* = \sup_n x_n, \qquad x_0 = 0, \quad x_{n+1} = \varepsilon + L_K(x_n)

    Source: [T] Theorem 11. Erratum: the theorem keeps the pair of rows that is the largest at one loss, which
    understates; here the maximum is over the fixed points of all pairs and prefixes.

    Args:
        kernel: shape (..., k, n), probabilities [-]; rows of NaN are left out.
        loss: e, shape (...), >= 0, infinity allowed [epsilon].

    Returns:
        Shape (...) [epsilon], exactly `inf` if unbounded.

    Raises:
        ChainError: as `leakage`.

    References:
        [T] https://doi.org/10.1109/TKDE.2018.2824328

    >>> round(float(supremum([[0.8, 0.2], [0.0, 1.0]], 0.1)), 10), supremum(np.eye(2), 0.1).item()
    (0.6459066161, inf)
    """
    return apply_to_stack(kernel, loss, _suprema)


def leakage_from_total_variation(distance: ArrayLike, loss: ArrayLike) -> Floats:
    r"""Upper bound of L_K(a) that needs the total variation of the kernel only.

    Use it for a declared curve of total variation, or with an upper bound of the total variation.

    .. math:: L_K(a) \le \ln(1 + \Delta (e^a - 1))

    Source: [A] Theorem 1, eq. 14. Erratum: the theorem needs independent households.

    Args:
        distance: Delta, shape (...), from 0 to 1 [-].
        loss: a, shape (...), >= 0, infinity allowed [epsilon].

    Returns:
        Shape (...), broadcast [epsilon].

    Raises:
        ChainError: a distance outside [0, 1], a negative loss or NaN.

    References:
        [A] https://doi.org/10.1109/TIT.2023.3340147

    >>> round(float(leakage_from_total_variation(0.5, np.log(3))), 12)  # ln(1 + 0.5 * 2) = ln 2
    0.69314718056
    """
    distances, losses = np.broadcast_arrays(np.asarray(distance, dtype=np.float64), checked_loss(loss))
    if not ((distances >= 0) & (distances <= 1)).all():
        raise ChainError("a total variation is a number from 0 to 1")
    return gain(distances[..., None], np.zeros_like(distances)[..., None], losses)


class LeakageFunction(Protocol[Number]):
    r"""Leakage function L of one kernel or bound, as every recursion over releases needs it.

    `KernelLeakage` and `BatchedLeakage` implement it for kernels, `TabulatedLeakage` and `PiecewiseLeakage` in whole
    nano-epsilon; the example is the one of independent releases. Losses and results have one shape and unit: floats
    [epsilon] or an integer [nano-epsilon].

    .. math:: 0 \le L(a) \le a, \quad a \le b \Rightarrow L(a) \le L(b) \le L(a) + b - a; \qquad
        \sup_n x_n \text{ for } x_{n+1} = \varepsilon + L(x_n)

    Source: [T] Remark 1, eqs. 13, 15 and Theorem 11.

    References:
        [T] https://doi.org/10.1109/TKDE.2018.2824328

    >>> class Independent:
    ...     def __call__(self, loss):
    ...         return 0 * loss
    ...
    ...     def supremum(self, loss):
    ...         return loss
    >>> function: LeakageFunction[float] = Independent()
    >>> function(0.5), function.supremum(0.5)
    (0.0, 0.5)
    """

    def __call__(self, loss: Number, /) -> Number:
        """Loss about the row value, of the same shape and unit as the loss about the column value."""

    def supremum(self, loss: Number, /) -> Number | None:
        """Supremum of x -> loss + L(x) from 0; if unbounded, `inf` among floats and None for an integer."""


class SampledLeakage(LeakageFunction[int], Protocol):
    """Leakage function in whole nano-epsilon with sample points; `TabulatedLeakage`, `PiecewiseLeakage` implement it.

    Source: [T] eq. 24, rounded up.

    References:
        [T] https://doi.org/10.1109/TKDE.2018.2824328
    """

    @property
    def sample_points(self) -> tuple[Sequence[float], Sequence[float]]:
        """Return losses and the leakage of each, for interpolation [nano-epsilon]."""


class LeakageBoundLike(Protocol):
    """Members of a leakage bound (`LeakageBound`) that accounting and notions need.

    Source: [A] Theorem 1 with the tight L.

    References:
        [A] https://doi.org/10.1109/TIT.2023.3340147
    """

    @property
    def steps_per_day(self) -> int:
        """Steps of the chain in a day."""

    @property
    def assume(self) -> str:
        """Either "markov" or "curve"."""

    @property
    def share(self) -> str:
        """Share of the households whose chains it bounds, in words; "" if it is meant to bound each."""

    @property
    def methods(self) -> tuple[str, ...]:
        """Methods with backward bounds; every model has "total_variation"."""

    @property
    def has_both_directions(self) -> bool:
        """Whether the tight losses of both directions may be composed, as temporal leakage requires."""

    @property
    def ages(self) -> Iterable[int]:
        """Tabulated ages, ascending [steps]."""

    def __hash__(self) -> int:
        """Equal models have equal hashes, so that a solved plan is computed once per model."""

    def exact_leakage(self, age: int, *, direction: str) -> SampledLeakage:
        """Return the tight L at an age [steps], from and to nano-epsilon."""

    def __call__(self, age: int, loss: float, *, direction: str, method: str) -> SupportsFloat:
        """Return L(loss) at an age [steps], rounded up [epsilon]."""

    def total_variation(self, age: int) -> float:
        """Return the total variation at an age [steps], from 0 to 1."""

    def supremum(self, gap: int, loss: float, *, direction: str, method: str) -> float:
        """Return the supremum of x -> loss + L(x) at a gap [steps], `inf` if unbounded [epsilon]."""


class KernelLeakage(BatchedLeakage):
    r"""Leakage function of one kernel with its pieces in order, as `BatchedLeakage` of a stack.

    Use it for many losses through one kernel; `leakage` for few losses or stacks.

    .. math:: L(a) = \text{piece}_i(a) \text{ for } b_{i-1} \le a \le b_i, \qquad
        \text{piece}_i(a) = \ln \frac{1 + (e^a - 1) Q_i}{1 + (e^a - 1) D_i}

    Source: [T] eq. 25; replaces [T] Algorithms 2-5. Erratum: Algorithm 4 must not start at a = 0, where all pieces tie.

    Args:
        kernel: shape (k, n), probabilities [-]; rows of NaN are left out.

    Attributes:
        over: Q of the pieces, shape (v,), in the order of increasing loss [-].
        under: D of the pieces, shape (v,) [-].
        breakpoints: shape (v - 1,), ascending: losses at which the next piece becomes the maximum [epsilon].

    Raises:
        ChainError: as `leakage`; a stack of kernels.

    References:
        [T] https://doi.org/10.1109/TKDE.2018.2824328

    >>> KernelLeakage([[0.8, 0.2], [0.0, 1.0]]).breakpoints.tolist()
    []
    >>> KernelLeakage([[0.9, 0.1], [0.1, 0.9]])(np.log(11.0)).round(6).item()  # ln(10 / 2)
    1.609438
    """

    __slots__ = ("breakpoints", "over", "under")

    def __init__(self, kernel: ArrayLike) -> None:
        super().__init__(filled_kernel(kernel))
        if self.shape:
            raise ChainError(f"one kernel at a time, got a stack of shape {self.shape}; use `leakage` for stacks")
        self.over, self.under = (side[::-1] for side in self.pieces)
        self.breakpoints = _crossings(self.over, self.under)


def _crossings(over: Floats, under: Floats) -> Floats:
    """Losses where neighbouring pieces agree: ln(1 + 1/w), where their line meets Q = D = -w."""
    first, second = slice(None, -1), slice(1, None)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        gap = (over[first] - under[first]) - (over[second] - under[second])
        weight = (over[second] * under[first] - over[first] * under[second]) / gap
        losses = np.log1p(1 / np.maximum(weight, 0.0))
    return np.maximum.accumulate(np.where(gap > 0, losses, 0.0))


def _suprema(stack: Floats, losses: Floats) -> Floats:
    """Suprema for kernels (h, k, n) and losses (h, m) as (h, m), part by part."""
    result = np.zeros(losses.shape)
    for part, over, under in prefixes(stack):
        step = max(1, _BUDGET // max(1, over.size))
        for start in range(0, losses.shape[1], step):
            index = (part, slice(start, start + step))
            result[index] = np.maximum(result[index], fixed_point(over[:, None, :], under[:, None, :], losses[index]))
    return result
