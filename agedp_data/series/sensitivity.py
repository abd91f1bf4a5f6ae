"""L1 sensitivity of a statistic to a change of one household's day ([D]; privacy unit: one household-day).

The idea: the noise of a release is calibrated to the largest change that one household can cause. A bounded change
(`Move`) causes less than the replacement of the day.

Example: a sum with clamp 50 kWh changes by at most 50 kWh under a replacement, by at most 2 kWh under `Move(2)`.

Decisions:

* `Move(size)` changes a household's use by at most `size`; the neighbours of [D] differ by less than delta. On the
  line both have the same sensitivities. In integer watt-hours `Move(delta)` may protect slightly more.
* A household-day that becomes missing is a replacement, because it counts as `missing_kwh`.

[D] Fang, Chang: Differential Privacy with delta-Neighbourhood for Spatial and Dynamic Datasets. ASIA CCS 2014.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agedp_data.arrays import Number, Whole, as_written, on_one_scale
from agedp_data.errors import ChainError

# --------------------------------------------------------------------------------------------------
# Histograms, shifted histograms and cumulative counts of the households' daily use ([D], "Proposed method").
#
# The idea: under a delta-neighbourhood a household moves by less than delta, so that k = width/delta shifted
# histograms or the cumulative counts on a grid of step delta have a small sensitivity and still resolve ranges finer
# than a bin.
#
# Example: daily uses 1, 2, 3 kWh in bins of 4 kWh with delta = 2 kWh give the histograms [3, 0] (edges 0, 4, 8) and
# [1, 2, 0] (edges 0, 2, 6, 8).
#
# Decisions:
#
# * Bins are half-open and the last one is closed. A value outside the range counts in the first or last bin, so that
#   every household is in a bin.
# * Edges are compared exactly (`on_one_scale`), so that a move changes no more counts than `shifted_sensitivity` and
#   `cumulative_sensitivity` state.
#
# [D] Fang, Chang: Differential Privacy with delta-Neighbourhood for Spatial and Dynamic Datasets. ASIA CCS 2014.
# --------------------------------------------------------------------------------------------------

Counts = NDArray[np.int64]

_MAX_CELLS = 10**7
_IndexOrArray = TypeVar("_IndexOrArray", int, Counts)


def histogram(values: ArrayLike, *, edges: ArrayLike) -> Counts:
    r"""Return the number of values in each bin between increasing edges; use it for a distribution with fixed bins.

    .. math:: h_b = \#\{ i : e_b \le x_i < e_{b+1} \}, \quad \text{the last bin closed, values outside in the end bins}

    Source: [D] "Background: histogram". L1 sensitivity: `histogram_sensitivity`.

    Args:
        values: uses, shape (n,), finite [any unit].
        edges: bin edges, shape (bins + 1,), increasing [unit of `values`].

    Returns:
        Counts, shape (bins,), int64, with sum n [households].

    Raises:
        ChainError: fewer than two edges, edges that do not increase, or values that are not finite numbers.

    References:
        [D] Fang, Chang: Differential Privacy with delta-Neighbourhood for Spatial and Dynamic Datasets. ASIA CCS 2014.

    >>> histogram([0, 1, 2, 5, 7], edges=[0, 2, 5]).tolist()
    [2, 3]
    """
    scaled_values, scaled_edges = on_one_scale(np.ravel(values), edges)
    inner = check_edges(scaled_edges)[1:-1]
    return np.bincount(np.searchsorted(inner, scaled_values, side="right"), minlength=scaled_edges.size - 1)


def cumulative(values: ArrayLike, *, edges: ArrayLike) -> Counts:
    r"""Return the number of values below the upper edge of each bin; use it when ranges of bins matter more than bins.

    .. math:: c_b = \sum_{j \le b} h_j

    Source: running sum of `histogram`. The last count is the number of households. A range of bins is a difference of
    two counts, with an error that does not depend on its length. L1 sensitivity: `cumulative_sensitivity`.

    Args:
        values: uses, shape (n,), finite [any unit].
        edges: bin edges, shape (bins + 1,), increasing [unit of `values`].

    Returns:
        Counts, shape (bins,), int64, not decreasing, the last one n [households].

    Raises:
        ChainError: as `histogram`.

    References:
        [D] Fang, Chang: Differential Privacy with delta-Neighbourhood for Spatial and Dynamic Datasets. ASIA CCS 2014.

    >>> cumulative([0, 1, 2, 5, 7], edges=[0, 2, 5]).tolist()
    [2, 5]
    """
    return np.cumsum(histogram(values, edges=edges))


def cumulative_counts(values: ArrayLike, *, delta: Number, low: Number, high: Number) -> Counts:
    r"""Return the number of values below low + delta, low + 2 delta, ..., high; use it to publish ranges of any length.

    .. math:: P_c = \#\{ i : x_i < \mathrm{low} + c \, \delta \}, \quad c = 1, ..., \lceil (\mathrm{high} -
       \mathrm{low}) / \delta \rceil

    Source: improvement of [D] "Proposed method". A move below delta changes at most one count by 1 (sensitivity 1, not
    the 2 of shifted histograms), and any range of cells is a difference of two counts.

    Args:
        values: uses, shape (n,), finite [any unit].
        delta: step of the grid, > 0 [unit of `values`].
        low: lower end of the range [unit of `values`].
        high: upper end of the range, > `low` [unit of `values`].

    Returns:
        Counts, shape (cells,), int64, the last one n [households].

    Raises:
        ChainError: an empty range, a delta that is not above 0, more than 10^7 cells, or a value that is not finite.

    References:
        [D] Fang, Chang: Differential Privacy with delta-Neighbourhood for Spatial and Dynamic Datasets. ASIA CCS 2014.

    >>> cumulative_counts([0.0, 1.9, 2.0, 5.5, 6.0], delta=2, low=0, high=6).tolist()
    [2, 3, 5]
    """
    cell_of_value, cell_total = _cell_indices(values, delta=delta, low=low, high=high)
    return np.cumsum(np.bincount(cell_of_value, minlength=cell_total))


def shifted_histograms(values: ArrayLike, *, width: Number, delta: Number, low: Number, high: Number) -> Counts:
    r"""Return k = width/delta shifted histograms; use them to reproduce [D], otherwise prefer `cumulative_counts`.

    .. math:: h_{j,b} = \#\{ i : x_i \text{ in bin } b \text{ of the edges } \mathrm{low} + j \delta + m w, \;
       m \in \mathbb{Z} \}, \quad j = 0, ..., k - 1, \quad k = w / \delta

    Source: [D] "Proposed method". Histogram j has its edges at low + j delta + i width; all k histograms count every
    household. Erratum: "the sensitivity is still 2" holds only for moves below delta; see `shifted_sensitivity`.

    Args:
        values: uses, shape (n,), finite [any unit].
        width: width w of a bin, a multiple of `delta` [unit of `values`].
        delta: shift between two histograms, > 0 [unit of `values`].
        low: lower end of the range [unit of `values`].
        high: upper end of the range, > `low` [unit of `values`].

    Returns:
        Counts, shape (k, bins), int64, each row with sum n [households]. A row that needs fewer bins
        (`bins_per_histogram`) ends with zeros. The first and last bins end at `low` and `high`.

    Raises:
        ChainError: a width that is not a multiple of delta; or as `cumulative_counts`.

    References:
        [D] Fang, Chang: Differential Privacy with delta-Neighbourhood for Spatial and Dynamic Datasets. ASIA CCS 2014.

    >>> shifted_histograms([1, 2, 3], width=4, delta=2, low=0, high=8).tolist()  # edges 0, 4, 8 and 0, 2, 6, 8
    [[3, 0, 0], [1, 2, 0]]
    """
    cell_of_value, cell_total = _cell_indices(values, delta=delta, low=low, high=high)
    rows = shifted_histogram_count(width, delta)
    bins = int(bins_per_histogram(rows, cell_total).max())
    counts = np.zeros((rows, bins), np.int64)
    for row in range(rows):
        counts[row] = np.bincount((cell_of_value + leading_cells(row, rows)) // rows, minlength=bins)
    return counts


def check_edges(edges: Whole) -> Whole:
    """Return edges that bins can have; use it on edges from a caller.

    Args:
        edges: edges on one integer scale, shape (bins + 1,) [any unit].

    Returns:
        The same array.

    Raises:
        ChainError: fewer than two edges, or edges that do not increase.

    >>> check_edges(np.array([0, 2, 5])).tolist()
    [0, 2, 5]
    """
    if edges.ndim != 1 or edges.size < 2 or bool((edges[1:] <= edges[:-1]).any()):
        raise ChainError("the edges of bins are a list of two or more numbers, each above the one before it")
    return edges


def delta_grid(*, delta: Number, low: Number, high: Number) -> tuple[Fraction, ...]:
    r"""Return the edges low, low + delta, ..., high of the cells of `cumulative_counts`, as exact fractions.

    .. math:: e_c = \min(\mathrm{low} + c \, \delta, \mathrm{high})

    Source: grid of [D] "Proposed method". The last cell may be shorter than delta.

    Args:
        delta: step, > 0 [any unit].
        low: lower end [unit of `delta`].
        high: upper end, > `low` [unit of `delta`].

    Returns:
        cells + 1 fractions [unit of `delta`].

    Raises:
        ChainError: as `cumulative_counts`.

    References:
        [D] Fang, Chang: Differential Privacy with delta-Neighbourhood for Spatial and Dynamic Datasets. ASIA CCS 2014.

    >>> [float(edge) for edge in delta_grid(delta=0.1, low=0, high=0.3)]
    [0.0, 0.1, 0.2, 0.3]
    """
    cell_total, first, step = cell_count(delta=delta, low=low, high=high), as_written(low), as_written(delta)
    return (*(first + cell * step for cell in range(cell_total)), as_written(high))


def cell_count(*, delta: Number, low: Number, high: Number) -> int:
    r"""Return the number of cells of `delta_grid`.

    .. math:: N = \lceil (\mathrm{high} - \mathrm{low}) / \delta \rceil

    Args:
        delta: step, > 0 [any unit].
        low: lower end [unit of `delta`].
        high: upper end, > `low` [unit of `delta`].

    Returns:
        Number of cells, 1 to 10^7.

    Raises:
        ChainError: as `cumulative_counts`.

    >>> cell_count(delta=2, low=0, high=5)
    3
    """
    exact_delta, exact_range = as_written(delta), as_written(high) - as_written(low)
    if exact_delta <= 0:
        raise ChainError(f"delta = {delta}: must be above 0")
    if exact_range <= 0:
        raise ChainError(f"low = {low} and high = {high}: low must be below high")
    cell_total = -(-exact_range // exact_delta)
    if cell_total > _MAX_CELLS:
        raise ChainError(f"delta = {delta} cuts the range into more than 10^7 cells; take a larger one")
    return int(cell_total)


def shifted_histogram_count(width: Number, delta: Number) -> int:
    r"""Return the number k = width/delta of shifted histograms ([D], "Proposed method").

    .. math:: k = w / \delta

    Args:
        width: width of a bin, a multiple of `delta` [any unit].
        delta: shift between two histograms, > 0 [unit of `width`].

    Returns:
        k >= 1.

    Raises:
        ChainError: a delta that is not above 0, or a width that is not a multiple of delta.

    >>> shifted_histogram_count(8, 2)
    4
    """
    exact_delta = as_written(delta)
    if exact_delta <= 0:
        raise ChainError(f"delta = {delta}: must be above 0")
    rows = as_written(width) / exact_delta
    if rows < 1 or rows.denominator != 1:
        raise ChainError(f"width = {width}: must be a whole multiple of delta = {delta}")
    if rows > _MAX_CELLS:
        raise ChainError(f"width = {width} asks for more than 10^7 histograms; take a larger delta")
    return int(rows)


def leading_cells(row: _IndexOrArray, rows: int) -> _IndexOrArray:
    r"""Return the number of cells of a histogram's first bin that lie below the range.

    .. math:: -j \bmod k

    Args:
        row: index j of the histogram, or an array of indices.
        rows: number k of histograms.

    Returns:
        Cells, 0 to k - 1, an integer or array as `row`.

    >>> [leading_cells(row, 4) for row in range(4)]
    [0, 3, 2, 1]
    """
    return -row % rows


def bins_per_histogram(rows: int, cells: int) -> Counts:
    r"""Return the number of bins of each shifted histogram: the edges inside the range plus one.

    .. math:: L_j = \lfloor (N - 1 + (-j \bmod k)) / k \rfloor + 1

    Args:
        rows: number k of histograms.
        cells: number N of cells of the grid.

    Returns:
        Shape (k,), int64 [bins].

    >>> bins_per_histogram(2, 4).tolist()  # edges 0, 4, 8 and 0, 2, 6, 8 of four cells of 2
    [2, 3]
    """
    return (cells - 1 + (-np.arange(rows)) % rows) // rows + 1


def _cell_indices(values: ArrayLike, *, delta: Number, low: Number, high: Number) -> tuple[Counts, int]:
    """Return the cell of each value and the number of cells."""
    cell_total = cell_count(delta=delta, low=low, high=high)
    scaled_values, scaled_delta, scaled_low, scaled_high = on_one_scale(np.ravel(values), delta, low, high)
    clipped = np.minimum(np.maximum(scaled_values, scaled_low), scaled_high)
    return np.minimum((clipped - scaled_low) // scaled_delta, cell_total - 1).astype(np.int64), cell_total


# --------------------------------------------------------------------------------------------------
# Sums, and moves from bin to bin.
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Move:
    r"""A change of one household's use by at most `size`: the bounded change of [D].

    .. math:: |x_i - x'_i| \le \mathrm{size}, \quad x_j = x'_j \text{ for } j \ne i

    Source: [D] "Proposed formulation", second case, with <= for <.

    Args:
        size: largest change, >= 0 [unit of the statistic's values].

    Raises:
        ChainError: a negative size.

    References:
        [D] Fang, Chang: Differential Privacy with delta-Neighbourhood for Spatial and Dynamic Datasets. ASIA CCS 2014.

    >>> Move(2).size
    2
    """

    size: Number

    def __post_init__(self) -> None:
        if as_written(self.size) < 0:
            raise ChainError(f"a change of size {self.size}: must be at least 0")


Change = Move | Literal["arrival", "departure", "replacement"]
"""A replacement changes a household's day in any way; arrivals and departures change how many there are."""


def sum_sensitivity(change: Change, *, clamp: int) -> int:
    r"""Return the L1 sensitivity of a sum of integer uses in [0, clamp]; divide by n for the mean of n households.

    .. math:: \Delta_1 = \min(\lfloor \mathrm{size} \rfloor, U) \text{ for a move}, \quad \Delta_1 = U \text{ otherwise}

    Source: [D] "Background: Sensitivity"; L1 sensitivity of [DMNS]. Integer uses differ by integers, hence the floor.

    Args:
        change: `Move(size)`, "arrival", "departure" or "replacement".
        clamp: largest use U of a household, integer >= 1 [any integer unit, e.g. Wh].

    Returns:
        Sensitivity, integer [unit of `clamp`].

    References:
        [D] Fang, Chang: Differential Privacy with delta-Neighbourhood for Spatial and Dynamic Datasets. ASIA CCS 2014.
        [DMNS] Dwork, McSherry, Nissim, Smith: Calibrating Noise to Sensitivity in Private Data Analysis. TCC 2006.
        https://doi.org/10.1007/11681878_14

    >>> sum_sensitivity(Move(2_000), clamp=50_000), sum_sensitivity("replacement", clamp=50_000)
    (2000, 50000)
    """
    if isinstance(change, Move):
        return min(int(as_written(change.size) // 1), clamp)  # whole uses differ by whole amounts
    return clamp


def histogram_sensitivity(change: Change, *, edges: ArrayLike) -> int:
    r"""Return the L1 sensitivity of `histogram`: 2 if a household can cross an edge, 1 for an arrival or departure.

    .. math:: \Delta_1 = 2 \min(1, \text{edges crossed}), \quad \Delta_1 = 1 \text{ for an arrival or departure}

    Source: [D] "Histogram publishing" (sensitivity 2).

    Args:
        change: `Move(size)`, "arrival", "departure" or "replacement".
        edges: bin edges, shape (bins + 1,), increasing [unit of the values].

    Returns:
        Sensitivity, 0, 1 or 2 [households].

    Raises:
        ChainError: for a move, fewer than two edges or edges that do not increase.

    References:
        [D] Fang, Chang: Differential Privacy with delta-Neighbourhood for Spatial and Dynamic Datasets. ASIA CCS 2014.

    >>> [histogram_sensitivity(change, edges=[0, 5, 9]) for change in (Move(1), "arrival", "replacement")]
    [2, 1, 2]
    """
    if change in ("arrival", "departure"):
        return 1
    return 2 * min(1, _edges_crossed_by(change, edges))


def cumulative_sensitivity(change: Change, *, edges: ArrayLike) -> int:
    r"""Return the L1 sensitivity of `cumulative`: the number of inner edges that a household can cross.

    .. math:: \Delta_1 = \max_x \#\{ b : x < e_b \le x + \mathrm{size} \} \text{ for a move}

    Source: improvement of [D] "Proposed method": 1 for a move below delta on a grid of step delta. An arrival or
    departure changes every count, the last one (all households) included; a replacement crosses at most all inner
    edges.

    Args:
        change: `Move(size)`, "arrival", "departure" or "replacement".
        edges: bin edges, shape (bins + 1,), increasing [unit of the values].

    Returns:
        Sensitivity, integer, 0 to bins [households].

    Raises:
        ChainError: for a move, fewer than two edges or edges that do not increase.

    References:
        [D] Fang, Chang: Differential Privacy with delta-Neighbourhood for Spatial and Dynamic Datasets. ASIA CCS 2014.

    >>> edges = [0, 2, 4, 6, 20]
    >>> changes = (Move(2), Move(3), "arrival", "replacement")
    >>> [cumulative_sensitivity(change, edges=edges) for change in changes]
    [1, 2, 4, 3]
    """
    if change in ("arrival", "departure"):
        return np.size(edges) - 1
    return _edges_crossed_by(change, edges)


def shifted_sensitivity(change: Change, *, width: Number, delta: Number, low: Number, high: Number) -> int:
    r"""Return the L1 sensitivity of `shifted_histograms`.

    .. math:: \Delta_1 = 2 \min(k, \lceil \mathrm{size}/\delta \rceil, N - 1) \text{ for a move}, \quad
       2 \min(k, N - 1) \text{ for a replacement}, \quad k \text{ for an arrival}

    with k = width/delta histograms and N cells. Source: [D] "Proposed method". Erratum: the slides' "the sensitivity is
    still 2" holds for moves of at most delta only; an arrival costs k and a replacement 2k.

    Args:
        change: `Move(size)`, "arrival", "departure" or "replacement".
        width: width of a bin, a multiple of `delta` [unit of the values].
        delta: shift between two histograms, > 0 [unit of the values].
        low: lower end of the range [unit of the values].
        high: upper end of the range, > `low` [unit of the values].

    Returns:
        Sensitivity, integer [households].

    Raises:
        ChainError: a width that is not a multiple of delta, or a grid that `cumulative_counts` refuses.

    References:
        [D] Fang, Chang: Differential Privacy with delta-Neighbourhood for Spatial and Dynamic Datasets. ASIA CCS 2014.

    >>> grid = {"width": 8, "delta": 2, "low": 0, "high": 50}
    >>> [shifted_sensitivity(change, **grid) for change in (Move(2), "arrival", "replacement")]
    [2, 4, 8]
    """
    rows = shifted_histogram_count(width, delta)
    if change in ("arrival", "departure"):
        return rows
    crossed = cell_count(delta=delta, low=low, high=high) - 1
    if isinstance(change, Move):
        crossed = min(crossed, -(-as_written(change.size) // as_written(delta)))
    return 2 * min(rows, crossed)


def edges_crossed(edges: ArrayLike, *, size: Number) -> int:
    r"""Return the largest number of inner edges that a change of at most `size` can cross.

    .. math:: \max_b \#\{ c : e_b \le e_c < e_b + \mathrm{size} \}

    Source: the sensitivity of cumulative counts (`cumulative_sensitivity`). Edges are compared exactly.

    Args:
        edges: bin edges, shape (bins + 1,), increasing [any unit].
        size: largest change, >= 0 [unit of `edges`].

    Returns:
        Edges, integer, 0 to bins - 1.

    Raises:
        ChainError: fewer than two edges, or edges that do not increase.

    References:
        [D] Fang, Chang: Differential Privacy with delta-Neighbourhood for Spatial and Dynamic Datasets. ASIA CCS 2014.

    >>> edges_crossed([0, 2, 4, 6, 20], size=2), edges_crossed([0, 2, 4, 6, 20], size=2.5)
    (1, 2)
    """
    scaled_edges, scaled_size = on_one_scale(edges, size)
    inner = check_edges(scaled_edges)[1:-1]
    reachable = np.searchsorted(inner, inner + scaled_size, side="left")
    return int((reachable - np.arange(inner.size)).max(initial=0))


def _edges_crossed_by(change: Change, edges: ArrayLike) -> int:
    return edges_crossed(edges, size=change.size) if isinstance(change, Move) else max(np.size(edges) - 2, 0)
