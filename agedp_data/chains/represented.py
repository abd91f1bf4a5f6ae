"""Representative values of public states: the values that readings are published as with `values = "states"`.

Example: the edges (100, 300) Wh give the representative values 50, 200 and 400 Wh.

The edges are public, so the representative values are. A release of them is a function of the states alone, which is
what the Markov model of states describes.

Decisions:

* A state counts as the middle of the whole watt-hours in it, halves rounded up.
* The last state has no upper end. It is taken to be as wide as the state before it, the custom for an open class of
  grouped data. A bound on readings as its end would count every one of them as half of a use that never occurs.
* A representative value lies in its own state, so quantising twice changes nothing, and more use never counts as less.
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
    r"""Representative value of each state.

    .. math:: r_i = \lfloor (e_i + e_{i+1}) / 2 \rfloor, \qquad e_0 = 0, \quad e_k = 2 e_{k-1} - e_{k-2}

    with the edges e_1 to e_(k-1). State i contains the integers from e_i to e_(i+1) - 1, whose middle is
    (e_i + e_(i+1) - 1) / 2, here with halves rounded up.

    Args:
        edges: inner edges, shape (k - 1,), ascending integers > 0 [Wh].

    Returns:
        Shape (k,) int64 [Wh].

    Raises:
        ChainError: no edge, or edges that are not integers, not above 0 or do not ascend.

    >>> representative_values([1, 100, 300]).tolist()  # the first state contains 0 alone
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
    """Public edges [Wh], and what has a state: each half-hour, or the total of a day."""

    step: Literal["half-hour", "day"]
    edges_wh: tuple[int, ...]

    @property
    def representative_values_wh(self) -> tuple[int, ...]:
        """Return the representative value of each state [Wh]."""
        return tuple(representative_values(self.edges_wh).tolist())

    @property
    def max_day_wh(self) -> int:
        """Return the largest possible total of a day [Wh]; a day has at most 48 half-hours."""
        return self.representative_values_wh[-1] * (_SLOTS if self.step == "half-hour" else 1)

    def represent(self, energy_wh: NDArray[np.int64]) -> NDArray[np.int64]:
        """Representative value of each energy.

        Args:
            energy_wh: shape (...), integers >= 0 [Wh].

        Returns:
            Shape (...) int64 [Wh].

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
        """Return the step and the edges as JSON; the name of a stored table of such values derives from it."""
        return {"step": self.step, "edges_wh": list(self.edges_wh)}
