"""After publication nothing fails a run: what is not written is a warning, and the next run writes it."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, time, timedelta

import pyarrow.parquet as pq
import pytest

from agedp.pipeline import run_stages, sanitise
from agedp_data.errors import InputError
from agedp_flows.artifacts import report_text, warning_text
from agedp_flows.cli.app import main
from agedp_flows.text.run_text import result_json

FIRST = date(2013, 1, 1)
PROMISE = 'notion = "classical"\nage_days = 1\nepsilon_per_day = 0.5\nmax_day_epsilon = 0.5\nepsilon_total = 9\n'
STEPS = ("append_alerts", "write_findings", "remove_old_months", "write_confidential_report")
PLACES = ("agedp.internal_records.cell_tables.CellTable.add", *(f"agedp.stages.report.{step}" for step in STEPS))


@pytest.fixture
def homes(house):
    """Three households, of which two have readings on the second of three days; [alerts] asks for all."""
    house.roster([(home, FIRST, None) for home in "ABC"])
    house.london(
        {
            (home, FIRST + timedelta(days=number), slot): 200
            for number in range(3)
            for home in "ABC"[: 2 if number == 1 else 3]
            for slot in range(48)
        }
    )
    house.write(FIRST, FIRST + timedelta(days=9), mode="live", promise=PROMISE, rest="[alerts]\nmin_coverage = 0.9\n")
    house.run(today=FIRST + timedelta(days=2))
    return house


def run(house, days):
    summary = run_stages(house.context(today=FIRST + timedelta(days=days)))
    summary.check_not_refused()
    return summary


def records(house):
    """What the confidential folder says of released days, and the days that the operator was alerted to."""
    folder = house.folder / "confidential"
    alerts = [json.loads(line) for line in (folder / "alerts.jsonl").read_text().splitlines()]
    means, coverage = (
        pq.read_table(folder / f"{name}.parquet")["day"].to_pylist() for name in ("true_means", "coverage")
    )
    report = (folder / "report.html").read_text()
    return means, coverage, [(alert["day"], alert["part"], alert["whole"]) for alert in alerts], report


def full(*_: object, **__: object) -> None:
    raise InputError("[output] cannot be written (No space left on device)", private="/secret: no space")


def failing(*_: object, **__: object) -> None:
    raise KeyError("home A")


def denied(*_: object, **__: object) -> None:
    raise PermissionError(13, "Permission denied", "/secret")


@pytest.mark.parametrize(
    ("place", "error"), [*((place, full) for place in PLACES), (PLACES[0], failing), (PLACES[-1], denied)]
)
def test_a_failing_report_is_a_warning_and_made_up_for(homes, monkeypatch, place, error):
    monkeypatch.setattr(place, error)
    work = run(homes, 3)
    monkeypatch.undo()
    facts = result_json(work)
    assert [row.day for row in work.released] == ["2013-01-02"]
    assert "2013-01-02" in (homes.folder / "release" / "ledger_rows.jsonl").read_text()
    assert facts["reports"].startswith("published; internal report failed: ")
    public = f"{facts} {report_text(work.report)} {warning_text((*work.notices, *work.failures))}"
    assert "secret" not in public
    assert "home A" not in public
    before = homes.files()

    again = run(homes, 3)
    assert (again.released, result_json(again)["reports"], homes.files()) == ((), "written", before)
    means, coverage, alerts, report = records(homes)
    assert means == coverage == [FIRST, FIRST + timedelta(days=1)]
    assert alerts == [("2013-01-02", 2, 3)]
    assert "true means of 2 are recorded" in report
    run(homes, 3)
    assert records(homes)[:3] == (means, coverage, alerts)


def test_the_command_prints_the_release_and_warns(homes, monkeypatch, capsys):
    monkeypatch.setattr("agedp.stages.report.write_confidential_report", full)
    monkeypatch.setattr("agedp_data.clock.now", lambda: datetime.combine(FIRST + timedelta(days=3), time(), UTC))
    monkeypatch.setattr("sys.argv", ["agedp", "run", str(homes.run_file), "--json"])
    with pytest.raises(SystemExit) as ended:
        main()
    out, err = capsys.readouterr()
    assert ended.value.code in (None, 0)
    facts = json.loads(out)
    assert [each["day"] for each in facts["released"]] == ["2013-01-02"]
    assert facts["reports"] == "published; internal report failed: [output] cannot be written (No space left on device)"
    assert err.count("\n") == 1
    assert "warning: the release folder is published, but the internal report failed: /secret: no space" in err


def test_readings_stay_until_they_are_recorded(homes, monkeypatch):
    """Case: keep_days lets readings go at once, and the record of their true means could not be written."""
    with homes.run_file.open("a") as file:
        file.write("[engine]\nkeep_days = 1\n")
    monkeypatch.setattr("agedp.internal_records.cell_tables.CellTable.add", full)
    monkeypatch.setattr("agedp.stages.report.remove_old_months", failing)
    assert len(run(homes, 3).failures) == 1  # retention is not reached


def test_as_a_library_a_failing_report_is_a_log_record(homes, monkeypatch, caplog):
    monkeypatch.setattr("agedp.stages.report.write_confidential_report", full)
    monkeypatch.setattr("agedp_data.clock.now", lambda: datetime.combine(FIRST + timedelta(days=3), time(), UTC))
    assert len(sanitise(homes.run_file).table()) == 2
    assert "published; internal report failed: [output] cannot be written" in caplog.text
    assert "secret" not in caplog.text
