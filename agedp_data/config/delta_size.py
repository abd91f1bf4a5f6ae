"""The size of a promised delta against the number of households, and what a delta needs to apply to.

A bound with delta lets every set of results be more probable by delta than its factor says, for each household alone.
Of n households, n being `min_households`, one in n might therefore be revealed in full if delta were 1/n.

Decisions:

* A delta above 1/n is refused whenever a run file is read; between 1/n^2 and 1/n it is a warning of plan, run and
  statement. After `min_households` was raised, delta must be lowered as well where it exceeds the new 1/n.
* A delta that no bound of the promise has is refused: it would read as a promise and be none.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Final

from agedp_data.epsilon import format_delta
from agedp_data.notions.cap_bounds import own_bound_name
from agedp_data.notions.notion import Promise
from agedp_data.notions.notion_text import name_at_delta

_TWO_DIGITS_DOWN: Final = Context(prec=2, rounding=ROUND_FLOOR)


def delta_problems(promise: Promise, min_households: int) -> Iterator[str]:
    """Yield what is wrong with the delta of a promise to so many households; nothing without a delta.

    Source: definition of (epsilon, delta)-differential privacy; the rules are those of the module.

    Args:
        promise: the promise with its caps.
        min_households: fewest households of a released day.

    Yields:
        The problem and its remedy, following "[promise] delta = 0.01: ".
    """
    if promise.delta is None:
        return
    if Fraction(promise.delta) * min_households > 1:
        yield (
            f"exceeds 1/min_households = 1/{min_households}: the bounds would permit to reveal one of these households "
            f"in full. Write 1/{min_households}^2 = {_rounded(min_households)} or less"
        )
    if not applies_to_a_bound(promise):
        yield (
            'applies to no bound: epsilon_total = "unlimited", and a day\'s epsilon has no delta. Write a number in '
            "epsilon_total, or remove delta"
        )


def applies_to_a_bound(promise: Promise) -> bool:
    """Return whether the delta of a promise applies to one of its bounds; True without a delta.

    Source: data structure, without a formula.

    Args:
        promise: the promise with its caps.
    """
    return promise.total_cap is not None or own_bound_name(promise.limits).endswith(name_at_delta("", promise.delta))


def is_large_delta(delta: Decimal | Fraction, min_households: int) -> bool:
    """Return whether a delta deserves a warning: it exceeds 1/n^2 for n households.

    Source: convention; of n households a mechanism with delta may reveal n delta on average.

    Args:
        delta: probability [-].
        min_households: fewest households n of a released day.

    >>> is_large_delta(Decimal("1e-6"), 1000), is_large_delta(Decimal("1e-6"), 1001)
    (False, True)
    """
    return Fraction(delta) * min_households**2 > 1


def delta_warning(promise: Promise, min_households: int) -> str:
    """Return one line about a delta above 1/n^2, "" for a smaller one or none.

    Source: as `is_large_delta`.

    Args:
        promise: the promise.
        min_households: fewest households n of a released day.
    """
    if promise.delta is None or not is_large_delta(promise.delta, min_households):
        return ""
    return (
        f"warning: [promise] delta = {format_delta(promise.delta)} is above 1/min_households^2 = "
        f"{_rounded(min_households)}: every set of results may be more probable by delta than its factor says, for "
        f"each of {min_households} households. Lower delta"
    )


def _rounded(min_households: int) -> str:
    """Return 1/n^2 in two digits, rounded down."""
    return format_delta(_TWO_DIGITS_DOWN.divide(Decimal(1), Decimal(min_households**2)))
