"""The lines and JSON of `agedp plan` about spans of days: the price of a promised delta, and the totals of a period."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from agedp.ledger_session import LedgerSession
from agedp.planning.span_price import PeriodTotals, SpanPrice, filling_loss, period_totals, span_prices
from agedp.signal_against_noise import three_digits
from agedp.stages.plan import RunForecast
from agedp_data.config import RunFile
from agedp_data.epsilon import format_delta, format_epsilon
from agedp_data.parameters import exact_text
from agedp_flows.text.number_text import count_text, format_budget, format_loss
from agedp_flows.text.run_text import delta_warning_lines, finite_or_none


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
