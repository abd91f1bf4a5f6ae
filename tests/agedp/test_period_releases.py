"""Rows that cover a week or a month, on their whole way: counted by hand, drawn once, published and verified."""

from __future__ import annotations

import shutil
from datetime import date, timedelta

import numpy as np
import pytest

from agedp.budget import series_by_contract
from agedp.stages.plan import forecast_run
from agedp_data import mechanisms
from agedp_data.epsilon import NANO
from agedp_data.errors import Refused, RunFileError
from agedp_data.notions.notion import losses_about_days
from agedp_data.notions.publication import Publication
from tests.agedp.conftest import CLASSICAL, ended_in_draw
from tests.books import forget

FIRST, LAST = date(2013, 1, 30), date(2013, 3, 3)  # from a Wednesday to a Sunday; February alone is a whole month
DAYS = [FIRST + timedelta(days=i) for i in range((LAST - FIRST).days + 1)]
TODAY = date(2013, 3, 10)
LEAVES = date(2013, 2, 10)
GROUPS = {"A": "Std", "B": "Std", "C": "ToU", "D": "ToU", "E": "ToU"}
TABLES = """
[series.weeks]
statistic = "mean"
every = "week"
clamp_kwh = 10
share = {weeks}
by = "tariff"

[series.months]
statistic = "mean"
every = "month"
clamp_kwh = 10
missing_kwh = 2
share = {months}
"""


def energy(home, day):
    """What a home uses on a day [Wh]; some days exceed the clamp."""
    return 48 * (40 + 60 * "ABCDE".index(home) + 3 * day.day)


def is_missing(home, day):
    return (home, day) == ("B", date(2013, 2, 5))


def homes_on(day):
    return [home for home in "ABCDE" if home != "E" or day <= LEAVES]


def counted(home, day, missing=0):
    return missing if is_missing(home, day) else min(energy(home, day), 10_000)


def build(house):
    readings = {
        (home, day, slot): energy(home, day) // 48
        for day in DAYS
        for home in homes_on(day)
        for slot in range(48)
        if not is_missing(home, day)
    }
    house.london(readings)
    ends = {"E": LEAVES}
    rows = [f"{home},{FIRST},{ends.get(home, '')},{GROUPS[home]}" for home in "ABCDE"]
    (house.folder / "roster.csv").write_text("\n".join(["household_id,from,to,tariff", *rows]) + "\n")
    return house


def write(house, promise="", weeks=0.2, months=0.3):
    house.write(
        FIRST,
        LAST,
        clamp="10\nshare = 0.5",
        promise=promise or CLASSICAL,
        rest=TABLES.format(weeks=weeks, months=months),
    )
    return house


def as_drawn(exact, **_):
    return np.asarray(exact)


@pytest.fixture(scope="module")
def kept(houses, tmp_path_factory):
    """Five homes of two tariffs, one of which leaves, published by day, week and month without noise."""
    house = write(build(houses(tmp_path_factory.mktemp("periods"))))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mechanisms, "discrete_laplace", as_drawn)
        house.run(today=TODAY)
    return house


@pytest.fixture
def made(kept, houses, tmp_path):
    return houses(shutil.copytree(kept.folder, tmp_path / "house"))


def expected_sum(first, last, homes="ABCDE", missing=0):
    days = [day for day in DAYS if first <= day <= last]
    pairs = [(home, day) for day in days for home in homes_on(day) if home in homes]
    return sum(counted(home, day, missing) for home, day in pairs), len(pairs)


def test_a_row_is_the_sum_of_all_household_days_that_it_covers(kept):
    months = kept.release.table("period_releases_months")
    total, household_days = expected_sum(date(2013, 2, 1), date(2013, 2, 28), missing=2000)
    assert months["noisy_sum_wh"].tolist() == [total]
    assert months["household_days"].tolist() == [household_days]
    assert [f"{months[name][0]:%Y-%m-%d}" for name in ("first_day", "day")] == ["2013-02-01", "2013-02-28"]
    weeks = kept.release.table("period_releases")
    mondays = [date(2013, 2, 4) + timedelta(days=7 * i) for i in range(4)]
    expected = [
        (monday, group, *expected_sum(monday, monday + timedelta(days=6), homes))
        for monday in mondays
        for group, homes in (("Std", "AB"), ("ToU", "CDE"))
    ]
    published = zip(*(weeks[name] for name in ("first_day", "group", "noisy_sum_wh", "household_days")), strict=True)
    assert [(first.date() if hasattr(first, "date") else first, *rest) for first, *rest in published] == expected


def test_the_noise_is_that_of_all_days_of_one_household(kept):
    rows = {(row.series, row.day): row for row in kept.rows() if row.state == "released"}
    assert rows["months", "2013-02-28"].sensitivity == 28 * 10_000
    assert rows["months", "2013-02-28"].scale == pytest.approx(28 * 10_000 / (0.3 * 0.5))
    assert rows["weeks", "2013-02-10"].sensitivity == 7 * 10_000
    assert rows["weeks", "2013-02-10"].loss == NANO // 10


def test_the_release_verifies_and_states_days_and_total(kept):
    kept.release.verify()
    statement = kept.release.read_statement()
    bounds = {bound.name: bound.epsilon for bound in statement.bounds}
    assert bounds["day"] == "0.5"  # 0.25 by the day, 0.1 by its week, 0.15 by its month
    assert float(bounds["total"]) == pytest.approx(33 * 0.25 + 4 * 0.1 + 0.15)
    assert statement.days.released == 33


def test_a_second_run_draws_nothing(made):
    before = made.rows()
    made.run(today=TODAY)
    assert made.rows() == before


def only(house, clamp='10\nevery = "week"', **keys):
    house.write(FIRST, LAST, clamp=clamp, **keys)
    return house


def test_weeks_alone_are_published_planned_and_verified(houses, tmp_path):
    house = only(build(houses(tmp_path)))
    expected = forecast_run(house.session(today=TODAY))
    assert [release.row.day for release in expected.now.planned] == [f"2013-02-{day}" for day in (10, 17, 24)] + [
        "2013-03-03"
    ]
    house.run(today=TODAY)
    house.release.verify()
    assert {row.loss for row in house.rows()} == {NANO // 2}
    bounds = {bound.name: bound.epsilon for bound in house.release.read_statement().bounds}
    assert (bounds["day"], bounds["total"]) == ("0.5", "2")
    assert house.release.read_statement().days.released == 28
    assert [*house.release.series_tables()] == ["period_releases.parquet"]


def test_a_live_run_draws_a_week_once_when_its_last_day_is_due(houses, tmp_path):
    house = only(build(houses(tmp_path)), mode="live", promise=f"age_days = 1\n{CLASSICAL}")
    house.run(today=date(2013, 2, 11), hour=23)
    assert not (house.folder / "ledger.sqlite").exists()
    with ended_in_draw(1):
        house.run(today=date(2013, 2, 12), hour=23)
    house.run(today=date(2013, 2, 12), hour=23)
    assert [row.day for row in house.rows()] == ["2013-02-10"]
    before = house.rows()
    house.run(today=date(2013, 2, 13), hour=23)
    assert house.rows() == before
    house.run(today=date(2013, 2, 26), hour=23)
    assert [row.day for row in house.rows()] == ["2013-02-10", "2013-02-17", "2013-02-24"]
    house.release.verify()


def test_a_roster_cannot_change_on_any_day_of_a_published_week(houses, tmp_path):
    house = only(build(houses(tmp_path)))
    house.run(today=TODAY)
    roster = house.folder / "roster.csv"
    roster.write_text(roster.read_text().replace("2013-02-10", "2013-02-06"))
    with pytest.raises(Refused, match="other households on 2013-02-07"):
        house.run(today=TODAY)
    forget(house.folder / "confidential", "released_rosters")
    with pytest.raises(Refused, match="other households on 2013-02"):
        house.run(today=TODAY)


def test_a_week_with_a_skipped_day_is_skipped(houses, tmp_path):
    house = only(build(houses(tmp_path)))
    house.edit((f"last_day = {LAST}", f"last_day = {LAST}\nskip_days = [2013-02-13]"))
    house.run(today=TODAY)
    assert [(row.day, row.state) for row in house.rows()][1] == ("2013-02-17", "skipped")
    house.release.verify()


def test_a_notion_that_cannot_carry_periods_is_refused_when_read(house):
    promise = 'notion = "neighbourhood"\ndelta_kwh = 4\nwindow_days = 3\nepsilon_per_window = 0.5\n'
    promise += 'spend = "per-request"\n'
    only(build(house), promise=f'{promise}max_day_epsilon = 0.6\nepsilon_total = "unlimited"\n')
    with pytest.raises(RunFileError, match="is not possible with notion"):
        house.context(today=TODAY)


def test_other_statistics_and_layers_refuse_the_key(house):
    only(build(house), clamp='[10, 20]\nevery = "week"\nshare = [0.5, 0.5]')
    with pytest.raises(RunFileError, match="every"):
        house.context(today=TODAY)


def test_the_largest_day_of_a_run_counts_all_rows_that_cover_it(kept):
    rows = [row for row in kept.rows() if row.state == "released"]
    publication = Publication(earlier=series_by_contract(kept.session(today=TODAY).history.contracts))
    assert max(losses_about_days(rows, publication).values()) == NANO // 2
