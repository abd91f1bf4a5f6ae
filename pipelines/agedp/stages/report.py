"""The stage after publication: confidential records, alerts, retention and the internal report.

Nothing that is published depends on it, so nothing in it fails a run: a failed step is a warning
(`Work.report_failures`), and the next run repeats it, even if no day is due then. The steps, in their order:

1. records: true means and coverage of the days that this run summed. A later run sums days without them again.
2. input: findings and alerts of the drawn days. A later run repeats them until `preflight.json` covers all of them.
3. retention: old readings are removed from the store. Skipped if a step before it failed, which would need them.
4. report: the internal report, rewritten by every run.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from contextlib import suppress
from datetime import date
from pathlib import Path

from agedp.internal_records.cell_tables import COUNTED_STATES, COVERAGE, TRUE_COUNTS, TRUE_MEANS
from agedp.local_files import atomic_files, locks
from agedp.local_files.internal_files import FileNotice
from agedp.preflight.alerts import find_alerts
from agedp.preflight.preflight_records import append_alerts, check_alerts, count_reported, write_findings
from agedp.reports.confidential_report import write_confidential_report
from agedp.run_context import Work
from agedp.store.retention import remove_old_months
from agedp_data import clock
from agedp_data.errors import AgedpError

TRACEBACK = "traceback.txt"

_LATER = "the next run writes what is missing and draws no day twice"


def write_reports(work: Work) -> None:
    """Write the confidential records and reports of a run; failures and notices are added to `work`."""
    if not work.has_ledger:
        return
    work.is_reported = True
    if _succeeds(work, _add_records) & _succeeds(work, _report_input):
        _succeeds(work, _remove_old_readings)
    _succeeds(work, _write_report)


def check_records(work: Work) -> tuple[FileNotice, ...]:
    """Rename damaged records of the confidential folder, so that they begin anew, and return the notices about them.

    Raises:
        InputError: the system denies reading or renaming one.
    """
    checks = (
        COVERAGE.check(work.coverage),
        COUNTED_STATES.check(work.counted_states),
        TRUE_COUNTS.check(work.true_counts),
        TRUE_MEANS.check(work.true_means),
        *check_alerts(work.confidential),
    )
    return tuple(notice for notice in checks if notice is not None)


def unreported_days(work: Work) -> set[date] | None:
    """Return released days with retained readings whose input is not reported yet; None if this is not recorded."""
    number = count_reported(work.confidential, population=work.population)
    if number is None:
        return None
    days = [row.day for row in work.rows() if row.state == "released"][number:]
    return {date.fromisoformat(day) for day in days if day[:7] >= work.store.retained_from()}


def format_reports_status(work: Work) -> str | None:
    """Return the public status of the stage; None before the ledger exists.

    The text depends on the failures, never on a reading.
    """
    if not work.is_reported:
        return None
    if not work.report_failures:
        return "written"
    return f"published; internal report failed: {'; '.join(failure.public for failure in work.report_failures)}"


def format_report_warnings(work: Work) -> list[str]:
    """Return a line for the operator for each damaged file and each failed step."""
    damaged = [f"warning: {notice.private}" for notice in work.notices]
    failed = [
        f"warning: the release folder is published, but the internal report failed: {failure.private}; {_LATER}"
        for failure in work.report_failures
    ]
    return damaged + failed


def _succeeds(work: Work, step: Callable[[Work], None]) -> bool:
    """Run a step and return whether it succeeded; an error is added to the run's failures."""
    try:
        step(work)
    except AgedpError as error:
        failure = FileNotice(str(error), error.private)
    except OSError as error:
        problem = error.strerror or type(error).__name__
        failure = FileNotice(problem, f"{error.filename}: {problem}")
    except Exception as error:  # results are drawn and published already: no error here may prevent their output
        failure = _bug_notice(work.confidential, error)
    else:
        return True
    if failure not in work.report_failures:
        work.report_failures = (*work.report_failures, failure)
    return False


def _bug_notice(confidential: Path, error: Exception) -> FileNotice:
    """Return the class of an unexpected error; its traceback, which may quote readings, stays confidential."""
    with suppress(AgedpError, OSError):
        atomic_files.write(confidential / TRACEBACK, "".join(traceback.format_exception(error)).encode())
    problem = f"{type(error).__name__} (a bug; {TRACEBACK} in the confidential folder has the details)"
    return FileNotice(problem, problem)


def _add_records(work: Work) -> None:
    sums, rows = work.sums, work.rows()
    COVERAGE.add(work.coverage, sums, rows)  # first: a day without a true mean is summed again
    COUNTED_STATES.add(work.counted_states, sums, rows)
    TRUE_COUNTS.add(work.true_counts, sums, rows)
    TRUE_MEANS.add(work.true_means, sums, rows)


def _report_input(work: Work) -> None:
    """Record the findings and alerts about the files of a run; the aggregation stage collected the facts."""
    facts = work.input_facts
    if facts is None:
        return
    least = work.run.alerts.min_coverage
    limit = None if least is None else float(least)
    work.alerts = find_alerts(work.sums, facts, work.examined_days, min_coverage=limit)
    append_alerts(work.confidential, work.alerts, population=work.population, written_at=clock.format_instant(work.now))
    number = sum(row.state == "released" for row in work.rows())
    write_findings(work.confidential, work.findings, population=work.population, on=work.today, released=number)


def _remove_old_readings(work: Work) -> None:
    engine = work.run.engine
    if work.run.schedule.mode != "archive" or "keep_days" in engine.model_fields_set:
        with locks.exclusive_lock(atomic_files.make_private(work.store.folder)):
            remove_old_months(work.store, today=work.today, keep_days=engine.keep_days, needed_from=work.next_day())


def _write_report(work: Work) -> None:
    ledger = work.opened_ledger()
    if ledger is not None:
        work.notices = (*work.notices, *write_confidential_report(work, ledger))
