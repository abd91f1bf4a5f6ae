"""How many households use how much: histograms, shifted histograms and cumulative counts ([D], MATHS 6).

Bins are half-open and the last one is closed; what lies outside the range counts at its end, so that everybody is in
a bin. Edges are compared exactly (`exact`): a move changes what `sensitivity` says and not a household more.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agedp_data.errors import ChainError
from agedp_data.privacy.exact import Number, Whole, as_written, on_one_scale

Counts = NDArray[np.int64]

_MOST_CELLS = 10**7
_Rows = TypeVar("_Rows", int, Counts)


def histogram(values: ArrayLike, *, edges: ArrayLike) -> Counts:
    """Return how many values lie in each bin between rising edges.

    Shapes: (n,), (bins + 1,) -> (bins,). Units: [any], edges [the same] -> [households].

    Raises:
        ChainError: fewer than two edges, edges that do not rise, or values that are no finite numbers.

    >>> histogram([0, 1, 2, 5, 7], edges=[0, 2, 5]).tolist()
    [2, 3]
    """
    given, limits = on_one_scale(np.ravel(values), edges)
    inner = rising(limits)[1:-1]
    return np.bincount(np.searchsorted(inner, given, side="right"), minlength=limits.size - 1)


def cumulative(values: ArrayLike, *, edges: ArrayLike) -> Counts:
    """Return how many values lie below the upper edge of each bin; the last count is everybody.

    Shapes: (n,), (bins + 1,) -> (bins,). Units: [any], edges [the same] -> [households].

    Raises:
        ChainError: as `histogram`.

    >>> cumulative([0, 1, 2, 5, 7], edges=[0, 2, 5]).tolist()
    [2, 5]
    """
    return np.cumsum(histogram(values, edges=edges))


def cumulative_counts(values: ArrayLike, *, delta: Number, low: Number, high: Number) -> Counts:
    """Return how many values lie below low + delta, low + 2 delta, ..., high; the last count is everybody.

    A move shorter than delta changes one count by 1 at most; any range of cells is a difference of two (MATHS 6).
    Shapes: (n,) -> (cells,), cells = ceil((high - low)/delta). Units: [any], delta, low, high [the same] ->
    [households].

    Raises:
        ChainError: no range, a delta that is not above 0, more than 10^7 cells, or values that are no finite numbers.

    >>> cumulative_counts([0.0, 1.9, 2.0, 5.5, 6.0], delta=2, low=0, high=6).tolist()
    [2, 3, 5]
    """
    cells, count = _cells(values, delta=delta, low=low, high=high)
    return np.cumsum(np.bincount(cells, minlength=count))


def shifted_histograms(values: ArrayLike, *, width: Number, delta: Number, low: Number, high: Number) -> Counts:
    """Return k = width/delta histograms of bins of that width, the j-th one with edges at low + j delta + i width.

    All k count everybody, the first and last bins of a row cut off at low and high; rows that need fewer bins than
    others end with bins that are always empty (`row_lengths`). Shapes: (n,) -> (k, bins). Units: [any], width, delta,
    low, high [the same] -> [households].

    Raises:
        ChainError: a width that is no whole multiple of delta; or as `cumulative_counts`.

    References: [D], "Proposed method"; MATHS 6.

    >>> shifted_histograms([1, 2, 3], width=4, delta=2, low=0, high=8).tolist()  # 0-4-8 and 0-2-6-8
    [[3, 0, 0], [1, 2, 0]]
    """
    cells, count = _cells(values, delta=delta, low=low, high=high)
    rows = rows_of(width, delta)
    bins = int(row_lengths(rows, count).max())
    found = np.zeros((rows, bins), np.int64)
    for row in range(rows):
        found[row] = np.bincount((cells + lead(row, rows)) // rows, minlength=bins)
    return found


def rising(edges: Whole) -> Whole:
    """Return edges that bins can have. Raises ChainError otherwise."""
    if edges.ndim != 1 or edges.size < 2 or bool((edges[1:] <= edges[:-1]).any()):
        raise ChainError("the edges of bins are a list of two or more numbers, each above the one before it")
    return edges


def grid(*, delta: Number, low: Number, high: Number) -> tuple[Fraction, ...]:
    """Return the edges of the delta-grid, low, low + delta, ..., high; the last cell may be shorter.

    Raises:
        ChainError: as `cumulative_counts`.

    >>> [float(edge) for edge in grid(delta=0.1, low=0, high=0.3)]
    [0.0, 0.1, 0.2, 0.3]
    """
    count, first, step = cell_count(delta=delta, low=low, high=high), as_written(low), as_written(delta)
    return (*(first + cell * step for cell in range(count)), as_written(high))


def cell_count(*, delta: Number, low: Number, high: Number) -> int:
    """Return how many cells the delta-grid has. Raises ChainError as `cumulative_counts`."""
    step, span = as_written(delta), as_written(high) - as_written(low)
    if step <= 0:
        raise ChainError(f"delta = {delta}: must be above 0")
    if span <= 0:
        raise ChainError(f"low = {low} and high = {high}: there is no range between them")
    count = -(-span // step)
    if count > _MOST_CELLS:
        raise ChainError(f"delta = {delta} cuts the range into more than 10^7 cells; take a larger one")
    return int(count)


def rows_of(width: Number, delta: Number) -> int:
    """Return how many shifted histograms there are. Raises ChainError if the width is no multiple of delta."""
    step = as_written(delta)
    if step <= 0:
        raise ChainError(f"delta = {delta}: must be above 0")
    rows = as_written(width) / step
    if rows < 1 or rows.denominator != 1:
        raise ChainError(f"width = {width}: must be a whole multiple of delta = {delta}")
    if rows > _MOST_CELLS:
        raise ChainError(f"width = {width} asks for more than 10^7 histograms; take a larger delta")
    return int(rows)


def lead(row: _Rows, rows: int) -> _Rows:
    """Return how many cells of the first bin of a row lie below the range."""
    return -row % rows


def row_lengths(rows: int, cells: int) -> Counts:
    """Return how many bins each shifted histogram needs: one more than it has edges inside the range.

    >>> row_lengths(2, 4).tolist()
    [2, 3]
    """
    return (cells - 1 + (-np.arange(rows)) % rows) // rows + 1


def _cells(values: ArrayLike, *, delta: Number, low: Number, high: Number) -> tuple[Counts, int]:
    """Return the cell of each value and the number of cells."""
    count = cell_count(delta=delta, low=low, high=high)
    given, step, first, last = on_one_scale(np.ravel(values), delta, low, high)
    inside = np.minimum(np.maximum(given, first), last)
    return np.minimum((inside - first) // step, count - 1).astype(np.int64), count
