"""LEDGER rows -> averages of weeks, months and years, derived from the released days at no privacy loss.

A table for each length of period. The noisy sums of the released days are added and divided by their household-days;
the noise of the result is known exactly. It is a function of the released rows alone, so it adds no privacy loss, and
verification computes it again.

Example: January 2013 with 31 sums of 5,000 households and noise of scale 100,000 Wh has 155,000 household-days, and
noise with a standard deviation of 787,401 Wh, which is 0.0051 kWh per household and day.

Decisions:

* A mean is energy per household and day: days with more households weigh more. Energy and means of groups then add up
  as those of days do, and the noise is an unweighted sum of the days' noises.
* A mean in layers (`series.layers`) has a row of their sum under its name in the run file, which is the mean up to its
  last clamp, and a row for each layer. The sum is of the days of which all layers were released.
* Only means of single days enter. Other statistics, and releases of longer periods, are left out.
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
from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa

from agedp.budget import series_by_contract
from agedp.release_folder.period_parts import PERIODS, DailyValue, Period, PeriodPart, closed_parts
from agedp.release_folder.result_tables import (
    METADATA_KEY,
    common_guarantee,
    parquet_bytes,
)
from agedp.release_folder.table_comparison import check_large_table, interval_coverage
from agedp_data import derived_schemas, table_schemas
from agedp_data.arrays import Floats
from agedp_data.ledger import ContractRecord, ReleaseRecord
from agedp_data.series.noise_sums import sum_deviation, sum_interval
from agedp_data.series.series import is_daily_mean
from agedp_data.statement.document import Statement

PERIOD_FILES: Final[Mapping[Period, str]] = {period: f"averages_by_{period}.parquet" for period in PERIODS}
_INT64_LIMIT: Final = 2.0**62
_ROUNDED: Final = ("noise_sd_kwh",)
_INTERVAL_TOLERANCE: Final = 1e-9

_Integers = np.ndarray[Any, np.dtype[Any]]


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
            coverage = interval_coverage(table)
            expected = period_table(period, statement, rows, contracts, coverage=coverage)
            compare_period_averages(name, table, expected)


def compare_period_averages(name: str, table: pa.Table, expected: pa.Table | None) -> None:
    """Check that a table of averages by period is the expected one.

    Raises:
        InputError: a guarantee, row or cell that differs; the message names the period's first day and the column.
    """
    if expected is not None:
        kwh_of_wh = 1 / (1000.0 * expected["household_days"].to_numpy())
        expected = with_equal_intervals(expected, table, kwh_of_wh=kwh_of_wh)
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
    parts = closed_parts(period, rows, contracts)
    return period_parts_table(period, parts, common_guarantee(statement), coverage=coverage)


def period_parts_table(
    period: Period, parts: Sequence[PeriodPart], common: Mapping[str, Any], *, coverage: Decimal
) -> pa.Table:
    """Return the table of these parts of periods; `common` is the part of its guarantee that other tables have too."""
    columns = [_columns(part, coverage) for part in parts]
    schema = derived_schemas.PERIOD_AVERAGES
    values = {name: [value for column in columns for value in column[name]] for name in schema.names}
    guarantee = {
        **common,
        "interval": {"coverage": str(coverage), "covers": "the noise and nothing else"},
        "of": f"released days of each {period}",
        "schema": f"agedp-averages-by-{period}-1",
    }
    table = table_schemas.table_from_columns(schema, **values)
    return table.replace_schema_metadata({METADATA_KEY: json.dumps(guarantee, sort_keys=True, ensure_ascii=True)})


def _columns(part: PeriodPart, coverage: Decimal) -> dict[str, list[Any]]:
    """Return the columns of a part of a period, a value for each group."""
    groups, values, households = _by_day_and_group(part.values)
    is_released = households > 0
    days_in_period = (part.last_day - part.first_day).days + 1
    days, household_days = is_released.sum(axis=0), households.sum(axis=0)
    deviation, half_width = _noise_of_groups(part.values, is_released, coverage)
    wh_per_kwh_mean = 1000.0 * household_days
    # whole numbers are divided last, so that a period of one day has the values of the day
    energy_wh = values.sum(axis=0)
    constants = {
        "first_day": part.first_day,
        "last_day": part.last_day,
        "series": part.series,
        "group_column": part.group_column,
        "version": part.version,
        "above_kwh": part.quantity[0] / 1000,
        "clamp_kwh": part.quantity[1] / 1000,
        "days_in_period": days_in_period,
    }
    published_on = [max(row.published_on for row in value.rows) for value in part.values]
    texts, date_of_day = np.unique(published_on, return_inverse=True)
    dates = [date.fromisoformat(text) for text in texts]
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
        "published_on": [dates[latest] for latest in np.where(is_released, date_of_day[:, None], 0).max(axis=0)],
    }


def _by_day_and_group(values: Sequence[DailyValue]) -> tuple[list[str], _Integers, _Integers]:
    """Return the groups, and their noisy sums [Wh] and households by day, 0 where a day lacks a group.

    Sums are Python integers where int64 might overflow.
    """
    all_rows = [row for value in values for row in value.rows]
    groups = list(dict.fromkeys(cell for cells in dict.fromkeys(row.cells for row in all_rows) for cell in cells))
    largest = max(max(map(abs, row.values)) for row in all_rows)
    kind = np.int64 if largest < _INT64_LIMIT / len(all_rows) / 2 else object
    sums, households = np.zeros((len(values), len(groups)), kind), np.zeros((len(values), len(groups)), np.int64)
    place = {group: i for i, group in enumerate(groups)}
    for number, value in enumerate(values):
        cells = value.rows[0].cells
        places = slice(None) if list(cells) == groups else [place[cell] for cell in cells]
        households[number, places] = value.rows[0].households
        for row in value.rows:
            sums[number, places] += np.array(row.values, kind)
    return groups, sums, households


def _noise_of_groups(
    values: Sequence[DailyValue], is_released: _Integers, coverage: Decimal
) -> tuple[_Integers, _Integers]:
    """Return standard deviation and half-width of the noise of each group's sum [Wh]."""
    by_days, index = np.unique(is_released, axis=1, return_inverse=True)
    scales_of_sums = [
        [row.scale for value, enters in zip(values, days, strict=True) if enters for row in value.rows]
        for days in by_days.T
    ]
    deviations = np.array([sum_deviation(scales) for scales in scales_of_sums])
    half_widths = np.array([sum_interval(scales, coverage) for scales in scales_of_sums], object)
    return deviations[index.ravel()], half_widths[index.ravel()]


def with_equal_intervals(expected: pa.Table, stored: pa.Table, *, kwh_of_wh: Floats) -> pa.Table:
    """Return the expected table with the stored ends of intervals that differ by a watt-hour or 1e-9 of their length.

    Inversion rounds differently on other platforms, and an end is a whole watt-hour of the sum.

    Args:
        expected: table that the ledger rows give.
        stored: table of a folder.
        kwh_of_wh: what a watt-hour of the sum is in the mean of each expected row [kWh].
    """
    if expected.schema.remove_metadata() != stored.schema.remove_metadata() or expected.num_rows != stored.num_rows:
        return expected
    low_kwh, high_kwh = expected["low_kwh"].to_numpy(), expected["high_kwh"].to_numpy()
    tolerance_kwh = 1.5 * kwh_of_wh + _INTERVAL_TOLERANCE * (high_kwh - low_kwh)
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
