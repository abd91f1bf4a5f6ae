"""Temporal leakage of the 40 real London homes, against what their transition tables say at a glance."""

from __future__ import annotations

import csv
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from agedp_data.accounting.temporal_leakage import (
    daily_recursion,
    daily_release_leakage,
    temporal_kernels,
    temporal_supremum,
)

STATES, LOSS = 12, 0.1


@pytest.fixture(scope="module")
def chains(real_data: Path) -> list[np.ndarray]:
    """Half-hourly chains of 12 equal-width states of [0, the home's largest reading], states never seen left out."""
    found = []
    for path in sorted((real_data / "london" / "kaggle").glob("*.csv")):
        with path.open(newline="") as stream:
            rows = list(csv.reader(stream))[1:]
        stamps = [datetime.fromisoformat(stamp) for _, stamp, _ in rows]
        wh = np.array([float(kwh) * 1000 for _, _, kwh in rows]).round()
        state = np.minimum((wh * STATES // wh.max()).astype(int), STATES - 1)
        counts = np.zeros((STATES, STATES))
        for i in range(1, len(rows)):
            if stamps[i] - stamps[i - 1] == timedelta(minutes=30):
                counts[state[i - 1], state[i]] += 1
        seen = np.flatnonzero(counts.sum(axis=1))
        counts = counts[np.ix_(seen, seen)]
        found.append(counts / counts.sum(axis=1, keepdims=True))
    return found


def never_mistaken(kernel: np.ndarray) -> float:
    """The largest share of a row on columns that another row never has."""
    return max(float(q[d == 0].sum()) for q in kernel for d in kernel)


def test_half_hour_by_half_hour_nearly_every_home_s_leakage_grows_without_end(chains):
    endless = []
    for chain in chains:
        (behind,), (ahead,) = temporal_kernels(chain)
        # [T] Theorem 11: there is no supremum if and only if q e^e >= 1 for some q with d = 0.
        expected = max(never_mistaken(behind), never_mistaken(ahead)) * np.exp(LOSS) >= 1
        assert np.isinf(temporal_supremum(behind, ahead, LOSS)) == expected
        endless.append(expected)
    assert len(endless) == 40
    assert sum(endless) >= 37


def test_day_by_day_every_home_s_leakage_has_a_limit_that_a_year_does_not_pass(chains):
    for chain in chains:
        top = float(daily_recursion(chain, steps_per_day=48).total_supremum(LOSS))
        year = daily_release_leakage(chain, np.full(365, LOSS), np.ones(364, dtype=int), steps_per_day=48)[2].max()
        # The release itself, and at most one in the past and one in the future through half an hour.
        assert LOSS < year <= top * (1 + 1e-12)
        assert top < 3.1 * LOSS
