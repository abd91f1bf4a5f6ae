"""All contracts of a population: each model that one of them names binds; days of a series that is added again."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from agedp.budget import ReleaseTerms, check_charges_fit, closed_days
from agedp.stages.amend import amend, preview_amendment
from agedp.stages.plan import end_within_30_days, forecast_run, plan
from agedp.stages.publish import publish_release
from agedp_data.config.loading import parse
from agedp_data.errors import Refused
from agedp_data.leakage.bound_table import LeakageBound
from agedp_data.ledger import ContractRecord, ReleaseRecord
from agedp_data.ledger.hash_chain import HashChain
from agedp_data.notions.publication import Event
from agedp_data.series.series import series_of
from agedp_flows.text.plan_text import amendment_lines
from tests.laws.promises import Line
from tests.minimal import run_file

FIRST = date(2013, 1, 1)
AGED = (
    'notion = "age-dependent"\nage_days = 2\nrisk = 0.5\nmethod = "total_variation"\nsecret = "day"\n'
    "max_day_epsilon = 5\nepsilon_total = 1000\n"
)
MODEL = '[model]\nsource = "declared"\nbasis = "made up"\nassume = "{}"\ncurve = "{}.csv"\n'

MEAN = {"statistic": "mean", "clamp_kwh": "50", "share": "1"}


def day(number):
    return FIRST + timedelta(days=number)


@pytest.fixture
def homes(house):
    """Sixteen days of three households; a model that mixes fast and one that mixes slowly."""
    house.fill([day(i) for i in range(16)])
    (house.folder / "fast.csv").write_text("1,0.5\n2,0.4\n7,0.2\n")
    (house.folder / "slow.csv").write_text("1,0.95\n2,0.9\n7,0.85\n")
    return house


def write(homes, curve, *, assume="markov"):
    homes.write(FIRST, day(15), mode="rehearsal", promise=AGED, rest=MODEL.format(assume, curve))


def amend_to(homes, curve, *, assume="markov"):
    write(homes, curve, assume=assume)
    preview = preview_amendment(homes.session(as_of=day(5)))
    amend(homes.context(as_of=day(5)))
    return preview


def test_a_series_that_a_slower_model_ended_does_not_resume(homes):
    write(homes, "fast")
    homes.run(as_of=day(4))
    released = homes.rows()
    slow = amend_to(homes, "slow")
    assert slow.before.loss > 0
    assert (slow.after.loss, slow.after.last_day, slow.after.ended_by_promise) == (0, None, True)
    back = amend_to(homes, "fast")
    assert (back.after.loss, back.after.last_day, back.after.ended_by_promise) == (0, None, True)
    assert "more than risk = 0.5; releases stop" in amendment_lines(back)[-1]
    with pytest.raises(Refused, match=r"under a model that its contracts name .* more than risk = 0\.5"):
        homes.run(as_of=day(9))
    with pytest.raises(Refused, match="releases stop"):
        forecast_run(homes.session(as_of=day(9)))
    assert homes.rows() == released
    assert len(released) == 2
    publish_release(homes.session(as_of=day(9)))
    bounds = {bound["name"]: round(float(bound["epsilon"]) * 10**9) for bound in homes.release.statement["figures"]}
    expected = next(bound.value for bound in slow.after.bounds if bound.name == "risk")
    assert bounds["risk by an earlier model"] == expected > 5 * 10**8 > bounds["risk"]


def forgetting(distance):
    """A model of which a day passes on this total variation at every age."""
    return LeakageBound([48], np.ones(1), None, None, {"total_variation": np.full(1, distance)}, 48, "markov")


@pytest.mark.parametrize(("distances", "permitted"), [((0.2, 0.3), True), ((0.2, 0.9), False), ((0.9, 0.2), False)])
def test_every_model_in_force_permits_a_release_and_a_draw(distances, permitted):
    """Of 0.5 a day later ln(1 + 0.2 (e^0.5 - 1)) = 0.12 is left, or 0.18, or 0.46, which is above the risk of 0.4."""
    aged = {"notion": "age-dependent", "age_days": 1, "method": "total_variation", "secret": "day"}
    caps = {"risk": Decimal("0.4"), "epsilon_per_day": None, "max_day_epsilon": 2, "epsilon_total": "unlimited"}
    model = {"source": "declared", "basis": "made up", "assume": "markov", "kernel": "kernel.csv"}
    tables = {"promise": {**aged, **caps}, "schedule": {"last_day": day(9)}, "model": model}
    run = parse(run_file(**tables), base=Path("/srv"), name="run.toml")
    newest, earlier = map(forgetting, distances)
    terms, row = ReleaseTerms(run, newest, {"earlier": earlier}), Line(str(day(0)), 500_000_000, str(day(2)))
    assert terms.effective_promise.admits([], row) == permitted
    draw = Event("2012-01-01", "2012-12-31", 100_000_000)
    with nullcontext() if permitted else pytest.raises(Refused, match=r"the bound 'risk' comes to 0\.5"):
        check_charges_fit(terms, [row], [draw])


def test_forecasts_include_the_earlier_model(homes):
    write(homes, "fast", assume="curve")
    with pytest.raises(Refused, match="this model"):
        homes.run(as_of=day(5))  # the first day takes all that a curve permits
    preview = amend_to(homes, "fast", assume="markov")
    assert (preview.after.loss, preview.after.last_day, preview.after.ended_by_promise) == (0, None, True)
    session = homes.session(as_of=day(3))
    plan(session)
    assert end_within_30_days(session) == FIRST
    with pytest.raises(Refused, match="each of its models, earlier ones included"):
        homes.run(as_of=day(9))
    assert len(homes.rows()) == 1


def contract(seq, *series):
    return ContractRecord("homes", json.dumps({"series": dict.fromkeys(series, MEAN)}), seq=seq)


def row(seq, number, series):
    return ReleaseRecord(
        "homes", series, day(number).isoformat(), 0, "released", ("all",), (0,), (3,), 1, 1.0, "discrete-laplace",
        1, f"{day(number + 1)}T00:00:00Z", day(number + 3).isoformat(), "c", "", seq=seq,
    )  # fmt: skip


BOTH = [contract(1, "m", "n"), contract(4, "m"), contract(7, "m", "n")]
"""Both on day 0, m alone on days 1 and 3 (day 2 waits), both again from then on."""
ROWS = [row(2, 0, "m"), row(3, 0, "n"), row(5, 1, "m"), row(6, 3, "m")]
ADDED = [contract(1, "m", "n"), contract(3, "m", "n"), contract(4, "m", "n", "o")]


@pytest.mark.parametrize(
    ("rows", "contracts", "days", "series", "expected"),
    [
        (ROWS, BOTH, 5, "mn", [(2, "m"), (2, "n"), (4, "m"), (4, "n")]),
        ([*ROWS, row(8, 2, "m")], BOTH, 4, "mn", [(2, "n")]),
        ([row(2, 0, "m")], ADDED, 2, "mno", [(0, "n"), (1, "m"), (1, "n"), (1, "o")]),
    ],
)
def test_a_series_is_open_after_the_days_before_it_was_added(rows, contracts, days, series, expected):
    closed = closed_days(rows, contracts)
    assert [(i, name) for i in range(days) for name in series if (str(day(i)), name) not in closed] == expected


def monthly(seq, **every):
    promise = {"series": {name: {**MEAN, "every": days} for name, days in every.items()}}
    return ContractRecord("homes", json.dumps(promise), seq=seq, hash=f"c{seq}")


def test_a_series_begins_after_all_days_that_earlier_rows_cover():
    january = replace(row(2, 30, "months"), contract="c1")
    closed = closed_days([january], [monthly(1, months="month"), monthly(3, months="month", daily="day")])
    assert {str(day(i)) for i in range(40) if (str(day(i)), "daily") in closed} == {str(day(i)) for i in range(31)}
    assert [day for day, name in closed if name == "months"] == ["2013-01-31"]


def test_a_row_of_a_year_may_count_more_household_days_than_households():
    chain = HashChain()
    chain.series["c"] = series_of({"series": {"years": {**MEAN, "every": "year"}, "days": MEAN}})
    for series, number, is_refused in (("years", 5 * 10**9, False), ("years", 10**12, True), ("days", 5 * 10**9, True)):
        faults = chain.broken_rules(replace(row(2, 0, series), households=(number,)))
        assert any("a number of household" in fault for fault in faults) == is_refused
