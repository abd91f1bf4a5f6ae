"""Pieces of the leakage function: prefix sums (Q, D) of pairs of rows, and the few pieces that attain the maximum.

For rows q, d and columns S with Q = q(S), D = d(S), one piece is ln((1 + (e^a - 1) Q) / (1 + (e^a - 1) D)). Example:
the kernel [[0.9, 0.1], [0.1, 0.9]] has the piece Q = 0.9, D = 0.1, and L(ln 11) = ln(10 / 2).

With w = 1/(e^a - 1) a piece is ln((w + Q)/(w + D)): the slope from the point (-w, -w) to the point (D, Q). So the
maximum over any set of pieces is attained on the upper hull of its points, between the largest Q/D (a = inf) and the
largest Q - D (a -> 0, total variation). That hull has a handful of points even for thousands of kernels together.

Decisions:

* Stacks are processed in parts of bounded size, so memory stays constant.
* Sums are capped at 1 and L at the loss, so rounding never exceeds the bound L(a) <= a.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from agedp_data.arrays import Floats, Mask

_BUDGET = 2**20  # pieces in memory at a time; a handful of temporaries of this many floats
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
    kernels_per_part = max(1, _BUDGET // (k * k * n))
    rows_per_part = max(1, min(k, _BUDGET // (k * n)))
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
