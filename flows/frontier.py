"""What `agedp plan --frontier` says: the least risk for each error, for people and for machines."""

from __future__ import annotations

import math
from typing import Any

from flows.words import change_json, change_words
from pipelines.promise.frontier import Frontier, SchedulePoint, compute_frontier
from pipelines.work import Work


def frontier_json(work: Work) -> dict[str, Any]:
    """Return the frontier for machines; a risk without bound is null."""
    found = compute_frontier(work)
    return {
        "series": found.series,
        "households": found.households,
        "method": found.method,
        "target_risk": _finite(found.target),
        **change_json(found.change),
        "choices": [_choice_json(one) for one in found.choices],
    }


def _choice_json(one: SchedulePoint) -> dict[str, Any]:
    return {
        "epsilon": one.loss,
        "age_days": one.age_days,
        "interval_days": one.interval_days,
        "risk": _finite(one.risk),
        "adds_up_to": one.adds_up_to,
        "ended_by": one.ended_by,
        "error_kwh": one.error_kwh,
        "noise_sd_kwh": one.noise_kwh,
        "total_lasts_days": one.days,
        "promised": one.promised,
        "cheapest": one.cheapest,
    }


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def frontier_lines(work: Work) -> list[str]:
    """Return the frontier for people."""
    found = compute_frontier(work)
    return [
        f"least risk for each error, {found.series}, {found.households} homes, "
        f"method {found.method}, losses up to the cap",
        f"error: noise, and {found.change.kwh:.2f} kWh a home that a mean moves from day to day,",
        f"   {change_words(found.change)}",
        "   error kWh   noise kWh       risk    epsilon   age days   every days   epsilon_total lasts",
        *(_choice_line(one) for one in found.choices),
        *_marked_lines(found),
        "This version releases every day: an interval of several days is for comparison.",
    ]


def _choice_line(one: SchedulePoint) -> str:
    mark = ("=" if one.promised else "") + (">" if one.cheapest else "")
    lasts = "for ever" if one.days is None else f"{one.days:,} days"
    return (
        f"{mark:2s}{one.error_kwh:10.3f}  {one.noise_kwh:10.3f} {_risk(one):>10s} {one.loss:10.4f} {one.age_days:10d} "
        f"{one.interval_days:12d}   {lasts}"
    )


def _risk(one: SchedulePoint) -> str:
    """Return the peak; without one what the releases add up to, where something ends them."""
    if math.isfinite(one.risk):
        return f"{one.risk:.4f}"
    return "no bound" if one.adds_up_to is None else f"+{one.adds_up_to:.4f}"


def _marked_lines(found: Frontier) -> list[str]:
    own = [one for one in found.choices if one.promised]
    best = [one for one in found.choices if one.cheapest]
    lines = ["= what the run file says now"] if own else []
    if ends := {one.ended_by for one in found.choices if not math.isfinite(one.risk) and one.ended_by}:
        lines.append(f"+ grows with every release: what they add up to until {' or '.join(sorted(ends))} ends them")
    if best:
        lines.append(
            f"> least error of daily releases at a risk of at most {found.target:.4g}, which is the run file's"
        )
    return lines
