"""The results of a run in one value, for the command, the flow and the one-off release that print them."""

from __future__ import annotations

from dataclasses import dataclass, field

from agedp.ledger_session import LedgerSession
from agedp.local_files.internal_files import FileNotice
from agedp.preflight.alerts import Alert
from agedp.run_context import RunContext
from agedp.stage_values import Delivery, DueDays
from agedp.stages.preflight_stage import CheckedSums
from agedp.stages.report import ReportOutcome
from agedp_data.errors import PreflightFailed, Refused
from agedp_data.ledger import ReleaseRecord


@dataclass(frozen=True, slots=True)
class RunSummary:
    """Results of the stages of a run so far, for its output, and the refusal that ended it, if any (confidential)."""

    session: LedgerSession
    due_days: DueDays = field(default_factory=lambda: DueDays(()))
    checked: CheckedSums | None = None
    released: tuple[ReleaseRecord, ...] = ()
    report: ReportOutcome | None = None
    refusal: Refused | PreflightFailed | None = None

    def check_not_refused(self) -> None:
        """Raise the refusal that ended the run, if any.

        Raises:
            Refused: the promise does not permit a due day; what was committed before is published.
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
