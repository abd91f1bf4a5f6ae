"""Estimates of series of any level: intervals hold, live estimates stay, and nothing fails in silence."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from agedp_data.errors import ChainError
from agedp_data.smoothing.estimates import CellFigures, estimate_cells
from agedp_data.smoothing.structural_model import (
    DAILY_MEAN,
    PRIOR,
    Dynamics,
    Estimate,
    Prior,
    level_scales,
    log_likelihoods,
    most_probable,
    state_precision,
    whitened_products,
)
from tests.agedp_data.smoothing.test_structural_model import covariates, draw

DAYS = 120


def around_ten(rng: np.random.Generator) -> np.ndarray:
    """A true series of the model whose mean is 10 kWh."""
    truth = draw(rng, covariates(DAYS), PRIOR, 1.0)[0]
    return truth - truth.mean() + 10


def estimate(observed: np.ndarray, variance: float, variant: str) -> Estimate:
    days = observed.size
    cell = CellFigures(observed, np.full(days, variance), np.full(days, 100.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return estimate_cells([cell], covariates(days), parts=None, variant=variant)[0]


@pytest.mark.parametrize("size", [0.2, 1, 4, 8, 100])
@pytest.mark.parametrize(("variant", "seeds"), [("archive", 6), ("live", 2)])
def test_intervals_hold_their_share_of_days_at_any_level(size, variant, seeds):
    inside = []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        truth = size * around_ten(rng)
        noise = size * 1.5
        figures = truth + rng.laplace(scale=noise / np.sqrt(2), size=DAYS)
        result = estimate(figures, noise**2, variant)
        inside.append(np.abs(truth - result.mean) <= 1.645 * np.sqrt(result.variance))
    assert 0.86 <= np.mean(inside) <= 0.97


def test_the_factor_is_that_of_the_level_so_far_and_1_where_noise_hides_it():
    figures = np.array([40.0, 40, 40, np.nan, 2.5, 2.5])
    assert level_scales(figures, np.full(6, 0.01), DAILY_MEAN).tolist() == [4, 4, 4, 4, 4, 4]
    assert level_scales(figures[4:], np.full(2, 0.01), DAILY_MEAN).tolist() == [1, 1]
    # by hand: means of 40, their error 30 / sqrt(n); 40 - 10 exceeds two of it from the fifth on
    assert level_scales(np.full(6, 40.0), np.full(6, 900.0), DAILY_MEAN).tolist() == [1, 1, 1, 1, 4, 4]
    assert level_scales(np.array([14.0, 14.0]), np.full(2, 1e-6), DAILY_MEAN).tolist() == [1, 1]
    assert level_scales(figures, np.full(6, 0.01), Prior()).tolist() == [1] * 6


def test_figures_that_come_late_count_from_the_day_on_which_they_are_known():
    figures, late = np.array([40.0, 40.0, 900.0, 40.0]), np.array([2, 1, 4, 3])
    assert level_scales(figures, np.full(4, 0.01), DAILY_MEAN, known_from=late).tolist() == [1, 4, 4, 4]


@pytest.mark.parametrize("size", [1, 8])
def test_later_days_never_revise_the_factor(size):
    figures = size * draw(np.random.default_rng(4), covariates(60), PRIOR, 1.0)[1]
    changed = np.where(np.arange(60) >= 20, 50 * figures, figures)
    first, second = (estimate(each, 9.0, "live") for each in (figures, changed))
    assert first.mean[:20].tobytes() == second.mean[:20].tobytes()
    assert first.variance[:20].tobytes() == second.variance[:20].tobytes()


def test_a_precision_that_floats_cannot_factorise_has_no_likelihood():
    still = Dynamics(np.eye(1), np.full((1, 1), 1e-9), np.full((1, 1), 4.0))
    precision = np.full(3, -1e12)  # no precision is negative; a rounded one may be
    products, determinant = whitened_products(np.ones((1, 3)), precision, np.ones(1), state_precision(still, 3))
    assert np.isnan(products).all()
    assert determinant == np.inf
    public, stack = covariates(30), np.exp(PRIOR.logarithms())[None] * np.array([[1.0], [1e12]])
    likelihoods = log_likelihoods(np.full(30, 9.0), np.full(30, 1e-12), public, stack, DAILY_MEAN)
    assert np.isfinite(likelihoods[0])


def test_figures_beyond_floats_are_refused_with_a_sentence():
    with pytest.raises(ChainError, match=r"reach 1e.200 kWh. Check their unit"):
        most_probable(np.full(30, 1e200), np.full(30, 1e-200), covariates(30))
