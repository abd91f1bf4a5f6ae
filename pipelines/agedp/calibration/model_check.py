"""READINGS of the model's period -> empirical memory: do the households mix as fast as the chain predicts?

    <confidential>/forgetting/<model>.parquet    measures of every household (`table_schemas.GOODNESS_OF_FIT`)
    <confidential>/forgetting/<model>.html       the same as a report (`reports.model_check_report`)
    <confidential>/forgetting/<hash>.json        the verdict on the model (`internal_records.model_verdict`)

<model> is the name of the model's folder, plus a mark of its location unless that is next to the confidential folder:
two models of one name have two reports.
The results are confidential and indicative: they never set noise, are in no statement, and the model's public part does
not depend on them. One pass over the store (`household_memory`), then households in groups of a fixed size, so that the
same readings give the same bytes for any blocks, workers and order. The chain of daily totals and the
hidden regimes, 5 ms per household and year, are taken for every checked household; the chain of half-hours, 60 ms per
household and year, for at most 200 of them, evenly spaced over the roster.

Decisions:

* Of more than 500 households with readings a random 500 are checked: a diagnosis by medians, shares and means over
  households needs no more, and its time no longer grows with the roster.
* The choice is the 500 smallest SHA-256 of the household ids. No reading decides it, except that a household without
  readings is passed over. It is the same in every calibration, so two models are compared on the same households.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from agedp.calibration.household_memory import (
    DAY_TOTALS,
    HALF_HOURS,
    LEVEL,
    VALUES,
    MemoryRequest,
    PeriodReadings,
    SeriesByName,
    daily_totals_wh,
    households_with_readings,
    measure_group,
    measure_sample,
    read_period,
)
from agedp.calibration.quantize import Floats, Period, roster_of
from agedp.calibration.regime_check import RegimeCheck, check_regimes, judge_model
from agedp.compute.engine import map_items
from agedp.compute.engine_settings import Engine
from agedp.internal_records.model_verdict import ModelVerdict
from agedp.local_files import atomic_files
from agedp_data import table_schemas
from agedp_data.config import RunFile
from agedp_data.config.model_section import EstimatedModel
from agedp_data.datasets.validation import SLOTS, Ints
from agedp_data.series.series_terms import EnergySeries
from agedp_data.text_columns import as_strings

MAX_CHECKED = 500
SAMPLE = 200

_GROUP, _SAMPLED = 64, 50
_SEED = 20130101  # a check, not a release: the same readings give the same verdict
_SIGNIFICANCE = 1e-3
_REJECTION_RATE = 2 * (
    1 - LEVEL
)  # an estimated chain is a little more extreme than the true one: 5 to 6 % instead of 5


@dataclass(frozen=True, slots=True)
class GoodnessOfFit:
    """The result of the goodness-of-fit test over households. Confidential.

    Attributes:
        checked: number of households that were tested.
        rejected: number of these for which the Markov property is rejected.
    """

    checked: int
    rejected: int

    @property
    def is_significant(self) -> bool:
        """Return whether significantly more are rejected than twice what chance explains if all were such chains."""
        from scipy.stats import binom  # noqa: PLC0415  (slow to import, and few commands need it)

        return bool(binom.sf(self.rejected - 1, self.checked, _REJECTION_RATE) < _SIGNIFICANCE)


@dataclass(frozen=True, slots=True)
class CheckedSample:
    """How many households were checked, of how many that have readings, and how long it took [s]. Confidential."""

    households: int
    with_readings: int
    seconds: float

    @property
    def sentence(self) -> str:
        """Return the size of the sample, and how it was chosen."""
        if self.households == self.with_readings:
            return f"All {self.households:,} households with readings were checked."
        return (
            f"{self.households:,} of {self.with_readings:,} households with readings were checked, a random sample by "
            "the SHA-256 of their ids."
        )


@dataclass(frozen=True, slots=True)
class MemoryCurves:
    """Empirical memory of the households (confidential): by measure and value (h, T) at `ages_days`, else NaN.

    `page` is the path of the report; `regimes` the check by hidden regimes; `sample`
    says which households were checked.
    """

    ages_days: tuple[int, ...]
    series_by_name: SeriesByName
    page: Path
    regimes: RegimeCheck | None = None
    sample: CheckedSample | None = None

    @property
    def verdict(self) -> ModelVerdict:
        """Return the verdict on the model, of both checks."""
        if self.regimes is None:
            return ModelVerdict("cannot be judged", "Hidden regimes were not fitted.")
        return judge_model(self.regimes, is_rejected=any(check.is_significant for check in self.checks.values()))

    @property
    def checks(self) -> dict[str, GoodnessOfFit]:
        """Return the goodness-of-fit results: of daily totals, and of half-hours if the model has them."""
        return {
            name: count_rejections(self.series_by_name[name])
            for name in (DAY_TOTALS, HALF_HOURS)
            if name in self.series_by_name
        }

    def median(self, series_name: str, value: str) -> Floats:
        """Return the median over the households that have a value, NaN without one: (T,)."""
        return self.quantile(series_name, value, 0.5)

    def quantile(self, series_name: str, value: str, share: float) -> Floats:
        """Return a quantile over the households that have a value, NaN without one: (T,)."""
        columns = [column[~np.isnan(column)] for column in self.series_by_name[series_name][value].T]
        return np.array([np.quantile(column, share) if len(column) else np.nan for column in columns])


def count_rejections(values: dict[str, Floats]) -> GoodnessOfFit:
    """Count the households that were compared at some age, and those rejected at some age.

    >>> count_rejections({"rejected": np.array([[0.0, 1.0], [0.0, np.nan], [np.nan, np.nan]])})
    GoodnessOfFit(checked=2, rejected=1)
    """
    rejected = values["rejected"]
    return GoodnessOfFit(int((~np.isnan(rejected)).any(axis=1).sum()), int((rejected == 1).any(axis=1).sum()))


def memory_request(run: RunFile, model: EstimatedModel) -> MemoryRequest:
    """Return the request of a run file: of several series the most revealing one, with the largest clamp."""
    uses = [series for series in run.series.values() if isinstance(series, EnergySeries)]
    unclamped = SLOTS * run.input.max_half_hour_wh, max(series.max_missing for series in run.series.values())
    clamp_wh, max_missing = max(((series.clamp_wh, series.max_missing) for series in uses), default=unclamped)
    return MemoryRequest(model, clamp_wh, max_missing)


def measure_memory(period: Period, request: MemoryRequest, *, folder: Path, engine: Engine) -> MemoryCurves:
    """Measure the empirical memory of the households of the roster, or of a sample of them, over the period.

    Their table is written.

    The page of the result is written by the caller (`write_memory_report`).

    Args:
        period: which readings.
        request: model settings, and treatment of a day.
        folder: the confidential folder.
        engine: runs the pass over the store, and a task for each group with the readings of that group.
    """
    started = time.monotonic()
    period, with_readings = _sampled_period(period, engine)
    readings = read_period(period, engine=engine)
    measured = np.flatnonzero((readings.number > 0).any(axis=1))
    sample = measured[np.unique(np.linspace(0, len(measured) - 1, min(len(measured), SAMPLE)).round().astype(np.int64))]
    groups = [(False, households) for households in _split_into_groups(measured, _GROUP)] + [
        (True, households) for households in _split_into_groups(sample, _SAMPLED)
    ]
    items = [(number, is_sample, readings.select(households)) for number, (is_sample, households) in enumerate(groups)]
    group_series = map_items("model-check", items, function=partial(_measure, request=request), engine=engine)
    totals_wh = daily_totals_wh(readings.select(measured), request)
    regimes = check_regimes(totals_wh, readings.day, engine=engine)
    size = (len(period.roster.ids), len(request.model.ages_days))
    series_by_name = _combine([households for _, households in groups], group_series, size)
    path = atomic_files.make_private(folder / "forgetting") / report_name(request.model.file, folder)
    ids = period.roster.ids
    atomic_files.write_table(
        path.with_name(f"{path.name}.parquet"), _table(series_by_name, ids, measured, request.model.ages_days)
    )
    measured_series = {
        name: {value: table[measured] for value, table in values.items()} for name, values in series_by_name.items()
    }
    page = path.with_name(f"{path.name}.html")
    checked = CheckedSample(len(measured), max(with_readings, len(measured)), time.monotonic() - started)
    return MemoryCurves(request.model.ages_days, measured_series, page, regimes, checked)


def _sampled_period(period: Period, engine: Engine) -> tuple[Period, int]:
    """Return the period with the households that are checked, and how many have readings (0: not counted yet)."""
    if len(period.roster.ids) <= MAX_CHECKED:
        return period, 0
    candidates = np.flatnonzero(households_with_readings(period, engine=engine))
    with_readings = as_strings(period.roster.ids).take(pa.array(candidates)).to_pylist()
    ids = sampled_ids(with_readings, MAX_CHECKED)
    return replace(period, roster=roster_of(ids)), len(candidates)


def sampled_ids(ids: Sequence[str], size: int) -> tuple[str, ...]:
    """Return the `size` ids with the smallest SHA-256, sorted; all of them if they are no more.

    >>> sampled_ids(["A", "B", "C"], 2), sampled_ids(["B", "A"], 2)
    (('A', 'C'), ('A', 'B'))
    """
    ranked = sorted(ids, key=lambda household: hashlib.sha256(household.encode()).digest())
    return tuple(sorted(ranked[:size]))


def _split_into_groups(households: Ints, size: int) -> list[Ints]:
    return [households[i : i + size] for i in range(0, len(households), size)]


def _measure(item: tuple[int, bool, PeriodReadings], *, request: MemoryRequest) -> SeriesByName:
    number, is_sample, readings = item
    measure = measure_sample if is_sample else measure_group
    return measure(readings, request=request, rng=np.random.default_rng([_SEED, number]))


def _combine(groups: Sequence[Ints], group_series: Sequence[SeriesByName], shape: tuple[int, int]) -> SeriesByName:
    """Return the measures of all households of the roster: every value (h, T)."""
    names = dict.fromkeys(name for group in group_series for name in group)
    series_by_name: SeriesByName = {name: {value: np.full(shape, np.nan) for value in VALUES} for name in names}
    for households, group in zip(groups, group_series, strict=True):
        for name, values in group.items():
            for value, table in values.items():
                series_by_name[name][value][households] = table
    return series_by_name


def _table(series_by_name: SeriesByName, ids: Sequence[str], households: Ints, ages_days: Sequence[int]) -> pa.Table:
    """Return GOODNESS_OF_FIT: measure by measure, household by household, only those measured."""
    code, figure, age = [], [], []
    values: dict[str, list[Floats]] = {value: [] for value in VALUES}
    for name, tables in series_by_name.items():
        measured = households[~np.isnan(np.stack([tables[value][households] for value in VALUES])).all(axis=(0, 2))]
        code.append(np.repeat(measured, len(ages_days)))
        age.append(np.tile(ages_days, len(measured)))
        figure += [name] * (len(measured) * len(ages_days))
        for value in VALUES:
            values[value].append(tables[value][measured].ravel())
    columns = {value: np.concatenate([np.zeros(0), *parts]) for value, parts in values.items()}
    rejected = columns.pop("rejected")
    household = np.concatenate([np.zeros(0, np.int64), *code]).astype(np.int32)
    return table_schemas.table_from_columns(
        table_schemas.GOODNESS_OF_FIT,
        household_id=pa.DictionaryArray.from_arrays(pa.array(household), pa.array(ids, pa.string())),
        figure=figure,
        days_apart=np.concatenate([np.zeros(0, np.int64), *age]),
        **columns,
        checked=~np.isnan(rejected),
        rejected=rejected == 1,
    )


def report_name(model_file: str | Path, confidential: Path) -> str:
    """Return the file name of a model's report in the confidential folder, without an ending.

    A model outside the parent of that folder gets a hash of its relative path, so that two models of one name have two
    reports, and moving all folders together keeps the names.

    >>> report_name("/data/homes", Path("/data/confidential")), report_name("/a/homes", Path("/b/confidential"))
    ('homes', 'homes-e27653b6')
    """
    relative_path = Path(os.path.relpath(Path(model_file).resolve(), confidential.resolve()))
    if relative_path.parent == Path(os.pardir):
        return relative_path.name
    return f"{relative_path.name}-{hashlib.sha256(relative_path.as_posix().encode()).hexdigest()[:8]}"
