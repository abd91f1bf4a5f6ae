"""Numbers as people read them: three significant digits. `--json`, ledger, statement and tables have all digits."""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Final

from agedp_data.epsilon import NANO
from agedp_data.parameters import exact_text

_SHORT: Final = 4
"""A number with so few digits, as users write them, is shown as it is."""
_DIGITS: Final = 3
_UP: Final = Context(prec=_DIGITS, rounding=ROUND_CEILING)
_DOWN: Final = Context(prec=_DIGITS, rounding=ROUND_FLOOR)


def format_loss(nano_epsilon: int) -> str:
    """Return a privacy loss in three digits, never below the loss; a short one, such as 182.5, exactly.

    >>> format_loss(16_923_347_616), format_loss(182_500_000_000), format_loss(0)
    ('17', '182.5', '0')
    """
    return format_bound(Decimal(nano_epsilon) / NANO)


def format_bound(epsilon: Decimal | str, *, limit: str | None = None) -> str:
    """Return a bound in three digits, never below the bound; if that exceeds its limit, the exact number.

    Args:
        epsilon: exact number; a text that is none, such as "infinite", is returned unchanged.
        limit: what the bound does not exceed; "", "unlimited" or None for none.

    >>> format_bound("10.748499677"), format_bound("1.003", limit="1.004"), format_bound("infinite")
    ('10.8', '1.003', 'infinite')
    """
    try:
        exact = Decimal(epsilon)
    except ArithmeticError:
        return str(epsilon)
    if not exact.is_finite() or len(exact.normalize().as_tuple().digits) <= _SHORT:
        return exact_text(exact) if exact.is_finite() else str(epsilon)
    rounded = _UP.create_decimal(exact)
    is_capped = limit not in (None, "", "unlimited") and rounded > Decimal(str(limit))
    return exact_text(exact if is_capped else rounded)


def format_budget(nano_epsilon: int) -> str:
    """Return a loss that may be spent in three digits, rounded down, so that it can be written into a run file.

    >>> format_budget(123_456_789)
    '0.123'
    """
    return exact_text(_DOWN.create_decimal(Decimal(nano_epsilon) / NANO))


def finite_or_none(value: float) -> float | None:
    """Return a number as JSON has it: an infinite one is null."""
    return value if math.isfinite(value) else None


def count_text(number: int, noun: str) -> str:
    """Return a number with its noun.

    >>> count_text(1, "day"), count_text(1200, "day")
    ('1 day', '1,200 days')
    """
    return f"{number:,} {noun}{'s' * (number != 1)}"


def format_column(values: Iterable[float]) -> list[str]:
    """Return numbers of one column with the same decimals, three digits for the largest of them.

    >>> format_column([9.5454, 12.3456]), format_column([0.04567, -0.001])
    (['9.5', '12.3'], ['0.0457', '-0.0010'])
    """
    numbers = list(values)
    largest = max(map(abs, numbers), default=0.0)
    decimals = max(0, _DIGITS - 1 - math.floor(math.log10(largest))) if largest else 0
    return [f"{number:.{decimals}f}" for number in numbers]
