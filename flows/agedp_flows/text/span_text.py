"""The lines and JSON of `agedp plan` about spans of days: the price of a promised delta, and the totals of a period."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any, Final

from agedp.ledger_session import LedgerSession
from agedp.planning.span_price import PeriodTotals, SpanPrice, filling_loss, period_totals, span_prices
from agedp.stages.plan import RunForecast
from agedp_data.config import RunFile
from agedp_data.epsilon import NANO, format_delta, format_epsilon
from agedp_data.parameters import exact_text
from agedp_flows.text.run_text import count_text, delta_warning_lines, finite_or_none

_FOUR_DIGITS_DOWN: Final = Context(prec=4, rounding=ROUND_FLOOR)
_FOUR_DIGITS_UP: Final = Context(prec=4, rounding=ROUND_CEILING)


def span_lines(session: LedgerSession, plan: RunForecast) -> list[str]:
    """Return what a promised delta buys, and what the days of the period come to at each delta."""
    run, totals = plan.terms.run, _totals(plan)
    return [
        *delta_warning_lines(run),
        *map(_price_line, span_prices(run)),
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
    is_closed = plan.terms.run.schedule.last_day is not None
    return period_totals(plan.terms.run, plan.forecast.history) if is_closed else None


def _price_line(price: SpanPrice) -> str:
    ratio = f", with {price.noise_ratio:.2f} times the noise" if price.pure_loss else ""
    return (
        f"delta = {format_delta(price.delta)}: {price.key} = {format_epsilon(price.epsilon)} over "
        f"{count_text(price.days, 'day')} permits epsilon {_shorten(price.loss)} on each of them, "
        f"{_rounded_up(price.pure_total)} by their pure sum. Without delta it would permit "
        f"{_shorten(price.pure_loss)} a day{ratio}"
    )


def _filling_lines(run: RunFile) -> Iterator[str]:
    if (price := filling_loss(run)) is not None:
        yield f"epsilon_per_day = {_shorten(price.loss)} would fill {price.key} over {count_text(price.days, 'day')}"


def _total_lines(totals: PeriodTotals) -> Iterator[str]:
    at = ", ".join(f"{_rounded_up(loss)} at delta = {format_delta(delta)}" for delta, loss in totals.at)
    yield (
        f"{count_text(totals.days, 'day')}, released and planned, together: epsilon {_rounded_up(totals.pure)} by "
        f"their pure sum; {at}"
    )
    if totals.tight is not None:
        delta, epsilon = totals.tight
        yield (f"   tighter, not enforced (privacy-loss distribution): {epsilon:.4g} at delta = {format_delta(delta)}")


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


def _shorten(loss: int) -> str:
    """Return a loss that may be spent in four digits, rounded down, so that it can be written into a run file."""
    return exact_text(_FOUR_DIGITS_DOWN.divide(Decimal(loss), NANO))


def _rounded_up(loss: int) -> str:
    """Return a bound in four digits, rounded up."""
    return exact_text(_FOUR_DIGITS_UP.divide(Decimal(loss), NANO))
