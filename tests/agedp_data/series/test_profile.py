"""The series of load profiles: its cells, its sensitivity, and which keys agree."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import numpy as np
import pytest
from pydantic import ValidationError

from agedp_data.series.profile import Profile
from agedp_data.series.series_terms import Cell
from tests.exact_sums import cells

TERMS = {"statistic": "profile", "clamp_kwh": Decimal(50), "half_hour_clamp_kwh": Decimal(4)}
SPRING = [*range(4), *range(6, 48)]
"""The half-hours of a day on which the clock goes forward at 2:00."""


def profile(**terms: object) -> Profile:
    return Profile.model_validate(TERMS | terms)


def test_cells_are_named_by_the_clock_and_found_again():
    for series, group in [(profile(), "all"), (profile(by="area"), "North End")]:
        for slots in (range(48), SPRING, range(0, 48, 2)):
            texts = cells(series, group, slots=slots)
            assert [*series.read_cells(texts)] == [Cell(group, "", slot) for slot in slots]
            assert series.holds(texts)
    assert cells(profile(), "all", slots=SPRING)[2:6] == ("01:00", "01:30", "03:00", "03:30")


def test_a_release_has_the_same_half_hours_of_each_group_once():
    series = profile(by="area")
    first, second = cells(series, "a", slots=range(48)), cells(series, "b", slots=range(48))
    assert series.holds([*first, *second])
    assert series.by_group([*first, *second], [3] * 48 + [5] * 48) == {"a": 3, "b": 5}
    for texts in (
        [*first, *second[:-1]],
        [*first, *cells(series, "b", slots=SPRING)],
        [*first, *first],
        [*first[:24], *second, *first[24:]],
        first[::-1],
        ["a 24:00"],
        ["a 00:15"],
        ["00:00"],
        ["a 0-2"],
    ):
        assert not series.holds(texts), texts[-1]


def test_a_month_has_cells_and_household_days_of_each_kind_of_day():
    for by, group, parts in [(None, "all", ("weekday", "weekend")), ("area", "a b", ("a b weekday", "a b weekend"))]:
        months = profile(every="weekday-month", by=by)
        texts = cells(months, group, slots=range(48))
        assert (texts[37], texts[85]) == (f"{parts[0]} 18:30", f"{parts[1]} 18:30")
        assert months.holds(texts)
        assert not months.holds([*texts[:48], *texts[48:95]])
        assert {cell.group for cell in months.read_cells(texts)} == {group}
        assert months.by_group(texts, [46] * 48 + [16] * 48) == {group: 62}
        assert [*map(months.write_part, months.by_part(texts, [46] * 48 + [16] * 48))] == [*parts]
        with pytest.raises(ValueError, match="half-hours"):
            months.read_cells(["a 18:30" if by else "18:30"])


def test_a_month_is_as_sensitive_as_its_weighted_days():
    months = profile(every="weekday-month")
    first, last = date(2013, 2, 1), date(2013, 2, 28)
    assert months.covered_days(date(2013, 2, 9)) == (first, last)
    assert months.row_sensitivity(last) == (2 * 20 + 5 * 8) * 100_000
    assert profile().row_sensitivity(last) == 100_000
    assert months.is_possible(np.array([5 * 8_000] * 12 + [0] * 36), 2)
    assert not months.is_possible(np.array([5 * 8_000 + 1] + [0] * 47), 2)


def test_impossible_sums_are_noticed():
    series = profile()
    assert series.is_possible(np.array([4_000] * 12 + [0] * 36), 1)
    for exact in ([4_001] + [0] * 47, [-1] + [0] * 47, [4_000] * 13 + [0] * 35):
        assert not series.is_possible(np.array(exact), 1), exact
        assert series.is_possible(np.array([max(value, 0) for value in exact]), 2)
    assert series.is_possible(np.array([8_000] + [0] * 23), 1)  # hourly readings: an hour has two half-hours


def test_series_with_the_same_rule_count_the_same_vectors():
    assert profile().rule == profile(by="area").rule == profile(every="weekday-month", share=Decimal("0.5")).rule
    others = ({"values": "states"}, {"max_missing": 3}, {"clamp_kwh": 49}, {"missing_kwh": 1})
    assert len({profile().rule, *(profile(**{key: value}).rule for of in others for key, value in of.items())}) == 5


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ({"half_hour_clamp_kwh": Decimal(51)}, "must not exceed clamp_kwh"),
        ({"half_hour_clamp_kwh": Decimal("0.1"), "missing_kwh": Decimal("4.7")}, "must not exceed 46 times"),
        ({"missing_kwh": Decimal(51)}, "must not exceed clamp_kwh"),
        ({"by": "from"}, "must be a group column"),
    ],
)
def test_keys_that_contradict_each_other_are_refused(terms, message):
    with pytest.raises(ValidationError, match=message):
        profile(**terms)
