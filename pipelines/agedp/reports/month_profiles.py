"""Profiles of months that were released as such: the newest month by clock, and a map of all months. Public.

Decisions:

* `MOST_GROUPS` groups are shown, those of most household-days in the newest month, in the order of names.
* A map has one column a month and one row a half-hour. Weekdays and weekends have a map each with the same colours.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

from agedp.release_folder.result_tables import released_table
from agedp.reports.axes import Scale, format_number, linear_axis
from agedp.reports.chart_layers import Hover
from agedp.reports.downloads import Values, download_links
from agedp.reports.heat_map import HeatMap, value_limits, value_map
from agedp.reports.html import closed, paragraph, side_by_side, table
from agedp.reports.mean_series import percent
from agedp.reports.monthly_bars import MONTHS
from agedp.reports.profile_charts import MOST_GROUPS
from agedp.reports.svg import Line, chart
from agedp_data.ledger import ReleaseRecord
from agedp_data.series.day_kinds import DAY_KINDS
from agedp_data.series.profile_tables import PROFILE_RELEASES
from agedp_data.series.result_table import Noise, Terms

_NAMES = {"weekday": "weekdays", "weekend": "weekend days"}
_COLUMNS = ("first_day", "group", "day_kind", "start_minute", "mean_kwh", "low_kwh", "high_kwh", "noise_sd_kwh")
_MOST_AREAS = 2400

_Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _MonthProfiles:
    """Rows of the published table by (group, kind of day, first day), and the length of a cell [minutes]."""

    rows: Mapping[tuple[str, str, date], Sequence[_Row]]
    step: int

    @property
    def months(self) -> list[date]:
        return sorted({first for _, _, first in self.rows})

    def clock(self, cell: float) -> str:
        minute = round(cell) * self.step
        return f"{minute // 60:02d}:{minute % 60:02d}"

    def of(self, group: str, kind: str, first: date, column: str) -> list[float]:
        """Return a column of a profile by cell, NaN where it has none."""
        values = [math.nan] * (24 * 60 // self.step)
        for row in self.rows.get((group, kind, first), ()):
            values[row["start_minute"] // self.step] = float(row[column])
        return values


def month_profile_parts(
    name: str,
    rows: Sequence[ReleaseRecord],
    *,
    terms: Terms,
    coverage: Decimal,
    file: str = "",
) -> Iterator[str]:
    """Yield charts, maps, links and tables of a series of profiles of months.

    Args:
        name: the series.
        rows: its released rows.
        terms: by the hash of each contract that has the series.
        coverage: of the intervals.
        file: the Parquet file of the series, beside the page; "" without one.
    """
    published = released_table(PROFILE_RELEASES, rows, terms, Noise(coverage)).to_pylist()
    if not published:
        yield paragraph(f"{name}: no month is released yet.")
        return
    by_profile: dict[tuple[str, str, date], list[_Row]] = {}
    for row in published:
        by_profile.setdefault((row["group"], row["day_kind"], row["first_day"]), []).append(row)
    profiles = _MonthProfiles(by_profile, published[0]["minutes"])
    groups, hidden = _largest_groups(published, profiles.months[-1])
    labels = {group: name if group == "all" and len(groups) == 1 else f"{name}, {group}" for group in groups}
    charts = _newest_charts(profiles, labels, coverage)
    yield side_by_side(charts) if len(charts) > 1 else charts[0]
    if len(profiles.months) > 1:
        yield side_by_side([*_maps(profiles, labels)])
    if hidden:
        where = f"in {file}" if file else "in the Parquet file"
        yield paragraph(f"{hidden:,} more groups, of fewer households, are {where} only.", "soft")
    shown = [row for row in published if row["group"] in labels]
    values = Values(_COLUMNS, [tuple(_text(row[column]) for column in _COLUMNS) for row in shown])
    yield download_links(f"{name}_by_month", values, file)
    tables = [_table(profiles, group, label, coverage) for group, label in labels.items()]
    yield tables[0] if len(tables) == 1 else closed("Numbers of each group by clock", tables)


def _largest_groups(rows: Sequence[_Row], newest: date) -> tuple[list[str], int]:
    """Return the groups that are shown, by name, and the number of all others."""
    sizes = {row["group"]: row["household_days"] for row in rows if row["first_day"] == newest}
    largest = sorted(sizes, key=lambda group: (-sizes[group], group))[:MOST_GROUPS]
    return sorted(largest), len({row["group"] for row in rows}) - len(largest)


def _newest_charts(profiles: _MonthProfiles, labels: Mapping[str, str], coverage: Decimal) -> list[str]:
    """Return a chart for each group: both kinds of day of the newest month, with the intervals of their noise."""
    newest = profiles.months[-1]
    curves = {
        (group, kind): tuple(profiles.of(group, kind, newest, column) for column in ("mean_kwh", "low_kwh", "high_kwh"))
        for group in labels
        for kind in DAY_KINDS
        if (group, kind, newest) in profiles.rows
    }
    ends = [end for _, low, high in curves.values() for end in (*low, *high)]
    cells, unit = 24 * 60 // profiles.step, f"kWh per household in {profiles.step} minutes"
    x = Scale(0.0, cells - 1.0, tuple((float(cell), profiles.clock(cell)) for cell in range(0, cells, cells // 4)))
    y, charts = linear_axis(ends, zero=True), []
    for group, label in labels.items():
        lines = [
            Line(
                f"{_NAMES[kind]}, with the interval of the noise ({percent(coverage)})",
                [float(cell) for cell in range(cells)],
                mean,
                band=(low, high),
                letter="E" if kind == "weekend" else "W",
                style=int(kind == "weekend"),
                dots=False,
            )
            for (of_group, kind), (mean, low, high) in curves.items()
            if of_group == group
        ]
        title = f"Mean profile of {MONTHS.text(newest)}: {label}"
        about = "; ".join(
            f"{line.name.partition(',')[0]}: highest {format_number(max(_present(line.values)))} kWh per household, "
            f"lowest {format_number(min(_present(line.values)))}"
            for line in lines
        )
        hover = Hover(profiles.clock, unit)
        charts.append(chart(title, f"By clock. {about}.", [*lines, hover], x=x, y=y, y_title=unit, height=200))
    return charts


def _present(values: Sequence[float]) -> list[float]:
    return [value for value in values if not math.isnan(value)]


def _maps(profiles: _MonthProfiles, labels: Mapping[str, str]) -> Iterator[str]:
    """Yield a map of months by clock for each group and kind of day."""
    months = profiles.months
    limits = value_limits([float(row["mean_kwh"]) for of in profiles.rows.values() for row in of])
    axis = MONTHS.axis(months)
    x_ticks = [(axis.position(value), text) for value, text in axis.ticks]
    y_ticks = [(hour / 24, f"{hour:02d}:00") for hour in (0, 6, 12, 18)] + [(1.0, "24:00")]
    for group, label in labels.items():
        for kind in DAY_KINDS:
            columns = [profiles.of(group, kind, first, "mean_kwh") for first in months]
            values = [list(row) for row in zip(*columns, strict=True)]

            def text(cell: int, first: int, last: int, values: Sequence[Sequence[float]] = values) -> str:
                shown = _present(values[cell][first : last + 1])
                span = MONTHS.text(months[first]) + (f" to {MONTHS.text(months[last])}" if last > first else "")
                numbers = " to ".join(dict.fromkeys(format_number(end) for end in (min(shown), max(shown))))
                return f"{span} {profiles.clock(cell)}: {numbers} kWh per household"

            shown = HeatMap(values, x_ticks, y_ticks, "kWh", text, _MOST_AREAS // (2 * len(labels)), limits)
            about = (
                f"One column a month, one row each {profiles.step} minutes of the clock, from midnight at the top; "
                f"{format_number(min(map(min, map(_present, columns))))} to "
                f"{format_number(max(map(max, map(_present, columns))))} kWh per household. The values include noise."
            )
            yield value_map(f"Use by month and clock, {_NAMES[kind]}: {label}", about, shown, height=200)


def _table(profiles: _MonthProfiles, group: str, label: str, coverage: Decimal) -> str:
    newest = profiles.months[-1]
    columns = [
        profiles.of(group, kind, newest, column) for kind in DAY_KINDS for column in ("mean_kwh", "low_kwh", "high_kwh")
    ]
    rows = [
        (profiles.clock(cell), *("–" if math.isnan(value) else format_number(value) for value in values))
        for cell, values in enumerate(zip(*columns, strict=True))
    ]
    caption = (
        f"Mean profile of {MONTHS.text(newest)} in numbers, kWh per household in {profiles.step} minutes ({label}); "
        f"low to high covers the noise {percent(coverage)}; every month is in the Parquet file"
    )
    heads = [f"{_NAMES[kind]}{text}" for kind in DAY_KINDS for text in (", mean", ", low", ", high")]
    return table(caption, ("begins", *heads), rows)


def _text(value: object) -> object:
    return value.isoformat() if isinstance(value, date) else value
