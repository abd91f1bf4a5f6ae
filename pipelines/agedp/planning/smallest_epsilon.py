"""The smallest epsilon of a promise, in four digits, whose noise meets a target.

Noise decreases, or stays, as epsilon grows, and often is proportional to 1/epsilon: a few evaluations find it on the
grid of the numbers that a person would write down.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Final, NamedTuple

_DIGITS: Final = 9000  # from 1.000 to 9.999
_FIRST_EXPONENT: Final = -9  # 1000 x 10^-9
_LAST: Final = 11 * _DIGITS  # 100,000: more is a typing error
_MAX_EXTRAPOLATIONS: Final = 12


class _TriedEpsilon(NamedTuple):
    grid_index: int
    noise: float | None


def smallest_epsilon(noise: Callable[[Decimal], float | None], target: float, *, guess: float) -> Decimal | None:
    """Return the smallest four-digit epsilon whose noise is at most the target; None if none up to 100,000 has it.

    The result was evaluated, and the next smaller epsilon does not meet the target.

    Args:
        noise: noise at an epsilon; it does not increase with epsilon; None if epsilon is too small for a release.
        target: largest noise that is accepted.
        guess: epsilon at which the search begins.

    >>> smallest_epsilon(lambda epsilon: 2 / float(epsilon), 0.3, guess=1.0)
    Decimal('6.667')
    """
    tried_index, low, high = _grid_index(guess), -1, _LAST + 1
    tried: list[_TriedEpsilon] = []
    while high - low > 1:
        latest = _TriedEpsilon(tried_index, noise(epsilon_at(tried_index)))
        if latest.noise is not None and latest.noise <= target:
            high = tried_index
        elif high > _LAST and tried and _cap_binds(tried[-1], latest):
            return None
        else:
            low = tried_index
        tried.append(latest)
        extrapolate = len(tried) < _MAX_EXTRAPOLATIONS or high > _LAST
        candidate = _extrapolated_index(tried[-2:], target) if extrapolate else (low + high) // 2
        tried_index = min(max(candidate, low + 1), high - 1)
    return None if high > _LAST else epsilon_at(high)


def _extrapolated_index(tried: list[_TriedEpsilon], target: float) -> int:
    """Return where the target is met if noise is a power of epsilon, fitted to the last two, else 1/amount."""
    index, noise = tried[-1]
    if noise is None or not math.isfinite(noise):
        return index + _DIGITS
    power, before = 1.0, tried[0]
    if before.grid_index != index and before.noise == noise:  # both spend all that a cap permits
        return _grid_index(float(epsilon_at(index)) / 2)
    if before.noise is not None and math.isfinite(before.noise) and before.noise != noise:
        apart = math.log(float(epsilon_at(index) / epsilon_at(before.grid_index)))
        power = max(math.log(before.noise / noise) / apart, 0.1)
    return _grid_index(float(epsilon_at(index)) * (noise / target) ** (1 / power))


def _cap_binds(before: _TriedEpsilon, now: _TriedEpsilon) -> bool:
    """Return whether a larger epsilon did not lower the noise: a cap decides."""
    return before.noise is not None and now.noise is not None and now.noise >= before.noise * (1 - 1e-9)


def epsilon_at(index: int) -> Decimal:
    """Return epsilon at an index of the grid, 1000 x 10^-9 at 0.

    >>> epsilon_at(0), epsilon_at(9001)
    (Decimal('0.000001000'), Decimal('0.00001001'))
    """
    decade, digits = divmod(index, _DIGITS)
    return Decimal(1000 + digits).scaleb(_FIRST_EXPONENT + decade)


def _grid_index(epsilon: float) -> int:
    """Return the index of the smallest epsilon of the grid that is not below this one, to float accuracy."""
    if not epsilon > 1e-6:
        return 0
    if epsilon >= 1e5:
        return _LAST
    exponent = Decimal(epsilon).adjusted() - 3
    digits = -int(-Decimal(epsilon).scaleb(-exponent) // 1)
    return min(_LAST, (exponent - _FIRST_EXPONENT) * _DIGITS + digits - 1000)
