"""What a report shows of the released series: each day's mean with its noise interval, and the same in numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from agedp_data import noise
from agedp_data.ledger import ReleaseRecord
from agedp_data.pictures.chart import Line, Marks, chart
from agedp_data.pictures.page import paragraph, table
from agedp_data.pictures.scales import Scale, days, linear, plain

MAX_CELLS = 40
"""Groups that a page shows, those of most homes; a page of hundreds is read by nobody, and the tables hold them all."""

_MAX_DAILY_ROWS = 31
_MANY_CELLS = 1
_WIDE_RATIO = 2.5


@dataclass(frozen=True, slots=True)
class CellMean:
    """One cell of a series on one day: how many homes, mean, noise interval and standard deviation, kWh a home."""

    day: date
    households: int
    mean: float
    low: float
    high: float
    sd: float
    loss: int


def cell_means(rows: Sequence[ReleaseRecord], *, coverage: Decimal) -> dict[str, list[CellMean]]:
    """Return by cell what one series said, day by day, of the `MAX_CELLS` cells of most homes."""
    released = sorted((row for row in rows if row.state == "released"), key=lambda row: (row.day, row.revision))
    newest = _households(released)
    shown = set(sorted(newest, key=lambda cell: (-newest[cell], cell))[:MAX_CELLS])
    scales = {row.scale for row in released}
    half = {scale: noise.interval(scale, coverage) for scale in scales}
    deviation = {scale: noise.standard_deviation(scale) for scale in scales}
    found: dict[str, list[CellMean]] = {}
    for row in released:
        day = date.fromisoformat(row.day)
        for cell, value, households in zip(row.cells, row.values, row.households, strict=True):
            if cell not in shown:
                continue
            kwh, wide = 1000.0 * households, half[row.scale]
            ends = (value - wide) / kwh, (value + wide) / kwh
            sd = deviation[row.scale] / kwh
            found.setdefault(cell, []).append(CellMean(day, households, value / kwh, *ends, sd, row.loss))
    return found


def _households(released: Sequence[ReleaseRecord]) -> dict[str, int]:
    """Return by cell how many homes it had when it was released last."""
    return {cell: homes for row in released for cell, homes in zip(row.cells, row.households, strict=True)}


def series_parts(name: str, rows: Sequence[ReleaseRecord], *, coverage: Decimal, titled: bool) -> Iterator[str]:
    """Yield charts and tables of one series: a chart for each of its cells, all on one scale."""
    cells = cell_means(rows, coverage=coverage)
    if not cells:
        yield paragraph(f"{name}: nothing is released yet.")
        return
    skipped = sorted({date.fromisoformat(row.day) for row in rows if row.state == "skipped"})
    every = [one for found in cells.values() for one in found]
    shown = [*(one.day for one in every), *skipped]
    x = days(min(shown), max(shown))
    y = _value_axis(every)
    many = len(cells) > _MANY_CELLS
    if many:
        yield '<div class="two">'
    for cell, found in cells.items():
        of = ", ".join([*([name] if titled else []), *([cell] if cell != "all" or len(cells) > 1 else [])])
        title = f"Mean use of a home by day{f': {of}' if of else ''}"
        yield _chart(title, found, skipped, x, y, coverage, small=many)
    if many:
        yield "</div>"
    if beyond := len({one.day for one in every if one.low < y.low or one.high > y.high}):
        yield paragraph(
            f"So that the others can be seen, {beyond} days with far more noise reach beyond the chart.", "soft"
        )
    if left := len(_households([row for row in rows if row.state == "released"])) - len(cells):
        yield paragraph(f"{left} more groups, of fewer homes, are in the Parquet file only.", "soft")
    for cell, found in cells.items():
        of = ", ".join([*([name] if titled else []), *([cell] if cell != "all" or len(cells) > 1 else [])])
        yield _means_table(of, found, skipped)


def _chart(
    title: str,
    found: Sequence[CellMean],
    skipped: Sequence[date],
    x: Scale,
    y: Scale,
    coverage: Decimal,
    *,
    small: bool,
) -> str:
    place = {one.day.toordinal(): one for one in found}
    every = range(min(place), max(place) + 1)
    mean, low, high = (
        [getattr(place[day], name) if day in place else math.nan for day in every] for name in ("mean", "low", "high")
    )
    named = f"mean, with the interval that covers its noise ({percent(coverage)})"
    layers: list[Line | Marks] = [Line(named, [float(day) for day in every], mean, band=(low, high))]
    if skipped:
        layers.append(Marks("skipped days", [float(day.toordinal()) for day in skipped]))
    return chart(
        title, _description(found, skipped, y), layers, x=x, y=y, y_title="kWh a home", height=150 if small else 240
    )


def percent(share: Decimal) -> str:
    """Return a share as people write it.

    >>> percent(Decimal("0.95")), percent(Decimal("0.999"))
    ('95 %', '99.9 %')
    """
    return f"{float(100 * share):.6g} %"


def _value_axis(every: Sequence[CellMean]) -> Scale:
    """Return an axis for means and intervals; a few days with far more noise than the others reach beyond it."""
    ends = sorted(end for one in every for end in (one.low, one.high))
    inner = ends[len(ends) // 50 : len(ends) - len(ends) // 50]
    wide = ends[-1] - ends[0] > _WIDE_RATIO * (inner[-1] - inner[0])
    return linear(inner if wide else ends)


def _description(found: Sequence[CellMean], skipped: Sequence[date], y: Scale) -> str:
    least, most = min(found, key=_mean_kwh), max(found, key=_mean_kwh)
    middle = sum(one.mean for one in found) / len(found)
    wide = max(one.high - one.mean for one in found)
    if len(found) == 1:
        start = f"One day, {found[0].day}: {plain(middle)} kWh a home"
    else:
        start = (
            f"{len(found)} days from {found[0].day} to {found[-1].day}: {plain(middle)} kWh a home on average, least "
            f"{plain(least.mean)} on {least.day}, most {plain(most.mean)} on {most.day}"
        )
    end = f"; {len(skipped)} days were skipped" if skipped else ""
    beyond = sum(one.low < y.low or one.high > y.high for one in found)
    end += f"; {beyond} days reach beyond the chart" if beyond else ""
    return f"{start}; the noise interval reaches at most {plain(wide)} kWh to either side{end}."


def _mean_kwh(one: CellMean) -> float:
    return one.mean


def _means_table(of: str, found: Sequence[CellMean], skipped: Sequence[date]) -> str:
    about = f" ({of})" if of else ""
    if len(found) <= _MAX_DAILY_ROWS:
        rows = [
            (str(one.day), f"{one.households:,}", plain(one.mean), plain(one.low), plain(one.high), plain(one.sd))
            for one in found
        ]
        caption = f"The same in numbers, kWh a home{about}"
        return table(caption, ("day", "homes", "mean", "low", "high", "noise sd"), rows)
    months: dict[str, list[CellMean]] = {}
    for one in found:
        months.setdefault(f"{one.day:%Y-%m}", []).append(one)
    missed = [f"{day:%Y-%m}" for day in skipped]
    rows = [
        (
            month,
            f"{len(own)}" + (f" (−{missed.count(month)})" if month in missed else ""),
            plain(sum(one.mean for one in own) / len(own)),
            plain(min(one.mean for one in own)),
            plain(max(one.mean for one in own)),
            plain(max(one.sd for one in own)),
        )
        for month, own in months.items()
    ]
    remark = "; (−n): skipped days" if skipped else ""
    caption = f"The same by month, kWh a home{about}; every day is in the Parquet file{remark}"
    return table(caption, ("month", "days", "mean", "least", "most", "noise sd"), rows)
