"""True means and true counts, before noise. Confidential.

<confidential>/true_means.parquet     `tables.TRUE_MEANS`, a row for each released day, mean and group
<confidential>/true_counts.parquet    `tables.TRUE_COUNTS`, a row for each released day, distribution and cell
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from agedp_data import tables
from agedp_data.config.series import Distribution
from agedp_data.ledger import ReleaseRecord
from pipelines.aggregate import DailySum
from pipelines.notes.cell_notes import CellTable, TableRow


def _mean_rows(row: ReleaseRecord, daily_sum: DailySum) -> Iterator[TableRow]:
    if daily_sum.series.statistic == "mean":
        for group, value, households in zip(row.cells, row.values, row.households, strict=True):
            wh_per_kwh_mean = 1000.0 * households
            means = {
                "true_mean_kwh": daily_sum.exact[group][0] / wh_per_kwh_mean,
                "released_mean_kwh": value / wh_per_kwh_mean,
            }
            yield {"cell": group, "households": households, **means}


def _count_rows(row: ReleaseRecord, daily_sum: DailySum) -> Iterator[TableRow]:
    if not isinstance(daily_sum.series, Distribution) or not daily_sum.series.holds(row.cells):
        return  # released with other bins: true counts for these are not computed
    groups = daily_sum.exact.items()
    exact = {
        cell: count
        for group, counts in groups
        for cell, count in zip(daily_sum.series.cells(group), counts, strict=True)
    }
    for cell, value, households in zip(row.cells, row.values, row.households, strict=True):
        counts = {"true_households": exact[cell], "released_households": value}
        yield {"cell": cell, "households": households, **counts}


_HELPS = "put back a copy of {}, or remove it: the next run notes anew the released days whose readings are still kept"
TRUE_MEANS = CellTable(tables.TRUE_MEANS, _HELPS.format("true_means.parquet"), _mean_rows)
TRUE_COUNTS = CellTable(tables.TRUE_COUNTS, _HELPS.format("true_counts.parquet"), _count_rows)


def recorded_days(means: Path, counts: Path, population: str) -> set[tuple[str, str]]:
    """Return (day, series) of the rows of a population in the two tables."""
    lines = [*TRUE_MEANS.read(means), *TRUE_COUNTS.read(counts)]
    return {(line["day"].isoformat(), line["series"]) for line in lines if line["population"] == population}
