"""The inputs of one run: run file, roster, model, date and engine. Loading them draws nothing and opens no ledger."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Final

from agedp.compute.engine import choose_scheduler, default_scheduler
from agedp.compute.engine_settings import SILENT, Engine, ProgressReporter, Scheduler
from agedp.internal_records.roster_history import load_roster
from agedp.local_files import atomic_files
from agedp.local_files.atomic_files import InternalPaths
from agedp.local_files.books import Books
from agedp.stage_values import last_due_date
from agedp.store.store import FileOrder, Store, store_buckets
from agedp_data import clock
from agedp_data.config import RunFile, load
from agedp_data.config.model_section import EstimatedModel
from agedp_data.datasets.filesystem import is_url
from agedp_data.datasets.validation import NamedColumns, ReadingRules
from agedp_data.errors import RunFileError
from agedp_data.messages import escape_text, suggest_name
from agedp_data.meters import MeterFile, read_meters
from agedp_data.model import PUBLIC_FILE, Model, read_model
from agedp_data.roster import Roster, RosterCounts
from agedp_data.series.series import table_name

_LOG = logging.getLogger("agedp")

NEEDS_MODEL: Final = (
    'a rehearsal with rehearsal_on = "synthetic" reads no readings, and so makes no model. Name the folder of a model '
    'that exists, or declare one ([model] source = "declared")'
)


@dataclass(frozen=True, slots=True)
class RunContext:
    """The inputs of one run; no stage changes them. Confidential: it is never passed to another process.

    A table in memory is released in a temporary folder: then no accounts count the releases (`is_outside_register`),
    and without a ledger of the caller's nothing remembers what was spent (`has_temporary_ledger`).
    """

    run_file: RunFile
    roster: Roster
    model: Model | None
    now: datetime
    as_of: date | None
    engine: Engine
    meters: Roster | None = None
    is_outside_register: bool = False
    has_temporary_ledger: bool = False

    @classmethod
    def load(
        cls,
        run_file: str | Path,
        *,
        scheduler: Scheduler = None,
        as_of: date | None = None,
        now: datetime | None = None,
        progress: ProgressReporter = SILENT,
        accept: Iterable[str] = (),
    ) -> RunContext:
        """Load the inputs of a run; creates the confidential folder and writes nothing else but the roster's cache.

        `accept` are words beside those of [promise] accept.

        Raises:
            RunFileError: an invalid run file, or `as_of` without a rehearsal.
            InputError: an invalid roster or declared model.
        """
        run = load_run_file(run_file).accepting(accept)
        return cls.of(run, scheduler=scheduler, as_of=as_of, now=now, progress=progress)

    @classmethod
    def of(
        cls,
        run: RunFile,
        *,
        scheduler: Scheduler = None,
        as_of: date | None = None,
        now: datetime | None = None,
        progress: ProgressReporter = SILENT,
    ) -> RunContext:
        """Return the inputs of a run with a loaded run file.

        Raises:
            RunFileError: `as_of` without a rehearsal, or a group column that the roster does not have.
            InputError: an invalid roster or declared model.
        """
        if as_of is not None and run.schedule.mode != "rehearsal":
            raise RunFileError('--as-of goes with [schedule] mode = "rehearsal" only')
        if run.schedule.mode == "rehearsal" and as_of is None:
            as_of = last_due_date(run)  # None for an open period; stages that do not draw need no date
        levels = {column for series in run.series.values() if len(series.columns) > 1 for column in series.columns}
        roster = load_roster(run.population.roster, Books(internal_paths(run).books), path_columns=levels)
        _check_columns(run, roster.counts)
        made = Path(run.model.file, PUBLIC_FILE) if isinstance(run.model, EstimatedModel) else None
        if made is not None and not run.schedule.reads_input and not made.exists():  # only readings could make it
            raise RunFileError(f"{run.name}: [model] file: the model does not exist yet; {NEEDS_MODEL}")
        model = read_model(run)
        _check_method(run, model)
        log_warnings(run.roundings)
        engine = engine_for(run, scheduler, progress)
        return cls(run, roster, model, now or clock.now(), as_of, engine, load_meters(run))

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
        if self.as_of is None and self.run_file.schedule.mode == "rehearsal":
            raise RunFileError("a rehearsal without [schedule] last_day needs --as-of DATE")
        return self.now if self.as_of is None else datetime.combine(self.as_of, time(), UTC)

    @property
    def population(self) -> str:
        """Return the name of the population."""
        return self.run_file.population.name

    @property
    def is_rehearsal(self) -> bool:
        """Return whether the run is a rehearsal."""
        return self.run_file.schedule.mode == "rehearsal"

    @property
    def store(self) -> Store:
        """Return the store of the readings."""
        return store_for(self.run_file, households=self.roster.counts.size, meters=self.meters)

    @property
    def paths(self) -> InternalPaths:
        """Return the paths in the confidential folder."""
        return internal_paths(self.run_file)

    @property
    def books(self) -> Books:
        """Return the book of the confidential folder."""
        return Books(self.paths.books)

    @property
    def release_folder(self) -> Path:
        """Return the release folder; for one at a URL, its local copy in the confidential folder."""
        location = self.run_file.output.release
        return self.paths.release_copy if is_url(location) else Path(location)


def log_warnings(lines: Iterable[str]) -> None:
    """Log public warnings about a run file; they reach the terminal as well."""
    for line in lines:
        _LOG.warning("agedp: %s", line)


def _check_columns(run: RunFile, roster: RosterCounts) -> None:
    """Refuse a group column that the roster does not have."""
    for name, series in run.series.items():
        for column in series.columns:
            if not roster.has(column):
                known = f"its group columns are {escape_text(', '.join(roster.groups))}"
                advice = suggest_name(column, [*roster.groups]) or f"; {known if roster.groups else 'it has none'}"
                key = f"[series.{table_name(name)}] by = {column!r}"
                raise RunFileError(f"{run.name}: {key}: the roster has no such column{advice}")


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
    atomic_files.make_private(internal_paths(run).folder)
    return run


def internal_paths(run: RunFile) -> InternalPaths:
    """Return the paths in the confidential folder; a rehearsal on synthetic households has a subfolder of its own.

    Its sums and reports are of no real household, so they never lie among records of readings.
    """
    folder = Path(run.output.confidential)
    return InternalPaths(folder if run.schedule.reads_input else folder / "synthetic")


def engine_for(run: RunFile, scheduler: Scheduler, progress: ProgressReporter = SILENT) -> Engine:
    """Return the engine of a run; `scheduler` overrides the run file's, which overrides the Dask configuration."""
    configured = run.engine.scheduler if "scheduler" in run.engine.model_fields_set else default_scheduler()
    return Engine(
        configured if scheduler is None else choose_scheduler(scheduler),
        run.engine.workers,
        run.engine.block_mib * 2**20,
        progress=progress.progress,
        dashboard=progress.dashboard,
        notice=progress.notice,
    )


def reading_rules(run: RunFile) -> ReadingRules:
    """Return the rules for reading the rows of a run file's input files."""
    named = run.input.named_columns
    columns = NamedColumns.from_keys(named) if named is not None else None
    table = run.input
    return ReadingRules(table.max_half_hour_wh, table.dataset_keys, columns, table.interval_minutes)


def load_meters(run: RunFile) -> Roster | None:
    """Return the meters of a run file's households; None if the ids of its input files are households.

    Raises:
        InputError: an invalid file of meters.
    """
    return None if run.population.meters is None else read_meters(run.population.meters)


def store_for(run: RunFile, *, households: int, meters: Roster | None = None) -> Store:
    """Return the store of a run file's readings, with its rules for reading rows.

    A new store is split into buckets for so many households; with meters, which change households, it is one.

    Raises:
        RunFileError: a store with several buckets, and meters.
    """
    rules = reading_rules(run)
    order = FileOrder(run.input.file_order, keeps_unlisted=run.schedule.mode != "archive")
    folder = internal_paths(run).store
    if meters is None or run.population.meters is None:
        return Store(folder, run.input.dataset, rules, order, store_buckets(folder, households))
    if store_buckets(folder, 1) > 1:
        raise RunFileError(
            f"{run.name}: [population] meters: the store is divided by the ids of the files, as of households. "
            "Remove the folder store in the confidential folder; the next run reads the input files again"
        )
    return Store(folder, run.input.dataset, rules, order, 1, MeterFile(run.population.meters, meters.file_digest))
