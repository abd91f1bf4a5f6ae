"""Temporal leakage of households that remember more than the last day: a chain on larger states (MATHS 2b, 4).

A day's state alone forgets too fast, so the chain may be one of PAIRS of days, or of days with a REGIME, the mean of
the days before. A release still reads the day only; the figure is about the whole state, which the day is a part of.

One step of such a chain forgets nothing: (yesterday, today) is followed by (today, tomorrow), so two todays lead to
pairs that are never mistaken for each other, and the recursion of single steps grows without end. It may LEAP: for
any number j of steps, since the releases passed over say no more than the sum of their losses,

    b_t = min over j of [ e_t + ... + e_(t-j+1) + L_{P^^j}(b_(t-j)) ],

which for j = 1 is BPL. Its limit for constant losses e is the least over j of the suprema of x -> j e + L_{P^^j}(x): a
limit x of the minimum is a fixed point for the j that attains it, and lies below every fixed point of the others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agedp_data.chains.states import MISSING
from agedp_data.chains.transitions import power
from agedp_data.errors import ChainError
from agedp_data.privacy.kernel import Floats, checked_loss, checked_steps
from agedp_data.privacy.recursion import LeakageFunction, LeakageTotals, checked_losses, leak_of, shape_of
from agedp_data.privacy.stacked import BatchedLeakage, Kernels, members
from agedp_data.privacy.temporal_blocks import kernels

Ints = NDArray[np.int64]


def pair_states(states: ArrayLike, *, n_states: int) -> Ints:
    """Return the state of each day together with that of the day before: before * k + now, -1 if one is missing.

    Shapes: (..., T) int, one a day in a row -> (..., T), states of k^2.

    Raises:
        ChainError: a state that is not below `n_states`.

    >>> pair_states([0, 2, -1, 1, 1], n_states=3).tolist()
    [-1, 2, -1, -1, 4]
    """
    now = _checked(states, n_states)
    before = np.full_like(now, MISSING)
    before[..., 1:] = now[..., :-1]
    return np.where((now >= 0) & (before >= 0), before * n_states + now, MISSING)


def regime_states(states: ArrayLike, values: ArrayLike, cuts: ArrayLike, *, n_states: int, days: int) -> Ints:
    """Return the state of each day together with its regime, the mean of the `days` days that end with it.

    regime * k + state; -1 if the day is missing or half of those days or more are. A mean that equals a cut belongs to
    the regime above it.

    Shapes: (..., T) int, (..., T), (r-1,) -> (..., T), states of r k. Units: [-], that of the cuts, [days].

    Args:
        states: of each day, -1 if missing.
        values: total of each day, negative or NaN if missing.
        cuts: ascending, between the regimes.
        n_states: k.
        days: how many days a regime looks back over, the day itself included.

    Raises:
        ChainError: shapes that do not fit, cuts that do not ascend, no days, or as `pair_states`.

    >>> regime_states([0, 1, 1, -1], [2, 6, 8, -1], [5], n_states=2, days=2).tolist()  # means 2, 4, 7
    [0, 1, 3, -1]
    """
    now, total, edges = _checked(states, n_states), np.asarray(values, dtype=np.float64), np.asarray(cuts)
    if total.shape != now.shape or edges.ndim != 1 or (np.diff(edges) <= 0).any() or days < 1:
        raise ChainError("regimes need a value for each state, ascending cuts and at least one day to look back over")
    there = total >= 0
    pad = [(0, 0)] * (now.ndim - 1) + [(days, 0)]
    # Sums of whole Wh stay exact in floats.
    sums = np.pad(np.where(there, total, 0.0), pad).cumsum(axis=-1)
    seen = np.pad(there, pad).cumsum(axis=-1)
    sums, seen = (each[..., days:] - each[..., :-days] for each in (sums, seen))
    possible = np.minimum(np.arange(1, now.shape[-1] + 1), days)
    regime = np.searchsorted(edges, sums / np.maximum(seen, 1), side="right")
    return np.where((now >= 0) & (2 * seen > possible), regime * n_states + now, MISSING).astype(np.int64)


@dataclass(frozen=True, slots=True)
class HigherOrderRecursion:
    """Both directions of daily releases on a chain that may be followed several days at a time.

    For `temporal.allocate_through`, `temporal.recorded` and `temporal.windows` like any recursion.

    Attributes:
        backward, forward: how a loss passes over 1, 2, ... days.
    """

    backward: tuple[LeakageFunction, ...]
    forward: tuple[LeakageFunction, ...]

    def leak(self, losses: ArrayLike, *, beyond: float = 0.0) -> LeakageTotals:
        """Return the leakage about each day's state, (..., T); `beyond` is the loss of all releases to come."""
        each = checked_losses(losses)
        before = _leapt(each, self.backward, 0.0)
        after = _leapt(each[..., ::-1], self.forward, beyond)[..., ::-1]
        return leak_of(each, before, after)

    def limit(self, loss: ArrayLike) -> Floats:
        """Return the total leakage that infinitely many releases of this loss build up to."""
        behind, ahead = self.ends(loss)
        each = checked_loss(loss)
        # Each supremum has the loss itself in it once.
        with np.errstate(invalid="ignore"):
            return np.where(np.isinf(behind + ahead), np.inf, behind + (ahead - each))

    def ends(self, loss: ArrayLike) -> tuple[Floats, Floats]:
        """Return the suprema of backward and forward leakage for this loss."""
        each = checked_loss(loss)
        return _supremum(self.backward, each), _supremum(self.forward, each)


def leaping(transition: Kernels, *, leaps: int) -> HigherOrderRecursion:
    """Return the recursion of daily releases on chains of days (..., k, k) that may leap over up to `leaps` days.

    One leap is `temporal` with both kernels of the chain; more are never above it. A tuple is a set of chains of which
    one, always the same, is true.

    Raises:
        ChainError: no leap, or as `kernels`.

    >>> pairs = [[0.7, 0.3, 0, 0], [0, 0, 0.4, 0.6], [0.6, 0.4, 0, 0], [0, 0, 0.3, 0.7]]  # 00, 01, 10, 11
    >>> [leaping(pairs, leaps=j).limit(0.1).round(4).item() for j in (1, 2)]
    [inf, 0.5633]
    """
    count = int(checked_steps(leaps, what="leaps"))
    if count < 1:
        raise ChainError("a recursion takes at least one step at a time")
    behind, ahead = (
        tuple(BatchedLeakage(tuple(power(chain, j) for chain in side)) for j in range(1, count + 1))
        for side in kernels(tuple(members(transition)))
    )
    return HigherOrderRecursion(behind, ahead)


def _supremum(passings: tuple[LeakageFunction, ...], loss: Floats) -> Floats:
    """Return the least over j of e + the part of the supremum of x -> j e + L_j(x) that earlier releases have."""
    each = [np.asarray(passing.supremum(j * loss)) for j, passing in enumerate(passings, start=1)]
    return np.asarray(np.min(np.broadcast_arrays(*each), axis=0))


def _leapt(losses: Floats, passings: tuple[LeakageFunction, ...], beyond: float) -> Floats:
    """Return what the releases so far say about the state at each one, its own loss not included: (..., T)."""
    virtual = len(passings)
    known = [_supremum(passings, np.asarray(beyond))] * virtual
    charged: list[Floats] = [np.asarray(beyond)] * virtual + [losses[..., t] for t in range(losses.shape[-1])]
    found: list[Floats] = []
    households = shape_of(losses, known[0])
    for t in range(virtual, len(charged)):
        passed, least = np.asarray(0.0), np.asarray(np.inf)
        for j, passing in enumerate(passings, start=1):
            least = np.minimum(least, passed + passing(known[t - j]))
            passed = passed + charged[t - j]
        found.append(least)
        known.append(charged[t] + least)
    if not found:
        return np.zeros((*households, 0))
    return np.stack(np.broadcast_arrays(*found), axis=-1)


def _checked(states: ArrayLike, n_states: int) -> Ints:
    series = np.asarray(states)
    if series.ndim < 1 or (series.size and series.dtype.kind not in "iu"):
        raise ChainError("states are whole numbers, one a day, -1 where missing")
    if (series >= n_states).any():
        raise ChainError(f"there are {n_states} states, got a higher one")
    return series.astype(np.int64)
