"""SUMS + LEDGER -> confidential tables with a row for each released day, series and cell; each run adds its days."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa

from agedp_data import tables
from agedp_data.ledger import ReleaseRecord
from pipelines import folders, locks
from pipelines.aggregate import DailySum
from pipelines.internal_files import FileKind, FileNotice, read_content

TableRow = dict[str, Any]

_KEY = ("population", "day", "series", "cell")


@dataclass(frozen=True, slots=True)
class CellTable:
    """A confidential table of cells: its schema, which begins with the key columns, and how a row is computed.

    `helps` is advice for the user if the table is damaged. `rows_of_release` yields the rows of a release without the
    columns population, day and series; none for a release of another statistic.
    """

    schema: pa.Schema
    helps: str
    rows_of_release: Callable[[ReleaseRecord, DailySum], Iterable[TableRow]]

    def read(self, path: Path) -> list[TableRow]:
        """Return the rows of the table, none if the file does not exist yet.

        Raises:
            InputError: a file that is damaged or cannot be read.
        """
        if not folders.path_exists(path):
            return []
        return folders.table_rows(folders.read_table(path, self.schema, remedy=self.helps), path, remedy=self.helps)

    def check(self, path: Path) -> FileNotice | None:
        """Rename a damaged table, so that a new one begins, and return the warning; None if it is intact.

        Raises:
            InputError: the file cannot be read or renamed.
        """
        advice = "Put back a copy to keep its earlier days."
        return read_content(path, self.read, FileKind.RECORD, advice=advice).notice

    def add(self, path: Path, sums: Mapping[tuple[date, str], DailySum], rows: Sequence[ReleaseRecord]) -> None:
        """Add the rows of these sums, as far as they were released; an existing row of the same cell is replaced."""
        with locks.exclusive_lock(path.parent):
            lines = {_row_key(line): line for line in self.read(path)}
            for row in rows:
                daily_sum = sums.get((date.fromisoformat(row.day), row.series))
                if daily_sum is not None and row.state == "released":
                    key_columns = {
                        "population": row.population,
                        "day": date.fromisoformat(row.day),
                        "series": row.series,
                    }
                    lines |= {
                        _row_key(line): line
                        for line in ({**key_columns, **columns} for columns in self.rows_of_release(row, daily_sum))
                    }
            if lines:
                folders.write_table(path, tables.table_from_rows(self.schema, [lines[key] for key in sorted(lines)]))


def _row_key(line: TableRow) -> tuple[Any, ...]:
    return tuple(line[name] for name in _KEY)
