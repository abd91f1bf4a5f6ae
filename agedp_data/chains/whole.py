"""Leakage function L of one age as a table in whole nano-epsilon: integers in, integers out, for exact recursions.

Example: the grid (100, 200) with values (30, 90) gives L(110) = min(90, 30 + 10) = 40.

It is the bound of `LeakageBound`: between grid points g < a < h the smaller of L(h) and L(g) + a - g, never above a.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

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
