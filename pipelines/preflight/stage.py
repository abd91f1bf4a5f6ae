"""Preflight of one run: what its files contain, by what it is judged, and the refusal of a senseless first release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from agedp_data.errors import PreflightFailed
from pipelines.preflight.checks import CheckLimits, Finding, check_facts, first_refusal
from pipelines.preflight.input_facts import InputFacts, collect_facts

if TYPE_CHECKING:
    from pipelines.read import Delivery
    from pipelines.work import Work

_OVERRIDE: Final = '[input] preflight = "report" releases all the same'


def collect_run_facts(work: Work, delivery: Delivery) -> InputFacts:
    """Return what the files contain: all of it until a first release is reported, later the due days' months."""
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
    """Return the public keys that findings are judged by."""
    table, schedule = work.run.input, work.run.schedule
    return CheckLimits(
        max_rejected_share=float(table.max_rejected_share),
        refuse_absent_days=getattr(schedule, "absent_days", "") == "refuse",
        period=(schedule.first_day, schedule.last_day),
        interval_minutes=table.interval_minutes,
        is_long=table.named_columns is not None,
    )


def report_facts(work: Work, facts: InputFacts) -> None:
    """Take the findings of a run that they do not stop."""
    findings = check_facts(facts, check_limits(work))
    work.findings = tuple(
        replace(finding, verdict="warning") if finding.verdict == "refused" else finding for finding in findings
    )


def judge_facts(work: Work, facts: InputFacts) -> None:
    """Take the findings before the first release, with the verdicts that the run file asks for."""
    if work.run.input.preflight == "report":
        report_facts(work, facts)
    else:
        work.findings = check_facts(facts, check_limits(work))


def check_not_refused(work: Work) -> None:
    """Check that no finding before the first release is a refusal.

    Raises:
        PreflightFailed: the release would be senseless, and the run file does not say that it is wanted all the same.
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
