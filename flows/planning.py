"""What `agedp plan` says: the due days, their loss and noise, where the promise ends, and the contract."""

from __future__ import annotations

import json
from typing import Any

from agedp_data.ledger import Release
from agedp_data.losses import epsilon
from flows.words import deviation_kwh, waiting_lines, yardstick_line
from pipelines.sanitise import Prospect, foresee
from pipelines.work import Work

_SHOWN = 5
_HEADING = "day         publish on  series          homes   epsilon   noise sd kWh a home"


def plan_json(work: Work) -> dict[str, Any]:
    """Return the plan for machines."""
    found = foresee(work)
    ahead = found.outlook
    return {
        "population": work.run.population.name,
        "due": [_row(row) for row in found.now.releases],
        "waiting": [day.isoformat() for day in found.waiting],
        "refused": "" if found.now.refused is None else str(found.now.refused),
        "spent": epsilon(found.spent),
        "last_possible_day": ahead.last_day.isoformat() if ahead.last_day and ahead.ended_by_promise else "",
        "contract": work.promise,
    }


def _row(row: Release) -> dict[str, Any]:
    line: dict[str, Any] = {
        "day": row.day,
        "series": row.series,
        "state": row.state,
        "publish_on": row.published_on,
        "households": dict(zip(row.cells, row.households, strict=True)),
        "epsilon": epsilon(row.loss),
    }
    return line | ({"noise_sd_kwh": deviation_kwh(row)} if row.state == "released" else {})


def plan_words(work: Work) -> str:
    """Return the due days of a run that was planned, as a public table."""
    days = work.agenda.due
    if not days:
        return "Nothing is due that is not released already."
    head = ["| day | publish on | homes |", "|---|---|---|"]
    return "\n".join([*head, *(f"| {due.day} | {due.publish_on} | {due.households} |" for due in days)])


def plan_lines(work: Work) -> list[str]:
    """Return the plan for people."""
    found = foresee(work)
    return [
        *_due_lines(found.now.releases),
        *waiting_lines(found.waiting),
        *_spent_lines(work, found),
        "contract, as it will be registered:",
        *(f"  {line}" for line in json.dumps(work.promise, indent=2).splitlines()),
    ]


def _due_lines(rows: tuple[Release, ...]) -> list[str]:
    if not rows:
        return ["nothing is due that is not released already"]
    lines = [f"{len(rows)} releases are due:", _HEADING]
    shown = list(rows) if len(rows) <= 2 * _SHOWN else [*rows[:_SHOWN], None, *rows[-_SHOWN:]]
    lines += ["..." if row is None else _due_line(row) for row in shown]
    deviations = [deviation_kwh(row) for row in rows if row.state == "released"]
    if deviations:
        lines.append(yardstick_line(max(deviations)))
    return lines


def _due_line(row: Release) -> str:
    start = f"{row.day}  {row.published_on}  {row.series:14s}  {sum(row.households):5d}   "
    if row.state != "released":
        return start + "skipped: no delivery, or fewer homes on the roster than [population] min_households"
    return start + f"{epsilon(row.loss):8s}  {deviation_kwh(row):.3f}"


def _spent_lines(work: Work, found: Prospect) -> list[str]:
    """Return what is and would be spent of the total, and where the promise ends."""
    planned = sum(row.loss for row in found.now.releases)
    total = work.run.promise.epsilon_total
    of_total = "no total cap" if total == "unlimited" else f"of epsilon_total = {total}"
    lines = [
        f"about one household, all days together: epsilon {epsilon(found.spent)} is spent, these releases add "
        f"{epsilon(planned)}; {of_total}"
    ]
    ahead = found.outlook
    if found.now.refused is not None:
        last = found.now.releases[-1].day if found.now.releases else "none"
        lines.append(f"the promise ends: last possible day {last}; then {found.now.refused}")
    elif ahead.next_day is not None:
        end = "the promise ends there" if ahead.ended_by_promise else "as far as the period, or ten years, go"
        lines.append(f"last possible day, released one by one: {ahead.last_day or 'none'} ({end})")
    return lines
