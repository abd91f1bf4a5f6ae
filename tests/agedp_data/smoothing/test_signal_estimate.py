"""What changes and what is noise, and the public calendar."""

from __future__ import annotations

import re
from datetime import date, timedelta

import numpy as np
import pytest

from agedp_data.errors import InputError
from agedp_data.smoothing.public_calendar import check_region
from agedp_data.smoothing.public_calendar import covariates as calendar_covariates
from agedp_data.smoothing.signal_estimate import estimate_change
from agedp_data.smoothing.structural_model import PRIOR
from tests.agedp_data.smoothing.test_structural_model import covariance, covariates

# The estimate of what changes and what is noise: by hand, unbiased, and with an error that holds.


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


@pytest.mark.parametrize("span_days", [1, 28, 365])
@pytest.mark.parametrize("pairs", [1, 3, 7])
@pytest.mark.parametrize("ratio", [0.0, 1.0, 3.0, 20.0])
def test_few_pairs_of_any_span_have_an_error_that_holds(span_days, pairs, ratio):
    rng, held, days = np.random.default_rng(14), 0, np.arange((pairs + 1) * span_days)
    for _ in range(300):
        means = rng.normal(size=pairs + 1)
        change = ratio / np.sqrt(span_days)  # in standard deviations of a span's mean
        truth = np.repeat(means * change / np.sqrt(np.mean(np.diff(means) ** 2)), span_days)
        published = truth + rng.laplace(scale=1 / np.sqrt(2), size=days.size)
        estimate = estimate_change(published, np.ones(days.size), days, span_days=span_days)
        held += abs(estimate.change - change) <= 2 * estimate.standard_error
    assert held >= 0.93 * 300


def test_a_hidden_change_is_never_called_visible():
    rng, verdicts = np.random.default_rng(12), []
    for _ in range(200):
        published = 10 + rng.laplace(scale=3, size=365)
        estimate = estimate_change(published, np.full(365, 18.0), np.arange(365))
        verdicts.append(estimate.verdict(estimate.noise))
    assert verdicts.count("hidden") >= 160
    assert "visible" not in verdicts
    clear = estimate_change(10 + rng.normal(size=365), np.full(365, 1e-4), np.arange(365))
    assert clear.verdict(clear.noise) == "visible"


@pytest.mark.parametrize("days", [[], [4], [1, 3]])
def test_without_neighbours_there_is_no_estimate(days):
    assert estimate_change(np.zeros(len(days)), np.ones(len(days)), np.array(days, np.int64)) is None


# Public holidays, the year's end and heating degrees, by hand.

YEAR = [date(2013, 1, 1) + timedelta(days=number) for number in range(365)]


def test_bank_holidays_of_england_in_2013():
    pytest.importorskip("holidays")
    by_hand = {(1, 1), (3, 29), (4, 1), (5, 6), (5, 27), (8, 26), (12, 25), (12, 26)}  # gov.uk, bank holidays
    holiday = calendar_covariates(YEAR, region="GB-ENG").holiday
    assert {(day.month, day.day) for day, flag in zip(YEAR, holiday, strict=True) if flag} == by_hand


def test_special_days_are_holidays_and_the_year_end():
    known = calendar_covariates(YEAR, region="none")
    assert known.special.sum() == 11
    assert known.special[[0, 355, 364]].all()
    assert not known.special[[1, 354]].any()
    assert known.weekday[:3].tolist() == [1, 2, 3]  # 1 January 2013 was a Tuesday
    assert known.heating is None


def test_heating_counts_degrees_below_the_base():
    warm = calendar_covariates(YEAR[:3], region="none", temperature_c=np.array([20.0, 15.5, 5.5]))
    assert warm.heating.tolist() == [0, 0, 2]
    for table in (np.array([1.0, np.nan, 2.0]), np.ones(2)):
        with pytest.raises(InputError, match="temperature for each day"):
            calendar_covariates(YEAR[:3], region="none", temperature_c=table)


NEAR = {
    "GB-EN": "'GB-ENG'?", "gb-eng": "'GB-ENG'?", "AU-NWS": "'AU-NSW'?", "ENG": "'GB-ENG'?", "NSW": "'AU-NSW'?",
    "England": "'GB-ENG'?", "London": "'GB-ENG'?", "Scotland": "'GB-SCT'?", "Wales": "'GB-WLS'?",
    "Sydney": "'AU-NSW'?", "New_South_Wales": "'AU-NSW'?",
    "UK": "'GB-ENG' or 'GB-SCT' or 'GB-WLS' or 'GB-NIR'?",
    "Atlantis": "no calendar of public holidays. Write a country or a part of it by ISO 3166 (region, --region)",
    "XX": "such as 'GB-ENG', or 'none'",
}  # fmt: skip


@pytest.mark.parametrize(("region", "near"), NEAR.items(), ids=NEAR)
def test_an_unknown_region_is_answered_with_a_near_one(region, near):
    pytest.importorskip("holidays")
    with pytest.raises(InputError, match=re.escape(near)) as error:
        check_region(region)
    assert ("did you mean" in str(error.value)) == near.endswith("?")
    assert "\n" not in str(error.value)
    check_region("none")
