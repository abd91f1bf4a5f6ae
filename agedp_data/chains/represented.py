"""Public states: what stands for a reading where only its state may count (`values = "states"`).

Everybody knows the cuts, so everybody knows what stands for each state; a release of such values is a function of
states alone, which is what a chain of states is about (MATHS 7).

Decisions. A state counts as the middle of the whole watt-hours in it, halves up. The last state has no upper end; it
is taken to be as wide as the one before it, the custom for an open class of grouped data. A bound on readings as its
end would count every one of them as half of what no home uses. What stands for a state lies in that state, so that
quantising twice changes nothing, and more use never counts as less.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agedp_data.chains.states import states
from agedp_data.errors import ChainError

_LARGEST_TABLE = 2**20
_SLOTS = 48


def representative_values(edges: ArrayLike) -> NDArray[np.int64]:
    """Return what stands for each state.

    r_i = floor((e_i + e_(i+1)) / 2), with e_0 = 0, e_1 to e_(k-1) the cuts and e_k = 2 e_(k-1) - e_(k-2): state i
    holds the whole numbers from e_i up to e_(i+1) - 1, whose middle is (e_i + e_(i+1) - 1) / 2, here with halves up.

    Shapes: (k - 1,) -> (k,). Units: [Wh].

    Raises:
        ChainError: no cut, or cuts that are not whole, not above 0 or do not rise.

    >>> representative_values([1, 100, 300]).tolist()  # the first state holds 0 alone
    [0, 50, 200, 400]
    """
    edge = np.asarray(edges)
    if edge.ndim != 1 or not edge.size or not np.issubdtype(edge.dtype, np.integer):
        raise ChainError("public states need a row of cuts in whole watt-hours")
    boundaries = np.concatenate(([0], edge.astype(np.int64)))
    if (np.diff(boundaries) <= 0).any():
        raise ChainError("the cuts of public states must rise, from above 0")
    boundaries = np.append(boundaries, 2 * boundaries[-1] - boundaries[-2])
    midpoint: NDArray[np.int64] = (boundaries[:-1] + boundaries[1:]) // 2
    return midpoint


@dataclass(frozen=True, slots=True)
class RepresentativeValues:
    """Public cuts, whole Wh, and what has a state: each half-hour, or a day's total."""

    step: Literal["half-hour", "day"]
    edges_wh: tuple[int, ...]

    @property
    def representative_values_wh(self) -> tuple[int, ...]:
        """Return what stands for each state, Wh."""
        return tuple(representative_values(self.edges_wh).tolist())

    @property
    def max_day_wh(self) -> int:
        """Return the most that a day can come to, Wh: no day has more than 48 half-hours here."""
        return self.representative_values_wh[-1] * (_SLOTS if self.step == "half-hour" else 1)

    def represent(self, energy_wh: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return what stands for each energy, none negative. Shapes: (...) -> (...). Units: [Wh].

        >>> RepresentativeValues("half-hour", (100, 300)).represent(np.array([0, 99, 100, 5000])).tolist()
        [50, 50, 200, 400]
        """
        representative_wh = representative_values(self.edges_wh)
        last = self.edges_wh[-1]
        if last > _LARGEST_TABLE:
            return representative_wh[states(energy_wh, self.edges_wh)]
        table: NDArray[np.int64] = representative_wh[states(np.arange(last + 1), self.edges_wh)]
        return table[np.minimum(energy_wh, last)]

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON knows it: what a table of such values is named by."""
        return {"step": self.step, "edges_wh": list(self.edges_wh)}
