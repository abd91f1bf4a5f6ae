"""Output of `agedp plan --frontier`: the smallest risk for each error, over age and interval."""

from __future__ import annotations

import math
from typing import Any, Final

from agedp.ledger_session import LedgerSession
from agedp.planning.frontier import Frontier, SchedulePoint, compute_frontier
from agedp.signal_against_noise import three_digits
from agedp_data.series.layers import layers_of, series_text
from agedp_data.series.series import is_daily_mean
from agedp_flows.text.number_text import format_bound
from agedp_flows.text.run_text import finite_or_none
from agedp_flows.text.screen import Column, heading, table_lines, text_column
from agedp_flows.text.signal_text import yardstick_json, yardstick_text

_LEAST_RISK: Final = 0.000001
"""A smaller risk is shown as below this."""
_COLUMNS: Final = (
    *(text_column(""), Column("error kWh"), Column("noise kWh"), Column("risk"), Column("epsilon")),
    *(Column("age days"), Column("every days"), Column("epsilon_total lasts days")),
)


def frontier_json(session: LedgerSession) -> dict[str, Any]:
    """Return the frontier as JSON; an unbounded risk is null."""
    frontier = compute_frontier(session.run.run_file, session.model, session.comparison_view)
    return {
        "series": frontier.series,
        "noise_of": _label(session, frontier),
        "households": frontier.households,
        "method": frontier.method,
        "target_risk": finite_or_none(frontier.target),
        **yardstick_json(frontier.change),
        "choices": [_choice_json(choice) for choice in frontier.choices],
    }


def _choice_json(choice: SchedulePoint) -> dict[str, Any]:
    return {
        "epsilon": choice.loss,
        "age_days": choice.age_days,
        "interval_days": choice.interval_days,
        "risk": finite_or_none(choice.risk),
        "adds_up_to": choice.adds_up_to,
        "ended_by": choice.ended_by,
        "error_kwh": choice.error_kwh,
        "noise_sd_kwh": choice.noise_kwh,
        "total_lasts_days": choice.days,
        "promised": choice.promised,
        "cheapest": choice.cheapest,
    }


def _label(session: LedgerSession, frontier: Frontier) -> str:
    return series_text(frontier.series, session.run.run_file.series[frontier.series])


def _layer_lines(session: LedgerSession, frontier: Frontier) -> list[str]:
    """Return what the noise is about, and the noise of the sum, if the mean is published in layers."""
    run = session.run.run_file
    means = {name: series for name, series in run.series.items() if is_daily_mean(series)}
    scales = [means[name].width_wh / float(run.shares[name]) for name in layers_of(frontier.series, means)]
    ratio = math.hypot(*scales) / scales[0]
    label = _label(session, frontier)
    return [f"The noise is that of {label}; the sum of its layers has {ratio:.1f} times that."] if ratio > 1 else []


def frontier_lines(session: LedgerSession) -> list[str]:
    """Return the frontier as lines for the terminal."""
    frontier = compute_frontier(session.run.run_file, session.model, session.comparison_view)
    return [
        heading(
            f"Smallest risk for each error: {_label(session, frontier)}, {frontier.households} households, "
            f"method {frontier.method}, epsilon up to the cap"
        ),
        "Error: noise and the day-to-day change of the mean,",
        f"   {yardstick_text(frontier.change)}",
        *table_lines(_COLUMNS, [_choice_cells(choice) for choice in frontier.choices]),
        *_legend_lines(frontier),
        *_layer_lines(session, frontier),
        "This version releases every day: an interval of several days is for comparison.",
    ]


def _choice_cells(choice: SchedulePoint) -> tuple[str, ...]:
    mark = ("=" if choice.promised else "") + (">" if choice.cheapest else "")
    lasts = "for ever" if choice.days is None else f"{choice.days:,}"
    noises = three_digits(choice.error_kwh), three_digits(choice.noise_kwh)
    schedule = three_digits(choice.loss), str(choice.age_days), str(choice.interval_days)
    return (mark, *noises, _risk_text(choice), *schedule, lasts)


def _risk_text(choice: SchedulePoint) -> str:
    """Return the peak risk; if it is unbounded, the composed loss of all releases until the series ends."""
    if math.isfinite(choice.risk):
        return format_bound(str(choice.risk)) if choice.risk >= _LEAST_RISK else f"<{_LEAST_RISK:f}"
    return "no bound" if choice.adds_up_to is None else f"+{format_bound(str(choice.adds_up_to))}"


def _legend_lines(frontier: Frontier) -> list[str]:
    promised = [choice for choice in frontier.choices if choice.promised]
    cheapest = [choice for choice in frontier.choices if choice.cheapest]
    lines = ["= the schedule of the run file"] if promised else []
    if ends := {choice.ended_by for choice in frontier.choices if not math.isfinite(choice.risk) and choice.ended_by}:
        ended_by = " or ".join(sorted(ends))
        lines.append(f"+ grows with every release: composed loss of all releases until {ended_by} ends the series")
    if cheapest:
        target = three_digits(frontier.target) if frontier.target is not None else "none"
        lines.append(f"> smallest error of daily releases at a risk of at most {target}, the run file's")
    return lines
