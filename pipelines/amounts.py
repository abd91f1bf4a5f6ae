"""The smallest amount of epsilon, in four digits, that is enough for something: what a person would write down."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Final

_DIGITS: Final = 9000  # from 1.000 to 9.999
_LEAST: Final = -9  # 1000 x 10^-9
_LAST: Final = 11 * _DIGITS  # 100,000: more is a slip of the pen
_GUESSES: Final = 12


def least_amount(noise: Callable[[Decimal], float | None], target: float, *, guess: float) -> Decimal | None:
    """Return the smallest four-digit amount whose noise is at most the target; None if none up to 100,000 has it.

    Noise falls, or stays, as the amount grows, and often goes like 1/amount, so that a few tries do; None stands for
    an amount too small for any release. What is returned was tried, and the next smaller one does not do.

    >>> least_amount(lambda amount: 2 / float(amount), 0.3, guess=1.0)
    Decimal('6.667')
    """
    low, high, at = -1, _LAST + 1, _place(guess)
    before: tuple[int, float] | None = None
    tries = 0
    while high - low > 1:
        tries += 1
        found = noise(amount_at(at))
        if found is not None and found <= target:
            high = at
        else:
            if found is not None and high > _LAST and before is not None and _caps_bind(before, (at, found)):
                return None
            low, before = at, (at, found) if found is not None else None
        at = _next(at, found, target, (low, high)) if tries < _GUESSES or high > _LAST else (low + high) // 2
    return amount_at(high) if high <= _LAST else None


def _next(at: int, found: float | None, target: float, between: tuple[int, int]) -> int:
    """Return where to try next, strictly between the two: where noise like 1/amount would meet the target."""
    low, high = between
    wanted = at + _DIGITS if found is None else _place(float(amount_at(at)) * found / target)
    return min(max(wanted, low + 1), high - 1)


def _caps_bind(before: tuple[int, float], now: tuple[int, float]) -> bool:
    """Tell whether more did not help: a cap decides, whatever the amount."""
    return now[0] > before[0] and now[1] >= before[1] * (1 - 1e-9)


def amount_at(place: int) -> Decimal:
    """Return the amount at a place of the grid, 1000 x 10^-9 at 0.

    >>> amount_at(0), amount_at(9001)
    (Decimal('0.000001000'), Decimal('0.00001001'))
    """
    decade, digits = divmod(place, _DIGITS)
    return Decimal(1000 + digits).scaleb(_LEAST + decade)


def _place(amount: float) -> int:
    """Return the place of the smallest amount that is not below this one, as near as floats tell, within the grid."""
    if not amount > 1e-6:
        return 0
    if amount >= 1e5:
        return _LAST
    exponent = Decimal(amount).adjusted() - 3
    digits = -int(-Decimal(amount).scaleb(-exponent) // 1)
    return min(_LAST, (exponent - _LEAST) * _DIGITS + digits - 1000)
