"""The two layouts of a release folder: one partition of all rows, or one for each month of publication.

A partition has a file of each table. With the layout "single" there is one partition, and the file of a table has its
name. With the layout "monthly" there is a folder for each table, with a file for each month.

    daily_averages_use/published_month=2026-11/daily_averages_use.parquet
    ledger_rows/published_month=2026-11/ledger_rows.jsonl

Data set readers know the form (Hive partitions): `pandas.read_parquet("release/daily_averages_use")` returns all
months, with a column `published_month`.

Decisions:

* The month is that in which rows were published, not that of their days. Late days, given-up days, amendments and
  releases of periods are published after others of the same days, so a file by month of the days could never be closed.
* A series has its name in the name of its folder, also the first one of a statistic: which one was first may be open
  when its first file is written.
* Each table of a month is a function of the rows of its month, of those of earlier months that its lines are made from,
  and of the contracts up to its month. Nothing that is published later changes it.
* A series has a table in a month in which it has a row, also a skipped one, or in which a contract names it. So each
  series has a table before its first release. Tables of derived lines are written if they have lines.
* The guarantee of a table of a month does not repeat what changes from night to night: bounds, title and licence are in
  the statement and in datapackage.json. Its `ledger` names the newest row of its month, its `promise` the contract of
  that month.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from agedp.release_folder import result_tables
from agedp_data.errors import InputError
from agedp_data.foreign_files import read_limited_schema, read_limited_table, regular_file
from agedp_data.ledger import ContractRecord, ReleaseRecord
from agedp_data.ledger.records import Row
from agedp_data.ledger.transfer import rows_by_month
from agedp_data.roster import ALL
from agedp_data.series.result_table import DerivedTable, Noise, ResultTable
from agedp_data.series.series import DERIVED_TABLES, RESULT_TABLES, level_column
from agedp_data.statement.document import Statement
from agedp_data.table_schemas import LEVEL

if TYPE_CHECKING:
    from agedp_data.ledger.ledger_reader import LedgerReader

MONTH_KEY: Final = "published_month"
ROWS_TABLE: Final = "ledger_rows"
SUMS_FILE: Final = "SHA256SUMS"
MAX_ENTRIES: Final = 100_000
"""Files of a release folder: 40 tables of 20 years have 10,000."""
_PATH: Final = re.compile(
    rf"(?P<table>[^/\\.][^/\\]*)/{MONTH_KEY}=(?P<month>[0-9]{{4}}-[0-9]{{2}})/(?P=table)\.(parquet|jsonl)"
)


def partition_path(table: str, month: str) -> str:
    """Return the path of a month of a table in its release folder.

    >>> partition_path("daily_averages_use", "2026-11")
    'daily_averages_use/published_month=2026-11/daily_averages_use.parquet'
    """
    return f"{table}/{MONTH_KEY}={month}/{table}.{'jsonl' if table == ROWS_TABLE else 'parquet'}"


def partition_of(path: str) -> tuple[str, str] | None:
    """Return table and month of a path, None for the path of another file.

    >>> partition_of("ledger_rows/published_month=2026-11/ledger_rows.jsonl"), partition_of("report.html")
    (('ledger_rows', '2026-11'), None)
    """
    match = _PATH.fullmatch(path)
    if match is None or path != partition_path(match["table"], match["month"]):
        return None
    return match["table"], match["month"]


def months_by_table(paths: Iterable[str]) -> dict[str, list[str]]:
    """Return the months of each table among paths, in order."""
    months: dict[str, list[str]] = {}
    for path in sorted(paths):
        if (partition := partition_of(path)) is not None:
            months.setdefault(partition[0], []).append(partition[1])
    return months


def list_files(folder: Path) -> Iterator[str]:
    """Yield the paths of the entries of a release folder; of folders of tables, of what is in them instead.

    That is each file, link, pipe, ... of a table and of its months, and each folder in a month, whose content is not
    listed. A folder is of a table by its name, or by the months in it: a reader of data sets takes every file in it. A
    run and verification both list a release by this function.

    Raises:
        InputError: more than 100,000 entries.
    """
    entries = list(islice(_entries(folder), MAX_ENTRIES + 1))
    if len(entries) > MAX_ENTRIES:
        raise InputError(f"the release folder has more than {MAX_ENTRIES:,} files; ask for the release again")
    yield from sorted(entries)


def _entries(folder: Path) -> Iterator[str]:
    for path in folder.iterdir():
        if not (_is_folder(path) and (_is_table(path.name) or any(path.glob(f"{MONTH_KEY}=*")))):
            yield path.name
            continue
        for entry in _visible_entries(path):
            if not _is_folder(entry):
                yield f"{path.name}/{entry.name}"
            else:
                yield from (f"{path.name}/{entry.name}/{inside.name}" for inside in _visible_entries(entry))


def _is_table(name: str) -> bool:
    return name == ROWS_TABLE or name in _DERIVED or kind_of(name) is not None


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _visible_entries(folder: Path) -> Iterator[Path]:
    """Yield the entries of a folder without temporary files, which no reader takes."""
    return (entry for entry in folder.iterdir() if not entry.name.startswith("."))


def is_monthly(paths: Iterable[str]) -> bool:
    """Return whether the paths are of a folder with the layout "monthly": one of them is of a month of ledger rows."""
    return any(path.startswith(f"{ROWS_TABLE}/") for path in paths)


def stated_checksums(checksums: Mapping[str, str], listing: bytes) -> dict[str, str]:
    """Return the checksums that the ledger keeps with a statement.

    Those of all files; with the layout "monthly", of the files outside partitions and of SHA256SUMS, which lists the
    partitions: the ledger would otherwise grow by a line for each month every night.

    Args:
        checksums: SHA-256 of each file by its path.
        listing: content of SHA256SUMS.
    """
    if not is_monthly(checksums):
        return dict(checksums)
    plain = {path: digest for path, digest in checksums.items() if "/" not in path}
    return {**plain, SUMS_FILE: hashlib.sha256(listing).hexdigest()}


def partitions_of(rows: Sequence[Row], *, monthly: bool) -> tuple[result_tables.Partition, ...]:
    """Return the partitions of all ledger rows of a population: one for each month, or one of all."""
    if monthly:
        return result_tables.monthly_partitions(rows_by_month(rows))
    contracts = tuple(row for row in rows if isinstance(row, ContractRecord))
    return (result_tables.Partition("", "", tuple(row for row in rows if isinstance(row, ReleaseRecord)), contracts),)


def release_tables(
    statement: Statement,
    partitions: Sequence[result_tables.Partition],
    noise: Noise,
    *,
    derived: Iterable[DerivedTable] = DERIVED_TABLES,
    since: str = "",
    added: Collection[DerivedTable] = (),
    ledger: LedgerReader | None = None,
) -> Iterator[tuple[str, pa.Table]]:
    """Yield the tables of partitions with their paths: those of series, then the derived ones.

    Args:
        statement: of the newest partition.
        partitions: all partitions of the population, oldest first.
        noise: of the values.
        derived: the derived tables to compute.
        since: the first month to compute; the rows of the partitions since then are complete.
        added: derived tables of which all months are computed, because none is there yet.
        ledger: that of the rows before it which derived lines are made from; None if all rows are complete.
    """
    complete = [partition for partition in partitions if partition.month >= since]
    for partition in complete:
        for series in result_tables.list_published_series(partition.rows, partition.contracts):
            if not partition.month or partition.amended & series.series.keys() or any(map(series.has, partition.rows)):
                common = _guarantee(statement, partition, series)
                yield (
                    partition_path(series_folder(series), partition.month) if partition.month else series.file,
                    result_tables.series_table(series, common, partition.rows, partition.contracts, noise),
                )
    closed = [
        (table, partition, units)
        for table in derived
        if table.has_source(result_tables.contract_terms(partitions[-1].contracts))
        for partition, units in result_tables.newly_closed(partitions, table, since="" if table in added else since)
    ]
    rows = result_tables.complete_units(complete, [unit for _, _, units in closed for unit in units], ledger)
    for table, partition, outlines in closed:
        units = [unit.completed(rows) for unit in outlines]
        of_partition = result_tables.derived_table(
            table, _guarantee(statement, partition), units, partition.contracts, noise
        )
        if of_partition.num_rows or not partition.month:
            path = partition_path(table.file, partition.month) if partition.month else f"{table.file}.parquet"
            yield path, of_partition


def series_folder(series: result_tables.PublishedSeries) -> str:
    """Return the name of the folder of a series with the layout "monthly", such as "daily_averages_use"."""
    return f"{series.table.file}_{series.name}"


def _guarantee(
    statement: Statement, partition: result_tables.Partition, series: result_tables.PublishedSeries | None = None
) -> dict[str, Any]:
    """Return the part of the guarantee of a table that does not depend on its lines.

    That of a series' table of a month names its first row, and the level of each version's groups.
    """
    if not partition.month:
        return result_tables.common_guarantee(statement)
    contract = partition.contracts[-1].terms
    common = {
        "population": statement.population,
        "rehearsal": statement.rehearsal,
        "ledger": {"id": statement.ledger.id, "head": partition.head},
        **contract.stated_keys,
        "day_zone": contract.layout.day_zone,
        MONTH_KEY: partition.month,
    }
    if series is None:
        return common
    terms = result_tables.contract_terms(partition.contracts)
    levels = {
        str(terms[contract].version): {
            name: {"level": level_column(name) or of.level, "depth": len(of.columns)}
            for name, of in of_contract.items()
        }
        for contract, of_contract in series.series.items()
    }
    first_row = min((row.seq for row in partition.rows if series.has(row)), default=0)
    return {**common, "first_row": first_row, "levels_by_version": levels}


# --------------------------------------------------------------------------------------------------
# Tables of a release folder with the layout "monthly" -> the tables that the layout "single" has, months together.
#
# Rows, their order, columns and guarantee are the same. A series that got levels by an amendment has the column
# `level` from then on; in the months before, it is filled in from their guarantees.
# --------------------------------------------------------------------------------------------------

_DERIVED: Final = {table.file: table for table in DERIVED_TABLES}
_DEPTH: Final = "depth"
_MONTHLY_ONLY: Final = (MONTH_KEY, "first_row", "levels_by_version")


def kind_of(table: str) -> ResultTable | None:
    """Return the kind of the series that a table of a release is of, by its name; None for another name.

    >>> kind_of("daily_average_layers_use").file, kind_of("daily_quantiles")
    ('daily_average_layers', None)
    """
    return next((kind for kind in RESULT_TABLES if re.fullmatch(rf"{kind.file}(_.+)?", table)), None)


def tables_by_file(folder: Path, months: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return the folder of partitions of each table by the file that it has in the layout "single".

    Args:
        folder: the release folder.
        months: by folder of partitions.

    Raises:
        OSError, LookupError, TypeError, ValueError: a file is missing or damaged.
    """
    files = {f"{table}.parquet": table for table in _DERIVED if table in months}
    for kind in RESULT_TABLES:
        of_kind = sorted(table for table in months if kind_of(table) is kind)
        first_rows = {table: next(filter(None, _first_rows(folder, table, months[table])), 0) for table in of_kind}
        of_kind.sort(key=lambda table: (first_rows[table] or np.inf, table))
        files |= {f"{kind.file}.parquet" if not i else f"{table}.parquet": table for i, table in enumerate(of_kind)}
    return files


def _first_rows(folder: Path, table: str, months: Sequence[str]) -> Iterator[int]:
    """Yield the number of the first ledger row of a series in each month; 0 if it has none yet."""
    for path in (partition_path(table, month) for month in months):
        yield int(result_tables.read_guarantee(read_limited_schema(regular_file(folder, path), path))["first_row"])


def read_months(folder: Path, table: str, months: Iterable[str], *, max_rows: int) -> dict[str, pa.Table]:
    """Return the stored tables of months.

    Raises:
        InputError: as `read_limited_table` and `regular_file`.
        OSError, pa.ArrowException: a missing or damaged file.
    """
    paths = {month: partition_path(table, month) for month in months}
    return {
        month: read_limited_table(regular_file(folder, path), path, max_rows=max_rows) for month, path in paths.items()
    }


def joined_table(table: str, parts: Mapping[str, pa.Table], statement: Statement) -> pa.Table:
    """Return the stored tables of months as the one that the layout "single" has.

    Args:
        table: name of the folder of partitions.
        parts: by month, at least one.
        statement: of the folder.

    Raises:
        LookupError, TypeError, ValueError: entries of a guarantee are missing.
    """
    ordered = [part for _, part in sorted(parts.items())]
    guarantees = [result_tables.read_guarantee(part.schema) for part in ordered]
    if (derived := _DERIVED.get(table)) is not None:
        joined = _newest_lines(derived.line, pa.concat_tables([part.replace_schema_metadata() for part in ordered]))
        joined = _sorted(joined, derived.order)
    else:
        joined = _joined_series(ordered, guarantees)
    kept = {key: value for key, value in guarantees[-1].items() if key not in _MONTHLY_ONLY}
    guarantee = {**kept, **result_tables.common_guarantee(statement)}
    return result_tables.with_guarantee(joined, guarantee)


def _joined_series(parts: Sequence[pa.Table], guarantees: Sequence[Mapping[str, Any]]) -> pa.Table:
    levels = {version: of for guarantee in guarantees for version, of in guarantee["levels_by_version"].items()}
    parts = [part.replace_schema_metadata() for part in parts]
    if not any(LEVEL.name in part.schema.names for part in parts):
        layer = ["layer"] if "layer" in parts[0].schema.names else []
        return _sorted(pa.concat_tables(parts), ["day", "revision", *layer])
    joined = pa.concat_tables([part if LEVEL.name in part.schema.names else _filled(part, levels) for part in parts])
    depths = {entry["level"]: entry["depth"] for of in levels.values() for entry in of.values()}
    codes = joined[LEVEL.name].to_pylist()
    joined = joined.append_column(_DEPTH, pa.array([depths[level] for level in codes], pa.int32()))
    return _sorted(joined, ["day", "revision", _DEPTH]).drop_columns(_DEPTH)


def _filled(part: pa.Table, levels: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> pa.Table:
    """Return a table of a series without levels with the column that it has since."""
    by_version = {version: next(iter(of.values()))["level"] for version, of in levels.items() if of}
    values = [by_version.get(str(version), ALL) for version in part["version"].to_pylist()]
    return part.add_column(part.schema.get_field_index("group") + 1, LEVEL, pa.array(values, LEVEL.type))


def _newest_lines(line: Sequence[str], joined: pa.Table) -> pa.Table:
    """Return a table without the lines that a later month replaced; `line` are the columns that name one."""
    if not line or not joined.num_rows:
        return joined
    lines = joined.select(line).append_column("number", pa.array(np.arange(joined.num_rows)))
    newest = lines.group_by([*line]).aggregate([("number", "max")])["number_max"].to_numpy()
    return joined if len(newest) == joined.num_rows else joined.take(pa.array(np.sort(newest)))


def _sorted(table: pa.Table, names: Sequence[str]) -> pa.Table:
    return table.sort_by([(name, "ascending") for name in names])  # stable: months stay in their order
