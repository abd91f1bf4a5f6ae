"""How far one household moves a statistic: exact L1 sensitivities to each kind of change ([D], MATHS 6 and 7).

A `Move(size)` changes a household's use by at most `size`. The neighbours of [D] differ by less than delta; on the
line both have the same sensitivities, in whole watt-hours `Move(delta)` may protect a little more. A household-day
that goes missing is no such change: it jumps to `missing_kwh`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from agedp_data.errors import ChainError
from agedp_data.privacy.counts import cell_count, rising, rows_of
from agedp_data.privacy.exact import Number, as_written, on_one_scale


@dataclass(frozen=True, slots=True)
class Move:
    """A change of one household's use by at most `size`.

    Raises:
        ChainError: a negative size.
    """

    size: Number

    def __post_init__(self) -> None:
        if as_written(self.size) < 0:
            raise ChainError(f"a change of size {self.size}: must be at least 0")


Change = Move | Literal["arrival", "departure", "replacement"]
"""A replacement changes a household's day in any way; arrivals and departures change how many there are."""


def sum_sensitivity(change: Change, *, clamp: int) -> int:
    """Return how far a sum of whole uses in [0, clamp] moves: min(size, clamp). Units: [clamp's].

    >>> sum_sensitivity(Move(2_000), clamp=50_000), sum_sensitivity("replacement", clamp=50_000)
    (2000, 50000)
    """
    if isinstance(change, Move):
        return min(int(as_written(change.size) // 1), clamp)  # whole uses differ by whole amounts
    return clamp


def histogram_sensitivity(change: Change, *, edges: ArrayLike) -> int:
    """Return how far a histogram moves: 2 if an edge can be crossed, 1 for an arrival or departure.

    Shapes: (bins + 1,) -> []. Units: [any] -> [households].

    >>> [histogram_sensitivity(change, edges=[0, 5, 9]) for change in (Move(1), "arrival", "replacement")]
    [2, 1, 2]
    """
    if change in ("arrival", "departure"):
        return 1
    return 2 * min(1, _crossed(change, edges))


def cumulative_sensitivity(change: Change, *, edges: ArrayLike) -> int:
    """Return how far cumulative counts move: by the inner edges that a household crosses.

    An arrival or departure moves every count, the last one included, which is everybody.
    Shapes: (bins + 1,) -> []. Units: [any] -> [households].

    >>> edges = [0, 2, 4, 6, 20]
    >>> changes = (Move(2), Move(3), "arrival", "replacement")
    >>> [cumulative_sensitivity(change, edges=edges) for change in changes]
    [1, 2, 4, 3]
    """
    if change in ("arrival", "departure"):
        return np.size(edges) - 1
    return _crossed(change, edges)


def shifted_sensitivity(change: Change, *, width: Number, delta: Number, low: Number, high: Number) -> int:
    """Return how far k = width/delta shifted histograms move: 2 for each that has an edge crossed, k for an arrival.

    2 min(k, ceil(size/delta), cells - 1); "the sensitivity is still 2" ([D]) for moves of up to delta only.
    Units: [any] -> [households].

    >>> grid = {"width": 8, "delta": 2, "low": 0, "high": 50}
    >>> [shifted_sensitivity(change, **grid) for change in (Move(2), "arrival", "replacement")]
    [2, 4, 8]
    """
    rows = rows_of(width, delta)
    if change in ("arrival", "departure"):
        return rows
    reach = cell_count(delta=delta, low=low, high=high) - 1
    if isinstance(change, Move):
        reach = min(reach, -(-as_written(change.size) // as_written(delta)))
    return 2 * min(rows, reach)


def edges_crossed(edges: ArrayLike, *, size: Number) -> int:
    """Return how many inner edges a change of at most `size` can cross: the most that lie less than `size` apart.

    Shapes: (bins + 1,) -> []. Units: [any], size [the same] -> [edges].

    Raises:
        ChainError: fewer than two edges, or edges that do not rise.

    >>> edges_crossed([0, 2, 4, 6, 20], size=2), edges_crossed([0, 2, 4, 6, 20], size=2.5)
    (1, 2)
    """
    limits, reach = on_one_scale(edges, size)
    inner = rising(limits)[1:-1]
    beyond = np.searchsorted(inner, inner + reach, side="left")
    return int((beyond - np.arange(inner.size)).max(initial=0))


def _crossed(change: Change, edges: ArrayLike) -> int:
    return edges_crossed(edges, size=change.size) if isinstance(change, Move) else max(np.size(edges) - 2, 0)
