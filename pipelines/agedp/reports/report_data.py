"""Data of the public report: statement, rows, contracts and accountants, with access by series."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from agedp_data.leakage.bound_table import LeakageBound
from agedp_data.ledger import ReleaseRecord
from agedp_data.notions.notion import Accountant, Notion
from agedp_data.notions.publication import Publication
from agedp_data.series.series import Distribution, series_in
from agedp_data.statement.document import Statement


@dataclass(frozen=True, slots=True)
class ReportData:
    """Data of a page: the statement, its rows, and the accountants of all notions.

    `contracts` are the texts of all contracts by hash, oldest first; `noise_means` gives by schedule the mean noise
    scale as a multiple of the clamp, the promised one first.
    """

    statement: Statement
    rows: Sequence[ReleaseRecord]
    contracts: Mapping[str, Mapping[str, Any]]
    accountants: Sequence[Accountant]
    leakage_bound: LeakageBound | None
    coverage: Decimal
    promise: Notion
    noise_means: Mapping[str, float]
    publication: Publication = field(default_factory=Publication)


def series_names(report: ReportData, statistic: str) -> list[str]:
    """Return the series that have or had a statistic, in the order of their first release."""
    in_contracts = [
        name
        for terms in report.contracts.values()
        for name, series in terms["series"].items()
        if series["statistic"] == statistic
    ]
    return list(
        dict.fromkeys([*(row.series for row in report.rows if _has_statistic(report, row, statistic)), *in_contracts])
    )


def _has_statistic(report: ReportData, row: ReleaseRecord, statistic: str) -> bool:
    return bool(report.contracts[row.contract]["series"][row.series]["statistic"] == statistic)


def series_rows(report: ReportData, name: str, statistic: str) -> list[ReleaseRecord]:
    """Return the rows of a series while it had this statistic."""
    return [row for row in report.rows if row.series == name and _has_statistic(report, row, statistic)]


def released_means(report: ReportData) -> list[ReleaseRecord]:
    """Return the releases of the first mean, none without a mean."""
    names = series_names(report, "mean")
    return [row for row in series_rows(report, names[0], "mean") if row.state == "released"] if names else []


def household_counts(report: ReportData) -> Iterator[tuple[int, ReleaseRecord]]:
    """Yield the number of households of each release of the first mean, or else of the first distribution."""
    for row in released_means(report):
        yield sum(row.households), row
    if not series_names(report, "mean"):
        for name in series_names(report, "distribution")[:1]:
            for row in series_rows(report, name, "distribution"):
                series = series_in(report.contracts[row.contract]["series"][name])
                if row.state == "released" and isinstance(series, Distribution):
                    yield sum(row.households) // len(series.ranges_kwh), row
