"""Small samples of the long jobs beside this file: that they run and that what they compare agrees; never a time."""

from __future__ import annotations

import numpy as np
import pytest

from tests.benchmarks import coverage, leakage


def test_the_programmes_and_the_primitive_have_the_same_optimum():
    one = leakage.compare(5, pairs=20, rng=np.random.default_rng(1))
    assert one.found == pytest.approx(one.optimum, abs=1e-7)
    assert one.ratio > 0
    print(f"n = {one.size}: HiGHS takes {one.ratio:.0f} times as long")


def test_made_up_households_are_chains_with_a_row_for_every_state():
    chains = leakage.households(20, np.random.default_rng(2))
    np.testing.assert_allclose(chains.sum(axis=-1), 1)
    assert chains.shape == (20, 12, 12)


@pytest.mark.long
def test_the_coverage_of_every_interval_is_measured_and_printed():
    rng = np.random.default_rng(3)
    for sojourn in ((30, 180), (1, 2)):
        one = coverage.measure(days=365, homes=60, sojourn=sojourn, keep=0.9, replicates=19, rng=rng)
        np.testing.assert_allclose(one.held + one.below + one.above, 1)
        print(sojourn, "covered", one.held.round(2).tolist(), "rejected", one.rejected.round(2).tolist())


def test_the_true_figure_of_a_regime_is_the_one_that_long_series_show():
    rng = np.random.default_rng(4)
    one = coverage.measure(days=40_000, homes=1, sojourn=(30, 180), keep=0.9, replicates=19, rng=rng)
    # A very long series: the direct count is near the truth, and the check rejects it at every lag but the first.
    assert one.truth[0] == pytest.approx(0.64 * (1 - 2 / 105), abs=0.01)
    assert one.rejected.tolist() == [0, 1, 1, 1, 1]
