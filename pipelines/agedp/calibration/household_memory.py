"""READINGS of a period -> empirical memory of groups of households, one group at a time.

* The chain of daily totals, and the model's chain of half-hours: matrix powers against lagged counts
  (`markov_goodness_of_fit`).

A day with more missing readings than the series permits is missing. A half-hour that the clock passes twice counts in
its day's total, and in no chain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np

from agedp.calibration.estimate import repeated_half_hours
from agedp.calibration.quantize import Floats, Period, bucket_periods
from agedp.compute.engine import map_in_batches, map_items
from agedp.compute.engine_settings import Engine
from agedp.store.daily_totals import read_daily_totals
from agedp.store.month_reader import day_numbers, household_codes
from agedp_data.config.model_section import EstimatedModel
from agedp_data.datasets.layout import expected_readings
from agedp_data.datasets.timestamps import date_of_day, day_number
from agedp_data.datasets.validation import SLOTS, Flags, Ints
from agedp_data.markov.cyclic_inference import cyclic_goodness_of_fit
from agedp_data.markov.goodness_of_fit import Table, markov_goodness_of_fit
from agedp_data.markov.states import edges_equal_width, edges_quantile, merge_rare, states
from agedp_data.parameters import watt_hours

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
        mine = {name: getattr(self, name)[households] for name in ("readings", "total", "number")}
        return replace(self, **mine)


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

    It takes two bytes per half-hour: 300 households for a year take 10.5 MB. Months are read in parallel, in batches of
    as many months as there are workers.
    """
    period = replace(period, step="half-hour")  # whatever the step of the model
    first, last = (int(np.datetime64(day, "D").astype(np.int64)) for day in (period.first, period.last))
    readings = _empty(len(period.roster.ids), np.arange(first, last + 1), period)
    read_month = partial(_of_month, period=period)
    for months in map_in_batches(
        "period", period.months, function=read_month, engine=engine, batch_size=engine.workers
    ):
        for month in months:
            is_inside = (month.day >= first) & (month.day <= last)
            columns = month.day[is_inside] - first
            readings.readings[:, columns] = month.readings[:, is_inside]
            readings.total[:, columns] = month.total[:, is_inside]
            readings.number[:, columns] = month.number[:, is_inside]
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
    chain = _states(daily_totals_wh(readings, request), request.model if request.model.step == "day" else None)
    ages = np.array(request.model.ages_days)
    return {DAY_TOTALS: _goodness_of_fit(chain, ages, rng, _REPLICATES[DAY_TOTALS], steps_per_day=1)}


def measure_sample(readings: PeriodReadings, *, request: MemoryRequest, rng: np.random.Generator) -> SeriesByName:
    """Measure what takes longer, for a sample of the households: the model's chain of half-hours, if it has one.

    Arguments and result are as in `measure_group`; the results of both are merged.
    """
    if request.model.step != "half-hour":  # day totals judge
        return {}
    chain = _states(_half_hours_wh(readings).reshape(len(readings.total), -1), request.model)
    ages, replicates = np.array(request.model.ages_days), _REPLICATES[HALF_HOURS]
    if request.model.chain == "homogeneous":
        return {HALF_HOURS: _goodness_of_fit(chain, ages * SLOTS, rng, replicates, steps_per_day=SLOTS)}
    table = cyclic_goodness_of_fit(
        chain, ages, rng, n_phases=SLOTS, min_visits=request.model.min_visits, level=LEVEL, replicates=replicates
    )
    return {HALF_HOURS: _series_of_table(table)}


def daily_totals_wh(readings: PeriodReadings, request: MemoryRequest) -> Ints:
    """Return the days' totals as a release clamps them, shape (households, days) [Wh], -1 where missing."""
    usable: Flags = readings.number >= np.maximum(1, readings.expected - request.max_missing)
    return np.where(usable, np.minimum(readings.total, request.clamp_wh), -1)


def _half_hours_wh(readings: PeriodReadings) -> Ints:
    return np.where(readings.readings == _MISSING, -1, readings.readings.astype(np.int64))


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
    series: Ints, lags: Ints, rng: np.random.Generator, replicates: int, *, steps_per_day: int
) -> dict[str, Floats]:
    """Return matrix powers, lagged counts, and whether the Markov property is rejected: (h, T) each."""
    n_states = int(series.max(initial=0)) + 1
    table = markov_goodness_of_fit(
        series, lags, rng, n_states=n_states, steps_per_day=steps_per_day, level=LEVEL, replicates=replicates
    )
    return _series_of_table(table)


def _series_of_table(table: Table) -> dict[str, Floats]:
    is_compared = ~np.isnan(table.direct) & ~np.isnan(table.powers)
    series_by_name = {name: table[name] for name in ("powers", "direct", "low", "high", "floor")}
    return series_by_name | {"rejected": np.where(is_compared, table.rejected, np.nan)}
