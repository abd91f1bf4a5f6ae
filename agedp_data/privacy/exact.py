"""Exact arithmetic for numbers near an edge: common integer scale, no rounding.

A float stands for the shortest decimal that names it: 0.1 is one tenth, as in the file that contained it. Taken at
their binary values, 0.3 would be less than three cells of 0.1, and a change of less than one cell could cross two
edges. Example: the numbers 0.5, 2 and 0.25 become the integers 2, 8 and 1, all multiplied by 4.

Decisions:

* int64 where all numbers are integers of at most 2^61; Python's unbounded integers otherwise.
* Numbers that are not finite are refused.
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
