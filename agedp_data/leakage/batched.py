"""Leakage of a stack of kernels, one per household, with precomputed pieces, for recursions over many releases.

Example: for the kernels [[0.9, 0.1], [0.1, 0.9]] and the identity, L(ln 11) is (ln 5, ln 11).

Decisions:

* Every household's frontier has a handful of points, so one step of 5,566 households costs a few thousand logarithms.
* A set of possible kernels shares one frontier: the maximum over the set is taken at every step, inside the recursion.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from agedp_data.arrays import Floats, Mask, checked_kernel, checked_loss, filled_kernel
from agedp_data.errors import ChainError
from agedp_data.leakage.dinkelbach import apply_to_stack, largest_gain
from agedp_data.leakage.pieces import fixed_point, frontier, gain, prefixes

_LARGE = 700.0  # above this, `leakage` sorts all pairs again for each loss

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
