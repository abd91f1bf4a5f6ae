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

from collections.abc import Iterator, Mapping, Sequence
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
from agedp.release_folder.published_months import PublishedMonth, newly_closed
from agedp.release_folder.published_series import FILES, PublishedSeries, list_published_series
from agedp.release_folder.quantile_table import QUANTILE_FILE, quantiles_of_rows
from agedp.release_folder.result_tables import table_with_guarantee
from agedp_data.config.contract_values import meaning_of
from agedp_data.datasets.registry import layout_of
from agedp_data.ledger import ContractRecord, ReleaseRecord
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
    names: Sequence[str] | None = None,
) -> Iterator[MonthlyTable]:
    """Yield the tables of the months from `since` on: those of series by month, then the derived ones.

    Args:
        statement: of the newest month.
        months: all months of the population, oldest first.
        coverage: of the intervals.
        since: the first month to compute.
        names: of the derived tables to compute; all unless given.
    """
    for month in months:
        if month.month >= since:
            common = month_guarantee(statement, month)
            for series in list_published_series(month.rows, month.contracts):
                if month.amended & series.terms.keys() or any(map(series.has, month.rows)):
                    of_month = _with_levels(common, series, month, coverage)
                    yield MonthlyTable(partition_path(series_folder(series), month.month), of_month)
    for name in DERIVED_TABLES if names is None else names:
        for month, table in _derived_tables(name, statement, months, coverage, since):
            if table.num_rows:
                yield MonthlyTable(partition_path(name, month.month), table)


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


def _derived_tables(
    name: str, statement: Statement, months: Sequence[PublishedMonth], coverage: Decimal, since: str
) -> Iterator[tuple[PublishedMonth, pa.Table]]:
    """Yield the months from `since` on with the lines of one derived table that they closed."""
    if name == CONSISTENT_AVERAGES:
        for month, days in newly_closed(months, "day", consistent_days, since=since):
            yield month, consistent_days_table(days, month_guarantee(statement, month))
    elif name == PROFILE_TABLE:
        for month, profiles in newly_closed(months, "month", _profiles, since=since):
            yield month, profile_table_of_months(profiles, month_guarantee(statement, month), coverage=coverage)
    elif name == QUANTILE_TABLE:
        for month in months:
            if month.month >= since:
                common = month_guarantee(statement, month)
                yield month, quantiles_of_rows(month.rows, month.contracts, common, coverage=coverage)
    else:
        period = PERIOD_TABLES[name]
        for month, parts in newly_closed(months, period, partial(closed_parts, period), since=since):
            yield month, period_parts_table(period, parts, month_guarantee(statement, month), coverage=coverage)


def _profiles(rows: Sequence[ReleaseRecord], contracts: Sequence[ContractRecord]) -> list[ProfileMonth]:
    """Return the closed months of profiles; none without a series of profiles."""
    terms = profile_terms(contracts)
    return closed_months(rows, contracts, terms) if any(terms.values()) else []
