r"""Published tables of load profiles: half-hours of days, drawn profiles of months, and mean profiles by month.

Example: the cell "Std weekday 18:30" of January 2013, drawn as 2 x 92,000 Wh over 230 household-days of 23 weekdays,
becomes the line (day 2013-01-31, Std, weekday, 1110, household_days 230, weight 2, noisy_weighted_wh 184000,
mean_kwh 0.4, ...). Its mean is of the household-days of the kind, and of half-hours of equal length: it is divided by
how long the half-hour is on the days of the kind, in parts of what it would be if all their clocks had it once. A
ledger row does not contain households by day, so this factor is of the calendar.

*Mean profiles of weekdays and weekends by month* are derived: the released half-hours of the days of one kind are added
and divided by their household-days. The result is a function of the released rows alone, so it adds no privacy loss,
and verification computes it again. Its noise is known exactly: it is the sum of the days' noises (`noise_sums`).

.. math:: \bar x_{g,k,s} = \frac{m \sum_{d \in k} Y_{d,g,s}}{\sum_{d \in k} n_{d,g} m_{d,s}}

with the noisy sum Y of group g in half-hour s of day d, n households on the roster, and m minutes of a half-hour, of
which day d has m_{d,s}.

Example: 21 weekdays of 5,000 households have 105,000 household-days. Noise of scale 100,000 Wh a day has a standard
deviation of sqrt(2 x 21) x 100,000 = 648,074 Wh in each of their half-hours, which is 0.0062 kWh per household.

Decisions:

* Weekdays are Monday to Friday by the calendar of the layout's days, weekends Saturday and Sunday. Public holidays are
  not treated specially: calendars of holidays differ by region and change.
* A mean is energy per household and half-hour: days with more households weigh more, so that groups add up.
* The divisors are of each half-hour. A day that the clock gives no such half-hour does not enter it; a day that has it
  twice, when the clock goes back, counts twice. The means are therefore all of half-hours of equal length.
* As for averages by month (`mean_tables`), missing days are not estimated, `is_complete` marks rows of which all days
  were released, days that count differently have rows of their own, and a month is in the table once none of its days
  is still to be released.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pyarrow as pa

from agedp_data import table_schemas
from agedp_data.arrays import Floats
from agedp_data.datasets.layout import Layout, slot_step
from agedp_data.datasets.timestamps import day_number
from agedp_data.datasets.validation import INTERVAL_MINUTES, SLOTS, Flags, Ints
from agedp_data.series.day_kinds import DAY_KINDS, DayKind, day_kind
from agedp_data.series.load_profile import day_slots
from agedp_data.series.monthly_profile import WEIGHTS
from agedp_data.series.periods import days_of, period_of
from agedp_data.series.result_table import (
    NOISE_TEXT,
    Chart,
    Columns,
    ContractTerms,
    DerivedTable,
    Noise,
    PublishedRow,
    ResultTable,
    Terms,
    Unit,
    released,
    sum_noise,
    units_of,
)
from agedp_data.series.series_terms import Cell, Series
from agedp_data.table_schemas import NOISE_COLUMNS, TEXT, released_schema, schema_of

_WH_PER_KWH: Final = 1000.0
_INT64_LIMIT: Final = 2.0**62

_Integers = np.ndarray[Any, np.dtype[Any]]

_DAILY_PROFILE = released_schema(
    ("households", pa.int64(), "households on the roster that day, of the group"),
    ("noisy_sum_wh", pa.int64(), "what was drawn: sum of the clamped half-hours plus noise, Wh"),
    ("mean_kwh", pa.float64(), "noisy_sum_wh / households / 1000, kWh"),
    *NOISE_COLUMNS,
    places=(
        (
            "start_minute",
            pa.int32(),
            "when the half-hour begins: minutes after midnight by the clock of the day's zone",
        ),
        (
            "minutes",
            pa.int32(),
            "how long it is: 30, or 60 for hourly readings; twice as long where the clock goes back",
        ),
    ),
    loss="loss of the release, all its half-hours together, about one household's day",
)

_PROFILE_RELEASES = released_schema(
    ("first_day", pa.date32(), "first day that the row covers"),
    ("days_of_kind", pa.int32(), "days of this kind in the month"),
    ("minutes_in_period", pa.int32(), "how long the half-hour is on all these days together"),
    ("household_days", pa.int64(), "households on the roster, added over the days of this kind"),
    ("weight", pa.int32(), "how often a half-hour counts: 2 on weekdays, 5 on weekends"),
    ("noisy_weighted_wh", pa.int64(), "what was drawn: weight x sum of the clamped half-hours, plus noise, Wh"),
    (
        "mean_kwh",
        pa.float64(),
        "noisy_weighted_wh / weight / household_days / 1000 x days_of_kind x minutes / minutes_in_period, kWh",
    ),
    *NOISE_COLUMNS,
    places=(
        ("day_kind", TEXT, "weekday: Monday to Friday, public holidays among them; or weekend: Saturday and Sunday"),
        (
            "start_minute",
            pa.int32(),
            "when the half-hour begins: minutes after midnight by the clock of the day's zone",
        ),
        ("minutes", pa.int32(), "how long it is: 30, or 60 for hourly readings"),
    ),
    day="last day of the month that the row covers",
    unit="months",
    loss="loss of the release about all days of one household that it covers",
)

_PROFILE_BY_MONTH = schema_of(
    ("first_day", pa.date32(), "first day of the month"),
    ("last_day", pa.date32(), "last day of the month"),
    ("series", TEXT, "series of the run file that the value is of"),
    ("group_column", TEXT, "column of the roster, or all: all households"),
    ("group", TEXT, "all, or the group of the roster"),
    ("version", pa.int32(), "first of the contracts that the days were released under; they count a day alike"),
    ("half_hour_clamp_kwh", pa.float64(), "a household's half-hour counted up to this, kWh"),
    ("clamp_kwh", pa.float64(), "a household's day counted up to this, kWh"),
    ("day_kind", TEXT, "weekday: Monday to Friday, public holidays among them; or weekend: Saturday and Sunday"),
    ("start_minute", pa.int32(), "when the half-hour begins: minutes after midnight by the clock of the day's zone"),
    ("minutes", pa.int32(), "how long it is: 30, or 60 for hourly readings"),
    ("days_released", pa.int32(), "days of this kind with this half-hour whose values enter; others are not estimated"),
    ("days_in_period", pa.int32(), "days of this kind in the month that have this half-hour"),
    ("is_complete", pa.int32(), "1 if all these days enter, otherwise 0"),
    ("fewest_households", pa.int64(), "smallest number of households on the roster on a day that enters"),
    ("most_households", pa.int64(), "largest number of households on the roster on a day that enters"),
    ("household_minutes", pa.int64(), "sum over the days that enter of households x minutes of the half-hour"),
    ("mean_kwh", pa.float64(), "sum of noisy_sum_wh / household_minutes x minutes / 1000: per household, kWh"),
    *NOISE_COLUMNS,
    ("published_on", pa.date32(), "UTC date of first publication of the latest day that enters"),
)


@dataclass(frozen=True, slots=True)
class _Places:
    """The cells (n) of a release: the distinct parts, and the part (an index into these) and slot of each cell."""

    parts: tuple[Cell, ...]
    part: Ints
    slot: Ints

    def of_parts(self, values: Sequence[str]) -> pa.Array:
        """Return a text of each cell, given those of the parts; text is made once for each part."""
        return pa.array(values, pa.string()).take(pa.array(self.part))

    @property
    def groups(self) -> pa.Array:
        """Return the group of each cell."""
        return self.of_parts([part.group for part in self.parts])


@lru_cache(maxsize=8)
def _places(cells: tuple[str, ...], profile: Series) -> _Places:
    parts: dict[Cell, int] = {}
    read = profile.read_cells(cells)
    part = [parts.setdefault(cell._replace(place=None), len(parts)) for cell in read]
    return _Places(tuple(parts), np.array(part, np.int64), np.array([cell.place for cell in read], np.int64))


def cell_minutes(layout: Layout, day: date) -> Ints:
    """Return how long the cell of each slot is, shape (48,) [minutes]; 0 where the day has no such cell.

    A repeated half-hour is in its cell twice. Of hourly readings every second slot has a cell.
    """
    step, cells = slot_step(layout.interval_minutes), list(day_slots(layout, day))
    passes = np.ones(SLOTS, np.int64)
    passes[list(layout.repeated_slots(day))] = 2
    minutes = np.zeros(SLOTS, np.int64)
    minutes[cells] = np.repeat(passes.reshape(-1, step).sum(axis=1), step)[cells] * INTERVAL_MINUTES
    return minutes


def _means(row: PublishedRow, wh_per_kwh_mean: np.ndarray[Any, Any], noise: Noise) -> dict[str, Any]:
    """Return mean, noise and interval of the cells of a row [kWh per household]."""
    values = np.array(row.values, np.int64)
    deviation, half_width = noise.deviation(row.scale), noise.half_width(row.scale)
    return {
        "mean_kwh": values / wh_per_kwh_mean,
        "noise_sd_kwh": deviation / wh_per_kwh_mean,
        "low_kwh": (values - half_width) / wh_per_kwh_mean,
        "high_kwh": (values + half_width) / wh_per_kwh_mean,
    }


def _day_lines(row: PublishedRow, terms: ContractTerms, noise: Noise) -> Columns:
    """Return the half-hours of a day."""
    places, households = _places(row.cells, terms.series[row.series]), np.array(row.households, np.int64)
    return {
        "group": places.groups,
        "start_minute": places.slot * INTERVAL_MINUTES,
        "minutes": cell_minutes(terms.layout, date.fromisoformat(row.day))[places.slot],
        "households": households,
        "noisy_sum_wh": np.array(row.values, np.int64),
        **_means(row, _WH_PER_KWH * households, noise),
    }


def _month_lines(row: PublishedRow, terms: ContractTerms, noise: Noise) -> Columns:
    """Return the half-hours of each kind of day of a month."""
    profile: Any = terms.series[row.series]
    first, last = profile.covered_days(date.fromisoformat(row.day))
    places = _places(row.cells, profile)
    kinds = [part.kind for part in places.parts]
    kind = np.array([DAY_KINDS.index(of) for of in kinds], np.int64)[places.part]
    length = slot_step(terms.layout.interval_minutes) * INTERVAL_MINUTES
    days, minutes = (np.array(of_kind) for of_kind in zip(*_calendar(terms.layout, first, last), strict=True))
    weight, household_days = np.array([WEIGHTS[of] for of in DAY_KINDS])[kind], np.array(row.households, np.int64)
    of_slot = minutes[kind, places.slot]
    wh_per_kwh_mean = _WH_PER_KWH * weight * household_days * of_slot / (days[kind] * length)
    return {
        "group": places.groups,
        "day_kind": places.of_parts(kinds),
        "first_day": first,
        "start_minute": places.slot * INTERVAL_MINUTES,
        "minutes": length,
        "days_of_kind": days[kind],
        "minutes_in_period": of_slot,
        "household_days": household_days,
        "weight": weight,
        "noisy_weighted_wh": np.array(row.values, np.int64),
        **_means(row, wh_per_kwh_mean, noise),
    }


def _calendar(layout: Layout, first: date, last: date) -> list[tuple[int, Ints]]:
    """Return the number of days of each kind, and how long each half-hour is on all of them, shape (48,) [minutes]."""
    by_kind: dict[DayKind, list[Ints]] = {kind: [] for kind in DAY_KINDS}
    for day in days_of(first, last):
        by_kind[day_kind(day)].append(cell_minutes(layout, day))
    return [(len(of_kind), np.sum(of_kind, axis=0)) for of_kind in by_kind.values()]


_CHART: Final = Chart("mean_kwh", ("low_kwh", "high_kwh"))
_CLAMPS: Final = ("clamp_kwh", "half_hour_clamp_kwh")
PROFILES: Final = ResultTable(
    "daily_profile",
    _DAILY_PROFILE,
    "day, group and time of day",
    f"averages over households by day and time of day (load profiles), {NOISE_TEXT}",
    _day_lines,
    _CHART,
    _CLAMPS,
)
PROFILE_RELEASES: Final = ResultTable(
    "profile_releases",
    _PROFILE_RELEASES,
    "month, group, kind of day and time of day",
    "averages over households and the weekdays or weekends of a month by time of day, each drawn once for all days "
    f"from first_day to day, {NOISE_TEXT}",
    _month_lines,
    _CHART,
    _CLAMPS,
)


@dataclass(frozen=True, slots=True)
class _KindSums:
    """The days (d) of one kind of a month: groups (g), and what each has in each half-hour.

    Attributes:
        groups: names of the groups.
        sum_wh: sums of the noisy values, shape (g, 48) [Wh]; Python integers where int64 might overflow.
        households: on the roster, shape (d, g); 0 where a day lacks the group.
        minutes: length of each half-hour, shape (d, 48) [minutes]; 0 where the clock of a day has none.
        rows: the ledger rows of the days.
    """

    groups: tuple[str, ...]
    sum_wh: _Integers
    households: Ints
    minutes: Ints
    rows: tuple[PublishedRow, ...]


def _month_units(rows: Sequence[PublishedRow], terms: Terms) -> list[Unit]:
    """Return the released days of each series in each month that count a household's day alike."""
    parts = []
    for row, profile in released(rows, terms, PROFILE_BY_MONTH):
        first, last = period_of(date.fromisoformat(row.day), "month")
        parts.append((Unit(first, last, row.series, (profile.by, profile.quantity)), (row,)))
    units = units_of(parts)
    return sorted(units, key=lambda unit: (unit.first_day, unit.series, terms[unit.rows[0].contract].version))


def _profile_by_month(units: Sequence[Unit], terms: Terms, noise: Noise) -> pa.Table:
    """Return the lines of months: weekdays first, then by group and half-hour."""
    tables = [
        _kind_table(unit, terms[unit.rows[0].contract], kind, sums, noise)
        for unit in units
        for kind in DAY_KINDS
        for sums in _kind_sums(terms, [row for row in unit.rows if day_kind(date.fromisoformat(row.day)) == kind])
    ]
    return pa.concat_tables([_PROFILE_BY_MONTH.empty_table(), *tables])


def _kind_sums(terms: Terms, rows: Sequence[PublishedRow]) -> Iterator[_KindSums]:
    """Yield the sums of days of one kind; nothing without a day."""
    if not rows:
        return
    of_first = terms[rows[0].contract]
    places = {
        cells: _places(cells, of_first.series[rows[0].series]) for cells in dict.fromkeys(row.cells for row in rows)
    }
    groups = dict.fromkeys(part.group for of in places.values() for part in of.parts)
    number = {group: i for i, group in enumerate(groups)}
    largest = max(max(map(abs, row.values)) for row in rows)
    kind = np.int64 if largest < _INT64_LIMIT / len(rows) else object
    sum_wh, households = np.zeros((len(number), SLOTS), kind), np.zeros((len(rows), len(number)), np.int64)
    minutes = np.zeros((len(rows), SLOTS), np.int64)
    index = {
        cells: (np.array([number[part.group] for part in of.parts])[of.part], of.slot) for cells, of in places.items()
    }
    for i, row in enumerate(rows):
        group, slot = index[row.cells]
        sum_wh[group, slot] += np.array(row.values, kind)
        households[i, group] = row.households
        minutes[i, slot] = cell_minutes(of_first.layout, date.fromisoformat(row.day))[slot]
    yield _KindSums(tuple(number), sum_wh, households, minutes, tuple(rows))


def _kind_table(unit: Unit, terms: ContractTerms, kind: DayKind, sums: _KindSums, noise: Noise) -> pa.Table:
    """Return the lines of one kind of day: half-hours that have the same minutes on each day are computed together."""
    profile: Any = terms.series[unit.series]
    length = slot_step(terms.layout.interval_minutes) * INTERVAL_MINUTES
    days = [day for day in days_of(unit.first_day, unit.last_day) if day_kind(day) == kind]
    days_in_period = np.array([cell_minutes(terms.layout, day) > 0 for day in days]).sum(axis=0)
    columns: dict[str, _Integers] = {}
    patterns, pattern_of_slot = np.unique(sums.minutes, axis=1, return_inverse=True)
    for pattern, minutes in enumerate(patterns.T):
        slots = np.flatnonzero(pattern_of_slot.ravel() == pattern)
        for name, values in _group_columns(sums, minutes, length, noise).items():
            shape = len(sums.groups), SLOTS
            columns.setdefault(name, np.zeros(shape, values.dtype))[:, slots] = values[:, None]
    group, slot = np.nonzero(columns["days_released"])
    chosen = {name: values[group, slot] for name, values in columns.items()}
    energy_wh, wh_per_kwh_mean = sums.sum_wh[group, slot], chosen.pop("wh_per_kwh_mean")
    half_width, deviation = chosen.pop("half_width"), chosen.pop("deviation")
    constants = {
        "first_day": unit.first_day,
        "last_day": unit.last_day,
        "series": unit.series,
        "group_column": profile.level,
        "version": terms.version,
        "half_hour_clamp_kwh": profile.half_hour_clamp_wh / 1000,
        "clamp_kwh": profile.clamp_wh / 1000,
        "day_kind": kind,
        "minutes": length,
    }
    return table_schemas.table_from_columns(
        _PROFILE_BY_MONTH,
        **{name: pa.repeat(pa.scalar(value), len(group)) for name, value in constants.items()},
        **chosen,
        group=pa.array(sums.groups, pa.string()).take(pa.array(group)),
        start_minute=slot * INTERVAL_MINUTES,
        days_in_period=days_in_period[slot],
        is_complete=(chosen["days_released"] == days_in_period[slot]).astype(np.int64),
        mean_kwh=_floats(energy_wh / wh_per_kwh_mean),
        noise_sd_kwh=deviation / wh_per_kwh_mean,
        low_kwh=_floats((energy_wh - half_width) / wh_per_kwh_mean),
        high_kwh=_floats((energy_wh + half_width) / wh_per_kwh_mean),
    )


def _group_columns(sums: _KindSums, minutes: Ints, length: int, noise: Noise) -> dict[str, _Integers]:
    """Return columns of each group in half-hours that have these minutes on each day, and the noise of their sum."""
    enters: Flags = (sums.households > 0) & (minutes > 0)[:, None]
    households = np.where(enters, sums.households, 0)
    household_minutes = minutes @ households
    published_on = np.array([day_number(date.fromisoformat(row.published_on)) for row in sums.rows])
    deviation, half_width = sum_noise([(row,) for row in sums.rows], enters, noise)
    return {
        "days_released": enters.sum(axis=0),
        "fewest_households": np.where(enters, households, households.max(initial=0)).min(axis=0),
        "most_households": households.max(axis=0),
        "household_minutes": household_minutes,
        "published_on": np.where(enters, published_on[:, None], 0).max(axis=0),
        "wh_per_kwh_mean": _WH_PER_KWH * household_minutes / length,
        "deviation": deviation,
        "half_width": half_width,
    }


def _floats(values: _Integers) -> _Integers:
    return values.astype(np.float64)


def _kwh_of_half_hour(table: pa.Table) -> Floats:
    return table["minutes"].to_numpy() / (_WH_PER_KWH * table["household_minutes"].to_numpy())  # type: ignore[no-any-return]


PROFILE_BY_MONTH: Final = DerivedTable(
    "profile_by_month",
    _PROFILE_BY_MONTH,
    of="released days of each month, weekdays and weekends",
    about="mean profiles of weekdays and weekends by month",
    description="mean half-hours over households and the weekdays or weekends of a month, with their noise: sums of "
    "the released days and nothing else; a row for each way of counting a household's day, and a month once none of "
    "its days is still to be released",
    source="profile",
    span="month",
    units=_month_units,
    lines=_profile_by_month,
    line=("first_day", "series", "group_column", "group", "version", "day_kind", "start_minute"),
    order=("first_day", "series", "version"),
    rounded=("noise_sd_kwh",),
    kwh_of_wh=_kwh_of_half_hour,
)
