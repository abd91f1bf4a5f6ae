"""Load profiles by day and by month: cells, exact vectors and sensitivities."""

from __future__ import annotations

import itertools
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import product
from math import floor

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from agedp.stage_values import DailySum
from agedp.store.half_hour_sums import half_hour_block, half_hour_states
from agedp_data.datasets.ausgrid import Ausgrid
from agedp_data.errors import ChainError
from agedp_data.markov.states import RepresentativeValues
from agedp_data.series.profile import (
    Profile,
    day_slots,
    default_profile,
    month_sensitivity,
    profile_sensitivity,
    reduced_profile,
)
from agedp_data.series.sensitivity import Move
from agedp_data.series.series_terms import Cell, HouseholdDays
from tests.exact_sums import cells, profile_of

# Load profiles by exact fractions, and their sensitivity by brute force over every day of a few slots.

CLAMPS = st.tuples(st.integers(1, 10**5), st.integers(1, 10**6))
DAYS = st.lists(st.integers(-1, 3 * 10**5), min_size=1, max_size=50)
SPACES = [(1, 4), (3, 5), (4, 3), (2, 3)]
"""Numbers of slots and largest values: all days of so many slots with such values are looked at."""


def universe(slots: int, largest: int) -> np.ndarray:
    return np.array(list(itertools.product(range(largest + 1), repeat=slots)))


def l1_changes(counted: np.ndarray) -> np.ndarray:
    """The L1 change of a profile between any two days, shape (n, n)."""
    return np.abs(counted[:, None] - counted).sum(axis=-1)


def with_default(days: np.ndarray, missing_wh: int, **clamps: int) -> np.ndarray:
    """Return the counted vectors of all days and, last, that of a missing household-day."""
    default = default_profile(missing_wh, slots=days.shape[1], **clamps)
    return np.vstack([reduced_profile(days, **clamps), default])


@pytest.mark.parametrize(("slots", "largest"), SPACES)
def test_the_sensitivity_is_the_largest_change_of_all(slots, largest):
    days = universe(slots, largest)
    for half_hour, day in itertools.product(range(1, largest + 1), range(1, slots * largest + 2)):
        clamps = {"half_hour_clamp_wh": half_hour, "day_clamp_wh": day}
        changes = l1_changes(reduced_profile(days, **clamps))
        bounds = {"slots": slots, "half_hour_clamp": half_hour, "day_clamp": day}
        assert profile_sensitivity("replacement", **bounds) == changes.max(), clamps
        from_none = int(reduced_profile(days, **clamps).sum(axis=1).max())
        assert profile_sensitivity("arrival", **bounds) == profile_sensitivity("departure", **bounds) == from_none
        if slots % 2 == 0:
            assert changes.max() == min(2 * day, slots * half_hour)


@pytest.mark.parametrize(("slots", "largest"), SPACES)
def test_no_missing_day_changes_more_than_the_sensitivity(slots, largest):
    days = universe(slots, largest)
    for half_hour, day in itertools.product((1, largest), (1, 2, slots * largest)):
        clamps = {"half_hour_clamp_wh": half_hour, "day_clamp_wh": day}
        bound = profile_sensitivity("replacement", slots=slots, half_hour_clamp=half_hour, day_clamp=day)
        for missing_wh in range(day + 1):
            assert l1_changes(with_default(days, missing_wh, **clamps))[-1].max() <= bound


def test_twice_the_clamp_is_needed_where_energy_moves():
    # planted fault: once the day's clamp, as for a sum, is exceeded by a household that uses the evening, not the night
    days = np.array([[6, 6, 0, 0], [0, 0, 6, 6]])
    counted = reduced_profile(days, half_hour_clamp_wh=6, day_clamp_wh=10)
    assert (
        l1_changes(counted).max()
        == 2 * 10
        == profile_sensitivity("replacement", slots=4, half_hour_clamp=6, day_clamp=10)
    )


@pytest.mark.parametrize(("slots", "largest"), SPACES[1:])
def test_a_day_with_the_same_total_changes_as_much_as_any(slots, largest):
    days = universe(slots, largest)
    totals = days.sum(axis=1)
    same = totals[:, None] == totals
    for half_hour, day in itertools.product(range(1, largest), range(1, largest * slots)):
        changes = l1_changes(reduced_profile(days, half_hour_clamp_wh=half_hour, day_clamp_wh=day))
        bounds = {"slots": slots, "half_hour_clamp": half_hour, "day_clamp": day}
        assert profile_sensitivity(Move(0), **bounds) == profile_sensitivity("replacement", **bounds)
        if slots % 2 == 0:  # an odd number of slots needs larger values than these to have the same total
            assert changes[same].max() == profile_sensitivity(Move(0), **bounds)


@given(CLAMPS, st.integers(1, 50))
def test_days_of_fewer_slots_and_of_hours_need_no_more(clamps, slots):
    half_hour, day = clamps
    bound = profile_sensitivity("replacement", slots=2 * slots, half_hour_clamp=half_hour, day_clamp=day)
    shorter = profile_sensitivity("replacement", slots=2 * slots - 1, half_hour_clamp=half_hour, day_clamp=day)
    hourly = profile_sensitivity("replacement", slots=slots, half_hour_clamp=2 * half_hour, day_clamp=day)
    assert shorter <= bound == min(2 * day, 2 * slots * half_hour)
    assert hourly <= bound


@given(DAYS, CLAMPS)
def test_profiles_are_those_of_exact_fractions(day, clamps):
    half_hour, largest = clamps
    clipped = [min(max(value, 0), half_hour) for value in day]
    factor = min(Fraction(1), Fraction(largest, sum(clipped) or 1))
    expected = [floor(value * factor) for value in clipped]
    counted = reduced_profile(day, half_hour_clamp_wh=half_hour, day_clamp_wh=largest)
    assert counted.tolist() == expected
    again = reduced_profile(counted, half_hour_clamp_wh=half_hour, day_clamp_wh=largest)
    assert again.tolist() == expected  # counted days count as they are
    if sum(clipped) > largest:
        assert largest - len(day) < sum(expected) <= largest


@given(st.lists(DAYS, min_size=1, max_size=4), CLAMPS)
def test_a_household_counts_alike_beside_any_households(days, clamps):
    half_hour, largest = clamps
    stacked = np.array([(day * 6)[:6] for day in days])
    counted = reduced_profile(stacked, half_hour_clamp_wh=half_hour, day_clamp_wh=largest)
    by_itself = [reduced_profile(day, half_hour_clamp_wh=half_hour, day_clamp_wh=largest) for day in stacked]
    assert counted.tolist() == [row.tolist() for row in by_itself]
    assert stacked.tolist() == [(day * 6)[:6] for day in days]  # the argument is not written to


@given(st.integers(0, 10**7), st.integers(1, 50))
def test_a_missing_day_is_spread_evenly(missing_wh, slots):
    spread = default_profile(missing_wh, slots=slots, half_hour_clamp_wh=10**7, day_clamp_wh=10**7)
    assert spread.sum() == missing_wh
    assert spread.max() - spread.min() <= 1


def test_a_missing_day_obeys_both_clamps():
    assert default_profile(100, slots=4, half_hour_clamp_wh=9, day_clamp_wh=99).tolist() == [9, 9, 9, 9]
    assert default_profile(100, slots=4, half_hour_clamp_wh=99, day_clamp_wh=42).tolist() == [10, 10, 10, 10]
    assert default_profile(5, slots=0, half_hour_clamp_wh=9, day_clamp_wh=9).tolist() == []


def test_the_largest_products_are_exact():
    half_hour, day = 3 * 10**9, 3 * 10**9
    counted = reduced_profile([2 * 10**9, 3 * 10**9 - 1], half_hour_clamp_wh=half_hour, day_clamp_wh=day)
    assert counted.tolist() == [part * day // (5 * 10**9 - 1) for part in (2 * 10**9, 3 * 10**9 - 1)]


def test_states_count_as_their_values_and_gaps_as_none():
    readings, states = np.array([[0, 99, 100, -1, 5000]]), RepresentativeValues("half-hour", (100, 300))
    block = half_hour_block(np.array([0]), np.array([0]), readings, states)
    assert block.states_wh.tolist() == [[50, 50, 200, -1, 400]]
    assert block.readings.tolist() == [4]
    rule = profile_of(10**4, 10**6, 0, 2)
    assert rule.counted(HouseholdDays(block.states_wh)).values.tolist() == [[50, 50, 200, 0, 400]]
    with pytest.raises(ChainError, match="of half-hours, not of days"):
        half_hour_states({"p": rule.model_copy(update={"values": "states"})}, RepresentativeValues("day", (100, 300)))


def test_a_day_has_the_half_hours_of_its_clock():
    clock = Ausgrid()  # Sydney's clock goes forward at 2:00, and back at 3:00
    assert day_slots(clock, date(2012, 10, 7)) == (*range(4), *range(6, 48))
    assert day_slots(clock, date(2013, 4, 7)) == day_slots(clock, date(2013, 4, 8)) == tuple(range(48))


@pytest.mark.parametrize(
    ("days", "half_hour", "day", "message"),
    [
        ([1], 0, 5, "a clamp of 0 Wh: must be at least 1"),
        ([1], 5, -3, "a clamp of -3 Wh: must be at least 1"),
        ([1], 2**32, 2**31, "the clamps of a profile exceed 64-bit integers: take smaller ones"),
        ([1.0], 5, 5, "the half-hours of a profile are whole watt-hours"),
    ],
)
def test_clamps_and_energies_that_cannot_count_are_refused(days, half_hour, day, message):
    with pytest.raises(ChainError, match=f"^{message}$"):
        reduced_profile(days, half_hour_clamp_wh=half_hour, day_clamp_wh=day)


# The series of load profiles: its cells, its sensitivity, and which keys agree.

TERMS = {"statistic": "profile", "clamp_kwh": Decimal(50), "half_hour_clamp_kwh": Decimal(4)}
SPRING = [*range(4), *range(6, 48)]
"""The half-hours of a day on which the clock goes forward at 2:00."""


def profile(**terms: object) -> Profile:
    return Profile.model_validate(TERMS | terms)


@pytest.mark.parametrize(("clamp", "half_hour", "wh"), [(50, 4, 100_000), (50, 1, 48_000), (50, "1.5", 72_000)])
def test_the_sensitivity_is_twice_the_day_or_all_half_hours(clamp, half_hour, wh):
    series = profile(clamp_kwh=Decimal(clamp), half_hour_clamp_kwh=Decimal(half_hour))
    assert series.sensitivity("replacement") == series.sensitivity(Move(1)) == wh


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


# One household with all its days replaced moves the profiles of a month by at most the sensitivity, and by as much.

THREE_DAYS = [date(2013, 1, 4) + timedelta(days=i) for i in range(3)]
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
    return month_vectors(zip(THREE_DAYS, groups, slots, counted, strict=True))


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
    bound = month_sensitivity(THREE_DAYS[0], THREE_DAYS[-1], day_sensitivity=day)
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
        THREE_DAYS[0],
        THREE_DAYS[-1],
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
