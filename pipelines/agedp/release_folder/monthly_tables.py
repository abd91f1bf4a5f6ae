"""LEDGER rows by month -> the tables of each month, for a release folder with the layout "monthly".

Each table is a function of the rows of its month, of those of earlier months that its lines are made from, and of the
contracts up to its month. Nothing that is published later changes it.

Decisions:

* A series has a table in a month in which it has a row, also a skipped one, or in which a contract names it. So each
  series has a table before its first release.
* The guarantee of a table does not repeat what changes from night to night: bounds, title and licence are in the
  statement and in datapackage.json. Its `ledger` names the newest row of its month, its `promise` the contract then.
* Tables of derived lines are written if they have lines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any, Final

import pyarrow as pa

from agedp.release_folder.consistent_table import CONSISTENT_AVERAGES, consistent_days, consistent_days_table
from agedp.release_folder.partitions import MONTH_KEY, partition_path
from agedp.release_folder.period_averages import PERIOD_FILES, period_parts_table
from agedp.release_folder.period_parts import PERIODS, Period, closed_parts
from agedp.release_folder.profile_months import (
    PROFILE_MONTHS_FILE,
    ProfileMonth,
    closed_months,
    profile_table_of_months,
    profile_terms,
)
from agedp.release_folder.published_months import PublishedMonth, Span, Unit, completed_units, newly_closed
from agedp.release_folder.published_series import FILES, PublishedSeries, list_published_series
from agedp.release_folder.quantile_table import QUANTILE_FILE, quantiles_of_rows
from agedp.release_folder.result_tables import table_with_guarantee
from agedp_data.config.contract_values import meaning_of
from agedp_data.datasets.registry import layout_of
from agedp_data.ledger import ContractRecord, ReleaseRecord
from agedp_data.ledger.ledger_reader import LedgerReader
from agedp_data.roster import ALL, columns_of
from agedp_data.series.levels import level_column
from agedp_data.statement.document import Statement

_ENDING: Final = ".parquet"
PERIOD_TABLES: Final[Mapping[str, Period]] = {PERIOD_FILES[period].removesuffix(_ENDING): period for period in PERIODS}
PROFILE_TABLE: Final = PROFILE_MONTHS_FILE.removesuffix(_ENDING)
QUANTILE_TABLE: Final = QUANTILE_FILE.removesuffix(_ENDING)
DERIVED_TABLES: Final = (CONSISTENT_AVERAGES, *PERIOD_TABLES, PROFILE_TABLE, QUANTILE_TABLE)


@dataclass(frozen=True, slots=True)
class MonthlyTable:
    """The path of a table of one month in the release folder, and the table."""

    path: str
    table: pa.Table


def monthly_tables(
    statement: Statement,
    months: Sequence[PublishedMonth],
    *,
    coverage: Decimal,
    since: str = "",
    ledger: LedgerReader | None = None,
) -> Iterator[MonthlyTable]:
    """Yield the tables of the months from `since` on: those of series by month, then the derived ones.

    Args:
        statement: of the newest month.
        months: all months of the population, oldest first; the rows since `since` are complete.
        coverage: of the intervals.
        since: the first month to compute.
        ledger: that of rows before `since` which derived lines are made from; None if all rows are complete.
    """
    for month in months:
        if month.month >= since:
            common = month_guarantee(statement, month)
            for series in list_published_series(month.rows, month.contracts):
                if month.amended & series.terms.keys() or any(map(series.has, month.rows)):
                    of_month = _with_levels(common, series, month, coverage)
                    yield MonthlyTable(partition_path(series_folder(series), month.month), of_month)
    closed = [(name, *of) for name in DERIVED_TABLES if name in _UNITS for of in _newly_closed(name, months, since)]
    rows = _complete_rows(months, [unit for _, _, units in closed for unit in units], since, ledger)
    tables = [
        (name, month, _derived_table(name, statement, month, completed_units(units, rows), coverage))
        for name, month, units in closed
    ]
    for month in months:
        if month.month >= since:
            common = month_guarantee(statement, month)
            quantiles = quantiles_of_rows(month.rows, month.contracts, common, coverage=coverage)
            tables.append((QUANTILE_TABLE, month, quantiles))
    yield from (
        MonthlyTable(partition_path(name, month.month), table) for name, month, table in tables if table.num_rows
    )


def series_folder(series: PublishedSeries) -> str:
    """Return the name of the folder of a series.

    >>> series_folder(PublishedSeries("use", "mean"))
    'daily_averages_use'
    """
    return f"{FILES[series.kind]}_{series.name}"


def _with_levels(
    common: Mapping[str, Any], series: PublishedSeries, month: PublishedMonth, coverage: Decimal
) -> pa.Table:
    """Return a series' table of a month; its guarantee names its first row, and the level of each version's groups."""
    versions = {contract.hash: str(number) for number, contract in enumerate(month.contracts, 1)}
    levels = {
        versions[contract]: {name: _level(name, terms) for name, terms in of_contract.items()}
        for contract, of_contract in series.terms.items()
    }
    first_row = min((row.seq for row in month.rows if series.has(row)), default=0)
    guarantee = {**common, "first_row": first_row, "levels_by_version": levels}
    return table_with_guarantee(series, guarantee, month.rows, month.contracts, coverage=coverage)


def _level(name: str, terms: Mapping[str, Any]) -> dict[str, str | int]:
    """Return the level of a series' groups, as the column `level` has it, and the number of coarser ones."""
    columns = columns_of(terms.get("by"))
    return {"level": level_column(name) or (*columns, ALL)[0], "depth": len(columns)}


def month_guarantee(statement: Statement, month: PublishedMonth) -> dict[str, Any]:
    """Return the part of the guarantee that the metadata of every table of a month contain."""
    contract = meaning_of(month.contracts[-1].promise)
    layout = contract["input"]
    return {
        "population": statement.population,
        "rehearsal": statement.rehearsal,
        "ledger": {"id": statement.ledger.id, "head": month.head},
        "promise": contract["promise"],
        "series": contract["series"],
        "day_zone": layout_of(layout["dataset"], layout.get("columns")).day_zone,
        MONTH_KEY: month.month,
    }


def _newly_closed(
    name: str, months: Sequence[PublishedMonth], since: str
) -> Iterator[tuple[PublishedMonth, list[Unit]]]:
    span, units = _UNITS[name]
    return newly_closed(months, span, units, since=since)


def _complete_rows(
    months: Sequence[PublishedMonth], units: Sequence[Unit], since: str, ledger: LedgerReader | None
) -> dict[int, ReleaseRecord]:
    """Return the complete rows that units are made from, by number; those before `since` are read, each once."""
    rows = {row.seq: row for month in months if month.month >= since for row in month.rows}
    missing = {row.seq: row for unit in units for row in unit.ledger_rows if row.seq not in rows}
    if missing and ledger is not None:
        rows |= {row.seq: row for row in ledger.rows_of(missing.values())}
    return rows


def _derived_table(
    name: str, statement: Statement, month: PublishedMonth, units: Sequence[Any], coverage: Decimal
) -> pa.Table:
    """Return the lines of one derived table that a month closed."""
    common = month_guarantee(statement, month)
    if name == CONSISTENT_AVERAGES:
        return consistent_days_table(units, common)
    if name == PROFILE_TABLE:
        return profile_table_of_months(units, common, coverage=coverage)
    ordered = sorted(units, key=lambda part: (part.first_day, part.series, part.version))
    return period_parts_table(PERIOD_TABLES[name], ordered, common, coverage=coverage)


def _profiles(rows: Sequence[ReleaseRecord], contracts: Sequence[ContractRecord]) -> list[ProfileMonth]:
    """Return the closed months of profiles; none without a series of profiles."""
    terms = profile_terms(contracts)
    return closed_months(rows, contracts, terms) if any(terms.values()) else []


_UNITS: Final[Mapping[str, tuple[Span, Callable[..., Sequence[Unit]]]]] = {
    CONSISTENT_AVERAGES: ("day", consistent_days),
    **{table: (period, partial(closed_parts, period)) for table, period in PERIOD_TABLES.items()},
    PROFILE_TABLE: ("month", _profiles),
}
"""The days that a line of a derived table may be made from, and the closed units of rows, by table."""
