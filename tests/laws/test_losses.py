"""Losses in whole 1e-9 epsilon, against fractions: every float there is, and texts that round just so."""

from __future__ import annotations

import math
import sys
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agedp_data.epsilon import NANO, ceil_nano, floor_nano, format_epsilon, to_float

finite = st.floats(allow_nan=False, allow_infinity=False)
written = st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**30), max_value=10**30, places=40)
halves = st.integers(-(10**20), 10**20).map(lambda each: Fraction(2 * each + 1, 2 * NANO))
neighbours = st.integers(-(2**70), 2**70).map(lambda each: math.nextafter(each / NANO, math.inf))


@given(finite | written | st.fractions() | st.integers() | halves | neighbours)
@example(1e300)
@example(sys.float_info.max)
@example(sys.float_info.min)
@example(Decimal("1e-40"))
@example(Decimal("0.0000000015"))
@example(2**53 + 1)
def test_budgets_are_the_floor_and_records_the_ceiling_of_the_exact_amount(amount):
    exact = Fraction(amount) * NANO
    assert floor_nano(amount) == math.floor(exact)
    assert ceil_nano(amount) == math.ceil(exact)
    assert type(floor_nano(amount)) is type(ceil_nano(amount)) is int


@pytest.mark.parametrize(
    ("amount", "down", "up"),
    [
        (5e-324, 0, 1),
        (-5e-324, -1, 0),
        (0.1, 100_000_000, 100_000_001),  # the float is a little more than a tenth
        (0.3, 299_999_999, 300_000_000),  # and this one a little less than three
        (Decimal("0.0000000005"), 0, 1),
        (Fraction(1, 3), 333_333_333, 333_333_334),
        (np.uint64(2**63), 2**63 * NANO, 2**63 * NANO),  # does not wrap around
        (np.int32(-(2**31)), -(2**31) * NANO, -(2**31) * NANO),
    ],
)
def test_amounts_counted_by_hand(amount, down, up):
    assert (floor_nano(amount), ceil_nano(amount)) == (down, up)


@given(st.lists(finite, max_size=8))
def test_parts_granted_never_come_to_more_and_parts_recorded_never_to_less(amounts):
    whole = sum(map(Fraction, amounts)) * NANO
    assert sum(map(floor_nano, amounts)) <= whole <= sum(map(ceil_nano, amounts))


@pytest.mark.parametrize("amount", [math.nan, math.inf, -math.inf, Decimal("NaN"), Decimal("Infinity")])
def test_what_is_no_number_is_no_loss(amount):
    for rounded in (floor_nano, ceil_nano):
        with pytest.raises((ValueError, OverflowError)):
            rounded(amount)


@given(st.integers(-(2**80), 2**80))
def test_the_text_stands_for_the_loss_exactly_and_the_float_for_the_nearest(loss):
    assert Fraction(format_epsilon(loss)) == Fraction(loss, NANO)
    apart = abs(Fraction(to_float(loss)) - Fraction(loss, NANO))
    assert apart <= Fraction(math.ulp(to_float(loss))) / 2
