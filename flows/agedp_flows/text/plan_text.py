"""Output of `agedp plan`: the due days, their loss and noise, the end of the promise, what spans come to, contract."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from agedp.budget import DAYS_NEAR, format_end_reason
from agedp.ledger_session import LedgerSession
from agedp.planning.forecast import Skip
from agedp.planning.notion_comparison import ComparisonTarget
from agedp.planning.row_noise import group_noises, smallest_group
from agedp.planning.span_price import PeriodTotals, SpanPrice, filling_loss, period_totals, span_prices
from agedp.planning.verdict import Verdict
from agedp.signal_against_noise import three_digits
from agedp.stage_values import DueDays, PlannedRelease
from agedp.stages.plan import (
    RunForecast,
    check_corrections_declared,
    check_model_accepted,
    find_due_days,
    find_verdict,
    forecast_run,
)
from agedp_data.config import RunFile
from agedp_data.epsilon import format_delta, format_epsilon
from agedp_data.errors import RunFileError
from agedp_data.notions import Promise
from agedp_data.parameters import exact_text
from agedp_data.statement.facts import state_bound
from agedp_flows.text.comparison_text import promises_json, promises_lines
from agedp_flows.text.noise_text import level_lines, noise_lines, planned_mean_lines, signal_json, signal_lines
from agedp_flows.text.number_text import count_text, format_budget, format_loss
from agedp_flows.text.run_text import (
    delta_warning_lines,
    due_lines,
    finite_or_none,
    noise_deviation,
    planned_preflight_lines,
    promised_bound_lines,
    skips_json,
    skips_text,
    waiting_lines,
)
from agedp_flows.text.screen import heading, warning

# --------------------------------------------------------------------------------------------------
# The lines and JSON of `agedp plan` about spans of days: the price of a promised delta, and the totals of a period.
# --------------------------------------------------------------------------------------------------


def span_lines(session: LedgerSession, plan: RunForecast) -> list[str]:
    """Return what a promised delta buys, and what the days of the period come to at each delta."""
    run, totals = plan.terms.run, _totals(plan)
    return [
        *delta_warning_lines(run),
        *(_price_line(price, run) for price in span_prices(run)),
        *([] if session.rows else _filling_lines(run)),
        *([] if totals is None else _total_lines(totals)),
    ]


def span_json(plan: RunForecast) -> dict[str, Any]:
    """Return the same as optional keys of the plan's JSON."""
    prices, totals = span_prices(plan.terms.run), _totals(plan)
    return {
        **({"price_of_delta": [_price_json(price) for price in prices]} if prices else {}),
        **({} if totals is None else {"period": _totals_json(totals)}),
    }


def _totals(plan: RunForecast) -> PeriodTotals | None:
    """Return what the whole period comes to; None if it has no last day, or the forecast ends before it."""
    forecast, last = plan.forecast, plan.terms.run.schedule.last_day
    if last is None:
        return None
    while last in plan.terms.run.schedule.skipped_days:
        last -= timedelta(days=1)
    newest = max((row.day for row in forecast.history), default="")
    is_whole = forecast.ended_by_promise or newest >= last.isoformat()
    return period_totals(plan.terms.run, forecast.history) if is_whole else None


def _price_line(price: SpanPrice, run: RunFile) -> str:
    ratio = f", with {price.noise_ratio:.2f} times the noise" if price.pure_loss else ""
    days, pure_sum = count_text(price.days, "day"), f"{format_loss(price.pure_total)} by their pure sum"
    bound = f"{price.key} = {format_epsilon(price.epsilon)} over {days}"
    if price.is_capped:
        cap = f"max_day_epsilon = {run.promise.max_day_epsilon:f} limits the day, {days} to {pure_sum}"
        permitted = f"{cap}; {bound} alone permits {format_budget(price.uncapped_loss)}"
    else:
        permitted = f"{bound} permits epsilon {format_budget(price.loss)} on each of them, {pure_sum}"
    without = f"Without delta it would permit {format_budget(price.pure_loss)} a day{ratio}"
    return f"delta = {format_delta(price.delta)}: {permitted}. {without}"


def _filling_lines(run: RunFile) -> Iterator[str]:
    if (price := filling_loss(run)) is not None:
        days = count_text(price.days, "day")
        yield f"epsilon_per_day = {format_budget(price.loss)} would fill {price.key} over {days}"


def _total_lines(totals: PeriodTotals) -> Iterator[str]:
    at = ", ".join(f"{format_loss(loss)} at delta = {format_delta(delta)}" for delta, loss in totals.at)
    yield (
        f"{count_text(totals.days, 'day')}, released and planned, together: epsilon {format_loss(totals.pure)} by "
        f"their pure sum; {at}"
    )
    if totals.tight is not None:
        delta, epsilon = totals.tight
        at_delta = f"{three_digits(epsilon)} at delta = {format_delta(delta)}"
        yield f"   tighter, not enforced (privacy-loss distribution): {at_delta}"


def _price_json(price: SpanPrice) -> dict[str, Any]:
    return {
        "key": price.key,
        "epsilon": format_epsilon(price.epsilon),
        "delta": exact_text(price.delta),
        "days": price.days,
        "epsilon_a_day": format_epsilon(price.loss),
        "pure_total": format_epsilon(price.pure_total),
        "epsilon_a_day_without_delta": format_epsilon(price.pure_loss),
        "noise_ratio_without_delta": finite_or_none(price.noise_ratio),
    }


def _totals_json(totals: PeriodTotals) -> dict[str, Any]:
    tight = {} if totals.tight is None else {"delta": exact_text(totals.tight[0]), "epsilon": totals.tight[1]}
    return {
        "days": totals.days,
        "pure_total": format_epsilon(totals.pure),
        "totals": [{"delta": exact_text(delta), "epsilon": format_epsilon(loss)} for delta, loss in totals.at],
        **({"tighter_not_enforced": tight} if tight else {}),
    }


# --------------------------------------------------------------------------------------------------
# Output of `agedp plan`: the due days, their loss and noise, the end of the promise, what spans come to, contract.
# --------------------------------------------------------------------------------------------------

_YEAR = 365


def plan_json(session: LedgerSession) -> dict[str, Any]:
    """Return the plan as JSON."""
    plan = forecast_run(session)
    reason = _ended_reason(session, plan)
    return {
        "population": session.run.run_file.population.name,
        "due": [_planned_json(session, planned_release) for planned_release in plan.now.planned],
        "skipped_ahead": skips_json(_skipped_ahead(plan)),
        "waiting": [day.isoformat() for day in plan.due_days.waiting],
        "refused": next(iter(_refusals(session, plan.verdict)), str(plan.now.refused or "")),
        **({} if plan.verdict is None else {"verdict": plan.verdict.facts}),
        "spent": format_epsilon(plan.spent),
        "last_possible_day": _last_released_day(session) if reason else _last_day(plan),
        "ended": reason,
        "signal": signal_json(session),
        **span_json(plan),
        **({"mean_noise_by_schedule": means} if (means := _mean_noise_by_schedule(session, plan)) else {}),
        **({} if session.rows else {"notions": _notions_json(session)}),
        "contract": session.promise,
    }


def _last_day(plan: RunForecast) -> str:
    forecast = plan.forecast
    return forecast.last_day.isoformat() if forecast.last_day and forecast.ended_by_promise else ""


def _notions_json(session: LedgerSession) -> dict[str, Any]:
    try:
        return promises_json(session, ComparisonTarget())
    except RunFileError as error:
        return {"lacking": str(error)}


def _planned_json(session: LedgerSession, planned: PlannedRelease) -> dict[str, Any]:
    row = planned.row
    series = session.run.run_file.series[row.series]
    counted = {of.group: of.households for of in group_noises(row, series)}
    line: dict[str, Any] = {
        "day": row.day,
        "series": row.series,
        "state": row.state,
        "publish_on": row.published_on,
        "households": counted,
        "epsilon": format_epsilon(row.loss),
    }
    if row.state != "released":
        return line | {"why": planned.skip_reason}
    sd, unit = noise_deviation(row, series)
    by_kind = {f"noise_sd_kwh_{of.day_kind}": of.noise_sd for of in smallest_group(row, series) if of.day_kind}
    return line | {f"noise_sd_{unit}": sd} | by_kind


def plan_table(due_days: DueDays) -> str:
    """Return the due days of a planned run as a public Markdown table."""
    if not due_days.due:
        return "Nothing is due that is not released already."
    head = ["| day | publish on | households |", "|---|---|---|"]
    return "\n".join([*head, *(f"| {due.day} | {due.publish_on} | {due.households} |" for due in due_days.due)])


def plan_lines(session: LedgerSession, *, verbose: bool = False) -> list[str]:
    """Return the plan as lines for the terminal.

    With `verbose` also sums over spans, other schedules, all notions before the first release, and
    the contract.
    """
    plan = forecast_run(session)
    return [
        *(warning(f"Will be refused: {refusal}") for refusal in _refusals(session, plan.verdict)),
        *(plan.verdict.lines if plan.verdict else []),
        *due_lines(session.run.run_file, plan.now.planned, verbose=verbose),
        *map(warning, level_lines(session.run.run_file, session.run.roster)),
        *_signal_lines(session, plan.now.planned),
        *waiting_lines(plan.due_days.waiting),
        *_delivery_lines(session),
        *planned_preflight_lines(session, plan.due_days),
        *_spent_lines(session, plan),
        *_horizon_lines(session),
        *filter(None, [plan.terms.notion.remark]),
        *(span_lines(session, plan) if verbose or session.run.run_file.promise.delta is not None else []),
        *(_detail_lines(session, plan) if verbose else []),
    ]


def _detail_lines(session: LedgerSession, plan: RunForecast) -> list[str]:
    """Return what `--verbose` adds: comparisons with other promises, and the contract."""
    return [
        *_alternatives_lines(session, plan),
        *([] if plan.forecast.next_day is None else _notions_lines(session)),
        heading("contract, as it will be registered:"),
        *(f"  {line}" for line in json.dumps(session.promise, indent=2).splitlines()),
    ]


def _notions_lines(session: LedgerSession) -> list[str]:
    """Return the comparison of all notions before the first release; later, the option that prints it."""
    try:
        if not session.rows:
            return ["", *promises_lines(session, ComparisonTarget()), ""]
    except RunFileError as error:
        return [str(error)]
    return ["Notions that guarantee the same bound, and their noise: `agedp plan --notions`"]


def _signal_lines(session: LedgerSession, planned: tuple[PlannedRelease, ...]) -> list[str]:
    """Return the signal of the released means, before the first release the noise of the planned ones; then the rest.

    The rest are the sentences about profiles, coverage and means of periods, which have no signal.
    """
    rows = [release.row for release in planned if release.row.state == "released"]
    run = session.run.run_file
    means = signal_lines(session) or planned_mean_lines(rows, run.series)
    return [*means, *noise_lines([*session.rows, *rows], run)]


def is_refused(session: LedgerSession) -> bool:
    """Return whether a first run refuses the run file, before it draws anything."""
    return bool(_refusals(session, find_verdict(session, find_due_days(session))))


def _refusals(session: LedgerSession, verdict: Verdict | None) -> list[str]:
    """Return why a first run refuses the run file, before it draws anything."""
    refusals = []
    for check in (check_corrections_declared, check_model_accepted):
        try:
            check(session)
        except RunFileError as error:
            refusals.append(str(error))
    if verdict is not None and verdict.refusal:
        refusals.append(f"{session.run.run_file.name}: {verdict.refusal}")
    return refusals


def _delivery_lines(session: LedgerSession) -> list[str]:
    """Return one line if a live run file lacks the marker of a delivery."""
    schedule = session.run.run_file.schedule
    if schedule.mode != "live" or schedule.wait_for is not None:
        return []
    return [
        "no [schedule] wait_for: a day is released at its age, delivered or not; readings missing then stay missing"
    ]


def _spent_lines(session: LedgerSession, plan: RunForecast) -> list[str]:
    """Return the spent and planned loss, its total cap, and the end of the promise."""
    planned = sum(row.loss for row in plan.now.releases)
    total = session.run.run_file.promise.epsilon_total
    draws = " and calibration draws" if session.charges else ""
    total_cap = "no total cap" if total == "unlimited" else f"epsilon_total = {total:f}"
    if session.run.run_file.promise.delta is not None:
        total_cap = "the sum of the losses is not capped"
    lines = [
        f"Cumulative epsilon per household (sequential composition of all published days{draws}): "
        f"{format_loss(plan.spent)} spent, these releases add {format_loss(planned)}; {total_cap}",
        *_promised_bound_lines(session, plan),
    ]
    lines += _end_lines(session, plan)
    if skipped_later := _skipped_ahead(plan):
        lines.append(f"days that will be skipped later ({DAYS_NEAR}): {skips_text(skipped_later)}")
    return lines


def _end_lines(session: LedgerSession, plan: RunForecast) -> list[str]:
    """Return the last possible day of the promise, or when the series ended and why."""
    forecast = plan.forecast
    if reason := _ended_reason(session, plan):
        return [f"the series has ended: last released day {_last_released_day(session)}; {reason}"]
    if plan.now.refused is not None:
        last = plan.now.releases[-1].day if plan.now.releases else "none"
        return [f"the promise ends: last possible day {last}; then {plan.now.refused}"]
    if forecast.next_day is None:
        return []
    length = "a year" if session.run.run_file.promise.epsilon_total == "unlimited" else "ten years"
    ends = f"end of the period, or of a forecast of {length}"
    explanation = "the promise ends there" if forecast.ended_by_promise else ends
    return [f"last possible day, if each day is released when due: {forecast.last_day or 'none'} ({explanation})"]


def _ended_reason(session: LedgerSession, plan: RunForecast) -> str:
    """Return why the series has ended, "" if it continues or has not begun."""
    forecast, rows = plan.forecast, session.rows
    if not rows or plan.now.releases:
        return ""
    if plan.now.refused is not None:
        return str(plan.now.refused)
    if forecast.next_day is None:
        return f"its period ended with {session.run.run_file.schedule.last_day}"
    if forecast.last_day is None and forecast.ended_by_promise:
        return forecast.stopped or forecast.refusal or format_end_reason(plan.terms, rows)
    return ""


def _last_released_day(session: LedgerSession) -> str:
    return max((row.day for row in session.rows if row.state == "released"), default="none")


def _promised_bound_lines(session: LedgerSession, plan: RunForecast) -> list[str]:
    """Return the bound that the promise limits, after these releases."""
    notion, rows = plan.terms.notion, [*session.rows, *plan.now.releases]
    if not plan.now.releases:
        return []
    bounds = notion.bounds(rows, plan.terms.leakage_bound, None)
    exception = {"conditional_days": session.envelope_days} if session.envelope_days else {}
    entries = {bound.name: state_bound(bound, notion.limits).model_copy(update=exception) for bound in bounds}
    return promised_bound_lines(notion, entries, when=" after these releases")


def _horizon(session: LedgerSession) -> int | None:
    """Return the number of releases after which the series ends, None if the promise has no horizon."""
    horizon: object = getattr(session.run.run_file.promise, "horizon_days", None)
    return horizon if isinstance(horizon, int) else None


def _horizon_lines(session: LedgerSession) -> list[str]:
    """Return one line if the horizon of the promise differs from the number of days of the schedule."""
    horizon, days = _horizon(session), session.run.run_file.schedule.days
    if horizon is None or days is None or horizon == days:
        return []
    text = f"horizon_days = {horizon}, but [schedule] has {days} days: "
    if horizon < days:
        return [f"{text}the series ends after {horizon} days"]
    return [f"{text}the epsilon of the other {horizon - days} days stays unspent; horizon_days = {days} has less noise"]


def _mean_noise_by_schedule(session: LedgerSession, plan: RunForecast) -> dict[str, float]:
    """Return the mean noise scale by schedule."""
    notion = plan.terms.notion  # over the published days, as the promise is enforced
    return notion.alternatives(_compared_days(session, plan)) if isinstance(notion, Promise) else {}


def _compared_days(session: LedgerSession, plan: RunForecast) -> int:
    """Return the number of days over which schedules are compared: the horizon, the days due now, or a year."""
    return _horizon(session) or max(len({planned_release.row.day for planned_release in plan.now.planned}), _YEAR)


def _alternatives_lines(session: LedgerSession, plan: RunForecast) -> list[str]:
    """Return one line that compares the promised schedule with alternatives, if there are any."""
    means = [f"{name} {three_digits(mean)}" for name, mean in _mean_noise_by_schedule(session, plan).items()]
    period = f"over {_compared_days(session, plan)} days, one published each day"
    text = f"mean noise scale by schedule {period}, as a multiple of clamp_kwh, before caps: {', '.join(means)}"
    return [text] if means else []


def _skipped_ahead(plan: RunForecast) -> list[Skip]:
    """Return the days that will be skipped once they are due, if every day is released then."""
    due = max((planned_release.row.day for planned_release in plan.now.planned), default="")
    return [(day, series) for day, series in plan.forecast.skipped if day.isoformat() > due and not series]
