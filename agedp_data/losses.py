"""Losses as whole numbers of 1e-9 epsilon: granted budgets round down, recorded losses round up.

Arithmetic on recorded losses is integer arithmetic: sums are exact, order-free and never drift. A float is
taken at its exact binary value, a `Decimal` (how the run file is read) at its written one; what is no number
(a NaN, an infinity) raises as `Fraction` does.

>>> floor_nano(Decimal("0.5")), ceil_nano(1 / 3), format_epsilon(500_000_000)
(500000000, 333333334, '0.5')
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from numbers import Integral

NANO = 10**9

Amount = int | float | Decimal | Fraction


def floor_nano(amount: Amount) -> int:
    """Return `amount` of epsilon in whole 1e-9, rounded down."""
    exact = _exact(amount) * NANO
    return exact.numerator // exact.denominator


def ceil_nano(amount: Amount) -> int:
    """Return `amount` of epsilon in whole 1e-9, rounded up."""
    return -floor_nano(-_exact(amount))


def round_nano(amount: float | Decimal) -> int:
    """Return the whole 1e-9 that were told as a number.

    >>> round_nano(0.1 + 0.2)
    300000000
    """
    return round(amount * NANO)


def format_epsilon(loss: int) -> str:
    """Return a loss as exact decimal text.

    >>> format_epsilon(1), format_epsilon(182_500_000_000), format_epsilon(0)
    ('0.000000001', '182.5', '0')
    """
    whole, rest = divmod(abs(loss), NANO)
    digits = f"{rest:09d}".rstrip("0")
    return f"{'-' if loss < 0 else ''}{whole}{'.' + digits if digits else ''}"


def to_float(loss: int) -> float:
    """Return a loss as the float nearest to it, for formulas that round their own result up."""
    return loss / NANO


def _exact(amount: Amount) -> Fraction:
    # int() first: a Fraction keeps a numpy integer as it is, and products of those wrap around at 64 bits.
    return Fraction(int(amount) if isinstance(amount, Integral) else amount)
