"""Discounted sums of losses in nano-epsilon, exact: weights are integers in units of 2^-64, rounded up.

A sum is largest on a day with a loss, since weights do not increase with age. So a promise holds for ever if it holds
on these days, and a further loss x on day n is permitted if x w(t-n) fits on every such day t from n on.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import MAX_EMAX, MAX_PREC, Context, Decimal
from fractions import Fraction
from typing import Literal

DiscountName = Literal["exponential", "hyperbolic"]

_BITS = 64
_FINE_BITS = 192  # of the running power, so that its roundings never add up to a unit of a weight
_OLDEST = 40_000
"""Days; what is older counts as if it were this old, which is never less."""

_FEW = 16
_EXACT = Context(prec=MAX_PREC, Emax=MAX_EMAX)


class DiscountWeights:
    r"""Weights [-] of losses by their age j [days], exact to 2^-64 and rounded up.

    .. math:: a(j) = \alpha^j \text{ ("exponential")} \qquad a(j) = \frac{1}{1 + \beta j} \text{ ("hyperbolic")}

    Source: [F] Definitions 9 and 13. Erratum: after Definition 13 the factor is 1/(1 + beta (t-k)).

    References:
        [F] Farokhi: Temporally Discounted Differential Privacy for Evolving Datasets on an Infinite Horizon. ICCPS
        2020. https://doi.org/10.48550/arXiv.1908.03995

    >>> weights = DiscountWeights("exponential", Decimal("0.5"))
    >>> weighted_sum_to_nano(weights.total({1: 8, 2: 2}, 3))  # 8/4 + 2/2
    3
    """

    def __init__(self, discount: DiscountName, rate: Decimal) -> None:
        self._discount = discount
        self._rate = Fraction(rate)
        self._power = 1 << _FINE_BITS
        self._weights: list[int] = []

    def weight(self, age: int) -> int:
        """Return the weight at an age in days, in 2^-64, rounded up.

        >>> weights = DiscountWeights("exponential", Decimal("0.5")), DiscountWeights("hyperbolic", Decimal(3))
        >>> [weight.weight(1) / 2**64 for weight in weights]
        [0.5, 0.25]
        """
        age = min(age, _OLDEST)
        while len(self._weights) <= age:
            self._weights.append(self._next())
        return self._weights[age]

    def _next(self) -> int:
        if self._discount == "hyperbolic":
            return _up(Fraction(1 << _BITS) / (1 + self._rate * len(self._weights)))
        weight = -(-self._power >> (_FINE_BITS - _BITS))
        self._power = _up(self._power * self._rate)
        return weight

    def total(self, losses: Mapping[int, int], day: int) -> int:
        """Return the discounted sum on a day of losses by day number, in 2^-64."""
        oldest = day - min(losses, default=day)
        self.weight(max(oldest, 0))
        weights = self._weights
        if oldest <= _OLDEST:
            return sum([loss * weights[day - loss_day] for loss_day, loss in losses.items() if loss_day <= day])
        earlier = ((day - loss_day, loss) for loss_day, loss in losses.items() if loss_day <= day)
        return sum([loss * weights[min(age, _OLDEST)] for age, loss in earlier])

    def largest(self, losses: Mapping[int, int], *, since: int = 0) -> int:
        """Return the largest discounted sum on any day from `since` on, whole losses, rounded up.

        >>> DiscountWeights("exponential", Decimal("0.5")).largest({1: 8, 2: 2, 3: 7})  # 8, 6, 10
        10
        """
        days = [day for day in losses if day >= since]
        if len(days) > _FEW and len(days) * len(losses) > 20 * (max(losses) - min(losses)):
            sums = self._everywhere(losses)
            return weighted_sum_to_nano(max(sums[day] for day in days))
        return weighted_sum_to_nano(max((self.total(losses, day) for day in days), default=0))

    def available(self, losses: Mapping[int, int], day: int, bound: int) -> int:
        """Largest further loss on a day that keeps the discounted sum within `bound` on every day [nano-epsilon].

        It is below 0 if the sum exceeds the bound already.

        >>> DiscountWeights("exponential", Decimal("0.5")).available({1: 8}, 2, 10)  # 8 counts as 4 on day 2
        6
        """
        days = [day, *(loss_day for loss_day in losses if loss_day > day)]
        return min(
            ((bound << _BITS) - self.total(losses, later_day)) // self.weight(later_day - day) for later_day in days
        )

    def _everywhere(self, losses: Mapping[int, int]) -> dict[int, int]:
        """Return the sum on every day, by one multiplication of two long numbers with a sum in each group of digits."""
        first, last = min(losses), max(losses)
        digits = len(str(sum(losses.values()) << _BITS))
        ages = range(last - first, -1, -1)  # the highest group first
        weights = Decimal("".join(f"{self.weight(age):0{digits}d}" for age in ages))
        spent = Decimal("".join(f"{losses.get(first + offset, 0):0{digits}d}" for offset in ages))
        product = str(_EXACT.multiply(weights, spent)).zfill(2 * digits * len(ages))
        ends = range(len(product), len(product) - digits * len(ages), -digits)
        return {first + offset: int(product[end - digits : end]) for offset, end in enumerate(ends)}


def weighted_sum_to_nano(total: int) -> int:
    r"""Return a weighted sum, in nano-epsilon times 2^-64, in nano-epsilon, rounded up.

    .. math:: \lceil 2^{-64} s \rceil

    Source: exact integer arithmetic, rounded up.

    Args:
        total: weighted sum s [nano-epsilon 2^-64].

    Returns:
        [nano-epsilon].

    >>> weighted_sum_to_nano(3 << 64), weighted_sum_to_nano((3 << 64) + 1)
    (3, 4)
    """
    return -(-total >> _BITS)


def _up(amount: Fraction) -> int:
    return -(-amount.numerator // amount.denominator)
