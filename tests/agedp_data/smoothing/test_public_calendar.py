"""Public holidays, the year's end and heating degrees, by hand."""

from __future__ import annotations

import re
from datetime import date, timedelta

import numpy as np
import pytest

from agedp_data.errors import InputError
from agedp_data.smoothing.public_calendar import check_region, covariates

YEAR = [date(2013, 1, 1) + timedelta(days=number) for number in range(365)]


def test_bank_holidays_of_england_in_2013():
    pytest.importorskip("holidays")
    by_hand = {(1, 1), (3, 29), (4, 1), (5, 6), (5, 27), (8, 26), (12, 25), (12, 26)}  # gov.uk, bank holidays
    holiday = covariates(YEAR, region="GB-ENG").holiday
    assert {(day.month, day.day) for day, flag in zip(YEAR, holiday, strict=True) if flag} == by_hand


def test_special_days_are_holidays_and_the_year_end():
    known = covariates(YEAR, region="none")
    assert known.special.sum() == 11
    assert known.special[[0, 355, 364]].all()
    assert not known.special[[1, 354]].any()
    assert known.weekday[:3].tolist() == [1, 2, 3]  # 1 January 2013 was a Tuesday
    assert known.heating is None


def test_heating_counts_degrees_below_the_base():
    warm = covariates(YEAR[:3], region="none", temperature_c=np.array([20.0, 15.5, 5.5]))
    assert warm.heating.tolist() == [0, 0, 2]
    for table in (np.array([1.0, np.nan, 2.0]), np.ones(2)):
        with pytest.raises(InputError, match="temperature for each day"):
            covariates(YEAR[:3], region="none", temperature_c=table)


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
