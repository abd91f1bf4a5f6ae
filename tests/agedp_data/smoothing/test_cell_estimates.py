"""Groups and their total add up, layers are added, and live estimates of cells are never revised."""

from __future__ import annotations

import numpy as np
import pytest

from agedp_data.errors import ChainError
from agedp_data.smoothing.cell_estimates import CellFigures, estimate_cells, layer_sum
from agedp_data.smoothing.structural_model import Estimate
from tests.agedp_data.smoothing.test_structural_model import covariates

DAYS = 60
HOUSEHOLDS = np.array([900, 300, 600])


def cells(rng) -> list[CellFigures]:
    truths = 10 + rng.normal(size=DAYS).cumsum() / 4 + np.array([0, 0.8, -0.4])[:, None]
    noise = 600 / HOUSEHOLDS[:, None] + np.zeros(DAYS)
    observed = truths + rng.laplace(scale=noise / np.sqrt(2))
    observed[rng.random(observed.shape) < 0.1] = np.nan
    counts = np.repeat(HOUSEHOLDS[:, None], DAYS, axis=1).astype(float)
    return [CellFigures(*rows) for rows in zip(observed, noise**2, counts, strict=True)]


@pytest.mark.parametrize("variant", ["archive", "live"])
def test_the_mean_of_groups_is_the_total(variant):
    total, first, second = estimate_cells(
        cells(np.random.default_rng(1)), covariates(DAYS), parts=(1, 2), variant=variant
    )
    np.testing.assert_allclose((300 * first.mean + 600 * second.mean) / 900, total.mean, atol=1e-9)
    assert min(estimate.variance.min() for estimate in (total, first, second)) > 0


def test_later_days_never_revise_live_cells():
    rows = cells(np.random.default_rng(2))
    live = estimate_cells(rows, covariates(DAYS), parts=(1, 2), variant="live")
    changed = [
        CellFigures(np.where(np.arange(DAYS) < 40, cell.observed, 3.0), cell.noise_variance, cell.households)
        for cell in rows
    ]
    for estimate, revised in zip(
        live, estimate_cells(changed, covariates(DAYS), parts=(1, 2), variant="live"), strict=True
    ):
        assert estimate.mean[:40].tobytes() == revised.mean[:40].tobytes()
        assert estimate.variance[:40].tobytes() == revised.variance[:40].tobytes()


def test_layers_are_added_with_their_variances():
    added = layer_sum(
        [Estimate(np.array([1.0, 2]), np.array([3.0, 4])), Estimate(np.array([5.0, 6]), np.array([7.0, 8]))]
    )
    assert (added.mean.tolist(), added.variance.tolist()) == ([6, 8], [10, 12])
    with pytest.raises(ChainError):
        layer_sum([])


def test_parts_leave_one_total():
    rows = cells(np.random.default_rng(3))
    for parts in ((1,), (0, 1, 2)):
        with pytest.raises(ChainError):
            estimate_cells(rows, covariates(DAYS), parts=parts, variant="archive")
