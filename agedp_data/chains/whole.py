"""L at one age in whole 1e-9: integers in, integers out, exact and fast, for recursions over years of days.

The same bound as `Envelope`'s: between grid points g < a < h the smaller of L(h) and L(g) + a - g, never above a.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

Numbers = Sequence[int | str]


class TabulatedLeakage:
    """L of an envelope's row: (m,) ascending grid and (m,) values, both in whole 1e-9, "inf" for infinity.

    Without a grid L(a) = a.

    >>> left = TabulatedLeakage([100, 200], [30, 90])
    >>> left(50), left(110), left(160), left(200), left(250)
    (30, 40, 90, 90, 140)
    """

    __slots__ = ("_grid", "_values")

    def __init__(self, grid: Numbers, values: Numbers) -> None:
        self._grid, self._values = ([_number(each) for each in line] for line in (grid, values))

    @property
    def points(self) -> tuple[Sequence[float], Sequence[float]]:
        """Return the grid and the values, infinity among them."""
        return self._grid, self._values

    def __call__(self, loss: int) -> int:
        """Return what is left of a loss, never above it."""
        least: float = loss
        above = bisect_left(self._grid, loss)
        if above < len(self._grid):
            least = min(least, self._values[above])
        below = bisect_right(self._grid, loss, lo=above) - 1
        if below >= 0:
            least = min(least, self._values[below] + (loss - self._grid[below]))
        return int(least)

    def supremum(self, loss: int) -> int | None:
        """Return the least x of this bound with loss + L(x) <= x, the limit of x -> loss + L(x); None if there is none.

        >>> TabulatedLeakage([100, 200], [30, 90]).supremum(60), TabulatedLeakage([100, 200], [30, 90]).supremum(120)
        (90, None)
        """
        if loss == 0:
            return 0
        start: float = 0
        for end, value in zip(self._grid, self._values, strict=True):
            least = max(loss + value, start)
            if least <= end and least < math.inf:
                return int(least)
            start = end
        return None


def _number(whole: int | str) -> float:
    return math.inf if isinstance(whole, str) else whole
