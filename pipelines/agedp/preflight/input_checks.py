"""Facts about the input files -> FINDINGS: ok, a warning, or a refusal because a release would be useless.

Pure functions of `InputFacts` and of the run file. The checks are in the order of cause and effect: hourly
files also cover no day, so the first refusal is the one to fix.

Decisions. An unusual daily use is a warning, not a refusal: meters of single appliances may read 0 on most days. A
share of rejected rows above 0.2 is refused by default: the publishers' files lose below 0.01, and 0.2 is one supplier
of five whose files have a different form. The public text of a refusal contains no count, date or name from the files
except the interval, which is a property of the meters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final, Literal

from agedp.preflight.input_facts import MAX_REJECTED_SHARE, InputFacts
from agedp_data.config import RunFile
from agedp_data.datasets.intervals import interval_remedy
from agedp_data.datasets.validation import RejectionReason

Verdict = Literal["ok", "warning", "refused"]

PLAUSIBLE_DAY_KWH: Final = (0.1, 300.0)
"""A median of complete household-days outside these limits is implausible: Wh for kWh, or the reverse [kWh]."""
MAX_CONFLICT_SHARE: Final = 0.05
"""A larger share of a day's readings lost to conflicting rows is a warning."""

_MAX_LISTED_DAYS: Final = 40
_MIN_OFF_GRID_SHARE: Final = 0.3
_MAX_OTHER_SHARE: Final = 0.1
_GOOD_COVERAGE: Final = 0.9
_FINER_MINUTES: Final = (30, 15, 10, 6, 5, 3, 2, 1)


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check.

    Attributes:
        check: the name of the check.
        result: the numbers, confidential.
        verdict: "ok", "warning" or "refused".
        public: the public text of a refusal, "" otherwise.
    """

    check: str
    result: str
    verdict: Verdict = "ok"
    public: str = ""


def check_facts(facts: InputFacts, run: RunFile) -> tuple[Finding, ...]:
    """Return the findings of all checks, in the order of cause and effect.

    A pure function: it reads no file. `first_refusal` decides whether the run is refused.
    """
    return tuple(check(facts, run) for check in _CHECKS)


def first_refusal(findings: Sequence[Finding]) -> Finding | None:
    """Return the first refusal in the order of cause and effect; None if nothing is refused.

    >>> first_refusal([Finding("files", "1 file"), Finding("interval", "60 minutes", "refused")]).check
    'interval'
    """
    return next((finding for finding in findings if finding.verdict == "refused"), None)


def _check_files(facts: InputFacts, run: RunFile) -> Finding:  # noqa: ARG001  (one signature for all checks)
    names = ", ".join(facts.empty_files[:5]) + (", ..." if len(facts.empty_files) > 5 else "")
    result = f"{format_count(facts.files, 'file')}, {format_count(facts.rows, 'row')}"
    if facts.rows == 0:
        public = "[input] files: the files contain no row of data. Deliver the readings, or correct the paths."
        return Finding("files", f"{result}; empty: {names}", "refused", public)
    if facts.empty_files:
        result += f"; {format_count(len(facts.empty_files), 'file')} without a row: {names}"
    if facts.unreadable:
        result += f"; {format_count(len(facts.unreadable), 'file')} rejected as a whole: {facts.unreadable[0]}"
    return Finding("files", result, "warning" if facts.empty_files or facts.unreadable else "ok")


def _check_interval(facts: InputFacts, run: RunFile) -> Finding:
    minutes = measured_interval(facts, run)
    complete = _format_percent(facts.complete_days, facts.household_days)
    result = f"{complete} of {format_count(facts.household_days, 'household-day')} have about all of their readings"
    result += f"; {facts.off_grid_share:.1%} of the rows are off the {run.input.interval_minutes}-minute grid"
    if minutes in (0, run.input.interval_minutes) and facts.other_interval_share > _MAX_OTHER_SHARE:
        share = f"{facts.other_interval_share:.0%} of the sampled households"
        public = "[input] files: many households have another interval than the others. Deliver files of one interval."
        return Finding("interval", f"{result}; {share} have another interval than the others", "refused", public)
    if minutes in (0, run.input.interval_minutes):
        share = f"; {facts.other_interval_share:.1%} of the sampled households have another interval than the others"
        return (
            Finding("interval", result + share, "warning")
            if facts.other_interval_share
            else Finding("interval", result)
        )
    remedy = interval_remedy(minutes, is_long=run.input.named_columns is not None)
    problem = f"readings are {minutes} minutes apart, not {run.input.interval_minutes}"
    public = f"[input] files: {problem}. {remedy[0].upper()}{remedy[1:]}."
    return Finding("interval", f"{minutes} minutes; {result}", "refused", public)


def measured_interval(facts: InputFacts, run: RunFile) -> int:
    """Return the interval of the readings in minutes: the declared one unless the data contradict it, 0 if unknown.

    With a shorter interval every second, third, ... row is on the declared grid; with a longer one the rows use every
    second, third, ... interval of the day.
    """
    if facts.off_grid_share >= _MIN_OFF_GRID_SHARE:
        on_grid = (1 - facts.off_grid_share) * run.input.interval_minutes
        finer = [minutes for minutes in _FINER_MINUTES if minutes < run.input.interval_minutes]
        return next((minutes for minutes in finer if abs(on_grid - minutes) <= 0.1 * minutes), 0)
    return facts.interval_minutes


def _check_registers(facts: InputFacts, run: RunFile) -> Finding:  # noqa: ARG001
    result = f"readings of {facts.rising_share:.0%} of the sampled households rise and almost never fall"
    if facts.rising_share > 0.5:
        public = (
            "[input] files: readings rise from each to the next, so they are registers of a meter and not the use of "
            "an interval. Take differences first (docs/own-data.md, Cumulative registers)."
        )
        return Finding("registers", result, "refused", public)
    return Finding("registers", result)


def _check_rejected(facts: InputFacts, run: RunFile) -> Finding:
    reasons = sorted(facts.rejected.items(), key=lambda file: -file[1])[:3]
    result = f"{facts.rejected_share:.2%} of {format_count(facts.counted_rows, 'row')}"
    result += "".join(f"; {number:,} {reason}" for reason, number in reasons)
    if facts.rejecting_files:
        worst = max(facts.rejecting_files, key=lambda file: file.rejected / file.rows)
        number = format_count(len(facts.rejecting_files), "file")
        result += f"; {number} above {MAX_REJECTED_SHARE:.0%}, most in {worst.name}: {worst.rejected / worst.rows:.1%}"
    if facts.rejected_share <= float(run.input.max_rejected_share):
        return Finding("rejected rows", result, "warning" if facts.rejecting_files else "ok")
    max_share = float(run.input.max_rejected_share)
    public = (
        f"[input] max_rejected_share = {max_share:g}: a larger share of the rows is rejected. Compare "
        "[input] with the files; quality.parquet and store/quarantine in the confidential folder name the rows."
    )
    if reasons[0][0] == RejectionReason.ABOVE_BOUND.words:
        public += (
            " Most exceed max_half_hour_kwh: the unit is wrong, or they are registers of a meter (docs/own-data.md, "
            "Cumulative registers)."
        )
    return Finding("rejected rows", result, "refused", public)


def _check_roster(facts: InputFacts, run: RunFile) -> Finding:  # noqa: ARG001
    result = (
        f"{facts.on_roster:,} of {format_count(facts.roster, 'household')} on the roster have a reading; "
        f"{format_count(facts.households - facts.on_roster, 'household')} of the files are not on the roster"
    )
    if facts.on_roster == 0:
        public = (
            "no household of the roster has a reading in the input files; are roster and files of the same population?"
        )
        return Finding("roster", result, "refused", public)
    complete = facts.on_roster == facts.roster == facts.households
    return Finding("roster", result, "ok" if complete else "warning")


def _check_period(facts: InputFacts, run: RunFile) -> Finding:
    first, last = min(facts.coverage), max(facts.coverage)
    due = f"due days {first} to {last}"
    if facts.days is None:
        return Finding("period", f"no reading; {due}", "refused", _format_outside_period(run))
    result = f"readings {facts.days[0]} to {facts.days[1]}; {due}"
    if facts.days[1] < first or facts.days[0] > last:
        return Finding("period", result, "refused", _format_outside_period(run))
    return Finding("period", result, "ok" if facts.days[0] <= first and last <= facts.days[1] else "warning")


def _format_outside_period(run: RunFile) -> str:
    return (
        f"[schedule] first_day = {run.schedule.first_day}: the files hold no reading of a due day. Correct first_day "
        "and last_day, or deliver those days."
    )


def _check_coverage(facts: InputFacts, run: RunFile) -> Finding:  # noqa: ARG001
    household_days = sum(coverage.households for coverage in facts.coverage.values())
    usable = sum(coverage.usable for coverage in facts.coverage.values())
    least = min(
        facts.coverage.items(), key=lambda day_coverage: day_coverage[1].usable / max(day_coverage[1].households, 1)
    )
    result = (
        f"{_format_percent(usable, household_days)} of the household-days of the roster are usable; fewest on "
        f"{least[0]}: {least[1].usable:,} of {least[1].households:,} households"
    )
    if usable == 0:
        public = (
            "[input] files: no household of the roster has a usable day among the due days. Compare max_missing with "
            "the files, or deliver those days."
        )
        return Finding("coverage", result, "refused", public)
    few = sum(2 * coverage.usable < coverage.households for coverage in facts.coverage.values())
    if few:
        result += f"; fewer than half of the households on {format_count(few, 'due day')}"
    return Finding("coverage", result, "warning" if few or usable < _GOOD_COVERAGE * household_days else "ok")


def _check_absent_days(facts: InputFacts, run: RunFile) -> Finding:
    absent = facts.absent_days
    if not absent:
        return Finding("absent days", "on every due day more than a tenth of the households are usable")
    result = (
        f"{format_count(len(absent), 'due day')} with at most a tenth of the households usable: {_format_days(absent)}"
    )
    if getattr(run.schedule, "absent_days", "") != "refuse" or len(absent) == len(facts.coverage):
        return Finding("absent days", result, "warning")
    public = (
        "[schedule]: some days of the period have hardly a usable household. Shorten the period, list the days in "
        'skip_days, or write absent_days = "missing".'
    )
    return Finding("absent days", result, "refused", public)


def _check_unit(facts: InputFacts, run: RunFile) -> Finding:  # noqa: ARG001
    if facts.median_day_kwh is None:
        return Finding("unit", "no complete household-day")
    min_kwh, max_kwh = PLAUSIBLE_DAY_KWH
    plausible = min_kwh <= facts.median_day_kwh <= max_kwh
    result = f"median use of a complete household-day: {facts.median_day_kwh:.3g} kWh"
    doubt = f"; households use {min_kwh:g} to {max_kwh:g} kWh: Wh taken for kWh, or the reverse?"
    return Finding("unit", result + ("" if plausible else doubt), "ok" if plausible else "warning")


def _check_conflicts(facts: InputFacts, run: RunFile) -> Finding:  # noqa: ARG001
    if not facts.conflicts:
        return Finding("conflicts", "no due day loses a reading to conflicting rows")
    day, worst = max(facts.conflicts.items(), key=lambda day_conflicts: day_conflicts[1].share)
    result = (
        f"{format_count(len(facts.conflicts), 'due day')} with conflicting rows; most on {day}: {worst.share:.1%} lost"
    )
    if worst.share <= MAX_CONFLICT_SHARE:
        return Finding("conflicts", result)
    remedy = 'if later files correct earlier ones, write [input] corrections = "later-file"'
    return Finding("conflicts", f"{result}; {remedy}", "warning")


_CHECKS: Final[tuple[Callable[[InputFacts, RunFile], Finding], ...]] = (
    _check_files,
    _check_interval,
    _check_registers,
    _check_rejected,
    _check_roster,
    _check_period,
    _check_coverage,
    _check_absent_days,
    _check_unit,
    _check_conflicts,
)


def format_count(number: int, noun: str) -> str:
    """Return a number with its noun, such as "2 due days"."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def _format_percent(part: int, total: int) -> str:
    return f"{part / total:.1%}" if total else "0 %"


def _format_days(days: Sequence[date]) -> str:
    listed = ", ".join(_day_ranges(days[:_MAX_LISTED_DAYS]))
    return f"{listed}, ... {days[-1]}" if len(days) > _MAX_LISTED_DAYS else listed


def _day_ranges(days: Sequence[date]) -> Iterator[str]:
    """Yield the ranges of consecutive days, in order."""
    start = 0
    for i, day in enumerate(days):
        if i + 1 == len(days) or (days[i + 1] - day).days != 1:
            yield f"{days[start]}" if i == start else f"{days[start]} to {day}"
            start = i + 1


def findings_json(findings: Sequence[Finding]) -> list[Mapping[str, str]]:
    """Return the findings as JSON objects."""
    return [{"check": finding.check, "result": finding.result, "verdict": finding.verdict} for finding in findings]
