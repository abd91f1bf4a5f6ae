"""LEDGER rows -> the tables of a release folder: those of released values, derived ones, and the guarantee of each.

The tables are Parquet, each with its guarantee: one JSON key in the schema's metadata. Publication writes them,
verification computes them again from the rows in the folder. What a statistic's rows become, and what is derived from
them, is the statistic's own (`series.result_table`); nothing here knows one by name.

Derived tables are functions of the released rows alone, at no privacy loss: consistent averages, averages of weeks,
months and years, mean profiles of weekdays and weekends by month, daily quantiles. Their lines are published once none
of the rows that a line needs is still to be released. A line is of the month in which that became so. `newly_closed`
finds the lines of a month from the rows of a span of days: those since the earliest day that was still open when the
month before ended.

Decisions:

* The first series of a kind of table keeps the plain file name.
* Layer 1 of a mean with a list of clamps (`layered_mean`) is in the file of the mean, before and after an amendment
  that changes the number of clamps. Its upper layers, which are no means of a day, have a file of their own.
* The levels of a hierarchy share a table, whose column `level` says which level a row is of; coarse ones come first.
  The table of a series without levels lacks the column, so the tables of earlier versions stay as they are. A table has
  the column from its first level on, also for the days before an amendment that began levels.
* A series that was ended and later continued with another statistic is two series: a row belongs to the one of its
  contract.
* Every column of a table follows from the ledger rows, from the contracts among them and from the coverage of the
  intervals. Nothing here needs a database, Dask or Prefect.
* A guarantee may lack keys that came later, and have keys that this version does not know; keys of both agree.
* Which derived lines a month closed follows from the headers of the rows. Only those of the lines to be written are
  read completely, so a night costs what its month does.
* If layers of different groups enter a period that was closed already, the lines of the period are written once more,
  unchanged.
* A line that changes is new: if an amendment extends a schedule that cut a week, the week has another line in a later
  month, and readers take the later one.
* A month that amends the contract may open or close any day, so all rows are considered in it.
* A folder that lacks a derived table verifies: those of earlier versions lack them, and each can be computed from the
  folder's rows (`ReleaseFolder.period_averages`). A table that is there must be the whole table.
"""

from __future__ import annotations

import io
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from agedp.budget import closed_days, days_by_row, series_by_contract
from agedp_data import table_schemas
from agedp_data.datasets.timestamps import day_number
from agedp_data.epsilon import exact_text, to_float
from agedp_data.foreign_files import parse_json
from agedp_data.ledger import ContractRecord, ReleaseRecord
from agedp_data.ledger.records import outline_of
from agedp_data.ledger.transfer import MonthRows
from agedp_data.markov.states import RepresentativeValues
from agedp_data.series.result_table import Columns, ContractTerms, DerivedTable, Noise, ResultTable, Span, Terms, Unit
from agedp_data.series.series import RESULT_TABLES, level_column, table_name
from agedp_data.series.series_terms import Series, days_of, layer_number, mean_name, period_of
from agedp_data.statement.document import Statement
from agedp_data.table_schemas import LEVEL

if TYPE_CHECKING:
    from agedp_data.ledger.ledger_reader import LedgerReader


METADATA_KEY: Final = b"agedp"


def contract_terms(contracts: Sequence[ContractRecord]) -> Terms:
    """Return what tables depend on of each contract, by its hash, oldest first."""
    return {
        contract.hash: ContractTerms(contract.terms.series, contract.terms.layout, version)
        for version, contract in enumerate(contracts, 1)
    }


@dataclass(frozen=True, slots=True)
class PublishedSeries:
    """A table of the run file and one kind of its series: its file, and the series by contract and name.

    `name` is the table's name, which layers and levels share.
    """

    name: str
    table: ResultTable
    file: str = ""
    series: dict[str, dict[str, Series]] = field(default_factory=dict)

    def has(self, row: ReleaseRecord) -> bool:
        """Return whether a row is of this table and kind."""
        return row.series in self.series.get(row.contract, {})

    @property
    def has_levels(self) -> bool:
        """Return whether the series ever had levels."""
        return any(level_column(name) for of_contract in self.series.values() for name in of_contract)


def list_published_series(rows: Sequence[ReleaseRecord], contracts: Sequence[ContractRecord]) -> list[PublishedSeries]:
    """Return the series by kind of table, by first release, then by name; one without a release has a file too."""
    by_name: dict[tuple[str, str], dict[str, dict[str, Series]]] = {}
    for contract, terms in contract_terms(contracts).items():
        for name, series in terms.series.items():
            of_contracts = by_name.setdefault((series.table.file, table_name(name)), {})
            of_contracts.setdefault(contract, {})[name] = series
    ordered = []
    for table in RESULT_TABLES:
        in_contracts = [name for file, name in sorted(by_name) if file == table.file]
        released = [
            table_name(row.series)
            for row in rows
            if row.series in by_name.get((table.file, table_name(row.series)), {}).get(row.contract, {})
        ]
        for index, name in enumerate(dict.fromkeys([*released, *in_contracts])):
            file_name = f"{table.file}.parquet" if index == 0 else f"{table.file}_{name}.parquet"
            ordered.append(PublishedSeries(name, table, file_name, by_name[table.file, name]))
    return ordered


def released_table(
    table: ResultTable, rows: Iterable[ReleaseRecord], terms: Terms, noise: Noise, *, has_levels: bool = False
) -> pa.Table:
    """Return the table of released rows, by day; lines of one day by level or layer, coarse levels first."""
    ordered = sorted(rows, key=lambda row: (row.day, row.revision, *_place(row, terms)))
    lines = [_with_row(table, row, terms, noise, has_levels=has_levels) for row in ordered]
    schema = table.schema
    if has_levels:
        schema = schema.insert(schema.get_field_index("group") + 1, LEVEL)
    if any(isinstance(of_row["group"], pa.Array) for of_row in lines):  # thousands of cells a row
        tables = [table_schemas.table_from_columns(schema, **of_row) for of_row in lines]
        return pa.concat_tables([schema.empty_table(), *tables])
    columns = {name: [*chain.from_iterable(of_row[name] for of_row in lines)] for name in schema.names}
    return table_schemas.table_from_columns(schema, **columns)


def _place(row: ReleaseRecord, terms: Terms) -> tuple[int, str, int]:
    """Return the place of a row among those of its day: the depth and column of its level, then its layer."""
    series = terms[row.contract].series[row.series]
    return len(series.columns), level_column(row.series) or series.level, layer_number(row.series)


def _with_row(
    table: ResultTable, row: ReleaseRecord, terms: Terms, noise: Noise, *, has_levels: bool
) -> dict[str, Any]:
    """Return the columns of a row's lines, with those that every table has; each as a list, or as an array."""
    of_contract = terms[row.contract]
    lines: Columns = table.lines(row, of_contract, noise)
    constants = {
        "day": date.fromisoformat(row.day),
        "revision": row.revision,
        "published_on": date.fromisoformat(row.published_on),
        "epsilon": to_float(row.loss),
        "version": of_contract.version,
    }
    if has_levels:
        constants[LEVEL.name] = level_column(row.series) or of_contract.series[row.series].level
    number, is_array = len(lines["group"]), isinstance(lines["group"], pa.Array)
    return {
        name: value if isinstance(value, (list, tuple, np.ndarray, pa.Array)) else _repeated(value, number, is_array)
        for name, value in {**constants, **lines}.items()
    }


def _repeated(value: Any, number: int, is_array: bool) -> Any:  # noqa: ANN401
    if not is_array:
        return [value] * number
    return np.full(number, day_number(value) if isinstance(value, date) else value)


def parquet_bytes(table: pa.Table) -> bytes:
    """Return a table as a Parquet file; the same table, the same bytes."""
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd")
    return sink.getvalue()


def series_table(
    series: PublishedSeries,
    common: Mapping[str, Any],
    rows: Sequence[ReleaseRecord],
    contracts: Sequence[ContractRecord],
    noise: Noise,
) -> pa.Table:
    """Return the table of one series with its guarantee in the metadata of the schema.

    Args:
        series: the table of the run file.
        common: the part of its guarantee that other tables have as well.
        rows: all release rows, or those of a month.
        contracts: the contracts up to the newest row, oldest first.
        noise: of the values.
    """
    terms = contract_terms(contracts)
    released = (row for row in rows if row.state == "released" and series.has(row))
    table = released_table(series.table, released, terms, noise, has_levels=series.has_levels)
    of_contract = {contract.hash: contract.terms for contract in contracts}
    by_version = {
        str(terms[contract].version): {name: of_contract[contract].series_keys(name) for name in names}
        for contract, names in series.series.items()
    }
    guarantee = {**common, **_interval(noise), "of": series.name, "schema": _schema_name(series.table.file)}
    states = {
        str(terms[contract].version): _represented_states(of_contract[contract].states)
        for contract, names in series.series.items()
        if any(of.counts_states for of in names.values())
    }
    if states:
        guarantee["states_by_version"] = states
    return with_guarantee(table, guarantee | _terms_by_version(series, by_version))


def _terms_by_version(
    series: PublishedSeries, by_version: Mapping[str, Mapping[str, Mapping[str, Any]]]
) -> dict[str, Any]:
    """Return what the guarantee says of the series under each contract: some keys, all of them, or ranges of layers."""
    if any(layer_number(name) > 1 for of in by_version.values() for name in of):
        ranges = {
            version: {
                str(layer_number(name)): {key: terms[key] for key in ("above_kwh", "clamp_kwh")}
                for name, terms in of.items()
            }
            for version, of in by_version.items()
        }
        return {"layers_by_version": ranges}
    if not series.table.keys:
        return {"series_by_version": {number: of.get(series.name, of) for number, of in by_version.items()}}
    return {
        f"{key}_by_version": {number: terms[key] for number, of in by_version.items() for terms in of.values()}
        for key in series.table.keys
    }


def _schema_name(file: str) -> str:
    return f"agedp-{file.replace('_', '-')}-1"


def _interval(noise: Noise) -> dict[str, Any]:
    return {"interval": {"coverage": str(noise.coverage), "covers": "the noise and nothing else"}}


def with_guarantee(table: pa.Table, guarantee: Mapping[str, Any]) -> pa.Table:
    """Return a table with its guarantee in the metadata of the schema."""
    return table.replace_schema_metadata({METADATA_KEY: json.dumps(guarantee, sort_keys=True, ensure_ascii=True)})


def derived_guarantee(common: Mapping[str, Any], noise: Noise | None, *, of: str, file: str) -> dict[str, Any]:
    """Return the guarantee of a derived table; `noise` is that of its intervals, if it has any."""
    return {**common, **({} if noise is None else _interval(noise)), "of": of, "schema": _schema_name(file)}


def common_guarantee(statement: Statement) -> dict[str, Any]:
    """Return the part of the guarantee that the metadata of every table contain."""
    content = statement.content()
    stated = ("title", "source", "licence", "contact", "population", "rehearsal", "figures", "draws", "ledger")
    return {
        **{key: content[key] for key in stated if key in content},
        "promise": content["contract"]["promise"],
        "series": content["contract"]["series"],
        "day_zone": statement.contract.terms.layout.day_zone,
    }


def _represented_states(states: RepresentativeValues | None) -> dict[str, Any]:
    """Return edges and representative values of the states that series of a contract count, kWh as text."""
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


@dataclass(frozen=True, slots=True)
class Partition:
    """Release rows that are published in one file of each table: those of one month of publication, or all.

    Rows of partitions of which no table is computed may be outlines (`records.outline_of`).

    Attributes:
        month: of publication, "" for all rows.
        head: hash of its newest ledger row.
        rows: its release rows.
        contracts: all contracts up to its newest row, oldest first.
        amended: hashes of the contracts that were registered in it.
    """

    month: str
    head: str
    rows: tuple[ReleaseRecord, ...]
    contracts: tuple[ContractRecord, ...]
    amended: frozenset[str] = frozenset()


def monthly_partitions(months: Sequence[MonthRows]) -> tuple[Partition, ...]:
    """Return the months of publication since the first contract, oldest first."""
    contracts: list[ContractRecord] = []
    partitions = []
    for of_month in months:
        added = [row for row in of_month.rows if isinstance(row, ContractRecord)]
        contracts += added
        releases = tuple(row for row in of_month.rows if isinstance(row, ReleaseRecord))
        hashes = frozenset(row.hash for row in added)
        partitions.append(Partition(of_month.month, of_month.head, releases, tuple(contracts), hashes))
    return tuple(partition for partition in partitions if partition.contracts)


def derived_table(
    table: DerivedTable,
    common: Mapping[str, Any],
    units: Sequence[Unit],
    contracts: Sequence[ContractRecord],
    noise: Noise,
) -> pa.Table:
    """Return the lines of complete units; `common` is the part of the guarantee that other tables have as well."""
    lines = table.lines(units, contract_terms(contracts), noise)
    interval = noise if table.has_intervals else None
    return with_guarantee(lines, derived_guarantee(common, interval, of=table.of, file=table.file))


def whole_table(
    table: DerivedTable,
    common: Mapping[str, Any],
    rows: Sequence[ReleaseRecord],
    contracts: Sequence[ContractRecord],
    noise: Noise,
) -> pa.Table | None:
    """Return a derived table of complete rows; None if no contract releases what it is derived from."""
    if not table.has_source(contract_terms(contracts)):
        return None
    return derived_table(table, common, closed_units(table, rows, contracts), contracts, noise)


def closed_units(table: DerivedTable, rows: Sequence[ReleaseRecord], contracts: Sequence[ContractRecord]) -> list[Unit]:
    """Return the units of which no row is still to be released, in the order of the table."""
    units = table.units(rows, contract_terms(contracts))
    periods = {(unit.first_day, unit.last_day, name) for unit in units for name in _needs(unit)}
    is_open = open_periods(periods, rows, contracts)
    return [unit for unit in units if not any((unit.first_day, name) in is_open for name in _needs(unit))]


def _needs(unit: Unit) -> tuple[str, ...]:
    return unit.needs or (unit.series,)


def open_periods(
    periods: Collection[tuple[date, date, str]], rows: Sequence[ReleaseRecord], contracts: Sequence[ContractRecord]
) -> set[tuple[date, str]]:
    """Return first day and series of the periods (first day, last day, series) of which a day may still be released.

    A series that was ended may be continued, but only after the days that a row of any series covers.
    """
    schedule, continued = contracts[-1].terms.schedule, contracts[-1].terms.series.keys()
    begin, end = schedule.first_day, schedule.last_day or date.max
    closed = closed_days(rows, contracts)
    days_with_rows = {day for _, days in days_by_row(rows, contracts) for day in days}
    names: dict[str, set[str]] = {}
    for series in {name for of_contract in series_by_contract(contracts).values() for name in of_contract}:
        for name in (series, mean_name(series)):
            names.setdefault(name, set()).add(series)

    def is_open(day: str, name: str) -> bool:
        undecided = (series for series in names[name] if (day, series) not in closed)
        return any(series in continued or day not in days_with_rows for series in undecided)

    return {
        (first, name)
        for first, last, name in periods
        if any(is_open(day.isoformat(), name) for day in days_of(max(first, begin), min(last, end)))
    }


def newly_closed(
    partitions: Sequence[Partition], table: DerivedTable, *, since: str = ""
) -> Iterator[tuple[Partition, list[Unit]]]:
    """Yield partitions with the units of a table that they closed, of outlines of rows.

    Args:
        partitions: all partitions, oldest first.
        table: the derived table.
        since: the first month to yield; that before it is looked at once, without its tables.
    """
    earlier: list[ReleaseRecord] = []
    contracts: tuple[ContractRecord, ...] = ()
    open_since: date | None = None
    for partition in partitions:
        rows = [*map(outline_of, partition.rows)]
        if partition.month >= since:
            if open_since is None:
                open_since = _open_since(earlier, contracts, table.span)
            first = _first_day(partition, open_since, table.span)
            before = [row for row in earlier if row.day >= first]
            current = [*before, *rows]
            known = {unit.key for unit in closed_units(table, before, contracts)} if before else set()
            units = closed_units(table, current, partition.contracts)
            yield partition, [unit for unit in units if unit.key not in known]
            if partition is not partitions[-1]:
                open_since = _open_since(current, partition.contracts, table.span)
        earlier += rows
        contracts = partition.contracts


def _first_day(partition: Partition, open_since: date, span: Span) -> str:
    """Return the first day of the rows that a partition's units may be made from, ISO."""
    if partition.amended:
        return ""
    covered = (days[0] for _, days in days_by_row(partition.rows, partition.contracts))
    firsts = (period_of(date.fromisoformat(day), span)[0] for day in covered)
    return min([open_since, *firsts]).isoformat()


def _open_since(rows: Sequence[ReleaseRecord], contracts: Sequence[ContractRecord], span: Span) -> date:
    """Return the first day of the earliest span with a row of which a day may still be released."""
    daily = {
        contract: [name for name, series in of_contract.items() if not series.covers_periods]
        for contract, of_contract in series_by_contract(contracts).items()
    }
    days = {(row.day, row.contract) for row in rows}
    spans = {(period_of(date.fromisoformat(day), span), contract) for day, contract in days}
    periods = {(first, last, name) for (first, last), contract in spans for name in daily.get(contract, [])}
    if not periods:
        return date.max
    return min((first for first, _ in open_periods(periods, rows, contracts)), default=date.max)


def complete_units(
    partitions: Sequence[Partition], units: Sequence[Unit], ledger: LedgerReader | None
) -> dict[int, ReleaseRecord]:
    """Return the complete rows that units are made from, by number.

    Args:
        partitions: those whose rows are complete.
        units: of outlines.
        ledger: that of the other rows, each of which is read once; None if there are no others.
    """
    rows = {row.seq: row for partition in partitions for row in partition.rows}
    missing = {row.seq: row for unit in units for row in unit.rows if row.seq not in rows}
    if missing and ledger is not None:
        rows |= {row.seq: row for row in ledger.rows_of(missing.values())}  # type: ignore[arg-type]
    return rows
