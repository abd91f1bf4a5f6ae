"""The least mean noise under any discount, found by Newton's method in the discounted sums (MATHS 5).

In the sums D = A r the programme of `optimum` has bounds only, D_t <= 1, and the inverse G of A is again a Toeplitz
matrix: every product is a transform, and every point on the way is a schedule. The gradient is -lambda,
A' lambda = 1/r^2. Some sums are left free and the others stay where they are; a system of free sums is solved by
conjugate gradients, preconditioned run by run of them by A W^-1 A', its inverse if nothing else is free.

A long series begins with the schedule of one whose weights are sums of four, drawn out and cut at the bounds: what is
free there is nearly known. Which are free decides everything. First it is the first m. Were they too few, lambda summed
up from m on is not positive at first, and m moves behind the place where it last is not; were they too many, D rises
above 1 from some t on, and m moves half the way to it. Weights of a few large steps leave further runs free: then it is
every sum below its bound, and those where lambda, made positive by the nearest sum of it that does not fall, vanishes.

Any lambda >= 0 bounds the optimum from below by (sum of sqrt((A' lambda)_k))^2/sum of lambda. That of a point is
negative here and there, and lies off its bounds until all is solved; so several are tried that move it a little, on to
sums at their bound or so near to it that it costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft

from agedp_data.privacy.kernel import Floats, Mask
from agedp_data.privacy.optimum import quick_renewal

_BOUND = 1e-12  # a sum nearer to its bound lies on it
_SHORT = 4096
_ROUNDS = 60
_BLOCK = 4  # weights that are one weight of the shorter series a long one begins with
_ROUGH = 2e-6  # the gap up to which that one is solved
_NEAR = (1e-6, 1e-4, 1e-3)  # sums so near to their bound may have multipliers
_GATHERED_NEAR = 1e-5  # to these all others move theirs
# rounds that may gain less than a hundredth of the gap
_PATIENCE_FIRST = 3  # the first m sums free: any sums are tried next
_PATIENCE_ANY = 15  # any sums free: nothing is tried next
_CONJUGATE_FIRST = 30
_CONJUGATE_ANY = 16  # the next round has other sums free
_SINGLE_RANGE = 1e-6  # the part of the largest that a weight is at least where single precision will do
_SINGLE = 8  # a shorter run is preconditioned by its diagonal


def least_noise(weights: Floats) -> tuple[Floats, float]:
    """Return the schedule for epsilon = 1, and by which part of its noise it may exceed the optimum.

    Up to 4,096 releases rounds go on to 1e-10, for longer ones to 9e-7, or as far as rounding lets them. Shapes:
    (T,) -> (T,). Units: [-].
    """
    now, gap, _ = _solved(weights / weights[0], 1e-10 if weights.size <= _SHORT else 9e-7)
    return now.losses / weights[0], gap


def _solved(weights: Floats, enough: float) -> tuple[_Point, float, bool]:
    """Return the schedule, its gap, and whether other sums than the first are free; weights begin with 1."""
    programme, uneven = _LeastNoiseProgramme(weights, enough), False
    now = programme.start()
    if weights.size > _SHORT:
        blocks = weights[: weights.size // _BLOCK * _BLOCK].reshape(-1, _BLOCK).sum(axis=1)
        coarse, _, uneven = _solved(blocks / blocks[0], _ROUGH)
        coarser = programme.cut(np.repeat(coarse.losses, _BLOCK) / blocks[0])
        if uneven:  # where a run of them is at the bound, all of these are
            at_bound = ~_widened(np.pad(np.repeat(coarse.below, _BLOCK), (0, weights.size % _BLOCK), mode="edge"))
            points = [coarser, programme.raised(coarser, at_bound)]
        else:  # not the one that is cut here and there, of which other sums than the first are free
            points = [programme.raised(coarser, np.arange(weights.size) >= _BLOCK * _behind(coarse.below))]
        now = min(now, *points, key=lambda point: point.noise)
    if not uneven:
        now = programme.first_sums(now)
    if programme.gap(now) > enough:
        now, uneven = programme.any_sums(now), True
    return now, programme.gap(now), uneven


@dataclass(frozen=True, slots=True)
class _Point:
    """Discounted sums, the losses that make them, and the sum of 1/r; infinite if a loss is not positive."""

    sums: Floats
    losses: Floats
    noise: float

    @property
    def below(self) -> Mask:
        """Return which sums lie below their bound."""
        return np.asarray(self.sums < 1 - _BOUND)


class _LeastNoiseProgramme:
    """The programme for given weights with a(0) = 1, and the best lower bound of its optimum so far."""

    def __init__(self, weights: Floats, enough: float) -> None:
        self.enough = enough
        self._weights = weights
        self._size = next_fast_len(2 * weights.size, real=True)
        self._a = rfft(weights, self._size)
        self._g = rfft(np.diff(quick_renewal(weights), prepend=0.0), self._size)
        self._least = 0.0

    def start(self) -> _Point:
        """Return the best of those that are constant up to some release, and then their own renewal."""
        sums, last = np.cumsum(self._weights), self._weights.size - 1
        ends = {last >> shift for shift in range(last.bit_length() + 1)}
        level = int((self._weights == 1).sum()) - 1
        points = (self._at(np.minimum(sums / sums[end], 1.0)) for end in sorted({*ends, level}))
        return min(points, key=lambda point: point.noise)

    def cut(self, losses: Floats) -> _Point:
        """Return the schedule of these losses with its sums cut at the bounds; the last loss goes on."""
        longer = np.pad(losses, (0, self._weights.size - losses.size), mode="edge")
        return self._at(np.minimum(self._times(self._a, longer), 1.0))

    def raised(self, now: _Point, at_bound: Mask) -> _Point:
        """Return a point with further sums at their bound."""
        return self._at(np.where(at_bound, 1.0, now.sums))

    def gap(self, now: _Point) -> float:
        """Return how far a point may be from the optimum, as a part of its noise."""
        return max(0.0, 1 - self._least / now.noise)

    def first_sums(self, now: _Point) -> _Point:
        """Return a better point: the first m sums are free."""
        m, past = _behind(now.below), list[tuple[float, int]]()
        while True:
            multipliers, _ = self._judged(now)
            past.append((now.noise, m))
            if self._settled(past, patience=_PATIENCE_FIRST):
                return now
            rest = np.cumsum(multipliers[m:]) > 0
            m = m + int(rest.argmax()) if rest.any() else multipliers.size - 1
            step = self._step(now, multipliers, np.arange(multipliers.size) < m, rounds=_CONJUGATE_FIRST)
            further = self._along(now, step, multipliers)
            above = np.flatnonzero(now.sums + step > 1 + _BOUND)
            if further is None:
                if _behind(now.below) >= m:
                    return now
                m = _behind(now.below)
                continue
            now = further
            if above.size:
                # with fewer free sums the first to rise above its bound lies further on, so m moves half the way only;
                # all of it takes as many rounds (286 to 301 on sixty series of weights of every kind)
                m = (int(above[0]) + m) // 2
                now = min(now, self.raised(now, np.arange(multipliers.size) >= m), key=lambda point: point.noise)
            m = max(m, _behind(now.below))

    def any_sums(self, now: _Point) -> _Point:
        """Return a better point: any sums may be free."""
        past = list[tuple[float, int]]()
        while True:
            multipliers, positive = self._judged(now)
            past.append((now.noise, 0))
            if self._settled(past, patience=_PATIENCE_ANY):
                return now
            below = now.below
            for free in (below | (positive <= _BOUND * positive.max()), below | (multipliers < 0), below):
                further = self._along(now, self._step(now, multipliers, free, rounds=_CONJUGATE_ANY), multipliers)
                if further is not None:
                    break
            else:
                return now
            now = further

    def _settled(self, past: list[tuple[float, int]], *, patience: int) -> bool:
        """Return whether the last point is good enough, or its m stood still for some rounds that gained nothing."""
        noise, m = past[-1]
        gap = 1 - self._least / noise
        before, others = past[-1 - patience :][0][0], {other for _, other in past[-1 - patience :]}
        stuck = len(past) > patience and others == {m} and before - noise < gap / 100 * noise
        return gap <= self.enough or stuck or len(past) > _ROUNDS

    def _judged(self, now: _Point) -> tuple[Floats, Floats]:
        """Return lambda, and the nearest one that is not negative; note how far the point is from the optimum."""
        multipliers = self._transposed(self._g, now.losses**-2.0)
        positive = _rising(np.where(now.below, 0.0, multipliers))
        near = (_rising(np.where(now.sums < 1 - off, 0.0, multipliers)) for off in _NEAR)
        gathered = _gathered(multipliers, now.sums > 1 - _GATHERED_NEAR)
        for bound in (positive, *near, gathered, np.where(now.below, 0.0, np.maximum(multipliers, 0.0))):
            slopes, total = self._transposed(self._a, bound), float(bound.sum())
            if total > 0 and (slopes >= 0).all():
                self._least = max(self._least, float(np.sqrt(slopes).sum()) ** 2 / total)
        return multipliers, positive

    def _at(self, sums: Floats) -> _Point:
        losses = self._times(self._g, sums)
        inside = bool((losses > 0).all())
        return _Point(sums, losses, float((1 / losses).sum()) if inside else math.inf)

    def _times(self, series: NDArray[np.complex128], vector: Floats) -> Floats:
        return np.asarray(irfft(series * rfft(vector, self._size), self._size)[: vector.size])

    def _transposed(self, series: NDArray[np.complex128], vector: Floats) -> Floats:
        return self._times(series, vector[::-1])[::-1]

    def _step(self, now: _Point, target: Floats, free: Mask, *, rounds: int) -> Floats:
        """Solve (G' W G) x = target on the free sums, W = 2/r^3, as far as so many rounds go."""
        weight, rest = 2 * now.losses**-3.0, np.where(free, target, 0.0)
        smoothed = self._preconditioner(weight, free)
        found, better = np.zeros_like(rest), smoothed(rest)
        direction, size = better, float(rest @ better)
        enough = min(0.02, self.gap(now) ** 0.75) * size
        for _ in range(rounds):
            if size <= enough:
                break
            bent = np.where(free, self._transposed(self._g, weight * self._times(self._g, direction)), 0.0)
            curvature = float(direction @ bent)
            if curvature <= 0:
                break
            found, rest = found + size / curvature * direction, rest - size / curvature * bent
            better = smoothed(rest)
            size, before = float(rest @ better), size
            direction = better + size / before * direction
        return found

    def _preconditioner(self, weight: Floats, free: Mask) -> Callable[[Floats], Floats]:
        """Return what multiplies by A W^-1 A' of each run of free sums."""
        inverse = weight.min() / weight
        # a preconditioner need not be sharp, but transforms lose what is so much smaller than the rest
        kind: type[np.floating[Any]] = np.float32 if inverse.min() > _SINGLE_RANGE else np.float64
        diagonal, classes = np.where(free, inverse, 0.0), []
        for first, length in _runs_by_length(free):
            place = first[:, None] + np.arange(length.max())
            inside = np.arange(length.max()) < length[:, None]
            place = np.where(inside, place, 0)
            diagonal[place[inside]] = 0.0
            size = next_fast_len(2 * int(length.max()), real=True)
            series = rfft(self._weights[: length.max()].astype(kind), size)
            classes.append((place, inside, np.where(inside, inverse[place], 0.0).astype(kind), series, size))

        def smoothed(vector: Floats) -> Floats:
            found, scale = diagonal * vector, float(np.abs(vector).max(initial=0.0)) or 1.0
            for place, inside, part, series, size in classes:
                rest = np.where(inside, vector[place] / scale, 0.0).astype(kind)
                older = irfft(series * rfft(rest[:, ::-1], size), size)[:, : rest.shape[1]][:, ::-1]
                newer = irfft(series * rfft(older * part, size), size)[:, : rest.shape[1]]
                found[place[inside]] = newer[inside] * scale
            return found

        return smoothed

    def _along(self, now: _Point, step: Floats, multipliers: Floats) -> _Point | None:
        """Return the first point of the halved step, cut at the bounds, that is better; None if none is."""
        length = 1.0
        while length > 1e-6:
            point = self._at(np.minimum(now.sums + length * step, 1.0))
            gained = max(0.0, float(multipliers @ (point.sums - now.sums)))
            if point.noise < now.noise - 1e-4 * gained:
                return point
            length /= 2
        return None


def _behind(mask: Mask) -> int:
    return int(np.flatnonzero(mask)[-1]) + 1 if mask.any() else 0


def _widened(mask: Mask) -> Mask:
    """Return a mask that reaches a block further on either side."""
    found = mask.copy()
    found[_BLOCK:] |= mask[:-_BLOCK]
    found[:-_BLOCK] |= mask[_BLOCK:]
    return found


def _runs_by_length(mask: Mask) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Yield first places and lengths of the runs that are not short, those of about one length together."""
    ends = np.flatnonzero(np.diff(mask, prepend=False, append=False))
    first, length = ends[::2], ends[1::2] - ends[::2]
    doublings = np.frexp(length - 0.5)[1]
    for each in np.unique(doublings[length >= _SINGLE]):
        alike = doublings == each
        yield first[alike], length[alike]


def _rising(multipliers: Floats) -> Floats:
    """Return the steps of a sum that does not fall, between the largest before and the least behind each place."""
    sums = np.cumsum(multipliers)
    highest, lowest = np.maximum.accumulate(sums), np.minimum.accumulate(sums[::-1])[::-1]
    return np.maximum(np.diff(np.maximum((highest + lowest) / 2, 0.0), prepend=0.0), 0.0)


def _gathered(multipliers: Floats, near: Mask) -> Floats:
    """Return multipliers at these places alone, whose sums are nearest to the mean sum up to the next of them."""
    found = np.zeros_like(multipliers)
    if near.any():
        from scipy.optimize import isotonic_regression  # noqa: PLC0415  (slow to import, and few commands need it)

        first = int(near.argmax())
        group = np.cumsum(near[first:]) - 1  # a place and those behind it up to the next
        length = np.bincount(group)
        means = np.bincount(group, np.cumsum(multipliers)[first:]) / length
        rising = np.maximum(isotonic_regression(means, weights=length).x, 0.0)
        found[near] = np.maximum(np.diff(rising, prepend=0.0), 0.0)
    return found
