"""FINDINGS and ALERTS in the confidential folder.

    <confidential>/preflight.json   the findings of the newest run or plan with due days, and the number of releases of
                                    the population when its alerts had been appended
    <confidential>/alerts.jsonl     one line per alert, oldest first; alerts.1.jsonl contains earlier alerts

`alerts.jsonl` is moved to `alerts.1.jsonl` when it exceeds one MiB, so that both together stay below about two MiB.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any, Final

from agedp.local_files import atomic_files, locks
from agedp.local_files.internal_files import FileKind, FileNotice, read_content
from agedp.preflight.alerts import Alert
from agedp.preflight.input_checks import Finding, findings_json

PREFLIGHT: Final = "preflight.json"
ALERTS: Final = "alerts.jsonl"
EARLIER_ALERTS: Final = "alerts.1.jsonl"
MAX_ALERT_BYTES: Final = 2**20


def write_findings(folder: Path, findings: Sequence[Finding], *, population: str, on: date, released: int) -> None:
    """Write the findings of a run and the number of releases whose input is reported; they replace earlier ones.

    Raises:
        InputError: the file cannot be written.
    """
    record = {"population": population, "on": on.isoformat(), "released": released}
    record |= {"findings": findings_json(findings)}
    atomic_files.write(folder / PREFLIGHT, (json.dumps(record, indent=1) + "\n").encode())


def count_reported(folder: Path, *, population: str) -> int | None:
    """Return the number of releases of a population whose input is reported; None if it is not recorded.

    A run that was killed after its releases and before its alerts is thereby noticed: the next run reports the rest.
    """

    def parse(path: Path) -> int | None:
        record: dict[str, Any] = json.loads(path.read_bytes())
        if record["population"] != population or record.get("released") is None:
            return None
        return int(record["released"])

    return read_content(folder / PREFLIGHT, parse, FileKind.DERIVED, advice="").value


def check_alerts(folder: Path) -> tuple[FileNotice | None, ...]:
    """Rename damaged records of alerts, so that they begin anew, and return the notices about them.

    Raises:
        InputError: the system denies reading or renaming a record.
    """
    advice = "Put back a copy to keep the earlier alerts."
    names = (ALERTS, EARLIER_ALERTS)
    return tuple(read_content(folder / name, _parse_alerts, FileKind.RECORD, advice=advice).notice for name in names)


def _parse_alerts(path: Path) -> list[Mapping[str, Any]]:
    content = path.read_bytes()
    alerts = [json.loads(line) for line in content.splitlines()]
    if not content.endswith(b"\n") or not all(isinstance(alert, dict) for alert in alerts):
        raise ValueError("an alert is truncated or invalid")
    return alerts


def append_alerts(folder: Path, alerts: Sequence[Alert], *, population: str, written_at: str) -> None:
    """Append alerts, one JSON object per line; an alert that is in the record already is not repeated.

    Concurrent runs take turns by the lock of the folder. A full record is moved to `alerts.1.jsonl` first.

    Args:
        folder: the confidential folder.
        alerts: the alerts; without one nothing is written.
        population: the population that they are about.
        written_at: time of writing, UTC.

    Raises:
        InputError: a record cannot be written.
    """
    if not alerts:
        return
    path = folder / ALERTS
    with locks.exclusive_lock(folder):
        earlier = read_content(path, _parse_alerts, FileKind.RECORD, advice="").value or []
        recorded = {_alert_key(alert) for alert in earlier}
        records = [_alert_record(alert, population, written_at) for alert in alerts]
        lines = [record for record in records if _alert_key(record) not in recorded]
        content = path.read_bytes() if earlier else b""
        added = b"".join((json.dumps(line) + "\n").encode() for line in lines)
        if len(content) + len(added) > MAX_ALERT_BYTES and content and added:
            atomic_files.write(folder / EARLIER_ALERTS, content)
            content = b""
        atomic_files.write(path, content + added)


def _alert_key(record: Mapping[str, Any]) -> tuple[object, ...]:
    return tuple(record.get(name) for name in ("population", "day", "alert", "about"))


def _alert_record(alert: Alert, population: str, at: str) -> dict[str, Any]:
    record: dict[str, Any] = {"at": at, "population": population, "day": alert.day.isoformat(), "alert": alert.kind}
    record |= {"part": alert.part, "whole": alert.total, "share": round(alert.share, 4), "limit": alert.limit}
    return record | ({"about": alert.about} if alert.about else {})
