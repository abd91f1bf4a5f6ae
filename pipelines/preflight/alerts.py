"""SUMS and FACTS of the due days -> ALERTS for the operator. Confidential; they decide nothing that is published.

Decisions. Whatever the run file says, an alert is raised by a day without a usable household, a day that loses more
than 5 % of its readings to conflicts, a new file that loses more than 5 % of its rows, and a file that is set apart as
a whole. Other shares of the roster raise one only if [alerts] min_coverage names a limit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final, Literal

from pipelines.aggregate import DailySum
from pipelines.preflight.checks import MOST_CONFLICTS
from pipelines.preflight.input_facts import MOST_REJECTED, InputFacts
from pipelines.readings.conflicts import LostReadings

_MOST_NAMED: Final = 5


@dataclass(frozen=True, slots=True)
class Alert:
    """What is remarkable: of `whole` (households, readings, rows) `part` are usable, or lost; `limit` as a share.

    `about` names the file of an alert about a file, or says what is wrong with it; `day` is then the newest due day.
    """

    kind: Literal["coverage", "conflicts", "rejected", "unreadable"]
    day: date
    part: int
    whole: int
    limit: float
    about: str = ""

    @property
    def share(self) -> float:
        """Return part / whole, 0 of nothing."""
        return self.part / self.whole if self.whole else 0.0


def find_alerts(
    sums: Mapping[tuple[date, str], DailySum], facts: InputFacts, days: Collection[date], *, min_coverage: float | None
) -> tuple[Alert, ...]:
    """Return the alerts of these days, by day; of several series that with the fewest usable households counts."""
    alerts = [*_coverage_alerts(sums, days, min_coverage), *_conflict_alerts(facts.conflicts, days)]
    return tuple(sorted([*alerts, *_file_alerts(facts, max(days))], key=lambda alert: (alert.day, alert.kind)))


def _file_alerts(facts: InputFacts, day: date) -> Iterator[Alert]:
    for file in facts.rejecting_files:
        yield Alert("rejected", day, file.rejected, file.rows, MOST_REJECTED, file.name)
    for what in facts.unreadable:
        yield Alert("unreadable", day, 1, facts.files, 0.0, what)


def _coverage_alerts(
    sums: Mapping[tuple[date, str], DailySum], days: Collection[date], min_coverage: float | None
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
    return [*lines, *_file_lines(alerts)]


def _file_lines(alerts: Sequence[Alert]) -> Iterator[str]:
    rejecting = sorted((alert for alert in alerts if alert.kind == "rejected"), key=lambda alert: -alert.share)
    unreadable = [alert for alert in alerts if alert.kind == "unreadable"]
    if rejecting:
        named = _listed([f"{alert.about} ({alert.part:,} of {alert.whole:,})" for alert in rejecting])
        yield (
            f"warning: more than {MOST_REJECTED:.0%} of the rows of {_files(len(rejecting))} are rejected: {named}. "
            "quality.parquet counts the reasons; was the interval or the format changed?"
        )
    if unreadable:
        named = _listed([alert.about for alert in unreadable])
        are = "is" if len(unreadable) == 1 else "are"
        what = f"{_files(len(unreadable))} cannot be understood and {are} set apart as a whole"
        yield f"warning: {what}: {named}. Mend and deliver again."


def _files(number: int) -> str:
    return f"{number:,} input file{'s' * (number != 1)}"


def _listed(texts: Sequence[str]) -> str:
    return "; ".join(texts[:_MOST_NAMED]) + ("; ..." if len(texts) > _MOST_NAMED else "")


def _days(number: int) -> str:
    return f"{number:,} due day{'s' * (number != 1)}"


def _named(alerts: Sequence[Alert], what: str) -> str:
    shown = ", ".join(f"{alert.day} ({alert.part:,} {what} {alert.whole:,})" for alert in alerts[:_MOST_NAMED])
    return shown + (", ..." if len(alerts) > _MOST_NAMED else "")
