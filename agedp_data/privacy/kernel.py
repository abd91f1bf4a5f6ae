"""What a kernel and a loss must look like before anything is computed from them.

A row of NaN is a state without reliable data: it is left out, not guessed. A column that is NaN in every row
that is kept goes with such a row and counts as zero. Any other NaN is an error, and so is a kernel without
any row: no figure exists for it, and 0 would be a promise.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agedp_data.errors import ChainError

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

ROW_SUM_TOLERANCE = 1e-9


def checked(kernel: ArrayLike) -> tuple[Floats, Mask]:
    """Return a stack of kernels without NaN, rows summing to one exactly, and which rows are kept.

    Shapes: (..., k, n) -> (..., k, n), (..., k). Rows that are left out are returned as zeros. Units: [-].

    Raises:
        ChainError: not a stack of matrices, a negative entry, a row that does not sum to one within 1e-9,
            a NaN that is no whole row or column, or no row at all.

    >>> rows, kept = checked([[0.5, 0.5], [np.nan, np.nan]])
    >>> rows.tolist(), kept.tolist()
    ([[0.5, 0.5], [0.0, 0.0]], [True, False])
    """
    matrix = np.array(kernel, dtype=np.float64)
    if matrix.ndim < 2 or 0 in matrix.shape[-2:]:
        raise ChainError(f"a kernel is a matrix of probabilities, got an array of shape {matrix.shape}")
    absent: Mask = np.isnan(matrix)
    kept: Mask = ~np.asarray(absent.all(axis=-1))
    if not kept.any(axis=-1).all():
        raise ChainError("a kernel has no row with data, so it bounds nothing; leave that household out by name")
    empty_column: Mask = np.asarray((absent | ~kept[..., None]).all(axis=-2))
    if (absent & kept[..., None] & ~empty_column[..., None, :]).any():
        raise ChainError(
            "a kernel has NaN inside a row; only whole rows, and the columns that go with them, may be NaN"
        )
    matrix[absent | ~kept[..., None]] = 0.0
    total = matrix.sum(axis=-1)
    if (matrix < 0).any() or not (np.abs(total - 1)[kept] <= ROW_SUM_TOLERANCE).all():
        raise ChainError("every row of a kernel must be non-negative and sum to 1 within 1e-9")
    return matrix / np.where(kept, total, 1.0)[..., None], kept


def filled(kernel: ArrayLike) -> Floats:
    """Return the kernels with each row that is left out replaced by a row that is kept.

    A repeated row adds no pair of different rows, so every maximum over pairs is that of the kept rows.
    """
    matrix, kept = checked(kernel)
    first = kept.argmax(axis=-1)[..., None, None]
    return np.where(kept[..., None], matrix, np.take_along_axis(matrix, first, axis=-2))


def checked_loss(loss: ArrayLike) -> Floats:
    """Return losses as an array: non-negative, infinity allowed. Raises ChainError otherwise."""
    losses = np.asarray(loss, dtype=np.float64)
    if not (losses >= 0).all():
        raise ChainError("a loss is a number that is at least 0 (infinity included)")
    return losses


def checked_steps(steps: ArrayLike, *, what: str = "steps") -> NDArray[np.int64]:
    """Return steps as whole non-negative numbers. Raises ChainError otherwise."""
    given = np.asarray(steps)
    if given.size == 0:
        return given.astype(np.int64)
    whole = given.dtype.kind in "iu" or (given.dtype.kind == "f" and bool((given == np.rint(given)).all()))
    if not whole or not ((given >= 0) & (given <= 2**62)).all():
        raise ChainError(f"{what} must be whole numbers of steps, at least 0")
    return given.astype(np.int64)
