"""State of one run: run file, date, roster and model, and the results of its stages so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any

from agedp.budget import ReleaseTerms, binding_models, model_id, series_by_contract
from agedp.compute.engine import default_scheduler
from agedp.compute.engine_settings import SILENT, Engine, ProgressReporter
from agedp.internal_records.roster_history import RosterDigest, RosterHistory
from agedp.local_files import atomic_files
from agedp.local_files.internal_files import FileNotice
from agedp.preflight.alerts import Alert
from agedp.preflight.input_checks import Finding
from agedp.preflight.input_facts import InputFacts
from agedp.release_folder.origin import ReleaseOrigin, check_ledger_not_behind, release_origins
from agedp.release_folder.remote import RemoteFolder
from agedp.stage_values import DailySum, Delivery, DueDays, last_due_date
from agedp.store.store import FileOrder, Store
from agedp_data import clock
from agedp_data.config import RunFile, contract_part, load
from agedp_data.config.loading import read_scheduler
from agedp_data.datasets.filesystem import is_url
from agedp_data.datasets.validation import NamedColumns, ReadingRules
from agedp_data.errors import LedgerBehind, RunFileError
from agedp_data.leakage.bound_table import LeakageBound
from agedp_data.ledger import Ledger, ReleaseRecord
from agedp_data.ledger.hash_chain import HashChain
from agedp_data.ledger.witness import CommitWitness
from agedp_data.ledger.witness_address import witness_at
from agedp_data.model import Model, read_model
from agedp_data.roster import Roster, read_roster


@dataclass(slots=True)
class Work:
    """One run; its stages fill the lower fields. Confidential: it is never passed to another process."""

    run: RunFile
    now: datetime
    as_of: date | None
    engine: Engine
    roster: Roster
    model: Model | None
    contract: str = ""
    earlier_models: Mapping[str, LeakageBound] = field(default_factory=dict)
    due_days: DueDays = field(default_factory=lambda: DueDays(()))
    delivery: Delivery | None = None
    sums: Mapping[tuple[date, str], DailySum] = field(default_factory=dict)
    released: Sequence[ReleaseRecord] = ()
    late_rows: int = 0
    drawn_days: tuple[date, ...] = ()
    is_first: bool = False
    findings: Sequence[Finding] = ()
    alerts: Sequence[Alert] = ()
    examined_days: tuple[date, ...] = ()
    examines_all: bool = False
    input_facts: InputFacts | None = None
    notices: tuple[FileNotice, ...] = ()
    report_failures: tuple[FileNotice, ...] = ()
    is_reported: bool = False
    store_lock: ExitStack = field(default_factory=ExitStack)
    roster_digest: RosterDigest = field(init=False)
    remote_folder: RemoteFolder | None = field(init=False)
    _ledger: Ledger | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.roster_digest = RosterDigest(self.roster)
        location = self.run.output.release
        self.remote_folder = RemoteFolder(location, self.confidential / "release") if is_url(location) else None

    @property
    def today(self) -> date:
        """Return the date of the run: the simulated one in a rehearsal."""
        return self.as_of or self.now.date()

    @property
    def until(self) -> datetime:
        """Return the instant up to which days are due; a simulated date stands for its first instant.

        Raises:
            RunFileError: a rehearsal of an open period without the date at which its clock stops.
        """
        if self.as_of is None and self.run.schedule.mode == "rehearsal":
            raise RunFileError("a rehearsal without [schedule] last_day needs --as-of DATE")
        return self.now if self.as_of is None else datetime.combine(self.as_of, time(), UTC)

    @property
    def population(self) -> str:
        """Return the name of the population."""
        return self.run.population.name

    @property
    def store(self) -> Store:
        """Return the store of the readings."""
        return store_for(self.run)

    @property
    def confidential(self) -> Path:
        """Return the confidential folder."""
        return Path(self.run.output.confidential)

    @property
    def release(self) -> Path:
        """Return the release folder; for one at a URL, its local copy in the confidential folder."""
        return Path(self.run.output.release) if self.remote_folder is None else self.remote_folder.copy

    @property
    def true_means(self) -> Path:
        """Return the path of the table of true means."""
        return self.confidential / "true_means.parquet"

    @property
    def true_counts(self) -> Path:
        """Return the path of the table of true counts."""
        return self.confidential / "true_counts.parquet"

    @property
    def coverage(self) -> Path:
        """Return the path of the table of coverage."""
        return self.confidential / "coverage.parquet"

    @property
    def counted_states(self) -> Path:
        """Return the path of the table of means by states and by readings."""
        return self.confidential / "counted_states.parquet"

    @property
    def terms(self) -> ReleaseTerms:
        """Return the terms of every release of the run."""
        newest = self.model.leakage_bound if self.model else None
        leakage_bounds = (newest, *self.earlier_models.values())
        return ReleaseTerms(
            self.run, self.run.notion, leakage_bounds, self.contract, self.model.id if self.model else ""
        )

    @property
    def promise(self) -> dict[str, Any]:
        """Return the contract text of the run file, as a mapping."""
        return contract_part(self.run, model=self.model.id if self.model else None)

    @property
    def has_ledger(self) -> bool:
        """Tell whether a ledger exists already, or a release folder, which proves that one existed."""
        return self._ledger is not None or self._ledger_exists or bool(self._release_origins())

    @property
    def _ledger_exists(self) -> bool:
        return Ledger.exists(self.run.output.ledger)

    def _release_origins(self) -> frozenset[ReleaseOrigin]:
        """Return the origins that the files of the release folder name.

        Raises:
            RunFileError: the folder is another population's.
        """
        if self.remote_folder is not None:
            self.remote_folder.fetch()
        origins = release_origins(self.release)
        other_populations = {origin.population for origin in origins} - {self.population, ""}
        if other_populations:
            raise RunFileError(
                f"[output] release holds the release of population {min(other_populations)!r}; name another folder"
            )
        return origins

    def checked_ledger(self, *, create: bool = False) -> Ledger:
        """Return the ledger, checked against the release folder; for each stage that plans, draws or publishes.

        It is opened once per run and read completely; later calls read only new rows, which must extend the hash chain.

        Raises:
            LedgerBehind: the ledger lacks rows from which the release folder was published, or days that the roster
                history records as released; continuing would draw the same days a second time.
        """
        origins = self._release_origins()
        if origins and not self._ledger_exists:
            raise LedgerBehind(
                "the release folder was published from a ledger that is not there; put it back, restore it from the "
                "folder (`agedp ledger recover`), or name another folder in [output] release"
            )
        ledger = self._ledger or self._open_ledger(create=create)
        check_ledger_not_behind(ledger, origins)
        self.roster_history(ledger.id).check_none_beyond(ledger.rows(self.population))
        self._ledger = ledger
        self._use_stored_model(ledger)
        return ledger

    def _open_ledger(self, *, create: bool) -> Ledger:
        ledger = Ledger.open(self.run.output.ledger, create=create)
        witness = self._commit_witness()
        if witness is not None:
            ledger.attach(witness)
        return ledger

    def _commit_witness(self) -> CommitWitness | None:
        address = self.run.output.witness
        return None if address is None else CommitWitness(witness_at(address), population=self.population)

    def check_nothing_witnessed(self) -> None:
        """Check, before a ledger is created, that the witness has not confirmed rows of an earlier one.

        Raises:
            LedgerError: the witness has confirmed such rows, or does not answer.
        """
        witness = self._commit_witness()
        if witness is not None:
            witness.check(HashChain)

    def _use_stored_model(self, ledger: Ledger) -> None:
        """Use the model stored in the ledger if the contract in force names it and both have the same grid.

        The last digits of a kernel's pieces may differ on another machine, so the stored ones are used. A series that
        began without pieces keeps its grid: the pieces would be one more model in force.
        """
        contracts = ledger.contracts(self.population)
        promised_model = model_id(contracts[-1]) if contracts else None
        if self.model is None or promised_model in {None, self.model.id}:
            return
        stored = next(
            (
                Model.from_text(model_record.envelope)
                for model_record in ledger.models()
                if model_record.model == promised_model
            ),
            None,
        )
        if stored is not None and stored.without_pieces.id == self.model.without_pieces.id:
            self.model = stored

    def opened_ledger(self) -> Ledger | None:
        """Return the ledger as an earlier stage checked it, else checked now; None if it does not exist."""
        return self._ledger or (self.checked_ledger() if self.has_ledger else None)

    def rows(self) -> tuple[ReleaseRecord, ...]:
        """Return the rows of the population in the ledger, of all runs."""
        ledger = self.opened_ledger()
        return ledger.rows(self.population) if ledger is not None else ()

    def next_day(self) -> date:
        """Return the first day of the period that is neither released nor skipped."""
        done = {row.day for row in self.rows()}
        day = self.run.schedule.first_day
        while day.isoformat() in done:
            day += timedelta(days=1)
        return day

    def roster_history(self, ledger_id: str) -> RosterHistory:
        """Return the roster history of the population for a ledger id; "" before the ledger exists."""
        rehearsal = self.run.schedule.mode == "rehearsal"
        return RosterHistory(self.confidential / "released_rosters.parquet", self.population, ledger_id, rehearsal)


def apply_earlier_contracts(work: Work, ledger: Ledger) -> None:
    """Apply the ledger's earlier contracts to a run: their series, and their models other than the newest."""
    newest = work.model.id if work.model else ""
    bounds = binding_models(ledger, work.population).items()
    work.earlier_models = {name: leakage_bound for name, leakage_bound in bounds if name != newest}
    work.run = work.run.following(series_by_contract(ledger.contracts(work.population)))


def load_work(
    run_file: str | Path,
    *,
    scheduler: str | None = None,
    as_of: date | None = None,
    now: datetime | None = None,
    progress: ProgressReporter = SILENT,
) -> Work:
    """Load the inputs of a run: run file, roster, model; creates the confidential folder and writes nothing else.

    Raises:
        RunFileError: an invalid run file, or `as_of` without a rehearsal.
        InputError: an invalid roster or declared model.
    """
    run = load_run_file(run_file)
    if as_of is not None and run.schedule.mode != "rehearsal":
        raise RunFileError('--as-of goes with [schedule] mode = "rehearsal" only')
    if run.schedule.mode == "rehearsal" and as_of is None:
        as_of = last_due_date(run)  # None for an open period; stages that do not draw need no date
    roster = read_roster(run.population.roster)
    for name, series in run.series.items():
        if series.by is not None and series.by not in roster.groups:
            raise RunFileError(f"{run.name}: [series.{name}] by = {series.by!r}: the roster has no such column")
    model = read_model(run)
    _check_method(run, model)
    return Work(run, now or clock.now(), as_of, engine_for(run, scheduler, progress), roster, model)


def _check_method(run: RunFile, model: Model | None) -> None:
    """Refuse a method that the estimated model has no bound by; no other method replaces it."""
    method = getattr(run.promise, "method", None)
    if method is not None and model is not None and method not in model.leakage_bound.methods:
        available = ", ".join(sorted(model.leakage_bound.methods))
        raise RunFileError(
            f"{run.name}: [promise] method = {method!r}: the model has no bound by this method. The paper's "
            f"spectral bound needs every chain to be reversible. The model has {available}."
        )


def load_run_file(run_file: str | Path) -> RunFile:
    """Return a run file, and create its confidential folder.

    Raises:
        RunFileError: an invalid run file.
    """
    run = load(Path(run_file))
    atomic_files.restrict_access(Path(run.output.confidential))
    return run


def engine_for(run: RunFile, scheduler: str | None, progress: ProgressReporter = SILENT) -> Engine:
    """Return the engine of a run; `scheduler` overrides the run file's, which overrides the Dask configuration."""
    configured = run.engine.scheduler if "scheduler" in run.engine.model_fields_set else default_scheduler()
    return Engine(
        configured if scheduler is None else read_scheduler(scheduler),
        run.engine.workers,
        run.engine.block_mib * 2**20,
        progress=progress.progress,
        dashboard=progress.dashboard,
    )


def reading_rules(run: RunFile) -> ReadingRules:
    """Return the rules for reading the rows of a run file's input files."""
    named = run.input.named_columns
    columns = NamedColumns.from_keys(named) if named is not None else None
    table = run.input
    return ReadingRules(table.max_half_hour_wh, table.dataset_keys, columns, table.interval_minutes)


def store_for(run: RunFile) -> Store:
    """Return the store of a run file's readings, with its rules for reading rows."""
    rules = reading_rules(run)
    order = FileOrder(run.input.file_order, keeps_unlisted=run.schedule.mode != "archive")
    return Store(Path(run.output.confidential) / "store", run.input.dataset, rules, order)
