"""LEDGER rows -> the tables of a release folder that are derived from its released values, at no privacy loss.

Consistent averages, averages of weeks, months and years, mean profiles of weekdays and weekends by month, and daily
quantiles are functions of the released rows alone (post-processing). They are written together, and verification
computes each again.

Decisions:

* A folder that lacks a derived table verifies: those of earlier versions lack them, and each can be computed from the
  folder's rows (`period_averages`, `profiles_by_month`, `quantiles` of `ReleaseFolder`). A table that is there must be
  the whole table.
* The intervals of a folder's tables have one coverage.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Final

import pyarrow as pa

from agedp.release_folder.consistent_table import CONSISTENT_FILE, check_consistent_table, consistent_files
from agedp.release_folder.period_averages import PERIOD_FILES, check_period_averages, period_files, period_table
from agedp.release_folder.profile_months import (
    PROFILE_MONTHS_FILE,
    check_profile_months,
    profile_month_files,
    profile_month_table,
)
from agedp.release_folder.quantile_table import QUANTILE_FILE, check_quantile_table, quantile_files, quantile_table
from agedp.release_folder.table_comparison import interval_coverage
from agedp_data.errors import InputError
from agedp_data.ledger import ContractRecord, ReleaseRecord
from agedp_data.statement.document import Statement

DERIVED_FILES: Final = (CONSISTENT_FILE, *PERIOD_FILES.values(), PROFILE_MONTHS_FILE, QUANTILE_FILE)


def derived_files(
    statement: Statement, rows: Sequence[ReleaseRecord], contracts: Sequence[ContractRecord], *, coverage: Decimal
) -> dict[str, bytes]:
    """Return the files of the derived tables by name; those that follow from the statistics of the contracts.

    Args:
        statement: the statement of the rows.
        rows: all release rows of the population.
        contracts: its contracts, oldest first.
        coverage: of the intervals.
    """
    return {
        **consistent_files(statement, rows, contracts),
        **period_files(statement, rows, contracts, coverage=coverage),
        **profile_month_files(statement, rows, contracts, coverage=coverage),
        **quantile_files(statement, rows, contracts, coverage=coverage),
    }


def derived_table(
    name: str,
    statement: Statement,
    rows: Sequence[ReleaseRecord],
    contracts: Sequence[ContractRecord],
    *,
    coverage: Decimal,
) -> pa.Table:
    """Return averages or profiles by period, or daily quantiles, by file name; use it for a folder that lacks the file.

    Raises:
        InputError: no contract releases what they are derived from.
    """
    if name == QUANTILE_FILE:
        table, source = quantile_table(statement, rows, contracts, coverage=coverage), "distribution"
    elif name == PROFILE_MONTHS_FILE:
        table, source = profile_month_table(statement, rows, contracts, coverage=coverage), "profile"
    else:
        period = next(period for period, file in PERIOD_FILES.items() if file == name)
        table, source = period_table(period, statement, rows, contracts, coverage=coverage), "average"
    if table is None:
        raise InputError(f"{name}: the release has no daily {source}, from which it would be derived")
    return table


def check_derived_tables(
    tables: Mapping[str, pa.Table],
    statement: Statement,
    rows: Sequence[ReleaseRecord],
    contracts: Sequence[ContractRecord],
    *,
    coverage: Decimal,
) -> None:
    """Check that the derived tables of a folder, by file name, follow from its ledger rows.

    Args:
        tables: those that the folder has.
        statement: the statement of the rows.
        rows: all release rows of the population.
        contracts: its contracts, oldest first.
        coverage: of the intervals of the folder's released values.

    Raises:
        InputError: a guarantee, row or cell that differs; the message names file, day and column.
        LookupError, TypeError, ValueError, ArithmeticError: entries of a release are missing.
    """
    for name in sorted({*tables} - {CONSISTENT_FILE}):
        if interval_coverage(tables[name]) != coverage:
            problem = "the interval in its guarantee has another coverage than those of the released values"
            raise InputError(f"{name}: {problem}. Ask for the release again.")
    if CONSISTENT_FILE in tables:
        check_consistent_table(tables[CONSISTENT_FILE], statement, rows, contracts)
    check_period_averages(tables, statement, rows, contracts)
    if PROFILE_MONTHS_FILE in tables:
        check_profile_months(tables[PROFILE_MONTHS_FILE], statement, rows, contracts)
    if QUANTILE_FILE in tables:
        check_quantile_table(tables[QUANTILE_FILE], statement, rows, contracts)
