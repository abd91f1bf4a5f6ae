"""All contracts of a population together: every model that one of them named binds, series come, go and come back."""

from __future__ import annotations

import json
from datetime import date, timedelta

import pytest

from agedp.budget import closed_days
from agedp.pipeline import sanitise
from agedp.stages.amend import amend, preview_amendment
from agedp.stages.plan import end_within_30_days, forecast_run, plan
from agedp.stages.publish import publish_release
from agedp_data.errors import Refused
from agedp_data.ledger import ContractRecord, ReleaseRecord
from agedp_flows.text.amendment_text import amendment_lines

FIRST = date(2013, 1, 1)
AGED = (
    'notion = "age-dependent"\nage_days = 2\nrisk = 0.5\nmethod = "total_variation"\nsecret = "day"\n'
    "max_day_epsilon = 5\nepsilon_total = 1000\n"
)
MODEL = '[model]\nsource = "declared"\nbasis = "made up"\nassume = "{}"\ncurve = "{}.csv"\n'


def day(number):
    return FIRST + timedelta(days=number)


@pytest.fixture
def homes(house):
    """Three homes, sixteen days, a model that forgets fast and one that forgets slowly."""
    house.fill([day(i) for i in range(16)])
    (house.folder / "fast.csv").write_text("1,0.5\n2,0.4\n7,0.2\n")
    (house.folder / "slow.csv").write_text("1,0.95\n2,0.9\n7,0.85\n")
    return house


def write(homes, curve, *, assume="markov"):
    homes.write(FIRST, day(15), mode="rehearsal", promise=AGED, rest=MODEL.format(assume, curve))


def amended(homes, curve, *, assume="markov"):
    write(homes, curve, assume=assume)
    found = preview_amendment(homes.session(as_of=day(5)))
    amend(homes.context(as_of=day(5)))
    return found


def test_a_promise_that_a_slower_model_stopped_does_not_resume_when_the_faster_one_is_put_back(homes):
    write(homes, "fast")
    homes.run(as_of=day(4))
    released = homes.rows()
    slower = amended(homes, "slow")
    assert slower.before.loss > 0
    assert (slower.after.loss, slower.after.last_day, slower.after.ended_by_promise) == (0, None, True)
    back = amended(homes, "fast")
    assert (back.after.loss, back.after.last_day, back.after.ended_by_promise) == (0, None, True)
    assert "more than risk = 0.5; releases stop" in amendment_lines(back)[-1]
    with pytest.raises(Refused, match=r"under a model that its contracts name .* more than risk = 0\.5"):
        sanitise(homes.run_file, as_of=day(9))
    with pytest.raises(Refused, match="releases stop"):
        forecast_run(homes.session(as_of=day(9)))
    assert homes.rows() == released
    assert len(released) == 2


def test_a_statement_tells_what_a_model_says_that_bound_while_nothing_was_released(homes):
    write(homes, "fast")
    homes.run(as_of=day(4))
    slower = amended(homes, "slow").after.bounds
    amended(homes, "fast")
    with pytest.raises(Refused, match="releases stop"):
        sanitise(homes.run_file, as_of=day(9))
    publish_release(homes.session(as_of=day(9)))
    figures = homes.release.statement["figures"]
    said = {figure["name"]: round(float(figure["epsilon"]) * 10**9) for figure in figures}
    assert said["risk by an earlier model"] == next(one.value for one in slower if one.name == "risk") > 5 * 10**8
    assert said["risk"] < 5 * 10**8


def test_what_several_models_said_while_they_bound_bears_the_name_of_each(homes):
    (homes.folder / "slower.csv").write_text("1,0.96\n2,0.95\n7,0.9\n")
    write(homes, "fast")
    homes.run(as_of=day(4))
    amended(homes, "slow")
    amended(homes, "slower")
    amended(homes, "fast")
    publish_release(homes.session(as_of=day(9)))
    names = [figure["name"] for figure in homes.release.statement["figures"]]
    assert len(set(names)) == len(names)
    assert sum(name.startswith("risk by an earlier model (") for name in names) == 2


def test_the_outlook_of_an_amendment_is_that_of_the_run_behind_it(homes):
    write(homes, "fast", assume="curve")
    with pytest.raises(Refused, match="this model"):
        homes.run(as_of=day(5))  # the first day takes all that a curve permits
    found = amended(homes, "fast", assume="markov")
    assert (found.after.loss, found.after.last_day, found.after.ended_by_promise) == (0, None, True)
    with pytest.raises(Refused, match="each of its models, earlier ones included"):
        homes.run(as_of=day(9))
    assert len(homes.rows()) == 1


def test_the_warning_of_the_last_thirty_days_knows_the_earlier_models(homes):
    write(homes, "fast", assume="curve")
    with pytest.raises(Refused, match="this model"):
        homes.run(as_of=day(5))
    amended(homes, "fast", assume="markov")
    session = homes.session(as_of=day(3))
    plan(session)
    assert end_within_30_days(session) == FIRST


def promised(seq, *series):
    return ContractRecord("homes", json.dumps({"series": {name: {} for name in series}}), seq=seq)


def row(seq, number, series):
    return ReleaseRecord(
        "homes", series, day(number).isoformat(), 0, "released", ("all",), (0,), (3,), 1, 1.0, "discrete-laplace",
        1, f"{day(number + 1)}T00:00:00Z", day(number + 3).isoformat(), "c", "", seq=seq,
    )  # fmt: skip


def missing(rows, contracts, days, *series):
    done = closed_days(rows, contracts)
    return [(i, name) for i in range(days) for name in series if (day(i).isoformat(), name) not in done]


def test_a_series_that_came_back_begins_behind_the_days_released_before_it_came_back():
    # both on day 0, m alone on days 1 and 2 (day 2 lies behind day 3, which waits), both again from then on
    contracts = [promised(1, "m", "n"), promised(4, "m"), promised(7, "m", "n")]
    rows = [row(2, 0, "m"), row(3, 0, "n"), row(5, 1, "m"), row(6, 3, "m")]
    assert missing(rows, contracts, 5, "m", "n") == [(2, "m"), (2, "n"), (4, "m"), (4, "n")]
    assert missing([*rows, row(8, 2, "m")], contracts, 4, "m", "n") == [(2, "n")]


def test_a_series_that_stays_is_not_held_to_have_come_with_every_contract():
    contracts = [promised(1, "m", "n"), promised(3, "m", "n"), promised(4, "m", "n", "o")]
    assert missing([row(2, 0, "m")], contracts, 2, "m", "n", "o") == [(0, "n"), (1, "m"), (1, "n"), (1, "o")]


def test_a_series_ended_and_added_again_is_released_with_the_others_from_the_next_day_on(homes):
    two = 'clamp_kwh = 50\nshare = 0.5\n[series.small]\nstatistic = "mean"\nclamp_kwh = 5\nshare = 0.5'
    promise = 'notion = "classical"\nage_days = 2\nepsilon_per_day = 1\nmax_day_epsilon = 1\nepsilon_total = 90\n'
    for series, until in ((two, 4), ("clamp_kwh = 50", 6), (two, 8)):
        homes.write(FIRST, day(15), mode="rehearsal", promise=promise)
        homes.run_file.write_text(homes.run_file.read_text().replace("clamp_kwh = 50", series))
        if until > 4:
            amend(homes.context(as_of=day(until)))
        homes.run(as_of=day(until))
    days = {name: [row.day for row in homes.rows() if row.series == name] for name in ("daily_mean", "small")}
    assert days == {
        "daily_mean": [day(i).isoformat() for i in range(6)],
        "small": [day(i).isoformat() for i in (0, 1, 4, 5)],
    }
    by_day = {}
    for each in homes.rows():
        by_day[each.day] = by_day.get(each.day, 0) + each.loss
    assert set(by_day.values()) == {10**9}
