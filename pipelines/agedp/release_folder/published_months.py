"""LEDGER rows of a release folder -> what was published in each month, and what each month closed.

A table derived from several rows, such as the average of a week, has a line once none of the rows that it needs is
still to be released. The line is of the month in which that became so. `newly_closed` finds the lines of a month from
the rows of a span of days: those since the earliest day that was still open when the month before ended.

Decisions:

* Which lines a month closed follows from the headers of the rows. Only those of the lines to be written are read
  completely (`PublishedMonth.rows` of earlier months are outlines), so a night costs what its month does.
* The sum of layers of different groups is no line. If it enters a period that was closed already, the lines of the
  period are written once more, unchanged.
* A line that changes is new: if an amendment extends a schedule that cut a week, the week has another line in a later
  month, and readers take the later one.
* A month that amends the contract may open or close any day, so all rows are considered in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Literal, Protocol, TypeVar, cast

from agedp.budget import days_by_row
from agedp.release_folder.period_parts import open_periods
from agedp_data.config.contract_values import meaning_of
from agedp_data.ledger import ContractRecord, ReleaseRecord
from agedp_data.ledger.monthly_transfer import MonthRows
from agedp_data.ledger.release_headers import outline_of
from agedp_data.series.periods import period_of

Span = Literal["day", "week", "month", "year"]


@dataclass(frozen=True, slots=True)
class PublishedMonth:
    """The release rows of one month of publication, and all contracts up to it, oldest first.

    Rows of months of which no table is computed may be outlines (`release_headers.outline_of`).
    `head` is the hash of its newest ledger row; `amended` are the hashes of contracts registered in it.
    """

    month: str
    head: str
    rows: tuple[ReleaseRecord, ...]
    contracts: tuple[ContractRecord, ...]
    amended: frozenset[str]


class Unit(Protocol):
    """Lines of a derived table that are published together; equal keys have equal lines."""

    @property
    def key(self) -> tuple[object, ...]:
        """Return what the lines are of, and the numbers of the ledger rows that they are made from."""

    @property
    def ledger_rows(self) -> tuple[ReleaseRecord, ...]:
        """Return the ledger rows that the lines are made from."""

    def completed(self, rows: Mapping[int, ReleaseRecord]) -> Unit | None:
        """Return the unit with complete rows by number in place of outlines; None for a unit without lines."""


_U = TypeVar("_U", bound=Unit)


def published_months(months: Sequence[MonthRows]) -> tuple[PublishedMonth, ...]:
    """Return the months since the first contract, oldest first."""
    contracts: list[ContractRecord] = []
    published = []
    for of_month in months:
        added = [row for row in of_month.rows if isinstance(row, ContractRecord)]
        contracts += added
        releases = tuple(row for row in of_month.rows if isinstance(row, ReleaseRecord))
        hashes = frozenset(row.hash for row in added)
        published.append(PublishedMonth(of_month.month, of_month.head, releases, tuple(contracts), hashes))
    return tuple(month for month in published if month.contracts)


def newly_closed(
    months: Sequence[PublishedMonth],
    span: Span,
    units: Callable[[Sequence[ReleaseRecord], Sequence[ContractRecord]], Sequence[_U]],
    *,
    since: str = "",
) -> Iterator[tuple[PublishedMonth, list[_U]]]:
    """Yield months with the units that they closed, of outlines of rows (`completed_units`).

    Args:
        months: all months, oldest first.
        span: days that a unit may be made from.
        units: returns the closed units of rows, given these and all contracts so far.
        since: the first month to yield; that before it is looked at once, without its tables.
    """
    earlier: list[ReleaseRecord] = []
    contracts: tuple[ContractRecord, ...] = ()
    open_since: date | None = None
    for month in months:
        rows = [*map(outline_of, month.rows)]
        if month.month >= since:
            if open_since is None:
                open_since = _open_since(earlier, contracts, span)
            first = _first_day(month, open_since, span)
            before = [row for row in earlier if row.day >= first]
            current = [*before, *rows]
            known = {unit.key for unit in units(before, contracts)} if before else set()
            yield month, [unit for unit in units(current, month.contracts) if unit.key not in known]
            open_since = _open_since(current, month.contracts, span)
        earlier += rows
        contracts = month.contracts


def completed_units(units: Sequence[_U], rows: Mapping[int, ReleaseRecord]) -> list[_U]:
    """Return units with complete rows, by number, in place of outlines; those without lines are left out."""
    return [cast("_U", unit) for of_outlines in units if (unit := of_outlines.completed(rows)) is not None]


def _first_day(month: PublishedMonth, open_since: date, span: Span) -> str:
    """Return the first day of the rows that a month's units may be made from, ISO."""
    if month.amended:
        return ""
    covered = (days[0] for _, days in days_by_row(month.rows, month.contracts))
    firsts = (period_of(date.fromisoformat(day), span)[0] for day in covered)
    return min([open_since, *firsts]).isoformat()


def _open_since(rows: Sequence[ReleaseRecord], contracts: Sequence[ContractRecord], span: Span) -> date:
    """Return the first day of the earliest span with a row of which a day may still be released."""
    daily = {
        contract.hash: [
            name for name, terms in meaning_of(contract.promise)["series"].items() if terms.get("every", "day") == "day"
        ]
        for contract in contracts
    }
    spans = {(period_of(date.fromisoformat(day), span), contract) for day, contract in _days(rows)}
    periods = {(first, last, name) for (first, last), contract in spans for name in daily.get(contract, [])}
    if not periods:
        return date.max
    return min((first for first, _ in open_periods(periods, rows, contracts)), default=date.max)


def _days(rows: Sequence[ReleaseRecord]) -> set[tuple[str, str]]:
    return {(row.day, row.contract) for row in rows}
