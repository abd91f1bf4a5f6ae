"""READINGS of a period -> what groups of households remember: the figures of `forgetting`, a group at a time.

* The chain of day totals, and the model's chain of half-hours, by powers against lagged counts
  (`markov_goodness_of_fit`).
* What the clamped total of a day tells of a later day, and of a later half-hour, to who knows the calendar
  (`chains.calendar`).

A day that lacks more readings than the series allows is missing. A half-hour that the clock passes twice counts in
its day's total, and in no chain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np

from agedp_data.chains.calendar import given_calendar, own_halves
from agedp_data.chains.cyclic_check import cyclic_goodness_of_fit
from agedp_data.chains.markov_check import Table, markov_goodness_of_fit
from agedp_data.chains.states import edges_equal_width, edges_quantile, merge_rare, states
from agedp_data.config.model import EstimatedModel
from agedp_data.notions.parameters import watt_hours
from agedp_data.readers.layout import SLOTS, Flags, Ints, expected_readings, slot_step
from pipelines.blocks import Engine, map_in_batches
from pipelines.estimate import repeated
from pipelines.quantize import Floats, Period
from pipelines.readings.store import date_of_day

DAY_TOTALS, HALF_HOURS = "chain of day totals", "chain of half-hours"
DAY_TOLD, HALF_HOUR_TOLD = "day, given the calendar", "half-hour, given the calendar"
VALUES = ("powers", "direct", "low", "high", "floor", "loss_left", "rejected")
LEVEL = 0.95

_DAY_STATES = 4
_MOST_STATES = 24  # neighbours of more are taken together: kernels of hundreds of states are noise, and slow to compare
_REPLICATES = {DAY_TOTALS: 39, HALF_HOURS: 19}
_RESAMPLES = 100
_MISSING = np.iinfo(np.uint16).max  # half-hours above 65 kWh are in the highest state whatever they are
Figures = dict[str, dict[str, Floats]]
"""By figure and value (h, T); "rejected" is 0 or 1, NaN where nothing was compared."""


@dataclass(frozen=True, slots=True)
class MemoryRequest:
    """What is asked: the model's settings, how a release counts a day, and the loss of a day [-]."""

    model: EstimatedModel
    clamp_wh: int
    max_missing: int
    loss: float


@dataclass(frozen=True, slots=True)
class PeriodReadings:
    """Readings (h, days, 48), totals (h, days) in Wh and numbers of readings, days since 1970, readings expected.

    Where the readings are hours, not half-hours, every second slot is missing.
    """

    readings: np.ndarray[Any, np.dtype[np.uint16]]
    total: Ints
    number: Ints
    day: Ints
    expected: Ints
    of_half_hours: bool = True


def hold(period: Period, *, engine: Engine) -> PeriodReadings:
    """Return the readings of a period, day by day, in one pass over the store; two bytes a half-hour."""
    period = replace(period, step="half-hour")  # whatever the step of the model
    first, last = (int(np.datetime64(day, "D").astype(np.int64)) for day in (period.first, period.last))
    found = _empty(len(period.roster.ids), np.arange(first, last + 1), period)
    each = partial(_of_month, period=period)
    for months in map_in_batches("memory", period.months, function=each, engine=engine, batch_size=engine.workers):
        for month in months:
            inside = (month.day >= first) & (month.day <= last)
            at = month.day[inside] - first
            found.readings[:, at], found.total[:, at] = month.readings[:, inside], month.total[:, inside]
            found.number[:, at] = month.number[:, inside]
    return found


def _of_month(month: str, *, period: Period) -> PeriodReadings:
    start = np.datetime64(month, "M")
    low, high = (int(each.astype("datetime64[D]").astype(np.int64)) for each in (start, start + 1))
    found = _empty(len(period.roster.ids), np.arange(low, high), period)
    for part in period.parts(month):
        place = part.household * (high - low) + part.time // SLOTS - low
        size = found.total.size
        found.total[:] += np.bincount(place, part.energy_wh, size).astype(np.int64).reshape(found.total.shape)
        found.number[:] += np.bincount(place, minlength=size).reshape(found.total.shape)
        once = ~repeated(period.store.layout, part.time)
        flat = (place * SLOTS + part.time % SLOTS)[once]
        found.readings.reshape(-1)[flat] = np.minimum(part.energy_wh[once], _MISSING - 1)
    return found


def _empty(homes: int, day: Ints, period: Period) -> PeriodReadings:
    expected = np.array([expected_readings(period.store.layout, date_of_day(int(each))) for each in day])
    size = (homes, len(day))
    readings = np.full((*size, SLOTS), _MISSING, np.uint16)
    of_half_hours = slot_step(period.store.layout.interval_minutes) == 1
    return PeriodReadings(readings, np.zeros(size, np.int64), np.zeros(size, np.int64), day, expected, of_half_hours)


def parts_of_calendar(day: Ints) -> Ints:
    """Return what everybody knows of days since 1970: 1 for a weekend, and 2 more from April to September.

    >>> parts_of_calendar(np.array([0, 2, 90]))  # Thursday 1 and Saturday 3 January, Wednesday 1 April 1970
    array([0, 1, 2])
    """
    month = day.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64) % 12
    return ((day + 3) % 7 >= 5) + 2 * ((month >= 3) & (month < 9))


def of_group(homes: Ints, *, held: PeriodReadings, asked: MemoryRequest, rng: np.random.Generator) -> Figures:
    """Return what a group of households remembers, without intervals of what the calendar leaves."""
    told = _told(homes, held, asked, rng, resamples=0)
    own = asked.model.step == "day" and asked.model.memory == "one"
    chain = _states(_days_wh(homes, held, asked), asked.model if own else None)
    ages = np.array(asked.model.ages_days)
    return told | {DAY_TOTALS: _checked(chain, ages, rng, _REPLICATES[DAY_TOTALS], steps_per_day=1)}


def of_sample(homes: Ints, *, held: PeriodReadings, asked: MemoryRequest, rng: np.random.Generator) -> Figures:
    """Return what takes longer: the model's chain of half-hours, and the intervals that `of_group` leaves out."""
    told = _told(homes, held, asked, rng, resamples=_RESAMPLES)
    found = {name: {end: each[end] for end in ("low", "high")} for name, each in told.items()}
    if asked.model.step != "half-hour" or asked.model.memory != "one":  # no chain of such states: day totals judge
        return found
    chain = _states(_half_hours(homes, held).reshape(len(homes), -1), asked.model)
    ages, replicates = np.array(asked.model.ages_days), _REPLICATES[HALF_HOURS]
    if asked.model.chain == "homogeneous":
        return found | {HALF_HOURS: _checked(chain, ages * SLOTS, rng, replicates, steps_per_day=SLOTS)}
    table = cyclic_goodness_of_fit(
        chain,
        ages,
        rng,
        n_phases=SLOTS,
        min_visits=asked.model.min_visits,
        level=LEVEL,
        replicates=replicates,
    )
    return found | {HALF_HOURS: _values(table)}


def _told(
    homes: Ints, held: PeriodReadings, asked: MemoryRequest, rng: np.random.Generator, *, resamples: int
) -> Figures:
    label = parts_of_calendar(held.day)
    read = own_halves(_days_wh(homes, held, asked)[..., None], label)
    found: Figures = {}
    secrets = {DAY_TOLD: read}
    if held.of_half_hours:
        secrets[HALF_HOUR_TOLD] = own_halves(_half_hours(homes, held), label)
    for name, secret in secrets.items():
        table = given_calendar(
            secret, read[..., 0], label, asked.model.ages_days, rng, loss=asked.loss, resamples=resamples
        )
        found[name] = {value: table[value] for value in ("direct", "low", "high", "floor", "loss_left")}
    return found


def _days_wh(homes: Ints, held: PeriodReadings, asked: MemoryRequest) -> Ints:
    """Return the days' totals as a release counts them, -1 where missing."""
    usable: Flags = held.number[homes] >= np.maximum(1, held.expected - asked.max_missing)
    return np.where(usable, np.minimum(held.total[homes], asked.clamp_wh), -1)


def _half_hours(homes: Ints, held: PeriodReadings) -> Ints:
    readings = held.readings[homes]
    return np.where(readings == _MISSING, -1, readings.astype(np.int64))


def _states(values: Ints, model: EstimatedModel | None) -> Ints:
    """Return states (h, m): a model's, the rare merged and 24 at most; without one, four of the household's own."""
    kind = model.edges if model else "quantile"
    count = model.states if model else _DAY_STATES
    found = np.full(values.shape, -1, np.int64)
    for row, own in enumerate(values):
        found[row] = states(own, _edges(own[own >= 0], kind, count))
    if model is None:
        return found
    merged = merge_rare(found, n_states=count, min_visits=model.min_visits)
    return merged if count <= _MOST_STATES else np.where(merged >= 0, merged * _MOST_STATES // count, -1)


def _edges(own: Ints, kind: str | Sequence[Decimal], count: int) -> np.ndarray[Any, Any]:
    if not isinstance(kind, str):
        return np.array([watt_hours(edge) for edge in kind])
    if not len(own):
        return np.zeros(count - 1)
    if kind == "quantile":
        return edges_quantile(*np.unique(own, return_counts=True), count)
    return edges_equal_width(float(own.max()), count)


def _checked(
    series: Ints, lags: Ints, rng: np.random.Generator, replicates: int, *, steps_per_day: int
) -> dict[str, Floats]:
    """Return powers against direct counts, and whether they disagree: (h, T) each."""
    table = markov_goodness_of_fit(
        series,
        lags,
        rng,
        n_states=int(series.max(initial=0)) + 1,
        steps_per_day=steps_per_day,
        level=LEVEL,
        replicates=replicates,
    )
    return _values(table)


def _values(table: Table) -> dict[str, Floats]:
    compared = ~np.isnan(table.direct) & ~np.isnan(table.powers)
    found = {name: table[name] for name in ("powers", "direct", "low", "high", "floor")}
    return found | {"rejected": np.where(compared, table.rejected, np.nan)}
