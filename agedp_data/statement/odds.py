"""The factor by which odds may change under a bound, as decimal text.

Example: epsilon 0.5 has the factor 1.65, which is e^0.5 rounded up.
"""

from __future__ import annotations

from decimal import MAX_EMAX, ROUND_CEILING, Context, Decimal

from agedp_data.epsilon import NANO

_FINE = Context(prec=50, Emax=MAX_EMAX)
_LARGE, _TWO_DIGITS = 1000, Context(prec=2, Emax=MAX_EMAX, rounding=ROUND_CEILING)


def odds_factor(loss: int) -> str:
    """Return e^epsilon of a whole loss as decimal text, rounded up: to hundredths, from 1000 on to two digits.

    >>> odds_factor(0), odds_factor(500_000_000), odds_factor(182_500_000_000)
    ('1', '1.65', '1.9e79')
    """
    if loss == 0:
        return "1"
    power = _FINE.next_plus(_FINE.exp(Decimal(loss) / NANO))
    if power < _LARGE:
        return str(power.quantize(Decimal("0.01"), rounding=ROUND_CEILING))
    return f"{_TWO_DIGITS.plus(power):e}".replace("e+", "e")
