"""Sums of discrete Laplace noises: against brute force, closed forms, draws, and the normal law that they are not."""

from __future__ import annotations

import math
from collections import Counter
from decimal import Decimal, localcontext
from statistics import NormalDist

import numpy as np
import pytest

from agedp_data import mechanisms
from agedp_data.errors import ChainError
from agedp_data.series.consistency import _inverted_law, sum_deviation, sum_interval

REACH = 60
COVERAGES = ("0.2", "0.5", "0.9", "0.95", "0.999")
SMALL = ([0.5, 1.0], [1.0, 1.0, 2.0], [0.3, 0.7, 1.1, 1.6], [0.05, 1.5], [0.01, 0.02])


def central_probability(scales, width):
    """Return bounds on P(abs(S) <= width) from the law of the intervals; they differ by the inversion error."""
    return _inverted_law(tuple(sorted(Counter(scales).items()))).bounds(width)


def exact_law(scales):
    """The law of the sum on -60n to 60n to 40 digits, by convolution; what lies beyond 60 is below 1e-16."""
    with localcontext(prec=40):
        law = [Decimal(1)]
        for scale in scales:
            q = (-1 / Decimal(scale)).exp()
            single = [(1 - q) / (1 + q) * q ** abs(k) for k in range(-REACH, REACH + 1)]
            total = [Decimal(0)] * (len(law) + 2 * REACH)
            for i, first in enumerate(law):
                for j, second in enumerate(single):
                    total[i + j] += first * second
            law = total
    return law


@pytest.mark.parametrize("scales", SMALL)
def test_the_interval_is_the_smallest_by_brute_force(scales):
    law = exact_law(scales)
    middle = len(law) // 2
    central = [sum(law[middle - width : middle + width + 1]) for width in range(REACH)]
    for width, probability in enumerate(central):
        low, high = central_probability(scales, width)
        assert low - 1e-15 <= probability <= high + 1e-15
        assert high - low < 1e-10
    for coverage in COVERAGES:
        smallest = next(width for width, probability in enumerate(central) if probability >= Decimal(coverage))
        assert sum_interval(scales, coverage) == smallest


def tail_of_two(scale, width):
    """P(|S| > w) of two equal noises: P(S = s) = ((1-q)/(1+q))^2 q^s (s + A), summed over s > w, in closed form."""
    with localcontext(prec=60):
        q = (-1 / Decimal(scale)).exp()
        start = width + 1
        at_zero = (1 + q**2) / (1 - q**2)
        return 2 * ((1 - q) / (1 + q)) ** 2 * q**start / (1 - q) * (at_zero + start + q / (1 - q))


@pytest.mark.parametrize("scale", [2.0, 1_000.0, 123_456.75, 2.0**40])
@pytest.mark.parametrize("coverage", ["0.5", "0.95", "0.99999", "0.99999999999999999999"])
def test_two_equal_noises_have_their_closed_form(scale, coverage):
    width, tail = sum_interval([scale, scale], coverage), 1 - Decimal(coverage)
    assert tail_of_two(scale, width) <= tail
    low, high = central_probability([scale, scale], width)
    assert low - 1e-15 <= 1 - tail_of_two(scale, width) <= high + 1e-15
    assert high - low < 1e-10
    if coverage != "0.99999999999999999999":  # beyond what the inversion resolves a bound takes its place
        slack = math.ceil(1e-10 / float(tail) * scale)
        assert tail_of_two(scale, width - 1 - slack) > tail


def test_deviations_add_up_in_squares():
    assert sum_deviation([3.0, 3.0, 4.0]) == pytest.approx(
        math.hypot(*(mechanisms.standard_deviation(scale) for scale in (3.0, 3.0, 4.0))), rel=1e-14
    )
    law = exact_law(SMALL[1])
    variance = sum((k - len(law) // 2) ** 2 * probability for k, probability in enumerate(law))
    assert sum_deviation(SMALL[1]) == pytest.approx(float(variance) ** 0.5, rel=1e-9)


def test_a_month_of_draws_lies_in_its_interval():
    rng = np.random.default_rng(31)
    scales = [90.0] * 15 + [200.0] * 15 + [1_500.0]
    q = np.exp(-1 / np.array(scales))
    draws = (rng.geometric(1 - q, (40_000, 31)) - rng.geometric(1 - q, (40_000, 31))).sum(axis=1)
    for coverage in (0.5, 0.95, 0.99):
        inside = (np.abs(draws) <= sum_interval(scales, coverage)).mean()
        assert abs(inside - coverage) < 5 * math.sqrt(coverage * (1 - coverage) / len(draws))
        too_narrow = (np.abs(draws) <= sum_interval([0.9 * scale for scale in scales], coverage)).mean()
        assert coverage - too_narrow > 5 * math.sqrt(coverage * (1 - coverage) / len(draws))


@pytest.mark.parametrize(
    ("share", "covered"),
    [(0.95, {1: 0.9375, 7: 0.9468, 31: 0.9492}), (0.99, {1: 0.9738, 7: 0.9859, 31: 0.9890})],
)
def test_the_normal_law_covers_less_than_it_states(share, covered):
    for days, probability in covered.items():
        scales = [100_000.0] * days
        width = round(NormalDist().inv_cdf((1 + share) / 2) * sum_deviation(scales))
        assert central_probability(scales, width)[1] == pytest.approx(probability, abs=1e-4)
        assert sum_interval(scales, share) > width


@pytest.mark.parametrize("scales", [[], [0.0, 1.0], [-1.0, 2.0], [math.nan, 1.0], [math.inf, 1.0]])
def test_a_sum_without_a_law_is_refused(scales):
    with pytest.raises(ChainError):
        sum_interval(scales, 0.9)


@pytest.mark.parametrize("coverage", [0, 1, -0.5, 2])
def test_a_coverage_is_a_share(coverage):
    with pytest.raises(ChainError):
        sum_interval([1.0, 2.0], coverage)
