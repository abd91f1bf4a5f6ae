"""Exact arithmetic for numbers near an edge, and validation of kernels, losses and steps before they are computed with.

Numbers near an edge are put on a common integer scale, without rounding. Example: the numbers 0.5, 2 and 0.25 become
the integers 2, 8 and 1, all multiplied by 4.

A kernel is a row-stochastic matrix: row = value that is protected, column = value that was used. Example: a two-state
household that keeps its state with probability 0.9 has the kernel [[0.9, 0.1], [0.1, 0.9]].

Decisions:

* A float stands for the shortest decimal that names it: 0.1 is one tenth, as in the file that contained it. Taken at
  their binary values, 0.3 would be less than three cells of 0.1, and a change of less than one cell could cross two
  edges.
* int64 where all numbers are integers of at most 2^61; Python's unbounded integers otherwise.
* Numbers that are not finite are refused.
* A row of NaN is a state without reliable data. It is left out, never estimated.
* A column that is NaN in every remaining row belongs to such a state and counts as zero. Any other NaN is an error.
* A kernel without any row is an error: no bound exists for it, and 0 would be a promise.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agedp_data.errors import ChainError

Number = int | float | Decimal | Fraction
Whole = NDArray[Any]
"""Array of integers: int64, or Python integers where int64 would overflow."""

_INT64_SAFE = 2**61


def as_written(number: Number) -> Fraction:
    r"""Exact fraction of a number; a float is its shortest decimal.

    Use it for one size or bound that a user wrote, such as delta or a clamp.

    .. math:: 0.1 \mapsto \tfrac{1}{10}, \text{ not } \tfrac{3602879701896397}{2^{55}}

    Args:
        number: finite number, any unit.

    Returns:
        The fraction, same unit.

    Raises:
        ChainError: not a finite number.

    References:
        Steele, White: How to Print Floating-Point Numbers Accurately. PLDI 1990. https://doi.org/10.1145/93542.93559

    >>> as_written(0.1)
    Fraction(1, 10)
    """
    try:
        scalar = number.item() if isinstance(number, np.generic) else number
        return Fraction(str(scalar)) if isinstance(scalar, float) else Fraction(scalar)
    except (ValueError, OverflowError, TypeError):
        raise ChainError("values, edges and sizes are finite numbers") from None


def on_one_scale(*groups: ArrayLike | Number) -> tuple[Whole, ...]:
    r"""Arrays of numbers as integers, all multiplied by the same factor.

    Use it where values, edges and sizes are compared: the comparison is then exact.

    .. math:: n_i = c\, x_i, \qquad c = \operatorname{lcm}(\text{denominators of all } x_i)

    Args:
        groups: arrays or numbers of any shape, finite, all in one unit.

    Returns:
        One integer array per group, same shapes [unit / c].

    Raises:
        ChainError: a number that is not finite.

    References:
        Steele, White: How to Print Floating-Point Numbers Accurately. PLDI 1990. https://doi.org/10.1145/93542.93559

    >>> [group.tolist() for group in on_one_scale([0.5, 2], 0.25)]  # c = 4
    [[2, 8], 1]
    """
    arrays: list[NDArray[Any]] = [np.asarray(group) for group in groups]
    if all(array.dtype.kind in "iu" and _fits_int64(array) for array in arrays):
        return tuple(array.astype(np.int64) for array in arrays)
    exact = [[as_written(number) for number in array.ravel().tolist()] for array in arrays]
    factor = math.lcm(*(number.denominator for numbers in exact for number in numbers))
    return tuple(
        _object_array([number.numerator * (factor // number.denominator) for number in numbers]).reshape(array.shape)
        for numbers, array in zip(exact, arrays, strict=True)
    )


def _fits_int64(array: NDArray[Any]) -> bool:
    return not array.size or (int(array.max()) <= _INT64_SAFE and int(array.min()) >= -_INT64_SAFE)


def _object_array(numbers: list[int]) -> Whole:
    result = np.empty(len(numbers), dtype=object)
    result[:] = numbers
    return result


Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

ROW_SUM_TOLERANCE = 1e-9


def checked_kernel(kernel: ArrayLike) -> tuple[Floats, Mask]:
    r"""Stack of kernels without NaN, with rows that sum to one exactly, and the mask of rows with data.

    Use it before any computation on a transition matrix. Rows without data are returned as zeros.

    .. math:: K_{xj} \ge 0, \qquad \sum_j K_{xj} = 1

    Source: [T] section 3.1 (transition matrices); the treatment of missing rows is this project's.

    Args:
        kernel: shape (..., k, n), probabilities [-]; rows sum to one within 1e-9 or are NaN.

    Returns:
        Kernels of shape (..., k, n) [-] and a mask of shape (..., k), true for rows with data.

    Raises:
        ChainError: not a stack of matrices, a negative entry, a row that does not sum to one within 1e-9, a NaN that is
            not part of a missing row or column, or no row with data.

    References:
        [T] Cao, Yoshikawa, Xiao, Xiong: Quantifying Differential Privacy in Continuous Data Release Under Temporal
        Correlations. IEEE Trans. Knowl. Data Eng. 31(7), 2019. https://doi.org/10.1109/TKDE.2018.2824328

    >>> rows, valid = checked_kernel([[0.5, 0.5], [np.nan, np.nan]])
    >>> rows.tolist(), valid.tolist()
    ([[0.5, 0.5], [0.0, 0.0]], [True, False])
    """
    matrix = np.array(kernel, dtype=np.float64)
    if matrix.ndim < 2 or 0 in matrix.shape[-2:]:
        raise ChainError(f"a kernel is a matrix of probabilities, got an array of shape {matrix.shape}")
    missing: Mask = np.isnan(matrix)
    valid: Mask = ~np.asarray(missing.all(axis=-1))
    if not valid.any(axis=-1).all():
        raise ChainError("a kernel has no row with data, so it bounds nothing; leave that household out by name")
    empty_column: Mask = np.asarray((missing | ~valid[..., None]).all(axis=-2))
    if (missing & valid[..., None] & ~empty_column[..., None, :]).any():
        raise ChainError(
            "a kernel has NaN inside a row; only whole rows, and the columns that go with them, may be NaN"
        )
    matrix[missing | ~valid[..., None]] = 0.0
    row_sum = matrix.sum(axis=-1)
    if (matrix < 0).any() or not (np.abs(row_sum - 1)[valid] <= ROW_SUM_TOLERANCE).all():
        raise ChainError("every row of a kernel must be non-negative and sum to 1 within 1e-9")
    return matrix / np.where(valid, row_sum, 1.0)[..., None], valid


def filled_kernel(kernel: ArrayLike) -> Floats:
    r"""Kernels in which every row without data is replaced by a row with data.

    Use it where a maximum over pairs of rows is taken: a repeated row adds no pair of different rows, so the maximum is
    that of the rows with data.

    .. math:: \max_{x, x'} g(K_x, K_{x'}) \text{ is unchanged, since } g(r, r) = 0

    Source: this project; total variation and leakage of two equal rows are 0.

    Args:
        kernel: shape (..., k, n), probabilities [-]; rows of NaN have no data.

    Returns:
        Shape (..., k, n) [-], without NaN.

    Raises:
        ChainError: as `checked_kernel`.

    References:
        [T] Cao, Yoshikawa, Xiao, Xiong: Quantifying Differential Privacy in Continuous Data Release Under Temporal
        Correlations. IEEE Trans. Knowl. Data Eng. 31(7), 2019. https://doi.org/10.1109/TKDE.2018.2824328

    >>> filled_kernel([[np.nan, np.nan], [0.25, 0.75]]).tolist()
    [[0.25, 0.75], [0.25, 0.75]]
    """
    matrix, valid = checked_kernel(kernel)
    first = valid.argmax(axis=-1)[..., None, None]
    return np.where(valid[..., None], matrix, np.take_along_axis(matrix, first, axis=-2))


def checked_loss(loss: ArrayLike) -> Floats:
    r"""Privacy losses as an array.

    Use it for every loss that a caller passes.

    .. math:: 0 \le \varepsilon \le \infty

    Source: [A] Definition 1; infinity stands for a release without noise.

    Args:
        loss: shape (...), at least 0, infinity allowed [epsilon].

    Returns:
        Shape (...) [epsilon].

    Raises:
        ChainError: a negative loss or NaN.

    References:
        [A] Definition 1. https://doi.org/10.1109/TIT.2023.3340147

    >>> checked_loss([0.5, np.inf]).tolist()
    [0.5, inf]
    """
    losses = np.asarray(loss, dtype=np.float64)
    if not (losses >= 0).all():
        raise ChainError("a loss is a number that is at least 0 (infinity included)")
    return losses


def checked_steps(steps: ArrayLike, *, quantity: str = "steps") -> NDArray[np.int64]:
    r"""Steps or ages as an array of integers.

    Use it for every age, gap or interval that a caller passes. Floats are accepted if they are integers.

    .. math:: t \in \{0, 1, \dots, 2^{62}\}

    Source: [A] section III.

    Args:
        steps: shape (...), integers >= 0 [steps].
        quantity: name of the quantity in the error message.

    Returns:
        Shape (...), int64 [steps].

    Raises:
        ChainError: a number that is negative, too large or not an integer.

    References:
        [A] section III counts time in integer steps. https://doi.org/10.1109/TIT.2023.3340147

    >>> checked_steps([0, 48.0]).tolist()
    [0, 48]
    """
    values = np.asarray(steps)
    if values.size == 0:
        return values.astype(np.int64)
    integral = values.dtype.kind in "iu" or (values.dtype.kind == "f" and bool((values == np.rint(values)).all()))
    if not integral or not ((values >= 0) & (values <= 2**62)).all():
        raise ChainError(f"{quantity} must be whole numbers of steps, at least 0")
    return values.astype(np.int64)


def step_list(steps: ArrayLike, quantity: str) -> NDArray[np.int64]:
    r"""One-dimensional array of steps.

    Use it for ages, gaps and publication times that a caller passes.

    .. math:: (t_1, \dots, t_n), \qquad t_i \in \{0, 1, 2, \dots\}

    Source: [A] section III.

    Args:
        steps: shape (n,), integers >= 0 [steps].
        quantity: name of the quantity in the error message.

    Returns:
        Shape (n,), int64 [steps].

    Raises:
        ChainError: numbers that are negative or not integers, or an array that is not one-dimensional.

    References:
        [A] section III counts time in integer steps. https://doi.org/10.1109/TIT.2023.3340147

    >>> step_list([0, 48.0], "ages").tolist()
    [0, 48]
    """
    values = checked_steps(steps, quantity=quantity)
    if values.ndim != 1:
        raise ChainError(f"{quantity} are a list of whole numbers, got shape {values.shape}")
    return values
