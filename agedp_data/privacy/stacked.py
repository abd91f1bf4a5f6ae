"""L_K for a stack of kernels at once, the pieces precomputed: what a recursion over hundreds of releases asks for.

Every household's frontier (`privacy.pieces`) has a handful of points, so one step of 5,566 households costs what a few
thousand logarithms cost. A set of kernels that may be in force shares one frontier, so the maximum over the set is
taken at every step, inside the recursion.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from agedp_data.errors import ChainError
from agedp_data.privacy.kernel import Floats, checked_loss, filled
from agedp_data.privacy.leakage import leakage
from agedp_data.privacy.pieces import fixed_point, frontier, gain, prefixes

_USUAL = 700.0  # beyond it `leakage` sorts all pairs for each loss anew

Kernels = ArrayLike | tuple[ArrayLike, ...] | None
"""A kernel, a stack of kernels, a set of either (a tuple of matrices or stacks), or None: no correlation is known."""


class BatchedLeakage:
    """L of each kernel of a stack, or the largest over a set of kernels; see `Kernels`.

    Shapes: (..., k, n), those of a set broadcast against each other and may differ in k and n. Rows of NaN are left
    out. None lets nothing through.

    Args:
        kernel: the kernels.
        evaluations: how often L will be asked for; few of large kernels cost less than their pieces do.

    Raises:
        ChainError: kernels as in `leakage`, an empty set, or stacks of a set that do not fit each other.

    >>> BatchedLeakage([[[0.9, 0.1], [0.1, 0.9]], [[1, 0], [0, 1]]])(np.log(11)).round(4).tolist()  # ln 5, ln 11
    [1.6094, 2.3979]
    """

    __slots__ = ("_direct", "_pieces", "_rows", "shape")

    shape: tuple[int, ...]
    """The leading axes of the stack."""

    def __init__(self, kernel: Kernels, *, evaluations: int | None = None) -> None:
        self._rows = [filled(each) for each in members(kernel)]
        self._pieces: tuple[Floats, Floats] | None = None
        try:
            self.shape = np.broadcast_shapes(*(rows.shape[:-2] for rows in self._rows))
        except ValueError:
            raise ChainError("the kernels of a set must be of as many households as each other") from None
        # Pieces cost as much as some 6 evaluations of 25 rows, 20 of 50, 75 of 100, 110 of 200.
        self._direct = evaluations is not None and all(2 * evaluations <= rows.shape[-2] for rows in self._rows)

    @property
    def pieces(self) -> tuple[Floats, Floats]:
        """Return the sums Q and D of the pieces, (..., v) each, padded with Q = D = 0."""
        if self._pieces is None:
            parts = [_frontiers(rows) for rows in self._rows] or [(np.zeros(0), np.zeros(0))]
            over, under = (
                [np.broadcast_to(part[side], (*self.shape, part[side].shape[-1])) for part in parts] for side in (0, 1)
            )
            self._pieces = np.concatenate(over, axis=-1), np.concatenate(under, axis=-1)
        return self._pieces

    def __call__(self, loss: ArrayLike) -> Floats:
        """Return L at losses (...), broadcast against the stack."""
        losses = self._losses(loss)
        if self._direct and self._rows and (losses <= _USUAL).all():
            found: Floats = np.max([leakage(rows, losses) for rows in self._rows], axis=0)
            return found
        return gain(*self.pieces, losses)

    def supremum(self, loss: ArrayLike) -> Floats:
        """Return the limit of x -> loss + L(x) from 0, infinite if there is none; shapes as for a call."""
        return fixed_point(*self.pieces, self._losses(loss))

    def _losses(self, loss: ArrayLike) -> Floats:
        losses = checked_loss(loss)
        try:
            return np.broadcast_to(losses, np.broadcast_shapes(losses.shape, self.shape))
        except ValueError:
            raise ChainError(f"losses of shape {losses.shape} do not fit a stack of shape {self.shape}") from None


def members(kernel: Kernels) -> list[Floats]:
    """Return the kernels of a set, one for a kernel or a stack, none for None.

    >>> len(members((np.eye(2), np.eye(3)))), len(members(((1, 0), (0, 1)))), len(members(None))
    (2, 1, 0)
    """
    if kernel is None:
        return []
    # A tuple of tuples of numbers is one matrix; a tuple of matrices or stacks is a set.
    if not isinstance(kernel, tuple) or (kernel and np.ndim(kernel[0]) < 2):
        return [np.asarray(kernel, dtype=np.float64)]
    if not kernel:
        raise ChainError("a set of kernels has at least one; None says that no correlation is known")
    return [np.asarray(each, dtype=np.float64) for each in kernel]


def _frontiers(rows: Floats) -> tuple[Floats, Floats]:
    """Return the frontier of each kernel of a stack (..., k, n) without NaN as (..., v), (..., v)."""
    stack = rows.reshape(-1, *rows.shape[-2:])
    hulls: list[list[tuple[Floats, Floats]]] = [[] for _ in stack]
    for part, over, under in prefixes(stack):
        for hull, q, d in zip(hulls[part], over, under, strict=True):
            hull.append(frontier(q, d))
    # One kernel larger than a block has come in several parts.
    whole = [hull[0] if len(hull) == 1 else frontier(*map(np.concatenate, zip(*hull, strict=True))) for hull in hulls]
    size = max((over.size for over, _ in whole), default=0)
    padded = np.zeros((2, len(whole), size))
    for i, (over, under) in enumerate(whole):
        padded[0, i, : over.size], padded[1, i, : under.size] = over, under
    over, under = padded.reshape(2, *rows.shape[:-2], size)
    return over, under
