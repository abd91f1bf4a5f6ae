"""The stage after publication: confidential records, alerts, retention and the internal report.

Nothing that is published depends on it, so nothing in it fails a run: a failed step is a warning
(`ReportOutcome.failures`), and the next run repeats it, even if no day is due then. The steps, in their order:

1. records: true means and coverage of the days that this run summed. A later run sums days without them again.
2. input: findings and alerts of the drawn days. A later run repeats them until `preflight.json` covers all of them.
3. retention: old readings are removed from the store. Skipped if a step before it failed, which would need them.
4. report: the internal report, rewritten if anything has changed from which it is made.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path
from typing import TypeVar

from agedp.internal_records.cell_tables import COUNTED_STATES, COVERAGE, TRUE_COUNTS, TRUE_MEANS
from agedp.ledger_session import LedgerSession
from agedp.local_files import atomic_files
from agedp.local_files.internal_files import FileNotice
from agedp.preflight.alerts import Alert, append_alerts, find_alerts, write_findings
from agedp.stage_values import DailySums, Delivery
from agedp.stages.input_check import CheckedSums
from agedp.stages.unchanged_report import is_report_current, note_report
from agedp.store.retention import remove_old_months
from agedp_data import clock
from agedp_data.errors import AgedpError

T = TypeVar("T")

TRACEBACK = "traceback.txt"

_LATER = "the next run writes what is missing and draws no day twice"


@dataclass(frozen=True, slots=True)
class ReportOutcome:
    """Alerts about the input, notices about damaged files, and a notice for each step that failed (confidential)."""

    alerts: tuple[Alert, ...] = ()
    notices: tuple[FileNotice, ...] = ()
    failures: tuple[FileNotice, ...] = ()


def write_reports(session: LedgerSession, checked: CheckedSums) -> ReportOutcome | None:
    """Stage 6: write the confidential records and reports of a run; None before the ledger exists."""
    session, folder = session.opened(), session.run.paths.folder
    if session.ledger is None:
        return None
    _, unrecorded = _attempt(folder, partial(_add_records, session, checked.sums), None)
    alerts, unexamined = _attempt(folder, partial(_find_alerts, session, checked), tuple[Alert, ...]())
    failures = (*unrecorded, *unexamined)
    if not unexamined:
        _, unreported = _attempt(folder, partial(_report_input, session, checked, alerts), None)
        failures = (*failures, *unreported)
    if not failures:
        _, failures = _attempt(folder, partial(_remove_old_readings, session), None)
    writing = partial(_write_report, session, checked.sums.delivery)
    notices, unwritten = _attempt(folder, writing, tuple[FileNotice, ...]())
    return ReportOutcome(alerts, notices, tuple(dict.fromkeys((*failures, *unwritten))))


def format_reports_status(outcome: ReportOutcome | None) -> str | None:
    """Return the public status of the stage; None before the ledger exists.

    The text depends on the failures, never on a reading.
    """
    if outcome is None:
        return None
    if not outcome.failures:
        return "written"
    return f"published; internal report failed: {'; '.join(failure.public for failure in outcome.failures)}"


def format_report_warnings(notices: Sequence[FileNotice], failures: Sequence[FileNotice]) -> list[str]:
    """Return a line for the operator for each damaged file and each failed step."""
    damaged = [f"warning: {notice.private}" for notice in notices]
    failed = [
        f"warning: the release folder is published, but the internal report failed: {failure.private}; {_LATER}"
        for failure in failures
    ]
    return damaged + failed


def _attempt(confidential: Path, step: Callable[[], T], default: T) -> tuple[T, tuple[FileNotice, ...]]:
    """Return the result of a step, or `default` and a notice about the error that ended it."""
    try:
        return step(), ()
    except AgedpError as error:
        failure = FileNotice(str(error), error.private)
    except OSError as error:
        problem = error.strerror or type(error).__name__
        failure = FileNotice(problem, f"{error.filename}: {problem}")
    except Exception as error:  # results are drawn and published already: no error here may prevent their output
        failure = _bug_notice(confidential, error)
    return default, (failure,)


def _bug_notice(confidential: Path, error: Exception) -> FileNotice:
    """Return the class of an unexpected error; its traceback, which may quote readings, stays confidential."""
    with suppress(AgedpError, OSError):
        atomic_files.write(confidential / TRACEBACK, "".join(traceback.format_exception(error)).encode())
    problem = f"{type(error).__name__} (a bug; {TRACEBACK} in the confidential folder has the details)"
    return FileNotice(problem, problem)


def _add_records(session: LedgerSession, sums: DailySums) -> None:
    if not sums.by_day:
        return
    paths, by_day = session.run.paths, sums.by_day
    summed = [row for row in session.history if (date.fromisoformat(row.day), row.series) in by_day]
    rows = session.open_ledger.rows_of(summed)
    COVERAGE.add(paths.coverage, by_day, rows)  # first: a day without a true mean is summed again
    COUNTED_STATES.add(paths.counted_states, by_day, rows)
    TRUE_COUNTS.add(paths.true_counts, by_day, rows)
    TRUE_MEANS.add(paths.true_means, by_day, rows)


def _find_alerts(session: LedgerSession, checked: CheckedSums) -> tuple[Alert, ...]:
    if checked.facts is None:
        return ()
    least = session.run.run_file.alerts.min_coverage
    limit = None if least is None else float(least)
    return find_alerts(checked.sums.by_day, checked.facts, checked.sums.examined_days, min_coverage=limit)


def _report_input(session: LedgerSession, checked: CheckedSums, alerts: Sequence[Alert]) -> None:
    """Record the findings and alerts about the files of a run; the aggregation stage collected the facts."""
    if checked.facts is None:
        return
    run = session.run
    append_alerts(run.paths.folder, alerts, population=run.population, written_at=clock.format_instant(run.now))
    number = sum(row.state == "released" for row in session.history)
    write_findings(run.paths.folder, checked.findings, population=run.population, on=run.today, released=number)


def _remove_old_readings(session: LedgerSession) -> None:
    run, engine = session.run, session.run.run_file.engine
    if not run.run_file.schedule.reads_input:
        return
    if run.run_file.schedule.mode != "archive" or "keep_days" in engine.model_fields_set:
        with run.store.locked():
            remove_old_months(run.store, today=run.today, keep_days=engine.keep_days, needed_from=session.next_day)


def _write_report(session: LedgerSession, delivery: Delivery) -> tuple[FileNotice, ...]:
    if is_report_current(session, delivery):
        return ()
    from agedp.reports.confidential_report import write_confidential_report  # noqa: PLC0415  (charts and templates)
    from agedp.reports.report_data import InternalSources  # noqa: PLC0415

    run = session.run
    sources = InternalSources(run.run_file, run.paths, run.roster, run.store, delivery)
    notices = write_confidential_report(sources, session.rows)
    if not notices:
        note_report(session, delivery)
    return notices
