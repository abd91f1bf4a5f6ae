"""LEDGER rows -> consistent averages: least-squares estimates in which the groups of a day add up to coarser ones.

The table is written where a contract releases a mean of all households and the same mean by groups, or by several
levels of groups. It is a function of the released rows alone, so it adds no privacy loss, and verification computes it
again. The released values stay as they are in their own tables.

Decisions:

* Values are combined if they are of one quantity, were drawn under one contract and were published on one date: later
  runs may have read corrected files.
* Groups below `min_households` are not released. Where the released groups therefore have fewer households than the
  total, or the group, that they divide, nothing is known of the rest, and least squares itself leaves the values as
  they are: they are repeated, or combined with the groups within them alone.
* Groups without a coarser value are the roots of trees of their own: levels need no total.
* A day is in the table once none of its series is still to be released, so that rows are only added.
* The name differs from those of the series' tables, "daily_averages_NAME.parquet", so that no series can have it. An
  earlier version of agedp, which does not know this table, checks its checksum and columns.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, Final

import pyarrow as pa

from agedp.budget import closed_days, series_by_contract
from agedp.release_folder.result_tables import METADATA_KEY, common_guarantee, parquet_bytes
from agedp.release_folder.table_comparison import check_table
from agedp_data import derived_schemas, mechanisms, table_schemas
from agedp_data.ledger import ContractRecord, ReleaseRecord
from agedp_data.roster import ALL
from agedp_data.series.consistency import NoisyValue, precision_mean
from agedp_data.series.group_trees import DrawnGroups, consistent_groups
from agedp_data.series.quantities import Columns, next_coarser, totals_with_groups
from agedp_data.series.series import is_daily_mean
from agedp_data.statement.document import Statement

CONSISTENT_AVERAGES: Final = "consistent_daily_averages"
CONSISTENT_FILE: Final = f"{CONSISTENT_AVERAGES}.parquet"
_LEAST_SQUARES: Final = "least squares"
_NO_FINER: Final = "released value: no groups of a finer level that add up to it were drawn with it"
_NO_TOTAL: Final = "released value: no total was drawn with the groups"
_NO_GROUPS: Final = "released value: no groups that add up to the total were drawn with it"
_INCOMPLETE: Final = "released value: the released groups leave out households"
_ROUNDED: Final = ("mean_kwh", "noise_sd_kwh")
_LEAST_VARIANCE: Final = 1e-300  # noise so small that its variance is no float


@dataclass(frozen=True, slots=True)
class _Part:
    """A released row of a mean, with the variance of its noise [Wh^2]."""

    row: ReleaseRecord
    columns: Columns
    variance: float

    def noisy(self, cell: int) -> NoisyValue:
        return NoisyValue(float(self.row.values[cell]), self.variance)


@dataclass(frozen=True, slots=True)
class ConsistentDay:
    """The released rows of one day, quantity, contract and date of publication, totals first."""

    parts: tuple[_Part, ...]

    @property
    def key(self) -> tuple[int, ...]:
        """Return the numbers of its ledger rows."""
        return tuple(part.row.seq for part in self.parts)

    @property
    def ledger_rows(self) -> tuple[ReleaseRecord, ...]:
        """Return the ledger rows that it consists of."""
        return tuple(part.row for part in self.parts)

    def completed(self, rows: Mapping[int, ReleaseRecord]) -> ConsistentDay:
        """Return the day with complete rows by number in place of outlines."""
        return ConsistentDay(tuple(replace(part, row=rows[part.row.seq]) for part in self.parts))


def consistent_files(
    statement: Statement, rows: Sequence[ReleaseRecord], contracts: Sequence[ContractRecord]
) -> dict[str, bytes]:
    """Return the file of the consistent averages by its name; none if no contract releases means that add up."""
    table = consistent_table(statement, rows, contracts)
    return {} if table is None else {CONSISTENT_FILE: parquet_bytes(table)}


def check_consistent_table(
    table: pa.Table, statement: Statement, rows: Sequence[ReleaseRecord], contracts: Sequence[ContractRecord]
) -> None:
    """Check that a table of consistent averages follows from a folder's ledger rows.

    Raises:
        InputError: a guarantee, row or cell that differs; the message names day and column.
        LookupError, TypeError, ValueError, ArithmeticError: entries of a release are missing.
    """
    check_table(CONSISTENT_FILE, table, consistent_table(statement, rows, contracts), rounded=_ROUNDED)


def consistent_table(
    statement: Statement, rows: Sequence[ReleaseRecord], contracts: Sequence[ContractRecord]
) -> pa.Table | None:
    """Return the consistent averages with their guarantee in the metadata; None without means that add up."""
    if not _quantities(contracts):
        return None
    return consistent_days_table(consistent_days(rows, contracts), common_guarantee(statement))


def consistent_days(rows: Sequence[ReleaseRecord], contracts: Sequence[ContractRecord]) -> list[ConsistentDay]:
    """Return the days of means that add up of which no series is still to be released, by day."""
    quantities = _quantities(contracts)
    return [ConsistentDay(tuple(parts)) for parts in _parts_by_day(rows, contracts, quantities)] if quantities else []


def consistent_days_table(days: Sequence[ConsistentDay], common: Mapping[str, Any]) -> pa.Table:
    """Return the table of these days; `common` is the part of its guarantee that other tables have as well."""
    table = table_schemas.table_from_rows(
        derived_schemas.CONSISTENT_AVERAGES, [row for of_day in days for row in _day_rows(of_day.parts)]
    )
    guarantee = {
        **common,
        "of": "least squares of the released averages",
        "schema": "agedp-consistent-daily-averages-1",
    }
    return table.replace_schema_metadata({METADATA_KEY: json.dumps(guarantee, sort_keys=True, ensure_ascii=True)})


def _quantities(contracts: Sequence[ContractRecord]) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return, by contract and series, the names of the quantity's series, if some of these add up to others."""
    return {
        (contract, name): names
        for contract, series in series_by_contract(contracts).items()
        for names in totals_with_groups(series)
        for name in names
    }


def _parts_by_day(
    rows: Sequence[ReleaseRecord],
    contracts: Sequence[ContractRecord],
    quantities: Mapping[tuple[str, str], tuple[str, ...]],
) -> Iterator[list[_Part]]:
    """Yield the rows that belong together, totals first, by day."""
    closed, series = closed_days(rows, contracts), series_by_contract(contracts)
    continued = series[contracts[-1].hash].keys()
    scales = {row.scale for row in rows if row.state == "released"}
    variance = {scale: max(mechanisms.standard_deviation(scale) ** 2, _LEAST_VARIANCE) for scale in scales}
    by_day: dict[tuple[str, str, str, tuple[str, ...]], list[_Part]] = {}
    for row in rows:
        names = quantities.get((row.contract, row.series), ())
        mean = series[row.contract].get(row.series)
        is_complete = all((row.day, name) in closed for name in names if name in continued)
        if row.state == "released" and is_daily_mean(mean) and names and is_complete:
            part = _Part(row, mean.columns, variance[row.scale])
            by_day.setdefault((row.day, row.published_on, row.contract, names), []).append(part)
    for key in sorted(by_day):
        yield sorted(by_day[key], key=lambda part: key[-1].index(part.row.series))


def _day_rows(parts: Sequence[_Part]) -> Iterator[dict[str, Any]]:
    """Yield the table's rows of one day and quantity."""
    by_columns: dict[Columns, list[_Part]] = {}
    for part in parts:
        by_columns.setdefault(part.columns, []).append(part)
    estimates = consistent_groups({columns: _drawn_groups(same) for columns, same in by_columns.items()})
    for part in parts:
        row = part.row
        for i in range(len(row.cells)):
            estimate = estimates.get((part.columns, i))
            noisy = part.noisy(i) if estimate is None else estimate.noisy
            based_on = [row.series] if estimate is None else _series_of(parts, estimate.based_on)
            wh_per_kwh_mean = 1000.0 * row.households[i]
            yield {
                "day": date.fromisoformat(row.day),
                "series": row.series,
                "group_column": (*part.columns, ALL)[0],
                "group": row.cells[i],
                "households": row.households[i],
                "mean_kwh": noisy.value / wh_per_kwh_mean,
                "noise_sd_kwh": noisy.variance**0.5 / wh_per_kwh_mean,
                "based_on": ", ".join(based_on),
                "method": _LEAST_SQUARES if estimate is not None else _reason(part.columns, by_columns),
            }


def _drawn_groups(parts: Sequence[_Part]) -> DrawnGroups:
    """Return the groups of rows by the same columns, which have the same groups; several rows enter as their mean."""
    row = parts[0].row
    noisy = tuple(precision_mean([part.noisy(i) for part in parts]) for i in range(len(row.cells)))
    return DrawnGroups(tuple(row.cells), tuple(row.households), noisy)


def _series_of(parts: Sequence[_Part], columns: Collection[Columns]) -> list[str]:
    return [part.row.series for part in parts if part.columns in columns]


def _reason(columns: Columns, drawn: Collection[Columns]) -> str:
    """Return why a group by these columns keeps its released value."""
    if not columns:
        return _NO_GROUPS
    if next_coarser(columns, drawn) is not None:
        return _INCOMPLETE
    is_divided = any(next_coarser(finer, drawn) == columns for finer in drawn)
    return _NO_FINER if is_divided else _NO_TOTAL
