"""The pieces of L_K: prefix sums (Q, D) of row pairs, and the few of them that ever attain the maximum.

For rows q, d and columns S, with Q = q(S), D = d(S), one piece is ln((1 + (e^a - 1) Q) / (1 + (e^a - 1) D)).
With w = 1/(e^a - 1) that is ln((w + Q)/(w + D)): the slope seen from (-w, -w) to the point (D, Q). So the
maximum over any set of pieces lies on the upper hull of its points, between the largest Q/D (a = inf) and the
largest Q - D (a -> 0, total variation). That hull is a handful of points even for thousands of kernels at
once.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from agedp_data.privacy.kernel import Floats, Mask

_BUDGET = 2**20  # pieces held at a time; a handful of temporaries of this many floats
_LARGE = 700.0  # beyond it e^a is near the end of the range of floats
_INFINITE = 1e-15  # q e^e within rounding of 1 counts as 1, towards the infinite side


def prefixes(rows: Floats) -> Iterator[tuple[slice, Floats, Floats]]:
    """Yield (kernels, over, under): all prefix sums of blocks of a stack (h, k, n), over and under (c, P).

    The columns of each ordered pair of rows are sorted by q/d descending (MATHS 1: the maximising set is such
    a prefix). The full set of columns has ratio one and is left out.
    """
    h, k, n = rows.shape
    kernels = max(1, _BUDGET // (k * k * n))
    block = max(1, min(k, _BUDGET // (k * n)))
    for start in range(0, h, kernels):
        part = slice(start, min(start + kernels, h))
        for first in range(0, k, block):
            yield part, *_prefix_sums(rows[part, first : first + block], rows[part])


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
    """Return the largest piece at each loss: (..., P), (..., P), (...) -> (...), never above the loss.

    ln of (Q x + e^-a)/(D x + e^-a), x = 1 - e^-a, as log1p of the excess over one: exact for tiny losses and
    free of overflow. No piece at all gives 0.
    """
    left = np.exp(-loss)[..., None]
    used = -np.expm1(-loss)[..., None]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        excess = np.where(over > under, (over - under) * used / (under * used + left), 0.0)
        value = np.log1p(excess.max(axis=-1, initial=0.0))
        if (loss > _LARGE).any():
            logs = np.log(over * used + left) - np.logaddexp(np.log(under * used), -loss[..., None])
            far = np.where(over > under, logs, 0.0).max(axis=-1, initial=0.0)
            value = np.where(loss > _LARGE, far, value)
    capped: Floats = np.minimum(value, loss)
    return capped


def fixed_point(over: Floats, under: Floats, loss: Floats) -> Floats:
    """Return the largest fixed point of x = e + piece(x) over the pieces: (..., P), (..., P), (...) -> (...).

    With g = e^(x - e) - 1, u = 1 - e^-e and h = 1 - (Q - D) - (1 - D) u the equation is D g^2 + h g - (Q - D) u = 0
    ([T] Theorem 11 divided by e^2e, so that nothing overflows, and less its value at x = e, so that tiny losses keep
    their digits); D = 0 and h <= 0 has no finite root. Every piece lies above x before its own fixed point and below
    x after it, so the least fixed point of the maximum is the largest one.
    """
    each = loss[..., None]
    used = -np.expm1(-each)
    wide = np.where(over > under, over - under, 0.0)
    middle = (1 - wide) - (1 - under) * used
    tail = wide * used
    root = np.sqrt(middle**2 + 4 * under * tail)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        growth = np.where(middle > 0, 2 * tail / (root + middle), (root - middle) / (2 * under))
        growth = np.where((under == 0) & (middle <= _INFINITE), np.inf, growth)
        value = each + np.log1p(np.where(over > under, growth, 0.0))
    largest: Floats = np.maximum(value.max(axis=-1, initial=0.0), loss)
    return np.where(loss == 0, 0.0, largest)


def frontier(over: Floats, under: Floats) -> tuple[Floats, Floats]:
    """Return the pieces that attain the maximum for some loss, from the largest Q/D to the largest Q - D.

    Shapes: (P,), (P,) -> (v,), (v,); the single point (0, 0) if no piece has Q > D.

    >>> frontier(np.array([0.5, 0.8, 0.6]), np.array([0.1, 0.3, 0.3]))
    (array([0.5, 0.8]), array([0.1, 0.3]))
    """
    useful = over > under
    over, under = over[useful], under[useful]
    if not over.size:
        return np.zeros(1), np.zeros(1)
    order = np.lexsort((-over, under))
    over, under = over[order], under[order]
    best = np.maximum.accumulate(over)
    rises = np.concatenate(([True], best[1:] > best[:-1]))
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


def frontier_of(rows: Floats, known: tuple[Floats, Floats] | None = None) -> tuple[Floats, Floats]:
    """Return the frontier of a stack (h, k, n) of kernels without NaN together with the frontier `known`.

    That is the maximum over households at every loss at once; memory stays that of one block.
    """
    over, under = known or (np.zeros(1), np.zeros(1))
    for _, more_over, more_under in prefixes(rows):
        beyond = above(more_over, more_under, over, under)
        over, under = frontier(np.concatenate((over, more_over[beyond])), np.concatenate((under, more_under[beyond])))
    return over, under


def above(over: Floats, under: Floats, hull_over: Floats, hull_under: Floats) -> Mask:
    """Return which points (P,) lie above the hull, continued to the origin and with slope one.

    >>> above(np.array([0.5, 0.6]), np.array([0.2, 0.2]), np.array([0.9]), np.array([0.4])).tolist()
    [True, True]
    """
    beyond = over - under > hull_over[-1] - hull_under[-1]
    if hull_under[0] > 0:
        hull_over, hull_under = np.append(0.0, hull_over), np.append(0.0, hull_under)
    over_hull: Mask = over > np.interp(under, hull_under, hull_over)
    return np.where(under <= hull_under[-1], over_hull, beyond)
