"""READINGS of the model's period -> empirical memory: do the households mix as fast as the chain predicts?

    <confidential>/forgetting/<model>.parquet    measures of every household (`table_schemas.GOODNESS_OF_FIT`)
    <confidential>/forgetting/<model>.html       the same as a report (`reports.model_check_report`)
    <confidential>/forgetting/<hash>.json        the verdict on the model (`bookkeeping.write_verdict`)

<model> is the name of the model's folder, plus a mark of its location unless that is next to the confidential folder:
two models of one name have two reports.
The results are confidential and indicative: they never set noise, are in no statement, and the model's public part does
not depend on them. One pass over the store (`model_check`), then households in groups of a fixed size, so that the
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
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa

from agedp.calibration.estimate import repeated_half_hours
from agedp.calibration.quantize import Floats, Period, bucket_periods, roster_of
from agedp.compute.engine import map_items, stream_items
from agedp.compute.engine_settings import Engine
from agedp.internal_records.bookkeeping import ModelVerdict
from agedp.local_files import atomic_files
from agedp.store.daily_totals import read_daily_totals
from agedp.store.month_reader import day_numbers, household_codes
from agedp_data import table_schemas
from agedp_data.config import RunFile
from agedp_data.config.model_section import EstimatedModel
from agedp_data.datasets.layout import expected_readings
from agedp_data.datasets.timestamps import date_of_day, day_number
from agedp_data.datasets.validation import SLOTS, Flags, Ints
from agedp_data.markov.cyclic import cyclic_goodness_of_fit
from agedp_data.markov.memory_check import (
    SYMBOLS,
    Table,
    chain_pairs,
    counted_pairs,
    daily_residuals,
    fit_hidden_regimes,
    markov_goodness_of_fit,
    predicted_pairs,
    quartile_symbols,
    signed_memory,
)
from agedp_data.markov.states import edges_equal_width, edges_quantile, merge_rare, states
from agedp_data.parameters import watt_hours
from agedp_data.roster import as_strings
from agedp_data.series.series_terms import EnergySeries

# --------------------------------------------------------------------------------------------------
# READINGS of a period -> empirical memory of groups of households, one group at a time.
#
# * The chain of daily totals, and the model's chain of half-hours: matrix powers against lagged counts
#   (`markov_goodness_of_fit`).
#
# A day with more missing readings than the series permits is missing. A half-hour that the clock passes twice counts
# in its day's total, and in no chain.
# --------------------------------------------------------------------------------------------------

DAY_TOTALS, HALF_HOURS = "chain of day totals", "chain of half-hours"
VALUES = ("powers", "direct", "low", "high", "floor", "rejected")
LEVEL = 0.95

_DAY_STATES = 4
_MAX_STATES = 24  # neighbours of more are taken together: kernels of hundreds of states are noise, and slow to compare
_REPLICATES = {DAY_TOTALS: 39, HALF_HOURS: 19}
_MISSING = np.iinfo(np.uint16).max  # half-hours above 65 kWh are in the highest state whatever they are
SeriesByName = dict[str, dict[str, Floats]]
"""By figure and value (h, T); "rejected" is 0 or 1, NaN where nothing was compared."""


@dataclass(frozen=True, slots=True)
class MemoryRequest:
    """Settings of a measurement of the households' memory, as a release under the model meets it.

    Attributes:
        model: settings of the model.
        clamp_wh: clamp of a daily total [Wh].
        max_missing: a day with more missing readings is missing.
    """

    model: EstimatedModel
    clamp_wh: int
    max_missing: int


@dataclass(frozen=True, slots=True)
class PeriodReadings:
    """The readings of a period in memory; days are counted since 1970. Hourly readings leave every second slot missing.

    Attributes:
        readings: shape (h, days, 48) [Wh], capped below the code of a missing reading.
        total: daily totals, shape (h, days) [Wh].
        number: number of readings, shape (h, days).
        day: the days, shape (days,).
        expected: number of readings that a day can have, shape (days,).
    """

    readings: np.ndarray[Any, np.dtype[np.uint16]]
    total: Ints
    number: Ints
    day: Ints
    expected: Ints

    def select(self, households: Ints) -> PeriodReadings:
        """Return the readings of these households, by their indices."""
        return replace(self, **{name: getattr(self, name)[households] for name in _TABLES})


_TABLES = ("readings", "total", "number")
"""Attributes of `PeriodReadings` by household and day."""


def households_with_readings(period: Period, *, engine: Engine) -> Flags:
    """Return which households of the roster have a reading in a period, by the stored daily totals: (h,)."""
    has_readings = np.zeros(len(period.roster.ids), bool)
    for households, part in bucket_periods(period):
        present_in = partial(_present_in_month, period=part)
        for present in map_items("period", part.months, function=present_in, engine=engine):
            has_readings[households[present]] = True
    return has_readings


def _present_in_month(month: str, *, period: Period) -> Ints:
    """Return the households with a reading in one month of the period of one bucket."""
    table = read_daily_totals(period.store, month, period.delivery.contents, period.bucket or 0)
    day, readings = day_numbers(table), table["readings"].to_numpy()
    code = household_codes(table, {household: i for i, household in enumerate(period.roster.ids)})
    is_inside = (day >= day_number(period.first)) & (day <= day_number(period.last))
    return np.unique(code[is_inside & (readings > 0) & (code >= 0)])


def read_period(period: Period, *, engine: Engine) -> PeriodReadings:
    """Read the readings of a period, day by day, in one pass over the store.

    It takes two bytes per half-hour: 300 households for a year take 10.5 MB. As many months are read in parallel as
    there are workers.
    """
    period = replace(period, step="half-hour")  # whatever the step of the model
    first, last = day_number(period.first), day_number(period.last)
    readings = _empty(len(period.roster.ids), np.arange(first, last + 1), period)
    read_month = partial(_of_month, period=period)
    for month in stream_items("period", period.months, function=read_month, engine=engine, at_once=engine.workers):
        is_inside = (month.day >= first) & (month.day <= last)
        columns = month.day[is_inside] - first
        for name in _TABLES:
            getattr(readings, name)[:, columns] = getattr(month, name)[:, is_inside]
    return readings


def _of_month(month: str, *, period: Period) -> PeriodReadings:
    start = np.datetime64(month, "M")
    low, high = (int(bound.astype("datetime64[D]").astype(np.int64)) for bound in (start, start + 1))
    readings = _empty(len(period.roster.ids), np.arange(low, high), period)
    for part in period.parts(month):
        day_index = part.household * (high - low) + part.time // SLOTS - low
        is_unambiguous = ~repeated_half_hours(period.store.layout, part.time)
        flat = (day_index * SLOTS + part.time % SLOTS)[is_unambiguous]
        readings.readings.reshape(-1)[flat] = np.minimum(part.energy_wh[is_unambiguous], _MISSING - 1)
    position = {household: code for code, household in enumerate(period.roster.ids)}
    for bucket in range(period.store.buckets) if period.bucket is None else [period.bucket]:
        table = read_daily_totals(period.store, month, period.delivery.contents, bucket)
        code, day = household_codes(table, position), day_numbers(table) - low
        of_roster = code >= 0
        for values, name in ((readings.total, "energy_wh"), (readings.number, "readings")):
            values[code[of_roster], day[of_roster]] = table[name].to_numpy()[of_roster]
    return readings


def _empty(households: int, day: Ints, period: Period) -> PeriodReadings:
    expected = np.array([expected_readings(period.store.layout, date_of_day(int(number))) for number in day])
    shape = (households, len(day))
    readings = np.full((*shape, SLOTS), _MISSING, np.uint16)
    return PeriodReadings(readings, np.zeros(shape, np.int64), np.zeros(shape, np.int64), day, expected)


def measure_group(readings: PeriodReadings, *, request: MemoryRequest, rng: np.random.Generator) -> SeriesByName:
    """Measure the memory of a group of households by the chain of their daily totals.

    Args:
        readings: the readings of these households in the period.
        request: what to measure.
        rng: random numbers of the bootstrap replicates; no noise of a release.

    Returns:
        By measure and value an array of shape (households, ages), NaN where a household has too few readings.
    """
    totals = _states(daily_totals_wh(readings, request), request.model if request.model.step == "day" else None)
    return {DAY_TOTALS: _goodness_of_fit(totals, np.array(request.model.ages_days), rng, DAY_TOTALS, steps_per_day=1)}


def measure_sample(readings: PeriodReadings, *, request: MemoryRequest, rng: np.random.Generator) -> SeriesByName:
    """Measure what takes longer, for a sample of the households: the model's chain of half-hours, if it has one.

    Arguments and result are as in `measure_group`; the results of both are merged.
    """
    if request.model.step != "half-hour":  # day totals judge
        return {}
    half_hours_wh = np.where(readings.readings == _MISSING, -1, readings.readings.astype(np.int64))
    half_hours = _states(half_hours_wh.reshape(len(readings.total), -1), request.model)
    ages, min_visits = np.array(request.model.ages_days), request.model.min_visits
    if request.model.chain == "homogeneous":
        return {HALF_HOURS: _goodness_of_fit(half_hours, ages * SLOTS, rng, HALF_HOURS, steps_per_day=SLOTS)}
    fit = partial(cyclic_goodness_of_fit, n_phases=SLOTS, min_visits=min_visits, level=LEVEL)
    return {HALF_HOURS: _series_of_table(fit(half_hours, ages, rng, replicates=_REPLICATES[HALF_HOURS]))}


def daily_totals_wh(readings: PeriodReadings, request: MemoryRequest) -> Ints:
    """Return the days' totals as a release clamps them, shape (households, days) [Wh], -1 where missing."""
    usable: Flags = readings.number >= np.maximum(1, readings.expected - request.max_missing)
    return np.where(usable, np.minimum(readings.total, request.clamp_wh), -1)


def _states(values: Ints, model: EstimatedModel | None) -> Ints:
    """Return states (h, m): the model's, rare ones merged and at most 24; without a model, four quantile states."""
    kind = model.edges if model else "quantile"
    count = model.states if model else _DAY_STATES
    state = np.full(values.shape, -1, np.int64)
    for row, household_values in enumerate(values):
        state[row] = states(household_values, _edges(household_values[household_values >= 0], kind, count))
    if model is None:
        return state
    merged = merge_rare(state, n_states=count, min_visits=model.min_visits)
    return merged if count <= _MAX_STATES else np.where(merged >= 0, merged * _MAX_STATES // count, -1)


def _edges(household_values: Ints, kind: str | Sequence[Decimal], count: int) -> np.ndarray[Any, Any]:
    if not isinstance(kind, str):
        return np.array([watt_hours(edge) for edge in kind])
    if not len(household_values):
        return np.zeros(count - 1)
    if kind == "quantile":
        return edges_quantile(*np.unique(household_values, return_counts=True), count)
    return edges_equal_width(float(household_values.max()), count)


def _goodness_of_fit(
    series: Ints, lags: Ints, rng: np.random.Generator, name: str, *, steps_per_day: int
) -> dict[str, Floats]:
    """Return matrix powers, lagged counts, and whether the Markov property is rejected: (h, T) each."""
    fit = partial(markov_goodness_of_fit, n_states=int(series.max(initial=0)) + 1, steps_per_day=steps_per_day)
    return _series_of_table(fit(series, lags, rng, level=LEVEL, replicates=_REPLICATES[name]))


def _series_of_table(table: Table) -> dict[str, Floats]:
    is_compared = ~np.isnan(table.direct) & ~np.isnan(table.powers)
    series_by_name = {name: table[name] for name in ("powers", "direct", "low", "high", "floor")}
    return series_by_name | {"rejected": np.where(is_compared, table.rejected, np.nan)}


# --------------------------------------------------------------------------------------------------
# Daily totals -> check of the model's memory: direct counts, a chain of visible states, and hidden regimes.
#
# Everything is about the residual of a day (`agedp_data.markov.memory_check`): what an adversary who knows season,
# weather, weekday and the published mean does not know. All of it is confidential and indicative.
#
# The verdict on the model has three values, by fixed rules:
#
#   rejected              the Markov property is rejected (`GoodnessOfFit`); or at some lag the direct counts exceed the
#                         chain by more than 0.05 and by more than three standard errors, on average over households
#   cannot be judged      a lag of 7, 14 or 28 days has fewer than 20 households, or a standard error above 0.025
#   not rejected          else; one dataset can contradict a model, never verify it
#
# A lag counts for a household if either half of the present (high, low) has 20 pairs. A household counts from 90 days
# on. The rules depend on confidential counts only, so the verdict decides nothing that is published.
# --------------------------------------------------------------------------------------------------

LAGS_DAYS: Final = (1, 2, 3, 7, 14, 28, 60)
YEAR_WARNING: Final = (
    "Less than two years cannot separate season from habit, so these counts are lower bounds: simulated households "
    "that remember 0.16 at 28 days show 0.11 in one year. More figures: docs/chains.md."
)

_DECISIVE_DAYS = (7, 14, 28)
_TOLERANCE, _STANDARD_ERRORS, _MAX_ERROR = 0.05, 3.0, 0.025
_MIN_HOUSEHOLDS, _MIN_DAYS, _MIN_PAIRS = 20, 90, 20
_TWO_YEARS = 730
_HOUSEHOLDS_AT_ONCE = 128
_WEEK = 7


@dataclass(frozen=True, slots=True)
class RegimeCheck:
    """Signed memory of the households' residual days, by lag. Confidential.

    Attributes:
        direct: counted, shape (h, L), NaN where it cannot be.
        chain: predicted by the chain of visible states, NaN where `direct` is.
        regimes: predicted by hidden regimes, NaN where `direct` is.
        days: number of days of the period.
    """

    direct: Floats
    chain: Floats
    regimes: Floats
    days: int

    @property
    def warning(self) -> str:
        """Return what a period below two years cannot show, "" for a longer one."""
        return YEAR_WARNING if self.days < _TWO_YEARS else ""

    def mean(self, name: Literal["direct", "chain", "regimes"]) -> Floats:
        """Return the mean of a figure over the households that have it, NaN without any: (L,)."""
        return np.array([column.mean() if len(column) else np.nan for column in _columns(getattr(self, name))])

    @property
    def households(self) -> Ints:
        """Return the number of households that have a figure at each lag."""
        return np.array([len(column) for column in _columns(self.direct)])

    @property
    def excess(self) -> tuple[Floats, Floats]:
        """Return the mean of the direct counts less the chain, and its standard error over households: (L,) each."""
        columns = _columns(self.direct - self.chain)
        error = [column.std(ddof=1) / np.sqrt(len(column)) if len(column) > 1 else np.nan for column in columns]
        return self.mean("direct") - self.mean("chain"), np.array(error)


def check_regimes(totals_wh: Ints, day: Ints, *, engine: Engine) -> RegimeCheck:
    """Compare direct counts, chain and hidden regimes of all households that have enough days.

    Args:
        totals_wh: daily totals of consecutive days, shape (h, T) [Wh], -1 where missing.
        day: the days since 1970, shape (T,).
        engine: runs a task for each group of households.
    """
    symbols = quartile_symbols(daily_residuals(totals_wh, day % _WEEK))
    symbols = symbols[(symbols >= 0).sum(axis=1) >= _MIN_DAYS]
    groups = _split_into_groups(symbols, _HOUSEHOLDS_AT_ONCE)
    parts = map_items("model-check", groups, function=_memories, engine=engine)
    direct, chain, regimes = np.concatenate([np.zeros((3, 0, len(LAGS_DAYS))), *parts], axis=1)
    return RegimeCheck(direct, chain, regimes, len(day))


def judge_model(check: RegimeCheck, *, is_rejected: bool) -> ModelVerdict:
    """Return the verdict by the rules of the module; `is_rejected` says whether the Markov property is rejected."""
    (excess, error), households = check.excess, check.households
    is_judged = (households >= _MIN_HOUSEHOLDS) & (error <= _MAX_ERROR)
    is_exceeded = (households >= _MIN_HOUSEHOLDS) & (excess > np.maximum(_TOLERANCE, _STANDARD_ERRORS * error))
    if is_exceeded.any():
        worst = int(np.argmax(np.where(is_exceeded, excess, -np.inf)))
        direct, chain = check.mean("direct")[worst], check.mean("chain")[worst]
        return ModelVerdict(
            "rejected",
            f"Its memory decays too fast: at {LAGS_DAYS[worst]} days {direct:.2f} is counted and {chain:.2f} predicted "
            f"(mean of {households[worst]:,} households, standard error of the difference {error[worst]:.2f}).",
        )
    if is_rejected:
        return ModelVerdict("rejected", "The Markov property is rejected for too many households.")
    missing = [lag for lag, judged in zip(LAGS_DAYS, is_judged, strict=True) if lag in _DECISIVE_DAYS and not judged]
    if missing:
        return ModelVerdict("cannot be judged", f"Too few readings at a lag of {', '.join(map(str, missing))} days.")
    largest = max(lag for lag, judged in zip(LAGS_DAYS, is_judged, strict=True) if judged)
    reason = f"At lags of 1 to {largest} days. One dataset can contradict a model, never verify it."
    return ModelVerdict("not rejected", reason)


def _columns(values: Floats) -> list[Floats]:
    return [column[~np.isnan(column)] for column in values.T]


def _memories(symbols: Ints) -> Floats:
    """Return direct counts, chain and hidden regimes of a group of households, shape (3, h, L)."""
    direct = signed_memory(counted_pairs(symbols, LAGS_DAYS, n_symbols=SYMBOLS), min_pairs=_MIN_PAIRS)
    of_chain = signed_memory(chain_pairs(symbols, LAGS_DAYS, shown=np.eye(SYMBOLS)))
    regimes = signed_memory(predicted_pairs(fit_hidden_regimes(symbols, n_symbols=SYMBOLS), LAGS_DAYS))
    return np.where(np.isnan(direct), np.nan, np.stack([direct, of_chain, regimes]))


MAX_CHECKED = 500
SAMPLE = 200

_GROUP, _SAMPLED = 64, 50
_SEED = 20130101  # a check, not a release: the same readings give the same verdict
_SIGNIFICANCE = 1e-3
_REJECTION_RATE = 2 * (1 - LEVEL)
"""An estimated chain is a little more extreme than the true one: 5 to 6 % instead of 5."""


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
            if self.households == 1:
                return "The one household with readings was checked."
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
        names = [name for name in (DAY_TOTALS, HALF_HOURS) if name in self.series_by_name]
        return {name: count_rejections(self.series_by_name[name]) for name in names}

    def median(self, series_name: str, value: str) -> Floats:
        """Return the median over the households that have a value, NaN without one: (T,)."""
        return self.quantile(series_name, value, 0.5)

    def quantile(self, series_name: str, value: str, share: float) -> Floats:
        """Return a quantile over the households that have a value, NaN without one: (T,)."""
        columns = _columns(self.series_by_name[series_name][value])
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
    full_groups = _split_into_groups(measured, _GROUP)
    groups = [*full_groups, *_split_into_groups(sample, _SAMPLED)]
    items = [(i, i >= len(full_groups), readings.select(households)) for i, households in enumerate(groups)]
    group_series = map_items("model-check", items, function=partial(_measure, request=request), engine=engine)
    totals_wh = daily_totals_wh(readings.select(measured), request)
    regimes = check_regimes(totals_wh, readings.day, engine=engine)
    size = (len(period.roster.ids), len(request.model.ages_days))
    series_by_name = _combine(groups, group_series, size)
    path = atomic_files.make_private(folder / "forgetting") / report_name(request.model.file, folder)
    table = _table(series_by_name, period.roster.ids, measured, request.model.ages_days)
    atomic_files.write_table(path.with_name(f"{path.name}.parquet"), table)
    measured_series = {
        name: {value: figures[measured] for value, figures in values.items()} for name, values in series_by_name.items()
    }
    checked = CheckedSample(len(measured), max(with_readings, len(measured)), time.monotonic() - started)
    page = path.with_name(f"{path.name}.html")
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
