"""Values at the pointer: transparent areas over a chart, each with an SVG title that every browser shows.

Decisions:

* An area has the height of the drawing, so that any place above or below a point shows the point's value.
* A title names the position, the values with their unit, and the interval where there is one: "2013-02-01: 7.76 kWh per
  household (7.67 to 7.85)".
* The size of a page is bounded. A chart has at most `MOST_AREAS` areas, and charts side by side share `MOST_IN_SERIES`.
  Where a chart has more positions, an area stands for several neighbouring ones: its title has the lowest and the
  highest value. 4,000 areas take about 0.5 MB.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from html import escape
from itertools import pairwise
from statistics import median

from agedp.reports.chart_layers import MOST_AREAS, Bars, Hover, Layer, Line, Marks, Points
from agedp_data.messages import escape_controls

MOST_IN_SERIES = 4000
"""Areas of all charts side by side."""
_FEWEST_AREAS = 12


def share_of_areas(charts: int) -> int:
    """Return how many areas each of these charts side by side may have.

    >>> share_of_areas(1), share_of_areas(40)
    (1000, 100)
    """
    return max(_FEWEST_AREAS, min(MOST_AREAS, MOST_IN_SERIES // max(charts, 1)))


def positions_per_area(positions: int, most: int) -> int:
    """Return how many neighbouring positions one area stands for.

    >>> positions_per_area(365, 1000), positions_per_area(365, 100)
    (1, 4)
    """
    return -(-positions // most) if positions else 1


def day_text(number: float) -> str:
    """Return the day of an ordinal number.

    >>> day_text(734_869.0)
    '2013-01-01'
    """
    return date.fromordinal(round(number)).isoformat()


@dataclass(frozen=True, slots=True)
class _Value:
    """A value of a layer at a position, with the ends of its interval, if it has one; marks have a name alone."""

    place: float
    name: str
    value: float | None
    interval: tuple[float, float] | None = None


def hover_areas(
    layers: Sequence[Layer], hover: Hover, *, across: Callable[[float], int], size: tuple[int, int]
) -> Iterator[str]:
    """Yield the areas of a chart as one SVG group; nothing for a chart without values.

    Args:
        layers: layers of the chart.
        hover: names of positions and values.
        across: horizontal coordinate of a position.
        size: width and height of the drawing.
    """
    by_place: dict[float, list[_Value]] = {}
    for layer in layers:
        for value in _values(layer):
            by_place.setdefault(value.place, []).append(value)
    places = sorted(by_place)
    if not places:
        return
    measured = (value for values in by_place.values() for value in _without_repeats(values) if value.value is not None)
    is_single = len({value.name for value in measured}) <= 1
    count = positions_per_area(len(places), hover.most)
    edges = _edges([across(place) for place in places], size[0])
    yield '<g class="hit">'
    for start in range(0, len(places), count):
        shown = places[start : start + count]
        left, right = edges[start][0], edges[start + len(shown) - 1][1]
        of_places = [value for place in shown for value in _without_repeats(by_place[place])]
        yield area(left, 0, max(right - left, 1), size[1], _text(shown, of_places, hover, is_single=is_single))
    yield "</g>"


def area(left: int, top: int, width: int, height: int, text: str) -> str:
    """Return one area with its title."""
    escaped = escape(escape_controls(text, has_lines=True), quote=False)
    return f'<path d="M{left} {top}h{width}v{height}h-{width}z"><title>{escaped}</title></path>'


def _values(layer: Layer) -> Iterator[_Value]:
    match layer:
        case Line(name=name, x=x, values=values, band=ends) | Points(name=name, x=x, values=values, whiskers=ends):
            for i, value in enumerate(values):
                if not math.isnan(value):
                    yield _Value(x[i], name, value, None if ends is None else (ends[0][i], ends[1][i]))
        case Bars():
            for place, value in zip(layer.x, layer.values, strict=True):
                if not math.isnan(value):
                    yield _Value(place, layer.name, value)
        case Marks():
            yield from (_Value(place, layer.name, None) for place in layer.x)
        case _:
            pass


def _without_repeats(values: Sequence[_Value]) -> list[_Value]:
    """Return the values at one position; a bar whose whisker is a layer of its own is left out."""
    with_interval = {value.value for value in values if value.interval is not None}
    return [value for value in values if value.interval is not None or value.value not in with_interval]


def _edges(places: Sequence[int], width: int) -> list[tuple[int, int]]:
    """Return left and right end of the area of each position: half-way to its neighbours, but not across a gap.

    >>> _edges([0, 10, 20, 100], 100)
    [(0, 5), (5, 15), (15, 30), (90, 100)]
    """
    gaps = [after - before for before, after in pairwise(places)]
    typical = round(median(gaps)) if gaps else width
    reaches = [min(gap // 2, typical) for gap in gaps]
    before, after = [typical // 2, *reaches], [*reaches, typical // 2]
    return [
        (max(place - left, 0), min(place + right, width))
        for place, left, right in zip(places, before, after, strict=True)
    ]


def _text(places: Sequence[float], values: Sequence[_Value], hover: Hover, *, is_single: bool) -> str:
    first, last = hover.place(places[0]), hover.place(places[-1])
    where = first if len(places) == 1 else f"{first} to {last}"
    names = dict.fromkeys(value.name for value in values)
    lines = [_layer_text([value for value in values if value.name == name], hover) for name in names]
    if is_single and len(lines) == 1:
        return f"{where}: {lines[0] or values[0].name}"
    short_names = (name.partition(",")[0] for name in names)
    return "\n".join(
        [where, *(f"{name}: {line}" if line else name for name, line in zip(short_names, lines, strict=True))]
    )


def _layer_text(values: Sequence[_Value], hover: Hover) -> str:
    numbers = [value.value for value in values if value.value is not None]
    if not numbers:
        return ""
    unit = f" {hover.unit}" if hover.unit else ""
    if len(values) > 1:
        return f"{hover.number(min(numbers))} to {hover.number(max(numbers))}{unit}, {len(values)} values"
    interval = values[0].interval
    ends = "" if interval is None else f" ({hover.number(interval[0])} to {hover.number(interval[1])})"
    return f"{hover.number(numbers[0])}{unit}{ends}"
