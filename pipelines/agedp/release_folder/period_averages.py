"""LEDGER rows -> averages of weeks, months and years, derived from the released days at no privacy loss.

A table for each length of period. The noisy sums of the released days are added and divided by their household-days;
the noise of the result is known exactly. It is a function of the released rows alone, so it adds no privacy loss, and
verification computes it again.

Example: January 2013 with 31 sums of 5,000 households and noise of scale 100,000 Wh has 155,000 household-days, and
noise with a standard deviation of 787,401 Wh, which is 0.0051 kWh per household and day.

Decisions:

* A mean is energy per household and day: days with more households weigh more. Energy and means of groups then add up
  as those of days do, and the noise is an unweighted sum of the days' noises.
* A layer of a mean (`series.layers`) is a series of its own here too; means of layers add up, as do their variances.
* Missing days are not estimated. `is_complete` marks a period of which all days were released; the mean of any other is
  that of its released days.
* A period whose days count differently (another clamp, missing value or number of readings that may be missing) has a
  row for each way of counting; `version` is the first contract that counts so.
* A period is in the tables once none of its days is still to be released, so that rows are only added. The last period
  of a series that its budget ends within a period does not appear.
* The interval has the coverage of the daily averages. It is of the sum of all noises, not a normal approximation
  (`noise_sums`). Platforms round its inversion differently, so verification permits a difference of one watt-hour.
* Weeks are those of ISO 8601, Monday to Sunday. Days are those of the input layout.
"""

from __future__ import annotations

import json
from calendar import monthrange
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa

from agedp.budget import closed_days, series_by_contract
from agedp.release_folder.result_tables import (
    METADATA_KEY,
    common_guarantee,
    parquet_bytes,
    read_guarantee,
)
from agedp.release_folder.table_comparison import check_large_table
from agedp_data import table_schemas
from agedp_data.config.contract_values import meaning_of
from agedp_data.ledger import ContractRecord, ReleaseRecord
from agedp_data.roster import ALL
from agedp_data.series.noise_sums import sum_deviation, sum_interval
from agedp_data.series.series import Mean, is_daily_mean
from agedp_data.statement.document import Statement

Period = Literal["week", "month", "year"]
PERIODS: Final[tuple[Period, ...]] = ("week", "month", "year")
PERIOD_FILES: Final[Mapping[Period, str]] = {period: f"averages_by_{period}.parquet" for period in PERIODS}
_ONE_DAY: Final = timedelta(days=1)
_INT64_LIMIT: Final = 2.0**62
_ROUNDED: Final = ("noise_sd_kwh",)
_INTERVAL_TOLERANCE: Final = 1e-9

_Integers = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, slots=True)
class _PeriodPart:
    """Released rows of one series in one period that count a household's day alike."""

    first_day: date
    last_day: date
    series: str
    mean: Mean
    version: int
    rows: list[ReleaseRecord] = field(default_factory=list)


def period_files(
    statement: Statement, rows: Sequence[ReleaseRecord], contracts: Sequence[ContractRecord], *, coverage: Decimal
) -> dict[str, bytes]:
    """Return the files of the averages by week, month and year; none if no contract releases a mean."""
    tables = {
        name: period_table(period, statement, rows, contracts, coverage=coverage)
        for period, name in PERIOD_FILES.items()
    }
    return {name: parquet_bytes(table) for name, table in tables.items() if table is not None}


def check_period_averages(
    tables: Mapping[str, pa.Table],
    statement: Statement,
    rows: Sequence[ReleaseRecord],
    contracts: Sequence[ContractRecord],
) -> None:
    """Check that tables of averages by period, by file name, follow from a folder's ledger rows.

    Raises:
        InputError: a guarantee, row or cell that differs; the message names the period's first day and the column.
        LookupError, TypeError, ValueError, ArithmeticError: entries of a release are missing.
    """
    for period, name in PERIOD_FILES.items():
        if name in tables:
            table = tables[name]
            coverage = Decimal(read_guarantee(table.schema)["interval"]["coverage"])
            expected = period_table(period, statement, rows, contracts, coverage=coverage)
            if expected is not None:
                expected = _with_equal_intervals(expected, table)
            check_large_table(name, _by_day(table), None if expected is None else _by_day(expected), rounded=_ROUNDED)


def period_table(
    period: Period,
    statement: Statement,
    rows: Sequence[ReleaseRecord],
    contracts: Sequence[ContractRecord],
    *,
    coverage: Decimal,
) -> pa.Table | None:
    """Return the averages of one length of period with their guarantee in the metadata; None without a mean.

    Args:
        period: "week" (ISO 8601), "month" or "year".
        statement: the statement of the rows.
        rows: all release rows of the population.
        contracts: its contracts, oldest first.
        coverage: of the noise intervals.
    """
    series = series_by_contract(contracts)
    if not any(is_daily_mean(mean) for names in series.values() for mean in names.values()):
        return None
    parts = _closed_parts(period, rows, contracts)
    columns = [_columns(part, coverage) for part in parts]
    schema = table_schemas.PERIOD_AVERAGES
    values = {name: [value for column in columns for value in column[name]] for name in schema.names}
    guarantee = {
        **common_guarantee(statement),
        "interval": {"coverage": str(coverage), "covers": "the noise and nothing else"},
        "of": f"released days of each {period}",
        "schema": f"agedp-averages-by-{period}-1",
    }
    table = table_schemas.table_from_columns(schema, **values)
    return table.replace_schema_metadata({METADATA_KEY: json.dumps(guarantee, sort_keys=True, ensure_ascii=True)})


def period_bounds(day: date, period: Period) -> tuple[date, date]:
    """Return the first and last day of the week (ISO 8601), month or year of a day.

    >>> [bound.isoformat() for bound in period_bounds(date(2012, 12, 31), "week")]
    ['2012-12-31', '2013-01-06']
    """
    if period == "week":
        first = day - day.weekday() * _ONE_DAY
        return first, first + 6 * _ONE_DAY
    if period == "month":
        return day.replace(day=1), day.replace(day=monthrange(day.year, day.month)[1])
    return date(day.year, 1, 1), date(day.year, 12, 31)


def _closed_parts(
    period: Period, rows: Sequence[ReleaseRecord], contracts: Sequence[ContractRecord]
) -> list[_PeriodPart]:
    """Return the parts of the periods of which no day is still to be released, by first day, series and version."""
    series = series_by_contract(contracts)
    versions = {contract.hash: number for number, contract in enumerate(contracts, 1)}
    bounds = {row.day: period_bounds(date.fromisoformat(row.day), period) for row in rows}
    parts: dict[tuple[date, str, object], _PeriodPart] = {}
    for row in sorted(rows, key=lambda row: (row.day, versions[row.contract])):
        mean = series[row.contract].get(row.series)
        if row.state == "released" and is_daily_mean(mean):
            first, last = bounds[row.day]
            key = first, row.series, (mean.by, mean.quantity)
            if key not in parts:
                parts[key] = _PeriodPart(first, last, row.series, mean, versions[row.contract])
            parts[key].rows.append(row)
    is_open = _open_periods(parts.values(), rows, contracts)
    ordered = sorted(parts.values(), key=lambda part: (part.first_day, part.series, part.version))
    return [part for part in ordered if (part.first_day, part.series) not in is_open]


def _open_periods(
    parts: Collection[_PeriodPart], rows: Sequence[ReleaseRecord], contracts: Sequence[ContractRecord]
) -> set[tuple[date, str]]:
    """Return first day and series of the periods of which a day may still be released.

    A series that was ended may be continued, but only after the days that any series has rows of.
    """
    terms = meaning_of(contracts[-1].promise)
    schedule, continued = terms["schedule"], terms["series"].keys()
    begin = date.fromisoformat(schedule["first_day"])
    end = date.fromisoformat(schedule["last_day"]) if "last_day" in schedule else date.max
    closed, days_with_rows = closed_days(rows, contracts), {row.day for row in rows}

    def is_open(day: str, series: str) -> bool:
        return (day, series) not in closed and (series in continued or day not in days_with_rows)

    periods = {(part.first_day, part.last_day, part.series) for part in parts}
    return {
        (first, series)
        for first, last, series in periods
        if any(is_open(day.isoformat(), series) for day in _days(max(first, begin), min(last, end)))
    }


def _days(first: date, last: date) -> Iterator[date]:
    return (first + number * _ONE_DAY for number in range((last - first).days + 1))


def _columns(part: _PeriodPart, coverage: Decimal) -> dict[str, list[Any]]:
    """Return the columns of a part of a period, a value for each group."""
    groups, values, households = _by_day_and_group(part.rows)
    is_released = households > 0
    days_in_period = (part.last_day - part.first_day).days + 1
    days, household_days = is_released.sum(axis=0), households.sum(axis=0)
    deviation, half_width = _noise_of_groups(part.rows, is_released, coverage)
    wh_per_kwh_mean = 1000.0 * household_days
    # whole numbers are divided last, so that a period of one day has the values of the day
    energy_wh = values.sum(axis=0)
    constants = {
        "first_day": part.first_day,
        "last_day": part.last_day,
        "series": part.series,
        "group_column": part.mean.by or ALL,
        "version": part.version,
        "above_kwh": part.mean.above_wh / 1000,
        "clamp_kwh": part.mean.clamp_wh / 1000,
        "days_in_period": days_in_period,
    }
    published_on = np.array([row.published_on for row in part.rows])
    return {
        **{name: [value] * len(groups) for name, value in constants.items()},
        "group": groups,
        "days_released": days.tolist(),
        "is_complete": (days == days_in_period).astype(int).tolist(),
        "fewest_households": np.where(is_released, households, households.max()).min(axis=0).tolist(),
        "most_households": households.max(axis=0).tolist(),
        "household_days": household_days.tolist(),
        "mean_kwh": (energy_wh / wh_per_kwh_mean).tolist(),
        "noise_sd_kwh": (deviation / wh_per_kwh_mean).tolist(),
        "low_kwh": ((energy_wh - half_width) / wh_per_kwh_mean).tolist(),
        "high_kwh": ((energy_wh + half_width) / wh_per_kwh_mean).tolist(),
        "published_on": [date.fromisoformat(max(published_on[released])) for released in is_released.T],
    }


def _by_day_and_group(rows: Sequence[ReleaseRecord]) -> tuple[list[str], _Integers, _Integers]:
    """Return the groups, and their noisy sums [Wh] and households by row, 0 where a row lacks a group.

    Sums are Python integers where int64 might overflow.
    """
    groups = list(dict.fromkeys(cell for cells in dict.fromkeys(row.cells for row in rows) for cell in cells))
    largest = max(max(map(abs, row.values)) for row in rows)
    values = np.zeros((len(rows), len(groups)), np.int64 if largest < _INT64_LIMIT / len(rows) / 2 else object)
    households = np.zeros((len(rows), len(groups)), np.int64)
    place = {group: i for i, group in enumerate(groups)}
    for number, row in enumerate(rows):
        places = slice(None) if list(row.cells) == groups else [place[cell] for cell in row.cells]
        values[number, places] = row.values
        households[number, places] = row.households
    return groups, values, households


def _noise_of_groups(
    rows: Sequence[ReleaseRecord], is_released: _Integers, coverage: Decimal
) -> tuple[_Integers, _Integers]:
    """Return standard deviation and half-width of the noise of each group's sum [Wh]."""
    by_days, index = np.unique(is_released, axis=1, return_inverse=True)
    scales = np.array([row.scale for row in rows])
    scales_of_sums = [scales[days].tolist() for days in by_days.T]
    deviations = np.array([sum_deviation(terms) for terms in scales_of_sums])
    half_widths = np.array([sum_interval(terms, coverage) for terms in scales_of_sums], object)
    return deviations[index.ravel()], half_widths[index.ravel()]


def _with_equal_intervals(expected: pa.Table, stored: pa.Table) -> pa.Table:
    """Return the expected table with the stored ends of intervals that differ by a watt-hour or 1e-9 of their length.

    Inversion rounds differently on other platforms, and an end is a whole watt-hour of the sum.
    """
    if expected.schema.remove_metadata() != stored.schema.remove_metadata() or expected.num_rows != stored.num_rows:
        return expected
    low_kwh, high_kwh = expected["low_kwh"].to_numpy(), expected["high_kwh"].to_numpy()
    tolerance_kwh = 1.5 / (1000 * expected["household_days"].to_numpy()) + _INTERVAL_TOLERANCE * (high_kwh - low_kwh)
    for name, ends_kwh in (("low_kwh", low_kwh), ("high_kwh", high_kwh)):
        stored_kwh = stored[name].to_numpy()
        ends = np.where(np.abs(ends_kwh - stored_kwh) <= tolerance_kwh, stored_kwh, ends_kwh)
        place = expected.schema.get_field_index(name)
        expected = expected.set_column(place, expected.schema.field(place), pa.array(ends))
    return expected


def _by_day(table: pa.Table) -> pa.Table:
    """Return a table whose rows are named by their first day in messages."""
    columns = [column.with_name("day") if column.name == "first_day" else column for column in table.schema]
    return pa.Table.from_arrays(table.columns, schema=pa.schema(columns, metadata=table.schema.metadata))
