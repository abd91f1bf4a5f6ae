"""Comparison of published tables with those that their ledger rows give: column by column, then row by row.

Rows are compared as Python values only if their columns differ in them, and if rows are missing, only those of the
first such day. So a table of millions of rows is verified in seconds. Messages are those of `check_table`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from agedp.release_folder.published_series import list_published_series
from agedp.release_folder.result_tables import ADVICE, ROUNDED, TOLERANCE, check_table, read_guarantee, series_table
from agedp_data.errors import InputError
from agedp_data.ledger import ContractRecord, ReleaseRecord
from agedp_data.statement.document import Statement


def check_tables(
    tables: Mapping[str, pa.Table],
    statement: Statement,
    rows: Sequence[ReleaseRecord],
    contracts: Sequence[ContractRecord],
) -> None:
    """Check that tables, by file name, are those of a folder's ledger rows.

    Raises:
        InputError: a file, guarantee, row or cell that differs; the message names file, day and column.
        LookupError, TypeError, ValueError, ArithmeticError: entries of a release are missing.
    """
    published = {series.file: series for series in list_published_series(rows, contracts)}
    for name in sorted(published.keys() ^ tables.keys()):
        raise InputError(f"{name}: the {'folder' if name in published else 'ledger'} lacks this table. {ADVICE}")
    for name, table in tables.items():
        expected = series_table(published[name], statement, rows, contracts, coverage=interval_coverage(table))
        check_large_table(name, table, expected, rounded=ROUNDED)


def interval_coverage(table: pa.Table) -> Decimal:
    """Return the coverage of the intervals of a table, by its guarantee.

    Raises:
        LookupError, TypeError, ValueError, ArithmeticError: the guarantee lacks it.
    """
    return Decimal(read_guarantee(table.schema)["interval"]["coverage"])


def check_large_table(name: str, table: pa.Table, expected: pa.Table | None, *, rounded: Sequence[str]) -> None:
    """Check that a table is the expected one; `rounded` columns may differ by 1e-9 of themselves.

    Raises:
        InputError: a guarantee, row or cell that differs, or a table of which the ledger has none.
        LookupError, TypeError, ValueError: its guarantee lacks entries.
    """
    has_form = expected is not None and table.schema.remove_metadata() == expected.schema.remove_metadata()
    if expected is not None and has_form:
        if table.num_rows == expected.num_rows:
            is_different = pa.array(_differing_rows(table, expected, rounded))
            table, expected = table.filter(is_different), expected.filter(is_different)
        elif "day" in expected.column_names:
            day = _first_incomplete_day(table, expected)
            table, expected = (rows.filter(pc.equal(rows["day"], day)) for rows in (table, expected))
    check_table(name, table, expected, rounded=rounded)


def _first_incomplete_day(table: pa.Table, expected: pa.Table) -> pa.Scalar:
    """Return the first day of which two tables have different numbers of rows."""
    in_table, in_ledger = (
        dict(zip(counts.field("values").to_pylist(), counts.field("counts").to_pylist(), strict=True))
        for counts in (pc.value_counts(rows["day"].combine_chunks()) for rows in (table, expected))
    )
    days = (day for day in in_table.keys() | in_ledger.keys() if in_table.get(day, 0) != in_ledger.get(day, 0))
    return pa.scalar(min(days), expected["day"].type)


def _differing_rows(
    table: pa.Table, expected: pa.Table, rounded: Sequence[str]
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return which rows of two tables with the same columns differ."""
    result = np.zeros(table.num_rows, np.bool_)
    for column in expected.column_names:
        if column in rounded:
            stored, value = table[column].to_numpy(), expected[column].to_numpy()
            largest = np.maximum(np.abs(stored), np.abs(value))
            result |= ~(np.abs(stored - value) <= TOLERANCE * largest)
        else:
            is_equal = pc.fill_null(pc.equal(table[column], expected[column]), False)
            result |= ~is_equal.to_numpy(zero_copy_only=False)
    return result
