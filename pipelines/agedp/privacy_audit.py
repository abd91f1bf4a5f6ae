"""Audit of a run file: lower bounds of the privacy loss and tests of the law of the noise, on synthetic households.

The idea: the audit knows the exact values of its synthetic households, so it knows every draw of noise. Each group's
fair bit chooses one of two worlds that differ in its households; guesses of the bits bound the loss from below. The
residuals, published minus exact values, must be independent draws of the law that the ledger records.

    ledger 1    night 1: days 1-2    night 2: days 3-8, after which days 1-2 must be published unchanged
    ledger 2    the same households, readings and days: other noise

Then few households are released twice, with other readings and everything public equal. Dates, skipped days, losses,
scales, counts of households and refusals must be equal: readings decide none of them.

Decisions:

* The real path is run, from CSV files to the release folder. The folder is evaluated, and the sums that the pipeline
  recorded before its draws, which must equal those of the audit.
* Days are released in two nights, as a schedule would do, and again in fresh ledgers.
* All alarms together are false with a probability below 1 in 100,000: three bounds at confidence 99.9999 % each, and
  all tests of the noise at 5 in 1,000,000 together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from itertools import combinations, count, product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from agedp.compute.engine_settings import SILENT, ProgressReporter
from agedp.local_files import atomic_files
from agedp.local_files.atomic_files import InternalPaths
from agedp.pipeline import STAGES, run_stages
from agedp.release_folder.result_tables import read_guarantee
from agedp.release_verification import ReleaseFolder
from agedp.run_context import RunContext, engine_for
from agedp.stage_values import P, StageCaller, T, due_date
from agedp.stages.release import ImpossibleSum
from agedp.synthetic_worlds import BIT_DAYS, FIRST_DAY, ExactValues, SyntheticWorlds, rules_of
from agedp_data import clock, mechanisms, table_schemas
from agedp_data.arrays import Floats, Mask
from agedp_data.audit import lower_bounds
from agedp_data.audit.lower_bounds import AuditDatasets, AuditedRelease, AuditedSeries
from agedp_data.audit.noise_tests import NoiseTest, Residuals, noise_tests, place_tests, series_tests, significant_tests
from agedp_data.config import RunFile, load
from agedp_data.config.input import INPUTS
from agedp_data.config.model_section import accepted
from agedp_data.config.output import OutputSection, PopulationSection
from agedp_data.config.schedule import Archive, Rehearsal, ScheduleSection
from agedp_data.datasets.validation import Ints
from agedp_data.epsilon import NANO, format_epsilon, round_nano
from agedp_data.errors import AgedpError, InputError, PreflightFailed
from agedp_data.ledger import Ledger, ReleaseRecord
from agedp_data.model import read_model
from agedp_data.parameters import Acceptance
from agedp_data.roster import read_roster
from agedp_data.series.layered_mean import is_upper
from agedp_data.series.series import AnySeries, level_column, table_name
from agedp_data.series.series_terms import layer_number

# --------------------------------------------------------------------------------------------------
# Releases of an audit's synthetic households: fresh ledgers, two nights each, and what the folders then contain.
#
#     <folder>/roster.csv, readings.csv, repeated.csv     the same for all ledgers
#     <folder>/ledger0/ledger.sqlite, release/, confidential/
#
# Decisions:
#
# * Every ledger has a release folder and a confidential folder of its own: nothing of one release is known to the
#   next.
# * An archive's nights are run by a simulated clock. They release the days that have ended, as a real run does that is
#   started within the period.
# --------------------------------------------------------------------------------------------------

NIGHTS = 2
_GROUP = "street"


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
                texts = [", ".join(str(getattr(rows[day, series], field)) for field in fields) for rows in releases]
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
        folder, published = self.folder / f"ledger{ledger}", []
        call = _counting_stages(progress, ledger, self.worlds.datasets.ledgers)
        for context in self._contexts(folder, replace(progress, notice=None)):
            summary = run_stages(context, call=call)
            stored = summary.session.opened().ledger
            rows = () if stored is None else stored.rows(context.population)
            if isinstance(summary.refusal, PreflightFailed) or not rows:
                summary.check_not_refused()
            if not _has_values(rows):
                raise InputError(_NOTHING)
            published.append(self._read_published(folder))
        return tuple(published)

    def public_record(self) -> PublicRecord:
        """Release the days in a fresh ledger in two nights; return what was decided, an error included."""
        folder, refusals = self.folder / "ledger0", list[AgedpError | None]()
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

    def _contexts(self, folder: Path, progress: ProgressReporter) -> Iterator[RunContext]:
        """Yield the inputs of each night's run in a new folder, when it is its turn."""
        folder.mkdir()
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
        places: dict[str, Any] = {name: str(folder / name) for name in ("release", "confidential")}
        london = next(kind for kind in INPUTS if "london" in str(kind.model_fields["dataset"].annotation))
        table = {"dataset": "london", "files": list(self.files), "preflight": "report"}
        last_day = FIRST_DAY + timedelta(days=self.worlds.datasets.days - 1)
        period: dict[str, Any] = {"first_day": FIRST_DAY, "last_day": last_day}
        schedule: ScheduleSection = Rehearsal(mode="rehearsal", rehearsal_on="readings", **period)
        if run.schedule.mode == "archive":
            schedule = Archive(mode="archive", **period)
        roster = str(self.folder / "roster.csv")
        return run.model_copy(
            update={
                "input": london.model_validate({**table, "max_half_hour_kwh": run.input.max_half_hour_kwh}),
                "output": OutputSection(**places, ledger=f"sqlite:///{folder / 'ledger.sqlite'}"),
                "population": PopulationSection(name="made-up", roster=roster, min_households=1),
                "schedule": schedule,
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
        drawn = self.run.series[name].table.drawn
        scales = {row.day: row.scale for row in rows if row.series == name and row.state == "released"}
        sums = sums.filter(pc.equal(sums["series"], name))
        days, noisy, recorded, epsilon = [], [], [], []
        for day in pc.unique(table["day"]).to_pylist():
            day_rows, day_sums = (of_series.filter(pc.equal(of_series["day"], day)) for of_series in (table, sums))
            days.append(day)
            noisy.append(self._by_group(day_rows["group"].to_pylist(), day_rows[drawn].to_numpy()))
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


def _counting_stages(progress: ProgressReporter, ledger: int, ledgers: int) -> StageCaller:
    """Return what calls stages and reports the number of those done, of all ledgers and nights."""
    steps = count(ledger * NIGHTS * len(STAGES) + 1)

    def call(_: str, stage: Callable[P, T], /, *values: P.args, **options: P.kwargs) -> T:
        result = stage(*values, **options)
        if progress.progress is not None:
            progress.progress("audit", next(steps), ledgers * NIGHTS * len(STAGES))
        return result

    return call


CONFIDENCE: Final = 0.999999
"""Confidence of each lower bound: an alarm forbids every release, so it must not be chance."""
SIGNIFICANCE: Final = 5e-6
"""Probability that any test of the noise is a false alarm."""
FALSE_ALARM: Final = "0.00001"
"""The probability that an audit raises a false alarm lies below this: three bounds and all tests together."""
_COMPARED_DATASETS = AuditDatasets(2, 1, varying_groups=2, days=3 * BIT_DAYS, ledgers=1)
_TESTS_OF_SERIES = 60  # at most; more tests need stronger evidence
_UNIT = 1e-9
Nights = Sequence[PublishedNight]
"""What the folder of a ledger contains after each of its nights."""


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
    """Measured losses of the synthetic groups, the detected faults, and the faults that were not detectable.

    `tests` is the number of tests of the noise, `draws` the number of draws that they examined.
    """

    measured: tuple[MeasuredLoss, ...]
    datasets: AuditDatasets
    faults: tuple[str, ...]
    undetectable: tuple[str, ...]
    tests: int = 0
    draws: int = 0

    @property
    def is_within_promise(self) -> bool:
        """Return whether no lower bound exceeds its promise and no fault was detected."""
        return not self.faults and all(loss.is_within_promise for loss in self.measured)


def audit(
    run_file: str | Path, *, datasets: AuditDatasets | None = None, progress: ProgressReporter = SILENT
) -> AuditResult:
    """Audit a run file: measure its losses on synthetic households, and test the law of its noise.

    Use it once per installation and run file, before the first release. Nothing of the run file's own data is read.

    Args:
        run_file: path of the run file.
        datasets: number and size of the groups, days and ledgers; None: chosen so that faults are detected at the
            losses of this run file.
        progress: receives the number of stages done.

    Raises:
        RunFileError: the run file is invalid.
        AgedpError: every error that a run of this run file would raise.
    """
    run = load(Path(run_file))
    with TemporaryDirectory(prefix="agedp-audit-") as name:
        folder, record = Path(name), None
        first, second = _two_worlds(run, folder)
        try:
            if datasets is None:
                record = first.public_record()
                datasets = _chosen_datasets(run, first.published(record))
            releases = SyntheticReleases.of(run, folder / "audit", datasets)
            ledgers = [releases.nights(ledger, progress) for ledger in range(datasets.ledgers)]
            result = _evaluated(run, releases.worlds, ledgers)
            return result if result.faults else replace(result, faults=_decided_by_readings(first, second, record))
        except ImpossibleSum as impossible:
            stopped = f"the pipeline stopped before a draw: {impossible}"
            return AuditResult((), datasets or _COMPARED_DATASETS, (stopped,), ())
        except AgedpError:  # perhaps one that the readings decide
            if faults := _decided_by_readings(first, second, record):
                return AuditResult((), datasets or _COMPARED_DATASETS, faults, ())
            raise


def _two_worlds(run: RunFile, folder: Path) -> tuple[SyntheticReleases, SyntheticReleases]:
    """Return releases of two worlds with equal public inputs and other readings; none has begun."""
    no_bits = np.zeros(_COMPARED_DATASETS.groups, bool)
    worlds = SyntheticWorlds.of(run, _COMPARED_DATASETS, group_bits=no_bits, household_bits=no_bits)
    return (
        SyntheticReleases.of_worlds(run, folder / "one", worlds),
        SyntheticReleases.of_worlds(run, folder / "other", worlds.opposite()),
    )


def _decided_by_readings(
    first: SyntheticReleases, second: SyntheticReleases, record: PublicRecord | None
) -> tuple[str, ...]:
    """Return what differs between two worlds; `record` is that of the first, if it has been released."""
    differences = (record or first.public_record()).differences(second.public_record())
    return tuple(f"the readings decide {what}" for what in differences)


def _chosen_datasets(run: RunFile, small: PublishedNight) -> AuditDatasets:
    """Return the smallest sizes that detect what the largest ones do, at the losses of the first two days."""
    probe = small.series
    cells = sum(series.noisy.shape[-1] for series in probe.values())
    sizes = list(lower_bounds.audit_sizes(float(next(iter(probe.values())).epsilon[0]), cells=cells))
    largest = _expected_powers(run, probe, sizes[-1])
    return next(size for size in sizes if lower_bounds.is_chosen_size(_expected_powers(run, probe, size), largest))


def _expected_powers(run: RunFile, probe: Mapping[str, SeriesValues], datasets: AuditDatasets) -> dict[str, float]:
    bits = np.arange(datasets.groups) % 2 == 0
    worlds = SyntheticWorlds.of(run, datasets, group_bits=bits, household_bits=bits)
    exact = {name: worlds.exact(run, run.series[name], days=range(datasets.days)) for name in probe}
    scales = {
        name: np.full((datasets.ledgers, datasets.days), series.scale[:BIT_DAYS][-1]) for name, series in probe.items()
    }
    return _powers(exact, scales, tests=_TESTS_OF_SERIES * len(probe))


def _powers(exact: Mapping[str, ExactValues], scales: Mapping[str, Floats], *, tests: int) -> dict[str, float]:
    series = []
    for name, of in exact.items():
        _, groups, cells = of.values.shape
        shifts = {fault: of.shifts[fault] for fault in lower_bounds.FAULTS_OF_SUMS}
        series.append(AuditedSeries(scales[name], groups, cells, shifts))
    return lower_bounds.fault_powers(series, significance=SIGNIFICANCE / tests)


def _evaluated(run: RunFile, worlds: SyntheticWorlds, ledgers: Sequence[Nights]) -> AuditResult:
    """Return measured losses, faults and the power of the tests, from the nights of each ledger."""
    published = ledgers[0][-1].series
    exact = {name: worlds.exact(run, run.series[name], days=of.days) for name, of in published.items()}
    residuals = {name: _residuals(name, of, ledgers) for name, of in exact.items()}
    tests = {f"series {name}": noise_tests(of, exact[name].shifts) for name, of in residuals.items()}
    for name, second in combinations(residuals, 2):
        tests[f"series {name} and {second}"] = list(series_tests(residuals[name], residuals[second]))
    if len(exact) > 1:
        tests["all series"] = list(place_tests([(residuals[name], of.shifts) for name, of in exact.items()]))
    number = sum(map(len, tests.values()))
    powers = _powers(exact, {name: of.scale for name, of in residuals.items()}, tests=number)
    return AuditResult(
        tuple(_measured(run, worlds, exact, ledgers[0])),
        worlds.datasets,
        (*_ledger_faults(run, ledgers), *_recorded_faults(exact, ledgers), *_noise_faults(tests, number)),
        lower_bounds.undetectable_faults(powers),
        number,
        sum(of.noise.size for of in residuals.values()),
    )


def _residuals(name: str, exact: ExactValues, ledgers: Sequence[Nights]) -> Residuals:
    published = [nights[-1].series[name] for nights in ledgers]
    noise = np.stack([series.noisy - exact.values for series in published])
    return Residuals(noise, np.stack([series.scale for series in published]), sum(day < BIT_DAYS for day in exact.days))


def _noise_faults(tests: Mapping[str, Sequence[NoiseTest]], number: int) -> Iterator[str]:
    """Yield the significant results of the tests of the noise."""
    for name, of in tests.items():
        for test in significant_tests(of, significance=SIGNIFICANCE / number):
            yield f"{name}: {test.fault} (p-value {max(test.p_value, 1e-99):.0e})"


def _ledger_faults(run: RunFile, ledgers: Sequence[Nights]) -> Iterator[str]:
    """Yield the faults that are certain: of one ledger, its statement and its scales."""
    redrawn, unstated, unscaled = False, [], []
    for first, last in ledgers:
        redrawn |= any(_is_redrawn(series, last.series.get(name)) for name, series in first.series.items())
        for night in (first, last):
            spent = sum(round_nano(epsilon) for series in night.series.values() for epsilon in series.epsilon.tolist())
            if night.stated_total < spent:
                unstated.append((night.stated_total, spent))
        unscaled += [name for name, series in last.series.items() if _is_unscaled(run.series[name], series)]
    if redrawn:
        yield "a second run published different values of the same days: each draw has a privacy loss of its own"
    for stated_total, spent in unstated[:1]:
        stated, charged = format_epsilon(stated_total), format_epsilon(spent)
        yield f"the statement reports a total of {stated}, but the releases are charged {charged}"
    for name in dict.fromkeys(unscaled):
        yield f"series {name}: the recorded noise scale is too small for the recorded loss"


def _is_redrawn(first: SeriesValues, last: SeriesValues | None) -> bool:
    """Return whether a day of the first night is published differently after the last."""
    if last is None or not set(first.days) <= set(last.days):
        return True
    return not np.array_equal(first.noisy, last.noisy[[last.days.index(day) for day in first.days]])


def _is_unscaled(series: AnySeries, published: SeriesValues) -> bool:
    sensitivity = rules_of(series).sensitivity
    return any(
        mechanisms.recorded_loss(sensitivity=sensitivity, scale=scale) > round_nano(epsilon)
        for scale, epsilon in zip(published.scale.tolist(), published.epsilon.tolist(), strict=True)
    )


def _recorded_faults(exact: Mapping[str, ExactValues], ledgers: Sequence[Nights]) -> Iterator[str]:
    """Yield the series whose recorded sums are not those of the synthetic households."""
    for name, of in exact.items():
        recorded = {
            (ledger, day): sums
            for ledger, nights in enumerate(ledgers)
            for night in nights
            if name in night.series
            for day, sums in zip(night.series[name].days, night.series[name].recorded, strict=True)
            if sums is not None
        }
        values = dict(zip(of.days, of.values, strict=True))
        days = list(product(range(len(ledgers)), of.days))
        wrong = sum(not np.array_equal(recorded.get(key, ()), values[key[1]]) for key in days)
        if wrong:
            yield (
                f"series {name}: on {wrong} of {len(days)} days the sums that noise was added to differ from those of "
                "the synthetic households"
            )


def _measured(
    run: RunFile, worlds: SyntheticWorlds, exact: Mapping[str, ExactValues], nights: Nights
) -> Iterator[MeasuredLoss]:
    """Yield the measured losses of a household; two publications of a value are averaged."""
    first, last = (_Guesses.of(run, exact, night, worlds) for night in nights)
    early = first.releases
    positions = (first.group_positions + last.group_positions[[last.releases.index(release) for release in early]]) / 2
    size, bits = worlds.datasets.households_per_group, worlds.group_bits
    yield _measured_loss("one release", early[0].epsilon, early[:1], positions[:1], bits, size)
    totals = [night.stated_total / NANO for night in nights]
    yield _measured_loss(_scope(early), totals[0], early, positions, bits, size)
    if len(last.releases) > len(early):
        worlds_bits = worlds.household_bits
        yield _measured_loss(_scope(last.releases), totals[1], last.releases, last.household_positions, worlds_bits, 1)


def _scope(releases: Sequence[AuditedRelease]) -> str:
    days = len({release.day for release in releases})
    return f"all releases of {days} day{'s' * (days != 1)}"


def _measured_loss(
    scope: str, promised: float, releases: Sequence[AuditedRelease], positions: Floats, bits: Mask, households: int
) -> MeasuredLoss:
    """Return the measured loss of releases from the position of each group between its two worlds."""
    weights = np.array([max(release.effective_epsilon, _UNIT) for release in releases])
    scores = weights @ positions / weights.sum()
    lower_bound = lower_bounds.epsilon_lower_bound(scores, bits, confidence=CONFIDENCE) / households
    parts = lower_bounds.moved_cell_losses(releases, households)
    detectable = lower_bounds.detectable_epsilon(promised * households, bits.size, parts=parts, confidence=CONFIDENCE)
    return MeasuredLoss(scope, float(promised), lower_bound, float(detectable) / households)


@dataclass(frozen=True, slots=True)
class _Guesses:
    """The releases of a night, and where their values lie between two worlds, from 0 to 1, shape (releases, groups)."""

    releases: tuple[AuditedRelease, ...]
    group_positions: Floats
    household_positions: Floats

    @classmethod
    def of(
        cls, run: RunFile, exact: Mapping[str, ExactValues], night: PublishedNight, worlds: SyntheticWorlds
    ) -> _Guesses:
        """Return the positions of all releases of a night, by series and day."""
        varying_groups = worlds.datasets.varying_groups
        releases, group_positions, household_positions = [], [], []
        for name, published in night.series.items():
            of = exact[name]
            for i, day in enumerate(published.days):
                index, noisy = of.days.index(day), published.noisy[i, varying_groups:]
                group_worlds, household_worlds = (
                    [values[index, varying_groups:] for values in two_worlds]
                    for two_worlds in (of.group_worlds, of.household_worlds)
                )
                releases.append(_audited_release(run, name, day, float(published.epsilon[i]), household_worlds))
                group_positions.append(_positions(noisy, *group_worlds))
                household_positions.append(_positions(noisy, *household_worlds))
        return cls(tuple(releases), np.array(group_positions), np.array(household_positions))


def _audited_release(
    run: RunFile, name: str, day: int, epsilon: float, household_worlds: Sequence[Ints]
) -> AuditedRelease:
    change = np.abs(household_worlds[1][0] - household_worlds[0][0])
    span = float(change.sum()) / rules_of(run.series[name]).sensitivity
    moved_cells = max(1, int(np.count_nonzero(change)))
    return AuditedRelease((FIRST_DAY + timedelta(days=day)).isoformat(), name, epsilon, moved_cells, span)


def _positions(noisy: Ints, low: Ints, high: Ints) -> Floats:
    """Return by group the position of its noisy values between low (0) and high (1): a log likelihood ratio.

    The ratio of a cell is linear between the two exact values and constant beyond them.
    """
    is_moved = (high != low)[0]
    if not is_moved.any():  # states may give equal totals to all uses beyond a clamp
        return np.full(len(noisy), 0.5)
    position = (noisy - low)[:, is_moved] / (high - low)[:, is_moved]
    return np.asarray(np.clip(position, 0.0, 1.0).mean(axis=1))
