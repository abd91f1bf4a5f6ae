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
    house.fill([FIRST + timedelta(days=i) for i in range(4)])
    return house.write(FIRST, FIRST + timedelta(days=3), mode="rehearsal", promise=CLASSICAL)


@pytest.mark.parametrize("moment", ["2013-01-04", datetime(2013, 1, 4, 17), pd.Timestamp("2013-01-04 23:59")])
def test_a_date_may_be_text_or_an_instant_of_a_data_frame(rehearsal, house, moment):
    # 1 and 2 January are due on the 3rd and on the 4th: each ends at midnight and is a day old then.
    made = sanitise(rehearsal, as_of=moment)
    assert made.table().day.tolist() == [pd.Timestamp("2013-01-01"), pd.Timestamp("2013-01-02")]
    house.release.verify()
    pd.testing.assert_frame_equal(made.table(), house.release.table())


@pytest.mark.parametrize(
    ("slip", "line"),
    [
        ({"as_of": "4/1/2013"}, r"^as_of = '4/1/2013': must be a date such as \"2026-04-01\"$"),
        ({"scheduler": "thread"}, r'scheduler.*must be "threads", "processes", "local-cluster" or the address'),
    ],
)
def test_a_slip_is_one_line_before_anything_is_read(rehearsal, house, slip, line):
    with pytest.raises(RunFileError, match=line):
        sanitise(rehearsal, **{"as_of": "2013-01-04", **slip})
    assert not (house.folder / "ledger.sqlite").exists()
