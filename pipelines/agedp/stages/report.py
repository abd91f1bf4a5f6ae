"""The stage after publication: confidential records, alerts, retention and the internal report.

Nothing that is published depends on it, so nothing in it fails a run: a failed step is a warning
(`ReportOutcome.failures`), and the next run repeats it, even if no day is due then. The steps, in their order:

1. records: true means and coverage of the days that this run summed. A later run sums days without them again.
2. input: findings and alerts of the drawn days. A later run repeats them until `preflight.json` covers all of them.
3. retention: old readings are removed from the store. Skipped if a step before it failed, which would need them.
4. report: the internal report, rewritten if anything has changed from which it is made.
"""

from __future__ import annotations

import hashlib
import json
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from agedp.budget import next_unclosed_day
from agedp.internal_records.bookkeeping import CELL_TABLES, record_sums
from agedp.internal_records.roster_history import RosterDigest
from agedp.ledger_session import LedgerSession
from agedp.local_files import atomic_files
from agedp.local_files.atomic_files import FileNotice
from agedp.preflight.alerts import Alert, append_alerts, find_alerts, write_findings
from agedp.run_context import RunContext
from agedp.stage_values import DailySums, Delivery
from agedp.stages.input_check import CheckedSums
from agedp.statement_facts import SOFTWARE
from agedp.store.retention import remove_old_months
from agedp.store.store import read_retained_from
from agedp_data import clock
from agedp_data.config.model_section import EstimatedModel
from agedp_data.config.output import AlertsSection
from agedp_data.datasets.filesystem import file_status
from agedp_data.datasets.timestamps import day_number
from agedp_data.errors import AgedpError
from agedp_data.ledger import Ledger
from agedp_data.versions import version

# --------------------------------------------------------------------------------------------------
# Whether the confidential report would be written as it is: same ledger, records, files, run file and software.
#
# The row `report` of the book has the digest of everything that the report was made from, and of the page; derived.
# A night with nothing new would make the same page again, with charts of every day that was ever released.
#
# Decisions:
#
# * A file of days that are not released yet changes one table, the rows of all files by reason. It alone is no reason
#   to make the page again: the table follows with the next released day, and quality.parquet is always current.
# * A report with a warning about a damaged file is not recorded, so every run repeats the warning.
# * Where it cannot be told whether something has changed, the report is written again.
# --------------------------------------------------------------------------------------------------

REPORT: Final = "report.html"


def is_report_current(run: RunContext, ledger: Ledger, delivery: Delivery) -> bool:
    """Return whether the report was made from what this run would make it from, and is still as it was written."""
    record = run.books.row("report", "")
    return record is not None and record == _record(run, ledger, delivery)


def note_report(run: RunContext, ledger: Ledger, delivery: Delivery) -> None:
    """Record what the report was made from; without the record the next run makes it again."""
    if (record := _record(run, ledger, delivery)) is not None:
        run.books.put_derived("report", {"": record})


def _record(run: RunContext, ledger: Ledger, delivery: Delivery) -> bytes | None:
    """Return the digests of the sources and of the page; None if one of them cannot be told."""
    if not run.roster.file_digest:  # a roster of no file
        return None
    # the files that may have rows of days up to the newest released one
    newest = max((row.day for row in ledger.history(run.population) if row.state == "released"), default="")
    last = day_number(date.fromisoformat(newest)) if newest else 0
    contents = [content for content in delivery.contents if delivery.first_days.get(content, 0) <= last]
    try:
        page = (run.paths.folder / REPORT).read_bytes()
        sources = {
            "software": {name: version(name) for name in SOFTWARE},
            "run file": repr(run.run_file),
            "roster": RosterDigest(run.roster, run.meters).file_digest,
            "ledger": ledger.head(),
            "files": [contents, read_retained_from(run.store.folder)],
            "tables": run.books.totals(*(table.name for table in CELL_TABLES)),
            "model": [(path.name, file_status(str(path)).fingerprint) for path in _model_files(run)],
        }
    except (OSError, AgedpError):
        return None
    return hashlib.sha256(json.dumps(sources, sort_keys=True).encode() + page).hexdigest().encode()


def _model_files(run: RunContext) -> Iterator[Path]:
    """Yield the files of the model that the report reads, as far as they exist."""
    model = run.run_file.model
    if isinstance(model, EstimatedModel) and run.run_file.schedule.reads_input:
        for folder in (run.paths.folder / "forgetting", Path(model.file)):
            yield from sorted(path for path in folder.glob("*") if path.is_file())


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
    session = session.opened()
    if (ledger := session.ledger) is None:
        return None
    run, folder = session.run, session.run.paths.folder
    _, unrecorded = _attempt(folder, partial(_add_records, run, ledger, checked.sums), None)
    alerts, unexamined = _attempt(folder, partial(_find_alerts, run.run_file.alerts, checked), tuple[Alert, ...]())
    failures = (*unrecorded, *unexamined)
    if not unexamined:
        _, unreported = _attempt(folder, partial(_report_input, run, ledger, checked, alerts), None)
        failures = (*failures, *unreported)
    if not failures:
        _, failures = _attempt(folder, partial(_remove_old_readings, run, ledger), None)
    writing = partial(_write_report, run, ledger, checked.sums.delivery)
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
    problem = "warning: the release folder is published, but the internal report failed:"
    failed = [f"{problem} {failure.private}; {_LATER}" for failure in failures]
    return [f"warning: {notice.private}" for notice in notices] + failed


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
        with suppress(AgedpError, OSError):  # the traceback may quote readings and stays confidential
            atomic_files.write(confidential / TRACEBACK, "".join(traceback.format_exception(error)).encode())
        problem = f"{type(error).__name__} (a bug; {TRACEBACK} in the confidential folder has the details)"
        failure = FileNotice(problem, problem)
    return default, (failure,)


def _add_records(run: RunContext, ledger: Ledger, sums: DailySums) -> None:
    if by_day := sums.by_day:
        rows = ledger.history(run.population)
        summed = [row for row in rows if (date.fromisoformat(row.day), row.series) in by_day]
        record_sums(run.books, by_day, ledger.rows_of(summed))


def _find_alerts(limits: AlertsSection, checked: CheckedSums) -> tuple[Alert, ...]:
    if checked.facts is None:
        return ()
    limit = None if limits.min_coverage is None else float(limits.min_coverage)
    return find_alerts(checked.sums.by_day, checked.facts, checked.sums.examined_days, min_coverage=limit)


def _report_input(run: RunContext, ledger: Ledger, checked: CheckedSums, alerts: Sequence[Alert]) -> None:
    """Record the findings and alerts about the files of a run; the aggregation stage collected the facts."""
    if checked.facts is None:
        return
    append_alerts(run.paths.folder, alerts, population=run.population, written_at=clock.format_instant(run.now))
    number = sum(row.state == "released" for row in ledger.history(run.population))
    write_findings(run.paths.folder, checked.findings, population=run.population, on=run.today, released=number)


def _remove_old_readings(run: RunContext, ledger: Ledger) -> None:
    engine, schedule = run.run_file.engine, run.run_file.schedule
    if schedule.reads_input and (schedule.mode != "archive" or "keep_days" in engine.model_fields_set):
        rows, contracts = ledger.history(run.population), ledger.contracts(run.population)
        needed_from = next_unclosed_day(run.run_file, rows, contracts)
        with run.store.locked():
            remove_old_months(run.store, today=run.today, keep_days=engine.keep_days, needed_from=needed_from)


def _write_report(run: RunContext, ledger: Ledger, delivery: Delivery) -> tuple[FileNotice, ...]:
    if is_report_current(run, ledger, delivery):
        return ()
    from agedp.reports import confidential_report  # noqa: PLC0415  (charts and templates)

    sources = confidential_report.InternalSources(run.run_file, run.paths, run.roster, run.store, delivery)
    notices = confidential_report.write_confidential_report(sources, ledger.rows(run.population))
    if not notices:
        note_report(run, ledger, delivery)
    return notices
