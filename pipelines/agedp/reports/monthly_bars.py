"""Mean use by month as bars with the interval of their noise, from the table of averages by month. Public.

Decisions:

* A bar is a month of which all days are decided (`period_averages`); a month without some of its days has the mean of
  the others and is marked.
* All groups have one axis. `MOST_GROUPS` of them have a chart, those of most household-days, in the order of names.
* One month of one group is a sentence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any

from agedp.reports.axes import Scale, format_number, linear_axis
from agedp.reports.chart_layers import Hover
from agedp.reports.downloads import Values, download_links
from agedp.reports.hover import share_of_areas
from agedp.reports.html import paragraph, side_by_side, table
from agedp.reports.mean_series import percent
from agedp.reports.svg import Bars, Marks, Points, chart

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


def monthly_parts(
    name: str, rows: Sequence[_Row], *, coverage: Decimal, label: str = "", file: str = "", hidden: int = 0
) -> Iterator[str]:
    """Yield charts, links and one table of the months of one series; nothing without a month.

    Args:
        name: the series.
        rows: its rows of the table of averages by month (`derived_schemas.PERIOD_AVERAGES`).
        coverage: that of the intervals.
        label: what titles call the series, "" for nothing.
        file: the Parquet file of the table, beside the page; "" without one.
        hidden: number of further groups, of which no rows are given.
    """
    if not rows:
        return
    groups = shown_groups(rows)
    months = sorted({row["first_day"] for row in rows})
    if len(months) == 1 and len(rows) == 1:
        yield paragraph(_sentence(rows[0], coverage, label))
        return
    shown = [row for row in rows if row["group"] in groups]
    if len(months) > 1:
        charts = [_chart(_title(group, label, groups), of_group, months, shown, coverage, len(groups))
                  for group, of_group in groups.items()]  # fmt: skip
        yield side_by_side(charts) if len(charts) > 1 else charts[0]
    hidden += len({row["group"] for row in rows}) - len(groups)
    if hidden:
        where = f"{file} has all of them" if file else "the Parquet files have their days"
        yield paragraph(f"{hidden} more groups, of fewer households, have no bars here; {where}.", "soft")
    values = Values(_CSV_COLUMNS, [tuple(_cell(row[column]) for column in _CSV_COLUMNS) for row in shown])
    yield download_links(f"{name}_by_month", values, file)
    yield _table(shown, coverage, label, is_split=len(groups) > 1)


def shown_groups(rows: Sequence[_Row]) -> dict[str, list[_Row]]:
    """Return the rows of the groups that have a chart, by group in the order of names."""
    household_days: dict[str, int] = {}
    for row in rows:
        household_days[row["group"]] = household_days.get(row["group"], 0) + row["household_days"]
    largest = sorted(household_days, key=lambda group: (-household_days[group], group))[:MOST_GROUPS]
    return {group: [row for row in rows if row["group"] == group] for group in sorted(largest)}


def _title(group: str, label: str, groups: Mapping[str, object]) -> str:
    names = [label, *([group] if group != "all" or len(groups) > 1 else [])]
    of = ", ".join(filter(None, names))
    return f"Mean use per household and day, by month{f': {of}' if of else ''}"


def _chart(
    title: str, rows: Sequence[_Row], months: Sequence[date], all_rows: Sequence[_Row], coverage: Decimal, charts: int
) -> str:
    by_month = {row["first_day"]: row for row in rows}  # of two ways of counting in a month the later one
    place = {month: float(i) for i, month in enumerate(months)}
    x, drawn = [place[month] for month in by_month], [*by_month.values()]
    mean, low, high = ([row[name] for row in drawn] for name in ("mean_kwh", "low_kwh", "high_kwh"))
    layers: list[Bars | Points | Marks] = [
        Bars("mean of the month", x, mean, style=2),
        Points(f"interval that covers the noise ({percent(coverage)})", x, mean, (low, high), style=1),
    ]
    if parts := [place[row["first_day"]] for row in drawn if not row["is_complete"]]:
        layers.append(Marks("without some of its days", parts))
    lowest, highest = min(drawn, key=lambda row: row["mean_kwh"]), max(drawn, key=lambda row: row["mean_kwh"])
    about = (
        f"{len(drawn)} months from {months[0]:%Y-%m} to {months[-1]:%Y-%m}: lowest {format_number(lowest['mean_kwh'])} "
        f"{_UNIT} in {lowest['first_day']:%Y-%m}, highest {format_number(highest['mean_kwh'])} in "
        f"{highest['first_day']:%Y-%m}."
    )
    ends = [end for row in all_rows for end in (row["low_kwh"], row["high_kwh"])]
    hover = Hover(lambda position: f"{months[round(position)]:%Y-%m}", _UNIT, most=share_of_areas(charts))
    height = 150 if charts > 1 else 220
    y = linear_axis(ends, zero=True)
    return chart(title, about, [*layers, hover], x=month_axis(months), y=y, y_title=_UNIT, height=height)


def month_axis(months: Sequence[date]) -> Scale:
    r"""Return the axis of months by their number, a few of them labelled, the year below where it changes.

    >>> [text for _, text in month_axis([date(2012, 12, 1), date(2013, 1, 1)]).ticks]
    ['Dec\n2012', 'Jan\n2013']
    """
    step = -(-len(months) // _LABELS)
    ticks, year = [], 0
    for i in range(0, len(months), step):
        month = months[i]
        ticks.append((float(i), _MONTHS[month.month - 1] + (f"\n{month.year}" if month.year != year else "")))
        year = month.year
    return Scale(-0.5, len(months) - 0.5, tuple(ticks))


def _sentence(row: _Row, coverage: Decimal, label: str) -> str:
    mean, low, high = (format_number(row[name]) for name in ("mean_kwh", "low_kwh", "high_kwh"))
    of = f"{label}: " if label else ""
    days = "" if row["is_complete"] else f", from {row['days_released']} of its {row['days_in_period']} days"
    return (
        f"{of}Mean use in {row['first_day']:%Y-%m}: {mean} {_UNIT}, {low} to {high} with the noise "
        f"({percent(coverage)}){days}."
    )


def _table(rows: Sequence[_Row], coverage: Decimal, label: str, *, is_split: bool) -> str:
    cells = [
        (
            f"{row['first_day']:%Y-%m}",
            *([row["group"]] if is_split else []),
            f"{row['days_released']} of {row['days_in_period']}",
            *(format_number(row[name]) for name in ("mean_kwh", "low_kwh", "high_kwh", "noise_sd_kwh")),
        )
        for row in rows
    ]
    of = f" ({label})" if label else ""
    caption = (
        f"Mean use by month, {_UNIT}{of}: energy of the released days over their household-days; low to high covers "
        f"the noise {percent(coverage)}"
    )
    columns = ("month", *(["group"] if is_split else []), "days", "mean", "low", "high", "noise sd")
    return table(caption, columns, cells)


def _cell(value: object) -> object:
    return value.isoformat() if isinstance(value, date) else value
