"""Comparison of a large published table with the one that its ledger rows give: column by column, then row by row.

Rows are compared as Python values only if their columns differ in them, so that a table of millions of rows is verified
in a second. Messages are those of `check_table`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from agedp.release_folder.result_tables import check_table

_TOLERANCE = 1e-9


def check_large_table(name: str, table: pa.Table, expected: pa.Table | None, *, rounded: Sequence[str]) -> None:
    """Check that a table is the expected one; `rounded` columns may differ by 1e-9 of themselves.

    Raises:
        InputError: a guarantee, row or cell that differs, or a table of which the ledger has none.
        LookupError, TypeError, ValueError: its guarantee lacks entries.
    """
    has_form = expected is not None and table.schema.remove_metadata() == expected.schema.remove_metadata()
    if expected is not None and has_form and table.num_rows == expected.num_rows:
        is_different = pa.array(_differing_rows(table, expected, rounded))
        table, expected = table.filter(is_different), expected.filter(is_different)
    check_table(name, table, expected, rounded=rounded)


def _differing_rows(
    table: pa.Table, expected: pa.Table, rounded: Sequence[str]
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return which rows of two tables with the same columns differ."""
    result = np.zeros(table.num_rows, np.bool_)
    for column in expected.column_names:
        if column in rounded:
            stored, value = table[column].to_numpy(), expected[column].to_numpy()
            largest = np.maximum(np.abs(stored), np.abs(value))
            result |= ~(np.abs(stored - value) <= _TOLERANCE * largest)
        else:
            is_equal = pc.fill_null(pc.equal(table[column], expected[column]), False)
            result |= ~is_equal.to_numpy(zero_copy_only=False)
    return result
