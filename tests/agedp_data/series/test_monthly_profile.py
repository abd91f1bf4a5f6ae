"""One household with all its days replaced moves the profiles of a month by at most the sensitivity, and by as much."""

from __future__ import annotations

from datetime import date, timedelta
from itertools import product

import numpy as np
import pandas as pd
import pytest

from agedp.stage_values import DailySum
from agedp_data.series.profile import default_profile, month_sensitivity, profile_sensitivity, reduced_profile
from agedp_data.series.series_terms import Cell
from tests.exact_sums import profile_of

DAYS = [date(2013, 1, 4) + timedelta(days=i) for i in range(3)]
"""Friday, Saturday and Sunday."""


def l1(first, second):
    """Return the L1 distance of two vectors by group, kind and slot."""
    keys = {
        (group, kind, slot) for of in (first, second) for group in of for kind in of[group] for slot in of[group][kind]
    }
    at = [{key: of.get(key[0], {}).get(key[1], {}).get(key[2], 0) for key in keys} for of in (first, second)]
    return sum(abs(at[0][key] - at[1][key]) for key in keys)


MONTHS = profile_of(4_000, 50_000, 0, 2, by="area", every="weekday-month")


def month_vectors(days):
    """Return the vectors of a period by group, kind of day and slot, of days with their group, slots and sums."""
    month = DailySum.of_period(
        {
            day: DailySum(MONTHS, tuple(of), (Cell(group),), np.ones((1, 5), np.int64), np.array([wh], np.int64))
            for day, group, of, wh in days
        }
    )
    found = {}
    for cell, energy_wh in zip(month.cells, month.exact.ravel().tolist(), strict=True):
        found.setdefault(cell.group, {}).setdefault(cell.kind, {})[cell.place] = energy_wh
    return found


def by_group(counted, groups, slots):
    """Return the vectors of all groups: a household's counted days, each in the group of the day."""
    return month_vectors(zip(DAYS, groups, slots, counted, strict=True))


@pytest.mark.parametrize(("half_hour", "clamp"), [(2, 3), (2, 9), (3, 4)])
@pytest.mark.parametrize("groups", ["aaa", "aba"])
def test_no_month_moves_the_vector_by_more_and_one_by_as_much(half_hour, clamp, groups):
    """All days of a household over three half-hours, missing ones among them, against each other: 3 days at once.

    Distances of the days add up, so that each day needs its own pairs only; the vector is of all three.
    """
    missing = default_profile(2, slots=3, half_hour_clamp_wh=half_hour, day_clamp_wh=clamp)
    use = np.array(list(product(range(half_hour + 2), repeat=3)))
    counted = np.unique(
        [*reduced_profile(use, half_hour_clamp_wh=half_hour, day_clamp_wh=clamp).tolist(), missing.tolist()], axis=0
    )
    day = profile_sensitivity("replacement", slots=3, half_hour_clamp=half_hour, day_clamp=clamp)
    bound = month_sensitivity(DAYS[0], DAYS[-1], day_sensitivity=day)
    assert bound == (2 + 5 + 5) * day
    slots = [range(3)] * 3
    largest = 0
    rng = np.random.default_rng(half_hour)
    for one, two in product(counted, repeat=2):
        others = counted[rng.integers(len(counted), size=(2, 2))]
        months = ([one, one, one], [two, two, two]), ([one, *others[0]], [two, *others[1]])
        for months_of_one, months_of_two in months:
            moved = l1(by_group(months_of_one, groups, slots), by_group(months_of_two, groups, slots))
            assert moved <= bound
            largest = max(largest, moved)
    assert largest == bound


def test_a_day_without_some_half_hours_is_within_the_bound():
    slots = [range(4), [0, 3], range(4)]
    bound = month_sensitivity(
        DAYS[0],
        DAYS[-1],
        day_sensitivity=profile_sensitivity("replacement", slots=4, half_hour_clamp=2, day_clamp=4),
    )
    days_of_one = [np.array(of) for of in ([2, 2, 0, 0], [2, 0], [2, 2, 0, 0])]
    days_of_two = [np.array(of) for of in ([0, 0, 2, 2], [0, 2], [0, 0, 2, 2])]
    moved = l1(by_group(days_of_one, "aaa", slots), by_group(days_of_two, "aaa", slots))
    assert moved == 2 * 8 + 5 * 4 + 5 * 8 <= bound == 12 * 8


def test_the_vector_is_what_pandas_counts():
    rng = np.random.default_rng(2)
    days = pd.date_range("2012-10-01", "2012-10-31")
    slots = [[slot for slot in range(48) if day != pd.Timestamp("2012-10-07") or slot not in (4, 5)] for day in days]
    sums = [rng.integers(0, 10**7, len(of_day)) for of_day in slots]
    frame = pd.concat(
        pd.DataFrame(
            {"kind": "weekend" if day.day_name() in ("Saturday", "Sunday") else "weekday", "slot": of, "wh": wh}
        )
        for day, of, wh in zip(days, slots, sums, strict=True)
    )
    counted = frame.groupby(["kind", "slot"])["wh"].sum()
    result = month_vectors((day.date(), "a", of, wh) for day, of, wh in zip(days, slots, sums, strict=True))["a"]
    assert {kind: list(of_kind) for kind, of_kind in result.items()} == {
        kind: list(range(48)) for kind in ("weekday", "weekend")
    }
    for (kind, slot), energy_wh in counted.items():
        assert result[kind][slot] == {"weekday": 2, "weekend": 5}[kind] * energy_wh


def test_the_noise_of_both_means_is_that_of_two_days_or_so():
    """It is 2 for both at best; of plain sums, a mean of weekends would have up to 3.9."""
    for month in pd.period_range("2012-01", "2013-12", freq="M"):
        days = pd.date_range(month.start_time, periods=month.days_in_month)
        weekends = int((days.day_of_week >= 5).sum())
        scale = month_sensitivity(days[0].date(), days[-1].date(), day_sensitivity=1)
        noise = scale / (2 * (len(days) - weekends)), scale / (5 * weekends)
        assert all(1.7 < of_kind < 2.3 for of_kind in noise), (month, noise)
        assert sum(1 / of_kind for of_kind in noise) == pytest.approx(1)
