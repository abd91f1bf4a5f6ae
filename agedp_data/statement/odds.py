"""The factor by which odds may change under a bound, as decimal text: exact for the table, short for people.

Example: epsilon 0.5 has the factor 1.65, which is e^0.5 rounded up.
"""

from __future__ import annotations

from decimal import MAX_EMAX, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Final

from agedp_data.epsilon import NANO, round_nano

_FINE = Context(prec=50, Emax=MAX_EMAX)
_LARGE, _TWO_DIGITS = 1000, Context(prec=2, Emax=MAX_EMAX, rounding=ROUND_CEILING)
_THREE_DIGITS = Context(prec=3, Emax=MAX_EMAX, rounding=ROUND_CEILING)
INFINITE: Final = "infinite"
"""Epsilon of a bound without a limit."""
_THREE_DIGITS_DOWN = Context(prec=3, rounding=ROUND_FLOOR)
_USELESS, _HUGE = 10**6, 10**12
"""A factor that protects nothing in practice, and one of which only the power of ten is of interest."""


def odds_factor(loss: int) -> str:
    """Return e^epsilon of a whole loss as decimal text, rounded up: to hundredths, from 1000 on to two digits.

    >>> odds_factor(0), odds_factor(500_000_000), odds_factor(182_500_000_000)
    ('1', '1.65', '1.9e79')
    """
    if loss == 0:
        return "1"
    power = _power(loss)
    if power < _LARGE:
        return str(power.quantize(Decimal("0.01"), rounding=ROUND_CEILING))
    return f"{_TWO_DIGITS.plus(power):e}".replace("e+", "e")


def short_factor(epsilon: str) -> str:
    """Return e^epsilon for people, rounded up to three digits; of a huge factor a power of ten.

    >>> short_factor("0.5"), short_factor("2.5"), short_factor("10"), short_factor("20"), short_factor("182.5")
    ('1.65', '12.2', '22,100', '486 million', '10^80')
    """
    power = _power(round_nano(Decimal(epsilon)))
    if power >= _HUGE:
        return f"10^{power.adjusted() + 1}"
    if power >= _USELESS:
        return f"{_THREE_DIGITS.plus(power.scaleb(-6)).normalize():,f} million"
    return f"{_THREE_DIGITS.plus(power).normalize():,f}"


def is_useless_factor(epsilon: str) -> bool:
    """Return whether a factor is too large, or missing, to protect anything in practice.

    >>> is_useless_factor("2.5"), is_useless_factor("14"), is_useless_factor("infinite")
    (False, True, True)
    """
    return epsilon == INFINITE or _power(round_nano(Decimal(epsilon))) >= _USELESS


def short_number(value: str) -> str:
    """Return a decimal number for people, rounded up to three digits; text that is no number as it is.

    >>> short_number("182.5"), short_number("0.100000001"), short_number("0.5"), short_number("infinite")
    ('183', '0.101', '0.5', 'infinite')
    """
    return _three_digits(value, _THREE_DIGITS)


def short_rest(value: str) -> str:
    """Return what remains of a budget for people, rounded down to three digits; text that is no number as it is.

    >>> short_rest("0.620323604"), short_rest("unlimited")
    ('0.62', 'unlimited')
    """
    return _three_digits(value, _THREE_DIGITS_DOWN)


def _three_digits(value: str, context: Context) -> str:
    return f"{context.plus(Decimal(value)).normalize():f}" if value[:1].isdecimal() else value


def _power(loss: int) -> Decimal:
    return _FINE.next_plus(_FINE.exp(Decimal(loss) / NANO)) if loss else Decimal(1)
