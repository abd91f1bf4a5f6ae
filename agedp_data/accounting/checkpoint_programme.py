r"""Losses of known checkpoints with the least noise under window bounds: a convex programme ([D], "Offline").

.. math:: \min \sum_k w_k / r_k \quad \text{subject to} \quad A r \le 1

A has a row for each window that no other contains, with a 1 where a checkpoint lies in it. At the optimum
y_k r_k^2 = w_k with y = A' lambda, lambda >= 0 and lambda_i (1 - (A r)_i) = 0.

Example: two windows share the middle one of three checkpoints: the losses are .586, .414, .586.

Decisions:

* A primal-dual interior point method ([B], Section 11.7) with the first condition in logarithms, in which r and y stay
  positive however long the step.
* In the running sums of r a window is a difference of two, and the systems are those of a graph: sparse, one edge for
  each checkpoint and window.
* The gap is certified by the dual: for any lambda >= 0 no feasible r has less noise than
  (sum of sqrt(w y))^2/(sum of lambda).

[B] Boyd, Vandenberghe: Convex Optimization. Cambridge University Press, 2004.
https://doi.org/10.1017/CBO9780511804441
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agedp_data.arrays import Floats
from agedp_data.errors import ChainError

_TARGET_GAP = 1e-14  # relative gap that ends the method: losses are good to its root
_MAX_GAP = 1e-8  # accepted where rounding stops it
_NO_OPTIMUM_MESSAGE = "no losses within 1e-8 of the optimum were found for these checkpoints; take nearer weights"
_MAX_STEPS = 200
_MIN_RELATIVE_WEIGHT = 1e-24  # of the largest; up to 1e-15 an optimum has always been found
_PATIENCE = 8  # steps without a smaller gap


def checkpoint_optimum(ends: NDArray[np.int64], weights: Floats) -> Floats:
    r"""Return the losses of known checkpoints with the least weighted noise for epsilon = 1.

    .. math:: \min \sum_k w_k / r_k \quad \text{subject to} \quad \sum_{k=i}^{e_i - 1} r_k \le 1 \text{ for every } i

    Source: [D] "Offline vs Mechanism"; the method is [B] Section 11.7. Called by `window_budgets`.

    Args:
        ends: window i holds checkpoints i, ..., ends[i] - 1; shape (T,), not decreasing, ends[i] > i (`window_ends`).
        weights: weights w_k, shape (T,), > 0 [-].

    Returns:
        Losses, shape (T,), > 0 [epsilon], within 1e-8 of the optimum.

    Raises:
        ChainError: no losses within 1e-8 of the optimum, for weights more than 15 orders of magnitude apart.

    References:
        [D] Fang, Chang: Differential Privacy with delta-Neighbourhood for Spatial and Dynamic Datasets. ASIA CCS 2014.
        [B] Boyd, Vandenberghe: Convex Optimization. Cambridge University Press, 2004.
        https://doi.org/10.1017/CBO9780511804441

    >>> checkpoint_optimum(np.array([2, 3, 3]), np.ones(3)).round(6).tolist()  # 2/a + 1/b, a + b = 1: a = sqrt(2) b
    [0.585786, 0.414214, 0.585786]
    """
    if not ends.size:
        return np.zeros(0)
    maximal = np.flatnonzero(np.diff(ends, prepend=0) > 0)
    relative_weights = weights / weights.max()
    if not relative_weights.min() >= _MIN_RELATIVE_WEIGHT:
        raise ChainError(_NO_OPTIMUM_MESSAGE)
    with np.errstate(over="raise", divide="raise", invalid="raise", under="ignore"):
        return _CheckpointProgramme(maximal, ends[maximal], relative_weights).solve()


@dataclass(frozen=True, slots=True)
class _CheckpointProgramme:
    """The programme of T checkpoints and windows start, ..., stop - 1."""

    start: NDArray[np.int64]
    stop: NDArray[np.int64]
    weights: Floats

    def window_sums(self, losses: Floats) -> Floats:
        """Return A r, the sum over each window, term by term: differences of running sums would lose digits."""
        return _window_sums(losses, self.start, self.stop)

    def sums_over_windows(self, multipliers: Floats) -> Floats:
        """Return A' lambda, the sum over the windows that hold each checkpoint; these are consecutive."""
        checkpoints = np.arange(self.weights.size)
        first_after = np.searchsorted(self.start, checkpoints, side="right")
        return _window_sums(multipliers, np.searchsorted(self.stop, checkpoints, side="right"), first_after)

    def solve(self) -> Floats:
        root = np.sqrt(self.weights)
        losses = root / (2 * self.window_sums(root).max())
        multipliers = np.full(self.start.size, float((root / losses).sum() / root.sum()) ** 2 / self.start.size)
        slack = 1 - self.window_sums(losses)
        smallest_gap, best_losses, stalled = np.inf, losses, 0
        for _ in range(_MAX_STEPS):
            try:
                gap = self._gap(losses, multipliers)
                stalled = stalled + 1 if smallest_gap <= _MAX_GAP else 0  # before that it may rise for a while
                if gap < smallest_gap:
                    smallest_gap, best_losses, stalled = gap, losses, 0
                if gap <= _TARGET_GAP or stalled > _PATIENCE:
                    break
                loss_step, multiplier_step, slack_step = self._step(losses, multipliers, slack, min(0.1, gap))
            except (RuntimeError, FloatingPointError):  # singular, or beyond floats: rounding stops the method
                break
            pairs = ((losses, loss_step), (multipliers, multiplier_step), (slack, slack_step))
            step_length = min(1.0, 0.99 * min(_max_step(values, step) for values, step in pairs))
            losses, multipliers, slack = (values + step_length * step for values, step in pairs)
        if smallest_gap <= _MAX_GAP:
            return np.asarray(best_losses / self.window_sums(best_losses).max())
        raise ChainError(_NO_OPTIMUM_MESSAGE)

    def _gap(self, losses: Floats, multipliers: Floats) -> float:
        """Return the relative optimality gap of these losses, scaled to be feasible."""
        noise = float((self.weights / losses).sum() * self.window_sums(losses).max())
        lower_bound = float(np.sqrt(self.weights * self.sums_over_windows(multipliers)).sum()) ** 2 / float(
            multipliers.sum()
        )
        return noise / lower_bound - 1

    def _step(
        self, losses: Floats, multipliers: Floats, slack: Floats, target_share: float
    ) -> tuple[Floats, Floats, Floats]:
        """Return the Newton step towards y r^2 = w, A r + s = 1 and lambda s = `target_share` of its mean."""
        slopes = self.sums_over_windows(multipliers)
        log_residual = np.log(self.weights / (slopes * losses**2))
        # no nearer to the bounds than to y r^2 = w, or small weights would lag
        centring = min(0.9, max(target_share, float(np.abs(log_residual).max())))
        target = centring * float(multipliers @ slack) / self.start.size
        excess = self.window_sums(losses) + slack - 1
        stiffness = multipliers / slack
        multiplier_base = target / slack - multipliers + stiffness * excess
        running_sums = self._graph(
            2 * slopes / losses, stiffness, slopes * log_residual - self.sums_over_windows(multiplier_base)
        )
        # differences of the running sums, as the system has them: the stiffness is huge
        window_changes = _window_differences(running_sums, self.start, self.stop)
        multiplier_step = multiplier_base + stiffness * window_changes
        return np.diff(running_sums, prepend=0.0), multiplier_step, -window_changes - excess

    def _graph(self, checkpoint_stiffness: Floats, window_stiffness: Floats, force: Floats) -> Floats:
        """Solve (diag(c) + A' diag(w) A) x = force, c and w the stiffnesses; return the running sums of x."""
        from scipy.sparse import coo_array  # noqa: PLC0415  (slow to import, and few commands need it)
        from scipy.sparse.linalg import splu  # noqa: PLC0415

        count = self.weights.size
        tails = np.concatenate([np.arange(count), self.start])
        heads = np.concatenate([np.arange(1, count + 1), self.stop])
        stiffness = np.concatenate([checkpoint_stiffness, window_stiffness])
        entries = np.concatenate([stiffness, stiffness, -stiffness, -stiffness])
        indices = (np.concatenate([tails, heads, tails, heads]), np.concatenate([tails, heads, heads, tails]))
        matrix = coo_array((entries, indices), shape=(count + 1, count + 1)).tocsc()[1:, 1:]
        forces = -np.diff(force, append=0.0)
        solver = splu(matrix, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
        return np.asarray(solver.solve(forces))


def _window_differences(running_sums: Floats, start: NDArray[np.int64], stop: NDArray[np.int64]) -> Floats:
    padded = np.concatenate([[0.0], running_sums])
    return np.asarray(padded[stop] - padded[start])


def _window_sums(values: Floats, start: NDArray[np.int64], stop: NDArray[np.int64]) -> Floats:
    """Return the sum of values start, ..., stop - 1 for each pair of start < stop."""
    pairs = np.column_stack([start, stop]).ravel()
    return np.asarray(np.add.reduceat(np.append(values, 0.0), pairs)[::2])


def _max_step(values: Floats, change: Floats) -> float:
    """Return how far along a change all values stay above 0."""
    falling = change < 0
    return float((values[falling] / -change[falling]).min(initial=np.inf))
