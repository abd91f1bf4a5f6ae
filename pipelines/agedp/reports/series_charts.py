"""Charts and tables of published series, made from what their tables say of themselves (`result_table.Chart`). Public.

A table of days or periods is a line with its band over time; any other one is a chart of its newest day or period, by
time of day or by range. The functions know columns, not statistics, so that a table of a plug-in is drawn as well.

Example: of 20 groups the monthly means are 20 small charts with one axis and one legend, each a line of steps with its
band and the noisy days behind it; below them one table has a line for each group, with a link to its chart.

Decisions:

* `MOST_GROUPS` groups have a chart, the largest ones, in the order of names; the table has all of them.
* Few days with far more noise than the others do not decide the axis: they extend beyond it.
* Where single days are fit for use by the verdict, they are the line; otherwise it is that of the months.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from itertools import islice
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from agedp import signal_against_noise
from agedp.reports import svg
from agedp.reports.html import TEXTS, Values, download_links, paragraph, part, side_by_side, table
from agedp_data.ledger import ReleaseRecord
from agedp_data.series.result_table import Chart, Noise
from agedp_data.smoothing.signal_estimate import Verdict

MOST_GROUPS: Final = 20
"""Groups of a series that have a chart on a page."""
MOST_PLACES: Final = 6
"""Groups that have a chart of their newest day or period."""
_MOST_ROWS: Final = 37
"""Rows of a table of days or periods, the newest ones: three years of months."""
_WIDE_RATIO: Final = 2.5
_SIZES: Final = ("households", "household_days", "household_minutes")
_PERIOD_NAMES: Final = {1: "day", 7: "week", 31: "month", 366: "year"}
_RAW: Final = 6
"""Style of noisy days behind the averages of periods."""
_Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines of a published table, how they are drawn, and the file that has them, "" without one.

    `half_widths` are those of the noise by day, for a chart of what was drawn, without columns of the band.
    """

    table: pa.Table
    chart: Chart
    file: str = ""
    half_widths: Mapping[date, float] = field(default_factory=dict)

    @property
    def factor(self) -> float:
        """Return what values are multiplied by: shares are in percent."""
        return 100.0 if self.chart.unit == "share" else 1.0

    @property
    def unit(self) -> str:
        """Return the unit of what is drawn."""
        return {"kWh": "kWh per household", "share": "%"}.get(self.chart.unit, self.chart.unit)

    @property
    def date_column(self) -> str:
        """Return the column of the day, or of the first day of a period."""
        return "first_day" if "first_day" in self.table.column_names else "day"

    @property
    def is_over_time(self) -> bool:
        """Return whether the chart is over days or periods, not over the places of the newest one."""
        return self.chart.x == self.date_column

    def ends(self, row: _Row) -> tuple[float, float, float]:
        """Return the value of a line and the ends of its interval, in the unit of the chart."""
        value = self.factor * row[self.chart.y]
        if self.chart.band is None:
            half_width = self.factor * self.half_widths[row["day"]]
            return value, value - half_width, value + half_width
        low, high = (self.factor * row[end] for end in self.chart.band)
        return value, low, high

    def place(self, row: _Row) -> str:
        """Return a place as charts name it: the time "18:30", or the range "2–4"."""
        if isinstance(self.chart.x, tuple):
            return "–".join(f"{row[end]:.10g}" for end in self.chart.x)
        return f"{row[self.chart.x] // 60:02d}:{row[self.chart.x] % 60:02d}"

    def sizes(self) -> dict[str, int]:
        """Return the size of each group: its households, household-days or household-minutes on the newest day."""
        column = next((name for name in _SIZES if name in self.table.column_names), None)
        if column is None:
            return dict.fromkeys(self.table["group"].unique().to_pylist(), 0)
        sizes = self.table.group_by("group").aggregate([(column, "max")])
        return dict(zip(sizes["group"].to_pylist(), sizes[f"{column}_max"].to_pylist(), strict=True))

    def of_groups(self, groups: Sequence[str]) -> dict[str, list[_Row]]:
        """Return the lines of groups, by group."""
        by_group: dict[str, list[_Row]] = {group: [] for group in groups}
        of_groups = self.table.filter(pc.is_in(self.table["group"], pa.array(groups, pa.string())))
        for row in of_groups.to_pylist():
            by_group[row["group"]].append(row)
        return {group: rows for group, rows in by_group.items() if rows}

    def newest(self) -> dict[str, list[_Row]]:
        """Return the lines of each group on its newest day, or of its newest period: a complete one if all have one."""
        table = self.table
        if "is_complete" in table.column_names:
            complete = table.filter(pc.equal(table["is_complete"], 1))
            table = complete if {*complete["group"].to_pylist()} == {*table["group"].to_pylist()} else table
        last = table.group_by("group").aggregate([(self.date_column, "max")])
        dates = dict(zip(last["group"].to_pylist(), last[f"{self.date_column}_max"].to_pylist(), strict=True))
        recent = table.filter(pc.is_in(table[self.date_column], pa.array({*dates.values()}, pa.date32())))
        by_group: dict[str, list[_Row]] = {}
        for row in recent.to_pylist():
            if row[self.date_column] == dates[row["group"]]:
                by_group.setdefault(row["group"], []).append(row)
        return dict(sorted(by_group.items()))

    def period(self, row: _Row) -> tuple[date, date]:
        """Return the first and last day that a line is about."""
        first = row[self.date_column]
        return first, first if self.date_column == "day" else row.get("last_day") or row["day"]

    def ordinals(self, row: _Row) -> range:
        """Return the ordinal numbers of the days that a line is about."""
        first, last = self.period(row)
        return range(first.toordinal(), last.toordinal() + 1)

    def period_name(self, row: _Row) -> str:
        """Return "day", "week", "month" or "year"."""
        first, last = self.period(row)
        days = (last - first).days + 1
        return next(name for most, name in _PERIOD_NAMES.items() if days <= most)

    def period_text(self, row: _Row) -> str:
        """Return a period as a table names it: "2013-02", of a week or a day its first day."""
        digits = {"month": 7, "year": 4}.get(self.period_name(row), 10)
        return f"{row[self.date_column]}"[:digits]


def half_widths_of(rows: Iterable[ReleaseRecord], noise: Noise) -> dict[date, float]:
    """Return the half-width of the noise of rows by day; of two rows of a day that of the later one."""
    return {date.fromisoformat(row.day): float(noise.half_width(row.scale)) for row in rows}


@dataclass(frozen=True, slots=True)
class ShownSeries:
    """A published series: its name and label, its lines, the noisy days behind them, and its skipped days.

    `periods` are the months of days that are drawn themselves. `is_of_use` tells whether some span is fit or rough.
    """

    name: str
    label: str
    lines: Lines
    behind: Lines | None = None
    skipped: Sequence[date] = ()
    periods: Lines | None = None
    is_of_use: bool = True


def largest_groups(sizes: Mapping[str, int], most: int) -> list[str]:
    """Return the groups that a page shows: those of the largest size, in the order of their names.

    >>> largest_groups({"B": 5, "A": 5, "C": 9}, 2)
    ['A', 'C']
    """
    return sorted(sorted(sizes, key=lambda group: (-sizes[group], group))[:most])


def percent(share: Decimal) -> str:
    """Return a share in percent.

    >>> percent(Decimal("0.95")), percent(Decimal("0.999"))
    ('95 %', '99.9 %')
    """
    return f"{float(100 * share):.6g} %"


def titled(title: str, label: str) -> str:
    """Return a title with what it is about, if there is more than one such chart."""
    return f"{title}: {label}" if label else title


def series_parts(shown: ShownSeries, *, coverage: Decimal) -> Iterator[str]:
    """Yield the charts of a series with one legend, one table, and links to its values.

    Args:
        shown: the series.
        coverage: that of the intervals.
    """
    lines, sizes = shown.lines, shown.lines.sizes()
    if not sizes:
        yield paragraph(f"{shown.label or shown.name}: nothing is released yet.")
        return
    groups = largest_groups(sizes, MOST_GROUPS if lines.is_over_time else MOST_PLACES)
    drawn = lines.of_groups(groups) if lines.is_over_time else {group: lines.newest()[group] for group in groups}
    draw = _time_charts if lines.is_over_time else _place_charts
    charts = [*draw(shown, drawn)]
    yield from charts
    if not shown.is_of_use:
        yield paragraph(TEXTS["series_charts"].of_no_use, "soft")
    if hidden := len(sizes) - len(drawn):
        yield paragraph(f"{hidden:,} smaller groups have no chart.", "soft")
    if len(sizes) > 1:
        yield _groups_table(shown, [*drawn] if charts else [], coverage)
    else:
        yield (_periods_table if lines.is_over_time else _places_table)(shown, coverage)
    if shown.periods is not None:
        of_periods = replace(shown, lines=shown.periods, behind=None)
        yield _groups_table(of_periods, [], coverage) if len(sizes) > 1 else _periods_table(of_periods, coverage)
        yield _links(_csv_name(of_periods), of_periods.lines)
    for part_name, of_part in ((shown.name, shown.behind), (_csv_name(shown), lines)):
        if of_part is not None:
            yield _links(part_name, of_part)


def _links(name: str, lines: Lines) -> str:
    """Return the links to a table, and to a CSV of what the page has of it."""
    columns = tuple(lines.table.column_names)
    rows = [tuple(row.values()) for row in lines.table.to_pylist()] if lines.table.num_rows < _MOST_LINKED else []
    return download_links(name, Values(columns, rows), lines.file)


_MOST_LINKED: Final = 2001


def _csv_name(shown: ShownSeries) -> str:
    return shown.name if shown.lines.date_column == "day" else f"{shown.name}_by_period"


def _caption(shown: ShownSeries, group: str, groups: int) -> str:
    if groups > 1:
        return f"{shown.label}, {group}" if shown.label else group
    return titled(shown.lines.chart.title or shown.name, shown.label)


def _anchor(shown: ShownSeries, group: str, groups: Sequence[str]) -> str:
    return f"{shown.name.replace('/', '-')}-{groups.index(group)}" if len(groups) > 1 else ""


def _figures(charts: Sequence[str], layers: Sequence[svg.Layer]) -> Iterator[str]:
    """Yield charts of groups side by side below one legend, or one chart, which has its own."""
    if len(charts) > 1:
        yield svg.legend(layers)
    yield side_by_side(charts)


# --------------------------------------------------------------------------------------------------
# Over time: a line of days, or steps of periods with the noisy days behind them.
# --------------------------------------------------------------------------------------------------


def _time_charts(shown: ShownSeries, drawn: Mapping[str, Sequence[_Row]]) -> Iterator[str]:
    behind = {} if shown.behind is None else shown.behind.of_groups([*drawn])
    most = svg.share_of_areas(len(drawn))
    layers = {group: _time_layers(shown, rows, behind.get(group, ()), most) for group, rows in drawn.items()}
    numbers = [place for of_group in layers.values() for line in of_group[:-1] for place in line.x]  # type: ignore[union-attr]
    first, last = (date.fromordinal(int(end)) for end in (min(numbers), max(numbers)))
    if first == last:
        return
    ends = sorted(end for rows in drawn.values() for row in rows for end in shown.lines.ends(row)[1:])
    days = [] if shown.behind is None else [shown.behind.ends(row)[0] for rows in behind.values() for row in rows]
    y, x = svg.linear_axis([*_inner(ends), *_inner(sorted(days))]), svg.date_axis(first, last)
    several = len(drawn) > 1
    charts = [
        svg.chart(
            _caption(shown, group, len(drawn)), _about(shown, drawn[group]), of_group, x=x, y=y,
            y_title=shown.lines.unit, height=130 if several else 250, has_legend=not several,
            anchor=_anchor(shown, group, [*drawn]),
        )
        for group, of_group in layers.items()
    ]  # fmt: skip
    yield from _figures(charts, next(iter(layers.values())))
    if ends[0] < y.low or ends[-1] > y.high:
        yield paragraph("The axis is cut: some intervals reach beyond it.", "soft")


def _inner(ends: Sequence[float]) -> Sequence[float]:
    """Return sorted values without the outermost fiftieths where these lie far out."""
    inner = ends[len(ends) // 50 : len(ends) - len(ends) // 50]
    return inner if inner and ends[-1] - ends[0] > _WIDE_RATIO * (inner[-1] - inner[0]) else ends


def _time_layers(
    shown: ShownSeries, rows: Sequence[_Row], days: Sequence[_Row], most: int
) -> list[svg.Line | svg.Marks | svg.Hover]:
    layers: list[svg.Line | svg.Marks | svg.Hover] = []
    if shown.behind is not None and days:
        layers.append(_line(shown.behind, days, "single days", style=_RAW, has_band=False))
    name = f"{shown.lines.period_name(rows[0])}, band: noise"
    layers.append(_line(shown.lines, rows, name, style=0, has_band=shown.lines.chart.band is not None))
    if shown.skipped:
        layers.append(svg.Marks("skipped days", [float(day.toordinal()) for day in shown.skipped]))
    names = {} if days else {day: shown.lines.period_text(row) for row in rows for day in shown.lines.ordinals(row)}
    return [*layers, svg.Hover(lambda x: names.get(round(x)) or svg.day_text(x), shown.lines.unit, most=most)]


def _line(lines: Lines, rows: Sequence[_Row], name: str, *, style: int, has_band: bool) -> svg.Line:
    """Return the line of lines of one group, NaN on days without one; of two lines of a day the later one."""
    by_day = {number: row for row in rows for number in lines.ordinals(row)}
    numbers = range(min(by_day), max(by_day) + 1)
    empty = (math.nan, math.nan, math.nan)
    ends = [lines.ends(by_day[number]) if number in by_day else empty for number in numbers]
    values, low, high = map(list, zip(*ends, strict=True))
    positions, band = [float(number) for number in numbers], (low, high) if has_band else None
    return svg.Line(name, positions, values, band, style=style, steps=lines.date_column != "day", dots=style != _RAW)


def _about(shown: ShownSeries, rows: Sequence[_Row]) -> str:
    lines = shown.lines
    lowest, highest = (end(rows, key=lambda row: lines.ends(row)[0]) for end in (min, max))
    numbers = [svg.format_number(lines.ends(row)[0]) for row in (lowest, highest)]
    reach = max(high - value for value, _, high in map(lines.ends, rows))
    return (
        f"{len(rows):,} {lines.period_name(rows[0])}s from {lines.period_text(rows[0])} to "
        f"{lines.period_text(rows[-1])}, {lines.unit}: lowest {numbers[0]} in {lines.period_text(lowest)}, "
        f"highest {numbers[1]} in {lines.period_text(highest)}, noise included; the noise interval reaches at most "
        f"{svg.format_number(reach)} to either side."
    )


def _periods_table(shown: ShownSeries, coverage: Decimal) -> str:
    """Return the newest days or periods of one group."""
    lines, rows = shown.lines, shown.lines.table.to_pylist()[-_MOST_ROWS:]
    period = lines.period_name(rows[-1])
    days = [f"{row['days_released']} of {row['days_in_period']}" for row in rows] if "days_released" in rows[0] else []
    texts = svg.format_column(end for row in rows for end in lines.ends(row))
    ends = zip(texts, texts, texts, strict=True)  # one iterator: value, low and high of each row
    body = [(lines.period_text(row), *days[i : i + 1], *next(ends)) for i, row in enumerate(rows)]
    newest = f", the newest {len(rows)}" if len(rows) < lines.table.num_rows else ""
    caption = f"{_caption(shown, 'all', 1)}, {lines.unit}{newest}; low to high: {percent(coverage)} of the noise"
    return table(caption, (period, *(["days"] if days else []), "value", "low", "high"), body)


# --------------------------------------------------------------------------------------------------
# The newest day or period, by time of day or by range.
# --------------------------------------------------------------------------------------------------


def _place_charts(shown: ShownSeries, drawn: Mapping[str, Sequence[_Row]]) -> Iterator[str]:
    lines, several = shown.lines, len(drawn) > 1
    texts = _place_texts(lines, next(iter(drawn.values())))
    y = svg.linear_axis([end for rows in drawn.values() for row in rows for end in lines.ends(row)], zero=True)
    x, most = _place_axis(texts), svg.share_of_areas(len(drawn))
    hover = svg.Hover(lambda place: texts[round(place)], lines.unit, most=most)
    layers = {group: [*_place_layers(lines, rows, texts), hover] for group, rows in drawn.items()}
    charts = []
    for group, of_group in layers.items():
        rows = drawn[group]
        highest = max(rows, key=lambda row: lines.ends(row)[0])
        about = (
            f"In {lines.period_text(rows[0])}, {lines.unit}: the highest of {len(rows)} values is "
            f"{svg.format_number(lines.ends(highest)[0])} at {lines.place(highest)}, noise included."
        )
        title = f"{_caption(shown, group, len(drawn))}, {lines.period_text(rows[0])}"
        charts.append(
            svg.chart(
                title, about, of_group, x=x, y=y, y_title=lines.unit, height=150 if several else 240,
                has_legend=not several, anchor=_anchor(shown, group, [*drawn]),
            )
        )  # fmt: skip
    yield from _figures(charts, next(iter(layers.values())))


def _place_layers(lines: Lines, rows: Sequence[_Row], texts: Sequence[str]) -> Iterator[svg.Line | svg.Points]:
    """Yield a line for each kind of line by time of day, or the unconnected points of ranges."""
    noise = "bars: noise" if isinstance(lines.chart.x, tuple) else "band: noise"
    for style, (colour, of_colour) in enumerate(_by_colour(lines, rows).items()):
        by_place = {lines.place(row): lines.ends(row) for row in of_colour}
        ends = [by_place.get(text, (math.nan, math.nan, math.nan)) for text in texts]
        values, low, high = map(list, zip(*ends, strict=True))
        positions, name = [float(place) for place in range(len(texts))], f"{colour or 'value'}, {noise}"
        if isinstance(lines.chart.x, tuple):
            yield svg.Points(name, positions, values, (low, high), style=style)
        else:
            letter = "ABCDEF"[style] if colour else ""
            yield svg.Line(name, positions, values, (low, high), letter, style, dots=False)


def _by_colour(lines: Lines, rows: Sequence[_Row]) -> dict[str, list[_Row]]:
    by_colour: dict[str, list[_Row]] = {}
    for row in rows:
        by_colour.setdefault(row[lines.chart.colour] if lines.chart.colour else "", []).append(row)
    return by_colour


def _place_texts(lines: Lines, rows: Sequence[_Row]) -> list[str]:
    """Return the places of lines in the order of their table."""
    return [*dict.fromkeys(lines.place(row) for row in rows)]


def _place_axis(texts: Sequence[str]) -> svg.Scale:
    """Return the axis of places, of which as many are labelled as fit on a phone."""
    fitting = max(2, 46 // (max(map(len, texts)) + 2))
    step = -(-len(texts) // min(fitting, 4 if ":" in texts[0] else fitting))
    return svg.Scale(-0.5, len(texts) - 0.5, tuple((float(i), text) for i, text in enumerate(texts) if i % step == 0))


def _places_table(shown: ShownSeries, coverage: Decimal) -> str:
    """Return the places of the newest day or period of one group."""
    lines, [(group, rows)] = shown.lines, shown.lines.newest().items()
    by_colour = _by_colour(lines, rows)
    by_place = {
        colour: {lines.place(row): lines.ends(row) for row in of_colour} for colour, of_colour in by_colour.items()
    }
    body = [
        (
            text,
            *(
                svg.number_or_dash(end)
                for of_places in by_place.values()
                for end in of_places.get(text, (math.nan, math.nan, math.nan))
            ),
        )
        for text in _place_texts(lines, rows)
    ]
    caption = (
        f"{_caption(shown, group, 1)}, {lines.period_text(rows[0])}, {lines.unit}; low to high: "
        f"{percent(coverage)} of the noise"
    )
    ends = ("value", "low", "high")
    heads = (f"{colour}, {end}" if colour else end for colour in by_colour for end in ends)
    return table(caption, ("", *heads), body)


# --------------------------------------------------------------------------------------------------
# Several groups: one line each, with a link to the chart of the group.
# --------------------------------------------------------------------------------------------------


def _groups_table(shown: ShownSeries, drawn: Sequence[str], coverage: Decimal) -> str:
    """Return the newest values of all groups; of a chart by place its highest one."""
    lines = shown.lines
    newest, days = lines.newest(), {} if shown.behind is None else shown.behind.newest()
    counts = {group: _households(rows) for group, rows in newest.items()} | {
        group: _households(rows) for group, rows in days.items()
    }
    numbers = counts if any(counts.values()) else {}
    body, all_ends = list[tuple[str, ...]](), list[float]()
    for group, rows in newest.items():
        row = max(rows, key=lambda of: lines.ends(of)[0]) if not lines.is_over_time else rows[-1]
        place = [] if lines.is_over_time else [lines.place(row)]
        behind = [] if shown.behind is None or group not in days else [shown.behind.ends(days[group][-1])]
        ends = [lines.ends(row), *behind]
        anchor = _anchor(shown, group, drawn) if group in drawn else ""
        name = part("links", [(group, f"#{anchor}")]) if anchor else group
        all_ends += [end for of in ends for end in of]
        body.append((name, *numbers.get(group, []), lines.period_text(row), *place))
    period = lines.period_name(next(iter(newest.values()))[0])
    heads = ["value", "low", "high"] + (["newest day", "low", "high"] if days else [])
    where = [] if lines.is_over_time else ["highest at"]
    caption = (
        f"Groups of {shown.label or shown.name}: newest {period}, {lines.unit}; low to high: "
        f"{percent(coverage)} of the noise"
    )
    households_column = ["households"] if numbers else []
    texts = svg.format_column(all_ends)
    rows_with_ends = [(*cells, *islice(texts, len(heads))) for cells in body]
    return table(caption, ("group", *households_column, period, *where, *heads), rows_with_ends)


def _households(rows: Sequence[_Row]) -> list[str]:
    """Return the number of households of a group's newest lines; nothing without such a column."""
    row = rows[-1]
    if {"household_days", "first_day", "day"} <= {*row}:
        days = (row["day"] - row["first_day"]).days + 1
        return [f"{row['household_days'] / days:,.1f}".removesuffix(".0")]
    return [f"{row[name]:,}" for name in ("households", "most_households") if name in row]


# --------------------------------------------------------------------------------------------------
# A released mean's signal against its noise: the sentence of `plan` and `run`, and a table by time span.
#
# It is a function of the released rows, so it is public in both reports.
# --------------------------------------------------------------------------------------------------

_ANSWERS: Final[Mapping[Verdict | None, str]] = {
    "visible": "yes",
    "hidden": "no",
    "uncertain": "not certain",
    None: "not yet judged",
}
_SPAN_NAMES: Final = {1: "days", 7: "weeks", 28: "months (28 days)", 365: "years (365 days)"}


def signal_parts(rows: Sequence[ReleaseRecord]) -> Iterator[str]:
    """Yield the sentence about the smallest group of the means of these rows, and the table of each group and span."""
    signals = [
        signal
        for name in signal_against_noise.mean_names(row.series for row in rows)
        for signal in signal_against_noise.signals_by_group(rows, name, most=MOST_GROUPS)[:MOST_GROUPS]
    ]
    if not signals:
        return
    yield paragraph(signal_against_noise.signal_text(signal_against_noise.smallest_of(signals)))
    yield paragraph(TEXTS["series_charts"].signal_note, "soft")
    body = [
        _span_row(span, f", {signal.series}, {signal.group}" if len(signals) > 1 else "")
        for signal in signals
        for span in signal.spans
    ]
    columns = ("neighbouring", "pairs", "noise", "estimated change", "its standard error", "can be told apart")
    yield table("Change between neighbouring spans against their noise, kWh per household", columns, body)


def _span_row(span: signal_against_noise.SpanSignal, label: str) -> tuple[str, ...]:
    estimate = span.estimate
    numbers = [] if estimate is None else [estimate.change, estimate.standard_error]
    change = [signal_against_noise.three_digits(number) for number in numbers] or ["–", "–"]
    pairs, noise = f"{span.pairs:,}", signal_against_noise.three_digits(span.noise_kwh)
    return (f"{_SPAN_NAMES[span.days]}{label}", pairs, noise, *change, _ANSWERS[span.verdict])
