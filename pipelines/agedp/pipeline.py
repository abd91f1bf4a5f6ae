"""The stages of a run in order, from due days to the internal report.

`run_stages` is their only order: `sanitise` calls each as it is, the Prefect flow as a task. Values pass between them
inside one process; a scheduler receives none of them. A calibration has its own stages (`agedp.calibration_pipeline`),
which a run does not import.

Decisions:

* The promise is checked against the ledger before the first file is opened: a promise that cannot be kept is refused
  before any reading is read or any noise drawn.
* What was committed before a refused day is published and reported; then the refusal is raised.
* What first rows contain may refuse a first release; `aggregate` raises it, so that all refusals end the same stage.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import Any, Final

from agedp.compute.engine_settings import Scheduler
from agedp.ledger_session import LedgerSession
from agedp.local_files.atomic_files import FileNotice
from agedp.preflight.alerts import Alert
from agedp.release_verification import ReleaseFolder
from agedp.run_context import RunContext
from agedp.signal_against_noise import released_signals
from agedp.stage_values import Delivery, DueDays, StageCaller, call_stage
from agedp.stages.aggregate import aggregate_days
from agedp.stages.ingest import read_files
from agedp.stages.input_check import CheckedSums, check_input
from agedp.stages.plan import plan
from agedp.stages.publish import publish_folder
from agedp.stages.release import release_days
from agedp.stages.report import ReportOutcome, format_reports_status, write_reports
from agedp_data.datasets.filesystem import format_path
from agedp_data.epsilon import format_epsilon
from agedp_data.errors import LedgerError, PreflightFailed, RunFileError
from agedp_data.ledger import ReleaseRecord


@dataclass(frozen=True, slots=True)
class RunSummary:
    """Results of the stages of a run so far, for its output, and the refusal that ended it, if any (confidential)."""

    session: LedgerSession
    due_days: DueDays = field(default_factory=lambda: DueDays(()))
    checked: CheckedSums | None = None
    released: tuple[ReleaseRecord, ...] = ()
    report: ReportOutcome | None = None
    refusal: LedgerError | PreflightFailed | None = None

    def check_not_refused(self) -> None:
        """Raise the refusal that ended the run, if any.

        Raises:
            LedgerError: the promise does not permit a due day, or the ledger failed; what was committed before is
                published.
            PreflightFailed: the input files make a first release senseless; nothing was drawn.
        """
        if self.refusal is not None:
            raise self.refusal

    @property
    def run(self) -> RunContext:
        """Return the inputs of the run."""
        return self.session.run

    @property
    def delivery(self) -> Delivery | None:
        """Return what was read, None before the readings of all due days are summed."""
        return self.checked.sums.delivery if self.checked is not None else None

    @property
    def drawn(self) -> tuple[ReleaseRecord, ...]:
        """Return the released rows that carry values: those of days that were not skipped."""
        return tuple(row for row in self.released if row.state == "released")

    @property
    def alerts(self) -> tuple[Alert, ...]:
        """Return the alerts about the input of the due days."""
        return self.report.alerts if self.report is not None else ()

    @property
    def notices(self) -> tuple[FileNotice, ...]:
        """Return the notices about damaged confidential files."""
        return (
            *(self.checked.sums.notices if self.checked is not None else ()),
            *(self.report.notices if self.report is not None else ()),
        )

    @property
    def failures(self) -> tuple[FileNotice, ...]:
        """Return the notices about the steps of the report that failed."""
        return self.report.failures if self.report is not None else ()

    @property
    def facts(self) -> dict[str, Any]:
        """Return the result as JSON: public facts only."""
        run = self.run.run_file
        drawn = [{"series": row.series, "day": row.day, "epsilon": format_epsilon(row.loss)} for row in self.drawn]
        return {
            "population": run.population.name,
            "mode": run.schedule.mode,
            "released": drawn,
            "waiting": [day.isoformat() for day in self.due_days.waiting],
            "skipped": [{"series": row.series, "day": row.day} for row in self.released if row.state == "skipped"],
            "signal": [signal.facts for signal in released_signals(self.session.ledger, run)],
            "folder": format_path(run.output.release),
            "reports": format_reports_status(self.report),
        }


STAGES: Final = ("plan", "ingest", "aggregate", "release", "publish", "report")

_LOG = logging.getLogger("agedp")


def sanitise(run_file: str | Path, *, scheduler: Scheduler = None, as_of: date | str | None = None) -> ReleaseFolder:
    """Release every due day of a run file and return its release folder; the Python equivalent of `agedp run`.

    Args:
        run_file: path of the run file.
        scheduler: as [engine] scheduler, which it overrides.
        as_of: in rehearsals, the simulated date up to which days are released, such as "2026-04-01"; of an instant
            its date counts. If not given, the date on which the last day of the period is due.

    Raises:
        AgedpError: one line with problem, place and remedy; committed releases remain and are published.
    """
    run = RunContext.load(run_file, scheduler=scheduler, as_of=_date(as_of))
    summary = run_stages(run)
    summary.check_not_refused()
    if summary.failures:
        _LOG.warning("agedp: %s", format_reports_status(summary.report))
    return ReleaseFolder(run.release_folder)


def run_stages(run: RunContext, *, call: StageCaller = call_stage) -> RunSummary:
    """Run the stages in order and return their results; `call` calls each of the `STAGES`.

    Raises:
        AgedpError: as the stages, except for an error of the ledger in a release and a failed preflight, which are part
            of the result.
    """
    session, due_days = call("plan", _plan, run)
    with run.store.locked():
        delivery = call("ingest", _ingest, session)
        checked = call("aggregate", _aggregate, session, due_days, delivery)
    if checked.refusal is not None:
        return RunSummary(session, due_days, checked, refusal=checked.refusal)
    released = call("release", release_days, session, due_days, checked.sums)
    call("publish", publish_folder, released.session, due_days)
    report = call("report", write_reports, released.session, checked)
    return RunSummary(released.session, due_days, checked, released.rows, report, released.refusal)


def _plan(run: RunContext) -> tuple[LedgerSession, DueDays]:
    session = LedgerSession.open(run)
    return session, plan(session)


def _ingest(session: LedgerSession) -> Delivery | PreflightFailed:
    try:
        return read_files(session)
    except PreflightFailed as refusal:
        return refusal


def _aggregate(session: LedgerSession, due_days: DueDays, delivery: Delivery | PreflightFailed) -> CheckedSums:
    if isinstance(delivery, PreflightFailed):
        raise delivery
    return check_input(session, aggregate_days(session, due_days, delivery))


def _date(as_of: date | str | None) -> date | None:
    """Return a date from a date, an instant (as data frames contain) or ISO text."""
    if isinstance(as_of, str):
        try:
            return date.fromisoformat(as_of)
        except ValueError:
            raise RunFileError(f'as_of = {as_of!r}: must be a date such as "2026-04-01"') from None
    return as_of.date() if isinstance(as_of, datetime) else as_of
