"""The report contains the bounds of the statement, the tables' months, each bound over time and its price."""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from dataclasses import replace
from datetime import date, timedelta
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from html import unescape

import pyarrow.parquet as pq
import pytest

from agedp.reports.loss_charts import losses_over_time
from agedp.reports.public_report import ReportData, privacy_text, public_report_page, verdict_text
from agedp.reports.report_data import ReleasedRows
from agedp_data.epsilon import NANO
from agedp_data.notions.publication import Publication
from agedp_data.notions.w_event import WindowLoss
from agedp_data.statement.document import read_statement
from agedp_data.statement.span_errors import SeriesNoise
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
def data(made):
    with made.ledger() as ledger:
        rows, contracts = ledger.rows("homes"), ledger.contracts("homes")
        statement = read_statement(ledger.statements("homes")[-1].claim)
    accountants, bound = losses(made)
    curves = losses_over_time(accountants, rows, bound)
    return ReportData(statement, ReleasedRows(rows, rows), contracts, Decimal("0.95"), Publication(), {}, curves)


def losses(house):
    """Return the accountants of a statement, and the model."""
    with house.ledger() as ledger:
        promise = ledger.contracts("homes")[-1].terms.enforced()
    return [promise, WindowLoss(7)], house.context().model.leakage_bound


def with_keys(statement, **keys):
    return read_statement(json.dumps(statement.content() | keys))


def up(number: str) -> str:
    """Three significant digits, rounded up."""
    return f"{Context(prec=3, rounding=ROUND_CEILING).plus(Decimal(number)).normalize():f}"


def report(house) -> str:
    return (house.folder / "release" / "report.html").read_text()


def losses_by_day(rows):
    losses = defaultdict(int)
    for row in rows:
        if row.state == "released":
            losses[date.fromisoformat(row.day)] += row.loss
    return losses


def test_a_page_is_sound_and_opens_with_the_verdict(made):
    assert faults_of(report(made)) == []
    text = Page(report(made)).text
    assert text.count('A <b>"title"</b> & more') == 3  # in the tab, as the heading, and in the citation
    order = ["daily_mean: ", "An even chance about one day", "Values", "Further series", "The guarantee", "Files"]
    places = [text.index(words) for words in order]
    assert places == sorted(places)


def test_the_verdict_is_that_of_the_noise_and_of_the_losses(made):
    """Half-widths follow from the published deviations: ln 10 / sqrt 2 of them cover 90 % of Laplace noise."""
    table = pq.read_table(made.folder / "release" / "daily_averages.parquet").to_pylist()
    day_kwh = table[-1]["noise_sd_kwh"] * math.log(10) / math.sqrt(2)
    text = Page(report(made)).text
    [shown] = re.findall(r"daily_mean, day (\S+) kWh (\S+) % no", text.replace("\u00a0", " "))
    assert float(shown[0]) == pytest.approx(day_kwh, rel=6e-3)
    assert float(shown[1]) == pytest.approx(100 * day_kwh / 11.012, rel=2e-2)  # of the yardstick's mean
    epsilon = float(made.release.statement["figures"][0]["epsilon"])
    assert f"becomes 50 to {math.ceil(100 / (1 + math.exp(-epsilon)))} %" in text


@pytest.mark.parametrize(
    "fault",
    [
        ("</main>", ""),
        ("<header>", '<header><img src="http://x/y.png">'),
        ("<h2>", "<h4>"),
        (' class="jump"', ' class="jump" id="content"'),
        ('id="guarantee"', 'id="other"'),
        ('scope="col"', 'scope="other"'),
        ('<div class="wide" tabindex="0"', '<div class="wide"'),
        (' tabindex="0" role="img"', ' role="img"'),
        ('role="img" aria-label="', 'role="img" aria-label="" data-was="'),
        ("<footer>", '<p style="background:url(http://x)"><footer>'),
        ("<td>", "<p><table>"),
    ],
)
def test_a_page_with_a_fault_is_not_sound(made, fault):
    assert faults_of(report(made).replace(*fault, 1)) != []


def test_each_bound_is_one_row_with_all_that_the_statement_contains(made):
    for place, bound in enumerate(made.release.statement["figures"]):
        name = bound["name"].replace("1e-6", "10⁻⁶").replace("1e-9", "10⁻⁹")
        start = f'<tr><th scope="row"><b class="letter">{chr(65 + place)}</b> {name}</th>'
        [row] = re.findall(rf"{re.escape(start)}(.*?)</tr>", report(made))
        cells = [unescape(re.sub(r"<[^>]+>", "", cell)) for cell in re.findall(r"<td[^>]*>(.*?)</td>", row)]
        assert cells[0].strip() == up(bound["epsilon"])
        assert cells[2] == (bound["limit"] if bound["limit"] in ("", "unlimited") else up(bound["limit"]))
        if not bound["factor"]:
            assert cells[1] == "–"
        elif (factor := math.exp(float(bound["epsilon"]))) < 1e6:
            assert float(cells[1].removeprefix("×\u00a0").replace(",", "")) == pytest.approx(factor, rel=1e-2)
        else:
            number, unit = cells[1].removeprefix("×\u00a0").split(" ")
            assert (float(number), unit) == (pytest.approx(factor / 1e6, rel=1e-2), "million")
        assert cells[-1].startswith(bound["about"].replace("1e-6", "10⁻⁶").replace("1e-9", "10⁻⁹"))


def test_a_loss_over_time_is_that_of_a_ledger_that_ends_there(made, data):
    spent, (accountants, bound) = losses_by_day(data.released.charted), losses(made)
    every = losses_over_time(accountants, data.released.charted, bound, points=DAYS)
    found = {key.name: line for key, line in every.items()}
    assert found.keys() == {"day", "total", "risk", "window of 7 days"}
    assert list(found["total"].days) == sorted(map(str, spent))  # few enough to show them all
    for place, last in enumerate(sorted(spent)):
        until = {day: loss for day, loss in spent.items() if day <= last}
        windows = [sum(until.get(start + timedelta(days=i), 0) for i in range(7)) for start in until]
        expected = {"total": sum(until.values()), "day": max(until.values()), "window of 7 days": max(windows)}
        assert {name: found[name].values[place] for name in expected} == expected
    stated = {bound.name: bound.epsilon for bound in data.statement.bounds}
    assert all(Fraction(line.values[-1], NANO) == Fraction(stated[name]) for name, line in found.items())
    for line in losses_over_time(accountants, data.released.charted, bound, points=5).values():
        assert (len(line.days), line.days[0], line.days[-1]) == (5, str(min(spent)), str(max(spent)))


@pytest.mark.parametrize("is_released", [False, True])
def test_a_page_without_a_release_or_without_a_model_says_so(made, data, is_released):
    stated = {bound["name"]: bound for bound in data.statement.content()["figures"]}
    risk = {**stated["risk"], "epsilon": "infinite", "assumption": "there is no model"}
    keys = {"figures": [stated["day"], stated["total"], risk]}
    changed = replace(data, curves=losses_over_time(losses(made)[0], data.released.charted, None))
    if not is_released:
        empty = {"state": "skipped", "cells": (), "values": (), "households": (), "loss": 0}
        skipped = [replace(data.released.charted[-1], **empty)]
        keys |= {"days": {"first": "", "last": "", "released": 0, "skipped": [row.day for row in skipped]}}
        keys |= {"published": {"first": "", "last": ""}}
        changed = replace(changed, released=ReleasedRows(skipped, skipped), curves={})
    html = public_report_page(replace(changed, statement=with_keys(data.statement, **keys)))
    assert faults_of(html) == []
    text = Page(html).text
    assert "infinite" in text
    assert ("contains no value yet" in text) == (not is_released)


def test_the_opening_names_what_each_bound_is_about(data):
    """A window's bound with a delta is about the window; of a day the larger bound counts, of a draw as well."""
    day, total = (of for of in data.statement.content()["figures"] if of["name"] in ("day", "total"))
    window = {
        **day,
        "name": "window of 7 days (delta 1e-6)",
        "epsilon": "5",
        "about": "any 7 consecutive days of one household",
        "delta": "0.000001",
        "limit": "5",
        "factor": "",
    }
    drawn = {**day, "name": "calibration day", "epsilon": "2", "limit": ""}
    text = privacy_text(with_keys(data.statement, figures=[day, total, window, drawn]))
    assert text.startswith(
        "An even chance about one day of one household becomes 50 to 89 %; about all "
    )  # 1/(1 + e^-2)
    assert text.endswith("; any 7 consecutive days of one household: epsilon 5 with delta 10⁻⁶.")
    seven = with_keys(data.statement, figures=[{**day, "epsilon": "7"}, {**total, "epsilon": "7"}])
    assert "no meaningful bound" not in privacy_text(seven)


def test_single_days_that_only_smoothing_makes_of_use_are_called_so():
    """Of noise of 2.4 kWh smoothing leaves 0.879 kWh in 91 days: 1.645 times that; a month has the root of 30 less."""
    spans = {"day": 1, "week": 7, "month": 30}
    noise = SeriesNoise("use", (2.4 / math.sqrt(2),), spans, 1, 11.012, "kWh", smoothed_days=91)
    days = "single days only smoothed (±1.45\u00a0kWh)"
    assert re.fullmatch(rf"months ±0\.72\d?\u00a0kWh; {re.escape(days)}", verdict_text(noise))
    assert "; not single days (±3.91" in verdict_text(replace(noise, smoothed_days=90))
