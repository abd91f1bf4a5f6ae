"""Upper bounds rounded to whole 1e-9 (nano-epsilon), stored as the nearest floats."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agedp_data.privacy.kernel import Floats

NANO = 1_000_000_000

# Error of evaluating a leakage in floats. Added before rounding up wherever a bound is not exactly 0.
SLACK = 1e-12


def round_up_nano(values: ArrayLike) -> Floats:
    """Smallest multiple of 1e-9 that is not below each value; infinity stays.

    Args:
        values: shape (...) [any unit].

    Returns:
        Shape (...), the floats nearest to the multiples [unit of `values`].

    >>> round_up_nano([0.1, 0.1000000001, np.inf]).tolist()
    [0.1, 0.100000001, inf]
    """
    value = np.asarray(values, dtype=np.float64)
    with np.errstate(over="ignore"):
        nano = np.rint(value * NANO)
    nano = np.where(nano / NANO < value, nano + 1, nano)
    # Beyond 2^53 a float is coarser than 1e-9 and already whole.
    return np.where(np.abs(nano) < 2**53, nano / NANO, value)


def round_down_nano(values: ArrayLike) -> Floats:
    """Largest multiple of 1e-9 that is not above each value; infinity stays. Shape (...) -> (...).

    >>> round_down_nano([0.1, 0.1000000019]).tolist()
    [0.1, 0.100000001]
    """
    return -round_up_nano(-np.asarray(values, dtype=np.float64))


def round_up_with_slack(values: ArrayLike) -> Floats:
    """Computed upper bounds, rounded up with `SLACK` for the error of the computation; an exact 0 stays 0.

    Use it for every bound that was evaluated in floats before it is stored or compared.

    Args:
        values: shape (...), >= 0 [any unit].

    Returns:
        Shape (...), multiples of 1e-9 not below values + 1e-12 [unit of `values`].

    >>> round_up_with_slack([0.0, 0.1]).tolist()
    [0.0, 0.100000001]
    """
    value = np.asarray(values, dtype=np.float64)
    return round_up_nano(np.where(value > 0, value + SLACK, value))


def to_integers(values: ArrayLike) -> list[int | str]:
    """Values as integers in units of 1e-9, rounded up; "inf" for infinity.

    Args:
        values: shape (m,) [any unit].

    Returns:
        A list of m integers or "inf" [1e-9 of the unit].

    >>> to_integers([0.1, np.inf])
    [100000000, 'inf']
    """
    floats: list[float] = round_up_nano(values).tolist()
    return ["inf" if value == np.inf else _nano_integer(value) for value in floats]


def from_integers(numbers: list[int | str]) -> NDArray[np.float64]:
    """Floats of integers in units of 1e-9; the inverse of `to_integers`.

    Args:
        numbers: m integers or "inf" [1e-9].

    Returns:
        Shape (m,) float64.

    >>> from_integers([100000000, "inf"]).tolist()
    [0.1, inf]
    """
    return np.array([np.inf if number == "inf" else int(number) / NANO for number in numbers], dtype=np.float64)


def _nano_integer(value: float) -> int:
    nearest = round(value * NANO)
    return nearest if nearest / NANO == value else -int(-Fraction(value) * NANO // 1)
