"""One hostile label of a roster through everything that shows labels: pages, downloads, terminal, artifacts, plots."""

from __future__ import annotations

import csv
import io
import json
import re
from datetime import date, timedelta
from html import unescape
from urllib.parse import unquote

import pytest

from agedp import plots
from agedp.pipeline import RunSummary
from agedp.smoothed_estimates.smoothed_page import smoothed_page
from agedp.smoothed_estimates.smoothed_release import SmoothedRelease, smooth
from agedp_data.statement.document import read_statement
from agedp_data.statement.markdown import markdown
from agedp_flows.artifacts import released_table
from agedp_flows.text.run_text import result_lines
from agedp_flows.text.screen import shown
from agedp_flows.text.smoothing_text import smoothing_lines
from tests.agedp.conftest import House
from tests.agedp.reports.html import Page, faults_of

FIRST, DAYS = date(2013, 1, 20), 12
HOSTILE = "=1+1\u202egnp\x1b[2J\nNext: agedp forget <b>\u2066\x85"
SHOWN = r"=1+1\u202egnp\x1b[2J\nNext: agedp forget <b>\u2066\x85"
DECEIVING = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Control characters but the end of a line, and the characters of Unicode's bidirectional algorithm (UAX 9)."""


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> tuple[House, RunSummary, SmoothedRelease]:
    house = House(tmp_path_factory.mktemp("labels"))
    days = [FIRST + timedelta(days=i) for i in range(DAYS)]
    house.fill(days, households="ABCDEF", wh=200)
    with (house.folder / "roster.csv").open("w", encoding="utf-8", newline="") as roster:
        rows = [[home, FIRST, "", "Std" if home in "AB" else HOSTILE] for home in "ABCDEF"]
        csv.writer(roster).writerows([["household_id", "from", "to", "tariff"], *rows])
    house.write(
        days[0], days[-1], rest='[series.by_tariff]\nstatistic = "mean"\nshare = 0.5\nclamp_kwh = 40\nby = "tariff"\n'
    )
    house.edit(("clamp_kwh = 50\n", "clamp_kwh = 50\nshare = 0.5\n"))
    summary = house.run(today=date(2013, 6, 1))
    return house, summary, smooth(house.folder / "release", region="none")


def test_no_page_contains_the_characters_of_a_hostile_label(labelled) -> None:
    house, _, estimates = labelled
    row = {"series": HOSTILE, "group": HOSTILE}
    of_stranger = [{**of, **row} for of in estimates.arrow.to_pylist()]
    pages = {
        "report": (house.folder / "release" / "report.html").read_text("utf-8"),
        "confidential": (house.folder / "confidential" / "report.html").read_text("utf-8"),
        "smoothed": estimates.files()["smoothed.html"].decode(),
        "stranger": smoothed_page(of_stranger, estimates.source, estimates.amplitudes, title=HOSTILE).decode(),
    }
    for name, page in pages.items():
        assert DECEIVING.findall(page) == [], name
        assert [fault for fault in faults_of(page) if name != "stranger" or "of one title" not in fault] == [], name
        assert "=1+1" not in page or r"=1+1\u202egnp\x1b[2J" in Page(page).text, name
    assert all(r"=1+1\u202egnp" in pages[name] for name in ("report", "smoothed", "stranger"))
    content = estimates.statement.content() | {"protects": f"households of {HOSTILE}"}
    statement = markdown(read_statement(json.dumps(content)))
    assert DECEIVING.findall(statement) == []
    assert SHOWN.partition("\\n")[0] in statement


def test_no_line_of_a_terminal_contains_them(labelled) -> None:
    _, summary, estimates = labelled
    lines = [*result_lines(summary, verbose=True), *smoothing_lines(estimates, summary.run.release_folder)]
    for width in (None, 60):
        printed = [shown(line, width=width, coloured=False) for line in lines]
        assert [line for line in printed if DECEIVING.search(line)] == []
        assert [line for text in printed for line in text.splitlines() if line.startswith("Next: agedp forget")] == []
    assert any(SHOWN in line for line in lines)


def test_no_artifact_and_no_legend_contains_them(labelled) -> None:
    _, summary, estimates = labelled
    table = released_table(summary.run, summary.drawn)
    assert {line["group"] for line in table} == {"all", "Std", SHOWN}
    axes = plots.estimates(estimates.table)
    assert f"by_tariff, {SHOWN}" in [line.get_label() for line in axes.lines]


def test_a_spreadsheet_computes_no_label(labelled) -> None:
    house, _, _ = labelled
    page = (house.folder / "release" / "report.html").read_text("utf-8")
    tables = re.findall(r'href="data:text/csv;charset=utf-8,([^"]*)"', page)
    rows = [row for table in tables for row in csv.DictReader(io.StringIO(unquote(unescape(table)), newline=""))]
    groups = {row["group"] for row in rows}
    assert groups == {"all", "Std", f"'{HOSTILE}"}
    assert all(float(row["mean_kwh"]) == float(row["mean_kwh"].lstrip("'")) for row in rows)
