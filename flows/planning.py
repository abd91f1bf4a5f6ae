"""What `agedp plan` says: the due days, their loss and noise, where the promise ends, and the contract."""

from __future__ import annotations

import json
from typing import Any

from agedp_data.config import contract
from agedp_data.errors import AgedpError
from agedp_data.ledger import Release
from agedp_data.losses import epsilon
from flows.words import deviation_kwh, yardstick_line
from pipelines.sanitise import foresee
from pipelines.work import Work

_SHOWN = 5
_HEADING = "day         publish on  series          homes   epsilon   noise sd kWh a home"


def plan_json(work: Work) -> dict[str, Any]:
    """Return the plan for machines."""
    found = foresee(work)
    return {
        "population": work.run.population.name,
        "due": [_row(row) for row in found.releases],
        "refused": "" if found.refused is None else str(found.refused),
        "contract": _contract(work),
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
        *_due_lines(found.releases),
        *_spent_lines(found.releases, found.refused),
        "contract, as it will be registered:",
        *(f"  {line}" for line in json.dumps(_contract(work), indent=2).splitlines()),
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
        return start + "skipped: fewer homes on the roster than [population] min_households"
    return start + f"{epsilon(row.loss):8s}  {deviation_kwh(row):.3f}"


def _spent_lines(rows: tuple[Release, ...], refused: AgedpError | None) -> list[str]:
    total = sum(row.loss for row in rows)
    lines = [f"these releases would say at most epsilon {epsilon(total)} about one household, all days together"]
    if refused is not None:
        last = rows[-1].day if rows else "none"
        lines.append(f"the promise ends: last possible day {last}; then {refused}")
    return lines


def _contract(work: Work) -> dict[str, Any]:
    return contract(work.run, model=work.model.id if work.model else None)
