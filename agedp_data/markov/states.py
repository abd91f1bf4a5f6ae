"""States of readings: state edges per household, the state of each reading, and the representative value of each state.

Example: the edges (300, 600) Wh make three states: below 300, from 300 to below 600, from 600 on.

Readings are published as representative values with `values = "states"`. Example: the edges (100, 300) Wh give the
representative values 50, 200 and 400 Wh. The edges are public, so the representative values are. A release of them is a
function of the states alone, which is what the Markov model of states describes.

Decisions:

* A household has k states and k - 1 inner edges. State i holds the readings from edge i - 1 (included) to edge i
  (excluded): a reading equal to an edge belongs to the state above.
* Edges may coincide. The states between them are never visited; so a household with few distinct readings has fewer
  visited states.
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

from agedp_data.errors import ChainError

MISSING = -1


def edges_equal_width(maximum: float, n_states: int) -> NDArray[np.float64]:
    r"""Edges of n equal intervals of [0, maximum]; readings above the maximum belong to the last state.

    Use it for the paper's quantisation. Quantile edges give every state enough visits and hence smaller sampling
    bounds.

    .. math:: e_i = \frac{i}{n} \max, \qquad i = 1, \dots, n - 1

    Source: [A] section VI-B quantises half-hourly readings into 12 intervals.

    Args:
        maximum: largest reading, >= 0 [Wh].
        n_states: number of states n.

    Returns:
        Shape (n_states - 1,) [Wh].

    Raises:
        ChainError: a maximum that is negative or not finite, or fewer than one state.

    References:
        [A] https://doi.org/10.1109/TIT.2023.3340147

    >>> edges_equal_width(1200, 4).tolist()
    [300.0, 600.0, 900.0]
    """
    if not 0 <= maximum < np.inf:
        raise ChainError("the largest reading must be a number that is at least 0")
    return np.arange(1, _checked_count(n_states)) * float(maximum) / n_states


def edges_quantile(values: ArrayLike, counts: ArrayLike, n_states: int) -> NDArray[np.int64]:
    r"""Edges that distribute the readings evenly over the states, as far as their values permit.

    Edge i is the smallest value with a share of at least i/n of the readings below it. If several edges fall on one
    value, that value ends a state of its own: the first of these edges moves to the value itself, so that no smaller
    value shares its state. So every value with a share of 2/n or more has its own state.

    .. math:: e_i = \min\{v : F(v-) \ge i / n\}, \qquad i = 1, \dots, n - 1

    Source: elementary (empirical quantiles of integers, by exact comparison). [A] section VI-B has 12 intervals and
    does not name their edges.

    Args:
        values: the distinct readings, shape (v,), ascending integers >= 0 [Wh].
        counts: how often each occurs, shape (v,) [readings].
        n_states: number of states n.

    Returns:
        Shape (n_states - 1,) int64 [Wh].

    Raises:
        ChainError: no reading, values that do not ascend, negative values or counts, or fewer than one state.

    References:
        [A] https://doi.org/10.1109/TIT.2023.3340147

    >>> edges_quantile([0, 10, 20, 30, 40], [60, 10, 10, 10, 10], 5).tolist()  # 0 is 60 %: alone in its state
    [10, 10, 10, 30]
    """
    value, count = np.asarray(values, dtype=np.int64), np.asarray(counts, dtype=np.int64)
    if value.ndim != 1 or value.shape != count.shape:
        raise ChainError("a histogram is one row of values and one of counts, equally long")
    if (np.diff(value) <= 0).any() or (value < 0).any() or (count < 0).any():
        raise ChainError("the values of a histogram must ascend, and neither values nor counts be negative")
    value, count = value[count > 0], count[count > 0]
    if not value.size:
        raise ChainError("a household without any reading has no quantiles")
    below = np.concatenate(([0], count.cumsum()))[: value.size]
    # Whole numbers: i/n of the readings lie below, without rounding.
    cut = np.searchsorted(below * n_states, np.arange(1, _checked_count(n_states)) * int(count.sum()))
    ends_own_state = (cut[1:] == cut[:-1]) & (np.concatenate(([-1], cut[:-2])) != cut[1:]) & (cut[1:] > 1)
    cut[:-1] -= ends_own_state
    return value[np.minimum(cut, value.size - 1)]


def states(values: ArrayLike, edges: ArrayLike) -> NDArray[np.int64]:
    r"""State of each reading, -1 for a missing one (negative or NaN).

    .. math:: x_i = \#\{j : e_j \le r_i\}

    Source: quantisation as in [A] section VI-B.

    Args:
        values: readings, shape (...) [Wh].
        edges: inner edges, shape (n_states - 1,), ascending [Wh].

    Returns:
        Shape (...) int64, 0..n_states - 1 or -1 [-].

    References:
        [A] https://doi.org/10.1109/TIT.2023.3340147

    >>> states([0, 299, 300, 5000, -1], [300, 600]).tolist()
    [0, 0, 1, 2, -1]
    """
    value = np.asarray(values)
    state = np.searchsorted(np.asarray(edges), value, side="right").astype(np.int64)
    return np.where(value >= 0, state, MISSING)


def merge_rare(states: ArrayLike, *, n_states: int, min_visits: int) -> NDArray[np.int64]:
    """States with fewer than `min_visits` visits merged into the nearest frequent state, per household.

    Of two states at the same distance the lower one is taken; without any frequent state, the most visited one. Use it
    for exploratory measures only: in a bound, a rare state makes the household count as not mixing.

    Source: a rule of this package for exploratory tables; the papers treat chains as known.

    Args:
        states: shape (..., m) int, -1 if missing (stays).
        n_states: number of states.
        min_visits: visits that make a state frequent [readings].

    Returns:
        Shape (..., m) int64 [-].

    Raises:
        ChainError: fewer than one state.

    >>> merge_rare([0, 0, 1, 2, 3, 3, -1], n_states=4, min_visits=2).tolist()
    [0, 0, 0, 3, 3, 3, -1]
    """
    series = np.asarray(states, dtype=np.int64)
    flat = series.reshape(-1, series.shape[-1])
    merged = np.empty_like(flat)
    state = np.arange(_checked_count(n_states))
    for row, household_states in enumerate(flat):
        visits = np.bincount(household_states[household_states >= 0], minlength=n_states)
        frequent = np.flatnonzero(visits >= min(min_visits, visits.max()))
        nearest = frequent[np.abs(frequent - state[:, None]).argmin(axis=1)]
        merged[row] = np.where(household_states >= 0, nearest[household_states], MISSING)
    return merged.reshape(series.shape)


def daily_totals(readings: ArrayLike, *, slots: int, max_missing: int) -> NDArray[np.int64]:
    r"""Total of each day, -1 for a day with more than `max_missing` missing slots; a missing slot counts as 0.

    .. math:: T_d = \sum_{i \in d,\ r_i \ge 0} r_i

    Source: elementary (sum of the readings of a day).

    Args:
        readings: shape (..., days * slots) int, beginning with a day, negative if missing [Wh].
        slots: readings of a day.
        max_missing: missing slots that a day may have.

    Returns:
        Shape (..., days) int64 [Wh].

    Raises:
        ChainError: readings that are not a whole number of days.

    >>> daily_totals([1, 2, -1, -1, 3, -1], slots=2, max_missing=1).tolist()
    [3, -1, 3]
    """
    by_day = _by_day(readings, slots)
    is_complete = (by_day < 0).sum(axis=-1) <= max_missing
    return np.where(is_complete, np.where(by_day >= 0, by_day, 0).sum(axis=-1), MISSING)


def _by_day(readings: ArrayLike, slots: int) -> NDArray[np.int64]:
    series = np.asarray(readings, dtype=np.int64)
    if slots < 1 or series.ndim < 1 or series.shape[-1] % slots:
        raise ChainError(f"readings of whole days have a multiple of {slots} slots, got shape {series.shape}")
    return series.reshape(*series.shape[:-1], series.shape[-1] // slots, slots)


def _checked_count(n_states: int) -> int:
    if n_states < 1:
        raise ChainError(f"a chain has at least one state, asked for {n_states}")
    return n_states


_LARGEST_TABLE = 2**20
_SLOTS = 48


def representative_values(edges: ArrayLike) -> NDArray[np.int64]:
    r"""Representative value of each state.

    .. math:: r_i = \lfloor (e_i + e_{i+1}) / 2 \rfloor, \qquad e_0 = 0, \quad e_k = 2 e_{k-1} - e_{k-2}

    with the edges e_1 to e_(k-1). State i contains the integers from e_i to e_(i+1) - 1, whose middle is
    (e_i + e_(i+1) - 1) / 2, here with halves rounded up.

    Source: elementary (class middles of grouped data).

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
    r"""Public edges [Wh] of the states of half-hours or of daily totals; a value is published as its representative.

    .. math:: v \mapsto r_{x(v)}

    Source: elementary (class middles of grouped data, `representative_values`).

    >>> RepresentativeValues("day", (100, 300)).representative_values_wh
    (50, 200, 400)
    """

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
