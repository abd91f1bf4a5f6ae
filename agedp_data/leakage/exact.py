"""Exact leakage functions L of one age: nano-epsilon in, nano-epsilon out, for recursions in whole numbers.

* `TabulatedLeakage`: a table in whole nano-epsilon. It is the bound of `LeakageBound`: between grid points g < a < h
  the smaller of L(h) and L(g) + a - g, never above a. Example: the grid (100, 200) with values (30, 90) gives
  L(110) = min(90, 30 + 10) = 40.
* `PiecewiseLeakage`: one declared kernel, without the rounding of the grid. Example: the pieces of
  P = [[.9, .1], [.1, .9]] are Q = .9, D = .1, and L(1) = ln((.1 + .9 e)/(.9 + .1 e)) = .776.
* Upper bounds are rounded to whole 1e-9 (nano-epsilon) and stored as the nearest floats.

Decisions:

* L is the maximum of a few pieces ln((1 + (e^a - 1) Q)/(1 + (e^a - 1) D)), so the pieces describe a public kernel
  completely. They are stored in whole 1e-18, Q rounded up and D down, which only raises a piece.
* A loss must be the same number on every machine, although logarithms differ in the last digits. A value so near a
  whole 1e-9 that this could matter is computed again in decimal arithmetic.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agedp_data.arrays import Floats
from agedp_data.errors import ChainError
from agedp_data.leakage.function import fixed_point, frontier, gain

NanoNumbers = Sequence[int | str]


class TabulatedLeakage:
    r"""Upper bound of L at one age from a table in nano-epsilon; "inf" stands for infinity.

    L does not decrease and is 1-Lipschitz, so the table bounds it between grid points. Without a grid L(a) = a.

    .. math:: L(a) \le \min\bigl(L(h),\ L(g) + a - g,\ a\bigr), \qquad g \le a \le h

    Source: derivative of [T] eq. 24, which is between 0 and 1.

    Args:
        grid: losses, shape (m,), ascending integers or "inf" [nano-epsilon].
        values: L at the grid, shape (m,), integers or "inf" [nano-epsilon].

    References:
        [T] https://doi.org/10.1109/TKDE.2018.2824328

    >>> leakage = TabulatedLeakage([100, 200], [30, 90])
    >>> leakage(50), leakage(110), leakage(160), leakage(200), leakage(250)
    (30, 40, 90, 90, 140)
    """

    __slots__ = ("_grid", "_values")

    def __init__(self, grid: NanoNumbers, values: NanoNumbers) -> None:
        self._grid, self._values = ([_as_float(number) for number in numbers] for numbers in (grid, values))

    @property
    def sample_points(self) -> tuple[Sequence[float], Sequence[float]]:
        """Return the grid and the values [nano-epsilon], infinity included."""
        return self._grid, self._values

    def __call__(self, loss: int) -> int:
        """Return the leakage of a loss, never above the loss [nano-epsilon]."""
        result: float = loss
        upper = bisect_left(self._grid, loss)
        if upper < len(self._grid):
            result = min(result, self._values[upper])
        lower = bisect_right(self._grid, loss, lo=upper) - 1
        if lower >= 0:
            result = min(result, self._values[lower] + (loss - self._grid[lower]))
        return int(result)

    def supremum(self, loss: int) -> int | None:
        """Least fixed point of x -> loss + L(x): the backward leakage of infinitely many releases of this loss.

        Args:
            loss: loss of each release, >= 0 [nano-epsilon].

        Returns:
            The least x of this bound with loss + L(x) <= x [nano-epsilon]; None if the recursion is unbounded.

        >>> TabulatedLeakage([100, 200], [30, 90]).supremum(60), TabulatedLeakage([100, 200], [30, 90]).supremum(120)
        (90, None)
        """
        if loss == 0:
            return 0
        start: float = 0
        for end, value in zip(self._grid, self._values, strict=True):
            candidate = max(loss + value, start)
            if candidate <= end and candidate < math.inf:
                return int(candidate)
            start = end
        return None


def _as_float(number: int | str) -> float:
    return math.inf if isinstance(number, str) else number


NANO = 1_000_000_000

# Error of evaluating a leakage in floats. Added before rounding up wherever a bound is not exactly 0.
SLACK = 1e-12


def round_up_nano(values: ArrayLike) -> Floats:
    r"""Smallest multiple of 1e-9 that is not below each value; infinity stays.

    .. math:: 10^{-9} \lceil 10^9 v \rceil

    Source: directed rounding as in IEEE 754 (toward positive), onto multiples of 1e-9 as floats represent them.

    Args:
        values: shape (...) [any unit].

    Returns:
        Shape (...), the floats nearest to the multiples [unit of `values`].

    References:
        IEEE Standard for Floating-Point Arithmetic. IEEE Std 754, 2019.

    >>> round_up_nano([0.1, 0.1000000001, np.inf]).tolist()
    [0.1, 0.100000001, inf]
    """
    value = np.asarray(values, dtype=np.float64)
    with np.errstate(over="ignore"):
        nano = np.rint(value * NANO)
    nano = np.where(nano / NANO < value, nano + 1, nano)
    # Beyond 2^53 a float is coarser than 1e-9 and already whole.
    return np.where(np.abs(nano) < 2**53, nano / NANO, value)


def round_down_nano(values: ArrayLike) -> Floats:
    r"""Largest multiple of 1e-9 that is not above each value; infinity stays.

    .. math:: 10^{-9} \lfloor 10^9 v \rfloor

    Source: as `round_up_nano`, toward negative.

    Args:
        values: shape (...) [any unit].

    Returns:
        Shape (...), the floats nearest to the multiples [unit of `values`].

    References:
        IEEE Standard for Floating-Point Arithmetic. IEEE Std 754, 2019.

    >>> round_down_nano([0.1, 0.1000000019]).tolist()
    [0.1, 0.100000001]
    """
    return -round_up_nano(-np.asarray(values, dtype=np.float64))


def round_up_with_slack(values: ArrayLike) -> Floats:
    r"""Computed upper bounds, rounded up with `SLACK` for the error of the computation; an exact 0 stays 0.

    Use it for every bound that was evaluated in floats before it is stored or compared.

    .. math:: 10^{-9} \lceil 10^9 (v + 10^{-12}) \rceil, \qquad v > 0

    Source: directed rounding as in IEEE 754 (`round_up_nano`), after a slack that exceeds the error of the computation.

    Args:
        values: shape (...), >= 0 [any unit].

    Returns:
        Shape (...), multiples of 1e-9 not below values + 1e-12 [unit of `values`].

    >>> round_up_with_slack([0.0, 0.1]).tolist()
    [0.0, 0.100000001]
    """
    return round_up_nano(with_slack(values))


def with_slack(values: ArrayLike) -> Floats:
    """Computed values, enlarged by `SLACK` for the error of the computation; an exact 0 stays 0.

    Source: a bound of the error of evaluation in floats, this project.

    >>> with_slack([0.0, 0.5]).tolist()
    [0.0, 0.500000000001]
    """
    value = np.asarray(values, dtype=np.float64)
    return np.where(value > 0, value + SLACK, value)


def to_integers(values: ArrayLike) -> list[int | str]:
    """Values as integers in units of 1e-9, rounded up; "inf" for infinity.

    Source: directed rounding as in IEEE 754 (`round_up_nano`); where floats do not decide, exact arithmetic with
    fractions.

    >>> to_integers([0.1, np.inf])
    [100000000, 'inf']
    """
    floats: list[float] = round_up_nano(values).tolist()
    return ["inf" if value == np.inf else _nano_integer(value) for value in floats]


def from_integers(numbers: list[int | str]) -> NDArray[np.float64]:
    """Floats of integers in units of 1e-9; the inverse of `to_integers`.

    Source: IEEE 754 division, rounded to nearest.

    >>> from_integers([100000000, "inf"]).tolist()
    [0.1, inf]
    """
    return np.array([np.inf if number == "inf" else int(number) / NANO for number in numbers], dtype=np.float64)


def _nano_integer(value: float) -> int:
    nearest = round(value * NANO)
    return nearest if nearest / NANO == value else -int(-Fraction(value) * NANO // 1)


PROBABILITY_UNIT = 10**18
"""Sums of probabilities are whole parts of it."""

_MAX_EVALUATED = 600 * NANO
"""Beyond it e^-a is near the end of the range of floats, and nothing is credited."""

_FLOAT_ERROR = 1e-3
"""What floats may lose of a value below `_MAX_EVALUATED`, in 1e-9."""

_DECIMALS = Context(prec=60)
_MAX_DESCENTS = 10_000
_MOST_KNOWN = 2**14
"""Values of a leakage function that are kept."""


class PiecewiseLeakage:
    r"""Leakage function of a public kernel at one age by its pieces, integers in and out.

    .. math:: L(a) = \max_i \ln \frac{1 + (e^a - 1) Q_i}{1 + (e^a - 1) D_i}

    Source: [T] eq. 24 and Algorithms 2 to 5; pieces of all pairs of rows and all prefixes.

    Args:
        over: sums Q, shape (v,), integers [1e-18].
        under: sums D, shape (v,), integers, D <= Q [1e-18].

    Raises:
        ChainError: sums out of order or out of range.

    References:
        [T] https://doi.org/10.1109/TKDE.2018.2824328

    >>> stay = PiecewiseLeakage([9 * PROBABILITY_UNIT // 10], [PROBABILITY_UNIT // 10])
    >>> stay(NANO), stay.supremum(NANO // 10)  # ln((.1 + .9 e)/(.9 + .1 e)), and the supremum for .1
    (776136586, 486220674)
    """

    def __init__(self, over: Sequence[int], under: Sequence[int]) -> None:
        if len(over) != len(under) or not all(
            0 <= d <= q <= PROBABILITY_UNIT for q, d in zip(over, under, strict=True)
        ):
            raise ChainError("pieces are pairs of sums of probabilities, the first not below the second")
        self.over, self.under = tuple(map(int, over)), tuple(map(int, under))
        self._known: dict[int, int] = {}
        self._suprema: dict[int, int | None] = {}

    @classmethod
    def from_floats(cls, over: Floats, under: Floats) -> PiecewiseLeakage:
        """Return the leakage function of pieces in floats (v,): Q rounded up, D rounded down."""
        over_units = [min(PROBABILITY_UNIT, -int(-Fraction(q) * PROBABILITY_UNIT // 1)) for q in over.tolist()]
        return cls(over_units, [int(Fraction(d) * PROBABILITY_UNIT // 1) for d in under.tolist()])

    def __call__(self, loss: int) -> int:
        """Return the leakage of a loss, rounded up and never above the loss [nano-epsilon].

        A series of equal losses asks for the same values after each of its days: the latest ones are kept.
        """
        if not 0 < loss <= _MAX_EVALUATED:
            return loss
        if (known := self._known.get(loss)) is None:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            known = self._known[loss] = self._evaluated(loss)
        return known

    def _evaluated(self, loss: int) -> int:
        decayed, complement = math.exp(-loss / NANO), -math.expm1(-loss / NANO)
        over, under, switches = self._ordered
        index = bisect_left(switches, decayed / complement)
        excess = 0.0
        for q, d in zip(over[max(index - 1, 0) : index + 2], under[max(index - 1, 0) : index + 2], strict=True):
            excess = max(excess, (q - d) * complement / (d * complement + decayed))
        if excess == 0:
            return 0
        value = (math.log1p(excess) + SLACK) * NANO
        is_near_nano = abs(value - round(value)) <= _FLOAT_ERROR
        return min(self._in_decimals(loss) if is_near_nano else math.ceil(value), loss)

    def supremum(self, loss: int) -> int | None:
        """Return an x with loss + L(x) <= x, hardly above the limit of x -> loss + L(x); None if unbounded.

        The searches for plans without an end ask for the same losses: the latest answers are kept.
        """
        if loss not in self._suprema:
            if len(self._suprema) >= _MOST_KNOWN:
                self._suprema.clear()
            self._suprema[loss] = self._descended(loss)
        return self._suprema[loss]

    def _descended(self, loss: int) -> int | None:
        if loss == 0:
            return 0
        margin = 2
        while margin <= loss + NANO:
            fixed_loss = float(self.float_supremum(np.asarray((loss + margin) / NANO)))
            if fixed_loss * NANO >= _MAX_EVALUATED:
                return None
            candidate = math.ceil(fixed_loss * NANO)
            if loss + self(candidate) <= candidate:
                break
            margin *= 2
        else:
            return None
        for _ in range(_MAX_DESCENTS):  # from above every step is such an x again
            lower = loss + self(candidate)
            if lower == candidate:
                break
            candidate = lower
        return candidate

    def float_leakage(self, losses: Floats) -> Floats:
        """Return the leakage of losses in floats, not rounded: (...) -> (...) [epsilon]."""
        return gain(*self._floats, losses)

    def float_supremum(self, losses: Floats) -> Floats:
        """Return the limits of x -> loss + L(x) in floats, `inf` if unbounded: (...) -> (...) [epsilon]."""
        return fixed_point(*self._floats, losses)

    @cached_property
    def sample_points(self) -> tuple[Sequence[float], Sequence[float]]:
        """Return losses on a dense grid from 1e-6 to 64 and the leakage of each [nano-epsilon]."""
        grid = np.geomspace(1e-6, 64.0, 2000)
        return (grid * NANO).tolist(), (self.float_leakage(grid) * NANO).tolist()

    @cached_property
    def _floats(self) -> tuple[Floats, Floats]:
        return np.array([q / PROBABILITY_UNIT for q in self.over]), np.array([d / PROBABILITY_UNIT for d in self.under])

    @cached_property
    def _ordered(self) -> tuple[list[float], list[float], list[float]]:
        """Return the frontier by falling loss, and the 1/(e^a - 1) at which two adjacent pieces are equal."""
        over, under = frontier(*self._floats)
        with np.errstate(divide="ignore", invalid="ignore"):
            slope_difference = (over[:-1] - over[1:]) - (under[:-1] - under[1:])
            switches = (over[1:] * under[:-1] - over[:-1] * under[1:]) / slope_difference
        return over.tolist(), under.tolist(), np.maximum.accumulate(np.nan_to_num(switches)).tolist()

    def _in_decimals(self, loss: int) -> int:
        """Return the leakage in decimal arithmetic, rounded up: the same on every machine."""
        decayed = _DECIMALS.exp(Decimal(-loss) / NANO)
        complement, log_ratio = 1 - decayed, Decimal(0)
        for q, d in zip(self.over, self.under, strict=True):
            ratio = _DECIMALS.divide(
                PROBABILITY_UNIT * decayed + q * complement, PROBABILITY_UNIT * decayed + d * complement
            )
            log_ratio = max(log_ratio, _DECIMALS.ln(ratio))
        nano = (log_ratio + Decimal(repr(SLACK))) * NANO
        return int(nano.to_integral_value(rounding=ROUND_CEILING))
