"""How a notion could keep a bound for a run file: what `agedp plan --notions` compares.

A notion sees a run file through a `Comparison` alone, so that notions know nothing of the run file's form.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import ROUND_FLOOR, Decimal
from typing import Protocol

from agedp_data.notions.publication import Publication
from agedp_data.parameters import SMALLEST_EPSILON, Method, Unlimited

Keys = Mapping[str, object]


class CommonKeys(Protocol):
    """The keys of [promise] that every notion has."""

    @property
    def age_days(self) -> int | None:
        """Age of a day at its release [days]."""

    @property
    def max_day_epsilon(self) -> Decimal:
        """Cap of a day [epsilon]."""

    @property
    def epsilon_total(self) -> Decimal | Unlimited:
        """Cap of the sum over all days [epsilon]."""

    @property
    def delta(self) -> Decimal | None:
        """Probability in the bounds over several days [-]; None without one."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The settings of a run file from which a notion makes its alternatives and accountants.

    `promise` is the promise of the run file, `days` the length of its period (None without a last day), `methods` those
    that its model allows, the sharpest first (none without a model), `publication` what is published. The rest is
    [compare]: a window [days], two discount rates, and sizes of change [kWh].
    """

    promise: CommonKeys
    days: int | None = None
    methods: tuple[Method, ...] = ()
    publication: Publication = field(default_factory=Publication, hash=False)
    window_days: int | None = None
    exponential: Decimal | None = None
    hyperbolic: Decimal | None = None
    delta_kwh: tuple[Decimal, ...] = ()


@dataclass(frozen=True, slots=True)
class Alternative:
    """One rule of a notion; `method` is its name in few words.

    `keys` returns the keys of [promise], beside the notion, for a bound of so much epsilon; caps and age come from the
    run file unless they are among the keys. `bound_name` is the bound that is kept, "" for the first one that
    the promise limits besides the day and the total. `reason` tells why no such promise exists for this run file.
    """

    method: str
    keys: Callable[[Decimal], Keys]
    bound_name: str = ""
    reason: str = ""


def unavailable(reason: str) -> Alternative:
    """Return the alternative of a notion without parameters for this run file, with the reason.

    Source: data structure, without a formula.

    Args:
        reason: why the notion has no parameters for this run file.

    Returns:
        An alternative without a method.
    """
    return Alternative("", promise_keys(""), reason=reason)


def promise_keys(key: str, **keys: object) -> Callable[[Decimal], Keys]:
    """Return the keys of a promise that takes its epsilon in one of them.

    Source: data structure, without a formula.

    Args:
        key: key of [promise] that takes epsilon.
        **keys: the other keys of the promise.

    Returns:
        A function from an epsilon to keys of [promise].

    >>> promise_keys("epsilon_per_window", window_days=7)(Decimal(2))
    {'window_days': 7, 'epsilon_per_window': Decimal('2')}
    """
    return lambda epsilon: {**keys, key: epsilon}


def part(epsilon: Decimal, days: int) -> Decimal:
    r"""Return the share of one day of a loss [epsilon], rounded down to nano-epsilon.

    .. math:: 10^{-9} \lfloor 10^9 \varepsilon / n \rfloor

    Source: sequential composition, [A] Proposition 2: n equal shares add up to at most the whole.

    Args:
        epsilon: loss of all days [epsilon].
        days: number of days n.

    Returns:
        Loss of one day [epsilon].

    References:
        [A] https://doi.org/10.1109/TIT.2023.3340147

    >>> part(Decimal(1), 3)
    Decimal('0.333333333')
    """
    return (epsilon / days).quantize(SMALLEST_EPSILON, ROUND_FLOOR)
