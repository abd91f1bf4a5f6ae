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
from typing import Any, Final

import pyarrow as pa

from agedp.release_folder.derived_tables import (
    Partition,
    complete_units,
    derived_table,
    monthly_partitions,
    newly_closed,
)
from agedp.release_folder.result_tables import (
    PublishedSeries,
    common_guarantee,
    contract_terms,
    list_published_series,
    series_table,
)
from agedp_data.errors import InputError
from agedp_data.ledger import ContractRecord, ReleaseRecord
from agedp_data.ledger.ledger_reader import LedgerReader
from agedp_data.ledger.monthly_transfer import rows_by_month
from agedp_data.ledger.records import Row
from agedp_data.series.levels import level_column
from agedp_data.series.result_table import DerivedTable, Noise
from agedp_data.series.series import DERIVED_TABLES
from agedp_data.statement.document import Statement

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
    """Yield the paths of the entries of a release folder; of folders of partitions, of what is in them instead.

    That is each file, link, pipe, ... of a table and of its months, and each folder in a month, whose content is not
    listed. A run and verification both list a release by this function.

    Raises:
        InputError: more than 100,000 entries.
    """
    entries = list(islice(_entries(folder), MAX_ENTRIES + 1))
    if len(entries) > MAX_ENTRIES:
        raise InputError(f"the release folder has more than {MAX_ENTRIES:,} files; ask for the release again")
    yield from sorted(entries)


def _entries(folder: Path) -> Iterator[str]:
    for path in folder.iterdir():
        if not (_is_folder(path) and any(path.glob(f"{MONTH_KEY}=*"))):
            yield path.name
            continue
        for entry in _visible_entries(path):
            if not _is_folder(entry):
                yield f"{path.name}/{entry.name}"
            else:
                yield from (f"{path.name}/{entry.name}/{inside.name}" for inside in _visible_entries(entry))


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


def partitions_of(rows: Sequence[Row], *, monthly: bool) -> tuple[Partition, ...]:
    """Return the partitions of all ledger rows of a population: one for each month, or one of all."""
    if monthly:
        return monthly_partitions(rows_by_month(rows))
    contracts = tuple(row for row in rows if isinstance(row, ContractRecord))
    return (Partition("", "", tuple(row for row in rows if isinstance(row, ReleaseRecord)), contracts),)


def release_tables(
    statement: Statement,
    partitions: Sequence[Partition],
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
        for series in list_published_series(partition.rows, partition.contracts):
            if not partition.month or partition.amended & series.series.keys() or any(map(series.has, partition.rows)):
                common = _guarantee(statement, partition, series)
                yield (
                    _path(partition, series),
                    series_table(series, common, partition.rows, partition.contracts, noise),
                )
    closed = [
        (table, partition, units)
        for table in derived
        if table.has_source(contract_terms(partitions[-1].contracts))
        for partition, units in newly_closed(partitions, table, since="" if table in added else since)
    ]
    rows = complete_units(complete, [unit for _, _, units in closed for unit in units], ledger)
    for table, partition, outlines in closed:
        units = [unit.completed(rows) for unit in outlines]
        of_partition = derived_table(table, _guarantee(statement, partition), units, partition.contracts, noise)
        if of_partition.num_rows or not partition.month:
            path = partition_path(table.file, partition.month) if partition.month else f"{table.file}.parquet"
            yield path, of_partition


def _path(partition: Partition, series: PublishedSeries) -> str:
    return partition_path(series_folder(series), partition.month) if partition.month else series.file


def series_folder(series: PublishedSeries) -> str:
    """Return the name of the folder of a series with the layout "monthly", such as "daily_averages_use"."""
    return f"{series.table.file}_{series.name}"


def _guarantee(statement: Statement, partition: Partition, series: PublishedSeries | None = None) -> dict[str, Any]:
    """Return the part of the guarantee of a table that does not depend on its lines.

    That of a series' table of a month names its first row, and the level of each version's groups.
    """
    if not partition.month:
        return common_guarantee(statement)
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
    terms = contract_terms(partition.contracts)
    levels = {
        str(terms[contract].version): {
            name: {"level": level_column(name) or of.level, "depth": len(of.columns)}
            for name, of in of_contract.items()
        }
        for contract, of_contract in series.series.items()
    }
    first_row = min((row.seq for row in partition.rows if series.has(row)), default=0)
    return {**common, "first_row": first_row, "levels_by_version": levels}
