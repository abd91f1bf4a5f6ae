"""LEDGER rows -> published tables: averages, their layers, distributions, profiles, coverage; a file for each series.

The tables are Parquet, each with its guarantee: one JSON key in the schema's metadata. Publication writes them,
verification computes them again from the rows in the folder.

Decisions:

* Verification compares cell by cell with tables that are computed again from the ledger rows beside them. The rows in
  `ledger_rows.jsonl` are what was drawn; every column of a table follows from them, from the contracts among them and
  from the coverage of the intervals. Nothing here needs a ledger, Dask or Prefect.
* A standard deviation may differ by 1e-9 of itself, because platforms round e^x differently. Every other cell is exact.
* A guarantee may lack keys that came later, and have keys that this version does not know; keys of both agree.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from functools import partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from agedp.release_folder.level_column import with_level_column
from agedp.release_folder.monthly_profile_table import monthly_profile_table
from agedp.release_folder.profile_table import ProfileTerms, profile_table
from agedp.release_folder.published_series import FILES, PublishedSeries, list_published_series
from agedp.row_means import NoisyMean, noisy_means
from agedp_data import mechanisms, table_schemas
from agedp_data.config.contract_values import interval_minutes_of, meaning_of
from agedp_data.config.model_section import contract_states
from agedp_data.datasets.layout import Layout
from agedp_data.datasets.registry import layout_of
from agedp_data.epsilon import to_float
from agedp_data.foreign_files import parse_json
from agedp_data.ledger import ContractRecord, ReleaseRecord
from agedp_data.parameters import exact_text
from agedp_data.series.layers import layer_number
from agedp_data.series.profile import Profile
from agedp_data.series.series import AnySeries, Distribution, series_in
from agedp_data.statement.document import Statement

METADATA_KEY: Final = b"agedp"


def averages_table(rows: Sequence[ReleaseRecord], *, coverage: Decimal, versions: Mapping[str, int]) -> pa.Table:
    """Return the daily averages of released rows; intervals cover only the noise of `mean_kwh`."""
    lines = averages_lines(rows, coverage=coverage, versions=versions)
    return table_schemas.table_from_rows(table_schemas.DAILY_AVERAGES, lines)


def averages_lines(
    rows: Sequence[ReleaseRecord], *, coverage: Decimal, versions: Mapping[str, int]
) -> list[dict[str, Any]]:
    """Return the lines of a table of means."""
    half_widths = {scale: mechanisms.interval(scale, coverage) for scale in {row.scale for row in rows}}
    return [
        _averages_row(row, cell, value, half_widths[row.scale], versions)
        for row in sorted(rows, key=_day_and_revision)
        for cell, value in zip(noisy_means(row), row.values, strict=True)
    ]


def layers_table(rows: Sequence[ReleaseRecord], *, coverage: Decimal, versions: Mapping[str, int]) -> pa.Table:
    """Return the upper layers of daily averages of released rows, those of a day together."""
    by_layer: dict[int, list[ReleaseRecord]] = {}
    for row in rows:
        by_layer.setdefault(layer_number(row.series), []).append(row)
    lines = [
        {**line, "layer": layer}
        for layer, of_layer in sorted(by_layer.items())
        for line in averages_table(of_layer, coverage=coverage, versions=versions).to_pylist()
    ]
    lines.sort(key=lambda line: (line["day"], line["revision"]))
    return table_schemas.table_from_rows(table_schemas.DAILY_AVERAGE_LAYERS, lines)


def coverage_table(rows: Sequence[ReleaseRecord], *, coverage: Decimal, versions: Mapping[str, int]) -> pa.Table:
    """Return the counts of usable household-days of released rows; intervals, of the share, cover only the noise."""
    scales = {row.scale for row in rows}
    noise = {scale: (mechanisms.standard_deviation(scale), mechanisms.interval(scale, coverage)) for scale in scales}
    table_rows = []
    for row in sorted(rows, key=_day_and_revision):
        deviation, half_width = noise[row.scale]
        table_rows += [
            {
                **_release_columns(row, group, versions),
                "households": households,
                "usable_noisy": value,
                "noise_sd": deviation,
                "coverage": value / households,
                "low": (value - half_width) / households,
                "high": (value + half_width) / households,
            }
            for group, value, households in zip(row.cells, row.values, row.households, strict=True)
        ]
    return table_schemas.table_from_rows(table_schemas.DAILY_COVERAGE, table_rows)


def periods_table(
    rows: Sequence[ReleaseRecord],
    *,
    series: Mapping[str, Mapping[str, AnySeries]],
    coverage: Decimal,
    versions: Mapping[str, int],
) -> pa.Table:
    """Return the means of released rows that cover a week, month or year; `series` by contract of its rows and name."""
    lines = averages_lines(rows, coverage=coverage, versions=versions)
    firsts = {row.day: series[row.contract][row.series].covered_days(date.fromisoformat(row.day))[0] for row in rows}
    table_rows = [
        {**line, "first_day": firsts[line["day"].isoformat()], "household_days": line["households"]} for line in lines
    ]
    names = table_schemas.PERIOD_RELEASES.names
    rows_of_table = [{name: line[name] for name in names} for line in table_rows]
    return table_schemas.table_from_rows(table_schemas.PERIOD_RELEASES, rows_of_table)


def distribution_table(
    rows: Sequence[ReleaseRecord], *, series: Mapping[str, Mapping[str, AnySeries]], versions: Mapping[str, int]
) -> pa.Table:
    """Return the counts of released rows by group and range of use; `series` by the contract of its rows and name."""
    deviation = {scale: mechanisms.standard_deviation(scale) for scale in {row.scale for row in rows}}
    table_rows = []
    for row in sorted(rows, key=_day_and_revision):
        distribution = series[row.contract][row.series]
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
    return table_schemas.table_from_rows(table_schemas.DAILY_DISTRIBUTION, table_rows)


def _day_and_revision(row: ReleaseRecord) -> tuple[str, int]:
    return row.day, row.revision


def _averages_row(
    row: ReleaseRecord, cell: NoisyMean, value: int, half_width: int, versions: Mapping[str, int]
) -> dict[str, Any]:
    wh_per_kwh_mean = 1000.0 * cell.households
    return {
        **_release_columns(row, cell.group, versions),
        "households": cell.households,
        "noisy_sum_wh": value,
        "mean_kwh": cell.mean_kwh,
        "noise_sd_kwh": cell.noise_sd_kwh,
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


def parquet_bytes(table: pa.Table) -> bytes:
    """Return a table as a Parquet file; the same table, the same bytes."""
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd")
    return sink.getvalue()


def stored_table(content: bytes | None) -> pa.Table | None:
    """Return the table of a Parquet file, None without a file; the inverse of `parquet_bytes`."""
    return None if content is None else pq.read_table(pa.BufferReader(content))


def table_files(
    statement: Statement, rows: Sequence[ReleaseRecord], contracts: Sequence[ContractRecord], *, coverage: Decimal
) -> dict[str, bytes]:
    """Return the Parquet file of every series that was ever published, by file name."""
    return {
        series.file: parquet_bytes(series_table(series, statement, rows, contracts, coverage=coverage))
        for series in list_published_series(rows, contracts)
    }


def series_table(
    series: PublishedSeries,
    statement: Statement,
    rows: Sequence[ReleaseRecord],
    contracts: Sequence[ContractRecord],
    *,
    coverage: Decimal,
) -> pa.Table:
    """Return the table of one series with its guarantee in the metadata of the schema; `coverage` of the intervals."""
    return table_with_guarantee(series, common_guarantee(statement), rows, contracts, coverage=coverage)


def table_with_guarantee(
    series: PublishedSeries,
    common: Mapping[str, Any],
    rows: Sequence[ReleaseRecord],
    contracts: Sequence[ContractRecord],
    *,
    coverage: Decimal,
) -> pa.Table:
    """Return the table of one series; `common` is the part of its guarantee that other tables have as well."""
    versions = {contract.hash: number for number, contract in enumerate(contracts, 1)}
    terms = {str(versions[contract]): of_contract for contract, of_contract in series.terms.items()}
    released = [row for row in rows if series.has(row) and row.state == "released"]
    guarantee = {
        **common,
        "interval": {"coverage": str(coverage), "covers": "the noise and nothing else"},
        "of": series.name,
        "schema": f"agedp-{FILES[series.kind].replace('_', '-')}-1",
    }
    states = {
        str(versions[contract.hash]): _represented_states(meaning_of(contract.promise))
        for contract in contracts
        if any(of_series.get("values") == "states" for of_series in series.terms.get(contract.hash, {}).values())
    }
    if states:
        guarantee["states_by_version"] = states
    if series.kind == "distribution":
        by_contract = _series_by_name(series)
        table = with_level_column(series, released, partial(distribution_table, series=by_contract, versions=versions))
        guarantee["series_by_version"] = {
            number: of_contract.get(series.name, of_contract) for number, of_contract in terms.items()
        }
    elif series.kind == "periods":
        by_contract = _series_by_name(series)
        make_table = partial(periods_table, series=by_contract, coverage=coverage, versions=versions)
        table = with_level_column(series, released, make_table)
        guarantee["series_by_version"] = {
            number: of_contract.get(series.name, of_contract) for number, of_contract in terms.items()
        }
    elif series.kind == "layers":
        table = layers_table(released, coverage=coverage, versions=versions)
        guarantee["layers_by_version"] = {number: _layer_ranges(of_contract) for number, of_contract in terms.items()}
    elif series.kind in ("profile", "profile months"):
        table_of_rows = profile_table if series.kind == "profile" else monthly_profile_table
        make_table = partial(table_of_rows, terms=_profile_terms(series, contracts, versions), coverage=coverage)
        table = with_level_column(series, released, make_table)
        guarantee |= _by_version(terms, "clamp_kwh", "half_hour_clamp_kwh")
    elif series.kind == "coverage":
        table = with_level_column(series, released, partial(coverage_table, coverage=coverage, versions=versions))
        guarantee |= _by_version(terms, "max_missing")
    else:
        table = with_level_column(series, released, partial(averages_table, coverage=coverage, versions=versions))
        guarantee |= _by_version(terms, "clamp_kwh")
    return table.replace_schema_metadata({METADATA_KEY: json.dumps(guarantee, sort_keys=True, ensure_ascii=True)})


def _series_by_name(series: PublishedSeries) -> dict[str, dict[str, AnySeries]]:
    """Return the series of a table by contract and name."""
    return {
        contract: {name: series_in(table) for name, table in of_contract.items()}
        for contract, of_contract in series.terms.items()
    }


def _by_version(terms: Mapping[str, Mapping[str, Mapping[str, Any]]], *keys: str) -> dict[str, dict[str, Any]]:
    """Return keys of a series by the version of its rows, each under a name of its own."""
    return {
        f"{key}_by_version": {number: of[key] for number, of_contract in terms.items() for of in of_contract.values()}
        for key in keys
    }


def _profile_terms(
    series: PublishedSeries, contracts: Sequence[ContractRecord], versions: Mapping[str, int]
) -> dict[str, ProfileTerms]:
    """Return what each contract that has a series of profiles says of it, by the contract's hash; levels agree."""
    profiles = {contract: next(iter(of_name.values())) for contract, of_name in _series_by_name(series).items()}
    return {
        contract.hash: ProfileTerms(profile, contract_layout(contract), versions[contract.hash])
        for contract in contracts
        if isinstance(profile := profiles.get(contract.hash), Profile)
    }


def contract_layout(contract: ContractRecord) -> Layout:
    """Return the layout of the input files under a contract."""
    terms = meaning_of(contract.promise)
    return layout_of(terms["input"]["dataset"], terms["input"].get("columns"), interval_minutes_of(terms))


def _layer_ranges(of_contract: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, str]]:
    """Return the range of each upper layer by its number, kWh as text."""
    return {
        str(layer_number(name)): {key: terms[key] for key in ("above_kwh", "clamp_kwh")}
        for name, terms in of_contract.items()
    }


def common_guarantee(statement: Statement) -> dict[str, Any]:
    """Return the part of the guarantee that the metadata of every table contain."""
    content = statement.content()
    layout = statement.contract.input
    stated = ("title", "source", "licence", "contact", "population", "rehearsal", "figures", "draws", "ledger")
    return {
        **{key: content[key] for key in stated if key in content},
        "promise": content["contract"]["promise"],
        "series": content["contract"]["series"],
        "day_zone": layout_of(layout.dataset, layout.columns).day_zone,
    }


def _represented_states(terms: Mapping[str, Any]) -> dict[str, Any]:
    """Return edges and representative values of the states that series of a contract count, kWh as text."""
    states = contract_states(terms)
    if states is None:
        return {}
    edges_kwh, values_kwh = (
        [exact_text(Decimal(wh) / 1000) for wh in values_wh]
        for values_wh in (states.edges_wh, states.representative_values_wh)
    )
    return {"step": states.step, "edges_kwh": edges_kwh, "counts_as_kwh": values_kwh}


def read_guarantee(schema: pa.Schema) -> dict[str, Any]:
    """Return the guarantee in the metadata of a table's schema.

    Raises:
        KeyError: the table has none.
        ValueError: the guarantee is no JSON object.
    """
    guarantee = parse_json((schema.metadata or {})[METADATA_KEY])
    if not isinstance(guarantee, dict):
        raise ValueError("the guarantee is no object")
    return guarantee
