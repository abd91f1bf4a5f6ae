"""Groups and their total add up, layers are added, and live estimates of cells are never revised."""

from __future__ import annotations

import numpy as np
import pytest

from agedp_data.smoothing.estimates import DIFFERENCE, CellFigures, above_first_layer, estimate_cells, layer_sum
from agedp_data.smoothing.structural_model import PRIOR, Estimate
from tests.agedp_data.smoothing.test_structural_model import covariance, covariates

DAYS, FEW = 60, 27
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
    rng, groups = np.random.default_rng(2), 17
    counts = np.repeat([[90.0 * groups], *([[50.0 + 10 * number] for number in range(groups)])], DAYS, axis=1)
    noise = 300 / counts
    observed = 10 + rng.normal(size=counts.shape) + rng.laplace(scale=noise)
    observed[rng.random(observed.shape) < 0.05] = np.nan
    observed[:, 1:3] = np.where(np.arange(groups + 1)[:, None] < 5, observed[:, 1:3], np.nan)
    counts[np.isnan(observed)] = np.nan

    def live(days: int, figures: np.ndarray, households: np.ndarray) -> list[Estimate]:
        rows = zip(figures[:, :days], noise[:, :days] ** 2, households[:, :days], strict=True)
        public, parts = covariates(DAYS).over(slice(days)), tuple(range(1, groups + 1))
        return estimate_cells([CellFigures(*row) for row in rows], public, parts=parts, variant="live")

    everything = live(DAYS, observed, counts)
    later = np.arange(DAYS) >= 40
    changed = live(DAYS, np.where(later, 3.0, observed), np.where(later, 70.0, counts))
    for days, revised in [(40, changed), *[(days, live(days, observed, counts)) for days in (1, 2, 3, 28, 29, 57)]]:
        for estimate, again in zip(everything, revised, strict=True):
            assert estimate.mean[:days].tobytes() == again.mean[:days].tobytes()
            assert estimate.variance[:days].tobytes() == again.variance[:days].tobytes()


def test_groups_of_an_upper_layer_add_up():
    first, counts = cells(np.random.default_rng(9)), [cell.households for cell in cells(np.random.default_rng(9))]
    upper = [CellFigures(0.03 * row.observed, row.noise_variance / 100, row.households, 30.0) for row in first]
    for variant in ("archive", "live"):
        below = estimate_cells(first, covariates(DAYS), parts=(1, 2), variant=variant)
        public = above_first_layer(covariates(DAYS), below[0])
        above = estimate_cells(upper, public, parts=(1, 2), variant=variant)
        sums = [layer_sum(pair) for pair in zip(below, above, strict=True)]
        weighted = (counts[1] * sums[1].mean + counts[2] * sums[2].mean) / counts[0]
        np.testing.assert_allclose(weighted, sums[0].mean, atol=1e-9)


def dense_groups(public, figures, noise, groups):
    """Total and groups given all figures: groups of equal size differ from the total by equal laws that cancel."""
    size, total, part = FEW, covariance(public, PRIOR), covariance(public, DIFFERENCE.amplitudes)
    part += DIFFERENCE.constant_sd_kwh**2 - 10.0**2
    cancel = np.eye(groups) - 1 / groups
    blocks = np.kron(np.ones((groups + 1, groups + 1)), total)
    blocks[size:, size:] += np.kron(cancel * groups / (groups - 1), part)
    seen = np.isfinite(figures.ravel())
    gain = blocks[:, seen] @ np.linalg.inv(blocks[np.ix_(seen, seen)] + np.diag(noise.ravel()[seen]))
    mean = 10 + gain @ (figures.ravel()[seen] - 10)
    return mean.reshape(groups + 1, size), np.diag(blocks - gain @ blocks[seen]).reshape(groups + 1, size)


@pytest.mark.parametrize("with_total", [True, False])
def test_equal_groups_are_the_dense_formula_of_all_cells(with_total):
    rng, public, groups = np.random.default_rng(4), covariates(FEW), 3
    noise = np.repeat([[0.4], [2.0], [2.0], [2.0]], FEW, axis=1)
    figures = 10 + rng.normal(size=(groups + 1, FEW)) * np.sqrt(noise)
    figures[:, 7] = np.nan  # a day that is skipped
    if not with_total:
        figures[0] = np.nan
    mean, variance = dense_groups(public, figures, noise, groups)
    counts = np.repeat([[27.0], [9.0], [9.0], [9.0]], FEW, axis=1)
    rows = [CellFigures(*row) for row in zip(figures, noise, counts, strict=True)]
    live = estimate_cells(rows, public, parts=(1, 2, 3), variant="live")  # amplitudes of the prior, for 28 days
    np.testing.assert_allclose([cell.mean[-1] for cell in live], mean[:, -1], atol=1e-8)
    np.testing.assert_allclose([cell.variance[-1] for cell in live], variance[:, -1], atol=1e-8)
    assert np.isfinite([cell.mean[7] for cell in live]).all()
