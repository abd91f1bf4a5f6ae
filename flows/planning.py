"""What `agedp plan` says: the due days, their loss and noise, where the promise ends, the contract."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

from agedp_data.errors import RunFileError
from agedp_data.losses import format_epsilon
from agedp_data.notions import Promise
from agedp_data.statement import bound_entry
from flows.offers_json import promises_json
from flows.preflight_text import planned_preflight_lines
from flows.promising import promises_lines
from flows.words import (
    counted,
    deviation,
    promised_lines,
    skips_json,
    skips_text,
    waiting_lines,
    yardstick_line,
)
from pipelines.plan import PlannedRelease, format_end_reason
from pipelines.promise.grant import DAYS_NEAR
from pipelines.promise.offers import ComparisonTarget
from pipelines.promise.outlook import Skip
from pipelines.sanitise import RunOutlook, check_corrections_declared, forecast_run
from pipelines.work import Work

_SHOWN = 5
_YEAR = 365
_HEADING = "day         publish on  series          homes   epsilon   noise sd kWh a home"


def plan_json(work: Work) -> dict[str, Any]:
    """Return the plan for machines."""
    found = forecast_run(work)
    ended = _ended(work, found)
    return {
        "population": work.run.population.name,
        "due": [_row(work, one) for one in found.now.planned],
        "skipped_ahead": skips_json(_skipped_ahead(found)),
        "waiting": [day.isoformat() for day in found.waiting],
        "refused": "" if found.now.refused is None else str(found.now.refused),
        "spent": format_epsilon(found.spent),
        "last_possible_day": _newest(work) if ended else _last_day(found),
        "ended": ended,
        **({"mean_noise_by_schedule": means} if (means := _alternatives(work, found)) else {}),
        **({} if work.rows() else {"notions": _notions_json(work)}),
        "contract": work.promise,
    }


def _last_day(found: RunOutlook) -> str:
    ahead = found.outlook
    return ahead.last_day.isoformat() if ahead.last_day and ahead.ended_by_promise else ""


def _notions_json(work: Work) -> dict[str, Any]:
    try:
        return promises_json(work, ComparisonTarget())
    except RunFileError as error:
        return {"lacking": str(error)}


def _row(work: Work, planned: PlannedRelease) -> dict[str, Any]:
    row = planned.row
    series = work.run.series[row.series]
    line: dict[str, Any] = {
        "day": row.day,
        "series": row.series,
        "state": row.state,
        "publish_on": row.published_on,
        "households": series.by_group(row.cells, row.households),
        "epsilon": format_epsilon(row.loss),
    }
    if row.state != "released":
        return line | {"why": planned.skip_reason}
    sd, unit = deviation(row, series)
    return line | {f"noise_sd_{unit}": sd}


def plan_words(work: Work) -> str:
    """Return the due days of a run that was planned, as a public table."""
    days = work.due_days.due
    if not days:
        return "Nothing is due that is not released already."
    head = ["| day | publish on | households |", "|---|---|---|"]
    return "\n".join([*head, *(f"| {due.day} | {due.publish_on} | {due.households} |" for due in days)])


def plan_lines(work: Work) -> list[str]:
    """Return the plan for people."""
    found = forecast_run(work)
    return [
        *_due_lines(work, found.now.planned),
        *waiting_lines(found.waiting),
        *_delivery_lines(work),
        *planned_preflight_lines(work),
        *_spent_lines(work, found),
        *_horizon_lines(work),
        *filter(None, [work.run.notion.remark]),
        *_alternatives_lines(work, found),
        *(["risk against error over age, interval and loss: `agedp plan --frontier`"] if work.model else []),
        *([] if found.outlook.next_day is None else _notions_lines(work)),
        "contract, as it will be registered:",
        *(f"  {line}" for line in json.dumps(work.promise, indent=2).splitlines()),
    ]


def _notions_lines(work: Work) -> list[str]:
    """Return every notion beside the promise before the first release, when one can still choose; then, where it is."""
    try:
        if not work.rows():
            return ["", *promises_lines(work, ComparisonTarget()), ""]
    except RunFileError as error:
        return [str(error)]
    return ["which promise of every notion keeps the same figure, and at what noise: `agedp plan --notions`"]


def _due_lines(work: Work, planned: tuple[PlannedRelease, ...]) -> list[str]:
    if not planned:
        return ["nothing is due that is not released already"]
    kept = [one.row for one in planned if one.row.state == "released"]
    skipped = f" and {len(planned) - len(kept)} will be skipped" if len(kept) < len(planned) else ""
    lines = [f"{counted(len(kept), 'release')} {'is' if len(kept) == 1 else 'are'} due{skipped}:", _HEADING]
    shown = list(planned) if len(planned) <= 2 * _SHOWN else [*planned[:_SHOWN], None, *planned[-_SHOWN:]]
    lines += ["..." if one is None else _due_line(work, one) for one in shown]
    lines += _skipped_lines(planned)
    noises = [deviation(row, work.run.series[row.series]) for row in kept]
    if means := [sd for sd, unit in noises if unit == "kwh"]:
        lines.append(yardstick_line(max(means)))
    return lines


def _due_line(work: Work, planned: PlannedRelease) -> str:
    row, series = planned.row, work.run.series[planned.row.series]
    homes = sum(series.by_group(row.cells, row.households).values())
    start = f"{row.day}  {row.published_on}  {row.series:14s}  {homes:5d}   "
    if row.state != "released":
        return f"{start}skipped: {planned.skip_reason}"
    sd, unit = deviation(row, series)
    return start + f"{format_epsilon(row.loss):8s}  {sd:.3f}" + ("" if unit == "kwh" else " homes (of each count)")


def _skipped_lines(planned: tuple[PlannedRelease, ...]) -> list[str]:
    """Return by reason which days will be skipped, whether or not their lines are shown."""
    reasons: dict[str, list[Skip]] = {}
    for one in planned:
        if one.skip_reason:
            reasons.setdefault(one.skip_reason, []).append((date.fromisoformat(one.row.day), one.row.series))
    return [f"skipped ({why}): {skips_text(skips)}" for why, skips in reasons.items()]


def _delivery_lines(work: Work) -> list[str]:
    """Return what a live run file leaves open: what a first run will ask for, and whether a day was delivered."""
    schedule, missing = work.run.schedule, []
    try:
        check_corrections_declared(work)
    except RunFileError as error:
        missing = [str(error)]
    if schedule.mode != "live" or schedule.wait_for is not None:
        return missing
    return [
        *missing,
        "no [schedule] wait_for: a day is released at its age, delivered or not, and what is missing then stays so",
    ]


def _spent_lines(work: Work, found: RunOutlook) -> list[str]:
    """Return what is and would be spent of the total, and where the promise ends."""
    planned = sum(row.loss for row in found.now.releases)
    total = work.run.promise.epsilon_total
    of_total = "no total cap" if total == "unlimited" else f"of epsilon_total = {total:f}"
    lines = [
        f"about one household, all days together: epsilon {format_epsilon(found.spent)} is spent, these releases add "
        f"{format_epsilon(planned)}; {of_total}",
        *_promised_lines(work, found),
    ]
    lines += _end_lines(work, found)
    if later := _skipped_ahead(found):
        lines.append(f"days that will be skipped later ({DAYS_NEAR}): {skips_text(later)}")
    return lines


def _end_lines(work: Work, found: RunOutlook) -> list[str]:
    """Return where the promise ends, or when it ended and why."""
    ahead = found.outlook
    if ended := _ended(work, found):
        return [f"the series has ended: last released day {_newest(work)}; {ended}"]
    if found.now.refused is not None:
        last = found.now.releases[-1].day if found.now.releases else "none"
        return [f"the promise ends: last possible day {last}; then {found.now.refused}"]
    if ahead.next_day is None:
        return []
    end = "the promise ends there" if ahead.ended_by_promise else "as far as the period, or ten years, go"
    return [f"last possible day, if each is released when it is due: {ahead.last_day or 'none'} ({end})"]


def _ended(work: Work, found: RunOutlook) -> str:
    """Return why nothing is released any more, "" if something will be, or nothing ever was."""
    ahead, rows = found.outlook, work.rows()
    if not rows or found.now.releases:
        return ""
    if found.now.refused is not None:
        return str(found.now.refused)
    if ahead.next_day is None:
        return f"its period ended with {work.run.schedule.last_day}"
    if ahead.last_day is None and ahead.ended_by_promise:
        return ahead.stopped or ahead.refusal or format_end_reason(work.terms, rows)
    return ""


def _newest(work: Work) -> str:
    return max((row.day for row in work.rows() if row.state == "released"), default="none")


def _promised_lines(work: Work, found: RunOutlook) -> list[str]:
    """Return what the figure that the promise bounds comes to with these releases."""
    notion, rows = work.run.notion, [*work.rows(), *found.now.releases]
    if not found.now.releases:
        return []
    figures = notion.figures(rows, work.terms.leakage_bounds[0], None)
    told = promised_lines(notion, {figure.name: bound_entry(figure, notion.limits) for figure in figures})
    return [f"with these releases: {line}" for line in told]


def _horizon(work: Work) -> int | None:
    """Return after how many releases the series is over, if the promise says so."""
    horizon: object = getattr(work.run.promise, "horizon_days", None)
    return horizon if isinstance(horizon, int) else None


def _horizon_lines(work: Work) -> list[str]:
    """Return one line where a promise is spread over another number of days than are to be released."""
    horizon, days = _horizon(work), work.run.schedule.days
    if horizon is None or days is None or horizon == days:
        return []
    said = f"horizon_days = {horizon}, but [schedule] has {days} days: "
    if horizon < days:
        return [f"{said}the series is over after {horizon} of them"]
    return [f"{said}what the other {horizon - days} would spend is not spent; horizon_days = {days} has less noise"]


def _alternatives(work: Work, found: RunOutlook) -> dict[str, float]:
    """Return the mean noise scale by schedule."""
    notion = work.run.notion  # over what is published, as it is enforced
    return notion.alternatives(_compared_days(work, found)) if isinstance(notion, Promise) else {}


def _compared_days(work: Work, found: RunOutlook) -> int:
    """Return over how many days schedules are compared: the promise's, or those that are due now, or a year."""
    return _horizon(work) or max(len({one.row.day for one in found.now.planned}), _YEAR)


def _alternatives_lines(work: Work, found: RunOutlook) -> list[str]:
    """Return one line that sets the promised schedule beside the others, if there are others."""
    means = [f"{name} {mean:.4g}" for name, mean in _alternatives(work, found).items()]
    over = f"over {_compared_days(work, found)} days, one published each day"
    said = f"mean noise scale by schedule {over}, as a multiple of clamp_kwh, before caps: {', '.join(means)}"
    return [said] if means else []


def _skipped_ahead(found: RunOutlook) -> list[Skip]:
    """Return the days that will be skipped once they are due, if every day is released then."""
    due = max((one.row.day for one in found.now.planned), default="")
    return [(day, series) for day, series in found.outlook.skipped if day.isoformat() > due and not series]
