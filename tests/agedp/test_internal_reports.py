"""After publication nothing fails a run: what is not written is a warning, and the next run writes it."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, time, timedelta

import pytest

from agedp.pipeline import run_stages, sanitise
from agedp_data.errors import InputError
from agedp_flows.artifacts import report_text, warning_text
from tests.command import agedp

FIRST = date(2013, 1, 1)
PROMISE = 'notion = "classical"\nage_days = 1\nepsilon_per_day = 0.5\nmax_day_epsilon = 0.5\nepsilon_total = 9\n'
RECORD = "agedp.internal_records.bookkeeping.CellTable.contents"
REPORT = "agedp.reports.confidential_report.write_confidential_report"


@pytest.fixture
def homes(house):
    """Three households, of which two have readings on the second of three days; [alerts] asks for all."""
    house.roster([(home, FIRST, None) for home in "ABC"])
    days = [FIRST + timedelta(days=number) for number in range(3)]
    house.london(
        {(home, day, slot): 200 for day in days for home in ("AB" if day == days[1] else "ABC") for slot in range(48)}
    )
    house.write(FIRST, FIRST + timedelta(days=9), mode="live", promise=PROMISE, rest="[alerts]\nmin_coverage = 0.9\n")
    house.run(today=FIRST + timedelta(days=2))
    return house


def run(house):
    summary = run_stages(house.context(today=FIRST + timedelta(days=3)))
    summary.check_not_refused()
    return summary


def records(house):
    """The days of the confidential tables, and the days that the operator was alerted to."""
    alerts = (house.folder / "confidential" / "alerts.jsonl").read_text().splitlines()
    found = [(alert["day"], alert["part"], alert["whole"]) for alert in map(json.loads, alerts)]
    return *([line["day"] for line in house.records(name)] for name in ("true_means", "coverage")), found


def full(*_: object, **__: object) -> None:
    raise InputError("[output] cannot be written (No space left on device)", private="/secret: no space")


def failing(*_: object, **__: object) -> None:
    raise KeyError("home A")


def denied(*_: object, **__: object) -> None:
    raise PermissionError(13, "Permission denied", "/secret")


@pytest.mark.parametrize(
    ("place", "error"),
    [
        (RECORD, failing),
        ("agedp.stages.report.append_alerts", full),
        ("agedp.stages.report.write_findings", full),
        ("agedp.stages.report.remove_old_months", full),
        (REPORT, denied),
    ],
)
def test_a_failing_report_is_a_warning_and_made_up_for(homes, monkeypatch, place, error):
    with monkeypatch.context() as patch:
        patch.setattr(place, error)
        work = run(homes)
    facts = work.facts
    assert [row.day for row in work.released] == ["2013-01-02"]
    assert facts["reports"].startswith("published; internal report failed: ")
    public = f"{facts} {report_text(work.report)} {warning_text((*work.notices, *work.failures))}"
    assert not any(text in public for text in ("secret", "home A"))
    before = homes.files()
    again = run(homes)
    assert (again.released, again.facts["reports"], homes.files()) == ((), "written", before)
    days = [FIRST, FIRST + timedelta(days=1)]
    assert records(homes) == (days, days, [("2013-01-02", 2, 3)])
    assert "true values of 2 are recorded" in (homes.folder / "confidential" / "report.html").read_text()


def test_the_command_prints_the_release_and_warns_and_a_library_logs(homes, monkeypatch, caplog):
    monkeypatch.setattr(REPORT, full)
    monkeypatch.setattr("agedp_data.clock.now", lambda: datetime.combine(FIRST + timedelta(days=3), time(), UTC))
    status, out, err = agedp("run", homes.run_file, "--json")
    assert (status, err.count("\n")) == (0, 1)
    facts = json.loads(out)
    assert [each["day"] for each in facts["released"]] == ["2013-01-02"]
    assert facts["reports"] == "published; internal report failed: [output] cannot be written (No space left on device)"
    assert "warning: the release folder is published, but the internal report failed: /secret: no space" in err
    assert len(sanitise(homes.run_file).table()) == 2
    assert "published; internal report failed: [output] cannot be written" in caplog.text
    assert "secret" not in caplog.text


def test_readings_stay_until_they_are_recorded(homes, monkeypatch):
    """Case: keep_days lets readings go at once, and the record of their true means could not be written."""
    with homes.run_file.open("a") as file:
        file.write("[engine]\nkeep_days = 1\n")
    monkeypatch.setattr(RECORD, full)
    monkeypatch.setattr("agedp.stages.report.remove_old_months", failing)
    assert len(run(homes).failures) == 1  # retention is not reached
