"""Calibration draws in a run: planned, refused before a draw, in the statement, the folder and its verification."""

from __future__ import annotations

import html
import json
import re
from datetime import date
from pathlib import Path

import jsonschema
import pytest

from agedp.budget import ReleaseTerms, check_charges_fit
from agedp.calibration_pipeline import calibrate
from agedp.ledger_session import comparison_view
from agedp.planning.notion_comparison import ComparisonTarget, compare_promises
from agedp.stages.amend import amend, preview_amendment
from agedp.stages.plan import forecast_run
from agedp_data.config import load
from agedp_data.config.loading import parse
from agedp_data.errors import InputError, Refused
from agedp_data.ledger import Ledger
from agedp_data.model import digest_line, model_settings
from agedp_data.notions.publication import Event
from agedp_data.statement.document import schema
from agedp_flows.text.plan_text import plan_lines
from agedp_flows.text.run_text import result_lines
from docs.papers.age.frontier import compute_frontier
from tests.agedp.release_folder.resealed import reseal
from tests.minimal import of_three_states, run_file

FIRST, LAST = date(2013, 1, 1), date(2013, 1, 6)
W_EVENT = (
    'notion = "w-event"\nwindow_days = 3\nepsilon_per_window = 0.9\nspend = "even"\nmax_day_epsilon = 0.5\n'
    'epsilon_total = "unlimited"\n'
)
CLAIMS = r"\balways\b|no assumption|assumption-free|Filled bars|at most epsilon|bounds on the privacy loss of one"
MEMBER = {"ask": "member", "coverage": "0.95"}
QUANTILE = {"ask": "quantile", "of": "total-variation", "age_days": 7, "probability": "0.95"}


@pytest.fixture
def homes(house):
    house.fill([date(2013, 1, day) for day in range(1, 7)])
    house.write(FIRST, LAST, promise=W_EVENT)
    return house


def drawn(homes, query, loss, *, first="2012-12-01", last="2013-01-02"):
    with Ledger.open(f"sqlite:///{homes.folder / 'ledger.sqlite'}", create=True) as ledger:
        ledger.draw_once("homes", (first, last), query, loss=loss, draw=lambda: [3], at="2013-01-03")


def test_a_promise_that_was_asked_before_counts_the_draws_that_come_later():
    run = parse(run_file(), base=Path("/srv"), name="run.toml")
    assert run.notion.charges == ()
    for draws in ((Event("2013-01-01", "2013-01-02", 5 * 10**8),), ()):
        assert run.charging(draws).notion.charges == draws
    assert run.notion.charges == ()
    check_charges_fit(ReleaseTerms(run), ())
    with pytest.raises(Refused, match=r"max_day_epsilon = 0\.5 leaves nothing"):
        check_charges_fit(ReleaseTerms(run), (), [Event("2013-01-01", "2013-01-02", 5 * 10**8)])


def losses(homes):
    return {row.day[-1]: row.loss for row in homes.rows()}


def test_days_and_windows_of_a_calibration_have_less_and_the_statement_lists_its_draws(homes):
    drawn(homes, MEMBER, 200_000_000)
    drawn(homes, QUANTILE, 100_000_000)
    plan = forecast_run(homes.session())
    assert (plan.spent, plan.forecast.loss) == (300_000_000, 200_000_000)
    assert any("and calibration draws): 0.3 spent" in line for line in plan_lines(homes.session()))
    homes.run()
    # (.9 - .3) / 3 on days in a window with the second of January, .9 / 3 afterwards
    assert losses(homes) == {"1": 200_000_000, "2": 200_000_000, "3": 200_000_000, "4": 200_000_000,
                             "5": 300_000_000, "6": 300_000_000}  # fmt: skip
    homes.release.verify()
    statement = homes.release.statement
    jsonschema.validate(statement, schema())
    figures = {figure["name"]: figure for figure in statement["figures"]}
    expected = {"day": "0.5", "total": "1.7", "calibration day": "0.5", "window of 3 days": "0.9"}
    assert {name: figures[name]["epsilon"] for name in expected} == expected
    assert all(figure["kind"] == "assumption-free" and "conditional_days" not in figure for figure in figures.values())
    assert statement["ending"]["spent"] == "1.7"
    period = {"first_day": "2012-12-01", "last_day": "2013-01-02"}
    assert statement["draws"] == [
        {**period, "asked": "the model, a member of its family of curves", "epsilon": "0.2"},
        {**period, "asked": "the 0.95 quantile of the households' total variation at 7 days", "epsilon": "0.1"},
    ]
    words = (homes.folder / "release" / "STATEMENT.md").read_text()
    assert "| the model, a member of its family of curves | 2012-12-01 | 2013-01-02 | 0.2 |" in words
    assert re.search(
        r"any one published day \| 0.5 [^\n]+\n\| any one day from 2012-12-01 to 2013-01-02, [^|]+ \| 0.5", words
    )
    report = (homes.folder / "release" / "report.html").read_text()
    [total] = re.findall(r"<tr><th[^>]*><b[^>]*>.</b> total</th>.*?</tr>", report, re.DOTALL)
    assert "<strong>1.7</strong>" in total
    assert "all its days of the calibration" in total


@pytest.mark.parametrize("forged", ["draws", "day", "total"])
def test_a_statement_that_leaves_a_draw_out_is_not_verified(homes, forged):
    drawn(homes, MEMBER, 200_000_000)
    homes.run()
    path = homes.folder / "release" / "statement.json"
    statement = json.loads(path.read_text())
    if forged == "draws":
        del statement["draws"]
    for figure in statement["figures"]:
        if figure["name"] == forged:
            figure["epsilon"], figure["factor"] = "0.3", "1.35"
    path.write_text(json.dumps(statement))
    reseal(homes.folder / "release")
    with pytest.raises(InputError):
        homes.release.verify()


@pytest.mark.parametrize(
    ("loss", "last", "reason"),
    [
        (900_000_000, "2012-12-31", r"epsilon_per_window = 0\.9 leaves nothing .* draws of 0\.9\b"),
        (500_000_000, "2013-01-01", r"max_day_epsilon = 0\.5 leaves nothing .* draws of 0\.5\b"),
    ],
)
def test_draws_that_leave_nothing_are_refused_before_a_contract_is_registered(homes, loss, last, reason):
    drawn(homes, MEMBER, loss, last=last)
    with pytest.raises(Refused, match=rf"^run\.toml: \[promise\] {reason}"):
        homes.run()
    with homes.ledger() as ledger:
        assert (ledger.contracts(), ledger.rows()) == ((), ())


def test_a_tightened_series_goes_on_beside_its_draws_and_a_total_ends_earlier(homes):
    drawn(homes, MEMBER, 200_000_000)
    homes.run(today=date(2013, 1, 5))
    homes.edit(("epsilon_per_window = 0.9", "epsilon_per_window = 0.6"), ('"unlimited"', "1.3"))
    preview = preview_amendment(homes.session())
    # (.9 - .2) / 3 on the days before; the draw is no longer in a window of the fifth
    assert (preview.before.loss, preview.after.loss) == (300_000_000, 133_333_334)
    amend(homes.context())
    with pytest.raises(Refused, match=r"1\.266666666 is spent, 0\.2 of it by calibration draws, epsilon_total = 1\.3"):
        homes.run()
    assert losses(homes) == {**dict.fromkeys("1234", 233_333_333), "5": 133_333_334}


PRIVATE = 'publish = "private"\nselection_epsilon = {loss}\ncoverage = 0.5\nfailure_probability = 0.01\n'


def select_privately(homes, loss):
    """Let the model in the folder be one that was selected with this loss."""
    text = homes.run_file.read_text()
    kept = text[: text.index('publish = "')]
    homes.run_file.write_text(kept + PRIVATE.format(loss=loss))
    path = homes.folder / "model" / "public.json"
    draws = [{"query": "{}", "value": [3], "loss": round(loss * 10**9)}]
    settings = model_settings(load(homes.run_file).model)
    public = {**json.loads(path.read_text()), **settings, "households": 3, "member": 3, "draws": draws}
    text = json.dumps(public, sort_keys=True, separators=(",", ":"))
    path.write_text(text)
    (homes.folder / "model" / "public.sha256").write_text(digest_line(text))


def estimated(homes, period="2012-12-01, 2012-12-08"):
    """Calibrate a model of eight days before the released ones, or of those of another period."""
    days = [date(2012, 12, day) for day in range(1, 9)] + [date(2013, 1, day) for day in range(1, 7)]
    homes.london({(home, day, slot): 100 * (1 + slot % 3) for home in "ABC" for day in days for slot in range(48)})
    homes.roster([(home, days[0], None) for home in "ABC"])
    homes.write(FIRST, LAST, promise=W_EVENT, rest=f"[model]\n{of_three_states(period)}")
    calibrate(homes.run_file)


@pytest.mark.parametrize("period", ["2012-12-01, 2012-12-08", "2013-01-01, 2013-01-06"])
def test_each_sentence_with_a_bound_names_the_model_without_noise(homes, period):
    """Days of the period before the released days or among them: what the model tells, no bound counts."""
    estimated(homes, period)
    days = period.replace(", ", " to ")
    told = f"of the noisy releases alone; with the published model, estimated without noise from the days {days}"
    assert sum(told in " ".join(line.split()) for line in plan_lines(homes.session())) >= 1
    summary = homes.run()
    lines = result_lines(summary)
    assert sum(told.partition(";")[0] in line for line in lines) == 3  # day, total, window
    assert sum(told in line for line in lines) == 1  # explained once
    folder = homes.folder / "release"
    texts = [(folder / name).read_text() for name in ("STATEMENT.md", "report.html", "datapackage.json")]
    for text in texts:
        plain = " ".join(html.unescape(re.sub(r"<[^>]*>", " ", text)).split())
        for claim in re.split(r"(?<!\d)\.(?=\s)|\|", plain):
            if re.search(CLAIMS, claim):
                assert days in claim or re.search("published without noise|noisy releases alone", claim), claim
    figures = homes.release.statement["figures"]
    assert {figure["conditional_days"] for figure in figures} == {days}
    assert ("days that are released here as well" in texts[0]) == (period[:4] == "2013")


def test_draws_that_come_with_a_model_count_before_the_ledger_has_them(homes):
    homes.run(today=date(2013, 1, 3))
    estimated(homes)
    select_privately(homes, 0.2)
    [draw] = homes.session().terms().notion.charges
    assert draw == Event("2012-12-01", "2012-12-08", 200_000_000)
    preview = preview_amendment(homes.session())
    totals = [{bound.name: bound.value for bound in each.bounds}["total"] for each in (preview.before, preview.after)]
    assert totals == [600_000_000, 800_000_000]
    select_privately(homes, 0.900000001)
    with pytest.raises(Refused, match=r"the bound 'window of 3 days' comes to 0\.900000001, more than 0\.9\."):
        amend(homes.context())
    with homes.ledger() as ledger:
        assert len(ledger.contracts()) == 1


def test_notions_and_frontier_are_compared_for_what_draws_leave(homes):
    (homes.folder / "curve.csv").write_text("age_days,total_variation\n1,0.5\n")
    model = '[model]\nsource = "declared"\ncurve = "curve.csv"\nbasis = "made up"\nassume = "curve"\n'
    homes.write(FIRST, LAST, promise=W_EVENT, rest=model)
    drawn(homes, MEMBER, 200_000_000)
    session = homes.session()
    entries = compare_promises(session.terms(), comparison_view(session), ComparisonTarget()).entries
    reached = {(entry.notion, entry.method): entry.series.reaches for entry in entries if entry.series is not None}
    assert {notion for notion, _ in reached} == {"classical", "w-event", "age-dependent"}
    assert all(value <= 900_000_000 for value in reached.values())
    divided = next(entry for entry in entries if entry.method == "all days alike")  # .15 a day is less than the draw
    assert "and the calibration draws no loss" in divided.reason
    points = compute_frontier(session.terms().run, session.model, comparison_view(session)).choices
    assert all(point.risk > 0.2 for point in points)
