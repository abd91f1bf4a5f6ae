"""SUMS + input files -> facts and findings about the files: the preflight of a run, which may refuse a useless release.

Only the first release of a population can be refused; later findings are warnings. All of it is confidential.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from agedp.ledger_session import LedgerSession
from agedp.preflight.alerts import write_findings
from agedp.preflight.input_checks import Finding, check_facts, first_refusal
from agedp.preflight.input_findings import InputFacts, collect_facts
from agedp.run_context import RunContext
from agedp.stage_values import DailySums, Delivery, DueDays
from agedp.stages.aggregate import sum_days
from agedp.stages.ingest import read_files, reread_damaged
from agedp_data.config import RunFile
from agedp_data.errors import PreflightFailed
from agedp_data.messages import count_text
from agedp_data.roster import group_columns

_OVERRIDE: Final = '[input] preflight = "report" releases all the same'


@dataclass(frozen=True, slots=True)
class CheckedSums:
    """Daily sums with facts and findings about the input files that they come from, and the refusal of a first release.

    Without a day to examine there are no facts and findings. Confidential.
    """

    sums: DailySums
    facts: InputFacts | None = None
    findings: tuple[Finding, ...] = ()
    refusal: PreflightFailed | None = None


def check_input(session: LedgerSession, sums: DailySums) -> CheckedSums:
    """Check the input files of a run with due days; the caller has locked the store.

    Before the first release the findings are recorded now, later by the report stage. A rehearsal on synthetic
    households has no input files to check.
    """
    if not session.run.run_file.schedule.reads_input:
        return CheckedSums(sums)
    return reread_damaged(session, sums.delivery, partial(_check_input, session.run, sums))


def check_input_files(session: LedgerSession, due_days: DueDays) -> CheckedSums | None:
    """Read the input files and record what they contain, for `agedp plan`; nothing is drawn or registered.

    Returns:
        None after the first release, where no day is due, and in a rehearsal on synthetic households.

    Raises:
        InputError: a file that cannot be parsed.
        Busy: another run keeps the lock of the store for too long.
    """
    if not due_days.due or session.history.released_days or not session.run.run_file.schedule.reads_input:
        return None
    with session.run.store.locked():
        return check_input(session, sum_days(session, due_days, read_files(session)))


def _check_input(run: RunContext, sums: DailySums, delivery: Delivery) -> CheckedSums:
    sums = replace(sums, delivery=delivery)
    is_first_release = sums.is_first and bool(sums.drawn_days)
    if not (is_first_release or sums.examined_days):
        return CheckedSums(sums)
    facts = _collect_facts(run, sums)
    findings = check_facts(facts, run.run_file)
    if not is_first_release:
        return CheckedSums(sums, facts, _warnings(findings))
    if run.run_file.input.preflight == "report":
        findings = _warnings(findings)
    write_findings(run.paths.folder, findings, population=run.population, on=run.today, released=0)
    return CheckedSums(sums, facts, findings, _preflight_error(run.run_file, findings))


def _collect_facts(run: RunContext, sums: DailySums) -> InputFacts:
    """Return the facts about the files: of all days until a first release is reported, later of the due days."""
    months = sums.delivery.months if sums.examines_all else sorted({f"{day:%Y-%m}" for day in sums.examined_days})
    return collect_facts(
        run.store,
        sums.delivery,
        run.roster,
        months=months,
        sums=sums.by_day,
        days=sums.examined_days,
        all_days=sums.examines_all,
        engine=run.engine,
        by=tuple(dict.fromkeys(group_columns(series.by) for series in run.run_file.series.values() if series.by)),
        files=run.run_file.input.files,
    )


def _warnings(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return findings that stop nothing: refusals become warnings."""
    return tuple(replace(of, verdict="warning") if of.verdict == "refused" else of for of in findings)


def _preflight_error(run: RunFile, findings: Sequence[Finding]) -> PreflightFailed | None:
    """Return the refusal of a first release; `preflight = "report"` in the run file overrides it."""
    refusal = first_refusal(findings)
    if refusal is None:
        return None
    further = sum(finding.verdict == "refused" for finding in findings) - 1
    ending = f" {count_text(further, 'more finding')}." if further else ""
    problem = f"{refusal.name}: {refusal.text.rstrip('.')}.{ending}"
    return PreflightFailed(private=f"{run.name}: {problem} Nothing was drawn; {_OVERRIDE}.")
