"""Audit of a run file: measured lower bounds of the privacy loss, on synthetic groups of households.

The idea: for each group a fair bit is drawn. At 0 its households use nothing, at 1 they use the largest permitted
reading in every half-hour. Every group is a group of the roster, so that one release contains as many independent draws
as groups. A skipped clamp, too little noise, a second draw of the same day or a loss that is not recorded makes the bit
easier to guess than the promise permits.

Decisions:

* The real path is run, from CSV files to the release folder, and only the folder is evaluated.
* The same days are published twice, as a schedule would do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from agedp.compute.engine_settings import SILENT, ProgressReporter
from agedp.pipeline import STAGES, run_stages
from agedp.release_folder.release_folder import ReleaseFolder
from agedp.release_folder.result_tables import read_guarantee
from agedp.run_context import RunContext, engine_for
from agedp.stage_values import last_due_date
from agedp_data import clock, mechanisms
from agedp_data.arrays import Floats, Mask
from agedp_data.audit.lower_bounds import detectable_epsilon, epsilon_lower_bound
from agedp_data.audit.noise_tests import is_noise_too_large, is_noise_too_small
from agedp_data.audit.power import (
    AuditDatasets,
    AuditedRelease,
    choose_audit_datasets,
    moved_cell_losses,
    undetectable_faults,
)
from agedp_data.config import RunFile, load
from agedp_data.config.input import INPUTS
from agedp_data.config.output import OutputSection, PopulationSection
from agedp_data.config.schedule import Archive, Rehearsal
from agedp_data.datasets.validation import SLOTS, Ints
from agedp_data.epsilon import NANO, format_epsilon, round_nano
from agedp_data.errors import PreflightFailed
from agedp_data.model import read_model
from agedp_data.roster import read_roster
from agedp_data.series.series import AnySeries, Distribution

CONFIDENCE = 0.999999
"""Confidence of each bound and each test: an alarm forbids every release, so it must not be chance."""
_FIRST, _DAYS, _RUNS = date(2013, 1, 1), 2, 2
_GROUP = "street"
_PROBE_DATASETS = AuditDatasets(2, 1)
_UNIT = 1e-9


@dataclass(frozen=True, slots=True)
class MeasuredLoss:
    """The promised loss of a scope, its measured lower bound, and the least loss that was detectable [epsilon]."""

    scope: str
    promised: float
    lower_bound: float
    detectable: float

    @property
    def is_within_promise(self) -> bool:
        """Return whether the lower bound does not exceed the promised loss."""
        return self.lower_bound <= self.promised


@dataclass(frozen=True, slots=True)
class AuditResult:
    """Measured losses of the synthetic groups, the detected faults, and the faults that were not detectable."""

    measured: tuple[MeasuredLoss, ...]
    datasets: AuditDatasets
    faults: tuple[str, ...]
    undetectable: tuple[str, ...]

    @property
    def is_within_promise(self) -> bool:
        """Return whether no lower bound exceeds its promise and no fault was detected."""
        return not self.faults and all(loss.is_within_promise for loss in self.measured)


@dataclass(frozen=True, slots=True)
class _AuditDay:
    """A published release of an audit run: its loss, its noisy values by group and cell, and two exact values.

    `low_values` and `high_values` are the exact values, shape (cells,), of a group that uses nothing and of one that
    uses the most.
    """

    release: AuditedRelease
    noisy_values: Ints
    low_values: Ints
    high_values: Ints

    @property
    def positions(self) -> Floats:
        """Return by group the position of its noisy values between low (0) and high (1): a log likelihood ratio.

        The ratio of a cell is linear between the two exact values and constant beyond them.
        """
        is_moved = self.high_values != self.low_values
        if not is_moved.any():  # states may give equal totals to all uses beyond a clamp
            return np.full(len(self.noisy_values), 0.5)
        spans = (self.high_values - self.low_values)[is_moved]
        position = (self.noisy_values - self.low_values)[:, is_moved] / spans
        return np.asarray(np.clip(position, 0.0, 1.0).mean(axis=1))

    def count_near(self, bits: Mask) -> int:
        """Return the number of noisy values within the noise's width of their exact values."""
        exact_values = np.where(bits[:, None], self.high_values, self.low_values)
        return int(np.count_nonzero(np.abs(self.noisy_values - exact_values) <= self.release.law.width))


def audit(
    run_file: str | Path, *, datasets: AuditDatasets | None = None, progress: ProgressReporter = SILENT
) -> AuditResult:
    """Audit a run file: measure the loss of one release and of all releases of two days on synthetic households.

    Use it once per installation and run file, before the first release. Nothing of the run file's own data is read.

    Args:
        run_file: path of the run file.
        datasets: number and size of the groups; None: chosen so that the losses of this run file are easiest to detect.
        progress: receives the number of stages done.

    Raises:
        RunFileError: the run file is invalid.
        AgedpError: every error that a run of this run file would raise.
    """
    run = load(Path(run_file))
    with TemporaryDirectory(prefix="agedp-audit-") as folder:
        if datasets is None:
            probe, _ = next(
                _run_audits(
                    run, Path(folder) / "probe", _PROBE_DATASETS, mechanisms.fair_bits(_PROBE_DATASETS.groups), SILENT
                )
            )
            datasets = choose_audit_datasets([day.release for day in probe])
        bits = mechanisms.fair_bits(datasets.groups)
        audit_runs = list(_run_audits(run, Path(folder) / "streets", datasets, bits, progress))
    audited = [day.release for day in audit_runs[0][0]]
    count_significance = (1 - CONFIDENCE) / (2 * len(audited))  # two counts of each release
    return AuditResult(
        tuple(_measured(audit_runs, datasets, bits)),
        datasets,
        (*_faults(audit_runs), *_misplaced(audit_runs[0][0], bits, significance=count_significance)),
        undetectable_faults(audited, datasets, significance=count_significance),
    )


_AuditRun = tuple[tuple[_AuditDay, ...], int]
"""The published releases after an audit run, and the total that its statement reports [nano-epsilon]."""


def _measured(audit_runs: list[_AuditRun], datasets: AuditDatasets, bits: Mask) -> Iterator[MeasuredLoss]:
    """Yield the measured losses of a household; two publications of a value are averaged."""
    days, total = audit_runs[0]
    households = datasets.households_per_group
    weights = np.array([max(day.release.effective_epsilon, _UNIT) for day in days])
    positions = np.mean([[day.positions for day in published] for published, _ in audit_runs], axis=0)
    for scope, selected, promised in (
        ("one release", slice(0, 1), days[0].release.epsilon),
        (f"all releases of {_DAYS} days", slice(None), total / NANO),
    ):
        scores = weights[selected] @ positions[selected] / weights[selected].sum()
        lower_bound = epsilon_lower_bound(scores, bits, confidence=CONFIDENCE) / households
        parts = moved_cell_losses([day.release for day in days[selected]], households)
        detectable = detectable_epsilon(promised * households, datasets.groups, parts=parts, confidence=CONFIDENCE)
        yield MeasuredLoss(scope, float(promised), lower_bound, float(detectable) / households)


def _faults(audit_runs: list[_AuditRun]) -> Iterator[str]:
    """Yield the faults that are certain, whatever the noise."""
    (days, total), *later = audit_runs
    for published, _ in later:
        pairs = zip(days, published, strict=True)
        if any(not np.array_equal(first.noisy_values, second.noisy_values) for first, second in pairs):
            yield "a second run published different values of the same days: each draw has a privacy loss of its own"
    spent = sum(round_nano(day.release.epsilon) for day in days)
    if total < spent:
        yield (
            f"the statement reports a total of {format_epsilon(total)}, but the releases are charged "
            f"{format_epsilon(spent)}"
        )


def _misplaced(days: tuple[_AuditDay, ...], bits: Mask, *, significance: float) -> Iterator[str]:
    """Yield the releases whose values do not lie where their noise puts them."""
    for day in days:
        near_count, draws, law = day.count_near(bits), day.noisy_values.size, day.release.law
        counts = f"{near_count:,} of {draws:,} values"
        description = f"series {day.release.series}: {counts} lie within {law.width:,} of the true ones"
        if is_noise_too_small(near_count, draws, law, significance=significance):
            yield f"{description}, too many for the noise that their loss requires"
        if is_noise_too_large(near_count, draws, law, significance=significance):
            yield f"{description}, too few: their noise or their sums differ from what is documented"


def _run_audits(
    run: RunFile, folder: Path, datasets: AuditDatasets, bits: Mask, progress: ProgressReporter
) -> Iterator[_AuditRun]:
    """Publish the synthetic households twice, and yield the published releases after each run."""
    folder.mkdir()
    max_wh = run.input.max_half_hour_wh
    households = datasets.households_per_group
    names = [f"street{i:05d}" for i in range(datasets.groups) for _ in range(households)]
    ids = [f"home{i:07d}" for i in range(len(names))]
    lines = (f"{household},{_FIRST},,{group}" for household, group in zip(ids, names, strict=True))
    (folder / "roster.csv").write_text("\n".join([f"household_id,from,to,{_GROUP}", *lines]) + "\n")
    _write_readings(folder / "readings.csv", ids, np.where(np.repeat(bits, households), max_wh / 1000, 0.0))
    synthetic, model, roster = _synthetic_run_file(run, folder), read_model(run), read_roster(folder / "roster.csv")
    as_of = last_due_date(synthetic) if synthetic.schedule.mode == "rehearsal" else None
    for run_number in range(_RUNS):
        audited = RunContext(synthetic, roster, model, clock.now(), as_of, engine_for(synthetic, None, progress))
        summary = run_stages(audited, done=_step_counter(progress, run_number))
        if isinstance(summary.refusal, PreflightFailed):  # a refused day: the promise may permit one day only
            raise summary.refusal
        released = ReleaseFolder(folder / "release")
        stated_total = released.read_statement().unconditional_epsilons["total"]
        yield tuple(_read_published(released, synthetic, datasets, max_wh)), round_nano(Decimal(stated_total))


def _step_counter(progress: ProgressReporter, run_number: int) -> Callable[[], None]:
    """Return a callback that reports the number of stages done, of all runs."""
    steps = count(run_number * len(STAGES) + 1)

    def done() -> None:
        if progress.progress is not None:
            progress.progress("audit", next(steps), _RUNS * len(STAGES))

    return done


def _synthetic_run_file(run: RunFile, folder: Path) -> RunFile:
    """Return the run file over synthetic households: same series, promise and model, each group published alone."""
    london = next(kind for kind in INPUTS if "london" in str(kind.model_fields["dataset"].annotation))
    last = _FIRST + timedelta(days=_DAYS - 1)
    is_archive = run.schedule.mode == "archive"
    input_section = {"dataset": "london", "files": [str(folder / "readings.csv")]}
    return run.model_copy(
        update={
            "input": london.model_validate({**input_section, "max_half_hour_kwh": run.input.max_half_hour_kwh}),
            "output": OutputSection(
                release=str(folder / "release"),
                confidential=str(folder / "confidential"),
                ledger=f"sqlite:///{folder / 'ledger.sqlite'}",
            ),
            "population": PopulationSection(name="made-up", roster=str(folder / "roster.csv"), min_households=1),
            "schedule": Archive(mode="archive", first_day=_FIRST, last_day=last)
            if is_archive
            else Rehearsal(mode="rehearsal", rehearsal_on="readings", first_day=_FIRST, last_day=last),
            "series": {name: series.model_copy(update={"by": _GROUP}) for name, series in run.series.items()},
        }
    )


def _write_readings(path: Path, ids: list[str], energy_kwh: Floats) -> None:
    """Write half-hourly readings, constant for each household, with interval-end timestamps."""
    first = datetime(_FIRST.year, _FIRST.month, _FIRST.day, tzinfo=UTC)
    timestamps = [f"{first + timedelta(minutes=30 * (i + 1)):%Y-%m-%d %H:%M:%S}" for i in range(SLOTS * _DAYS)]
    table = pa.table(
        {
            "LCLid": pa.array(ids).take(pa.array(np.repeat(np.arange(len(ids)), len(timestamps)))),
            "tstp": pa.array(timestamps).take(pa.array(np.tile(np.arange(len(timestamps)), len(ids)))),
            "energy(kWh/hh)": np.repeat(energy_kwh, len(timestamps)),
        }
    )
    csv.write_csv(table, path, csv.WriteOptions(quoting_style="none"))


def _read_published(folder: ReleaseFolder, run: RunFile, datasets: AuditDatasets, max_wh: int) -> Iterator[_AuditDay]:
    """Yield the releases of a folder, by series and day."""
    for table in [*folder.averages().values(), *folder.distributions().values()]:
        name = read_guarantee(table.schema)["of"]
        series = run.series[name]
        totals = _HouseholdTotals.of(run, series, max_wh)
        low_values, high_values = (datasets.households_per_group * values for values in totals.exact(series))
        value_column = "households_noisy" if isinstance(series, Distribution) else "noisy_sum_wh"
        for day in pc.unique(table["day"]):
            day_rows = table.filter(pc.equal(table["day"], day))
            noisy_values = day_rows[value_column].to_numpy().reshape(-1, low_values.size)
            order = np.argsort(day_rows["group"].to_numpy()[:: low_values.size])
            release = _audited_release(name, series, day.as_py(), day_rows["epsilon"][0].as_py(), totals)
            yield _AuditDay(release, noisy_values[order], low_values, high_values)


@dataclass(frozen=True, slots=True)
class _HouseholdTotals:
    """Daily total of a household that uses nothing, one that uses the most, and the latter before the clamp [Wh]."""

    low_wh: int
    high_wh: int
    unclamped_wh: int

    @classmethod
    def of(cls, run: RunFile, series: AnySeries, max_wh: int) -> _HouseholdTotals:
        """Return the totals for a reading of 0 and of `max_wh` in every half-hour."""
        low, high = (_day_wh(run, series, wh) for wh in (0, max_wh))
        return cls(min(low, series.clamp_wh), min(high, series.clamp_wh), high)

    def exact(self, series: AnySeries) -> tuple[Ints, Ints]:
        """Return the contribution of a single household to each cell, for the low and the high total."""
        low, high = (np.array(series.exact(np.array([wh])), np.int64) for wh in (self.low_wh, self.high_wh))
        return low, high


def _day_wh(run: RunFile, series: AnySeries, wh: int) -> int:
    """Return the daily total of 48 equal readings before the clamp [Wh]."""
    states = run.counted_states
    if series.values == "readings" or states is None:
        return SLOTS * wh
    steps, value_wh = (SLOTS, wh) if states.step == "half-hour" else (1, SLOTS * wh)
    return steps * int(states.represent(np.array([value_wh]))[0])


def _audited_release(
    name: str, series: AnySeries, day: date, epsilon: float, totals: _HouseholdTotals
) -> AuditedRelease:
    if not isinstance(series, Distribution):
        excess, span = totals.unclamped_wh - totals.high_wh, (totals.high_wh - totals.low_wh) / series.clamp_wh
        return AuditedRelease(day.isoformat(), name, epsilon, 1, series.clamp_wh, 1, excess, span)
    low, high = totals.exact(series)
    moved_cells = max(1, int(np.count_nonzero(low != high)))
    return AuditedRelease(day.isoformat(), name, epsilon, moved_cells, 1, low.size, 0)
