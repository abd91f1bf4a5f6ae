"""[series.NAME] with statistic = "mean": the mean use of the households' days, or of weeks, months and years."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import date
from functools import partial
from itertools import groupby
from typing import Annotated, Any, ClassVar, Final, Literal, TypeGuard

import numpy as np
import pyarrow as pa

from agedp_data import table_schemas
from agedp_data.arrays import Floats
from agedp_data.parameters import LATER
from agedp_data.roster import ALL
from agedp_data.series import result_table as tables
from agedp_data.series import series_terms
from agedp_data.series.consistency import Columns as LevelColumns
from agedp_data.series.consistency import (
    DrawnGroups,
    NoisyValue,
    consistent_groups,
    next_coarser,
    precision_mean,
    totals_with_groups,
)
from agedp_data.series.sensitivity import Change, sum_sensitivity
from agedp_data.table_schemas import NOISE_COLUMNS, TEXT, released_schema, schema_of

# --------------------------------------------------------------------------------------------------
# Published tables of means: days, drawn periods, upper layers, averages of periods, averages in which groups add up.
#
# The last two are derived: functions of the released rows alone, so they add no privacy loss and verification computes
# them again.
#
# *Averages of weeks, months and years.* The noisy sums of the released days are added and divided by their
# household-days; the noise of the result is known exactly. Example: January 2013 with 31 sums of 5,000 households and
# noise of scale 100,000 Wh has 155,000 household-days, and noise with a standard deviation of 787,401 Wh, which is
# 0.0051 kWh per household and day.
#
# * A mean is energy per household and day: days with more households weigh more. Energy and means of groups then add
#   up as those of days do, and the noise is an unweighted sum of the days' noises.
# * A mean in layers (`layered_mean`) has a row of their sum under its name in the run file, which is the mean up to
#   its last clamp, and a row for each layer. The sum is of the days of which all layers were released, for equal
#   groups.
# * Only means of single days enter. Other statistics, and releases of longer periods, are left out.
# * Missing days are not estimated. `is_complete` marks a period of which all days were released; the mean of any other
#   is that of its released days.
# * A period whose days count differently (another clamp, missing value or number of readings that may be missing) has
#   a row for each way of counting; `version` is the first contract that counts so.
# * A period is in the tables once none of its days is still to be released. The last period of a series that its
#   budget ends within a period does not appear.
# * The interval is of the sum of all noises, not a normal approximation (`consistency`). Platforms round its inversion
#   differently, so verification permits a difference of one watt-hour.
# * Weeks are those of ISO 8601, Monday to Sunday. Days are those of the input layout.
#
# *Consistent averages.* Least-squares estimates in which the groups of a day add up to coarser ones, where a contract
# releases a mean of all households and the same mean by groups, or by several levels of groups.
#
# * Values are combined if they are of one quantity, were drawn under one contract and were published on one date:
#   later runs may have read corrected files.
# * Groups below `min_households` are not released. Where the released groups therefore have fewer households than the
#   total, or the group, that they divide, nothing is known of the rest, and least squares itself leaves the values as
#   they are: they are repeated, or combined with the groups within them alone.
# * Groups without a coarser value are the roots of trees of their own: levels need no total.
# * The name differs from those of the series' tables, "daily_averages_NAME", so that no series can have it.
# --------------------------------------------------------------------------------------------------

Period = Literal["week", "month", "year"]
PERIODS: Final[tuple[Period, ...]] = ("week", "month", "year")
WH_PER_KWH: Final = 1000.0
_INT64_LIMIT: Final = 2.0**62
_LEAST_VARIANCE: Final = 1e-300  # noise so small that its variance is no float
_LEAST_SQUARES: Final = "least squares"
_NO_FINER: Final = "released value: no groups of a finer level that add up to it were drawn with it"
_NO_TOTAL: Final = "released value: no total was drawn with the groups"
_NO_GROUPS: Final = "released value: no groups that add up to the total were drawn with it"
_INCOMPLETE: Final = "released value: the released groups leave out households"

_Integers = np.ndarray[Any, np.dtype[Any]]

_DAILY_AVERAGES = released_schema(
    ("households", pa.int64(), "households on the roster that day"),
    ("noisy_sum_wh", pa.int64(), "what was drawn: sum of the clamped days plus noise, Wh"),
    ("mean_kwh", pa.float64(), "noisy_sum_wh / households / 1000, kWh"),
    *NOISE_COLUMNS,
)

_PERIOD_RELEASES = released_schema(
    ("first_day", pa.date32(), "first day that the row covers"),
    ("household_days", pa.int64(), "households on the roster, added over the days that the row covers"),
    ("noisy_sum_wh", pa.int64(), "what was drawn: sum of the clamped days of all households plus noise, Wh"),
    ("mean_kwh", pa.float64(), "noisy_sum_wh / household_days / 1000: use of a household on a day, kWh"),
    *NOISE_COLUMNS,
    day="last day of the week, month or year that the row covers",
    unit="periods",
    loss="loss of the release about all days of one household that it covers",
)

_PERIOD_AVERAGES = schema_of(
    ("first_day", pa.date32(), "first day of the period; a week begins on Monday"),
    ("last_day", pa.date32(), "last day of the period"),
    ("series", TEXT, "series of the run file that the value is of"),
    ("group_column", TEXT, "column of the roster, or all: all households"),
    ("group", TEXT, "all, or the group of the roster"),
    ("version", pa.int32(), "first of the contracts that the days were released under; they count a day alike"),
    (
        "above_kwh",
        pa.float64(),
        "a household's day counted as its energy above this, kWh; 0 unless it is an upper layer",
    ),
    ("clamp_kwh", pa.float64(), "a household's day counted up to this, kWh"),
    ("days_released", pa.int32(), "days of the period whose released values enter; missing days are not estimated"),
    ("days_in_period", pa.int32(), "days of the period"),
    ("is_complete", pa.int32(), "1 if all days of the period enter, otherwise 0"),
    ("fewest_households", pa.int64(), "smallest number of households on the roster on a day that enters"),
    ("most_households", pa.int64(), "largest number of households on the roster on a day that enters"),
    ("household_days", pa.int64(), "sum of the households on the roster over the days that enter"),
    ("mean_kwh", pa.float64(), "sum of noisy_sum_wh over the days / household_days / 1000: per household and day, kWh"),
    *NOISE_COLUMNS,
    ("published_on", pa.date32(), "UTC date of first publication of the latest day that enters"),
)

_CONSISTENT_AVERAGES = schema_of(
    ("day", pa.date32(), "day of the data"),
    ("series", TEXT, "series of the run file that the value is of"),
    ("group_column", TEXT, "column of the roster, or all: all households"),
    ("group", TEXT, "all, or the group of the roster"),
    ("households", pa.int64(), "households on the roster that day"),
    ("mean_kwh", pa.float64(), "estimate, kWh per household; groups add up to the total in kWh of all households"),
    ("noise_sd_kwh", pa.float64(), "standard deviation of the noise of mean_kwh, kWh"),
    ("based_on", TEXT, "series whose released values of the day enter the estimate"),
    ("method", TEXT, "least squares; or released value, with the reason why there is no estimate"),
)

_LAYER_TEXTS = {
    "noisy_sum_wh": "what was drawn: sum of the parts of the days in the layer plus noise, Wh",
    "mean_kwh": "noisy_sum_wh / households / 1000, kWh; add to those below for the mean up to the layer's end",
}
_DAILY_AVERAGE_LAYERS = pa.schema(
    [
        *(
            field.with_metadata({"description": _LAYER_TEXTS[field.name]}) if field.name in _LAYER_TEXTS else field
            for field in _DAILY_AVERAGES
        ),
        *schema_of(("layer", pa.int32(), "which layer of the clamp, from 2; layer 1 is in the daily averages")),
    ]
)


def _mean_lines(row: tables.PublishedRow, terms: tables.ContractTerms, noise: tables.Noise) -> dict[str, Any]:
    """Return the means of a row by group, with noise and interval [kWh per household]."""
    del terms
    half_width, deviation = noise.half_width(row.scale), noise.deviation(row.scale)
    wh_per_kwh_mean = [WH_PER_KWH * households for households in row.households]
    sums = list(zip(row.values, wh_per_kwh_mean, strict=True))
    return {
        "group": row.cells,
        "households": row.households,
        "noisy_sum_wh": row.values,
        "mean_kwh": [value / divisor for value, divisor in sums],
        "noise_sd_kwh": [deviation / divisor for divisor in wh_per_kwh_mean],
        "low_kwh": [(value - half_width) / divisor for value, divisor in sums],
        "high_kwh": [(value + half_width) / divisor for value, divisor in sums],
    }


def _layer_lines(row: tables.PublishedRow, terms: tables.ContractTerms, noise: tables.Noise) -> tables.Columns:
    return {**_mean_lines(row, terms, noise), "layer": series_terms.layer_number(row.series)}


def _period_lines(row: tables.PublishedRow, terms: tables.ContractTerms, noise: tables.Noise) -> tables.Columns:
    lines = _mean_lines(row, terms, noise)
    first, _ = terms.series[row.series].covered_days(date.fromisoformat(row.day))
    return {**lines, "first_day": first, "household_days": lines.pop("households")}


_BAND: Final = "low_kwh", "high_kwh"
_PERIOD_CHART: Final = tables.Chart("mean_kwh", _BAND, x="first_day", title="Mean use per household and day")
AVERAGES: Final = tables.ResultTable(
    "daily_averages",
    _DAILY_AVERAGES,
    "day and group",
    f"averages over households by day, {tables.NOISE_TEXT}",
    _mean_lines,
    "noisy_sum_wh",
    tables.Chart("mean_kwh", _BAND, title="Mean use per household and day"),
    ("clamp_kwh",),
)
PERIOD_RELEASES: Final = tables.ResultTable(
    "period_releases",
    _PERIOD_RELEASES,
    "period and group",
    "averages over households and days of a week, month or year, each drawn once for all days from first_day to day, "
    f"{tables.NOISE_TEXT}",
    _period_lines,
    "noisy_sum_wh",
    _PERIOD_CHART,
)
LAYERS: Final = tables.ResultTable(
    "daily_average_layers",
    _DAILY_AVERAGE_LAYERS,
    "day, group and upper layer",
    f"upper layers of the daily averages: parts of a mean, {tables.NOISE_TEXT}; {{ranges}}; add to layer 1 for the "
    "mean up to the end of a layer; the smoothed table of `agedp smooth` has the sum",
    _layer_lines,
    "noisy_sum_wh",
    None,
)


def _period_units(period: Period, rows: Sequence[tables.PublishedRow], terms: tables.Terms) -> list[tables.Unit]:
    """Return the days of each series in each period that count alike, and the sums of layers."""
    layers: dict[tuple[str, str, str], list[tables.PublishedRow]] = {}
    parts: list[tuple[tables.Unit, Sequence[tables.PublishedRow]]] = []
    for row, mean in tables.released(rows, terms, AVERAGES_BY[period]):
        parts.append((_period_unit(period, row.day, row.series, (mean.level, mean.quantity)), (row,)))
        if series_terms.layer_number(row.series):
            layers.setdefault((row.day, row.contract, series_terms.mean_name(row.series)), []).append(row)
    for (day, contract, name), of_day in layers.items():
        series = terms[contract].series
        means: list[Any] = [series[layer] for layer in series_terms.layers_of(of_day[0].series, series)]
        if len(of_day) == len(means):
            clamp_wh, missing_wh = max(mean.clamp_wh for mean in means), sum(mean.missing_wh for mean in means)
            quantity = (0, clamp_wh, missing_wh, means[0].max_missing, means[0].values)
            parts.append((_period_unit(period, day, name, (means[0].level, quantity)), of_day))
    units = [(unit, min(terms[row.contract].version for row in unit.rows)) for unit in tables.units_of(parts)]
    return [unit for unit, _ in sorted(units, key=lambda of: (of[0].first_day, of[0].series, of[1]))]


def _period_unit(period: Period, day: str, series: str, of: tuple[object, ...]) -> tables.Unit:
    first, last = series_terms.period_of(date.fromisoformat(day), period)
    return tables.Unit(first, last, series, of)


def _averages(units: Sequence[tables.Unit], terms: tables.Terms, noise: tables.Noise) -> pa.Table:
    """Return the averages of periods; a sum of layers leaves out the days on which these have other groups."""
    complete = [(unit, days) for unit in units if (days := [*_added_rows(unit)])]
    of_units = [
        (unit, min(terms[row.contract].version for rows in days for row in rows), days) for unit, days in complete
    ]
    of_units.sort(key=lambda of: (of[0].first_day, of[0].series, of[1]))
    columns = [_period_columns(unit, version, days, noise) for unit, version, days in of_units]
    schema = _PERIOD_AVERAGES
    values = {name: [value for column in columns for value in column[name]] for name in schema.names}
    return table_schemas.table_from_columns(schema, **values)


def _added_rows(unit: tables.Unit) -> Iterator[tuple[tables.PublishedRow, ...]]:
    """Yield the rows that are added on each day: one, or those of all layers, if they have equal groups."""
    for _, of_day in groupby(unit.rows, key=lambda row: (row.day, row.contract)):
        rows = tuple(of_day)
        if len({(row.cells, row.households) for row in rows}) == 1:
            yield rows


def _period_columns(
    unit: tables.Unit, version: int, days: Sequence[tuple[tables.PublishedRow, ...]], noise: tables.Noise
) -> dict[str, Sequence[Any]]:
    """Return the columns of a unit, a value for each group."""
    groups, values, households = _by_day_and_group(days)
    is_released = households > 0
    days_in_period = (unit.last_day - unit.first_day).days + 1
    released_days, household_days = is_released.sum(axis=0), households.sum(axis=0)
    deviation, half_width = tables.sum_noise(days, is_released, noise)
    wh_per_kwh_mean = WH_PER_KWH * household_days
    # whole numbers are divided last, so that a period of one day has the values of the day
    energy_wh = values.sum(axis=0)
    group_column, quantity = unit.of
    constants = {
        "first_day": unit.first_day,
        "last_day": unit.last_day,
        "series": unit.series,
        "group_column": group_column,
        "version": version,
        "above_kwh": quantity[0] / 1000,
        "clamp_kwh": quantity[1] / 1000,
        "days_in_period": days_in_period,
    }
    texts, date_of_day = np.unique([max(row.published_on for row in rows) for rows in days], return_inverse=True)
    dates = [date.fromisoformat(text) for text in texts]
    return {
        **{name: [value] * len(groups) for name, value in constants.items()},
        "group": groups,
        "days_released": released_days.tolist(),
        "is_complete": (released_days == days_in_period).astype(int).tolist(),
        "fewest_households": np.where(is_released, households, households.max()).min(axis=0).tolist(),
        "most_households": households.max(axis=0).tolist(),
        "household_days": household_days.tolist(),
        "mean_kwh": (energy_wh / wh_per_kwh_mean).tolist(),
        "noise_sd_kwh": (deviation / wh_per_kwh_mean).tolist(),
        "low_kwh": ((energy_wh - half_width) / wh_per_kwh_mean).tolist(),
        "high_kwh": ((energy_wh + half_width) / wh_per_kwh_mean).tolist(),
        "published_on": [dates[latest] for latest in np.where(is_released, date_of_day[:, None], 0).max(axis=0)],
    }


def _by_day_and_group(days: Sequence[tuple[tables.PublishedRow, ...]]) -> tuple[list[str], _Integers, _Integers]:
    """Return the groups, and their noisy sums [Wh] and households by day, 0 where a day lacks a group.

    Sums are Python integers where int64 might overflow.
    """
    all_rows = [row for rows in days for row in rows]
    groups = list(dict.fromkeys(cell for cells in dict.fromkeys(row.cells for row in all_rows) for cell in cells))
    largest = max(max(map(abs, row.values)) for row in all_rows)
    kind = np.int64 if largest < _INT64_LIMIT / len(all_rows) / 2 else object
    sums, households = np.zeros((len(days), len(groups)), kind), np.zeros((len(days), len(groups)), np.int64)
    place = {group: i for i, group in enumerate(groups)}
    for number, rows in enumerate(days):
        cells = rows[0].cells
        places = slice(None) if list(cells) == groups else [place[cell] for cell in cells]
        households[number, places] = rows[0].households
        for row in rows:
            sums[number, places] += np.array(row.values, kind)
    return groups, sums, households


def _kwh_of_household_day(table: pa.Table) -> Floats:
    return 1 / (WH_PER_KWH * table["household_days"].to_numpy())  # type: ignore[no-any-return]


AVERAGES_BY: Final[Mapping[Period, tables.DerivedTable]] = {
    period: tables.DerivedTable(
        f"averages_by_{period}",
        _PERIOD_AVERAGES,
        of=f"released days of each {period}",
        about=f"averages by {period}",
        description="averages over households and days by period, with their noise: sums of the released days and "
        "nothing else; a row for each way of counting a household's day, and a period once none of its days is still "
        "to be released",
        source="average",
        span=period,
        units=partial(_period_units, period),
        lines=_averages,
        line=("first_day", "series", "group_column", "group", "version"),
        order=("first_day", "series", "version"),
        rounded=("noise_sd_kwh",),
        kwh_of_wh=_kwh_of_household_day,
        chart=_PERIOD_CHART,
    )
    for period in PERIODS
}


def _names_by_quantity(terms: tables.Terms) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return, by contract and series, the names of the quantity's series, if some of these add up to others."""
    return {
        (contract, name): names
        for contract, of_contract in terms.items()
        for names in totals_with_groups(of_contract.series)
        for name in names
    }


def _consistent_units(rows: Sequence[tables.PublishedRow], terms: tables.Terms) -> list[tables.Unit]:
    """Return the rows that are combined, those of one day, date of publication and quantity, totals first."""
    names_of, by_day = _names_by_quantity(terms), {}  # type: ignore[var-annotated]
    for row, _ in tables.released(rows, terms, CONSISTENT):
        if names := names_of.get((row.contract, row.series)):
            by_day.setdefault((row.day, row.published_on, row.contract, names), []).append(row)
    units = []
    for day, *of, names in sorted(by_day):
        of_day = date.fromisoformat(day)
        ordered = sorted(by_day[(day, *of, names)], key=lambda row: (names.index(row.series), row.seq))
        units.append(tables.Unit(of_day, of_day, names[0], (*of, names), tuple(ordered), needs=names))
    return units


def _consistent_lines(units: Sequence[tables.Unit], terms: tables.Terms, noise: tables.Noise) -> pa.Table:
    lines = [line for unit in units for line in _day_lines(unit.rows, terms, noise)]
    return table_schemas.table_from_rows(_CONSISTENT_AVERAGES, lines)


def _day_lines(
    rows: Sequence[tables.PublishedRow], terms: tables.Terms, noise: tables.Noise
) -> Iterator[dict[str, Any]]:
    """Yield the lines of one day and quantity."""
    columns = {row.seq: terms[row.contract].series[row.series].columns for row in rows}
    noisy = {}
    for row in rows:
        variance = max(noise.deviation(row.scale) ** 2, _LEAST_VARIANCE)
        noisy[row.seq] = [NoisyValue(float(value), variance) for value in row.values]
    by_columns: dict[LevelColumns, list[tables.PublishedRow]] = {}
    for row in rows:
        by_columns.setdefault(columns[row.seq], []).append(row)
    drawn = {}
    for of, same in by_columns.items():  # rows by the same columns have the same groups, and enter as their mean
        values = tuple(map(precision_mean, zip(*(noisy[row.seq] for row in same), strict=True)))
        drawn[of] = DrawnGroups(same[0].cells, same[0].households, values)
    estimates = consistent_groups(drawn)
    for row in rows:
        of_row = columns[row.seq]
        for i, group in enumerate(row.cells):
            estimate = estimates.get((of_row, i))
            value = noisy[row.seq][i] if estimate is None else estimate.noisy
            based_on = [of.series for of in rows if columns[of.seq] in estimate.based_on] if estimate else [row.series]
            wh_per_kwh_mean = WH_PER_KWH * row.households[i]
            yield {
                "day": date.fromisoformat(row.day),
                "series": row.series,
                "group_column": (*of_row, ALL)[0],
                "group": group,
                "households": row.households[i],
                "mean_kwh": value.value / wh_per_kwh_mean,
                "noise_sd_kwh": value.variance**0.5 / wh_per_kwh_mean,
                "based_on": ", ".join(based_on),
                "method": _LEAST_SQUARES if estimate is not None else _reason(of_row, by_columns),
            }


def _reason(columns: LevelColumns, drawn: Collection[LevelColumns]) -> str:
    """Return why a group by these columns keeps its released value."""
    if not columns:
        return _NO_GROUPS
    if next_coarser(columns, drawn) is not None:
        return _INCOMPLETE
    is_divided = any(next_coarser(finer, drawn) == columns for finer in drawn)
    return _NO_FINER if is_divided else _NO_TOTAL


CONSISTENT: Final = tables.DerivedTable(
    "consistent_daily_averages",
    _CONSISTENT_AVERAGES,
    of="least squares of the released averages",
    about="daily averages in which groups add up to their total",
    description="averages over households by day in which the groups add up to the total: least-squares estimates from "
    "the released averages and nothing else",
    source="average",
    span="day",
    units=_consistent_units,
    lines=_consistent_lines,
    rounded=("mean_kwh", "noise_sd_kwh"),
    has_intervals=False,
    is_possible=lambda series: bool(totals_with_groups(series)),
)
DERIVED: Final = (CONSISTENT, *AVERAGES_BY.values())


# --------------------------------------------------------------------------------------------------
# The statistic.
# --------------------------------------------------------------------------------------------------


class Mean(series_terms.EnergySeries):
    """Mean of the households' days: one exact sum per group, to which noise is added.

    The published mean is the noisy sum, divided by the number of households on the roster, which is public.
    """

    KIND = "mean"
    PLURAL = "averages"
    CONTENT = "averages"
    TABLES: ClassVar[tuple[tables.ResultTable, ...]] = (AVERAGES, PERIOD_RELEASES)
    DERIVED = (CONSISTENT, *AVERAGES_BY.values())
    unit = "kWh"
    true_values = "means"
    stated = (
        "a household's daily total counts, at most its clamp. Noise is added to the sum, in whole watt-hours, and the "
        "noisy sum is divided by the number of households on the roster."
    )

    statistic: Literal["mean"]
    every: Annotated[Literal["day", "week", "month", "year"], LATER] = "day"
    """Days of a row: each day, or a calendar week from Monday, month or year. A period costs what one of its days has
    for this series, counts in every one of them, and has the noise of all of them.
    """

    @property
    def period(self) -> series_terms.Every:
        """Return what a row covers: a day, week, month or year."""
        return self.every

    @property
    def above_wh(self) -> int:
        """Return the energy above which a household's day counts, in whole watt-hours."""
        return 0

    @property
    def width_wh(self) -> int:
        """Return the most that a household's day counts, in whole watt-hours."""
        return self.clamp_wh - self.above_wh

    @property
    def quantity(self) -> tuple[int, int, int, int, str]:
        """Return what counts as a household's day; means of one quantity on one day rest on the same numbers."""
        return self.above_wh, self.clamp_wh, self.missing_wh, self.max_missing, self.values

    def sensitivity(self, change: Change) -> int:
        """Return the L1 sensitivity of the sum to a change of one household's day [Wh]: at most the width.

        A household is in one group, so this is also the sensitivity of the vector of all groups.
        """
        return sum_sensitivity(self.counted_change(change), clamp=self.width_wh)

    def most(self, minutes: int) -> int:
        """Return the most that a household's day adds to the sum [Wh]."""
        del minutes
        return self.width_wh

    def counted(self, days: series_terms.HouseholdDays) -> series_terms.Counted:
        """Return the counted energy of each day [Wh].

        Raises:
            ChainError: an energy is outside the range of a counted day.
        """
        return self.clamped_days(days, self.width_wh)


def is_daily_mean(series: object) -> TypeGuard[Mean]:
    """Return whether a series is a mean, or a layer of one, with a row for each day.

    >>> is_daily_mean(Mean(statistic="mean", clamp_kwh=50, every="month"))
    False
    """
    return isinstance(series, Mean) and not series.covers_periods
