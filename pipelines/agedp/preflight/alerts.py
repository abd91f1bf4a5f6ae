"""SUMS and FACTS of the due days -> ALERTS for the operator. Confidential; they decide nothing that is published.

Decisions. With every run file an alert is raised by a day without a usable household, a day that loses more than 5 %
of its readings to conflicts, a new file with more than 5 % rejected rows, and a file that is rejected as a whole. A
low coverage above 0 raises an alert only if [alerts] min_coverage sets a limit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final, Literal

from agedp.preflight.input_checks import MAX_CONFLICT_SHARE
from agedp.preflight.input_facts import MAX_REJECTED_SHARE, InputFacts
from agedp.stage_values import DailySum
from agedp.store.conflicts import LostReadings

_MAX_NAMED: Final = 5


@dataclass(frozen=True, slots=True)
class Alert:
    """One alert: of `total` (households, readings, rows) `part` are usable, or lost; `limit` is a share.

    `about` names the file of an alert about a file, or contains the error about it; `day` is then the newest due day.
    """

    kind: Literal["coverage", "conflicts", "rejected", "unreadable"]
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
    alerts = [*_coverage_alerts(sums, days, min_coverage), *_conflict_alerts(facts.conflicts, days)]
    return tuple(sorted([*alerts, *_file_alerts(facts, max(days))], key=lambda alert: (alert.day, alert.kind)))


def _file_alerts(facts: InputFacts, day: date) -> Iterator[Alert]:
    for file in facts.rejecting_files:
        yield Alert("rejected", day, file.rejected, file.rows, MAX_REJECTED_SHARE, file.name)
    for problem in facts.unreadable:
        yield Alert("unreadable", day, 1, facts.files, 0.0, problem)


def _coverage_alerts(
    sums: Mapping[tuple[date, str], DailySum], days: Collection[date], min_coverage: float | None
) -> Iterator[Alert]:
    for day in sorted(days):
        counts = [
            (sum(daily_sum.usable.values()), sum(daily_sum.households.values()))
            for (summed_day, _), daily_sum in sums.items()
            if summed_day == day
        ]
        if not counts:
            continue
        usable, households = min(counts)
        if usable == 0 or (min_coverage is not None and usable < min_coverage * households):
            yield Alert("coverage", day, usable, households, min_coverage or 0.0)


def _conflict_alerts(conflicts: Mapping[date, LostReadings], days: Collection[date]) -> Iterator[Alert]:
    for day, lost_readings in conflicts.items():
        if day in days and lost_readings.share > MAX_CONFLICT_SHARE:
            yield Alert(
                "conflicts", day, lost_readings.lost, lost_readings.lost + lost_readings.remaining, MAX_CONFLICT_SHARE
            )


def format_alerts(alerts: Sequence[Alert]) -> list[str]:
    """Return one line per kind of alert, for the operator's terminal.

    At most five days or files are named, first the days with the smallest coverage or the most conflicts. The lines are
    confidential.
    """
    few = sorted((alert for alert in alerts if alert.kind == "coverage"), key=lambda alert: alert.share)
    lost = sorted((alert for alert in alerts if alert.kind == "conflicts"), key=lambda alert: -alert.share)
    lines = []
    if few:
        below = f"below [alerts] min_coverage = {few[0].limit:g}" if few[0].limit else "0"
        named = _format_shares(few, "usable of")
        lines.append(
            f"warning: usable households {below} on {_format_days(len(few))}: {named}. alerts.jsonl lists every day."
        )
    if lost:
        named = _format_shares(lost, "readings lost of")
        lines.append(
            f"warning: more than {MAX_CONFLICT_SHARE:.0%} of the readings lost to conflicting rows on "
            f"{_format_days(len(lost))}: {named}. alerts.jsonl lists every day."
        )
    return [*lines, *_file_lines(alerts)]


def _file_lines(alerts: Sequence[Alert]) -> Iterator[str]:
    rejecting = sorted((alert for alert in alerts if alert.kind == "rejected"), key=lambda alert: -alert.share)
    unreadable = [alert for alert in alerts if alert.kind == "unreadable"]
    if rejecting:
        named = _join_texts([f"{alert.about} ({alert.part:,} of {alert.total:,})" for alert in rejecting])
        yield (
            f"warning: more than {MAX_REJECTED_SHARE:.0%} of the rows of {_format_files(len(rejecting))} are rejected: "
            f"{named}. quality.parquet counts the reasons; was the interval or the format changed?"
        )
    if unreadable:
        named = _join_texts([alert.about for alert in unreadable])
        are = "is" if len(unreadable) == 1 else "are"
        problem = f"{_format_files(len(unreadable))} cannot be parsed and {are} rejected as a whole"
        yield f"warning: {problem}: {named}. Correct the files and deliver them again."


def _format_files(number: int) -> str:
    return f"{number:,} input file{'s' * (number != 1)}"


def _join_texts(texts: Sequence[str]) -> str:
    return "; ".join(texts[:_MAX_NAMED]) + ("; ..." if len(texts) > _MAX_NAMED else "")


def _format_days(number: int) -> str:
    return f"{number:,} due day{'s' * (number != 1)}"


def _format_shares(alerts: Sequence[Alert], unit: str) -> str:
    listed = ", ".join(f"{alert.day} ({alert.part:,} {unit} {alert.total:,})" for alert in alerts[:_MAX_NAMED])
    return listed + (", ..." if len(alerts) > _MAX_NAMED else "")
