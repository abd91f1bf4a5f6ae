"""The schedule with the least mean noise for a known number of releases (MATHS 5): a convex programme.

Minimise sum of 1/r_k subject to (A r)_t <= epsilon at every t, A the lower triangular Toeplitz matrix of the
weights. Written in the discounted sums D = A r it is a programme with bounds only, D_t <= epsilon, and the inverse
of A is again a Toeplitz matrix, so that every product is a transform. The gradient is -lambda, A' lambda = 1/r^2;
at the optimum lambda >= 0, and lambda_t = 0 where D_t < epsilon, which is the case of the first few releases.
Newton's method on the free D (Bertsekas 1982), its systems solved by conjugate gradients. How far a schedule is from
the optimum is known from the dual, 2 sum of sqrt((A' lambda)_k) - epsilon sum of lambda.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft

from agedp_data.errors import ChainError
from agedp_data.privacy.discounts import convolution, upper_convolution
from agedp_data.privacy.kernel import Floats

_LEAST_GAP = 1e-12  # relative; of a long series 1e-7 is enough
_LARGEST_GAP = 5e-7  # accepted where rounding stops the method
_FREE = 1e-12  # a sum nearer to its bound lies on it
_NEWTON = 200
_CONJUGATE = 400
_SHORT = 1024
_TERM_BY_TERM = 4096


def exponential_optimum(alpha: float, releases: int) -> Floats:
    """Return the optimum for weights alpha^j and epsilon = 1.

    r_(k+1) = sqrt(alpha) r_k up to the first m with sqrt(alpha) r_m <= 1 - alpha, that is
    alpha^(m/2) <= 1/(1 + sqrt(alpha)); the sum at m is 1, and from then on r = 1 - alpha keeps it there.

    Shapes: (T,). Units: [-].

    >>> exponential_optimum(0.25, 3).round(12).tolist()  # sqrt(alpha) = 1/2: at m = 1, 1/2 <= 2/3
    [1.0, 0.75, 0.75]
    """
    if alpha == 1:
        return np.full(releases, 1 / releases)
    root = math.sqrt(alpha)
    m = min(releases, max(1, math.ceil(2 * math.log1p(root) / -math.log(alpha))))
    last = (1 - root) / -math.expm1(m / 2 * math.log(alpha))  # 1/(1 + root + ... + root^(m-1))
    rising = last * root ** -np.arange(m - 1, -1, -1.0)
    return np.concatenate([rising, np.full(releases - m, 1 - alpha)])


def renewal(weights: Floats) -> Floats:
    """Return r with sum over k <= t of a(t-k) r_k = 1 at every t: the power series 1/((1 - z) A(z)).

    Its terms are the differences d(j) = a(j-1) - a(j) >= 0: r_1 = 1/a(0), a(0) r_t = sum over j < t of d(j) r_(t-j),
    all positive; long series are continued by Newton's iteration on power series. Shapes: (T,) -> (T,).
    """
    differences = np.diff(weights, prepend=0.0)
    known = min(weights.size, _TERM_BY_TERM)
    from scipy.signal import lfilter  # noqa: PLC0415  (a second to import, which few commands need)

    found = np.asarray(lfilter([1.0], differences[:known], np.eye(1, known)[0]))
    while found.size < weights.size:
        known = min(2 * found.size, weights.size)
        longer = np.concatenate([found, np.zeros(known - found.size)])
        off = convolution(differences[:known], longer)
        off[: found.size] = 0.0  # there it is 1, 0, 0, ... up to rounding
        found = longer - convolution(longer, off)
    return np.asarray(np.maximum(found, 0.0))


def optimum(weights: Floats) -> Floats:
    """Return the optimum for any weights and epsilon = 1. Shapes: (T,) -> (T,). Units: [-].

    Long series begin from the optimum of their first part, which what comes later changes little, or from a constant.

    Raises:
        ChainError: no schedule within 5e-7 of the optimum was found.
    """
    count = weights.size
    sums = np.cumsum(weights)
    starts = [sums / sums[-1]]
    if count > _SHORT:
        part = count // 8
        begun = upper_convolution(weights[:part], optimum(weights[:part]))
        starts.append(np.minimum(np.concatenate([begun, np.ones(count - part)]), 1.0))
    return _Programme(weights).solved(*starts).losses


@dataclass(frozen=True, slots=True)
class _Point:
    """Discounted sums, the losses that make them, and how good they are."""

    sums: Floats
    losses: Floats
    noise: float

    @property
    def inside(self) -> bool:
        return math.isfinite(self.noise)


class _Programme:
    """The programme for given weights; products with A, its inverse G and their transposes are transforms."""

    def __init__(self, weights: Floats) -> None:
        self._enough = _LEAST_GAP if weights.size <= _TERM_BY_TERM else 1e-7
        self._size = next_fast_len(2 * weights.size, real=True)
        self._a = rfft(weights, self._size)
        self._g = rfft(np.diff(renewal(weights), prepend=0.0), self._size)

    def _times(self, series: NDArray[np.complex128], vector: Floats) -> Floats:
        return np.asarray(irfft(series * rfft(vector, self._size), self._size)[: vector.size])

    def _transposed(self, series: NDArray[np.complex128], vector: Floats) -> Floats:
        return self._times(series, vector[::-1])[::-1]

    def at(self, sums: Floats) -> _Point:
        losses = self._times(self._g, sums)
        inside = bool((losses > 0).all())
        return _Point(sums, losses, float((1 / losses).sum()) if inside else math.inf)

    def solved(self, *starts: Floats) -> _Point:
        """Return the optimum, begun from the best of these sums."""
        now, reach = min((self.at(sums) for sums in starts), key=lambda point: point.noise), 0
        for _ in range(_NEWTON):
            multipliers = self._transposed(self._g, now.losses**-2.0)
            gap = self._gap(now, multipliers)
            if gap <= self._enough:
                return now
            below = now.sums < 1 - _FREE
            wanted = ~below & (multipliers < 0)
            # usually the free sums end where a bound just wants to be left: leave ever more of those behind it
            reach = 2 * reach + 1 if wanted.any() else 0
            free = below | wanted
            further = self._further(now, multipliers, _widened(free, reach), min(0.1, gap**0.5))
            while further is None and reach:
                reach //= 4
                further = self._further(now, multipliers, _widened(free, reach), min(0.1, gap**0.5))
            if further is None:
                break
            now = further
        if self._gap(now, self._transposed(self._g, now.losses**-2.0)) <= _LARGEST_GAP:
            return now
        raise ChainError(
            "no schedule within 5e-7 of the optimum was found for these weights; take fewer releases or another method"
        )

    def _gap(self, now: _Point, multipliers: Floats) -> float:
        """Return how far a point may be from the optimum, as a part of its noise; infinite if nothing is known."""
        dual = np.where(now.sums < 1 - _FREE, 0.0, np.maximum(multipliers, 0.0))
        slopes = self._transposed(self._a, dual)
        if not (slopes > 0).all():
            return 1.0
        return (now.noise - (2 * float(np.sqrt(slopes).sum()) - float(dual.sum()))) / now.noise

    def _further(self, now: _Point, multipliers: Floats, free: NDArray[np.bool_], tolerance: float) -> _Point | None:
        return self._along(now, self._step(now, multipliers, free, tolerance), multipliers)

    def _step(self, now: _Point, target: Floats, free: NDArray[np.bool_], tolerance: float) -> Floats:
        """Solve (G' W G) x = target on the free sums, W = 2/r^3, preconditioned by (A W^-1 A') there."""
        weight, target = 2 * now.losses**-3.0, np.where(free, target, 0.0)

        def curved(x: Floats) -> Floats:
            return np.where(free, self._transposed(self._g, weight * self._times(self._g, x)), 0.0)

        def smoothed(x: Floats) -> Floats:
            return np.where(free, self._times(self._a, self._transposed(self._a, x) / weight), 0.0)

        found, rest = np.zeros_like(target), target
        better = smoothed(rest)
        direction, size = better, float(rest @ better)
        enough = tolerance**2 * size
        for _ in range(_CONJUGATE):
            bent = curved(direction)
            curvature = float(direction @ bent)
            if curvature <= 0 or size <= enough:
                break
            found, rest = found + size / curvature * direction, rest - size / curvature * bent
            better = smoothed(rest)
            size, before = float(rest @ better), size
            direction = better + size / before * direction
        return found

    def _along(self, now: _Point, step: Floats, multipliers: Floats) -> _Point | None:
        """Return the first point of the halved step, cut at the bounds, that is better; None if none is."""
        length = 1.0
        while length > 1e-12:
            point = self.at(np.minimum(now.sums + length * step, 1.0))
            if point.inside and point.noise <= now.noise - 1e-4 * float(multipliers @ (point.sums - now.sums)):
                return point if point.noise < now.noise else None
            length /= 2
        return None


def _widened(free: NDArray[np.bool_], reach: int) -> NDArray[np.bool_]:
    """Return what is free, and so many behind each."""
    last = np.maximum.accumulate(np.where(free, np.arange(free.size), -reach - 1))
    return np.asarray(np.arange(free.size) - last <= reach)
