"""SUMS and conflicts of the due days -> ALERTS for the operator. Confidential; they decide nothing that is published.

Decisions. A day without a usable household and a day that loses more than 5 % of its readings to conflicts raise an
alert whatever the run file says; other shares of the roster only if [alerts] min_coverage names a limit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final, Literal

from pipelines.aggregate import Sum
from pipelines.preflight.checks import MOST_CONFLICTS
from pipelines.readings.conflicts import LostReadings

_MOST_NAMED: Final = 5


@dataclass(frozen=True, slots=True)
class Alert:
    """One remarkable day: of `whole` (households, readings) `part` are usable, or lost; `limit` as a share."""

    kind: Literal["coverage", "conflicts"]
    day: date
    part: int
    whole: int
    limit: float

    @property
    def share(self) -> float:
        """Return part / whole, 0 of nothing."""
        return self.part / self.whole if self.whole else 0.0


def find_alerts(
    sums: Mapping[tuple[date, str], Sum],
    conflicts: Mapping[date, LostReadings],
    days: Collection[date],
    *,
    min_coverage: float | None,
) -> tuple[Alert, ...]:
    """Return the alerts of these days, by day; of several series that with the fewest usable households counts."""
    return tuple(
        sorted(
            [*_coverage_alerts(sums, days, min_coverage), *_conflict_alerts(conflicts, days)],
            key=lambda alert: (alert.day, alert.kind),
        )
    )


def _coverage_alerts(
    sums: Mapping[tuple[date, str], Sum], days: Collection[date], min_coverage: float | None
) -> Iterator[Alert]:
    for day in sorted(days):
        counts = [
            (sum(one.usable.values()), sum(one.households.values())) for (of, _), one in sums.items() if of == day
        ]
        if not counts:
            continue
        usable, households = min(counts)
        if usable == 0 or (min_coverage is not None and usable < min_coverage * households):
            yield Alert("coverage", day, usable, households, min_coverage or 0.0)


def _conflict_alerts(conflicts: Mapping[date, LostReadings], days: Collection[date]) -> Iterator[Alert]:
    for day, found in conflicts.items():
        if day in days and found.share > MOST_CONFLICTS:
            yield Alert("conflicts", day, found.lost, found.lost + found.kept, MOST_CONFLICTS)


def format_alerts(alerts: Sequence[Alert]) -> list[str]:
    """Return one line per kind of alert, the days with the smallest coverage or the most conflicts first."""
    few = sorted((alert for alert in alerts if alert.kind == "coverage"), key=lambda alert: alert.share)
    lost = sorted((alert for alert in alerts if alert.kind == "conflicts"), key=lambda alert: -alert.share)
    lines = []
    if few:
        below = f"below [alerts] min_coverage = {few[0].limit:g}" if few[0].limit else "0"
        named = _named(few, "usable of")
        lines.append(f"warning: usable households {below} on {_days(len(few))}: {named}. alerts.jsonl lists every day.")
    if lost:
        named = _named(lost, "readings lost of")
        lines.append(
            f"warning: more than {MOST_CONFLICTS:.0%} of the readings lost to conflicting rows on {_days(len(lost))}: "
            f"{named}. alerts.jsonl lists every day."
        )
    return lines


def _days(number: int) -> str:
    return f"{number:,} due day{'s' * (number != 1)}"


def _named(alerts: Sequence[Alert], what: str) -> str:
    shown = ", ".join(f"{alert.day} ({alert.part:,} {what} {alert.whole:,})" for alert in alerts[:_MOST_NAMED])
    return shown + (", ..." if len(alerts) > _MOST_NAMED else "")
