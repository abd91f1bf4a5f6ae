"""What a report shows of a released distribution: the newest day's counts with their noise intervals, and the months.

Bars stand side by side whatever the width of their range: a count is of its range, not of a kWh.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from agedp_data import noise
from agedp_data.config.series import Distribution, series_in
from agedp_data.ledger import Release
from agedp_data.notions.parameters import exact_text
from agedp_data.pictures.chart import Bars, Line, chart
from agedp_data.pictures.page import paragraph, table
from agedp_data.pictures.scales import Scale, linear, named, plain
from pipelines.reports.series import percent

MOST_GROUPS = 12
"""Groups that a page shows, those of most homes."""

_MOST_NAMES = 8
_RANGES = {
    "histogram": "Each count is of the homes whose use that day lies in its range, from its lower end to below the "
    "upper. Noise is added to every count by itself, so they need not add up to the number of homes.",
    "cumulative": "Each count is of the homes that used less than its end that day: what lies between two ends is the "
    "difference of their counts, with the noise of both, however far they are apart.",
}


@dataclass(frozen=True, slots=True)
class Counted:
    """One group's counts on one day: of how many homes, by range, and the noise of each count [homes]."""

    day: str
    households: int
    values: tuple[int, ...]
    half: int
    sd: float


def counted(rows: Sequence[Release], series: Distribution, *, coverage: Decimal) -> dict[str, list[Counted]]:
    """Return by group what a distribution said, day by day, of rows that have its bins."""
    found: dict[str, list[Counted]] = {}
    cells = len(series.ranges_kwh)
    for row in sorted((row for row in rows if row.state == "released"), key=lambda row: (row.day, row.revision)):
        half, sd = noise.interval(row.scale, coverage), noise.standard_deviation(row.scale)
        for start in range(0, len(row.cells), cells):
            group, _, _ = series.place(row.cells[start])
            values = row.values[start : start + cells]
            found.setdefault(group, []).append(Counted(row.day, row.households[start], values, half, sd))
    return found


def distribution_parts(
    name: str, rows: Sequence[Release], contracts: Mapping[str, Mapping[str, Any]], *, coverage: Decimal
) -> Iterator[str]:
    """Yield charts and tables of the rows of one distribution that have its newest ranges; `contracts` by hash."""
    every = {key: series_in(each["series"][name]) for key, each in contracts.items() if name in each["series"]}
    terms = {key: each for key, each in every.items() if isinstance(each, Distribution)}
    newest = [*terms.values()][-1]
    released = [row for row in rows if row.state == "released"]
    same = [row for row in released if _ranges(terms[row.contract]) == _ranges(newest)]
    yield paragraph(_RANGES[newest.form], "soft")
    yield from _shown(name, same, newest, coverage=coverage)
    if others := len(released) - len(same):
        yield paragraph(
            f"{others} earlier releases of {name} had other ranges; they are in the Parquet file only.", "soft"
        )


def _ranges(series: Distribution) -> tuple[object, ...]:
    return series.form, series.bins_kwh, series.by


def _shown(name: str, rows: Sequence[Release], series: Distribution, *, coverage: Decimal) -> Iterator[str]:
    """Yield for each of its groups the newest day, and every month."""
    groups = counted(rows, series, coverage=coverage)
    if not groups:
        yield paragraph(f"{name}: nothing is released yet.")
        return
    shown = sorted(groups, key=lambda group: (-groups[group][-1].households, group))[:MOST_GROUPS]
    for group in shown:
        of = ", ".join([name, *([group] if series.by is not None else [])])
        yield _chart(of, groups[group][-1], series, coverage)
        yield _numbers(of, groups[group][-1], series, coverage)
        yield _by_month(of, groups[group], series)
    if left := len(groups) - len(shown):
        yield paragraph(f"{left} more groups of {name}, of fewer homes, are in the Parquet file only.", "soft")


def range_names(series: Distribution) -> list[str]:
    """Return the ranges of use as people read them: "2–4", or "< 4" of counts from 0 on."""
    if series.form == "cumulative":
        return [f"< {exact_text(high)}" for _, high in series.ranges_kwh]
    return [f"{exact_text(low)}–{exact_text(high)}" for low, high in series.ranges_kwh]


def places(series: Distribution) -> Scale:
    """Return the axis of the ranges; of many only some are named."""
    names = range_names(series)
    step = -(-len(names) // _MOST_NAMES)
    ticks = {float(i): name for i, name in enumerate(names) if i % step == 0}
    found = named(ticks)
    return Scale(-0.5, len(names) - 0.5, found.ticks)


def whiskers(text: str, values: Sequence[float], half: float, *, style: int) -> Line:
    """Return values side by side, each with its interval and joined to no other."""
    gaps = [0.5 * i for i in range(2 * len(values) - 1)]
    apart = [values[i // 2] if i % 2 == 0 else math.nan for i in range(len(gaps))]
    return Line(text, gaps, apart, band=([v - half for v in apart], [v + half for v in apart]), style=style)


def _chart(of: str, one: Counted, series: Distribution, coverage: Decimal) -> str:
    names = range_names(series)
    values = [float(value) for value in one.values]
    most = max(range(len(values)), key=values.__getitem__)
    about = (
        f"Of {one.households:,} homes; the largest count is {plain(values[most])}, of {names[most]} kWh; the noise "
        f"interval of each count reaches {one.half:,} homes to either side."
    )
    layers: list[Bars | Line] = [
        Bars("homes by use of the day", [float(i) for i in range(len(values))], values, style=2),
        whiskers(f"interval that covers the noise ({percent(coverage)})", values, one.half, style=0),
    ]
    y = linear([0.0, *(value + sign * one.half for value in values for sign in (-1, 1))], zero=True)
    title = f"Homes by how much they used on {one.day}: {of}"
    return chart(title, about, layers, x=places(series), y=y, y_title="homes; ranges of kWh below")


def _numbers(of: str, one: Counted, series: Distribution, coverage: Decimal) -> str:
    rows = [
        (name, f"{value:,}", f"{value - one.half:,}", f"{value + one.half:,}", plain(one.sd))
        for name, value in zip(range_names(series), one.values, strict=True)
    ]
    caption = (
        f"Homes by use on {one.day}, of {one.households:,} ({of}); low to high covers the noise {percent(coverage)}"
    )
    return table(caption, ("kWh", "homes", "low", "high", "noise sd"), rows)


def _by_month(of: str, found: Sequence[Counted], series: Distribution) -> str:
    months: dict[str, list[Counted]] = {}
    for one in found:
        months.setdefault(one.day[:7], []).append(one)
    rows = [
        (month, f"{len(own)}", *map(plain, _means(own)), plain(math.sqrt(sum(o.sd**2 for o in own)) / len(own)))
        for month, own in months.items()
    ]
    columns = ("month", "days", *(f"{name} kWh" for name in range_names(series)), "noise sd")
    return table(f"Homes by use, mean of the month's days ({of}); every day is in the Parquet file", columns, rows)


def _means(own: Sequence[Counted]) -> Iterator[float]:
    for values in zip(*(one.values for one in own), strict=True):
        yield sum(values) / len(own)
