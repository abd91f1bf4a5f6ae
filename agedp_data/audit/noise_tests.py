"""Tests of the noise in an audit: its law, its scale, where it lies, and whether it is drawn anew each time.

The idea: the audit computes the exact values of its synthetic households itself, so it knows every residual: published
value minus exact value. Under the promise the residuals are independent discrete Laplace draws of the recorded scales.

Example: with equal noise on successive days all 60 of 60 pairs are equal, where 0.00015 equal pairs are expected.

Decisions:

* Every p-value is an exact tail or a proven bound of it (`tail_bounds`), valid for any number of draws.
* A pair of draws is compared in three ways. Equality finds copies, even of few draws. Equal signs find copies of
  another scale. Sizes on the same side of the median find noise that is mirrored.
* Pairs are disjoint, so that their results are independent.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from agedp_data.arrays import Floats, Whole
from agedp_data.audit.noise_law import equality_probability, expected_sign, noise_width, tail_probability
from agedp_data.audit.tail_bounds import count_tails, sign_sum_tail, size_tails

SCALE, SHAPE, PLACE, SIZES = "scale", "shape", "place", "sizes"
_SIZES_FAULT = "too many or too few draws have similar sizes for independent noise of the recorded scale"
SIZE_CELLS: Final = 8
_RARE_DRAWS = 40  # expected draws beyond the outermost width


@dataclass(frozen=True, slots=True)
class Residuals:
    """Published values minus exact values of a series, and the recorded scales.

    Args:
        noise: shape (ledgers, days, groups, cells), integers [Wh, or households].
        scale: recorded noise scale, shape (ledgers, days) [unit of `noise`].
        first_night: number of the days that were released in the first night.

    >>> Residuals(np.zeros((2, 4, 10, 1), np.int64), np.ones((2, 4)), 2).draws_per_release
    10
    """

    noise: Whole
    scale: Floats
    first_night: int

    @property
    def draws_per_release(self) -> int:
        """Return the number of draws of a release."""
        return int(np.prod(self.noise.shape[2:]))


@dataclass(frozen=True, slots=True)
class NoiseTest:
    """A test: the property that it is about, the fault that a small p-value shows, and the p-value [-]."""

    about: str
    fault: str
    p_value: float


def noise_tests(residuals: Residuals, shifts: Mapping[str, Whole]) -> list[NoiseTest]:
    """Return all tests of the residuals of a series.

    Args:
        residuals: residuals of the series.
        shifts: by fault of the sums, how far it shifts each exact value, shape (days, groups, cells).

    >>> draws = np.round(np.random.default_rng(1).laplace(scale=1e6, size=(2, 4, 500, 1))).astype(np.int64)
    >>> tests = noise_tests(Residuals(draws, np.full((2, 4), 1e6), 2), {})
    >>> len(tests), min(test.p_value for test in tests) > 1e-5
    (42, True)
    """
    return [
        *scale_tests(residuals),
        *shape_tests(residuals),
        *place_tests([(residuals, shifts)]),
        *independence_tests(residuals),
    ]


def scale_tests(residuals: Residuals) -> Iterator[NoiseTest]:
    r"""Yield two tests of the sum of the residuals' sizes, the most powerful statistic for a wrong scale.

    .. math:: T = \sum_i |x_i| / \mathrm{scale}_i
    """
    total = float((np.abs(residuals.noise) / residuals.scale[:, :, None, None]).sum())
    small, large = size_tails(total, residuals.scale.ravel(), residuals.draws_per_release)
    yield NoiseTest(SCALE, "the noise is smaller than its recorded scale", small)
    yield NoiseTest(SCALE, "the noise is larger than its recorded scale", large)


def shape_tests(residuals: Residuals) -> Iterator[NoiseTest]:
    r"""Yield two tests of the number of residuals in each cell of sizes, and of those beyond nearly all noise.

    The cells are as equally probable as integers permit: their edges are the eighths of the law of |X|.
    """
    fault = "the noise does not follow the discrete Laplace law of its recorded scale"
    size = np.abs(residuals.noise)
    tails = [1 - i / SIZE_CELLS for i in range(1, SIZE_CELLS)]
    tails.append(min(_RARE_DRAWS / size.size, tails[-1]))
    beyond_before, probability_before = size.size, 1.0
    for tail in tails:
        width = noise_width(residuals.scale, tail)
        beyond = int(np.count_nonzero(size > width[:, :, None, None]))
        probability = float(tail_probability(residuals.scale, width).mean())
        cell_probability = max(0.0, probability_before - probability)
        yield from _count_tests(SHAPE, fault, beyond_before - beyond, size.size, cell_probability)
        beyond_before, probability_before = beyond, probability
    yield from _count_tests(SHAPE, fault, beyond_before, size.size, probability_before)


def place_tests(series: Sequence[tuple[Residuals, Mapping[str, Whole]]]) -> Iterator[NoiseTest]:
    r"""Yield tests of weighted sums of the residuals' signs: whether exact values are what the audit computed.

    .. math:: S = \sum_i w_i \, \mathrm{sign}(x_i), \quad w_i = E \, \mathrm{sign}(X_i + m_i)

    For small shifts m this is the most powerful test. Without a fault the signs of residuals other than 0 are fair. A
    fault of the sums concerns all series, so that their signs add up.

    Args:
        series: residuals of each series and, by fault, how far it shifts the exact values, shape (days, groups, cells).
    """
    signs = [np.sign(residuals.noise) for residuals, _ in series]
    yield _sign_test("the published values are too large", signs, [np.ones(sign.shape) for sign in signs])
    yield _sign_test("the published values are too small", signs, [-np.ones(sign.shape) for sign in signs])
    for fault in series[0][1]:
        weights = [
            expected_sign(residuals.scale[:, :, None, None], shifts[fault][None]) for residuals, shifts in series
        ]
        yield _sign_test(f"the values are shifted as by {fault}", signs, weights)


def independence_tests(residuals: Residuals) -> Iterator[NoiseTest]:
    """Yield tests of disjoint pairs of residuals: of days, nights, groups, cells and ledgers."""
    noise, scale = residuals.noise, np.broadcast_to(residuals.scale[:, :, None, None], residuals.noise.shape)
    for about, axis in (("ledgers", 0), ("days", 1), ("groups", 2), ("cells", 3)):
        pairs = noise.shape[axis] // 2
        first, second = ((slice(None),) * axis + (slice(i, 2 * pairs, 2),) for i in range(2))
        yield from pair_tests(about, noise[first], noise[second], scale[first], scale[second])
    night = residuals.first_night
    again = min(night, noise.shape[1] - night)
    first_days, later_days = np.s_[:, :again], np.s_[:, night : night + again]
    yield from pair_tests("nights", noise[first_days], noise[later_days], scale[first_days], scale[later_days])


def series_tests(residuals: Residuals, second: Residuals) -> Iterator[NoiseTest]:
    """Yield tests of pairs of residuals of two series, at equal positions of the releases of a day."""
    draws = min(residuals.draws_per_release, second.draws_per_release)
    days = min(residuals.noise.shape[1], second.noise.shape[1])
    noise = [series.noise[:, :days].reshape(-1, series.draws_per_release)[:, :draws] for series in (residuals, second)]
    scale = [np.broadcast_to(series.scale[:, :days].reshape(-1, 1), noise[0].shape) for series in (residuals, second)]
    yield from pair_tests("series", noise[0], noise[1], scale[0], scale[1])


def pair_tests(about: str, first: Whole, second: Whole, scale: Floats, second_scale: Floats) -> Iterator[NoiseTest]:
    r"""Yield tests of pairs of independent draws: equal values, equal signs, sizes on the same side of the median.

    .. math:: P(X = Y), \qquad P(\mathrm{sign} X = \mathrm{sign} Y \mid X Y \ne 0) = 1/2, \qquad
       p p' + (1 - p)(1 - p'), \; p = P(|X| > w)

    Args:
        about: relation of the pairs.
        first: first draws, any shape.
        second: second draws, the same shape.
        scale: recorded scales of the first draws, the same shape.
        second_scale: recorded scales of the second draws, the same shape.
    """
    if not first.size:
        return
    fault = PAIR_FAULTS[about]
    equal = int(np.count_nonzero(first == second))
    yield NoiseTest(
        about, fault, count_tails(equal, first.size, float(equality_probability(scale, second_scale).mean()))[1]
    )
    both = (first != 0) & (second != 0)
    agreeing = int(np.count_nonzero(both & ((first > 0) == (second > 0))))
    yield from _count_tests(about, fault, agreeing, int(np.count_nonzero(both)), 0.5)
    width, second_width = noise_width(scale, 0.5), noise_width(second_scale, 0.5)
    p, second_p = tail_probability(scale, width), tail_probability(second_scale, second_width)
    agreeing = int(np.count_nonzero((np.abs(first) > width) == (np.abs(second) > second_width)))
    probability = float((p * second_p + (1 - p) * (1 - second_p)).mean())
    yield from _count_tests(SIZES, f"of pairs of {about}, {_SIZES_FAULT}", agreeing, first.size, probability)


PAIR_FAULTS: Final = {
    "ledgers": "the noise of a day depends on that of the same day in another ledger",
    "days": "the noise of a day depends on that of the day before",
    "groups": "the noise of a group depends on that of another group",
    "cells": "the noise of a cell depends on that of another cell",
    "nights": "the noise of a night depends on that of the night before",
    "series": "the noise of a series depends on that of another series",
}
"""The fault that pairs of draws show, by their relation."""


def significant_tests(tests: Sequence[NoiseTest], *, significance: float) -> list[NoiseTest]:
    r"""Return for each property the test with the smallest p-value, if that is below the significance.

    Args:
        tests: tests of one series, or of a pair of series.
        significance: probability of a false alarm of each test, in (0, 1): that of the audit over the number of all
            its tests (Bonferroni's inequality) [-].

    >>> tests = [NoiseTest("days", "copies", p) for p in (0.5, 1e-9, 1e-8)]
    >>> [test.p_value for test in significant_tests(tests, significance=1e-7)]
    [1e-09]
    """
    smallest: dict[str, NoiseTest] = {}
    for test in tests:
        if test.p_value < min(significance, smallest[test.about].p_value if test.about in smallest else 1.0):
            smallest[test.about] = test
    return list(smallest.values())


def _count_tests(about: str, fault: str, count: int, trials: int, probability: float) -> Iterator[NoiseTest]:
    for p_value in count_tails(count, trials, min(1.0, probability)):
        yield NoiseTest(about, fault, p_value)


def _sign_test(fault: str, signs: Sequence[Whole], weights: Sequence[Floats]) -> NoiseTest:
    total = sum(float((weight * sign).sum()) for sign, weight in zip(signs, weights, strict=True))
    square = sum(float((weight**2 * (sign != 0)).sum()) for sign, weight in zip(signs, weights, strict=True))
    return NoiseTest(PLACE, fault, sign_sum_tail(total, math.sqrt(square)))
