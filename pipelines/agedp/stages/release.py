"""SUMS + PLAN -> LEDGER: drawn once, charged and stored in one transaction.

The true value reaches the ledger only inside `draw`, called within the transaction that admits and stores the
release. Of two concurrent runs one draws and the other reads the stored rows. A transaction ends with two syncs of the
disk, so an archive stores a month of days in each; if a run is killed, the days of its open transaction were not drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from typing import Final

import numpy as np

from agedp.budget import RELEASED, PlannedRelease, ReleaseTerms, covered_by, plan_release
from agedp.ledger_session import LedgerSession
from agedp.stage_values import BeforeDraw, Cells, DailySum, DailySums, DueDay, DueDays
from agedp.stages.calibration_draws import register_model
from agedp.stages.plan import check_enough_households, plan_due_days
from agedp_data import mechanisms
from agedp_data.datasets.validation import Ints
from agedp_data.errors import AgedpError, InputError, LedgerError, RunFileError
from agedp_data.ledger import Ledger, ReleaseRecord
from agedp_data.ledger.records import ReleaseHeader
from agedp_data.series.series import AnySeries

Sums = Mapping[tuple[date, str], DailySum]
"""True sums by day and series."""

Charge = Callable[[Sequence[ReleaseRecord]], None]
"""Callback in a transaction before its first draw, with the rows that are to be drawn, without values."""
Plan = Mapping[tuple[str, str], PlannedRelease]
"""Planned releases by day and series."""

DAYS_PER_TRANSACTION: Final = 32


class ImpossibleSum(RuntimeError):
    """A sum that no households on the roster can have: a fault of the program, noticed before the draw."""


@dataclass(frozen=True, slots=True)
class ReleaseResult:
    """The rows that this run publishes, drawn now or earlier, and the error of the ledger that stopped the release.

    `session` has the ledger that they are in; a first release created it.
    """

    session: LedgerSession
    rows: tuple[ReleaseRecord, ...] = ()
    refusal: LedgerError | None = None

    @property
    def drawn(self) -> tuple[ReleaseRecord, ...]:
        """Return the rows with values."""
        return tuple(row for row in self.rows if row.state == RELEASED)


def release_days(session: LedgerSession, due_days: DueDays, sums: DailySums) -> ReleaseResult:
    """Stage 4: draw, charge and store the due days; the first release registers the contract.

    Returns:
        The rows of the due days, and those of a run that was killed before it published them. The error of the ledger
        that stopped them is a part of the result, because what was committed before it is published.

    Raises:
        AgedpError: any other error; it counts the days that are drawn already.
    """
    session = session.opened()
    try:
        with naming_charged_days(session, due_days):
            session = _session_for_release(session, due_days)
        with naming_charged_days(session, due_days):
            earlier = _rows_of(session, due_days)
            stored = {row.seq for row in earlier}
            drawn = [row for row in _release_due(session, due_days, sums) if row.seq not in stored]
            return ReleaseResult(session, (*earlier, *drawn))
    except LedgerError as error:
        rows: tuple[ReleaseRecord, ...] = ()
        with suppress(LedgerError):
            rows = _rows_of(session, due_days)
        return ReleaseResult(session, rows, error)


@contextmanager
def naming_charged_days(session: LedgerSession, due_days: DueDays) -> Iterator[None]:
    """Add the number of drawn, unpublished days to an error; after a ledger error they are published in this run."""
    try:
        yield
    except LedgerError:
        raise
    except AgedpError as error:
        rows = [row for row in _rows_of(session.opened(), due_days) if row.state == RELEASED]
        if not rows:
            raise
        days = len({row.day for row in rows})
        charged = f"{days} due {'day is' if days == 1 else 'days are'} drawn and charged; the next run publishes them"
        raise type(error)(f"{error}; {charged}", private=f"{error.private}; {charged}") from None


def _rows_of(session: LedgerSession, due_days: DueDays) -> tuple[ReleaseRecord, ...]:
    """Return the rows of these days in the ledger, and those under the contract in force that no statement has yet."""
    if session.ledger is None:
        return ()
    due = {(f"{due_day.day}", series) for due_day in due_days.due for series in due_day.series}
    history = session.history
    numbers = [row.seq for row in session.ledger.newest_statements(session.run.population, 1)]
    since = max([*numbers, *(contract.seq for contract in history.contracts)], default=0)
    headers = [row for row in history.rows if row.seq > since or (row.day, row.series) in due]
    return session.ledger.rows_of(headers)


def _session_for_release(session: LedgerSession, due_days: DueDays) -> LedgerSession:
    """Return the session with its ledger compared anew, or created; without a due day nothing is created."""
    if due_days.due and not session.history.has_begun:
        _check_first_release(session, due_days)
        if (notice := session.run.engine.notice) is not None:
            notice(due_days.notices)
    return session.checked(create=True) if due_days.due or session.ledger is not None else session


def _release_due(session: LedgerSession, due_days: DueDays, sums: DailySums) -> tuple[ReleaseRecord, ...]:
    if not due_days.due:
        if session.ledger is not None:  # a run that was interrupted after its last draw has not recorded its rosters
            _record_rosters(session)
        return ()
    ledger, run = session.open_ledger, session.run
    # the clock of a rehearsal starts with the period, before any release
    at = run.today if run.as_of is None else min(run.run_file.schedule.first_day, run.as_of)
    ledger.compare_restored()  # a damaged row must stop the run before the draw, not when its values are published
    register_model(ledger, session.model, run.population, at=at)
    terms = session.terms(ledger.register(session.promise, population=run.population, at=at).hash)
    columns = sorted({column for series in terms.run.series.values() for column in series.columns})
    days = sorted(covered_by(due_days.due, terms.run.series))
    before_draw = session.roster_history.before_draw(session.roster_digest, columns, days)
    accounts = session.accounts
    charge: Charge = (lambda _: None) if accounts is None else partial(accounts.charge, ledger=ledger)
    try:
        return release(ledger, terms, due_days.due, sums.by_day, before_draw=before_draw, charge=charge)
    finally:
        _record_rosters(session)


def _record_rosters(session: LedgerSession) -> None:
    session.roster_history.record_rosters(session.roster_digest, session.open_ledger)


def _check_first_release(session: LedgerSession, due_days: DueDays) -> None:
    """Check, before anything is released, that the contract permits a first release of at least one household."""
    run, due = session.run.run_file, due_days.due
    check_enough_households(run, session.run.roster.counts, due)
    if all(due_day.skipped for due_day in due) and run.schedule.mode == "archive":
        raise RunFileError("[schedule] skip_days: lists every day of the period. Remove the days to be released.")
    first = next((due_day for due_day in due if due_day.is_drawn), due[0])
    due_plan = plan_due_days(session.terms(), [first], ())
    if due_plan.refused is not None:
        raise due_plan.refused


def release(
    ledger: Ledger, terms: ReleaseTerms, due: Sequence[DueDay], sums: Sums, *, before_draw: BeforeDraw, charge: Charge
) -> tuple[ReleaseRecord, ...]:
    """Release the due days, oldest first; return their rows, drawn now or stored earlier.

    Args:
        ledger: the ledger.
        terms: the terms of every release.
        due: the due days.
        sums: the true sums by day and series.
        before_draw: called before each draw, within the transaction that stores it.
        charge: called once in each transaction, before its first draw, with all rows that it is to draw.

    Raises:
        Refused: the promise does not permit a day; the days before it remain released.
    """
    rows: list[ReleaseRecord] = []
    for start in range(0, len(due), DAYS_PER_TRANSACTION):
        days = due[start : start + DAYS_PER_TRANSACTION]
        rows += ledger.in_one_transaction(partial(_release_days, ledger, terms, days, sums, before_draw, charge))
    return tuple(rows)


def _release_days(
    ledger: Ledger, terms: ReleaseTerms, due: Sequence[DueDay], sums: Sums, before_draw: BeforeDraw, charge: Charge
) -> list[ReleaseRecord]:
    plan = _plan_transaction(ledger, terms, due)
    charge([planned.row for planned in plan.values() if planned.row.state == RELEASED])
    return [
        _release_series(ledger, terms, due_day, series, sums, plan, before_draw=before_draw)
        for due_day in due
        for series in due_day.series
    ]


def _plan_transaction(ledger: Ledger, terms: ReleaseTerms, due: Sequence[DueDay]) -> Plan:
    """Return the releases that a transaction is to store, up to the first refused one; no row is added meanwhile."""
    history = ledger.history(terms.run.population.name)
    stored = {(row.day, row.series) for row in history}
    unreleased = [
        replace(due_day, series=tuple(name for name in due_day.series if (f"{due_day.day}", name) not in stored))
        for due_day in due
    ]
    planned = plan_due_days(terms, unreleased, history).planned
    return {(release.row.day, release.row.series): release for release in planned}


def _release_series(
    ledger: Ledger,
    terms: ReleaseTerms,
    due: DueDay,
    series: str,
    sums: Sums,
    plan: Plan,
    *,
    before_draw: BeforeDraw,
) -> ReleaseRecord:
    planned: list[PlannedRelease] = []

    def admit(history: tuple[ReleaseHeader, ...]) -> ReleaseRecord:
        stored_plan = plan.get((due.day.isoformat(), series))
        planned.append(stored_plan or plan_release(terms, due, series, history))
        if planned[-1].row.state == RELEASED:
            before_draw(due.day, history)
        return planned[-1].row

    def draw(row: ReleaseRecord) -> Sequence[int]:
        exact = _exact_values(sums[(due.day, series)], due.cells[series], terms.run.series[series])
        drawn = mechanisms.discrete_laplace(exact, sensitivity=row.sensitivity, loss=planned[-1].loss)
        return [int(value) for value in drawn]

    return ledger.release(terms.run.population.name, series, due.day, admit=admit, draw=draw)


def _exact_values(daily_sum: DailySum, parts: Cells, series: AnySeries) -> Ints:
    """Return the exact vector over the cells of these parts, checked to be within the sensitivity's domain."""
    counted = dict(zip(daily_sum.parts, daily_sum.households.tolist(), strict=True))
    if any(counted.get(part) != number for part, number in parts):
        raise InputError("the roster changed while the run was under way; run again")
    lines = daily_sum.lines()
    vectors = [(daily_sum.exact[lines[part]], number) for part, number in parts]
    if daily_sum.series != series or not all(series.is_possible(exact, number) for exact, number in vectors):
        raise ImpossibleSum("a sum is outside what its sensitivity protects; nothing was drawn")
    return np.concatenate([exact for exact, _ in vectors])
