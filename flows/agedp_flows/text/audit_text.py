"""Output of `agedp audit`: promised losses, lower bounds, tests of the noise, and faults that are not ruled out."""

from __future__ import annotations

from typing import Any

from agedp.privacy_audit import CONFIDENCE, FALSE_ALARM, AuditResult
from agedp.signal_against_noise import three_digits
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
                "noticed": _finite_or_none(measurement.detectable),
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
    """Return the result of an audit as lines for the terminal."""
    lines = _measured_lines(result)
    datasets = result.datasets
    verdict = "kept: no lower bound exceeds the promise" if result.is_within_promise else "BROKEN"
    lines.append(
        f"{verdict} (each bound at confidence {100 * CONFIDENCE:.4f} %, {datasets.groups:,} synthetic groups of "
        f"{datasets.households_per_group:,} households, through the real pipeline)"
    )
    if result.draws:
        ledgers = f"{datasets.ledgers} fresh ledger{'s' * (datasets.ledgers != 1)}"
        lines.append(
            f"noise: {result.tests} tests of {result.draws:,} draws, {datasets.days} days in each of {ledgers} (an "
            f"audit raises a false alarm with a probability below {FALSE_ALARM})"
        )
        lines.append(
            "readings: two worlds with other readings have equal dates, skipped days, losses, scales, counts of "
            "households and refusals"
        )
    lines += [warning(f"fault: {fault}") for fault in result.faults]
    if result.undetectable:
        lines.append(
            "not ruled out, because there are too few draws to detect them at losses this small, or this large: "
            f"{', '.join(result.undetectable)}"
        )
    return lines


def _measured_lines(result: AuditResult) -> list[str]:
    """Return the table of the promised epsilon, the measured lower bound and the detectable epsilon of each scope."""
    columns = "epsilon of", ">promised", ">lower bound", ">detectable from"
    rows = [
        (
            measurement.scope,
            three_digits(measurement.promised),
            three_digits(measurement.lower_bound),
            _loss_text(measurement.detectable),
        )
        for measurement in result.measured
    ]
    return table_lines(columns, rows) if rows else []


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


def _loss_text(loss: float) -> str:
    return "nothing" if _finite_or_none(loss) is None else three_digits(loss)


def _finite_or_none(loss: float) -> float | None:
    return loss if loss < float("inf") else None
