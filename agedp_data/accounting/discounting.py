"""Discount weights and discounted sums of losses: a loss counts a(j) times after j further releases ([F], Section III).

The idea: people mind an old loss less than a new one, so that the loss of release k counts a(t - k) times at release t.
The weights are exponential, a(j) = alpha^j, hyperbolic, a(j) = 1/(1 + beta j), or any non-increasing sequence. Example:
three losses of 1 with alpha = 0.5 have the discounted losses 1, 1.5 and 1.75.

Decisions:

* Weights never increase: between two releases the discounted loss then falls, and only releases need a check. So a
  promise holds for ever if it holds on the days with a loss.
* Releases are admitted by sums in whole nano-epsilon, exact: weights are integers in units of 2^-64, rounded up
  (`DiscountWeights`). Sums in floats, for schedules and papers, are rounded up by a bound of their error
  (`discounted_loss`). Both are `discounted_sums`: no discounted loss is below the truth.

Erratum: the sentence after Definition 13 of [F] has 1/(1 + beta k) where 1/(1 + beta (t - k)) is meant.

[F] Farokhi: Temporally Discounted Differential Privacy for Evolving Datasets on an Infinite Horizon. ICCPS 2020.
https://doi.org/10.48550/arXiv.1908.03995
[H] Higham: Accuracy and Stability of Numerical Algorithms. 2nd ed., SIAM 2002. https://doi.org/10.1137/1.9780898718027
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import MAX_EMAX, MAX_PREC, Context, Decimal
from fractions import Fraction
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike

from agedp_data.accounting.discount_closed_forms import parse_number, upper_convolution, upper_exponential_sums
from agedp_data.arrays import Floats, checked_loss
from agedp_data.errors import ChainError

DiscountName = Literal["exponential", "hyperbolic"]

_BITS = 64
_FINE_BITS = 192  # of the running power, so that its roundings never add up to a unit of a weight
_OLDEST = 40_000
"""Days; what is older counts as if it were this old, which is never less."""

_FEW = 16
_EXACT = Context(prec=MAX_PREC, Emax=MAX_EMAX)


class Discount(Protocol):
    """Non-increasing weights a(0) > 0, a(1), ... of a loss by the number of releases since.

    Source: [F] Definitions 9 and 13, of which this is the common form.

    References:
        [F] https://doi.org/10.48550/arXiv.1908.03995

    >>> discount: Discount = Exponential(0.5)
    >>> discount.weights(3).tolist()
    [1.0, 0.5, 0.25]
    """

    def weights(self, releases: int) -> Floats:
        """Return a(0), ..., a(releases - 1), shape (releases,) [-]."""


@dataclass(frozen=True, slots=True)
class Exponential:
    r"""Exponential discounting; use it where the noise must stay bounded over an infinite horizon.

    .. math:: a(j) = \alpha^j

    Source: [F] Definition 9. alpha = 1 does not discount: the discounted loss is the composed loss.

    Args:
        alpha: discount factor per release, 0 < alpha <= 1 [-].

    Raises:
        ChainError: alpha outside (0, 1].

    References:
        [F] https://doi.org/10.48550/arXiv.1908.03995

    >>> Exponential(0.5).weights(3).tolist()
    [1.0, 0.5, 0.25]
    """

    alpha: float

    def __post_init__(self) -> None:
        if not 0 < parse_number(self.alpha, "alpha") <= 1:
            raise ChainError(f"alpha = {self.alpha}: a discount factor lies above 0 and is at most 1")

    def weights(self, releases: int) -> Floats:
        """Return alpha^j for j = 0, ..., releases - 1, shape (releases,) [-]."""
        with np.errstate(under="ignore"):
            return np.asarray(np.power(float(self.alpha), _ages(releases)), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Hyperbolic:
    r"""Hyperbolic discounting, closer to how people discount losses; the noise of a long series grows slowly.

    .. math:: a(j) = \frac{1}{1 + \beta j}

    Source: [F] Definition 13. Erratum: the sentence after it has beta k where beta (t - k) is meant. beta = 0 does not
    discount.

    Args:
        beta: discounting coefficient per release, >= 0 [-].

    Raises:
        ChainError: beta below 0 or not finite.

    References:
        [F] https://doi.org/10.48550/arXiv.1908.03995

    >>> Hyperbolic(1).weights(3).tolist()[:2]
    [1.0, 0.5]
    """

    beta: float

    def __post_init__(self) -> None:
        if not 0 <= parse_number(self.beta, "beta") < math.inf:
            raise ChainError(f"beta = {self.beta}: a discounting coefficient is a finite number that is at least 0")

    def weights(self, releases: int) -> Floats:
        """Return 1/(1 + beta j) for j = 0, ..., releases - 1, shape (releases,) [-]."""
        ages, beta = _ages(releases), float(self.beta)
        if beta * (releases + 1.0) < math.inf:
            return np.asarray(1 / (1 + beta * ages), dtype=np.float64)
        return np.concatenate([np.ones(min(1, releases)), 1 / beta / ages[1:]])


class Weights:
    r"""Any non-increasing weights, one per release; use it for a window or a measured discounting.

    .. math:: a(0) \ge a(1) \ge ... \ge 0, \quad a(0) > 0

    Source: generalisation of [F] Definitions 9 and 13. Ones and then zeros are a w-event window.

    Args:
        array: weights by the number of releases since, shape (T,) [-].

    Raises:
        ChainError: no weights, a weight that is negative or not finite, an increase, or a first weight of 0.

    References:
        [F] https://doi.org/10.48550/arXiv.1908.03995

    >>> Weights([1, 1, 1, 0]).weights(2).tolist()  # a window of three releases
    [1.0, 1.0]
    """

    def __init__(self, array: ArrayLike) -> None:
        try:
            weights = np.array(array, dtype=np.float64)
        except (TypeError, ValueError):
            raise ChainError("weights are a list of numbers, one for each age") from None
        if weights.ndim != 1 or not weights.size or not np.isfinite(weights).all() or (weights < 0).any():
            raise ChainError("weights are a list of finite numbers that are at least 0")
        if weights[0] == 0 or (np.diff(weights) > 0).any():
            raise ChainError("weights must not increase with age, and the weight of the newest loss must be above 0")
        weights.flags.writeable = False
        self._weights = weights

    def weights(self, releases: int) -> Floats:
        """Return the first `releases` weights, shape (releases,) [-].

        Raises:
            ChainError: `releases` exceeds the number of weights.
        """
        if not 0 <= releases <= self._weights.size:
            raise ChainError(f"{self._weights.size} weights are given and {releases} needed; give one for each release")
        return self._weights[:releases]

    def __repr__(self) -> str:
        return f"Weights({self._weights.size} from {self._weights[0]} to {self._weights[-1]})"


def discounted_loss(losses: ArrayLike, discount: Discount) -> Floats:
    r"""Return the discounted loss at every release; use it to check or report a schedule.

    .. math:: D_t = \sum_{k=1}^{t} a(t - k) \, r_k

    Source: `discounted_sums` of [F] (9) for exponential and (12) for hyperbolic weights; never below the truth, above
    it by less than 1e-9 of itself. Effort: O(T) for exponential weights, else O(T log T), or O(T^2) where transforms
    would lose more than 1e-10.

    Args:
        losses: losses r_k of the releases, shape (..., T), finite and >= 0 [epsilon].
        discount: `Exponential`, `Hyperbolic` or `Weights`.

    Returns:
        Discounted losses, shape (..., T) [epsilon].

    Raises:
        ChainError: a loss that is negative or infinite, or fewer weights than releases.

    References:
        [F] https://doi.org/10.48550/arXiv.1908.03995

    >>> discounted_loss([1, 1, 1], Exponential(0.5)).round(12).tolist()
    [1.0, 1.5, 1.75]
    """
    loss = checked_loss(losses)
    if loss.ndim == 0 or not np.isfinite(loss).all():
        raise ChainError("discounted losses are of a series of finite losses")
    if not loss.size:
        return loss.copy()
    if isinstance(discount, Exponential):
        return upper_exponential_sums(float(discount.alpha), loss)
    return np.asarray(discounted_sums(discount.weights(loss.shape[-1]), loss))


def discounted_sums(weights: Any, losses: Any) -> Any:  # noqa: ANN401  (arrays, or lists of integers)
    r"""Return the discounted sum at every release: of integers exact, of floats rounded up by a bound of the error.

    .. math:: D_t = \sum_{k=1}^{t} a(t - k) \, r_k

    Source: [F] Definitions 10 and 14, (9) and (12). Errata: the definitions do not say for which t the bound holds; it
    is needed for every t. After Definition 13 the factor is 1/(1 + beta (t-k)). Of integers by one multiplication of
    two long numbers with a sum in each group of digits; error bound of transforms of floats: [H] Theorem 24.2.

    Args:
        weights: a(0), ..., a(T - 1), shape (T,), >= 0 [-, or 2^-64].
        losses: r, shape (..., T), finite and >= 0 [epsilon], or a list of T integers [nano-epsilon].

    Returns:
        Sums, shape (..., T) or T integers [unit of the products], exactly 0 before the first positive loss.

    References:
        [F] https://doi.org/10.48550/arXiv.1908.03995
        [H] https://doi.org/10.1137/1.9780898718027

    >>> discounted_sums(np.array([1.0, 0.5]), np.array([2.0, 4.0])).round(12).tolist()  # 2, 0.5 * 2 + 4
    [2.0, 5.0]
    >>> discounted_sums([10, 5], [2, 4])
    [20, 50]
    """
    if isinstance(losses, list):
        count = len(losses)
        digits = len(str(max(sum(losses), 1) * max(weights)))
        factors = (
            Decimal("".join(f"{number:0{digits}d}" for number in numbers[::-1])) for numbers in (weights, losses)
        )
        product = str(_EXACT.multiply(*factors)).zfill(2 * digits * count)
        ends = range(len(product), len(product) - digits * count, -digits)
        return [int(product[end - digits : end]) for end in ends]
    return upper_convolution(weights, losses)


class DiscountWeights:
    r"""Weights [-] of losses by their age j [days], exact to 2^-64 and rounded up.

    .. math:: a(j) = \alpha^j \text{ ("exponential")} \qquad a(j) = \frac{1}{1 + \beta j} \text{ ("hyperbolic")}

    Source: [F] Definitions 9 and 13. Erratum: after Definition 13 the factor is 1/(1 + beta (t-k)).

    References:
        [F] https://doi.org/10.48550/arXiv.1908.03995

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
            first, count = min(losses), max(losses) - min(losses) + 1
            weights = [self.weight(age) for age in range(count)]
            sums = discounted_sums(weights, [losses.get(first + i, 0) for i in range(count)])
            return weighted_sum_to_nano(max(sums[day - first] for day in days))
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


def weighted_sum_to_nano(total: int) -> int:
    """Return a weighted sum [nano-epsilon 2^-64] in nano-epsilon, rounded up.

    Source: integer arithmetic.

    >>> weighted_sum_to_nano(3 << 64), weighted_sum_to_nano((3 << 64) + 1)
    (3, 4)
    """
    return -(-total >> _BITS)


def _ages(releases: int) -> Floats:
    if releases < 0:
        raise ChainError(f"a series has at least 0 releases, not {releases}")
    return np.arange(releases, dtype=np.float64)


def _up(amount: Fraction) -> int:
    return -(-amount.numerator // amount.denominator)
