"""SUMS beside LEDGER: what the means were before noise. Confidential; never leaves the house."""

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
_HELPS = (
    "put back a copy of true_means.parquet, or remove it: the next run notes anew the released days whose readings are "
    "still kept"
)


def days_noted(path: Path, population: str) -> set[date]:
    """Return the days whose true means are in the table."""
    return {line["day"] for line in read_true_means(path) if line["population"] == population}


def write_true_means(path: Path, sums: Mapping[tuple[date, str], Sum], rows: Sequence[Release]) -> None:
    """Add the means of these sums to the table; a day that is there already is written anew."""
    with locks.alone(path.parent):
        _write(path, sums, rows)


def _write(path: Path, sums: Mapping[tuple[date, str], Sum], rows: Sequence[Release]) -> None:
    known = read_true_means(path)
    lines = {tuple(line[name] for name in _KEY): line for line in known}
    for row in rows:
        true = sums.get((date.fromisoformat(row.day), row.series))
        if true is not None and row.state == "released":
            for line in _lines(row, true):
                lines[tuple(line[name] for name in _KEY)] = line
    ordered = [lines[key] for key in sorted(lines)]
    names = tables.TRUE_MEANS.names
    table = tables.columns(tables.TRUE_MEANS, **{name: [line[name] for line in ordered] for name in names})
    folders.write_table(path, table)


def read_true_means(path: Path) -> list[dict[str, Any]]:
    """Return the lines of the table, none if there is none yet.

    Raises:
        InputError: it is damaged, or cannot be read.
    """
    if not folders.there(path):
        return []
    table = folders.read_table(path, tables.TRUE_MEANS, helps=_HELPS)
    return folders.lines_of(table, path, helps=_HELPS)


def _lines(row: Release, true: Sum) -> list[dict[str, object]]:
    return [
        {
            "population": row.population,
            "day": date.fromisoformat(row.day),
            "series": row.series,
            "cell": cell,
            "households": households,
            "true_mean_kwh": true.sum_wh[cell] / (1000.0 * households),
            "released_mean_kwh": value / (1000.0 * households),
        }
        for cell, households, value in zip(row.cells, row.households, row.values, strict=True)
    ]
