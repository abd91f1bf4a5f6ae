"""The losses of known checkpoints with the least noise under window bounds (MATHS 6): a convex programme.

Minimise sum of w_k/r_k subject to A r <= 1; A has a row for each window that no other contains, with a 1 where a
checkpoint lies in it. At the optimum y_k r_k^2 = w_k with y = A' lambda, lambda >= 0 and lambda_i (1 - (A r)_i) = 0. A
primal-dual interior point method with the first of these in logarithms, in which r and y stay positive however long the
step. In the running sums of r a window is a difference of two, and the systems are those of a graph: sparse, one edge
for each checkpoint and window. How far losses are from the optimum is known from the dual: for any lambda >= 0 no
feasible r has less than (sum of sqrt(w y))^2/(sum of lambda).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agedp_data.errors import ChainError
from agedp_data.privacy.kernel import Floats

_ENOUGH = 1e-14  # relative gap that ends the method: losses are good to its root
_LARGEST_GAP = 1e-8  # accepted where rounding stops it
_NOT_FOUND = "no losses within 1e-8 of the optimum were found for these checkpoints; take nearer weights"
_STEPS = 200
_LEAST_WEIGHT = 1e-24  # of the largest; up to 1e-15 an optimum has always been found
_PATIENCE = 8  # steps without a smaller gap


def optimum(ends: NDArray[np.int64], weights: Floats) -> Floats:
    """Return the optimal losses for epsilon = 1; window i holds checkpoints i, ..., ends[i] - 1.

    Shapes: (T,), (T,) -> (T,). Units: [-] -> [-].

    Raises:
        ChainError: no losses within 1e-8 of the optimum were found (of weights more than 15 orders of magnitude apart).

    >>> optimum(np.array([2, 3, 3]), np.ones(3)).round(6).tolist()  # 2/a + 1/b, a + b = 1: a = sqrt(2) b
    [0.585786, 0.414214, 0.585786]
    """
    if not ends.size:
        return np.zeros(0)
    longest = np.flatnonzero(np.diff(ends, prepend=0) > 0)
    small = weights / weights.max()
    if not small.min() >= _LEAST_WEIGHT:
        raise ChainError(_NOT_FOUND)
    with np.errstate(over="raise", divide="raise", invalid="raise", under="ignore"):
        return _CheckpointProgramme(longest, ends[longest], small).solved()


@dataclass(frozen=True, slots=True)
class _CheckpointProgramme:
    """The programme of T checkpoints and windows start, ..., stop - 1."""

    start: NDArray[np.int64]
    stop: NDArray[np.int64]
    weights: Floats

    def within(self, losses: Floats) -> Floats:
        """Return A r, the sum over each window, term by term: differences of running sums would lose digits."""
        return _sums(losses, self.start, self.stop)

    def over(self, multipliers: Floats) -> Floats:
        """Return A' lambda, the sum over the windows that hold each checkpoint; these follow on each other."""
        places = np.arange(self.weights.size)
        begun = np.searchsorted(self.start, places, side="right")
        return _sums(multipliers, np.searchsorted(self.stop, places, side="right"), begun)

    def solved(self) -> Floats:
        root = np.sqrt(self.weights)
        losses = root / (2 * self.within(root).max())
        multipliers = np.full(self.start.size, float((root / losses).sum() / root.sum()) ** 2 / self.start.size)
        slack = 1 - self.within(losses)
        best, found, since = np.inf, losses, 0
        for _ in range(_STEPS):
            try:
                gap = self._gap(losses, multipliers)
                since = since + 1 if best <= _LARGEST_GAP else 0  # before that it may rise for a while
                if gap < best:
                    best, found, since = gap, losses, 0
                if gap <= _ENOUGH or since > _PATIENCE:
                    break
                change, rise, fall = self._step(losses, multipliers, slack, min(0.1, gap))
            except (RuntimeError, FloatingPointError):  # singular, or beyond floats: rounding stops the method
                break
            length = min(1.0, 0.99 * min(_reach(losses, change), _reach(multipliers, rise), _reach(slack, fall)))
            losses, multipliers, slack = losses + length * change, multipliers + length * rise, slack + length * fall
        if best <= _LARGEST_GAP:
            return np.asarray(found / self.within(found).max())
        raise ChainError(_NOT_FOUND)

    def _gap(self, losses: Floats, multipliers: Floats) -> float:
        """Return how far these losses, scaled to fit, may be from the optimum, as a part of it."""
        noise = float((self.weights / losses).sum() * self.within(losses).max())
        least = float(np.sqrt(self.weights * self.over(multipliers)).sum()) ** 2 / float(multipliers.sum())
        return noise / least - 1

    def _step(self, losses: Floats, multipliers: Floats, slack: Floats, nearer: float) -> tuple[Floats, Floats, Floats]:
        """Return the Newton step towards y r^2 = w, A r + s = 1 and lambda s = the part `nearer` of its mean."""
        slopes = self.over(multipliers)
        off = np.log(self.weights / (slopes * losses**2))
        # no nearer to the bounds than to y r^2 = w, or small weights would be left behind
        part = min(0.9, max(nearer, float(np.abs(off).max())))
        target = part * float(multipliers @ slack) / self.start.size
        beyond = self.within(losses) + slack - 1
        stiff = multipliers / slack
        wanted = target / slack - multipliers + stiff * beyond
        running = self._graph(2 * slopes / losses, stiff, slopes * off - self.over(wanted))
        sums = _differences(running, self.start, self.stop)  # as the system has them: `stiff` is huge
        return np.diff(running, prepend=0.0), wanted + stiff * sums, -sums - beyond

    def _graph(self, steep: Floats, stiff: Floats, force: Floats) -> Floats:
        """Solve (diag(steep) + A' diag(stiff) A) x = force, and return the running sums of x."""
        from scipy.sparse import coo_array  # noqa: PLC0415  (slow to import, and few commands need it)
        from scipy.sparse.linalg import splu  # noqa: PLC0415

        count = self.weights.size
        one = np.concatenate([np.arange(count), self.start])
        other = np.concatenate([np.arange(1, count + 1), self.stop])
        edge = np.concatenate([steep, stiff])
        entries = np.concatenate([edge, edge, -edge, -edge])
        places = (np.concatenate([one, other, one, other]), np.concatenate([one, other, other, one]))
        matrix = coo_array((entries, places), shape=(count + 1, count + 1)).tocsc()[1:, 1:]
        forces = -np.diff(force, append=0.0)
        solver = splu(matrix, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
        return np.asarray(solver.solve(forces))


def _differences(running: Floats, start: NDArray[np.int64], stop: NDArray[np.int64]) -> Floats:
    padded = np.concatenate([[0.0], running])
    return np.asarray(padded[stop] - padded[start])


def _sums(values: Floats, start: NDArray[np.int64], stop: NDArray[np.int64]) -> Floats:
    """Return the sum of values start, ..., stop - 1 for each pair of start < stop."""
    pairs = np.column_stack([start, stop]).ravel()
    return np.asarray(np.add.reduceat(np.append(values, 0.0), pairs)[::2])


def _reach(values: Floats, change: Floats) -> float:
    """Return how far along a change all values stay above 0."""
    falling = change < 0
    return float((values[falling] / -change[falling]).min(initial=np.inf))
