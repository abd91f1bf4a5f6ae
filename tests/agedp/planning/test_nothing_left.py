"""A day with zero budget is skipped if later days have some; otherwise the series ends."""

from __future__ import annotations

import shutil
from datetime import date, timedelta

import pytest

from agedp.stages.amend import amend, preview_amendment
from agedp.stages.plan import end_within_30_days, plan
from agedp_data.errors import Refused
from agedp_flows.text.plan_text import plan_json
from tests.agedp.conftest import ended_in_draw

FIRST = date(2013, 1, 1)
HALF = 500_000_000
W_EVENT = (
    'notion = "w-event"\nage_days = 1\nwindow_days = {}\nepsilon_per_window = 1\nspend = "even"\nmax_day_epsilon = 1\n'
    "epsilon_total = {}\n"
)
CLASSICAL = 'notion = "classical"\nage_days = 1\nepsilon_per_day = {0}\nmax_day_epsilon = {0}\nepsilon_total = {1}\n'
TWO = 'clamp_kwh = 50\nshare = {}\n[series.small]\nstatistic = "mean"\nclamp_kwh = 5\nshare = {}'


def day(number):
    return FIRST + timedelta(days=number)


@pytest.fixture
def homes(house):
    house.fill([day(i) for i in range(10)])
    return house


def write(homes, promise, *, shares=None):
    homes.write(FIRST, day(9), mode="rehearsal", promise=promise)
    if shares:
        homes.edit(("clamp_kwh = 50", TWO.format(*shares)))


def amend_to(homes, promise, *, shares=None):
    write(homes, promise, shares=shares)
    preview = preview_amendment(homes.session(as_of=day(6)))
    amend(homes.context(as_of=day(6)))
    return preview


def run(homes, number):
    """Run up to the date on which the day with this number is due, one day after its end."""
    return homes.run(as_of=day(number + 2))


def rows(homes, *, since=0):
    numbered = [((date.fromisoformat(row.day) - FIRST).days, row) for row in homes.rows()]
    return [(number, row.series, row.state, row.loss) for number, row in numbered if number >= since]


def mean(number, loss):
    return (number, "daily_mean", "released" if loss else "skipped", loss)


def test_days_whose_window_is_full_are_skipped(homes):
    write(homes, W_EVENT.format(2, '"unlimited"'))
    run(homes, 2)
    preview = amend_to(homes, W_EVENT.format(4, '"unlimited"'))
    # 3 days of 1/2: the 4 days up to day 3 hold 3/2 of 1, up to day 4 one, up to day 5 a half: then a quarter a day
    assert (preview.before.skipped, preview.after.skipped) == ((), ((day(3), ""), (day(4), "")))
    assert (preview.after.last_day, preview.after.ended_by_promise) == (day(9), False)
    session, early = homes.session(as_of=day(7)), homes.session(as_of=day(5))
    plan(session)
    assert [row["state"] for row in plan_json(session)["due"]] == ["skipped", "skipped", "released"]
    plan(early)
    assert plan_json(early)["skipped_ahead"] == [{"day": "2013-01-05"}]
    run(homes, 7)
    assert rows(homes, since=3) == [mean(3, 0), mean(4, 0), *(mean(i, HALF // 2) for i in (5, 6, 7))]
    homes.release.verify()
    assert homes.release.statement["days"]["skipped"] == ["2013-01-04", "2013-01-05"]


def test_an_exhausted_total_ends_the_series_and_skips_nothing(homes):
    write(homes, W_EVENT.format(2, 1.75))
    run(homes, 2)
    preview = amend_to(homes, W_EVENT.format(4, 1.7))
    # 3/2 is spent; a day far from the others would be granted a quarter, and a fifth remains in total
    assert (preview.after.skipped, preview.after.last_day, preview.after.ended_by_promise) == ((), None, True)
    with pytest.raises(Refused, match=r"epsilon_total = 1\.7") as refused:
        run(homes, 7)
    assert refused.value.exit_status == 3
    assert rows(homes, since=3) == []
    assert end_within_30_days(homes.session(as_of=day(9))) == day(2)


@pytest.fixture(scope="module")
def half_released(houses, tmp_path_factory):
    """The first day, and of the second the first of two series, 0.7 of 1."""
    house = houses(tmp_path_factory.mktemp("half"))
    house.fill([day(i) for i in range(10)])
    write(house, CLASSICAL.format(1, 90), shares=("0.7", "0.3"))
    with ended_in_draw(4):
        run(house, 1)
    assert rows(house, since=1) == [mean(1, 700_000_000)]
    return house


@pytest.fixture
def half(half_released, houses, tmp_path):
    return houses(shutil.copytree(half_released.folder, tmp_path / "copy"))


@pytest.mark.parametrize(
    ("epsilon", "shares", "small"),
    [
        (0.6, ("0.7", "0.3"), 0),  # 0.7 of it is spent
        (0.8, ("0.7", "0.3"), 100_000_000),  # 0.1 remains of the 0.24 that would be its part
        (1, ("0.3", "0.7"), 300_000_000),  # 0.3 remains of the 0.7 that is now its part
        (1, ("0.7", "0.3"), 300_000_000),
    ],
)
def test_a_half_released_day_has_the_remaining_budget(half, epsilon, shares, small):
    if (epsilon, shares) != (1, ("0.7", "0.3")):
        preview = amend_to(half, CLASSICAL.format(epsilon, 90), shares=shares)
        assert preview.after.skipped == (() if small else ((day(1), "small"),))
    run(half, 2)
    parts = [int(float(share) * round(epsilon * 10**9)) for share in shares]
    state = "released" if small else "skipped"
    expected = [mean(1, 700_000_000), (1, "small", state, small), mean(2, parts[0]), (2, "small", "released", parts[1])]
    assert rows(half, since=1) == expected
    half.release.verify()
    days = {"first": "2013-01-01", "last": "2013-01-03", "released": 3, "skipped": []}
    assert half.release.statement["days"] == days


def test_the_rest_of_a_half_released_day_stays_within_the_total(half):
    preview = amend_to(half, CLASSICAL.format(1, 1.9), shares=("0.7", "0.3"))
    assert (preview.after.skipped, preview.after.ended_by_promise) == ((), True)
    with pytest.raises(Refused, match=r"1\.7 is spent, epsilon_total = 1\.9"):
        run(half, 2)
    assert rows(half, since=1) == [mean(1, 700_000_000)]


def test_an_added_series_has_no_part_in_a_half_released_day(half):
    third = '0.3\n[series.third]\nstatistic = "mean"\nclamp_kwh = 5\nshare = 0.2'
    amend_to(half, CLASSICAL.format(1, 90), shares=("0.5", third))
    run(half, 2)
    released = [(number, series) for number, series, _, _ in rows(half, since=1)]
    assert released == [(1, "daily_mean"), (1, "small"), (2, "daily_mean"), (2, "small"), (2, "third")]
