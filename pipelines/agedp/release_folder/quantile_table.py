"""LEDGER rows -> quantiles and peak of the households' daily use, each with an interval, from the released counts.

The table is a function of the released counts alone, so it adds no privacy loss, and verification computes it again.
The mathematics is in `histogram_quantiles`: a least-squares fit, and ranges that the counts do not contradict.

Example: with 5,000 households, 10 ranges of use and noise of scale 20 the intervals of the median and of the shares
.9 and .99 are one or two ranges each.

Decisions:

* The shares are those of a box plot with the usual upper tail, .1 .25 .5 .75 .9 .95 .99, and 1: the largest use. Of the
  largest use only the lower end says something: so much was used by some household.
* The interval of each quantile has the coverage of the daily averages; all together hold less often.
* A row is a share, so that a plot or a query takes one column for all of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa

from agedp.budget import series_by_contract
from agedp.release_folder.result_tables import (
    METADATA_KEY,
    common_guarantee,
    parquet_bytes,
)
from agedp.release_folder.table_comparison import check_large_table, interval_coverage
from agedp_data import derived_schemas, table_schemas
from agedp_data.ledger import ContractRecord, ReleaseRecord
from agedp_data.series.histogram_quantiles import Integers, QuantileRanges, noisy_counts, quantile_ranges
from agedp_data.series.series import AnySeries, Distribution
from agedp_data.statement.document import Statement

QUANTILE_FILE: Final = "daily_quantiles.parquet"
SHARES: Final = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0)
_ROUNDED: Final = ("value_kwh",)


def quantile_files(
    statement: Statement, rows: Sequence[ReleaseRecord], contracts: Sequence[ContractRecord], *, coverage: Decimal
) -> dict[str, bytes]:
    """Return the file of the daily quantiles by its name; none if no contract releases a distribution."""
    table = quantile_table(statement, rows, contracts, coverage=coverage)
    return {} if table is None else {QUANTILE_FILE: parquet_bytes(table)}


def check_quantile_table(
    table: pa.Table, statement: Statement, rows: Sequence[ReleaseRecord], contracts: Sequence[ContractRecord]
) -> None:
    """Check that a table of daily quantiles follows from a folder's ledger rows.

    Raises:
        InputError: a guarantee, row or cell that differs; the message names day and column.
        LookupError, TypeError, ValueError, ArithmeticError: entries of a release are missing.
    """
    coverage = interval_coverage(table)
    expected = quantile_table(statement, rows, contracts, coverage=coverage)
    compare_quantiles(QUANTILE_FILE, table, expected)


def compare_quantiles(name: str, table: pa.Table, expected: pa.Table | None) -> None:
    """Check that a table of daily quantiles is the expected one.

    Raises:
        InputError: a guarantee, row or cell that differs; the message names day and column.
    """
    check_large_table(name, table, expected, rounded=_ROUNDED)


def quantile_table(
    statement: Statement, rows: Sequence[ReleaseRecord], contracts: Sequence[ContractRecord], *, coverage: Decimal
) -> pa.Table | None:
    """Return the daily quantiles with their guarantee in the metadata; None if no contract releases a distribution.

    Args:
        statement: the statement of the rows.
        rows: all release rows of the population.
        contracts: its contracts, oldest first.
        coverage: of each interval.
    """
    series = series_by_contract(contracts)
    if not any(isinstance(statistic, Distribution) for names in series.values() for statistic in names.values()):
        return None
    return quantiles_of_rows(rows, contracts, common_guarantee(statement), coverage=coverage)


def quantiles_of_rows(
    rows: Sequence[ReleaseRecord], contracts: Sequence[ContractRecord], common: Mapping[str, Any], *, coverage: Decimal
) -> pa.Table:
    """Return the daily quantiles of these rows; `common` is the part of the guarantee that other tables have too."""
    releases = list(_quantiles_by_release(rows, series_by_contract(contracts), coverage))
    versions = {contract.hash: number for number, contract in enumerate(contracts, 1)}
    guarantee = {
        **common,
        "interval": {"coverage": str(coverage), "covers": "the noise and nothing else"},
        "of": "quantiles of the released counts",
        "schema": "agedp-daily-quantiles-1",
    }
    table = table_schemas.table_from_columns(derived_schemas.DAILY_QUANTILES, **_columns(releases, versions))
    return table.replace_schema_metadata({METADATA_KEY: json.dumps(guarantee, sort_keys=True, ensure_ascii=True)})


@dataclass(frozen=True, slots=True)
class _ReleaseQuantiles:
    """Quantiles of one release: `ranges` of shape (groups, shares), `households` of shape (groups,)."""

    row: ReleaseRecord
    by: str
    groups: tuple[str, ...]
    households: Integers
    ranges: QuantileRanges


def _quantiles_by_release(
    rows: Sequence[ReleaseRecord], series: Mapping[str, Mapping[str, AnySeries]], coverage: Decimal
) -> Iterator[_ReleaseQuantiles]:
    """Yield the quantiles of each released row of counts, by day and series."""
    groups_of_cells: dict[tuple[str, str, tuple[str, ...]], tuple[str, ...]] = {}
    for row in sorted(rows, key=lambda row: (row.day, row.series)):
        statistic = series[row.contract].get(row.series)
        if row.state == "released" and isinstance(statistic, Distribution):
            key = row.contract, row.series, row.cells
            if key not in groups_of_cells:  # the cells of most days are the same
                groups_of_cells[key] = tuple(statistic.by_group(row.cells, row.households))
            shape = len(groups_of_cells[key]), -1
            households = np.array(row.households, np.int64).reshape(shape)[:, 0]
            noisy = noisy_counts(
                np.array(row.values, np.int64).reshape(shape),
                households=households,
                edges_kwh=[float(edge) for edge in statistic.bins_kwh],
                scale=row.scale,
                form=statistic.form,
            )
            ranges = quantile_ranges(noisy, SHARES, coverage=coverage)
            yield _ReleaseQuantiles(row, statistic.level, groups_of_cells[key], households, ranges)


def _columns(releases: Sequence[_ReleaseQuantiles], versions: Mapping[str, int]) -> dict[str, Any]:
    """Return the columns of all releases: groups one after the other, each with its shares."""
    lines = np.array([len(release.groups) * len(SHARES) for release in releases], np.int64)
    days = np.array([release.row.day for release in releases], "datetime64[D]").astype(np.int32)
    names = [name for release in releases for name in release.groups]
    return {
        "day": days.repeat(lines),
        "series": _repeated([release.row.series for release in releases], lines),
        "group_column": _repeated([release.by for release in releases], lines),
        "group": _repeated(names, np.full(len(names), len(SHARES))),
        "share": np.tile(SHARES, len(names)),
        "households": _joined([release.households for release in releases]).astype(np.int64).repeat(len(SHARES)),
        "value_kwh": _joined([release.ranges.value_kwh for release in releases]),
        "low_kwh": _joined([release.ranges.low_kwh for release in releases]),
        "high_kwh": _joined([release.ranges.high_kwh for release in releases]),
        "version": np.array([versions[release.row.contract] for release in releases], np.int32).repeat(lines),
    }


def _repeated(texts: Sequence[str], times: Integers) -> pa.Array:
    """Return texts, each repeated so many times."""
    codes = pa.array(texts, pa.string()).dictionary_encode()
    indices = pa.array(codes.indices.to_numpy().repeat(times))
    return pa.DictionaryArray.from_arrays(indices, codes.dictionary)


def _joined(arrays: Sequence[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    return np.concatenate([array.ravel() for array in arrays]) if arrays else np.zeros(0)
