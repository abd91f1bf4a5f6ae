"""The report says what the ledger, the statement and the model say, each figure with its course and its price."""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from html import unescape

import numpy as np
import pyarrow.parquet as pq
import pytest

from agedp.reports.loss_over_time import bound_key, losses_over_time, noise_factors
from agedp.reports.mean_series import cell_means, series_parts
from agedp.reports.public_report import public_report_page
from agedp.reports.report_data import ReportData
from agedp.stages.publish import publish_release, write_folder_of_statement
from agedp_data.config.contract import promise_of
from agedp_data.epsilon import NANO
from agedp_data.notions.w_event import WindowLoss
from agedp_data.statement.document import read_statement
from tests.agedp.reports.html import Page, faults_of

FIRST, DAYS, HOMES = date(2013, 1, 20), 40, "ABCDEF"
AGED = (
    'notion = "age-dependent"\nage_days = 1\nepsilon_per_day = 0.5\nmethod = "total_variation"\nsecret = "day"\n'
    "max_day_epsilon = 0.7\nepsilon_total = 30\n"
)
REST = (
    '[model]\nsource = "declared"\nbasis = "made up"\nassume = "curve"\ncurve = "curve.csv"\n'
    "[compare]\nwindow_days = 7\nexponential = 0.9\nhyperbolic = 1\n"
    '[series.by_tariff]\nstatistic = "mean"\nshare = 0.5\nclamp_kwh = 40\nby = "tariff"\n'
)
HOLE = range(15, 18)  # days without a roster


def build(house, *, promise=AGED, rest=REST, days=DAYS, title='A <b>"title"</b> & more'):
    numbers = range(days)
    house.london(
        {
            (home, FIRST + timedelta(days=i), slot): 150 + 20 * place + (i * 7 + slot) % 30
            for place, home in enumerate(HOMES)
            for i in numbers
            for slot in range(48)
        }
    )
    rows = [
        f"{home},{FIRST + timedelta(days=start)},{end},{'Std' if place % 2 else 'ToU'}"
        for place, home in enumerate(HOMES)
        for start, end in ((0, FIRST + timedelta(days=HOLE[0] - 1)), (HOLE[-1] + 1, ""))
    ]
    (house.folder / "roster.csv").write_text("\n".join(["household_id,from,to,tariff", *rows]) + "\n")
    (house.folder / "curve.csv").write_text("1,0.9\n7,0.5\n20,0.01\n")
    house.write(FIRST, FIRST + timedelta(days=days - 1), promise=promise, rest=rest)
    text = house.run_file.read_text().replace('title = "Made up"', f"title = '{title}'")
    if "share" in rest:
        text = text.replace("clamp_kwh = 50\n", "clamp_kwh = 50\nshare = 0.5\n", 1)
    house.run_file.write_text(text)
    house.run(today=date(2013, 6, 1))
    return house


@pytest.fixture(scope="module")
def made(houses, tmp_path_factory):
    return build(houses(tmp_path_factory.mktemp("report")))


@pytest.fixture(scope="module")
def told(made):
    with made.ledger() as ledger:
        rows, contracts = ledger.rows("homes"), ledger.contracts("homes")
        claim = read_statement(ledger.statements("homes")[-1].claim)
    promise = promise_of(contracts[-1].promise)
    accounts = [promise, WindowLoss(7)]
    known = {one.hash: json.loads(one.promise) for one in contracts}
    return ReportData(claim, rows, known, accounts, made.context().model.leakage_bound, Decimal("0.95"), promise, {})


def with_keys(statement, **keys):
    return read_statement(json.dumps(statement.content() | keys))


def report(house) -> str:
    return (house.folder / "release" / "report.html").read_text()


def spent_by_day(rows):
    spent = defaultdict(int)
    for row in rows:
        if row.state == "released":
            spent[row.day] += row.loss
    return spent


def test_a_page_is_sound_asks_for_nothing_and_shows_the_title_as_it_is_written(made):
    assert faults_of(report(made)) == []
    assert Page(report(made)).text.count('A <b>"title"</b> & more') == 2  # in the tab and on the page


@pytest.mark.parametrize(
    "fault",
    [
        ("</main>", ""),
        ("<main>", '<main><img src="http://x/y.png">'),
        ("<h2>", "<h4>"),
        ('aria-label="', 'aria-label="" data-was="'),
        ("<footer>", '<p style="background:url(http://x)"><footer>'),
        ("<td>", "<p><table>"),
    ],
)
def test_a_page_with_a_fault_is_not_sound(made, fault):
    assert faults_of(report(made).replace(*fault, 1)) != []


def test_it_is_listed_and_hashed_with_the_release(made):
    release = made.release
    assert "report.html" in release.checksums
    release.verify()


def test_publishing_again_and_as_it_stood_gives_the_same_bytes(made, tmp_path, houses):
    before = report(made)
    session = made.session()
    with session.open_ledger as ledger:
        publish_release(session)
        assert report(made) == before
        number = ledger.statements("homes")[0].seq
        assert write_folder_of_statement(session, number)
    assert report(made) == before


def test_every_figure_and_every_word_of_the_statement_is_on_it(made):
    text = Page(report(made)).text
    claim = made.release.statement
    plainly = re.sub(r"[*`|#_-]", " ", (made.folder / "release" / "STATEMENT.md").read_text())
    there = set(re.sub(r"[*`|#_-]", " ", text).split())
    assert set(plainly.split()) <= there
    for place, figure in enumerate(claim["figures"]):
        assert f"{chr(65 + place)} {figure['name']}" in text


def test_each_figure_stands_in_one_table_with_all_that_the_statement_says_of_it(made):
    claim = made.release.statement
    for place, figure in enumerate(claim["figures"]):
        named = f'<tr><th scope="row"><b class="letter">{chr(65 + place)}</b> {figure["name"]}</th>'
        (row,) = re.findall(rf"{re.escape(named)}(.*?)</tr>", report(made))
        cells = [unescape(re.sub(r"<[^>]+>", "", cell)) for cell in re.findall(r"<td[^>]*>(.*?)</td>", row)]
        factor = f"×\u00a0{figure['factor']}" if figure["factor"] else "–"
        assert cells[1:4] == [figure["epsilon"], factor, figure["limit"] or "none"]
        assert cells[-1].startswith(figure["about"])
    assert len(re.findall(r'<table class="said">', report(made))) == 1


def test_the_months_in_its_tables_are_those_of_the_parquet_files(made):
    cells = re.findall(r"<tr><th scope=\"row\" class=\"n\">(\d{4}-\d\d)</th>((?:<td>[^<]*</td>){5})</tr>", report(made))
    shown = defaultdict(list)
    for month, rest in cells:
        shown[month].append(re.findall(r"<td>([^<]*)</td>", rest))
    for name in ("daily_averages.parquet", "daily_averages_by_tariff.parquet"):
        table = pq.read_table(made.folder / "release" / name).to_pylist()
        for group in {row["group"] for row in table}:
            for month in ("2013-01", "2013-02"):
                means = [row["mean_kwh"] for row in table if row["group"] == group and f"{row['day']:%Y-%m}" == month]
                wanted = [sum(means) / len(means), min(means), max(means)]
                near = [
                    row
                    for row in shown[month]
                    if np.allclose([float(cell.replace(",", "")) for cell in row[1:4]], wanted, rtol=6e-3, atol=6e-4)
                ]
                assert near, (name, group, month)
                assert near[0][0].split(" ")[0] == str(len(means))


def test_what_is_drawn_are_the_rows_of_the_parquet_file(told, made):
    shown = cell_means([row for row in told.rows if row.series == "by_tariff"], coverage=Decimal("0.95"))
    table = pq.read_table(made.folder / "release" / "daily_averages_by_tariff.parquet").to_pylist()
    for row in table:
        (one,) = [each for each in shown[row["group"]] if each.day == row["day"]]
        assert (one.mean, one.low, one.high, one.sd, one.households) == (
            row["mean_kwh"], row["low_kwh"], row["high_kwh"], row["noise_sd_kwh"], row["households"],
        )  # fmt: skip


def test_of_very_many_groups_those_of_most_homes_are_shown_and_the_others_are_counted(told):
    row = next(row for row in told.rows if row.series == "by_tariff" and row.state == "released")
    homes = tuple(range(1, 1001))
    many = replace(row, cells=tuple(f"g{i:04d}" for i in homes), values=homes, households=homes)
    assert set(cell_means([many], coverage=Decimal("0.95"))) == {f"g{i:04d}" for i in range(961, 1001)}
    shown = "".join(series_parts("by_tariff", [many], coverage=Decimal("0.95"), titled=False))
    assert "960 more groups, of fewer households, are in the Parquet file only." in shown
    assert "g0961" in shown
    assert "g0960" not in shown


def test_a_course_is_what_a_ledger_that_ends_there_says(told):
    spent = spent_by_day(told.rows)
    every = losses_over_time(told.accountants, told.rows, told.leakage_bound, points=DAYS)
    found = {key.name: course for key, course in every.items()}
    assert found.keys() == {"day", "total", "risk", "window of 7 days"}
    assert list(found["total"].days) == sorted(spent)  # few enough to show them all
    for place, day in enumerate(found["total"].days):
        until = {each: loss for each, loss in spent.items() if each <= day}
        ordinal = {date.fromisoformat(each).toordinal(): loss for each, loss in until.items()}
        assert found["total"].values[place] == sum(until.values())
        assert found["day"].values[place] == max(until.values())
        assert found["window of 7 days"].values[place] == max(
            sum(ordinal.get(start + i, 0) for i in range(7)) for start in ordinal
        )
    figures = {one.name: one.epsilon for one in told.statement.bounds}
    for name, course in found.items():
        assert Fraction(course.values[-1], NANO) == Fraction(figures[name])


def test_a_long_course_is_thinned_and_keeps_both_ends(told):
    found = losses_over_time(told.accountants, told.rows, told.leakage_bound, points=5)
    days = sorted(spent_by_day(told.rows))
    for course in found.values():
        assert len(course.days) == 5
        assert (course.days[0], course.days[-1]) == (days[0], days[-1])


def test_a_price_is_what_brings_the_figure_to_one(told):
    spent = spent_by_day(told.rows)
    found = {key.name: times for key, times in noise_factors(told.accountants, told.rows, told.leakage_bound).items()}
    assert found["total"] == pytest.approx(sum(spent.values()) / NANO, rel=3e-3)
    assert found["day"] == pytest.approx(max(spent.values()) / NANO, rel=3e-3)
    # the risk under a curve of a single release (MATHS 2b): ln(1 + TV (e^x - 1)) = 1 at x = ln(1 + (e - 1)/TV)
    single = [row for row in told.rows if row.day == str(FIRST) and row.series == "daily_mean"]
    age = (date.fromisoformat(single[0].published_on) - FIRST).days - 1
    variation = next(tv for start, tv in ((20, 0.01), (7, 0.5), (1, 0.9)) if age >= start)
    times = {key.name: one for key, one in noise_factors(told.accountants, single, told.leakage_bound).items()}
    wanted = (single[0].loss / NANO) / math.log1p((math.e - 1) / variation)
    assert times["risk"] == pytest.approx(wanted, rel=3e-3)


def test_a_figure_that_no_loss_brings_to_one_has_no_price_and_an_infinite_one_is_left_out(told):
    single = [row for row in told.rows if row.day == str(FIRST)]
    key = next(
        bound_key(one) for one in told.accountants[0].bounds(single, told.leakage_bound, None) if one.name == "risk"
    )
    late = [replace(row, published_on="2013-12-31") for row in single]

    class Forgets:
        steps_per_day, assume, methods = 48, "curve", ("total_variation",)

        def __call__(self, age, loss, *, direction, method):
            return min(loss, 1e-9)

    assert noise_factors(told.accountants, late, Forgets())[key] is None
    assert all(each.name != "risk" for each in noise_factors(told.accountants, late, None))


def synthetic(told, days):
    row = next(row for row in told.rows if row.series == "by_tariff" and row.state == "released")
    mean = next(row for row in told.rows if row.series == "daily_mean" and row.state == "released")
    chance = np.random.default_rng(5)
    rows = []
    for i in range(days):
        day = date(2013, 1, 1) + timedelta(days=i)
        fields = {"day": str(day), "input_ended_at": f"{day + timedelta(days=1)}T00:00:00Z"}
        fields["published_on"] = str(day + timedelta(days=2))
        if i % 50 == 49:
            rows += [replace(mean, **fields, state="skipped", cells=(), values=(), households=(), loss=0, seq=2 * i)]
            continue
        for number, one in enumerate((mean, row)):
            values = tuple(int(10_000 * homes + chance.laplace() * 5000) for homes in one.households)
            rows.append(replace(one, **fields, values=values, seq=2 * i + number))
    return rows


@pytest.mark.parametrize("days", [1, 2, 45, 1096])
def test_any_length_of_series_is_a_sound_page_and_three_years_weigh_under_500_kB(told, days):
    html = public_report_page(replace(told, rows=synthetic(told, days)))
    assert faults_of(html) == []
    assert len(html.encode()) < 500_000
    if days == 1096:
        assert "days reach beyond" not in html
        assert len(html.encode()) > 50_000


def test_before_anything_is_released_there_is_a_page_that_says_so(told):
    skipped = [row for row in synthetic(told, 50) if row.state == "skipped"]
    figures = told.statement.content()["figures"]
    claim = with_keys(
        told.statement,
        figures=[
            *({**one, "epsilon": "0"} for one in figures[:2]),
            *({**one, "epsilon": "infinite"} for one in figures[2:3]),
        ],
        days={"first": "", "last": "", "released": 0, "skipped": [row.day for row in skipped]},
        published={"first": "", "last": ""},
    )
    html = public_report_page(
        replace(told, statement=claim, rows=skipped, leakage_bound=None, accountants=told.accountants[1:])
    )
    assert faults_of(html) == []
    assert "Nothing is released" in html


def test_a_figure_that_is_infinite_for_want_of_a_model_is_told_as_such(told):
    stated = told.statement.content()["figures"]
    risk = next(one for one in stated if one["name"] == "risk")
    figures = [*stated[:2], {**risk, "epsilon": "infinite", "assumption": "there is no model"}]
    html = public_report_page(replace(told, statement=with_keys(told.statement, figures=figures), leakage_bound=None))
    assert faults_of(html) == []
    assert "C risk (if the model holds)" in Page(html).text
    assert Page(html).text.count("infinite") >= 5


def test_days_with_far_more_noise_reach_beyond_a_chart_that_says_so(told):
    rows = synthetic(told, 120)
    wild = [
        replace(row, values=tuple(100 * value for value in row.values)) if row.day == "2013-01-05" else row
        for row in rows
    ]
    text = public_report_page(replace(told, rows=wild))
    assert "reach beyond the chart" in text
    assert faults_of(text) == []


def test_a_discounted_promise_shows_what_its_schedules_cost(houses, tmp_path):
    promise = (
        'notion = "discounted"\ndiscount = "exponential"\nrate = 0.9\nepsilon = 1.0\nschedule = "constant"\n'
        'clock = "data-day"\nmax_day_epsilon = 1.0\nepsilon_total = "unlimited"\n'
    )
    html = report(build(houses(tmp_path), promise=promise, rest="", days=20, title="discounted"))
    assert faults_of(html) == []
    rows = dict(re.findall(r'<tr><th scope="row"[^>]*>([a-z]+)(?: \(as promised\))?</th><td>([^<]*)</td>', html))
    # constant: every day 1 - 0.9 = 0.1, so the noise has a scale of 50/0.1 kWh over six homes
    assert float(rows["constant"]) == pytest.approx(math.sqrt(2) * 50 / 0.1 / 6, rel=6e-3)
    assert {"constant", "renewal", "paper", "classical"} <= rows.keys()
