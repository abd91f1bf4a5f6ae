"""The tables and ledger rows that are stored in a release folder of either layout, as those of the layout "single"."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from agedp.release_folder.folder_files import ROWS, max_table_rows
from agedp.release_folder.folder_statement import read_folder_statement
from agedp.release_folder.parquet_limits import read_limited_table
from agedp.release_folder.partitioned_tables import joined_table, read_months, tables_by_file
from agedp.release_folder.partitions import ROWS_TABLE, is_monthly, months_by_table, partition_path
from agedp_data.errors import InputError, LedgerError
from agedp_data.foreign_files import read_lines, regular_file
from agedp_data.ledger.monthly_transfer import parse_months
from agedp_data.ledger.transfer import LedgerExport, parse_export
from agedp_data.messages import escape_text
from agedp_data.statement.document import Statement

_DAMAGED = (OSError, LookupError, TypeError, ValueError, pa.ArrowException)


@dataclass(frozen=True, slots=True)
class FolderTables:
    """The stored tables of a release folder, by the file name that each has in the layout "single"."""

    path: Path
    checksums: Mapping[str, str]

    @property
    def is_monthly(self) -> bool:
        """Return whether the folder has partitions by month of publication."""
        return is_monthly(self.checksums)

    @property
    def max_rows(self) -> int:
        """Return the largest number of rows that a table of the folder may have."""
        return max_table_rows(self.path, self.checksums)

    def files(self) -> dict[str, str]:
        """Return the tables, and for each the folder of its partitions; "" in the layout "single".

        Raises:
            InputError: a file that is missing or damaged.
        """
        if not self.is_monthly:
            return {name: "" for name in self.checksums if name.endswith(".parquet")}
        months = months_by_table(self.checksums)
        try:
            return tables_by_file(self.path, {table: of for table, of in months.items() if table != ROWS_TABLE})
        except _DAMAGED:
            raise InputError("a table of a month is missing or damaged; ask for the release again") from None

    def read(self, path: str, *, max_rows: int) -> pa.Table:
        """Return a table, or a month of one, as it is stored.

        Args:
            path: of its file.
            max_rows: the largest number of rows, `max_rows` of the folder; it is the same for all its tables.

        Raises:
            InputError: it is missing or damaged.
        """
        try:
            return read_limited_table(regular_file(self.path, path), path, max_rows=max_rows)
        except (OSError, pa.ArrowException):
            raise InputError(f"{escape_text(path)} is missing or damaged; ask for the release again") from None

    def join(self, table: str, statement: Statement, months: Collection[str] = ()) -> pa.Table:
        """Return the months of a table together.

        Args:
            table: the folder of its partitions.
            statement: of the release folder.
            months: months of publication, such as "2026-11"; all unless given.

        Raises:
            InputError: a month that the table does not have, or a file that is missing or damaged.
        """
        present = months_by_table(self.checksums).get(table, [])
        if unknown := sorted({*months} - {*present}):
            raise InputError(f"{escape_text(unknown[0])}: {table} has no such month; it has {', '.join(present)}")
        chosen = [month for month in present if not months or month in months]
        try:
            return joined_table(table, read_months(self.path, table, chosen, max_rows=self.max_rows), statement)
        except _DAMAGED:
            raise InputError(
                f"{escape_text(table)}: a month is missing or damaged; ask for the release again"
            ) from None

    def table(self, name: str, months: Collection[str] = ()) -> pa.Table:
        """Return a table by the file name that it has in the layout "single", in either layout.

        Raises:
            InputError: a file or month that is missing or damaged.
        """
        if not self.is_monthly:
            return self.read(name, max_rows=self.max_rows)
        return self.join(self.files().get(name, name), read_folder_statement(self.path), months)

    def ledger_rows(self) -> LedgerExport:
        """Return the ledger rows of the folder; of the layout "monthly", their head is that of the newest row.

        Raises:
            InputError: they are missing or damaged.
        """
        name = ROWS_TABLE if self.is_monthly else ROWS
        try:
            if not self.is_monthly:
                return parse_export(read_lines(regular_file(self.path, ROWS)))
            months = months_by_table(self.checksums)[ROWS_TABLE]
            paths = {month: regular_file(self.path, partition_path(ROWS_TABLE, month)) for month in months}
            return parse_months({month: read_lines(path) for month, path in paths.items()})
        except (OSError, ValueError):
            raise InputError(f"{name} is missing or damaged; ask for the release again") from None
        except LedgerError as error:
            raise InputError(f"{name}: {error}") from None
