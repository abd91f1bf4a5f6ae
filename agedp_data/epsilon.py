"""Privacy losses as integers in nano-epsilon, 1e-9 of epsilon: budgets round down, recorded losses round up.

Integer arithmetic makes sums of recorded losses exact and independent of their order. A float counts at its exact
binary value, a `Decimal` (as read from the run file) at its written value. A NaN or an infinity raises the exception
of `Fraction`: ValueError or OverflowError.

Example: epsilon 0.5 is 500,000,000 nano-epsilon.

>>> floor_nano(Decimal("0.5")), ceil_nano(1 / 3), format_epsilon(500_000_000)
(500000000, 333333334, '0.5')
"""

from __future__ import annotations

import math
from decimal import MAX_EMAX, ROUND_CEILING, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from numbers import Integral

NANO = 10**9

EpsilonLike = int | float | Decimal | Fraction


def floor_nano(epsilon: EpsilonLike) -> int:
    r"""Return a budget in nano-epsilon, rounded down; use it for losses that may still be spent.

    .. math:: n = \lfloor 10^9 \varepsilon \rfloor

    Source: composition adds losses ([DMNS], sequential composition), so a budget must not gain by rounding.

    Args:
        epsilon: privacy loss, any sign [epsilon]; a float counts at its exact binary value.

    Returns:
        Integer, at most 1e9 `epsilon` [nano-epsilon].

    Raises:
        ValueError: a NaN.
        OverflowError: an infinity.

    References:
        [DMNS] Dwork, McSherry, Nissim, Smith: Calibrating Noise to Sensitivity in Private Data Analysis. TCC 2006.
        https://doi.org/10.1007/11681878_14

    >>> floor_nano(Fraction(2, 3)), floor_nano(0.25)
    (666666666, 250000000)
    """
    if isinstance(epsilon, Decimal):
        return _floor_of_decimal(epsilon)
    numerator, denominator = _exact(epsilon).as_integer_ratio()
    return numerator * NANO // denominator


@lru_cache(maxsize=2**10)
def _floor_of_decimal(epsilon: Decimal) -> int:
    """Return the budget of a key of a run file, which is asked for every day."""
    numerator, denominator = epsilon.as_integer_ratio()
    return numerator * NANO // denominator


def ceil_nano(epsilon: EpsilonLike) -> int:
    r"""Return a spent loss in nano-epsilon, rounded up; use it for losses that are recorded or published.

    .. math:: n = \lceil 10^9 \varepsilon \rceil

    Source: composition adds losses ([DMNS], sequential composition), so a recorded loss must not shrink by rounding.

    Args:
        epsilon: privacy loss, any sign [epsilon]; a float counts at its exact binary value.

    Returns:
        Integer, at least 1e9 `epsilon` [nano-epsilon].

    Raises:
        ValueError: a NaN.
        OverflowError: an infinity.

    References:
        [DMNS] Dwork, McSherry, Nissim, Smith: Calibrating Noise to Sensitivity in Private Data Analysis. TCC 2006.
        https://doi.org/10.1007/11681878_14

    >>> ceil_nano(Fraction(2, 3)), ceil_nano(0.25)
    (666666667, 250000000)
    """
    numerator, denominator = _exact(epsilon).as_integer_ratio()
    return -(-numerator * NANO // denominator)


def round_nano(epsilon: float | Decimal) -> int:
    r"""Return the nearest integer of nano-epsilon; use it only to read back a loss that was written as a number.

    .. math:: n = \mathrm{round}(10^9 \varepsilon)

    A written number was an integer of nano-epsilon before, so rounding to the nearest recovers it; never use it for a
    budget (`floor_nano`) or a new loss (`ceil_nano`).

    Args:
        epsilon: privacy loss as it was written [epsilon].

    Returns:
        Nearest integer [nano-epsilon].

    Raises:
        ValueError: a NaN.
        OverflowError: an infinity.

    >>> round_nano(0.1 + 0.2)
    300000000
    """
    return round(epsilon * NANO)


def format_epsilon(nano_epsilon: int) -> str:
    """Return a loss as exact decimal text, for messages, statements and JSON.

    Args:
        nano_epsilon: privacy loss, any sign [nano-epsilon].

    Returns:
        Decimal digits without an exponent and without trailing zeros [epsilon].

    >>> format_epsilon(1), format_epsilon(182_500_000_000), format_epsilon(0)
    ('0.000000001', '182.5', '0')
    """
    integer_part, fraction_part = divmod(abs(nano_epsilon), NANO)
    digits = f"{fraction_part:09d}".rstrip("0")
    return f"{'-' if nano_epsilon < 0 else ''}{integer_part}{'.' + digits if digits else ''}"


def exact_text(amount: Decimal) -> str:
    """Return a number as text, one form for every way of writing it.

    >>> exact_text(Decimal("0.50")), exact_text(Decimal("2E+2")), exact_text(Decimal(0))
    ('0.5', '200', '0')
    """
    text = f"{amount:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def rounded_up(number: Decimal | float, digits: int = 3) -> str:
    """Return a number above 0 as short text, never below it.

    Args:
        number: a `Decimal` counts exactly, a float with its first twelve digits, so that 0.1 + 0.2 is 0.3.
        digits: significant digits.

    >>> rounded_up(Decimal("0.100000001")), rounded_up(0.1 + 0.2), rounded_up(12345.0), rounded_up(9.61, 2)
    ('0.101', '0.3', '12400', '9.7')
    """
    exact = number if isinstance(number, Decimal) else Decimal(f"{number:.12g}")
    return exact_text(Context(prec=digits, Emax=MAX_EMAX, rounding=ROUND_CEILING).plus(exact))


def format_delta(delta: Decimal) -> str:
    """Return a delta as short text, for names and sentences; a power of ten with its exponent.

    Args:
        delta: probability above 0 [-].

    Returns:
        Its digits and its exponent, the same text for every way of writing it.

    >>> format_delta(Decimal("0.000001")), format_delta(Decimal("2.50e-7")), format_delta(Decimal("0.01"))
    ('1e-6', '2.5e-7', '1e-2')
    """
    exponent = delta.adjusted()
    digits = f"{delta.scaleb(-exponent).normalize():f}"
    return f"{digits}e{exponent}"


def finite_or_none(value: float) -> float | None:
    """Return a number as JSON has it: an infinite one is null."""
    return value if math.isfinite(value) else None


def to_float(nano_epsilon: int) -> float:
    """Return a loss as the nearest float; use it only for formulas that round their own result up.

    Args:
        nano_epsilon: privacy loss [nano-epsilon].

    Returns:
        The float nearest to 1e-9 `nano_epsilon` [epsilon].

    >>> to_float(500_000_000)
    0.5
    """
    return nano_epsilon / NANO


def _exact(epsilon: EpsilonLike) -> Fraction:
    # int() first: a Fraction keeps a numpy integer as it is, and products of those wrap around at 64 bits.
    return Fraction(int(epsilon) if isinstance(epsilon, Integral) else epsilon)
