"""Sums of discrete Laplace noises: against brute force, closed forms, draws, and the normal law that they are not."""

from __future__ import annotations

import math
from collections import Counter
from decimal import Decimal, localcontext

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


def test_deviations_add_up_in_squares():
    assert sum_deviation([3.0, 3.0, 4.0]) == pytest.approx(
        math.hypot(*(mechanisms.standard_deviation(scale) for scale in (3.0, 3.0, 4.0))), rel=1e-14
    )
    law = exact_law(SMALL[1])
    variance = sum((k - len(law) // 2) ** 2 * probability for k, probability in enumerate(law))
    assert sum_deviation(SMALL[1]) == pytest.approx(float(variance) ** 0.5, rel=1e-9)


@pytest.mark.parametrize("scales", [[], [0.0, 1.0], [-1.0, 2.0], [math.nan, 1.0], [math.inf, 1.0]])
def test_a_sum_without_a_law_is_refused(scales):
    with pytest.raises(ChainError):
        sum_interval(scales, 0.9)


@pytest.mark.parametrize("coverage", [0, 1, -0.5, 2])
def test_a_coverage_is_a_share(coverage):
    with pytest.raises(ChainError):
        sum_interval([1.0, 2.0], coverage)
