"""(epsilon, delta) bounds over spans of days: of ledgers that existed before, of forged folders, of any window."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from importlib.metadata import version

import pytest

from agedp import statement_facts
from agedp.release_folder.span_bounds import publication_of, span_bounds
from agedp.release_verification import open_release
from agedp.reports.loss_charts import losses_over_time
from agedp.stages.publish import publish_release
from agedp_data import mechanisms
from agedp_data.errors import InputError
from agedp_data.ledger import ContractRecord, ReleaseRecord
from agedp_data.notions.publication import Event
from agedp_data.notions.spans import SpanLoss
from tests.agedp.release_folder import span_oracle
from tests.agedp.release_folder.forger import forge
from tests.agedp.reports.html import faults_of
from tests.command import agedp
from tests.compatibility.fixtures import unpack

FIRST, DAYS = date(2013, 1, 1), 20
PROMISE = 'notion = "classical"\nepsilon_per_day = 0.5\nmax_day_epsilon = 0.5\nepsilon_total = 30\n'


@pytest.fixture(scope="module")
def homes(houses, tmp_path_factory):
    """Twenty days; `before` is the folder that a version without these bounds left."""
    house = houses(tmp_path_factory.mktemp("house"))
    house.fill([FIRST + timedelta(days=i) for i in range(DAYS)])
    house.write(FIRST, FIRST + timedelta(days=DAYS - 1), promise=PROMISE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(statement_facts, "span_figures", lambda *_: [])
        patch.setattr(statement_facts, "version", lambda name: "0.1.1" if name == "agedp" else version(name))
        house.run(today=date(2013, 3, 1))
        shutil.copytree(house.folder / "release", house.folder / "before")
        patch.undo()
        patch.setattr(mechanisms, "discrete_laplace", None)
        publish_release(house.session(today=date(2013, 3, 2)))
    return house


def rows_in(folder):
    lines = [json.loads(line) for line in (folder / "ledger_rows.jsonl").read_text().splitlines()[1:]]
    rows = [json.loads(line["text"]) for line in lines if line["table"] == "release"]
    return [row for row in rows if row["state"] == "released"]


def test_the_next_publication_of_a_running_series_has_them_without_a_draw(homes):
    open_release(homes.folder / "before").verify()
    homes.release.verify()
    before, after = open_release(homes.folder / "before").read_statement(), homes.release.read_statement()
    assert [bound for bound in after.bounds if not bound.delta] == before.bounds
    new = {bound.name: bound for bound in after.bounds if bound.delta}
    expected = span_oracle.totals(rows_in(homes.release.path))
    assert {name: float(bound.epsilon) * 1e9 for name, bound in new.items()} == pytest.approx(expected, abs=3)
    assert {(bound.kind, bound.factor, bound.limit) for bound in new.values()} == {("assumption-free", "", "")}
    assert after.ending == before.ending
    without_delta = " The amounts of this account are sums of losses and have no delta."
    assert after.household_account.text == before.household_account.text + without_delta
    text = (homes.release.path / "STATEMENT.md").read_text()
    assert "| all its days, with delta 1e-6 (see the annex) | 9.75 |" in text
    assert "every set of results would be at most e^9.75 times as probable, plus one in 1,000,000." in text
    report = (homes.release.path / "report.html").read_text()
    assert faults_of(report) == []
    assert "B, total: 10; C, total (delta 10⁻⁶): 9.75" in report


@pytest.mark.parametrize(
    ("edit", "named"),
    [
        ("epsilon", "the bound 'total (delta 1e-6)': 9 differs from "),
        ("scope", "figures.2.about: "),
        ("left out", "lacks the bound 'total (delta 1e-9)'"),
        ("invented", "figures: "),
        ("ending", "ending.delta: "),
    ],
)
def test_a_forged_bound_with_a_delta_differs_from_the_rows(homes, tmp_path, edit, named):
    def change(content):
        [stated, smaller_delta] = [figure for figure in content["figures"] if "delta" in figure]
        match edit:
            case "epsilon":
                stated["epsilon"] = "9"
            case "scope":
                stated["about"] = stated["about"].replace("1e-6", "1e-7")
            case "left out":
                content["figures"].remove(smaller_delta)
            case "invented":
                content["figures"].append(stated | {"name": "total (delta 1e-6) of everything"})
            case "ending":
                content["ending"]["delta"] = "0.000001"

    folder = shutil.copytree(homes.release.path, tmp_path / "forged")
    forge(folder, change)
    with pytest.raises(InputError, match=re.escape(named)):
        open_release(folder).verify()


def test_the_command_prints_them_for_folders_of_every_version(homes, tmp_path):
    old = unpack("classical-rehearsal", tmp_path / "old").release
    for folder in (homes.folder / "before", old):
        answer = json.loads(agedp("verify", folder, "--span", "7", "--delta", "0.01", "--json").out)
        window, in_all = answer["spans"]
        rows, counts = rows_in(folder), ["counts"]  # the name of the distribution of the older folder
        days = sorted({row["day"] for row in rows})
        weeks = [[row for row in rows if 0 <= (day(row["day"]) - day(first)).days < 7] for first in days]
        for stated, spans, name in ((window, weeks, "window of 7 days"), (in_all, [rows], "total")):
            assert (stated["name"], stated["delta"]) == (f"{name} (delta 1e-2)", "0.01")
            pure = [sum(row["loss"] for row in span) / 1e9 for span in spans]
            losses = [span_oracle.of_rows(span, counts) for span in spans]
            values = [span_oracle.epsilon(loss, 0.01, total) for loss, total in zip(losses, pure, strict=True)]
            assert float(stated["epsilon"]) == pytest.approx(max(values), abs=3e-9)
            assert float(stated["sum_of_losses"]) == pytest.approx(max(pure), abs=1e-12)
    printed = agedp("verify", homes.folder / "before", "--span", "total", "--delta", "1e-6").out.splitlines()
    assert printed[3].startswith("total (delta 1e-6): epsilon 9.75;")
    assert printed[3].endswith("; sum of the losses: 10")
    assert len(printed) == 6  # the check in three lines, both sums, what to read
    days = len({row["day"] for row in rows_in(homes.folder / "before")})
    printed = agedp("verify", homes.folder / "before", "--span", "365", "--delta", "1e-6").out.splitlines()
    assert printed[5] == f"the folder has {days} days"


def day(text):
    return date.fromisoformat(text)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--span", "365"], "--span and --delta belong together; give both, such as --span 365 --delta 1e-6"),
        (["--span", "year", "--delta", "1e-6"], "--span year: name a number of days, such as 365, or total"),
        (["--span", "0", "--delta", "1e-6"], "days = 0: name a whole number of days from 1 to 100000"),
        (["--span", "7", "--delta", "1"], "delta = 1: name a probability above 0 and below 1, such as 1e-6"),
        (["--span", "7", "--delta", "much"], "delta = much: name a probability above 0 and below 1, such as 1e-6"),
    ],
)
def test_a_wrong_span_is_one_line(homes, words, message):
    assert agedp("verify", homes.folder / "before", *words) == (2, "", f"agedp: {message}\n")


SERIES = {
    "use": {"statistic": "mean", "clamp_kwh": "5", "share": "0.5", "max_missing": 2, "missing_kwh": "0"},
    "counts": {
        "statistic": "distribution", "form": "histogram", "clamp_kwh": "5", "share": "0.5", "max_missing": 2,
        "missing_kwh": "0", "bins_kwh": ["0", "1", "5"],
    },
}  # fmt: skip
CONTRACT = ContractRecord("homes", json.dumps({"series": SERIES}), hash="c")
COMMON = {
    "population": "homes", "revision": 0, "state": "released", "cells": ("all",), "values": (0,), "households": (30,),
    "mechanism": "discrete-laplace", "input_ended_at": "", "published_on": "2015-01-01", "contract": "c", "model": "",
}  # fmt: skip
ROWS = [
    {"day": str(FIRST + timedelta(days=i)), "series": name, "sensitivity": sensitivity, "scale": scale}
    | {"loss": mechanisms.recorded_loss(sensitivity=sensitivity, scale=scale)}
    for i in [*range(150), *range(200, 520)]  # a gap
    for name, sensitivity, base in (("use", 5_000, 40_000.0), ("counts", 2, 16.0))
    for scale in [base / (1 + (100 < i < 130))]  # a month with twice the loss
]
RECORDS = [ReleaseRecord(**COMMON, **row) for row in ROWS]


def test_the_worst_year_of_any_rows_is_found_among_all_windows():
    window, total = span_bounds([CONTRACT, *RECORDS], 365, "1e-9")
    assert (window.days, total.days, window.delta) == (365, None, Decimal("1e-9"))
    numbers = [day(row["day"]).toordinal() for row in ROWS]
    spans = [
        [row for row, number in zip(ROWS, numbers, strict=True) if first <= number < first + 365]
        for first in sorted(set(numbers))[::5]  # the month lies in the first of them and the last
    ]
    for bound, candidates in ((window, spans), (total, [ROWS])):
        pure = [sum(row["loss"] for row in span) / 1e9 for span in candidates]
        losses = [span_oracle.of_rows(span, ["counts"]) for span in candidates]
        values = [span_oracle.epsilon(loss, 1e-9, spent) for loss, spent in zip(losses, pure, strict=True)]
        assert float(bound.epsilon) == pytest.approx(max(values), abs=1e-8)
        assert float(bound.sum_of_losses) == pytest.approx(max(pure), abs=1e-9)
        assert bound.epsilon < bound.sum_of_losses * Decimal("0.7")
    with pytest.raises(InputError, match="days = True"):
        span_bounds([CONTRACT], True, "1e-6")


def test_a_span_in_the_report_is_that_of_a_ledger_that_ends_there():
    draws = (Event("2012-06-01", "2013-01-20", 2 * 10**9), Event("2013-12-01", "2013-12-31", 10**9))
    publication = replace(publication_of([CONTRACT]), charges=draws)
    for days in (None, 90):
        loss = SpanLoss(publication, Decimal("1e-6"), days)
        [over_time] = losses_over_time([loss], RECORDS, None, points=7).values()
        ends = [[row for row in RECORDS if row.day <= day] for day in over_time.days]
        first = next(i for i, day in enumerate(over_time.days) if day >= draws[1].first_day)
        assert [loss.epsilon(rows) for rows in ends][first:] == [*over_time.values][first:]
        assert over_time.days[-1] == RECORDS[-1].day
