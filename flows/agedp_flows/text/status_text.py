"""Output of `agedp status`: where a series stands today, from the values of the plan; reads no reading, draws nothing.

It says which days are due and when the next one is, what was released last, what the promise has used of each limit,
and what needs attention. A run file, ledger or roster that stops the next run ends the command as it would end the run:
with the line and the exit status of its error. Everything else, also what refuses a first run or a day, is a line.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, Final

from agedp.ledger_session import LedgerSession
from agedp.planning.forecast import Skip, upcoming_days
from agedp.planning.row_noise import noise_deviation
from agedp.release_folder.folder_files import STATEMENT
from agedp.release_verification import ReleaseFolder
from agedp.stage_values import due_date
from agedp.stages import plan as plan_stage
from agedp.stages.plan import RunForecast
from agedp.statement_facts import read_newest_rows
from agedp_data.epsilon import format_epsilon
from agedp_data.errors import AgedpError, InputError
from agedp_data.ledger import ReleaseRecord
from agedp_data.ledger.records import AnyRelease
from agedp_data.messages import count_text
from agedp_data.statement.document import StatedBound
from agedp_data.statement.facts import state_bound
from agedp_flows.text import run_text
from agedp_flows.text.screen import format_loss
from agedp_flows.text.template_lines import render_lines

_SOON: Final = timedelta(days=30)
_LATE: Final = timedelta(days=2)
"""From so long after a day was due, it is late."""


@dataclass(frozen=True, slots=True)
class SeriesStatus:
    """Where a population's series stand: public, a function of run file, roster counts, model, ledger and clock.

    Attributes:
        plan: the plan of the next run.
        next_day: the first day that is not due yet, None if the series ends before it.
        newest: the newest released row of each series.
        bounds: what the promise limits, each with what is used and its limit.
        warnings: what needs attention, for everybody; `storage` is the error about a folder that cannot be written.
        account: the warning that other populations have added to the losses since the newest account; confidential.
    """

    plan: RunForecast
    next_day: date | None
    newest: tuple[ReleaseRecord, ...]
    bounds: tuple[StatedBound, ...]
    warnings: tuple[str, ...]
    storage: AgedpError | None
    account: str

    @property
    def due(self) -> list[Skip]:
        """Return the days that are due, as `skips_text` has them."""
        return [(date.fromisoformat(day), "") for day in sorted({of.row.day for of in self.plan.now.planned})]


def read_status(session: LedgerSession) -> SeriesStatus:
    """Return where the series of a session stand.

    Raises:
        LedgerError: the ledger lacks released rows, or the run file differs from the contract.
        RunFileError: the run file cannot be used.
    """
    plan = plan_stage.forecast_run(session)
    run, notion = plan.run.run_file, plan.terms.notion
    rows = [] if session.ledger is None else read_newest_rows(session.ledger, run.population.name)
    in_force = (row for row in rows if row.series in run.series and run.series[row.series].holds(row.cells))
    newest = {row.series: row for row in sorted(in_force, key=lambda row: row.day)}
    bounds = [state_bound(bound, notion.limits) for bound in plan.forecast.bounds if bound.name in notion.limits]
    warnings = tuple(filter(None, [_ending(plan), _lateness(plan), _folder_lag(session, plan)]))
    account = _account(session)
    return SeriesStatus(plan, _next_day(plan), tuple(newest.values()), tuple(bounds), warnings, _storage(plan), account)


def status_json(status: SeriesStatus) -> dict[str, Any]:
    """Return a status as JSON: public facts only."""
    plan, run = status.plan, status.plan.run.run_file
    storage = [] if status.storage is None else [str(status.storage)]
    return {
        "population": run.population.name,
        "mode": run.schedule.mode,
        "due": [day.isoformat() for day, _ in status.due],
        "waiting": [day.isoformat() for day in plan.due_days.waiting],
        "next": None if status.next_day is None else _next_json(plan, status.next_day),
        "last": [_row_json(row, plan) for row in status.newest],
        "budget": [_bound_json(bound) for bound in status.bounds],
        "ended": plan.ended,
        "refused": plan.refused,
        "warnings": [*status.warnings, *storage],
    }


def _next_json(plan: RunForecast, day: date) -> dict[str, str]:
    return {"day": day.isoformat(), "due_on": due_date(plan.run.run_file, day).isoformat()}


def _row_json(row: ReleaseRecord, plan: RunForecast) -> dict[str, Any]:
    sd, unit = noise_deviation(row, plan.run.run_file.series[row.series])
    names = {"day": row.day, "series": row.series, "published_on": row.published_on}
    return {**names, "epsilon": format_epsilon(row.loss), f"noise_sd_{unit}": sd}


def _bound_json(bound: StatedBound) -> dict[str, str]:
    return {"bound": bound.name, "scope": bound.scope, "used": bound.epsilon, "limit": bound.limit}


def status_lines(status: SeriesStatus) -> list[str]:
    """Return a status as lines for the terminal, the warnings last."""
    storage = "" if status.storage is None else status.storage.private
    return render_lines(
        "status",
        facts=status_json(status),
        plan=status.plan,
        due=status.due,
        warnings=filter(None, [*status.warnings, storage, status.account]),
        check=run_text.verdict_lines(status.plan.run),
    )


def _next_day(plan: RunForecast) -> date | None:
    """Return the first day after those that are released or due, unless the promise or the period ends before it."""
    rows: list[AnyRelease] = [*plan.history.rows, *(of.row for of in plan.now.planned)]
    day = next(upcoming_days(plan.run.run_file, rows), None)
    forecast = plan.forecast
    is_beyond = forecast.ended_by_promise and (forecast.last_day is None or day is None or day > forecast.last_day)
    return None if plan.now.refused is not None or is_beyond else day


def _ending(plan: RunForecast) -> str:
    """Return the warning that the promise ends within 30 days, "" if it does not."""
    forecast = plan.forecast
    if not (plan.history.rows and forecast.ended_by_promise and forecast.next_day and forecast.last_day):
        return ""
    is_soon = forecast.last_day < forecast.next_day + _SOON
    return f"the promise ends soon: {forecast.last_day} is the last day it permits" if is_soon else ""


def _lateness(plan: RunForecast) -> str:
    """Return the warning that days of a series that has begun are due for days, "" if none is."""
    run, today = plan.run.run_file, plan.run.today
    oldest = min((date.fromisoformat(of.row.day) for of in plan.now.planned), default=None)
    newest = max((date.fromisoformat(row.published_on) for row in plan.history.rows), default=None)
    if oldest is None or newest is None or run.schedule.mode != "live" or today - due_date(run, oldest) < _LATE:
        return ""
    days, due = count_text((today - newest).days, "day"), f"{oldest} was due on {due_date(run, oldest)}"
    return f"nothing was released for {days}: {due}. Check that `agedp run` is scheduled"


def _folder_lag(session: LedgerSession, plan: RunForecast) -> str:
    """Return the warning that the release folder lacks released days of the ledger, "" if it has all."""
    released = plan.terms.run.publication.released_days(plan.history.rows)
    folder = ReleaseFolder(session.run.release_folder)
    published = 0
    try:
        if (folder.path / STATEMENT).exists():
            published = folder.read_statement().days.released
    except InputError:
        return "the statement of the release folder is damaged; `agedp publish` writes it again"
    if published == len(released):
        return ""
    lacking = f"{published:,} of the {count_text(len(released), 'released day')} of the ledger"
    return f"the release folder is older than the ledger: it has {lacking}; `agedp publish` writes it again"


def _storage(plan: RunForecast) -> AgedpError | None:
    """Return the error about a folder that the next release could not write to, None without one."""
    try:
        plan_stage.check_disk_space(plan.run.release_folder, plan.run.run_file.output.ledger)
    except AgedpError as error:
        return error
    return None


def _account(session: LedgerSession) -> str:
    """Return the warning that households have lost more in other populations than the folder states, "" if not."""
    ledger, accounts = session.ledger, session.accounts
    stated = None if ledger is None else ledger.household_account(session.run.population)
    if ledger is None or accounts is None or stated is None or (known := accounts.overview(ledger)) is None:
        return ""
    now = known.account
    if (now.day, now.total) == (stated.day, stated.total):
        return ""
    amounts = [tuple(map(format_loss, (account.day, account.total))) for account in (now, stated)]
    return (
        "other releases of these households were made since: one of them may have lost epsilon {} about a day and {} "
        "in all, and the folder states {} and {}. `agedp run` states it"
    ).format(*amounts[0], *amounts[1])
