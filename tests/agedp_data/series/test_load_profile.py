"""Load profiles by exact fractions, and their sensitivity by brute force over every day of a few slots."""

from __future__ import annotations

import itertools
from datetime import date
from fractions import Fraction
from math import floor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agedp.store.half_hour_sums import half_hour_block, half_hour_states
from agedp_data.datasets.ausgrid import Ausgrid
from agedp_data.errors import ChainError
from agedp_data.markov.states import RepresentativeValues
from agedp_data.series.profile import day_slots, default_profile, profile_sensitivity, reduced_profile
from agedp_data.series.sensitivity import Move
from agedp_data.series.series_terms import HouseholdDays
from tests.exact_sums import profile_of

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
