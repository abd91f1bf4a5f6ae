"""The estimate of what changes and what is noise: by hand, unbiased, and with an error that holds."""

from __future__ import annotations

import numpy as np
import pytest

from agedp_data.errors import ChainError
from agedp_data.smoothing.signal_estimate import estimate_change
from agedp_data.smoothing.structural_model import PRIOR
from tests.agedp_data.smoothing.test_structural_model import covariance, covariates


@pytest.mark.parametrize("days", [40, 365])
@pytest.mark.parametrize("sd", [0.1, 0.6, 2.5])
def test_two_standard_errors_contain_the_truth(days, sd):
    rng, known = np.random.default_rng(11), covariates(days)
    root = np.linalg.cholesky(covariance(known, PRIOR) + 1e-9 * np.eye(days))
    truths = 10 + rng.normal(size=(1000, days)) @ root.T
    series = truths + rng.laplace(scale=sd / np.sqrt(2), size=truths.shape)
    variance, held, squares = np.full(days, sd**2), 0, []
    for truth, published in zip(truths, series, strict=True):
        change = np.sqrt(np.mean(np.diff(truth) ** 2))
        estimate = estimate_change(published, variance, np.arange(days))
        held += abs(estimate.change - change) <= 2 * estimate.standard_error
        squares.append(np.mean(np.diff(published) ** 2) - 2 * sd**2 - change**2)
    assert held >= 930
    assert abs(np.mean(squares)) < 5 * np.std(squares) / np.sqrt(1000)


def test_gaps_and_weeks_count_only_whole_neighbours():
    days = np.array([0, 1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 28])
    published = np.where(days < 14, 3.0, 5.0)
    daily = estimate_change(published, np.zeros(21), days)
    assert (daily.pairs, daily.change) == (18, pytest.approx(np.sqrt(4 / 18)))
    weekly = estimate_change(published, np.full(21, 0.7), days, span_days=7)
    assert weekly.pairs == 1  # days 7 to 13 and 14 to 20
    assert weekly.noise == pytest.approx(np.sqrt(0.1))
    assert weekly.published == pytest.approx(2)
    assert weekly.change == pytest.approx(np.sqrt(4 - 0.2))


def test_what_is_hidden_is_said_to_be():
    rng = np.random.default_rng(12)
    published = 10 + rng.laplace(scale=3, size=365)
    estimate = estimate_change(published, np.full(365, 18.0), np.arange(365))
    assert not estimate.is_visible
    assert estimate.change <= 2 * estimate.standard_error
    clear = estimate_change(10 + rng.normal(size=365), np.full(365, 1e-4), np.arange(365))
    assert clear.is_visible


@pytest.mark.parametrize("days", [[], [4], [1, 3]])
def test_without_neighbours_there_is_no_estimate(days):
    assert estimate_change(np.zeros(len(days)), np.ones(len(days)), np.array(days, np.int64)) is None


def test_days_are_in_their_order():
    with pytest.raises(ChainError):
        estimate_change(np.zeros(2), np.ones(2), np.array([2, 1]))
