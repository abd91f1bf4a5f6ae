"""What the public report is computed from: statement, released rows and accountants; no confidential source.

Decisions:

* The charted days begin with a month, so that its average is that of the whole month.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from agedp_data.config.contract import Contract
from agedp_data.leakage.bound_table import LeakageBound
from agedp_data.ledger import ReleaseRecord
from agedp_data.notions.notion import Accountant, Notion
from agedp_data.notions.publication import Publication
from agedp_data.series.distribution import Distribution
from agedp_data.series.layered_mean import is_upper
from agedp_data.series.result_table import Noise
from agedp_data.series.series import AnySeries
from agedp_data.series.series_terms import Every, mean_name, period_of
from agedp_data.statement.document import Statement


@dataclass(frozen=True, slots=True)
class ReportData:
    """Data of a page: the statement, its rows, and the accountants of all notions.

    `contracts` are all contracts by hash, oldest first; `noise_means` gives by schedule the mean noise
    scale as a multiple of the clamp, the promised one first. `files` are the Parquet files of the folder by statistic
    and series, that of the months by ("month", ""), or with the layout "monthly" their folders; `months` is the table
    of the averages by month. `history` are outlines of all rows if `rows` are those of the days since `since` only.
    """

    statement: Statement
    rows: Sequence[ReleaseRecord]
    contracts: Mapping[str, Contract]
    accountants: Sequence[Accountant]
    leakage_bound: LeakageBound | None
    coverage: Decimal
    promise: Notion
    noise_means: Mapping[str, float]
    publication: Publication = field(default_factory=Publication)
    files: Mapping[tuple[str, str], str] = field(default_factory=dict)
    months: pa.Table | None = None
    history: Sequence[ReleaseRecord] = ()
    since: str = ""

    @property
    def all_rows(self) -> Sequence[ReleaseRecord]:
        """Return all rows of the release, for what needs no values: losses, and the names of series."""
        return self.history or self.rows


def series_names(report: ReportData, statistic: str) -> list[str]:
    """Return the series that have or had a statistic, in the order of their first release.

    A mean with layers has the name of its table; its upper layers are no means and are left out.
    """
    in_contracts = _contract_names(report, statistic, covers_periods=False)
    released = [row.series for row in report.all_rows if _has_statistic(report, row, statistic)]
    return list(dict.fromkeys(mean_name(name) for name in [*released, *in_contracts] if not is_upper(name)))


def period_names(report: ReportData, statistic: str) -> list[str]:
    """Return the series with this statistic whose rows cover a week, month or year, in the order of the contracts."""
    return list(dict.fromkeys(_contract_names(report, statistic, covers_periods=True)))


def _contract_names(report: ReportData, statistic: str, *, covers_periods: bool) -> list[str]:
    return [
        name
        for contract in report.contracts.values()
        for name, series in contract.series.items()
        if series.statistic == statistic and series.covers_periods == covers_periods
    ]


def period_releases(report: ReportData, name: str) -> Iterator[tuple[ReleaseRecord, AnySeries]]:
    """Yield the released rows of a series that cover a week, month or year, each with the series of its contract."""
    for row in report.rows:
        series = report.contracts[row.contract].series[row.series]
        if row.series == name and row.state == "released" and series.covers_periods:
            yield row, series


def _has_statistic(report: ReportData, row: ReleaseRecord, statistic: str) -> bool:
    """Return whether a row is of this statistic and of a day; rows of periods are no part of its charts."""
    series = report.contracts[row.contract].series[row.series]
    return series.statistic == statistic and not series.covers_periods


def series_rows(report: ReportData, name: str, statistic: str) -> list[ReleaseRecord]:
    """Return the rows of a series while it had this statistic; of a mean with layers those of layer 1."""
    of_name = [row for row in report.rows if mean_name(row.series) == name and not is_upper(row.series)]
    return [row for row in of_name if _has_statistic(report, row, statistic)]


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
                series = report.contracts[row.contract].series[name]
                if row.state == "released" and isinstance(series, Distribution):
                    yield sum(row.households) // len(series.ranges_kwh), row


# --------------------------------------------------------------------------------------------------
# The released rows of a public report: those that it charts, and the headers of all.
#
# With the layout "monthly" a night reads the rows of its own month, so that it costs the same in every year. The
# report then charts the days of thirteen months; the privacy loss is that of all days, from the headers of their rows.
# --------------------------------------------------------------------------------------------------

_EARLIER_MONTHS: Final = 12


@dataclass(frozen=True, slots=True)
class ReleasedRows:
    """Complete rows of the days that a report charts, outlines of all rows, and the averages of the charted months."""

    charted: Sequence[ReleaseRecord]
    history: Sequence[ReleaseRecord]
    months: pa.Table | None = None

    @property
    def since(self) -> str:
        """Return the first charted day if released days are before it, "" otherwise."""
        first = min((row.day for row in self.charted), default="")
        is_cut = any(row.day < first for row in self.history if row.state == "released")
        return first if is_cut else ""


def charted_rows(history: Sequence[ReleaseRecord]) -> list[ReleaseRecord]:
    """Return the rows of the newest day's month and the twelve months before it."""
    newest = date.fromisoformat(max((row.day for row in history), default="0002-01-01"))
    number = newest.year * 12 + newest.month - 1 - _EARLIER_MONTHS
    first = date(number // 12, number % 12 + 1, 1).isoformat()
    return [row for row in history if row.day >= first]


def largest_groups(sizes: Mapping[str, int], most: int) -> list[str]:
    """Return the groups that a page shows: those of the largest size, in the order of their names.

    >>> largest_groups({"B": 5, "A": 5, "C": 9}, 2)
    ['A', 'C']
    """
    return sorted(sorted(sizes, key=lambda group: (-sizes[group], group))[:most])


def month_rows(months: pa.Table | None, mean: str, *, most: int) -> tuple[list[dict[str, Any]], int]:
    """Return the averages by month of a mean's largest groups as rows, and the number of its other groups.

    Args:
        months: the table of averages by month; None without one.
        mean: name of the mean in the run file; of its layers the first one counts.
        most: number of groups, those of most household-days.
    """
    if months is None:
        return [], 0
    names = [name for name in pc.unique(months["series"]).to_pylist() if mean_name(name) == mean and not is_upper(name)]
    of_mean = months.filter(pc.is_in(months["series"], pa.array(names, months["series"].type)))
    sums = of_mean.group_by("group").aggregate([("household_days", "sum")])
    days = dict(zip(sums["group"].to_pylist(), sums["household_days_sum"].to_pylist(), strict=True))
    shown = largest_groups(days, most)
    if len(shown) < len(days):
        of_mean = of_mean.filter(pc.is_in(of_mean["group"], pa.array(shown, of_mean["group"].type)))
    return of_mean.to_pylist(), len(days) - len(shown)


# --------------------------------------------------------------------------------------------------
# LEDGER rows that cover a week, month or year -> the rows that a chart of periods shows. Public.
# --------------------------------------------------------------------------------------------------


def period_rows(rows: Sequence[ReleaseRecord], *, every: Every, coverage: Decimal) -> list[dict[str, Any]]:
    """Return a row for each released period and group, with the columns of the averages by period.

    Args:
        rows: released rows of one series; each names the last day of its period.
        every: length of the periods.
        coverage: of the noise intervals.
    """
    shown, noise = [], Noise(coverage)
    for row in sorted(rows, key=lambda row: (row.day, row.revision)):
        first, last = period_of(date.fromisoformat(row.day), every)
        days, half_width = (last - first).days + 1, noise.half_width(row.scale)
        for group, value, household_days in zip(row.cells, row.values, row.households, strict=True):
            sums_wh: dict[str, float] = {
                "mean_kwh": value,
                "low_kwh": value - half_width,
                "high_kwh": value + half_width,
            }
            sums_wh["noise_sd_kwh"] = noise.deviation(row.scale)
            means = {name: sum_wh / (1000.0 * household_days) for name, sum_wh in sums_wh.items()}
            of_days = {"days_released": days, "days_in_period": days, "is_complete": 1}
            shown.append({"first_day": first, "group": group, **of_days, "household_days": household_days, **means})
    return shown
