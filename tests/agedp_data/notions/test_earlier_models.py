"""A risk read off an earlier, poorer model than the one that the run file names now."""

from __future__ import annotations

import math

import numpy as np

from agedp_data.epsilon import NANO
from agedp_data.leakage.bound_table import LOSS_GRID, LeakageBound
from agedp_data.ledger import ReleaseRecord
from agedp_data.notions.aged_loss import AgedLoss


def test_a_curve_is_read_by_its_total_variation_though_a_newer_kernel_is_read_tightly():
    curve = LeakageBound(np.array([48]), LOSS_GRID, None, None, {"total_variation": np.array([0.5])}, 48, "curve")
    row = ReleaseRecord(
        "homes", "daily_mean", "2013-01-01", 0, "released", ("all",), (0,), (3,), 1, 1.0, "discrete-laplace",
        NANO, "2013-01-02T00:00:00Z", "2013-01-03", "c", "",
    )  # fmt: skip
    [figure] = AgedLoss(1, "tight", "day").bounds([row], curve, None)
    assert 0 <= figure.value / NANO - math.log1p(0.5 * math.expm1(1)) < 1e-8
    assert "total_variation" in figure.assumption
