"""A release folder for its recipients: read the tables and the statement, and verify that nothing was changed."""

from __future__ import annotations

import re
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from agedp.release_folder.derived_tables import whole_table
from agedp.release_folder.folder_files import (
    PACKAGE,
    REPORT,
    ROWS,
    STATEMENT,
    SUMS,
    WITHOUT_PACKAGE,
    WORDS,
    check_one_layout,
    check_package,
    check_sums,
    is_release_file,
)
from agedp.release_folder.folder_statement import (
    parse_checksums,
    read_checksum_text,
    read_folder_statement,
    read_statement_document,
    release_path,
)
from agedp.release_folder.folder_tables import FolderTables
from agedp.release_folder.partitioned_tables import kind_of
from agedp.release_folder.partitions import list_files, partitions_of
from agedp.release_folder.result_tables import common_guarantee
from agedp.release_folder.span_bounds import SpanBound, span_bounds
from agedp.release_folder.statement_check import check_claims, check_rows, contracts_and_releases
from agedp.release_folder.table_comparison import check_tables, interval_coverage
from agedp_data.errors import InputError
from agedp_data.foreign_files import read_small_file
from agedp_data.ledger.transfer import LedgerExport
from agedp_data.messages import escape_text
from agedp_data.series.coverage import COVERAGES
from agedp_data.series.distribution_tables import DISTRIBUTIONS, QUANTILES
from agedp_data.series.mean_tables import AVERAGES, AVERAGES_BY, CONSISTENT, LAYERS, PERIOD_RELEASES, Period
from agedp_data.series.profile_tables import PROFILE_BY_MONTH, PROFILE_RELEASES, PROFILES
from agedp_data.series.result_table import DerivedTable, Noise, ResultTable
from agedp_data.series.series import RESULT_TABLES
from agedp_data.statement.document import SCHEMA, Statement

if TYPE_CHECKING:
    import pandas as pd

    from agedp.release_verification import Verification

__all__ = [
    "PACKAGE",
    "REPORT",
    "ROWS",
    "STATEMENT",
    "SUMS",
    "WORDS",
    "ReleaseFolder",
    "is_release_file",
    "open_release",
]

_INCOMPLETE = (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, RecursionError, MemoryError)
_INCOMPLETE_TEXT = f"its tables, {ROWS} or {STATEMENT} lack entries of a release"


@dataclass(frozen=True, slots=True)
class ReleaseFolder:
    """A release folder: Parquet tables, statement, data package, checksums."""

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
        if period not in AVERAGES_BY:
            raise InputError(f"period = {period!r}: must be one of {', '.join(map(repr, AVERAGES_BY))}")
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
        contracts, rows = contracts_and_releases(self.ledger_rows())
        try:
            tables = self.series_tables()
            noise = Noise(interval_coverage(tables[min(tables)]))
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
        return {name: self._arrow(name) for name in files if kind_of(name.removesuffix(".parquet")) is kind}

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
        return read_statement_document(self.path)

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
        return tuple(name for name in list_files(self.path) if not is_release_file(name))

    def verify(self) -> Verification:
        """Verify checksums, tables, statement and texts: everything must follow from the ledger rows in the folder.

        Returns:
            What was compared, and what was not.

        Raises:
            InputError: a file, figure or text that does not; the message names it.
        """
        from agedp.release_verification import verify_release  # noqa: PLC0415  (computes statement and report again)

        return verify_release(self)

    def verify_files(self) -> LedgerExport:
        """Verify checksums, schema and tables, a part of `verify`: every published value must follow from its row.

        Returns:
            The ledger rows of the folder.

        Raises:
            InputError: a file or value that differs from what was published.
        """
        check_sums(self.path, read_checksum_text(self.path), self.checksums)
        if self.statement.get("schema") not in (SCHEMA, *WITHOUT_PACKAGE):
            raise InputError(f"{STATEMENT} is of a version that this agedp does not know; update agedp")
        statement, stored = self.read_statement(), self._all_tables()
        check_one_layout(stored.checksums.keys())
        export = self.ledger_rows()
        try:
            contracts, releases = contracts_and_releases(export)
            check_rows(statement, releases, contracts)
            self._check_tables(stored, statement, export)
            check_claims(statement, export, words=self._words())
        except _INCOMPLETE:
            raise InputError(_INCOMPLETE_TEXT) from None
        check_package(self.path, stored.checksums, statement)
        return export

    def _check_tables(self, stored: FolderTables, statement: Statement, export: LedgerExport) -> None:
        paths = [path for path in stored.checksums if path.endswith(".parquet")]
        read = partial(stored.read, max_rows=stored.max_rows)
        check_tables(paths, read, statement, partitions_of(export.rows, monthly=stored.is_monthly))

    def _words(self) -> str:
        return read_small_file(self.path, WORDS).decode()


def open_release(folder: str | Path) -> ReleaseFolder:
    """Return the release folder at a path; use it to read or verify a release.

    Raises:
        InputError: the folder does not exist, may not be read, contains estimates, or is a URL.

    >>> import numpy as np, pandas as pd, agedp
    >>> times = pd.date_range("2026-01-05", periods=96, freq="30min", tz="UTC")
    >>> columns = {"household_id": np.repeat(["A", "B"], 96), "interval_start": [*times, *times], "energy_wh": 200}
    >>> readings = pd.DataFrame(columns)
    >>> promise = agedp.Classical(epsilon_per_day=0.5, max_day_epsilon=0.5, epsilon_total=100)
    >>> from tempfile import mkdtemp
    >>> saved = agedp.release(readings, promise=promise, clamp_kwh=50, min_households=2).save(mkdtemp())
    >>> received = open_release(saved.path)
    >>> received.verify().compared[:3]
    ('checksums', 'tables', 'statement.json')
    >>> len(received.table()), received.statement["population"]
    (2, 'households')
    """
    return ReleaseFolder(release_path(folder))
