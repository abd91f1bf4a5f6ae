"""Statement and LEDGER rows -> the files of a release folder, before they are written.

With the layout "monthly" these are the files of the months that are not closed, or not as they were; the others are
known by their checksum and size.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from agedp.release_folder.derived_tables import monthly_partitions
from agedp.release_folder.folder_files import PACKAGE, ROWS
from agedp.release_folder.folder_writer import file_checksums, listing_of
from agedp.release_folder.partitions import (
    ROWS_TABLE,
    months_by_table,
    partition_of,
    partition_path,
    partitions_of,
    release_tables,
    stated_checksums,
)
from agedp.release_folder.result_tables import parquet_bytes
from agedp.release_folder.unchanged_partitions import UnchangedPartitions
from agedp_data.ledger.ledger_reader import LedgerReader
from agedp_data.ledger.monthly_transfer import format_month, rows_by_month
from agedp_data.ledger.records import sha256
from agedp_data.ledger.transfer import LedgerExport, complete_rows, format_export
from agedp_data.series.result_table import DerivedTable, Noise
from agedp_data.series.series import DERIVED_TABLES
from agedp_data.statement.datapackage import datapackage
from agedp_data.statement.document import Statement
from agedp_data.statement.partition_resources import (
    PartitionedTable,
    PartitionFile,
    partition_file,
    partition_resources,
)


@dataclass(frozen=True, slots=True)
class FolderContent:
    """The files of a release folder by path, and the files of closed months that stay as they are."""

    files: Mapping[str, bytes]
    kept: UnchangedPartitions = field(default_factory=UnchangedPartitions)

    @property
    def unchanged(self) -> Mapping[str, str]:
        """Return the SHA-256 of the files that stay as they are, by path."""
        return self.kept.checksums

    @property
    def paths(self) -> frozenset[str]:
        """Return the paths of all files, new and unchanged."""
        return frozenset({*self.files, *self.unchanged})

    def with_files(self, files: Mapping[str, bytes]) -> FolderContent:
        """Return the content with further files."""
        return replace(self, files={**self.files, **files})

    def with_package(self, statement: Statement) -> FolderContent:
        """Return the content with datapackage.json, which lists all other files."""
        plain = {path: content for path, content in self.files.items() if not partition_of(path)}
        by_month = partition_resources(list(self._partitioned()), statement)
        return self.with_files({PACKAGE: json_bytes(datapackage(statement, plain, by_month))})

    def _partitioned(self) -> Iterator[PartitionedTable]:
        """Yield the tables by month; columns of one without a new file are those of its newest file in the folder."""
        for table, months in months_by_table({**self.files, **self.unchanged}).items():
            paths = [partition_path(table, month) for month in months]
            files = [
                partition_file(path, self.files[path])
                if path in self.files
                else PartitionFile(path, self.unchanged[path], self.kept.sizes[path])
                for path in paths
            ]
            yield PartitionedTable(table, tuple(files), None if table == ROWS_TABLE else self._schema(paths[-1]))

    def _schema(self, path: str) -> pa.Schema:
        return pq.read_schema(pa.BufferReader(self.files[path]) if path in self.files else self.kept.folder / path)

    def stated_checksums(self) -> dict[str, str]:
        """Return the checksums that the ledger keeps with the statement of the folder."""
        checksums = dict(sorted({**file_checksums(self.files), **self.unchanged}.items()))
        return stated_checksums(checksums, listing_of(checksums))


def release_content(
    statement: Statement,
    export: LedgerExport,
    words: Mapping[str, bytes],
    noise: Noise,
    derived: Sequence[DerivedTable] = DERIVED_TABLES,
    *,
    ledger: LedgerReader | None = None,
    unchanged: UnchangedPartitions | None = None,
) -> FolderContent:
    """Return statement, ledger rows and tables of a release, with one partition or one for each month.

    Args:
        statement: of the release.
        export: the ledger rows of the population; with the layout "monthly" releases without their vectors
            (`export_outline`).
        words: the files of the statement.
        noise: of the values.
        derived: the derived tables to write.
        ledger: that of these rows, of which only those of the months to be written are read completely.
        unchanged: with the layout "monthly", the files of closed months that stay as they are.
    """
    if unchanged is None or ledger is None:
        files = {**words, ROWS: format_export(export).encode()}
        tables = release_tables(statement, partitions_of(export.rows, monthly=False), noise, derived=derived)
        return FolderContent(files | {path: parquet_bytes(table) for path, table in tables})
    unchanged = unchanged.without(table.file for table in DERIVED_TABLES if table not in derived)
    kept = months_by_table(unchanged.checksums)
    months = [
        month if month.month < unchanged.since else replace(month, rows=complete_rows(ledger, month.rows))
        for month in rows_by_month(export.rows)
    ]
    files, previous = dict(words), ""
    for month in months:
        path = partition_path(ROWS_TABLE, month.month)
        if month.month < unchanged.since:
            previous = unchanged.checksums[path]
        else:
            text = format_month(month, ledger=export.ledger, previous=previous)
            files[path], previous = text.encode("ascii"), sha256(text)
    tables = release_tables(
        statement,
        monthly_partitions(months),
        noise,
        derived=derived,
        since=unchanged.since,
        added=[table for table in derived if table.file not in kept],
        ledger=ledger,
    )
    return FolderContent(files | {path: parquet_bytes(table) for path, table in tables}, unchanged)


def json_bytes(document: Mapping[str, Any]) -> bytes:
    """Return a document as the bytes of a file; the same document, the same bytes."""
    return (json.dumps(document, indent=1, sort_keys=True, ensure_ascii=True) + "\n").encode()
