"""Report of a released coverage: how many households have a usable day, with the interval of the noise. Public."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal

from agedp.reports.axes import Scale, by_month, date_axis, format_number, linear_axis
from agedp.reports.chart_layers import Hover, Level, Line
from agedp.reports.distributions import GroupHistogram
from agedp.reports.downloads import Values, download_links
from agedp.reports.hover import day_text, share_of_areas
from agedp.reports.html import closed, paragraph, side_by_side, table
from agedp.reports.mean_series import MAX_CELLS, PUBLISHED_EXTREMES, percent
from agedp.reports.svg import chart
from agedp_data import mechanisms
from agedp_data.ledger import ReleaseRecord

_MAX_DAILY_ROWS = 31
_UNIT = "% of the households"
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
    groups = group_counts(rows, coverage=coverage)
    if not groups:
        yield paragraph(f"{name}: no day is released yet.")
        return
    largest = sorted(groups, key=lambda group: (-groups[group][-1].households, group))[:MAX_CELLS]
    shown = {group: groups[group] for group in sorted(largest)}
    labels = {
        group: ", ".join(filter(None, [label, group if group != "all" or len(shown) > 1 else ""])) for group in shown
    }
    drawn = {group: days for group, days in shown.items() if len({(day.values, day.households) for day in days}) > 1}
    for group in [group for group in shown if group not in drawn]:
        yield paragraph(_constant_text(shown[group], labels[group], coverage))
    charts = [_chart(_title(labels[group]), days, _axes(shown), coverage, len(drawn)) for group, days in drawn.items()]
    if charts:
        yield side_by_side(charts) if len(charts) > 1 else charts[0]
    if hidden := len(groups) - len(shown):
        where = f"in {file}" if file else "in the Parquet file"
        yield paragraph(f"{hidden:,} more groups, of fewer households, are {where} only.", "soft")
    yield download_links(name, _values(shown), file)
    tables = [_table(days, labels[group], coverage) for group, days in shown.items()]
    yield closed("Numbers of each group", tables) if len(tables) > 1 else tables[0]


def group_counts(rows: Sequence[ReleaseRecord], *, coverage: Decimal) -> dict[str, list[GroupHistogram]]:
    """Return the published counts by group and day, each as a histogram of one range."""
    by_group: dict[str, list[GroupHistogram]] = {}
    for row in sorted((row for row in rows if row.state == "released"), key=lambda row: (row.day, row.revision)):
        half_width, sd = mechanisms.interval(row.scale, coverage), mechanisms.standard_deviation(row.scale)
        for cell, value, households in zip(row.cells, row.values, row.households, strict=True):
            by_group.setdefault(cell, []).append(GroupHistogram(row.day, households, (value,), half_width, sd))
    return by_group


def _ends(day: GroupHistogram) -> tuple[int, int]:
    return -day.half_width, day.half_width


def _share(day: GroupHistogram, change: int) -> float:
    """Return a count plus a change of it, in percent of the households on the roster."""
    return 100 * (day.values[0] + change) / day.households


def _title(label: str) -> str:
    return f"Households with a usable day{f': {label}' if label else ''}"


def _axes(shown: Mapping[str, Sequence[GroupHistogram]]) -> tuple[Scale, Scale]:
    counts = [day for of_group in shown.values() for day in of_group]
    days = [date.fromisoformat(day.day) for day in counts]
    ends = [_share(day, sign * day.half_width) for day in counts for sign in (-1, 1)]
    return date_axis(min(days), max(days)), linear_axis(ends)


def _constant_text(days: Sequence[GroupHistogram], label: str, coverage: Decimal) -> str:
    day, of = days[0], f"{label}: " if label else ""
    when = f"on {day.day}" if len(days) == 1 else f"on each of the {len(days):,} released days"
    low, high = day.values[0] - day.half_width, day.values[0] + day.half_width
    return (
        f"{of}The published number of households with a usable day, noise included, is {day.values[0]:,} {when}; "
        f"{day.households:,} households were on the roster. The noise interval ({percent(coverage)}) is {low:,} to "
        f"{high:,} households."
    )


def _chart(
    title: str, days: Sequence[GroupHistogram], axes: tuple[Scale, Scale], coverage: Decimal, charts: int
) -> str:
    x, y = axes
    positions = [float(date.fromisoformat(day.day).toordinal()) for day in days]
    values, low, high = ([_share(day, sign * day.half_width) for day in days] for sign in (0, -1, 1))
    name = f"published share, with the interval that covers its noise ({percent(coverage)})"
    layers: list[Line | Level | Hover] = [
        Line(name, positions, values, (low, high)),
        Level("all households on the roster", 100.0),
        Hover(day_text, _UNIT, most=share_of_areas(charts)),
    ]
    about = (
        f"{len(days)} days from {days[0].day} to {days[-1].day}: lowest published day {format_number(min(values))} %, "
        f"highest {format_number(max(values))} % (noise included); the noise interval reaches at most "
        f"{format_number(max(end - value for end, value in zip(high, values, strict=True)))} points to either side."
    )
    return chart(title, about, layers, x=x, y=y, y_title=_UNIT, height=150 if charts > 1 else 200)


def _values(shown: Mapping[str, Sequence[GroupHistogram]]) -> Values:
    rows = [
        (day.day, group, day.households, value, day.sd, *(_share(day, end) / 100 for end in (0, *_ends(day))))
        for group, days in shown.items()
        for day in days
        for value in day.values
    ]
    return Values(_COLUMNS, rows)


def _table(days: Sequence[GroupHistogram], label: str, coverage: Decimal) -> str:
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
    for month, of_month in by_month(days, lambda day: date.fromisoformat(day.day)).items():
        values = [day.values[0] for day in of_month]
        numbers = (sum(values) / len(values), min(values), max(values), max(day.sd for day in of_month))
        rows.append((month, f"{len(of_month)}", *map(format_number, numbers)))
    columns = ("month", "days", "mean", *PUBLISHED_EXTREMES, "noise sd of a day")
    return table(f"Households with a usable day, by month{of}; every day is in the Parquet file", columns, rows)
