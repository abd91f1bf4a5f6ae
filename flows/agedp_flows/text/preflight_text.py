"""The preflight of the input files as a table, for the operator's terminal alone: it names counts and days."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agedp.pipeline import check_input_files
from agedp.preflight.input_checks import Finding, first_refusal
from agedp_data.errors import Busy, InputError
from agedp_data.messages import escape_text

if TYPE_CHECKING:
    from agedp.run_context import Work

_TITLE = "Preflight of the input files (confidential)"


def preflight_lines(work: Work) -> list[str]:
    """Return the findings of a run: all of them before the first release, later only warnings and refusals."""
    findings = work.findings if work.is_first else [finding for finding in work.findings if finding.verdict != "ok"]
    return [f"{_TITLE}:", *_table(findings)] if findings else []


def planned_preflight_lines(work: Work) -> list[str]:
    """Read the input files and return the findings about them before the first release; nothing after it."""
    if any(row.state == "released" for row in work.rows()):
        return []
    try:
        check_input_files(work)
    except (InputError, Busy) as error:
        return [f"{_TITLE}: {escape_text(error.private, 1000)}"]
    if not work.findings:
        return ["The first run checks the input files before anything is registered, and shows what it finds."]
    refusal = first_refusal(work.findings)
    ending = [] if refusal is None else [f"  `agedp run` refuses: {refusal.public}"]
    return [f"{_TITLE}:", *_table(work.findings), *ending]


def _table(findings: Sequence[Finding]) -> list[str]:
    return [f"  {finding.check:13s} {finding.verdict:8s} {finding.result}" for finding in findings]
