"""Run file + LEDGER -> what a run would release now, and what later ones can: the content of `agedp plan`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from agedp.budget import ReleaseTerms
from agedp.ledger_session import LedgerSession
from agedp.planning.forecast import Forecast, ForecastContract, forecast
from agedp.stage_values import DueDays, DuePlan
from agedp.stages.plan import find_due_days, plan_due_days


@dataclass(frozen=True, slots=True)
class RunForecast:
    """Loss spent [nano-epsilon], due days with the releases planned now, forecast, and the terms of all of them."""

    spent: int
    due_days: DueDays
    now: DuePlan
    forecast: Forecast
    terms: ReleaseTerms


def forecast_run(session: LedgerSession) -> RunForecast:
    """Return the plan and forecast of a run with the present ledger; writes and draws nothing.

    Raises:
        ContractChanged: the run file differs from the contract.
    """
    due_days = find_due_days(session)
    spent, terms = sum(row.loss for row in session.rows), session.terms()
    due_plan = plan_due_days(terms, due_days.due, session.rows)
    expected = forecast(ForecastContract.of(terms), session.forecast_view)
    return RunForecast(spent, due_days, due_plan, expected, terms)


def end_within_30_days(session: LedgerSession) -> date | None:
    """Return the last day that the promise permits if it is less than 30 days ahead, else None."""
    session = session.opened()
    if session.ledger is None:
        return None
    expected = forecast(ForecastContract.of(session.terms()), session.forecast_view, days_ahead=30)
    first_day = session.run.run_file.schedule.first_day
    newest = max((date.fromisoformat(row.day) for row in session.rows), default=first_day)
    return expected.last_day or newest if expected.ended_by_promise else None
