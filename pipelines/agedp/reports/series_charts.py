"""Charts of released series over time: means with bands, bars of months, distributions, coverage.

Decisions:

* A bar is a month of which all days are decided (`period_averages`); a month without some of its days has the mean
  of the others and is marked. A period that was released as such (`period_releases`) is whole.
* All groups have one axis. `MOST_GROUPS` of them have a chart, those of most household-days, in the order of names.
* One period of one group is a sentence. The numbers of several groups are behind a summary.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from agedp.reports import svg
from agedp.reports.html import (
    TEXTS,
    Values,
    closed,
    download_links,
    hidden_groups,
    paragraph,
    several,
    side_by_side,
    table,
)
from agedp.reports.report_data import largest_groups
from agedp.signal_against_noise import places_of
from agedp_data.config.contract import Contract
from agedp_data.epsilon import exact_text
from agedp_data.ledger import ReleaseRecord
from agedp_data.series.distribution import Distribution
from agedp_data.series.result_table import Chart, Noise
from agedp_data.series.series_terms import Every

_TEXTS = TEXTS["series_charts"]

# --------------------------------------------------------------------------------------------------
# Report of a released mean: each day's value with its noise interval, as a chart and a table.
# --------------------------------------------------------------------------------------------------

MAX_CELLS = 40
"""Number of groups on a page, the largest ones; the tables contain all of them."""

PUBLISHED_EXTREMES = "lowest published day (noise included)", "highest published day (noise included)"
"""Columns of a month: extremes of noisy values lie further apart than those of the true ones."""

_MAX_DAILY_ROWS = 31
_WIDE_RATIO = 2.5


@dataclass(frozen=True, slots=True)
class CellMean:
    """One cell of a series on one day: households, mean, noise interval and standard deviation [kWh per household]."""

    day: date
    households: int
    mean: float
    low: float
    high: float
    sd: float


def cell_means(rows: Sequence[ReleaseRecord], *, coverage: Decimal) -> dict[str, list[CellMean]]:
    """Return the published means of one series by cell and day, for the `MAX_CELLS` largest cells."""
    released = sorted((row for row in rows if row.state == "released"), key=lambda row: (row.day, row.revision))
    shown_cells, noise = frozenset(largest_groups(_households(released), MAX_CELLS)), Noise(coverage)
    by_cell: dict[str, list[CellMean]] = {}
    for row in released:
        day, half_width = date.fromisoformat(row.day), noise.half_width(row.scale)
        for place in places_of(row.cells, shown_cells):
            value, households = row.values[place], row.households[place]
            sums_wh = value, value - half_width, value + half_width, noise.deviation(row.scale)
            mean = CellMean(day, households, *(number / (1000.0 * households) for number in sums_wh))
            by_cell.setdefault(row.cells[place], []).append(mean)
    return by_cell


def _households(released: Sequence[ReleaseRecord]) -> dict[str, int]:
    """Return the number of households of each cell in its newest release."""
    newest: dict[tuple[str, ...], ReleaseRecord] = {}
    for row in released:  # of rows with the same cells the last one
        newest.pop(row.cells, None)
        newest[row.cells] = row
    return {cell: number for row in newest.values() for cell, number in zip(row.cells, row.households, strict=True)}


def series_parts(
    name: str, rows: Sequence[ReleaseRecord], *, coverage: Decimal, label: str, file: str = ""
) -> Iterator[str]:
    """Yield charts and tables of one series: one chart per cell, all with one scale; `label` is in their titles.

    Cells are in the order of their names. A series of one day has its table alone. `file` is the Parquet file of the
    series, beside the page.
    """
    cells = cell_means(rows, coverage=coverage)
    if not cells:
        yield paragraph(f"{name}: no day is released yet.")
        return
    cells = dict(sorted(cells.items()))
    skipped = sorted({date.fromisoformat(row.day) for row in rows if row.state == "skipped"})
    all_means = [mean for means in cells.values() for mean in means]
    shown_days = [*(mean.day for mean in all_means), *skipped]
    x = svg.date_axis(min(shown_days), max(shown_days))
    y = _value_axis(all_means)
    labels = group_labels(cells, label)
    if len(set(shown_days)) > 1:
        scales, title = (x, y), "Mean daily use per household"
        charts = [
            _chart(titled(title, labels[cell]), means, skipped, scales, coverage, charts=len(cells))
            for cell, means in cells.items()
        ]
        yield side_by_side(charts)
        days = len({mean.day for mean in all_means})
        if (together := svg.positions_per_area(days, svg.share_of_areas(len(cells)))) > 1:
            text = f"At the pointer a chart shows {together} days together, so that the page stays small."
            yield paragraph(text, "soft get")
    if days_beyond := len({mean.day for mean in all_means if mean.low < y.low or mean.high > y.high}):
        yield paragraph(f"The axis is cut: {days_beyond} days with far more noise reach beyond the chart.", "soft")
    yield from hidden_groups(len(_households([row for row in rows if row.state == "released"])) - len(cells))
    yield download_links(name, _values(cells), file)
    tables = [_means_table(labels[cell], means, skipped) for cell, means in cells.items()]
    yield several(f"Numbers of each of {len(tables)} groups", tables)


def group_labels(groups: Collection[str], label: str) -> dict[str, str]:
    """Return what titles call each group of a series with this label; "all" has no name if it is the only one."""
    is_split = len(groups) > 1
    return {group: ", ".join(filter(None, [label, group if group != "all" or is_split else ""])) for group in groups}


def titled(title: str, label: str) -> str:
    """Return a title with what it is about, if there is more than one such chart."""
    return f"{title}: {label}" if label else title


def _chart(
    title: str,
    means: Sequence[CellMean],
    skipped: Sequence[date],
    scales: tuple[svg.Scale, svg.Scale],
    coverage: Decimal,
    *,
    charts: int,
) -> str:
    x, y = scales
    by_number = {cell_mean.day.toordinal(): cell_mean for cell_mean in means}
    day_numbers = range(min(by_number), max(by_number) + 1)
    mean, low, high = (
        [getattr(by_number[day], name) if day in by_number else math.nan for day in day_numbers]
        for name in ("mean", "low", "high")
    )
    line_name = f"mean, with the interval that covers its noise ({percent(coverage)})"
    layers: list[svg.Line | svg.Marks] = [
        svg.Line(line_name, [float(day) for day in day_numbers], mean, band=(low, high))
    ]
    if skipped:
        layers.append(svg.Marks("skipped days", [float(day.toordinal()) for day in skipped]))
    about, height = _description(means, skipped, y), 150 if charts > 1 else 240
    hover = svg.Hover(svg.day_text, "kWh per household", most=svg.share_of_areas(charts))
    return svg.chart(title, about, [*layers, hover], x=x, y=y, y_title="kWh per household", height=height)


def _values(cells: Mapping[str, Sequence[CellMean]]) -> Values:
    rows = [
        (str(mean.day), cell, mean.households, mean.mean, mean.low, mean.high, mean.sd)
        for cell, means in cells.items()
        for mean in means
    ]
    return Values(("day", "group", "households", "mean_kwh", "low_kwh", "high_kwh", "noise_sd_kwh"), rows)


def percent(share: Decimal) -> str:
    """Return a share in percent.

    >>> percent(Decimal("0.95")), percent(Decimal("0.999"))
    ('95 %', '99.9 %')
    """
    return f"{float(100 * share):.6g} %"


def _value_axis(means: Sequence[CellMean]) -> svg.Scale:
    """Return an axis for means and intervals; a few days with much more noise may extend beyond it."""
    ends = sorted(end for mean in means for end in (mean.low, mean.high))
    inner = ends[len(ends) // 50 : len(ends) - len(ends) // 50]
    is_wide = ends[-1] - ends[0] > _WIDE_RATIO * (inner[-1] - inner[0])
    return svg.linear_axis(inner if is_wide else ends)


def _description(means: Sequence[CellMean], skipped: Sequence[date], y: svg.Scale) -> str:
    lowest, highest = min(means, key=lambda cell_mean: cell_mean.mean), max(means, key=lambda cell_mean: cell_mean.mean)
    average = sum(mean.mean for mean in means) / len(means)
    half_width = max(mean.high - mean.mean for mean in means)
    if len(means) == 1:
        first_part = f"One day, {means[0].day}: {svg.format_number(average)} kWh per household"
    else:
        first_part = (
            f"{len(means)} days from {means[0].day} to {means[-1].day}: {svg.format_number(average)} kWh "
            f"per household on average, lowest published day {svg.format_number(lowest.mean)} on {lowest.day}, highest "
            f"{svg.format_number(highest.mean)} on {highest.day} (noise included)"
        )
    last_part = f"; {len(skipped)} days were skipped" if skipped else ""
    means_beyond = sum(mean.low < y.low or mean.high > y.high for mean in means)
    last_part += f"; {means_beyond} days reach beyond the chart" if means_beyond else ""
    reach = f"the noise interval reaches at most {svg.format_number(half_width)} kWh to either side"
    return f"{first_part}; {reach}{last_part}."


def _means_table(label: str, means: Sequence[CellMean], skipped: Sequence[date]) -> str:
    label_text = f" ({label})" if label else ""
    if len(means) <= _MAX_DAILY_ROWS:
        rows = [
            (str(mean.day), f"{mean.households:,}", *map(svg.format_number, (mean.mean, mean.low, mean.high, mean.sd)))
            for mean in means
        ]
        caption = f"The same in numbers, kWh per household{label_text}"
        return table(caption, ("day", "households", "mean", "low", "high", "noise sd"), rows)
    skipped_months = [f"{day:%Y-%m}" for day in skipped]
    rows = []
    for month, month_means in svg.by_month(means, lambda mean: mean.day).items():
        values, largest_sd = [mean.mean for mean in month_means], max(mean.sd for mean in month_means)
        numbers = map(svg.format_number, (sum(values) / len(values), min(values), max(values), largest_sd))
        skips = f" (−{skipped_months.count(month)})" if month in skipped_months else ""
        rows.append((month, f"{len(month_means)}{skips}", *numbers))
    remark = "; (−n): skipped days" if skipped else ""
    caption = f"The same by month, kWh per household{label_text}; every day is in the Parquet file{remark}"
    return table(caption, ("month", "days", "mean", *PUBLISHED_EXTREMES, "noise sd of a day"), rows)


# --------------------------------------------------------------------------------------------------
# Mean use by month as bars with the interval of their noise, also of weeks, months and years released as such. Public.
# --------------------------------------------------------------------------------------------------

MOST_GROUPS = 40
"""Groups with a chart on a page."""
_UNIT = "kWh per household and day"
_LABELS = 5
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_CSV_COLUMNS = (
    "first_day", "group", "days_released", "days_in_period", "household_days",
    "mean_kwh", "low_kwh", "high_kwh", "noise_sd_kwh",
)  # fmt: skip

_Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ShownPeriod:
    """The length of the periods of a chart, and whether they were released as such or derived from released days."""

    every: Every
    is_drawn: bool

    @property
    def title(self) -> str:
        """Return what a chart of such periods shows."""
        return f"Mean use per household and day, {'released ' if self.is_drawn else ''}by {self.every}"

    def text(self, first_day: date) -> str:
        """Return the name of a period by its first day.

        >>> ShownPeriod("month", False).text(date(2013, 2, 1)), ShownPeriod("week", True).text(date(2013, 2, 4))
        ('2013-02', '2013-02-04 to 2013-02-10')
        """
        match self.every:
            case "week":
                return f"{first_day} to {first_day + timedelta(days=6)}"
            case "year":
                return f"{first_day.year}"
            case _:
                return f"{first_day:%Y-%m}"

    def axis(self, firsts: Sequence[date]) -> svg.Scale:
        r"""Return the axis of periods by their number, a few of them labelled, the year below where it changes.

        >>> [text for _, text in ShownPeriod("month", False).axis([date(2012, 12, 1), date(2013, 1, 1)]).ticks]
        ['Dec\n2012', 'Jan\n2013']
        """
        step = -(-len(firsts) // _LABELS)
        ticks, year = [], 0
        for i in range(0, len(firsts), step):
            first = firsts[i]
            ticks.append((float(i), self._tick(first, is_new_year=first.year != year)))
            year = first.year
        return svg.Scale(-0.5, len(firsts) - 0.5, tuple(ticks))

    def _tick(self, first: date, *, is_new_year: bool) -> str:
        if self.every == "year":
            return f"{first.year}"
        day = f"{first.day} " if self.every == "week" else ""
        return f"{day}{_MONTHS[first.month - 1]}" + (f"\n{first.year}" if is_new_year else "")


MONTHS: Final = ShownPeriod("month", is_drawn=False)


def monthly_parts(
    name: str,
    rows: Sequence[_Row],
    *,
    coverage: Decimal,
    label: str = "",
    file: str = "",
    hidden: int = 0,
    period: ShownPeriod = MONTHS,
) -> Iterator[str]:
    """Yield charts, links and one table of the periods of one series; nothing without a period.

    Args:
        name: the series.
        rows: its rows of the table of averages by period (`mean.AVERAGES_BY`).
        coverage: that of the intervals.
        label: what titles call the series, "" for nothing.
        file: the Parquet file of the table, beside the page; "" without one.
        hidden: number of further groups, of which no rows are given.
        period: which periods they are.
    """
    if not rows:
        return
    groups = shown_groups(rows)
    firsts = sorted({row["first_day"] for row in rows})
    if len(rows) == 1:
        yield paragraph(_sentence(rows[0], coverage, label, period))
        return
    shown = [row for row in rows if row["group"] in groups]
    if len(firsts) > 1:
        labels = group_labels(groups, label)
        charts = [
            _bars_chart(titled(period.title, labels[group]), of_group, firsts, shown, coverage, len(groups), period)
            for group, of_group in groups.items()
        ]
        yield side_by_side(charts)
    hidden += len({row["group"] for row in rows}) - len(groups)
    if hidden:
        where = f"{file} has all of them" if file else "the Parquet files have their days"
        yield paragraph(f"{hidden:,} more groups, of fewer households, have no bars here; {where}.", "soft")
    values = Values(_CSV_COLUMNS, [tuple(row[column] for column in _CSV_COLUMNS) for row in shown])
    yield download_links(f"{name}_by_{period.every}", values, file)
    numbers = _table(shown, coverage, label, is_split=len(groups) > 1, period=period)
    yield closed(f"Numbers of each group by {period.every}", [numbers]) if len(groups) > 1 else numbers


def shown_groups(rows: Sequence[_Row]) -> dict[str, list[_Row]]:
    """Return the rows of the groups that have a chart, by group in the order of names."""
    household_days: dict[str, int] = {}
    by_group: dict[str, list[_Row]] = {}
    for row in rows:
        household_days[row["group"]] = household_days.get(row["group"], 0) + row["household_days"]
        by_group.setdefault(row["group"], []).append(row)
    return {group: by_group[group] for group in largest_groups(household_days, MOST_GROUPS)}


def _bars_chart(
    title: str,
    rows: Sequence[_Row],
    firsts: Sequence[date],
    all_rows: Sequence[_Row],
    coverage: Decimal,
    charts: int,
    period: ShownPeriod,
) -> str:
    by_first = {row["first_day"]: row for row in rows}  # of two ways of counting in a period the later one
    place = {first: float(i) for i, first in enumerate(firsts)}
    x, drawn = [place[first] for first in by_first], [*by_first.values()]
    mean, low, high = ([row[name] for row in drawn] for name in ("mean_kwh", "low_kwh", "high_kwh"))
    layers: list[svg.Bars | svg.Points | svg.Marks] = [
        svg.Bars(f"mean of the {period.every}", x, mean, style=2),
        svg.Points(f"interval that covers the noise ({percent(coverage)})", x, mean, (low, high), style=1),
    ]
    if parts := [place[row["first_day"]] for row in drawn if not row["is_complete"]]:
        layers.append(svg.Marks("without some of its days", parts))
    lowest, highest = min(drawn, key=lambda row: row["mean_kwh"]), max(drawn, key=lambda row: row["mean_kwh"])
    about = (
        f"{len(drawn)} {period.every}s from {period.text(firsts[0])} to {period.text(firsts[-1])}: lowest "
        f"{svg.format_number(lowest['mean_kwh'])} {_UNIT} in {period.text(lowest['first_day'])}, highest "
        f"{svg.format_number(highest['mean_kwh'])} in {period.text(highest['first_day'])}."
    )
    ends = [end for row in all_rows for end in (row["low_kwh"], row["high_kwh"])]
    hover = svg.Hover(lambda position: period.text(firsts[round(position)]), _UNIT, most=svg.share_of_areas(charts))
    height = 150 if charts > 1 else 220
    y = svg.linear_axis(ends, zero=True)
    return svg.chart(title, about, [*layers, hover], x=period.axis(firsts), y=y, y_title=_UNIT, height=height)


def _sentence(row: _Row, coverage: Decimal, label: str, period: ShownPeriod) -> str:
    mean, low, high = (svg.format_number(row[name]) for name in ("mean_kwh", "low_kwh", "high_kwh"))
    of = f"{label}: " if label else ""
    days = "" if row["is_complete"] else f", from {row['days_released']} of its {row['days_in_period']} days"
    return (
        f"{of}Mean use in {period.text(row['first_day'])}: {mean} {_UNIT}, {low} to {high} with the noise "
        f"({percent(coverage)}){days}."
    )


def _table(rows: Sequence[_Row], coverage: Decimal, label: str, *, is_split: bool, period: ShownPeriod) -> str:
    cells = [
        (
            period.text(row["first_day"]),
            *([row["group"]] if is_split else []),
            f"{row['days_released']} of {row['days_in_period']}",
            *(svg.format_number(row[name]) for name in ("mean_kwh", "low_kwh", "high_kwh", "noise_sd_kwh")),
        )
        for row in rows
    ]
    of = f" ({label})" if label else ""
    caption = (
        f"{period.title}, kWh{of}: energy of the {'covered' if period.is_drawn else 'released'} days over their "
        f"household-days; low to high covers the noise {percent(coverage)}"
    )
    columns = (period.every, *(["group"] if is_split else []), "days", "mean", "low", "high", "noise sd")
    return table(caption, columns, cells)


# --------------------------------------------------------------------------------------------------
# Report of a released distribution: counts of the newest day with their noise intervals, and monthly means.
#
# Bars have equal widths for ranges of any width: a count belongs to its range, it is not a density per kWh.
# --------------------------------------------------------------------------------------------------

MAX_GROUPS = 6
"""Number of groups on a page, the largest ones."""

_MAX_LETTERS = 46  # of names side by side below a chart on a telephone, gaps counted
_GAP = 2
_MAX_MONTHS = 3


@dataclass(frozen=True, slots=True)
class GroupHistogram:
    """Counts of one group on one day by range, half-width and standard deviation of the noise [households]."""

    day: str
    households: int
    values: tuple[int, ...]
    half_width: int
    sd: float


def group_histograms(
    rows: Sequence[ReleaseRecord], series: Distribution | None = None, *, coverage: Decimal
) -> dict[str, list[GroupHistogram]]:
    """Return the published counts by group and day, of rows with the bins of `series`; None: one count a group."""
    by_group: dict[str, list[GroupHistogram]] = {}
    ranges, noise = 1 if series is None else len(series.ranges_kwh), Noise(coverage)
    for row in sorted((row for row in rows if row.state == "released"), key=lambda row: (row.day, row.revision)):
        groups = row.cells if series is None else [cell.group for cell in series.read_cells(row.cells)]
        for start in range(0, len(row.cells), ranges):
            counts = row.households[start], row.values[start : start + ranges], noise.half_width(row.scale)
            histogram = GroupHistogram(row.day, *counts, noise.deviation(row.scale))
            by_group.setdefault(groups[start], []).append(histogram)
    return by_group


def distribution_parts(
    name: str,
    rows: Sequence[ReleaseRecord],
    contracts: Mapping[str, Contract],
    *,
    coverage: Decimal,
    file: str = "",
) -> Iterator[str]:
    """Yield charts and tables of the rows of one distribution with its newest ranges; `contracts` by hash.

    `file` is the Parquet file of the series, beside the page.
    """
    of_name = {key: contract.series.get(name) for key, contract in contracts.items()}
    distributions = {key: series for key, series in of_name.items() if isinstance(series, Distribution)}
    newest = [*distributions.values()][-1]
    released = [row for row in rows if row.state == "released"]
    with_newest_ranges = [row for row in released if _ranges(distributions[row.contract]) == _ranges(newest)]
    yield paragraph(_TEXTS.by_key("form_notes")[newest.form], "soft")
    yield from _group_parts(name, with_newest_ranges, newest, coverage=coverage, file=file)
    if with_other_ranges := len(released) - len(with_newest_ranges):
        text = f"{with_other_ranges} earlier releases of {name} had other ranges; they are in the Parquet file only."
        yield paragraph(text, "soft")


def _ranges(series: Distribution) -> tuple[object, ...]:
    return series.form, series.bins_kwh, series.by


def _group_parts(
    name: str, rows: Sequence[ReleaseRecord], series: Distribution, *, coverage: Decimal, file: str
) -> Iterator[str]:
    """Yield a chart for each of its groups on the group's newest day, and one table; of one group with its months."""
    groups = group_histograms(rows, series, coverage=coverage)
    if not groups:
        yield paragraph(f"{name}: no day is released yet.")
        return
    sizes = {group: days[-1].households for group, days in groups.items()}
    shown_groups = {group: groups[group] for group in largest_groups(sizes, MAX_GROUPS)}
    if series.by is None or len(shown_groups) == 1:
        for group, days in shown_groups.items():
            title = name if series.by is None else f"{name}, {group}"
            yield _distribution_chart(title, days[-1], series, coverage)
            yield _group_table(title, days, series, coverage)
    else:
        yield side_by_side(
            [
                _distribution_chart(f"{name}, {group}", days[-1], series, coverage, small=True)
                for group, days in shown_groups.items()
            ]
        )
        yield _groups_table(name, {group: days[-1] for group, days in shown_groups.items()}, series, coverage)
    yield download_links(name, _distribution_values(shown_groups, series), file)
    if hidden_groups := len(groups) - len(shown_groups):
        yield paragraph(
            f"{hidden_groups} more groups of {name}, of fewer households, are in the Parquet file only.", "soft"
        )


def _distribution_values(groups: Mapping[str, Sequence[GroupHistogram]], series: Distribution) -> Values:
    """Return the counts of each group's newest day, by range."""
    rows = [
        (days[-1].day, group, float(low), float(high), value, value - days[-1].half_width, value + days[-1].half_width)
        for group, days in groups.items()
        for (low, high), value in zip(series.ranges_kwh, days[-1].values, strict=True)
    ]
    return Values(("day", "group", "bin_low_kwh", "bin_high_kwh", "households_noisy", "low", "high"), rows)


def range_names(series: Distribution) -> list[str]:
    """Return the labels of the ranges: "2–4", or "< 4" for cumulative counts."""
    if series.form == "cumulative":
        return [f"< {exact_text(high)}" for _, high in series.ranges_kwh]
    return [f"{exact_text(low)}–{exact_text(high)}" for low, high in series.ranges_kwh]


def ranges_axis(series: Distribution) -> svg.Scale:
    """Return the axis of the ranges; of many ranges only some have labels."""
    names = range_names(series)
    labels_that_fit = max(2, _MAX_LETTERS // (max(map(len, names)) + _GAP))
    step = -(-len(names) // labels_that_fit)
    ticks = tuple((float(i), name) for i, name in enumerate(names) if i % step == 0)
    return svg.Scale(-0.5, len(names) - 0.5, ticks)


def ranges_hover(series: Distribution) -> svg.Hover:
    """Return what the chart of a distribution shows at the pointer."""
    names = range_names(series)
    return svg.Hover(lambda position: f"{names[round(position)]} kWh", "households", lambda value: f"{value:,.0f}")


def whiskers(text: str, values: Sequence[float], half: float, *, style: int) -> svg.Line:
    """Return unconnected points, each with its interval."""
    positions = [0.5 * i for i in range(2 * len(values) - 1)]
    spaced = [values[i // 2] if i % 2 == 0 else math.nan for i in range(len(positions))]
    band = [value - half for value in spaced], [value + half for value in spaced]
    return svg.Line(text, positions, spaced, band=band, style=style)


def _distribution_chart(
    name: str, histogram: GroupHistogram, series: Distribution, coverage: Decimal, *, small: bool = False
) -> str:
    names = range_names(series)
    values = [float(value) for value in histogram.values]
    largest = max(range(len(values)), key=values.__getitem__)
    description = (
        f"Of {histogram.households:,} households; the largest count is {values[largest]:,.0f}, "
        f"of {names[largest]} kWh; "
        f"the noise interval of each count reaches {histogram.half_width:,} households to either side."
    )
    layers: list[svg.Bars | svg.Line] = [
        svg.Bars("households by use of the day", [float(i) for i in range(len(values))], values, style=2),
        whiskers(f"interval that covers the noise ({percent(coverage)})", values, histogram.half_width, style=0),
    ]
    y = svg.linear_axis(
        [0.0, *(value + sign * histogram.half_width for value in values for sign in (-1, 1))], zero=True
    )
    title = f"Households by use on {histogram.day}: {name}"
    height, hover = 150 if small else 220, ranges_hover(series)
    y_title = "households; ranges of kWh below"
    return svg.chart(title, description, [*layers, hover], x=ranges_axis(series), y=y, y_title=y_title, height=height)


def _group_table(title: str, histograms: Sequence[GroupHistogram], series: Distribution, coverage: Decimal) -> str:
    """Return the newest day's counts of one group and the means of its newest months, range by range."""
    months: dict[str, list[GroupHistogram]] = {}
    for histogram in histograms:
        months.setdefault(histogram.day[:7], []).append(histogram)
    newest = dict(sorted(months.items())[: -_MAX_MONTHS - 1 : -1]) if len(histograms) > 1 else {}
    histogram, half_width = histograms[-1], histograms[-1].half_width
    monthly_means = [
        [svg.format_number(sum(counts) / len(days)) for counts in zip(*(day.values for day in days), strict=True)]
        for days in newest.values()
    ]
    rows = [
        (range_name, f"{value:,}", f"{value - half_width:,}", f"{value + half_width:,}", *means)
        for range_name, value, *means in zip(range_names(series), histogram.values, *monthly_means, strict=True)
    ]
    monthly_sd = (
        svg.format_number(math.sqrt(sum(each.sd**2 for each in month_histograms)) / len(month_histograms))
        for month_histograms in newest.values()
    )
    rows.append(("noise sd", svg.format_number(histogram.sd), "", "", *monthly_sd))
    months_text = "; then monthly means" if newest else ""
    caption = (
        f"Households by use on {histogram.day}, of {histogram.households:,} ({title}); low to high covers the noise "
        f"{percent(coverage)}{months_text}; every day is in the Parquet file"
    )
    return table(caption, ("kWh", "households", "low", "high", *newest), rows)


def _groups_table(title: str, newest: Mapping[str, GroupHistogram], series: Distribution, coverage: Decimal) -> str:
    """Return each group's counts of its newest day, side by side."""
    histograms = [*newest.values()]
    days = {histogram.day for histogram in histograms}
    counts = ((f"{value:,}" for value in histogram.values) for histogram in histograms)
    rows = [
        *zip(range_names(series), *counts, strict=True),
        (f"± covers {percent(coverage)}", *(f"{histogram.half_width:,}" for histogram in histograms)),
        ("noise sd", *(svg.format_number(histogram.sd) for histogram in histograms)),
        ("households", *(f"{histogram.households:,}" for histogram in histograms)),
        *([("day", *(histogram.day for histogram in histograms))] if len(days) > 1 else []),
    ]
    dates_text = f" on {max(days)}" if len(days) == 1 else ", each group on its newest day"
    caption = f"Households by use{dates_text} ({title}), kWh; every day is in the Parquet file"
    return table(caption, ("kWh", *newest), rows)


# --------------------------------------------------------------------------------------------------
# Report of a released coverage: how many households have a usable day, with the interval of the noise. Public.
# --------------------------------------------------------------------------------------------------

_COVERAGE_UNIT = "% of the households"
_COLUMNS = ("day", "group", "households", "usable_noisy", "noise_sd", "coverage", "low", "high")
"""Names and meanings of the published table (`series.coverage`)."""


def coverage_parts(
    name: str, rows: Sequence[ReleaseRecord], *, coverage: Decimal, label: str = "", file: str = ""
) -> Iterator[str]:
    """Yield charts, links and tables of one series of counts; a sentence for a group whose count never changes.

    A count includes noise, so it is called published, and may exceed the number of households on the roster.

    Args:
        name: the series.
        rows: its rows.
        coverage: that of the intervals.
        label: what titles call the series, "" for nothing.
        file: the Parquet file of the series, beside the page; "" without one.
    """
    groups = group_histograms(rows, coverage=coverage)
    if not groups:
        yield paragraph(f"{name}: no day is released yet.")
        return
    sizes = {group: days[-1].households for group, days in groups.items()}
    shown = {group: groups[group] for group in largest_groups(sizes, MAX_CELLS)}
    labels = group_labels(shown, label)
    drawn = {group: days for group, days in shown.items() if len({(day.values, day.households) for day in days}) > 1}
    for group in [group for group in shown if group not in drawn]:
        yield paragraph(_constant_text(shown[group], labels[group], coverage))
    counts = [day for of_group in shown.values() for day in of_group]
    dates = [date.fromisoformat(day.day) for day in counts]
    ends = [_share(day, sign) for day in counts for sign in (-1, 1)]
    axes = svg.date_axis(min(dates), max(dates)), svg.linear_axis(ends)
    charts = [
        _coverage_chart(titled("Households with a usable day", labels[group]), days, axes, coverage, len(drawn))
        for group, days in drawn.items()
    ]
    if charts:
        yield side_by_side(charts)
    yield from hidden_groups(len(groups) - len(shown), file)
    yield download_links(name, _coverage_values(shown), file)
    tables = [_coverage_table(days, labels[group], coverage) for group, days in shown.items()]
    yield several("Numbers of each group", tables)


def _share(day: GroupHistogram, sign: int) -> float:
    """Return a count (0) or an end of its interval (-1, 1), in percent of the households on the roster."""
    return 100 * (day.values[0] + sign * day.half_width) / day.households


def _constant_text(days: Sequence[GroupHistogram], label: str, coverage: Decimal) -> str:
    day, of = days[0], f"{label}: " if label else ""
    when = f"on {day.day}" if len(days) == 1 else f"on each of the {len(days):,} released days"
    low, high = day.values[0] - day.half_width, day.values[0] + day.half_width
    return (
        f"{of}The published number of households with a usable day, noise included, is {day.values[0]:,} {when}; "
        f"{day.households:,} households were on the roster. The noise interval ({percent(coverage)}) is {low:,} to "
        f"{high:,} households."
    )


def _coverage_chart(
    title: str, days: Sequence[GroupHistogram], axes: tuple[svg.Scale, svg.Scale], coverage: Decimal, charts: int
) -> str:
    x, y = axes
    positions = [float(date.fromisoformat(day.day).toordinal()) for day in days]
    values, low, high = ([_share(day, sign) for day in days] for sign in (0, -1, 1))
    name = f"published share, with the interval that covers its noise ({percent(coverage)})"
    layers: list[svg.Line | svg.Level | svg.Hover] = [
        svg.Line(name, positions, values, (low, high)),
        svg.Level("all households on the roster", 100.0),
        svg.Hover(svg.day_text, _COVERAGE_UNIT, most=svg.share_of_areas(charts)),
    ]
    about = (
        f"{len(days)} days from {days[0].day} to {days[-1].day}: lowest published day {svg.format_number(min(values))} "
        f"%, highest {svg.format_number(max(values))} % (noise included); the noise interval reaches at most "
        f"{svg.format_number(max(end - value for end, value in zip(high, values, strict=True)))} points to either side."
    )
    return svg.chart(title, about, layers, x=x, y=y, y_title=_COVERAGE_UNIT, height=150 if charts > 1 else 200)


def _coverage_values(shown: Mapping[str, Sequence[GroupHistogram]]) -> Values:
    rows = [
        (
            day.day,
            group,
            day.households,
            value,
            day.sd,
            *(_share(day, sign) / 100 for sign in (0, -1, 1)),
        )
        for group, days in shown.items()
        for day in days
        for value in day.values
    ]
    return Values(_COLUMNS, rows)


def _coverage_table(days: Sequence[GroupHistogram], label: str, coverage: Decimal) -> str:
    of = f" ({label})" if label else ""
    if len(days) <= _MAX_DAILY_ROWS:
        rows = [
            (
                day.day,
                *(f"{number:,}" for number in (day.households, value, value - day.half_width, value + day.half_width)),
            )
            for day in days
            for value in day.values
        ]
        caption = f"Households with a usable day{of}; low to high covers the noise {percent(coverage)}"
        return table(caption, ("day", "on the roster", "usable", "low", "high"), rows)
    rows = []
    for month, of_month in svg.by_month(days, lambda day: date.fromisoformat(day.day)).items():
        values = [day.values[0] for day in of_month]
        numbers = (sum(values) / len(values), min(values), max(values), max(day.sd for day in of_month))
        rows.append((month, f"{len(of_month)}", *map(svg.format_number, numbers)))
    columns = ("month", "days", "mean", *PUBLISHED_EXTREMES, "noise sd of a day")
    return table(f"Households with a usable day, by month{of}; every day is in the Parquet file", columns, rows)


# --------------------------------------------------------------------------------------------------
# Report of a table that has no pictures of its own: a chart of each group, as its statistic says. Public.
#
# A statistic names the columns that its chart shows (`series.result_table.Chart`), so that one of a plug-in is drawn.
# --------------------------------------------------------------------------------------------------

_Rows = Sequence[Mapping[str, Any]]


def table_parts(name: str, table: pa.Table, shown: Chart, *, file: str = "") -> Iterator[str]:
    """Yield a chart of each group of a table of released rows, and links to its values.

    Args:
        name: the series.
        table: its lines, each with a day and a group.
        shown: the columns to draw.
        file: the Parquet file of the series, beside the page; "" without one.
    """
    by_group: dict[str, list[Mapping[str, Any]]] = {}
    for line in table.to_pylist():
        by_group.setdefault(line["group"], []).append(line)
    if not by_group:
        yield paragraph(f"{name}: no day is released yet.")
        return
    drawn = {group: by_group[group] for group in sorted(by_group)[:MAX_CELLS]}
    charts = [_table_charts_chart(f"{name}: {group}", rows, shown, len(drawn)) for group, rows in drawn.items()]
    yield side_by_side(charts)
    if hidden := len(by_group) - len(drawn):
        yield paragraph(f"{hidden:,} more groups are {f'in {file}' if file else 'in the Parquet file'} only.", "soft")
    lines = [tuple(line.values()) for rows in drawn.values() for line in rows]
    yield download_links(name, Values(tuple(table.column_names), lines), file)


def _table_charts_chart(title: str, rows: _Rows, shown: Chart, charts: int) -> str:
    days = [row["day"] for row in rows]
    values = [float(row[shown.y]) for row in rows]
    band = None if shown.band is None else tuple([float(row[end]) for row in rows] for end in shown.band)
    layers: list[svg.Line | svg.Hover] = [
        svg.Line(shown.y, [float(day.toordinal()) for day in days], values, band),  # type: ignore[arg-type]
        svg.Hover(svg.day_text, shown.unit, most=svg.share_of_areas(charts)),
    ]
    lowest, highest = svg.format_number(min(values)), svg.format_number(max(values))
    about = f"{len(days)} days from {days[0]} to {days[-1]}: {lowest} to {highest}"
    ends = [*values, *(end for side in band or () for end in side)]
    return svg.chart(
        title, about, layers, x=svg.date_axis(days[0], days[-1]), y=svg.linear_axis(ends), y_title=shown.unit
    )
