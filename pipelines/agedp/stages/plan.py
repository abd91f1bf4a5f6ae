"""Run file + roster + markers + clock -> DUE DAYS; with leakage bounds + ledger -> PLAN: the budget of each due day.

A day is due `age_days` after its end (in an archive without `age_days`: at its end). Days that wait for their delivery
are listed beside the due days. `live` and `archive` publish every due day now, under the true date, so a missed week
needs no special treatment; `rehearsal` steps a simulated date from the ledger's newest date to `as_of` and publishes
each day on the first date on which it is due.

A day is skipped, without a draw or a loss, if [schedule] skip_days lists it, if its delivery never came, if too few
households are on the roster, or if its budget is zero while later days still have some (`budget`). Later days are then
released as planned.

Decisions:

* Due days and plan are a function of the run file, the model's public part, the roster's counts, the delivery's
  markers, the clock and the ledger: nothing here depends on a reading.
* Disk space is checked before the first draw: a release that cannot be stored would spend its budget in vain.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal

from agedp import budget
from agedp.budget import PlannedRelease, ReleaseTerms
from agedp.internal_records.signing_keys import keys_of, signing_key
from agedp.ledger_session import LedgerSession, PopulationHistory
from agedp.local_files import atomic_files
from agedp.planning.first_release_verdict import Verdict, judge_first_release
from agedp.planning.forecast import Forecast, Skip, forecast, forecast_days
from agedp.reports.chart_library import installed_library
from agedp.run_context import RunContext
from agedp.stage_values import Cells, DueDay, DueDays, due_date
from agedp.stages.amend import check_day_boundaries
from agedp_data import clock
from agedp_data.config import RunFile
from agedp_data.config.model_section import missing_acceptance
from agedp_data.config.schedule import Rehearsal
from agedp_data.config.withdrawn import check_nothing_withdrawn
from agedp_data.datasets import filesystem
from agedp_data.errors import AgedpError, ChainError, InputError, LedgerError, Refused, RunFileError
from agedp_data.ledger.backends.connect import database_at
from agedp_data.ledger.records import AnyRelease, ReleaseHeader, ReleaseRecord
from agedp_data.notions.publication import total_charge
from agedp_data.roster import RosterCounts
from agedp_data.series.series_terms import days_of

Arrival = Literal["complete", "skipped", "waits", "given up"]
RELEASED_ELSEWHERE: Final = (
    "households of this roster are released elsewhere too: the losses of all their releases add up, as the statement "
    'says. [population] shared_households = "refuse" stops at the first day that has one'
)
_MIN_BYTES = 2**16
"""Space for a short release, or some days of a ledger; the disk may still fill up meanwhile."""


def check_disk_space(release: Path, ledger: str) -> None:
    """Check that the release folder and the ledger's folder can be written, by a temporary file in each.

    Raises:
        InputError: the release folder cannot be written.
        LedgerError: the folder of the ledger at this address cannot be written. A ledger on a server is not checked.
    """
    with _write_errors("[output] release: the folder", InputError, release):
        # a new file is written before the old one is replaced
        atomic_files.check_writable(release, _MIN_BYTES + _largest_file(release))
    ledger_folder = database_at(ledger).folder
    if ledger_folder is not None:
        with _write_errors("[output] ledger: its folder", LedgerError, ledger_folder):
            atomic_files.check_writable(ledger_folder, _MIN_BYTES)


def _largest_file(folder: Path) -> int:
    try:
        with os.scandir(folder) as entries:
            return max((entry.stat().st_size for entry in entries), default=0)
    except FileNotFoundError:
        return 0


@contextmanager
def _write_errors(label: str, kind: type[AgedpError], folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        advice = "nothing was drawn; check its permissions and the free space on its disk"
        problem = f"cannot be written ({error.strerror}); {advice}"
        raise kind(f"{label} {problem}", private=f"{label} {str(folder)!r} {problem}") from None


def plan(session: LedgerSession) -> DueDays:
    """Stage 1: compare the run file with the contract, if it exists, list the due days, and check the disk space.

    Raises:
        LedgerError: the ledger, its contract or the roster differ from what the run file needs.
        Refused: the verdict on a first release refuses it.
        RunFileError: a key that a first release needs is missing.
        InputError: the release folder cannot be written.
    """
    run, due_days = session.run, find_due_days(session)
    if session.accounts is not None:
        session.accounts.place.open()  # a lost key is refused before the files are read
    if due_days.due:
        check_corrections_declared(run.run_file, has_begun=due_days.has_begun)
        check_model_accepted(run.run_file, has_begun=due_days.has_begun)
        if not due_days.has_begun:
            check_enough_households(run.run_file, run.roster.counts, due_days.due)
        if (verdict := find_verdict(session, due_days)) is not None:
            if refusal := verdict_refusal(verdict, session.terms(), run):  # a cause that [promise] accept does not name
                raise Refused(refusal)
            notices = (*verdict.lines, *_released_elsewhere(session))
            due_days = replace(due_days, notices=notices, purpose=verdict.purpose)
        if session.remote_folder is not None:
            session.remote_folder.try_writing()
        if run.run_file.output.explore:
            installed_library()
        if run.run_file.output.sign:
            signing_key(run.paths.folder, keys_of(session.ledger))
        check_disk_space(run.release_folder, run.run_file.output.ledger)
    return due_days


def find_due_days(session: LedgerSession) -> DueDays:
    """Return the due days, after all checks of ledger, contract and roster that need no reading.

    Raises:
        LedgerError: as `plan`.
        RunFileError: [schedule] rehearsal_on is missing, or a key is withdrawn.
    """
    run, history = session.run, session.history
    check_nothing_withdrawn(run.run_file, history.in_force)
    rows: tuple[ReleaseHeader, ...] = ()
    if session.ledger is None:
        session.check_nothing_released()
    else:
        session.check_contract_unchanged()
        rows = session.ledger.history()
        session.roster_history.check_unchanged(session.roster_digest, session.ledger)
        check_day_boundaries(run.run_file, history)
        session.terms().effective_promise.review(history.rows)
    if history.in_force is None:
        check_rehearsal_declared(run.run_file)
        budget.check_charges_fit(session.terms(), history.rows)
    newest = max((date.fromisoformat(row.published_on) for row in rows), default=date.min)
    closed = budget.closed_days(history.rows, history.contracts)
    due_days = list_due_days(run.run_file, run.roster.counts, closed, until=run.until, not_before=newest)
    return replace(due_days, has_begun=history.has_begun)


def check_corrections_declared(run: RunFile, *, has_begun: bool) -> None:
    """Refuse a new live population without a rule for two files with conflicting readings.

    A series that has begun without the key keeps its rule.

    Raises:
        RunFileError: [input] corrections is missing, and nothing is released yet.
    """
    is_declared = "corrections" in run.input.model_fields_set
    if run.schedule.mode == "live" and not is_declared and not has_begun:
        raise RunFileError(
            f"{run.name}: [input] corrections is missing: a new live population needs a rule for conflicting "
            'readings from two files. Write corrections = "later-file" (file_order defines which file is later), or '
            '"set-aside", which keeps neither'
        )


def check_enough_households(run: RunFile, roster: RosterCounts, due: Sequence[DueDay]) -> None:
    """Refuse a first release of which no row has enough households.

    Raises:
        RunFileError: none has [population] min_households.
    """
    if due and not any(cells for due_day in due for cells in due_day.cells.values()):
        cells = (cell for of in due for series in run.series.values() for cell in roster.cells(of.day, series.by))
        fewest, largest = run.population.min_households, max((number for _, number in cells), default=0)
        raise RunFileError(
            f"{run.name}: [population] min_households = {fewest}: no due day has {fewest} households on the roster; "
            f"the largest group has {largest:,}. Lower min_households or correct the roster"
        )


def check_model_accepted(run: RunFile, *, has_begun: bool) -> None:
    """Refuse a new population whose promise rests on an estimated model that the run file does not accept.

    A series that has begun without the key goes on. The verdict of the calibration is never read here.

    Raises:
        RunFileError: [model] accept_unverified_model is missing, and nothing is released yet.
    """
    reason = missing_acceptance(run.promise, run.model)
    if reason and not has_begun:
        raise RunFileError(f"{run.name}: {reason}")


def find_verdict(session: LedgerSession, due_days: DueDays) -> Verdict | None:
    """Return the verdict on a first release, public; None once a row is released, or if no day can be drawn.

    A running series is never judged, nor is a series that is added to it.
    """
    if due_days.has_begun or not due_days.due:
        return None
    undrawn = frozenset(due_day.day for due_day in due_days.due if not due_day.is_drawn)
    with suppress(ChainError, Refused):  # no loss keeps the promise, or it lacks a model: the release says so
        return judge_first_release(session.terms(), session.run.roster.counts, session.run.today, undrawn=undrawn)
    return None


def _released_elsewhere(session: LedgerSession) -> tuple[str, ...]:
    """Return the line about households of the roster that another population counts; none where such days are refused.

    What the accounts know is confidential: a flow run prints this line and does not log it.
    """
    accounts = session.accounts
    is_counted = accounts is not None and not accounts.refuses_shared and accounts.counted_elsewhere(session.ledger)
    return (RELEASED_ELSEWHERE,) if is_counted else ()


def verdict_refusal(verdict: Verdict | None, terms: ReleaseTerms, run: RunContext) -> str:
    """Return why the verdict refuses a first release, with the advisor's best rows; "" if it does not."""
    if verdict is None or not verdict.refused:
        return ""
    from agedp.planning.advisor import advise  # noqa: PLC0415  (a refused first release alone needs advice)

    return f"{run.run_file.name}: {verdict.refusal(advise(terms, run.roster.counts, run.today).best())}"


def check_rehearsal_declared(run: RunFile) -> None:
    """Refuse a new rehearsal that leaves open whether it is on synthetic households or on readings.

    A rehearsal that has begun without the key continues on readings.

    Raises:
        RunFileError: [schedule] rehearsal_on is missing.
    """
    if isinstance(run.schedule, Rehearsal) and run.schedule.rehearsal_on is None:
        raise RunFileError(
            f"{run.name}: [schedule] rehearsal_on is missing: a new rehearsal needs it. Write rehearsal_on = "
            '"synthetic" (no input file is read, and no household loses privacy), or "readings", which is charged '
            "like a release"
        )


def list_due_days(
    run: RunFile, roster: RosterCounts, closed: Collection[tuple[str, str]], *, until: datetime, not_before: date
) -> DueDays:
    """Return the days that are due at `until` and not in `closed`, which are (day, series), for every series.

    A day waits for its delivery's marker, if the run file names one, for at most `give_up_days` after it was due.
    Later days do not wait for it, nor does a day in [schedule] skip_days wait. A rehearsed day is published when it is
    due, or given up at the end of its waiting time; other days are published now. No day is published on a date before
    `not_before`, because the dates of a ledger never decrease.

    Raises:
        LedgerError: days are due, but the clock's date is before `not_before`.
    """
    due: list[DueDay] = []
    waiting: list[date] = []
    for day in days_of(run.schedule.first_day, min(run.schedule.last_day or until.date(), until.date())):
        series = budget.due_series(run, day, closed)
        if not series:
            continue
        day_end = run.input.layout.day_end(day)
        if day_end + timedelta(days=run.promise.age_days or 0) > until:
            break
        for names in budget.by_covered_days(run.series, series, day):
            arrival = _arrival(run, run.series[names[0]].covered_days(day), until)
            if arrival == "waits":
                waiting.append(day)
                continue
            given_up, skipped = arrival == "given up", arrival == "skipped"
            waited = timedelta(days=run.schedule.patience_days if given_up else 0)
            is_rehearsal = run.schedule.mode == "rehearsal"
            publish_on = max(due_date(run, day) + waited, not_before) if is_rehearsal else until.date()
            cells = _cells(run, roster, day, names)
            due.append(DueDay(day, clock.format_instant(day_end), publish_on, cells, names, given_up, skipped))
    if due and run.schedule.mode != "rehearsal" and until.date() < not_before:
        raise LedgerError(
            f"the clock shows {until.date()}, but the ledger's newest release was published on {not_before}, and "
            "publication dates never decrease. Correct the clock, or run again on that date"
        )
    # a day that was given up is published after days that were due while it waited
    return DueDays(tuple(sorted(due, key=lambda due_day: due_day.publish_on)), tuple(dict.fromkeys(waiting)))


def _arrival(run: RunFile, covered: tuple[date, date], until: datetime) -> Arrival:
    """Return whether the deliveries of the covered days are complete; one day decides for all."""
    arrivals = {_arrival_of_day(run, day, until) for day in days_of(*covered)}
    ends: tuple[Arrival, ...] = ("skipped", "waits", "given up")
    return next((arrival for arrival in ends if arrival in arrivals), "complete")


def _arrival_of_day(run: RunFile, day: date, until: datetime) -> Arrival:
    if day in run.schedule.skipped_days:
        return "skipped"
    if _is_delivered(run, day):
        return "complete"
    due_at = run.input.layout.day_end(day) + timedelta(days=run.promise.age_days or 0)
    return "given up" if until >= due_at + timedelta(days=run.schedule.patience_days) else "waits"


def _is_delivered(run: RunFile, day: date) -> bool:
    """Return whether the marker of a day's delivery exists, a public event; without markers age alone decides."""
    marker = run.schedule.marker
    if marker is None:
        return True
    marker_path = marker.replace("{day}", day.isoformat())
    if filesystem.is_url(marker_path):
        with filesystem.input_errors(f"[schedule] wait_for: the marker of {day}", marker_path):
            return filesystem.exists(marker_path)
    try:
        (run.folder / marker_path).stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:  # unreadable is not absent: the day would be given up
        raise RunFileError(
            f"[schedule] wait_for: the marker of {day} cannot be checked ({error.strerror}); correct the path, or "
            "let this user read its folder"
        ) from None
    return True


def _cells(run: RunFile, roster: RosterCounts, day: date, names: Sequence[str]) -> dict[str, Cells]:
    """Return the cells of each series on a day: "all", or the groups of its roster column that are large enough.

    Cells of a row that covers several days are counted in household-days; they are empty unless it is named.
    """
    min_households, cells = run.population.min_households, dict[str, Cells]()
    for name, series in run.series.items():
        days = () if series.covers_periods and name not in names else days_of(*series.covered_days(day))
        cells[name] = budget.row_cells(roster, series, days, min_households) if days else ()
    return cells


@dataclass(frozen=True, slots=True)
class DuePlan:
    """Planned releases and skipped days of a run now, and the first refusal, if any."""

    planned: tuple[PlannedRelease, ...]
    refused: Refused | None

    @property
    def releases(self) -> tuple[ReleaseRecord, ...]:
        """Return the rows, without values."""
        return tuple(planned.row for planned in self.planned)


def plan_due_days(terms: ReleaseTerms, due: Sequence[DueDay], history: Sequence[AnyRelease]) -> DuePlan:
    """Plan the due days in order, as `release` would, on a copy of the history; draws nothing."""
    rows: list[AnyRelease] = [*history]
    planned: list[PlannedRelease] = []
    for due_day in due:
        for series in due_day.series:
            try:
                release = budget.plan_release(terms, due_day, series, rows)
            except Refused as refused:
                return DuePlan(tuple(planned), refused)
            planned.append(release)
            rows.append(release.row)
    return DuePlan(tuple(planned), None)


@dataclass(frozen=True, slots=True)
class RunForecast:
    """The due days of a run with the releases planned now, and the forecast.

    Attributes:
        run: the inputs of the run.
        history: what the ledger has about the population.
        terms: the terms of the planned releases.
        contract: the contract of the run file, as it is or will be registered.
        due_days: the due days.
        now: the releases planned now.
        forecast: what follows, if every day is released when due.
        verdict: that on a first release, None for a running series.
    """

    run: RunContext
    history: PopulationHistory
    terms: ReleaseTerms
    contract: Mapping[str, Any]
    due_days: DueDays
    now: DuePlan
    forecast: Forecast
    verdict: Verdict | None

    @property
    def spent(self) -> int:
        """Return the loss that is spent, calibration draws included [nano-epsilon]."""
        return sum(row.loss for row in self.history.rows) + total_charge(self.terms.notion.charges)

    @property
    def refusals(self) -> list[str]:
        """Return why a first run refuses the run file, before it draws anything."""
        refusals, run, has_begun = list[str](), self.run.run_file, self.history.has_begun
        checks = [
            partial(check, run, has_begun=has_begun) for check in (check_corrections_declared, check_model_accepted)
        ]
        if not has_begun:
            checks.append(partial(check_enough_households, run, self.run.roster.counts, self.due_days.due))
        for check in checks:
            try:
                check()
            except RunFileError as error:
                refusals.append(str(error))
        return [*refusals, *filter(None, [verdict_refusal(self.verdict, self.terms, self.run)])]

    @property
    def refused(self) -> str:
        """Return the first reason why the next run, or a day of it, is refused, "" if nothing is."""
        return next(iter(self.refusals), str(self.now.refused or ""))

    @property
    def ended(self) -> str:
        """Return why the series has ended, "" if it continues or has not begun."""
        expected, rows = self.forecast, self.history.rows
        if not rows or self.now.releases:
            return ""
        if self.now.refused is not None:
            return str(self.now.refused)
        if expected.next_day is None:
            return f"its period ended with {self.run.run_file.schedule.last_day}"
        if expected.last_day is None and expected.ended_by_promise:
            return expected.stopped or expected.refusal or budget.format_end_reason(self.terms, rows)
        return ""

    @property
    def last_released_day(self) -> str:
        """Return the newest released day, "none" without one."""
        return max((row.day for row in self.history.rows if row.state == "released"), default="none")

    @property
    def last_possible_day(self) -> str:
        """Return the last released day of an ended series, else that of the promise or the period; "" without any."""
        if self.ended:
            return self.last_released_day
        if self.open_until is not None:
            return ""
        if self.now.refused is not None:
            return self.now.releases[-1].day if self.now.releases else ""
        return self.forecast.last_day.isoformat() if self.forecast.last_day else ""

    @property
    def ended_by_promise(self) -> bool:
        """Return whether the promise ends with that day, rather than the period."""
        return self.now.refused is not None or self.forecast.ended_by_promise

    @property
    def open_until(self) -> date | None:
        """Return the last day of the forecast, None where the promise or the period ends before it."""
        run = self.run.run_file
        end, last = forecast_days(run, self.history.rows)[1], run.schedule.last_day
        return end if not self.ended_by_promise and (last is None or last > end) else None

    @property
    def skipped_ahead(self) -> list[Skip]:
        """Return the days that will be skipped once they are due, if every day is released then."""
        due = max((release.row.day for release in self.now.planned), default="")
        return [(day, series) for day, series in self.forecast.skipped if day.isoformat() > due and not series]


def forecast_run(session: LedgerSession) -> RunForecast:
    """Return the plan and forecast of a run with the present ledger; writes and draws nothing.

    Raises:
        ContractChanged: the run file differs from the contract.
    """
    due_days = find_due_days(session)
    run, history, terms = session.run, session.history, session.terms()
    due_plan = plan_due_days(terms, due_days.due, history.rows)
    expected = forecast(terms, history.view(run.roster.counts, run.today))
    verdict = find_verdict(session, due_days)
    return RunForecast(run, history, terms, session.promise, due_days, due_plan, expected, verdict)


def end_within_30_days(session: LedgerSession) -> date | None:
    """Return the last day that the promise permits if it is less than 30 days ahead, else None."""
    session = session.opened()
    if session.ledger is None:
        return None
    run, history = session.run, session.history
    expected = forecast(session.terms(), history.view(run.roster.counts, run.today), days_ahead=30)
    newest = max((date.fromisoformat(row.day) for row in history.rows), default=run.run_file.schedule.first_day)
    return expected.last_day or newest if expected.ended_by_promise else None
