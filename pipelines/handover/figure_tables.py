"""LEDGER rows -> published tables: daily averages and daily distributions, each with its guarantee, as Parquet."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from agedp_data import noise, tables
from agedp_data.config.series import AnySeries, Distribution
from agedp_data.ledger import ReleaseRecord
from agedp_data.losses import to_float
from pipelines.handover.checked_figures import METADATA_KEY


def averages_table(rows: Sequence[ReleaseRecord], *, coverage: Decimal, versions: Mapping[str, int]) -> pa.Table:
    """Return the daily averages of released rows; intervals cover only the noise of `mean_kwh`."""
    noise_by_scale = {
        scale: (noise.standard_deviation(scale), noise.interval(scale, coverage))
        for scale in {row.scale for row in rows}
    }
    table_rows = [
        _averages_row(row, i, *noise_by_scale[row.scale], versions)
        for row in sorted(rows, key=_day_and_revision)
        for i in range(len(row.cells))
    ]
    return tables.table_from_rows(tables.DAILY_AVERAGES, table_rows)


def distribution_table(
    rows: Sequence[ReleaseRecord], *, series: Mapping[str, AnySeries], versions: Mapping[str, int]
) -> pa.Table:
    """Return the counts of released rows by group and range of use; `series` by the contract of its rows."""
    deviation = {scale: noise.standard_deviation(scale) for scale in {row.scale for row in rows}}
    table_rows = []
    for row in sorted(rows, key=_day_and_revision):
        distribution = series[row.contract]
        if isinstance(distribution, Distribution):
            cells = map(distribution.place, row.cells)
            table_rows += [
                {
                    **_release_columns(row, group, versions),
                    "bin_low_kwh": float(low),
                    "bin_high_kwh": float(high),
                    "households_noisy": value,
                    "noise_sd": deviation[row.scale],
                }
                for (group, low, high), value in zip(cells, row.values, strict=True)
            ]
    return tables.table_from_rows(tables.DAILY_DISTRIBUTION, table_rows)


def _day_and_revision(row: ReleaseRecord) -> tuple[str, int]:
    return row.day, row.revision


def _averages_row(
    row: ReleaseRecord, cell: int, deviation: float, half_width: int, versions: Mapping[str, int]
) -> dict[str, Any]:
    wh_per_kwh_mean = 1000.0 * row.households[cell]
    value = row.values[cell]
    return {
        **_release_columns(row, row.cells[cell], versions),
        "households": row.households[cell],
        "noisy_sum_wh": value,
        "mean_kwh": value / wh_per_kwh_mean,
        "noise_sd_kwh": deviation / wh_per_kwh_mean,
        "low_kwh": (value - half_width) / wh_per_kwh_mean,
        "high_kwh": (value + half_width) / wh_per_kwh_mean,
    }


def _release_columns(row: ReleaseRecord, group: str, versions: Mapping[str, int]) -> dict[str, Any]:
    """Return the columns of a release that every table has."""
    return {
        "day": date.fromisoformat(row.day),
        "group": group,
        "revision": row.revision,
        "published_on": date.fromisoformat(row.published_on),
        "epsilon": to_float(row.loss),
        "version": versions[row.contract],
    }


def add_guarantee(table: pa.Table, guarantee: Mapping[str, Any]) -> pa.Table:
    """Return the table with its guarantee in the schema metadata, one JSON key."""
    text = json.dumps(guarantee, sort_keys=True, ensure_ascii=True).encode()
    return table.replace_schema_metadata({METADATA_KEY: text})


def parquet_bytes(table: pa.Table) -> bytes:
    """Return a table as a Parquet file; the same table, the same bytes."""
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd")
    return sink.getvalue()
