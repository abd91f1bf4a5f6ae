"""Tables and LEDGER rows of a release folder with the layout "monthly" -> whether each month follows from its rows.

Each table of each month is computed again from the ledger rows and compared cell by cell, as for the layout "single".
"""

from __future__ import annotations

from collections.abc import Collection
from decimal import Decimal
from pathlib import Path
from typing import Final

import pyarrow as pa

from agedp.release_folder.folder_files import max_table_rows
from agedp.release_folder.monthly_tables import (
    DERIVED_TABLES,
    PERIOD_TABLES,
    PROFILE_TABLE,
    QUANTILE_TABLE,
    monthly_tables,
)
from agedp.release_folder.partitioned_tables import kind_of, read_months
from agedp.release_folder.partitions import ROWS_TABLE, partition_of
from agedp.release_folder.period_averages import compare_period_averages
from agedp.release_folder.profile_months import compare_profile_months
from agedp.release_folder.published_months import published_months
from agedp.release_folder.quantile_table import compare_quantiles
from agedp.release_folder.table_comparison import check_large_table, check_table, interval_coverage
from agedp_data.errors import InputError
from agedp_data.ledger.monthly_transfer import rows_by_month
from agedp_data.ledger.transfer import LedgerExport
from agedp_data.messages import escape_text
from agedp_data.statement.document import Statement

_SERIES_ROUNDED: Final = ("noise_sd", "noise_sd_kwh")
_CONSISTENT_ROUNDED: Final = ("mean_kwh", "noise_sd_kwh")
_ADVICE: Final = "Ask for the release again."


def check_months(folder: Path, listed: Collection[str], statement: Statement, export: LedgerExport) -> None:
    """Check the tables of all months of a folder against its ledger rows.

    Args:
        folder: the release folder.
        listed: the paths of its files.
        statement: of the folder.
        export: its ledger rows.

    Raises:
        InputError: a file that is missing or foreign, a guarantee, row or cell that differs; the message names it.
        LookupError, TypeError, ValueError, ArithmeticError: entries of a release are missing.
    """
    stored = {path: of for path in sorted(listed) if (of := partition_of(path)) and of[0] != ROWS_TABLE}
    if foreign := [path for path, (table, _) in stored.items() if not (kind_of(table) or table in DERIVED_TABLES)]:
        raise InputError(f"{escape_text(foreign[0])}: no table of a release has this name. {_ADVICE}")
    months = published_months(rows_by_month(export.rows))
    max_rows = max_table_rows(folder, listed)
    coverage = _coverage(folder, [path for path, (table, _) in stored.items() if kind_of(table)], max_rows)
    missing = set(stored)
    for expected in monthly_tables(statement, months, coverage=coverage):
        if expected.path not in stored:
            raise InputError(f"{escape_text(expected.path)}: the folder lacks this table. {_ADVICE}")
        missing.discard(expected.path)
        _check_month(expected.path, _read(folder, expected.path, max_rows), expected.table)
    for path in sorted(missing):
        raise InputError(f"{escape_text(path)}: the ledger lacks this table. {_ADVICE}")


def _check_month(path: str, table: pa.Table, expected: pa.Table) -> None:
    name = path.partition("/")[0]
    if name in PERIOD_TABLES:
        compare_period_averages(path, table, expected)
    elif name == PROFILE_TABLE:
        compare_profile_months(path, table, expected)
    elif name == QUANTILE_TABLE:
        compare_quantiles(path, table, expected)
    elif name in DERIVED_TABLES:
        check_table(path, table, expected, rounded=_CONSISTENT_ROUNDED)
    else:
        check_large_table(path, table, expected, rounded=_SERIES_ROUNDED)


def _coverage(folder: Path, paths: Collection[str], max_rows: int) -> Decimal:
    """Return the coverage of the intervals, which all tables share."""
    if not paths:
        raise InputError("the release has no tables of series, from which other tables would be derived")
    return interval_coverage(_read(folder, min(paths), max_rows))


def _read(folder: Path, path: str, max_rows: int) -> pa.Table:
    table, _, rest = path.partition("/")
    month = rest.partition("=")[2].partition("/")[0]
    try:
        return read_months(folder, table, [month], max_rows=max_rows)[month]
    except (OSError, pa.ArrowException):
        raise InputError(f"{escape_text(path)} is missing or damaged; ask for the release again") from None
