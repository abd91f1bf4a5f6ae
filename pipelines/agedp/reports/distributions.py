"""Report of a released distribution: counts of the newest day with their noise intervals, and monthly means.

Bars have equal widths for ranges of any width: a count belongs to its range, it is not a density per kWh.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from agedp.reports.axes import Scale, format_number, linear_axis, named_axis
from agedp.reports.chart_layers import Hover
from agedp.reports.downloads import Values, download_links
from agedp.reports.html import paragraph, side_by_side, table
from agedp.reports.mean_series import percent
from agedp.reports.svg import Bars, Line, chart
from agedp_data import mechanisms
from agedp_data.config.contract import Contract
from agedp_data.ledger import ReleaseRecord
from agedp_data.parameters import exact_text
from agedp_data.series.distribution import Distribution

MAX_GROUPS = 6
"""Number of groups on a page, the largest ones."""

_MAX_LETTERS = 46  # of names side by side below a chart on a telephone, gaps counted
_GAP = 2
_MAX_MONTHS = 3
_FORM_NOTES = {
    "histogram": "Each count is of the households whose use that day lies in the range, from its lower end to below "
    "the upper. Noise is added to each count separately, so they need not add up to the number of households.",
    "cumulative": "Each count is of the households that used less than its end that day. The count between two ends is "
    "the difference of their counts, with the noise of both, however far apart they are.",
}


@dataclass(frozen=True, slots=True)
class GroupHistogram:
    """Counts of one group on one day by range, half-width and standard deviation of the noise [households]."""

    day: str
    households: int
    values: tuple[int, ...]
    half_width: int
    sd: float


def group_histograms(
    rows: Sequence[ReleaseRecord], series: Distribution, *, coverage: Decimal
) -> dict[str, list[GroupHistogram]]:
    """Return the published counts by group and day, of rows with the bins of `series`."""
    by_group: dict[str, list[GroupHistogram]] = {}
    cells = len(series.ranges_kwh)
    for row in sorted((row for row in rows if row.state == "released"), key=lambda row: (row.day, row.revision)):
        half_width, sd = mechanisms.interval(row.scale, coverage), mechanisms.standard_deviation(row.scale)
        of_cells = series.read_cells(row.cells)
        for start in range(0, len(row.cells), cells):
            values = row.values[start : start + cells]
            by_group.setdefault(of_cells[start].group, []).append(
                GroupHistogram(row.day, row.households[start], values, half_width, sd)
            )
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
    yield paragraph(_FORM_NOTES[newest.form], "soft")
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
    names = sorted(sorted(groups, key=lambda group: (-groups[group][-1].households, group))[:MAX_GROUPS])
    shown_groups = {group: groups[group] for group in names}
    if series.by is None or len(shown_groups) == 1:
        for group, days in shown_groups.items():
            title = name if series.by is None else f"{name}, {group}"
            yield _chart(title, days[-1], series, coverage)
            yield _group_table(title, days, series, coverage)
    else:
        yield side_by_side(
            [_chart(f"{name}, {group}", days[-1], series, coverage, small=True) for group, days in shown_groups.items()]
        )
        yield _groups_table(name, {group: days[-1] for group, days in shown_groups.items()}, series, coverage)
    yield download_links(name, _values(shown_groups, series), file)
    if hidden_groups := len(groups) - len(shown_groups):
        yield paragraph(
            f"{hidden_groups} more groups of {name}, of fewer households, are in the Parquet file only.", "soft"
        )


def _values(groups: Mapping[str, Sequence[GroupHistogram]], series: Distribution) -> Values:
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


def ranges_axis(series: Distribution) -> Scale:
    """Return the axis of the ranges; of many ranges only some have labels."""
    names = range_names(series)
    labels_that_fit = max(2, _MAX_LETTERS // (max(map(len, names)) + _GAP))
    step = -(-len(names) // labels_that_fit)
    ticks = {float(i): name for i, name in enumerate(names) if i % step == 0}
    axis = named_axis(ticks)
    return Scale(-0.5, len(names) - 0.5, axis.ticks)


def ranges_hover(series: Distribution) -> Hover:
    """Return what the chart of a distribution shows at the pointer."""
    names = range_names(series)
    return Hover(lambda position: f"{names[round(position)]} kWh", "households", lambda value: f"{value:,.0f}")


def whiskers(text: str, values: Sequence[float], half: float, *, style: int) -> Line:
    """Return unconnected points, each with its interval."""
    positions = [0.5 * i for i in range(2 * len(values) - 1)]
    spaced = [values[i // 2] if i % 2 == 0 else math.nan for i in range(len(positions))]
    band = [value - half for value in spaced], [value + half for value in spaced]
    return Line(text, positions, spaced, band=band, style=style)


def _chart(
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
    layers: list[Bars | Line] = [
        Bars("households by use of the day", [float(i) for i in range(len(values))], values, style=2),
        whiskers(f"interval that covers the noise ({percent(coverage)})", values, histogram.half_width, style=0),
    ]
    y = linear_axis([0.0, *(value + sign * histogram.half_width for value in values for sign in (-1, 1))], zero=True)
    title = f"Households by use on {histogram.day}: {name}"
    height, hover = 150 if small else 220, ranges_hover(series)
    y_title = "households; ranges of kWh below"
    return chart(title, description, [*layers, hover], x=ranges_axis(series), y=y, y_title=y_title, height=height)


def _group_table(title: str, histograms: Sequence[GroupHistogram], series: Distribution, coverage: Decimal) -> str:
    """Return the newest day's counts of one group and the means of its newest months, range by range."""
    months: dict[str, list[GroupHistogram]] = {}
    for histogram in histograms:
        months.setdefault(histogram.day[:7], []).append(histogram)
    newest = dict(sorted(months.items())[: -_MAX_MONTHS - 1 : -1]) if len(histograms) > 1 else {}
    histogram, half_width = histograms[-1], histograms[-1].half_width
    monthly_means = [map(format_number, _mean_counts(month_histograms)) for month_histograms in newest.values()]
    rows = [
        (range_name, f"{value:,}", f"{value - half_width:,}", f"{value + half_width:,}", *means)
        for range_name, value, *means in zip(range_names(series), histogram.values, *monthly_means, strict=True)
    ]
    monthly_sd = (format_number(_mean_sd(month_histograms)) for month_histograms in newest.values())
    rows.append(("noise sd", format_number(histogram.sd), "", "", *monthly_sd))
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
        ("noise sd", *(format_number(histogram.sd) for histogram in histograms)),
        ("households", *(f"{histogram.households:,}" for histogram in histograms)),
        *([("day", *(histogram.day for histogram in histograms))] if len(days) > 1 else []),
    ]
    dates_text = f" on {max(days)}" if len(days) == 1 else ", each group on its newest day"
    caption = f"Households by use{dates_text} ({title}), kWh; every day is in the Parquet file"
    return table(caption, ("kWh", *newest), rows)


def _mean_counts(histograms: Sequence[GroupHistogram]) -> Iterator[float]:
    for counts in zip(*(histogram.values for histogram in histograms), strict=True):
        yield sum(counts) / len(histograms)


def _mean_sd(histograms: Sequence[GroupHistogram]) -> float:
    return math.sqrt(sum(histogram.sd**2 for histogram in histograms)) / len(histograms)
