"""The smallest amount of epsilon, in four digits, that is enough for something: what a person would write down."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Final, NamedTuple

_DIGITS: Final = 9000  # from 1.000 to 9.999
_LEAST: Final = -9  # 1000 x 10^-9
_LAST: Final = 11 * _DIGITS  # 100,000: more is a slip of the pen
_GUESSES: Final = 12


class _TriedEpsilon(NamedTuple):
    place: int
    noise: float | None


def least_amount(noise: Callable[[Decimal], float | None], target: float, *, guess: float) -> Decimal | None:
    """Return the smallest four-digit amount whose noise is at most the target; None if none up to 100,000 has it.

    Noise falls, or stays, as the amount grows, and often goes like 1/amount, so that a few tries do; None stands for
    an amount too small for any release. What is returned was tried, and the next smaller one does not do.

    >>> least_amount(lambda amount: 2 / float(amount), 0.3, guess=1.0)
    Decimal('6.667')
    """
    tried_at, low, high = _place(guess), -1, _LAST + 1
    tried: list[_TriedEpsilon] = []
    while high - low > 1:
        latest = _TriedEpsilon(tried_at, noise(amount_at(tried_at)))
        if latest.noise is not None and latest.noise <= target:
            high = tried_at
        elif high > _LAST and tried and _cap_binds(tried[-1], latest):
            return None
        else:
            low = tried_at
        tried.append(latest)
        index = _wanted(tried[-2:], target) if len(tried) < _GUESSES or high > _LAST else (low + high) // 2
        tried_at = min(max(index, low + 1), high - 1)
    return None if high > _LAST else amount_at(high)


def _wanted(tried: list[_TriedEpsilon], target: float) -> int:
    """Return where the target is met if noise is a power of the amount: the last two say which, else 1/amount."""
    place, noise = tried[-1]
    if noise is None or not math.isfinite(noise):
        return place + _DIGITS
    power, before = 1.0, tried[0]
    if before.place != place and before.noise == noise:  # both spend all that a cap permits
        return _place(float(amount_at(place)) / 2)
    if before.noise is not None and math.isfinite(before.noise) and before.noise != noise:
        apart = math.log(float(amount_at(place) / amount_at(before.place)))
        power = max(math.log(before.noise / noise) / apart, 0.1)
    return _place(float(amount_at(place)) * (noise / target) ** (1 / power))


def _cap_binds(before: _TriedEpsilon, now: _TriedEpsilon) -> bool:
    """Tell whether more did not help: a cap decides, whatever the amount."""
    return before.noise is not None and now.noise is not None and now.noise >= before.noise * (1 - 1e-9)


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
