"""What `agedp audit` says: what is promised, what made-up households prove, and what would have shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agedp_data.errors import AgedpError
from pipelines.audit import CONFIDENCE, Measured


class Broken(AgedpError):
    """More was proven than is promised."""

    exit_status = 3


def audit_json(found: Sequence[Measured]) -> dict[str, Any]:
    """Return the audit for machines."""
    return {
        "confidence": str(CONFIDENCE),
        "kept": all(one.kept for one in found),
        "measured": [
            {"about": one.about, "promised": one.promised, "proven": one.proven, "noticed": _number(one.noticed)}
            for one in found
        ],
    }


def audit_lines(found: Sequence[Measured]) -> list[str]:
    """Return the audit for people."""
    width = max(len(one.about) for one in found)
    lines = [f"{'':{width}}  promised  proven at least  would have shown from"]
    lines += [
        f"{one.about:{width}}  {one.promised:8.4g}  {one.proven:15.4g}  {_shown(one.noticed):>21}" for one in found
    ]
    kept = "kept: nothing was proven beyond the promise" if all(one.kept for one in found) else "BROKEN"
    return [*lines, f"{kept} (each bound at confidence {CONFIDENCE:.1%}, made-up households, the real way)"]


def require_kept(found: Sequence[Measured]) -> None:
    """Raise Broken, naming the first figure beyond its promise, if there is one."""
    for one in found:
        if not one.kept:
            raise Broken(
                f"the promise is broken: {one.about} prove a loss of {one.proven:.4g}, {one.promised:.4g} is promised; "
                "release nothing with this installation, and report it (SECURITY.md)"
            )


def _shown(loss: float) -> str:
    return "nothing" if _number(loss) is None else f"{loss:.4g}"


def _number(loss: float) -> float | None:
    return loss if loss < float("inf") else None
