"""Dates on which days are due, and losses in whole 1e-9."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agedp_data import clock
from agedp_data.epsilon import NANO, ceil_nano, floor_nano, format_epsilon, to_float

SYDNEY = ZoneInfo("Australia/Sydney")


@pytest.mark.parametrize(
    ("ended", "age", "due"),
    [
        (datetime(2026, 3, 4, tzinfo=UTC), 0, date(2026, 3, 4)),  # 3 March ends at midnight
        (datetime(2026, 3, 4, tzinfo=UTC), 2, date(2026, 3, 6)),  # ... and is due at midnight of 5 to 6 March
        (datetime(2026, 3, 4, 0, 0, 1, tzinfo=UTC), 2, date(2026, 3, 7)),
        (datetime(2012, 7, 2, tzinfo=SYDNEY), 0, date(2012, 7, 2)),  # 1 July ends at 14:00 UTC of 1 July
        (datetime(2012, 7, 2, tzinfo=SYDNEY), 1, date(2012, 7, 3)),
        (datetime(2012, 12, 2, tzinfo=SYDNEY), 1, date(2012, 12, 3)),  # summer: 13:00 UTC
    ],
)
def test_a_day_is_due_on_the_first_date_that_is_old_enough_at_its_first_instant(ended, age, due):
    assert clock.due_on(ended, age_days=age) == due


@given(st.datetimes(datetime(1990, 1, 1), datetime(2090, 1, 1), timezones=st.just(UTC)), st.integers(0, 400))
def test_no_earlier_date_is_old_enough(ended, age):
    due = datetime.combine(clock.due_on(ended, age_days=age), datetime.min.time(), UTC)
    assert due - ended >= timedelta(days=age)
    assert due - timedelta(days=1) - ended < timedelta(days=age)


def test_an_instant_is_recorded_in_utc():
    assert clock.format_instant(datetime(2012, 7, 2, tzinfo=SYDNEY)) == "2012-07-01T14:00:00Z"


def test_today_is_the_date_in_utc():
    before, today, after = datetime.now(UTC).date(), clock.today(), datetime.now(UTC).date()
    assert before <= today <= after


AMOUNTS = st.fractions(-1000, 1000) | st.decimals(-1000, 1000, places=12) | st.floats(-1000, 1000)


@given(AMOUNTS)
def test_grants_round_down_and_records_round_up_to_the_same_or_neighbouring_whole(amount):
    exact = Fraction(amount) * NANO
    assert floor_nano(amount) <= exact <= ceil_nano(amount)
    assert ceil_nano(amount) - floor_nano(amount) == (exact.denominator != 1)


@given(st.integers(-(10**15), 10**15))
def test_the_text_and_the_float_of_a_loss_stand_for_it_exactly(loss):
    assert Fraction(Decimal(format_epsilon(loss))) * NANO == loss
    assert round(to_float(loss) * NANO) == loss


@given(st.integers(0, 10**12))
def test_the_text_has_no_digit_too_many(loss):
    text = format_epsilon(loss)
    assert text == "0" or not text.startswith(".")
    assert "." not in text or text[-1] not in "0."
