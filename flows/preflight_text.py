"""The preflight of the input files as a table, for the operator's terminal alone: it names counts and days."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pipelines.preflight.checks import Finding
from pipelines.preflight.records import read_findings

if TYPE_CHECKING:
    from pipelines.work import Work

_TITLE = "Preflight of the input files (confidential)"


def preflight_lines(work: Work) -> list[str]:
    """Return the findings of a run: all of them before the first release, later only what is remarkable."""
    found = work.findings if work.is_first else [each for each in work.findings if each.verdict != "ok"]
    return [f"{_TITLE}:", *_table(found)] if found else []


def planned_preflight_lines(work: Work) -> list[str]:
    """Return what the store knows of the files before the first release; nothing after it."""
    if any(row.state == "released" for row in work.rows()):
        return []
    stored = read_findings(work.confidential, population=work.population)
    if stored is None:
        return ["The first run checks the input files before anything is registered, and shows what it finds."]
    on, found = stored
    return [f"{_TITLE}, as the run of {on} found them:", *_table(found)]


def _table(findings: Sequence[Finding]) -> list[str]:
    return [f"  {each.check:13s} {each.verdict:8s} {each.result}" for each in findings]
