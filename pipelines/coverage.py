"""SUMS -> COVERAGE: how many households had a usable day, and how many were clamped, day by day. Confidential.

    <confidential>/coverage.parquet    `tables.COVERAGE`, a line for each released day, series and cell

Sums are those of one run; what their days looked like is kept, for the confidential report of every later run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from agedp_data import tables
from agedp_data.ledger import Release
from pipelines import folders, locks
from pipelines.aggregate import Sum

_KEY = ("population", "day", "series", "cell")
_HELPS = "put back a copy of coverage.parquet, or remove it: later runs note the days that they release"


def write_coverage(path: Path, sums: Mapping[tuple[date, str], Sum], rows: Sequence[Release]) -> None:
    """Add the coverage of these sums, as far as they were released, to the table."""
    with locks.alone(path.parent):
        lines = {tuple(line[name] for name in _KEY): line for line in read_coverage(path)}
        for row in rows:
            true = sums.get((date.fromisoformat(row.day), row.series))
            if true is not None and row.state == "released":
                for line in _lines(row, true):
                    lines[tuple(line[name] for name in _KEY)] = line
        ordered = [lines[key] for key in sorted(lines)]
        names = tables.COVERAGE.names
        table = tables.columns(tables.COVERAGE, **{name: [line[name] for line in ordered] for name in names})
        folders.write_table(path, table)


def read_coverage(path: Path) -> list[dict[str, Any]]:
    """Return the lines of the table, none if there is none yet.

    Raises:
        InputError: it is damaged, or cannot be read.
    """
    if not folders.there(path):
        return []
    return folders.lines_of(folders.read_table(path, tables.COVERAGE, helps=_HELPS), path, helps=_HELPS)


def _lines(row: Release, true: Sum) -> list[dict[str, Any]]:
    return [
        {
            "population": row.population,
            "day": date.fromisoformat(row.day),
            "series": row.series,
            "cell": cell,
            "households": households,
            "usable": true.usable[cell],
            "clamped": true.clamped[cell],
        }
        for cell, households in zip(row.cells, row.households, strict=True)
    ]
