"""Output of `agedp audit`: promised losses, lower bounds, tests of the noise, and faults that are not ruled out."""

from __future__ import annotations

from typing import Any

from agedp.privacy_audit import CONFIDENCE, FALSE_ALARM, AuditResult
from agedp.signal_against_noise import three_digits
from agedp_data.epsilon import finite_or_none
from agedp_data.errors import AgedpError
from agedp_flows.text.screen import table_lines, warning


class PromiseBroken(AgedpError):
    """A measured lower bound of the loss exceeds the promise, or the audit found a fault."""

    exit_status = 3


def audit_json(result: AuditResult) -> dict[str, Any]:
    """Return the result of an audit as JSON."""
    return {
        "confidence": str(CONFIDENCE),
        "households": result.datasets.total_households,
        "streets": result.datasets.total_groups,
        "kept": result.is_within_promise,
        "faults": list(result.faults),
        "measured": [
            {
                "about": measurement.scope,
                "promised": measurement.promised,
                "proven": measurement.lower_bound,
                "noticed": finite_or_none(measurement.detectable),
            }
            for measurement in result.measured
        ],
        "cannot_show": list(result.undetectable),
        "noise": {
            "tests": result.tests,
            "draws": result.draws,
            "days": result.datasets.days,
            "ledgers": result.datasets.ledgers,
            "false_alarm": FALSE_ALARM,
        },
    }


def audit_lines(result: AuditResult) -> list[str]:
    """Return the result of an audit as lines for the terminal: promised and measured losses, then the faults."""
    headings = "epsilon of", ">promised", ">lower bound", ">detectable from"
    rows = []
    for of in result.measured:
        detectable = "nothing" if finite_or_none(of.detectable) is None else three_digits(of.detectable)
        rows.append((of.scope, three_digits(of.promised), three_digits(of.lower_bound), detectable))
    lines, datasets = table_lines(headings, rows) if rows else [], result.datasets
    verdict = "kept: no lower bound exceeds the promise" if result.is_within_promise else "BROKEN"
    lines.append(
        f"{verdict} (each bound at confidence {100 * CONFIDENCE:.4f} %, {datasets.groups:,} synthetic groups of "
        f"{datasets.households_per_group:,} households, through the real pipeline)"
    )
    if result.draws:
        ledgers = f"{datasets.ledgers} fresh ledger{'s' * (datasets.ledgers != 1)}"
        lines += [
            f"noise: {result.tests} tests of {result.draws:,} draws, {datasets.days} days in each of {ledgers} (an "
            f"audit raises a false alarm with a probability below {FALSE_ALARM})",
            "readings: two worlds with other readings have equal dates, skipped days, losses, scales, counts of "
            "households and refusals",
        ]
    lines += [warning(f"fault: {fault}") for fault in result.faults]
    if result.undetectable:
        lines.append(
            "not ruled out, because there are too few draws to detect them at losses this small, or this large: "
            f"{', '.join(result.undetectable)}"
        )
    return lines


def require_no_violation(result: AuditResult) -> None:
    """Raise PromiseBroken, with the first violation or fault, if the audit found one."""
    violations = (
        f"{measurement.scope}: the lower bound on epsilon is {measurement.lower_bound:.4g}, but "
        f"{measurement.promised:.4g} is promised"
        for measurement in result.measured
        if not measurement.is_within_promise
    )
    for violation in (*violations, *result.faults):
        raise PromiseBroken(
            f"the promise is broken: {violation}; release nothing with this installation, and report it (SECURITY.md)"
        )
