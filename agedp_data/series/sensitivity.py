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
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from agedp_data.arrays import Number, as_written, on_one_scale
from agedp_data.errors import ChainError
from agedp_data.series.histograms import cell_count, check_edges, shifted_histogram_count


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
