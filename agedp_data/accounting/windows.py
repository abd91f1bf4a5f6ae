"""w-event windows: in any window of time the losses sum to at most epsilon ([D], "Dynamic Dataset"; [W]).

The idea: a household that stays for at most a window is protected by epsilon, however long the series. For releases of
one day each, `window` = w days is w-event privacy.

Example: epsilon 1 per 7 days, spent by halves of the remaining budget at days 0, 1, 2 and 9: 0.5, 0.25, 0.125, 0.5.

Decisions:

* A window is half-open: `window` = 7 on days is any seven consecutive days. Requests at one instant add.
* Known checkpoints are planned together ("offline"). Unannounced requests spend a fraction of the remaining budget,
  which never runs out, or a fixed share.

[D] Fang, Chang: Differential Privacy with delta-Neighbourhood for Spatial and Dynamic Datasets. ASIA CCS 2014.
[W] Kellaris, Papadopoulos, Xiao, Papadias: Differentially Private Event Sequences over Infinite Streams. PVLDB 7, 2014.
https://doi.org/10.14778/2732977.2732989
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agedp_data.arrays import Floats, Number, checked_loss, on_one_scale
from agedp_data.errors import ChainError

# --------------------------------------------------------------------------------------------------
# Losses of known checkpoints with the least noise under window bounds: a convex programme ([D], "Offline").
#
# .. math:: \min \sum_k w_k / r_k \quad \text{subject to} \quad A r \le 1
#
# A has a row for each window that no other contains, with a 1 where a checkpoint lies in it. At the optimum
# y_k r_k^2 = w_k with y = A' lambda, lambda >= 0 and lambda_i (1 - (A r)_i) = 0.
#
# Example: two windows share the middle one of three checkpoints: the losses are .586, .414, .586.
#
# Decisions:
#
# * A primal-dual interior point method ([B], Section 11.7) with the first condition in logarithms, in which r and y
#   stay positive however long the step.
# * In the running sums of r a window is a difference of two, and the systems are those of a graph: sparse, one edge
#   for each checkpoint and window.
# * The gap is certified by the dual: for any lambda >= 0 no feasible r has less noise than (sum of sqrt(w y))^2/(sum
#   of lambda).
#
# [B] Boyd, Vandenberghe: Convex Optimization. Cambridge University Press, 2004.
# https://doi.org/10.1017/CBO9780511804441
# --------------------------------------------------------------------------------------------------

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
        padded = np.concatenate([[0.0], running_sums])
        window_changes = np.asarray(padded[self.stop] - padded[self.start])
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


def _window_sums(values: Floats, start: NDArray[np.int64], stop: NDArray[np.int64]) -> Floats:
    """Return the sum of values start, ..., stop - 1 for each pair of start < stop."""
    pairs = np.column_stack([start, stop]).ravel()
    return np.asarray(np.add.reduceat(np.append(values, 0.0), pairs)[::2])


def _max_step(values: Floats, change: Floats) -> float:
    """Return how far along a change all values stay above 0."""
    falling = change < 0
    return float((values[falling] / -change[falling]).min(initial=np.inf))


# --------------------------------------------------------------------------------------------------
# Budgets of windows, by name of the rule, and the losses of windows.
# --------------------------------------------------------------------------------------------------

METHODS = ("offline", "fraction", "per-request")


def window_budgets(
    times: ArrayLike,
    *,
    window: Number,
    epsilon: float,
    method: str,
    weights: ArrayLike | None = None,
    fraction: float = 0.2,
    requests: int | None = None,
) -> Floats:
    r"""Return losses of releases at the given times that sum to at most `epsilon` in every window [s, s + window).

    .. math:: \sum_{k :\, t_k \in [s, s + W)} r_k \le \varepsilon \quad \text{for every } s

    ==============  ====================================================================================================
    method          loss r_k of release k
    ==============  ====================================================================================================
    "offline"       the least sum of weight_k/r_k under all windows, within 1e-8 of the optimum (`checkpoint_optimum`)
    "fraction"      `fraction` of the budget remaining in (t_k - window, t_k]; online: no loss depends on a later time
    "per-request"   epsilon/`requests`; online
    ==============  ====================================================================================================

    Source: [D] "Offline vs Mechanism"; the guarantee is w-event privacy [W] for a window of w releases.
    The bound holds exactly, in the returned floats. Only `window` and `epsilon` affect the guarantee.

    Args:
        times: instants of release, shape (T,), not decreasing [any unit].
        window: length W of a window, > 0 [unit of `times`].
        epsilon: bound of a window's sum, > 0 [epsilon].
        method: see above.
        weights: for "offline", weight of each release's noise scale, shape (T,), > 0 [-]; None: equal weights.
        fraction: for "fraction", in (0, 1) [-].
        requests: for "per-request", the largest number of requests in a window; None: the largest of `times`.

    Returns:
        Losses, shape (T,), > 0 [epsilon].

    Raises:
        ChainError: an unknown method; times that decrease; a window or epsilon that is not a positive number; a
            fraction outside (0, 1); weights that are not positive, or for another method than "offline"; a window with
            more than `requests` requests.

    References:
        [D] Fang, Chang: Differential Privacy with delta-Neighbourhood for Spatial and Dynamic Datasets. ASIA CCS 2014.
        [W] Kellaris, Papadopoulos, Xiao, Papadias: Differentially Private Event Sequences over Infinite Streams. PVLDB
        7, 2014. https://doi.org/10.14778/2732977.2732989

    >>> window_budgets([0, 1, 2, 9], window=7, epsilon=1, method="fraction", fraction=0.5).tolist()
    [0.5, 0.25, 0.125, 0.5]
    """
    if method not in METHODS:
        raise ChainError(f"method = {method!r}: known are {', '.join(METHODS)}")
    if weights is not None and method != "offline":
        raise ChainError(f'weights are used by method = "offline" only, not by "{method}"')
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise ChainError(f"epsilon = {epsilon}: the bound of a window is a positive number")
    ends = window_ends(times, window=window)
    if method == "offline":
        return _offline_budgets(ends, epsilon, weights)
    if method == "fraction":
        return _fraction_budgets(ends, epsilon, fraction)
    return _per_request_budgets(ends, epsilon, requests)


def window_losses(times: ArrayLike, losses: ArrayLike, *, window: Number) -> Floats:
    r"""Return the sum of the losses in the window (t - window, t] that ends at each time, rounded up.

    .. math:: S_i = \sum_{k :\, t_i - W < t_k \le t_i} r_k

    Source: budget of a sliding window [W]. Their maximum is the maximum over all windows. Requests at one
    instant are all in each other's window.

    Args:
        times: instants of release, shape (T,), not decreasing [any unit].
        losses: losses r_k, shape (T,), finite and >= 0 [epsilon].
        window: length W of a window, > 0 [unit of `times`].

    Returns:
        Sums, shape (T,) [epsilon].

    Raises:
        ChainError: times that decrease, losses that are negative or infinite, or different lengths.

    References:
        [W] Kellaris, Papadopoulos, Xiao, Papadias: Differentially Private Event Sequences over Infinite Streams. PVLDB
        7, 2014. https://doi.org/10.14778/2732977.2732989

    >>> window_losses([0, 6, 7, 13], [1, 2, 4, 8], window=7).tolist()  # 1, 1 + 2, 2 + 4, 4 + 8
    [1.0, 3.0, 6.0, 12.0]
    """
    loss, ends = checked_loss(losses), window_ends(times, window=window)
    if loss.shape != ends.shape or not np.isfinite(loss).all():
        raise ChainError(f"{ends.size} times have a finite loss each, not losses of shape {loss.shape}")
    (scaled_times,) = on_one_scale(times)
    instant_end = np.searchsorted(scaled_times, scaled_times, side="right")  # all requests of one instant
    return np.array([upper_sum(loss[start:end]) for start, end in zip(_window_starts(ends), instant_end, strict=True)])


def window_ends(times: ArrayLike, *, window: Number) -> NDArray[np.int64]:
    r"""Return the first index after the window [t_i, t_i + window) of each time, by exact comparison.

    .. math:: e_i = \#\{ k : t_k < t_i + W \}

    Source: sliding window of [W], half-open, by exact comparison.

    Args:
        times: instants, shape (T,), not decreasing [any unit].
        window: length W of a window, > 0 [unit of `times`].

    Returns:
        Indices, shape (T,), int64.

    Raises:
        ChainError: times that decrease, or a window that is not a positive number.

    References:
        [W] Kellaris, Papadopoulos, Xiao, Papadias: Differentially Private Event Sequences over Infinite Streams. PVLDB
        7, 2014. https://doi.org/10.14778/2732977.2732989

    >>> window_ends([0, 6, 7, 13], window=7).tolist()
    [2, 3, 4, 4]
    """
    scaled_times, scaled_window = on_one_scale(times, window)
    if scaled_times.ndim != 1 or bool((scaled_times[1:] < scaled_times[:-1]).any()):
        raise ChainError("times of release are a list that does not decrease")
    if scaled_window <= 0:
        raise ChainError(f"window = {window}: must be above 0")
    return np.searchsorted(scaled_times, scaled_times + scaled_window, side="left").astype(np.int64)


def upper_sum(losses: Floats) -> float:
    r"""Return the smallest float that is not below the exact sum; use it for sums of losses.

    .. math:: \min \{ f \text{ float} : f \ge \sum_k r_k \}

    Source: correctly rounded sum (math.fsum, Shewchuk's exact partial sums), with a second one for the sign of its
    error.

    Args:
        losses: shape (T,), finite [epsilon].

    Returns:
        Sum, rounded up [epsilon].

    References:
        Shewchuk: Adaptive Precision Floating-Point Arithmetic and Fast Robust Geometric Predicates. Discrete Comput.
        Geom. 18, 1997. https://doi.org/10.1007/PL00009321

    >>> upper_sum(np.array([1.0, 1e-30]))
    1.0000000000000002
    """
    terms: list[float] = losses.tolist()
    total = math.fsum(terms)
    return math.nextafter(total, math.inf) if math.fsum([*terms, -total]) > 0 else total


def _window_starts(ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the index of the first release in the window that ends with each release."""
    return np.searchsorted(ends, np.arange(ends.size), side="right")


def _offline_budgets(ends: NDArray[np.int64], epsilon: float, weights: ArrayLike | None) -> Floats:
    values = np.ones(ends.size) if weights is None else np.array(weights, dtype=np.float64)
    if values.shape != ends.shape or not np.isfinite(values).all() or not (values > 0).all():
        raise ChainError(f"{ends.size} checkpoints have a weight above 0 each, not weights of shape {values.shape}")
    return _scaled_to_windows(checkpoint_optimum(ends, values), ends, epsilon)


def _scaled_to_windows(shares: Floats, ends: NDArray[np.int64], epsilon: float) -> Floats:
    """Return shares as losses of which no window exceeds epsilon, by a few roundings down."""
    largest_sum = max((upper_sum(shares[start:end]) for start, end in enumerate(ends)), default=1.0)
    return np.asarray(shares / largest_sum * epsilon * (1 - 4 * np.finfo(np.float64).eps))


def _fraction_budgets(ends: NDArray[np.int64], epsilon: float, fraction: float) -> Floats:
    if not 0 < fraction < 1:
        raise ChainError(f"fraction = {fraction}: lies between 0 and 1, both excluded")
    losses: list[float] = []
    for start in _window_starts(ends).tolist():
        remaining = math.fsum([epsilon, *(-loss for loss in losses[start:])])
        losses.append(fraction * remaining)  # at most `remaining`: both roundings together are below one ulp of it
    return np.array(losses)


def _per_request_budgets(ends: NDArray[np.int64], epsilon: float, requests: int | None) -> Floats:
    largest_count = int((ends - np.arange(ends.size)).max(initial=1))
    max_requests = largest_count if requests is None else requests
    if max_requests < 1:
        raise ChainError(f"requests = {requests}: a window has at least one")
    if largest_count > max_requests:
        raise ChainError(
            f"a window has {largest_count} requests and at most {max_requests} are provided for; allow more"
        )
    share = epsilon / max_requests
    if Fraction(share) * max_requests > Fraction(epsilon):
        share = math.nextafter(share, 0.0)
    return np.full(ends.size, share)
