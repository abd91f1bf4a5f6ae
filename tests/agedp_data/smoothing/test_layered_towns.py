"""Layered clamp 30 + 45 kWh at 5,000 synthetic households: a single clamp of 30 kWh is biased, the smoothed sum is not.

A household has its own response to weekdays and heating, shares a residual of the day with all others, and has a
residual of its own that lasts a week. Its use is log-normal, such that a clamp of 30 kWh cuts .28 kWh off the mean.
The noise is that of epsilon 10 for a household's year at delta 1e-6, which grants 0.0943 a day (docs/notions.md),
divided .77 to .23. The bias is expected over the noise: one year's draw of layer 2 moves the mean of a year by .03 kWh.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np
import pytest

from agedp_data.smoothing.estimates import CellFigures, above_first_layer, estimate_cells, layer_sum
from agedp_data.smoothing.public_calendar import covariates
from agedp_data.smoothing.structural_model import Covariates, Estimate

HOUSEHOLDS, EPSILON, QUANTILE = 5000, 0.0943, 1.6449
DAYS = [date(2013, 1, 1) + timedelta(days=number) for number in range(365)]


@dataclass(frozen=True)
class Town:
    """Daily means of all that was used, of what lies below 30 kWh, and of what lies between 30 and 75 kWh."""

    unclamped: np.ndarray
    layers: tuple[np.ndarray, np.ndarray]


def make_town(seed: int) -> Town:
    rng, number = np.random.default_rng(seed), np.arange(365)
    spell = np.convolve(rng.normal(scale=2.2, size=395), 0.75 ** np.arange(31), "valid")
    temperature = 10.5 - 7.5 * np.cos(2 * np.pi * (number - 20) / 365.25) + spell
    heating = np.maximum(0, 15.5 - temperature) / 5
    two_days = (heating + np.append(heating[:1], heating[:-1])) / 2
    is_weekend = np.array([day.weekday() >= 5 for day in DAYS])
    base = rng.lognormal(sigma=0.5, size=HOUSEHOLDS)
    response, weekend = rng.gamma(2, 0.5, HOUSEHOLDS), rng.normal(1, 0.7, HOUSEHOLDS)
    shape = 0.7 + 0.16 * two_days[:, None] * response + 0.06 * is_weekend[:, None] * weekend
    shape = np.maximum(shape + rng.normal(scale=0.02, size=365)[:, None], 0.05)
    residual = np.repeat(rng.normal(scale=0.25, size=(53, HOUSEHOLDS)), 7, axis=0)[:365]
    residual += rng.normal(scale=0.2, size=residual.shape)
    use = 12 * base / base.mean() * shape * np.exp(residual - (0.25**2 + 0.2**2) / 2)
    first, both = np.minimum(use, 30).mean(1), np.minimum(use, 75).mean(1)
    return Town(use.mean(1), (first, both - first))


def noisy(truth: np.ndarray, width: float, share: float, above_kwh: float, rng) -> CellFigures:
    scale = width / (share * EPSILON * HOUSEHOLDS)
    counts = np.full(365, float(HOUSEHOLDS))
    return CellFigures(truth + rng.laplace(scale=scale, size=365), np.full(365, 2 * scale**2), counts, above_kwh)


def layered(town: Town, public: Covariates, variant: str, rng) -> Estimate:
    first = estimate_cells([noisy(town.layers[0], 30, 0.77, 0, rng)], public, parts=None, variant=variant)
    second = [noisy(town.layers[1], 45, 0.23, 30, rng)]
    upper = estimate_cells(second, above_first_layer(public, first[0]), parts=None, variant=variant)
    return layer_sum([first[0], upper[0]])


def check(towns: list[Town], variant: str, draws: int) -> None:
    public = covariates(DAYS, region="none")
    errors, holds = [], []
    for town in towns:
        for draw in range(draws):
            estimate = layered(town, public, variant, np.random.default_rng(draw))
            errors.append(estimate.mean - town.unclamped)
            holds.append(np.abs(errors[-1]) <= QUANTILE * np.sqrt(estimate.variance))
    assert abs(np.mean(errors)) <= 0.03
    assert 0.88 <= np.mean(holds) <= 0.97
    assert np.sqrt(np.mean(np.square(errors))) <= 0.2


def test_a_single_clamp_is_biased():
    town, rng = make_town(1), np.random.default_rng(3)
    raw = noisy(town.layers[0], 30, 1.0, 0, rng)
    error = raw.observed - town.unclamped
    assert -0.35 <= error.mean() <= -0.2
    assert np.mean(np.abs(error) <= np.log(10) * np.sqrt(raw.noise_variance / 2)) <= 0.5  # the Laplace law's 90 %


def test_the_sum_of_smoothed_layers_is_not_biased():
    check([make_town(1)], "archive", 6)


def test_the_live_sum_of_layers_is_not_biased():
    check([make_town(1)], "live", 2)


@pytest.mark.long
@pytest.mark.parametrize("variant", ["archive", "live"])
def test_layers_of_many_towns_are_not_biased(variant):
    check([make_town(seed) for seed in range(4)], variant, 8)
