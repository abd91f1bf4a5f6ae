"""What the means were before noise. Confidential; never leaves the house.

<confidential>/true_means.parquet    `tables.TRUE_MEANS`, a line for each released day, series and cell
"""

from __future__ import annotations

from datetime import date
from pathlib import Path

from agedp_data import tables
from agedp_data.ledger import Release
from pipelines.aggregate import Sum
from pipelines.cell_notes import CellNotes, Line


def _told(row: Release, true: Sum, cell: int) -> Line:
    per_home = 1000.0 * row.households[cell]
    return {"true_mean_kwh": true.sum_wh[row.cells[cell]] / per_home, "released_mean_kwh": row.values[cell] / per_home}


TRUE_MEANS = CellNotes(
    tables.TRUE_MEANS,
    "put back a copy of true_means.parquet, or remove it: the next run notes anew the released days whose readings are "
    "still kept",
    _told,
)


def days_noted(path: Path, population: str) -> set[date]:
    """Return the days whose true means are in the table."""
    return {line["day"] for line in TRUE_MEANS.read(path) if line["population"] == population}
