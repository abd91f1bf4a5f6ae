"""What the figures of the slides add to the library: the plane, stays of several windows, simulated noise."""

from __future__ import annotations

import numpy as np
import pytest

from agedp_data.accounting.delta_neighbourhood import distance, standard_distance
from agedp_data.accounting.windows import window_budgets
from docs.papers.neighbourhood import histograms, planes, sustained

pytestmark = pytest.mark.xdist_group("papers")  # figures are computed once


@pytest.mark.parametrize("rows", [1, 2, 3, 4])
def test_the_plane_s_sensitivity_is_that_of_all_moves_tried(rows: int) -> None:
    rng = np.random.default_rng(rows)
    largest = 0
    for _ in range(300):
        here = rng.uniform(0, 16, 2)
        there = np.clip(here + rng.uniform(-1, 1, 2) * 0.999, 0, 16)
        apart = planes.shifted(here[None], rows) - planes.shifted(there[None], rows)
        largest = max(largest, int(np.abs(apart).sum()))
    assert largest == planes.sensitivity(rows) == 2 * (2 * rows - 1)


def test_derived_errors_are_those_of_simulated_noise() -> None:
    rng = np.random.default_rng(6)
    lengths, simulated = histograms.simulate(rng.uniform(0, 50, 40), 4, 3000)
    derived = histograms.deviation(4, histograms.Move(histograms.DELTA))[lengths.astype(int) - 1]
    np.testing.assert_allclose(simulated, derived, rtol=0.05)
    sides, simulated = planes.simulate(rng.uniform(0, 16, (40, 2)), 4, 300)
    np.testing.assert_allclose(simulated, planes.deviation(4)[sides.astype(int) - 1], rtol=0.12)


@pytest.mark.parametrize("method", ["offline", "fraction", "per-request"])
def test_a_stay_of_several_windows_costs_at_most_as_many_epsilon(method: str) -> None:
    times = sustained.requests(5, 4)
    losses = window_budgets(times, window=7, epsilon=1.0, method=method)
    for stay, most in ((7.0, 1), (10.0, 2), (21.0, 3)):
        for begin in times:
            assert losses[(times >= begin) & (times < begin + stay)].sum() <= most * (1 + 1e-12)


def test_where_records_cannot_change_by_delta_both_notions_are_one() -> None:
    rng = np.random.default_rng(5)
    for _ in range(50):
        one = rng.integers(0, 100, 4)
        other = one.copy()
        other[rng.integers(4)] += rng.integers(1, 5)  # valid: by less than delta = 5
        assert distance(one, other, delta=5) == standard_distance(one, other, neighbours="bounded") == 1
    other[0] += 5
    assert distance(one, other, delta=5) > standard_distance(one, other, neighbours="bounded")


def test_cumulative_counts_are_compared_under_the_same_condition_as_histograms() -> None:
    # By hand: the total is estimated by all of them; a range that begins at the grid's end needs one count, others two.
    found = histograms.cumulative(histograms.Move(histograms.DELTA))
    for length in (1, 16):
        places = histograms.CELLS - length + 1
        assert found[length - 1] == pytest.approx(np.sqrt(2 * (1 + 2 * (places - 1)) / places))
