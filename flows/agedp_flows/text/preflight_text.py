"""The preflight of the input files as a table, for the operator's terminal alone: it names counts and days."""

from __future__ import annotations

from collections.abc import Sequence

from agedp.ledger_session import LedgerSession
from agedp.preflight.input_checks import Finding, first_refusal
from agedp.stage_values import DueDays
from agedp.stages.preflight_stage import CheckedSums, check_input_files
from agedp_data.errors import Busy, InputError
from agedp_data.messages import escape_text

_TITLE = "Preflight of the input files (confidential)"


def preflight_lines(checked: CheckedSums | None) -> list[str]:
    """Return the findings of a run: all of them before the first release, later only warnings and refusals."""
    if checked is None:
        return []
    findings = [finding for finding in checked.findings if checked.sums.is_first or finding.verdict != "ok"]
    return [f"{_TITLE}:", *_table(findings)] if findings else []


def planned_preflight_lines(session: LedgerSession, due_days: DueDays) -> list[str]:
    """Read the input files and return the findings about them before the first release; nothing after it."""
    if session.released_days:
        return []
    try:
        checked = check_input_files(session, due_days)
    except (InputError, Busy) as error:
        return [f"{_TITLE}: {escape_text(error.private, 1000)}"]
    if checked is None or not checked.findings:
        return ["The first run checks the input files before anything is registered, and shows what it finds."]
    refusal = first_refusal(checked.findings)
    ending = [] if refusal is None else [f"  `agedp run` refuses: {refusal.public}"]
    return [f"{_TITLE}:", *_table(checked.findings), *ending]


def _table(findings: Sequence[Finding]) -> list[str]:
    return [f"  {finding.check:13s} {finding.verdict:8s} {finding.result}" for finding in findings]
