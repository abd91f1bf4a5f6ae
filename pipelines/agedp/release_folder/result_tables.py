"""LEDGER rows -> published tables, daily averages and daily distributions, and the file of each series ever published.

The tables are Parquet, each with its guarantee: one JSON key in the schema's metadata. Publication writes them,
verification computes them again from the rows in the folder.

Decisions:

* The first series of a statistic keeps the plain file name.
* A series that was ended and later continued with another statistic is two series: a row belongs to the one of its
  contract.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from agedp_data import mechanisms, table_schemas
from agedp_data.config.contract_values import meaning_of
from agedp_data.config.model_section import contract_states
from agedp_data.datasets.registry import layout_of
from agedp_data.epsilon import to_float
from agedp_data.ledger import ContractRecord, ReleaseRecord
from agedp_data.parameters import exact_text
from agedp_data.series.series import AnySeries, Distribution, series_in
from agedp_data.statement.document import Statement

MEANS: Final = "daily_averages"
DISTRIBUTION: Final = "daily_distribution"
METADATA_KEY: Final = b"agedp"


def averages_table(rows: Sequence[ReleaseRecord], *, coverage: Decimal, versions: Mapping[str, int]) -> pa.Table:
    """Return the daily averages of released rows; intervals cover only the noise of `mean_kwh`."""
    noise_by_scale = {
        scale: (mechanisms.standard_deviation(scale), mechanisms.interval(scale, coverage))
        for scale in {row.scale for row in rows}
    }
    table_rows = [
        _averages_row(row, i, *noise_by_scale[row.scale], versions)
        for row in sorted(rows, key=_day_and_revision)
        for i in range(len(row.cells))
    ]
    return table_schemas.table_from_rows(table_schemas.DAILY_AVERAGES, table_rows)


def distribution_table(
    rows: Sequence[ReleaseRecord], *, series: Mapping[str, AnySeries], versions: Mapping[str, int]
) -> pa.Table:
    """Return the counts of released rows by group and range of use; `series` by the contract of its rows."""
    deviation = {scale: mechanisms.standard_deviation(scale) for scale in {row.scale for row in rows}}
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
    return table_schemas.table_from_rows(table_schemas.DAILY_DISTRIBUTION, table_rows)


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


def parquet_bytes(table: pa.Table) -> bytes:
    """Return a table as a Parquet file; the same table, the same bytes."""
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd")
    return sink.getvalue()


FILES: Final[Mapping[str, str]] = {"mean": MEANS, "distribution": DISTRIBUTION}
"""File name of each statistic, without ending."""


@dataclass(frozen=True, slots=True)
class PublishedSeries:
    """A series of one statistic: its file, and its terms by the hash of each contract that has it."""

    name: str
    statistic: str
    file: str = ""
    terms: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    def has(self, row: ReleaseRecord) -> bool:
        """Return whether a row is of this series and statistic."""
        return row.series == self.name and row.contract in self.terms


def list_published_series(rows: Sequence[ReleaseRecord], contracts: Sequence[ContractRecord]) -> list[PublishedSeries]:
    """Return the series, means first, by first release, then by name; a series without a release has a file too."""
    terms_by_series: dict[tuple[str, str], dict[str, Mapping[str, Any]]] = {}
    for contract in contracts:
        for name, terms in meaning_of(contract.promise)["series"].items():
            terms_by_series.setdefault((terms["statistic"], name), {})[contract.hash] = terms
    ordered = []
    for statistic, file in FILES.items():
        in_contracts = [name for kind, name in sorted(terms_by_series) if kind == statistic]
        released = [row.series for row in rows if row.contract in terms_by_series.get((statistic, row.series), {})]
        for index, name in enumerate(dict.fromkeys([*released, *in_contracts])):
            file_name = f"{file}.parquet" if index == 0 else f"{file}_{name}.parquet"
            ordered.append(PublishedSeries(name, statistic, file_name, terms_by_series[statistic, name]))
    return ordered


def series_table(
    series: PublishedSeries,
    statement: Statement,
    rows: Sequence[ReleaseRecord],
    contracts: Sequence[ContractRecord],
    *,
    coverage: Decimal,
) -> pa.Table:
    """Return the table of one series with its guarantee in the metadata of the schema; `coverage` of the intervals."""
    versions = {contract.hash: number for number, contract in enumerate(contracts, 1)}
    terms = {str(versions[contract]): series_terms for contract, series_terms in series.terms.items()}
    released = [row for row in rows if series.has(row) and row.state == "released"]
    guarantee = {
        **_common_guarantee(statement, coverage),
        "of": series.name,
        "schema": f"agedp-{FILES[series.statistic].replace('_', '-')}-1",
    }
    states = {
        str(versions[contract.hash]): _represented_states(meaning_of(contract.promise))
        for contract in contracts
        if series.terms.get(contract.hash, {}).get("values") == "states"
    }
    if states:
        guarantee["states_by_version"] = states
    if series.statistic == "distribution":
        table = distribution_table(
            released,
            series={name: series_in(series_terms) for name, series_terms in series.terms.items()},
            versions=versions,
        )
        guarantee["series_by_version"] = terms
    else:
        table = averages_table(released, coverage=coverage, versions=versions)
        guarantee["clamp_kwh_by_version"] = {
            number: series_terms["clamp_kwh"] for number, series_terms in terms.items()
        }
    return table.replace_schema_metadata({METADATA_KEY: json.dumps(guarantee, sort_keys=True, ensure_ascii=True)})


def _common_guarantee(statement: Statement, coverage: Decimal) -> dict[str, Any]:
    """Return the part of the guarantee that the metadata of every table contain."""
    content = statement.content()
    layout = statement.contract.input
    stated = ("title", "source", "licence", "contact", "population", "rehearsal", "figures", "ledger")
    return {
        **{key: content[key] for key in stated if key in content},
        "promise": content["contract"]["promise"],
        "series": content["contract"]["series"],
        "interval": {"coverage": str(coverage), "covers": "the noise and nothing else"},
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
        ValueError: the guarantee is not JSON.
    """
    guarantee: dict[str, Any] = json.loads((schema.metadata or {})[METADATA_KEY])
    return guarantee
