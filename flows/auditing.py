"""What `agedp audit` says: what is promised, what made-up households prove, and which faults would have shown."""

from __future__ import annotations

from typing import Any

from agedp_data.errors import AgedpError
from pipelines.audit import CONFIDENCE, AuditResult


class PromiseBroken(AgedpError):
    """More was proven than is promised."""

    exit_status = 3


def audit_json(found: AuditResult) -> dict[str, Any]:
    """Return the audit for machines."""
    return {
        "confidence": str(CONFIDENCE),
        "households": found.datasets.total_households,
        "streets": found.datasets.groups,
        "kept": found.is_within_promise,
        "faults": list(found.faults),
        "measured": [
            {
                "about": one.scope,
                "promised": one.promised,
                "proven": one.lower_bound,
                "noticed": _number(one.detectable),
            }
            for one in found.measured
        ],
        "cannot_show": list(found.undetectable),
    }


def audit_lines(found: AuditResult) -> list[str]:
    """Return the audit for people."""
    width = max(len(one.scope) for one in found.measured)
    lines = [f"{'':{width}}  promised  proven at least  would have shown from"]
    lines += [
        f"{one.scope:{width}}  {one.promised:8.4g}  {one.lower_bound:15.4g}  {_shown(one.detectable):>21}"
        for one in found.measured
    ]
    kept = "kept: nothing was proven beyond the promise" if found.is_within_promise else "BROKEN"
    streets = found.datasets
    lines.append(
        f"{kept} (each bound at confidence {100 * CONFIDENCE:.4f}%, {streets.groups:,} made-up streets of "
        f"{streets.households_per_group:,}, the real way)"
    )
    lines += [f"found: {fault}" for fault in found.faults]
    if found.undetectable:
        faults = ", ".join(found.undetectable)
        lines.append(f"too few draws to show at losses so small, or so large, and so not ruled out: {faults}")
    return lines


def require_kept(found: AuditResult) -> None:
    """Raise Broken, naming the first thing that was found, if there is one."""
    beyond = (
        f"{one.scope} prove a loss of {one.lower_bound:.4g}, {one.promised:.4g} is promised"
        for one in found.measured
        if not one.is_within_promise
    )
    for what in (*beyond, *found.faults):
        raise PromiseBroken(
            f"the promise is broken: {what}; release nothing with this installation, and report it (SECURITY.md)"
        )


def _shown(loss: float) -> str:
    return "nothing" if _number(loss) is None else f"{loss:.4g}"


def _number(loss: float) -> float | None:
    return loss if loss < float("inf") else None
