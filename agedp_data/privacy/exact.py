"""Numbers on one exact scale: what lies near an edge is never decided by a rounding.

A float stands for the shortest decimal that names it, 0.1 for one tenth, as in the file it was read from. (Taken at
their binary values, 0.3 would lie below three cells of 0.1, and a change of less than a cell could cross two edges.)
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
"""Whole numbers: int64, or Python's own where these would not hold them."""

_SAFE = 2**61


def as_written(number: Number) -> Fraction:
    """Return a number exactly, a float as its shortest decimal.

    >>> as_written(0.1)
    Fraction(1, 10)

    Raises:
        ChainError: not a finite number.
    """
    try:
        plain = number.item() if isinstance(number, np.generic) else number
        return Fraction(str(plain)) if isinstance(plain, float) else Fraction(plain)
    except (ValueError, OverflowError, TypeError):
        raise ChainError("values, edges and sizes are finite numbers") from None


def on_one_scale(*groups: ArrayLike | Number) -> tuple[Whole, ...]:
    """Return arrays of numbers as whole numbers, all multiplied by the same factor.

    Raises:
        ChainError: a number that is not finite.

    >>> [group.tolist() for group in on_one_scale([0.5, 2], 0.25)]
    [[2, 8], 1]
    """
    arrays: list[NDArray[Any]] = [np.asarray(group) for group in groups]
    if all(array.dtype.kind in "iu" and _small(array) for array in arrays):
        return tuple(array.astype(np.int64) for array in arrays)
    exact = [[as_written(number) for number in array.ravel().tolist()] for array in arrays]
    factor = math.lcm(*(number.denominator for numbers in exact for number in numbers))
    return tuple(
        _objects([number.numerator * (factor // number.denominator) for number in numbers]).reshape(array.shape)
        for numbers, array in zip(exact, arrays, strict=True)
    )


def _small(array: NDArray[Any]) -> bool:
    return not array.size or (int(array.max()) <= _SAFE and int(array.min()) >= -_SAFE)


def _objects(numbers: list[int]) -> Whole:
    found = np.empty(len(numbers), dtype=object)
    found[:] = numbers
    return found
