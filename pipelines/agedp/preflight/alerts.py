"""SUMS and FACTS of the due days -> ALERTS for the operator. Confidential; they decide nothing that is published.

Decisions. With every run file an alert is raised by a day without a usable household, a day that loses more than 5 %
of its readings to conflicts, a day on which most households have 0 kWh, a new file with more than 5 % rejected rows, a
file that others correct since its name comes first, and a file that is rejected as a whole. A low coverage above 0
raises an alert only if [alerts] min_coverage sets a limit.

FINDINGS and ALERTS are stored in the confidential folder:

    <confidential>/preflight.json   the findings of the newest run or plan with due days, and the number of releases of
                                    the population when its alerts had been appended
    <confidential>/alerts.jsonl     one line per alert, oldest first; alerts.1.jsonl contains earlier alerts

`alerts.jsonl` is moved to `alerts.1.jsonl` when it exceeds one MiB, so that both together stay below about two MiB.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Final, Literal

from agedp.local_files import atomic_files
from agedp.local_files.atomic_files import FileKind, FileNotice, read_content
from agedp.preflight.input_checks import MAX_CONFLICT_SHARE, Finding, findings_json
from agedp.preflight.input_findings import MAX_REJECTED_SHARE, InputFacts
from agedp.stage_values import DailySum


@dataclass(frozen=True, slots=True)
class Alert:
    """One alert: of `total` (households, readings, rows) `part` are usable, or lost; `limit` is a share.

    `about` names the file of an alert about a file, or contains the error about it; `day` is then the newest due day.
    """

    kind: Literal["coverage", "conflicts", "zeros", "rejected", "superseded", "unreadable"]
    day: date
    part: int
    total: int
    limit: float
    about: str = ""

    @property
    def share(self) -> float:
        """Return part / total; 0 if the total is 0."""
        return self.part / self.total if self.total else 0.0


def find_alerts(
    sums: Mapping[tuple[date, str], DailySum], facts: InputFacts, days: Collection[date], *, min_coverage: float | None
) -> tuple[Alert, ...]:
    """Return the alerts of these days, by day and kind.

    Args:
        sums: the daily sums by day and series; the coverage of a day is that of the series with the fewest usable
            households.
        facts: the facts about the input files.
        days: the due days, at least one; alerts about files are filed under the newest.
        min_coverage: key `min_coverage` of [alerts], a share; with None only days without a usable household count.
    """
    alerts, newest = [*_coverage_alerts(sums, days, min_coverage)], max(days)
    for day, lost in facts.conflicts.items():
        if day in days and lost.share > MAX_CONFLICT_SHARE:
            alerts.append(Alert("conflicts", day, lost.lost, lost.lost + lost.remaining, MAX_CONFLICT_SHARE))
    alerts += (Alert("zeros", day, *of, 0.5) for day, of in facts.zero_days.items() if day in days)
    alerts += (
        Alert("rejected", newest, file.rejected, file.rows, MAX_REJECTED_SHARE, file.name)
        for file in facts.rejecting_files
    )
    alerts += (Alert("superseded", newest, rows, rows, 0.0, name) for name, rows, of in facts.superseded if of)
    alerts += (Alert("unreadable", newest, 1, facts.files, 0.0, problem) for problem in facts.unreadable)
    return tuple(sorted(alerts, key=lambda alert: (alert.day, alert.kind)))


def _coverage_alerts(
    sums: Mapping[tuple[date, str], DailySum], days: Collection[date], min_coverage: float | None
) -> Iterator[Alert]:
    counts: dict[date, list[tuple[int, int]]] = {}
    for (day, _), daily_sum in sums.items():
        counts.setdefault(day, []).append((int(daily_sum.usable.sum()), int(daily_sum.households.sum())))
    for day in sorted(counts.keys() & days):
        usable, households = min(counts[day])
        if usable == 0 or (min_coverage is not None and usable < min_coverage * households):
            yield Alert("coverage", day, usable, households, min_coverage or 0.0)


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
    with atomic_files.exclusive_lock(folder):
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
