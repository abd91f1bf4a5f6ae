"""Figures 1 to 3 of the discounted paper: means and errors by plain loops, and what its noise does in a year."""

from __future__ import annotations

import numpy as np
import pytest

from agedp_data.accounting.discount_schedules import Exponential, Hyperbolic, infinite_horizon_schedule
from docs.papers.discounted.reports import CLAMP_KWH, daily_means, error, figure_1, printed
from docs.papers.households import PaperHouseholds, PaperReadings
from docs.papers.results import PaperFigure

pytestmark = pytest.mark.xdist_group("papers")  # figures are computed once


def test_the_means_are_those_of_a_plain_loop() -> None:
    rng = np.random.default_rng(2)
    energy = rng.integers(0, 9000, (7, 5, 48))
    energy[2, 3] = -1
    energy[4, 1, 10:] = -1
    means, homes = daily_means(PaperHouseholds("made up", energy, open_data=False))
    assert homes == 7
    for day in range(5):
        totals = [sum(max(int(value), 0) for value in home[day]) for home in energy if (home[day] >= 0).any()]
        assert means[day] == pytest.approx(sum(min(total, CLAMP_KWH * 1000) for total in totals) / len(totals) / 1000)
    assert (energy[:, 0].sum(axis=1) > CLAMP_KWH * 1000).any()  # or the clamp would not show


def test_the_errors_are_scale_over_mean() -> None:
    rng = np.random.default_rng(3)
    losses, means = np.array([0.1, 2.0]), np.array([10.0, 20.0])
    expected = [
        np.abs(rng.laplace(0, CLAMP_KWH / 300 / loss, 100_000)).mean() / mean
        for loss, mean in zip(losses, means, strict=True)
    ]
    np.testing.assert_allclose(error(losses, means, 300), expected, rtol=0.02)


def test_an_endless_classical_series_never_comes_to_more_than_epsilon() -> None:
    losses = infinite_horizon_schedule(Exponential(0.9), epsilon=1.0, releases=100_000, method="classical")
    assert 0.99999 < losses.sum() < 1
    assert losses[0] / losses[99] == pytest.approx(100**2)


def test_hyperbolic_noise_grows_visibly_within_a_year() -> None:
    losses = printed(Hyperbolic(0.1), 365)
    assert losses[0] / losses[-1] == pytest.approx(365**0.5)
    # The constant by hand: 2 (atanh(1/sqrt 3) + atanh(sqrt(1/11)))/sqrt(.11)
    assert 1 / losses[0] == pytest.approx(2 * (np.arctanh(3**-0.5) + np.arctanh(11**-0.5)) / 0.11**0.5)


def test_stronger_discounting_lowers_the_error(figures: dict[str, PaperFigure]) -> None:
    for panel in figures["discounted-figure_3"].panels:
        for line in panel.curves:
            order = np.argsort(line.x)  # 1 - alpha, or beta: discounting is stronger to the right
            assert (np.diff(line.y[order]) < 0).all(), line.label


def test_corollary_16_is_worse_than_corollary_8_on_the_first_two_days() -> None:
    at = np.arange(1, 366)
    theirs, classical = 1 / printed(Hyperbolic(0.1), 365), np.pi**2 * at**2 / 6
    np.testing.assert_array_equal(theirs > classical, at <= 2)
    np.testing.assert_allclose(
        classical, 1 / infinite_horizon_schedule(Exponential(0.9), epsilon=1.0, releases=365, method="classical")
    )


def test_200_kwh_is_judged_by_measured_homes_only(figures: dict[str, PaperFigure]) -> None:
    assert figures["discounted-figure_1"].verdicts == {"200 kWh": "not judged"}
    for half_hour_wh, verdict in ((4_000, "sharpened"), (5_000, "refuted")):  # 192 and 240 kWh a day
        data = PaperReadings()
        data.__dict__["ausgrid_households"] = PaperHouseholds(
            "measured", np.full((20, 90, 48), half_hour_wh), open_data=True
        )
        assert figure_1(data).verdicts == {"200 kWh": verdict}
