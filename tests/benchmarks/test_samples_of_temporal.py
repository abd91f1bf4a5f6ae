"""Small samples of the long jobs beside this file: that they run and compare what they say; never a time."""

from __future__ import annotations

import numpy as np

from tests.benchmarks import temporal


def test_both_passes_over_a_population_come_to_a_figure_between_one_release_and_all():
    for job in (temporal.population, temporal.half_hours):
        found = job(40, 20, loss=0.1, rng=np.random.default_rng(0))
        assert 0.1 < found.largest <= 2.0 + 1e-9
        print(f"{job.__name__}: {found.wall:.2f} s for 40 households and 20 releases")
