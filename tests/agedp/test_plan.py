"""Which days are due, on which date each is published, and what is refused before anything is drawn."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from agedp.budget import ReleaseTerms, plan_release
from agedp.stage_values import last_due_date
from agedp.stages.plan import list_due_days, plan_due_days
from agedp_data.errors import Refused, RunFileError
from agedp_data.ledger import ReleaseRecord

D = date(2012, 7, 1)
CLASSICAL = 'notion = "classical"\nepsilon_per_day = {0}\nmax_day_epsilon = {0}\nepsilon_total = 1\n'
REHEARSED = 'notion = "classical"\nage_days = {}\nepsilon_per_day = 0.5\nmax_day_epsilon = 0.5\nepsilon_total = 9\n'


def day(number):
    return D + timedelta(days=number)


def begun(house, *, today=None, as_of=None, **keys):
    house.roster([(f"H{i}", D, None) for i in range(3)])
    house.write(D, day(9), **keys)
    return house.context(today=today, as_of=as_of)


def due_of(work, rows=(), not_before=date.min):
    released = {(row.day, row.series) for row in rows}
    return list_due_days(work.run_file, work.roster.counts, released, until=work.until, not_before=not_before).due


def row(number, *, published_on):
    return ReleaseRecord(
        "homes", "daily_mean", str(day(number)), 0, "released", ("all",), (0,), (3,), 50_000, 1e5, "discrete-laplace",
        500_000_000, f"{day(number + 1)}T00:00:00Z", str(published_on), "c", "",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("dataset", "today", "due"),
    [
        ("london", D, 0),  # 1 July ends at midnight GMT
        ("london", day(1), 1),
        ("ausgrid", D, 0),  # 1 July ends in Sydney at 14:00 UTC of that date: not yet at its first instant
        ("ausgrid", day(1), 1),
        ("london", day(400), 10),
    ],
)
def test_an_archive_publishes_every_ended_day_today(house, dataset, today, due):
    found = due_of(begun(house, dataset=dataset, today=today))
    assert [one.day for one in found] == [day(i) for i in range(due)]
    assert {one.publish_on for one in found} <= {today}
    ends, first = ("T14:00:00Z", D) if dataset == "ausgrid" else ("T00:00:00Z", day(1))
    assert [one.input_ended_at for one in found] == [f"{first + timedelta(days=i)}{ends}" for i in range(due)]


@pytest.mark.parametrize(("dataset", "age"), [("london", 0), ("london", 3), ("ausgrid", 0), ("ausgrid", 1)])
def test_a_rehearsal_publishes_each_day_on_the_date_it_is_due(house, dataset, age):
    # London: midnight after the day, plus the age. Sydney: 14:00 UTC of the day, so its first date is the next.
    work = begun(house, dataset=dataset, mode="rehearsal", promise=REHEARSED.format(age), as_of=day(5 + age))
    assert [(one.day, one.publish_on) for one in due_of(work)] == [(day(i), day(i + 1 + age)) for i in range(5)]
    assert last_due_date(work.run_file) == day(10 + age)


def test_a_rehearsal_continues_and_its_dates_never_run_backwards(house):
    work = begun(house, mode="rehearsal", promise=REHEARSED.format(1), as_of=day(6))
    rows = [row(1, published_on=day(5)), row(2, published_on=day(5))]  # day 0 was left over
    found = due_of(work, rows, not_before=day(5))
    assert [(one.day, one.publish_on) for one in found] == [(D, day(5)), (day(3), day(5)), (day(4), day(6))]


def test_a_rehearsal_gives_up_on_the_date_on_which_the_patience_ended(house):
    begun(house, mode="rehearsal", promise=REHEARSED.format(1))
    house.edit(("[series.", 'wait_for = "{day}.done"\ngive_up_days = 2\n[series.'), (f"{day(9)}", f"{day(3)}"))
    for number in (1, 2, 3):
        (house.folder / f"{day(number)}.done").touch()
    found = due_of(house.context(as_of=day(8)))
    # day 0 ends on day 1, is due on day 2 and given up on day 4: after two days that were due meanwhile
    said = [((one.day - D).days, (one.publish_on - D).days, one.given_up) for one in found]
    assert said == [(1, 3, False), (0, 4, True), (2, 4, False), (3, 5, False)]


@pytest.mark.parametrize(("until", "given_up"), [(3, False), (4, True)])
def test_a_day_is_given_up_at_the_instant_at_which_its_patience_ends(house, until, given_up):
    """Day 0 is due on day 2 at midnight, and waits for two days."""
    begun(house, mode="rehearsal", promise=REHEARSED.format(1))
    house.edit(("[series.", 'wait_for = "{day}.done"\ngive_up_days = 2\n[series.'), (f"{day(9)}", f"{day(0)}"))
    assert [one.given_up for one in due_of(house.context(as_of=day(until)))] == [True] * given_up


@pytest.mark.parametrize(
    "marker", ["x" * 250 + "{day}", "loop/{day}"], ids=["a name too long with its date", "a ring of links"]
)
def test_a_marker_that_cannot_be_looked_for_is_no_absent_delivery(house, marker):
    (house.folder / "loop").symlink_to("loop")
    begun(house, mode="rehearsal", promise=REHEARSED.format(1))
    house.edit(("[series.", f'wait_for = "{marker}"\n[series.'))
    with pytest.raises(RunFileError, match=r"wait_for: the marker of 2012-07-01 cannot be checked") as caught:
        due_of(house.context(as_of=day(8)))
    assert caught.value.exit_status == 2
    assert "\n" not in str(caught.value)


def test_as_of_is_for_rehearsals_which_go_to_the_end_without(house):
    with pytest.raises(RunFileError, match="--as-of goes with"):
        begun(house, as_of=D)
    assert begun(house, mode="rehearsal", promise=REHEARSED.format(2)).as_of == day(12)


def test_a_day_with_too_few_households_is_skipped_and_costs_nothing(house):
    work = begun(house, today=day(20), least=4)
    planned = plan_release(ReleaseTerms(work.run_file, contract="c"), due_of(work)[0], "daily_mean", ())
    assert (planned.row.state, planned.row.loss, planned.loss, planned.row.values) == ("skipped", 0, 0, ())


def test_the_plan_ends_where_the_total_does_and_says_so(house):
    work = begun(house, today=day(20), promise=CLASSICAL.format(0.3))
    found = plan_due_days(ReleaseTerms(work.run_file, contract="c"), due_of(work), ())
    assert [one.day for one in found.releases] == [str(day(i)) for i in range(3)]
    assert isinstance(found.refused, Refused)
    assert "0.9 is spent, epsilon_total = 1" in str(found.refused)
    assert found.refused.exit_status == 3


def test_a_planned_loss_is_never_above_what_was_granted(house):
    work = begun(house, today=day(20), promise=CLASSICAL.format("0.142857142"), clamp="0.007")
    planned = plan_release(ReleaseTerms(work.run_file, contract="c"), due_of(work)[0], "daily_mean", ())
    exact = 7 / planned.row.scale * 1e9
    assert 142_857_141 < exact <= planned.row.loss <= 142_857_142
    assert planned.row.sensitivity == 7
