"""A total beside its groups: the table of docs/spans.md, least squares of the same values, every share tried."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from agedp_data.accounting.total_share import SpanBudget, consistent_noise, largest_share, shared_noise, span_epsilon
from agedp_data.errors import ChainError
from agedp_data.series.consistency import HierarchyNode, NoisyValue, consistent_estimates

BILLION = 10**9
YEAR = SpanBudget(365, 10 * BILLION, 1e-6, BILLION, 50_000)
PURE = SpanBudget(365, 10 * BILLION, 0, BILLION, 50_000)
THIRD = Fraction(1, 3)  # half of what the groups have


@pytest.mark.parametrize(("number", "groups", "total"), [(4, 1.046, 1.581), (10, 1.077, 1.890), (33, 1.103, 2.112)])
def test_a_total_of_half_the_loss_has_the_table_of_spans(number, groups, total):
    """In the limit of many days squares of losses add up: v = 1.25 of groups, 5 of the total."""
    limit = 1.25 - 1.25**2 / (number * 1.25 + 5), 1 / (1 / 5 + 1 / (number * 1.25))
    assert [math.sqrt(variance) for variance in limit] == pytest.approx([groups, total], abs=5e-4)
    noise = shared_noise(THIRD, [(number, Fraction(1))], YEAR)
    assert noise.groups[0] == pytest.approx(groups, rel=0.01)
    assert noise.total * math.sqrt(number) == pytest.approx(total, rel=0.01)
    by_sums = shared_noise(THIRD, [(number, Fraction(1))], PURE)
    assert by_sums.groups[0] == pytest.approx(1.5 * math.sqrt(limit[0] / 1.25), rel=1e-6)


def test_the_compared_releases_keep_the_same_bound():
    """From the noise of a group follows e(w) / e(0); the days with losses e(0) and e(w) have one bound, 10."""
    parts, share = (Fraction(2, 5), Fraction(3, 5)), 0.25
    noise = shared_noise(Fraction(1, 4), [(3, parts[0]), (12, parts[1])], YEAR)
    total, (first, _) = consistent_noise(0.25, [(3, 0.3), (12, 0.45)])
    ratio = first * 0.4 / noise.groups[0]
    assert noise.total == pytest.approx(total / ratio / min(3**0.5 / 0.4, 12**0.5 / 0.6), rel=1e-9)
    alone = next(
        loss
        for loss in np.arange(0.132, 0.12, -2e-5)
        if span_epsilon([0.4 * loss, 0.6 * loss], days=365, delta=1e-6, sensitivity=50_000) <= 10 * BILLION
    )
    beside = [part * (1 - share) * ratio * alone for part in (0.4, 0.6)]
    bound = span_epsilon([share * ratio * alone, *beside], days=365, delta=1e-6, sensitivity=50_000)
    assert bound == pytest.approx(10 * BILLION, rel=1e-3)


def test_the_noise_is_that_of_least_squares_estimates():
    losses = [(3, 0.2), (5, 0.7)]
    parts = tuple(tuple(HierarchyNode(NoisyValue(0.0, 1 / loss**2)) for _ in range(number)) for number, loss in losses)
    root = consistent_estimates(HierarchyNode(NoisyValue(0.0, 1 / 0.4**2), parts))
    total, by_series = consistent_noise(0.4, losses)
    expected = [root.noisy.variance, *(part[0].noisy.variance for part in root.partitions)]
    assert [total**2, *(noise**2 for noise in by_series)] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("days", [7, 60])
def test_the_best_share_is_found_by_trying_every_share(days):
    budget = SpanBudget(days, 3 * BILLION, 1e-6, BILLION, 50_000)
    groups = [(6, Fraction(1))]
    tried = [shared_noise(Fraction(percent, 100), groups, budget) for percent in range(50)]
    fitting = [noise for noise in tried if noise.groups[0] <= 1.1]
    best = min(fitting, key=lambda noise: noise.total)
    found = largest_share(groups, budget, max_cost=1.1)
    assert found == (best if best.share else None)


@pytest.mark.parametrize("share", [Fraction(-1, 2), Fraction(1)])
def test_a_share_outside_its_range_is_refused(share):
    with pytest.raises(ChainError, match="from 0 to below 1"):
        shared_noise(share, [(2, Fraction(1))], YEAR)


def test_a_bound_without_room_is_refused():
    with pytest.raises(ChainError, match="no loss for a day"):
        shared_noise(THIRD, [(2, Fraction(1))], SpanBudget(365, 1, 1e-6, BILLION, 50_000))
