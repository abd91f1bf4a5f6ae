"""Exact leakage function of one declared kernel at one age, in nano-epsilon, without the rounding of the grid.

Example: the pieces of P = [[.9, .1], [.1, .9]] are Q = .9, D = .1, and L(1) = ln((.1 + .9 e)/(.9 + .1 e)) = .776.

Decisions:

* L is the maximum of a few pieces ln((1 + (e^a - 1) Q)/(1 + (e^a - 1) D)), so the pieces describe a public kernel
  completely. They are stored in whole 1e-18, Q rounded up and D down, which only raises a piece.
* A loss must be the same number on every machine, although logarithms differ in the last digits. A value so near a
  whole 1e-9 that this could matter is computed again in decimal arithmetic.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from functools import cached_property

import numpy as np

from agedp_data.chains.rounding import NANO, SLACK
from agedp_data.errors import ChainError
from agedp_data.privacy.kernel import Floats
from agedp_data.privacy.pieces import fixed_point, frontier, gain

PROBABILITY_UNIT = 10**18
"""Sums of probabilities are whole parts of it."""

_MAX_EVALUATED = 600 * NANO
"""Beyond it e^-a is near the end of the range of floats, and nothing is credited."""

_FLOAT_ERROR = 1e-3
"""What floats may lose of a value below `_MAX_EVALUATED`, in 1e-9."""

_DECIMALS = Context(prec=60)
_MAX_DESCENTS = 10_000


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

    @classmethod
    def from_floats(cls, over: Floats, under: Floats) -> PiecewiseLeakage:
        """Return the leakage function of pieces in floats (v,): Q rounded up, D rounded down."""
        over_units = [min(PROBABILITY_UNIT, -int(-Fraction(q) * PROBABILITY_UNIT // 1)) for q in over.tolist()]
        return cls(over_units, [int(Fraction(d) * PROBABILITY_UNIT // 1) for d in under.tolist()])

    def __call__(self, loss: int) -> int:
        """Return the leakage of a loss, rounded up and never above the loss [nano-epsilon]."""
        if not 0 < loss <= _MAX_EVALUATED:
            return loss
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
        """Return an x with loss + L(x) <= x, hardly above the limit of x -> loss + L(x); None if unbounded."""
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
