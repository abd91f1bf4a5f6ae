"""Releases of an audit's synthetic households: fresh ledgers, two nights each, and what the folders then contain.

    <folder>/roster.csv, readings.csv, repeated.csv     the same for all ledgers
    <folder>/ledger0/ledger.sqlite, release/, confidential/

Decisions:

* Every ledger has a release folder and a confidential folder of its own: nothing of one release is known to the next.
* An archive's nights are run by a simulated clock. They release the days that have ended, as a real run does that is
  started within the period.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from agedp.compute.engine_settings import SILENT, ProgressReporter
from agedp.local_files import atomic_files
from agedp.local_files.internal_files import InternalPaths
from agedp.pipeline import STAGES, run_stages
from agedp.release_folder.release_folder import ReleaseFolder
from agedp.release_folder.result_tables import read_guarantee
from agedp.run_context import RunContext, engine_for
from agedp.stage_values import due_date
from agedp.synthetic_worlds import BIT_DAYS, FIRST_DAY, SyntheticWorlds
from agedp_data import clock, mechanisms, table_schemas
from agedp_data.arrays import Floats
from agedp_data.audit.power import AuditDatasets
from agedp_data.config import RunFile
from agedp_data.config.input import INPUTS
from agedp_data.config.model_acceptance import accepted
from agedp_data.config.output import OutputSection, PopulationSection
from agedp_data.config.schedule import Archive, Rehearsal
from agedp_data.datasets.validation import Ints
from agedp_data.epsilon import round_nano
from agedp_data.errors import AgedpError, InputError, PreflightFailed
from agedp_data.ledger import Ledger, ReleaseRecord
from agedp_data.model import read_model
from agedp_data.parameters import Acceptance
from agedp_data.roster import read_roster
from agedp_data.series.layered_mean import is_upper
from agedp_data.series.levels import level_column
from agedp_data.series.series_tables import table_name
from agedp_data.series.series_terms import layer_number

NIGHTS = 2
_GROUP = "street"
_VALUE_COLUMNS = {"distribution": "households_noisy", "coverage": "usable_noisy"}


@dataclass(frozen=True, slots=True)
class SeriesValues:
    """The releases of a series in a folder.

    Attributes:
        days: the released days, as indices from the first day on.
        noisy: published noisy values, shape (days, groups, cells) [Wh, or households].
        recorded: the sums that the pipeline recorded before the draw, the same shape; None for days of earlier nights.
        epsilon: recorded losses, shape (days,) [epsilon].
        scale: recorded noise scales, shape (days,) [Wh, or households].
    """

    days: tuple[int, ...]
    noisy: Ints
    recorded: tuple[Ints | None, ...]
    epsilon: Floats
    scale: Floats


@dataclass(frozen=True, slots=True)
class PublishedNight:
    """What a release folder contains after a night, by series, and the total of its statement [nano-epsilon]."""

    series: dict[str, SeriesValues]
    stated_total: int


@dataclass(frozen=True, slots=True)
class PublicRecord:
    """What two nights decided: the refusal of each, if any, and the releases in the ledger (public)."""

    refusals: tuple[AgedpError | None, ...]
    rows: tuple[ReleaseRecord, ...]

    def differences(self, other: PublicRecord) -> Iterator[str]:
        """Yield each public decision that differs from that of a world with other readings, once of each kind."""
        for night, errors in enumerate(zip(self.refusals, other.refusals, strict=True), 1):
            texts = ["not refused" if error is None else f"{type(error).__name__}: {error}" for error in errors]
            if texts[0] != texts[1]:
                yield f"a refusal (night {night}: {texts[0]} / {texts[1]})"
                break
        releases = [{(row.day, row.series): row for row in record.rows} for record in (self, other)]
        keys = sorted(releases[0].keys() | releases[1].keys())
        states = {key: [rows[key].state if key in rows else "not released" for rows in releases] for key in keys}
        for (day, series), (state, other_state) in states.items():
            if state != other_state:
                yield f"a released or skipped day ({day} {series}: {state} / {other_state})"
                break
        for what, fields in _DECISIONS.items():
            for day, series in (key for key in keys if states[key][0] == states[key][1]):
                texts = [_decision(rows[day, series], fields) for rows in releases]
                if texts[0] != texts[1]:
                    yield f"{what} ({day} {series}: {texts[0]} / {texts[1]})"
                    break


_DECISIONS = {
    "a date": ("published_on", "input_ended_at"),
    "a recorded loss": ("loss",),
    "a noise scale": ("scale", "sensitivity", "mechanism"),
    "a published count of households": ("cells", "households"),
}
"""Fields of a release, by what they decide."""
_NOTHING = "no day of the synthetic households is released, so that nothing can be measured"


def _decision(row: ReleaseRecord, fields: Sequence[str]) -> str:
    return ", ".join(str(getattr(row, field)) for field in fields)


def _has_values(rows: Iterable[ReleaseRecord]) -> bool:
    return any(row.state == "released" for row in rows)


@dataclass(frozen=True, slots=True)
class SyntheticReleases:
    """The synthetic households of a run file, written into a folder, and their releases."""

    run: RunFile
    folder: Path
    worlds: SyntheticWorlds
    files: tuple[str, ...]

    @classmethod
    def of(cls, run: RunFile, folder: Path, datasets: AuditDatasets) -> SyntheticReleases:
        """Draw the bits and write roster and input files into a new folder."""
        group_bits, household_bits = (mechanisms.fair_bits(datasets.groups) for _ in range(2))
        worlds = SyntheticWorlds.of(run, datasets, group_bits=group_bits, household_bits=household_bits)
        return cls.of_worlds(run, folder, worlds)

    @classmethod
    def of_worlds(cls, run: RunFile, folder: Path, worlds: SyntheticWorlds) -> SyntheticReleases:
        """Write roster and input files of these worlds into a new folder."""
        folder.mkdir()
        return cls(run, folder, worlds, tuple(map(str, worlds.write(folder, column=_GROUP))))

    def nights(self, ledger: int, progress: ProgressReporter) -> tuple[PublishedNight, ...]:
        """Release the days in a fresh ledger in two nights; return what the folder contains after each.

        Raises:
            PreflightFailed: the input is refused.
            Refused: the promise permits no day at all. It may permit the first days only, which are then evaluated.
            InputError: every day of the first night is skipped.
        """
        folder, published = self._ledger_folder(ledger), []
        done = _step_counter(progress, ledger, self.worlds.datasets.ledgers)
        for context in self._contexts(folder, replace(progress, notice=None)):
            summary = run_stages(context, done=done)
            rows = summary.session.opened().rows
            if isinstance(summary.refusal, PreflightFailed) or not rows:
                summary.check_not_refused()
            if not _has_values(rows):
                raise InputError(_NOTHING)
            published.append(self._read_published(folder))
        return tuple(published)

    def public_record(self) -> PublicRecord:
        """Release the days in a fresh ledger in two nights; return what was decided, an error included."""
        folder, refusals = self._ledger_folder(0), list[AgedpError | None]()
        for context in self._contexts(folder, SILENT):
            try:
                refusals.append(run_stages(context).refusal)
            except AgedpError as error:
                refusals.append(error)
        url = self._run_file(folder).output.ledger
        if not Ledger.exists(url):
            return PublicRecord(tuple(refusals), ())
        with Ledger.open(url) as ledger:
            return PublicRecord(tuple(refusals), ledger.rows())

    def published(self, record: PublicRecord) -> PublishedNight:
        """Return what the folder contains after the nights of `public_record`.

        Raises:
            AgedpError: the refusal of the nights, if no day was released.
        """
        if not _has_values(record.rows):
            raise next(filter(None, record.refusals), InputError(_NOTHING))
        return self._read_published(self.folder / "ledger0")

    def _ledger_folder(self, ledger: int) -> Path:
        """Return a new folder for a fresh ledger."""
        folder = self.folder / f"ledger{ledger}"
        folder.mkdir()
        return folder

    def _contexts(self, folder: Path, progress: ProgressReporter) -> Iterator[RunContext]:
        """Yield the inputs of each night's run, when it is its turn."""
        run = self._run_file(folder)
        model, roster = read_model(run), read_roster(self.folder / "roster.csv")
        simulated = run.schedule.mode == "rehearsal"
        for days in (BIT_DAYS, self.worlds.datasets.days):
            until = due_date(run, FIRST_DAY + timedelta(days=days - 1))
            now = clock.now() if simulated else datetime.combine(until, time(), UTC)
            yield RunContext(run, roster, model, now, until if simulated else None, engine_for(run, None, progress))

    def _run_file(self, folder: Path) -> RunFile:
        """Return the run file over synthetic households: same series, promise and model, each group published alone."""
        run = self.run
        london = next(kind for kind in INPUTS if "london" in str(kind.model_fields["dataset"].annotation))
        input_section = {"dataset": "london", "files": list(self.files), "preflight": "report"}
        last = FIRST_DAY + timedelta(days=self.worlds.datasets.days - 1)
        is_archive = run.schedule.mode == "archive"
        return run.model_copy(
            update={
                "input": london.model_validate({**input_section, "max_half_hour_kwh": run.input.max_half_hour_kwh}),
                "output": OutputSection(
                    release=str(folder / "release"),
                    confidential=str(folder / "confidential"),
                    ledger=f"sqlite:///{folder / 'ledger.sqlite'}",
                ),
                "population": PopulationSection(
                    name="made-up", roster=str(self.folder / "roster.csv"), min_households=1
                ),
                "schedule": Archive(mode="archive", first_day=FIRST_DAY, last_day=last)
                if is_archive
                else Rehearsal(mode="rehearsal", rehearsal_on="readings", first_day=FIRST_DAY, last_day=last),
                "series": {name: series.model_copy(update={"by": _GROUP}) for name, series in run.series.items()},
                "model": accepted(run.model),
                "promise": run.accepting(get_args(Acceptance)).promise,
            }
        )

    def _read_published(self, folder: Path) -> PublishedNight:
        release = ReleaseFolder(folder / "release")
        sums = atomic_files.read_table(InternalPaths(folder / "confidential").sums, table_schemas.SUMS)
        rows = [row for row in release.ledger_rows().rows if isinstance(row, ReleaseRecord)]
        tables = [part for table in release.series_tables().values() for part in _by_series(table, self.run)]
        series = {name: self._series(name, table, rows, sums) for name, table in tables}
        stated_total = release.read_statement().unconditional_epsilons["total"]
        return PublishedNight(series, round_nano(Decimal(stated_total)))

    def _series(self, name: str, table: pa.Table, rows: list[ReleaseRecord], sums: pa.Table) -> SeriesValues:
        value_column = _VALUE_COLUMNS.get(self.run.series[name].statistic, "noisy_sum_wh")
        scales = {row.day: row.scale for row in rows if row.series == name and row.state == "released"}
        sums = sums.filter(pc.equal(sums["series"], name))
        days, noisy, recorded, epsilon = [], [], [], []
        for day in pc.unique(table["day"]).to_pylist():
            day_rows, day_sums = (of_series.filter(pc.equal(of_series["day"], day)) for of_series in (table, sums))
            days.append(day)
            noisy.append(self._by_group(day_rows["group"].to_pylist(), day_rows[value_column].to_numpy()))
            cells = [cell.partition(" ")[0] for cell in day_sums["cell"].to_pylist()]
            recorded.append(self._by_group(cells, day_sums["value"].to_numpy()) if cells else None)
            epsilon.append(day_rows["epsilon"][0].as_py())
        return SeriesValues(
            tuple((day - FIRST_DAY).days for day in days),
            np.array(noisy),
            tuple(recorded),
            np.array(epsilon),
            np.array([scales[day.isoformat()] for day in days]),
        )

    def _by_group(self, groups: list[str], values: Ints) -> Ints:
        """Return values by group, in the order of the group names, shape (groups, cells)."""
        order = np.argsort(np.array(groups), kind="stable")
        return np.asarray(values[order].reshape(self.worlds.datasets.total_groups, -1))


def _by_series(table: pa.Table, run: RunFile) -> Iterator[tuple[str, pa.Table]]:
    """Yield each series of a published table with its rows."""
    of = str(read_guarantee(table.schema)["of"])
    for name in run.series:
        if table_name(name) != of or is_upper(name) != ("layer" in table.column_names):
            continue
        key, part = ("layer", layer_number(name)) if is_upper(name) else (table_schemas.LEVEL.name, level_column(name))
        yield name, table.filter(pc.equal(table[key], part)) if part else table


def _step_counter(progress: ProgressReporter, ledger: int, ledgers: int) -> Callable[[], None]:
    """Return a callback that reports the number of stages done, of all ledgers and nights."""
    steps: Iterator[int] = count(ledger * NIGHTS * len(STAGES) + 1)

    def done() -> None:
        if progress.progress is not None:
            progress.progress("audit", next(steps), ledgers * NIGHTS * len(STAGES))

    return done
