"""Rows that cover a week: planned, drawn once when their last day is due, skipped with one of its days, or refused."""

from __future__ import annotations

from datetime import date, timedelta
from types import SimpleNamespace

import pytest

from agedp.budget import next_unclosed_day, period_cells, series_by_contract
from agedp.stages.plan import forecast_run
from agedp_data.epsilon import NANO
from agedp_data.errors import RunFileError
from agedp_data.notions.notion import losses_about_days
from agedp_data.notions.publication import Publication

FIRST, LAST = date(2013, 1, 30), date(2013, 3, 3)  # from a Wednesday to a Sunday
DAYS = [FIRST + timedelta(days=i) for i in range((LAST - FIRST).days + 1)]
TODAY = date(2013, 3, 10)


@pytest.fixture
def weekly(house):
    """Three homes whose mean is published by week alone; `write` takes other keys."""
    house.fill(DAYS)
    write(house)
    return house


def write(house, clamp='10\nevery = "week"', **keys):
    house.write(FIRST, LAST, clamp=clamp, **keys)


def test_a_week_with_a_skipped_day_is_skipped(weekly):
    weekly.edit((f"last_day = {LAST}", f"last_day = {LAST}\nskip_days = [2013-02-13]"))
    expected = forecast_run(weekly.session(today=FIRST)).forecast.history
    assert [row.day for row in expected] == ["2013-02-10", "2013-02-24", "2013-03-03"]
    weekly.run(today=TODAY)
    assert [row.state for row in weekly.rows()] == ["released", "skipped", "released", "released"]
    weekly.release.verify()


NEIGHBOURHOOD = (
    'notion = "neighbourhood"\ndelta_kwh = 4\nwindow_days = 3\nepsilon_per_window = 0.5\nspend = "per-request"\n'
    'max_day_epsilon = 0.6\nepsilon_total = "unlimited"\n'
)


@pytest.mark.parametrize(("keys", "line"), [
    ({"promise": NEIGHBOURHOOD}, "is not possible with notion"),
    ({"clamp": '[10, 20]\nevery = "week"\nshare = [0.5, 0.5]'}, "every"),
])  # fmt: skip
def test_what_cannot_carry_periods_is_refused_when_it_is_read(weekly, keys, line):
    write(weekly, **keys)
    with pytest.raises(RunFileError, match=line):
        weekly.context(today=TODAY)


def test_the_largest_day_of_a_run_counts_all_rows_that_cover_it(weekly):
    days = '[series.days]\nstatistic = "mean"\nclamp_kwh = 9\nshare = 0.3'
    weekly.edit(('every = "week"', f'every = "week"\nshare = 0.7\n{days}'))
    weekly.run(today=TODAY)
    publication = Publication(earlier=series_by_contract(weekly.session(today=TODAY).history.contracts))
    losses = losses_about_days(weekly.rows(), publication)
    assert max(losses.values()) == NANO // 2  # 0.35 by the week, 0.15 by the day
    assert min(losses.values()) == 3 * NANO // 20  # of a day before the first whole week


def test_a_group_that_is_too_small_on_one_day_has_no_row_of_the_week():
    counted = SimpleNamespace(cells=lambda day, by: (("A", 3), ("B", 3 if day != FIRST else 2)))
    assert period_cells(counted, ("area",), DAYS[:7], 3) == (("A", 21),)
    assert period_cells(counted, ("area",), DAYS[1:8], 3) == (("A", 21), ("B", 21))


def test_the_readings_of_a_week_are_needed_until_the_week_is_drawn(weekly):
    days = '[series.days]\nstatistic = "mean"\nclamp_kwh = 9\nshare = 0.3'
    weekly.edit(('every = "week"', f'every = "week"\nshare = 0.7\n{days}'))
    weekly.run(today=TODAY)
    run, contracts = weekly.context(today=TODAY).run_file, weekly.session(today=TODAY).history.contracts

    def needed_from(last: str) -> str:
        return str(next_unclosed_day(run, [row for row in weekly.rows() if row.day <= last], contracts))

    needed = [needed_from(last) for last in ("2013-02-01", "2013-02-10", "2013-02-13", "2013-02-17")]
    assert needed == ["2013-02-02", "2013-02-11", "2013-02-11", "2013-02-18"]
