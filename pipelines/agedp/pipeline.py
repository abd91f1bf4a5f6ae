"""The stages of a run in order, and `sanitise`, which runs them as one plain function; the Prefect flow runs the same.

The promise is checked against the ledger before the first file is opened: a promise that cannot be kept is refused
before any reading is read or any noise drawn. Stages pass values through `Work`, inside one process; no confidential
value is an argument that a scheduler could store.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path

from agedp.budget import closed_days
from agedp.internal_records.cell_tables import recorded_days
from agedp.local_files import atomic_files, locks
from agedp.local_files.atomic_files import FolderRemoved
from agedp.local_files.disk_space import check_disk_space
from agedp.planning.forecast import Forecast, ForecastContract, ForecastView, forecast
from agedp.preflight.preflight_records import count_reported, write_findings
from agedp.release_folder.release_folder import ReleaseFolder
from agedp.run_context import Work, apply_earlier_contracts, load_work
from agedp.stage_values import Delivery, DueDays
from agedp.stages.aggregate import aggregate
from agedp.stages.day_boundaries import check_day_boundaries
from agedp.stages.ingest import ingest
from agedp.stages.plan import DuePlan, list_due_days, plan_due_days
from agedp.stages.preflight_stage import check_not_refused, collect_run_facts, judge_facts, report_facts
from agedp.stages.publish import publish_release
from agedp.stages.release import release
from agedp.stages.report import check_records, format_reports_status, unreported_days, write_reports
from agedp.store.daily_totals import compute_state_days
from agedp.store.retention import count_late_rows
from agedp_data.config.contract_values import meaning_of
from agedp_data.errors import AgedpError, LedgerError, Refused, RunFileError
from agedp_data.ledger import Ledger, ReleaseRecord

Stage = Callable[[Work], None]

_LOG = logging.getLogger("agedp")
_MAX_REREADS = 20


def sanitise(run_file: str | Path, *, scheduler: str | None = None, as_of: date | str | None = None) -> ReleaseFolder:
    """Release every due day of a run file and return its release folder; the Python equivalent of `agedp run`.

    Args:
        run_file: path of the run file.
        scheduler: as [engine] scheduler, which it overrides.
        as_of: in rehearsals, the simulated date up to which days are released, such as "2026-04-01"; of an instant
            its date counts. If not given, the date on which the last day of the period is due.

    Raises:
        AgedpError: one line with problem, place and remedy; committed releases remain and are published.
    """
    work = load_work(run_file, scheduler=scheduler, as_of=_date(as_of))
    run_stages(lambda _, stage: stage(work))
    if work.report_failures:
        _LOG.warning("agedp: %s", format_reports_status(work))
    return ReleaseFolder(work.release)


def _date(as_of: date | str | None) -> date | None:
    """Return a date from a date, an instant (as data frames contain) or ISO text."""
    if isinstance(as_of, str):
        try:
            return date.fromisoformat(as_of)
        except ValueError:
            raise RunFileError(f'as_of = {as_of!r}: must be a date such as "2026-04-01"') from None
    return as_of.date() if isinstance(as_of, datetime) else as_of


def run_stages(call: Callable[[str, Stage], None]) -> None:
    """Run the stages in order; if a release is refused, publish and report the committed rows, then raise."""
    for name, stage in STAGES:
        try:
            call(name, stage)
        except LedgerError:
            if stage is release_days:
                for after in STAGES[-2:]:
                    call(*after)
            raise


def plan(work: Work) -> None:
    """Stage 1: compare the run file with the contract, if it exists, list the due days, and check the disk space."""
    work.due_days, _ = _due_days_and_view(work)
    if work.due_days.due:
        check_corrections_declared(work)
        if work.remote_folder is not None:
            work.remote_folder.try_writing()
        check_disk_space(work.release, work.run.output.ledger)


def check_corrections_declared(work: Work) -> None:
    """Refuse a new live population without a rule for two files with conflicting readings.

    A series that has begun without the key keeps its rule.

    Raises:
        RunFileError: [input] corrections is missing, and no contract is registered.
    """
    table, ledger = work.run.input, work.opened_ledger()
    begun = ledger is not None and bool(ledger.contracts(work.population))
    if work.run.schedule.mode == "live" and "corrections" not in table.model_fields_set and not begun:
        raise RunFileError(
            f"{work.run.name}: [input] corrections is missing: a new live population needs a rule for conflicting "
            'readings from two files. Write corrections = "later-file" (file_order defines which file is later), or '
            '"set-aside", which keeps neither'
        )


def _due_days_and_view(work: Work) -> tuple[DueDays, ForecastView]:
    """Return the due days, and the released rows with contracts and roster."""
    rows: tuple[ReleaseRecord, ...] = ()
    view = ForecastView((), work.roster, work.today)
    if not work.has_ledger:
        work.roster_history("").check_none_beyond(())
        work.check_nothing_witnessed()
    else:
        ledger = work.checked_ledger()
        _check_ledger_mode(work, ledger)
        ledger.require_unchanged(work.promise, population=work.population)
        rows, view = ledger.rows(), _forecast_view(work, ledger)
        work.roster_history(ledger.id).check_unchanged(work.roster_digest, view.rows, view.contracts)
        check_day_boundaries(work.run, view.contracts, view.rows)
        apply_earlier_contracts(work, ledger)
        work.terms.effective_promise.review(view.rows)
    newest = max((date.fromisoformat(row.published_on) for row in rows), default=date.min)
    closed = closed_days(view.rows, view.contracts)
    return list_due_days(work.run, work.roster, closed, until=work.until, not_before=newest), view


def _forecast_view(work: Work, ledger: Ledger) -> ForecastView:
    return ForecastView(ledger.rows(work.population), work.roster, work.today, ledger.contracts(work.population))


def _check_ledger_mode(work: Work, ledger: Ledger) -> None:
    rehearsing = work.run.schedule.mode == "rehearsal"
    for contract in ledger.contracts():
        if (meaning_of(contract.promise)["schedule"]["mode"] == "rehearsal") != rehearsing:
            raise LedgerError("a rehearsal needs a ledger of its own; name another in [output] ledger")


def read_files(work: Work) -> None:
    """Stage 2: read the input files into the confidential store, and lock it until the days are summed."""
    folder = atomic_files.make_private(work.store.folder)
    work.store_lock.enter_context(locks.exclusive_lock(folder))
    try:
        _reread_damaged(work, _read)
        work.late_rows = count_late_rows(work.store, _delivery(work).fresh, _released_days(work))
    except BaseException:
        work.store_lock.close()
        raise


def _read(work: Work) -> None:
    work.delivery = ingest(
        work.store,
        work.run.input.files,
        engine=work.engine,
        excluding=[work.run.population.roster],
        has_begun=bool(_released_days(work)),
    )


def aggregate_days(work: Work) -> None:
    """Stage 3: sum the due days, and days of earlier runs that are not recorded yet."""
    with work.store_lock:
        work.notices = check_records(work)
        _reread_damaged(work, _aggregate)
        _reread_damaged(work, _check_input)


def _aggregate(work: Work) -> None:
    # another run may have released a due day, and deleted its readings, while this one waited
    recorded = {(row.day, row.series) for row in work.rows()}
    due = {
        due_day.day
        for due_day in work.due_days.due
        if any((str(due_day.day), name) not in recorded for name in due_day.series)
    }
    unreported = unreported_days(work) or set()
    days = sorted(due | _unrecorded_days(work) | unreported)
    path, series, states = work.confidential / "sums.parquet", work.run.series, work.run.counted_states
    compute_state_days(work.store, _delivery(work), days, states, engine=work.engine)
    work.sums = aggregate(work.store, _delivery(work), work.roster, days=days, series=series, path=path, states=states)
    work.drawn_days = tuple(due_day.day for due_day in work.due_days.due if due_day.is_drawn and due_day.day in due)
    work.examined_days = tuple(sorted({*work.drawn_days, *unreported}))
    work.is_first = not _released_days(work)
    work.examines_all = work.is_first or count_reported(work.confidential, population=work.population) == 0


def check_input_files(work: Work) -> None:
    """Read the input files and record what they contain, for `agedp plan`; nothing is drawn or registered.

    Does nothing after the first release, or where no day is due.

    Raises:
        InputError: a file that cannot be parsed.
    """
    work.due_days, _ = _due_days_and_view(work)
    if not work.due_days.due or _released_days(work):
        return
    read_files(work)
    with work.store_lock:
        _reread_damaged(work, _aggregate)
        if work.drawn_days:
            _judge_input(work)


def _check_input(work: Work) -> None:
    """Compute the facts of the input files of a run with due days, while the store is locked.

    Before the first release they are recorded now, later by the report stage.

    Raises:
        PreflightFailed: the facts make a first release senseless.
    """
    if work.is_first and work.drawn_days:
        _judge_input(work)
        check_not_refused(work)
    elif work.examined_days:
        work.input_facts = collect_run_facts(work, _delivery(work))
        report_facts(work, work.input_facts)


def _judge_input(work: Work) -> None:
    work.input_facts = collect_run_facts(work, _delivery(work))
    judge_facts(work, work.input_facts)
    write_findings(work.confidential, work.findings, population=work.population, on=work.today, released=0)


def _reread_damaged(work: Work, step: Callable[[Work], None]) -> None:
    """Run a step that reads the store; if it removed a damaged file, read that again from the input files first.

    Raises:
        FolderRemoved: too many files were damaged; the next run continues.
    """
    steps = [step]
    for _ in range(_MAX_REREADS):
        with suppress(FolderRemoved):
            return [run_step(work) for run_step in steps][-1]
        steps = [_read] if step is _read else [_read, step]
    return [run_step(work) for run_step in steps][-1]


def _unrecorded_days(work: Work) -> set[date]:
    """Return released days without recorded true values, because a run was interrupted after drawing them.

    A series that has ended since is left out: the run file does not define it any more.
    """
    recorded = recorded_days(work.true_means, work.true_counts, work.population)
    missing = {date.fromisoformat(row.day) for row in work.rows() if _is_missing(work, row, recorded)}
    return {day for day in missing if f"{day:%Y-%m}" >= work.store.retained_from()}


def _is_missing(work: Work, row: ReleaseRecord, recorded: set[tuple[str, str]]) -> bool:
    series = work.run.series.get(row.series)
    if row.state != "released" or series is None or (row.day, row.series) in recorded:
        return False
    return series.holds(row.cells)


def _released_days(work: Work) -> set[date]:
    return {date.fromisoformat(row.day) for row in work.rows() if row.state == "released"}


def _delivery(work: Work) -> Delivery:
    if work.delivery is None:
        raise RuntimeError("the stages were run out of order: nothing was read")
    return work.delivery


def release_days(work: Work) -> None:
    """Stage 4: draw, charge and store the due days; the first release registers the contract."""
    with _naming_charged_days(work):
        _release(work)


@contextmanager
def _naming_charged_days(work: Work) -> Iterator[None]:
    """Add the number of drawn, unpublished days to an error; after a ledger error they are published in this run."""
    try:
        yield
    except LedgerError:
        raise
    except AgedpError as error:
        due = {(f"{due_day.day}", series) for due_day in work.due_days.due for series in due_day.series}
        rows = [row for row in work.rows() if (row.day, row.series) in due and row.state == "released"]
        if not rows:
            raise
        days = len({row.day for row in rows})
        charged = f"{days} due {'day is' if days == 1 else 'days are'} drawn and charged; the next run publishes them"
        raise type(error)(f"{error}; {charged}", private=f"{error.private}; {charged}") from None


def _release(work: Work) -> None:
    if not work.due_days.due:
        if work.has_ledger:  # a run that was interrupted after its last draw has not settled it
            _update_roster_history(work, work.checked_ledger())
        return
    _check_first_release(work)
    ledger = work.checked_ledger(create=True)
    # A rehearsal's clock starts with its period, before anything is published.
    at = work.today if work.as_of is None else min(work.run.schedule.first_day, work.as_of)
    if work.model is not None:
        ledger.register_model(work.model.text, at=at)
    work.contract = ledger.register(work.promise, population=work.population, at=at).hash
    apply_earlier_contracts(work, ledger)
    columns = sorted({due_day.by for due_day in work.run.series.values() if due_day.by is not None})
    note = work.roster_history(ledger.id).before_draw(
        work.roster_digest, columns, [due.day for due in work.due_days.due]
    )
    try:
        work.released = release(ledger, work.terms, work.due_days.due, work.sums, before_draw=note)
    except Refused:
        due = {(str(due_day.day), series) for due_day in work.due_days.due for series in due_day.series}
        work.released = tuple(row for row in work.rows() if (row.day, row.series) in due)
        raise
    finally:
        _update_roster_history(work, ledger)


def _update_roster_history(work: Work, ledger: Ledger) -> None:
    rows, contracts = ledger.rows(work.population), ledger.contracts(work.population)
    work.roster_history(ledger.id).record_rosters(work.roster_digest, rows, contracts)


def _check_first_release(work: Work) -> None:
    """Check, before a contract is registered, that it permits a first release of at least one household."""
    if not work.has_ledger:
        if not any(cells for due in work.due_days.due for cells in due.cells.values()):
            min_households = work.run.population.min_households
            raise RunFileError(
                f"{work.run.name}: [population] min_households = {min_households}: no due day has {min_households} "
                "households on the roster. Lower min_households or correct the roster"
            )
        if all(due.skipped for due in work.due_days.due) and work.run.schedule.mode == "archive":
            raise RunFileError("[schedule] skip_days: lists every day of the period. Remove the days to be released.")
        first = next((due for due in work.due_days.due if due.is_drawn), work.due_days.due[0])
        due_plan = plan_due_days(work.terms, [first], ())
        if due_plan.refused is not None:
            raise due_plan.refused


def publish_folder(work: Work) -> None:
    """Stage 5: write the release folder from the ledger, and store its statement in the ledger."""
    if not work.has_ledger:
        return
    ledger = work.checked_ledger()
    with _naming_charged_days(work):
        publish_release(work, ledger)


STAGES: tuple[tuple[str, Stage], ...] = (
    ("plan", plan),
    ("read", read_files),
    ("aggregate", aggregate_days),
    ("release", release_days),
    ("publish", publish_folder),
    ("report", write_reports),
)


@dataclass(frozen=True, slots=True)
class RunForecast:
    """Loss spent [nano-epsilon], releases due now, waiting days, and forecast; what `agedp plan` prints."""

    spent: int
    now: DuePlan
    waiting: tuple[date, ...]
    forecast: Forecast


def forecast_run(work: Work) -> RunForecast:
    """Return the plan and forecast of a run with the present ledger; writes and draws nothing.

    Raises:
        ContractChanged: the run file differs from the contract.
    """
    due_days, view = _due_days_and_view(work)
    spent = sum(row.loss for row in view.rows)
    due_plan = plan_due_days(work.terms, due_days.due, view.rows)
    return RunForecast(spent, due_plan, due_days.waiting, _forecast(work, view))


def end_within_30_days(work: Work) -> date | None:
    """Return the last day that the promise permits if it is less than 30 days ahead, else None."""
    ledger = work.opened_ledger()
    if ledger is None:
        return None
    view = _forecast_view(work, ledger)
    forecast = _forecast(work, view, days_ahead=30)
    newest = max((date.fromisoformat(row.day) for row in view.rows), default=work.run.schedule.first_day)
    return forecast.last_day or newest if forecast.ended_by_promise else None


def _forecast(work: Work, view: ForecastView, *, days_ahead: int | None = None) -> Forecast:
    return forecast(ForecastContract(work.promise, work.terms.effective_promise), view, days_ahead=days_ahead)
