"""As people call it from a notebook: dates as they come out of data frames, and slips of the pen."""

from __future__ import annotations

from datetime import date, datetime, timedelta

import pandas as pd
import pytest

from agedp.pipeline import sanitise
from agedp_data.errors import RunFileError

FIRST = date(2013, 1, 1)
CLASSICAL = 'notion = "classical"\nage_days = 1\nepsilon_per_day = 0.5\nmax_day_epsilon = 0.5\nepsilon_total = 9\n'


@pytest.fixture
def rehearsal(house):
    house.london({(home, FIRST + timedelta(days=i), s): 200 for home in "ABC" for i in range(4) for s in range(48)})
    house.roster([(home, FIRST, None) for home in "ABC"])
    return house.write(FIRST, FIRST + timedelta(days=3), mode="rehearsal", promise=CLASSICAL)


@pytest.mark.parametrize(
    "moment", ["2013-01-04", date(2013, 1, 4), datetime(2013, 1, 4, 17), pd.Timestamp("2013-01-04 23:59")]
)
def test_a_date_may_be_text_or_an_instant_of_a_data_frame(rehearsal, moment):
    # 1 and 2 January are due on the 3rd and on the 4th: each ends at midnight and is a day old then.
    table = sanitise(rehearsal, as_of=moment).table()
    assert table.day.tolist() == [pd.Timestamp("2013-01-01"), pd.Timestamp("2013-01-02")]


def test_a_text_that_is_no_date_is_refused_in_one_line(rehearsal):
    with pytest.raises(RunFileError) as caught:
        sanitise(rehearsal, as_of="4/1/2013")
    assert str(caught.value) == "as_of = '4/1/2013': must be a date such as \"2026-04-01\""


def test_a_scheduler_that_is_none_is_refused_before_anybody_waits_for_it(rehearsal, house):
    with pytest.raises(
        RunFileError, match=r'scheduler.*must be "threads", "processes", "local-cluster" or the address'
    ):
        sanitise(rehearsal, scheduler="thread", as_of="2013-01-04")
    assert not (house.folder / "ledger.sqlite").exists()


def test_what_comes_back_is_what_a_recipient_opens(rehearsal, house):
    made = sanitise(rehearsal)
    received = house.release
    received.verify()
    pd.testing.assert_frame_equal(made.table(), received.table())
    assert pd.DataFrame(made.statement["figures"]).name.tolist()[:2] == ["day", "total"]
