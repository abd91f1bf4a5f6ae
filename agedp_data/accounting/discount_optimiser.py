"""The least mean noise under any discount, by Newton's method in the discounted sums.

The idea: in the sums D = A r the programme of `exponential_optimum` has only bounds, D_t <= 1, and the inverse G of A
is again a Toeplitz matrix. Every product is a transform, and every iterate is a feasible schedule.

Example: weights 1, 1/2 and two releases have the optimal losses .828, .586; only the second sum is at its bound.

Decisions:

* The gradient is -lambda, A' lambda = 1/r^2. Some sums are free and the others stay at their bound. The system of the
  free sums is solved by conjugate gradients, preconditioned for each run of them by A W^-1 A', its inverse if nothing
  else is free.
* A long series begins with the schedule of a shorter one whose weights are sums of four, repeated and cut at the
  bounds: its set of free sums is nearly right, and that set decides everything.
* First the set is the first m sums. If they are too few, the running sum of lambda from m on is not positive at first,
  and m moves after the last such index. If they are too many, D exceeds 1 from some t on, and m moves half the way to
  it. Weights of a few large steps leave further runs free: then the set is every sum below its bound, and those where
  lambda, projected to non-negative values (running sum made monotone), vanishes.
* Any lambda >= 0 bounds the optimum from below by (sum of sqrt((A' lambda)_k))^2/sum of lambda. The lambda of an
  iterate has small negative entries, so several corrections are tried: onto sums at their bound, or so near to it that
  it costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft

from agedp_data.accounting.discounting import renewal_by_transforms
from agedp_data.arrays import Floats, Mask

_BOUND_TOLERANCE = 1e-12  # a sum within this distance of its bound is at it
_MAX_UNCOARSENED = 4096
_MAX_ROUNDS = 60
_BLOCK = 4  # weights summed into one weight of the shorter series
_COARSE_GAP = 2e-6  # gap to which the shorter series is solved
_BOUND_MARGINS = (1e-6, 1e-4, 1e-3)  # sums within these distances of their bound may have multipliers
_GATHERED_MARGIN = 1e-5  # multipliers are moved to sums within this distance
# rounds that may gain less than a hundredth of the gap
_PATIENCE_FIRST = 3  # the first m sums free: any sums are tried next
_PATIENCE_ANY = 15  # any sums free: nothing is tried next
_CONJUGATE_FIRST = 30
_CONJUGATE_ANY = 16  # the next round has other sums free
_MIN_SINGLE_PRECISION_RATIO = 1e-6  # the part of the largest that a weight is at least where single precision will do
_MIN_BLOCK_RUN = 8  # a shorter run is preconditioned by its diagonal


def least_noise(weights: Floats) -> tuple[Floats, float]:
    r"""Return the schedule with the least mean noise for epsilon = 1, and a bound of its relative optimality gap.

    .. math:: \min \sum_k 1/r_k \quad \text{subject to} \quad \sum_{k=1}^{t} a(t - k) \, r_k \le 1 \text{ for every } t

    Source: the optimal schedule under [F] (10) and (13) for a known horizon; the gap is certified by the dual (module's
    head). Use `exponential_optimum` for exponential weights. Up to 4,096 releases the iteration continues to a gap of
    1e-10, for longer series to 9e-7, or as far as rounding permits.

    Args:
        weights: a(0), ..., a(T - 1), shape (T,), non-increasing, a(0) > 0 [-].

    Returns:
        Losses, shape (T,) [epsilon], and the gap: the part of the noise that may exceed the optimum [-].

    References:
        [F] https://doi.org/10.48550/arXiv.1908.03995

    >>> losses, gap = least_noise(np.array([1.0, 0.25, 0.0625]))
    >>> losses.round(6).tolist(), gap < 1e-9  # as `exponential_optimum(0.25, 3)`
    ([1.0, 0.75, 0.75], True)
    """
    point, gap, _ = _solve(weights / weights[0], 1e-10 if weights.size <= _MAX_UNCOARSENED else 9e-7)
    return point.losses / weights[0], gap


def _solve(weights: Floats, target_gap: float) -> tuple[_Point, float, bool]:
    """Return the schedule, its gap, and whether sums other than the first m are free; weights begin with 1."""
    programme, is_any_free = _LeastNoiseProgramme(weights, target_gap), False
    point = programme.start()
    if weights.size > _MAX_UNCOARSENED:
        blocks = weights[: weights.size // _BLOCK * _BLOCK].reshape(-1, _BLOCK).sum(axis=1)
        coarse, _, is_any_free = _solve(blocks / blocks[0], _COARSE_GAP)
        cut_point = programme.with_cut_sums(np.repeat(coarse.losses, _BLOCK) / blocks[0])
        if is_any_free:  # where a run of them is at the bound, all of these are
            at_bound = ~_widen_mask(np.pad(np.repeat(coarse.below, _BLOCK), (0, weights.size % _BLOCK), mode="edge"))
            points = [cut_point, programme.with_sums_at_bound(cut_point, at_bound)]
        else:  # not the one that is cut here and there, of which other sums than the first are free
            points = [
                programme.with_sums_at_bound(
                    cut_point, np.arange(weights.size) >= _BLOCK * _index_after_last(coarse.below)
                )
            ]
        point = min(point, *points, key=lambda point: point.noise)
    if not is_any_free:
        point = programme.first_sums(point)
    if programme.gap(point) > target_gap:
        point, is_any_free = programme.any_sums(point), True
    return point, programme.gap(point), is_any_free


@dataclass(frozen=True, slots=True)
class _Point:
    """Discounted sums, the losses that make them, and the sum of 1/r; infinite if a loss is not positive."""

    sums: Floats
    losses: Floats
    noise: float

    @property
    def below(self) -> Mask:
        """Return which sums lie below their bound."""
        return np.asarray(self.sums < 1 - _BOUND_TOLERANCE)


class _LeastNoiseProgramme:
    """The programme for given weights with a(0) = 1, and the best lower bound of its optimum so far."""

    def __init__(self, weights: Floats, target_gap: float) -> None:
        self.target_gap = target_gap
        self._weights = weights
        self._size = next_fast_len(2 * weights.size, real=True)
        self._a = rfft(weights, self._size)
        self._g = rfft(np.diff(renewal_by_transforms(weights), prepend=0.0), self._size)
        self._lower_bound = 0.0

    def start(self) -> _Point:
        """Return the best schedule of those that are constant up to some release and then continue as a renewal."""
        sums, last = np.cumsum(self._weights), self._weights.size - 1
        ends = {last >> shift for shift in range(last.bit_length() + 1)}
        level = int((self._weights == 1).sum()) - 1
        points = (self._point_at(np.minimum(sums / sums[end], 1.0)) for end in sorted({*ends, level}))
        return min(points, key=lambda point: point.noise)

    def with_cut_sums(self, losses: Floats) -> _Point:
        """Return the schedule of these losses with its sums cut at the bounds; the last loss is repeated."""
        extended = np.pad(losses, (0, self._weights.size - losses.size), mode="edge")
        return self._point_at(np.minimum(self._apply(self._a, extended), 1.0))

    def with_sums_at_bound(self, point: _Point, at_bound: Mask) -> _Point:
        """Return a point with further sums at their bound."""
        return self._point_at(np.where(at_bound, 1.0, point.sums))

    def gap(self, point: _Point) -> float:
        """Return how far a point may be from the optimum, as a part of its noise."""
        return max(0.0, 1 - self._lower_bound / point.noise)

    def first_sums(self, point: _Point) -> _Point:
        """Return a better point: the first m sums are free."""
        m, history = _index_after_last(point.below), list[tuple[float, int]]()
        while True:
            multipliers, _ = self._multipliers(point)
            history.append((point.noise, m))
            if self._is_settled(history, patience=_PATIENCE_FIRST):
                return point
            positive_tail = np.cumsum(multipliers[m:]) > 0
            m = m + int(positive_tail.argmax()) if positive_tail.any() else multipliers.size - 1
            step = self._step(point, multipliers, np.arange(multipliers.size) < m, rounds=_CONJUGATE_FIRST)
            next_point = self._line_search(point, step, multipliers)
            overshoots = np.flatnonzero(point.sums + step > 1 + _BOUND_TOLERANCE)
            if next_point is None:
                if _index_after_last(point.below) >= m:
                    return point
                m = _index_after_last(point.below)
                continue
            point = next_point
            if overshoots.size:
                # with fewer free sums the first to rise above its bound lies further on, so m moves half the way only;
                # all of it takes as many rounds (286 to 301 on sixty series of weights of every kind)
                m = (int(overshoots[0]) + m) // 2
                point = min(
                    point,
                    self.with_sums_at_bound(point, np.arange(multipliers.size) >= m),
                    key=lambda point: point.noise,
                )
            m = max(m, _index_after_last(point.below))

    def any_sums(self, point: _Point) -> _Point:
        """Return a better point: any sums may be free."""
        history = list[tuple[float, int]]()
        while True:
            multipliers, positive = self._multipliers(point)
            history.append((point.noise, 0))
            if self._is_settled(history, patience=_PATIENCE_ANY):
                return point
            below = point.below
            for free in (below | (positive <= _BOUND_TOLERANCE * positive.max()), below | (multipliers < 0), below):
                next_point = self._line_search(
                    point, self._step(point, multipliers, free, rounds=_CONJUGATE_ANY), multipliers
                )
                if next_point is not None:
                    break
            else:
                return point
            point = next_point

    def _is_settled(self, history: list[tuple[float, int]], *, patience: int) -> bool:
        """Return whether the last point is good enough, or m did not change for some rounds that gained nothing."""
        noise, m = history[-1]
        gap = 1 - self._lower_bound / noise
        earlier_noise, recent_m = (
            history[-1 - patience :][0][0],
            {free_sums for _, free_sums in history[-1 - patience :]},
        )
        stuck = len(history) > patience and recent_m == {m} and earlier_noise - noise < gap / 100 * noise
        return gap <= self.target_gap or stuck or len(history) > _MAX_ROUNDS

    def _multipliers(self, point: _Point) -> tuple[Floats, Floats]:
        """Return lambda, and the nearest one that is not negative; note how far the point is from the optimum."""
        multipliers = self._apply_transposed(self._g, point.losses**-2.0)
        positive = _monotone_increments(np.where(point.below, 0.0, multipliers))
        near_bound = (
            _monotone_increments(np.where(point.sums < 1 - margin, 0.0, multipliers)) for margin in _BOUND_MARGINS
        )
        gathered = _isotonic_increments(multipliers, point.sums > 1 - _GATHERED_MARGIN)
        for candidate in (positive, *near_bound, gathered, np.where(point.below, 0.0, np.maximum(multipliers, 0.0))):
            slopes, total = self._apply_transposed(self._a, candidate), float(candidate.sum())
            if total > 0 and (slopes >= 0).all():
                self._lower_bound = max(self._lower_bound, float(np.sqrt(slopes).sum()) ** 2 / total)
        return multipliers, positive

    def _point_at(self, sums: Floats) -> _Point:
        losses = self._apply(self._g, sums)
        is_feasible = bool((losses > 0).all())
        return _Point(sums, losses, float((1 / losses).sum()) if is_feasible else math.inf)

    def _apply(self, series: NDArray[np.complex128], vector: Floats) -> Floats:
        return np.asarray(irfft(series * rfft(vector, self._size), self._size)[: vector.size])

    def _apply_transposed(self, series: NDArray[np.complex128], vector: Floats) -> Floats:
        return self._apply(series, vector[::-1])[::-1]

    def _step(self, point: _Point, target: Floats, free: Mask, *, rounds: int) -> Floats:
        """Solve (G' W G) x = target on the free sums, W = 2/r^3, as far as so many rounds go."""
        weight, residual = 2 * point.losses**-3.0, np.where(free, target, 0.0)
        precondition = self._preconditioner(weight, free)
        solution, preconditioned = np.zeros_like(residual), precondition(residual)
        direction, squared_norm = preconditioned, float(residual @ preconditioned)
        tolerance = min(0.02, self.gap(point) ** 0.75) * squared_norm
        for _ in range(rounds):
            if squared_norm <= tolerance:
                break
            product = np.where(free, self._apply_transposed(self._g, weight * self._apply(self._g, direction)), 0.0)
            curvature = float(direction @ product)
            if curvature <= 0:
                break
            solution = solution + squared_norm / curvature * direction
            residual = residual - squared_norm / curvature * product
            preconditioned = precondition(residual)
            squared_norm, previous_size = float(residual @ preconditioned), squared_norm
            direction = preconditioned + squared_norm / previous_size * direction
        return solution

    def _preconditioner(self, weight: Floats, free: Mask) -> Callable[[Floats], Floats]:
        """Return the multiplication by A W^-1 A' of each run of free sums."""
        inverse = weight.min() / weight
        # a preconditioner need not be sharp, but transforms lose what is so much smaller than the rest
        dtype: type[np.floating[Any]] = np.float32 if inverse.min() > _MIN_SINGLE_PRECISION_RATIO else np.float64
        diagonal, classes = np.where(free, inverse, 0.0), []
        for starts, lengths in _runs_by_length(free):
            positions = starts[:, None] + np.arange(lengths.max())
            is_in_run = np.arange(lengths.max()) < lengths[:, None]
            positions = np.where(is_in_run, positions, 0)
            diagonal[positions[is_in_run]] = 0.0
            size = next_fast_len(2 * int(lengths.max()), real=True)
            transformed_weights = rfft(self._weights[: lengths.max()].astype(dtype), size)
            run_inverse = np.where(is_in_run, inverse[positions], 0.0).astype(dtype)
            classes.append((positions, is_in_run, run_inverse, transformed_weights, size))

        def precondition(vector: Floats) -> Floats:
            result, scale = diagonal * vector, float(np.abs(vector).max(initial=0.0)) or 1.0
            for positions, is_in_run, run_inverse, transformed_weights, size in classes:
                run_vector = np.where(is_in_run, vector[positions] / scale, 0.0).astype(dtype)
                longest = run_vector.shape[1]
                reversed_product = irfft(transformed_weights * rfft(run_vector[:, ::-1], size), size)[:, :longest]
                scaled_product = reversed_product[:, ::-1] * run_inverse
                product = irfft(transformed_weights * rfft(scaled_product, size), size)[:, :longest]
                result[positions[is_in_run]] = product[is_in_run] * scale
            return result

        return precondition

    def _line_search(self, start: _Point, step: Floats, multipliers: Floats) -> _Point | None:
        """Return the first better point along the halved step, cut at the bounds; None if there is none."""
        length = 1.0
        while length > 1e-6:
            point = self._point_at(np.minimum(start.sums + length * step, 1.0))
            predicted_gain = max(0.0, float(multipliers @ (point.sums - start.sums)))
            if point.noise < start.noise - 1e-4 * predicted_gain:
                return point
            length /= 2
        return None


def _index_after_last(mask: Mask) -> int:
    return int(np.flatnonzero(mask)[-1]) + 1 if mask.any() else 0


def _widen_mask(mask: Mask) -> Mask:
    """Return a mask that reaches a block further on either side."""
    widened = mask.copy()
    widened[_BLOCK:] |= mask[:-_BLOCK]
    widened[:-_BLOCK] |= mask[_BLOCK:]
    return widened


def _runs_by_length(mask: Mask) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Yield starts and lengths of the long runs, runs of about the same length together."""
    ends = np.flatnonzero(np.diff(mask, prepend=False, append=False))
    starts, lengths = ends[::2], ends[1::2] - ends[::2]
    doublings = np.frexp(lengths - 0.5)[1]
    for doubling in np.unique(doublings[lengths >= _MIN_BLOCK_RUN]):
        is_alike = doublings == doubling
        yield starts[is_alike], lengths[is_alike]


def _monotone_increments(multipliers: Floats) -> Floats:
    """Return the increments of a monotone sum between the largest earlier and the least later running sum."""
    sums = np.cumsum(multipliers)
    highest, lowest = np.maximum.accumulate(sums), np.minimum.accumulate(sums[::-1])[::-1]
    return np.maximum(np.diff(np.maximum((highest + lowest) / 2, 0.0), prepend=0.0), 0.0)


def _isotonic_increments(multipliers: Floats, near: Mask) -> Floats:
    """Return multipliers on the masked indices, whose sums are nearest to the mean running sum up to the next."""
    result = np.zeros_like(multipliers)
    if near.any():
        from scipy.optimize import isotonic_regression  # noqa: PLC0415  (slow to import, and few commands need it)

        first_index = int(near.argmax())
        group = np.cumsum(near[first_index:]) - 1  # a place and those behind it up to the next
        lengths = np.bincount(group)
        means = np.bincount(group, np.cumsum(multipliers)[first_index:]) / lengths
        isotonic = np.maximum(isotonic_regression(means, weights=lengths).x, 0.0)
        result[near] = np.maximum(np.diff(isotonic, prepend=0.0), 0.0)
    return result
