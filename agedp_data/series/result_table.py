"""What a statistic says of its published tables: those of its released rows, and those that are derived from them.

A `ResultTable` has the lines of released rows, a `DerivedTable` lines that follow from several rows at no privacy loss.
Each names its file, schema and functions, so that writing, verification, data package and charts know no statistic by
name: they go over `series.RESULT_TABLES` and `series.DERIVED_TABLES`.

Example: the row of 2013-01-01 with 5,000 households and the noisy sum 45,000,000 Wh is the line (2013-01-01, all, 5000,
45000000, 9.0, ...) of `daily_averages.parquet`; the 31 rows of January are one `Unit` of `averages_by_month.parquet`.

Decisions:

* A line of a derived table is published once none of the rows that it needs is still to be released, so that lines are
  only added. Which rows a unit needs, and when these are closed, follows from headers: values are read afterwards.
* The noise of a table has one coverage of its intervals, and is the same for all rows of one scale.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final, Literal, Protocol

import numpy as np
import pyarrow as pa

from agedp_data import mechanisms
from agedp_data.arrays import Floats
from agedp_data.datasets.layout import Layout
from agedp_data.messages import sentence_start
from agedp_data.series.consistency import sum_deviation, sum_interval

Span = Literal["day", "week", "month", "year"]
NOISE_TEXT: Final = (
    "with noise that keeps the promise of the statement; the guarantee is in the metadata of the Parquet schema, key "
    '"agedp"'
)
Columns = Mapping[str, Any]
"""Columns of lines by name: a sequence or array each, or one value that all lines have."""


class PublishedRow(Protocol):
    """A released row of the ledger, as far as tables depend on it; `values` and `cells` of an outline are empty."""

    @property
    def series(self) -> str: ...  # noqa: D102
    @property
    def day(self) -> str: ...  # noqa: D102
    @property
    def revision(self) -> int: ...  # noqa: D102
    @property
    def state(self) -> str: ...  # noqa: D102
    @property
    def cells(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def values(self) -> tuple[int, ...]: ...  # noqa: D102
    @property
    def households(self) -> tuple[int, ...]: ...  # noqa: D102
    @property
    def scale(self) -> float: ...  # noqa: D102
    @property
    def loss(self) -> int: ...  # noqa: D102
    @property
    def published_on(self) -> str: ...  # noqa: D102
    @property
    def contract(self) -> str: ...  # noqa: D102
    @property
    def seq(self) -> int: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class ContractTerms:
    """What tables depend on of a contract: its series by name, the layout of its files, and its number from 1."""

    series: Mapping[str, Any]
    layout: Layout
    version: int


Terms = Mapping[str, ContractTerms]
"""Terms by the hash of their contract, oldest first."""


@dataclass(frozen=True, slots=True)
class Noise:
    """Noise of released values, whose intervals have this coverage."""

    coverage: Decimal

    def deviation(self, scale: float) -> float:
        """Return the standard deviation of noise of this scale, in its unit."""
        return _deviation(scale)

    def half_width(self, scale: float) -> int:
        """Return the half-width of the interval of noise of this scale, in its unit."""
        return _half_width(scale, self.coverage)


@lru_cache(maxsize=1024)
def _deviation(scale: float) -> float:
    return mechanisms.standard_deviation(scale)


@lru_cache(maxsize=1024)
def _half_width(scale: float, coverage: Decimal) -> int:
    return mechanisms.interval(scale, coverage)


@dataclass(frozen=True, slots=True)
class Chart:
    """How a table is drawn: a column with its band along an axis, one small chart for each group.

    Attributes:
        y: the column that is drawn.
        band: columns of the ends of its interval; None only where y is what was drawn, whose noise is that of the row.
        unit: of y; "share" for a part of the households.
        x: the column of the axis, "day" or "first_day" for all days or periods; of any other column, or the two ends
            of a range, the chart shows the newest day or period.
        title: what the chart shows; "" for the name of the file.
        colour: the column whose values are lines of one chart; "" for one line.
    """

    y: str
    band: tuple[str, str] | None = None
    unit: str = "kWh"
    x: str | tuple[str, str] = "day"
    title: str = ""
    colour: str = ""


def _check_band(chart: Chart | None, file: str, *, drawn: str = "") -> None:
    if chart is not None and chart.band is None and chart.y != drawn:
        raise ValueError(f"{file}: {chart.y} is not what was drawn; name the columns of its interval in Chart.band")


@dataclass(frozen=True, slots=True, eq=False)
class ResultTable:
    """A kind of table of released values; a statistic has one, or one for each kind of its rows.

    Attributes:
        file: name of the file without its ending; a second series of the kind adds its name.
        schema: of the table; the columns day, group, revision, published_on, epsilon and version are those of the row.
        line_of: what a line is of, for the statement: "day and group".
        description: what it contains, in datapackage.json.
        lines: returns the other columns, and the group, of the lines of a row.
        drawn: the column of what was drawn.
        chart: what its chart shows; None where derived tables are read instead.
        keys: keys of the series that the guarantee has for each version; none: the whole table of the series.
    """

    file: str
    schema: pa.Schema
    line_of: str
    description: str
    lines: Callable[[PublishedRow, ContractTerms, Noise], Columns]
    drawn: str
    chart: Chart | None
    keys: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse a chart that would show the noise of a draw as that of a value computed from several draws."""
        _check_band(self.chart, self.file, drawn=self.drawn)

    @property
    def title(self) -> str:
        """Return the file's name as a title, "Daily averages"."""
        return sentence_start(self.file.replace("_", " "))


@dataclass(frozen=True, slots=True)
class Unit:
    """Lines of a derived table that are published together.

    Attributes:
        first_day: first day that the lines are about.
        last_day: last day.
        series: name that the lines have.
        of: what else they are of, such as the way in which a day counts; equal for rows that add up.
        rows: the ledger rows that they are made from, by day.
        needs: names of the series of which no row may be missing; by default `series`.
    """

    first_day: date
    last_day: date
    series: str
    of: tuple[Any, ...]
    rows: tuple[PublishedRow, ...] = ()
    needs: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[object, ...]:
        """Return what the lines are of, and the numbers of their ledger rows; equal keys have equal lines."""
        return self.first_day, self.series, self.of, tuple(row.seq for row in self.rows)

    def completed(self, rows: Mapping[int, PublishedRow]) -> Unit:
        """Return the unit with complete rows, by number, in place of outlines."""
        return replace(self, rows=tuple(rows[row.seq] for row in self.rows))


@dataclass(frozen=True, slots=True, eq=False)
class DerivedTable:
    """A table that follows from released rows of a statistic, at no privacy loss.

    Attributes:
        file: name of the file without its ending.
        schema: of the table.
        of: what it is of, for its guarantee.
        about: what it contains, for readers, in a few words.
        description: the same in datapackage.json.
        source: what it is derived from, for messages: "average".
        span: the days that one line may be made from.
        units: returns the units of rows, whether or not more rows are to come, in the order of the table.
        lines: returns the lines of complete units.
        line: columns that name a line in which a later month may replace an earlier one; none: no line is replaced.
        order: columns by which the months of a table are ordered together.
        rounded: columns that platforms round differently.
        kwh_of_wh: returns what a watt-hour of the drawn sum is in each line [kWh], if the table has intervals of sums.
        has_intervals: whether its guarantee names the coverage of intervals.
        is_possible: whether it follows from these series of a contract, which have statistics that it is derived from.
        chart: what its chart shows, if it has one.
    """

    file: str
    schema: pa.Schema
    of: str
    about: str
    description: str
    source: str
    span: Span
    units: Callable[[Sequence[PublishedRow], Terms], Sequence[Unit]]
    lines: Callable[[Sequence[Unit], Terms, Noise], pa.Table]
    line: tuple[str, ...] = ()
    order: tuple[str, ...] = ("day",)
    rounded: tuple[str, ...] = ()
    kwh_of_wh: Callable[[pa.Table], np.ndarray[Any, np.dtype[np.float64]]] | None = None
    has_intervals: bool = True
    is_possible: Callable[[Mapping[str, Any]], bool] = lambda series: True  # noqa: ARG005
    chart: Chart | None = None

    def __post_init__(self) -> None:
        """Refuse a chart without intervals: no line is what was drawn."""
        _check_band(self.chart, self.file)

    def has_source(self, terms: Terms) -> bool:
        """Return whether a contract releases what the table is derived from."""
        return any(
            any(self in series.derived for series in contract.series.values()) and self.is_possible(contract.series)
            for contract in terms.values()
        )


def units_of(parts: Iterable[tuple[Unit, Iterable[PublishedRow]]]) -> list[Unit]:
    """Return units with the rows of all their parts; a part is a unit without rows, and some rows of it, in order."""
    rows: dict[Unit, list[PublishedRow]] = {}
    for unit, of_part in parts:
        rows.setdefault(unit, []).extend(of_part)
    return [replace(unit, rows=tuple(of_unit)) for unit, of_unit in rows.items()]


def released(rows: Iterable[PublishedRow], terms: Terms, table: DerivedTable) -> Iterator[tuple[PublishedRow, Any]]:
    """Yield the released rows from which a table is derived, with the series of each, by day and contract."""
    ordered = sorted(rows, key=lambda row: (row.day, terms[row.contract].version))
    of_rows = ((row, terms[row.contract].series.get(row.series)) for row in ordered if row.state == "released")
    return ((row, series) for row, series in of_rows if series is not None and table in series.derived)


def sum_noise(
    rows: Sequence[Sequence[PublishedRow]], enters: np.ndarray[Any, np.dtype[np.bool_]], noise: Noise
) -> tuple[Floats, np.ndarray[Any, np.dtype[Any]]]:
    """Return standard deviation and half-width of the noise of sums over days; 0 for a sum without a day.

    Args:
        rows: the rows of each day (d), which are all added.
        enters: which days are in each sum (n), shape (d, n).
        noise: of the values.
    """
    by_days, index = np.unique(enters, axis=1, return_inverse=True)
    scales = [
        [row.scale for of_day, is_in in zip(rows, days, strict=True) if is_in for row in of_day] for days in by_days.T
    ]
    deviations = np.array([sum_deviation(of_sum) for of_sum in scales])
    half_widths = np.array([sum_interval(of_sum, noise.coverage) if of_sum else 0 for of_sum in scales], object)
    return deviations[index.ravel()], half_widths[index.ravel()]
