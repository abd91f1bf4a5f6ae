"""Households with a usable day, and clamped ones, by released day. Confidential.

    <confidential>/coverage.parquet    `tables.COVERAGE`, a row for each released day, series and group

Sums exist during one run only; these counts are stored for the confidential report of every later run.
"""

from __future__ import annotations

from collections.abc import Iterator

from agedp_data import tables
from agedp_data.ledger import ReleaseRecord
from pipelines.aggregate import DailySum
from pipelines.notes.cell_notes import CellTable, TableRow


def _coverage_rows(row: ReleaseRecord, daily_sum: DailySum) -> Iterator[TableRow]:
    released = set(row.cells)
    for group, households in daily_sum.households.items():
        if released.issuperset(daily_sum.series.cells(group)):  # small groups are not released
            counts = {"usable": daily_sum.usable[group], "clamped": daily_sum.clamped[group]}
            yield {"cell": group, "households": households, **counts}


COVERAGE = CellTable(
    tables.COVERAGE,
    "put back a copy of coverage.parquet, or remove it: later runs note the days that they release",
    _coverage_rows,
)
