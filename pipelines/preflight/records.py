"""FINDINGS and ALERTS in the confidential folder.

    <confidential>/preflight.json   the findings of the newest run or plan with due days
    <confidential>/alerts.jsonl     one line per alert, oldest first; alerts.1.jsonl holds what was there before

`alerts.jsonl` is moved to `alerts.1.jsonl` when it exceeds one MiB, so that the two never hold more than about two.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any, Final

from pipelines import folders, locks
from pipelines.preflight.alerts import Alert
from pipelines.preflight.checks import Finding, findings_json

PREFLIGHT: Final = "preflight.json"
ALERTS: Final = "alerts.jsonl"
EARLIER_ALERTS: Final = "alerts.1.jsonl"
MOST_BYTES: Final = 2**20


def write_findings(folder: Path, findings: Sequence[Finding], *, population: str, on: date) -> None:
    """Write the findings of a run; those of the run before are replaced."""
    record = {"population": population, "on": on.isoformat(), "findings": findings_json(findings)}
    folders.write(folder / PREFLIGHT, (json.dumps(record, indent=1) + "\n").encode())


def append_alerts(folder: Path, alerts: Sequence[Alert], *, population: str, at: str) -> None:
    """Append alerts, one JSON object per line; those that are there already, of a run that was cut off, once."""
    if not alerts:
        return
    path = folder / ALERTS
    with locks.alone(folder):
        earlier = path.read_bytes() if folders.there(path) else b""
        lines = b"".join(_line(alert, population, at) for alert in alerts if _body(alert, population) not in earlier)
        if not lines:
            return
        if len(earlier) + len(lines) > MOST_BYTES and earlier:
            folders.write(folder / EARLIER_ALERTS, earlier)
            earlier = b""
        folders.write(path, earlier + lines)


def _line(alert: Alert, population: str, at: str) -> bytes:
    return b"{" + json.dumps({"at": at}).encode()[1:-1] + b", " + _body(alert, population) + b"\n"


def _body(alert: Alert, population: str) -> bytes:
    """Return what a line says of the alert, without when it was raised."""
    record: dict[str, Any] = {"population": population, "day": alert.day.isoformat(), "alert": alert.kind}
    record |= {"part": alert.part, "whole": alert.whole, "share": round(alert.share, 4), "limit": alert.limit}
    record |= {"about": alert.about} if alert.about else {}
    return json.dumps(record).encode()[1:]
