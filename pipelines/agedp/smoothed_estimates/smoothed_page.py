"""Table of smoothed estimates -> smoothed.html: published points with their noise, the estimate with its interval.

Decisions:

* One chart for each series and group, all with the scale of their own values; at most `MOST_GROUPS` groups of a series,
  the largest. The table has all of them.
* Intervals of points cover the noise and nothing else, those of the line assume the model.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from statistics import NormalDist
from typing import Any, Final

from agedp.reports import svg
from agedp.reports.html import paragraph, render_page, side_by_side, table
from agedp.reports.series_charts import MOST_GROUPS
from agedp_data.roster import ALL
from agedp_data.smoothing.public_calendar import WITHOUT_HOLIDAYS

_LAPLACE_90: Final = math.log(10) / math.sqrt(2)
"""Half-width of the interval that covers 90 % of Laplace noise, in standard deviations."""
_SUM_90: Final = NormalDist().inv_cdf(0.95)
"""The same, of the sum of several Laplace noises: 1.635 for two equal ones, and never more than this, the normal's."""
_AMPLITUDES: Final[Mapping[str, str]] = {
    "level": "level, over weeks",
    "weekday": "weekday",
    "holiday": "holiday",
    "heating": "cold, per 5 °C",
    "first_layer": "of the first layer",
    "short": "variation over a few days",
    "single": "variation of single days",
    "special": "further variation of special days",
}
"""Heading of each amplitude."""
_UNBROKEN_HYPHEN: Final = "\u2011"
_Row = Mapping[str, Any]


def smoothed_page(
    rows: Sequence[_Row], source: Mapping[str, Any], amplitudes: Sequence[Mapping[str, Any]], *, title: str
) -> bytes:
    """Return the page of a table of smoothed estimates.

    Args:
        rows: of the table.
        source: the record of what they were computed from.
        amplitudes: of each cell, as in smoothing.json.
        title: of the release.
    """
    has_weather = source["weather"] is not None
    note = ["REHEARSAL: the dates are simulated. The estimates are of no publication."] if source["rehearsal"] else []
    return render_page(
        "smoothed_estimates.html",
        title=f"{title}: smoothed estimates",
        notes=note,
        meaning=source["meaning"],
        facts=[*_facts(rows, source)],
        widths=_width_table(rows),
        charts=[*_charts(rows, source["layers"])],
        amplitudes=[*_amplitude_tables(amplitudes, has_weather=has_weather)],
        others="other days, the calendar and the weather" if has_weather else "other days and the calendar",
        heating=", an effect of cold days" if has_weather else "",
        source=source,
    ).encode()


def _facts(rows: Sequence[_Row], source: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    days = source["days"]
    published = len({row["day"] for row in rows if row["published_kwh"] is not None})
    extent = " to ".join(f"{days[end]}".replace("-", _UNBROKEN_HYPHEN) for end in ("first", "last"))
    yield "days published", f"{published:,}", extent
    [(_, _, cell), *more] = largest_cells(rows)
    if not more:
        yield "noise of a day", f"±\u00a0{svg.format_number(median_noise(cell))}\u00a0kWh", "90 % of the time, median"
        yield "estimate of a day", f"±\u00a0{svg.format_number(median_width(cell))}\u00a0kWh", "90 % interval, median"
    region = source["region"] if source["region"] != WITHOUT_HOLIDAYS else "weekdays"
    yield "calendar", region, source["calendar"].removeprefix(region).lstrip(", ")
    weather = source["weather"]
    extent = f"{weather['file']}, {weather['lowest_c']:.1f} to {weather['highest_c']:.1f}\u00a0°C" if weather else ""
    yield "weather", "in use" if weather else "not in use", extent


def _width_table(rows: Sequence[_Row]) -> str:
    """Return a table of noise and intervals by series and group, "" where there is only one."""
    cells = largest_cells(rows)
    if len(cells) == 1:
        return ""
    noise = aligned_numbers([median_noise(cell) for _, _, cell in cells])
    widths = aligned_numbers([median_width(cell) for _, _, cell in cells])
    names = [cell_name(series, group) for series, group, _ in cells]
    columns = ("90 % of the time, median over the days, kWh per household", "noise of a day, ±", "estimate of a day, ±")
    return table("Noise and estimates of each series", columns, [*zip(names, noise, widths, strict=True)])


def aligned_numbers(values: Sequence[float]) -> list[str]:
    """Return numbers of a column with as many decimals as three digits of the largest need; NaN is "none".

    >>> aligned_numbers([9.76, 10.04, 0.5]), aligned_numbers([0.75, 0.7474]), aligned_numbers([math.nan])
    (['9.8', '10.0', '0.5'], ['0.750', '0.747'], ['none'])
    """
    largest = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    decimals = min(6, max(0, 2 - math.floor(math.log10(largest) + 1e-12))) if largest else 0
    return ["none" if math.isnan(value) else f"{value:,.{decimals}f}" for value in values]


def median_noise(rows: Sequence[_Row]) -> float:
    """Return the median half-width of the interval that covers 90 % of the noise of a published value [kWh]."""
    return _median([_noise_90(row) for row in rows if row["noise_sd_kwh"] is not None])


def _noise_90(row: _Row) -> float:
    """Return the half-width that covers at least 90 % of the noise of a published value, 0 without one [kWh]."""
    quantile = _SUM_90 if row["layers"] > 1 else _LAPLACE_90
    return quantile * float(row["noise_sd_kwh"] or 0.0)


def layer_note(rows: Sequence[_Row]) -> str:
    """Return that published values are sums of layers, "" if none is."""
    numbers = sorted({row["layers"] for row in rows} - {1})
    return f"sum of {' or '.join(map(str, numbers))} layers" if numbers else ""


def median_width(rows: Sequence[_Row]) -> float:
    """Return the median half-width of the interval of an archive estimate [kWh]."""
    return _median([(row["high_kwh"] - row["low_kwh"]) / 2 for row in rows])


def _median(values: Sequence[float]) -> float:
    return sorted(values)[len(values) // 2] if values else math.nan


def largest_cells(rows: Sequence[_Row]) -> list[tuple[str, str, list[_Row]]]:
    """Return series, group and rows of each cell: by series, those of all households first, large groups first."""
    cells: dict[tuple[str, str], list[_Row]] = {}
    for row in rows:
        cells.setdefault((row["series"], row["group"]), []).append(row)
    households = {
        cell: next((row["households"] for row in reversed(of_cell) if row["households"] is not None), 0)
        for cell, of_cell in cells.items()
    }
    largest = {name: max(number for (series, _), number in households.items() if series == name) for name, _ in cells}
    order = sorted(cells, key=lambda cell: (-largest[cell[0]], cell[0], -households[cell], cell[1]))
    return [(*cell, cells[cell]) for cell in order]


def cell_name(series: str, group: str) -> str:
    """Return the name of a cell for people.

    >>> cell_name("use", "all"), cell_name("use", "Std")
    ('use', 'use, Std')
    """
    return series if group == ALL else f"{series}, {group}"


def _charts(rows: Sequence[_Row], layers: Mapping[str, Sequence[str]]) -> Iterator[str]:
    by_series: dict[str, list[tuple[str, list[_Row]]]] = {}
    for name, group, cell in largest_cells(rows):
        by_series.setdefault(name, []).append((group, cell))
    for name, cells in by_series.items():
        sum_text = f", sum of layers up to {layers[name][-1]} kWh" if name in layers else ""
        is_alone = len(by_series) == 1
        shown = {_title(name, group, is_alone=is_alone) + sum_text: cell for group, cell in cells[:MOST_GROUPS]}
        charts = [_chart(title, cell, charts=len(shown)) for title, cell in shown.items()]
        yield side_by_side(charts) if len(shown) > 1 else charts[0]
        if len(cells) > len(shown):
            yield paragraph(f"{len(cells) - len(shown)} more groups, of fewer households, are in the table.", "soft")
        for title, cell in shown.items():
            yield _month_table(title, cell)


def _title(series: str, group: str, *, is_alone: bool) -> str:
    part = ("" if group == ALL else group) if is_alone else cell_name(series, group)
    return f"Mean daily use per household{': ' if part else ''}{part}"


def _chart(title: str, rows: Sequence[_Row], *, charts: int) -> str:
    days = [float(row["day"].toordinal()) for row in rows]
    published = [math.nan if row["published_kwh"] is None else row["published_kwh"] for row in rows]
    noise = [_noise_90(row) for row in rows]
    of_layers = f", {note}" if (note := layer_note(rows)) else ""
    low, high = ([value + sign * width for value, width in zip(published, noise, strict=True)] for sign in (-1, 1))
    band = [row["low_kwh"] for row in rows], [row["high_kwh"] for row in rows]
    x, y = svg.date_axis(rows[0]["day"], rows[-1]["day"]), _axis(rows, [*low, *high])
    is_cut = any(end < y.low or end > y.high for end in (*low, *high))
    arrows = "; an arrowhead: beyond the axis" if is_cut else ""
    name = f"published{of_layers}, with the interval of its noise (90 %){arrows}"
    layers: list[svg.Line | svg.Points] = [
        svg.Points(name, days, published, (low, high), style=2),
        svg.Line(
            "estimate, with its 90 % interval", days, [row["estimate_kwh"] for row in rows], band=band, dots=False
        ),
    ]
    height, unit = 170 if charts > 1 else 280, "kWh per household"
    hover = svg.Hover(svg.day_text, unit, most=svg.share_of_areas(charts))
    return svg.chart(title, _description(rows), [*layers, hover], x=x, y=y, y_title=unit, height=height)


def _axis(rows: Sequence[_Row], whisker_ends: Sequence[float]) -> svg.Scale:
    """Return an axis for all estimates and for the noise of most days; a few whiskers may extend beyond it."""
    ends = sorted(end for end in whisker_ends if not math.isnan(end))
    inner = ends[len(ends) // 50 : len(ends) - len(ends) // 50]
    return svg.linear_axis([*inner, *(row[name] for row in rows for name in ("low_kwh", "high_kwh"))])


def _description(rows: Sequence[_Row]) -> str:
    values = [row["estimate_kwh"] for row in rows]
    missing = sum(row["published_kwh"] is None for row in rows)
    unpublished = f"; {missing} days were not published" if missing else ""
    return (
        f"Estimates of {len(rows)} days from {rows[0]['day']} to {rows[-1]['day']}: {svg.format_number(min(values))} "
        f"to {svg.format_number(max(values))} kWh per household, with intervals of ± "
        f"{svg.format_number(median_width(rows))} kWh where the noise of a published value is "
        f"± {svg.format_number(median_noise(rows))} kWh{unpublished}."
    )


def _month_table(title: str, rows: Sequence[_Row]) -> str:
    months = svg.by_month(rows, itemgetter("day"))
    numbers, widths, days = [], [], []
    for in_month in months.values():
        published = [row["published_kwh"] for row in in_month if row["published_kwh"] is not None]
        values = [row["estimate_kwh"] for row in in_month]
        means = (sum(published) / len(published) if published else math.nan, sum(values) / len(values))
        numbers.append((*means, min(values), max(values)))
        widths.append(median_width(in_month))
        days.append(f"{len(published)} of {len(in_month)}")
    columns = (
        "month",
        "days published",
        "mean published",
        "mean estimate",
        "lowest day",
        "highest day",
        "day's ±, median",
    )
    flat = iter(aligned_numbers([number for line in numbers for number in line]))
    texts = zip(*([next(flat) for _ in line] for line in numbers), strict=True)
    return table(f"{title}, by month, kWh", columns, [*zip(months, days, *texts, aligned_numbers(widths), strict=True)])


def _amplitude_tables(amplitudes: Sequence[Mapping[str, Any]], *, has_weather: bool) -> Iterator[str]:
    used = {name for entry in amplitudes for name in entry["kwh"]} - (set() if has_weather else {"heating"})
    names = [name for name in _AMPLITUDES if name in used]
    cells = ["{series}, {days[0]} to {days[1]}".format(**entry) for entry in amplitudes]
    texts = [aligned_numbers([entry["kwh"].get(name, math.nan) for entry in amplitudes]) for name in names]
    lines = [*zip(cells, *texts, strict=True)]
    columns = ("most probable amplitude", *(_AMPLITUDES[name] for name in names))
    yield table("How large each part of a day is (standard deviation, kWh per household)", columns, lines)
