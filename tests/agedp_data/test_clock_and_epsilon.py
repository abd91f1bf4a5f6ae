"""Dates on which days are due, and losses in whole 1e-9."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agedp_data import clock
from agedp_data.epsilon import format_epsilon

SYDNEY = ZoneInfo("Australia/Sydney")


@pytest.mark.parametrize(
    ("ended", "age", "due"),
    [
        (datetime(2026, 3, 4, tzinfo=UTC), 0, date(2026, 3, 4)),  # 3 March ends at midnight
        (datetime(2026, 3, 4, tzinfo=UTC), 2, date(2026, 3, 6)),  # ... and is due at midnight of 5 to 6 March
        (datetime(2026, 3, 4, 0, 0, 1, tzinfo=UTC), 2, date(2026, 3, 7)),
        (datetime(2012, 7, 2, tzinfo=SYDNEY), 0, date(2012, 7, 2)),  # 1 July ends at 14:00 UTC of 1 July
        (datetime(2012, 12, 2, tzinfo=SYDNEY), 1, date(2012, 12, 3)),  # summer: 13:00 UTC
    ],
)
def test_a_day_is_due_on_the_first_date_that_is_old_enough(ended, age, due):
    assert clock.due_on(ended, age_days=age) == due


@given(st.datetimes(datetime(1990, 1, 1), datetime(2090, 1, 1), timezones=st.just(UTC)), st.integers(0, 400))
def test_no_earlier_date_is_old_enough(ended, age):
    due = datetime.combine(clock.due_on(ended, age_days=age), datetime.min.time(), UTC)
    assert due - ended >= timedelta(days=age)
    assert due - timedelta(days=1) - ended < timedelta(days=age)


def test_instants_are_in_utc():
    assert clock.format_instant(datetime(2012, 7, 2, tzinfo=SYDNEY)) == "2012-07-01T14:00:00Z"


@given(st.integers(0, 10**12))
def test_the_text_has_no_digit_too_many(loss):
    text = format_epsilon(loss)
    assert text == "0" or not text.startswith(".")
    assert "." not in text or text[-1] not in "0."
