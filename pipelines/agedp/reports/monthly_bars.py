"""Mean use by month as bars with the interval of their noise, also of weeks, months and years released as such. Public.

Decisions:

* A bar is a month of which all days are decided (`period_averages`); a month without some of its days has the mean of
  the others and is marked. A period that was released as such (`period_releases`) is whole.
* All groups have one axis. `MOST_GROUPS` of them have a chart, those of most household-days, in the order of names.
* One period of one group is a sentence. The numbers of several groups are behind a summary.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, Final

from agedp.reports.axes import Scale, format_number, linear_axis
from agedp.reports.chart_layers import Hover
from agedp.reports.downloads import Values, download_links
from agedp.reports.hover import share_of_areas
from agedp.reports.html import closed, paragraph, side_by_side, table
from agedp.reports.mean_series import percent
from agedp.reports.svg import Bars, Marks, Points, chart
from agedp_data.series.periods import Every

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

    def axis(self, firsts: Sequence[date]) -> Scale:
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
        return Scale(-0.5, len(firsts) - 0.5, tuple(ticks))

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
        rows: its rows of the table of averages by period (`mean_tables.AVERAGES_BY`).
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
        charts = [
            _chart(_title(group, label, groups, period), of_group, firsts, shown, coverage, len(groups), period)
            for group, of_group in groups.items()
        ]
        yield side_by_side(charts) if len(charts) > 1 else charts[0]
    hidden += len({row["group"] for row in rows}) - len(groups)
    if hidden:
        where = f"{file} has all of them" if file else "the Parquet files have their days"
        yield paragraph(f"{hidden:,} more groups, of fewer households, have no bars here; {where}.", "soft")
    values = Values(_CSV_COLUMNS, [tuple(_cell(row[column]) for column in _CSV_COLUMNS) for row in shown])
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
    largest = sorted(household_days, key=lambda group: (-household_days[group], group))[:MOST_GROUPS]
    return {group: by_group[group] for group in sorted(largest)}


def _title(group: str, label: str, groups: Mapping[str, object], period: ShownPeriod) -> str:
    names = [label, *([group] if group != "all" or len(groups) > 1 else [])]
    of = ", ".join(filter(None, names))
    return f"{period.title}{f': {of}' if of else ''}"


def _chart(
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
    layers: list[Bars | Points | Marks] = [
        Bars(f"mean of the {period.every}", x, mean, style=2),
        Points(f"interval that covers the noise ({percent(coverage)})", x, mean, (low, high), style=1),
    ]
    if parts := [place[row["first_day"]] for row in drawn if not row["is_complete"]]:
        layers.append(Marks("without some of its days", parts))
    lowest, highest = min(drawn, key=lambda row: row["mean_kwh"]), max(drawn, key=lambda row: row["mean_kwh"])
    about = (
        f"{len(drawn)} {period.every}s from {period.text(firsts[0])} to {period.text(firsts[-1])}: lowest "
        f"{format_number(lowest['mean_kwh'])} {_UNIT} in {period.text(lowest['first_day'])}, highest "
        f"{format_number(highest['mean_kwh'])} in {period.text(highest['first_day'])}."
    )
    ends = [end for row in all_rows for end in (row["low_kwh"], row["high_kwh"])]
    hover = Hover(lambda position: period.text(firsts[round(position)]), _UNIT, most=share_of_areas(charts))
    height = 150 if charts > 1 else 220
    y = linear_axis(ends, zero=True)
    return chart(title, about, [*layers, hover], x=period.axis(firsts), y=y, y_title=_UNIT, height=height)


def _sentence(row: _Row, coverage: Decimal, label: str, period: ShownPeriod) -> str:
    mean, low, high = (format_number(row[name]) for name in ("mean_kwh", "low_kwh", "high_kwh"))
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
            *(format_number(row[name]) for name in ("mean_kwh", "low_kwh", "high_kwh", "noise_sd_kwh")),
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


def _cell(value: object) -> object:
    return value.isoformat() if isinstance(value, date) else value
