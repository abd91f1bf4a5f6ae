"""A way in which a notion could keep an amount for the people of a run file: what `agedp plan` sets side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal

from agedp_data.notions.parameters import SMALLEST_EPSILON

Keys = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Alternative:
    """One rule of a notion, `method` its name in few words.

    `keys` returns what [promise] would have to say, beside the notion, for a figure of at most so much epsilon; caps
    and age come from the run file unless it names them. `figure` is the figure that is kept, "" for the first one that
    the promise bounds besides the day and the total. `lacking` says why there is no such promise for this run file.
    """

    method: str
    keys: Callable[[Decimal], Keys]
    figure: str = ""
    lacking: str = ""


def unknown(lacking: str) -> Alternative:
    """Return what stands for a notion whose parameters nobody named, and why."""
    return Alternative("", amount_in(""), lacking=lacking)


def amount_in(key: str, **others: object) -> Callable[[Decimal], Keys]:
    """Return the keys of a promise that takes its amount in one of them.

    >>> amount_in("epsilon_per_window", window_days=7)(Decimal(2))
    {'window_days': 7, 'epsilon_per_window': Decimal('2')}
    """
    return lambda amount: {**others, key: amount}


def part(amount: Decimal, days: int) -> Decimal:
    """Return one day's part of an amount, in whole 1e-9 epsilon, rounded down.

    >>> part(Decimal(1), 3)
    Decimal('0.333333333')
    """
    return (amount / days).quantize(SMALLEST_EPSILON, ROUND_FLOOR)
