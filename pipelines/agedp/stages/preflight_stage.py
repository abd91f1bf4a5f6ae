"""Preflight of one run: facts about its files, limits, and the refusal of a useless first release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from agedp.preflight.input_checks import CheckLimits, Finding, check_facts, first_refusal
from agedp.preflight.input_facts import InputFacts, collect_facts
from agedp_data.errors import PreflightFailed

if TYPE_CHECKING:
    from agedp.run_context import Work
    from agedp.stage_values import Delivery

_OVERRIDE: Final = '[input] preflight = "report" releases all the same'


def collect_run_facts(work: Work, delivery: Delivery) -> InputFacts:
    """Return the facts about the files: of all days until a first release is reported, later of the due days."""
    months = delivery.months if work.examines_all else sorted({f"{day:%Y-%m}" for day in work.examined_days})
    return collect_facts(
        work.store,
        delivery,
        work.roster.ids,
        months=months,
        sums=work.sums,
        days=work.examined_days,
        all_days=work.examines_all,
    )


def check_limits(work: Work) -> CheckLimits:
    """Return the limits of the checks from the public keys of the run file."""
    table, schedule = work.run.input, work.run.schedule
    return CheckLimits(
        max_rejected_share=float(table.max_rejected_share),
        refuse_absent_days=getattr(schedule, "absent_days", "") == "refuse",
        period=(schedule.first_day, schedule.last_day),
        interval_minutes=table.interval_minutes,
        is_long=table.named_columns is not None,
    )


def report_facts(work: Work, facts: InputFacts) -> None:
    """Set the findings of a run that they cannot stop: refusals become warnings."""
    findings = check_facts(facts, check_limits(work))
    work.findings = tuple(
        replace(finding, verdict="warning") if finding.verdict == "refused" else finding for finding in findings
    )


def judge_facts(work: Work, facts: InputFacts) -> None:
    """Set the findings before the first release, as the key `preflight` of the run file requires."""
    if work.run.input.preflight == "report":
        report_facts(work, facts)
    else:
        work.findings = check_facts(facts, check_limits(work))


def check_not_refused(work: Work) -> None:
    """Check that no finding before the first release is a refusal.

    Raises:
        PreflightFailed: a finding is a refusal; `preflight = "report"` in the run file overrides it.
    """
    refusal = first_refusal(work.findings)
    if refusal is not None:
        raise _preflight_error(work, refusal, work.findings)


def _preflight_error(work: Work, refusal: Finding, findings: Sequence[Finding]) -> PreflightFailed:
    further = sum(finding.verdict == "refused" for finding in findings) - 1
    ending = f" ({further} more finding{'s' * (further != 1)})" if further else ""
    head = f"{work.run.name}: {refusal.public}"
    tail = f" Nothing was drawn; {_OVERRIDE}."
    return PreflightFailed(head + tail, private=f"{head} Found: {refusal.result}{ending}.{tail}")
