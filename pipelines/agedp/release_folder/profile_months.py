r"""LEDGER rows of load profiles -> mean profiles of weekdays and weekends by month, at no privacy loss.

The released half-hours of the days of one kind are added and divided by their household-days. The result is a function
of the released rows alone (post-processing), so it adds no privacy loss, and verification computes it again. Its noise
is known exactly: it is the sum of the days' noises (`noise_sums`).

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
* As for averages by month (`period_averages`), missing days are not estimated, `is_complete` marks rows of which all
  days were released, days that count differently have rows of their own, and a month is in the table once none of its
  days is still to be released.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa

from agedp.budget import series_by_contract
from agedp.release_folder.period_averages import with_equal_intervals
from agedp.release_folder.period_parts import open_periods
from agedp.release_folder.profile_table import ProfileTerms, cell_minutes
from agedp.release_folder.result_tables import (
    METADATA_KEY,
    common_guarantee,
    contract_layout,
    parquet_bytes,
)
from agedp.release_folder.table_comparison import check_large_table, interval_coverage
from agedp_data import derived_schemas, table_schemas
from agedp_data.datasets.layout import slot_step
from agedp_data.datasets.timestamps import day_number
from agedp_data.datasets.validation import INTERVAL_MINUTES, SLOTS, Flags, Ints
from agedp_data.ledger import ContractRecord, ReleaseRecord
from agedp_data.series.day_kinds import DAY_KINDS, DayKind, day_kind
from agedp_data.series.noise_sums import sum_deviation, sum_interval
from agedp_data.series.periods import days_of, period_of
from agedp_data.series.profile import Profile
from agedp_data.statement.document import Statement

PROFILE_MONTHS_FILE: Final = "profile_by_month.parquet"
_INT64_LIMIT: Final = 2.0**62
_ROUNDED: Final = ("noise_sd_kwh",)

_Integers = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, slots=True)
class ProfileMonth:
    """Released rows of one series of profiles in one month that count a household's day alike."""

    first_day: date
    last_day: date
    series: str
    terms: ProfileTerms
    rows: list[ReleaseRecord] = field(default_factory=list)

    @property
    def key(self) -> tuple[object, ...]:
        """Return what the month is of, and the numbers of its ledger rows."""
        return self.first_day, self.series, self.terms.version, tuple(row.seq for row in self.rows)

    @property
    def ledger_rows(self) -> tuple[ReleaseRecord, ...]:
        """Return the ledger rows that the month is made from."""
        return tuple(self.rows)

    def completed(self, rows: Mapping[int, ReleaseRecord]) -> ProfileMonth:
        """Return the month with complete rows by number in place of outlines."""
        return replace(self, rows=[rows[row.seq] for row in self.rows])


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
    rows: tuple[ReleaseRecord, ...]


def profile_month_files(
    statement: Statement, rows: Sequence[ReleaseRecord], contracts: Sequence[ContractRecord], *, coverage: Decimal
) -> dict[str, bytes]:
    """Return the file of mean profiles by month; none if no contract releases daily profiles."""
    table = profile_month_table(statement, rows, contracts, coverage=coverage)
    return {} if table is None else {PROFILE_MONTHS_FILE: parquet_bytes(table)}


def check_profile_months(
    table: pa.Table, statement: Statement, rows: Sequence[ReleaseRecord], contracts: Sequence[ContractRecord]
) -> None:
    """Check that a table of mean profiles by month follows from a folder's ledger rows.

    Raises:
        InputError: a guarantee, row or cell that differs; the message names the month's first day and the column.
        LookupError, TypeError, ValueError, ArithmeticError: entries of a release are missing.
    """
    compare_profile_months(
        PROFILE_MONTHS_FILE,
        table,
        profile_month_table(statement, rows, contracts, coverage=interval_coverage(table)),
    )


def compare_profile_months(name: str, table: pa.Table, expected: pa.Table | None) -> None:
    """Check that a table of mean profiles by month is the expected one.

    Raises:
        InputError: a guarantee, row or cell that differs; the message names the month's first day and the column.
    """
    if expected is not None:
        kwh_of_wh = expected["minutes"].to_numpy() / (1000.0 * expected["household_minutes"].to_numpy())
        expected = _named_by_day(with_equal_intervals(expected, table, kwh_of_wh=kwh_of_wh))
    check_large_table(name, _named_by_day(table), expected, rounded=_ROUNDED)


def profile_month_table(
    statement: Statement, rows: Sequence[ReleaseRecord], contracts: Sequence[ContractRecord], *, coverage: Decimal
) -> pa.Table | None:
    """Return the mean profiles by month with their guarantee in the metadata; None without a series of profiles.

    Args:
        statement: the statement of the rows.
        rows: all release rows of the population.
        contracts: its contracts, oldest first.
        coverage: of the noise intervals.
    """
    terms = profile_terms(contracts)
    if not any(terms.values()):
        return None
    months = closed_months(rows, contracts, terms)
    return profile_table_of_months(months, common_guarantee(statement), coverage=coverage)


def profile_table_of_months(
    months: Sequence[ProfileMonth], common: Mapping[str, Any], *, coverage: Decimal
) -> pa.Table:
    """Return the table of these months; `common` is the part of its guarantee that other tables have as well."""
    tables = [_month_table(month, coverage) for month in months]
    guarantee = {
        **common,
        "interval": {"coverage": str(coverage), "covers": "the noise and nothing else"},
        "of": "released days of each month, weekdays and weekends",
        "schema": "agedp-profile-by-month-1",
    }
    table = pa.concat_tables([derived_schemas.PROFILE_BY_MONTH.empty_table(), *tables])
    return table.replace_schema_metadata({METADATA_KEY: json.dumps(guarantee, sort_keys=True, ensure_ascii=True)})


def profile_terms(contracts: Sequence[ContractRecord]) -> dict[str, dict[str, ProfileTerms]]:
    """Return the series of daily profiles with their layout, by the hash of each contract and their name."""
    series = series_by_contract(contracts)
    return {
        contract.hash: {
            name: ProfileTerms(profile, contract_layout(contract), version)
            for name, profile in series[contract.hash].items()
            if isinstance(profile, Profile) and not profile.covers_periods
        }
        for version, contract in enumerate(contracts, 1)
    }


def closed_months(
    rows: Sequence[ReleaseRecord],
    contracts: Sequence[ContractRecord],
    terms: Mapping[str, Mapping[str, ProfileTerms]],
) -> list[ProfileMonth]:
    """Return the months of which no day is still to be released, by first day, series and version."""
    months: dict[tuple[date, str, object], ProfileMonth] = {}
    versions = {contract.hash: number for number, contract in enumerate(contracts, 1)}
    for row in sorted(rows, key=lambda row: (row.day, versions[row.contract])):
        of_row = terms[row.contract].get(row.series)
        if row.state == "released" and of_row is not None:
            first, last = period_of(date.fromisoformat(row.day), "month")
            key = first, row.series, (of_row.profile.by, of_row.profile.quantity)
            months.setdefault(key, ProfileMonth(first, last, row.series, of_row)).rows.append(row)
    periods = {(month.first_day, month.last_day, month.series) for month in months.values()}
    is_open = open_periods(periods, rows, contracts)
    ordered = sorted(months.values(), key=lambda month: (month.first_day, month.series, month.terms.version))
    return [month for month in ordered if (month.first_day, month.series) not in is_open]


def _month_table(month: ProfileMonth, coverage: Decimal) -> pa.Table:
    """Return the rows of a month: weekdays first, then by group and half-hour."""
    tables = [
        _kind_table(month, kind, sums, coverage)
        for kind in DAY_KINDS
        for sums in _kind_sums(month, [row for row in month.rows if day_kind(date.fromisoformat(row.day)) == kind])
    ]
    return pa.concat_tables([derived_schemas.PROFILE_BY_MONTH.empty_table(), *tables])


def _kind_sums(month: ProfileMonth, rows: Sequence[ReleaseRecord]) -> Iterator[_KindSums]:
    """Yield the sums of days of one kind; nothing without a day."""
    if not rows:
        return
    places = {cells: list(map(month.terms.profile.place, cells)) for cells in dict.fromkeys(row.cells for row in rows)}
    number = {group: i for i, group in enumerate(dict.fromkeys(group for of in places.values() for group, _ in of))}
    largest = max(max(map(abs, row.values)) for row in rows)
    kind = np.int64 if largest < _INT64_LIMIT / len(rows) else object
    sum_wh, households = np.zeros((len(number), SLOTS), kind), np.zeros((len(rows), len(number)), np.int64)
    minutes = np.zeros((len(rows), SLOTS), np.int64)
    index = {
        cells: (np.array([number[group] for group, _ in of]), np.array([slot for _, slot in of]))
        for cells, of in places.items()
    }
    for i, row in enumerate(rows):
        group, slot = index[row.cells]
        sum_wh[group, slot] += np.array(row.values, kind)
        households[i, group] = row.households
        minutes[i, slot] = cell_minutes(month.terms.layout, date.fromisoformat(row.day))[slot]
    yield _KindSums(tuple(number), sum_wh, households, minutes, tuple(rows))


def _kind_table(month: ProfileMonth, kind: DayKind, sums: _KindSums, coverage: Decimal) -> pa.Table:
    """Return the rows of one kind of day: half-hours that have the same minutes on each day are computed together."""
    profile, step = month.terms.profile, slot_step(month.terms.layout.interval_minutes)
    calendar = np.array(
        [
            cell_minutes(month.terms.layout, day) > 0
            for day in days_of(month.first_day, month.last_day)
            if day_kind(day) == kind
        ]
    )
    days_in_period = calendar.sum(axis=0)
    columns: dict[str, _Integers] = {}
    patterns, pattern_of_slot = np.unique(sums.minutes, axis=1, return_inverse=True)
    for pattern, minutes in enumerate(patterns.T):
        slots = np.flatnonzero(pattern_of_slot.ravel() == pattern)
        for name, values in _group_columns(sums, minutes, step * INTERVAL_MINUTES, coverage).items():
            shape = len(sums.groups), SLOTS
            columns.setdefault(name, np.zeros(shape, values.dtype))[:, slots] = values[:, None]
    group, slot = np.nonzero(columns["days_released"])
    chosen = {name: values[group, slot] for name, values in columns.items()}
    energy_wh, wh_per_kwh_mean = sums.sum_wh[group, slot], chosen.pop("wh_per_kwh_mean")
    half_width, deviation = chosen.pop("half_width"), chosen.pop("deviation")
    constants = {
        "first_day": month.first_day,
        "last_day": month.last_day,
        "series": month.series,
        "group_column": profile.level,
        "version": month.terms.version,
        "half_hour_clamp_kwh": profile.half_hour_clamp_wh / 1000,
        "clamp_kwh": profile.clamp_wh / 1000,
        "day_kind": kind,
        "minutes": step * INTERVAL_MINUTES,
    }
    return table_schemas.table_from_columns(
        derived_schemas.PROFILE_BY_MONTH,
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


def _group_columns(sums: _KindSums, minutes: Ints, length: int, coverage: Decimal) -> dict[str, _Integers]:
    """Return columns of each group in half-hours that have these minutes on each day, and the noise of their sum."""
    enters: Flags = (sums.households > 0) & (minutes > 0)[:, None]
    households = np.where(enters, sums.households, 0)
    household_minutes = minutes @ households
    published_on = np.array([day_number(date.fromisoformat(row.published_on)) for row in sums.rows])
    deviation, half_width = _noise_of_groups(sums.rows, enters, coverage)
    return {
        "days_released": enters.sum(axis=0),
        "fewest_households": np.where(enters, households, households.max(initial=0)).min(axis=0),
        "most_households": households.max(axis=0),
        "household_minutes": household_minutes,
        "published_on": np.where(enters, published_on[:, None], 0).max(axis=0),
        "wh_per_kwh_mean": 1000.0 * household_minutes / length,
        "deviation": deviation,
        "half_width": half_width,
    }


def _noise_of_groups(rows: Sequence[ReleaseRecord], enters: Flags, coverage: Decimal) -> tuple[_Integers, _Integers]:
    """Return standard deviation and half-width of the noise of each group's sum [Wh]; 0 for a group without a day."""
    by_days, index = np.unique(enters, axis=1, return_inverse=True)
    scales = np.array([row.scale for row in rows])
    scales_of_sums = [scales[days].tolist() for days in by_days.T]
    deviations = np.array([sum_deviation(of_sum) for of_sum in scales_of_sums])
    half_widths = np.array([sum_interval(of_sum, coverage) if of_sum else 0 for of_sum in scales_of_sums], object)
    return deviations[index.ravel()], half_widths[index.ravel()]


def _floats(values: _Integers) -> _Integers:
    return values.astype(np.float64)


def _named_by_day(table: pa.Table) -> pa.Table:
    """Return a table whose rows are named by their first day in messages."""
    columns = [column.with_name("day") if column.name == "first_day" else column for column in table.schema]
    return pa.Table.from_arrays(table.columns, schema=pa.schema(columns, metadata=table.schema.metadata))
