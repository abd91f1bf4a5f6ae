"""A day to which the promise leaves nothing: skipped where later days are left something, else the series ends."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from agedp.stages.amend import amend, preview_amendment
from agedp.stages.plan import end_within_30_days, plan
from agedp_data.errors import Refused
from agedp_flows.text.amendment_text import amendment_json, amendment_lines
from agedp_flows.text.plan_text import plan_json, plan_lines
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
    """Three homes that use 9.6 kWh a day, sixteen days of it, rehearsed."""
    house.fill([day(i) for i in range(16)])
    return house


def write(homes, promise, *, shares=None):
    homes.write(FIRST, day(15), mode="rehearsal", promise=promise)
    if shares:
        text = homes.run_file.read_text()
        homes.run_file.write_text(text.replace("clamp_kwh = 50", TWO.format(*shares)))


def edited(homes, promise, *, shares=None):
    write(homes, promise, shares=shares)
    found = preview_amendment(homes.session(as_of=day(6)))
    amend(homes.context(as_of=day(6)))
    return found


def run(homes, number):
    """Run up to the date on which the day with this number is due, one day after its end."""
    return homes.run(as_of=day(number + 2))


def told(homes, *, since=0):
    with homes.ledger() as ledger:
        assert ledger.verify() == ()
        rows = ledger.rows("homes")
    return [
        ((date.fromisoformat(row.day) - FIRST).days, row.series, row.state, row.loss)
        for row in rows
        if date.fromisoformat(row.day) >= day(since)
    ]


def mean(number, loss):
    return (number, "daily_mean", "released" if loss else "skipped", loss)


def cut_off_in_the_fourth_draw(homes):
    """Release the first of two series of the second day, and not the other."""
    with ended_in_draw(4):
        run(homes, 1)


def test_days_whose_window_is_full_are_skipped_and_the_days_behind_them_are_released(homes):
    write(homes, W_EVENT.format(2, '"unlimited"'))
    run(homes, 2)
    found = edited(homes, W_EVENT.format(4, '"unlimited"'))
    # 3 days of 1/2: the 4 days up to day 3 hold 3/2 of 1, up to day 4 one, up to day 5 a half: then a quarter a day
    assert (found.before.skipped, found.after.skipped) == ((), ((day(3), ""), (day(4), "")))
    assert (found.after.last_day, found.after.ended_by_promise) == (day(15), False)
    assert "  days that will be skipped: none -> 2013-01-04 to 2013-01-05" in amendment_lines(found)
    said = amendment_json(found, recorded=True)["after"]["skipped"]
    assert said == [{"day": "2013-01-04"}, {"day": "2013-01-05"}]
    run(homes, 7)
    expected = [mean(3, 0), mean(4, 0), *(mean(i, HALF // 2) for i in (5, 6, 7))]
    assert told(homes, since=3) == expected
    release = homes.release
    release.verify()
    assert release.statement["days"]["skipped"] == ["2013-01-04", "2013-01-05"]


def test_a_plan_says_which_due_days_will_be_skipped_and_why(homes):
    write(homes, W_EVENT.format(2, '"unlimited"'))
    run(homes, 2)
    edited(homes, W_EVENT.format(4, '"unlimited"'))
    session = homes.session(as_of=day(7))
    plan(session)
    said = plan_json(session)
    why = "releases of neighbouring days have spent the budget"
    assert [(row["state"], row.get("why")) for row in said["due"]] == [("skipped", why)] * 2 + [("released", None)]
    lines = plan_lines(session)
    assert lines[0] == "1 release is due and 2 will be skipped:"
    assert f"skipped ({why}): daily_mean of 2013-01-04 to 2013-01-05" in lines
    assert told(homes, since=3) == []
    early = homes.session(as_of=day(5))
    plan(early)
    assert f"days that will be skipped later ({why}): 2013-01-05" in plan_lines(early)
    assert plan_json(early)["skipped_ahead"] == [{"day": "2013-01-05"}]


def test_a_half_that_is_left_of_a_spent_window_is_waited_for_and_a_total_is_not(homes):
    write(homes, W_EVENT.format(2, 1.75))
    run(homes, 2)
    found = edited(homes, W_EVENT.format(4, 1.7))
    # 3/2 is spent; a day far from the others would be granted a quarter, and a fifth is left in all
    assert (found.after.skipped, found.after.last_day, found.after.ended_by_promise) == ((), None, True)
    with pytest.raises(Refused, match=r"epsilon_total = 1\.7") as caught:
        run(homes, 7)
    assert caught.value.exit_status == 3
    assert told(homes, since=3) == []
    assert end_within_30_days(homes.session(as_of=day(9))) == day(2)


def test_a_figure_over_everything_that_was_released_ends_the_series_and_skips_nothing(homes):
    # with e = 0.4: ln(1 + 0.9 (e^0.4 - 1)) = 0.37 fits; a second day at once is 0.77, a week later it would be 0.405
    (homes.folder / "curve.csv").write_text("1,0.9\n7,0.01\n")
    model = '[model]\nsource = "declared"\nbasis = "made up"\nassume = "curve"\ncurve = "curve.csv"\n'
    aged = (
        'notion = "age-dependent"\nage_days = 1\nrisk = 0.42\nmethod = "total_variation"\nsecret = "day"\n'
        'max_day_epsilon = 0.4\nepsilon_total = "unlimited"\n'
    )
    homes.write(FIRST, day(15), mode="rehearsal", promise=aged, rest=model)
    with pytest.raises(Refused, match="with the days released so far and this model"):
        run(homes, 7)
    assert [(number, state) for number, _, state, _ in told(homes)] == [(0, "released")]


def test_a_promise_without_a_model_does_not_speak_of_one(homes):
    write(homes, W_EVENT.format(2, '"unlimited"').replace("epsilon_per_window = 1", "epsilon_per_window = 0.000000002"))
    write(homes, homes.run_file.read_text().partition("[promise]\n")[2], shares=("0.5", "0.5"))
    with pytest.raises(Refused, match='no loss, however small, keeps the promise of notion = "w-event"; nothing'):
        run(homes, 3)  # a billionth a day, and half of that rounds to nothing
    assert not (homes.folder / "ledger.sqlite").exists()


@pytest.mark.parametrize(
    ("epsilon", "shares", "small"),
    [
        (0.6, ("0.7", "0.3"), 0),  # 0.7 of it is spent
        (0.8, ("0.7", "0.3"), 100_000_000),  # 0.1 is left of the 0.24 that would be its part
        (1, ("0.3", "0.7"), 300_000_000),  # 0.3 is left of the 0.7 that is now its part
        (1, ("0.7", "0.3"), 300_000_000),
    ],
)
def test_a_series_of_a_half_released_day_gets_what_the_other_left_or_is_skipped(homes, epsilon, shares, small):
    write(homes, CLASSICAL.format(1, 90), shares=("0.7", "0.3"))
    cut_off_in_the_fourth_draw(homes)
    assert told(homes, since=1) == [mean(1, 700_000_000)]
    if (epsilon, shares) != (1, ("0.7", "0.3")):
        found = edited(homes, CLASSICAL.format(epsilon, 90), shares=shares)
        assert found.after.skipped == (() if small else ((day(1), "small"),))
        assert ("days that will be skipped" in "\n".join(amendment_lines(found))) is not bool(small)
        assert any("none -> small of 2013-01-02" in line for line in amendment_lines(found)) is not bool(small)
    run(homes, 2)
    whole = round(epsilon * 10**9)
    parts = [int(float(share) * whole) for share in shares]
    state = "released" if small else "skipped"
    expected = [mean(1, 700_000_000), (1, "small", state, small), mean(2, parts[0]), (2, "small", "released", parts[1])]
    assert told(homes, since=1) == expected
    release = homes.release
    release.verify()
    assert release.statement["days"] == {"first": "2013-01-01", "last": "2013-01-03", "released": 3, "skipped": []}


def test_what_is_left_of_a_half_released_day_is_not_granted_beyond_the_total(homes):
    write(homes, CLASSICAL.format(1, 90), shares=("0.7", "0.3"))
    cut_off_in_the_fourth_draw(homes)
    found = edited(homes, CLASSICAL.format(1, 1.9), shares=("0.7", "0.3"))
    assert (found.after.skipped, found.after.ended_by_promise) == ((), True)
    with pytest.raises(Refused, match=r"1\.7 is spent, epsilon_total = 1\.9"):
        run(homes, 2)
    assert told(homes, since=1) == [mean(1, 700_000_000)]


def test_a_series_added_while_a_day_is_half_released_has_no_part_in_that_day(homes):
    write(homes, CLASSICAL.format(1, 90), shares=("0.7", "0.3"))
    cut_off_in_the_fourth_draw(homes)
    third = '0.3\n[series.third]\nstatistic = "mean"\nclamp_kwh = 5\nshare = 0.2'
    edited(homes, CLASSICAL.format(1, 90), shares=("0.5", third))
    run(homes, 2)
    assert [(number, series) for number, series, _, _ in told(homes, since=1)] == [
        *((1, series) for series in ("daily_mean", "small")),
        *((2, series) for series in ("daily_mean", "small", "third")),
    ]


def test_a_series_whose_horizon_is_used_up_says_so(homes):
    promise = (
        'notion = "discounted"\nage_days = 1\ndiscount = "exponential"\nrate = 0.5\nepsilon = 1\n'
        'schedule = "constant"\nhorizon_days = 2\nclock = "data-day"\n'
        'max_day_epsilon = 1\nepsilon_total = "unlimited"\n'
    )
    write(homes, promise)
    with pytest.raises(Refused, match=r"2013-01-03: horizon_days = 2 days are released and the series is over"):
        run(homes, 4)
    assert len({day for day, _, _, loss in told(homes) if loss}) == 2
