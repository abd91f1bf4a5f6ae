"""A release folder for its recipients: read the tables and the statement, and verify that nothing was changed."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from agedp.release_folder import folder_files, partitions, verification
from agedp.release_folder.folder_files import ROWS, STATEMENT, SUMS, WORDS
from agedp.release_folder.result_tables import common_guarantee, whole_table
from agedp.release_folder.span_bounds import SpanBound, span_bounds
from agedp_data import foreign_files
from agedp_data.datasets import filesystem
from agedp_data.errors import InputError, LedgerError
from agedp_data.ledger.transfer import LedgerExport, parse_export, parse_months
from agedp_data.messages import check_one_of, escape_text, suggest_file
from agedp_data.series.coverage import COVERAGES
from agedp_data.series.distribution import DISTRIBUTIONS, QUANTILES
from agedp_data.series.mean import AVERAGES, AVERAGES_BY, CONSISTENT, LAYERS, PERIOD_RELEASES, Period
from agedp_data.series.profile import PROFILE_BY_MONTH, PROFILE_RELEASES, PROFILES
from agedp_data.series.result_table import DerivedTable, Noise, ResultTable
from agedp_data.series.series import RESULT_TABLES
from agedp_data.statement.document import SCHEMA, Statement, read_statement

if TYPE_CHECKING:
    import pandas as pd


# --------------------------------------------------------------------------------------------------
# Path, statement and checksums of a release folder, as its recipients find them; one line if one is damaged.
# --------------------------------------------------------------------------------------------------

ESTIMATES_RECORD: Final = "smoothing.json"
_CHECKSUM: Final = re.compile(r"([0-9a-f]{64})  (.+)")


def read_folder_statement(folder: Path) -> Statement:
    """Return the statement of a release folder, validated.

    Raises:
        InputError: statement.json is missing, damaged or not as agedp writes it.
    """
    try:
        return read_statement(foreign_files.read_small_file(folder, STATEMENT))
    except OSError:
        raise InputError(f"{STATEMENT} is missing or damaged; ask for the release again") from None
    except ValueError as error:
        raise InputError(f"{STATEMENT}: {error}; ask for the release again") from None


def read_checksum_text(folder: Path) -> str:
    """Return the content of SHA256SUMS.

    Raises:
        InputError: SHA256SUMS is missing or damaged.
    """
    try:
        return foreign_files.read_small_file(folder, SUMS).decode("ascii")
    except (OSError, UnicodeDecodeError):
        raise InputError(f"{SUMS} is missing: no release folder, or one that was cut off") from None


def parse_checksums(text: str) -> dict[str, str]:
    r"""Return the SHA-256 of each file by its name, a plain path below the folder.

    Raises:
        InputError: a line without a SHA-256 or a name, or a name that is no such path.

    >>> [*parse_checksums(f"{'ab' * 32}  report.html\n")]
    ['report.html']
    """
    checksums = {}
    for line in text.removesuffix("\n").split("\n"):
        match = _CHECKSUM.fullmatch(line)
        if match is None or not foreign_files.is_plain_path(match[2]):
            name = "" if match is None else f": '{escape_text(match[2], 200)}' is no plain path below the folder"
            raise InputError(f"{SUMS} differs from the published file{name}; ask for the release again")
        checksums[match[2]] = match[1]
    return checksums


def release_path(folder: str | Path) -> Path:
    """Return the path of an existing release folder.

    Raises:
        InputError: the folder does not exist, may not be read, contains estimates, or is a URL.
    """
    if filesystem.is_url(str(folder)):
        location = filesystem.format_location(str(folder))
        raise InputError(f"{location} is a URL; download its files into a folder, then name that folder")
    path = Path(folder)
    try:
        exists = path.is_dir()
        names = {entry.name for entry in path.iterdir()} if exists else set()
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}); check its permissions") from None
    if not exists:
        message = f"{path} is not a folder; name the release folder itself"
        raise InputError(message, private=f"{message}{suggest_file(path)}")
    if ESTIMATES_RECORD in names and STATEMENT not in names:
        raise InputError(
            f"{path} contains estimates of agedp smooth, not a release. Check them in that folder by sha256sum --check "
            f"{SUMS}, and name the release folder for anything else"
        )
    if not names & {STATEMENT, SUMS}:
        inside = next((name for name in sorted(names) if (path / name / STATEMENT).is_file()), None)
        message = f"{path} is not a release folder; name the release folder itself"
        raise InputError(message, private=message if inside is None else f"{message}, such as {path / inside}")
    return path


# --------------------------------------------------------------------------------------------------
# The tables and ledger rows that are stored in a release folder of either layout, as those of the layout "single".
# --------------------------------------------------------------------------------------------------

_DAMAGED = (OSError, LookupError, TypeError, ValueError, pa.ArrowException)


@dataclass(frozen=True, slots=True)
class FolderTables:
    """The stored tables of a release folder, by the file name that each has in the layout "single"."""

    path: Path
    checksums: Mapping[str, str]

    @property
    def is_monthly(self) -> bool:
        """Return whether the folder has partitions by month of publication."""
        return partitions.is_monthly(self.checksums)

    @property
    def max_rows(self) -> int:
        """Return the largest number of rows that a table of the folder may have."""
        return folder_files.max_table_rows(self.path, self.checksums)

    def files(self) -> dict[str, str]:
        """Return the tables, and for each the folder of its partitions; "" in the layout "single".

        Raises:
            InputError: a file that is missing or damaged.
        """
        if not self.is_monthly:
            return {name: "" for name in self.checksums if name.endswith(".parquet")}
        months = partitions.months_by_table(self.checksums)
        try:
            return partitions.tables_by_file(
                self.path, {table: of for table, of in months.items() if table != partitions.ROWS_TABLE}
            )
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
            return foreign_files.read_limited_table(
                foreign_files.regular_file(self.path, path), path, max_rows=max_rows
            )
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
        present = partitions.months_by_table(self.checksums).get(table, [])
        if unknown := sorted({*months} - {*present}):
            raise InputError(f"{escape_text(unknown[0])}: {table} has no such month; it has {', '.join(present)}")
        chosen = [month for month in present if not months or month in months]
        try:
            return partitions.joined_table(
                table, partitions.read_months(self.path, table, chosen, max_rows=self.max_rows), statement
            )
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
        name = partitions.ROWS_TABLE if self.is_monthly else ROWS
        try:
            if not self.is_monthly:
                return parse_export(foreign_files.read_lines(foreign_files.regular_file(self.path, ROWS)))
            months = partitions.months_by_table(self.checksums)[partitions.ROWS_TABLE]
            paths = {
                month: foreign_files.regular_file(self.path, partitions.partition_path(partitions.ROWS_TABLE, month))
                for month in months
            }
            return parse_months({month: foreign_files.read_lines(path) for month, path in paths.items()})
        except (OSError, ValueError):
            raise InputError(f"{name} is missing or damaged; ask for the release again") from None
        except LedgerError as error:
            raise InputError(f"{name}: {error}") from None


# --------------------------------------------------------------------------------------------------
# A release folder for its recipients: read the tables and the statement, and verify that nothing was changed.
# --------------------------------------------------------------------------------------------------

_INCOMPLETE = (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, RecursionError, MemoryError)
_INCOMPLETE_TEXT = f"its tables, {ROWS} or {STATEMENT} lack entries of a release"


@dataclass(frozen=True, slots=True)
class FolderReader:
    """The files of a release folder: tables, statement, ledger rows, checksums; each is checked against the rows.

    What recipients hold is `agedp.ReleaseFolder`, which also makes statement and texts of the rows again.
    """

    path: Path

    def table(self, name: str = "", *, months: Collection[str] = ()) -> pd.DataFrame:
        """Return a published table as a data frame: that of this name, or the first one.

        Averages come first, then distributions, profiles, coverage.

        Args:
            name: of the table, the same in both layouts.
            months: of the layout "monthly": the months of publication to read, such as "2026-11"; all unless given.

        Raises:
            InputError: the release has no such table, whose message names those it has; or the table is damaged.
        """
        stored = self._stored
        if months and not stored.is_monthly:
            raise InputError('months: the release folder has the layout "single"; leave out months')
        present = sorted(
            Path(file).stem for file in (stored.files() if stored.is_monthly else map(str, self.path.glob("*.parquet")))
        )
        kinds = [kind.file for kind in RESULT_TABLES if kind is not LAYERS]  # no layer is a mean
        first = (stem for kind in kinds for stem in present if re.fullmatch(rf"{kind}(_.+)?", stem))
        if name and present and name not in present and f"{name}.parquet" not in stored.checksums:
            raise InputError(f"{escape_text(name)}: the release has no such table; it has {', '.join(present)}")
        name = name or next(first, AVERAGES.file)
        frame: pd.DataFrame = self._arrow(f"{name}.parquet", months).to_pandas(date_as_object=False)
        return frame

    def consistent_averages(self) -> pd.DataFrame:
        """Return the daily averages in which groups add up to their total: least-squares estimates.

        Raises:
            InputError: the release has no total beside groups, is of an early version, or the table is damaged.
        """
        return self.table(CONSISTENT.file)

    def period_averages(self, period: Period) -> pd.DataFrame:
        """Return the averages of weeks, months or years, per household and day: derived from released days at no loss.

        Args:
            period: "week" (Monday to Sunday), "month" or "year".

        Returns:
            A row for each period, series, group and way of counting; computed from the rows of a folder without it.

        Raises:
            InputError: another period, a release without averages, or files that are missing or damaged.
        """
        check_one_of("period", period, AVERAGES_BY, InputError)
        return self._derived(AVERAGES_BY[period])

    def profiles_by_month(self) -> pd.DataFrame:
        """Return the mean profiles of weekdays and weekends by month, as `period_averages`: a row for each half-hour.

        Raises:
            InputError: a release without daily profiles, or files that are missing or damaged.
        """
        return self._derived(PROFILE_BY_MONTH)

    def quantiles(self) -> pd.DataFrame:
        """Return quantiles of the households' daily use and their intervals, derived from the released counts.

        Returns:
            A row for each day, series, group and share, of which 1 is the peak; from the rows of a folder without it.

        Raises:
            InputError: a release without a distribution, or files that are missing or damaged.
        """
        return self._derived(QUANTILES)

    def _derived(self, table: DerivedTable) -> pd.DataFrame:
        """Return a derived table, computed from the rows of a folder that lacks it."""
        name = f"{table.file}.parquet"
        if name in self._all_tables().files():
            return self.table(table.file)
        contracts, rows = verification.contracts_and_releases(self.ledger_rows())
        try:
            tables = self.series_tables()
            noise = Noise(verification.interval_coverage(tables[min(tables)]))
            computed = whole_table(table, common_guarantee(self.read_statement()), rows, contracts, noise)
        except _INCOMPLETE:
            raise InputError(f"{name}: {_INCOMPLETE_TEXT}") from None
        if computed is None:
            raise InputError(f"{name}: the release has no daily {table.source}, from which it would be derived")
        return computed.to_pandas(date_as_object=False)  # type: ignore[no-any-return]

    def averages(self) -> dict[str, pa.Table]:
        """Return the daily averages by file name: one file for each series that is a mean.

        Raises:
            InputError: a file that is missing or damaged.
        """
        return self._tables(AVERAGES)

    def periods(self) -> dict[str, pa.Table]:
        """Return the means over weeks, months or years that were drawn as such: one file for each such series.

        Averages of periods that follow from daily averages are in tables of their own.

        Raises:
            InputError: a file that is missing or damaged.
        """
        return self._tables(PERIOD_RELEASES)

    def layers(self) -> dict[str, pa.Table]:
        """Return the upper layers of daily averages by file name: one file for each mean with a list of clamps.

        The values of the layers of a day, that of the daily averages included, add up to the mean up to the last clamp.

        Raises:
            InputError: a file that is missing or damaged.
        """
        return self._tables(LAYERS)

    def distributions(self) -> dict[str, pa.Table]:
        """Return the daily distributions by file name, one file for each such series.

        Raises:
            InputError: a file that is missing or damaged.
        """
        return self._tables(DISTRIBUTIONS)

    def profiles(self) -> dict[str, pa.Table]:
        """Return the daily profiles by file name, one file for each such series: a row for each half-hour and group.

        Raises:
            InputError: a file that is missing or damaged.
        """
        return self._tables(PROFILES)

    def profile_releases(self) -> dict[str, pa.Table]:
        """Return the profiles of months that were drawn as such, by file name: a row for each half-hour of each kind.

        Raises:
            InputError: a file that is missing or damaged.
        """
        return self._tables(PROFILE_RELEASES)

    def coverages(self) -> dict[str, pa.Table]:
        """Return the numbers of households with a usable day by file name, one file for each series of coverage.

        Raises:
            InputError: a file that is missing or damaged.
        """
        return self._tables(COVERAGES)

    def series_tables(self) -> dict[str, pa.Table]:
        """Return the tables of all series by file name.

        Raises:
            InputError: a file that is missing or damaged.
        """
        return {name: table for kind in RESULT_TABLES for name, table in self._tables(kind).items()}

    def _tables(self, kind: ResultTable) -> dict[str, pa.Table]:
        files = self._all_tables().files()
        return {name: self._arrow(name) for name in files if partitions.kind_of(name.removesuffix(".parquet")) is kind}

    def _all_tables(self) -> FolderTables:
        return FolderTables(self.path, self.checksums)

    @property
    def _stored(self) -> FolderTables:
        with suppress(InputError):  # a table can be read without checksums
            return self._all_tables()
        return FolderTables(self.path, {})

    def _arrow(self, name: str, months: Collection[str] = ()) -> pa.Table:
        return self._stored.table(name, months)

    @property
    def statement(self) -> dict[str, Any]:
        """Return the statement.

        Raises:
            InputError: statement.json is missing or damaged.
        """
        try:
            statement = foreign_files.parse_json(foreign_files.read_small_file(self.path, STATEMENT))
        except (OSError, ValueError):
            raise InputError(f"{STATEMENT} is missing or damaged; ask for the release again") from None
        if not isinstance(statement, dict):
            raise InputError(f"{STATEMENT} is not a statement; ask for the release again")
        return statement

    def read_statement(self) -> Statement:
        """Return the statement, validated.

        Raises:
            InputError: statement.json is missing, damaged or not as agedp writes it.
        """
        return read_folder_statement(self.path)

    @property
    def checksums(self) -> dict[str, str]:
        """Return the SHA-256 of each file by its name, as SHA256SUMS lists them.

        Raises:
            InputError: SHA256SUMS is missing or damaged.
        """
        return parse_checksums(read_checksum_text(self.path))

    def ledger_rows(self) -> LedgerExport:
        """Return the ledger rows that the tables were published from.

        Raises:
            InputError: ledger_rows.jsonl is missing or damaged.
        """
        export = self._stored.ledger_rows()
        return replace(export, head=self.read_statement().ledger.head) if self._stored.is_monthly else export

    def span_bounds(self, *, days: int | None, delta: str | float | Decimal) -> tuple[SpanBound, ...]:
        """Return the (epsilon, delta) bounds on the loss about one household over spans of days, from the rows alone.

        Use it for a folder of any version; its statement need not contain these bounds.

        Args:
            days: length of a window of consecutive days of the data; None for all days only.
            delta: probability above 0, such as "1e-6".

        Returns:
            The bound of the worst window, if `days` is a number, and that of all days.

        Raises:
            InputError: days or delta out of range, or ledger_rows.jsonl is missing or damaged.
        """
        return span_bounds(self.ledger_rows().rows, days, delta)

    def other_files(self) -> tuple[str, ...]:
        """Return the names of files in the folder that are not part of a release and are not verified."""
        return tuple(name for name in partitions.list_files(self.path) if not folder_files.is_release_file(name))

    def verify_files(self) -> LedgerExport:
        """Verify checksums, schema and tables, a part of verification: every published value must follow from its row.

        Returns:
            The ledger rows of the folder.

        Raises:
            InputError: a file or value that differs from what was published.
        """
        folder_files.check_sums(self.path, read_checksum_text(self.path), self.checksums)
        if self.statement.get("schema") not in (SCHEMA, *folder_files.WITHOUT_PACKAGE):
            raise InputError(f"{STATEMENT} is of a version that this agedp does not know; update agedp")
        statement, stored = self.read_statement(), self._all_tables()
        folder_files.check_one_layout(stored.checksums.keys())
        export = self.ledger_rows()
        try:
            contracts, releases = verification.contracts_and_releases(export)
            verification.check_rows(statement, releases, contracts)
            paths = [name for name in stored.checksums if name.endswith(".parquet")]
            read = partial(stored.read, max_rows=stored.max_rows)
            verification.check_tables(
                paths, read, statement, partitions.partitions_of(export.rows, monthly=stored.is_monthly)
            )
            verification.check_claims(statement, export, words=foreign_files.read_small_file(self.path, WORDS).decode())
        except _INCOMPLETE:
            raise InputError(_INCOMPLETE_TEXT) from None
        folder_files.check_package(self.path, stored.checksums, statement)
        return export
