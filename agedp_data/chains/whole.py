"""L at one age in whole 1e-9: integers in, integers out, exact and fast, for recursions over years of days.

The same bound as `Envelope`'s: between grid points g < a < h the smaller of L(h) and L(g) + a - g, never above a.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

NanoNumbers = Sequence[int | str]


class TabulatedLeakage:
    """L of an envelope's row: (m,) ascending grid and (m,) values, both in whole 1e-9, "inf" for infinity.

    Without a grid L(a) = a.

    >>> left = TabulatedLeakage([100, 200], [30, 90])
    >>> left(50), left(110), left(160), left(200), left(250)
    (30, 40, 90, 90, 140)
    """

    __slots__ = ("_grid", "_values")

    def __init__(self, grid: NanoNumbers, values: NanoNumbers) -> None:
        self._grid, self._values = ([_as_float(number) for number in numbers] for numbers in (grid, values))

    @property
    def sample_points(self) -> tuple[Sequence[float], Sequence[float]]:
        """Return the grid and the values, infinity among them."""
        return self._grid, self._values

    def __call__(self, loss: int) -> int:
        """Return what is left of a loss, never above it."""
        result: float = loss
        upper = bisect_left(self._grid, loss)
        if upper < len(self._grid):
            result = min(result, self._values[upper])
        lower = bisect_right(self._grid, loss, lo=upper) - 1
        if lower >= 0:
            result = min(result, self._values[lower] + (loss - self._grid[lower]))
        return int(result)

    def supremum(self, loss: int) -> int | None:
        """Return the least x of this bound with loss + L(x) <= x, the limit of x -> loss + L(x); None if there is none.

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
