"""SUMS + LEDGER -> confidential tables with a row for each released day, series and cell; each run adds days.

    <confidential>/counted_states.parquet   `table_schemas.COUNTED_STATES`, a row for each day, series and group
    <confidential>/coverage.parquet         `table_schemas.COVERAGE`, a row for each day, series and group
    <confidential>/true_means.parquet       `table_schemas.TRUE_MEANS`, a row for each day, mean and group
    <confidential>/true_counts.parquet      `table_schemas.TRUE_COUNTS`, a row for each day, distribution, cell

* COUNTED_STATES: the mean by states against the mean by readings. Every published value contains the difference, and no
  interval covers it. Its size depends on the readings, so the statement names it without its size.
* COVERAGE: households with a usable day, and clamped ones.
* TRUE_MEANS, TRUE_COUNTS: true means and true counts, before noise.

A day of a profile can have 19,200 cells, so its true values are not recorded; those of a coverage series are the usable
days of COVERAGE. The rows of both in COVERAGE show that their day is recorded.

Sums exist during one run only; the tables are stored for the confidential report of every later run.

Decisions:

* The metadata of a table list its days by population and series, so that a night with nothing due reads no column of
  two million cells. The list counts only with the number of rows that it was written with; the columns of a table
  without it, which an earlier version wrote, are read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from agedp.local_files import atomic_files, locks
from agedp.local_files.checksums import check_parquet
from agedp.local_files.internal_files import FileKind, FileNotice, read_content
from agedp.stage_values import COUNTS, DailySum
from agedp_data import table_schemas
from agedp_data.ledger import ReleaseRecord
from agedp_data.ledger.release_headers import AnyRelease

TableRow = dict[str, Any]

RecordedDays = dict[str, dict[str, list[str]]]
"""The recorded ISO days by population and series."""

_KEY = ("population", "day", "series", "cell")
_DAYS: Final = b"agedp.days"
_LATER = "put back a copy of {}, or remove it: later runs record the days that they release"


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
        return atomic_files.table_rows(self.read_table(path), path, remedy=self.helps)

    def read_table(self, path: Path, *, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the table, or some of its columns with the days among them; no rows if the file does not exist yet.

        A run that adds nothing reads years of cells by columns: as rows they would take gigabytes.

        Raises:
            InputError: a file that is damaged or cannot be read.
        """
        if not atomic_files.path_exists(path):
            return self.schema.empty_table()
        table = atomic_files.read_table(path, self.schema, columns=columns, remedy=self.helps)
        days = pc.min_max(table["day"].cast(pa.int32()))
        first, last = days["min"].as_py(), days["max"].as_py()
        if first is not None:  # an impossible date is named as such
            atomic_files.table_rows(pa.table({"day": pa.array([first, last], pa.date32())}), path, remedy=self.helps)
        return table

    def recorded(self, path: Path, population: str) -> set[tuple[str, str]]:
        """Return (day, series) of the rows of one population.

        Raises:
            DamagedFile: as `read`.
        """
        if (listed := self._listed_days(path)) is not None:
            return {(day, series) for series, days in listed.get(population, {}).items() for day in days}
        table = self.read_table(path, columns=["population", "day", "series"])
        own = table.filter(pc.equal(table["population"], population)).group_by(["day", "series"]).aggregate([])
        return {(line["day"].isoformat(), line["series"]) for line in own.to_pylist()}

    def of_population(self, path: Path, population: str) -> list[TableRow]:
        """Return the rows of one population.

        Raises:
            DamagedFile: as `read`.
        """
        return atomic_files.table_rows(self.population_table(path, population), path, remedy=self.helps)

    def population_table(self, path: Path, population: str, *, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the rows of one population as columns: years of cells take gigabytes as Python rows.

        Raises:
            DamagedFile: as `read`.
        """
        table = self.read_table(path, columns=columns)
        return table.filter(pc.equal(table["population"], population))

    def check(self, path: Path) -> FileNotice | None:
        """Rename a damaged table, so that a new one begins, and return the warning; None if it is intact.

        Raises:
            InputError: the file cannot be read or renamed.
        """
        advice = "Put back a copy to keep its earlier days."
        return read_content(path, self._check_days, FileKind.RECORD, advice=advice).notice

    def _check_days(self, path: Path) -> None:
        """Check the table; the checksum is of the whole file, so that its list of days, or one column, suffices."""
        if self._listed_days(path) is None:
            self.read_table(path, columns=["day"])

    def _listed_days(self, path: Path) -> RecordedDays | None:
        """Return the days that the metadata of the table list; None without a valid list, also of a damaged file."""

        def parse(path: Path) -> RecordedDays | None:
            content = path.read_bytes()
            check_parquet(content)
            footer = pq.read_metadata(pa.BufferReader(content))
            schema, listed = footer.schema.to_arrow_schema(), (footer.metadata or {}).get(_DAYS)
            if listed is None or (schema.names, schema.types) != (self.schema.names, self.schema.types):
                return None
            record = json.loads(listed)
            return record["days"] if record["rows"] == footer.num_rows else None

        return read_content(path, parse, FileKind.DERIVED, advice="").value

    def add(self, path: Path, sums: Mapping[tuple[date, str], DailySum], rows: Sequence[ReleaseRecord]) -> None:
        """Add the rows of these sums, as far as they were released; an existing row of the same cell is replaced.

        Repeated calls give the same table. Concurrent runs take turns by the lock of the folder.

        Args:
            path: the table, created with the first row.
            sums: the daily sums by day and series, confidential.
            rows: the rows of the ledger.

        Raises:
            DamagedFile: the table is damaged.
            InputError: it cannot be read or written.
        """
        if not any(_is_summed(row, sums) for row in rows):
            return
        with locks.exclusive_lock(path.parent):
            stored = self.read_table(path)
            lines: dict[tuple[Any, ...], TableRow] = {}
            for row in rows:
                day = date.fromisoformat(row.day)
                if row.state == "released" and (daily_sum := sums.get((day, row.series))) is not None:
                    key_columns = {"population": row.population, "day": day, "series": row.series}
                    new_lines = [{**key_columns, **columns} for columns in self.rows_of_release(row, daily_sum)]
                    lines |= {_row_key(line): line for line in new_lines}
            added = table_schemas.table_from_rows(self.schema, [*lines.values()])
            table = pa.concat_tables([_without(stored, lines).cast(added.schema), added])
            if table.num_rows:
                ordered = table.sort_by([(name, "ascending") for name in _KEY]).combine_chunks()
                atomic_files.write_table(path, ordered.replace_schema_metadata({_DAYS: _list_of_days(ordered)}))


def _without(table: pa.Table, keys: Collection[tuple[Any, ...]]) -> pa.Table:
    """Return the rows of a table with other keys than these; only rows of the same days become Python rows."""
    days = pa.array(sorted({day for _, day, *_ in keys}), pa.date32())
    of_days = np.flatnonzero(pc.is_in(table["day"], days).to_numpy())
    columns = [table[name].take(pa.array(of_days)).to_pylist() for name in _KEY]
    is_kept = np.ones(table.num_rows, bool)
    is_kept[[i for i, *key in zip(of_days.tolist(), *columns, strict=True) if tuple(key) in keys]] = False
    return table.filter(pa.array(is_kept))


def _list_of_days(table: pa.Table) -> bytes:
    """Return the days of a table by population and series, with the number of its rows."""
    distinct = table.group_by(["population", "day", "series"]).aggregate([]).to_pydict()
    days: RecordedDays = {}
    for population, day, series in sorted(zip(*(distinct[name] for name in _KEY[:3]), strict=True)):
        days.setdefault(population, {}).setdefault(series, []).append(day.isoformat())
    return json.dumps({"rows": table.num_rows, "days": days}).encode()


def _is_summed(row: AnyRelease, sums: Mapping[tuple[date, str], DailySum]) -> bool:
    return row.state == "released" and (date.fromisoformat(row.day), row.series) in sums


def _row_key(line: TableRow) -> tuple[Any, ...]:
    return tuple(line[name] for name in _KEY)


def _released_lines(row: ReleaseRecord, daily_sum: DailySum) -> Iterator[tuple[TableRow, dict[str, int]]]:
    """Yield cell and households of each part of a row, and all its counts; small groups are not released."""
    released, texts = set(row.cells), daily_sum.series.write_cells(daily_sum.cells)
    places = daily_sum.exact.shape[1]
    for i, (part, counts) in enumerate(zip(daily_sum.parts, daily_sum.counts.tolist(), strict=True)):
        if released.issuperset(texts[i * places : (i + 1) * places]):
            by_name = dict(zip(COUNTS, counts, strict=True))
            yield {"cell": daily_sum.series.write_part(part), "households": by_name["households"]}, by_name


def _state_rows(row: ReleaseRecord, daily_sum: DailySum) -> Iterator[TableRow]:
    if daily_sum.series.compares_states:
        for line, counts in _released_lines(row, daily_sum):
            wh_per_kwh_mean = 1000.0 * counts["households"]
            means = {f"{of}_kwh": counts[f"{of}_wh"] / wh_per_kwh_mean for of in ("readings", "states")}
            yield line | means


COUNTED_STATES = CellTable(
    table_schemas.COUNTED_STATES,
    _LATER.format("counted_states.parquet"),
    _state_rows,
)


def _coverage_rows(row: ReleaseRecord, daily_sum: DailySum) -> Iterator[TableRow]:
    for line, counts in _released_lines(row, daily_sum):
        yield line | {name: counts[name] for name in ("usable", "clamped")}


COVERAGE = CellTable(
    table_schemas.COVERAGE,
    _LATER.format("coverage.parquet"),
    _coverage_rows,
)


def _exact_by_cell(daily_sum: DailySum) -> dict[str, int]:
    cells = daily_sum.series.write_cells(daily_sum.cells)
    return dict(zip(cells, daily_sum.exact.ravel().tolist(), strict=True))


def _mean_rows(row: ReleaseRecord, daily_sum: DailySum) -> Iterator[TableRow]:
    if daily_sum.series.true_values == "means":
        exact = _exact_by_cell(daily_sum)
        for cell, value, households in zip(row.cells, row.values, row.households, strict=True):
            wh_per_kwh_mean = 1000.0 * households
            means = {
                "true_mean_kwh": exact[cell] / wh_per_kwh_mean,
                "released_mean_kwh": value / wh_per_kwh_mean,
            }
            yield {"cell": cell, "households": households, **means}


def _count_rows(row: ReleaseRecord, daily_sum: DailySum) -> Iterator[TableRow]:
    if daily_sum.series.true_values != "counts" or not daily_sum.series.holds(row.cells):
        return  # released with other bins: true counts for these are not computed
    exact = _exact_by_cell(daily_sum)
    for cell, value, households in zip(row.cells, row.values, row.households, strict=True):
        counts = {"true_households": exact[cell], "released_households": value}
        yield {"cell": cell, "households": households, **counts}


_HELPS = (
    "put back a copy of {}, or remove it: the next run records anew the released days whose readings are still kept"
)
TRUE_MEANS = CellTable(table_schemas.TRUE_MEANS, _HELPS.format("true_means.parquet"), _mean_rows)
TRUE_COUNTS = CellTable(table_schemas.TRUE_COUNTS, _HELPS.format("true_counts.parquet"), _count_rows)


def recorded_days(means: Path, counts: Path, population: str) -> set[tuple[str, str]]:
    """Return (day, series) of the rows of a population in the two tables: the released days with recorded true values.

    True values of profiles are not recorded, and those of a coverage series are in the table of coverage: see
    `counted_days`.

    Raises:
        DamagedFile: a table is damaged.
    """
    return TRUE_MEANS.recorded(means, population) | TRUE_COUNTS.recorded(counts, population)


def counted_days(coverage: Path, population: str) -> set[tuple[str, str]]:
    """Return (day, series) of the rows of a population in the table of coverage.

    Raises:
        DamagedFile: the table is damaged.
    """
    return COVERAGE.recorded(coverage, population)
