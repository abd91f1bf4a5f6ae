"""LEDGER rows -> the tables of a release folder that are derived from its released values, at no privacy loss.

Consistent averages, averages of weeks, months and years, mean profiles of weekdays and weekends by month, and daily
quantiles are functions of the released rows alone (post-processing). What they are is a statistic's own
(`series.result_table.DerivedTable`). Here is when their lines are published: once none of the rows that a line needs is
still to be released. A line is of the month in which that became so. `newly_closed` finds the lines of a month from
the rows of a span of days: those since the earliest day that was still open when the month before ended.

Decisions:

* Which lines a month closed follows from the headers of the rows. Only those of the lines to be written are read
  completely, so a night costs what its month does.
* If layers of different groups enter a period that was closed already, the lines of the period are written once more,
  unchanged.
* A line that changes is new: if an amendment extends a schedule that cut a week, the week has another line in a later
  month, and readers take the later one.
* A month that amends the contract may open or close any day, so all rows are considered in it.
* A folder that lacks a derived table verifies: those of earlier versions lack them, and each can be computed from the
  folder's rows (`ReleaseFolder.period_averages`). A table that is there must be the whole table.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from agedp.budget import closed_days, days_by_row, series_by_contract
from agedp.release_folder.result_tables import contract_terms, derived_guarantee, with_guarantee
from agedp_data.ledger import ContractRecord, ReleaseRecord
from agedp_data.ledger.records import outline_of
from agedp_data.ledger.transfer import MonthRows
from agedp_data.series.result_table import DerivedTable, Noise, Span, Unit
from agedp_data.series.series_terms import days_of, mean_name, period_of

if TYPE_CHECKING:
    from agedp_data.ledger.ledger_reader import LedgerReader


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
